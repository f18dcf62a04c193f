package images

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/pkg/endpoint"
	"weir/pkg/wire/upstream"
)

// keyed returns a handler whose idempotency keys are in a real object.
func keyed(t *testing.T, w *testgw.World) *Handler {
	t.Helper()
	objects := local.Machines(t, w.Now, fake.NewKV())
	if status, raw, _ := objects.Call(context.Background(), testgw.MachineID, "create", []byte(`{}`)); status != 201 {
		t.Fatalf("create: %d %s", status, raw)
	}
	h := handler(w)
	h.Once = &endpoint.Once{Object: objects}
	return h
}

const keyOf = "idempotency-key"

func ask(h *Handler, w *testgw.World, body string, header ...string) string {
	c := w.Post(body)
	for i := 0; i < len(header); i += 2 {
		c.Header.Add(header[i], header[i+1])
	}
	resp, err := h.Generations(context.Background(), c)
	got := testgw.Outcome(resp, err)
	if resp != nil {
		for _, f := range resp.After {
			f(context.Background())
		}
	}
	return got
}

func TestImageWithIdempotencyKeyIsCreatedOnce(t *testing.T) {
	w := testgw.New(t, "openai", "openai")
	h := keyed(t, w)
	w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(`{"created":1,"data":[{"b64_json":"AA=="}]}`) }
	first := ask(h, w, picture, keyOf, "k")
	if again := ask(h, w, picture, keyOf, "k"); again != first || len(w.Seen) != 1 {
		t.Errorf("first %s, again %s, %d calls", first, again, len(w.Seen))
	}
	if got := w.Seen[0].Header.Get(keyOf); got != "k" {
		t.Errorf("the upstream got the key %q", got)
	}
	if got := ask(h, w, strings.Replace(picture, "cat", "dog", 1), keyOf, "k"); got != "422 idempotency_mismatch" {
		t.Errorf("another body: %s", got)
	}
	if got := ask(h, w, picture, keyOf, "a b"); !strings.HasPrefix(got, "400") {
		t.Errorf("a key with a blank: %s", got)
	}
	w.Add(29 * 24 * time.Hour)
	if got := ask(h, w, picture, keyOf, "k"); got != first || len(w.Seen) != 1 {
		t.Errorf("after 29 days: %s, %d calls", got, len(w.Seen))
	}
	if got := ask(h, w, picture); got != first || len(w.Seen) != 2 {
		t.Errorf("without a key: %s, %d calls", got, len(w.Seen))
	}

	w = testgw.New(t, "openai")
	h = keyed(t, w)
	w.Answer = func(*fake.Seen) fake.Answer {
		if got := ask(h, w, picture, keyOf, "k"); got != "409 idempotency_in_progress" {
			t.Errorf("while it runs: %s", got)
		}
		return fake.JSON(`{"data":[{"b64_json":"AA=="}]}`)
	}
	ask(h, w, picture, keyOf, "k")
}

func TestImageIdempotencyAfterFailure(t *testing.T) {
	made := fake.JSON(`{"data":[{"b64_json":"AA=="}]}`)
	events := "data: {\"type\":\"image_generation.completed\",\"b64_json\":\"AA\"}\n\n"
	for _, tt := range []struct {
		name, provider string
		answers        []fake.Answer
		want, again    string
		calls          int
	}{
		{"refused_is_free_again", "openai", []fake.Answer{{Status: 400}, made}, "400", "200", 2},
		{"unknown_stays_taken", "openai", []fake.Answer{{Err: upstream.ErrNetwork}}, "502 upstream_outcome_unknown", `502 application/json {"error":{"message":`, 1},
		{"page_stays_taken", "openai", []fake.Answer{fake.OK("text/html", "<p>")}, "502 upstream_outcome_unknown", `502 application/json {"error":{"message":`, 1},
		{"large_is_done", "openai", []fake.Answer{fake.JSON(`{"data":[{"b64_json":"` + strings.Repeat("A", 70<<10) + `"}]}`)}, "200", "409 idempotency_done", 1},
		{"events_are_done", "openai", []fake.Answer{fake.OK("text/event-stream", events)}, "200", "409 idempotency_done", 1},
		{"cut_events_stay_taken", "openai", []fake.Answer{fake.OK("text/event-stream", events[:20])}, "200", `502 application/json {"error":{"message":"It is unknown`, 1},
		{"failed_job_is_free_again", "bfl", []fake.Answer{fake.JSON(`{"id":"1"}`), fake.JSON(`{"status":"Error"}`), fake.JSON(`{"id":"2"}`), fake.JSON(`{"status":"Ready","result":{"sample":"https://d.bfl.ai/1.png"}}`)}, "400 generation_failed", "200", 4},
		{"lost_job_stays_taken", "bfl", []fake.Answer{fake.JSON(`{"id":"1"}`), {Status: 404}}, "404", `404 application/json {"error":{"message":`, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.New(t, tt.provider)
			h := keyed(t, w)
			w.Answer = func(*fake.Seen) fake.Answer { return tt.answers[min(len(w.Seen), len(tt.answers))-1] }
			body := picture
			if tt.provider != "openai" {
				body = `{"model":"` + tt.provider + `/flux","prompt":"p"}`
			}
			first := ask(h, w, body, keyOf, "k")
			w.Add(time.Hour)
			again := ask(h, w, body, keyOf, "k")
			if !strings.HasPrefix(first, tt.want) || !strings.HasPrefix(again, tt.again) || len(w.Seen) != tt.calls {
				t.Errorf("first %.80s, again %.80s, %d calls", first, again, len(w.Seen))
			}
		})
	}
}

// A client that tries again makes a new boundary.
func TestFormWithIdempotencyKeyIsSentOnce(t *testing.T) {
	w := testgw.New(t, "openai")
	h := keyed(t, w)
	w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(`{"data":[{"b64_json":"AA=="}]}`) }
	body := form(field("model", "openai/gpt-image-1.5"), field("prompt", "p"), file("image", strings.Repeat("x", 100<<10)))
	edit := func(body, boundary string) string {
		c := w.Call("POST", flowing{strings.NewReader(body)}, int64(len(body)), "content-type", "multipart/form-data; boundary="+boundary, keyOf, "k")
		return testgw.Outcome(h.Edits(context.Background(), c))
	}
	first := edit(body, boundary)
	if again := edit(strings.ReplaceAll(body, boundary, "another"), "another"); again != first || !strings.HasPrefix(first, "200") || len(w.Seen) != 1 {
		t.Errorf("first %s, again %s, %d calls", first, again, len(w.Seen))
	}
	if got := edit(strings.Replace(body, "xx", "xy", 1), boundary); got != "422 idempotency_mismatch" {
		t.Errorf("another image: %s", got)
	}
}
