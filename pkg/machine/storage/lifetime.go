package storage

import (
	"math"
	"strings"

	"weir/pkg/store"
	"weir/pkg/usage"
)

// A machine that is asked for its metrics counts from then on what it has used, and never
// less than before: not when the rows of a day are pruned, nor when the clock is set back.
//
// The row LifetimeRow has the days up to Through, and the names of all series. A reading adds
// the rows of later days, which are those of two days, and what is buffered. Days that are
// over for a day are added to the row, and Through moves, in one turn. Usage that is reported
// for a day up to Through, by a clock that was set back, is added to the row at once.
//
// Costs are integers, nano-dollars, so that a sum does not depend on the order of its parts.

// Lifetime is what a machine has used, in groups of series.
//
//easyjson:json
type Lifetime struct {
	Through string                        `json:"through"`
	Groups  [LifetimeGroups][]TotalSeries `json:"groups"`

	index [LifetimeGroups]map[seriesName]int
	grown bool // there are new series
}

// TotalSeries is what is added up under one name.
//
//easyjson:json
type TotalSeries struct {
	// Of has the name of the series, an endpoint, account, model, provider or key, and its
	// counts, without CostUSD and durations. That without a name is of everything that has
	// no series of its own.
	Of      usage.Row `json:"of"`
	NanoUSD int64     `json:"nanoUsd,omitempty"`
	// Latency, FirstToken and Sizes have the counts of the histograms, of providers and
	// operations alone.
	Latency    []int64 `json:"latency,omitempty"`
	FirstToken []int64 `json:"firstToken,omitempty"`
	Sizes      []int64 `json:"sizes,omitempty"`

	later *TotalSeries // what the days after Through have added; nil for nothing
}

// The groups of series.
const (
	ByEndpoint = iota
	ByAccount
	ByModel
	ByProvider
	ByKey
	ByOperation // rows of earlier versions have none

	LifetimeGroups
)

// lifetimeGroup describes a group. A series has at most a number of lines of metrics; those
// of all groups are within maxLines.
type lifetimeGroup struct {
	most, lines int
	// name returns the name of the series of a row, and whether the row counts there. fresh
	// reports whether the row may add the series.
	name func(r *usage.Row) (name seriesName, counts, fresh bool)
	// asked reports that the lines are shown on request alone.
	asked bool
}

// seriesName are the labels of a series.
type seriesName [3]string

// maxLines is the number of lines of all groups but those that are shown on request alone.
// With the lines of states, budgets, keys and of what has no room it makes 2,000.
const maxLines = 1250

var lifetimeGroups = [LifetimeGroups]lifetimeGroup{
	ByEndpoint: {most: 30, lines: 9, name: func(r *usage.Row) (seriesName, bool, bool) {
		return seriesName{r.Endpoint}, r.Calls > 0, true
	}},
	ByAccount: {most: 60, lines: 1 + len(usage.CauseNames), name: func(r *usage.Row) (seriesName, bool, bool) {
		return seriesName{r.Provider, r.ConnectionID}, r.Requests > 0, true
	}},
	// Clients choose the names of models, so a name counts once an account has answered.
	ByModel: {most: 120, lines: 7, name: func(r *usage.Row) (seriesName, bool, bool) {
		return seriesName{r.Provider, r.Model}, r.Requests > 0, r.Requests > r.Errors
	}},
	ByProvider: {most: 20, lines: 2 * (len(LifetimeBounds) + 3), name: func(r *usage.Row) (seriesName, bool, bool) {
		return seriesName{r.Provider}, r.Calls > r.Refused(), r.Requests > r.Errors
	}},
	ByKey: {most: 50, lines: 4, asked: true, name: func(r *usage.Row) (seriesName, bool, bool) {
		return seriesName{r.KeyID}, r.Calls > 0 || r.Requests > 0, true
	}},
	ByOperation: {most: 40, lines: 4 * (len(DurationBounds) + 3), asked: true,
		name: func(r *usage.Row) (seriesName, bool, bool) {
			_, sent, _ := strings.Cut(r.Model, "/") // as it is sent to the provider
			return seriesName{usage.Operation(r.Endpoint), r.Provider, sent}, r.Requests > 0 || r.Calls > r.Refused(),
				r.Requests > r.Errors
		}},
}

// LifetimeBounds are the buckets of usage.Histogram that end the buckets of metrics.
var LifetimeBounds = [...]int{4, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26}

// DurationBounds are those of the durations of operations.
var DurationBounds = [...]int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26}

// Lifetime returns what the machine has used. Its caller must commit the turn, which may have
// new series.
func (t *Tx) Lifetime() *Lifetime {
	var l Lifetime
	if known := t.Load(LifetimeRow, &l); !known {
		l = Lifetime{Through: DayOf(t.Now - 2*Day), grown: true}
	}
	t.foldInto(&l, true)
	return &l
}

// FoldUsage adds the days that are over to the row, if there is one, before they are pruned.
func (t *Tx) FoldUsage() {
	var l Lifetime
	if t.Meta.Lifetime != "" && t.Meta.Lifetime < DayOf(t.Now-2*Day) && t.Load(LifetimeRow, &l) {
		t.foldInto(&l, false)
	}
}

// foldInto adds the rows of the days that are over, and with all those of the others, and
// stores the row if that has changed it.
func (t *Tx) foldInto(l *Lifetime, all bool) {
	over := max(l.Through, DayOf(t.Now-2*Day))
	changed := over != l.Through || t.Meta.Lifetime != l.Through
	t.usageAfter(l.Through, func(r *UsageRow) {
		if r.Day <= over {
			l.add(&r.Row, false)
		} else if all {
			l.add(&r.Row, true)
		}
	})
	if l.Through = over; changed || l.grown {
		t.Meta.Lifetime = over
		t.Put(LifetimeRow, l)
	}
}

// usageAfter calls each with the rows of usage of the days after one, as this turn has left
// them.
func (t *Tx) usageAfter(day string, each func(r *UsageRow)) {
	start := UsagePrefix + day + ":~" // after the digests of its rows
	read := func(key string, raw []byte) bool {
		var r UsageRow
		if decode(raw, &r) == nil && r.Day != "" {
			each(&r)
		}
		return true
	}
	t.PagesFrom(UsagePrefix, start, SmallPage, func(r Row) bool { return read(r.Key, r.Value) })
	for _, key := range t.Order {
		if v := t.writes[key]; v != nil && key > start && strings.HasPrefix(key, UsagePrefix) {
			read(key, v)
		}
	}
}

// addLate adds usage of a day that the row has already.
func (t *Tx) addLate(day string, list []usage.Row) {
	var l Lifetime
	if day > t.Meta.Lifetime || !t.Load(LifetimeRow, &l) {
		return
	}
	for i := range list {
		if list[i].Valid() {
			l.add(&list[i], false)
		}
	}
	t.Put(LifetimeRow, &l)
}

// add adds a row to each group. later reports that it is of a day after Through.
func (l *Lifetime) add(r *usage.Row, later bool) {
	for g := range lifetimeGroups {
		name, counts, fresh := lifetimeGroups[g].name(r)
		if !counts {
			continue
		}
		s := l.series(g, name, fresh)
		if later {
			// A row that may still get a series of its own must not be counted elsewhere first.
			if s.unnamed() && !fresh && l.hasRoom(g) {
				continue
			}
			if s.later == nil {
				s.later = &TotalSeries{}
			}
			s = s.later
		}
		s.count(r, g == ByProvider || g == ByOperation, g == ByOperation)
	}
}

// series returns the series of a name: its own, a new one if it may have one and there is
// room, else that without a name.
func (l *Lifetime) series(g int, name seriesName, fresh bool) *TotalSeries {
	list := &l.Groups[g]
	if l.index[g] == nil {
		if len(*list) == 0 {
			*list = []TotalSeries{{}}
		}
		l.index[g] = map[seriesName]int{}
		for i := range *list {
			own, _, _ := lifetimeGroups[g].name(&(*list)[i].Of)
			l.index[g][own] = i
		}
	}
	at, known := l.index[g][name]
	if !known && fresh && l.hasRoom(g) {
		s := TotalSeries{}
		switch g {
		case ByEndpoint:
			s.Of.Endpoint = name[0]
		case ByAccount:
			s.Of.Provider, s.Of.ConnectionID = name[0], name[1]
		case ByModel:
			s.Of.Provider, s.Of.Model = name[0], name[1]
		case ByProvider:
			s.Of.Provider = name[0]
		case ByKey:
			s.Of.KeyID = name[0]
		case ByOperation:
			s.Of.Endpoint, s.Of.Provider, s.Of.Model = name[0], name[1], "/"+name[2]
		}
		at = len(*list)
		l.index[g][name], l.grown = at, true
		*list = append(*list, s)
	}
	return &(*list)[at]
}

// hasRoom reports whether a group may have another series.
func (l *Lifetime) hasRoom(g int) bool {
	if len(l.Groups[g]) > lifetimeGroups[g].most {
		return false
	}
	lines := 0
	for i := range l.Groups {
		if !lifetimeGroups[i].asked {
			lines += max(len(l.Groups[i])-1, 0) * lifetimeGroups[i].lines
		}
	}
	return lifetimeGroups[g].asked || lines+lifetimeGroups[g].lines <= maxLines
}

// unnamed reports whether a series is that of what has no series of its own.
func (s *TotalSeries) unnamed() bool { return s.Of.Kind() == usage.Row{} }

// count adds a row, and its durations and sizes.
func (s *TotalSeries) count(r *usage.Row, durations, sizes bool) {
	s.Of.AddCounts(r)
	s.Of.CostUSD = 0
	s.NanoUSD += int64(math.Round(r.CostUSD * store.NanoDollars))
	if durations {
		s.Latency, s.FirstToken = addBuckets(s.Latency, &r.Latency), addBuckets(s.FirstToken, &r.FirstToken)
	}
	if sizes {
		s.Sizes = addBuckets(s.Sizes, &r.Sizes)
	}
}

func addBuckets(sum []int64, h *usage.Histogram) []int64 {
	if *h == (usage.Histogram{}) {
		return sum
	}
	if len(sum) != len(h) {
		sum = make([]int64, len(h))
	}
	for i, n := range h {
		sum[i] += int64(n)
	}
	return sum
}

// Total returns the sum of the stored and the later counts.
func (s *TotalSeries) Total() TotalSeries {
	sum := *s
	if s.later == nil {
		return sum
	}
	sum.Of.AddCounts(&s.later.Of)
	sum.NanoUSD += s.later.NanoUSD
	sum.Latency, sum.FirstToken = sumOf(s.Latency, s.later.Latency), sumOf(s.FirstToken, s.later.FirstToken)
	sum.Sizes = sumOf(s.Sizes, s.later.Sizes)
	return sum
}

func sumOf(a, b []int64) []int64 {
	if len(a) == 0 || len(b) == 0 {
		return append(a[:0:0], append(a, b...)...)
	}
	sum := append([]int64(nil), a...)
	for i := range sum {
		sum[i] += b[i]
	}
	return sum
}
