package program

import (
	"os"
	"strings"
	"testing"
)

func TestStartIsOfferedOnATerminalOnly(t *testing.T) {
	for answer, want := range map[string]bool{
		"\n": true, "y\n": true, "Yes\n": true, "n\n": false, "no\n": false, "help\n": false, "": false, "y": false,
	} {
		var out strings.Builder
		if got := offersStart(strings.NewReader(answer), &out); got != want {
			t.Errorf("%q starts the server: %v", answer, got)
		}
		if !strings.Contains(out.String(), "weir help") {
			t.Errorf("the question is %q", &out)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if isTerminal(r) || isTerminal(w) || isTerminal(&strings.Builder{}) {
		t.Error("a pipe counts as a terminal")
	}
	var out, text strings.Builder
	if code := (Options{}).Main(nil, os.LookupEnv, r, &out, &text); code != 2 || out.Len() > 0 || !strings.Contains(text.String(), "Usage: weir") {
		t.Errorf("without a terminal: exit %d, %q, %q", code, &out, &text)
	}
}
