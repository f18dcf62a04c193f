package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"

	"weir/pkg/store"
)

// The rows of an object, by the prefix of their keys. What an id in a key may
// look like is checked where it is taken in; free text goes in as a digest.
const (
	connPrefix     = "conn:"
	keyPrefix      = "key:"
	comboPrefix    = "combo:"
	customPrefix   = "custom:"
	aliasPrefix    = "alias:"
	disabledPrefix = "disabled:"
	coolPrefix     = "cool:"
	errorPrefix    = "error:"
	refusalPrefix  = "refusal:"
	healthPrefix   = "health:"
	countPrefix    = "count:"
	usagePrefix    = "usage:"
	requestPrefix  = "request:"
	jobPrefix      = "job:"
	auditPrefix    = "audit:"
	mutationPrefix = "mutation:"
	intentPrefix   = "intent:"
	settingsRow    = "settings"
	seenRow        = "seen"
)

// connRow is a stored connection.
type connRow struct {
	store.Connection
	Seq    int64             `json:"seq"`
	Seeded bool              `json:"seeded,omitempty"`
	Origin string            `json:"origin,omitempty"` // that the credential was given for
	Last4  map[string]string `json:"last4,omitempty"`  // of secrets of 20 characters and more
}

type keyRow struct {
	store.Key
	Seq    int64 `json:"seq"`
	Seeded bool  `json:"seeded,omitempty"`
}

type comboRow struct {
	store.Combo
	Seq    int64 `json:"seq"`
	Seeded bool  `json:"seeded,omitempty"`
}

type customRow struct {
	store.CustomModel
	Seq    int64 `json:"seq"`
	Seeded bool  `json:"seeded,omitempty"`
}

type aliasRow struct {
	Alias  string `json:"alias"`
	Model  string `json:"model"`
	Seeded bool   `json:"seeded,omitempty"`
}

type disabledRow struct {
	store.DisabledModels
	Seq    int64 `json:"seq"`
	Seeded bool  `json:"seeded,omitempty"`
}

func (t *tx) conns() []connRow {
	rows := rowsOf[connRow](t, connPrefix)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Seq < rows[j].Seq })
	return rows
}

func (t *tx) keys() []keyRow {
	rows := rowsOf[keyRow](t, keyPrefix)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Seq < rows[j].Seq })
	return rows
}

func (t *tx) combos() []comboRow {
	rows := rowsOf[comboRow](t, comboPrefix)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Seq < rows[j].Seq })
	return rows
}

func (t *tx) customs() []customRow {
	rows := rowsOf[customRow](t, customPrefix)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Seq < rows[j].Seq })
	return rows
}

func (t *tx) aliases() []aliasRow { return rowsOf[aliasRow](t, aliasPrefix) }

func (t *tx) disabled() []disabledRow {
	rows := rowsOf[disabledRow](t, disabledPrefix)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Seq < rows[j].Seq })
	return rows
}

func (t *tx) settings() (s store.Settings) {
	t.load(settingsRow, &s)
	return s
}

// putConn stores a changed connection under the generation of this turn.
func (t *tx) putConn(c *connRow) {
	c.Generation = t.touch("providers")
	if c.Seq == 0 {
		c.Seq = t.nextSeq()
	}
	t.put(connPrefix+c.ID, c)
	t.due = true
}

func (t *tx) putKey(k *keyRow) {
	k.Generation = t.touch("keys")
	if k.Seq == 0 {
		k.Seq = t.nextSeq()
	}
	t.put(keyPrefix+k.ID, k)
}

func (t *tx) putCombo(c *comboRow) {
	c.Generation = t.touch("combos")
	if c.Seq == 0 {
		c.Seq = t.nextSeq()
	}
	t.put(comboPrefix+c.ID, c)
}

func (t *tx) putCustom(c *customRow) {
	t.touch("custom")
	if c.Seq == 0 {
		c.Seq = t.nextSeq()
	}
	t.put(customKey(c.Type, c.ProviderAlias, c.ID), c)
}

func (t *tx) putAlias(a *aliasRow) {
	t.touch("alias")
	t.put(aliasPrefix+a.Alias, a)
}

func (t *tx) putDisabled(d *disabledRow) {
	t.touch("disabled")
	if d.Seq == 0 {
		d.Seq = t.nextSeq()
	}
	t.put(disabledPrefix+d.ProviderAlias, d)
}

func customKey(typ, alias, id string) string {
	if typ == "" {
		typ = "llm"
	}
	return customPrefix + digestOf(typ, alias, id)
}

// digestOf gives 40 hex digits of SHA-256 over the parts, each with its length.
func digestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte{byte(len(p) >> 24), byte(len(p) >> 16), byte(len(p) >> 8), byte(len(p))})
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// replica makes what the data plane needs of the machine.
func (t *tx) replica() *store.Machine {
	m := &store.Machine{
		Version: 1, ID: t.id, Generation: t.meta.Generation, PublishedAt: t.now,
		Connections: []store.Connection{}, Keys: []store.Key{}, Settings: t.settings(),
	}
	for _, c := range t.conns() {
		c.LastError = t.lastError(&c)
		m.Connections = append(m.Connections, c.Connection)
	}
	for _, k := range t.keys() {
		m.Keys = append(m.Keys, k.Key)
	}
	for _, c := range t.combos() {
		m.Combos = append(m.Combos, c.Combo)
	}
	for _, c := range t.customs() {
		m.CustomModels = append(m.CustomModels, c.CustomModel)
	}
	for _, a := range t.aliases() {
		if m.ModelAliases == nil {
			m.ModelAliases = map[string]string{}
		}
		m.ModelAliases[a.Alias] = a.Model
	}
	for _, d := range t.disabled() {
		m.Disabled = append(m.Disabled, d.DisabledModels)
	}
	m.Cooldowns = t.cooldowns()
	m.Refusals = t.refusals()
	return m
}

// wipe removes every row but those that outlive the machine: its own, and the
// digests of the documents that were adopted.
func (t *tx) wipe() {
	t.pages("", pageRows, func(r Row) bool {
		if r.Key != "meta" && r.Key != seenRow {
			t.del(r.Key)
		}
		return true
	})
}
