package program

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weir/pkg/machine/storage"
	"weir/server/objects"
	"weir/server/store"
)

const (
	codePrefix = "once-"
	codeLife   = time.Hour
	codeName   = "sign-in.json" // in the data directory
)

// codes has the one-time code of the last sign-in link, by its digest. It is stored, so that
// a link works that was printed before the server started, or by another one.
type codes struct {
	store codeStore
	now   func() time.Time
	mu    sync.Mutex
}

// codeStore has the stored code. Between read and done no other server changes it.
type codeStore interface {
	read() ([]byte, error)
	write(raw []byte) error // nil removes it, durably
	done()
}

// codeRow is the stored code. The zero value is no code.
type codeRow struct {
	Digest  string `json:"digest"`
	Expires int64  `json:"expires"` // Unix seconds
}

// openCodes reads the code of a data directory. The caller has the directory's lock.
func openCodes(dir string, now func() time.Time) *codes {
	removeLeft(dir, "."+codeName+"-")
	return &codes{store: codeFile(filepath.Join(dir, codeName)), now: now}
}

// codeFile is the file of the code.
type codeFile string

func (f codeFile) read() ([]byte, error) { return os.ReadFile(string(f)) }
func (f codeFile) done()                 {}

func (f codeFile) write(raw []byte) error {
	dir := filepath.Dir(string(f))
	if raw == nil {
		return errors.Join(os.Remove(string(f)), syncDir(dir))
	}
	err := createFile(string(f), func(f *os.File) error {
		_, err := f.Write(raw)
		return err
	}, true)
	if err != nil {
		return store.Unusable(dir, err)
	}
	return nil
}

// codeRows is a database with the code as a row of its own.
type codeRows struct{ engine objects.Engine }

const codeID = "sign-in" // in place of a machine's; not one

func (r codeRows) read() ([]byte, error) { return r.engine.Rows(codeID).Get("code") }
func (r codeRows) done()                 { r.engine.Release(codeID) }

func (r codeRows) write(raw []byte) error {
	return r.engine.Rows(codeID).Write([]storage.Row{{Key: "code", Value: raw}}, storage.KeepAlarm)
}

// create returns a new code, which replaces the one before it.
func (c *codes) create() (string, error) {
	var b [32]byte
	rand.Read(b[:])
	code := codePrefix + base64.RawURLEncoding.EncodeToString(b[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.store.done()
	raw, err := json.Marshal(codeRow{Digest: digest(code), Expires: c.now().Add(codeLife).Unix()})
	if err == nil {
		err = c.store.write(raw)
	}
	return code, err
}

// spend reports whether a text is the code, which is invalid from then on.
func (c *codes) spend(code string) bool {
	if !strings.HasPrefix(code, codePrefix) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.store.done()
	var row codeRow
	raw, err := c.store.read()
	if err != nil || json.Unmarshal(raw, &row) != nil || row.Digest == "" ||
		subtle.ConstantTimeCompare([]byte(digest(code)), []byte(row.Digest)) == 0 {
		return false
	}
	left := time.Duration(row.Expires-c.now().Unix()) * time.Second
	if left <= 0 || left > 2*codeLife { // too long: the clock was set back
		return false
	}
	return c.store.write(nil) == nil // else the code would work again after a restart
}

func digest(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
