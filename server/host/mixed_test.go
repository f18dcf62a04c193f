package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// mixedUpstream answers every kind of call, and counts what it was asked.
type mixedUpstream struct{ calls atomic.Int64 }

func (u *mixedUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	u.calls.Add(1)
	switch {
	case bytes.Contains(body, []byte("refuse")):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"message":"as asked","type":"invalid_request_error"}}`)
	case bytes.Contains(body, []byte("break")):
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case strings.HasSuffix(r.URL.Path, "/transcriptions"):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"text":"spoken"}`)
	case strings.HasSuffix(r.URL.Path, "/chat/completions") && !bytes.Contains(body, []byte(`"stream":true`)):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"text"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		upstreams(w, r)
	}
}

// Calls of all kinds, thousands at once, share nothing by accident: the race detector
// says so, each has its own answer, and all are counted.
func TestMixedCallsSideBySide(t *testing.T) {
	calls := 2000
	if os.Getenv("SOAK") != "" {
		calls = 10_000
	}
	u := &mixedUpstream{}
	w := newWorld(t, u.ServeHTTP)
	kinds := []struct {
		name, path, body string
		status           int
		want             string // what the answer ends with
	}{
		{"embeddings", "/v1/embeddings", `{"model":"up/m","input":"a","encoding_format":"base64"}`, 200, ""},
		{"chat", "/v1/chat/completions", `{"model":"up/m","messages":[{"role":"user","content":"a"}]}`, 200, ""},
		{"stream", "/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"a"}]}`, 200, "data: [DONE]\n\n"},
		{"messages", "/v1/messages", `{"model":"up/m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`, 200, ""},
		{"translated stream", "/v1/messages", `{"model":"up/m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"a"}]}`, 200, "data: {\"type\":\"message_stop\"}\n\n"},
		{"responses", "/v1/responses", `{"model":"up/m","input":"a"}`, 200, ""},
		{"gemini", "/v1beta/models/up/m:generateContent", `{"contents":[{"parts":[{"text":"a"}]}]}`, 200, ""},
		{"broken stream", "/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"break"}]}`, 200, "data: [DONE]\n\n"},
		{"refused", "/v1/chat/completions", `{"model":"up/m","messages":[{"role":"user","content":"refuse"}]}`, 400, ""},
		{"invalid", "/v1/chat/completions", `{"model":"up/m"}`, 400, ""},
		{"large", "/v1/embeddings", `{"model":"up/m","encoding_format":"base64","input":"` + strings.Repeat("a", 100<<10) + `"}`, 200, ""},
		{"form", "/v1/audio/transcriptions", "", 200, ""},
		{"client leaves", "/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"a"}]}`, 0, ""},
		{"unknown key", "/v1/chat/completions", `{}`, 401, ""},
	}
	var form bytes.Buffer
	fw := multipart.NewWriter(&form)
	fw.WriteField("model", "up/m")
	file, err := fw.CreateFormFile("file", "a.wav")
	if err != nil {
		t.Fatal(err)
	}
	file.Write(make([]byte, 80<<10))
	fw.Close()
	call := func(n int) error {
		k := kinds[n%len(kinds)]
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		body := strings.NewReader(k.body)
		if k.name == "form" {
			body = strings.NewReader(form.String())
		}
		req := w.request("POST", k.path, body).WithContext(ctx)
		switch k.name {
		case "form":
			req.Header.Set("Content-Type", fw.FormDataContentType())
		case "unknown key":
			req.Header.Set("Authorization", "Bearer sk-unknown")
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		defer res.Body.Close()
		if k.status == 0 {
			io.ReadFull(res.Body, make([]byte, 5))
			return nil
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != k.status || !strings.HasSuffix(string(got), k.want) {
			return fmt.Errorf("%s: %d %.300s %v", k.name, res.StatusCode, got, err)
		}
		if k.want == "" && !json.Valid(got) {
			return fmt.Errorf("%s: %.300s", k.name, got)
		}
		return nil
	}
	var wg sync.WaitGroup
	next := atomic.Int64{}
	for range 64 {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(calls); n = next.Add(1) {
				if err := call(int(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if log := w.logged(); strings.Contains(log, "panic") {
		t.Fatal(log)
	}
	if err := w.host.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	if calls, flows, afters := w.host.InFlight(); calls+flows+afters != 0 {
		t.Errorf("under way at the end: %d calls, %d flows, %d recordings", calls, flows, afters)
	}
	unknown := 0
	for n := 1; n <= calls; n++ {
		if kinds[n%len(kinds)].name == "unknown key" {
			unknown++
		}
	}
	var list struct{ Total int }
	w.manage("GET", "/"+w.machine+"/api/requests?limit=1", "", &list)
	if want := calls - unknown; list.Total != want {
		t.Errorf("%d calls are listed, want %d", list.Total, want)
	}
}
