package storage_test

import (
	"fmt"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/usage"
)

// healthOf returns the health of connection a after a report that arrives at noon.
func healthOf(rep *rpc.Report, before storage.Health) (string, storage.Health) {
	tx := at(objects.NewStorage(), noon)
	if before != (storage.Health{}) {
		tx.Put(storage.HealthPrefix+"a", before)
	}
	tx.AddOutcomes(rep, func(id string) bool { return id == "a" })
	return tx.Health(&storage.Connection{Connection: store.Connection{ID: "a"}}, nil)
}

func TestHealthIsTheLastOutcome(t *testing.T) {
	failed := func(status int, code string) store.Request {
		return store.Request{At: noon - 100, LatencyMs: 40, Status: status, Error: "x", Attempts: 1, ConnectionID: "a",
			Failed: []store.Attempt{{ConnectionID: "a", Status: status, Code: code}}}
	}
	answered := store.Request{At: noon - 100, LatencyMs: 40, Status: 399, Attempts: 1, ConnectionID: "a"}
	with := func(change func(*store.Request)) store.Request { r := answered; change(&r); return r }
	for _, tt := range []struct {
		name   string
		r      store.Request
		want   string
		status int
		at     int64
	}{
		{"answered", answered, "ready", 0, noon - 60},
		{"a negative latency", with(func(r *store.Request) { r.LatencyMs = -40 }), "ready", 0, noon - 100},
		{"an end in the future", with(func(r *store.Request) { r.LatencyMs = 1000 }), "ready", 0, noon},
		{"status 400", with(func(r *store.Request) { r.Status = 400 }), "untested", 0, 0},
		{"an error", with(func(r *store.Request) { r.Error = "cut" }), "untested", 0, 0},
		{"no attempt", with(func(r *store.Request) { r.Attempts = 0 }), "untested", 0, 0},
		{"another connection", with(func(r *store.Request) { r.ConnectionID = "b" }), "untested", 0, 0},
		{"unreachable", failed(502, "upstream_unreachable"), "unreachable", 0, noon - 60},
		{"too slow", failed(504, "upstream_timeout"), "unreachable", 0, noon - 60},
		{"refused location", failed(403, "upstream_blocked_here"), "blocked", 403, noon - 60},
		{"no credit", failed(402, ""), "out_of_credit", 402, noon - 60},
		{"no quota", failed(429, "insufficient_quota"), "out_of_credit", 429, noon - 60},
		{"wrong key", failed(401, ""), "key_refused", 401, noon - 60},
		{"old token", failed(401, "token_unavailable"), "untested", 0, 0},
		{"forbidden", failed(403, ""), "key_refused", 403, noon - 60},
		{"forbidden model", failed(403, "account_lacks_model"), "untested", 0, 0},
		{"not found", failed(404, ""), "untested", 0, 0},
		{"limited", failed(429, ""), "untested", 0, 0},
		{"status 499", failed(499, ""), "untested", 0, 0},
		{"server error", failed(500, ""), "failing", 500, noon - 60},
		{"overloaded", failed(529, ""), "untested", 0, 0},
	} {
		got, row := healthOf(&rpc.Report{Requests: []store.Request{tt.r}}, storage.Health{})
		if got != tt.want || row.Status != tt.status || row.At != tt.at {
			t.Errorf("%s: got %s, %+v; want %s, status %d at %d", tt.name, got, row, tt.want, tt.status, tt.at)
		}
	}
}

func TestOlderOutcomeIsIgnored(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before storage.Health
		reason string
		at     int64
		want   storage.Health
	}{
		{"an older failure", storage.Health{SucceedAt: noon - 10, At: noon - 10}, storage.HealthFailing, noon - 11, storage.Health{SucceedAt: noon - 10, At: noon - 10}},
		{"a failure of the same time", storage.Health{SucceedAt: noon - 10, At: noon - 10}, storage.HealthFailing, noon - 10, storage.Health{Reason: storage.HealthFailing, Status: 500, SucceedAt: noon - 10, At: noon - 10}},
		{"a success soon after another", storage.Health{SucceedAt: noon - minute, At: noon - minute}, "", noon - 1, storage.Health{SucceedAt: noon - minute, At: noon - minute}},
		{"a success a minute after another", storage.Health{SucceedAt: noon - minute, At: noon - minute}, "", noon, storage.Health{SucceedAt: noon, At: noon}},
		{"a success after a failure", storage.Health{Reason: storage.HealthFailing, Status: 500, At: noon - 5}, "", noon - 5, storage.Health{SucceedAt: noon - 5, At: noon - 5}},
		{"a failure after a row of now", storage.Health{SucceedAt: noon, At: noon}, storage.HealthFailing, noon - 1, storage.Health{SucceedAt: noon, At: noon}},
		{"a failure after a row of a clock ahead", storage.Health{SucceedAt: noon + 1, At: noon + 1}, storage.HealthFailing, noon - 1, storage.Health{Reason: storage.HealthFailing, Status: 500, SucceedAt: noon + 1, At: noon - 1}},
		{"a success after a row of a clock ahead", storage.Health{SucceedAt: noon + 1, At: noon + 1}, "", noon - 1, storage.Health{SucceedAt: noon - 1, At: noon - 1}},
		{"a success after a row of now's", storage.Health{SucceedAt: noon, At: noon}, "", noon, storage.Health{SucceedAt: noon, At: noon}},
	} {
		tx := at(objects.NewStorage(), noon)
		tx.Put(storage.HealthPrefix+"a", tt.before)
		tx.SetHealth("a", storage.Outcome{Reason: tt.reason, Status: 500, At: tt.at})
		var got storage.Health
		tx.Load(storage.HealthPrefix+"a", &got)
		got.Since = 0 // TestHealthHasItsBeginning
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// Of many requests within a second a report has only some. Cooldowns and usage
// show the outcomes of the others.
func TestHealthWithoutARequest(t *testing.T) {
	used := func(requests, errors int64) []usage.Row {
		return []usage.Row{{ConnectionID: "a", Requests: requests, Errors: errors}}
	}
	limited := store.Request{At: noon - 9, Status: 429, Error: "x", Attempts: 1, Failed: []store.Attempt{{ConnectionID: "a", Status: 429}}}
	for _, tt := range []struct {
		name string
		rep  rpc.Report
		want string
	}{
		{"some succeeded", rpc.Report{Usage: used(3, 2)}, "ready"},
		{"all succeeded", rpc.Report{Usage: used(3, 0)}, "ready"},
		{"all failed", rpc.Report{Usage: used(3, 3)}, "untested"},
		{"an impossible count", rpc.Report{Usage: used(3, -1)}, "untested"},
		{"a request shows an outcome", rpc.Report{Requests: []store.Request{limited}, Usage: used(3, 2)}, "untested"},
		{"another connection", rpc.Report{Usage: []usage.Row{{ConnectionID: "b", Requests: 1}}}, "untested"},
		{"key refused", rpc.Report{Cooldowns: []store.Cooldown{{ConnectionID: "a", Reason: store.KeyRefused, Since: noon}}, Usage: used(3, 2)}, "key_refused"},
		{"no credit", rpc.Report{Cooldowns: []store.Cooldown{{ConnectionID: "a", Reason: "quota", Since: noon}}}, "out_of_credit"},
		{"limited", rpc.Report{Cooldowns: []store.Cooldown{{ConnectionID: "a", Reason: store.RateLimited, Since: noon}}}, "untested"},
		{"cleared", rpc.Report{Cleared: []rpc.Cleared{{ConnectionID: "a", At: noon}}}, "ready"},
	} {
		if got, _ := healthOf(&tt.rep, storage.Health{}); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestOnlySixteenFailuresOfARequestCount(t *testing.T) {
	for _, before := range []int{15, 16} {
		r := store.Request{At: noon - 9, Status: 401, Error: "x", Attempts: 20}
		for i := range before {
			r.Failed = append(r.Failed, store.Attempt{ConnectionID: fmt.Sprint("c", i), Status: 500})
		}
		r.Failed = append(r.Failed, store.Attempt{ConnectionID: "a", Status: 401})
		got, _ := healthOf(&rpc.Report{Requests: []store.Request{r}}, storage.Health{})
		if (got == "key_refused") != (before < 16) {
			t.Errorf("after %d others: %s", before, got)
		}
	}
}

func TestCooldownShowsInHealthWhileItLasts(t *testing.T) {
	ready := storage.Health{SucceedAt: noon - 10*second, At: noon - 10*second}
	for _, tt := range []struct {
		name string
		row  storage.Health
		c    store.Cooldown
		want string
	}{
		{"limited", ready, store.Cooldown{ConnectionID: "a", Reason: store.RateLimited, Until: noon + 1, Since: noon - second}, "limited"},
		{"limited before any call", storage.Health{}, store.Cooldown{ConnectionID: "a", Reason: store.RateLimited, Until: noon + 1}, "limited"},
		{"limit over", ready, store.Cooldown{ConnectionID: "a", Reason: store.RateLimited, Until: noon, Since: noon - second}, "ready"},
		{"another connection's", ready, store.Cooldown{ConnectionID: "b", Reason: store.RateLimited, Until: noon + 1}, "ready"},
		{"limited and failing", storage.Health{Reason: storage.HealthFailing, At: noon - second}, store.Cooldown{ConnectionID: "a", Reason: store.RateLimited, Until: noon + 1}, "failing"},
		{"refused since", ready, store.Cooldown{ConnectionID: "a", Reason: store.KeyRefused, Until: noon + 1, Since: noon - 9*second}, "key_refused"},
		{"refused at the same time", ready, store.Cooldown{ConnectionID: "a", Reason: store.KeyRefused, Until: noon + 1, Since: noon - 10*second}, "ready"},
		{"no credit since", ready, store.Cooldown{ConnectionID: "a", Reason: store.OutOfCredit, Until: noon + 1, Since: noon - 9*second}, "out_of_credit"},
		{"no credit before", ready, store.Cooldown{ConnectionID: "a", Reason: store.OutOfCredit, Until: noon + 1, Since: noon - 11*second}, "ready"},
	} {
		tx := at(objects.NewStorage(), noon)
		tx.Put(storage.HealthPrefix+"a", tt.row)
		if got, _ := tx.Health(&storage.Connection{Connection: store.Connection{ID: "a"}}, []store.Cooldown{{ConnectionID: "c", Until: noon + minute}, tt.c}); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Each row that is written is billed.
func TestSuccessOfTheSameTimeIsNotStoredAgain(t *testing.T) {
	st := objects.NewStorage()
	st.Rows[storage.HealthPrefix+"a"] = storage.Encode(storage.Health{At: noon, SucceedAt: noon})
	tx := at(st, noon)
	if tx.SetHealth("a", storage.Outcome{At: noon}); len(tx.Order) != 0 {
		t.Errorf("changed %v", tx.Order)
	}
}

func TestHealthHasItsBeginning(t *testing.T) {
	a := &storage.Connection{Connection: store.Connection{ID: "a"}}
	st := objects.NewStorage()
	for _, tt := range []struct {
		name  string
		o     storage.Outcome
		since int64
		text  string
		place string
	}{
		{"first success", storage.Outcome{At: noon}, noon, "", ""},
		{"success again", storage.Outcome{At: noon + 2*minute}, noon, "", ""},
		{"failure", storage.Outcome{Reason: storage.HealthFailing, Status: 503, At: noon + 3*minute}, noon + 3*minute, "The provider answered with status 503.", ""},
		{"the same failure", storage.Outcome{Reason: storage.HealthFailing, Status: 500, At: noon + 4*minute, Text: "overloaded"}, noon + 3*minute, "overloaded", ""},
		{"no answer", storage.Outcome{Reason: storage.HealthUnreachable, At: noon + 5*minute}, noon + 5*minute, "The provider could not be reached.", ""},
		{"a refused place", storage.Outcome{Reason: storage.HealthBlocked, Status: 403, At: noon + 6*minute, Text: "not here", Place: "HKG"}, noon + 6*minute, "not here", "HKG"},
		{"a refusal without a text", storage.Outcome{Reason: storage.HealthKeyRefused, At: noon + 7*minute}, noon + 7*minute, "not here", ""},
		{"an older outcome", storage.Outcome{At: noon + 6*minute}, noon + 7*minute, "not here", ""},
		{"success after failures", storage.Outcome{At: noon + 8*minute}, noon + 8*minute, "", ""},
	} {
		tx := at(st, noon+9*minute)
		tx.SetHealth("a", tt.o)
		if _, row := tx.Health(a, nil); row.Since != tt.since || row.Place != tt.place || tx.LastError(a) != tt.text {
			t.Errorf("%s: %+v, error %q", tt.name, row, tx.LastError(a))
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	st = objects.NewStorage()
	st.Rows[storage.HealthPrefix+"a"] = storage.Encode(storage.Health{At: noon, SucceedAt: noon})
	tx := at(st, noon+minute)
	tx.SetHealth("a", storage.Outcome{At: noon + minute})
	if _, row := tx.Health(a, nil); row.Since != noon {
		t.Errorf("a row of an earlier version: %+v", row)
	}
	limit := []store.Cooldown{{ConnectionID: "a", Reason: store.RateLimited, Since: noon + 30*second, Until: noon + 2*minute}}
	if is, row := tx.Health(a, limit); is != "limited" || row.Since != noon+30*second {
		t.Errorf("a limit: %s, %+v", is, row)
	}
}
