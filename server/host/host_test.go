package host

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const embedding = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPwAAAEA="}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`

// upstreams answers embeddings and streams of chat.
func upstreams(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/v1/embeddings":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, embedding)
	case "/v1/chat/completions":
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 20 {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d \"}}]}\n\n", i)
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
	default:
		http.Error(w, string(body), 404)
	}
}

func TestCallIsServed(t *testing.T) {
	w := newWorld(t, upstreams)
	status, body := w.post("/v1/embeddings", `{"model":"up/m","input":"a","encoding_format":"base64"}`)
	if status != 200 || !strings.Contains(body, "AACAPwAAAEA=") {
		t.Fatalf("got %d %s", status, body)
	}
	status, body = w.post("/v1/nothing", `{}`)
	if status != 404 || !strings.Contains(body, "not_found") {
		t.Fatalf("got %d %s", status, body)
	}
}

// The edge writes these fields; natively a client could claim any.
func TestClientStatesNeitherItsAddressNorItsCountry(t *testing.T) {
	w := newWorld(t, upstreams)
	for _, path := range []string{"/v1/embeddings", "/v1/messages", "/v1/responses", "/v1beta/models/x:generateContent", "/v1/models"} {
		hr := httptest.NewRequest("POST", path, nil)
		hr.Header.Set("CF-Connecting-IP", "198.51.100.1")
		hr.Header.Set("CF-IPCountry", "DE")
		hr.Header.Set("User-Agent", "claude-cli/2.1")
		r, _ := w.host.request(hr)
		if got := r.Header.Get("cf-connecting-ip"); got != "127.0.0.1" {
			t.Errorf("%s: the address is %s", path, got)
		}
		if got := r.Header.Get("cf-ipcountry"); got != "" {
			t.Errorf("%s: the country is %s", path, got)
		}
		if got := r.Header.Get("user-agent"); got != "claude-cli/2.1" {
			t.Errorf("%s: the user agent is %q", path, got)
		}
	}
}

func TestStreamReachesTheClientPieceByPiece(t *testing.T) {
	first := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-first
		io.WriteString(w, "data: [DONE]\n\n")
	})
	res, err := http.DefaultClient.Do(w.request("POST", "/v1/chat/completions", strings.NewReader(`{"model":"up/m","stream":true,"messages":[{"role":"user","content":"a"}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	line, err := lines.ReadString('\n')
	if err != nil || !strings.Contains(line, "one") {
		t.Fatalf("got %q, %v", line, err)
	}
	close(first)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Fatalf("got %q, %v", rest, err)
	}
}

func TestClientThatLeavesCancelsTheUpstreamCall(t *testing.T) {
	started, canceled := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(started)
		<-r.Context().Done()
		close(canceled)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	_, err := http.DefaultClient.Do(w.request("POST", "/v1/embeddings", strings.NewReader(`{"model":"up/m","input":"a"}`)).WithContext(ctx))
	if err == nil {
		t.Fatal("the call was answered")
	}
	select {
	case <-canceled:
	case <-time.After(time.Minute):
		t.Fatal("the upstream call goes on")
	}
}

func TestCallsAreServedSideBySide(t *testing.T) {
	w := newWorld(t, upstreams)
	var calls sync.WaitGroup
	for n := range 200 {
		calls.Go(func() {
			if n%2 == 0 {
				if status, body := w.post("/v1/embeddings", `{"model":"up/m","input":"a","encoding_format":"base64"}`); status != 200 {
					t.Errorf("got %d %s", status, body)
				}
				return
			}
			status, body := w.post("/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"a"}]}`)
			if status != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Count(body, "data: ") != 21 {
				t.Errorf("got %d %s", status, body)
			}
		})
	}
	calls.Wait()
	if log := w.logged(); strings.Contains(log, "panic") {
		t.Fatal(log)
	}
}

func TestAnswerHasTemplateAndOwnFields(t *testing.T) {
	w := newWorld(t, upstreams)
	for range 4 {
		req := w.request("POST", "/v1/embeddings", strings.NewReader(`{"model":"up/m","input":"a","encoding_format":"base64"}`))
		req.Header.Set("Origin", "https://app.example")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		for _, name := range []string{
			"Content-Type", "Cache-Control", "X-Content-Type-Options", "Vary", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", // constant
			"X-Request-Id", "X-Weir-Model", "X-Weir-Connection-Id", "X-Weir-Attempts",
		} {
			if values := res.Header.Values(name); len(values) != 1 || values[0] == "" {
				t.Errorf("%s: %q", name, values)
			}
		}
	}
}

func TestDrainingHostRefusesCalls(t *testing.T) {
	w := newWorld(t, upstreams)
	w.host.Drain()
	res, err := http.DefaultClient.Do(w.request("POST", "/v1/embeddings", strings.NewReader(`{"model":"up/m","input":"a"}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Fatalf("got %d %v", res.StatusCode, res.Header)
	}
}

func TestLargeHeadIsRefused(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	for _, tt := range []struct {
		path, field, value string
		status             int
		origin             string
	}{
		{"/v1/models", "X-Model", strings.Repeat("a", maxHead-1000), 200, "*"},
		{"/v1/models", "X-Model", strings.Repeat("a", maxHead), 431, "*"},
		{"/v1/models", "X-Model", strings.Repeat("\xe9", maxHead/2), 431, "*"},
		{"/v1/models", "X-Unread", strings.Repeat("a", maxHead), 200, "*"},
		{"/v1/models?q=" + strings.Repeat("a", maxHead), "X-Model", "", 431, "*"},
		{"/api/session", "Cookie", strings.Repeat("a", maxHead), 431, ""},
	} {
		req := w.request("GET", tt.path, nil)
		req.Header.Set(tt.field, tt.value)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tt.status || res.Header.Get("Access-Control-Allow-Origin") != tt.origin {
			t.Errorf("%.20s with %d bytes of %s: status %d, origin %q, want %d, %q", tt.path, len(tt.value), tt.field, res.StatusCode, res.Header.Get("Access-Control-Allow-Origin"), tt.status, tt.origin)
		}
		if tt.status == 431 && !strings.Contains(string(body), `"message":"The request's headers are too large`) {
			t.Errorf("%.20s: %s", tt.path, body)
		}
	}
}

// See docs/reference/reliability.md, F47.
func TestNothingFollowsABodyInChunks(t *testing.T) {
	w := newWorld(t, upstreams)
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head := "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + w.key + "\r\n"
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(conn, head+"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+head+"Content-Length: 2\r\n\r\n{}")
	got, err := io.ReadAll(conn)
	if err != nil || strings.Count(string(got), "HTTP/1.1 ") != 1 {
		t.Errorf("got %q, %v", got, err)
	}
}

// net/http ignores Transfer-Encoding in HTTP/1.0, so the body would be read as a request.
func TestNothingFollowsARequestOfHTTP10(t *testing.T) {
	w := newWorld(t, upstreams)
	for _, length := range []string{"", "Content-Length: 4\r\n"} {
		got := w.raw("POST /v1/embeddings HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n" + length +
			"\r\n1f\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n0\r\n\r\n")
		if strings.Count(got, "HTTP/1.") != 1 {
			t.Errorf("%q: got %q", length, got)
		}
	}
}

func TestLargeAnswersOfManagementAreCompressed(t *testing.T) {
	w := newWorld(t, upstreams)
	for i := range 40 {
		w.manage("POST", "/"+w.machine+"/api/combos", fmt.Sprintf(`{"name":"combo-%d","models":["up/m"],"allowUnknown":true}`, i), nil)
	}
	get := func(path, accept string) (*http.Response, string) {
		req, _ := http.NewRequest("GET", w.server.URL+path, nil)
		req.Header.Set("Authorization", "Bearer "+adminToken)
		req.Header.Set("Accept-Encoding", accept)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res, string(body)
	}
	path := "/" + w.machine + "/api/combos"
	_, plain := get(path, "identity")
	res, zipped := get(path, "br, gzip;q=0.8")
	if res.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(strings.Join(res.Header["Vary"], ","), "Accept-Encoding") {
		t.Errorf("got the header %v", res.Header)
	}
	z, err := gzip.NewReader(strings.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(z); string(got) != plain || len(zipped) > len(plain)/3 {
		t.Errorf("%d bytes are %d bytes of another text", len(zipped), len(got))
	}
	for path, accept := range map[string]string{path: "gzip;q=0", "/" + w.machine + "/api/settings": "gzip"} {
		if res, body := get(path, accept); res.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(body, "{") {
			t.Errorf("%s: a small answer, or one that the client does not accept, is compressed", path)
		}
	}
}
