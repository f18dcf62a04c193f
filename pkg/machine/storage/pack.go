package storage

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Rows that calls change are stored together in one row, because the platform
// bills each row that is written: the call of a machine that has few calls
// changes its usage, the list of requests and the health of a connection by one
// row. See docs/decisions/0082-activity-row.md.
//
// The value of the row has a line "key\tvalue" for each. A value is JSON without
// line breaks. Values that do not fit are moved to rows of their own; a key in the
// common row overrides such a row.

// ActivityRow is the row that has them.
const ActivityRow = "activity"

// packedPrefixes are the prefixes of the keys of these rows.
var packedPrefixes = [...]string{CooldownPrefix, ErrorPrefix, refusalPrefix, quotaPrefix, HealthPrefix, UsagePrefix,
	usageCountPrefix, LabelPrefix, networksPrefix, HourPrefix, RecentRow, KeyUsePrefix, ConnUsePrefix, RequestsRow,
	logsRow, logOpenPrefix}

// Sizes of the row, in bytes: larger ones are reduced to packRest.
const (
	maxPack  = 256 << 10
	packRest = 128 << 10
)

func isPacked(key string) bool {
	return slices.ContainsFunc(packedPrefixes[:], func(p string) bool { return strings.HasPrefix(key, p) })
}

// mayPack reports whether a key with a prefix may be packed.
func mayPack(prefix string) bool {
	return slices.ContainsFunc(packedPrefixes[:], func(p string) bool {
		return strings.HasPrefix(p, prefix) || strings.HasPrefix(prefix, p)
	})
}

// packed returns the packed rows, without the changes of this turn.
func (t *Tx) packed() map[string][]byte {
	if t.pack != nil {
		return t.pack
	}
	t.pack = map[string][]byte{}
	raw := t.get(ActivityRow)
	for len(raw) > 0 {
		var line []byte
		line, raw, _ = bytes.Cut(raw, newline)
		if key, value, ok := bytes.Cut(line, tab); ok {
			t.pack[string(key)] = value
		}
	}
	return t.pack
}

var newline, tab = []byte("\n"), []byte("\t")

// stored returns a row as the last turn has left it.
func (t *Tx) stored(key string) []byte {
	if isPacked(key) {
		if v, ok := t.packed()[key]; ok {
			return v
		}
	}
	return t.get(key)
}

// storedRows returns the rows under a prefix as List of Storage does.
func (t *Tx) storedRows(prefix, start string, limit int) []Row {
	rows := t.Scan(prefix, start, limit)
	if !mayPack(prefix) {
		return rows
	}
	last := "" // with a limit: of the rows of their own, more may follow
	if limit > 0 && len(rows) == limit {
		last = rows[len(rows)-1].Key
	}
	pack := t.packed()
	all := rows[:0:0]
	for _, r := range rows {
		if _, ok := pack[r.Key]; !ok {
			all = append(all, r)
		}
	}
	for k, v := range pack {
		if strings.HasPrefix(k, prefix) && k > start && (last == "" || k <= last) {
			all = append(all, Row{k, v})
		}
	}
	slices.SortFunc(all, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// rows returns the rows that the turn writes.
func (t *Tx) rows() []Row {
	var out []Row
	changed := false
	for _, k := range t.Order {
		v := t.writes[k]
		if !isPacked(k) {
			out = append(out, Row{k, v})
			continue
		}
		changed = true
		if v != nil {
			t.packed()[k] = v
			continue
		}
		delete(t.packed(), k)
		if t.get(k) != nil {
			out = append(out, Row{k, nil})
		}
	}
	if !changed {
		return out
	}
	out = append(out, t.spill()...)
	var b []byte
	for k, v := range t.pack {
		b = append(append(append(append(b, k...), '\t'), v...), '\n')
	}
	if b == nil && t.get(ActivityRow) == nil {
		return out
	}
	return append(out, Row{ActivityRow, b})
}

// spill takes out of the pack what changes no more, full pages of requests and
// the usage of past hours and days, and the largest rows if it is still too large.
func (t *Tx) spill() (out []Row) {
	take := func(k string) {
		out = append(out, Row{k, t.pack[k]})
		delete(t.pack, k)
	}
	today, hour, open := UsagePrefix+DayOf(t.Now), HourPrefix+HourOf(t.Now), t.openPage()
	labels := LabelPrefix + DayOf(t.Now)
	size := 0
	for k, v := range t.pack {
		switch {
		case strings.HasPrefix(k, RequestsRow+":") && k != open,
			strings.HasPrefix(k, UsagePrefix) && !strings.HasPrefix(k, today),
			strings.HasPrefix(k, LabelPrefix) && !strings.HasPrefix(k, labels),
			strings.HasPrefix(k, HourPrefix) && k != hour:
			take(k)
		default:
			size += len(k) + len(v) + 2
		}
	}
	if size <= maxPack {
		return out
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.pack), func(a, b string) int {
		return cmp.Compare(len(t.pack[b]), len(t.pack[a]))
	}) {
		if size <= packRest {
			break
		}
		size -= len(k) + len(t.pack[k]) + 2
		if strings.HasPrefix(k, quotaPrefix) {
			delete(t.pack, k)
			continue
		}
		take(k)
	}
	return out
}
