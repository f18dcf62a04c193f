package quota

import (
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
)

// ReadBody appends the windows that the body of a refused call states. It appends
// nothing for a body that is not JSON.
//
//	{"error":{"type":"usage_limit_reached","resets_at":1795244460}}   a ChatGPT subscription
//	{"error":{"details":[{"violations":[{"quotaId":"…PerDay…"}]}]}}   Gemini's QuotaFailure
//	{"error":{"metadata":{"headers":{"X-RateLimit-Limit":"50",…}}}}   OpenRouter
func ReadBody(out []Window, body []byte, c Call) []Window {
	if len(body) == 0 || !jsonscan.Valid(body) {
		return out
	}
	root := gjson.ParseBytes(body)
	if root.IsArray() { // Gemini's errors may stand in one
		root = root.Get("0")
	}
	e := root.Get("error")
	out = openRouter(out, e.Get("metadata.headers"), c)
	out = gemini(out, e.Get("details"), c)
	if at, ok := ResetOf(body, c.Now); ok && !usedUp(out, c.Now) {
		w := Window{Name: "usage", Model: c.Model, ResetsAt: at, At: c.Now}
		if e.Get("type").Str == "usage_limit_reached" {
			w.Model = ""
		}
		out = append(out, w)
	}
	return out
}

// usedUp reports whether one of the windows is used up.
func usedUp(list []Window, now int64) bool {
	return slices.ContainsFunc(list, func(w Window) bool { return w.Used(now) })
}

// ResetOf reads from a body when a limit is lifted, in Unix milliseconds: a number
// of seconds, or a time in any spelling. The fields are in the error object or
// beside it.
//
//	error.resets_in_seconds: 11340   error.resets_at: 1795244460
//	error.metadata.headers: {"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795392000000"}   OpenRouter
func ResetOf(body []byte, now int64) (at int64, ok bool) {
	for _, in := range [...]string{"error.", ""} {
		if v := gjson.GetBytes(body, in+"resets_in_seconds"); v.Type == gjson.Number || v.Type == gjson.String {
			if n, ok := number(v.String()); ok {
				return now + 1000*seconds(n), true
			}
		}
		if v := gjson.GetBytes(body, in+"resets_at"); v.Type == gjson.Number || v.Type == gjson.String {
			if at, ok := At(v.String(), now); ok {
				return at, true
			}
		}
	}
	if h := gjson.GetBytes(body, "error.metadata.headers"); h.Get("X-RateLimit-Remaining").String() == "0" {
		return At(h.Get("X-RateLimit-Reset").String(), now)
	}
	return 0, false
}

// openRouter reads the header fields that OpenRouter puts into an error.
func openRouter(out []Window, fields gjson.Result, c Call) []Window {
	if !fields.IsObject() {
		return out
	}
	var h httpmsg.Header
	fields.ForEach(func(name, value gjson.Result) bool {
		h = append(h, httpmsg.Field{Name: strings.ToLower(name.Str), Value: value.String()})
		return len(h) < 4*MaxWindows
	})
	return Read(out, h, c)
}

// gemini reads the quotas that Gemini says are used up:
//
//	{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"20"}
//
// One of a day is lifted at midnight Pacific time, whatever RetryInfo says; one of
// a minute after the delay of RetryInfo.
func gemini(out []Window, details gjson.Result, c Call) []Window {
	if !details.IsArray() {
		return out
	}
	wait := int64(minute)
	details.ForEach(func(_, d gjson.Result) bool {
		if delay, err := time.ParseDuration(d.Get("retryDelay").Str); err == nil && delay > 0 {
			wait = seconds(delay.Seconds())
		}
		return true
	})
	n := 0
	details.ForEach(func(_, d gjson.Result) bool {
		d.Get("violations").ForEach(func(_, v gjson.Result) bool {
			id := v.Get("quotaId").Str
			w := Window{Name: "requests", Model: c.Model, Limit: v.Get("quotaValue").Num, At: c.Now}
			if strings.Contains(id, "Token") {
				w.Name = "tokens"
			}
			if s := v.Get("quotaValue").Str; s != "" {
				w.Limit, _ = number(s)
			}
			switch {
			case strings.Contains(id, "PerDay"):
				w.Name, w.Span, w.ResetsAt = w.Name+"-day", day, pacificMidnight(c.Now)
			case strings.Contains(id, "PerMinute"):
				w.Name, w.Span, w.ResetsAt = w.Name+"-minute", minute, c.Now+1000*wait
			default:
				return true
			}
			out = append(out, w)
			n++
			return n < MaxWindows
		})
		return n < MaxWindows
	})
	return out
}

// pacificMidnight returns the next midnight in Pacific time, which is UTC-7 from
// the second Sunday of March to the first Sunday of November, at 2:00, else UTC-8.
// The time zones of the time package would be half a megabyte of the program.
func pacificMidnight(now int64) int64 {
	local := time.UnixMilli(now).UTC().Add(pacificOffset(now))
	next := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, time.UTC)
	return next.Add(-pacificOffset(next.Add(8 * time.Hour).UnixMilli())).UnixMilli()
}

func pacificOffset(at int64) time.Duration {
	t := time.UnixMilli(at).UTC()
	from := sunday(t.Year(), time.March, 8).Add(10 * time.Hour) // 2:00 PST
	to := sunday(t.Year(), time.November, 1).Add(9 * time.Hour) // 2:00 PDT
	if !t.Before(from) && t.Before(to) {
		return -7 * time.Hour
	}
	return -8 * time.Hour
}

// sunday returns the first Sunday of a month from a day on.
func sunday(year int, m time.Month, d int) time.Time {
	t := time.Date(year, m, d, 0, 0, 0, 0, time.UTC)
	return t.AddDate(0, 0, int(7-t.Weekday())%7)
}
