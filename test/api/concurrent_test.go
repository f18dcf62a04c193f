package api

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
)

// One instance of the program serves calls of every kind at the same time, as the
// goroutines of a host: run it with -race.
func TestConcurrentCallsOfOneInstance(t *testing.T) {
	const (
		workers, rounds = 6, 12
		chat            = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
		chunk           = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}` + "\n\n"
	)
	w := newWorld(t)
	var sent atomic.Int64
	w.Answer = func(s *fake.Seen) fake.Answer {
		n := sent.Add(1)
		switch {
		case n%13 == 0:
			return fake.Reply(429, `{"error":{"message":"slow down"}}`)
		case n%17 == 0:
			return fake.Reply(500, `{"error":{"message":"broken"}}`)
		case strings.HasSuffix(s.URL, "/embeddings"):
			return fake.JSON(embedding)
		case strings.HasSuffix(s.URL, "/models"):
			return fake.JSON(`{"data":[{"id":"m"},{"id":"n"}]}`)
		case strings.HasSuffix(s.URL, "/responses"):
			return fake.Reply(404, `{"error":{"message":"not found"}}`)
		case strings.Contains(s.Body, `"stream":true`):
			a := fake.OK("text/event-stream", "")
			a.Pieces = []string{chunk, "data: [DONE]\n\n"}
			return a
		}
		return fake.JSON(chat)
	}
	keys := make([]string, 2)
	ids := make([]string, 2)
	for i := range keys {
		ids[i], keys[i] = w.tenant(3)
		w.get(201, w.do("POST", "/"+ids[i]+"/api/combos", adminToken, `{"name":"both","models":["up/m","up/n"],"strategy":"round-robin"}`), nil)
		w.get(201, w.do("POST", "/"+ids[i]+"/api/budgets", adminToken, `{"name":"all","unit":"requests","limit":1000000,"window":"day"}`), nil)
		w.get(200, w.do("PATCH", "/"+ids[i]+"/api/settings", adminToken, `{"strategy":"`+[]string{"least-busy", "fastest"}[i]+`","capturePercent":100}`), nil)
	}
	posts := []struct{ path, body string }{
		{"/v1/embeddings", `{"model":"up/m","input":"a"}`},
		{"/v1/chat/completions", `{"model":"both","messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/messages", `{"model":"up/m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/messages", `{"model":"both","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/responses", `{"model":"up/m","input":"hi"}`},
		{"/v1beta/models/up/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
		{"/v1/embeddings", `{"model":"up/m"}`},
	}
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			key, id := keys[i%2], ids[i%2]
			for n := range rounds {
				for _, p := range posts {
					if r := w.do("POST", p.path, key, p.body); r.status != 200 && r.status != 400 && r.status != 429 && r.status != 500 && r.status != 502 && r.status != 503 {
						t.Errorf("%s: %d %s", p.path, r.status, r.body)
					}
				}
				for _, path := range []string{"/v1/models", "/v1/models/up/m", "/v1/usage", "/health", "/none"} {
					if r := w.do("GET", path, key, ""); r.status >= 500 {
						t.Errorf("%s: %d %s", path, r.status, r.body)
					}
				}
				if r := w.do("PATCH", "/"+id+"/api/settings", adminToken, fmt.Sprintf(`{"idleSeconds":%d}`, 60+n)); r.status != 200 {
					t.Errorf("settings: %d %s", r.status, r.body)
				}
				w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"/v1/embeddings","body":{"model":"up/m","input":"a"}}`)
				w.Add(time.Duration(n%3) * 3 * time.Second)
			}
		})
	}
	all.Wait()
	for range 5 { // what is left to report goes with the next calls
		w.Add(2 * time.Minute)
		for _, key := range keys {
			w.do("POST", posts[0].path, key, posts[0].body)
		}
	}
	want := int64(workers/2*rounds*len(posts) + 5)
	for i, id := range ids {
		r := w.do("GET", "/"+id+"/api/usage", adminToken, "")
		if got := gjson.Get(r.body, "total.requests").Int(); got != want {
			t.Errorf("machine %d has %d requests, want %d: %s", i, got, want, gjson.Get(r.body, "total"))
		}
	}
}
