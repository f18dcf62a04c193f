package socket

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCodesThatAreSent(t *testing.T) {
	for code, want := range map[int]int{
		1000: 1000, 1001: 1001, 1004: 1011, 1005: 1000, 1006: 1011, 1011: 1011, 1012: 1012, 1014: 1014, 1015: 1011,
		0: 1011, 999: 1011, 2999: 1011, 3000: 3000, 4999: 4999, 5000: 1011,
	} {
		if got := Sendable(code); got != want {
			t.Errorf("%d: got %d, want %d", code, got, want)
		}
	}
}

func TestLongReasonIsCutBetweenCharacters(t *testing.T) {
	if got := Shorten("short"); got != "short" {
		t.Errorf("got %q", got)
	}
	for n := range 4 {
		got := Shorten(strings.Repeat("a", n) + strings.Repeat("☃", 60))
		if len(got) > MaxReason || len(got) < MaxReason-2 || !utf8.ValidString(got) {
			t.Errorf("got %d bytes: %q", len(got), got)
		}
	}
}
