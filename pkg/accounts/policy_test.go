package accounts

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// combo returns a call whose targets a, b, c are models of the account of the same
// name, members of a combo with the policy on.
func (w *world) combo(on map[string]string, members string) *Call {
	c := w.call()
	c.Targets = nil
	for _, id := range strings.Split(members, "") {
		to := w.target("model-" + id)
		to.Connections = []*store.Connection{w.machine.Connection(id)}
		c.Targets = append(c.Targets, to)
	}
	routing.Group(c.Targets, on)
	return c
}

func TestPolicyDecidesOnTheNextMember(t *testing.T) {
	code := func(status int, code string) fake.Answer {
		return fake.Answer{Status: status, Body: fmt.Sprintf(`{"error":{"message":"no","code":%q}}`, code)}
	}
	for _, tt := range []struct {
		class  string
		answer fake.Answer
		next   bool // by default
		status int  // if the combo ends
	}{
		{"limit", fake.Answer{Status: 429}, true, 429},
		{"limit", fake.Answer{Status: 402}, true, 402},
		{"limit", code(429, "insufficient_quota"), true, 402},
		{"unavailable", fake.Answer{Status: 500}, true, 500},
		{"unavailable", fake.Answer{Status: 529}, true, 529},
		{"unavailable", fake.Answer{Status: 401}, true, 401},
		{"context_length", code(400, "context_length_exceeded"), true, 400},
		{"model_gone", code(404, "model_not_found"), true, 404},
		{"model_gone", fake.Answer{Status: 410}, true, 410},
		{"content_filter", code(400, "content_filter"), false, 400},
		{"content_filter", fake.Answer{Status: 403, Body: `{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"],"flagged_input":"…"}}}`}, false, 403},
		{"any_4xx", code(400, "invalid_value"), false, 400},
		{"any_4xx", fake.Answer{Status: 404}, false, 404},
		{"any_4xx", fake.Answer{Status: 422}, false, 422},
	} {
		for value, next := range map[string]bool{"": tt.next, routing.Next: true, routing.Stop: false} {
			w := newWorld(t).add(accounts("ab")...)
			w.script[key("a")] = []fake.Answer{tt.answer}
			res, e := w.sendCall(w.combo(map[string]string{tt.class: value}, "ab"))
			saw, status := "a", tt.status
			if next {
				saw, status = "ab", 200
			}
			got := 0
			if e != nil {
				got = e.Status
			} else {
				got = res.Status
			}
			if w.saw() != saw || got != status {
				t.Errorf("%s %q after %d: upstream saw %s, client got %d; want %s and %d", tt.class, value, tt.answer.Status, w.saw(), got, saw, status)
			}
		}
	}
}

// Accounts of a member that cool down are a failure of their cause.
func TestPolicyOfCoolingAccounts(t *testing.T) {
	for _, tt := range []struct {
		answer fake.Answer
		on     string
		next   bool
	}{
		{fake.Answer{Status: 429}, "limit", false}, {fake.Answer{Status: 429}, "unavailable", true},
		{fake.Answer{Status: 402}, "limit", false}, {fake.Answer{Status: 401}, "unavailable", false},
		{fake.Answer{Status: 401}, "limit", true},
	} {
		w := newWorld(t).add(accounts("ab")...)
		w.script[key("a")] = []fake.Answer{tt.answer}
		w.sendCall(w.combo(nil, "ab"))
		want := ""
		if tt.next {
			want = "b"
		}
		call := w.combo(map[string]string{tt.on: routing.Stop}, "ab")
		if w.sendCall(call); w.saw() != want {
			t.Errorf("%d, %s stop: upstream saw %q, want %q", tt.answer.Status, tt.on, w.saw(), want)
		}
		steps := Explain(call, "", w.Now(), nil, "")
		if reached := steps[1].Try == 1 && steps[1].Skipped == ""; len(steps) != 2 || reached != tt.next {
			t.Errorf("%d, %s stop: explained %+v", tt.answer.Status, tt.on, steps)
		}
	}
}

// All accounts of a member are tried, whatever the policy; its most useful failure
// decides on the next member.
func TestPolicyAfterSeveralAccounts(t *testing.T) {
	for _, tt := range []struct{ on, want string }{{"limit", "abc"}, {"unavailable", "ab"}} {
		w := newWorld(t).add(accounts("abc")...)
		w.script[key("a")], w.script[key("b")] = []fake.Answer{{Status: 500}}, []fake.Answer{{Status: 429}}
		call := w.combo(map[string]string{tt.on: routing.Stop}, "ac")
		call.Targets[0].Connections = append(call.Targets[0].Connections, w.machine.Connection("b"))
		if w.sendCall(call); w.saw() != tt.want {
			t.Errorf("%s stop: upstream saw %s, want %s", tt.on, w.saw(), tt.want)
		}
	}
}

func TestTooLongTargetsAreNotTried(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	call := w.combo(nil, "abc")
	call.Targets[0].TooLong, call.Targets[1].TooLong = true, true
	if _, e := w.sendCall(call); e != nil || w.saw() != "c" {
		t.Errorf("upstream saw %s, error %v", w.saw(), e)
	}
	var plan []string
	for _, s := range Explain(call, "", w.Now(), nil, "") {
		plan = append(plan, fmt.Sprint(s.Connection.ID, s.Try, s.Skipped))
	}
	if got, want := strings.Join(plan, " "), "a0context_length b0context_length c1"; got != want {
		t.Errorf("explained %s, want %s", got, want)
	}
}

// A combo goes on with at most five attempts, whatever fails.
func TestPolicyKeepsTheLimitOfAttempts(t *testing.T) {
	w := newWorld(t).add(accounts("abcdefg")...)
	w.script["*"] = []fake.Answer{{Status: 404}}
	_, e := w.sendCall(w.combo(map[string]string{"any_4xx": routing.Next}, "abcdefg"))
	if w.saw() != "abcde" || e == nil || e.Status != 404 {
		t.Errorf("upstream saw %s, client got %v", w.saw(), e)
	}
}

// A failure that is not the upstream's ends the call.
func TestPolicyIsNotForFailuresOfTheClient(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	call := w.combo(map[string]string{"any_4xx": routing.Next}, "ab")
	build := call.Build
	call.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
		a, err := build(to, conn, before)
		a.Fault = func() error { return apierr.Invalid("", "The body is broken.") }
		return a, err
	}
	if _, e := w.sendCall(call); w.saw() != "a" || e == nil || e.Status != 400 {
		t.Errorf("upstream saw %s, client got %v", w.saw(), e)
	}
}
