package accounts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"weir/pkg/store"
)

// cacheSpan is how long a simulated provider keeps the prefix of a conversation after
// its last use, as Anthropic's and OpenAI's caches do at least.
const cacheSpan = 5 * time.Minute

// cached simulates the prompt caches of five accounts: 1,000 sessions of 20 calls, each
// of which adds 500 tokens to a prompt of 4,000. It returns the share of calls that find
// a prefix, and of input tokens that are not read from the cache. With out, an account
// is not available for half of the time.
func cached(t *testing.T, strategy string, out bool) (found, billed float64) {
	w := newWorld(t).add(equals("abcde")...)
	w.machine.Settings.Strategy = strategy
	rng := rand.New(rand.NewPCG(1, 2))
	type prefix struct {
		tokens int
		used   time.Time
	}
	caches := map[string]map[int]prefix{}
	const sessions, calls = 1000, 20
	tokens := make([]int, sessions)
	next := make([]time.Time, sessions)
	for i := range next {
		next[i] = w.Now().Add(time.Duration(rng.IntN(int(time.Hour))))
	}
	hits, total, fresh, all := 0, 0, 0, 0
	began := w.Now()
	for {
		s := -1
		for i := range next {
			if !next[i].IsZero() && (s < 0 || next[i].Before(next[s])) {
				s = i
			}
		}
		if s < 0 {
			break
		}
		w.Add(next[s].Sub(w.Now()))
		if minute := int(w.Now().Sub(began).Minutes()); out && minute%20 >= 10 {
			w.machine.Cool(store.Cooldown{ConnectionID: "c", Since: w.Now().UnixMilli(), Until: w.Now().UnixMilli() + 60_000, Reason: store.KeyRefused})
		} else if out {
			w.machine.Clear("c", "", w.Now().UnixMilli())
		}
		at := w.served(fmt.Sprint("session-", s))
		prompt := 4000 + 500*tokens[s]
		if caches[at] == nil {
			caches[at] = map[int]prefix{}
		}
		read := 0
		if p := caches[at][s]; p.tokens > 0 && w.Now().Sub(p.used) <= cacheSpan {
			hits, read = hits+1, p.tokens
		}
		caches[at][s] = prefix{prompt, w.Now()}
		total, all, fresh = total+1, all+prompt, fresh+prompt-read
		if tokens[s]++; tokens[s] == calls {
			next[s] = time.Time{}
		} else {
			next[s] = w.Now().Add(5*time.Second + time.Duration(rng.IntN(int(80*time.Second))))
		}
	}
	return float64(hits) / float64(total), float64(fresh) / float64(all)
}

// The figures of docs/routing.md are those of this simulation.
func TestAffinityFindsThePromptCache(t *testing.T) {
	doc, err := os.ReadFile("../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, strategy string
		out            bool
	}{
		{"`affinity`", store.Affinity, false},
		{"`affinity`, one account out for half of the time", store.Affinity, true},
		{"`round-robin`", store.RoundRobin, false},
	} {
		found, billed := cached(t, tt.strategy, tt.out)
		row := fmt.Sprintf("| %s | %.1f %% | %.1f %% |", tt.name, 100*found, 100*billed)
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/routing.md has not the row\n%s", row)
		}
	}
}
