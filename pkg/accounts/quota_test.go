package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/quota"
	"weir/pkg/wire/secret"
)

// limits returns an answer whose header states a limit.
func limits(status int, lines ...string) fake.Answer {
	a := fake.Answer{Status: status, Body: "{}"}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		a.Header = append(a.Header, httpmsg.Field{Name: name, Value: value})
	}
	return a
}

// claude returns the header of a Claude subscription: the used shares of its windows,
// which end within hours.
func claude(five float64, fiveEnds int, seven float64, sevenEnds int) []string {
	at := func(hours int) int64 { return 1_800_000_000 + int64(hours)*3600 }
	return []string{
		fmt.Sprintf("anthropic-ratelimit-unified-5h-utilization: %v", five), fmt.Sprintf("anthropic-ratelimit-unified-5h-reset: %d", at(fiveEnds)),
		fmt.Sprintf("anthropic-ratelimit-unified-7d-utilization: %v", seven), fmt.Sprintf("anthropic-ratelimit-unified-7d-reset: %d", at(sevenEnds)),
	}
}

// see makes one call that an account alone serves.
func (w *world) see(id string, a fake.Answer) {
	w.Helper()
	was := w.req.Header
	w.req.Header = httpmsg.Header{{Name: "x-connection-id", Value: id}}
	w.script[key(id)] = []fake.Answer{a}
	w.send()
	w.req.Header = was
	delete(w.script, key(id))
}

func equal(ids string, priority int) (list []store.Connection) {
	for _, id := range ids {
		list = append(list, store.Connection{ID: string(id), Priority: priority})
	}
	return list
}

func TestOrderByWhatIsLeft(t *testing.T) {
	for _, tt := range []struct {
		name string
		seen map[string][]string // by account
		want string              // the order in which they are tried
	}{
		{"nothing known", nil, "abcd"},
		{"the window that ends first", map[string][]string{"a": claude(0.1, 4, 0.1, 100), "c": claude(0.1, 2, 0.1, 120), "d": claude(0.1, 3, 0.1, 90)}, "cdab"},
		{"too little left of one window", map[string][]string{"a": claude(0.96, 1, 0.1, 100), "b": claude(0.1, 4, 0.97, 50)}, "cdab"},
		{"just enough left", map[string][]string{"b": claude(0.95, 1, 0.95, 100)}, "bacd"},
		{"of equal accounts only", map[string][]string{"d": claude(0.1, 1, 0.1, 100), "a": claude(0.99, 1, 0.5, 100), "b": claude(0.99, 2, 0.99, 100), "c": claude(0.99, 3, 0.99, 100)}, "dabc"},
		{"the ends of limits of a model", map[string][]string{"c": {"x-ratelimit-limit-requests-day: 100", "x-ratelimit-remaining-requests-day: 50", "x-ratelimit-reset-requests-day: 3m"}}, "abcd"},
		{"ends that differ by seconds", map[string][]string{"b": {"x-codex-primary-used-percent: 5", "x-codex-primary-window-minutes: 300", "x-codex-primary-reset-after-seconds: 7230"}, "a": {"x-codex-primary-used-percent: 5", "x-codex-primary-window-minutes: 300", "x-codex-primary-reset-after-seconds: 7233"}}, "abcd"},
		{"a limit of a minute", map[string][]string{"a": {"x-ratelimit-limit-tokens-minute: 100", "x-ratelimit-remaining-tokens-minute: 4", "x-ratelimit-reset-tokens-minute: 40"}}, "bcda"},
		{"a limit of a minute with enough left", map[string][]string{"c": {"x-ratelimit-limit-tokens-minute: 100", "x-ratelimit-remaining-tokens-minute: 6", "x-ratelimit-reset-tokens-minute: 40"}}, "abcd"},
		{"a limit that is lifted by now", map[string][]string{"a": {"x-ratelimit-limit-tokens: 100", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 10ms"}}, "abcd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t).add(equal("abcd", 1)...)
			for _, id := range "abcd" {
				if lines := tt.seen[string(id)]; lines != nil {
					w.see(string(id), limits(200, lines...))
				}
			}
			w.Add(2 * time.Second)
			w.script["*"] = []fake.Answer{{Status: 529}}
			if w.send(); w.saw() != tt.want {
				t.Errorf("saw %s, want %s", w.saw(), tt.want)
			}
			explained := ""
			for _, s := range Explain(w.call(), "", w.Now(), nil, "") {
				explained += s.Connection.ID
			}
			if explained != tt.want {
				t.Errorf("explain says %s, want %s", explained, tt.want)
			}
		})
	}
}

// Priorities go before what is left.
func TestLittleLeftDoesNotChangePriorities(t *testing.T) {
	w := newWorld(t).add(append(equal("ab", 1), equal("cd", 2)...)...)
	w.see("a", limits(200, claude(0.99, 1, 0.99, 100)...))
	w.see("c", limits(200, claude(0.99, 1, 0.99, 100)...))
	w.script["*"] = []fake.Answer{{Status: 529}}
	if w.send(); w.saw() != "badc" {
		t.Errorf("saw %s, want badc", w.saw())
	}
}

func TestRoundRobinTriesLittleLeftLast(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.machine.Settings.Strategy = store.RoundRobin
	w.see("a", limits(200, claude(0.99, 1, 0.5, 100)...))
	first := ""
	for range 6 {
		w.send()
		first += w.saw()[:1]
	}
	if strings.Contains(first, "a") || !strings.Contains(first, "b") || !strings.Contains(first, "c") {
		t.Errorf("the calls went to %s, want b and c", first)
	}
}

// A limit of one model says nothing about another.
func TestLimitOfAModelIsNotAnothers(t *testing.T) {
	w := newWorld(t).add(equal("ab", 1)...)
	w.see("a", limits(200, "x-ratelimit-limit-requests-day: 100", "x-ratelimit-remaining-requests-day: 1", "x-ratelimit-reset-requests-day: 5h"))
	if w.send(); w.saw() != "b" {
		t.Errorf("saw %s, want the account with enough left", w.saw())
	}
	c := w.call()
	c.Targets = []routing.Target{w.target("other")}
	if w.sendCall(c); w.saw() != "a" {
		t.Errorf("another model: saw %s, want a", w.saw())
	}
	w.Add(5*time.Hour + time.Second) // the window has begun again
	if w.send(); w.saw() != "a" {
		t.Errorf("after the reset: saw %s, want a", w.saw())
	}
}

// A window of an hour or more that is used up decides over a shorter wait, up to 24
// hours, a week's up to 7 days.
func TestUsedUpWindowCools(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	daily := `{"error":{"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"20"}]},{"retryDelay":"38s"}]}}`
	for _, tt := range []struct {
		name         string
		answer       fake.Answer
		model, whole time.Duration
	}{
		{"5 hours", limits(429, append(claude(1, 5, 0.5, 100), "retry-after: 30")...), 0, 5 * hour},
		{"7 days", limits(429, append(claude(0.2, 5, 1, 100), "retry-after: 30")...), 0, 100 * hour},
		{"both", limits(429, claude(1, 2, 1, 150)...), 0, 150 * hour},
		{"the longer stated wait", limits(429, append(claude(1, 2, 0.5, 150), "retry-after: 36000")...), 0, 10 * hour},
		{"rejected", limits(429, "anthropic-ratelimit-unified-5h-status: rejected", "anthropic-ratelimit-unified-5h-reset: 1800010800"), 0, 3 * hour},
		{"a family's week", limits(429, "anthropic-ratelimit-unified-7d_opus-utilization: 1", "anthropic-ratelimit-unified-7d_opus-reset: 1800360000"), 100 * hour, 0},
		{"ChatGPT", limits(429, "x-codex-primary-used-percent: 100", "x-codex-primary-window-minutes: 300", "x-codex-primary-reset-after-seconds: 7200", "retry-after: 30"), 0, 2 * hour},
		{"ChatGPT's week", limits(429, "x-codex-secondary-used-percent: 100", "x-codex-secondary-window-minutes: 10080", "x-codex-secondary-reset-after-seconds: 400000"), 0, 400000 * time.Second},
		{"a day", limits(429, "x-ratelimit-limit-requests-day: 100", "x-ratelimit-remaining-requests-day: 0", "x-ratelimit-reset-requests-day: 33000", "retry-after: 3"), 33000 * time.Second, 0},
		{"a month", limits(429, "x-ratelimit-limit: 1, 1000", "x-ratelimit-policy: 1;w=1, 1000;w=2592000", "x-ratelimit-remaining: 1, 0", "x-ratelimit-reset: 1, 1419704"), 7 * day, 0},
		{"Gemini's day", fake.Answer{Status: 429, Body: daily}, day, 0}, // the test begins at midnight in California,
		{"a minute", limits(429, "anthropic-ratelimit-tokens-limit: 10", "anthropic-ratelimit-tokens-remaining: 0", "anthropic-ratelimit-tokens-reset: 2027-01-15T08:00:40Z", "retry-after: 7"), 7 * time.Second, 0},
		{"not used up", limits(429, append(claude(0.99, 5, 0.9, 100), "retry-after: 30")...), 30 * time.Second, 0},
		{"in a body", fake.Answer{Status: 429, Body: `{"error":{"type":"usage_limit_reached","resets_in_seconds":400000}}`}, 400000 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t).add(accounts("ab")...)
			w.script[key("a")] = []fake.Answer{tt.answer}
			w.send()
			if model, whole := w.cooling("a"); model.Round(time.Second) != tt.model || whole.Round(time.Second) != tt.whole {
				t.Errorf("the model cools for %v, the account for %v; want %v and %v", model, whole, tt.model, tt.whole)
			}
			w.script[key("a")] = []fake.Answer{{Status: 200}}
			if wait := max(tt.model, tt.whole); wait > 31*time.Minute {
				w.Add(29 * time.Minute)
				if w.send(); w.saw() != "b" {
					t.Errorf("within the cooldown: saw %s", w.saw())
				}
				w.Add(2 * time.Minute)
				if w.send(); w.saw() != "a" {
					t.Errorf("after 30 minutes: saw %s, want a trial", w.saw())
				}
			}
		})
	}
}

// A success says that the account works again, whatever its gauge.
func TestSuccessEndsTheCooldownOfAnAccount(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script[key("a")] = []fake.Answer{limits(429, claude(1, 5, 0.5, 100)...), {Status: 200}}
	w.send()
	if _, e := w.send(); e == nil || e.Status != 429 || e.RetryAfter != 5*time.Hour {
		t.Fatalf("got %v", e)
	}
	w.Add(31 * time.Minute)
	w.send()
	if model, whole := w.cooling("a"); model+whole != 0 {
		t.Errorf("still cools: %v, %v", model, whole)
	}
}

func TestAnswersAreReadOnceASecond(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	left := func() float64 {
		list := w.machine.ChangedQuotas(w.Now().UnixMilli())
		if len(list) != 1 {
			return -1
		}
		return list[0].Windows[0].Left
	}
	answer := func(status, rest int) {
		w.script[key("a")] = []fake.Answer{limits(status, "x-ratelimit-limit-requests-day: 100", fmt.Sprintf("x-ratelimit-remaining-requests-day: %d", rest), "x-ratelimit-reset-requests-day: 5h")}
		w.send()
	}
	for _, tt := range []struct {
		after        time.Duration
		status, rest int
		want         float64 // -1: unchanged
	}{{0, 200, 90, 0.9}, {999 * time.Millisecond, 200, 80, -1}, {time.Millisecond, 200, 70, 0.7}, {0, 429, 60, 0.6}, {time.Hour, 200, 60, -1}} {
		w.Add(tt.after)
		answer(tt.status, tt.rest)
		if got := left(); got != tt.want {
			t.Errorf("%v later, status %d: got %v, want %v", tt.after, tt.status, got, tt.want)
		}
	}
}

func TestForeignCredentialIsNoGauge(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script["*"] = []fake.Answer{limits(200, claude(0.5, 5, 0.5, 100)...)}
	c := w.call()
	c.Credential = &provider.Credential{APIKey: secret.New("another-key")}
	if w.sendCall(c); w.machine.AnyQuota() {
		t.Error("the limits of another credential count")
	}
}

func TestGaugesAreReported(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.req.Method = "POST"
	flush := func() (list []rpc.Quota) {
		n := len(w.object.Calls)
		w.pool.Flush(context.Background(), w.machine)
		w.Add(time.Second)
		if len(w.object.Calls) == n {
			t.Fatal("no report")
		}
		var rep rpc.Report
		if err := json.Unmarshal([]byte(strings.TrimPrefix(w.object.Calls[n], "report ")), &rep); err != nil {
			t.Fatal(err)
		}
		return rep.Quotas
	}
	five := quota.Window{Name: "5h", Left: 0.5, ResetsAt: 1_800_018_000_000, Span: 18000, At: w.Now().UnixMilli()}
	w.script[key("a")] = []fake.Answer{limits(200, claude(0.5, 5, 0.5, 100)[:2]...)}
	w.send()
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 503, nil, nil }
	for range 2 { // the first does not get through
		got := flush()
		if len(got) != 1 || got[0].ConnectionID != "a" || !got[0].Moved || len(got[0].Windows) != 1 || got[0].Windows[0] != five {
			t.Fatalf("got %+v", got)
		}
		w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, []byte(`{"observed":5}`), nil }
		w.pool.add(w.machine, &httpmsg.Request{}, &Trace{}, &usage.Row{Endpoint: "/v1/embeddings"})
	}
	w.script[key("a")] = []fake.Answer{limits(200, claude(0.505, 5, 0.5, 100)[:2]...)}
	w.send()
	if got := flush(); len(got) != 0 {
		t.Errorf("a change of half a percent is reported: %+v", got)
	}
	// The object has told the others.
	w.machine.Observe(0, 1, &rpc.State{Quotas: []store.Quota{{ConnectionID: "a", Windows: []quota.Window{five}}}}, w.Now().UnixMilli())
	for _, tt := range []struct {
		used  float64
		moved bool
	}{{0.53, false}, {0.56, true}} {
		w.script[key("a")] = []fake.Answer{limits(200, claude(tt.used, 5, 0.5, 100)[:2]...)}
		w.send()
		if got := flush(); len(got) != 1 || got[0].Moved != tt.moved {
			t.Errorf("used %v: got %+v, want moved %v", tt.used, got, tt.moved)
		}
	}
}

// A call does not allocate for what its account says of limits.
func TestReadingLimitsDoesNotAllocate(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	h := limits(200, append(claude(0.5, 5, 0.5, 100), "x-ratelimit-limit-requests: 5", "x-ratelimit-remaining-requests: 4", "x-ratelimit-reset-requests: 12ms")...).Header
	c := w.call()
	pl := &plan{Pool: w.pool, call: c}
	a := &Attempt{Target: &c.Targets[0], Connection: w.machine.Connection("a")}
	at := w.Now()
	pl.quotas(a, h, nil, at)
	if n := testing.AllocsPerRun(100, func() {
		at = at.Add(2 * time.Second)
		pl.quotas(a, h, nil, at)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	list := make([]candidate, 0, 8)
	if n := testing.AllocsPerRun(100, func() { pl.ready(list, &c.Targets[0], "", at.UnixMilli()) }); n > 0 {
		t.Errorf("the order: %v allocations", n)
	}
}
