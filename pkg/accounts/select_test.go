package accounts

import (
	"strings"
	"testing"
	"time"

	"weir/pkg/edge"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/upstream"
)

func TestOrder(t *testing.T) {
	conn := func(id string, priority int) store.Connection { return store.Connection{ID: id, Priority: priority} }
	w := newWorld(t).add(conn("a", 2), conn("b", 1), conn("c", 1), conn("d", 1))
	w.script["*"] = []answer{{status: 503}}
	if w.send(); w.saw() != "bcda" {
		t.Errorf("saw %s, want by priority, then as stored", w.saw())
	}
	past := func(id string, ago time.Duration) {
		at := w.now.Add(-ago).UnixMilli()
		w.machine.Cool(store.Cooldown{ConnectionID: id, Model: "gpt", Since: at, Until: at + 1000, Failures: 1})
	}
	w = newWorld(t).add(conn("a", 2), conn("b", 1), conn("c", 1), conn("d", 1))
	w.script["*"] = []answer{{status: 529}}
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
	w.script["*"] = []answer{{status: 529}}
	w.send()
	w.send()
	if w.saw() != "bca" {
		t.Errorf("saw %s, want the others after it", w.saw())
	}
}

func TestPin(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.req.Header = edge.Header{{Name: "x-connection-id", Value: "b"}}
	if w.send(); w.saw() != "b" {
		t.Errorf("saw %s, want b", w.saw())
	}
	w.script[key("b")] = []answer{{status: 503}}
	if _, e := w.send(); w.saw() != "b" || e.Status != 503 {
		t.Errorf("saw %s, want no other account", w.saw())
	}
	w.req.Header = edge.Header{{Name: "x-connection-id", Value: "of-another-machine"}}
	if _, e := w.send(); w.saw() != "" || e.Status != 400 {
		t.Errorf("saw %q, got %v", w.saw(), e)
	}
}

func TestOneTrialAfterALongCooldown(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script[key("a")] = []answer{{status: 401}}
	w.send()
	w.now = w.now.Add(2*time.Minute + time.Second)
	inner := ""
	c := w.call()
	build := c.Build
	c.Build = func(to *routing.Target, conn *store.Connection) (*upstream.Request, error) {
		if conn.ID == "a" && inner == "" {
			inner = "?"
			c2 := w.call()
			c2.Build = build
			w.sendCall(c2) // another request, while the trial runs
			inner = w.saw()
			w.seen = nil
		}
		return build(to, conn)
	}
	w.sendCall(c)
	if w.saw() != "ab" || inner != "b" {
		t.Errorf("the trial saw %s, the other request %s; want ab and b", w.saw(), inner)
	}
	if _, whole := w.cooling("a"); whole != 2*time.Minute {
		t.Errorf("a failed trial cools %v", whole)
	}
	w.now = w.now.Add(2*time.Minute + time.Second)
	w.script[key("a")] = []answer{{status: 503}}
	w.send()
	if _, whole := w.cooling("a"); whole != 30*time.Second {
		t.Errorf("one 503 in a trial cools %v, want 30 s", whole)
	}
}
