package manage

import (
	"slices"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
	"weir/pkg/machine/storage"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// Bounds of combos (docs/reference/reliability.md, T45).
const (
	MaxCombos     = 500
	maxMembers    = 16
	maxComboDepth = 4
)

var comboFields = [...]string{"name", "kind", "models", "strategy", "weights", "splitBy", "on"}

// isComboName reports whether s may name a combo: 1 to 128 of [A-Za-z0-9_.-].
func isComboName(s string) bool {
	return len(s) <= 128 && only(s, func(c byte) bool {
		return lowerDigit(c) || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
	})
}

// applyCombo changes a combo by the fields given. In a seed the members may be
// missing: the specification shows only name and kind.
func applyCombo(in *Input, row storage.Combo, seed bool) storage.Combo {
	if v, ok := in.text("name", 128); ok || row.Name == "" {
		if !isComboName(v) {
			in.fail("name", "must be 1 to 128 letters, digits, dots, dashes and underscores%s", badName(v))
		}
		row.Name = v
	}
	if v, ok := in.text("kind", 40); ok {
		if v != "" && !catalog.Kind(v).Known() {
			in.fail("kind", "is not a kind of model")
		}
		row.Kind = v
	}
	if v, ok := in.text("strategy", 40); ok {
		if v != "" && !store.IsStrategy(v, true) {
			in.fail("strategy", "must be fallback, round-robin, affinity, weighted, cheapest, fastest or least-busy")
		}
		row.Strategy = v
	}
	if v, ok := in.text("splitBy", 40); ok {
		if v != "" && v != store.SplitBySession && v != store.SplitByKey {
			in.fail("splitBy", "must be session or key")
		}
		row.SplitBy = v
	}
	if v, ok := in.texts("models", maxMembers, maxModelName); ok {
		row.Models = v
		for i, m := range v {
			row.Models[i] = catalog.PlainName(m)
		}
	}
	if v, ok := in.values["on"]; ok {
		row.On = readPolicy(in, v)
	}
	for _, m := range row.Models {
		if !isComboName(m) && !isModelRef(m) && !IsAliasName(m) {
			in.fail("models", "has an entry that cannot be a model")
		}
	}
	row.Weights = weightsOf(row.Models, row.Weights) // a member may have gone
	if v, ok := in.values["weights"]; ok && in.Err == nil {
		row.Weights = readWeights(in, v, row.Models)
	}
	if len(row.Models) == 0 {
		if !seed {
			in.fail("models", "must name at least one model")
		}
		row.Models = []string{}
	}
	return row
}

// readPolicy reads what a combo states for classes of failures; null states nothing.
//
//	{"limit":"next","context_length":"stop", …}
func readPolicy(in *Input, v gjson.Result) map[string]string {
	if v.Type == gjson.Null {
		return nil
	}
	var names []string
	for _, row := range routing.Classes {
		names = append(names, row.Name)
	}
	policy := sub(v, in.at+"on")
	policy.only(names...)
	on := map[string]string{}
	for _, name := range policy.names {
		switch value, _ := policy.text(name, 40); value {
		case routing.Next, routing.Stop:
			on[name] = value
		case "":
		default:
			policy.fail(name, "must be %s or %s", routing.Next, routing.Stop)
		}
	}
	if in.Err == nil {
		in.Err = policy.Err
	}
	return on
}

// readWeights reads {"<member>": weight}. null is the default of all.
func readWeights(in *Input, v gjson.Result, members []string) map[string]int {
	if v.Type == gjson.Null {
		return nil
	}
	w := sub(v, in.at+"weights")
	weights := map[string]int{}
	for _, name := range w.names {
		n, _ := w.int(name, 1, store.MaxWeight)
		member := catalog.PlainName(name)
		if !slices.Contains(members, member) {
			w.fail(name, "is not a model of the combo")
		}
		weights[member] = int(n)
	}
	in.Err = w.Err
	return weightsOf(members, weights)
}

// weightsOf returns the weights of members that have one.
func weightsOf(members []string, all map[string]int) (weights map[string]int) {
	for _, m := range members {
		if all[m] != 0 {
			if weights == nil {
				weights = map[string]int{}
			}
			weights[m] = all[m]
		}
	}
	return weights
}

// checkCombos refuses names that are taken and combos that lead back to
// themselves or too deep.
func checkCombos(rows []storage.Combo) *apierr.Error {
	byName := map[string]*storage.Combo{}
	for i := range rows {
		if byName[rows[i].Name] != nil {
			e := apierr.New(409, "name_taken", "A combo named %s exists already.", rows[i].Name)
			e.Param = "name"
			return e
		}
		byName[rows[i].Name] = &rows[i]
	}
	depth := map[string]int{} // -1 while on the path
	var walk func(c *storage.Combo) int
	walk = func(c *storage.Combo) int {
		if d, ok := depth[c.Name]; ok {
			return d
		}
		depth[c.Name] = -1
		d := 1
		for _, m := range c.Models {
			if sub := byName[m]; sub != nil {
				under := walk(sub)
				if under < 0 {
					d = -2
					break
				}
				d = max(d, under+1)
			}
		}
		depth[c.Name] = d
		return d
	}
	for i := range rows {
		switch d := walk(&rows[i]); {
		case d < 0:
			return apierr.Invalid("models", "The combo %s leads back to itself.", rows[i].Name)
		case d > maxComboDepth:
			return apierr.Invalid("models", "The combo %s is nested more than %d deep.", rows[i].Name, maxComboDepth)
		}
	}
	return nil
}
