package machine

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/provider"
	"weir/pkg/store"
)

// importDoc answers POST /api/import
//
//	{"document":{…},"passphrase":"…","replace":false}
//
// The document is an export, encrypted or not, or has the form of a seed. Rows
// with the ids of the document are overwritten, others stay unless replace is
// true; gateway keys are only ever added. A connection whose credential is not
// in the document keeps the stored one where it goes to the same origin.
func (c *change) importDoc() (any, error) {
	in := c.input()
	in.only("document", "passphrase", "replace")
	replace, _ := in.bool("replace")
	v := in.values["document"]
	if !v.IsObject() {
		in.fail("document", "must be an object")
	}
	raw, opened := []byte(v.Raw), false
	if in.err == nil && v.Get("format").Str == sealedFormat {
		raw, opened = openDoc(in, v.Raw), true
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	doc, e := c.o.readDocument(c.id, raw)
	if e != nil {
		e.Param = "document." + e.Param
		return nil, e
	}
	settings := c.settings()
	if s := gjson.GetBytes(raw, "settings"); s.Exists() {
		sin := sub(s, "document.settings")
		settings = applySettings(sin, settings)
		if err := sin.failed(); err != nil {
			return nil, err
		}
	}
	var keys []store.Key
	if k := gjson.GetBytes(raw, "keys"); opened && k.Exists() && json.Unmarshal([]byte(k.Raw), &keys) != nil {
		return nil, badKeys()
	}
	if replace {
		c.dropConfig(doc)
	}
	if err := c.putDocument(doc, keys); err != nil {
		return nil, err
	}
	c.touch("settings")
	c.put(settingsRow, settings)
	c.fields = []string{"connections", "combos", "customModels", "modelAliases", "disabledModels", "settings"}
	return struct {
		Connections  int `json:"connections"`
		Combos       int `json:"combos"`
		CustomModels int `json:"customModels"`
		ModelAliases int `json:"modelAliases"`
		Disabled     int `json:"disabledModels"`
		Keys         int `json:"keys"`
	}{len(doc.conns), len(doc.combos), len(doc.customs), len(doc.aliases), len(doc.disabled), len(keys) + len(doc.keys)}, nil
}

// putDocument stores what an import brings.
func (c *change) putDocument(doc *document, keys []store.Key) error {
	for i := range doc.conns {
		got := &doc.conns[i]
		got.row.Seeded = false
		var had connRow
		if c.load(connPrefix+got.row.ID, &had) {
			if had.Provider != got.row.Provider {
				return apierr.Invalid("document.connections", "document.connections[%d].id belongs to a connection of another provider", i)
			}
			got.row.Secrets, got.row.Last4, got.row.Origin, got.row.Seq, got.row.Seeded = had.Secrets, had.Last4, had.Origin, had.Seq, had.Seeded
			got.row.Status, got.row.LastError, got.row.TokenGeneration, got.row.CreatedAt = had.Status, had.LastError, had.TokenGeneration, had.CreatedAt
			if got.row.ExpiresAt == 0 {
				got.row.ExpiresAt = had.ExpiresAt
			}
		} else if d := provider.Lookup(got.row.Provider); d != nil && len(got.secrets) == 0 && (d.Compatible || wantsCredential(got.row.Provider)) {
			got.row.Status = needsCred
		}
		if err := c.o.finishConnection(c.tx, got); err != nil {
			return err
		}
	}
	had := map[string]bool{}
	for _, k := range c.keys() {
		had[k.Digest] = true
	}
	for _, k := range append(keys, doc.keys...) {
		if !isKey(&k) {
			return badKeys()
		}
		// One key has one row: what is revoked later is revoked.
		if _, ok := c.get(keyPrefix + k.ID); !ok && !had[k.Digest] {
			had[k.Digest] = true
			k.LimitedUntil = 0
			if k.CreatedAt == 0 {
				k.CreatedAt = c.now
			}
			c.putKey(&keyRow{Key: k})
		}
	}
	for i := range doc.combos {
		row := &doc.combos[i]
		row.Seeded = false
		var had comboRow
		if c.load(comboPrefix+row.ID, &had) {
			row.Seq, row.CreatedAt, row.Seeded = had.Seq, had.CreatedAt, had.Seeded
		} else {
			row.CreatedAt = c.now
		}
		row.UpdatedAt = c.now
		c.putCombo(row)
	}
	if e := checkCombos(c.combos()); e != nil {
		return e
	}
	for _, m := range doc.customs {
		var row customRow
		c.load(customKey(m.Type, m.ProviderAlias, m.ID), &row)
		row.CustomModel = m
		c.putCustom(&row)
	}
	for _, a := range doc.aliases {
		a.Seeded = false
		c.putAlias(&a)
	}
	for _, d := range doc.disabled {
		var row disabledRow
		c.load(disabledPrefix+d.ProviderAlias, &row)
		d.IDs = merged(row.IDs, d.IDs)
		row.DisabledModels = d
		if len(d.IDs) > maxHidden {
			return overfull("models of an alias that are disabled", maxHidden)
		}
		c.putDisabled(&row)
	}
	return c.bounded()
}

// bounded refuses an import that leaves more than may be made one by one.
func (c *change) bounded() error {
	for _, b := range [...]struct {
		prefix, what string
		most         int
	}{
		{connPrefix, "connections", maxConns}, {keyPrefix, "keys", maxKeys}, {comboPrefix, "combos", maxCombos},
		{customPrefix, "custom models", maxCustoms}, {aliasPrefix, "aliases", maxAliases}, {disabledPrefix, "aliases with disabled models", maxDisabled},
	} {
		if len(c.list(b.prefix)) > b.most {
			return overfull(b.what, b.most)
		}
	}
	return nil
}

func overfull(what string, most int) error {
	return apierr.New(409, "too_many", "with this document the machine would have more than %d %s", most, what)
}

func badKeys() error {
	return apierr.Invalid("document.keys", "document.keys has an entry that is no key")
}

// isKey tells whether a row of an export is one that could have been made.
func isKey(k *store.Key) bool {
	ok := len(k.Digest) == 64 && only(k.Digest, lowerDigit) && isRowID(k.ID) && utf8.RuneCountInString(k.Name) <= 200 && plain(k.Name) && len(k.Last4) <= 4 && plain(k.Last4) &&
		len(k.Models) <= 500 && k.RPM >= 0 && k.DailyMax >= 0 && k.CreatedAt >= 0 && k.ExpiresAt >= 0 && k.RevokedAt >= 0
	for _, s := range k.Scopes {
		ok = ok && (s == "data" || s == "manage")
	}
	for _, m := range k.Models {
		ok = ok && m != "" && len(m) <= 320 && plain(m)
	}
	return ok
}

// dropConfig removes what a replacing import does not bring again.
func (c *change) dropConfig(doc *document) {
	keep := map[string]bool{}
	for i := range doc.conns {
		var had connRow
		id := doc.conns[i].row.ID
		keep[connPrefix+id] = c.load(connPrefix+id, &had) && had.Provider == doc.conns[i].row.Provider
	}
	for i := range doc.combos {
		keep[comboPrefix+doc.combos[i].ID] = true
	}
	for _, prefix := range []string{connPrefix, comboPrefix, customPrefix, aliasPrefix, disabledPrefix} {
		for _, r := range c.list(prefix) {
			if !keep[r.Key] {
				c.del(r.Key)
			}
		}
	}
	c.touch("providers", "combos", "custom", "alias", "disabled")
	c.due = true
}
