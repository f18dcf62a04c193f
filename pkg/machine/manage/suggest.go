package manage

import (
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
)

// didYouMean returns the end of an error text with a suggestion, "" without one.
func didYouMean(s string) string {
	if s == "" {
		return ""
	}
	return "; did you mean " + s + "?"
}

// unknownField returns what is wrong with a field, and which ones there are.
func unknownField(name string, known []string) string {
	end := didYouMean(catalog.Closest(name, known))
	if all := strings.Join(slices.Sorted(slices.Values(known)), ", "); end == "" && all != "" && len(all) <= maxFields {
		end = "; the fields are " + all
	}
	return "is not a field that can be set here" + end
}

// maxFields is the length of the longest list of fields in an error.
const maxFields = 200

// saveAnyway ends the refusal of a name that the field allowUnknown accepts.
const saveAnyway = " (set allowUnknown to true to save it anyway)"

// providerLike returns the provider id most similar to an unknown one.
func providerLike(id string) string {
	var ids []string
	for _, d := range provider.All() {
		if d.Alias == id {
			return d.ID
		}
		ids = append(ids, d.ID)
	}
	if id == "openai-compatible" || id == "anthropic-compatible" {
		return id + "-0123abcd (any 8 or more hex digits)"
	}
	return catalog.Closest(id, ids)
}

// Known holds the names that model ids of this machine may consist of. It reads
// the rows once, however many ids are checked.
type Known struct {
	Conns    []storage.Connection
	customs  []storage.CustomModel
	Prefixes []string // valid before the slash: of connections, and of built-in providers
	names    []string // of combos and aliases
	Models   map[string][]string
}

func namesOf(t *storage.Tx) *Known {
	k := &Known{Conns: t.Connections(), customs: t.CustomModels(), Prefixes: []string{provider.Own, "builtin"},
		Models: map[string][]string{}}
	for i := range k.Conns {
		c := &k.Conns[i]
		if c.Data.Prefix != "" {
			k.Prefixes = append(k.Prefixes, c.Data.Prefix)
		}
		k.Prefixes = append(k.Prefixes, c.Provider)
	}
	for _, d := range provider.All() {
		k.Prefixes = append(k.Prefixes, d.Alias, d.ID)
	}
	for _, c := range t.Combos() {
		k.names = append(k.names, c.Name)
	}
	for _, a := range t.Aliases() {
		k.names = append(k.names, a.Alias)
	}
	return k
}

// modelsOf returns the models under a prefix that are known without asking the
// provider.
func (k *Known) modelsOf(prefix string) []string {
	if list, ok := k.Models[prefix]; ok {
		return list
	}
	alias := prefix
	var list []string
	add := func(m string) { list = append(list, strings.TrimPrefix(m, prefix+"/")) }
	if d := provider.Lookup(prefix); d != nil {
		alias = d.Alias
	}
	for i := range k.Conns {
		c := &k.Conns[i]
		if c.Data.Prefix == prefix || c.Provider == prefix {
			if d := provider.Lookup(c.Provider); d != nil {
				alias = d.Alias
			}
			for _, m := range c.Data.EnabledModels {
				add(m)
			}
		}
	}
	for i := range k.customs {
		if m := &k.customs[i]; m.ProviderAlias == prefix || m.ProviderAlias == alias {
			add(m.ID)
		}
	}
	listed := catalog.Models(alias)
	for i := range listed {
		add(listed[i].ID)
	}
	k.Models[prefix] = list
	return list
}

// checkTarget refuses a model id with an unknown prefix, and one that looks like a
// typing error of a known id. Any other unknown id is accepted, since a provider
// may have more models than the gateway knows; unlisted reports that, unless none are known.
func (k *Known) checkTarget(in *Input, field, id string) (unlisted bool) {
	prefix, model, ok := strings.Cut(catalog.PlainName(id), "/")
	if !ok {
		return false
	}
	if !slices.Contains(k.Prefixes, prefix) {
		near := catalog.Closest(prefix, k.Prefixes)
		if near != "" {
			near += "/" + model
		}
		in.fail(field, "names no provider or prefix of this machine: %s%s%s", prefix, didYouMean(near), saveAnyway)
		return false
	}
	models := k.modelsOf(prefix)
	if slices.Contains(models, model) {
		return false
	}
	if near := catalog.Closest(model, models); near != "" {
		in.fail(field, "names an unknown model: %s%s%s", id, didYouMean(prefix+"/"+near), saveAnyway)
	}
	return len(models) > 0
}

// checkModel refuses a name of a model that a call could not use: it is neither
// a combo, an alias or a custom model, nor a known model, nor a known prefix with a
// model.
func (k *Known) checkModel(in *Input, field, id string) {
	id = catalog.PlainName(id)
	if strings.Contains(id, "/") {
		k.checkTarget(in, field, id)
		return
	}
	if k.isName(id) {
		return
	}
	in.fail(field, "names no combo, alias or model: %s%s%s", id, didYouMean(catalog.Closest(id, k.names)), saveAnyway)
}

// isName reports whether a name without a slash is one of a combo, an alias, a custom
// model or a model of the catalog.
func (k *Known) isName(name string) bool {
	custom := func(m storage.CustomModel) bool { return m.ID == name }
	return slices.Contains(k.names, name) || slices.ContainsFunc(k.customs, custom) || len(catalog.Find(name)) > 0
}

// isMember reports whether the name of a combo's member exists. Any model under a
// known prefix may.
func (k *Known) isMember(name string) bool {
	prefix, _, slash := strings.Cut(name, "/")
	return slices.Contains(k.Prefixes, prefix) || !slash && k.isName(name)
}

// checkMember refuses a member of a combo that checkModel refuses, unless it is a
// provider, which stands for the service of its searches and fetches.
func (k *Known) checkMember(in *Input, id string) {
	if !slices.Contains(k.Prefixes, id) {
		k.checkModel(in, "models", id)
	}
}

// CheckAllowed refuses an entry of a key's model list that cannot match a model:
// it is neither a combo, nor an alias, nor a known prefix with a model or "*".
func (k *Known) CheckAllowed(in *Input, id string) {
	id = catalog.PlainName(id)
	prefix, rest, slash := strings.Cut(id, "/")
	if id == "*" || strings.HasSuffix(prefix, "*") {
		return
	}
	if slash && strings.HasSuffix(rest, "*") {
		if !slices.Contains(k.Prefixes, prefix) {
			near := catalog.Closest(prefix, k.Prefixes)
			if near != "" {
				near += "/" + rest
			}
			in.fail("models", "names no provider or prefix of this machine: %s%s%s", prefix, didYouMean(near), saveAnyway)
		}
		return
	}
	if slash {
		k.checkTarget(in, "models", id)
		return
	}
	if slices.Contains(k.names, id) {
		return
	}
	near := catalog.Closest(id, k.names)
	if near == "" {
		for _, d := range provider.All() {
			if slices.Contains(k.modelsOf(d.Alias), id) {
				near = d.Alias + "/" + id
				break
			}
		}
	}
	in.fail("models", "names no combo, alias or model: %s%s%s", id, didYouMean(near), saveAnyway)
}
