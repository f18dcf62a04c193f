package models

import (
	"context"
	"slices"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/routing"
)

// claudeNames adds to a list of chat models the names that Claude Code's discovery
// shows (catalog.ClaudePrefix): one for each alias, and one for each entry whose id
// does not begin as discovery requires. Names that discovery shows come first,
// because it reads one page of at most 1,000 entries.
func claudeNames(c *auth.Call, list []Entry) []Entry {
	shown := aliasEntries(c, list)
	var others []Entry
	for _, e := range list {
		if catalog.Discoverable(e.ID) {
			shown = append(shown, e)
			continue
		}
		others = append(others, e)
		shown = append(shown, e.as(catalog.ClaudePrefix+e.ID, e.label()))
	}
	return append(shown, others...)
}

// aliasEntries returns an entry for each alias of a chat model, sorted by name.
func aliasEntries(c *auth.Call, list []Entry) []Entry {
	if c.Machine == nil || len(c.Machine.ModelAliases) == 0 {
		return nil
	}
	listed := make(map[string]*Entry, len(list))
	for i := range list {
		listed[list[i].ID] = &list[i]
	}
	var out []Entry
	for name := range c.Machine.ModelAliases {
		to := aliasTarget(c, name)
		if to == nil || listed[name] != nil {
			continue
		}
		id := name
		if !catalog.Discoverable(id) {
			id = catalog.ClaudePrefix + id
		}
		e := listed[to.ID()]
		if e == nil {
			e = entryOf(to)
		}
		out = append(out, e.as(id, name))
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// aliasTarget returns the chat model that a name of the alias map stands for, or nil
// if it stands for none that the key may call.
func aliasTarget(c *auth.Call, name string) *routing.Target {
	if c.Machine == nil || !strings.Contains(c.Machine.Alias(name), "/") || c.Machine.Combo(name) != nil {
		return nil
	}
	targets, err := routing.Resolve(name, c.Machine, catalog.LLM, nil)
	if err != nil {
		return nil
	}
	to := &targets[0]
	if kind := to.Kind; kind != catalog.LLM && (kind != "" || infer(c.Machine.Catalog(), to.Model) != catalog.LLM) {
		return nil
	}
	if !auth.AllowsModel(c.Key, name) && !auth.AllowsModel(c.Key, to.ID()) {
		return nil
	}
	return to
}

// entryOf returns an entry for a chat model that no list has, such as one under the
// prefix of a provider's second account.
func entryOf(to *routing.Target) *Entry {
	return &Entry{ID: to.ID(), OwnedBy: to.Alias, Kind: catalog.LLM, Model: blank(catalog.LLM)}
}

// claudeEntry returns the entry of a name that claudeNames adds, or nil.
func (h *Handler) claudeEntry(ctx context.Context, c *auth.Call, id string) (*Entry, view) {
	name := catalog.PlainName(id)
	if name == id && !catalog.Discoverable(id) {
		return nil, view{}
	}
	label := name
	var e *Entry
	var v view
	if name != id {
		if e, v = h.entry(ctx, c, name, segments[0].kinds); e != nil {
			label = e.label()
		}
	}
	if e == nil {
		to := aliasTarget(c, name)
		if to == nil {
			return nil, v
		}
		if e, v = h.entry(ctx, c, to.ID(), segments[0].kinds); e == nil {
			e = entryOf(to)
		}
	}
	named := e.as(id, label)
	return &named, v
}

// as returns the entry under another id and with a name for people.
func (e *Entry) as(id, name string) Entry {
	m := *e.Model
	m.Name = name
	return Entry{ID: id, OwnedBy: e.OwnedBy, Kind: e.Kind, Model: &m, row: e.row}
}

// label returns the text that distinguishes an entry from those of other providers.
func (e *Entry) label() string {
	if e.Model.Name == "" {
		return e.ID
	}
	return e.Model.Name + " (" + e.OwnedBy + ")"
}
