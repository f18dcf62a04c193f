package upload

import (
	"errors"
	"testing"

	"weir/pkg/accounts"
	"weir/pkg/wire/apierr"
)

// The error of a form that is not sent again is a text of the gateway, with a quote in it.
func TestStreamedFormQuotesTheProviderOnce(t *testing.T) {
	u := &Upload{sent: true}
	before := &accounts.Attempt{Failure: &apierr.Error{Status: 429, Message: "Slow down.", Said: true}}
	_, err := u.Body("m", before)
	const want = "Provider said: “Slow down”. The file was streamed, so that it cannot be sent again: repeat the request."
	if e := (*apierr.Error)(nil); !errors.As(err, &e) || e.Told(200) != want {
		t.Errorf("got %v", err)
	}
}
