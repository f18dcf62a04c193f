package routing

// Class is a class of failures of a combo's member. A combo states for each
// whether its next member is tried. docs/fallback.md has the codes of each.
type Class uint8

// The classes.
const (
	// Final: no other member may be tried, whatever the combo states.
	Final Class = iota
	// Unsuitable: the member cannot serve the request, which was not sent. The next
	// one is tried, whatever the combo states.
	Unsuitable
	Limit         // rate limit, or no credit left
	Unavailable   // no answer, a server error, or no usable account
	ContextLength // the request is too long for the model
	ModelGone     // the model does not exist, or no longer
	ContentFilter // a filter refused the content
	Any4xx        // any other refusal of the request
)

// Classes are the classes that a combo states, and whether its next member is
// tried if it does not.
var Classes = [...]struct {
	Class Class
	Name  string
	Next  bool
}{
	{Limit, "limit", true},
	{Unavailable, "unavailable", true},
	{ContextLength, "context_length", true},
	{ModelGone, "model_gone", true},
	{ContentFilter, "content_filter", false},
	{Any4xx, "any_4xx", false},
}

// String returns the name of a class that a combo can state, else "".
func (c Class) String() string {
	for _, row := range Classes {
		if row.Class == c {
			return row.Name
		}
	}
	return ""
}

// The values of a class in store.Combo.
const (
	Next = "next" // its next member is tried
	Stop = "stop" // the failure ends the combo
)

// group is a combo that targets are members of. They follow each other.
type group struct {
	on    map[string]string // of store.Combo
	outer *group            // the combo that this one is a member of, or nil
}

// Group makes targets the members of a combo with the policy on. Targets that are
// members of a combo already stay so, and that combo becomes the member.
func Group(targets []Target, on map[string]string) {
	g := &group{on: on}
	for i := range targets {
		of := &targets[i].group
		for *of != nil && *of != g {
			of = &(*of).outer
		}
		*of = g
	}
}

// continues reports whether the next member is tried after a failure of a class.
// A filtered content is a refusal: any_4xx holds for it unless the combo names it.
func (g *group) continues(c Class) bool {
	for i := range Classes {
		row := &Classes[i]
		if row.Class != c {
			continue
		}
		if g != nil && g.on[row.Name] != "" {
			return g.on[row.Name] == Next
		}
		if c == ContentFilter {
			return g.continues(Any4xx)
		}
		return row.Next
	}
	return c == Unsuitable
}

// in reports whether a target is a member of a combo, or of one within it.
func (t *Target) in(g *group) bool {
	for of := t.group; of != nil; of = of.outer {
		if of == g {
			return true
		}
	}
	return false
}

// After returns the index of the target that is tried after the one at i has
// failed, or -1 if that ends the call. A combo that ends is, for the combo around
// it, a member that has failed in the same class.
func After(targets []Target, i int, c Class) int {
	next := i + 1
	for g := targets[i].group; g != nil; g = g.outer {
		if next < len(targets) && targets[next].in(g) && g.continues(c) {
			return next
		}
		for next < len(targets) && targets[next].in(g) {
			next++
		}
	}
	if next < len(targets) && (*group)(nil).continues(c) {
		return next // these targets are of no combo
	}
	return -1
}

// Policy returns the classes of failures of the target at i after which another
// target is tried.
func Policy(targets []Target, i int) (names []string) {
	for _, row := range Classes {
		if After(targets, i, row.Class) >= 0 {
			names = append(names, row.Name)
		}
	}
	return names
}
