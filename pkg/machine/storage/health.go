package storage

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

// The health of a connection is the outcome of its last call. It is for display:
// which account is called depends only on cooldowns, so a change of health does
// not change the generation.
const (
	healthReady       = "ready"           // the last call succeeded
	healthUntested    = "untested"        // nothing has been called since the credential was set
	HealthKeyRefused  = store.KeyRefused  // 401 or 403
	HealthOutOfCredit = store.OutOfCredit // 402, or the code insufficient_quota
	healthLimited     = "limited"         // 429, until the cooldown ends
	HealthUnreachable = "unreachable"     // no answer at all
	HealthFailing     = "failing"         // 5xx, or an unusable answer
)

// okEvery is how often a success is stored for a connection that keeps working.
const okEvery = Minute

// Health is the last outcome of a connection; Reason is "" for success.
//
//easyjson:json
type Health struct {
	Reason    string `json:"reason,omitempty"`
	Status    int    `json:"status,omitempty"` // of the upstream, 0 without an answer
	At        int64  `json:"at"`
	SucceedAt int64  `json:"succeedAt,omitempty"` // last success
}

// reasonOf returns the health that an attempt shows, "" for none: a refused
// request, a limit and a refused location are not a state of the account.
func reasonOf(status int, code string) string {
	switch {
	case code == "upstream_blocked_here":
		return ""
	case code == "upstream_unreachable", code == "upstream_timeout":
		return HealthUnreachable
	case status == 402, code == "insufficient_quota":
		return HealthOutOfCredit
	case status == 401, status == 403:
		return HealthKeyRefused
	case status >= 500 && status != 529:
		return HealthFailing
	}
	return ""
}

// SetHealth records the outcome of a call; reason "" is success. An outcome older
// than the row is ignored.
func (t *Tx) SetHealth(conn, reason string, status int, at int64) {
	at = min(at, t.Now)
	var row Health
	known := t.Load(HealthPrefix+conn, &row)
	if known && (at < row.At && row.At <= t.Now || reason == "" && row.Reason == "" && at < row.At+okEvery && row.At <= t.Now) {
		return
	}
	row.Reason, row.Status, row.At = reason, status, at
	if reason == "" {
		row.Status, row.SucceedAt = 0, at
	}
	if reason == HealthUnreachable {
		row.Status = 0
	}
	t.Put(HealthPrefix+conn, row)
}

// AddOutcomes records the outcomes in a report, for connections that exist.
func (t *Tx) AddOutcomes(rep *rpc.Report, has func(string) bool) {
	// Connections in the requests, and those whose last outcome was noted as success.
	told, well := map[string]bool{}, map[string]bool{}
	for i := range rep.Requests {
		r := &rep.Requests[i]
		end := r.At + max(r.LatencyMs, 0)
		for _, a := range r.Failed[:min(len(r.Failed), 16)] {
			if !has(a.ConnectionID) {
				continue
			}
			told[a.ConnectionID] = true
			if reason := reasonOf(a.Status, a.Code); reason != "" {
				t.SetHealth(a.ConnectionID, reason, a.Status, end)
				well[a.ConnectionID] = false
			}
		}
		if r.Status < 400 && r.Error == "" && r.Attempts > len(r.Failed) && has(r.ConnectionID) {
			told[r.ConnectionID] = true
			if !well[r.ConnectionID] { // once is enough
				well[r.ConnectionID] = true
				t.SetHealth(r.ConnectionID, "", 0, end)
			}
		}
	}
	// The list has only the last of many requests within a second. Cooldowns and
	// usage cover the others.
	for _, c := range rep.Cooldowns {
		if reason := HealthOf(c.Reason); has(c.ConnectionID) && (reason == HealthKeyRefused || reason == HealthOutOfCredit) {
			told[c.ConnectionID] = true
			t.SetHealth(c.ConnectionID, reason, 0, c.Since)
		}
	}
	for _, c := range rep.Cleared {
		if has(c.ConnectionID) {
			told[c.ConnectionID] = true
			t.SetHealth(c.ConnectionID, "", 0, c.At)
		}
	}
	for i := range rep.Usage {
		if u := &rep.Usage[i]; u.Requests > u.Errors && u.Errors >= 0 && !told[u.ConnectionID] && has(u.ConnectionID) {
			t.SetHealth(u.ConnectionID, "", 0, t.Now)
		}
	}
}

// HealthOf returns the health for the reason of a cooldown.
func HealthOf(reason string) string {
	switch reason {
	case "unauthorized", store.KeyRefused:
		return HealthKeyRefused
	case "quota", store.OutOfCredit:
		return HealthOutOfCredit
	case store.RateLimited, "limited":
		return healthLimited
	}
	return ""
}

// Health returns the health of a connection and its row.
func (t *Tx) Health(c *Connection, cools []store.Cooldown) (health string, row Health) {
	t.Load(HealthPrefix+c.ID, &row)
	switch {
	case row.Reason != "":
		health = row.Reason
	case row.SucceedAt > 0:
		health = healthReady
	default:
		health = healthUntested
	}
	for _, cool := range cools {
		if cool.ConnectionID != c.ID || cool.Until <= t.Now {
			continue
		}
		switch is := HealthOf(cool.Reason); {
		case (is == HealthKeyRefused || is == HealthOutOfCredit) && cool.Since > row.At:
			return is, row
		case is == healthLimited && (health == healthReady || health == healthUntested):
			health = healthLimited
		}
	}
	return health, row
}
