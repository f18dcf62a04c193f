package accounts

import (
	"errors"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

func TestStatedWait(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	h := func(pairs ...string) (out httpmsg.Header) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, httpmsg.Field{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	const s = time.Second
	retryInfo := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"31s"}]}}`
	for _, tt := range []struct {
		name string
		h    httpmsg.Header
		body string
		want time.Duration // 0: none
	}{
		{"nothing", nil, "", 0},
		{"seconds", h("retry-after", "7"), "", 7 * s},
		{"fraction", h("retry-after", "1.5"), "", 1500 * time.Millisecond},
		{"milliseconds go before seconds", h("retry-after", "9", "retry-after-ms", "2500"), "", 2500 * time.Millisecond},
		{"the other milliseconds", h("x-ms-retry-after-ms", "4000"), "", 4 * s},
		{"unreadable milliseconds", h("retry-after-ms", "soon", "retry-after", "9"), "", 9 * s},
		{"date", h("retry-after", "Sat, 21 Nov 2026 07:00:30 GMT"), "", 30 * s},
		{"date in the past", h("retry-after", "Sat, 21 Nov 2026 06:00:00 GMT"), "", s},
		{"date with another zone", h("retry-after", "Sat, 21 Nov 2026 08:01:00 +0100"), "", 60 * s},
		{"old date", h("retry-after", "Saturday, 21-Nov-26 07:00:10 GMT"), "", 10 * s},
		{"date of a clock an hour behind", h("date", "Sat, 21 Nov 2026 06:00:10 GMT", "retry-after", "Sat, 21 Nov 2026 06:00:30 GMT"), "", 20 * s},
		{"date of a clock an hour ahead", h("retry-after", "Sat, 21 Nov 2026 08:00:30 GMT", "date", "Sat, 21 Nov 2026 08:00:10 GMT"), "", 20 * s},
		{"OpenRouter's reset in the body", nil, `{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795244900000"}}}}`, 500 * s},
		{"OpenRouter with something left", nil, `{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"4","X-RateLimit-Reset":"1795244900000"}}}}`, 0},
		{"zero", h("retry-after", "0"), "", s},
		{"negative", h("retry-after", "-1"), "", s},
		{"huge", h("retry-after", "1e9"), "", 1000 * time.Hour},
		{"word", h("retry-after", "abc"), "", 0},
		{"NaN", h("retry-after", "NaN"), "", 0},
		{"infinite", h("retry-after", "Inf"), "", 0},
		{"empty", h("retry-after", ""), "", 0},
		{"two fields, the first unreadable", h("retry-after", "x", "retry-after", "3"), "", 3 * s},
		{"two fields", h("retry-after", "4", "retry-after", "3"), "", 4 * s},
		{"retry-after goes before resets", h("x-ratelimit-reset-requests", "6m0s", "retry-after", "3"), "", 3 * s},
		{"reset as a duration", h("x-ratelimit-reset-requests", "6m0s"), "", 6 * time.Minute},
		{"reset in milliseconds", h("x-ratelimit-reset-tokens", "1200ms"), "", 1200 * time.Millisecond},
		{"reset in days", h("x-ratelimit-reset-tokens", "1d2h"), "", 26 * time.Hour},
		{"reset in seconds", h("x-ratelimit-reset", "33.5"), "", 33500 * time.Millisecond},
		{"reset as epoch seconds", h("x-ratelimit-reset", "1795244460"), "", time.Minute},
		{"reset as epoch milliseconds", h("x-ratelimit-reset", "1795244405000"), "", 5 * s},
		{"reset as RFC 3339", h("anthropic-ratelimit-tokens-reset", "2026-11-21T07:00:12Z"), "", 12 * s},
		{"reset unreadable", h("x-ratelimit-reset", "later"), "", 0},
		{"what is used up decides", h("x-ratelimit-reset-requests", "2s", "x-ratelimit-remaining-requests", "5", "x-ratelimit-reset-tokens", "40s", "x-ratelimit-remaining-tokens", "0"), "", 40 * s},
		{"what is left does not", h("x-ratelimit-reset-requests", "2s", "x-ratelimit-remaining-requests", "5"), "", 0},
		{"used up, the other way round", h("anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", "2026-11-21T07:00:12Z", "anthropic-ratelimit-requests-remaining", "3", "anthropic-ratelimit-requests-reset", "2026-11-21T07:00:50Z"), "", 12 * s},
		{"several unknown, the shortest", h("x-ratelimit-reset-requests", "9s", "x-ratelimit-reset-tokens", "4s"), "", 4 * s},
		{"RetryInfo", nil, retryInfo, 31 * s},
		{"RetryInfo in an array", nil, "[" + retryInfo + "]", 31 * s},
		{"header goes before RetryInfo", h("retry-after", "3"), retryInfo, 3 * s},
		{"RetryInfo unreadable", nil, `{"error":{"details":[{"retryDelay":31}]}}`, 0},
		{"seconds in the body", nil, `{"error":{"type":"usage_limit_reached","plan_type":"plus","resets_in_seconds":11340}}`, 189 * time.Minute},
		{"a time in the body", nil, `{"error":{"resets_at":1795244460}}`, time.Minute},
		{"a time in words in the body", nil, `{"error":{"resets_at":"2026-11-21T07:00:12Z"}}`, 12 * s},
		{"seconds go before a time", nil, `{"error":{"resets_at":1795244460,"resets_in_seconds":5}}`, 5 * s},
		{"beside the error", nil, `{"resets_in_seconds":"90","error":{"message":"no"}}`, 90 * s},
		{"null in the body", nil, `{"error":{"resets_at":null,"resets_in_seconds":null}}`, 0},
		{"a time past in the body", nil, `{"error":{"resets_at":1}}`, s},
		{"header goes before the body", h("retry-after", "3"), `{"error":{"resets_in_seconds":50}}`, 3 * s},
		{"text does not decide", nil, `{"error":{"message":"retry after 31s"}}`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := statedWait(tt.h, []byte(tt.body), now)
			if got != tt.want || ok != (tt.want > 0) {
				t.Errorf("got %v, %v, want %v", got, ok, tt.want)
			}
		})
	}
}

// The work for an answer grows with the length of its header only.
func TestResetsAreBounded(t *testing.T) {
	var h httpmsg.Header
	for range maxResets {
		h = append(h, httpmsg.Field{Name: "x-ratelimit-reset", Value: "9s"})
	}
	h = append(h, httpmsg.Field{Name: "x-ratelimit-reset", Value: "3s"})
	if got, _ := statedWait(h, nil, time.UnixMilli(0)); got != 9*time.Second {
		t.Errorf("%d fields are read: %v", len(h), got)
	}
}

func TestCooldownsAreClamped(t *testing.T) {
	const day = 24 * time.Hour
	for stated, want := range map[time.Duration][2]time.Duration{ // of a day's window, of a week's
		time.Millisecond: {time.Second, time.Second}, 7 * time.Second: {7 * time.Second, 7 * time.Second},
		5 * time.Hour: {5 * time.Hour, 5 * time.Hour}, 6 * day: {day, 6 * day}, 1000 * time.Hour: {day, 7 * day},
	} {
		for i, weekly := range []bool{false, true} {
			if got := limitedFor(stated, 5, weekly); got != want[i] {
				t.Errorf("%v, weekly %v: got %v, want %v", stated, weekly, got, want[i])
			}
			if got := spentFor(stated, weekly); got != want[i] {
				t.Errorf("%v without credit, weekly %v: got %v, want %v", stated, weekly, got, want[i])
			}
		}
	}
	if got := limitedFor(0, 1<<40, false); got != lastStep {
		t.Errorf("backoff %v, want %v", got, lastStep)
	}
	if got := spentFor(0, false); got != time.Hour {
		t.Errorf("quota without a reset %v, want an hour", got)
	}
}

func TestWeeklyWindow(t *testing.T) {
	for _, tt := range []struct {
		header, body string
		want         bool
	}{
		{"", "", false}, {"five_hour", "", false}, {"seven_day", "", true}, {"seven_day_opus", "", true},
		{"", `{"error":{"type":"usage_limit_reached"}}`, true}, {"", `{"error":{"type":"rate_limit_exceeded"}}`, false}, {"", "<html>", false},
	} {
		var h httpmsg.Header
		if tt.header != "" {
			h = httpmsg.Header{{Name: "anthropic-ratelimit-unified-representative-claim", Value: tt.header}}
		}
		if got := weekly(h, []byte(tt.body)); got != tt.want {
			t.Errorf("%q %s: got %v", tt.header, tt.body, got)
		}
	}
}

func FuzzStatedWait(f *testing.F) {
	for _, v := range []string{"7", "1e9", "6m0s", "1d2h", "Sat, 21 Nov 2026 07:00:30 GMT", "2026-11-21T07:00:12Z", "1795244460", "-0", "0x1p-2", "9d9d", "1e308"} {
		f.Add(v)
	}
	now := time.UnixMilli(1_800_000_000_000)
	f.Fuzz(func(t *testing.T, v string) {
		for _, name := range []string{"retry-after-ms", "retry-after", "x-ratelimit-reset-requests"} {
			d, ok := statedWait(httpmsg.Header{{Name: name, Value: v}}, []byte(v), now)
			if got := limitedFor(d, 0, false); ok && d < store.MinCooldown || got < store.MinCooldown || got > store.MaxCooldown {
				t.Fatalf("%s %q: %v, %v, %v", name, v, d, ok, got)
			}
		}
	})
}

func TestAllCoolingIs429WithTheSmallestWait(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.script[key("a")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "90"}}}}
	w.script[key("b")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after-ms", Value: "7300"}}}}
	w.script[key("c")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "x-ratelimit-reset-requests", Value: "6m0s"}}}}
	_, e := w.send()
	if w.saw() != "abc" || e.Status != 429 || e.RetryAfter != 7300*time.Millisecond || e.NoRetry {
		t.Errorf("saw %s, got %+v", w.saw(), e)
	}
	w.Add(2 * time.Second)
	_, e = w.send()
	if w.saw() != "" || e.Status != 429 || e.RetryAfter != 5300*time.Millisecond || !errors.Is(e, ErrCooling) {
		t.Errorf("saw %q, got %+v", w.saw(), e)
	}
	w.Add(6 * time.Second)
	w.script[key("b")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "300"}}}}
	_, e = w.send()
	if w.saw() != "b" || e.RetryAfter != 82*time.Second || !e.NoRetry {
		t.Errorf("over a minute: saw %q, got %+v, want 82 s and no retry", w.saw(), e)
	}
}

func TestLimitAppliesToOneModelOnly(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script[key("a")] = []fake.Answer{{Status: 429}, {Status: 200}}
	w.send()
	c := w.call()
	c.Targets = []routing.Target{w.target("other")}
	if _, e := w.sendCall(c); e != nil {
		t.Errorf("another model of the account: %v", e)
	}
}

func TestBackoffDoublesUntilSuccess(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script[key("a")] = []fake.Answer{{Status: 429}}
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		w.send()
		if got, _ := w.cooling("a"); got != want*time.Second {
			t.Fatalf("cools %v, want %v", got, want*time.Second)
		}
		w.Add(want*time.Second + time.Millisecond)
	}
	w.script[key("a")] = []fake.Answer{{Status: 200}, {Status: 429}}
	w.send()
	w.send()
	if got, _ := w.cooling("a"); got != 2*time.Second {
		t.Errorf("after a success: cools %v, want 2 s", got)
	}
	w.Add(time.Hour)
	w.send()
	if got, _ := w.cooling("a"); got != 2*time.Second {
		t.Errorf("after an hour: cools %v, want 2 s", got)
	}
}

func TestClientErrorsCoolNothing(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script["*"] = []fake.Answer{{Status: 400, Body: `{"error":{"message":"rate limit capacity 429 insufficient_quota overloaded"}}`}}
	for range 1000 {
		if _, e := w.send(); e.Status != 400 || w.saw() != "a" {
			t.Fatalf("saw %s, got %v", w.saw(), e)
		}
	}
	if w.pool.Unreported() > 0 {
		t.Error("there is something to report")
	}
}
