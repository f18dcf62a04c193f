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
	conn    *store.Connection
	failed  int64   // time of its last failure, 0 for none
	score   float64 // among accounts of equal priority; see ordering
	outlier bool    // it fails so often that the others are tried first
	low     bool    // too little is left of a limit: see snapshot.Headroom
	ends    int64   // when its first limit of an hour or more begins again
	trial   bool    // one request at a time may try it: after a long cooldown, or within one
	alone   bool    // no other account can serve the call
	whole   bool    // the cooldown that the trial is about is the account's, not the model's
}

// pinned reports whether one of the targets may be served by the connection id.
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

// order returns the accounts of a target that are ready, in the order in which they
// are tried.
func (pl *plan) order(list []candidate, to *routing.Target, pin string) []candidate {
	o := pl.ordering(to, pl.Now().UnixMilli())
	return o.sort(pl.ready(list, to, pin, o.now))
}

// ordering returns what the order of a target's accounts depends on.
func (pl *plan) ordering(to *routing.Target, now int64) ordering {
	o := ordering{machine: pl.call.Machine, target: to, now: now, plan: pl}
	if s := o.machine.Settings.Strategy; len(to.Connections) > 1 && (store.Sticky(s) || s == store.Fastest) {
		o.session = pl.session()
	}
	return o
}

// session returns the session of the call: without one of its endpoint, that of its
// header fields.
func (pl *plan) session() *routing.Session {
	if pl.call.Session == nil {
		pl.call.Session = &routing.Session{Request: pl.call.Request}
	}
	return pl.call.Session
}

// needsReauth is the status of a connection whose sign-in was revoked.
const needsReauth = "needs_reauth"

// ready appends the accounts that may be tried, as stored, and notes why the others are left
// out.
func (pl *plan) ready(list []candidate, to *routing.Target, pin string, now int64) []candidate {
	m := pl.call.Machine
	quotas := m.AnyQuota() && len(to.Connections) > 1
	for _, conn := range to.Connections {
		if pin != "" && conn.ID != pin {
			continue
		}
		if s := conn.Status; s != "" {
			o := Outcome{Target: to, Connection: conn, Skipped: s, cause: rankRefused}
			if s != needsReauth {
				o.cause, o.err = rankNone, errors.New("the account is marked "+s)
			}
			pl.outcomes = append(pl.outcomes, o)
			continue
		}
		c := candidate{conn: conn, outlier: m.Outlier(conn.ID, to.Model, now)}
		if wait, state := c.look(m, to.Model, now); wait > 0 {
			pl.leaveOut(to, conn, state, wait)
			continue
		}
		if quotas {
			c.low, c.ends = m.Headroom(conn.ID, to.Model, now)
		}
		list = append(list, c)
	}
	return list
}

// leaveOut notes that an account cools down.
func (pl *plan) leaveOut(to *routing.Target, conn *store.Connection, s snapshot.State, wait time.Duration) {
	pl.outcomes = append(pl.outcomes, Outcome{Target: to, Connection: conn, Skipped: s.Reason, cause: rankOf(s.Reason),
		since: s.Since, wait: wait})
}

// look reads what is noted against the account and the model, and returns the
// wait while it cools down, and that cooldown.
func (c *candidate) look(m *snapshot.Machine, model string, now int64) (time.Duration, snapshot.State) {
	var wait int64
	var why snapshot.State
	for _, name := range [2]string{"", model} {
		s := m.State(c.conn.ID, name)
		if s.Until == 0 {
			continue
		}
		c.failed = max(c.failed, s.Since)
		left := s.Left(now)
		switch {
		case left > 0 && !s.TrialDue(now):
			if left > wait {
				wait, why = left, s
			}
		case left > 0, s.Until-s.Since >= longCooldown.Milliseconds():
			c.trial, c.whole = true, name == ""
		}
		if model == "" {
			break
		}
	}
	return time.Duration(wait) * time.Millisecond, why
}
