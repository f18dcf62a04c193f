package accounts

import (
	"errors"
	"time"

	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// longCooldown is the cooldown after which one request tries the account while
// the others still leave it out.
const longCooldown = time.Minute

// candidate is an account that may be tried.
type candidate struct {
	conn       *store.Connection
	failed     int64 // time of its last failure, 0 for none
	trial      bool  // it comes back from a long cooldown
	trialModel string
}

// pinned tells whether one of the targets may be served by the connection id.
func pinned(call *Call, id string) bool {
	for i := range call.Targets {
		for _, c := range call.Targets[i].Connections {
			if c.ID == id {
				return call.Machine.Connection(id) != nil
			}
		}
	}
	return false
}

// order gives the accounts of a target that are ready, in the order in which
// they are tried: lower priority first, then the least recently failed, then
// as stored. With the strategy round-robin each call begins one account later,
// whatever the priorities. Those that cool down leave their wait in the plan.
func (pl *plan) order(list []candidate, to *routing.Target, pin string) []candidate {
	m := pl.call.Machine
	list = ready(list, m, to, pin, pl.Now().UnixMilli(), pl)
	if len(list) > 1 && m.Settings.Strategy == roundRobin {
		return rotated(list, m.Turn(to.Provider.ID))
	}
	return list
}

const roundRobin = "round-robin"

// skipper is told which accounts are left out, and why.
type skipper interface {
	skip(conn *store.Connection, status string, wait time.Duration, reason string)
}

// skip notes why an account is left out of the plan.
func (pl *plan) skip(_ *store.Connection, status string, wait time.Duration, _ string) {
	if status != "" {
		pl.unusable = errors.New("the connection is marked " + status)
		return
	}
	pl.leave(wait)
}

// ready appends the accounts that may be tried, in order of priority and of
// failure.
func ready(list []candidate, m *snapshot.Machine, to *routing.Target, pin string, now int64, s skipper) []candidate {
	for _, conn := range to.Connections {
		if pin != "" && conn.ID != pin {
			continue
		}
		if conn.Status != "" {
			s.skip(conn, conn.Status, 0, "")
			continue
		}
		c := candidate{conn: conn}
		if wait, reason := c.look(m, to.Model, now); wait > 0 {
			s.skip(conn, "", wait, reason)
			continue
		}
		list = append(list, c)
	}
	for i := 1; i < len(list); i++ { // insertion sort: short, stable
		for j := i; j > 0 && before(&list[j], &list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// rotated gives the list from a turn's place on.
func rotated(list []candidate, turn uint32) []candidate {
	n := int(turn % uint32(len(list)))
	return append(append(make([]candidate, 0, len(list)), list[n:]...), list[:n]...)
}

func before(a, b *candidate) bool {
	if a.conn.Priority != b.conn.Priority {
		return a.conn.Priority < b.conn.Priority
	}
	return a.failed < b.failed
}

// look reads what is noted against the account and the model, and gives the
// wait while it cools down, and for what.
func (c *candidate) look(m *snapshot.Machine, model string, now int64) (time.Duration, string) {
	var wait int64
	var reason string
	for _, name := range [2]string{"", model} {
		s := m.State(c.conn.ID, name)
		if s.Until == 0 {
			continue
		}
		c.failed = max(c.failed, s.Since)
		// A clock that went back must not make a cooldown longer than it was.
		left := min(s.Until-now, s.Until-s.Since)
		if left > wait {
			wait, reason = left, s.Reason
		}
		if left <= 0 && s.Until-s.Since >= longCooldown.Milliseconds() {
			c.trial, c.trialModel = true, name
		}
		if model == "" {
			break
		}
	}
	return time.Duration(wait) * time.Millisecond, reason
}
