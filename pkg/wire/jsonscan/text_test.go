package jsonscan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// Strings are read by words of 8 and of 32 bytes: every byte that matters, at every
// offset of such words and behind others like it.
func TestStringsAtEveryOffset(t *testing.T) {
	parts := []string{
		`"`, `\`, `\\`, `\"`, `\n`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\u12`, "\x00", "\x1f", " ", "!", "#", "[", "]", "\x7f",
		"\x80", "\xff", "\xc1\x81", "é", "\xc3", "☃", "\xe2\x98", "\xe0\x9f\xbf", "\xed\xa0\x80", "😀", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
	}
	for n := range 82 {
		text := strings.Repeat("a", n)
		for _, part := range parts {
			for _, before := range []string{"", "é", `\t`} {
				for _, after := range []string{"", "a", "aaaaaaaaa", "é" + text} {
					doc := `["` + before + text + part + after + `"]`
					if got, want := valid(doc) == nil, json.Valid([]byte(doc)) && utf8.ValidString(doc); got != want {
						t.Fatalf("%q: accepted %v, want %v", doc, got, want)
					}
				}
			}
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	check := func(b []byte) {
		want := -1
		for i := 0; i < len(b); {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				want = i
				break
			}
			i += n
		}
		if got := invalidUTF8(b); got != want {
			t.Fatalf("%q: got %d, want %d", b, got, want)
		}
	}
	for lead := range 256 {
		for second := range 256 {
			for _, rest := range []string{"", "\x80", "\xbf\x80", "\x80\x7f", "\x80\xc0", "abcdefgh\xc3\xa9", "\x80\x80abcdefghi"} {
				b := append([]byte{byte(lead), byte(second)}, rest...)
				check(b)
				check(append(bytes.Repeat([]byte{'a'}, second%11), b...))
			}
		}
	}
}

// A byte that is not UTF-8 is refused where it is, also in a name.
func TestErrorNamesThePlaceOfABadByte(t *testing.T) {
	for _, tt := range []struct {
		doc    string
		offset int
	}{{"{\"a\":\"12345678é\xff\"}", 16}, {"{\"\xc3\":1,2}", 2}} {
		_, err := Read([]byte(tt.doc), "a")
		if e, ok := err.(*Error); !ok || e.Offset != tt.offset || e.Reason != "not UTF-8" {
			t.Errorf("%q: got %v, want an error at byte %d", tt.doc, err, tt.offset)
		}
	}
}
