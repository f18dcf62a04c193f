package apierr

import (
	"errors"
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
