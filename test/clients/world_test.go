package clients

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// world is the gateway behind a server of its own, over a provider behind
// another.
type world struct {
	t       *testing.T
	app     *gateway.App
	one     sync.Mutex // the program serves one event at a time
	server  *httptest.Server
	up      *httptest.Server
	asked   []*http.Request                                            // by the gateway
	bodies  []string                                                   // of those
	answer  func(w http.ResponseWriter, r *http.Request, n int) string // n-th request; what it returns is a JSON body
	objects *objects.Local
	key     string
}

const admin = "admin-token-admin-token-admin-token-"

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	w.up = httptest.NewServer(http.HandlerFunc(w.provide))
	t.Cleanup(w.up.Close)
	kv := fake.NewKV()
	w.app = gateway.New(gateway.Config{
		AdminToken: admin, KeySecret: strings.Repeat("key-secret-", 4), CredentialsKey: strings.Repeat("credentials-", 4),
		RequireKey: true, AllowPrivate: true, Quiet: true,
	}, gateway.Ports{
		Do: w, Pause: w, Objects: w, KV: kv, CanonicalURL: canonical, Normalize: func(s string) string { return s },
		Now: time.Now, Rand: rand.Reader, Log: func(_ int, line string) { t.Log(line) },
	})
	w.objects = local.New(w.app.Machine())
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.server.Close)
	var made struct{ MachineID, APIKey string }
	w.manage("/api/machines", `{}`, &made)
	w.key = made.APIKey
	w.manage("/"+made.MachineID+"/api/providers", fmt.Sprintf(`{"provider":"openai-compatible-0123abcd","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"%s/v1","prefix":"up"}}`, w.up.URL), nil)
	w.manage("/"+made.MachineID+"/api/providers", fmt.Sprintf(`{"provider":"anthropic-compatible-0123abcd","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"%s/v1","prefix":"an"}}`, w.up.URL), nil)
	return w
}

// client is OpenAI's, with one retry and no more.
func (w *world) client() openai.Client {
	return openai.NewClient(option.WithAPIKey(w.key), option.WithBaseURL(w.server.URL+"/v1"), option.WithMaxRetries(1))
}

func (w *world) Call(ctx context.Context, id, op string, body []byte) (int, []byte, error) {
	return w.objects.Call(ctx, id, op, body)
}

func (w *world) Pause(context.Context, time.Duration) error { return nil }

func canonical(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", false
	}
	return u.String(), true
}

func (w *world) manage(path, body string, v any) {
	w.t.Helper()
	req, _ := http.NewRequest("POST", w.server.URL+path, strings.NewReader(body))
	req.Header.Set("authorization", "Bearer "+admin)
	req.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 201 {
		w.t.Fatalf("%s: %d %s", path, resp.StatusCode, b)
	}
	if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			w.t.Fatal(err)
		}
	}
}

// serve stands for the bridge: a request of net/http becomes one of pkg/wire/httpmsg,
// and the answer flows back piece by piece.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.one.Lock()
	defer w.one.Unlock()
	req := &httpmsg.Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Origin: w.server.URL, Start: time.Now(), Length: int64(len(body))}
	for name, values := range r.Header {
		for _, v := range values {
			req.Header.Add(strings.ToLower(name), v)
		}
	}
	if len(body) > 0 {
		req.Body = stream.FromBytes(body)
	}
	resp := w.app.Serve(r.Context(), req)
	for _, f := range resp.Header {
		rw.Header().Add(f.Name, f.Value)
	}
	rw.WriteHeader(resp.Status)
	if resp.Body != nil {
		defer resp.Body.Close()
		piece := make([]byte, 1<<10)
		for {
			n, err := resp.Body.Read(piece)
			rw.Write(piece[:n])
			rw.(http.Flusher).Flush()
			if err != nil {
				break
			}
		}
	}
	for _, after := range resp.After {
		after(context.Background())
	}
}

// provide is the provider: it keeps what it is asked and answers as scripted.
func (w *world) provide(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.asked, w.bodies = append(w.asked, r), append(w.bodies, string(body))
	rw.Header().Set("content-type", "application/json")
	io.WriteString(rw, w.answer(rw, r, len(w.asked)))
}

type settled struct {
	resp *upstream.Response
	err  error
}

func (s settled) Wait() (*upstream.Response, error) { return s.resp, s.err }

// Start makes a call of the gateway's, as the platform does.
func (w *world) Start(_ context.Context, r *upstream.Request) upstream.Pending {
	var body io.Reader
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return settled{err: err}
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(r.Method, r.URL, body)
	if err != nil {
		return settled{err: err}
	}
	for _, f := range r.Header {
		req.Header.Add(f.Name, f.Value)
	}
	got, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return settled{err: fmt.Errorf("%w: %v", upstream.ErrNetwork, err)}
	}
	resp := &upstream.Response{Status: got.StatusCode, Body: got.Body}
	for name, values := range got.Header {
		for _, v := range values {
			resp.Header.Add(strings.ToLower(name), v)
		}
	}
	if r.MaxBody > 0 {
		all, err := stream.ReadAll(got.Body, r.MaxBody)
		if err != nil {
			return settled{err: err}
		}
		resp.Body = stream.FromBytes(all)
	}
	return settled{resp: resp}
}
