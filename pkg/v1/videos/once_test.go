package videos

import (
	"strings"
	"testing"
	"time"

	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/upstream"
)

func newSnapshot(rec *store.Machine) *snapshot.Machine { return snapshot.New(rec) }

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t, "xai")
	w.answer = func(*seen) answer { return made("job-1") }
	key := []string{"idempotency-key", "K-1"}

	first, _ := w.create(clip, key...)
	again, c := w.create(clip, key...)
	if first != again || len(w.seen) != 1 || c.Trace.ConnectionID != "a" {
		t.Errorf("first %s, again %s by %q, %d calls", first, again, c.Trace.ConnectionID, len(w.seen))
	}
	if got, _ := w.create(strings.Replace(clip, "cat", "dog", 1), key...); got != "422 idempotency_mismatch no-retry" {
		t.Errorf("another body: %s", got)
	}
	if got, _ := w.create(clip, append(key, "x-provider", "xai")...); got != "422 idempotency_mismatch no-retry" {
		t.Errorf("another provider: %s", got)
	}
	if got, _ := w.create(clip, "idempotency-key", "K-2"); got != first || len(w.seen) != 2 {
		t.Errorf("another key: %s, %d calls", got, len(w.seen))
	}
	other := *w.machine.Machine
	other.ID = "otherotherother0"
	other.Connections = nil
	w.machine = snapshot.New(&other)
	if got, _ := w.create(clip, key...); got != "400 no_credentials" {
		t.Errorf("the same key of another machine: %s", got)
	}
	w = newWorld(t, "xai")
	w.answer = func(*seen) answer {
		// While the first call runs, the same comes again.
		if got, _ := w.create(clip, key...); got != "409 idempotency_in_progress no-retry" {
			t.Errorf("while running: %s", got)
		}
		return made("job-1")
	}
	w.create(clip, key...)
	if len(w.seen) != 1 {
		t.Errorf("%d calls", len(w.seen))
	}
	w.answer = func(*seen) answer { return made("job-2") }
	w.now = w.now.Add(30*24*time.Hour + time.Second)
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
		first       answer
		want, again string
		calls       int
	}{
		{"refused_is_free_again", answer{status: 400}, "400 ", `200 {`, 2},
		{"limited_is_free_again", answer{status: 429}, "429 rate_limit_exceeded", `200 {`, 2},
		{"unknown_stays_taken", answer{err: upstream.ErrNetwork}, "502 upstream_outcome_unknown no-retry", `502 {"error":{"message":`, 1},
		{"failed_stays_taken", answer{status: 500}, "500  no-retry", `500 {"error":{"message":`, 1},
		{"large_answer_is_done", answer{status: 200, body: `{"request_id":"j","x":"` + strings.Repeat("x", 70<<10) + `"}`}, `200 {"request_id":"j"`, "409 idempotency_done no-retry", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "xai")
			w.answer = func(*seen) answer {
				if len(w.seen) == 1 {
					return tt.first
				}
				return made("j")
			}
			first, _ := w.create(clip, "idempotency-key", "k")
			w.now = w.now.Add(time.Hour)
			again, _ := w.create(clip, "idempotency-key", "k")
			if !strings.HasPrefix(first, tt.want) || !strings.HasPrefix(again, tt.again) || len(w.seen) != tt.calls {
				t.Errorf("first %.80s, again %.80s, %d calls", first, again, len(w.seen))
			}
		})
	}
	w := newWorld(t, "xai")
	w.answer = func(*seen) answer { return made("j") }
	w.objects.fail = func(op string) bool { return op == "idem.begin" }
	if got, _ := w.create(clip, "idempotency-key", "k"); got != "503 unavailable" || len(w.seen) != 0 {
		t.Errorf("without the object: %s, %d calls", got, len(w.seen))
	}
}
