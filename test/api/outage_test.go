package api

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// These tests serve a machine's calls while parts of the platform are down. See
// docs/architecture.md, docs/reference/reliability.md, F48–F51.

func TestWithoutObjectsTheLastSnapshotServesForSixtySeconds(t *testing.T) {
	w := newWorld(t)
	_, key := w.tenant(1)
	w.get(200, w.embed(key), nil)
	w.Objects.Down = true
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{4 * time.Second, 200}, {26 * time.Second, 200}, {29 * time.Second, 200}, {2 * time.Second, 503}} {
		w.Add(step.after)
		if got := w.embed(key); got.status != step.want {
			t.Errorf("%v later: %d, want %d: %s", step.after, got.status, step.want, got.body)
		}
	}
	if got := w.do("GET", "/api/machines", adminToken, ""); got.status != 503 {
		t.Errorf("management without objects: %d, want 503", got.status)
	}
	w.Objects.Down = false
	w.get(200, w.embed(key), nil)
}

func TestObjectServesNewIsolateWithoutKV(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	w.KV.Down(true)
	w.Restart()
	w.get(200, w.embed(key), nil)
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"name":"made without KV"}`), nil)
	w.Objects.Alarms(context.Background()) // cannot publish
	w.KV.Down(false)
	w.Add(time.Hour)
	w.Objects.Alarms(context.Background())
	if len(w.KV.Dump()) == 0 {
		t.Error("the replica was not published when KV came back")
	}
}

// Both may be down together. The calls of that time are counted afterwards.
func TestOutageOfKVAndObjects(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	w.get(200, w.embed(key), nil)
	w.Objects.Alarms(context.Background())
	w.KV.Down(true)
	w.Objects.Down = true
	for range 5 {
		w.Add(5 * time.Second)
		w.get(200, w.embed(key), nil)
	}
	warm := w.App
	w.Restart()
	if got := w.embed(key); got.status != 503 || got.header.Get("retry-after") == "" {
		t.Errorf("a new isolate: %d, Retry-After %q: %s", got.status, got.header.Get("retry-after"), got.body)
	}
	if got := w.do("POST", "/"+id+"/api/keys", adminToken, `{}`); got.status != 503 {
		t.Errorf("a change: %d: %s", got.status, got.body)
	}
	w.Objects.Down = false
	w.get(200, w.embed(key), nil) // KV is still down
	w.App = warm
	w.Add(5 * time.Second)
	w.get(200, w.embed(key), nil)
	w.KV.Down(false)
	w.Add(time.Minute)
	w.get(200, w.embed(key), nil)
	var used struct {
		Total struct{ Requests, InputTokens int }
	}
	w.get(200, w.do("GET", "/"+id+"/api/usage", adminToken, ""), &used)
	if used.Total.Requests != 9 || used.Total.InputTokens != 27 {
		t.Errorf("%+v, want 9 requests: those of the outage and around it", used.Total)
	}
}

// A KV that shows the machine as it was before a key was revoked must not
// bring the key back, however long it does so.
func TestRevokedKeyIsRefusedDespiteStaleReplica(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(1)
	var made struct{ ID, APIKey string }
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"name":"short"}`), &made)
	w.Objects.Alarms(context.Background())
	w.get(200, w.embed(made.APIKey), nil)
	w.get(204, w.do("DELETE", "/"+id+"/api/keys/"+made.ID, adminToken, ""), nil)
	for i := range 3 { // KV still has the old replica: no alarm has run
		w.Restart()
		if got := w.embed(made.APIKey); got.status != 401 {
			t.Errorf("isolate %d: %d, want 401", i, got.status)
		}
		w.Add(time.Hour)
	}
	w.Objects.Down = true
	w.Restart()
	if got := w.embed(made.APIKey); got.status != 503 {
		t.Errorf("with the object down too: %d, want 503", got.status)
	}
}

func TestKeyCreatedElsewhereWorksAtOnce(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	w.get(200, w.embed(key), nil)
	here := w.App
	w.Restart() // another isolate makes the key
	var made struct{ APIKey string }
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{}`), &made)
	w.App = here
	w.get(200, w.embed(made.APIKey), nil)
}

func TestCooldownsReachOtherIsolates(t *testing.T) {
	w := newWorld(t)
	_, key := w.tenant(2)
	w.Answer = func(r *fake.Seen) fake.Answer {
		if r.Header.Get("authorization") == "Bearer upstream-key-0" {
			return fake.Reply(429, `{"error":{"message":"slow down"}}`, httpmsg.Field{Name: "retry-after", Value: "20"})
		}
		return fake.Reply(200, embedding)
	}
	w.get(200, w.embed(key), nil)
	if len(w.Seen) != 2 {
		t.Fatalf("%d upstream calls, want 2", len(w.Seen))
	}
	w.Restart()
	w.get(200, w.embed(key), nil)
	if len(w.Seen) != 3 {
		t.Errorf("a new isolate tried the account that is cooling: %d calls, want 3", len(w.Seen))
	}
	w.Add(21 * time.Second)
	w.get(200, w.embed(key), nil)
	if len(w.Seen) != 5 {
		t.Errorf("after the wait the account is tried again: %d calls, want 5", len(w.Seen))
	}
}

// Isolates hear from each other how much is left of an account's limits.
func TestGaugesReachOtherIsolates(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(2)
	var list struct{ Data []struct{ ID string } }
	w.get(200, w.do("GET", "/"+id+"/api/providers", adminToken, ""), &list)
	for _, c := range list.Data {
		w.get(200, w.do("PUT", "/"+id+"/api/providers/"+c.ID, adminToken, `{"priority":1}`), nil)
	}
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"strategy":"priority"}`), nil)
	ends := strconv.FormatInt(w.Now().Add(3*time.Hour).Unix(), 10)
	w.Answer = func(r *fake.Seen) fake.Answer {
		return fake.Reply(200, embedding, httpmsg.Field{Name: "anthropic-ratelimit-unified-5h-utilization", Value: "0.99"}, httpmsg.Field{Name: "anthropic-ratelimit-unified-5h-reset", Value: ends})
	}
	first := func() string {
		w.Seen = nil
		w.get(200, w.embed(key), nil)
		return w.Seen[0].Header.Get("authorization")
	}
	if got := first(); got != "Bearer upstream-key-0" {
		t.Fatalf("the first call went to %s", got)
	}
	w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(embedding) }
	w.Restart()
	if got := first(); got != "Bearer upstream-key-1" {
		t.Errorf("in another isolate the call went to %s, want the account with enough left", got)
	}
	w.Add(3*time.Hour + time.Minute)
	if got := first(); got != "Bearer upstream-key-0" {
		t.Errorf("after the reset the call went to %s", got)
	}
}

// BenchmarkEmbeddings measures what a call costs before its report, of which
// there is one a second.
func BenchmarkEmbeddings(b *testing.B) {
	w := newWorld(b)
	_, key := w.tenant(1)
	w.Canceled = true
	long := make([]byte, 0, 8192)
	for i := range 8192 {
		long = append(long, "ABCDEFGH"[i%8])
	}
	answer := fmt.Sprintf(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":"%s"}],"model":"up-model","usage":{"prompt_tokens":3,"total_tokens":3}}`, long)
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Reply(200, answer) }
	b.ReportAllocs()
	for b.Loop() {
		w.Seen = w.Seen[:0]
		if r := w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"The food was delicious and the waiter friendly.","encoding_format":"base64"}`); r.status != 200 {
			b.Fatal(r.body)
		}
	}
}
