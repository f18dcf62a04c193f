package endpoint

import (
	"errors"
	"testing"

	"weir/pkg/wire/apierr"
)

func read(body string) (r *Reader, got string) {
	r = Read([]byte(body), "model", "provider", "q", "n", "f", "b", "v")
	got = r.Model() + "|" + r.Text("q", true) + "|" + string(rune('0'+r.Int("n", 5, 1, 9))) + "|" + r.Choice("f", "x", "y")
	if r.Bool("b") {
		got += "|b"
	}
	return r, got + "|" + r.Value("v").Raw
}

func TestFieldsAndTheirDefaults(t *testing.T) {
	for body, want := range map[string]string{
		`{"q":"a"}`: "|a|5|x|",
		`{"q":"a","model":null,"n":null,"f":null,"b":null,"v":null}`:                        "|a|5|x|",
		`{"q":" a ","model":"m","provider":"m","n":9,"f":"y","b":true,"v":{"a":[1]},"z":0}`: `m| a |9|y|b|{"a":[1]}`,
		`{"q":"a","provider":"p"}`: "p|a|5|x|",
	} {
		if r, got := read(body); r.Err != nil || got != want {
			t.Errorf("%s: got %q %v, want %q", body, got, r.Err, want)
		}
	}
}

func TestFirstFailureIsReported(t *testing.T) {
	for body, param := range map[string]string{
		``: "", `[]`: "", `{"q":`: "", `{"q":"a","q":"b"}`: "q",
		`{}`: "q", `{"q":null}`: "q", `{"q":" "}`: "q", `{"q":1}`: "q",
		`{"model":""}`: "model", `{"provider":2}`: "provider", `{"q":"a","model":"m","provider":"p"}`: "provider",
		`{"q":"a","n":0}`: "n", `{"q":"a","n":1.5}`: "n", `{"q":"a","n":"1"}`: "n", `{"q":"a","n":10,"f":"z"}`: "n",
		`{"q":"a","f":"z"}`: "f", `{"q":"a","f":1}`: "f", `{"q":"a","b":1}`: "b",
	} {
		r, _ := read(body)
		var e *apierr.Error
		if !errors.As(r.Err, &e) || e.Status != 400 || e.Param != param || e.Message == "" {
			t.Errorf("%s: %v, want a failure of %q", body, r.Err, param)
		}
	}
}
