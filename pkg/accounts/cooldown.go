package accounts

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
)

// Lengths of the backoff. Those of cooldowns are in package store.
const (
	firstStep = 2 * time.Second // doubled each time
	lastStep  = 5 * time.Minute
)

// limitedFor returns the cooldown after a 429: the stated wait, else 2, 4, 8 …
// s up to 5 min by the failures before.
func limitedFor(stated time.Duration, failures int, weekly bool) time.Duration {
	if stated == 0 {
		if failures > 10 {
			return lastStep
		}
		return min(firstStep<<failures, lastStep)
	}
	return bounded(stated, weekly)
}

// spentFor returns the cooldown of an account without credit.
func spentFor(stated time.Duration, weekly bool) time.Duration {
	if stated == 0 {
		return store.OutOfCreditFor
	}
	return bounded(stated, weekly)
}

func bounded(stated time.Duration, weekly bool) time.Duration {
	most := store.MaxCooldown
	if weekly {
		most = store.MaxWeekly
	}
	return min(max(stated, store.MinCooldown), most)
}

// failuresOf returns the number of consecutive failures of a state.
func failuresOf(s snapshot.State, now time.Time) int {
	if s.Until == 0 || now.UnixMilli()-s.Until > store.ForgetCooldown.Milliseconds() {
		return 0
	}
	return s.Failures
}

// statedWait reads how long an upstream asks to wait, in the order
//
//	retry-after-ms, x-ms-retry-after-ms   milliseconds
//	retry-after                           seconds or a date
//	…ratelimit…reset…                     of what is used up; see resets
//	error.details[].retryDelay            Gemini's RetryInfo, "31s"
//	error.resets_in_seconds, .resets_at   of a subscription's window
//
// A wait in the past is the least wait, 1 s. An unreadable wait counts as
// missing. ok reports whether there is a wait.
func statedWait(h httpmsg.Header, body []byte, now time.Time) (wait time.Duration, ok bool) {
	for i := range h {
		if n := h[i].Name; n == "retry-after-ms" || n == "x-ms-retry-after-ms" {
			if d, ok := number(h[i].Value, time.Millisecond); ok {
				return d, true
			}
		}
	}
	for i := range h {
		if h[i].Name != "retry-after" {
			continue
		}
		if d, ok := number(h[i].Value, time.Second); ok {
			return d, true
		}
		if d, ok := date(h[i].Value, now); ok {
			return d, true
		}
	}
	if d, ok := resets(h, now); ok {
		return d, true
	}
	if len(body) == 0 || !jsonscan.Valid(body) {
		return 0, false
	}
	if d, ok := retryInfo(body); ok {
		return d, true
	}
	return bodyReset(body, now)
}

// weekly reports whether the wait that an upstream states is for a weekly
// window:
//
//	anthropic-ratelimit-unified-representative-claim: seven_day…
//	{"error":{"type":"usage_limit_reached"}}   a ChatGPT subscription's window
func weekly(h httpmsg.Header, body []byte) bool {
	if strings.HasPrefix(h.Get("anthropic-ratelimit-unified-representative-claim"), "seven_day") {
		return true
	}
	return len(body) > 0 && jsonscan.Valid(body) && gjson.GetBytes(body, "error.type").Str == "usage_limit_reached"
}

// bodyReset reads from a body when a limit ends: a number of seconds, or a time
// in any format. The fields are in the error object or beside it.
func bodyReset(body []byte, now time.Time) (time.Duration, bool) {
	for _, in := range [...]string{"error.", ""} {
		if v := gjson.GetBytes(body, in+"resets_in_seconds"); v.Type == gjson.Number || v.Type == gjson.String {
			if d, ok := number(v.String(), time.Second); ok {
				return d, true
			}
		}
		if v := gjson.GetBytes(body, in+"resets_at"); v.Type == gjson.Number || v.Type == gjson.String {
			if d, ok := moment(v.String(), now); ok {
				return d, true
			}
		}
	}
	return 0, false
}

// resets reads the fields that tell when a limit is lifted:
//
//	x-ratelimit-reset-requests: 6m0s     x-ratelimit-reset: 1893456000
//	anthropic-ratelimit-tokens-reset: 2026-11-21T07:00:00Z
//
// Of several, those whose remaining count is 0 decide, by the longest; without
// any such count the shortest.
func resets(h httpmsg.Header, now time.Time) (time.Duration, bool) {
	var used, unknown time.Duration
	for i := range h {
		n := h[i].Name
		at := strings.Index(n, "reset")
		if at < 0 || !strings.Contains(n, "ratelimit") {
			continue
		}
		d, ok := moment(h[i].Value, now)
		if !ok {
			continue
		}
		switch left := h.Get(n[:at] + "remaining" + n[at+len("reset"):]); {
		case left == "":
			if unknown == 0 || d < unknown {
				unknown = d
			}
		case strings.TrimLeft(left, "0.") == "" || left[0] == '-':
			used = max(used, d)
		}
	}
	if used > 0 {
		return used, true
	}
	return unknown, unknown > 0
}

// moment reads a reset in any spelling: a duration ("6m0s", "120ms", "1d2h"),
// seconds, seconds or milliseconds since 1970, RFC 3339, an HTTP date.
func moment(v string, now time.Time) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		switch {
		case n >= 1e11 && n < 1e15:
			return floor(time.UnixMilli(int64(n)).Sub(now)), true
		case n >= 1e9 && n < 1e11:
			return floor(time.Unix(int64(n), 0).Sub(now)), true
		}
		return number(v, time.Second)
	}
	var days time.Duration
	if d, rest, ok := strings.Cut(v, "d"); ok {
		if n, err := strconv.Atoi(d); err == nil && n >= 0 && n < 1000 {
			days = time.Duration(n) * 24 * time.Hour
			if v = rest; v == "" {
				return floor(days), true
			}
		}
	}
	if d, err := time.ParseDuration(v); err == nil {
		return floor(days + d), true
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return floor(t.Sub(now)), true
	}
	return date(v, now)
}

// number reads a count of units. A negative one is the least wait.
func number(v string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, false
	}
	const most = 1000 * time.Hour
	if n > float64(most/unit) {
		return most, true
	}
	return floor(time.Duration(n * float64(unit))), true
}

// dateForms are those of RFC 9110, 5.6.7, and what servers send instead.
var dateForms = [...]string{time.RFC1123, time.RFC850, time.ANSIC, time.RFC1123Z}

func date(v string, now time.Time) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	for _, form := range dateForms {
		if t, err := time.Parse(form, v); err == nil {
			return floor(t.Sub(now)), true
		}
	}
	return 0, false
}

func floor(d time.Duration) time.Duration { return max(d, store.MinCooldown) }

// retryInfo reads google.rpc.RetryInfo of an error body, which may stand in an
// array.
func retryInfo(body []byte) (wait time.Duration, ok bool) {
	details := gjson.GetBytes(body, "error.details")
	if !details.Exists() {
		details = gjson.GetBytes(body, "0.error.details")
	}
	details.ForEach(func(_, d gjson.Result) bool {
		if v := d.Get("retryDelay"); v.Type == gjson.String {
			if n, err := time.ParseDuration(v.Str); err == nil {
				wait, ok = floor(n), true
			}
		}
		return !ok
	})
	return wait, ok
}
