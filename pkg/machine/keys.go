package machine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

const maxKeys = 1000

// maskedKey is how audit names a key (docs/reference/reliability.md, T34).
func (o *Object) maskedKey(id string) string {
	if id == "" {
		return ""
	}
	mac := hmac.New(sha256.New, o.KeySecret)
	mac.Write([]byte("audit:" + id))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
