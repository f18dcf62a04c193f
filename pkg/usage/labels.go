package usage

import "slices"

// Kinds of labels.
const (
	ByTool = "tool" // see setup.ToolOf
	ByName = "tag"  // tags of a name: "project" of the tag "project=atlas"
)

// Bounds of labels.
const (
	MaxTagNames = 8    // of a day; other names are not added up
	MaxValues   = 1000 // rows of a label and a day; further values are Other
	maxLabels   = 2 * MaxTagNames
	maxReported = 128 // rows of a label in a report
	maxOthers   = 100 // rows of Other, each of a key
	maxLabel    = 64  // bytes of a name or a value
)

// Other stands for the values of a label that have no row of their own.
const Other = "other"

// Label is the usage of a day or a report by the values of a label: of the calls that have
// one.
//
//easyjson:json
type Label struct {
	Kind string     `json:"kind"`
	Name string     `json:"name,omitempty"` // of tags
	Rows []LabelRow `json:"rows"`
}

// LabelRow is the usage by one key with one value of a label: KeyID and the counts of Row.
//
//easyjson:json
type LabelRow struct {
	Value string `json:"value"`
	Row
}

// Is reports whether the label has a kind and a name.
func (l *Label) Is(kind, name string) bool { return l.Kind == kind && l.Name == name }

// AddLabel adds the counts of a row to the labels of a report.
func AddLabel(list []Label, kind, name, value string, row *Row) []Label {
	list, l := labelOf(list, kind, name)
	if l == nil || !fits(name) || !fits(value) {
		return list
	}
	l.row(value, row.KeyID, maxReported, func(value, key string) int {
		for i := range l.Rows {
			if l.Rows[i].Value == value && l.Rows[i].KeyID == key {
				return i
			}
		}
		return -1
	}).AddCounts(row)
	return list
}

func fits(text string) bool { return len(text) <= maxLabel }

// AddLabels adds the labels of a report to a list of at most that number of rows each.
func AddLabels(list, more []Label, most int) []Label {
	for i := range more {
		var l *Label
		if list, l = labelOf(list, more[i].Kind, more[i].Name); l != nil && fits(more[i].Name) {
			l.Add(more[i].Rows, most)
		}
	}
	return list
}

// Add adds rows to those of the label, of which there are at most that number, and as many of Other
// as maxOthers.
func (l *Label) Add(rows []LabelRow, most int) {
	type pair struct{ value, key string }
	index := make(map[pair]int, len(l.Rows)+len(rows))
	for i := range l.Rows {
		index[pair{l.Rows[i].Value, l.Rows[i].KeyID}] = i
	}
	for i := range rows {
		r := &rows[i]
		if !r.Valid() || !fits(r.Value) {
			continue
		}
		n := len(l.Rows)
		row := l.row(r.Value, r.KeyID, most, func(value, key string) int {
			if i, ok := index[pair{value, key}]; ok {
				return i
			}
			return -1
		})
		row.AddCounts(&r.Row)
		if len(l.Rows) > n {
			index[pair{row.Value, row.KeyID}] = n
		}
	}
}

// Fold returns the label with its first rows, as many as keep, whose further ones are added up as
// Other.
func (l *Label) Fold(keep int) Label {
	short := Label{Kind: l.Kind, Name: l.Name}
	short.Add(l.Rows, keep)
	return short
}

// row returns the row of a value and a key, by find or as a new one.
func (l *Label) row(value, key string, most int, find func(value, key string) int) *LabelRow {
	i := find(value, key)
	if i < 0 && len(l.Rows) >= most {
		value = Other
		i = find(value, key)
	}
	if i < 0 && len(l.Rows) >= most+maxOthers {
		key = ""
		i = find(value, key)
	}
	if i < 0 {
		i = len(l.Rows)
		l.Rows = append(l.Rows, LabelRow{Value: value, Row: Row{KeyID: key}})
	}
	return &l.Rows[i]
}

// labelOf returns the label of a list with a kind and a name, which it adds if there was none; nil
// if there are too many.
func labelOf(list []Label, kind, name string) ([]Label, *Label) {
	i := slices.IndexFunc(list, func(l Label) bool { return l.Is(kind, name) })
	if i < 0 && len(list) >= maxLabels {
		return list, nil
	}
	if i < 0 {
		i = len(list)
		list = append(list, Label{Kind: kind, Name: name})
	}
	return list, &list[i]
}

// Less takes the counts of a part off the row, and off the part what it has taken: what is left
// of either is what that one has more.
func (r *Row) Less(part *Row) {
	less := func(n, off *int64) {
		both := min(*n, *off)
		*n, *off = *n-both, *off-both
	}
	off := part.counts()
	for i, n := range r.counts() {
		less(n, off[i])
	}
	for i := range r.Causes {
		less(&r.Causes[i], &part.Causes[i])
	}
	both := min(r.CostUSD, part.CostUSD)
	r.CostUSD, part.CostUSD = r.CostUSD-both, part.CostUSD-both
}
