package storage

import (
	"cmp"
	"strconv"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

// The health of a connection is the outcome of its last call. It is for display:
// which account is called depends only on cooldowns, so a change of health does
// not change the generation.
const (
	healthReady       = "ready"              // the last call succeeded
	healthUntested    = "untested"           // nothing has been called since the credential was set
	HealthKeyRefused  = store.KeyRefused     // 401 or 403
	HealthOutOfCredit = store.OutOfCredit    // 402, or the code insufficient_quota
	healthLimited     = "limited"            // 429, until the cooldown ends
	HealthUnreachable = "unreachable"        // no answer at all
	HealthFailing     = "failing"            // 5xx, or an unusable answer
	HealthBlocked     = "blocked"            // the provider does not serve the place that the call came from
	HealthSealed      = store.KeyUnavailable // CREDENTIALS_KEY does not open the credentials
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
	Since     int64  `json:"since,omitempty"`     // of the first outcome of this Reason; 0 in rows of earlier versions
	SucceedAt int64  `json:"succeedAt,omitempty"` // last success
	Place     string `json:"place,omitempty"`     // that was refused; see store.Attempt
}

// Outcome is what one call has shown of an account. Reason is "" for success. Text is
// the error message.
type Outcome struct {
	Reason string
	Status int
	At     int64
	Text   string
	Place  string
}

// reasonOf returns the health that an attempt shows, "" for none: a refused
// request or model and a limit are not a state of the account, nor is an old token that cannot
// be refreshed at the moment.
func reasonOf(status int, code string) string {
	switch {
	case code == "token_unavailable", code == "account_lacks_model":
		return ""
	case code == "upstream_blocked_here":
		return HealthBlocked
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

// SetHealth records the outcome of a call, with its error. An outcome older than the
// row is ignored.
func (t *Tx) SetHealth(conn string, o Outcome) {
	at := min(o.At, t.Now)
	var row Health
	known := t.Load(HealthPrefix+conn, &row)
	if known && (at < row.At && row.At <= t.Now || o.Reason == "" && row.Reason == "" && at < row.At+okEvery &&
		row.At <= t.Now) {
		return
	}
	switch {
	case !known || row.Reason != o.Reason || row.Since > at:
		row.Since, t.Suspect = at, true
	case row.Since == 0:
		row.Since = min(row.At, at)
	}
	switch text := cmp.Or(o.Text, textOf(o.Reason, o.Status)); {
	case o.Reason == "" && row.Reason != "":
		t.SetError(conn, "")
	case o.Reason != "" && text != "":
		t.SetError(conn, text)
	}
	row.Reason, row.Status, row.At, row.Place = o.Reason, o.Status, at, ""
	switch o.Reason {
	case "":
		row.Status, row.SucceedAt = 0, at
	case HealthUnreachable:
		row.Status = 0
	case HealthBlocked:
		row.Place = o.Place
	}
	t.Put(HealthPrefix+conn, row)
}

// textOf describes a failure whose message is not known.
func textOf(reason string, status int) string {
	switch {
	case reason == HealthUnreachable:
		return "The provider could not be reached."
	case status > 0:
		return "The provider answered with status " + strconv.Itoa(status) + "."
	}
	return ""
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
				t.SetHealth(a.ConnectionID, Outcome{reason, a.Status, end, a.Text, a.Place})
				well[a.ConnectionID] = false
			}
		}
		if r.Status < 400 && r.Error == "" && r.Attempts > len(r.Failed) && has(r.ConnectionID) {
			told[r.ConnectionID] = true
			if !well[r.ConnectionID] { // once is enough
				well[r.ConnectionID] = true
				t.SetHealth(r.ConnectionID, Outcome{At: end})
			}
		}
	}
	// The list has only the last of many requests within a second. Cooldowns and
	// usage cover the others.
	for _, c := range rep.Cooldowns {
		if reason := HealthOf(c.Reason); has(c.ConnectionID) && (reason == HealthKeyRefused || reason == HealthOutOfCredit) {
			told[c.ConnectionID] = true
			t.SetHealth(c.ConnectionID, Outcome{Reason: reason, At: c.Since})
		}
	}
	for _, c := range rep.Cleared {
		if has(c.ConnectionID) {
			told[c.ConnectionID] = true
			t.SetHealth(c.ConnectionID, Outcome{At: c.At})
		}
	}
	for i := range rep.Usage {
		if u := &rep.Usage[i]; u.Requests > u.Errors && u.Errors >= 0 && !told[u.ConnectionID] && has(u.ConnectionID) {
			t.SetHealth(u.ConnectionID, Outcome{At: t.Now})
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

// opens reports whether the gateway has the keys that have sealed the credentials of a connection.
func (t *Tx) opens(c *Connection) bool { return t.Keyring == nil || t.Keyring.Has(c.Secrets) }

// Health returns the health of a connection and its row. The row is that of the state
// which is returned: of a limit it has the beginning.
func (t *Tx) Health(c *Connection, cools []store.Cooldown) (health string, row Health) {
	t.Load(HealthPrefix+c.ID, &row)
	switch {
	case !t.opens(c):
		return HealthSealed, Health{SucceedAt: row.SucceedAt}
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
			row.At, row.Since = cool.Since, cool.Since
			return is, row
		case is == healthLimited && (health == healthReady || health == healthUntested):
			health = healthLimited
			row.Since = cool.Since
		case is == healthLimited && health == healthLimited:
			row.Since = min(row.Since, cool.Since)
		}
	}
	return health, row
}
