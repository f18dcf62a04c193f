package accounts

import (
	"weir/pkg/routing"
	"weir/pkg/snapshot"
)

// roundRobin is the strategy by which each call begins one account later.
const roundRobin = "round-robin"

// ordering is what the order of a target's accounts depends on.
type ordering struct {
	machine *snapshot.Machine
	target  *routing.Target
	explain bool // the call is not sent: it takes no turn
}

// sort brings the ready accounts of a target into the order in which they are tried:
// outliers last, then by priority, lower first. Among accounts of equal priority the
// machine's strategy decides. Round-robin ignores priorities.
func (o *ordering) sort(list []candidate) []candidate {
	if len(list) < 2 {
		return list
	}
	sortBy(list, behind)
	for from, to := 0, 1; from < len(list); from, to = to, to+1 {
		for to < len(list) && behind(&list[to], &list[from]) == 0 {
			to++
		}
		o.equals(list[from:to])
	}
	if o.machine.Settings.Strategy == roundRobin {
		return rotated(list, o.turn())
	}
	return list
}

// equals sorts accounts of equal priority by the machine's strategy. Each strategy is
// one function.
func (o *ordering) equals(list []candidate) {
	sortBy(list, leastRecentlyFailed)
}

// turn returns the turn of this call.
func (o *ordering) turn() uint32 {
	if o.explain {
		return o.machine.NextTurn(o.target.Provider.ID)
	}
	return o.machine.Turn(o.target.Provider.ID)
}

// sortBy sorts a short list. Equal elements keep their order.
func sortBy(list []candidate, compare func(a, b *candidate) int64) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && compare(&list[j], &list[j-1]) < 0; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// behind puts outliers behind the others, then accounts of a higher priority number,
// then those of a limit of which not enough is left.
func behind(a, b *candidate) int64 {
	switch {
	case a.outlier != b.outlier && a.outlier:
		return 1
	case a.outlier != b.outlier:
		return -1
	}
	if a.conn.Priority != b.conn.Priority || a.low == b.low {
		return int64(a.conn.Priority - b.conn.Priority)
	}
	if a.low {
		return 1
	}
	return -1
}

// leastRecentlyFailed is the strategy priority. Of accounts that have not failed, that
// goes first whose limit begins again first: what is left of it would be lost.
func leastRecentlyFailed(a, b *candidate) int64 {
	if a.failed != b.failed {
		return a.failed - b.failed
	}
	return a.ends - b.ends
}

// rotated returns the list starting at a turn's position, accounts with little left
// and then outliers last.
func rotated(list []candidate, turn uint32) []candidate {
	n := int(turn % uint32(len(list)))
	out := make([]candidate, 0, len(list))
	for class := range classes {
		for i := range list {
			if c := &list[(n+i)%len(list)]; c.class() == class {
				out = append(out, *c)
			}
		}
	}
	return out
}

const classes = 3

// class returns 2 for an outlier, 1 for an account of a limit of which not enough is
// left, else 0.
func (c *candidate) class() int {
	switch {
	case c.outlier:
		return 2
	case c.low:
		return 1
	}
	return 0
}
