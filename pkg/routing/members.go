package routing

import (
	"math"

	"weir/pkg/catalog"
	"weir/pkg/store"
)

// members brings the targets of a combo's members into the order of its strategy.
// ends[i] is where the targets of member i end in r.out, which begin at from.
func (r *resolution) members(c *store.Combo, from int, ends []int) {
	r.turns = true
	var scores [MaxTargets]float64
	var order [MaxTargets]int
	for i, start := 0, from; i < len(ends); i, start = i+1, ends[i] {
		order[i] = i
		if start < ends[i] {
			scores[i] = r.score(c, c.Models[i], &r.out[start])
		}
		for j := i; j > 0 && scores[order[j]] > scores[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	sorted := make([]Target, 0, len(r.out)-from)
	for _, i := range order[:len(ends)] {
		start := from
		if i > 0 {
			start = ends[i-1]
		}
		sorted = append(sorted, r.out[start:ends[i]]...)
	}
	copy(r.out[from:], sorted)
}

// score ranks a member of a combo by its first target: the one with the highest score
// is tried first.
func (r *resolution) score(c *store.Combo, member string, first *Target) float64 {
	switch c.Strategy {
	case store.Affinity:
		return r.sticky(member, store.DefaultWeight, false)
	case store.Weighted:
		return r.sticky(member, c.Share(member), c.SplitBy == store.SplitByKey)
	case store.Cheapest:
		return -r.price(first)
	case store.Fastest:
		return -r.shortest(first)
	case store.LeastBusy:
		return -float64(r.calls(first))
	}
	return 0
}

// sticky ranks a member for the session.
func (r *resolution) sticky(member string, weight int, byKey bool) float64 {
	if r.session == nil {
		return 0
	}
	return Score(r.session.split(byKey), member, weight)
}

// mediaUnits are the units by which the prices of media are compared.
var mediaUnits = [...]catalog.Unit{catalog.PerImage, catalog.PerSecond, catalog.PerCharacter, catalog.PerRequest}

// price returns what a target costs, to compare it with others of its kind: the USD for
// three million tokens of input and one million of output, else the rate of its medium.
// An unknown price is the highest.
func (r *resolution) price(to *Target) float64 {
	p := to.Price(r.m)
	if p.Free() {
		return 0
	}
	rates, known := p.Rates(catalog.Terms{})
	if !known {
		return math.Inf(1)
	}
	if in := rates[catalog.PerInput]; in >= 0 {
		return 3*in + max(rates[catalog.PerOutput], 0)
	}
	for _, u := range mediaUnits {
		if rates[u] >= 0 {
			return rates[u]
		}
	}
	return math.Inf(1)
}

// shortest returns the milliseconds to the first token at the fastest account of a
// target, 0 if none was measured: then the target is to be measured.
func (r *resolution) shortest(to *Target) (least float64) {
	stream := r.session != nil && r.session.Stream
	for _, conn := range to.Connections {
		if ms := r.m.Speed(conn.ID, to.Model, stream, r.now()); ms > 0 && (least == 0 || ms < least) {
			least = ms
		}
	}
	return least
}

// calls returns the number of calls under way to a target.
func (r *resolution) calls(to *Target) (n int) {
	for _, conn := range to.Connections {
		n += r.m.Busy(conn.ID, to.Model, r.now())
	}
	return n
}

// now returns when the call began, in Unix milliseconds.
func (r *resolution) now() int64 {
	if r.session == nil {
		return 0
	}
	return r.session.Request.Start.UnixMilli()
}
