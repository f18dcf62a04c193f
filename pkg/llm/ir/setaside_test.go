package ir

import (
	"bytes"
	"strings"
	"testing"
)

func TestLongTexts(t *testing.T) {
	long := strings.Repeat(`line\n`, MinSpan/6+1) + "end"
	for name, tt := range map[string]struct {
		body  string
		aside int
	}{
		"a text":                  {`{"messages":[{"role":"user","content":"` + long + `"}]}`, 1},
		"two texts":               {`{"system":"` + long + `","messages":[{"content":[{"type":"text","text":"` + long + `"}]}]}`, 2},
		"a short text":            {`{"messages":[{"content":"a\nb"}]}`, 0},
		"blanks":                  {`{"messages":[{"content":"` + strings.Repeat(`\n `, MinSpan) + `"}]}`, 0},
		"JSON":                    {`{"messages":[{"content":" \n[` + long + `]"}]}`, 0},
		"attribution":             {`{"system":"x-anthropic-billing-header: a\n` + long + `"}`, 0},
		"escaped JSON":            {`{"messages":[{"content":"\u007b` + long + `}"}]}`, 0},
		"half a surrogate pair":   {`{"messages":[{"content":"\ud800` + long + `"}]}`, 0},
		"an argument":             {`{"messages":[{"content":[{"type":"tool_use","input":{"content":"` + long + `"}}]}]}`, 0},
		"a result as JSON":        {`{"contents":[{"parts":[{"functionResponse":{"response":{"output":"` + long + `"}}}]}]}`, 0},
		"instructions":            {`{"instructions":"` + long + `","input":"x"}`, 0},
		"another member":          {`{"messages":[{"content":[{"data":"` + long + `"}]}]}`, 0},
		"a text that has a mark":  {`{"messages":[{"content":"weir-text-r1-0-0;` + long + `"}]}`, 1},
		"a name with the mark":    {`{"weir-text-r1-0-0;":1,"weir-text-r1-1-":1,"messages":[{"content":"` + long + `"}]}`, 1},
		"blanks around the texts": {`{"messages":[{"content":"` + long + ` \n\t\r "},{"content":"` + long + `\\n"}]}`, 2},
	} {
		s := LongTexts([]byte(tt.body), "r1")
		short := s.Short()
		if len(s.texts) != tt.aside || len(short) > s.Size() || tt.aside > 0 && len(short) > 400 {
			t.Errorf("%s: %d texts are set aside, want %d; %d bytes, at most %d: %.100s", name, len(s.texts), tt.aside, len(short), s.Size(), short)
		}
		parts, ok := s.Restore([][]byte{short})
		if got := bytes.Join(parts, nil); !ok || string(got) != tt.body {
			t.Errorf("%s: restored to %d bytes, want %d, %v", name, len(got), len(tt.body), ok)
		}
	}
}

// A trailing blank that a writer removes is not part of a text that is set aside.
func TestBlankEnd(t *testing.T) {
	for raw, want := range map[string]int{`a`: 0, `a `: 1, `a\n`: 2, `a \n\t `: 6, `a\\n`: 0, `a\\\n`: 2, `\n\r\t`: 6, `n`: 0, ``: 0, `\\`: 0, `a\u000a`: 0} {
		if got := blankEnd([]byte(raw)); got != want {
			t.Errorf("%q: %d, want %d", raw, got, want)
		}
	}
}

func TestCutShortTextsAreNotRestored(t *testing.T) {
	s := LongTexts([]byte(`{"content":"`+strings.Repeat(`a\n`, MinSpan)+`b"}`), "r1")
	mark := string(s.mark)
	for _, part := range []string{`"` + mark, `"` + mark + `1;"`, `"` + mark + `0"`, `"` + mark + `12345678901;"`, `"` + mark + `-1;"`, `"` + mark + `;"`, `{"a":"{\"b\":\"` + mark + `0;\"}"}`} {
		if parts, ok := s.Restore([][]byte{[]byte(part)}); ok {
			t.Errorf("%s is restored to %d parts", part, len(parts))
		}
	}
	if _, ok := s.Restore([][]byte{[]byte(`["` + mark + `0;","` + mark + `0;"]`)}); !ok {
		t.Error("a text that is repeated is not restored")
	}
}
