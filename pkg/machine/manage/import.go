package manage

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// importDoc answers POST /api/import
//
//	{"document":{…},"passphrase":"…","replace":false,"keys":false,"people":false,"preview":false}
//
// The document is an export of weir, encrypted or not, or has the form of a
// seed; anything else is refused. Rows with the ids of the document are
// overwritten, others stay. With replace the collections that the document has
// become those of the document; one that it lacks stays as it is. Gateway keys
// are only ever added, and only with keys; those that cannot work here are left
// out. Keys that a person imports are theirs, so that a removal pauses them. With people the
// gateway stores the roles of people afterwards, which are in the answer; the operator
// alone may. A connection whose credential is not in the document keeps the stored one if
// it has the same origin. Connections of an unknown provider that are not stored yet
// are named in the answer, and refused with replace.
//
// With preview nothing is changed: the answer lists the changes. Its ETag is
// that of the whole machine; sent as If-Match, the import succeeds only if
// nothing else has changed.
func (c *change) importDoc() (any, error) {
	in := c.input()
	in.only("document", "passphrase", "replace", "keys", "people", "preview")
	replace, _ := in.bool("replace")
	withKeys, _ := in.bool("keys")
	withPeople, _ := in.bool("people")
	preview, _ := in.bool("preview")
	v := in.values["document"]
	if !v.IsObject() {
		in.fail("document", "must be an object")
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	if !preview {
		if err := c.signedIn(); err != nil {
			return nil, err
		}
	}
	raw, opened := []byte(v.Raw), v.Get("format").Str == SealedFormat
	if opened {
		if err := newerBackup(v); err != nil {
			return nil, err
		}
		var err error
		if raw, err = c.openDoc(in, v.Raw); err != nil {
			return nil, err
		}
	}
	if err := c.match(c.Meta.Generation); err != nil {
		return nil, err
	}
	if err := isBackup(gjson.ParseBytes(raw)); err != nil {
		return nil, err
	}
	doc, e := c.o.readDocument(c.ID, raw)
	if e != nil {
		e.Param = "document." + e.Param
		return nil, e
	}
	unknown, err := c.unknownProviders(doc, replace)
	if err != nil {
		return nil, err
	}
	settings := c.Settings()
	if s := gjson.GetBytes(raw, "settings"); s.Exists() {
		sin := sub(s, "document.settings")
		settings = applySettings(sin, settings)
		if err := sin.failed(); err != nil {
			return nil, err
		}
		if gjson.GetBytes(raw, "format").Exists() && !s.Get("strategy").Exists() {
			settings.Strategy = store.Priority // the default when such a document was written
		}
	}
	budgets, err := c.importedBudgets(gjson.GetBytes(raw, "budgets"))
	if err != nil {
		return nil, err
	}
	targets, err := c.importedDestinations(gjson.GetBytes(raw, "destinations"))
	if err != nil {
		return nil, err
	}
	var keys []store.Key
	if k := gjson.GetBytes(raw, "keys"); opened && k.Exists() && json.Unmarshal([]byte(k.Raw), &keys) != nil {
		return nil, badKeys()
	}
	grants, err := c.importedPeople(gjson.ParseBytes(raw), opened)
	if err != nil {
		return nil, err
	}
	if withPeople && (c.env.KeyID != "" || c.env.Person != nil) {
		return nil, rpc.ErrOperator()
	}
	unusable := 0
	if c.foreign(gjson.ParseBytes(raw)) {
		had := len(keys)
		keys = slices.DeleteFunc(keys, func(k store.Key) bool { return rpc.IsMinted(k.ID) })
		unusable = had - len(keys)
	}
	keys = append(keys, doc.keys...)
	skipped := 0
	if !withKeys {
		skipped, keys = len(keys), nil
	}
	for i := range keys {
		if err := c.mayGrant(keys[i].Scopes); err != nil && !preview {
			return nil, err
		}
	}
	c.etag = c.Meta.Generation
	if replace {
		c.dropConfig(doc, budgets, targets, gjson.ParseBytes(raw))
	}
	made, err := c.putDocument(doc, keys)
	if err != nil {
		return nil, err
	}
	stored, err := c.putBudgets(budgets)
	if err != nil {
		return nil, err
	}
	if err := c.putDestinations(targets); err != nil {
		return nil, err
	}
	c.Touch("settings")
	c.Put(storage.SettingsRow, settings)
	peopleSkipped := 0
	if !withPeople {
		peopleSkipped, grants = len(grants), nil
	}
	for _, g := range grants {
		c.grant(g.ID, g.Name, people.Grant{Role: g.Role, Template: g.Template})
	}
	out := imported{
		Connections: len(doc.conns), Combos: len(doc.combos), CustomModels: len(doc.customs), ModelAliases: len(doc.aliases),
		Disabled: len(doc.disabled), Budgets: stored, BudgetsSkipped: len(budgets) - stored, Keys: len(made),
		Destinations:     len(targets),
		KeysSkipped:      skipped,
		KeysUnusable:     unusable,
		People:           grants,
		PeopleSkipped:    peopleSkipped,
		UnknownProviders: unknown,
	}
	if preview {
		if err := c.CheckSize(); err != nil {
			return nil, err
		}
		before := c.Stored()
		out.Preview, out.Replace, out.Changes = true, replace, c.compare(before)
		if d := gjson.ParseBytes(raw); d.Get("format").Exists() {
			out.From, out.ExportedAt = d.Get("machineId").Str, d.Get("exportedAt").Int()
		}
		etag := c.etag
		c.Reload(c.o.Now())
		c.quiet, c.etag = true, etag
		return out, nil
	}
	c.etag = c.Meta.Generation
	c.fields = []string{"connections", "combos", "customModels", "modelAliases", "disabledModels", "budgets",
		"destinations", "settings"}
	if replace {
		c.fields = append(c.fields, "replace")
	}
	if withPeople {
		c.fields = append(c.fields, "people")
	}
	if len(made) > 0 {
		c.fields = append(c.fields, "keys")
		c.target = strconv.Itoa(len(made)) + " keys:"
		for i, id := range made {
			if i == maxNamedKeys {
				c.target += " …"
				break
			}
			c.target += " " + c.o.MaskedKey(id)
		}
	}
	return out, nil
}

// foreign reports whether the keys of an export name another machine, or are of another
// API_KEY_SECRET. An export of before the check does not say the latter.
func (c *change) foreign(doc gjson.Result) bool {
	from, check := doc.Get("machineId"), doc.Get("keyCheck")
	return from.Exists() && from.Str != c.ID || check.Exists() && check.Str != rpc.SecretCheck(c.o.KeySecret)
}

// unknownProviders returns the unknown providers of connections that are not stored with
// them yet. With replace they are refused: they would be in the place of accounts that
// work.
func (c *change) unknownProviders(doc *document, replace bool) (unknown []string, err error) {
	for i := range doc.conns {
		row := &doc.conns[i].row
		var stored storage.Connection
		if provider.Lookup(row.Provider) != nil || c.Load(storage.ConnectionPrefix+row.ID, &stored) &&
			stored.Provider == row.Provider {
			continue
		}
		if replace {
			return nil, apierr.Invalid("document.connections",
				"document.connections[%d].provider %q is unknown. Correct it, or import without replace.", i, row.Provider)
		}
		if !slices.Contains(unknown, row.Provider) {
			unknown = append(unknown, row.Provider)
		}
	}
	return unknown, nil
}

// maxNamedKeys is the number of imported keys that an audit record names.
const maxNamedKeys = 50

// imported is the answer to an import, or to the preview of one.
type imported struct {
	Connections  int `json:"connections"`
	Combos       int `json:"combos"`
	CustomModels int `json:"customModels"`
	ModelAliases int `json:"modelAliases"`
	Disabled     int `json:"disabledModels"`
	Budgets      int `json:"budgets"`
	// BudgetsSkipped is the number of the document's budgets of keys that the machine
	// does not have.
	BudgetsSkipped int `json:"budgetsSkipped,omitempty"`
	Destinations   int `json:"destinations"`
	Keys           int `json:"keys"`
	// KeysSkipped is the number of the document's gateway keys without keys:
	// true.
	KeysSkipped int `json:"keysSkipped,omitempty"`
	// KeysUnusable is the number of those that cannot work here, as foreign says.
	KeysUnusable int `json:"keysUnusable,omitempty"`
	// People are the grants for the registry. The gateway answers with their number.
	People []rpc.PersonGrant `json:"people,omitempty"`
	// PeopleSkipped is the number of the document's without people: true.
	PeopleSkipped int `json:"peopleSkipped,omitempty"`
	// UnknownProviders are those of new connections, which cannot be called.
	UnknownProviders []string `json:"unknownProviders,omitempty"`

	Preview bool `json:"preview,omitempty"`
	Replace bool `json:"replace,omitempty"`
	// From and ExportedAt are the machine and the time of the export.
	From       string                `json:"from,omitempty"`
	ExportedAt int64                 `json:"exportedAt,omitempty"`
	Changes    map[string]difference `json:"changes,omitempty"`
}

// difference lists the changes of one collection.
type difference struct {
	Added   []string `json:"added"`
	Changed []string `json:"changed"`
	Deleted []string `json:"deleted"`
}

// compare returns the differences between before and this turn.
func (c *change) compare(before *storage.Tx) map[string]difference {
	out := map[string]difference{}
	for _, of := range [...]struct {
		name, prefix string
		show         func(raw []byte) string
	}{
		{"connections", storage.ConnectionPrefix, func(raw []byte) string {
			name, provider := gjson.GetBytes(raw, "name").Str, gjson.GetBytes(raw, "provider").Str
			if name == "" {
				return provider
			}
			return name + " (" + provider + ")"
		}},
		{"combos", storage.ComboPrefix, func(raw []byte) string { return gjson.GetBytes(raw, "name").Str }},
		{"customModels", storage.CustomModelPrefix, func(raw []byte) string {
			return gjson.GetBytes(raw, "providerAlias").Str + "/" + gjson.GetBytes(raw, "id").Str
		}},
		{"modelAliases", storage.AliasPrefix, func(raw []byte) string { return gjson.GetBytes(raw, "alias").Str }},
		{"disabledModels", storage.DisabledPrefix, func(raw []byte) string {
			return gjson.GetBytes(raw,
				"providerAlias").Str
		}},
		{"budgets", storage.BudgetPrefix, func(raw []byte) string { return gjson.GetBytes(raw, "name").Str }},
		{"destinations", storage.DestinationPrefix, func(raw []byte) string { return gjson.GetBytes(raw, "name").Str }},
		{"keys", storage.KeyPrefix, func(raw []byte) string {
			if name := gjson.GetBytes(raw, "name").Str; name != "" {
				return name
			}
			return c.o.MaskedKey(gjson.GetBytes(raw, "id").Str)
		}},
	} {
		d := difference{[]string{}, []string{}, []string{}}
		had := map[string][]byte{}
		for _, r := range before.List(of.prefix) {
			had[r.Key] = r.Value
		}
		for _, r := range c.List(of.prefix) {
			old, ok := had[r.Key]
			delete(had, r.Key)
			switch {
			case !ok:
				d.Added = append(d.Added, of.show(r.Value))
			case c.essence(of.prefix, old) != c.essence(of.prefix, r.Value):
				d.Changed = append(d.Changed, of.show(r.Value))
			}
		}
		for _, raw := range had {
			d.Deleted = append(d.Deleted, of.show(raw))
		}
		slices.Sort(d.Deleted)
		out[of.name] = d
	}
	settings := difference{[]string{}, []string{}, []string{}}
	if string(storage.EncodeJSON(before.Settings())) != string(storage.EncodeJSON(c.Settings())) {
		settings.Changed = append(settings.Changed, "settings")
	}
	out["settings"] = settings
	return out
}

// essence returns the part of a row that users set: without the machine's own
// fields, and with a digest of the plaintext secrets, since sealing one twice
// produces different bytes.
func (c *change) essence(prefix string, raw []byte) string {
	var row map[string]json.RawMessage
	if json.Unmarshal(raw, &row) != nil {
		return string(raw)
	}
	for _, own := range []string{"generation", "updatedAt", "createdAt", "seq", "seeded", "status", "lastError",
		"tokenGeneration", "origin", "last4"} {
		delete(row, own)
	}
	if prefix == storage.ConnectionPrefix || prefix == storage.DestinationPrefix {
		var conn storage.Connection // a destination has its secrets in the same place
		json.Unmarshal(raw, &conn)
		plain, sealedAs := map[string]string{}, conn.ID
		if prefix == storage.DestinationPrefix {
			sealedAs = (&storage.Destination{ID: conn.ID}).SealedAs()
		}
		for field, sealed := range conn.Secrets {
			secret, err := c.o.Keyring.Open(c.ID, sealedAs, field, sealed)
			if err != nil {
				return string(raw)
			}
			plain[field] = secret.Reveal()
		}
		row["secrets"] = storage.EncodeJSON(storage.DigestOf(string(storage.EncodeJSON(plain))))
	}
	b, _ := json.Marshal(row)
	return string(b)
}

// documentFields are those of a seed document and of an export.
var documentFields = [...]string{"connections", "apiKeys", "combos", "customModels", "modelAliases", "disabledModels",
	"budgets", "destinations", "settings"}

// newerBackup refuses an export of a newer version.
func newerBackup(doc gjson.Result) error {
	if v := doc.Get("version"); v.Type == gjson.Number && v.Int() > 1 {
		return notBackup("this backup is from a newer version of weir")
	}
	return nil
}

// isBackup refuses what is neither an export of weir nor a seed document:
// another file would import nothing, and with replace it would delete
// everything.
func isBackup(doc gjson.Result) error {
	if err := newerBackup(doc); err != nil {
		return err
	}
	format, found, other := doc.Get("format"), false, ""
	doc.ForEach(func(name, _ gjson.Result) bool {
		if slices.Contains(documentFields[:], name.Str) {
			found = true
		} else if !slices.Contains([]string{"format", "version", "machineId", "exportedAt", "keys"}, name.Str) {
			other = name.Str
		}
		return true
	})
	switch {
	case format.Exists() && (format.Str != ExportFormat || doc.Get("version").Raw != "1"), !found,
		!format.Exists() && other != "":
		return notBackup("this is not a weir backup")
	}
	return nil
}

func notBackup(message string) error {
	e := apierr.Invalid("document", "%s", message)
	e.Code = "not_a_backup"
	return e
}

// putDocument stores an imported document, and returns the ids of the keys that
// are new.
func (c *change) putDocument(doc *document, keys []store.Key) (made []string, err error) {
	nameConnections(c.Tx, doc.conns...)
	for i := range doc.conns {
		got := doc.conns[i]
		got.row.Seeded = false
		var had storage.Connection
		if c.Load(storage.ConnectionPrefix+got.row.ID, &had) {
			if had.Provider != got.row.Provider {
				return nil, apierr.Invalid("document.connections",
					"document.connections[%d].id belongs to an account of another provider.", i)
			}
			got.row.Secrets, got.row.Last4, got.row.Origin, got.row.Seq, got.row.Seeded = had.Secrets, had.Last4, had.Origin,
				had.Seq, had.Seeded
			got.row.Status, got.row.LastError, got.row.TokenGeneration, got.row.CreatedAt = had.Status, had.LastError,
				had.TokenGeneration, had.CreatedAt
			got.row.ExpiresAt = cmp.Or(got.row.ExpiresAt, had.ExpiresAt)
		} else if d := provider.Lookup(got.row.Provider); d != nil && len(got.secrets) == 0 &&
			(d.Compatible || wantsCredential(got.row.Provider)) {
			got.row.Status = storage.NeedsCredential
		}
		if err := c.o.finishConnection(c.Tx, got); err != nil {
			return nil, err
		}
	}
	had := map[string]bool{}
	for _, k := range c.Keys() {
		had[k.Digest] = true
		if k.Earlier != nil {
			had[k.Earlier.Digest] = true
		}
	}
	for _, k := range keys {
		if !isKey(&k) {
			return nil, badKeys()
		}
		// One key has one row: what is revoked later is revoked.
		if _, ok := c.Get(storage.KeyPrefix + k.ID); !ok && !had[k.Digest] {
			had[k.Digest] = true
			k.CreatedAt = cmp.Or(k.CreatedAt, c.Now)
			k.Earlier = nil // only the current text is imported
			row := storage.Key{Key: k}
			if err := own(c.Tx, c.maker, &row); err != nil {
				return nil, err
			}
			c.PutKey(&row)
			made = append(made, k.ID)
		}
	}
	for i := range doc.combos {
		row := &doc.combos[i]
		row.Seeded = false
		var had storage.Combo
		if c.Load(storage.ComboPrefix+row.ID, &had) {
			row.Seq, row.CreatedAt, row.Seeded = had.Seq, had.CreatedAt, had.Seeded
		} else {
			row.CreatedAt = c.Now
		}
		row.UpdatedAt = c.Now
		c.PutCombo(row)
	}
	if e := checkCombos(c.Combos()); e != nil {
		return nil, e
	}
	for _, m := range doc.customs {
		var row storage.CustomModel
		c.Load(storage.CustomModelKey(m.Type, m.ProviderAlias, m.ID), &row)
		row.CustomModel = m
		c.PutCustom(&row)
	}
	for _, a := range doc.aliases {
		a.Seeded = false
		c.PutAlias(&a)
	}
	for _, d := range doc.disabled {
		var row storage.DisabledModels
		c.Load(storage.DisabledPrefix+d.ProviderAlias, &row)
		d.IDs = merged(row.IDs, d.IDs)
		row.DisabledModels = d
		if len(d.IDs) > MaxHidden {
			return nil, overfull("models of an alias that are disabled", MaxHidden)
		}
		c.PutDisabled(&row)
	}
	return made, c.bounded()
}

// importedBudgets reads the budgets of a document. One that is stored and has no address
// for alerts in the document keeps the stored one.
func (c *change) importedBudgets(list gjson.Result) (budgets []storage.Budget, err error) {
	if !list.Exists() || list.Type == gjson.Null {
		return nil, nil
	}
	if !list.IsArray() {
		return nil, apierr.Invalid("document.budgets", "document.budgets must be an array.")
	}
	ids := map[string]bool{}
	for i, v := range list.Array() {
		in := sub(v, "document.budgets["+strconv.Itoa(i)+"]")
		var row storage.Budget
		id, _ := in.text("id", 64)
		if id != "" && !rpc.IsRowID(id) {
			in.fail("id", "must be 1 to 64 of letters, digits, dash and underscore")
		}
		c.Load(storage.BudgetPrefix+id, &row)
		row.KeyID, row.Models, row.Tag, row.Tool, row.RefuseUnpriced = "", nil, "", "", false
		in.values["allowUnknown"] = gjson.Result{Type: gjson.True} // its models may follow, or be gone
		c.readBudget(in, &row, false)
		if at, ok := in.time("createdAt"); ok && row.CreatedAt == 0 {
			row.CreatedAt = at
		}
		if row.ID = id; id == "" {
			row.ID = "u" + storage.DigestOf(c.ID, "budget", row.Name)[:20]
		}
		if ids[row.ID] {
			in.fail("id", "is repeated; send it once")
		}
		ids[row.ID] = true
		if err := in.failed(); err != nil {
			return nil, err
		}
		budgets = append(budgets, row)
	}
	return budgets, nil
}

// putBudgets stores imported budgets and returns their number. A budget of a key that
// the machine does not have is left out. A budget in another unit or window starts with
// nothing spent.
func (c *change) putBudgets(budgets []storage.Budget) (stored int, err error) {
	for i := range budgets {
		row := &budgets[i]
		if _, ok := c.Get(storage.KeyPrefix + row.KeyID); row.KeyID != "" && !ok {
			continue
		}
		stored++
		var had storage.Budget
		if c.Load(storage.BudgetPrefix+row.ID, &had) && (had.Unit != row.Unit || had.Window != row.Window) {
			c.Del(storage.LedgerPrefix + row.ID)
		}
		row.CreatedAt = cmp.Or(row.CreatedAt, c.Now)
		c.putBudget(row)
	}
	return stored, c.bounded()
}

// bounded refuses an import that leaves more than may be made one by one.
func (c *change) bounded() error {
	for _, b := range [...]struct {
		prefix, what string
		most         int
	}{
		{storage.ConnectionPrefix, "connections", MaxConns}, {storage.KeyPrefix, "keys", MaxKeys},
		{storage.ComboPrefix, "combos", MaxCombos},
		{storage.CustomModelPrefix, "custom models", MaxCustoms}, {storage.AliasPrefix, "aliases", MaxAliases},
		{storage.DisabledPrefix, "aliases with disabled models", MaxDisabled},
		{storage.BudgetPrefix, "budgets", MaxBudgets},
		{storage.DestinationPrefix, "destinations", MaxDestinations},
	} {
		if len(c.List(b.prefix)) > b.most {
			return overfull(b.what, b.most)
		}
	}
	return nil
}

func overfull(what string, most int) error {
	return apierr.New(409, "too_many", "With this document the machine would have more than %d %s.", most, what)
}

func badKeys() error {
	return apierr.Invalid("document.keys", "document.keys has an entry that is no key.")
}

// isKey reports whether a row of an export is one that could have been made.
func isKey(k *store.Key) bool {
	ok := rpc.IsDigest(k.Digest) && rpc.IsRowID(k.ID) && utf8.RuneCountInString(k.Name) <= 200 &&
		storage.IsPrintable(k.Name) && len(k.Last4) <= 4 && storage.IsPrintable(k.Last4) &&
		len(k.Models) <= 500 && k.RPM >= 0 && k.DailyMax >= 0 && k.TPM >= 0 && k.MaxParallel >= 0 && k.CreatedAt >= 0 &&
		k.ExpiresAt >= 0 && k.RevokedAt >= 0 && k.PausedAt >= 0
	for _, s := range k.Scopes {
		ok = ok && isScope(s)
	}
	for _, m := range k.Models {
		ok = ok && m != "" && len(m) <= 320 && storage.IsPrintable(m)
	}
	return ok
}

// dropConfig removes the rows that a replacing import lacks, in the collections
// that the document has.
func (c *change) dropConfig(doc *document, budgets []storage.Budget, targets []importedDestination, raw gjson.Result) {
	keep := map[string]bool{}
	for i := range doc.conns {
		var had storage.Connection
		id := doc.conns[i].row.ID
		keep[storage.ConnectionPrefix+id] = c.Load(storage.ConnectionPrefix+id, &had) &&
			had.Provider == doc.conns[i].row.Provider
	}
	for i := range doc.combos {
		keep[storage.ComboPrefix+doc.combos[i].ID] = true
	}
	for i := range budgets {
		keep[storage.BudgetPrefix+budgets[i].ID] = true
	}
	for i := range targets {
		keep[storage.DestinationPrefix+targets[i].row.ID] = true
	}
	for _, of := range [...][2]string{
		{storage.ConnectionPrefix, "connections"}, {storage.ComboPrefix, "combos"},
		{storage.CustomModelPrefix, "customModels"}, {storage.AliasPrefix, "modelAliases"},
		{storage.DisabledPrefix, "disabledModels"},
		{storage.BudgetPrefix, "budgets"}, {storage.DestinationPrefix, "destinations"},
	} {
		if v := raw.Get(of[1]); !v.Exists() || v.Type == gjson.Null {
			continue
		}
		for _, r := range c.List(of[0]) {
			if keep[r.Key] {
				continue
			}
			c.Del(r.Key)
			if id, ok := strings.CutPrefix(r.Key, storage.ConnectionPrefix); ok {
				c.ForgetConnection(id)
			}
			if id, ok := strings.CutPrefix(r.Key, storage.DestinationPrefix); ok {
				c.DropOutbox(id)
			}
			if id, ok := strings.CutPrefix(r.Key, storage.BudgetPrefix); ok {
				c.Del(storage.LedgerPrefix + id)
				c.DropOutbox(storage.OfBudget(id))
			}
		}
	}
	c.Touch("providers", "combos", "custom", "alias", "disabled", "budgets", "destinations")
	c.Due = true
}
