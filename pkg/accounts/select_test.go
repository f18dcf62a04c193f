package accounts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

func TestOrder(t *testing.T) {
	conn := func(id string, priority int) store.Connection { return store.Connection{ID: id, Priority: priority} }
	w := newWorld(t).add(conn("a", 2), conn("b", 1), conn("c", 1), conn("d", 1))
	w.script["*"] = []fake.Answer{{Status: 503}}
	if w.send(); w.saw() != "bcda" {
		t.Errorf("saw %s, want by priority, then as stored", w.saw())
	}
	past := func(id string, ago time.Duration) {
		at := w.Now().Add(-ago).UnixMilli()
		w.machine.Cool(store.Cooldown{ConnectionID: id, Model: "gpt", Since: at, Until: at + 1000, Failures: 1})
	}
	w = newWorld(t).add(conn("a", 2), conn("b", 1), conn("c", 1), conn("d", 1))
	w.script["*"] = []fake.Answer{{Status: 529}}
	past("b", 5*time.Second)
	past("c", 9*time.Second)
	if w.send(); w.saw() != "dcba" {
		t.Errorf("saw %s, want the least recently failed first", w.saw())
	}
}

func TestRoundRobin(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.machine.Settings.Strategy = "round-robin"
	var all strings.Builder
	for range 6 {
		w.send()
		all.WriteString(w.saw())
	}
	if all.String() != "abcabc" {
		t.Errorf("saw %s, want each in turn", all.String())
	}
	w.script["*"] = []fake.Answer{{Status: 529}}
	w.send()
	w.send()
	if w.saw() != "bca" {
		t.Errorf("saw %s, want the others after it", w.saw())
	}
}

func TestPin(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.req.Header = httpmsg.Header{{Name: "x-connection-id", Value: "b"}}
	if w.send(); w.saw() != "b" {
		t.Errorf("saw %s, want b", w.saw())
	}
	w.script[key("b")] = []fake.Answer{{Status: 503}}
	if _, e := w.send(); w.saw() != "b" || e.Status != 503 {
		t.Errorf("saw %s, want no other account", w.saw())
	}
	w.req.Header = httpmsg.Header{{Name: "x-connection-id", Value: "of-another-machine"}}
	if _, e := w.send(); w.saw() != "" || e.Status != 400 {
		t.Errorf("saw %q, got %v", w.saw(), e)
	}
}

func TestOneTrialAfterALongCooldown(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script[key("a")] = []fake.Answer{{Status: 401}}
	w.send()
	w.Add(2*time.Minute + time.Second)
	inner := ""
	c := w.call()
	build := c.Build
	c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
		if conn.ID == "a" && inner == "" {
			inner = "?"
			c2 := w.call()
			c2.Build = build
			w.sendCall(c2) // another request, while the trial runs
			inner = w.saw()
			w.Seen = nil
		}
		return build(to, conn, before)
	}
	w.sendCall(c)
	if w.saw() != "ab" || inner != "b" {
		t.Errorf("the trial saw %s, the other request %s; want ab and b", w.saw(), inner)
	}
	if _, whole := w.cooling("a"); whole != 2*time.Minute {
		t.Errorf("a failed trial cools %v", whole)
	}
	w.Add(2*time.Minute + time.Second)
	w.script[key("a")] = []fake.Answer{{Status: 503}}
	w.send()
	if _, whole := w.cooling("a"); whole != 0 || w.saw() != "ab" {
		t.Errorf("one 503 in a trial cools %v, saw %s", whole, w.saw())
	}
}

func TestLongCooldownIsTriedEvery30Minutes(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script[key("a")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "18000"}}}}
	w.send()
	began := w.Now()
	var tried []time.Duration
	for range 200 {
		w.Add(time.Minute)
		if w.Now().Sub(began) == 60*time.Minute {
			w.script[key("a")] = []fake.Answer{{Status: 503}, {Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "10800"}}}}
		}
		for range 3 {
			w.send()
			if w.saw() == "ab" {
				tried = append(tried, w.Now().Sub(began))
			}
		}
	}
	want := []time.Duration{30 * time.Minute, 60 * time.Minute, 90 * time.Minute, 120 * time.Minute, 150 * time.Minute, 180 * time.Minute}
	if !slices.Equal(tried, want) {
		t.Errorf("tried after %v, want %v", tried, want)
	}
	w.Add(30 * time.Minute)
	w.script[key("a")] = []fake.Answer{{Status: 200}}
	if w.send(); w.saw() != "a" {
		t.Errorf("saw %s, want a trial", w.saw())
	}
	if model, _ := w.cooling("a"); model != 0 {
		t.Errorf("a trial that worked leaves a cooldown of %v", model)
	}
}

func TestOutliersAreTriedAfterTheOthers(t *testing.T) {
	for _, strategy := range []string{"", store.RoundRobin} {
		w := newWorld(t).add(accounts("abc")...)
		w.machine.Settings.Strategy = strategy
		c := w.call()
		for range 5 { // in a row
			w.machine.Failed("a", "gpt", w.Now().UnixMilli())
		}
		for range 6 {
			if w.sendCall(c); strings.HasPrefix(w.saw(), "a") {
				t.Errorf("%s: saw %s, want a last", strategy, w.saw())
			}
		}
		w.script[key("b")], w.script[key("c")] = []fake.Answer{{Status: 500}}, []fake.Answer{{Status: 500}}
		if _, e := w.send(); e != nil || len(w.saw()) != 3 || !strings.HasSuffix(w.saw(), "a") {
			t.Errorf("%s: saw %s, %v; want a tried after the others", strategy, w.saw(), e)
		}
		c.Targets = []routing.Target{w.target("other")}
		w.script = map[string][]fake.Answer{}
		seen := ""
		for range 3 {
			w.sendCall(c)
			seen += w.saw()
		}
		if !strings.Contains(seen, "a") {
			t.Errorf("%s: another model of the account is not served by it: %s", strategy, seen)
		}
		if w.pool.Unreported() > 0 {
			t.Error("unsteadiness is published")
		}
	}
}
