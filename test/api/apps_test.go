package api

import (
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// Natively several Apps run side by side in one process: a machine, its keys,
// its cooldowns and its caches belong to the App that created them.
func TestTwoAppsShareNothing(t *testing.T) {
	one, two := newWorld(t), newWorld(t)
	idOne, keyOne := one.tenant(2)
	idTwo, keyTwo := two.tenant(2)
	one.get(200, one.embed(keyOne), nil)
	two.get(200, two.embed(keyTwo), nil)
	if len(one.Seen) != 1 || len(two.Seen) != 1 {
		t.Fatalf("%d and %d upstream calls, want one each", len(one.Seen), len(two.Seen))
	}
	// A key of one App is unknown to the other.
	if got := one.embed(keyTwo); got.status != 401 {
		t.Errorf("a key of the other App: %d, want 401", got.status)
	}
	if got := two.embed(keyOne); got.status != 401 {
		t.Errorf("a key of the other App: %d, want 401", got.status)
	}
	if got := one.do("GET", "/"+idTwo+"/api/providers", adminToken, ""); got.status == 200 && strings.Contains(got.body, "account 0") {
		t.Errorf("the other App's machine: %d %s", got.status, got.body)
	}
	// A cooldown of one App's account does not reach the same account elsewhere.
	one.Answer = func(r *fake.Seen) fake.Answer {
		if r.Header.Get("authorization") == "Bearer upstream-key-0" {
			return fake.Reply(429, `{"error":{"message":"slow down"}}`, httpmsg.Field{Name: "retry-after", Value: "600"})
		}
		return fake.Reply(200, embedding)
	}
	one.Seen, two.Seen = nil, nil
	for range 2 {
		one.get(200, one.embed(keyOne), nil)
		two.get(200, two.embed(keyTwo), nil)
	}
	if len(one.Seen) != 3 || len(two.Seen) != 2 {
		t.Errorf("%d and %d upstream calls, want 3 and 2", len(one.Seen), len(two.Seen))
	}
	// The lists of models, which are cached, follow the App's own machine.
	one.get(201, one.do("POST", "/"+idOne+"/api/combos", adminToken, `{"name":"only-one","models":["up/m"]}`), nil)
	for _, w := range []struct {
		*world
		key  string
		want bool
	}{{one, keyOne, true}, {two, keyTwo, false}} {
		got := w.do("GET", "/v1/models", w.key, "")
		if got.status != 200 || strings.Contains(got.body, `"only-one"`) != w.want {
			t.Errorf("the list has the combo: %v, want %v (status %d)", !w.want, w.want, got.status)
		}
	}
	if strings.Contains(strings.Join(two.Log, "\n"), idOne) {
		t.Error("one App logged a call of the other")
	}
}
