// Package sealed seals the credentials of the machine that native tests use. It
// imports nothing that calls accounts, so that their own tests can use it.
package sealed

import (
	"strings"
	"testing"

	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// MachineID is the machine of all native tests.
const MachineID = "abcdefgh01234567"

// Secret is the CREDENTIALS_KEY of the machine.
var Secret = strings.Repeat("k", 40)

// Keys returns the keyring of secrets, of Secret without any.
func Keys(t testing.TB, secrets ...string) *store.Keyring {
	t.Helper()
	if len(secrets) == 0 {
		secrets = []string{Secret}
	}
	keys, err := store.NewKeyring(strings.Join(secrets, ","))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Field seals one field of an account of the machine.
func Field(t testing.TB, keys *store.Keyring, accountID, field, plain string) secret.Sealed {
	t.Helper()
	sealed, err := keys.Seal(MachineID, accountID, field, secret.New(plain))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// APIKey returns the sealed secrets of an account with nothing but an API key.
func APIKey(t testing.TB, keys *store.Keyring, accountID, plain string) map[string]secret.Sealed {
	t.Helper()
	return map[string]secret.Sealed{store.APIKey: Field(t, keys, accountID, store.APIKey, plain)}
}
