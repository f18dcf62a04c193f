package accounts

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

// A call goes to the accounts that its explanation names, in that order, up to the limit of
// attempts: over random strategies, priorities, weights, cooldowns, sessions and combos
// whose members share accounts. A regression: with round-robin each member of a combo took
// a turn, so that the second began elsewhere than explained.
func TestExplainEqualsSendInRandomSituations(t *testing.T) {
	strategies := []string{store.Priority, store.RoundRobin, store.Affinity, store.Weighted, store.LeastBusy, store.Fastest}
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t)
		conns := accounts("abcdef"[:1+rnd.IntN(6)])
		for i := range conns {
			conns[i].Priority, conns[i].Weight = rnd.IntN(2), 1+rnd.IntN(5)
			if rnd.IntN(8) == 0 {
				conns[i].Status = "needs_reauth"
			}
		}
		w.add(conns...)
		w.machine.Settings.Strategy = strategies[rnd.IntN(len(strategies))]
		for _, c := range conns {
			if rnd.IntN(4) == 0 {
				w.script[key(c.ID)] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "30"}}}}
			}
		}
		w.req.Header = httpmsg.Header{{Name: "x-session-id", Value: fmt.Sprint(rnd.IntN(5))}}
		for range rnd.IntN(4) {
			w.send()
		}
		w.Add(time.Duration(rnd.IntN(40)) * time.Second)
		w.script = map[string][]fake.Answer{"*": {{Status: 529}}}
		for range 3 {
			call := w.call()
			call.Targets = nil
			for i := range 1 + rnd.IntN(3) {
				call.Targets = append(call.Targets, w.target(fmt.Sprintf("gpt-%d", i)))
			}
			explained := ""
			explain := *call
			explain.Targets = append([]routing.Target(nil), call.Targets...)
			for _, s := range Explain(&explain, "", w.Now(), nil, "") {
				if s.Try > 0 && s.Try <= MaxAttempts {
					explained += s.Connection.ID
				}
			}
			if w.sendCall(call); w.saw() != explained {
				t.Fatalf("seed %d, %s, %d members of %d accounts: explained %q, sent to %q", seed, w.machine.Settings.Strategy, len(call.Targets), len(conns), explained, w.saw())
			}
		}
	}
}

// A regression: a call that visited two members took two turns, so with two accounts and a
// failing first member each call began at the same account.
func TestCallTakesOneTurn(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.machine.Settings.Strategy = store.RoundRobin
	w.script["*"] = []fake.Answer{{Status: 529}}
	var began strings.Builder
	for range 4 {
		call := w.call()
		call.Targets = []routing.Target{w.target("x"), w.target("z")}
		w.sendCall(call)
		began.WriteString(w.saw()[:1])
	}
	if began.String() != "abab" {
		t.Errorf("the calls began at %s", began.String())
	}
}
