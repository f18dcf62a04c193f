package models

import (
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/store"
)

const maxNesting = 4 // of combos (docs/reference/reliability.md, T45)

// combos lists the combos of the requested kinds. docs/reference/spec.md,
// 4.1.2. A chat combo carries the smallest limits of its members and the
// capabilities they share; where a member's are unknown, so are the combo's.
func (b *builder) combos() {
	if b.m == nil {
		return
	}
	for i := range b.m.Combos {
		c := &b.m.Combos[i]
		kind := comboKind(c)
		if !b.wants(kind) || b.only != "" && b.only != c.Name {
			continue
		}
		var m *catalog.Model
		if kind == catalog.LLM {
			m = b.group(c, 0)
		}
		b.add(c.Name, "combo", kind, m)
	}
}

func comboKind(c *store.Combo) catalog.Kind {
	if c.Kind == "" {
		return catalog.LLM
	}
	return catalog.Kind(c.Kind)
}

// group returns what the members of a combo have in common, or nil when nothing
// is known.
func (b *builder) group(c *store.Combo, depth int) *catalog.Model {
	var all *catalog.Model
	for _, name := range c.Models {
		m := b.member(name, depth)
		if m == nil {
			m = new(catalog.Model)
		}
		if all == nil {
			all = &catalog.Model{Context: m.Context, MaxOutput: m.MaxOutput, Caps: m.Caps, Input: m.Input, Output: m.Output}
			continue
		}
		all.Context = smaller(all.Context, m.Context)
		all.MaxOutput = smaller(all.MaxOutput, m.MaxOutput)
		all.Caps = all.Caps.Shared(m.Caps)
		all.Input &= m.Input
		all.Output &= m.Output
	}
	return all
}

// smaller returns the smaller of two limits, of which 0 is unknown.
func smaller(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return min(a, b)
}

// member returns what is known of one member, found as pkg/routing finds it: a
// combo, "alias/model", a name of the alias map, a custom model's id, or a
// static model's. See docs/reference/spec.md, 4.5.
func (b *builder) member(name string, depth int) *catalog.Model {
	if depth >= maxNesting {
		return nil
	}
	for i := range b.m.Combos {
		if b.m.Combos[i].Name == name {
			return b.group(&b.m.Combos[i], depth+1)
		}
	}
	if m, ok := b.qualified(name); ok {
		return m
	}
	if full := b.m.ModelAliases[name]; strings.Contains(full, "/") {
		m, _ := b.qualified(full)
		return m
	}
	for i := range b.m.CustomModels {
		c := &b.m.CustomModels[i]
		if strings.TrimSpace(c.ID) != name {
			continue
		}
		if m, ok := b.qualified(strings.TrimSpace(c.ProviderAlias) + "/" + name); ok {
			return m
		}
	}
	for _, f := range b.update.Find(name) {
		for _, s := range b.scopes {
			if s.static == f.Alias {
				return b.describe(s, name)
			}
		}
	}
	return nil
}

// qualified returns what is known of "alias/model", and whether alias is one.
func (b *builder) qualified(name string) (*catalog.Model, bool) {
	for _, s := range b.scopes {
		if id, ok := s.cutPrefix(name); ok {
			return b.describe(s, id), true
		}
	}
	alias, id, ok := strings.Cut(name, "/")
	if !ok {
		return nil, false
	}
	row := provider.ByAlias(alias)
	if row == nil {
		row = provider.Lookup(alias)
	}
	if row == nil {
		return nil, false
	}
	return b.describe(newScope(b.m, row, nil), id), true
}

// describe returns what custom models, the upstream and the static catalogue
// know of a provider's chat model, in that order, or nil.
func (b *builder) describe(s *scope, id string) *catalog.Model {
	var m *catalog.Model
	for _, k := range s.lookup(b.update, id) {
		if m == nil || k.Kind == catalog.LLM {
			m = &k
		}
	}
	if s.conn != nil {
		if l := b.live[s.conn.ID]; l != nil {
			for i := range l.Models {
				if s.cut(l.Models[i].ID) != id {
					continue
				}
				if m == nil {
					m = &l.Models[i]
				} else {
					m = merge(&l.Models[i], m)
				}
				break
			}
		}
	}
	for i := range b.m.CustomModels {
		c := &b.m.CustomModels[i]
		if strings.TrimSpace(c.ID) == id && s.named(strings.TrimSpace(c.ProviderAlias)) {
			return custom(c, m)
		}
	}
	return m
}
