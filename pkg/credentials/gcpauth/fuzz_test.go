package gcpauth

import (
	"errors"
	"strings"
	"testing"

	"weir/pkg/wire/secret"
)

// Any key file is refused with ErrKey and without its text, or is a
// key with an address.
func FuzzParseKey(f *testing.F) {
	f.Add(`{"type":"service_account","client_email":"a@b.example","private_key_id":"1","private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n","project_id":"p"}`)
	f.Add(`{"type":"authorized_user"}`)
	f.Fuzz(func(t *testing.T, file string) {
		k, err := ParseKey(secret.New(file))
		if (k == nil) == (err == nil) || err != nil && (!errors.Is(err, ErrKey) || len(file) > 30 && strings.Contains(err.Error(), file)) {
			t.Errorf("%v, %v", k, err)
		}
	})
}
