package models

import (
	"maps"
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/store"
)

// Live is what an upstream listed itself.
type Live struct {
	Models  []catalog.Model // Kind is empty if the upstream did not state it
	Partial bool            // there are more
}

// List builds the model list of a machine for a set of kinds; of a nil machine
// it is the catalogue. update is what the operator's source changes of the static
// catalogue, or nil. live holds the upstreams' own lists by connection id. It does no
// I/O, and keeps the order of docs/reference/spec.md, 4.1: combos, then each provider's
// models, then its web entries; the first entry of an id wins.
func List(m *store.Machine, update *catalog.Update, kinds []catalog.Kind, live map[string]*Live) []Entry {
	b := builder{m: m, update: update, kinds: kinds, live: live, scopes: scopes(m)}
	b.build()
	return b.list
}

func (b *builder) build() {
	n := 16
	if b.only == "" {
		n = b.guess()
	}
	b.seen, b.list = make(map[string]bool, n), make([]Entry, 0, n)
	b.combos()
	if len(b.scopes) == 0 {
		b.static()
	}
	for _, s := range b.scopes {
		if serves(s.row, b.kinds) && !b.skips(s.out) {
			b.provider(s)
		}
	}
}

// guess returns about as many as there will be entries, so that nothing grows.
func (b *builder) guess() int {
	n := 16
	if b.m != nil {
		n += len(b.m.Combos) + len(b.m.CustomModels) + len(b.m.ModelAliases)
	}
	if len(b.scopes) == 0 && b.wants(catalog.LLM) {
		return n + 1100
	}
	for _, s := range b.scopes {
		if l := b.live[s.conn.ID]; l != nil {
			n += len(l.Models)
		} else {
			n += max(len(s.conn.Data.EnabledModels), 32)
		}
	}
	return n
}

// builder collects the entries of one list.
type builder struct {
	m      *store.Machine
	update *catalog.Update
	kinds  []catalog.Kind
	live   map[string]*Live
	scopes []*scope
	list   []Entry
	seen   map[string]bool
	// only, when not empty, is the one id that matters: providers and combos
	// that cannot list it are left out.
	only string
}

// skips reports whether a provider of this output alias cannot list b.only.
func (b *builder) skips(out string) bool {
	return b.only != "" && !(len(b.only) > len(out) && b.only[len(out)] == '/' && b.only[:len(out)] == out)
}

func (b *builder) wants(k catalog.Kind) bool {
	return slices.Contains(b.kinds, k)
}

// add appends an entry unless its id is empty or listed.
// See docs/reference/spec.md, 4.1.5.
func (b *builder) add(id, owner string, kind catalog.Kind, m *catalog.Model) bool {
	if id == "" || b.seen[id] {
		return false
	}
	b.seen[id] = true
	if m == nil {
		m = blank(kind)
	}
	b.list = append(b.list, Entry{ID: id, OwnedBy: owner, Kind: kind, Model: m})
	return true
}

// blanks are models of which nothing is known but the kind.
var blanks = []catalog.Model{
	{}, {Kind: catalog.LLM}, {Kind: catalog.Embedding}, {Kind: catalog.Image}, {Kind: catalog.TTS}, {Kind: catalog.Video},
}

func blank(kind catalog.Kind) *catalog.Model {
	for i := range blanks {
		if blanks[i].Kind == kind {
			return &blanks[i]
		}
	}
	return &blanks[0]
}

// static lists the static catalogue and the custom chat models, for a machine
// without active connections. See docs/reference/spec.md, 4.1.3.
func (b *builder) static() {
	for _, row := range provider.All() {
		if !serves(row, b.kinds) || b.skips(row.Alias) {
			continue
		}
		s := newScope(b.m, row, nil)
		models := b.update.Models(row.Alias)
		for i := range models {
			if m := &models[i]; b.wants(m.Kind) && !s.hides(m.ID) && row.Callable(m.Kind, m.ID) {
				b.add(s.out+"/"+m.ID, s.out, m.Kind, m)
			}
		}
	}
	if b.m == nil {
		return
	}
	for i := range b.m.CustomModels {
		c := &b.m.CustomModels[i]
		owner, id := strings.TrimSpace(c.ProviderAlias), strings.TrimSpace(c.ID)
		if owner == "" || id == "" || b.hidden(owner, id) {
			continue
		}
		if kind, ok := b.customKind(c); ok {
			b.add(owner+"/"+id, owner, kind, custom(c, nil))
		}
	}
}

// customKind returns the requested kind that a custom model is listed for: llm
// for chat models, and imageToText too for those that read images.
func (b *builder) customKind(c *store.CustomModel) (catalog.Kind, bool) {
	chat, vision := chatModel(c)
	switch {
	case chat && b.wants(catalog.LLM):
		return catalog.LLM, true
	case vision && b.wants(catalog.ImageToText):
		return catalog.ImageToText, true
	}
	return "", false
}

// hidden reports whether a model of a provider without a connection is disabled.
func (b *builder) hidden(alias, id string) bool {
	row := provider.ByAlias(alias)
	if row == nil {
		row = provider.Lookup(alias)
	}
	if row == nil {
		row = &provider.Descriptor{ID: alias, Alias: alias}
	}
	return newScope(b.m, row, nil).hides(id)
}

// provider lists one provider. See docs/reference/spec.md, 4.1.4.2 to 4.1.4.9.
func (b *builder) provider(s *scope) {
	if ids := enabled(s.conn); ids != nil {
		for _, id := range ids {
			b.examine(s, s.cut(id), nil)
		}
	} else {
		b.catalogue(s)
	}
	for i := range b.m.CustomModels {
		c := &b.m.CustomModels[i]
		if !s.named(strings.TrimSpace(c.ProviderAlias)) {
			continue
		}
		id := strings.TrimSpace(c.ID)
		switch chat, vision := chatModel(c); {
		case vision:
			if kind, ok := b.customKind(c); ok && id != "" && !s.hides(id) {
				b.add(s.out+"/"+id, s.out, kind, custom(c, nil))
			}
		case chat:
			b.examine(s, id, c)
		}
	}
	for _, id := range aliased(b.m, s) {
		b.examine(s, id, nil)
	}
	if s.row.Search && b.wants(catalog.WebSearch) && !s.hides("search") {
		if n := len(b.list); b.add(s.out+"/search", s.out, catalog.WebSearch, nil) {
			b.list[n].row = s.row
		}
	}
	if s.row.Fetch && b.wants(catalog.WebFetch) && !s.hides("fetch") {
		b.add(s.out+"/fetch", s.out, catalog.WebFetch, nil)
	}
}

// catalogue lists what the upstream listed itself and the static models. The
// upstream's list replaces the static one kind by kind: a vendor whose list
// names chat models only keeps its static image models.
func (b *builder) catalogue(s *scope) {
	covered := map[catalog.Kind]bool{}
	if l := b.live[s.conn.ID]; l != nil {
		for i := range l.Models {
			kind := b.upstream(s, &l.Models[i])
			covered[kind] = !l.Partial
		}
	}
	models := b.update.Models(s.static)
	for i := range models {
		m := &models[i]
		id := s.cut(m.ID)
		if id != m.ID && b.update.UpstreamID(s.static, id) != m.ID && catalog.Lookup(s.static, m.ID) == nil {
			continue // an added model that is not called by this name
		}
		if !covered[m.Kind] && b.wants(m.Kind) {
			b.known(s, id, m)
		}
	}
}

// upstream lists a model of the upstream's list and returns its kind, without regard for
// what the operator's source adds, which must not hide models of the build. The upstream's
// facts have precedence over those of the catalogue, except for the kind.
func (b *builder) upstream(s *scope, live *catalog.Model) catalog.Kind {
	id := s.cut(live.ID)
	known := s.lookup(b.update, id)
	m := *live
	if len(known) == 0 {
		if m.Kind == "" {
			m.Kind = infer(b.update, id)
		}
		if m.Price == "" && s.known {
			m.Price = b.update.PriceOf(s.static, id) // of a snapshot
		}
		if b.wants(m.Kind) {
			b.known(s, id, &m)
		}
		return m.Kind
	}
	for i := range known {
		if b.wants(known[i].Kind) {
			b.known(s, id, merge(live, &known[i]))
		}
	}
	if built := s.lookup(nil, id); len(built) > 0 {
		return built[0].Kind
	}
	if m.Kind == "" {
		m.Kind = infer(nil, id)
	}
	return m.Kind
}

// known lists an id whose kind is known and requested, if it can be called.
func (b *builder) known(s *scope, id string, m *catalog.Model) {
	if id != "" && !s.hides(id) && s.row.Callable(m.Kind, id) && (!s.express || provider.ListedInExpress(id)) {
		b.add(s.out+"/"+id, s.out, m.Kind, m)
	}
}

// examine lists an id for its static kind if the catalogue has one, else for
// the kind inferred from its letters, when that is requested.
// See docs/reference/spec.md, 4.1.4.7.
func (b *builder) examine(s *scope, id string, c *store.CustomModel) {
	if id == "" {
		return
	}
	known := s.lookup(b.update, id)
	for i := range known {
		if b.wants(known[i].Kind) {
			b.known(s, id, custom(c, &known[i]))
		}
	}
	if known != nil {
		return
	}
	if kind := infer(b.update, id); b.wants(kind) {
		m := blank(kind)
		if c != nil {
			m = custom(c, m)
		}
		b.known(s, id, m)
	}
}

// infer is docs/reference/spec.md, 4.1.4.7 for an id that its provider's
// catalogue does not know, but for video models of other providers, which are
// no chat models.
func infer(update *catalog.Update, id string) catalog.Kind {
	kind := catalog.InferKind(id)
	if kind == catalog.LLM && update.KnownVideo(id) {
		return catalog.Video
	}
	return kind
}

// enabled returns the non-empty ids that a connection names, or nil; add leaves
// out the repeated ones. See docs/reference/spec.md, 4.1.4.2.
func enabled(conn *store.Connection) []string {
	var ids []string
	for _, id := range conn.Data.EnabledModels {
		if id = strings.TrimSpace(id); id != "" {
			if ids == nil {
				ids = make([]string, 0, len(conn.Data.EnabledModels))
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// names reports whether a connection names its models.
func names(conn *store.Connection) bool {
	return slices.ContainsFunc(conn.Data.EnabledModels, func(id string) bool { return strings.TrimSpace(id) != "" })
}

// aliased returns the ids that the alias map adds to a provider, in the order of
// the alias names. See docs/reference/spec.md, 4.1.4.6.
func aliased(m *store.Machine, s *scope) []string {
	var ids []string
	for _, name := range slices.Sorted(maps.Keys(m.ModelAliases)) {
		if id, ok := s.cutPrefix(strings.TrimSpace(m.ModelAliases[name])); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// custom lays what a user said of a model over what is known of it. c and
// known may be nil.
func custom(c *store.CustomModel, known *catalog.Model) *catalog.Model {
	var m catalog.Model
	if known != nil {
		if c == nil {
			return known
		}
		m = *known
	}
	if c == nil {
		return &m
	}
	if c.Name != "" {
		m.Name = c.Name
	}
	if c.ContextLength > 0 {
		m.Context = c.ContextLength
	}
	if c.MaxTokens > 0 {
		m.MaxOutput = c.MaxTokens
	}
	if _, vision := chatModel(c); vision {
		m.Kind = catalog.LLM
		m.Caps.Set(catalog.Vision, true)
		m.Input |= catalog.Text | catalog.Images
		m.Output |= catalog.Text
	}
	return &m
}

// merge lays what the upstream said over what the static catalogue knows.
func merge(live, known *catalog.Model) *catalog.Model {
	m := *known
	if live.Name != "" {
		m.Name = live.Name
	}
	if live.Context > 0 {
		m.Context = live.Context
	}
	if live.MaxOutput > 0 {
		m.MaxOutput = live.MaxOutput
	}
	if live.Input != 0 {
		m.Input = live.Input
	}
	if live.Output != 0 {
		m.Output = live.Output
	}
	if live.Price != "" {
		m.Price = live.Price
	}
	m.Caps = live.Caps.Over(known.Caps)
	return &m
}
