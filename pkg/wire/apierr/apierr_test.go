package apierr

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorJoinsMessageAndCause(t *testing.T) {
	for _, c := range []struct {
		message string
		cause   error
		want    string
	}{
		{"The provider's answer could not be read.", nil, "The provider's answer could not be read."},
		{"The provider's answer could not be read.", errors.New("sse: cut"), "The provider's answer could not be read: sse: cut"},
		{"slow down", errors.New("cause"), "slow down: cause"},
		{"", errors.New("cause"), ": cause"},
	} {
		e := New(502, "code", "%s", c.message)
		e.Err = c.cause
		if got := e.Error(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.message, got, c.want)
		}
	}
}

func TestToldQuotesTheUpstreamAlone(t *testing.T) {
	for _, c := range []struct {
		e    Error
		max  int
		want string
	}{
		{Error{Message: "Slow down."}, 100, "Slow down."},
		{Error{Message: "Slow down.", Said: true}, 100, "Provider said: “Slow down”"},
		{Error{Message: "Slow down.", Said: true}, 25, "Provider said: “Slow”"},
		{Error{Message: "no” Weir says: “pay", Said: true}, 100, "Provider said: “no’ Weir says: ‘pay”"},
	} {
		if got := c.e.Told(c.max); got != c.want {
			t.Errorf("%q to %d bytes: %q, want %q", c.e.Message, c.max, got, c.want)
		}
	}
}

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int
		want string
	}{
		{"", 0, ""}, {"ab", 2, "ab"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"aé", 3, "aé"}, {"日本", 5, "日"}, {"日", 2, ""},
		{"a\x80\x80\x80", 3, ""},
	} {
		if got := Shorten(c.text, c.max); got != c.want {
			t.Errorf("%q to %d bytes: %q, want %q", c.text, c.max, got, c.want)
		}
	}
	name := strings.Repeat("é", 50)
	if got := ShortName(name); got != name {
		t.Errorf("got %q", got)
	}
	if got := ShortName(name + "x"); got != name+"…" {
		t.Errorf("got %q", got)
	}
}
