package machine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/redact"
)

// Bounds of what a report may say. Those of cooldowns are in package store.
const (
	keepCool = int64(store.ForgetCooldown / time.Millisecond)
)

// report takes in what an isolate has seen. Everything in it is one turn.
func (o *Object) report(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	var rep rpc.Report
	if len(r.body) > rpc.MaxReport || json.Unmarshal(r.body, &rep) != nil {
		return nil, apierr.Invalid("", "the report is not readable")
	}
	if max(len(rep.Cooldowns), len(rep.Cleared), len(rep.Errors), len(rep.Keys), len(rep.Usage), len(rep.Requests), len(rep.Refusals)) > rpc.MaxReportEntries {
		return nil, apierr.Invalid("", "the report has too many entries")
	}
	known := map[string]bool{}
	has := func(conn string) bool {
		ok, asked := known[conn]
		if !asked {
			ok = rpc.IsRowID(conn)
			if ok {
				_, ok = r.get(connPrefix + conn)
			}
			known[conn] = ok
		}
		return ok
	}
	added := map[string]bool{} // connections with a new row
	for _, c := range rep.Cooldowns {
		if has(c.ConnectionID) && r.cool(c) {
			added[c.ConnectionID] = true
		}
	}
	if len(added) > 0 {
		r.boundCooldowns(added)
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
	r.noteReport(&rep, has)
	limited := r.count(rep.Keys)
	r.use(rep.Usage)
	r.record(rep.Requests)
	return rpc.Reported{Generation: r.meta.Generation, Limited: limited}, nil
}

func coolKey(conn, model string) string {
	if model == "" {
		return coolPrefix + conn + ":"
	}
	return coolPrefix + conn + ":" + digestOf(model)[:16]
}

// cool stores a cooldown unless a later failure is known, and reports whether it
// added a row.
func (t *tx) cool(c store.Cooldown) bool {
	if len(c.Model) > store.MaxCooledModel {
		return false
	}
	c = c.Bounded(t.now)
	if c.Until <= t.now {
		return false
	}
	key := coolKey(c.ConnectionID, c.Model)
	var had store.Cooldown
	found := t.load(key, &had)
	if found && had.Since <= t.now+skew {
		had = had.Bounded(t.now)
		if had.Since > c.Since && had.Until >= c.Until || had == c {
			return false
		}
		c.Failures = max(c.Failures, had.Failures)
		c.Since = max(c.Since, had.Since)
	}
	t.touch()
	t.put(key, c)
	return !found
}

const skew = int64(store.ClockSkew / time.Millisecond)

// boundCooldowns bounds the rows of cooldowns, because callers choose the names of
// models. Ended ones are removed first. A connection with too many models that
// cool down cools as a whole, until the last of them ends. If the machine has too
// many rows, those that end first are removed.
func (t *tx) boundCooldowns(added map[string]bool) {
	all, total := map[string][]coolRow{}, 0
	for _, r := range t.list(coolPrefix) {
		c := coolRow{key: r.Key}
		if json.Unmarshal(r.Value, &c.Cooldown) != nil {
			continue
		}
		all[c.ConnectionID] = append(all[c.ConnectionID], c)
		total++
	}
	for conn := range added {
		rows := all[conn]
		if len(rows) <= store.MaxCooledModels {
			continue
		}
		kept, models := rows[:0], 0
		for _, c := range rows {
			if c.Left(t.now) == 0 {
				t.touch()
				t.del(c.key)
				total--
				continue
			}
			if kept = append(kept, c); c.Model != "" {
				models++
			}
		}
		all[conn] = kept
		if models <= store.MaxCooledModels {
			continue
		}
		whole := store.Cooldown{}
		for _, c := range kept {
			if c.Until >= whole.Until {
				whole = c.Cooldown
			}
			t.del(c.key)
		}
		whole.Model = ""
		t.touch()
		t.put(coolKey(conn, ""), whole)
		total += 1 - len(kept)
		all[conn] = []coolRow{{coolKey(conn, ""), whole}}
	}
	if total <= store.MaxCooledRows {
		return
	}
	var rows []coolRow
	for _, list := range all {
		rows = append(rows, list...)
	}
	slices.SortFunc(rows, func(a, b coolRow) int { return cmp.Compare(a.Until, b.Until) })
	t.touch()
	for _, c := range rows[:total-store.MaxCooledRows] {
		t.del(c.key)
	}
}

// coolRow is a stored cooldown.
type coolRow struct {
	key string
	store.Cooldown
}

// clear ends a cooldown, unless the failure came after the success.
func (t *tx) clear(c rpc.Cleared) {
	key := coolKey(c.ConnectionID, c.Model)
	var had store.Cooldown
	if !t.load(key, &had) || c.At > 0 && had.Since > c.At && had.Since <= t.now+skew {
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

// cooldowns returns those that still matter: an ended one does for a while, for
// the count of failures and the order of accounts.
func (t *tx) cooldowns() []store.Cooldown {
	var out []store.Cooldown
	for _, c := range rowsOf[store.Cooldown](t, coolPrefix) {
		if !t.forgotten(&c) {
			out = append(out, c.Bounded(t.now))
		}
	}
	return out
}

// forgotten reports whether a cooldown no longer matters. One that began after
// now dates from before the clock was set back, which must not make it longer.
func (t *tx) forgotten(c *store.Cooldown) bool {
	return c.Since > t.now+skew || c.Bounded(t.now).Until <= t.now-keepCool
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
	if len(text) > rpc.MaxErrorText {
		text = text[:rpc.MaxErrorText]
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
