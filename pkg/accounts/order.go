package accounts

import (
	"cmp"

	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// ordering is what the order of a target's accounts depends on.
type ordering struct {
	machine *snapshot.Machine
	target  *routing.Target
	session *routing.Session // set if the strategy asks for it
	now     int64
	plan    *plan // whose turn it is
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
	if o.machine.Settings.Strategy == store.RoundRobin {
		return rotated(list, o.plan.takeTurn())
	}
	return list
}

// equals sorts accounts of equal priority by the machine's strategy: the highest score
// first, then as stored.
func (o *ordering) equals(list []candidate) {
	if len(list) < 2 {
		return
	}
	for i := range list {
		list[i].score = o.score(&list[i])
	}
	sortBy(list, lowerScore)
}

// score ranks an account by the machine's strategy.
func (o *ordering) score(c *candidate) float64 {
	switch o.machine.Settings.Strategy {
	case store.Affinity, store.Weighted:
		return o.sticky(c.conn)
	case store.Fastest:
		return -o.machine.Speed(c.conn.ID, o.target.Model, o.session.Stream, o.now)
	case store.LeastBusy:
		return -float64(o.machine.Busy(c.conn.ID, "", o.now))
	}
	return -float64(c.failed) // the least recently failed first
}

// sticky ranks an account for the session of the call.
func (o *ordering) sticky(conn *store.Connection) float64 {
	weight := store.DefaultWeight
	if o.machine.Settings.Strategy == store.Weighted {
		weight = conn.Share()
	}
	return routing.Score(o.session.ID(), conn.ID, weight)
}

// home returns the account that has the session as long as all accounts of the target
// are ready. It is nil if the strategy does not keep sessions together or there is no
// choice.
func (o *ordering) home() (best *store.Connection) {
	if !store.Sticky(o.machine.Settings.Strategy) || len(o.target.Connections) < 2 {
		return nil
	}
	score := 0.0
	for _, conn := range o.target.Connections {
		if best != nil && conn.Priority > best.Priority {
			continue
		}
		if s := o.sticky(conn); best == nil || conn.Priority < best.Priority || s > score {
			best, score = conn, s
		}
	}
	return best
}

// takeTurn returns the turn of the call, one for all its targets: it is taken of the first
// one's provider. A call that is explained takes none.
func (pl *plan) takeTurn() uint32 {
	provider := pl.call.Targets[0].Provider.ID
	switch {
	case pl.explains:
		return pl.call.Machine.NextTurn(provider)
	case !pl.turned:
		pl.turned, pl.turn = true, pl.call.Machine.Turn(provider)
	}
	return pl.turn
}

// sortBy sorts a short list. Equal elements keep their order.
func sortBy(list []candidate, compare func(a, b *candidate) int) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && compare(&list[j], &list[j-1]) < 0; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// behind puts outliers behind the others, then accounts of a higher priority number,
// then those of a limit of which not enough is left.
func behind(a, b *candidate) int {
	return cmp.Or(compareFlags(a.outlier, b.outlier), cmp.Compare(a.conn.Priority, b.conn.Priority),
		compareFlags(a.low, b.low))
}

// compareFlags puts true behind false.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// lowerScore puts accounts of a lower score behind the others. Of equal ones, that goes
// first whose limit begins again first: what is left of it would be lost.
func lowerScore(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ends, b.ends))
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
