package storage

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/usage"
	"weir/pkg/wire/redact"
)

// AddLabels adds what was used at a time, by the labels of the calls. A label of a day is one row,
// a part of the activity row while that is short.
func (t *Tx) AddLabels(at int64, list []usage.Label) {
	day := DayOf(at)
	for i := range list {
		key := labelKey(day, list[i].Kind, list[i].Name)
		row := usage.Label{Kind: list[i].Kind, Name: list[i].Name}
		if !t.Load(key, &row) && row.Kind == usage.ByName && len(t.TagNames(at)) >= usage.MaxTagNames {
			continue
		}
		row.Add(list[i].Rows, usage.MaxValues)
		if len(row.Rows) > 0 {
			t.putLabel(key, row)
		}
	}
}

// putLabel stores a label in a row. If that is too large, the last values are added up.
func (t *Tx) putLabel(key string, l usage.Label) {
	raw := encode(l)
	for keep := len(l.Rows) / 2; len(raw) > maxUsageBytes && keep > 0; keep /= 2 {
		l = l.Fold(keep)
		raw = encode(l)
	}
	t.Set(key, raw)
}

func labelKey(day, kind, name string) string {
	return LabelPrefix + day + ":" + DigestOf(kind, name)[:16]
}

// Labels calls each with the rows of a label of the days from one time to another, Unix
// milliseconds, and with their day. Days that are no longer stored are not looked for.
func (t *Tx) Labels(from, to int64, kind, name string, each func(day string, r *usage.LabelRow)) {
	first := max(from, t.Now-UsageDays*Day)
	for at := first - first%Day; at <= to; at += Day {
		var l usage.Label
		day := DayOf(at)
		t.Load(labelKey(day, kind, name), &l)
		for i := range l.Rows {
			each(day, &l.Rows[i])
		}
	}
}

// TagNames returns the names of the tags that were used on the day of a time.
func (t *Tx) TagNames(at int64) (names []string) {
	for _, r := range t.List(LabelPrefix + DayOf(at) + ":") {
		if gjson.GetBytes(r.Value, "kind").Str == usage.ByName {
			names = append(names, strings.Clone(gjson.GetBytes(r.Value, "name").Str))
		}
	}
	return names
}

// TidyLabels takes out of the labels of a report what may be a credential: clients choose the
// tags.
func TidyLabels(list []usage.Label) []usage.Label {
	for i := range list {
		list[i].Name = redact.Patterns(list[i].Name)
		for j := range list[i].Rows {
			list[i].Rows[j].Value = redact.Patterns(list[i].Rows[j].Value)
		}
	}
	return list
}
