package endpoint

import (
	"errors"
	"testing"

	"weir/pkg/wire/apierr"
)

func TestTextOfAProviderIsQuoted(t *testing.T) {
	var e *apierr.Error
	err := MiniMaxError([]byte(`{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`))
	if !errors.As(err, &e) || e.Told(100) != "Provider said: “login fail”" {
		t.Errorf("got %v", err)
	}
}
