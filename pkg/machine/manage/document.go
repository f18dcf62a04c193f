package manage

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

const (
	maxDocument = 4 << 20 // bytes
	MaxAliases  = 2000
	MaxCustoms  = 2000
	MaxDisabled = 500
	MaxHidden   = 2000 // ids of one alias
)

// document is a whole configuration as it was sent: a seed, or an import.
type document struct {
	conns    []*connInput
	keys     []store.Key
	combos   []storage.Combo
	customs  []store.CustomModel
	aliases  []storage.Alias
	disabled []store.DisabledModels
	notes    []string // of what was let through
}

// readDocument reads
//
//	{connections, apiKeys, combos, customModels, modelAliases, disabledModels}
//
// with the field names of the specification; all of it or nothing: the error
// names the first field that is wrong.
func (o *Manager) readDocument(machineID string, raw []byte) (*document, *apierr.Error) {
	if len(raw) > maxDocument {
		return nil, apierr.New(413, "too_large", "The document is larger than %d bytes.", maxDocument)
	}
	in := readObject(raw, "")
	d := &document{}
	list := func(name string, most int, each func(i int, at string, v gjson.Result)) {
		v, ok := in.values[name]
		if !ok || v.Type == gjson.Null || in.Err != nil {
			return
		}
		if !v.IsArray() {
			in.fail(name, "must be an array")
			return
		}
		items := v.Array()
		if len(items) > most {
			in.fail(name, "has more than %d entries", most)
			return
		}
		for i, item := range items {
			if in.Err == nil {
				each(i, name+"["+strconv.Itoa(i)+"]", item)
			}
		}
	}
	nth := map[string]int{}
	ids := map[string]bool{}
	list("connections", MaxConns, func(_ int, at string, v gjson.Result) {
		c := sub(v, at)
		row := storage.Connection{Given: storage.Given{Own: storage.Own{Seeded: true}}}
		if id, ok := c.text("id", 64); ok && id != "" {
			if !rpc.IsRowID(id) {
				c.fail("id", "must be 1 to 64 of letters, digits, dash and underscore")
			}
			row.ID = id
		}
		got := o.applyConnection(c, row, true)
		if got.row.ID == "" {
			// The same document leads to the same ids, so cooldowns and jobs
			// stay attached.
			what := storage.DigestOf(machineID, got.row.Provider, got.row.Name, got.row.Data.BaseURL, got.row.Data.Prefix)
			nth[what]++
			got.row.ID = "c" + storage.DigestOf(what, strconv.Itoa(nth[what]))[:20]
		}
		if ids[got.row.ID] {
			c.fail("id", "is repeated; send it once")
		}
		ids[got.row.ID] = true
		if t, ok := c.time("createdAt"); ok {
			got.row.CreatedAt = t
		}
		if provider.Lookup(got.row.Provider) == nil && c.Err == nil {
			d.notes = append(d.notes, at+".provider is not a known provider")
		}
		d.conns = append(d.conns, &got)
		in.Err = c.Err
	})
	digests := map[string]bool{}
	list("apiKeys", MaxKeys, func(i int, at string, v gjson.Result) {
		text := v.Str
		switch {
		case v.Type != gjson.String:
			in.fail(at, "must be a string")
		default:
			key, ok := rpc.ParseSeededKey(text)
			switch {
			case !ok:
				in.fail(at, "must have 8 to %d printable ASCII characters, without blanks around them", rpc.MaxKey)
			case !key.Old() && (key.MachineID != machineID || !key.CheckOK(o.KeySecret)):
				in.fail(at, "is a key of another machine, or of another API_KEY_SECRET")
			}
		}
		if k := rpc.ImportedKey(text); !digests[k.Digest] {
			digests[k.Digest] = true
			d.keys = append(d.keys, k)
		}
	})
	list("combos", MaxCombos, func(i int, at string, v gjson.Result) {
		c := sub(v, at)
		row := storage.Combo{Own: storage.Own{Seeded: true}}
		if id, ok := c.text("id", 64); ok && id != "" {
			if !rpc.IsRowID(id) {
				c.fail("id", "must be 1 to 64 of letters, digits, dash and underscore")
			}
			row.ID = id
		}
		row = applyCombo(c, row, true)
		if row.ID == "" {
			row.ID = "b" + storage.DigestOf(machineID, "combo", row.Name)[:20]
		}
		d.combos = append(d.combos, row)
		in.Err = c.Err
	})
	if in.Err == nil {
		if e := checkCombos(d.combos); e != nil {
			in.fail("combos", "are refused: %s", e.Message)
		}
	}
	list("customModels", MaxCustoms, func(i int, at string, v gjson.Result) {
		c := sub(v, at)
		if m := readCustom(c); m.ID != "" && m.ProviderAlias != "" { // empty ones are ignored, docs/reference/spec.md, 2.5
			d.customs = append(d.customs, m)
		}
		in.Err = c.Err
	})
	o.readAliases(in, d)
	o.readDisabled(in, d, list)
	if in.Err != nil {
		return nil, in.Err
	}
	return d, nil
}

// readCustom reads a custom model. See docs/reference/spec.md, 2.5.
func readCustom(in *Input) store.CustomModel {
	var m store.CustomModel
	m.ID, _ = in.text("id", 256)
	m.Type, _ = in.text("type", 40)
	m.ProviderAlias, _ = in.text("providerAlias", 96)
	m.Name, _ = in.text("name", 200)
	n, _ := in.int("contextLength", 0, 1<<31-1)
	m.ContextLength = int(n)
	n, _ = in.int("maxTokens", 0, 1<<31-1)
	m.MaxTokens = int(n)
	if m.ID != "" && provider.CheckModel(m.ID) != nil {
		in.fail("id", "is not usable as a model id")
	}
	if m.ProviderAlias != "" && !IsAlias(m.ProviderAlias) && provider.Lookup(m.ProviderAlias) == nil {
		in.fail("providerAlias", "is not usable as an alias")
	}
	return m
}

// IsAliasName reports whether s may be a name of the alias map.
func IsAliasName(s string) bool {
	return s != "" && len(s) <= 128 && storage.IsPrintable(s) && utf8.ValidString(s) &&
		!strings.ContainsAny(s, "/\\?#%") && strings.TrimSpace(s) == s
}

// readAliases reads the alias map: only string values with a slash are used
// (docs/reference/spec.md, 2.6).
func (o *Manager) readAliases(in *Input, d *document) {
	v, ok := in.values["modelAliases"]
	if !ok || v.Type == gjson.Null || in.Err != nil {
		return
	}
	if !v.IsObject() {
		in.fail("modelAliases", "must be an object")
		return
	}
	m := sub(v, "modelAliases")
	for _, name := range m.names {
		full := m.values[name]
		if full.Type != gjson.String || !strings.Contains(full.Str, "/") {
			continue
		}
		a := storage.Alias{Alias: strings.TrimSpace(name), Model: strings.TrimSpace(full.Str), Seeded: true}
		if !IsAliasName(a.Alias) {
			m.fail(name, "is not usable as a name")
		}
		if !isModelRef(a.Model) {
			m.fail(name, "is not <alias>/<model>")
		}
		d.aliases = append(d.aliases, a)
	}
	if len(d.aliases) > MaxAliases {
		in.fail("modelAliases", "has more than %d entries", MaxAliases)
	}
	if in.Err == nil {
		in.Err = m.Err
	}
}

// readDisabled reads the disabled models: [{providerAlias, ids}], or an object
// of alias to ids.
func (o *Manager) readDisabled(in *Input, d *document, list func(string, int, func(int, string, gjson.Result))) {
	const name = "disabledModels"
	byAlias := map[string]int{}
	add := func(c *Input, row store.DisabledModels) {
		if !IsAlias(row.ProviderAlias) && provider.Lookup(row.ProviderAlias) == nil {
			c.fail("providerAlias", "is not usable as an alias")
		}
		if at, ok := byAlias[row.ProviderAlias]; ok {
			d.disabled[at].IDs = merged(d.disabled[at].IDs, row.IDs)
		} else if len(row.IDs) > 0 {
			byAlias[row.ProviderAlias] = len(d.disabled)
			d.disabled = append(d.disabled, row)
		}
		if in.Err == nil {
			in.Err = c.Err
		}
	}
	if v := in.values[name]; v.IsObject() {
		m := sub(v, name)
		for _, alias := range m.names {
			ids, _ := m.texts(alias, MaxHidden, 256)
			add(m, store.DisabledModels{ProviderAlias: alias, IDs: ids})
		}
		if in.Err == nil {
			in.Err = m.Err
		}
		return
	}
	list(name, MaxDisabled, func(_ int, at string, v gjson.Result) {
		c := sub(v, at)
		alias, _ := c.text("providerAlias", 96)
		ids, _ := c.texts("ids", MaxHidden, 256)
		add(c, store.DisabledModels{ProviderAlias: alias, IDs: ids})
	})
}

// merged adds what is new of b to a.
func merged(a, b []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, list := range [][]string{a, b} {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// SortedKeys returns the names of a set in order.
func SortedKeys[V any](m map[string]V) []string {
	out := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(out)
	return out
}
