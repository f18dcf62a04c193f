package models

import (
	"cmp"
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/store"
)

// scope is a provider as a list shows it.
type scope struct {
	row    *provider.Descriptor
	conn   *store.Connection // nil in the static catalogue
	out    string            // output alias
	static string            // the provider's own alias
	known  bool              // the static catalogue has models of the provider
	hidden map[string]bool   // folded upstream ids on the disabled list; nil when none
	// express reports that the provider's connections call Vertex AI with an API key
	// alone: see provider.ListedInExpress.
	express bool
}

// newScope finds the output alias of a provider: the prefix of the connection,
// else the provider's alias. See docs/reference/spec.md, 4.1.4.1.
func newScope(m *store.Machine, row *provider.Descriptor, conn *store.Connection) *scope {
	s := &scope{row: row, conn: conn, static: row.Alias, known: catalog.Has(row.Alias)}
	s.express = row.Express(conn)
	if conn != nil {
		s.out = strings.TrimSpace(conn.Data.Prefix)
	}
	s.out = cmp.Or(s.out, strings.TrimSpace(row.Alias))
	if m == nil {
		return s
	}
	for i := range m.Disabled {
		d := &m.Disabled[i]
		if !s.named(strings.TrimSpace(d.ProviderAlias)) {
			continue
		}
		for _, id := range d.IDs {
			if s.hidden == nil {
				s.hidden = map[string]bool{}
			}
			id = strings.TrimSpace(id)
			s.hidden[store.FoldName(id)] = true
			s.hidden[store.FoldName(s.cut(id))] = true
		}
	}
	return s
}

// hides reports whether an upstream id is on the disabled list.
func (s *scope) hides(id string) bool { return s.hidden != nil && s.hidden[store.FoldName(id)] }

// named reports whether name is one of the provider's names: the output alias,
// the static alias or the provider id.
func (s *scope) named(name string) bool {
	return name != "" && (name == s.out || name == s.static || name == s.row.ID)
}

// cut removes a leading "<name>/" of the provider from an id.
func (s *scope) cut(id string) string {
	rest, _ := s.cutPrefix(id)
	return rest
}

func (s *scope) cutPrefix(id string) (string, bool) {
	for _, name := range [...]string{s.out, s.static, s.row.ID} {
		if len(id) > len(name) && id[len(name)] == '/' && id[:len(name)] == name {
			return id[len(name)+1:], true
		}
	}
	return id, false
}

// lookup returns what the catalogue knows of a listed id.
func (s *scope) lookup(update *catalog.Update, id string) []catalog.Model {
	if !s.known {
		return nil
	}
	if known := update.Lookup(s.static, id); known != nil {
		return known
	}
	return update.Lookup(s.static, update.UpstreamID(s.static, id))
}

// scopes lists the providers of a machine: the first active connection of
// each, in stored order. See docs/reference/spec.md, 4.1.4.
func scopes(m *store.Machine) []*scope {
	if m == nil {
		return nil
	}
	var list []*scope
next:
	for i := range m.Connections {
		conn := &m.Connections[i]
		if conn.Inactive {
			continue
		}
		for _, s := range list {
			if s.conn.Provider == conn.Provider {
				s.express = s.express && s.row.Express(conn)
				continue next
			}
		}
		row := provider.Lookup(conn.Provider)
		if row == nil {
			// A provider without a descriptor has kind llm and no models of
			// its own (docs/reference/spec.md, 2.8).
			row = &provider.Descriptor{ID: conn.Provider, Alias: conn.Provider, Models: provider.List{None: true}}
		}
		list = append(list, newScope(m, row, conn))
	}
	return list
}

// serves reports whether the provider has one of the kinds.
func serves(row *provider.Descriptor, kinds []catalog.Kind) bool {
	return slices.ContainsFunc(kinds, row.Has)
}

// chatModel reports whether a custom model is a chat model, and whether it is one
// because it reads images. See docs/reference/spec.md, 2.5.
func chatModel(c *store.CustomModel) (chat, vision bool) {
	switch strings.TrimSpace(c.Type) {
	case "", string(catalog.LLM):
		return true, false
	case string(catalog.ImageToText), "image-to-text":
		return true, true
	}
	return false, false
}
