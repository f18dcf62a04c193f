package machine

import (
	"encoding/json"
	"strings"
	"time"

	"weir/pkg/apierr"
	"weir/pkg/redact"
	"weir/pkg/store"
)

// Bounds of what a report may say (reliability T53, N11).
const (
	maxCool      = int64(30 * time.Minute / time.Millisecond)
	maxCoolQuota = int64(24 * time.Hour / time.Millisecond) // a stated reset of a quota
	keepCool     = int64(10 * time.Minute / time.Millisecond)
	maxReport    = 1 << 20 // bytes
	maxPerReport = 1000    // entries of each kind
	maxErrorText = 300     // bytes
	clockSkew    = int64(5 * time.Second / time.Millisecond)
)

// report takes in what an isolate has seen. Everything in it is one turn.
func (o *Object) report(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	var rep Report
	if len(r.body) > maxReport || json.Unmarshal(r.body, &rep) != nil {
		return nil, apierr.Invalid("", "the report is not readable")
	}
	if max(len(rep.Cooldowns), len(rep.Cleared), len(rep.Errors), len(rep.Keys), len(rep.Usage), len(rep.Requests), len(rep.Refusals)) > maxPerReport {
		return nil, apierr.Invalid("", "the report has too many entries")
	}
	known := map[string]bool{}
	has := func(conn string) bool {
		ok, asked := known[conn]
		if !asked {
			ok = isRowID(conn)
			if ok {
				_, ok = r.get(connPrefix + conn)
			}
			known[conn] = ok
		}
		return ok
	}
	for _, c := range rep.Cooldowns {
		if has(c.ConnectionID) {
			r.cool(c)
		}
	}
	for _, c := range rep.Cleared {
		if has(c.ConnectionID) {
			r.clear(c)
		}
	}
	for _, e := range rep.Errors {
		if has(e.ConnectionID) {
			r.setError(e.ConnectionID, e.Text)
		}
	}
	for _, f := range rep.Refusals {
		if has(f.ConnectionID) {
			r.refuse(f)
		}
	}
	limited := r.count(rep.Keys)
	r.use(rep.Usage)
	r.record(rep.Requests)
	return Reported{r.meta.Generation, limited}, nil
}

func coolKey(conn, model string) string {
	if model == "" {
		return coolPrefix + conn + ":"
	}
	return coolPrefix + conn + ":" + digestOf(model)[:16]
}

// bounded gives a cooldown without a time that makes no sense now.
func bounded(c store.Cooldown, now int64) store.Cooldown {
	most := maxCool
	if c.Reason == "quota" {
		most = maxCoolQuota
	}
	if c.Since <= 0 || c.Since > now {
		c.Since = now
	}
	c.Until = min(c.Until, now+most)
	c.Failures = min(max(c.Failures, 0), 64)
	return c
}

// cool keeps a cooldown unless a later failure is known.
func (t *tx) cool(c store.Cooldown) {
	if len(c.Model) > 256 {
		return
	}
	switch c.Reason {
	case "rate_limited", "unauthorized", "quota", "unavailable":
	default:
		c.Reason = "unavailable"
	}
	c = bounded(c, t.now)
	if c.Until <= t.now {
		return
	}
	key := coolKey(c.ConnectionID, c.Model)
	var had store.Cooldown
	if t.load(key, &had) {
		had = bounded(had, t.now)
		if had.Since > c.Since && had.Until >= c.Until || had == c {
			return
		}
		c.Failures = max(c.Failures, had.Failures)
		c.Since = max(c.Since, had.Since)
	}
	t.touch()
	t.put(key, c)
}

// clear ends a cooldown, unless the failure came after the success.
func (t *tx) clear(c Cleared) {
	key := coolKey(c.ConnectionID, c.Model)
	var had store.Cooldown
	if !t.load(key, &had) || c.At > 0 && had.Since > c.At && had.Since <= t.now {
		return
	}
	t.touch()
	t.del(key)
}

// clearCooldowns ends all cooldowns of a connection.
func (t *tx) clearCooldowns(conn string) {
	for _, r := range t.list(coolPrefix + conn + ":") {
		t.touch()
		t.del(r.Key)
	}
}

// cooldowns gives those that still matter: an ended one does for a while, for
// the count of failures and the order of accounts.
func (t *tx) cooldowns() []store.Cooldown {
	var out []store.Cooldown
	for _, c := range rowsOf[store.Cooldown](t, coolPrefix) {
		if c = bounded(c, t.now); c.Until > t.now-keepCool {
			out = append(out, c)
		}
	}
	return out
}

// setError keeps what went wrong last with a connection. It is shown, nothing
// depends on it, so the generation stays.
func (t *tx) setError(conn, text string) {
	if text == "" {
		if _, ok := t.get(errorPrefix + conn); ok {
			t.del(errorPrefix + conn)
		}
		return
	}
	text = redact.Patterns(text)
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	text = strings.ToValidUTF8(text, "")
	var had string
	if t.load(errorPrefix+conn, &had); had != text {
		t.put(errorPrefix+conn, text)
	}
}

// lastError gives the error of a connection: of its refresh, else of its calls.
func (t *tx) lastError(c *connRow) string {
	if c.LastError != "" {
		return c.LastError
	}
	var text string
	t.load(errorPrefix+c.ID, &text)
	return text
}
