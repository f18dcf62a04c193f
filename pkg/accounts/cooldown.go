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
	"weir/pkg/wire/quota"
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
		if at, ok := quota.Date(h[i].Value); ok {
			if sent, ok := quota.Date(h.Get("date")); ok { // by the upstream's own clock
				now = time.UnixMilli(sent)
			}
			return until(at, now), true
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
	if at, ok := quota.ResetOf(body, now.UnixMilli()); ok {
		return until(at, now), true
	}
	return 0, false
}

// until returns the wait until a time in Unix milliseconds.
func until(at int64, now time.Time) time.Duration { return floor(time.UnixMilli(at).Sub(now)) }

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

// maxResets bounds how many of these fields are read: for each one the header is
// searched for its remaining count.
const maxResets = 32

// resets reads the fields that state when a limit is lifted:
//
//	x-ratelimit-reset-requests: 6m0s     x-ratelimit-reset: 1893456000
//	anthropic-ratelimit-tokens-reset: 2026-11-21T07:00:00Z
//
// Of several, those whose remaining count is 0 decide, by the longest; without
// any such count the shortest.
func resets(h httpmsg.Header, now time.Time) (time.Duration, bool) {
	var used, unknown time.Duration
	for i, read := 0, 0; i < len(h) && read < maxResets; i++ {
		n := h[i].Name
		at := strings.Index(n, "reset")
		if at < 0 || !strings.Contains(n, "ratelimit") {
			continue
		}
		read++
		moment, ok := quota.At(h[i].Value, now.UnixMilli())
		if !ok {
			continue
		}
		d := until(moment, now)
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
