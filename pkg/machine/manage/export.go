package manage

import (
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

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

const (
	ExportFormat  = "weir-export"
	SealedFormat  = "weir-export-encrypted"
	KDFName       = "PBKDF2-SHA-256"
	kdfIterations = 100_000 // 0.1 s of the edge's CPU
	minPassphrase = 12      // characters
	SaltBytes     = 16
)

// exportDoc is a machine's configuration with the field names of a seed
// document. Keys, people and secrets are in encrypted ones only.
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
	Budgets      []exportBudget               `json:"budgets"`
	Destinations []exportDestination          `json:"destinations"`
	Settings     store.Settings               `json:"settings"`
	Keys         []store.Key                  `json:"keys,omitempty"`     // digests
	KeyCheck     string                       `json:"keyCheck,omitempty"` // rpc.SecretCheck
	People       []rpc.PersonGrant            `json:"people,omitempty"`
}

// exportBudget is a budget without what was spent.
type exportBudget struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	KeyID    string   `json:"keyId,omitempty"`
	Models   []string `json:"models,omitempty"`
	Tag      string   `json:"tag,omitempty"`
	Tool     string   `json:"tool,omitempty"`
	Unit     string   `json:"unit"`
	Limit    float64  `json:"limit"`
	Window   string   `json:"window"`
	Unpriced string   `json:"unpriced,omitempty"`
	// who knows some addresses may post to them: in encrypted exports only
	Webhook   string `json:"webhookUrl,omitempty"`
	CreatedAt int64  `json:"createdAt"`
}

// SealedDoc is an encrypted export: AES-256-GCM under a key made of a
// passphrase; the associated data is "format.version.iterations".
type SealedDoc struct {
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
		Format: ExportFormat, Version: 1, MachineID: c.ID, ExportedAt: c.Now, Connections: []map[string]json.RawMessage{},
		Combos: []store.Combo{}, CustomModels: []store.CustomModel{}, ModelAliases: map[string]string{},
		Disabled: []store.DisabledModels{}, Budgets: []exportBudget{},
		Settings: c.Settings(),
	}
	d.Settings.CapturePercent, d.Settings.CaptureHours = 0, 0 // an import turns nothing on
	if d.Settings.Strategy == "" {
		d.Settings.Strategy = store.Priority // without it the document is from before Affinity was the default
	}
	for _, row := range c.Connections() {
		v := viewConnection(c.Tx, &row, nil)
		m := map[string]json.RawMessage{
			"id": storage.EncodeJSON(v.ID), "provider": storage.EncodeJSON(v.Provider),
			"authType": storage.EncodeJSON(v.AuthType), "priority": storage.EncodeJSON(v.Priority),
			"weight":   storage.EncodeJSON(v.Weight),
			"isActive": storage.EncodeJSON(v.IsActive), "providerSpecificData": storage.EncodeJSON(v.Data),
			"createdAt": storage.EncodeJSON(v.CreatedAt),
		}
		if v.Name != "" {
			m["name"] = storage.EncodeJSON(v.Name)
		}
		if secrets {
			if v.ExpiresAt > 0 {
				m["expiresAt"] = storage.EncodeJSON(v.ExpiresAt)
			}
			for f, sealed := range row.Secrets {
				plain, err := c.o.Keyring.Open(c.ID, row.ID, f, sealed)
				if err != nil {
					e := apierr.New(503, "key_unavailable", "The stored credentials cannot be decrypted; the operator must check CREDENTIALS_KEY.")
					e.Err = err
					return nil, e
				}
				m[f] = storage.EncodeJSON(plain.Reveal())
			}
		}
		d.Connections = append(d.Connections, m)
	}
	for _, row := range c.Combos() {
		d.Combos = append(d.Combos, row.Combo)
	}
	for _, row := range c.CustomModels() {
		d.CustomModels = append(d.CustomModels, row.CustomModel)
	}
	for _, row := range c.Aliases() {
		d.ModelAliases[row.Alias] = row.Model
	}
	for _, row := range c.Disabled() {
		d.Disabled = append(d.Disabled, row.DisabledModels)
	}
	for _, row := range c.Budgets() {
		v := c.viewBudget(&row)
		b := exportBudget{
			ID: v.ID, Name: v.Name, KeyID: v.KeyID, Models: v.Models, Tag: v.Tag, Tool: v.Tool, Unit: v.Unit, Limit: v.Limit,
			Window: v.Window, Unpriced: v.Unpriced, CreatedAt: v.CreatedAt,
		}
		if secrets {
			b.Webhook = v.Webhook
		}
		d.Budgets = append(d.Budgets, b)
	}
	var err error
	if d.Destinations, err = c.exportDestinations(secrets); err != nil {
		return nil, err
	}
	if secrets {
		d.KeyCheck, d.People = rpc.SecretCheck(c.o.KeySecret), c.env.People
		for _, row := range c.Keys() {
			d.Keys = append(d.Keys, row.Key)
		}
	}
	return d, nil
}

// export answers GET /api/export, without any secret. It leaves a record, like POST.
func (c *change) export() (any, error) {
	c.Audit(c.actor, "GET /api/export", "", nil)
	return c.document(false)
}

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
	salt, nonce := make([]byte, SaltBytes), make([]byte, 12)
	for _, b := range [][]byte{salt, nonce} {
		if _, err := io.ReadFull(c.o.Rand, b); err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
	}
	out := SealedDoc{Format: SealedFormat, Version: 1, KDF: KDFName, Iterations: kdfIterations}
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
	out.Ciphertext = b64(aead.Seal(nil, nonce, storage.Encode(d), out.Associated()))
	return out, nil
}

func (s *SealedDoc) Associated() []byte {
	return []byte(s.Format + "." + strconv.Itoa(s.Version) + "." + strconv.Itoa(s.Iterations))
}

func passphrase(in *Input) string {
	v := in.values["passphrase"]
	if v.Type != gjson.String || len(v.Str) < minPassphrase || len(v.Str) > 1024 {
		in.fail("passphrase", "must be a string of at least %d characters", minPassphrase)
	}
	return v.Str
}

// DeriveMost is the number of keys that may be derived from passphrases in a
// minute. Each takes about 0.1 s on the edge, where WebCrypto would take 12 ms.
const DeriveMost = 6

// exportKey derives the key of an export, and counts that before: a wrong passphrase
// writes nothing else.
func (c *change) exportKey(pass string, salt []byte, iterations int) (cipher.AEAD, error) {
	err := admit(c.Tx, &c.Meta.DeriveAt, &c.Meta.Derives, DeriveMost, "exports and imports with a passphrase")
	if err == nil {
		err = c.Commit()
	}
	if err != nil {
		return nil, err
	}
	return Sealer(pass, salt, iterations)
}

// Sealer returns what encrypts an export by a passphrase.
func Sealer(pass string, salt []byte, iterations int) (cipher.AEAD, error) {
	key, err := pbkdf2.Key(sha256.New, pass, salt, iterations, 32)
	if err != nil {
		return nil, fmt.Errorf("derive the export key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive the export key: %w", err)
	}
	return cipher.NewGCM(block)
}

// openDoc decrypts an encrypted export.
func (c *change) openDoc(in *Input, raw string) ([]byte, error) {
	refuse := func() ([]byte, error) {
		in.fail("document", "cannot be opened with this passphrase")
		return nil, in.failed()
	}
	pass := passphrase(in)
	if err := in.failed(); err != nil {
		return nil, err
	}
	var s SealedDoc
	if json.Unmarshal([]byte(raw), &s) != nil || s.KDF != KDFName || s.Version != 1 || s.Iterations < 1000 ||
		s.Iterations > kdfIterations {
		return refuse()
	}
	d := base64.RawURLEncoding.Strict()
	salt, err1 := d.DecodeString(s.Salt)
	nonce, err2 := d.DecodeString(s.Nonce)
	text, err3 := d.DecodeString(s.Ciphertext)
	if err1 != nil || err2 != nil || err3 != nil || len(nonce) != 12 || len(salt) < SaltBytes {
		return refuse()
	}
	aead, err := c.exportKey(pass, salt, s.Iterations)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce, text, s.Associated())
	if err != nil {
		return refuse()
	}
	return plain, nil
}
