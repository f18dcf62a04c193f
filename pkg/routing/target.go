// Package routing turns a model string into the upstream model it names.
package routing

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// Target is one upstream model and the connections that may serve it.
type Target struct {
	Provider *provider.Descriptor
	Alias    string       // output alias: a connection's prefix or the provider's alias
	Model    string       // upstream model id, without the alias
	Kind     catalog.Kind // "" when unknown
	// Connections are the active ones of the provider, in stored order.
	Connections []*store.Connection
	// TooLong reports that the request is known not to fit into the model's
	// context: the target is left out.
	TooLong bool
	// OutputLimit is the most output tokens of one answer that budgets have reserved; 0 if
	// that is the model's own limit, or if no budget counts them.
	OutputLimit int64

	// through are the combos and aliases that led from the name of the call to the target,
	// without that name. They are noted for a machine with budgets.
	through []string

	group *group // nil for a target that is not of a combo
	fixed *fixed // nil for a target that was not resolved
}

// fixed are texts that follow from a target and its connections. They live as long as
// the snapshot that the target was resolved with, whose calls share them.
type fixed struct {
	provider         *provider.Descriptor // of the target that was resolved,
	alias, model, id string               // which its user may change

	mu        sync.Mutex // of the fields that follow
	addresses []address

	names []string // see Target.names; nil until they are needed

	owned bool // own is the machine's own price of the model, "" for none
	own   catalog.Price

	priced   bool  // price is that of the model,
	pricedAt int64 // by the prices of the operator's source of this time
	price    catalog.Price
}

type address struct {
	conn                  *store.Connection
	endpoint, method, url string
}

// maxAddresses bounds the addresses that are kept of a target.
const maxAddresses = 16

// ID is the public id, "<alias>/<model>".
func (t *Target) ID() string {
	if f := t.fixed; f != nil && f.alias == t.Alias && f.model == t.Model {
		return f.id
	}
	return t.Alias + "/" + t.Model
}

// Charged reports whether a budget covers the calls of a key to the target: by any of its
// public names, by the name that the client asked for, or by a combo or alias in between.
func (t *Target) Charged(b *store.Budget, keyID, asked string) bool {
	if b.KeyID != "" && b.KeyID != keyID {
		return false
	}
	return len(b.Models) == 0 || b.Names(asked) || slices.ContainsFunc(t.names(), b.Names) ||
		slices.ContainsFunc(t.through, b.Names)
}

// names returns the public ids of the target: under its alias, under the alias and the
// id of its provider, and under the prefixes of its connections. A model that is limited
// by one of them is limited under all.
func (t *Target) names() []string {
	f := t.resolved()
	if f == nil {
		return t.allNames()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil {
		f.names = t.allNames()
	}
	return f.names
}

// allNames makes the result of names.
func (t *Target) allNames() []string {
	aliases := []string{t.Alias, t.Provider.Alias, t.Provider.ID}
	for _, c := range t.Connections {
		if p := strings.TrimSpace(c.Data.Prefix); p != "" {
			aliases = append(aliases, p)
		}
	}
	slices.Sort(aliases)
	aliases = slices.Compact(aliases)
	for i := range aliases {
		aliases[i] += "/" + t.Model
	}
	return aliases
}

// resolved returns the fixed texts of the target. It returns nil if the target was not
// resolved, or was changed since.
func (t *Target) resolved() *fixed {
	if f := t.fixed; f != nil && f.provider == t.Provider && f.alias == t.Alias && f.model == t.Model {
		return f
	}
	return nil
}

// Endpoint is Endpoint of the target's provider for its model.
func (t *Target) Endpoint(conn *store.Connection, name string) (method, url string, err error) {
	f := t.fixed
	if f == nil || f.provider != t.Provider || f.model != t.Model {
		return t.Provider.Endpoint(conn, name, t.Model)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.addresses {
		if a := &f.addresses[i]; a.conn == conn && a.endpoint == name {
			return a.method, a.url, nil
		}
	}
	method, url, err = t.Provider.Endpoint(conn, name, t.Model)
	if err == nil && len(f.addresses) < maxAddresses {
		f.addresses = append(f.addresses, address{conn, name, method, url})
	}
	return method, url, err
}

// Limits returns the context and the longest answer of the model in tokens, as the
// machine's custom models, the catalogue, or else the server's own list state them. 0 is
// unknown.
func (t *Target) Limits(m *snapshot.Machine) (context, output int64) {
	for _, model := range m.Catalog().Facts(t.Provider.Alias, t.Model) {
		if model.Kind == catalog.LLM || context == 0 {
			context, output = int64(model.Context), int64(model.MaxOutput)
		}
	}
	for _, conn := range t.Connections {
		if context == 0 && output == 0 {
			context, output = m.Listed(conn.ID, t.Model)
		}
	}
	for i := range m.CustomModels {
		c := &m.CustomModels[i]
		if strings.TrimSpace(c.ID) == t.Model {
			switch strings.TrimSpace(c.ProviderAlias) {
			case t.Alias, t.Provider.Alias, t.Provider.ID:
				return cmp.Or(int64(c.ContextLength), context), cmp.Or(int64(c.MaxTokens), output)
			}
		}
	}
	return context, output
}

// Price returns what the model costs the machine, or "" if that is not known: its own
// price, that of the operator's source, or the catalogue's.
func (t *Target) Price(m *snapshot.Machine) catalog.Price {
	if p := t.OwnPrice(m); p != "" {
		return p
	}
	if m == nil {
		return t.listed(nil)
	}
	f, update := t.fixed, m.Catalog()
	if f == nil || f.provider != t.Provider || f.model != t.Model {
		return t.listed(update)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := update.At(); !f.priced || f.pricedAt != at {
		f.priced, f.pricedAt, f.price = true, at, t.listed(update)
	}
	return f.price
}

// FullPrice returns the price of the model with the rates of tools that the vendor runs.
func (t *Target) FullPrice(m *snapshot.Machine) catalog.Price {
	return t.Price(m).With(catalog.ToolPrice(t.Provider.Alias, t.Model))
}

// listed returns the price of the catalogue with its update. A model that is not listed
// as it is written is looked up in lower case: some providers ignore the case.
func (t *Target) listed(update *catalog.Update) catalog.Price {
	p := update.PriceOf(t.Provider.Alias, t.Model)
	if p == "" {
		if plain := strings.ToLower(strings.TrimSpace(t.Model)); plain != t.Model {
			return update.PriceOf(t.Provider.Alias, plain)
		}
	}
	return p
}

// OwnPrice returns the price that the machine has set for the model under one of its
// names, or "". The id of the target goes first.
func (t *Target) OwnPrice(m *snapshot.Machine) catalog.Price {
	if m == nil || len(m.Settings.ModelPrices) == 0 {
		return ""
	}
	f := t.resolved()
	if f == nil {
		return t.ownPrice(m.Settings.ModelPrices)
	}
	f.mu.Lock()
	owned, own := f.owned, f.own
	f.mu.Unlock()
	if !owned {
		own = t.ownPrice(m.Settings.ModelPrices) // takes the lock for the names
		f.mu.Lock()
		f.owned, f.own = true, own
		f.mu.Unlock()
	}
	return own
}

func (t *Target) ownPrice(prices map[string]string) catalog.Price {
	if p, ok := prices[t.ID()]; ok {
		return catalog.Price(p)
	}
	set := ""
	for _, name := range t.names() {
		for id := range prices {
			if store.SameName(id, name) && (set == "" || id < set) {
				set = id
			}
		}
	}
	return catalog.Price(prices[set])
}
