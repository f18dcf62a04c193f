package machine

import (
	"encoding/json"

	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// The health of a connection is the outcome of its last call. It is for display:
// which account is called depends only on cooldowns, so a change of health does
// not change the generation.
const (
	healthReady       = "ready"           // the last call succeeded
	healthUntested    = "untested"        // nothing has been called since the credential was set
	healthKeyRefused  = store.KeyRefused  // 401 or 403
	healthOutOfCredit = store.OutOfCredit // 402, or the code insufficient_quota
	healthLimited     = "limited"         // 429, until the cooldown ends
	healthUnreachable = "unreachable"     // no answer at all
	healthFailing     = "failing"         // 5xx, or an unusable answer
)

// okEvery is how often a success is stored for a connection that keeps working.
const okEvery = minuteMs

// healthRow is the last outcome of a connection; Reason is "" for success.
type healthRow struct {
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
		return healthUnreachable
	case status == 402, code == "insufficient_quota":
		return healthOutOfCredit
	case status == 401, status == 403:
		return healthKeyRefused
	case status >= 500 && status != 529:
		return healthFailing
	}
	return ""
}

// noteHealth records the outcome of a call; reason "" is success. An outcome older
// than the row is ignored.
func (t *tx) noteHealth(conn, reason string, status int, at int64) {
	at = min(at, t.now)
	var row healthRow
	known := t.load(healthPrefix+conn, &row)
	if known && (at < row.At && row.At <= t.now || reason == "" && row.Reason == "" && at < row.At+okEvery && row.At <= t.now) {
		return
	}
	row.Reason, row.Status, row.At = reason, status, at
	if reason == "" {
		row.Status, row.SucceedAt = 0, at
	}
	if reason == healthUnreachable {
		row.Status = 0
	}
	t.put(healthPrefix+conn, row)
}

// noteReport records the outcomes in a report, for connections that exist.
func (t *tx) noteReport(rep *rpc.Report, has func(string) bool) {
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
				t.noteHealth(a.ConnectionID, reason, a.Status, end)
				well[a.ConnectionID] = false
			}
		}
		if r.Status < 400 && r.Error == "" && r.Attempts > len(r.Failed) && has(r.ConnectionID) {
			told[r.ConnectionID] = true
			if !well[r.ConnectionID] { // once is enough
				well[r.ConnectionID] = true
				t.noteHealth(r.ConnectionID, "", 0, end)
			}
		}
	}
	// The list has only the last of many requests within a second. Cooldowns and
	// usage cover the others.
	for _, c := range rep.Cooldowns {
		if reason := healthOf(c.Reason); has(c.ConnectionID) && (reason == healthKeyRefused || reason == healthOutOfCredit) {
			told[c.ConnectionID] = true
			t.noteHealth(c.ConnectionID, reason, 0, c.Since)
		}
	}
	for _, c := range rep.Cleared {
		if has(c.ConnectionID) {
			told[c.ConnectionID] = true
			t.noteHealth(c.ConnectionID, "", 0, c.At)
		}
	}
	for i := range rep.Usage {
		if u := &rep.Usage[i]; u.Requests > u.Errors && u.Errors >= 0 && !told[u.ConnectionID] && has(u.ConnectionID) {
			t.noteHealth(u.ConnectionID, "", 0, t.now)
		}
	}
}

// healthOf returns the health for the reason of a cooldown.
func healthOf(reason string) string {
	switch reason {
	case "unauthorized", store.KeyRefused:
		return healthKeyRefused
	case "quota", store.OutOfCredit:
		return healthOutOfCredit
	case store.RateLimited, "limited":
		return healthLimited
	}
	return ""
}

// health returns the health of a connection and its row.
func (t *tx) health(c *connRow, cools []store.Cooldown) (health string, row healthRow) {
	t.load(healthPrefix+c.ID, &row)
	switch {
	case row.Reason != "":
		health = row.Reason
	case row.SucceedAt > 0:
		health = healthReady
	default:
		health = healthUntested
	}
	for _, cool := range cools {
		if cool.ConnectionID != c.ID || cool.Until <= t.now {
			continue
		}
		switch is := healthOf(cool.Reason); {
		case (is == healthKeyRefused || is == healthOutOfCredit) && cool.Since > row.At:
			return is, row
		case is == healthLimited && (health == healthReady || health == healthUntested):
			health = healthLimited
		}
	}
	return health, row
}

// wantsCredential reports whether the calls of a provider need a credential.
func wantsCredential(id string) bool {
	d := provider.Lookup(id)
	return d != nil && d.Auth.Scheme != provider.None && !d.Auth.Optional
}

// tested records the outcome of a connection test.
//
//	tested {connectionId, reason, status} → 200 {}; 404
//
// reason is "" for success, else one of the constants above.
func (o *Object) tested(r *request) (any, error) {
	var c struct {
		ID     string `json:"connectionId"`
		Reason string `json:"reason"`
		Status int    `json:"status"`
	}
	if !r.exists() {
		return nil, errGone()
	}
	if json.Unmarshal(r.body, &c) != nil || !rpc.IsRowID(c.ID) {
		return nil, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	if _, ok := r.get(connPrefix + c.ID); !ok {
		return nil, apierr.New(404, "connection_not_found", "there is no such connection")
	}
	switch c.Reason {
	case "", healthKeyRefused, healthOutOfCredit, healthUnreachable, healthFailing:
		r.noteHealth(c.ID, c.Reason, c.Status, r.now)
	}
	if c.Reason == "" {
		for _, row := range r.list(coolPrefix + c.ID + ":") {
			var cool store.Cooldown
			if json.Unmarshal(row.Value, &cool) != nil {
				continue
			}
			if is := healthOf(cool.Reason); is == healthKeyRefused || is == healthOutOfCredit {
				r.touch()
				r.del(row.Key)
			}
		}
	}
	return struct{}{}, nil
}
