package routing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

// ordered resolves a combo for a session of a key and returns the models in order.
func ordered(t *testing.T, m *snapshot.Machine, name, session, key string) string {
	t.Helper()
	r := &httpmsg.Request{ID: "req", Start: start}
	r.Header.Add("x-session-id", session)
	got, err := Resolve(name, m, catalog.LLM, &Session{Request: r, KeyID: key})
	if err != nil {
		t.Fatal(err)
	}
	var models []string
	for i := range got {
		models = append(models, strings.TrimPrefix(got[i].ID(), "lab/"))
	}
	return strings.Join(models, " ")
}

var start = time.UnixMilli(1_800_000_000_000)

func combos(list ...store.Combo) *snapshot.Machine {
	m := machine()
	rec := *m.Machine
	rec.Combos = list
	return snapshot.New(&rec)
}

func TestAffinityOfMembers(t *testing.T) {
	m := combos(store.Combo{Name: "x", Strategy: store.Affinity, Models: []string{"lab/a", "lab/b", "lab/c"}})
	first := map[string]int{}
	for i := range 300 {
		s := fmt.Sprint(i)
		got := ordered(t, m, "x", s, "")
		if ordered(t, m, "x", s, "other") != got {
			t.Errorf("session %s has two orders", s)
		}
		first[got[:1]]++
	}
	if len(first) != 3 || min(first["a"], first["b"], first["c"]) < 70 {
		t.Errorf("first members %v", first)
	}
}

func TestCanaryIsStable(t *testing.T) {
	for _, by := range []string{"", store.SplitByKey} {
		m := combos(store.Combo{Name: "x", Strategy: store.Weighted, Models: []string{"lab/a", "lab/b"}, Weights: map[string]int{"lab/a": 90, "lab/b": 10}, SplitBy: by})
		canary := 0
		for i := range 1000 {
			session, key := fmt.Sprint(i), "k"
			if by == store.SplitByKey {
				session, key = "s", session
			}
			got := ordered(t, m, "x", session, key)
			if got == "b a" {
				canary++
			}
			if by == store.SplitByKey && ordered(t, m, "x", "another session", key) != got || by == "" && ordered(t, m, "x", session, "another key") != got {
				t.Fatalf("split by %q: the order of %d changes", by, i)
			}
		}
		if canary < 70 || canary > 130 {
			t.Errorf("split by %q: %d of 1,000 at the canary, want about 100", by, canary)
		}
	}
}

func TestCheapestMember(t *testing.T) {
	m := combos(store.Combo{Name: "x", Strategy: store.Cheapest, Models: []string{"lab/unpriced", "openai/gpt-5", "openai/gpt-5-nano", "openai/gpt-5-mini"}})
	if got, want := ordered(t, m, "x", "s", ""), "openai/gpt-5-nano openai/gpt-5-mini openai/gpt-5 unpriced"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Models that are not priced by tokens are compared by the rate of their medium.
func TestCheapestMemberOfMedia(t *testing.T) {
	for _, unit := range []string{"image", "second", "character", "request"} {
		m := combos(store.Combo{Name: "x", Strategy: store.Cheapest, Models: []string{"lab/a", "lab/b", "lab/c", "lab/d"}})
		m.Settings.ModelPrices = map[string]string{"lab/a": "search=0.01", "lab/b": unit + "=0.08", "lab/c": unit + "=0.02", "lab/d": "0"}
		if got := ordered(t, m, "x", "s", ""); got != "d c b a" {
			t.Errorf("by %s: %s", unit, got)
		}
	}
}

// A rate of 0 is a price, also where another one of the model is not 0.
func TestCheapestMemberWithARateOfZero(t *testing.T) {
	m := combos(store.Combo{Name: "x", Strategy: store.Cheapest, Models: []string{"lab/a", "lab/b", "lab/c", "lab/d"}})
	m.Settings.ModelPrices = map[string]string{"lab/a": "0/4", "lab/b": "2/0", "lab/c": "second=0.5", "lab/d": "image=0 second=0.9"}
	if got := ordered(t, m, "x", "s", ""); got != "d c a b" {
		t.Errorf("got %s", got)
	}
}

// A target is as fast as the fastest of its accounts.
func TestFastestAccountOfAMemberCounts(t *testing.T) {
	m := combos(store.Combo{Name: "fast", Strategy: store.Fastest, Models: []string{"lab/a", "lab/b"}})
	now := start.UnixMilli()
	for _, took := range []struct {
		conn, model string
		ms          time.Duration
	}{{"c1", "a", 500}, {"c2", "a", 400}, {"c1", "b", 300}, {"c2", "b", 900}} {
		m.Took(took.conn, took.model, false, took.ms*time.Millisecond, now)
	}
	if got := ordered(t, m, "fast", "s", ""); got != "b a" {
		t.Errorf("fastest: %s", got)
	}
}

func TestMeasuredMembers(t *testing.T) {
	m := combos(
		store.Combo{Name: "fast", Strategy: store.Fastest, Models: []string{"lab/a", "lab/b", "lab/c"}},
		store.Combo{Name: "idle", Strategy: store.LeastBusy, Models: []string{"lab/a", "lab/b", "lab/c"}},
	)
	id := m.Active(compat)[0].ID
	now := start.UnixMilli()
	m.Took(id, "a", false, 900*time.Millisecond, now)
	m.Took(id, "b", false, 300*time.Millisecond, now)
	m.Took(id, "c", false, 500*time.Millisecond, now)
	m.Took(id, "a", true, time.Millisecond, now) // of streams
	if got := ordered(t, m, "fast", "s", ""); got != "b c a" {
		t.Errorf("fastest: %s", got)
	}
	for _, model := range []string{"a", "a", "c"} {
		m.Begin(id, model, now)
	}
	if got := ordered(t, m, "idle", "s", ""); got != "b c a" {
		t.Errorf("least-busy: %s", got)
	}
}

// The targets of a member that is a combo stay together, in its own order.
func TestNestedMembersStayTogether(t *testing.T) {
	m := combos(
		store.Combo{Name: "in", Models: []string{"lab/b", "lab/c"}},
		store.Combo{Name: "out", Strategy: store.Weighted, Models: []string{"lab/a", "in", "lab/d"}, Weights: map[string]int{"in": 1000}},
	)
	seen := map[string]bool{}
	for i := range 100 {
		got := ordered(t, m, "out", fmt.Sprint(i), "")
		if !strings.Contains(got, "b c") || len(got) != 7 {
			t.Errorf("got %s", got)
		}
		seen[got[:1]] = true
	}
	if !seen["b"] {
		t.Errorf("first members %v", seen)
	}
}

// A member that fails is left out, and the others keep their order.
func TestMembersThatFailAreLeftOut(t *testing.T) {
	m := combos(store.Combo{Name: "x", Strategy: store.Affinity, Models: []string{"groq/none", "lab/a", "lab/b"}})
	for i := range 20 {
		if got := ordered(t, m, "x", fmt.Sprint(i), ""); got != "a b" && got != "b a" {
			t.Errorf("got %s", got)
		}
	}
}
