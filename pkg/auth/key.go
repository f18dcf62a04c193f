package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
)

// Limits of a key as it is written.
const (
	maxKeyHeader = 512 // bytes of the field that carries it
	minKeyID     = 26
	maxKeyID     = 64
	checkLen     = 8
	minOldKey    = 8 // of a two-part key, after "sk-"
)

// keyAlphabet are the characters of machineId and keyId, 36 of them.
const keyAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// Key is a gateway key taken apart.
//
//	sk-<machineId>-<keyId>-<check>  machineId 16, keyId 26–64 of [a-z0-9], check 8 of [0-9a-f]
//	sk-<random>                     8 or more of [A-Za-z0-9_]: an old key, which names no machine
type Key struct {
	MachineID string // "" for an old key
	ID        string // the keyId, "" for an old key
	Check     string
	Digest    [32]byte // SHA-256 of the whole key
}

// Old tells whether the key is a two-part one.
func (k *Key) Old() bool { return k.MachineID == "" }

// ParseKey takes a key apart. It does not look at the check.
func ParseKey(s string) (Key, bool) {
	var k Key
	if len(s) > maxKeyHeader || !strings.HasPrefix(s, "sk-") {
		return k, false
	}
	rest := s[3:]
	if machine, tail, ok := strings.Cut(rest, "-"); ok {
		id, check, ok := strings.Cut(tail, "-")
		if !ok || !IsMachineID(machine) || len(id) < minKeyID || len(id) > maxKeyID || !only(id, lowerDigit) ||
			len(check) != checkLen || !only(check, lowerHex) {
			return k, false
		}
		k.MachineID, k.ID, k.Check = machine, id, check
	} else if len(rest) < minOldKey || !only(rest, word) {
		return k, false
	}
	k.Digest = sha256.Sum256([]byte(s))
	return k, true
}

// MintKey makes a new key of a machine. It is shown once; what is stored is
// the digest, as lower-case hex, and the keyId.
func MintKey(keySecret []byte, machineID string) (key string, k Key, err error) {
	id, err := random(minKeyID)
	if err != nil {
		return "", Key{}, fmt.Errorf("mint key: %w", err)
	}
	key = "sk-" + machineID + "-" + id + "-" + check(keySecret, machineID, id)
	k, ok := ParseKey(key)
	if !ok {
		return "", Key{}, fmt.Errorf("mint key: %q is not a machineId", machineID)
	}
	return key, k, nil
}

// NewMachineID makes the id of a new machine.
func NewMachineID() (string, error) { return random(machineIDLen) }

// DigestHex gives the stored form of a digest.
func (k *Key) DigestHex() string { return hex.EncodeToString(k.Digest[:]) }

// CheckOK tells whether the check of a key is right: a filter against typing
// errors, noise and needless reads, not the authentication.
func (k *Key) CheckOK(keySecret []byte) bool {
	return subtle.ConstantTimeCompare([]byte(k.Check), []byte(check(keySecret, k.MachineID, k.ID))) == 1
}

// check gives the first 8 hex digits of HMAC-SHA256(secret, machineId ‖ keyId).
func check(secret []byte, machineID, keyID string) string {
	mac := hmac.New(sha256.New, secret)
	var text [machineIDLen + maxKeyID]byte
	mac.Write(append(append(text[:0], machineID...), keyID...))
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0])[:checkLen/2])
}

// random gives n characters of keyAlphabet, each as likely as the next.
func random(n int) (string, error) {
	out := make([]byte, 0, n)
	var b [64]byte
	for len(out) < n {
		if _, err := rand.Read(b[:]); err != nil {
			return "", err
		}
		for _, c := range b {
			if int(c) < 256/len(keyAlphabet)*len(keyAlphabet) && len(out) < n {
				out = append(out, keyAlphabet[int(c)%len(keyAlphabet)])
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

func lowerDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
func lowerHex(c byte) bool   { return 'a' <= c && c <= 'f' || '0' <= c && c <= '9' }
func word(c byte) bool       { return lowerDigit(c) || 'A' <= c && c <= 'Z' || c == '_' }
