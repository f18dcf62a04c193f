package storage

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/redact"
)

// Bounds of what a report may say. Those of cooldowns are in package store.
const (
	keepCool = int64(store.ForgetCooldown / time.Millisecond)
)

func coolKey(conn, model string) string {
	if model == "" {
		return CooldownPrefix + conn + ":"
	}
	return CooldownPrefix + conn + ":" + DigestOf(model)[:16]
}

// AddCooldown stores a cooldown unless a later failure is known, and reports
// whether it added a row.
func (t *Tx) AddCooldown(c store.Cooldown) bool {
	if len(c.Model) > store.MaxCooledModel {
		return false
	}
	c = c.Bounded(t.Now)
	if c.Until <= t.Now {
		return false
	}
	if is := HealthOf(c.Reason); is == HealthKeyRefused || is == HealthOutOfCredit {
		// A report may come after a test that has succeeded.
		var h Health
		if t.Load(HealthPrefix+c.ConnectionID, &h); h.SucceedAt > c.Since && h.SucceedAt <= t.Now {
			return false
		}
	}
	key := coolKey(c.ConnectionID, c.Model)
	var had store.Cooldown
	found := t.Load(key, &had)
	if found && had.Since <= t.Now+skew {
		had = had.Bounded(t.Now)
		if had.Since > c.Since && had.Until >= c.Until || had == c {
			return false
		}
		c.Failures = max(c.Failures, had.Failures)
		c.Since = max(c.Since, had.Since)
	}
	t.Observe()
	t.Suspect = true
	t.Put(key, c)
	return !found
}

const skew = int64(store.ClockSkew / time.Millisecond)

// BoundCooldowns bounds the rows of cooldowns, because callers choose the names
// of models. Ended ones are removed first. A connection with too many models
// that cool down cools as a whole, until the last of them ends. If the machine
// has too many rows, those that end first are removed.
func (t *Tx) BoundCooldowns(added map[string]bool) {
	all, total := map[string][]coolRow{}, 0
	for _, r := range t.List(CooldownPrefix) {
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
		active, models := rows[:0], 0
		for _, c := range rows {
			if c.Left(t.Now) == 0 {
				t.Observe()
				t.Del(c.key)
				total--
				continue
			}
			if active = append(active, c); c.Model != "" {
				models++
			}
		}
		all[conn] = active
		if models <= store.MaxCooledModels {
			continue
		}
		whole := store.Cooldown{}
		for _, c := range active {
			if c.Until >= whole.Until {
				whole = c.Cooldown
			}
			t.Del(c.key)
		}
		whole.Model = ""
		t.Observe()
		t.Put(coolKey(conn, ""), whole)
		total += 1 - len(active)
		all[conn] = []coolRow{{coolKey(conn, ""), whole}}
	}
	if total <= store.MaxCooledRows {
		return
	}
	rows := slices.Concat(slices.Collect(maps.Values(all))...)
	slices.SortFunc(rows, func(a, b coolRow) int { return cmp.Compare(a.Until, b.Until) })
	t.Observe()
	for _, c := range rows[:total-store.MaxCooledRows] {
		t.Del(c.key)
	}
}

// coolRow is a stored cooldown.
type coolRow struct {
	key string
	store.Cooldown
}

// ClearCooldown ends a cooldown, unless the failure came after the success.
func (t *Tx) ClearCooldown(c rpc.Cleared) {
	key := coolKey(c.ConnectionID, c.Model)
	var had store.Cooldown
	if !t.Load(key, &had) || c.At > 0 && had.Since > c.At && had.Since <= t.Now+skew {
		return
	}
	t.Observe()
	t.Suspect = true
	t.Del(key)
}

// ClearCooldowns ends all cooldowns of a connection.
func (t *Tx) ClearCooldowns(conn string) {
	for _, r := range t.List(CooldownPrefix + conn + ":") {
		t.Observe()
		t.Suspect = true
		t.Del(r.Key)
	}
}

// Cooldowns returns those that still matter: an ended one does for a while, for
// the count of failures and the order of accounts.
func (t *Tx) Cooldowns() []store.Cooldown {
	var out []store.Cooldown
	for _, c := range RowsOf[store.Cooldown](t, CooldownPrefix) {
		if !t.Forgotten(&c) {
			out = append(out, c.Bounded(t.Now))
		}
	}
	return out
}

// Forgotten reports whether a cooldown no longer matters. One that began after
// now dates from before the clock was set back, which must not make it longer.
func (t *Tx) Forgotten(c *store.Cooldown) bool {
	return c.Since > t.Now+skew || c.Bounded(t.Now).Until <= t.Now-keepCool
}

// SetError keeps what went wrong last with a connection. It is shown, nothing
// depends on it: neither the generation nor Observed moves.
func (t *Tx) SetError(conn, text string) {
	if text == "" {
		if _, ok := t.Get(ErrorPrefix + conn); ok {
			t.Del(ErrorPrefix + conn)
		}
		return
	}
	text = redact.Patterns(text)
	if len(text) > rpc.MaxErrorText {
		text = text[:rpc.MaxErrorText]
	}
	text = strings.ToValidUTF8(text, "")
	var had string
	if t.Load(ErrorPrefix+conn, &had); had != text {
		t.Put(ErrorPrefix+conn, text)
	}
}

// LastError returns the error of a connection: of its refresh, else of its
// calls.
func (t *Tx) LastError(c *Connection) string {
	if !t.opens(c) {
		return store.SealedText
	}
	if c.LastError != "" {
		return c.LastError
	}
	var text string
	t.Load(ErrorPrefix+c.ID, &text)
	return text
}
