package gemini

import (
	"testing"

	"weir/pkg/llm/ir"
)

func TestLineSeparatorsAreEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"a b": "a b", "a\u2028b\u2029": `a\u2028b\u2029`, "\u2028": `\u2028`, "é\u2027\u202a☃": "é\u2027\u202a☃",
	} {
		if got := string(escapeSeparators([]byte("\u2028"+in), 3)); got != "\u2028"+want {
			t.Errorf("%q: got %q", in, got)
		}
	}
	s := NewSink(&ir.Options{})
	s.Event(&ir.Event{Kind: ir.EventText, Text: "x\u2028y"})
	if got := string(*s.Buffer()); len(got) == 0 || got != string(escapeSeparators([]byte(got), 0)) {
		t.Errorf("got %q", got)
	}
}
