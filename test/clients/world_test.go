package clients

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"weir/internal/testgw/front"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// world is the gateway behind a server of its own. Its time is the client's.
type world struct {
	*front.Gateway
	t      *testing.T
	one    sync.Mutex // the program serves one event at a time
	server *httptest.Server
	key    string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, Gateway: front.New(func(p *gateway.Ports) {
		p.Now = time.Now
		p.Log = func(_ int, line string) { t.Log(line) }
	})}
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.server.Close)
	var made struct{ MachineID, APIKey string }
	w.manage("/api/machines", `{}`, &made)
	w.key = made.APIKey
	w.manage("/"+made.MachineID+"/api/providers", `{"provider":"openai-compatible-0123abcd","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`, nil)
	w.manage("/"+made.MachineID+"/api/providers", `{"provider":"anthropic-compatible-0123abcd","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"an"}}`, nil)
	return w
}

// client is OpenAI's, with one retry and no more.
func (w *world) client() openai.Client {
	return openai.NewClient(option.WithAPIKey(w.key), option.WithBaseURL(w.server.URL+"/v1"), option.WithMaxRetries(1))
}

func (w *world) manage(path, body string, v any) {
	w.t.Helper()
	req, _ := http.NewRequest("POST", w.server.URL+path, strings.NewReader(body))
	req.Header.Set("authorization", "Bearer "+front.AdminToken)
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
	resp := w.App.Serve(r.Context(), req)
	for _, f := range slices.Concat(resp.Template.Fields, resp.Header) {
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
