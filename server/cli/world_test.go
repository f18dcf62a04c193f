package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/server/program"
)

// acme is a provider of one's own with a sign-in.
const acme = "openai-compatible-00001111"

const token = "operator-token-of-the-tests-0123456789abcdef"

// world is a native server with a recording proxy in front of it, and a home folder.
type world struct {
	*testing.T
	home, data, url string // of the proxy
	upstream, idp   *httptest.Server

	mu    sync.Mutex
	calls []string // METHOD path, as they came
}

// newWorld starts a server with one machine, main. Upstream calls go through transport, if it is given.
func newWorld(t *testing.T, transport ...http.RoundTripper) *world {
	t.Helper()
	home, err := os.MkdirTemp("", "weir") // a short path, whatever the name of the test: it has a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	w := &world{T: t, home: home}
	w.data = filepath.Join(w.home, "data")
	w.upstream = httptest.NewServer(http.HandlerFunc(upstream))
	t.Cleanup(w.upstream.Close)
	if code, _, text := w.run("", "init", "--data", w.data); code != 0 {
		t.Fatal(text)
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	started := make(chan program.Parts, 1)
	var log buffer
	o := program.Options{Version: "v0.0.0-test", Signals: signals, Started: func(p program.Parts) { started <- p }}
	for _, other := range transport {
		o.Transport = func(http.RoundTripper) http.RoundTripper { return other }
	}
	go func() {
		defer close(done)
		o.Main([]string{"serve", "--listen", "127.0.0.1:0", "--data", w.data}, w.env(), strings.NewReader(""), io.Discard, &log)
	}()
	t.Cleanup(func() {
		signals <- os.Interrupt
		<-done
		if t.Failed() {
			t.Logf("log of the server: %s", log.String())
		}
	})
	select {
	case p := <-started:
		to, _ := url.Parse("http://" + p.Address.String())
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			w.mu.Lock()
			w.calls = append(w.calls, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
			proxy.ServeHTTP(out, r)
		}))
		t.Cleanup(s.Close)
		w.url = s.URL
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // until the control socket is open
			if _, err := os.Stat(filepath.Join(w.data, "control.sock")); err == nil {
				return w
			}
			if time.Now().After(deadline) {
				t.Fatalf("no control socket in %s: %s", w.data, log.String())
			}
		}
	case <-done:
		t.Fatalf("the server did not start: %s", log.String())
	}
	return w
}

// buffer is an output that several goroutines use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { b.mu.Lock(); defer b.mu.Unlock(); return b.b.Write(p) }
func (b *buffer) String() string              { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

// env is the environment of the commands.
func (w *world) env(pairs ...string) func(string) (string, bool) {
	all := map[string]string{"HOME": w.home, "AppData": w.home, "LocalAppData": w.home, "DATA_DIR": w.data, "PRICES_URL": "off",
		"ADMIN_TOKEN": token, "ALLOW_PRIVATE_UPSTREAMS": "true", "API_KEY": "sk-upstream-0123456789", "PASSPHRASE": "correct horse battery"}
	if w.upstream != nil {
		all["HOOK"], all["LOST"] = w.upstream.URL+"/hook", "http://127.0.0.1:1/hook"
		all["OAUTH_PROVIDERS"] = strings.ReplaceAll(`[{"id":"`+acme+`","name":"Acme","tokenUrl":"URL/token","deviceUrl":"URL/device","clientId":"weir","baseUrl":"URL/v1","prefix":"acme"}]`, "URL", w.upstream.URL)
	}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := all[name]; return v, ok }
}

// run runs a command on the data directory.
func (w *world) run(stdin string, args ...string) (code int, stdout, stderr string) {
	w.Helper()
	return w.runIn(w.env(), stdin, args...)
}

// remote runs a command on the URL of the proxy, as the operator.
func (w *world) remote(stdin string, args ...string) (code int, stdout, stderr string) {
	w.Helper()
	return w.runIn(w.env("WEIR_GATEWAY", w.url, "WEIR_TOKEN", token), stdin, args...)
}

func (w *world) runIn(env func(string) (string, bool), stdin string, args ...string) (code int, stdout, stderr string) {
	w.Helper()
	var out, failed bytes.Buffer
	code = program.Options{Version: "v0.0.0-test"}.Main(args, env, strings.NewReader(stdin), &out, &failed)
	return code, out.String(), failed.String()
}

// ok runs a command that must succeed and returns its output.
func (w *world) ok(args ...string) string {
	w.Helper()
	code, out, failed := w.remote("", args...)
	if code != 0 {
		w.Fatalf("weir %s: exit %d, %s%s", strings.Join(args, " "), code, out, failed)
	}
	return out
}

// seen returns the calls since the last time.
func (w *world) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// polls counts the polls of sign-ins. The first one is too early.
var polls atomic.Int64

// upstream is a provider of OpenAI's API. A model whose name contains bad fails; one that is asked
// to reason shows a thought, and one that gets tools calls the first.
func upstream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == "GET" {
		io.WriteString(w, `{"object":"list","data":[{"id":"echo","object":"model"}]}`)
		return
	}
	switch r.URL.Path {
	case "/hook":
		return
	case "/strict/v1/chat/completions":
		w.WriteHeader(401)
		io.WriteString(w, `{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}`)
		return
	case "/device":
		io.WriteString(w, `{"device_code":"device","user_code":"ABCD-EFGH","verification_uri":"https://id.example.com/device","interval":1,"expires_in":600}`)
		return
	case "/token":
		if polls.Add(1) == 1 {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":"authorization_pending"}`)
			return
		}
		io.WriteString(w, `{"access_token":"access-0123456789-0123456789","refresh_token":"refresh-0123456789-0123456789","token_type":"Bearer","expires_in":3600}`)
		return
	}
	var in struct {
		Model    string
		Stream   bool
		Effort   string `json:"reasoning_effort"`
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	json.NewDecoder(r.Body).Decode(&in)
	if strings.Contains(in.Model, "bad") {
		w.WriteHeader(500)
		io.WriteString(w, `{"error":{"message":"broken","type":"server_error"}}`)
		return
	}
	last, end := in.Messages[len(in.Messages)-1], "stop"
	raw, _ := json.Marshal("You said: " + last.Content)
	message := `{"role":"assistant","content":` + string(raw)
	if in.Effort != "" {
		message += `,"reasoning_content":"Let me think."`
	}
	if len(in.Tools) > 0 && last.Role != "tool" {
		end = "tool_calls"
		message += `,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"` + in.Tools[0].Function.Name + `","arguments":"{}"}}]`
	}
	message += "}"
	if !in.Stream {
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"echo","choices":[{"index":0,"message":%s,"finish_reason":"%s"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, message, end)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"echo\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", message)
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"echo\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"%s\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\ndata: [DONE]\n\n", end)
}
