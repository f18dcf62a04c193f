//go:build unix

package program

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// With few open files the server refuses the calls for which it has none, whatever the
// provider is that they are for, and serves the others.
func TestCallsBeyondTheOpenFilesAreRefused(t *testing.T) {
	const files, calls = 256, 400
	release := make(chan struct{})
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"first"},"finish_reason":null}]}`+"\n\n")
		w.(http.Flusher).Flush()
		<-release
		fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer u.Close()
	home := t.TempDir()
	data := filepath.Join(home, "data")
	p, base := serving(t, home, []string{fmt.Sprintf("%s=%d", withFiles, files), "ALLOW_PRIVATE_UPSTREAMS=true", "ADMIN_TOKEN=" + long("a")})
	p.until(&p.stderr, "at most 256 files may be open")
	out, err := askInit(t.Context(), data, "own")
	if err != nil {
		t.Fatal(err)
	}
	// Its name needs a file to be resolved.
	url := strings.Replace(u.URL, "127.0.0.1", "localhost", 1)
	for _, name := range []string{"one", "two"} {
		if status, body, _ := answer(t, http.DefaultClient, "POST", base+"/"+strings.Split(out.APIKey, "-")[1]+"/api/providers",
			`{"provider":"openai-compatible-0123abcd","name":"`+name+`","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"`+url+`/v1","prefix":"up"}}`,
			"Authorization", "Bearer "+long("a"), "Content-Type", "application/json"); status/100 != 2 {
			t.Fatalf("connect: %d %s", status, body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: calls}}
	defer client.CloseIdleConnections()
	var begun, ended sync.WaitGroup
	var mu sync.Mutex
	served := 0
	call := func(begun func()) {
		begun = sync.OnceFunc(begun)
		defer begun()
		req, _ := http.NewRequestWithContext(ctx, "POST", base+"/v1/chat/completions", strings.NewReader(`{"model":"up/m","stream":true,"messages":[{"role":"user","content":"hello"}]}`))
		req.Header.Set("Authorization", "Bearer "+out.APIKey)
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		if res.StatusCode == 200 {
			begun()
		}
		body, err := io.ReadAll(res.Body)
		switch {
		case err != nil:
			t.Error(err)
		case res.StatusCode == 200 && strings.HasSuffix(string(body), "data: [DONE]\n\n"):
			mu.Lock()
			served++
			mu.Unlock()
		case res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "overloaded"):
			t.Errorf("%d, Retry-After %q: %s", res.StatusCode, res.Header.Get("Retry-After"), body)
		}
	}
	for range calls {
		begun.Add(1)
		ended.Go(func() { call(begun.Done) })
	}
	begun.Wait()
	if status, _, _ := answer(t, http.DefaultClient, "GET", base+"/health", ""); status != 200 {
		t.Errorf("/health of a server at its limit: %d", status)
	}
	close(release)
	ended.Wait()
	if want := files / 4; served != want {
		t.Errorf("%d of %d calls were served, want %d", served, calls, want)
	}
	// None of it was an account's failure.
	if call(func() {}); served != files/4+1 {
		t.Error("a call afterwards is not served")
	}
	p.stop()
	if log := p.stderr.String(); strings.Contains(log, "too many open files") || strings.Contains(log, "upstream_unreachable") {
		t.Errorf("the log names open files:\n%s", log)
	}
}

// Clients that keep their connections do not keep others out.
func TestIdleConnectionsMakeWay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := newBoundedListener(l, 8)
	s := &http.Server{Handler: b.sparing(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(b) }()
	for i := range 20 {
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		if status, _, _ := answer(t, c, "GET", "http://"+l.Addr().String(), ""); status != 200 {
			t.Errorf("client %d: %d", i, status)
		}
	}
	s.Close()
	if err := <-ended; err != http.ErrServerClosed {
		t.Error(err)
	}
}
