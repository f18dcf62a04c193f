package machine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"weir/pkg/store"
)

const (
	keyIDLen = 26
	maxKeys  = 1000
)

// mint makes a gateway key of the machine and its row. The key is shown once;
// what is stored is its digest. See docs/reference/design.md, 4.
//
//	sk-<machineId>-<keyId>-<check>, check = first 8 hex digits of HMAC-SHA256(API_KEY_SECRET, machineId ‖ keyId)
func (o *Object) mint(machineID string) (text string, k store.Key, err error) {
	id, err := o.newID(keyIDLen)
	if err != nil {
		return "", k, err
	}
	mac := hmac.New(sha256.New, o.KeySecret)
	mac.Write([]byte(machineID + id))
	text = "sk-" + machineID + "-" + id + "-" + hex.EncodeToString(mac.Sum(nil)[:4])
	return text, store.Key{ID: id, Digest: keyDigest(text), Last4: text[len(text)-4:]}, nil
}

// keyDigest is what is stored of a key.
func keyDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// seededKey makes the row of a key that somebody brings along: of the form
// above, of two parts, or any other text.
func seededKey(text string) store.Key {
	k := store.Key{Digest: keyDigest(text)}
	k.ID = "k" + k.Digest[:24]
	if part := strings.Split(text, "-"); len(part) == 4 && part[0] == "sk" && isMachineID(part[1]) &&
		len(part[2]) >= keyIDLen && len(part[2]) <= 64 && only(part[2], lowerDigit) {
		k.ID = part[2]
	}
	if len(text) >= last4From {
		k.Last4 = text[len(text)-4:]
	}
	return k
}

// maskedKey is how audit names a key (docs/reference/reliability.md, T34).
func (o *Object) maskedKey(id string) string {
	if id == "" {
		return ""
	}
	mac := hmac.New(sha256.New, o.KeySecret)
	mac.Write([]byte("audit:" + id))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
