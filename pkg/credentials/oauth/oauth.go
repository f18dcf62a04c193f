// Package oauth obtains tokens from identity providers that the operator has
// configured: the authorization code flow with PKCE (RFC 6749, 7636, 9207), the device
// flow (RFC 8628), and refresh.
//
// An Engine works within one machine's object. The state of a flow between its steps is
// a sealed row of the object's storage that is used once and expires after ten minutes.
// After each call to a provider the engine reads its rows again. The caller stores the
// tokens.
package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// flowLife is how long a flow may take.
const flowLife = 10 * time.Minute

// Rows is the part of storage.Storage used here. Keys begin with "oauth/".
type Rows interface {
	Get(key string) ([]byte, bool)
	Put(key string, value []byte)
	Delete(key string)
}

// Vault seals the secrets of a row and binds them to the row: a store.Keyring with the
// machine's id, and with the row's key as the connection.
type Vault interface {
	Seal(row, field string, plain secret.Secret) (secret.Sealed, error)
	Open(row, field string, sealed secret.Sealed) (secret.Secret, error)
}

// Engine runs the flows of one machine.
type Engine struct {
	Providers []Provider
	Rows      Rows
	Vault     Vault
	// Doer calls the provider's token and device endpoints, for the flow with
	// this note.
	Doer func(p *Provider, note string) upstream.Doer
	Rand io.Reader
	Now  func() time.Time
	// MachineID begins every state, so that a callback finds its object.
	MachineID string
}

// provider returns the configured row, or a 404.
func (e *Engine) provider(id string) (*Provider, error) {
	for i := range e.Providers {
		if e.Providers[i].ID == id {
			return &e.Providers[i], nil
		}
	}
	return nil, apierr.New(404, "unknown_provider", "Sign-in is not set up for this provider. The operator sets its OAuth client in OAUTH_PROVIDERS.")
}

// secret returns 256 random bits as 43 characters of base64url.
func (e *Engine) secret() (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(e.Rand, b[:]); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// Challenge returns the S256 code challenge of a verifier. RFC 7636 4.2.
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// load reads a row into v. It returns false for a missing or unreadable row.
func (e *Engine) load(key string, v any) bool {
	raw, ok := e.Rows.Get(key)
	return ok && json.Unmarshal(raw, v) == nil
}

func (e *Engine) save(key string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	e.Rows.Put(key, raw)
	return nil
}

// Stale reports whether a row of the engine may be deleted. The object prunes keys that
// begin with "oauth/".
func Stale(raw []byte, now time.Time) bool {
	var r struct {
		ExpiresAt int64 `json:"expiresAt"`
	}
	return json.Unmarshal(raw, &r) != nil || r.ExpiresAt <= now.UnixMilli()
}

// Reseal returns a row with reseal applied to all its sealed fields, for the rotation of
// the key. It returns raw if nothing changes.
func Reseal(raw []byte, reseal func(field string, sealed secret.Sealed) secret.Sealed) []byte {
	for _, field := range [...]string{verifierField, deviceField} {
		old := gjson.GetBytes(raw, field).Str
		if old == "" {
			continue
		}
		if s := reseal(field, secret.Sealed(old)); string(s) != old {
			if row, err := sjson.SetBytes(raw, field, string(s)); err == nil {
				raw = row
			}
		}
	}
	return raw
}
