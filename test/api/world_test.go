// Package api tests the whole gateway natively: every part but the platform,
// against an upstream that a test scripts.
package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// The secrets of the gateway under test.
var (
	adminToken = strings.Repeat("admin-token-", 4)
	keySecret  = strings.Repeat("key-secret-", 4)
	sealSecret = strings.Repeat("credentials-", 4)
)

// world is a gateway with its machines' objects, its store and its upstream.
type world struct {
	t       testing.TB
	app     *gateway.App
	kv      *fake.KV
	objects *objects.Local
	now     time.Time
	seen    []*upstream.Request
	answer  func(r *upstream.Request) (*upstream.Response, error)
	log     []string
	down    bool // of the objects
	still   bool // a pause does not come to its end
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, kv: fake.NewKV(), now: time.UnixMilli(1_750_000_000_000)}
	w.answer = func(*upstream.Request) (*upstream.Response, error) { return whole(200, embedding), nil }
	w.restart()
	return w
}

// restart makes a new isolate over the same storage.
func (w *world) restart() {
	ports := gateway.Ports{
		Do: w, Pause: w, Objects: w, KV: w.kv, CanonicalURL: canonical, Normalize: func(s string) string { return s }, Now: func() time.Time { return w.now }, Rand: rand.Reader,
		Log: func(_ int, line string) { w.log = append(w.log, line) },
	}
	cfg := gateway.Config{AdminToken: adminToken, KeySecret: keySecret, CredentialsKey: sealSecret, RequireKey: true, AllowPrivate: true, Quiet: true}
	w.app = gateway.New(cfg, ports)
	if w.objects == nil {
		w.objects = local.New(w.app.Machine())
	}
}

// canonical stands for the platform's URL parser; the tests use plain addresses.
func canonical(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", false
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), true
}

// Call asks the objects, unless they are down.
func (w *world) Call(ctx context.Context, id, op string, body []byte) (int, []byte, error) {
	if w.down {
		return 0, nil, fmt.Errorf("the object is down")
	}
	return w.objects.Call(ctx, id, op, body)
}

// Pause passes the time.
func (w *world) Pause(_ context.Context, d time.Duration) error {
	if w.still {
		return context.Canceled
	}
	w.now = w.now.Add(d)
	return nil
}

type settled struct {
	resp *upstream.Response
	err  error
}

func (s settled) Wait() (*upstream.Response, error) { return s.resp, s.err }

// Start answers from the script at once.
func (w *world) Start(_ context.Context, r *upstream.Request) upstream.Pending {
	w.seen = append(w.seen, r)
	resp, err := w.answer(r)
	return settled{resp, err}
}

const embedding = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1,2.25]}],"model":"up-model","usage":{"prompt_tokens":3,"total_tokens":3}}`

func whole(status int, body string, header ...httpmsg.Field) *upstream.Response {
	return &upstream.Response{Status: status, Header: append(httpmsg.Header{{Name: "content-type", Value: "application/json"}}, header...), Body: stream.FromString(body)}
}

// reply is an answer read to its end, its work after the answer done.
type reply struct {
	status int
	header httpmsg.Header
	body   string
}

func (w *world) do(method, path, key, body string, header ...httpmsg.Field) reply {
	w.t.Helper()
	path, query, _ := strings.Cut(path, "?")
	r := &httpmsg.Request{Method: method, Path: path, Query: query, Origin: "http://gateway.example", Start: w.now, Length: int64(len(body)), Header: header}
	if key != "" {
		r.Header = append(r.Header, httpmsg.Field{Name: "authorization", Value: "Bearer " + key})
	}
	if body != "" {
		r.Body = stream.FromString(body)
		r.Header = append(r.Header, httpmsg.Field{Name: "content-type", Value: "application/json"})
	}
	resp := w.app.Serve(context.Background(), r)
	out := reply{status: resp.Status, header: resp.Header}
	if resp.Body != nil {
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			w.t.Fatalf("%s %s: %v", method, path, err)
		}
		out.body = string(b)
	}
	for _, after := range resp.After {
		after(context.Background())
	}
	return out
}

// get decodes a JSON answer, which must have the status.
func (w *world) get(want int, r reply, v any) {
	w.t.Helper()
	if r.status != want {
		w.t.Fatalf("status %d, want %d: %s", r.status, want, r.body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(r.body), v); err != nil {
			w.t.Fatalf("%v in %s", err, r.body)
		}
	}
}

// tenant makes a machine with accounts of one provider under the prefix "up".
func (w *world) tenant(accounts int) (machineID, key string) {
	w.t.Helper()
	var made struct{ MachineID, APIKey string }
	w.get(201, w.do("POST", "/api/machines", adminToken, `{}`), &made)
	for i := range accounts {
		body := fmt.Sprintf(`{"provider":"openai-compatible-0123abcd","name":"account %d","apiKey":"upstream-key-%d","priority":%d,"providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`, i, i, i)
		w.get(201, w.do("POST", "/"+made.MachineID+"/api/providers", adminToken, body), nil)
	}
	return made.MachineID, made.APIKey
}

func (w *world) embed(key string) reply {
	w.t.Helper()
	return w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a"}`)
}
