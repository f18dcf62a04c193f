package rpc

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"weir/pkg/store"
)

// Limits of a key as it is written.
const (
	MaxKey       = 512 // bytes of any key, in a header field or an import
	minKeyID     = 26
	maxKeyID     = 64
	checkLen     = 8
	minOldKey    = 8 // of a two-part key, after "sk-"
	minSeededKey = 8 // of any other key of a seed document
	machineIDLen = 16
	digestHexLen = 2 * sha256.Size
)

// idAlphabet has the characters of ids; 36 of them.
const idAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// Key is a parsed gateway key.
//
//	sk-<machineId>-<keyId>-<check>  machineId 16, keyId 26–64 of [a-z0-9], check 8 of [0-9a-f]
//	sk-<random>                     8 or more of [A-Za-z0-9_]: an old key, which names no machine
type Key struct {
	MachineID string // "" for an old key
	ID        string // the keyId, "" for an old key
	Check     string
	Digest    [32]byte // SHA-256 of the whole key
}

// Old reports whether the key is a two-part one.
func (k *Key) Old() bool { return k.MachineID == "" }

// ParseKey parses a key. It does not verify the check.
func ParseKey(s string) (Key, bool) {
	var k Key
	if len(s) > MaxKey || !strings.HasPrefix(s, "sk-") {
		return k, false
	}
	rest := s[3:]
	if machine, tail, ok := strings.Cut(rest, "-"); ok {
		id, check, ok := strings.Cut(tail, "-")
		if !ok || !IsMachineID(machine) || len(id) < minKeyID || len(id) > maxKeyID || !only(id, lowerOrDigit) ||
			len(check) != checkLen || !only(check, lowerHex) {
			return k, false
		}
		k.MachineID, k.ID, k.Check = machine, id, check
	} else if len(rest) < minOldKey || !only(rest, wordByte) {
		return k, false
	}
	var text [128]byte // enough for a key of this gateway, without an allocation
	k.Digest = sha256.Sum256(append(text[:0], s...))
	return k, true
}

// ParseSeededKey parses a key as a seed document may have it: one that ParseKey accepts,
// or 8 to MaxKey printable ASCII characters without blanks around them, which are an old
// key.
func ParseSeededKey(s string) (Key, bool) {
	k, ok := ParseKey(s)
	if ok || len(s) < minSeededKey || len(s) > MaxKey || strings.TrimSpace(s) != s || !only(s, printable) {
		return k, ok
	}
	return Key{Digest: sha256.Sum256([]byte(s))}, true
}

func printable(c byte) bool { return c >= ' ' && c <= '~' }

// CheckOK reports whether the check of the key is right. It filters typing
// errors, noise and needless reads; it does not authenticate.
func (k *Key) CheckOK(secret []byte) bool {
	return subtle.ConstantTimeCompare([]byte(k.Check), []byte(check(secret, k.MachineID, k.ID))) == 1
}

// check returns the first 8 hex digits of HMAC-SHA256(secret, machineId ‖ keyId).
func check(secret []byte, machineID, keyID string) string {
	mac := hmac.New(sha256.New, secret)
	var text [machineIDLen + maxKeyID]byte
	mac.Write(append(append(text[:0], machineID...), keyID...))
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0])[:checkLen/2])
}

// SecretCheck tells the API_KEY_SECRET of a gateway from others, by which an import knows whether
// keys can work.
func SecretCheck(secret []byte) string { return check(secret, "", "keys of an export") }

// IsMinted reports whether the id of a key is one of MintKey: the key names its machine.
func IsMinted(id string) bool { return len(id) >= minKeyID }

// MintKey returns a new key of a machine and its record. The key is shown once;
// only its digest is stored. secret is the worker secret API_KEY_SECRET.
// docs/reference/spec.md, 5.1.
//
// The id of the record is not that of the key: the former is in lists, logs, usage and backups,
// and with it and Last4 only four hex digits of the key would be unknown.
func MintKey(random io.Reader, secret []byte, machineID string) (text string, k store.Key, err error) {
	if !IsMachineID(machineID) {
		return "", k, fmt.Errorf("mint key: %q is not a machineId", machineID)
	}
	keyID, err := NewID(random, minKeyID)
	if err != nil {
		return "", k, fmt.Errorf("mint key: %w", err)
	}
	id, err := NewID(random, minKeyID)
	if err != nil {
		return "", k, fmt.Errorf("mint key: %w", err)
	}
	text = "sk-" + machineID + "-" + keyID + "-" + check(secret, machineID, keyID)
	return text, store.Key{ID: id, Digest: KeyDigest(text), Last4: Last4(text)}, nil
}

// NamesKey reports whether the id of a record is the random part of its key, as it was of
// each key before 2026-11-30, and is of a key of a seed.
func NamesKey(k *store.Key, secret []byte, machineID string) bool {
	if len(machineID) != machineIDLen || len(k.ID) < minKeyID || len(k.ID) > maxKeyID {
		return false
	}
	text := "sk-" + machineID + "-" + k.ID + "-" + check(secret, machineID, k.ID)
	return subtle.ConstantTimeCompare([]byte(k.Digest), []byte(KeyDigest(text))) == 1
}

// ImportedKey returns the record of a key that was created elsewhere: a key of
// another machine, an old key, or any other text. The id of the second and the
// third is derived from the digest.
func ImportedKey(text string) store.Key {
	k := store.Key{Digest: KeyDigest(text)}
	k.ID = "k" + k.Digest[:24]
	if parts := strings.Split(text, "-"); len(parts) == 4 && parts[0] == "sk" && IsMachineID(parts[1]) &&
		len(parts[2]) >= minKeyID && len(parts[2]) <= maxKeyID && only(parts[2], lowerOrDigit) {
		k.ID = parts[2]
	}
	k.Last4 = Last4(text)
	return k
}

// Last4 returns the last four characters of a secret, by which its owner
// recognizes it; "" if it has fewer than 20.
func Last4(secret string) string {
	if len(secret) < 20 {
		return ""
	}
	return secret[len(secret)-4:]
}

// KeyDigest returns the digest of a key as it is stored: SHA-256, lower-case hex.
func KeyDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// IsDigest reports whether s is a SHA-256 digest in lower-case hex.
func IsDigest(s string) bool { return len(s) == digestHexLen && only(s, lowerHex) }

// IsMachineID reports whether s is a valid machineId: 16 of [a-z0-9].
func IsMachineID(s string) bool { return len(s) == machineIDLen && only(s, lowerOrDigit) }

// IsRowID reports whether s may be the id of a record: 1 to 64 of [A-Za-z0-9_-].
func IsRowID(s string) bool {
	return s != "" && len(s) <= 64 && only(s, func(c byte) bool { return wordByte(c) || c == '-' })
}

// IsLowerAlphanumeric reports whether s has n characters of [a-z0-9].
func IsLowerAlphanumeric(s string, n int) bool { return len(s) == n && only(s, lowerOrDigit) }

// NewMachineID returns a random machineId.
func NewMachineID(random io.Reader) (string, error) { return NewID(random, machineIDLen) }

// MachineIDOf returns the machineId that a digest stands for.
func MachineIDOf(digest [sha256.Size]byte) string {
	id := digest[:machineIDLen]
	for i, b := range id {
		id[i] = idAlphabet[int(b)%len(idAlphabet)]
	}
	return string(id)
}

// NewID returns n random characters of [a-z0-9], uniformly distributed.
func NewID(random io.Reader, n int) (string, error) {
	out := make([]byte, 0, n)
	var b [64]byte
	for len(out) < n {
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", fmt.Errorf("create an id: %w", err)
		}
		for _, c := range b {
			if int(c) < 256/len(idAlphabet)*len(idAlphabet) && len(out) < n {
				out = append(out, idAlphabet[int(c)%len(idAlphabet)])
			}
		}
	}
	return string(out), nil
}

func only(s string, ok func(c byte) bool) bool {
	for i := 0; i < len(s); i++ {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func lowerOrDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
func lowerHex(c byte) bool     { return 'a' <= c && c <= 'f' || '0' <= c && c <= '9' }
func wordByte(c byte) bool     { return lowerOrDigit(c) || 'A' <= c && c <= 'Z' || c == '_' }
