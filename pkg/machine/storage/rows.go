package storage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sort"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// The rows of an object, by the prefix of their keys. Ids in keys
// are checked where they are read; free text becomes a digest.
const (
	ConnectionPrefix  = "conn:"
	KeyPrefix         = "key:"
	ComboPrefix       = "combo:"
	CustomModelPrefix = "custom:"
	AliasPrefix       = "alias:"
	DisabledPrefix    = "disabled:"
	BudgetPrefix      = "budget:"
	LedgerPrefix      = "ledger:" // and the id of the budget or limit
	DestinationPrefix = "dest:"
	OutboxPrefix      = "outbox:" // and the id of the destination, or OfBudget
	itemPrefix        = "item:"   // and that of its outbox and of the item: a body
	TotalsPrefix      = "totals:" // and the id of a destination: the last metrics that were exported
	oldAlertPrefix    = "alert:"  // of budgets, of earlier versions
	faultsRow         = "faults"
	CooldownPrefix    = "cool:"
	ErrorPrefix       = "error:"
	refusalPrefix     = "refusal:"
	quotaPrefix       = "quota:" // see quotas.go
	HealthPrefix      = "health:"
	OldCountPrefix    = "count:" // requests of keys with limits, of earlier versions
	KeyUsePrefix      = "keyuse:"
	ConnUsePrefix     = "connuse:"
	HourPrefix        = "hour:" // and the hour
	UsagePrefix       = "usage:"
	healthDayPrefix   = "healthday:" // and the day, see HealthDay
	usageCountPrefix  = "usages:"    // of a day: how many rows of usage it has
	LabelPrefix       = "label:"     // and the day, see labels.go
	networksPrefix    = "networks:"  // and the id of a key, see networks.go
	OldRequestPrefix  = "request:"   // of an earlier form
	JobPrefix         = "job:"
	AuditPrefix       = "audit:"
	MutationPrefix    = "mutation:"
	IntentPrefix      = "intent:"
	LeasePrefix       = "lease:"  // and the digest of the lease
	DevicePrefix      = "device:" // and the digest of the device code, in the registry
	OAuthPrefix       = "oauth/"
	FlowPrefix        = "oauth/flow/"
	LifetimeRow       = "lifetime" // see lifetime.go
	RecentRow         = "recent"   // usage of the last hour
	CapturePrefix     = "capture:" // and the id of the request
	CapturesRow       = "captures" // the list of them
	RemovedPrefix     = "removed:" // and the id of a person: when they lost access, or got another role
	SettingsRow       = "settings"
	SeenRow           = "seen"
)

// Own is what the object alone knows of a record. It stands in the JSON of its row,
// after the fields that the data plane knows too.
//
//easyjson:json
type Own struct {
	Seq    int64 `json:"seq"`              // in the order of creation
	Seeded bool  `json:"seeded,omitempty"` // by a document
	// Secret is, in a key, rpc.SecretCheck of the API_KEY_SECRET by which it was created; "" of one that
	// was created elsewhere, or earlier than 2026-11-30.
	Secret string `json:"secret,omitempty"`
}

// Connection is a stored connection.
type Connection struct {
	store.Connection
	Given
}

// Given is what the object alone knows of a connection.
//
//easyjson:json
type Given struct {
	Own
	Origin string            `json:"origin,omitempty"` // that the credential was given for
	Last4  map[string]string `json:"last4,omitempty"`  // of secrets of 20 characters and more
}

// Key is a stored gateway key.
type Key struct {
	store.Key
	Own
}

// Combo is a stored combo.
type Combo struct {
	store.Combo
	Own
}

// CustomModel is a stored custom model.
type CustomModel struct {
	store.CustomModel
	Own
}

//easyjson:json
type Alias struct {
	Alias  string `json:"alias"`
	Model  string `json:"model"`
	Seeded bool   `json:"seeded,omitempty"`
}

// DisabledModels are the stored disabled models of a provider.
type DisabledModels struct {
	store.DisabledModels
	Own
}

// record is a pointer to a stored record.
type record interface{ record() *Own }

func (r *Own) record() *Own { return r }

// inOrder returns the records under a prefix in the order of their creation.
func inOrder[T any, P interface {
	*T
	record
}](t *Tx, prefix string) []T {
	rows := RowsOf[T](t, prefix)
	sort.SliceStable(rows, func(i, j int) bool { return P(&rows[i]).record().Seq < P(&rows[j]).record().Seq })
	return rows
}

// Connections returns the connections in the order of their creation.
func (t *Tx) Connections() []Connection { return inOrder[Connection](t, ConnectionPrefix) }

// Keys returns the keys in the order of their creation.
func (t *Tx) Keys() []Key { return inOrder[Key](t, KeyPrefix) }

// Combos returns the combos in the order of their creation.
func (t *Tx) Combos() []Combo { return inOrder[Combo](t, ComboPrefix) }

// CustomModels returns the custom models in the order of their creation.
func (t *Tx) CustomModels() []CustomModel { return inOrder[CustomModel](t, CustomModelPrefix) }

// Aliases returns the model aliases in the order of their names.
func (t *Tx) Aliases() []Alias { return RowsOf[Alias](t, AliasPrefix) }

// Disabled returns the disabled models by provider, in the order of their creation.
func (t *Tx) Disabled() []DisabledModels { return inOrder[DisabledModels](t, DisabledPrefix) }

// Settings returns the settings of the machine.
func (t *Tx) Settings() (s store.Settings) {
	t.Load(SettingsRow, &s)
	return s
}

// putRecord stores a created or changed record.
func (t *Tx) putRecord(key string, r record) {
	if own := r.record(); own.Seq == 0 {
		own.Seq = t.nextSeq()
	}
	t.Put(key, r)
}

// PutConnection stores a changed connection under the generation of this turn.
func (t *Tx) PutConnection(c *Connection) {
	c.Generation = t.Touch("providers")
	t.putRecord(ConnectionPrefix+c.ID, c)
	t.Due, t.Suspect = true, true
}

// PutKey stores a changed key under the generation of this turn.
func (t *Tx) PutKey(k *Key) {
	k.Generation = t.Touch("keys")
	t.putRecord(KeyPrefix+k.ID, k)
}

// PutCombo stores a changed combo under the generation of this turn.
func (t *Tx) PutCombo(c *Combo) {
	c.Generation = t.Touch("combos")
	t.putRecord(ComboPrefix+c.ID, c)
}

// PutCustom stores a custom model.
func (t *Tx) PutCustom(c *CustomModel) {
	t.Touch("custom")
	t.putRecord(CustomModelKey(c.Type, c.ProviderAlias, c.ID), c)
}

// PutAlias stores a model alias.
func (t *Tx) PutAlias(a *Alias) {
	t.Touch("alias")
	t.Put(AliasPrefix+a.Alias, a)
}

// PutDisabled stores the disabled models of a provider.
func (t *Tx) PutDisabled(d *DisabledModels) {
	t.Touch("disabled")
	t.putRecord(DisabledPrefix+d.ProviderAlias, d)
}

// CustomModelKey returns the key of a custom model's row. An empty type is llm.
func CustomModelKey(typ, alias, id string) string {
	typ = cmp.Or(typ, "llm")
	return CustomModelPrefix + DigestOf(typ, alias, id)
}

// DigestOf returns 40 hex digits of SHA-256 over the parts, each with its
// length.
func DigestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte{byte(len(p) >> 24), byte(len(p) >> 16), byte(len(p) >> 8), byte(len(p))})
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// Replica returns what the data plane needs of the machine: its configuration
// and its State.
func (t *Tx) Replica() *store.Machine {
	m, s := t.Configuration(), t.State()
	m.Observed, m.Cooldowns, m.Refusals, m.Quotas = t.Meta.Observed, s.Cooldowns, s.Refusals, s.Quotas
	return m
}

// State returns what calls have shown of the machine.
func (t *Tx) State() rpc.State {
	return rpc.State{Cooldowns: t.Cooldowns(), Refusals: t.refusals(), Quotas: t.longQuotas()}
}

// Configuration returns the machine as KV has it, without what calls change.
func (t *Tx) Configuration() *store.Machine {
	m := &store.Machine{
		Version: 1, ID: t.ID, Generation: t.Meta.Generation, PublishedAt: t.Now,
		Connections: []store.Connection{}, Keys: []store.Key{}, Settings: t.Settings(),
	}
	for _, c := range t.Connections() {
		m.Connections = append(m.Connections, c.Connection)
	}
	for _, k := range t.Keys() {
		m.Keys = append(m.Keys, k.Key)
	}
	for _, c := range t.Combos() {
		m.Combos = append(m.Combos, c.Combo)
	}
	for _, c := range t.CustomModels() {
		m.CustomModels = append(m.CustomModels, c.CustomModel)
	}
	for _, a := range t.Aliases() {
		if m.ModelAliases == nil {
			m.ModelAliases = map[string]string{}
		}
		m.ModelAliases[a.Alias] = a.Model
	}
	for _, d := range t.Disabled() {
		m.Disabled = append(m.Disabled, d.DisabledModels)
	}
	for _, b := range t.Budgets() {
		b.Webhook = "" // the object alone calls it
		m.Budgets = append(m.Budgets, b.Budget)
	}
	return m
}

// Wipe removes every row but those that outlive the machine: its own, and the
// digests of the documents that were adopted.
func (t *Tx) Wipe() {
	t.Pages("", Page, func(r Row) bool {
		if r.Key != "meta" && r.Key != SeenRow {
			t.Del(r.Key)
		}
		return true
	})
}

// Lease is a right to one new key, see rpc.MintLease.
type Lease struct {
	Tool       string `json:"tool"`
	Model      string `json:"model"`
	SmallModel string `json:"smallModel"`
	KeyID      string `json:"keyId,omitempty"`     // of who created it; "" for the operator
	KeyDigest  string `json:"keyDigest,omitempty"` // of that key as it was presented; "" for a session
	// Person is the person who created it; nil for any other.
	Person    *rpc.Person `json:"person,omitempty"`
	ExpiresAt int64       `json:"expiresAt"`        // Unix milliseconds
	Device    string      `json:"device,omitempty"` // name of the computer of a sign-in, see rpc.Device
}

// The values of store.Connection.Status besides "".
const (
	NeedsCredential = "needs_credential"
	NeedsReauth     = "needs_reauth"
)

// ManageKey returns the key with an id if it may manage the machine now.
func (t *Tx) ManageKey(id string) (k Key, ok bool) {
	ok = rpc.IsRowID(id) && t.Load(KeyPrefix+id, &k) && k.RevokedAt == 0 && k.PausedAt == 0 &&
		(k.ExpiresAt == 0 || k.ExpiresAt > t.Now) && slices.Contains(k.Scopes, "manage")
	return k, ok
}

// Mutation is the answer of a mutation that named itself. The answer may
// hold a new key, so it is sealed.
type Mutation struct {
	At      int64         `json:"at"`
	Request string        `json:"request"` // digest
	Answer  secret.Sealed `json:"answer"`
}

// Bounds of the usage of days.
const (
	UsageDays    = 397  // 13 months
	maxUsageRows = 5000 // of one day; what comes after is added up without its model
	// maxRefusedRows is the number of a day's rows from which on refused requests are added
	// up without their model: a client can name any, at no cost.
	maxRefusedRows = 1000
)

// coldPrefixes are the prefixes of rows that few turns read, and of which a machine may have
// many.
var coldPrefixes = [...]string{"idem:", "idemended:", "machine:", JobPrefix, AuditPrefix, MutationPrefix, CapturePrefix,
	UsagePrefix, HourPrefix, RequestsRow + ":", OldRequestPrefix}

// IsCold reports whether an engine need not hold a row in memory. Engines store the result.
func IsCold(key string) bool {
	return slices.ContainsFunc(coldPrefixes[:], func(p string) bool { return strings.HasPrefix(key, p) })
}

// HasCold reports whether keys with a prefix may be cold.
func HasCold(prefix string) bool {
	return slices.ContainsFunc(coldPrefixes[:], func(p string) bool {
		return strings.HasPrefix(p, prefix) || strings.HasPrefix(prefix, p)
	})
}

// IsNews reports whether the programs that serve a machine must know at once of a change of its
// row "meta": the configuration or its State has changed.
func IsNews(before, after []byte) bool {
	for _, field := range []string{"generation", "observed"} {
		if gjson.GetBytes(before, field).Int() != gjson.GetBytes(after, field).Int() {
			return true
		}
	}
	return false
}
