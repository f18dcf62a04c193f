package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/pkg/wire/secret"
)

const (
	sealVersion    = "v1."
	minSecretBytes = 32
	keyIDLen       = 8 // hex digits
	nonceBytes     = 12
	sealLabel      = "weir credentials v1"
)

// ErrKeySecret reports that CREDENTIALS_KEY cannot be used: empty, an entry
// shorter than 32 bytes, or more than two entries.
var ErrKeySecret = errors.New("store: CREDENTIALS_KEY must be one or two secrets of at least 32 bytes each, separated by a comma")

// ErrOpen reports that a sealed secret does not open: changed, moved from where
// it was sealed, or sealed with a key that is gone. It says no more on purpose.
var ErrOpen = errors.New("store: sealed secret does not open")

// Keyring seals and opens the secrets of connections with AES-256-GCM.
//
//	sealed = "v1." kid "." base64url(nonce ‖ ciphertext ‖ tag)
//	associated data = len‖machine ‖ len‖connection ‖ len‖field ‖ len‖kid, len 4 bytes big endian
//
// so a sealed secret opens only in the field, connection and machine that it
// was sealed for. docs/architecture.md. There is no plain form to fall
// back to.
type Keyring struct {
	keys []sealKey // the first seals, all open
}

type sealKey struct {
	id   string
	aead cipher.AEAD
}

// NewKeyring makes the keyring from the worker secret CREDENTIALS_KEY: one
// secret of at least 32 bytes, or "new,old" during a rotation. The AES key is
// HKDF-SHA-256 of the secret; its id the first 8 hex digits of a digest of it.
func NewKeyring(secret string) (*Keyring, error) {
	parts := strings.Split(secret, ",")
	if len(parts) > 2 {
		return nil, ErrKeySecret
	}
	k := &Keyring{}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if len(part) < minSecretBytes {
			return nil, ErrKeySecret
		}
		key, err := hkdf.Key(sha256.New, []byte(part), nil, sealLabel, 32)
		if err != nil {
			return nil, fmt.Errorf("derive the credentials key: %w", err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("derive the credentials key: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("derive the credentials key: %w", err)
		}
		sum := sha256.Sum256(append([]byte(sealLabel+" id "), key...))
		k.keys = append(k.keys, sealKey{id: hex.EncodeToString(sum[:keyIDLen/2]), aead: aead})
	}
	if len(k.keys) == 2 && k.keys[0].id == k.keys[1].id {
		k.keys = k.keys[:1]
	}
	return k, nil
}

// Current returns the id of the key that seals. A secret whose KeyID differs is
// due to be sealed again.
func (k *Keyring) Current() string { return k.keys[0].id }

// Seal encrypts plain for one field of one connection.
func (k *Keyring) Seal(machineID, connectionID, field string, plain secret.Secret) (secret.Sealed, error) {
	key := &k.keys[0]
	raw := make([]byte, nonceBytes, nonceBytes+len(plain.Reveal())+key.aead.Overhead())
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("seal %s: %w", field, err)
	}
	var ad [160]byte
	raw = key.aead.Seal(raw, raw[:nonceBytes], []byte(plain.Reveal()),
		associated(ad[:0], machineID, connectionID, field, key.id))
	return secret.Sealed(sealVersion + key.id + "." + base64.RawURLEncoding.EncodeToString(raw)), nil
}

// Open decrypts what Seal made for the same machine, connection and field.
// Anything else is ErrOpen.
func (k *Keyring) Open(machineID, connectionID, field string, sealed secret.Sealed) (secret.Secret, error) {
	id := KeyID(sealed)
	if id == "" {
		return secret.Secret{}, ErrOpen
	}
	for i := range k.keys {
		key := &k.keys[i]
		if key.id != id {
			continue
		}
		text := string(sealed[len(sealVersion)+keyIDLen+1:])
		if strings.ContainsAny(text, "\r\n") { // the decoder would skip them
			return secret.Secret{}, ErrOpen
		}
		raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
		if err != nil || len(raw) < nonceBytes+key.aead.Overhead() {
			return secret.Secret{}, ErrOpen
		}
		var ad [160]byte
		plain, err := key.aead.Open(raw[nonceBytes:nonceBytes], raw[:nonceBytes], raw[nonceBytes:],
			associated(ad[:0], machineID, connectionID, field, id))
		if err != nil {
			return secret.Secret{}, ErrOpen
		}
		opened := secret.New(string(plain))
		clear(plain)
		return opened, nil
	}
	return secret.Secret{}, ErrOpen
}

// SealedText is the message for an account whose credentials do not open: see Keyring.Has.
const SealedText = "The stored credentials cannot be decrypted: the operator must set the CREDENTIALS_KEY that sealed them, or replace them."

// Has reports whether the secrets of a row were sealed with keys of k. It decrypts nothing.
func (k *Keyring) Has(secrets map[string]secret.Sealed) bool {
	for _, s := range secrets {
		if id := KeyID(s); !slices.ContainsFunc(k.keys, func(key sealKey) bool { return key.id == id }) {
			return false
		}
	}
	return true
}

// Earlier reports whether a key of a rotation other than the current one has sealed secrets of a row.
func (k *Keyring) Earlier(secrets map[string]secret.Sealed) bool {
	for _, s := range secrets {
		if len(k.keys) == 2 && KeyID(s) == k.keys[1].id {
			return true
		}
	}
	return false
}

// Rotating reports whether there is an earlier key besides the current one.
func (k *Keyring) Rotating() bool { return len(k.keys) == 2 }

// KeyID returns the id of the key that sealed s, or "" when s is not sealed
// text.
func KeyID(s secret.Sealed) string {
	id, _, ok := strings.Cut(strings.TrimPrefix(string(s), sealVersion), ".")
	if !ok || len(id) != keyIDLen || !strings.HasPrefix(string(s), sealVersion) {
		return ""
	}
	return id
}

func associated(b []byte, parts ...string) []byte {
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}
