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
	now := pl.Now().UnixMilli()
	for _, conn := range to.Connections {
		if pin != "" && conn.ID != pin {
			continue
		}
		if conn.Status != "" {
			pl.unusable = errors.New("the connection is marked " + conn.Status)
			continue
		}
		c := candidate{conn: conn}
		if wait := c.look(m, to.Model, now); wait > 0 {
			pl.leave(wait)
			continue
		}
		list = append(list, c)
	}
	if len(list) < 2 {
		return list
	}
	for i := 1; i < len(list); i++ { // insertion sort: short, stable
		for j := i; j > 0 && before(&list[j], &list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	if m.Settings.Strategy == "round-robin" {
		n := int(m.Turn(to.Provider.ID) % uint32(len(list)))
		list = append(append(make([]candidate, 0, len(list)), list[n:]...), list[:n]...)
	}
	return list
}

func before(a, b *candidate) bool {
	if a.conn.Priority != b.conn.Priority {
		return a.conn.Priority < b.conn.Priority
	}
	return a.failed < b.failed
}

// look reads what is noted against the account and the model, and gives the
// wait while it cools down.
func (c *candidate) look(m *snapshot.Machine, model string, now int64) time.Duration {
	var wait int64
	for _, name := range [2]string{"", model} {
		s := m.State(c.conn.ID, name)
		if s.Until == 0 {
			continue
		}
		c.failed = max(c.failed, s.Since)
		// A clock that went back must not make a cooldown longer than it was.
		left := min(s.Until-now, s.Until-s.Since)
		wait = max(wait, left)
		if left <= 0 && s.Until-s.Since >= longCooldown.Milliseconds() {
			c.trial, c.trialModel = true, name
		}
		if model == "" {
			break
		}
	}
	return time.Duration(wait) * time.Millisecond
}
