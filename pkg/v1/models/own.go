package models

import (
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/store"
)

// own adds the gateway's own fetch to a list that is asked for web fetch, as
// the last entry. It needs no connection, so it is listed for every machine
// and without one; not where it is disabled, or where a connection has taken
// its name as a prefix.
func own(m *store.Machine, kinds []catalog.Kind, list []Entry) []Entry {
	b := builder{m: m, kinds: kinds}
	if !b.wants(catalog.WebFetch) || m != nil && b.hidden(provider.Own, "fetch") {
		return list
	}
	for _, s := range scopes(m) {
		if s.out == provider.Own {
			return list
		}
	}
	return append(list, Entry{ID: provider.Own + "/fetch", OwnedBy: provider.Own, Kind: catalog.WebFetch,
		Model: blank("")})
}

// ownEntry is the entry of the gateway's own fetch under an id of its, or nil.
func ownEntry(c *auth.Call, id string) *Entry {
	var m *store.Machine
	if c.Machine != nil {
		m = c.Machine.Machine
	}
	for _, e := range allowed(c.Key, own(m, everything, nil)) {
		if e.ID == id {
			return &e
		}
	}
	return nil
}
