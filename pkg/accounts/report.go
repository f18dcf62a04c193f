package accounts

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/apierr"
	"weir/pkg/snapshot"
	"weir/pkg/store"
)

// Bounds of what waits to be reported.
const (
	maxReports   = 256 // machines
	maxPerReport = 64  // cooldowns and clearings
	maxLastError = 200 // bytes
)

// report is what the object of a machine is to be told.
type report struct {
	Cooldowns []reported `json:"cooldowns,omitempty"`
	Cleared   []clearing `json:"cleared,omitempty"`
	at        int64
}

// reported is a cooldown with the redacted message that led to it.
type reported struct {
	store.Cooldown
	LastError string `json:"lastError,omitempty"`
}

// clearing names an account, or one model of it, that works again.
type clearing struct {
	ConnectionID string `json:"connectionId"`
	Model        string `json:"model,omitempty"`
}

// cool notes a cooldown in this isolate and for the next report.
func (p *Pool) cool(m *snapshot.Machine, connection, model string, span time.Duration, reason string, failures int, e *apierr.Error, now time.Time) {
	c := store.Cooldown{
		ConnectionID: connection, Model: model, Reason: reason, Failures: failures,
		Since: now.UnixMilli(), Until: now.Add(span).UnixMilli(),
	}
	m.Cool(c)
	r := p.reportOf(m.ID)
	r.drop(connection, model)
	text := e.Message
	if len(text) > maxLastError {
		text = cut(text, maxLastError)
	}
	r.Cooldowns = append(r.Cooldowns, reported{c, text})
	r.at = max(r.at, c.Since)
	if len(r.Cooldowns) > maxPerReport {
		r.Cooldowns = r.Cooldowns[1:]
	}
}

func (p *Pool) cleared(machineID, connection, model string) {
	r := p.reportOf(machineID)
	r.drop(connection, model)
	r.Cleared = append(r.Cleared, clearing{connection, model})
	r.at = max(r.at, p.Now().UnixMilli())
	if len(r.Cleared) > maxPerReport {
		r.Cleared = r.Cleared[1:]
	}
}

// drop takes out what was to be said of an account before.
func (r *report) drop(connection, model string) {
	for i := range r.Cooldowns {
		if r.Cooldowns[i].ConnectionID == connection && r.Cooldowns[i].Model == model {
			r.Cooldowns = append(r.Cooldowns[:i], r.Cooldowns[i+1:]...)
			break
		}
	}
	for i := range r.Cleared {
		if r.Cleared[i] == (clearing{connection, model}) {
			r.Cleared = append(r.Cleared[:i], r.Cleared[i+1:]...)
			break
		}
	}
}

func (p *Pool) reportOf(machineID string) *report {
	r := p.reports[machineID]
	if r == nil {
		if p.reports == nil {
			p.reports = map[string]*report{}
		}
		for id := range p.reports {
			if len(p.reports) < maxReports {
				break
			}
			delete(p.reports, id)
		}
		r = &report{}
		p.reports[machineID] = r
	}
	return r
}

// Pending tells whether Flush has something to tell.
func (p *Pool) Pending(machineID string) bool { return p.reports[machineID] != nil }

// Flush tells the object of a machine what became of its accounts since the
// last time. It is called after the answer; without news it costs nothing. A
// report that does not get through is kept for the next call.
//
//	report {cooldowns: [store.Cooldown with lastError], cleared: [{connectionId, model}]} → {generation}
//
// The generation is that of the first replica which carries the report.
func (p *Pool) Flush(ctx context.Context, m *snapshot.Machine) {
	r := p.reports[m.ID]
	if r == nil {
		return
	}
	delete(p.reports, m.ID) // what comes in during the call is the next report
	body, err := json.Marshal(r)
	if err != nil {
		return
	}
	status, answer, err := p.Object.Call(ctx, m.ID, "report", body)
	switch {
	case err != nil || status >= 500:
		p.restore(m.ID, r)
	case status == 200:
		if g := gjson.GetBytes(answer, "generation").Int(); g > 0 {
			m.Reported(g, r.at)
		}
	}
}

// restore puts back a report that did not get through, under what came since.
func (p *Pool) restore(machineID string, old *report) {
	since := p.reports[machineID]
	if since != nil {
		for _, c := range since.Cooldowns {
			old.drop(c.ConnectionID, c.Model)
		}
		for _, c := range since.Cleared {
			old.drop(c.ConnectionID, c.Model)
		}
	} else {
		since = p.reportOf(machineID)
	}
	since.Cooldowns = last(append(old.Cooldowns, since.Cooldowns...))
	since.Cleared = last(append(old.Cleared, since.Cleared...))
	since.at = max(since.at, old.at)
}

func last[T any](list []T) []T {
	if over := len(list) - maxPerReport; over > 0 {
		return list[over:]
	}
	return list
}

// cut shortens a text to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
