package videos

import (
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/upstream"
)

func newSnapshot(rec *store.Machine) *snapshot.Machine { return snapshot.New(rec) }

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t, "xai")
	w.Answer = func(*fake.Seen) fake.Answer { return made("job-1") }
	key := []string{"idempotency-key", "K-1"}

	first, _ := w.create(clip, key...)
	again, c := w.create(clip, key...)
	if first != again || len(w.Seen) != 1 || c.Trace.ConnectionID != "a" {
		t.Errorf("first %s, again %s by %q, %d calls", first, again, c.Trace.ConnectionID, len(w.Seen))
	}
	if got, _ := w.create(strings.Replace(clip, "cat", "dog", 1), key...); got != "422 idempotency_mismatch no-retry" {
		t.Errorf("another body: %s", got)
	}
	if got, _ := w.create(clip, append(key, "x-provider", "xai")...); got != "422 idempotency_mismatch no-retry" {
		t.Errorf("another provider: %s", got)
	}
	if got, _ := w.create(clip, "idempotency-key", "K-2"); got != first || len(w.Seen) != 2 {
		t.Errorf("another key: %s, %d calls", got, len(w.Seen))
	}
	other := *w.Machine.Machine
	other.ID = "otherotherother0"
	other.Connections = nil
	w.Machine = snapshot.New(&other)
	if got, _ := w.create(clip, key...); got != "400 no_credentials" {
		t.Errorf("the same key of another machine: %s", got)
	}
	w = newWorld(t, "xai")
	w.Answer = func(*fake.Seen) fake.Answer {
		// While the first call runs, the same comes again.
		if got, _ := w.create(clip, key...); got != "409 idempotency_in_progress no-retry" {
			t.Errorf("while running: %s", got)
		}
		return made("job-1")
	}
	w.create(clip, key...)
	if len(w.Seen) != 1 {
		t.Errorf("%d calls", len(w.Seen))
	}
	w.Answer = func(*fake.Seen) fake.Answer { return made("job-2") }
	w.Add(30*24*time.Hour + time.Second)
	if got, _ := w.create(clip, key...); got != `200 { "request_id" : "job-2" }` {
		t.Errorf("after 30 days: %s", got)
	}
	for _, bad := range []string{strings.Repeat("k", 256), "a b", "é", ""} {
		if got, _ := w.create(clip, "idempotency-key", bad); !strings.HasPrefix(got, "400") {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

func TestIdempotencyKeyAfterAFailure(t *testing.T) {
	tests := []struct {
		name        string
		first       fake.Answer
		want, again string
		calls       int
	}{
		{"refused_is_free_again", fake.Answer{Status: 400}, "400 ", `200 {`, 2},
		{"limited_is_free_again", fake.Answer{Status: 429}, "429 rate_limit_exceeded", `200 {`, 2},
		{"unknown_stays_taken", fake.Answer{Err: upstream.ErrNetwork}, "502 upstream_outcome_unknown no-retry", `502 {"error":{"message":`, 1},
		{"failed_stays_taken", fake.Answer{Status: 500}, "500 upstream_failed no-retry", `500 {"error":{"message":`, 1},
		{"large_answer_is_done", fake.Answer{Status: 200, Body: `{"request_id":"j","x":"` + strings.Repeat("x", 70<<10) + `"}`}, `200 {"request_id":"j"`, "409 idempotency_done no-retry", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "xai")
			w.Answer = func(*fake.Seen) fake.Answer {
				if len(w.Seen) == 1 {
					return tt.first
				}
				return made("j")
			}
			first, _ := w.create(clip, "idempotency-key", "k")
			w.Add(time.Hour)
			again, _ := w.create(clip, "idempotency-key", "k")
			if !strings.HasPrefix(first, tt.want) || !strings.HasPrefix(again, tt.again) || len(w.Seen) != tt.calls {
				t.Errorf("first %.80s, again %.80s, %d calls", first, again, len(w.Seen))
			}
		})
	}
	w := newWorld(t, "xai")
	w.Answer = func(*fake.Seen) fake.Answer { return made("j") }
	w.objects.Fail = func(op string) bool { return op == "idem.begin" }
	if got, _ := w.create(clip, "idempotency-key", "k"); got != "503 unavailable" || len(w.Seen) != 0 {
		t.Errorf("without the object: %s, %d calls", got, len(w.Seen))
	}
}
