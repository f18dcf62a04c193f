package machine

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

const (
	exportFormat  = "weir-export"
	sealedFormat  = "weir-export-encrypted"
	kdfName       = "PBKDF2-SHA-256"
	kdfIterations = 100_000 // the most that the platform takes (docs/reference/reliability.md, T31)
	minPassphrase = 12      // characters
	saltBytes     = 16
)

// exportDoc is a machine's configuration with the field names of a seed
// document. Keys and secrets are in encrypted ones only.
type exportDoc struct {
	Format       string                       `json:"format"`
	Version      int                          `json:"version"`
	MachineID    string                       `json:"machineId"`
	ExportedAt   int64                        `json:"exportedAt"`
	Connections  []map[string]json.RawMessage `json:"connections"`
	Combos       []store.Combo                `json:"combos"`
	CustomModels []store.CustomModel          `json:"customModels"`
	ModelAliases map[string]string            `json:"modelAliases"`
	Disabled     []store.DisabledModels       `json:"disabledModels"`
	Settings     store.Settings               `json:"settings"`
	Keys         []store.Key                  `json:"keys,omitempty"` // digests
}

// sealedDoc is an encrypted export: AES-256-GCM under a key made of a
// passphrase; the associated data is "format.version.iterations".
type sealedDoc struct {
	Format     string `json:"format"`
	Version    int    `json:"version"`
	KDF        string `json:"kdf"`
	Iterations int    `json:"iterations"`
	Salt       string `json:"salt"`  // base64url, as are the others
	Nonce      string `json:"nonce"` // 12 bytes
	Ciphertext string `json:"ciphertext"`
}

func (c *change) document(secrets bool) (*exportDoc, error) {
	d := &exportDoc{
		Format: exportFormat, Version: 1, MachineID: c.id, ExportedAt: c.now, Connections: []map[string]json.RawMessage{},
		Combos: []store.Combo{}, CustomModels: []store.CustomModel{}, ModelAliases: map[string]string{}, Disabled: []store.DisabledModels{},
		Settings: c.settings(),
	}
	for _, row := range c.conns() {
		v := c.view(&row, nil)
		m := map[string]json.RawMessage{
			"id": jsonOf(v.ID), "provider": jsonOf(v.Provider), "authType": jsonOf(v.AuthType), "priority": jsonOf(v.Priority),
			"isActive": jsonOf(v.IsActive), "providerSpecificData": jsonOf(v.Data), "createdAt": jsonOf(v.CreatedAt),
		}
		if v.Name != "" {
			m["name"] = jsonOf(v.Name)
		}
		if secrets {
			if v.ExpiresAt > 0 {
				m["expiresAt"] = jsonOf(v.ExpiresAt)
			}
			for f, sealed := range row.Secrets {
				plain, err := c.o.Keyring.Open(c.id, row.ID, f, sealed)
				if err != nil {
					e := apierr.New(503, "key_unavailable", "a stored credential cannot be opened")
					e.Err = err
					return nil, e
				}
				m[f] = jsonOf(plain.Reveal())
			}
		}
		d.Connections = append(d.Connections, m)
	}
	for _, row := range c.combos() {
		d.Combos = append(d.Combos, row.Combo)
	}
	for _, row := range c.customs() {
		d.CustomModels = append(d.CustomModels, row.CustomModel)
	}
	for _, row := range c.aliases() {
		d.ModelAliases[row.Alias] = row.Model
	}
	for _, row := range c.disabled() {
		d.Disabled = append(d.Disabled, row.DisabledModels)
	}
	if secrets {
		for _, row := range c.keys() {
			d.Keys = append(d.Keys, row.Key)
		}
	}
	return d, nil
}

// export answers GET /api/export, without any secret.
func (c *change) export() (any, error) { return c.document(false) }

// exportSealed answers POST /api/export {"passphrase"}: everything, encrypted.
func (c *change) exportSealed() (any, error) {
	in := c.input()
	in.only("passphrase")
	pass := passphrase(in)
	if err := in.failed(); err != nil {
		return nil, err
	}
	if err := c.mayExport(); err != nil {
		return nil, err
	}
	salt, nonce := make([]byte, saltBytes), make([]byte, 12)
	for _, b := range [][]byte{salt, nonce} {
		if _, err := io.ReadFull(c.o.Rand, b); err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
	}
	out := sealedDoc{Format: sealedFormat, Version: 1, KDF: kdfName, Iterations: kdfIterations}
	aead, err := c.exportKey(pass, salt, out.Iterations)
	if err != nil {
		return nil, err
	}
	d, err := c.document(true)
	if err != nil {
		return nil, err
	}
	b64 := base64.RawURLEncoding.EncodeToString
	out.Salt, out.Nonce = b64(salt), b64(nonce)
	out.Ciphertext = b64(aead.Seal(nil, nonce, encode(d), out.associated()))
	return out, nil
}

func (s *sealedDoc) associated() []byte {
	return []byte(s.Format + "." + strconv.Itoa(s.Version) + "." + strconv.Itoa(s.Iterations))
}

func passphrase(in *input) string {
	v := in.values["passphrase"]
	if v.Type != gjson.String || len(v.Str) < minPassphrase || len(v.Str) > 1024 {
		in.fail("passphrase", "must be a string of at least %d characters", minPassphrase)
	}
	return v.Str
}

// deriveMost is the number of keys that may be derived from passphrases in a
// minute. Each takes about 0.1 s.
const deriveMost = 6

// exportKey derives the key of an export. The machine may change during that, so
// the turn starts over, and the caller's key is checked again.
func (c *change) exportKey(pass string, salt []byte, iterations int) (cipher.AEAD, error) {
	minute := c.now / minuteMs
	if c.meta.DeriveAt != minute {
		c.meta.DeriveAt, c.meta.Derives = minute, 0
	}
	if c.meta.Derives >= deriveMost {
		e := apierr.New(429, "rate_limit_exceeded", "at most %d exports and imports with a passphrase a minute", deriveMost)
		e.RetryAfter = msec((minute+1)*minuteMs - c.now)
		return nil, e
	}
	c.meta.Derives++
	if err := c.commit(); err != nil {
		return nil, err
	}
	key, err := c.o.derive(c.ctx, []byte(pass), salt, iterations)
	c.reload(c.o.Now())
	if err != nil {
		return nil, fmt.Errorf("derive the export key: %w", err)
	}
	if !c.exists() {
		return nil, errGone()
	}
	if c.env.KeyID != "" {
		if err := c.stillAllowed(); err != nil {
			return nil, err
		}
	}
	return sealer(key)
}

func (o *Object) derive(ctx context.Context, pass, salt []byte, iterations int) ([]byte, error) {
	if o.DeriveKey != nil {
		return o.DeriveKey(ctx, pass, salt, iterations)
	}
	return pbkdf2.Key(sha256.New, string(pass), salt, iterations, 32)
}

func sealer(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive the export key: %w", err)
	}
	return cipher.NewGCM(block)
}

// openDoc decrypts an encrypted export.
func (c *change) openDoc(in *input, raw string) ([]byte, error) {
	refuse := func() ([]byte, error) {
		in.fail("document", "cannot be opened with this passphrase")
		return nil, in.failed()
	}
	pass := passphrase(in)
	if err := in.failed(); err != nil {
		return nil, err
	}
	var s sealedDoc
	if json.Unmarshal([]byte(raw), &s) != nil || s.KDF != kdfName || s.Version != 1 || s.Iterations < 1000 || s.Iterations > kdfIterations {
		return refuse()
	}
	d := base64.RawURLEncoding.Strict()
	salt, err1 := d.DecodeString(s.Salt)
	nonce, err2 := d.DecodeString(s.Nonce)
	text, err3 := d.DecodeString(s.Ciphertext)
	if err1 != nil || err2 != nil || err3 != nil || len(nonce) != 12 || len(salt) < saltBytes {
		return refuse()
	}
	aead, err := c.exportKey(pass, salt, s.Iterations)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce, text, s.associated())
	if err != nil {
		return refuse()
	}
	return plain, nil
}
