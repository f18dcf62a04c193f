package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

// Words of a report: what became of an entry.
const (
	taken = "taken" // it is in the file
	equal = "equal" // weir does the same without it, or elsewhere
	none  = "none"  // it has no counterpart

	renamed = "renamed" // of a model; no entry of its own
)

// importer makes weir.yaml of the configuration of another gateway.
type importer struct {
	*app
	file      File
	accounts  []*importedAccount
	groups    []*modelGroup
	names     map[string]string // of groups as clients write them, by their names elsewhere
	notes     []*note
	variables []note // to be set: entry is the name

	prices       []price
	models       []customModel
	aliases      [][2]string // further names of groups
	defaultModel string      // name of a group
}

// note is a line of the report.
type note struct {
	how, entry, why string
	times           int
}

// importedAccount is an account, whose prefix is known at the end.
type importedAccount struct {
	FileAccount
	row      *provider.Descriptor // nil for a server of one's own
	identity string
	prefix   string
	used     map[string]bool // by a model of a group
}

// modelGroup is what clients know as one model.
type modelGroup struct {
	name      string
	members   []groupMember
	fallbacks []string // names of groups
	strategy  string
	on        map[string]string
}

type groupMember struct {
	account       *importedAccount
	model         string
	kind          catalog.Kind
	weight, order int
}

func (m groupMember) target() string { return m.account.prefix + "/" + m.model }

// note adds a line to the report, or one more time to an equal one.
func (i *importer) note(how, entry, why string) {
	for _, n := range i.notes {
		if n.how == how && n.entry == entry && n.why == why {
			n.times++
			return
		}
	}
	i.notes = append(i.notes, &note{how, entry, why, 1})
}

// setVariable notes that a variable is to be set, and returns the reference to it.
func (i *importer) setVariable(name, why string) *Reference {
	if !slices.ContainsFunc(i.variables, func(n note) bool { return n.entry == name }) {
		i.variables = append(i.variables, note{entry: name, why: why})
	}
	return &Reference{Env: name}
}

// keyVariables returns the variables that usually have the key of a provider. The first is
// one that is set, if any is.
func (i *importer) keyVariables(d *provider.Descriptor) []string {
	names := append([]string{strings.ToUpper(strings.ReplaceAll(d.ID, "-", "_")) + "_API_KEY"}, d.KeyVariables...)
	if at := slices.IndexFunc(names, func(name string) bool { return i.variable(name) != "" }); at > 0 {
		names[0], names[at] = names[at], names[0]
	}
	return names
}

// account returns the account of an identity. create makes it, with a name that no other has.
func (i *importer) account(identity string, d *provider.Descriptor, name string,
	create func(name string) FileAccount) *importedAccount {
	for _, a := range i.accounts {
		if a.identity == identity {
			return a
		}
	}
	base := name
	for n := 2; slices.ContainsFunc(i.accounts, func(o *importedAccount) bool { return o.Name == name }); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	a := &importedAccount{FileAccount: create(name), row: d, identity: identity, used: map[string]bool{}}
	i.accounts = append(i.accounts, a)
	return a
}

// group returns the group of a name.
func (i *importer) group(name string) *modelGroup {
	if at := slices.IndexFunc(i.groups, func(g *modelGroup) bool { return g.name == name }); at >= 0 {
		return i.groups[at]
	}
	i.groups = append(i.groups, &modelGroup{name: name})
	return i.groups[len(i.groups)-1]
}

func (g *modelGroup) add(m groupMember) {
	g.members = append(g.members, m)
	m.account.used[g.name+"\x00"+m.model] = true
}

// word returns a text as a name: letters, digits, dots, dashes and underscores.
func word(text string) string {
	return strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_.-]+`).ReplaceAllString(text, "-"), "-._")
}

// hostWord returns a name for a server.
func hostWord(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return word(base)
	}
	return word(strings.TrimPrefix(u.Host, "api."))
}

// setPrefixes decides how models of the accounts are named. Accounts of a provider that serve
// the same models share its alias: weir chooses among them. Otherwise each has a prefix.
func (i *importer) setPrefixes() {
	for _, a := range i.accounts {
		own := a.row == nil
		for _, b := range i.accounts {
			own = own || a.row == b.row && !sameKeys(a.used, b.used)
		}
		if !own {
			a.prefix = a.row.Alias
			continue
		}
		a.prefix = strings.ToLower(word(a.Name))
		if d := providerNamed(a.prefix); d != nil && d != a.row {
			a.prefix += "-server"
		}
		if a.Options == nil {
			a.Options = map[string]any{}
		}
		a.Options["prefix"] = a.prefix
	}
	for _, a := range i.accounts {
		i.file.Accounts = append(i.file.Accounts, a.FileAccount)
	}
}

// providerNamed returns the provider whose id or alias is a name.
func providerNamed(name string) *provider.Descriptor {
	if d := provider.ByAlias(name); d != nil {
		return d
	}
	return provider.Lookup(name)
}

func sameKeys(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// finish writes accounts, combos and aliases of what was collected.
func (i *importer) finish() {
	i.setPrefixes()
	i.names = map[string]string{}
	for _, g := range i.groups {
		i.members(g)
	}
	for _, g := range i.groups {
		if len(g.members) > 0 {
			i.write(g)
		}
	}
	i.furtherNames()
	for _, p := range i.prices {
		s := i.set()
		if s.ModelPrices == nil {
			s.ModelPrices = map[string]*string{}
		}
		s.ModelPrices[p.member.target()] = &p.text
	}
	for _, m := range i.models {
		one := FileModel{ProviderAlias: m.member.account.prefix, ID: m.member.model, Type: kindOf(m.member)}
		if m.context > 0 {
			one.ContextLength = &m.context
		}
		if m.longest > 0 {
			one.MaxTokens = &m.longest
		}
		if !slices.ContainsFunc(i.file.Models, func(o FileModel) bool {
			return o.ProviderAlias == one.ProviderAlias && o.ID == one.ID
		}) {
			i.file.Models = append(i.file.Models, one)
		}
	}
}

// furtherNames adds aliases of groups and the default model.
func (i *importer) furtherNames() {
	for _, a := range i.aliases {
		to, ok := i.names[a[1]]
		if !ok {
			i.note(none, "alias "+a[0], "there is no model "+a[1]+" in the file")
			continue
		}
		if i.file.Aliases[to] != "" {
			to = i.file.Aliases[to]
		}
		if strings.Contains(to, "/") {
			i.alias(i.free(word(a[0])), to)
		} else {
			i.combo(FileCombo{Name: i.free(word(a[0])), Models: []string{to}})
		}
	}
	if to := i.names[i.defaultModel]; to != "" {
		i.set().DefaultModel = &to
	}
}

// set returns the settings of the file, to be set.
func (i *importer) set() *FileSettings {
	if i.file.Settings == nil {
		i.file.Settings = &FileSettings{}
	}
	return i.file.Settings
}

// members orders the members of a group, without those that are named twice.
func (i *importer) members(g *modelGroup) {
	slices.SortStableFunc(g.members, func(a, b groupMember) int { return cmp.Compare(a.order, b.order) })
	var different []groupMember
	for _, m := range g.members {
		if !slices.ContainsFunc(different, func(o groupMember) bool { return o.target() == m.target() }) {
			different = append(different, m)
		} else if m.account.Weight == nil && m.weight > 0 {
			m.account.Weight = &m.weight
		}
	}
	g.members = different
}

// maxMembers is what a combo has at most.
const maxMembers = 16

// write adds a group to the file: nothing if its name is that of its model, an alias of one
// model, or a combo.
func (i *importer) write(g *modelGroup) {
	first := g.members[0]
	var fallbacks []string
	for _, name := range g.fallbacks {
		to := i.group(name)
		if len(to.members) == 0 {
			i.note(none, "fallback to "+name, "there is no such model in the file")
		} else if ref := i.reference(to); !slices.Contains(fallbacks, ref) && ref != i.reference(g) {
			fallbacks = append(fallbacks, ref)
		}
	}
	switch {
	case len(g.members) == 1 && len(fallbacks) == 0 && g.name == first.target():
		i.names[g.name] = g.name
	case len(g.members) == 1 && len(fallbacks) == 0:
		name := i.free(regexp.MustCompile(`[/\\?#%]+`).ReplaceAllString(g.name, "-"))
		i.alias(name, first.target())
		i.rename(g, name)
	case len(fallbacks) == 0:
		i.rename(g, i.spread(g, i.free(word(g.name))))
	default:
		models := append([]string{i.reference(g)}, fallbacks...)
		name := i.free(word(g.name))
		if len(g.members) > 1 {
			i.spread(g, models[0])
		}
		i.combo(FileCombo{Name: name, Models: models, Kind: kindOf(first), On: g.on})
		i.rename(g, name)
	}
}

func (i *importer) alias(name, target string) {
	if i.file.Aliases == nil {
		i.file.Aliases = map[string]string{}
	}
	i.file.Aliases[name] = target
}

// rename notes under which name clients find a group.
func (i *importer) rename(g *modelGroup, name string) {
	if i.names[g.name] = name; name != g.name {
		i.note(renamed, g.name, "clients write "+name+": names of combos and aliases have no slash")
	}
}

// free returns a name that no combo or alias has.
func (i *importer) free(name string) string {
	if name = strings.TrimSpace(name); name == "" {
		name = "model"
	}
	base := name
	for n := 2; ; n++ {
		_, alias := i.file.Aliases[name]
		if !alias && !slices.ContainsFunc(i.file.Combos, func(c FileCombo) bool { return c.Name == name }) {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// reference returns what stands for the members of a group without its fallbacks.
func (i *importer) reference(g *modelGroup) string {
	if len(g.members) == 1 {
		return g.members[0].target()
	}
	if len(g.fallbacks) == 0 {
		return word(g.name)
	}
	return word(g.name) + "-members"
}

// spread adds a combo of the members of a group.
func (i *importer) spread(g *modelGroup, name string) string {
	c := FileCombo{Name: name, Kind: kindOf(g.members[0])}
	ordered, weights := false, map[string]int{}
	for _, m := range g.members {
		c.Models = append(c.Models, m.target())
		if ordered = ordered || m.order != g.members[0].order; m.weight > 0 {
			weights[m.target()] = min(m.weight, 1000)
		}
	}
	strategy := g.strategy
	if strategy == "affinity" && len(weights) > 0 {
		strategy = "weighted"
	}
	if !ordered && strategy != "" {
		c.Strategy = &strategy
	}
	if strategy == "weighted" && !ordered {
		c.Weights = weights
	}
	i.combo(c)
	return name
}

func kindOf(m groupMember) *string {
	if m.kind == catalog.LLM || m.kind == "" {
		return nil
	}
	kind := string(m.kind)
	return &kind
}

func (i *importer) combo(c FileCombo) {
	if len(c.Models) > maxMembers {
		for _, m := range c.Models[maxMembers:] {
			delete(c.Weights, m)
			i.note(none, "model "+m+" of "+c.Name, "a combo has at most 16 models")
		}
		c.Models = c.Models[:maxMembers]
	}
	i.file.Combos = append(i.file.Combos, c)
}

// importOther writes weir.yaml of what another gateway has, and the report.
func importOther(read func(*importer, context.Context, *input) error) func(*app, context.Context, *input) error {
	return func(a *app, ctx context.Context, in *input) error {
		i := &importer{app: a}
		if err := read(i, ctx, in); err != nil {
			return err
		}
		i.finish()
		raw, err := encodeFile(&i.file)
		if err != nil {
			return err
		}
		if err = a.writeFile(in.values["out"], in, raw); err == nil {
			_, err = a.Stderr.Write(i.report())
		}
		return err
	}
}

// report returns what became of each entry, and the variables that are to be set.
func (i *importer) report() []byte {
	t := table{columns: []column{{}, {}, {}}}
	counts, total := map[string]int{}, 0
	for _, how := range []string{none, equal, renamed, taken} {
		for _, n := range i.notes {
			if n.how != how {
				continue
			}
			entry := n.entry
			if n.times > 1 {
				entry += fmt.Sprintf(" (%d)", n.times)
			}
			color := map[string]string{none: red, equal: yellow, renamed: yellow, taken: green}[how]
			t.add(cell{how, color}, plain(entry), plain(n.why))
			if counts[how] += n.times; how != renamed {
				total += n.times
			}
		}
	}
	for _, v := range i.variables {
		state := "to set"
		if i.variable(v.entry) != "" {
			state = "set"
		}
		t.add(plain(state), plain(v.entry), plain(v.why))
	}
	text := i.render(t, false)
	return fmt.Appendf(text, "Taken: %d, with an equal: %d, without: %d (%d%% of the entries have a counterpart).\n"+
		"weir plan shows what the file would change, weir apply does it, and weir keys add creates a key.\n",
		counts[taken], counts[equal], counts[none], (counts[taken]+counts[equal])*100/max(total, 1))
}
