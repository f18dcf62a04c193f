// Package api tests the whole gateway natively: every part but the platform,
// against an upstream that a test scripts.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

var adminToken = front.AdminToken

// world is a gateway under test.
type world struct {
	*front.Gateway
	t   testing.TB
	key string // of the machine under test
	// origin is what requests are addressed to; "" is http://gateway.example.
	origin string
}

func newWorld(t testing.TB) *world {
	w := &world{Gateway: front.New(nil), t: t}
	w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(embedding) }
	return w
}

const embedding = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1,2.25]}],"model":"up-model","usage":{"prompt_tokens":3,"total_tokens":3}}`

// reply is an answer read to its end, its work after the answer done.
type reply struct {
	status int
	header httpmsg.Header
	body   string
}

func (w *world) do(method, path, key, body string, header ...httpmsg.Field) reply {
	w.t.Helper()
	return w.send(method, path, key, "application/json", body, header...)
}

func (w *world) send(method, path, key, contentType, body string, header ...httpmsg.Field) reply {
	w.t.Helper()
	path, query, _ := strings.Cut(path, "?")
	r := &httpmsg.Request{Method: method, Path: path, Query: query, Origin: cmp.Or(w.origin, "http://gateway.example"), Start: w.Now(), Length: int64(len(body)), Header: header}
	if key != "" {
		r.Header = append(r.Header, httpmsg.Field{Name: "authorization", Value: "Bearer " + key})
	}
	if body != "" {
		r.Body = stream.FromString(body)
		r.Header = append(r.Header, httpmsg.Field{Name: "content-type", Value: contentType})
	}
	resp := w.App.Serve(context.Background(), r)
	out := reply{status: resp.Status}
	if resp.Template != nil {
		out.header = append(out.header, resp.Template.Fields...)
	}
	out.header = append(out.header, resp.Header...)
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
