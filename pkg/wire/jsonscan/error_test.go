package jsonscan

import (
	"errors"
	"testing"
)

func TestErrorNamesThePlace(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{"", "The body is empty."},
		{" \n", "The body is empty."},
		{"[1]", "The body must be a JSON object."},
		{`{"model":}`, "The body is not valid JSON at line 1, column 10 (byte 9): a value was expected."},
		{"{\n  \"é\": x}", "The body is not valid JSON at line 2, column 8 (byte 10): a value was expected."},
		{`{"model":"a",}`, "The body is not valid JSON at line 1, column 14 (byte 13): a name was expected; is the comma before it a trailing comma?"},
		{"{\"a\":[1,2,\n]}", "The body is not valid JSON at line 2, column 1 (byte 11): a value was expected; is the comma before it a trailing comma?"},
		{`{"model":"a"`, "The body is not valid JSON at line 1, column 13 (byte 12): unexpected end."},
		{`{"model":"a","model":"b"}`, "model is given more than once."},
		{`{"Model":"a"}`, "model must be written in lower case."},
	} {
		_, err := Read([]byte(tt.doc), "model")
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", tt.doc, err)
		} else if got := e.Sentence(); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.doc, got, tt.want)
		}
	}
}
