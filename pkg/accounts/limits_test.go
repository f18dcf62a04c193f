package accounts

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/store"
	"weir/pkg/wire/stream"
)

// newLimited returns a world whose calls are those of a key with limits.
func newLimited(t *testing.T, k store.Key) *budgeted {
	b := newBudgeted(t)
	rec := *b.machine.Machine
	k.ID = "k1"
	rec.Keys = []store.Key{k}
	b.use(&rec)
	return b
}

// served makes n calls, and returns how many were served and the last refusal.
func (b *budgeted) served(n int) (served int, code, text string, wait time.Duration) {
	b.Helper()
	for range n {
		_, c, e := refusal(b.call())
		if e == nil {
			served++
			continue
		}
		code, text, wait = c, e.Message, e.RetryAfter
	}
	return served, code, text, wait
}

func TestKeyIsServedUpToItsLimit(t *testing.T) {
	for _, tt := range []struct {
		name       string
		key        store.Key
		served     int
		text       string
		wait       time.Duration
		afterReset int
	}{
		{"requests a minute", store.Key{RPM: 60}, 60, "This API key has reached its limit of 60 requests per minute. Try again in 1 minute.", time.Minute, 60},
		{"one request a minute", store.Key{RPM: 1}, 1, "This API key has reached its limit of 1 request per minute. Try again in 1 minute.", time.Minute, 1},
		{"requests a day", store.Key{DailyMax: 50}, 50, "This API key has reached its limit of 50 requests per day. Try again in 16 hours.", 16 * time.Hour, 0},
		{"tokens a minute", store.Key{TPM: 1000}, 33, "The limit of 1000 tokens per minute of this API key has 10 tokens left; this call could use 30 tokens. Resets Jan 15, 08:01 UTC.", time.Minute, 33},
		{"both", store.Key{RPM: 60, DailyMax: 70}, 60, "This API key has reached its limit of 60 requests per minute. Try again in 1 minute.", time.Minute, 10},
	} {
		b := newLimited(t, tt.key)
		b.ask, b.used = Estimate{Input: 10, Output: 20, Text: true}, llm.Usage{Known: true, Input: 10, Output: 20}
		served, code, text, wait := b.served(100)
		if served != tt.served || code != CodeKeyLimit || text != tt.text || wait != tt.wait {
			t.Errorf("%s: served %d, %s %q, wait %v", tt.name, served, code, text, wait)
		}
		b.Clock.Add(time.Minute)
		if served, _, _, _ := b.served(100); served != tt.afterReset {
			t.Errorf("%s: %d served in the next minute, want %d", tt.name, served, tt.afterReset)
		}
	}
}

// Calls with a limited key ask the object seldom, those with another one never.
func TestLimitsAskTheObjectSeldom(t *testing.T) {
	b := newLimited(t, store.Key{RPM: 1000})
	for range 600 {
		if err := b.call(); err != nil {
			t.Fatal(err)
		}
		b.Clock.Add(time.Second / 20)
	}
	if b.takes > 2 {
		t.Errorf("600 calls in half a minute asked %d times", b.takes)
	}
	b = newLimited(t, store.Key{})
	b.call()
	if b.takes != 0 {
		t.Error("a call with a key without limits asks the object")
	}
}

// Failed calls count against the requests of a key, each once, however many accounts and
// members of a combo it visits. Calls that are not sent do not count.
func TestFailedCallCountsAgainstTheKeyOnce(t *testing.T) {
	b := newLimited(t, store.Key{RPM: 60, TPM: 1000, MaxParallel: 1})
	b.script["*"] = []fake.Answer{{Status: 500}, {Status: 500}}
	call := b.to("gpt-4o")
	call.Targets = append(call.Targets, b.target("gpt-4.1"))
	call.Estimate = Estimate{Input: 10}
	if _, err := b.pool.Send(context.Background(), call); err == nil || b.trace.Attempts() < 2 {
		t.Fatalf("got %v after %d attempts", err, b.trace.Attempts())
	}
	call = b.to("gpt-4o")
	call.Targets[0].Connections = nil
	if _, err := b.pool.Send(context.Background(), call); err == nil {
		t.Fatal("a call without accounts is served")
	}
	b.report()
	for id, want := range map[string]int64{"rpm:k1": 1, "tpm:k1": 0, "parallel:k1": 0} {
		if l := b.ledgers[id]; l.Spent != want || l.Leases[0].Held != 0 {
			t.Errorf("%s: %+v, want %d spent", id, l, want)
		}
	}
}

func TestCallsUnderWayOfAKeyAreLimited(t *testing.T) {
	b := newLimited(t, store.Key{MaxParallel: 3})
	var under []*Result
	for i := range 3 {
		call := b.to("gpt-4o")
		b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
		res, err := b.pool.Send(context.Background(), call)
		if err != nil {
			t.Fatalf("call %d: %v", i+1, err)
		}
		under = append(under, res)
	}
	status, code, e := refusal(b.call())
	if status != 429 || code != CodeConcurrency || e.Message != "This API key has 3 calls under way, as many as it may. Try again in 2 seconds." || e.RetryAfter == 0 || e.NoRetry {
		t.Fatalf("the fourth: got %d %s %+v", status, code, e)
	}
	under[0].Done(stream.ErrClient)
	b.report()
	if err := b.call(); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	b.call()
	if l := b.ledgers["parallel:k1"]; l.Spent != 0 {
		t.Errorf("calls are spent: %+v", l)
	}
}

// A machine's limit counts the calls of all its keys, and those without one.
func TestCallsUnderWayOfAMachineAreLimited(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limit  int
		keys   []string // of the calls under way
		next   string   // the key of the call that follows
		text   string   // of its refusal
		limits int      // of the next call
	}{
		{"no limit", 0, []string{"k2", "k2", "k2", "k2", ""}, "k2", "", 0},
		{"below", 3, []string{"k2", "k3"}, "k2", "", 1},
		{"one key", 3, []string{"k2", "k2", "k2"}, "k2", "This machine has 3 calls under way", 1},
		{"another key", 3, []string{"k2", "k2", "k2"}, "k3", "This machine has 3 calls under way", 1},
		{"without a key", 2, []string{"", ""}, "", "This machine has 2 calls under way", 1},
		{"the key's is lower", 3, []string{"k1"}, "k1", "This API key has 1 call under way", 3},
		{"the key has another", 2, []string{"k2", "k2"}, "k1", "This machine has 2 calls under way", 3},
	} {
		b := newLimited(t, store.Key{RPM: 60, MaxParallel: 1})
		rec := *b.machine.Machine
		rec.Settings.MaxParallel = tt.limit
		b.use(&rec)
		var under []*Result
		for _, key := range tt.keys {
			b.trace.KeyID = key
			b.script["*"] = []fake.Answer{{Pieces: []string{"data: {}\n\n"}}}
			res, err := b.pool.Send(context.Background(), b.to("gpt-4o"))
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			under = append(under, res)
		}
		b.trace.KeyID = tt.next
		if n := len(b.machine.Limits(tt.next)); n != tt.limits {
			t.Errorf("%s: %d limits", tt.name, n)
		}
		busy := func() error { return Busy(b.machine, tt.next, b.Clock.Now()) }
		if err := busy(); err != nil {
			t.Errorf("%s, before the object has refused a call: %v", tt.name, err)
		}
		err := b.call()
		if tt.text == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if tt.limit == 0 && b.takes > 0 {
				t.Errorf("%s: the object was asked", tt.name)
			}
			continue
		}
		status, code, e := refusal(err)
		if status != 429 || code != CodeConcurrency || e.Reason != store.RefusedByConcurrency || e.RetryAfter == 0 || e.NoRetry ||
			e.Message != tt.text+", as many as it may. Try again in 2 seconds." {
			t.Fatalf("%s: %d %s %+v", tt.name, status, code, e)
		}
		if _, _, early := refusal(busy()); early == nil || early.Message != e.Message || early.Reason != e.Reason || early.RetryAfter != e.RetryAfter {
			t.Errorf("%s, the next one: %+v, want %+v", tt.name, early, e)
		}
		under[0].Done(stream.ErrClient)
		if err := busy(); err != nil {
			t.Errorf("%s, before its end is reported: %v", tt.name, err)
		}
		b.report()
		if err := b.call(); err != nil {
			t.Errorf("%s, after one has ended: %v", tt.name, err)
		}
	}
}

func TestLimitOfTokensStatesWhatNeverFits(t *testing.T) {
	b := newLimited(t, store.Key{TPM: 1000})
	b.ask = Estimate{Input: 10, Output: 2000, Text: true}
	_, code, e := refusal(b.call())
	if code != CodeKeyLimit || !strings.Contains(e.Message, "is too low: this call could use 2010 tokens. Ask for fewer output tokens") || e.RetryAfter != 0 || !e.NoRetry {
		t.Errorf("got %s %+v", code, e)
	}
}
