package accounts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// equals returns connections a, b, … of equal priority.
func equals(ids string) (list []store.Connection) {
	for _, id := range ids {
		list = append(list, store.Connection{ID: string(id)})
	}
	return list
}

// sessionCall is a call of a session; "" is a call without one.
func (w *world) sessionCall(session string) *Call {
	c := w.call()
	w.trace = Trace{}
	c.Request = &httpmsg.Request{Start: w.Now(), ID: fmt.Sprint("req_", len(w.Seen), w.Now())}
	if session != "" {
		c.Request.Header.Add("x-session-id", session)
	}
	return c
}

// served returns the account that answers a call of a session.
func (w *world) served(session string) string {
	w.Helper()
	if _, err := w.sendCall(w.sessionCall(session)); err != nil {
		w.Fatal(err)
	}
	return w.saw()[len(w.saw())-1:]
}

// 1,000 sessions over 5 accounts: when one is lost, its sessions alone move, to all the
// others. When it is back, they return, and no other session moves.
func TestAffinityMovesOnlyTheShareOfALostAccount(t *testing.T) {
	w := newWorld(t).add(equals("abcde")...)
	w.machine.Settings.Strategy = store.Affinity
	const sessions = 1000
	all := func() (of [sessions]string, share map[string]int) {
		share = map[string]int{}
		for i := range of {
			of[i] = w.served(fmt.Sprint("session-", i))
			share[of[i]]++
		}
		return of, share
	}
	before, share := all()
	for id, n := range share {
		if n < 150 || n > 250 {
			t.Errorf("account %s has %d sessions of %d", id, n, sessions)
		}
	}
	if again, _ := all(); again != before {
		t.Error("sessions move although nothing has changed")
	}
	at := w.Now().UnixMilli()
	w.machine.Cool(store.Cooldown{ConnectionID: "c", Since: at, Until: at + 60_000, Reason: store.KeyRefused})
	moved := map[string]int{}
	lost, _ := all()
	for i := range lost {
		switch {
		case before[i] != "c" && lost[i] != before[i]:
			t.Fatalf("session %d moves from %s to %s", i, before[i], lost[i])
		case before[i] == "c":
			moved[lost[i]]++
		}
	}
	if len(moved) != 4 {
		t.Errorf("the sessions of the lost account move to %v", moved)
	}
	w.machine.Clear("c", "", w.Now().UnixMilli())
	if back, _ := all(); back != before {
		t.Error("an account that is back does not take its own share alone")
	}
}

// Two isolates, and two machines with the same accounts, choose the same account.
func TestAffinityIsTheSameEverywhere(t *testing.T) {
	one, two := newWorld(t).add(equals("abc")...), newWorld(t).add(equals("cab")...)
	one.machine.Settings.Strategy, two.machine.Settings.Strategy = store.Affinity, store.Affinity
	for i := range 50 {
		s := fmt.Sprint(i)
		if a, b := one.served(s), two.served(s); a != b {
			t.Errorf("session %s: %s and %s", s, a, b)
		}
	}
	// A change of the hash would move every session of every machine at once.
	if got := fmt.Sprintf("%.6f", routing.Score(1, "a", 1)); got != "0.734478" {
		t.Errorf("score %s", got)
	}
}

func TestAffinityComesAfterPriority(t *testing.T) {
	conns := equals("abcd")
	conns[2].Priority, conns[3].Priority = -1, -1
	w := newWorld(t).add(conns...)
	w.machine.Settings.Strategy = store.Affinity
	w.script["*"] = []fake.Answer{{Status: 529}}
	for i := range 30 {
		w.sendCall(w.sessionCall(fmt.Sprint(i)))
		if s := w.saw(); strings.Trim(s[:2], "cd") != "" || strings.Trim(s[2:], "ab") != "" {
			t.Errorf("session %d: saw %s, want those of the lower priority first", i, s)
		}
	}
}

func TestAffinityIsTold(t *testing.T) {
	w := newWorld(t).add(equals("abc")...)
	w.machine.Settings.Strategy = store.Affinity
	home := w.served("s")
	if w.trace.Affinity != Kept {
		t.Errorf("got %q, want kept", w.trace.Affinity)
	}
	for _, status := range []int{529, 401} { // in this call, and in the calls that follow
		w.script[key(home)] = []fake.Answer{{Status: status}}
		if at := w.served("s"); at == home || w.trace.Affinity != Moved {
			t.Errorf("%d: %s answers, got %q, want another and moved", status, at, w.trace.Affinity)
		}
	}
	if at := w.served("s"); at == home || w.trace.Affinity != Moved {
		t.Errorf("in the cooldown %s answers, got %q, want another and moved", at, w.trace.Affinity)
	}
	if w.served(""); w.trace.Affinity != "" {
		t.Errorf("a call without a session: got %q", w.trace.Affinity)
	}
	w.script[key(home)] = nil
	w.Add(3 * time.Minute)
	if at := w.served("s"); at != home || w.trace.Affinity != Kept {
		t.Errorf("after the cooldown %s answers, got %q, want %s and kept", at, w.trace.Affinity, home)
	}
	c := w.sessionCall("s")
	c.Request.Header.Add("x-connection-id", "a")
	if w.sendCall(c); w.trace.Affinity != "" {
		t.Errorf("a call for one account: got %q", w.trace.Affinity)
	}
	one := newWorld(t).add(equals("a")...)
	one.machine.Settings.Strategy = store.Affinity
	if one.served("s"); one.trace.Affinity != "" {
		t.Errorf("one account: got %q", one.trace.Affinity)
	}
	two := newWorld(t).add(equals("ab")...)
	if two.served("s"); two.trace.Affinity != "" {
		t.Errorf("strategy priority: got %q", two.trace.Affinity)
	}
}

// Calls without a session use all accounts.
func TestAffinityWithoutASession(t *testing.T) {
	w := newWorld(t).add(equals("abc")...)
	w.machine.Settings.Strategy = store.Affinity
	seen := map[string]int{}
	for range 90 {
		w.Add(time.Millisecond)
		seen[w.served("")]++
	}
	for _, id := range []string{"a", "b", "c"} {
		if seen[id] < 10 {
			t.Errorf("accounts %v, want each about as often", seen)
		}
	}
}

func TestWeightedAccounts(t *testing.T) {
	conns := equals("abc")
	conns[0].Weight, conns[1].Weight = 90, 9
	w := newWorld(t).add(conns...)
	w.machine.Settings.Strategy = store.Weighted
	share := map[string]int{}
	for i := range 1000 {
		s := fmt.Sprint(i)
		at := w.served(s)
		if share[at]++; w.trace.Affinity != Kept {
			t.Fatalf("session %d: %q", i, w.trace.Affinity)
		}
	}
	if share["a"] < 860 || share["a"] > 940 || share["b"] < 60 || share["b"] > 120 || share["c"] > 30 {
		t.Errorf("shares %v of 1,000, want about 900, 90 and 10", share)
	}
}

func TestFastestAccount(t *testing.T) {
	w := newWorld(t).add(equals("abc")...)
	w.machine.Settings.Strategy = store.Fastest
	took := map[string]time.Duration{key("a"): 900 * time.Millisecond, key("b"): 200 * time.Millisecond, key("c"): 500 * time.Millisecond}
	w.meanwhile = func(cred string) { w.Add(took[cred]) }
	var all strings.Builder
	for range 6 {
		all.WriteString(w.served("s"))
	}
	if all.String() != "abcbbb" {
		t.Errorf("saw %s, want each once and then the fastest", all.String())
	}
	took[key("b")] = 3 * time.Second // it becomes slow
	w.served("s")
	if got := w.served("s"); got != "c" {
		t.Errorf("saw %s, want c", got)
	}
	w.Add(6 * time.Minute)
	if got := w.served("s"); got != "a" {
		t.Errorf("saw %s, want old measurements to be made again", got)
	}
	c := w.sessionCall("s")
	c.Session = &routing.Session{Request: c.Request, Stream: true}
	w.Add(time.Second)
	if w.sendCall(c); w.saw() != "a" {
		t.Errorf("saw %s, want streams to be measured for themselves", w.saw())
	}
}

func TestLeastBusyAccount(t *testing.T) {
	w := newWorld(t).add(equals("abc")...)
	w.machine.Settings.Strategy = store.LeastBusy
	c := w.call()
	c.Read = func(_ *Attempt, resp *upstream.Response) error {
		resp.Body = &stream.Prefix{} // not in memory
		return nil
	}
	var open []*Result
	seen := ""
	for range 6 {
		res, err := w.sendCall(c)
		if err != nil {
			t.Fatal(err)
		}
		open, seen = append(open, res), seen+w.saw()
	}
	if seen != "abcabc" {
		t.Errorf("saw %s, want the calls spread", seen)
	}
	open[1].Done(nil)
	open[1].Done(nil) // a second end does not count
	open[4].Done(stream.ErrClient)
	for _, want := range []string{"b", "b", "a"} {
		if res, _ := w.sendCall(c); w.saw() != want {
			t.Errorf("saw %s, want %s", w.saw(), want)
		} else {
			open = append(open, res)
		}
	}
	w.Add(31 * time.Minute) // ends that are never told are forgotten
	if w.sendCall(c); w.saw() != "a" || w.machine.Busy("a", "", w.Now().UnixMilli()) != 1 {
		t.Errorf("saw %s with %d calls under way", w.saw(), w.machine.Busy("a", "", w.Now().UnixMilli()))
	}
}

// Answers in memory and failed attempts are no longer under way.
func TestEndedCallsAreNotCountedAsBusy(t *testing.T) {
	w := newWorld(t).add(equals("ab")...)
	w.machine.Settings.Strategy = store.LeastBusy
	w.script[key("a")] = []fake.Answer{{Status: 529}, {Status: 200}}
	for range 4 {
		w.send()
	}
	for _, id := range []string{"a", "b"} {
		if n := w.machine.Busy(id, "", w.Now().UnixMilli()) + w.machine.Busy(id, "gpt", w.Now().UnixMilli()); n != 0 {
			t.Errorf("%s: %d under way", id, n)
		}
	}
}

// A strategy measures nothing for the others.
func TestOtherStrategiesMeasureNothing(t *testing.T) {
	for _, strategy := range []string{"", store.RoundRobin, store.Affinity, store.Weighted} {
		w := newWorld(t).add(equals("ab")...)
		w.machine.Settings.Strategy = strategy
		w.script["*"] = []fake.Answer{{Status: 200}}
		w.send()
		if reflect.ValueOf(w.machine.Local).Elem().FieldByName("loads").Len() > 0 {
			t.Errorf("%q measures", strategy)
		}
	}
}

func TestExplainNamesTheHomeOfASession(t *testing.T) {
	w := newWorld(t).add(equals("abc")...)
	w.machine.Settings.Strategy = store.Affinity
	home := w.served("s")
	at := w.Now().UnixMilli()
	w.machine.Cool(store.Cooldown{ConnectionID: home, Since: at, Until: at + 60_000, Reason: store.RateLimited})
	c := w.sessionCall("s")
	steps := Explain(c, "", w.Now(), nil, "")
	var homes, order []string
	for _, s := range steps {
		if s.Home {
			homes = append(homes, s.Connection.ID)
		}
		if s.Try > 0 {
			order = append(order, s.Connection.ID)
		}
	}
	if !slices.Equal(homes, []string{home}) || c.Session.By() != "x-session-id" {
		t.Errorf("homes %v by %q, want %s", homes, c.Session.By(), home)
	}
	if got := w.served("s"); order[0] != got {
		t.Errorf("explained %v, %s answers", order, got)
	}
}
