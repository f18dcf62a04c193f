package passkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// lifetime is how long a challenge is valid, in seconds.
const lifetime = 5 * 60

const (
	randomLen = 24
	headLen   = randomLen + 8 // and the time
)

// Challenges creates and checks challenges. A challenge has its time and a MAC. It is stored once it is used,
// so that asking for challenges fills no storage.
type Challenges struct {
	Secret []byte // API_KEY_SECRET
	Rand   io.Reader
	Now    func() time.Time
}

func (c *Challenges) mac(purpose string, head []byte) []byte {
	mac := hmac.New(sha256.New, c.Secret)
	fmt.Fprintf(mac, "passkey %d:%s ", len(purpose), purpose)
	mac.Write(head)
	return mac.Sum(nil)
}

// New returns a challenge for a purpose, in base64url.
func (c *Challenges) New(purpose string) (string, error) {
	head := make([]byte, headLen)
	if _, err := io.ReadFull(c.Rand, head[:randomLen]); err != nil {
		return "", fmt.Errorf("make a challenge: %w", err)
	}
	binary.BigEndian.PutUint64(head[randomLen:], uint64(c.Now().Unix()))
	return base64.RawURLEncoding.EncodeToString(append(head, c.mac(purpose, head)...)), nil
}

// Check checks that a challenge was created for a purpose, and returns until when it is valid, in Unix seconds.
func (c *Challenges) Check(purpose, text string) (until int64, err error) {
	var raw Bytes
	if raw.UnmarshalText([]byte(text)) != nil || len(raw) != headLen+sha256.Size {
		return 0, errChallenge
	}
	if !hmac.Equal(raw[headLen:], []byte(c.mac(purpose, raw[:headLen]))) {
		return 0, errChallenge
	}
	until = int64(binary.BigEndian.Uint64(raw[randomLen:])) + lifetime
	if now := c.Now().Unix(); now >= until || now < until-lifetime-60 {
		return 0, errOld
	}
	return until, nil
}
