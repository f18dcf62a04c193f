package machine

import (
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

// didYouMean returns the end of an error text with a suggestion, "" without one.
func didYouMean(s string) string {
	if s == "" {
		return ""
	}
	return "; did you mean " + s + "?"
}

// closest returns the known text most similar to a mistyped one: one that differs
// only in case, dots, dashes and the like, else one at an edit distance of at most
// two. Texts with different digits are different versions. It returns "" for none.
func closest(typed string, known []string) string {
	fold := func(s string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("-_. :/", r) {
				return -1
			}
			return r
		}, strings.ToLower(s))
	}
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, s)
	}
	if len(typed) > 128 {
		return ""
	}
	want, best, least := fold(typed), "", 3
	if len(want) < 6 {
		least = 2 // two edits are too many for a short text
	}
	for _, k := range known {
		if k == typed {
			continue
		}
		f := fold(k)
		if f == want {
			return k
		}
		if d := len(f) - len(want); d >= least || -d >= least || digits(f) != digits(want) {
			continue
		}
		if d := distance(want, f); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance returns the edit distance of two texts: insertions, deletions,
// replacements and swaps of adjacent bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

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
	return closest(id, ids)
}

// prefixes returns the valid prefixes of this machine's model ids: prefixes and
// providers of its connections, aliases and ids of the built-in providers.
func (t *tx) prefixes() []string {
	var list []string
	for _, c := range t.conns() {
		if c.Data.Prefix != "" {
			list = append(list, c.Data.Prefix)
		}
		list = append(list, c.Provider)
	}
	for _, d := range provider.All() {
		list = append(list, d.Alias, d.ID)
	}
	return list
}

// modelsOf returns the models under a prefix that are known without asking the
// provider.
func (t *tx) modelsOf(prefix string) []string {
	alias := prefix
	var list []string
	add := func(m string) { list = append(list, strings.TrimPrefix(m, prefix+"/")) }
	if d := provider.Lookup(prefix); d != nil {
		alias = d.Alias
	}
	for _, c := range t.conns() {
		if c.Data.Prefix == prefix || c.Provider == prefix {
			if d := provider.Lookup(c.Provider); d != nil {
				alias = d.Alias
			}
			for _, m := range c.Data.EnabledModels {
				add(m)
			}
		}
	}
	for _, m := range t.customs() {
		if m.ProviderAlias == prefix || m.ProviderAlias == alias {
			add(m.ID)
		}
	}
	known := catalog.Models(alias)
	for i := range known {
		add(known[i].ID)
	}
	return list
}

// checkTarget refuses a model id with an unknown prefix, and one that looks like a
// typing error of a known id. Any other unknown id is accepted, since a provider
// may have more models than the gateway knows; unlisted reports that.
func (t *tx) checkTarget(in *input, field, id string) (unlisted bool) {
	prefix, model, ok := strings.Cut(id, "/")
	if !ok {
		return false
	}
	all := t.prefixes()
	if !slices.Contains(all, prefix) {
		near := closest(prefix, all)
		if near != "" {
			near += "/" + model
		}
		in.fail(field, "names no provider or prefix of this machine: %s%s", prefix, didYouMean(near))
		return false
	}
	known := t.modelsOf(prefix)
	if slices.Contains(known, model) {
		return false
	}
	if near := closest(model, known); near != "" {
		in.fail(field, "names an unknown model: %s%s (set allowUnknown to true to save it anyway)", id, didYouMean(prefix+"/"+near))
	}
	return true
}

// checkAllowed refuses an entry of a key's model list that cannot match a model:
// it is neither a combo, nor an alias, nor a known prefix with a model or "*".
func (t *tx) checkAllowed(in *input, id string) {
	prefix, rest, slash := strings.Cut(id, "/")
	if id == "*" || strings.HasSuffix(prefix, "*") {
		return
	}
	if slash && strings.HasSuffix(rest, "*") {
		if all := t.prefixes(); !slices.Contains(all, prefix) {
			in.fail("models", "names no provider or prefix of this machine: %s%s", prefix, didYouMean(closest(prefix, all)))
		}
		return
	}
	if slash {
		t.checkTarget(in, "models", id)
		return
	}
	var names []string
	for _, c := range t.combos() {
		names = append(names, c.Name)
	}
	for _, a := range t.aliases() {
		names = append(names, a.Alias)
	}
	if slices.Contains(names, id) {
		return
	}
	near := closest(id, names)
	if near == "" {
		for _, d := range provider.All() {
			if slices.Contains(t.modelsOf(d.Alias), id) {
				near = d.Alias + "/" + id
				break
			}
		}
	}
	in.fail("models", "names no combo, alias or model: %s%s", id, didYouMean(near))
}
