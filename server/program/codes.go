package program

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weir/server/store"
)

const (
	codePrefix = "once-"
	codeLife   = time.Hour
	codeName   = "sign-in.json" // in the data directory
)

// codes has the one-time code of the last sign-in link, by its digest. It is a
// file, so that a link works that was printed before the server started.
type codes struct {
	path string
	now  func() time.Time

	mu  sync.Mutex
	row codeRow
}

// codeRow is the stored code. The zero value is no code.
type codeRow struct {
	Digest  string `json:"digest"`
	Expires int64  `json:"expires"` // Unix seconds
}

// openCodes reads the code of a data directory. The caller has the directory's lock.
func openCodes(dir string, now func() time.Time) *codes {
	removeLeft(dir, "."+codeName+"-")
	c := &codes{path: filepath.Join(dir, codeName), now: now}
	if raw, err := os.ReadFile(c.path); err == nil && json.Unmarshal(raw, &c.row) != nil {
		c.row = codeRow{} // init prints another link
	}
	return c
}

// create returns a new code, which replaces the one before it.
func (c *codes) create() (string, error) {
	var b [32]byte
	rand.Read(b[:])
	code := codePrefix + base64.RawURLEncoding.EncodeToString(b[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	row := codeRow{Digest: digest(code), Expires: c.now().Add(codeLife).Unix()}
	raw, err := json.Marshal(row)
	if err != nil {
		return "", err
	}
	err = createFile(c.path, func(f *os.File) error {
		_, err := f.Write(raw)
		return err
	}, true)
	if err != nil {
		return "", store.Unusable(filepath.Dir(c.path), err)
	}
	c.row = row
	return code, nil
}

// spend reports whether a text is the code, which is invalid from then on.
func (c *codes) spend(code string) bool {
	if !strings.HasPrefix(code, codePrefix) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.row.Digest == "" || subtle.ConstantTimeCompare([]byte(digest(code)), []byte(c.row.Digest)) == 0 {
		return false
	}
	left := time.Duration(c.row.Expires-c.now().Unix()) * time.Second
	if left <= 0 || left > 2*codeLife { // too long: the clock was set back
		return false
	}
	// The code must not work again after a restart.
	if os.Remove(c.path) != nil || syncDir(filepath.Dir(c.path)) != nil {
		return false
	}
	c.row = codeRow{}
	return true
}

func digest(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
