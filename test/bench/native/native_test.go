// Package native_test measures calls of the native server without a network: the
// handler of package host over the real objects and store, with an upstream and
// clients in memory.
package native_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/pkg/gateway"
	"weir/server/host"
	"weir/server/objects"
	"weir/server/store"
)

const (
	embedding = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"%s"}],"model":"bench","usage":{"prompt_tokens":5,"total_tokens":5}}`
	chat      = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`
	message   = `{"id":"msg_1","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":"Hello there."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}`
	response  = `{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","model":"bench","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello there.","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}}`
	chunk     = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
	lastChunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":200,"total_tokens":209}}` + "\n\ndata: [DONE]\n\n"
)

// calls are the requests that are measured, with the bytes that an answer has at
// least, and the most that one may allocate.
var calls = []struct {
	name, path, body string
	length           int
	allocations      float64
}{
	{"embeddings", "/v1/embeddings", `{"model":"up/bench","input":"The food was delicious and the waiter friendly.","encoding_format":"base64"}`, 8192, 86},
	{"chat", "/v1/chat/completions", `{"model":"up/bench","messages":[{"role":"user","content":"Say hello in a friendly way."}]}`, len(chat), 88},
	{"stream", "/v1/chat/completions", `{"model":"up/bench","stream":true,"messages":[{"role":"user","content":"Say hello in a friendly way."}]}`, 200 * len(chunk), 102},
}

// upstream answers calls from memory.
type upstream struct{ embedding, chat, stream []byte }

func newUpstream() *upstream {
	return &upstream{
		embedding: fmt.Appendf(nil, embedding, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 1536))),
		chat:      []byte(chat),
		stream:    []byte(strings.Repeat(chunk, 200) + lastChunk),
	}
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	res := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1}
	switch {
	case strings.HasPrefix(r.URL.Path, "/stalled/"):
		<-r.Context().Done()
		return nil, r.Context().Err()
	case strings.HasSuffix(r.URL.RequestURI(), "/embeddings"):
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(u.embedding)), int64(len(u.embedding))
	case bytes.Contains(body, []byte(`"stream":true`)):
		res.Header["Content-Type"] = []string{"text/event-stream"}
		res.Body = &pieces{all: u.stream, size: len(chunk)}
	default:
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(u.chat)), int64(len(u.chat))
	}
	return res, nil
}

// pieces is a body that comes in pieces of a size.
type pieces struct {
	all  []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b, p.all[:min(p.size, len(p.all))])
	p.all = p.all[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (p *pieces) Close() error { return nil }

// client receives an answer.
type client struct {
	header http.Header
	status int
	length int
}

func (c *client) Header() http.Header    { return c.header }
func (c *client) WriteHeader(status int) { c.status = status }
func (c *client) Flush()                 {}
func (c *client) Write(p []byte) (int, error) {
	c.length += len(p)
	return len(p), nil
}
func (c *client) SetReadDeadline(time.Time) error  { return nil }
func (c *client) SetWriteDeadline(time.Time) error { return nil }

// world is a host with a machine.
type world struct {
	testing.TB
	*host.Host
	key string
}

// newWorld returns a host whose settings change may change.
func newWorld(t testing.TB, change ...func(*gateway.Config)) *world {
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := func(int, string) {}
	runner := objects.New(st, objects.Log(log))
	const secret = "0123456789012345678901234567890123456789"
	c := host.Config{
		Gateway: gateway.Config{AdminToken: secret, KeySecret: secret, CredentialsKey: secret, RequireKey: true, AllowPrivate: true, Quiet: true},
		Objects: runner, Outside: runner.Outside, Transport: newUpstream(), Log: log,
		Origin:        func(r *http.Request) string { return "http://" + r.Host },
		ClientAddress: func(*http.Request) string { return "127.0.0.1" },
	}
	for _, f := range change {
		f(&c.Gateway)
	}
	program := host.NewApp(c)
	runner.Use(program)
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, Host: host.New(c, program)}
	t.Cleanup(func() {
		if err := w.Wait(context.Background()); err != nil {
			t.Error(err)
		}
		if err := runner.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	var machine struct{ MachineID, APIKey string }
	w.manage(secret, "/api/machines", `{}`, &machine)
	w.manage(secret, "/"+machine.MachineID+"/api/providers", `{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"upstream-key",`+
		`"providerSpecificData":{"baseUrl":"http://127.0.0.1:9/v1","prefix":"up"}}`, &struct{}{})
	w.manage(secret, "/"+machine.MachineID+"/api/providers", `{"provider":"anthropic-compatible-0123abcd","name":"claude","apiKey":"upstream-key",`+
		`"providerSpecificData":{"baseUrl":"http://127.0.0.1:9/v1","prefix":"claude"}}`, &struct{}{})
	w.key = machine.APIKey
	return w
}

// request returns a call as net/http passes it.
func (w *world) request(key, path, body string) *http.Request {
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Host, r.RequestURI, r.RemoteAddr = "weir.test", path, "127.0.0.1:1234"
	r.Header = http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}}
	return r
}

func (w *world) manage(token, path, body string, into any) {
	w.Helper()
	rec := &recorder{client: client{header: http.Header{}}}
	w.ServeHTTP(rec, w.request(token, path, body))
	if rec.status != 201 {
		w.Fatalf("%s: %d %s", path, rec.status, rec.body.Bytes())
	}
	if err := json.Unmarshal(rec.body.Bytes(), into); err != nil {
		w.Fatal(err)
	}
}

type recorder struct {
	client
	body bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// call makes a call and checks its answer.
func (w *world) call(path, body string, length int) {
	c := &client{header: http.Header{}}
	w.ServeHTTP(c, w.request(w.key, path, body))
	if c.status != 200 || c.length < length {
		w.Errorf("%s: status %d, %d bytes, want at least %d", path, c.status, c.length, length)
	}
}

// A count of allocations that grows is a cost of every call. Those of net/http are
// not among them; the request and the answer in memory are.
func TestAllocationsOfACall(t *testing.T) {
	w := newWorld(t)
	for _, c := range calls {
		got := testing.AllocsPerRun(200, func() { w.call(c.path, c.body, c.length) })
		t.Logf("%s: %.0f allocations", c.name, got)
		if got > c.allocations {
			t.Errorf("%s: %.0f allocations, at most %.0f", c.name, got, c.allocations)
		}
	}
}

// maxBinary has room for the driver of PostgreSQL (4 MiB), the library of the command line and
// YAML (1.5), and the files of the dashboard and the documentation.
const maxBinary = 29 << 20

func TestSizeOfTheBinary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "weir/server")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // as the release
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	size := info.Size()
	t.Logf("%.1f MiB", float64(size)/(1<<20))
	if size > maxBinary {
		t.Errorf("%d bytes, at most %d", size, maxBinary)
	}
}

// BenchmarkCalls measures calls side by side:
//
//	go test -bench Calls -cpu 1,2 ./test/bench/native
func BenchmarkCalls(b *testing.B) {
	w := newWorld(b)
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					w.call(c.path, c.body, c.length)
				}
			})
		})
	}
}
