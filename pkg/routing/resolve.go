package routing

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// Bounds of a resolution (docs/reference/reliability.md, T45). Saved
// records were checked against them; they also hold for records that were not.
const (
	MaxDepth   = 4  // combos and aliases within each other
	MaxTargets = 16 // members in all
)

// maxModelString is the longest model string looked at: an alias, a slash and
// a model id.
const maxModelString = 64 + 1 + 256

// Resolve returns the upstream models that a model string names for a machine,
// in the order to try them: one, or a combo's members. Each has at least one
// active connection.
//
// The string is, in this order: a combo's name; alias/model, where alias is a
// connection's prefix, a provider's alias or its id; a name of the alias map;
// a custom model's id; a plain Claude name for which the machine's settings name
// a model; a static model's id, where kind picks between rows. For web search and
// fetch it may be a provider alone. catalog.ClaudePrefix in front means nothing.
//
// The error is an *apierr.Error: 400 for a string that names nothing or breaks
// a rule, and for a provider without an active connection; 404
// model_not_found for a model that is disabled. A combo leaves out members that
// fail and has the first one's error when all do. Its strategy orders them, for the
// session of the call where it asks for that; nil is a call without one.
func Resolve(model string, m *snapshot.Machine, kind catalog.Kind, session *Session) ([]Target, error) {
	update := m.Catalog()
	key := snapshot.Derived{Kind: kind, Model: model, At: update.At()}
	if targets, ok := m.Derived(key).([]Target); ok {
		return slices.Clone(targets), nil
	}
	r := resolution{m: m, update: update, kind: kind, session: session}
	if err := r.add(model, 0); err != nil {
		return nil, err
	}
	if !r.turns {
		key.Model = strings.Clone(model) // it may be a part of a body
		m.KeepDerived(key, slices.Clone(r.out))
	}
	return r.out, nil
}

type resolution struct {
	m       *snapshot.Machine
	update  *catalog.Update
	kind    catalog.Kind
	session *Session
	out     []Target
	path    [MaxDepth]string // names being expanded, for loops
	// broken reports that the records themselves are at fault, so that no other
	// member of a combo is tried.
	broken bool
	// turns reports that the next call may get another result.
	turns bool
	// mapped reports that the settings' model for a Claude name is being
	// resolved. It may be a plain Claude name itself.
	mapped bool
}

// add resolves one string and appends its targets.
func (r *resolution) add(model string, depth int) error {
	model = catalog.PlainName(model)
	if len(model) == 0 || len(model) > maxModelString {
		return invalid()
	}
	if combo := r.m.Combo(model); combo != nil {
		return r.combo(combo, depth)
	}
	alias, rest, slash := strings.Cut(model, "/")
	if slash {
		if d, out, conns := r.provider(alias); d != nil {
			return r.target(d, out, conns, rest)
		}
	} else if r.kind == catalog.WebSearch || r.kind == catalog.WebFetch {
		if d, out, conns := r.provider(alias); d != nil {
			if r.kind == catalog.WebFetch {
				return r.target(d, out, conns, "fetch")
			}
			return r.target(d, out, conns, "search")
		}
	}
	if full := r.m.Alias(model); strings.IndexByte(full, '/') >= 0 {
		if err := r.enter(model, depth); err != nil {
			return err
		}
		before := len(r.out)
		err := r.add(full, depth+1)
		r.lead(before, model, depth)
		return err
	}
	for i := range r.m.CustomModels {
		c := &r.m.CustomModels[i]
		if c.ID != model && strings.TrimSpace(c.ID) != model {
			continue
		}
		if d, out, conns := r.provider(strings.TrimSpace(c.ProviderAlias)); d != nil {
			return r.target(d, out, conns, model)
		}
	}
	// The member of a combo that the settings name is Anthropic's own model.
	if to := r.m.Settings.ClaudeModel(model); to != "" && !r.mapped &&
		!slices.Contains(r.path[:depth], catalog.PlainName(to)) {
		if err := r.enter(model, depth); err != nil {
			return err
		}
		r.mapped = true
		before := len(r.out)
		err := r.add(to, depth+1)
		r.mapped = false
		r.lead(before, model, depth)
		return err
	}
	return r.static(model)
}

// enter notes that a name is being expanded.
func (r *resolution) enter(name string, depth int) error {
	if depth >= MaxDepth {
		r.broken = true
		return apierr.Invalid("model", "The combos and aliases of this model are nested more than %d deep.", MaxDepth)
	}
	for _, n := range r.path[:depth] {
		if n == name {
			r.broken = true
			return apierr.Invalid("model", "The model is a combo or an alias that leads back to itself.")
		}
	}
	r.path[depth] = name
	return nil
}

// lead notes that a combo or an alias has led to the targets from an index on.
func (r *resolution) lead(from int, name string, depth int) {
	if depth == 0 || len(r.m.Budgets) == 0 {
		return
	}
	for i := range r.out[from:] {
		to := &r.out[from+i]
		to.through = append(to.through, strings.Clone(name))
	}
}

func (r *resolution) combo(c *store.Combo, depth int) error {
	if err := r.enter(c.Name, depth); err != nil {
		return err
	}
	n := len(c.Models)
	if n == 0 {
		return apierr.Invalid("model", "This combo has no models. Add one on the page Combos.")
	}
	start := 0
	if n > MaxTargets {
		return r.tooMany()
	}
	if c.Strategy == store.RoundRobin {
		// A combo whose members only stand by takes no turn: where two take
		// turns within each other, some members would never be the first.
		turn := r.m.NextTurn
		if len(r.out) == 0 {
			turn = r.m.Turn
		}
		r.turns = true
		start = int(turn("combo/"+c.Name) % uint32(n))
	}
	before := len(r.out)
	var first error
	var ends [MaxTargets]int
	for i := range n {
		err := r.add(c.Models[(start+i)%n], depth+1)
		switch {
		case r.broken:
			return err
		case len(r.out) > MaxTargets:
			return r.tooMany()
		case first == nil:
			first = err
		}
		ends[i] = len(r.out)
	}
	if len(r.out) == before {
		return first
	}
	r.lead(before, c.Name, depth)
	switch c.Strategy {
	case "", store.Fallback, store.Priority, store.RoundRobin:
	default:
		r.members(c, before, ends[:n])
	}
	Group(r.out[before:], c.On)
	return nil
}

// provider finds who is meant by an alias: its descriptor, the output alias,
// and the active connections that count. Without a match d is nil.
func (r *resolution) provider(alias string) (d *provider.Descriptor, out string, conns []*store.Connection) {
	if alias == "" {
		return nil, "", nil
	}
	for _, id := range r.m.Providers() {
		all := r.m.Active(id)
		n := 0
		for _, c := range all {
			if prefixed(c, alias) {
				n++
			}
		}
		if n == 0 {
			continue
		}
		if d = provider.Lookup(id); d == nil {
			continue
		}
		if n == len(all) {
			return d, alias, all
		}
		conns = make([]*store.Connection, 0, n)
		for _, c := range all {
			if prefixed(c, alias) {
				conns = append(conns, c)
			}
		}
		return d, alias, conns
	}
	if d = provider.ByAlias(alias); d == nil {
		if d = provider.Lookup(alias); d == nil {
			return nil, "", nil
		}
	}
	return d, d.Alias, r.m.Active(d.ID)
}

func prefixed(c *store.Connection, alias string) bool {
	p := c.Data.Prefix
	return p == alias || len(p) > len(alias) && strings.TrimSpace(p) == alias
}

// target appends one upstream model.
func (r *resolution) target(d *provider.Descriptor, out string, conns []*store.Connection, model string) error {
	if provider.CheckModel(model) != nil {
		return invalid()
	}
	id := model
	if !d.Compatible {
		id = r.update.UpstreamID(d.Alias, model)
	}
	visible := r.m.Visible(d.Alias, conns, model, id)
	if len(conns) > len(visible) && len(visible) == 0 || len(conns) == 0 && (r.hidden(d, model) || r.hidden(d, id)) {
		return apierr.New(404, "model_not_found", "The model is disabled. Enable it on the page Models, or choose another one of GET /v1/models.")
	}
	conns = visible
	if len(conns) == 0 {
		if e := r.paused(out, id, func(c *store.Connection) bool { return c.Provider == d.ID }); e != nil {
			return e
		}
		e := apierr.Invalid("model", "No %s account is connected: connect one, or choose another model.", d.Name)
		e.Code = "no_credentials"
		return e
	}
	kind, _ := r.update.KindOf(d.Alias, id)
	id = strings.Clone(id)
	out = strings.Clone(out)
	r.out = append(r.out, Target{
		Provider: d, Alias: out, Model: id, Kind: kind, Connections: conns,
		fixed: &fixed{provider: d, alias: out, model: id, id: out + "/" + id},
	})
	return nil
}

// Paused is the refusal of a model whose accounts are all inactive. Provider and Model are
// what the call would have been recorded under.
type Paused struct {
	Provider, Model string
	err             *apierr.Error
}

func (p *Paused) Error() string { return p.err.Error() }

// Unwrap returns the client's error.
func (p *Paused) Unwrap() error { return p.err }

// paused returns the error for accounts that are all inactive: the first one, and how many
// more. It returns nil without any.
func (r *resolution) paused(alias, model string, meant func(c *store.Connection) bool) error {
	var first *store.Connection
	more := -1
	for i := range r.m.Connections {
		if c := &r.m.Connections[i]; c.Inactive && meant(c) {
			first = cmp.Or(first, c)
			more++
		}
	}
	if first == nil {
		return nil
	}
	text, name := "The account %s of this model is paused.", cmp.Or(first.Name, first.ID)
	if more > 0 {
		text = "The accounts of this model are paused: %s and " + strconv.Itoa(more) + " more."
	}
	word := name
	if strings.ContainsFunc(word, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-", c)
	}) {
		word = first.ID
	}
	e := apierr.Invalid("model", text+" Enable it on the page Providers, or with weir accounts resume %s.",
		strconv.Quote(name), word)
	e.Code = "no_credentials"
	return &Paused{first.Provider, strings.Clone(alias + "/" + model), e}
}

// hidden reports whether a model of a provider without a connection is disabled.
func (r *resolution) hidden(d *provider.Descriptor, id string) bool {
	return r.m.Hidden(d.Alias, id) || r.m.Hidden(d.ID, id)
}

// static resolves a bare id by the catalogue: a row of the wanted kind that has a
// connection goes before other rows with one, and those before rows without. A row that
// the operator's source adds does not go before one of the build with a connection.
func (r *resolution) static(model string) error {
	rows := r.update.Find(model)
	var best *provider.Descriptor
	rank, built := 0, false
	for i := range rows {
		d := provider.ByAlias(rows[i].Alias)
		if d == nil || rows[i].Added && built {
			continue
		}
		n := 1
		if len(r.m.Active(d.ID)) > 0 {
			n = 3
		}
		if rows[i].Kind == r.kind {
			n++
		}
		if n > rank {
			best, rank = d, n
			built = n >= 3 && !rows[i].Added
		}
	}
	if best == nil {
		return r.unknown(model)
	}
	err := r.target(best, best.Alias, r.m.Active(best.ID), model)
	var e *apierr.Error
	if errors.As(err, &e) && e.Code == "no_credentials" && strings.HasPrefix(model, "claude-") {
		// Claude Code calls such names for its background work.
		e.Message += " Or choose another model for Claude's names on the page Settings."
	}
	return err
}

// unknown returns the error for a name that no model has, with the most similar
// name, if any.
func (r *resolution) unknown(model string) error {
	var names []string
	for i := range r.m.Combos {
		names = append(names, r.m.Combos[i].Name)
	}
	names = slices.AppendSeq(names, maps.Keys(r.m.ModelAliases))
	slices.Sort(names)
	for i := range r.m.CustomModels {
		names = append(names, r.m.CustomModels[i].ID)
	}
	alias, rest, slash := strings.Cut(model, "/")
	if slash && alias != "" {
		if e := r.paused(alias, rest, func(c *store.Connection) bool { return prefixed(c, alias) }); e != nil {
			return e
		}
	}
	for _, id := range r.m.Providers() {
		d := provider.Lookup(id)
		if d == nil {
			continue
		}
		out := d.Alias
		if conns := r.m.Active(id); len(conns) > 0 && strings.TrimSpace(conns[0].Data.Prefix) != "" {
			out = strings.TrimSpace(conns[0].Data.Prefix)
		}
		if slash {
			names = append(names, out+"/"+rest)
			continue
		}
		for _, m := range r.update.Models(d.Alias) {
			names = append(names, m.ID)
		}
	}
	text := "Unknown model " + strconv.Quote(apierr.ShortName(model)) + "."
	if near := catalog.Closest(model, names); near != "" {
		text += " Did you mean " + strconv.Quote(near) + "?"
	} else if slash && provider.ByAlias(alias) == nil {
		text += " No provider or prefix is named " + strconv.Quote(apierr.ShortName(alias)) + "."
	}
	e := apierr.Invalid("model", "%s GET /v1/models lists those that this API key can call.", text)
	e.Code = "model_not_found"
	return e
}

func (r *resolution) tooMany() error {
	r.broken = true
	return apierr.Invalid("model", "The combo has more than %d members.", MaxTargets)
}

func invalid() error {
	return apierr.Invalid("model", "The model name is not valid.")
}
