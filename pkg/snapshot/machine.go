// Package snapshot keeps what an isolate knows of the machines it serves: the
// last good replica of each, how old the knowledge is, and the account
// failures seen here that the replica does not carry yet.
// See docs/architecture.md.
package snapshot

import (
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/jsoncodec"
)

// Version is the replica format that this build reads and writes.
const Version = 1

// Machine is a parsed replica of one machine with its indexes. It is shared by
// the requests of an isolate. The record is as it was published and does not change;
// what calls have shown since is in shared and in Local.
type Machine struct {
	*store.Machine
	// Local has this isolate's observations of the accounts. It outlives the replica:
	// the next one of the same machine has it too.
	Local *Local
	*shared

	prices       *prices // nil without a source
	cached       bool    // Local and prices are set for good
	keys         map[[32]byte]*indexedKey
	conns        map[string]*store.Connection
	active       map[string][]*store.Connection
	provs        []string
	combos       map[string]*store.Combo
	disabled     map[string]map[string]struct{} // model ids by what they are disabled under
	limits       map[string][]store.Budget      // of keys that have any, by their id; "" is the machine
	limitsTokens bool                           // a key has such a limit
	keyTags      map[string][]string            // of keys that have any, by their id
	looking      bool                           // Turn takes none

	fastestCombo, leastBusyCombo bool // there is such a combo; see Uses
}

// shared is what changes of a replica; all views of it have the same. Local's lock
// guards it. The lists are replaced, never changed.
type shared struct {
	observed int64 // of the cooldowns, refusals and quotas
	cooling  map[account]*store.Cooldown
	refusals []store.Refusal
	quotas   []store.Quota
	derived  map[Derived]any
	opened   map[*store.Connection]*Opened // credentials in the clear, at most maxOpened
}

// account is a connection, or one upstream model of it.
type account struct{ connection, model string }

// New indexes a replica.
func New(rec *store.Machine) *Machine {
	m := &Machine{
		Machine: rec,
		Local:   newLocal(),
		shared:  &shared{observed: rec.Observed, refusals: rec.Refusals, quotas: rec.Quotas},
		keys:    make(map[[32]byte]*indexedKey, len(rec.Keys)),
		conns:   make(map[string]*store.Connection, len(rec.Connections)),
		active:  make(map[string][]*store.Connection, len(rec.Connections)),
	}
	own := rec.Settings.Limits()
	if own != nil {
		m.limits = map[string][]store.Budget{"": own}
	}
	for i := range rec.Keys {
		k := &rec.Keys[i]
		m.indexKey(k, k.Digest, 0)
		if len(k.Tags) > 0 {
			if m.keyTags == nil {
				m.keyTags = map[string][]string{}
			}
			m.keyTags[k.ID] = k.Tags
		}
		if limits := k.Limits(); len(limits) > 0 {
			if m.limits == nil {
				m.limits = map[string][]store.Budget{}
			}
			m.limits[k.ID] = append(limits, own...)
			m.limitsTokens = m.limitsTokens || k.TPM > 0
		}
		if k.Earlier != nil {
			m.indexKey(k, k.Earlier.Digest, k.Earlier.Until)
		}
	}
	for i := range rec.Connections {
		c := &rec.Connections[i]
		m.conns[c.ID] = c
		if c.Inactive {
			continue
		}
		if m.active[c.Provider] == nil {
			m.provs = append(m.provs, c.Provider)
		}
		m.active[c.Provider] = append(m.active[c.Provider], c)
	}
	if len(rec.Combos) > 0 {
		m.combos = make(map[string]*store.Combo, len(rec.Combos))
		for i := range rec.Combos {
			m.combos[rec.Combos[i].Name] = &rec.Combos[i]
			m.fastestCombo = m.fastestCombo || rec.Combos[i].Strategy == store.Fastest
			m.leastBusyCombo = m.leastBusyCombo || rec.Combos[i].Strategy == store.LeastBusy
		}
	}
	if len(rec.Disabled) > 0 {
		m.disabled = make(map[string]map[string]struct{}, len(rec.Disabled))
		for i := range rec.Disabled {
			under := strings.TrimSpace(rec.Disabled[i].ProviderAlias)
			ids := m.disabled[under]
			if ids == nil {
				ids = make(map[string]struct{}, len(rec.Disabled[i].IDs))
				m.disabled[under] = ids
			}
			for _, id := range rec.Disabled[i].IDs {
				ids[store.FoldName(id)] = struct{}{}
			}
		}
	}
	m.index(rec.Cooldowns)
	return m
}

// indexKey indexes a key by the digest of one of its texts.
func (m *Machine) indexKey(k *store.Key, digest string, until int64) {
	var d [32]byte
	if n, err := hex.Decode(d[:], []byte(digest)); err == nil && n == len(d) && m.keys[d] == nil {
		m.keys[d] = &indexedKey{Key: k, digest: d, until: until}
	}
}

// index indexes what calls have shown. The caller has the lock.
func (m *Machine) index(cooldowns []store.Cooldown) {
	m.cooling = nil
	if len(cooldowns) > 0 {
		m.cooling = make(map[account]*store.Cooldown, len(cooldowns))
		for i := range cooldowns {
			c := &cooldowns[i]
			m.cooling[account{c.ConnectionID, c.Model}] = c
		}
	}
	m.learnQuotas()
}

// Observe replaces what calls have shown by what the object knows. The
// configuration stays, with everything that is derived from it. A state that is older
// than the one of before, or than what another request has learned since, changes nothing.
func (m *Machine) Observe(before, observed int64, s *rpc.State, now int64) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if m.observed != before && m.observed >= observed {
		return
	}
	quotas := m.quotas
	m.observed, m.refusals, m.quotas = observed, s.Refusals, s.Quotas
	m.forgetQuotas(quotas, now)
	m.index(s.Cooldowns)
	m.Local.settle(m, now)
}

// Parse reads a replica of the machine id, as the Machine object publishes it
// and answers it. A replica of another machine, or of a format that this build
// does not know, is refused.
func Parse(id string, raw []byte) (*Machine, error) {
	// First of all: another format may have other types.
	if v := gjson.GetBytes(raw, "v").Int(); v != Version {
		return nil, fmt.Errorf("snapshot: replica of format %d", v)
	}
	rec := new(store.Machine)
	if err := jsoncodec.Unmarshal(raw, rec); err != nil {
		// The text of the error may quote the document.
		return nil, errors.New("snapshot: the replica is not readable")
	}
	if rec.ID != id {
		return nil, errors.New("snapshot: the replica is of another machine")
	}
	return New(rec), nil
}

// Observed returns the number of the newest state of the accounts that is known; see
// store.Machine.
func (m *Machine) Observed() int64 {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	return m.observed
}

// Catalog returns what the operator's source changes of the static catalogue; nil without
// one.
func (m *Machine) Catalog() *catalog.Update { return m.prices.current() }

// SetCatalog sets the Catalog of a machine of a test.
func (m *Machine) SetCatalog(u *catalog.Update) { m.prices = &prices{update: u} }

// indexedKey is a key by its digest.
type indexedKey struct {
	*store.Key
	digest  [32]byte
	until   int64 // Unix milliseconds; 0 for the key's current text
	checked bool  // the check digits of its text are right; guarded by Local's lock
}

// FindKey returns the key with this SHA-256 digest, or nil: also by the text that a
// rotation has replaced, while that is valid. The index leads to it, the comparison in
// constant time decides. now is called for such a text only.
func (m *Machine) FindKey(digest [32]byte, now func() time.Time) *store.Key {
	if k := m.findKey(digest); k != nil && k.valid(now) {
		return k.Key
	}
	return nil
}

// valid reports whether the text of the key is valid.
func (k *indexedKey) valid(now func() time.Time) bool {
	return k.until == 0 || k.until > now().UnixMilli()
}

func (m *Machine) findKey(digest [32]byte) *indexedKey {
	k := m.keys[digest]
	if k == nil || subtle.ConstantTimeCompare(k.digest[:], digest[:]) != 1 {
		return nil
	}
	return k
}

// CheckedKey is FindKey for a key that KeyChecked was called for.
func (m *Machine) CheckedKey(digest [32]byte, now func() time.Time) *store.Key {
	k := m.findKey(digest)
	if k == nil {
		return nil
	}
	m.Local.mu.Lock()
	checked := k.checked
	m.Local.mu.Unlock()
	if !checked || !k.valid(now) {
		return nil
	}
	return k.Key
}

// KeyChecked notes that the check digits of the key with this digest are right, which
// does not change: they are computed once for a snapshot. Whether the key may be used
// is judged for each call.
func (m *Machine) KeyChecked(digest [32]byte) {
	if k := m.findKey(digest); k != nil {
		m.Local.mu.Lock()
		k.checked = true
		m.Local.mu.Unlock()
	}
}

// Connection returns a connection by id, active or not, or nil.
func (m *Machine) Connection(id string) *store.Connection { return m.conns[id] }

// Active returns the active connections of a provider in stored order.
func (m *Machine) Active(provider string) []*store.Connection { return m.active[provider] }

// Providers returns the provider ids that have an active connection, in the
// order of the first one of each.
func (m *Machine) Providers() []string { return m.provs }

// Combo returns the combo of this name, or nil.
func (m *Machine) Combo(name string) *store.Combo { return m.combos[name] }

// Alias returns the full model string that the alias map has for a name, or "".
func (m *Machine) Alias(name string) string { return m.ModelAliases[name] }

// Hidden reports whether a model is disabled under an alias or a provider id.
func (m *Machine) Hidden(under, id string) bool {
	hidden := m.disabled[under]
	if len(hidden) == 0 {
		return false
	}
	_, ok := hidden[store.FoldName(id)]
	return ok
}

// Visible returns the connections of a provider through which a model may be
// called: those for which it is not disabled under the connection's prefix, the
// provider's alias or the provider's id. ids are the names of the model at the
// provider, with or without one of these in front.
func (m *Machine) Visible(alias string, conns []*store.Connection, ids ...string) []*store.Connection {
	if len(m.disabled) == 0 {
		return conns
	}
	for i, c := range conns {
		if !m.hides(alias, c, ids) {
			continue
		}
		visible := append(make([]*store.Connection, 0, len(conns)), conns[:i]...)
		for _, c := range conns[i+1:] {
			if !m.hides(alias, c, ids) {
				visible = append(visible, c)
			}
		}
		return visible
	}
	return conns
}

func (m *Machine) hides(alias string, c *store.Connection, ids []string) bool {
	names := [...]string{strings.TrimSpace(c.Data.Prefix), alias, c.Provider}
	folded := [...]string{store.FoldName(names[0]), store.FoldName(alias), store.FoldName(c.Provider)}
	for _, under := range names {
		hidden := m.disabled[under]
		if under == "" || len(hidden) == 0 {
			continue
		}
		for _, id := range ids {
			id = store.FoldName(id)
			for _, name := range folded {
				if name != "" {
					id = strings.TrimPrefix(id, name+"/")
				}
			}
			if _, ok := hidden[id]; ok {
				return true
			}
			for _, name := range folded {
				if _, ok := hidden[name+"/"+id]; ok {
					return true
				}
			}
		}
	}
	return false
}
