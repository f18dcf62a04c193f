package redact

import (
	"strings"
	"testing"
)

// runs are texts with nested escapes, and texts with many near matches of a
// value.
var runs = map[string]string{
	"backslashes":             `\`,
	"escaped backslashes":     `\u005c`,
	"percent":                 "%",
	"percent escaped":         "%25",
	"escapes of escapes":      "25",
	"ampersands":              "&",
	"ampersands escaped":      "&amp;",
	"entities of entities":    "amp;",
	"numeric entities":        "&#38;#38;",
	"mixed":                   `\%25&amp;`,
	"backslash and percent":   `\\\%25%`,
	"skipped line ends":       "a\r\n\r\n",
	"skipped, escaped":        `a\\\\\n\\\n`,
	"a value's beginning":     "a",
	"beginnings, escaped":     `a\u0061%61&#97;`,
	"base64 of the beginning": "YWFh",
	"hex of the beginning":    "61",
	"wrapped beginnings":      "a=\r\n",
}

func TestWorkIsLinear(t *testing.T) {
	secrets := map[string]string{
		"ordinary":    "sk-live-0123456789abcdef",
		"repeating":   strings.Repeat("a", 8000) + "b",
		"backslashes": strings.Repeat(`\`, 500) + "b",
		"percent":     "%25" + strings.Repeat("%", 500) + "b",
		"ampersands":  strings.Repeat("&amp;", 500) + "b",
	}
	for secret, value := range secrets {
		for run, part := range runs {
			for _, head := range []string{"", "%", "&", `\`, "a"} {
				work := func(size int) int {
					text := head + strings.Repeat(part, size/len(part))
					r := New(value)
					r.steps = new(int)
					r.String(text)
					return *r.steps
				}
				small := work(16 << 10)
				large := work(64 << 10)
				// Twice the growth of the text allows for a beginning that differs;
				// quadratic work would be 16 times as much.
				if large > 8*max(small, 1<<14) {
					t.Errorf("%s in text of %s after %q: %d steps for 16 KiB and %d for 64 KiB", secret, run, head, small, large)
				}
				if large > 5000*(64<<10) {
					t.Errorf("%s in text of %s after %q: %d steps for 64 KiB", secret, run, head, large)
				}
			}
		}
	}
}

func TestEscapesAfterLongRunAreFound(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 15, 16, 17, 31, 100} {
		text := strings.Repeat(`\`, n) + `u0073k-live-0123456789abcdef`
		if got := New("sk-live-0123456789abcdef").String(text); !strings.HasSuffix(got, Mask) {
			t.Errorf("after %d backslashes: got %s", n, got)
		}
	}
}

func TestPrefixOfLongValueIsMasked(t *testing.T) {
	value := strings.Repeat("0123456789abcdef", 20)
	r := New(value)
	if got := r.String("x" + value[:enough] + "!"); got != "x***!" {
		t.Errorf("got %s", got)
	}
	if got := r.String("x" + value[:enough-1] + "!"); got != "x"+value[:enough-1]+"!" {
		t.Errorf("got %s", got)
	}
}

// A search that is quadratic in these texts runs into the time limit of go test.
func TestPatternsOfLongTexts(t *testing.T) {
	for part, masked := range map[string]bool{
		"code:": false, "code: ": false, "AKIA ": false, "api-key ": false, "bearer ": false, "://": false, "://a:": false,
		"-----BEGIN ": false, "sk-": true, "password=": true, "bearer;": false, "eyJ": true, "://a@": false,
	} {
		text := strings.Repeat(part, (4<<20)/len(part))
		if got := Patterns(text); (got != text) != masked {
			t.Errorf("%s: a mask is set: %v, want %v", part, got != text, masked)
		}
	}
}
