package responses

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	testobjects "weir/internal/testgw/objects"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// world is an object that stores jobs, and upstreams that answer all calls.
type world struct {
	jobs      map[string]rpc.Job
	down      int // calls of the object that fail
	puts      int
	request   *proxy.Request
	forwarded *proxy.StoredCall
	gone      bool
	id        string // of the answers
	answer    string // to a compaction
	counted   string // connection of the count
}

func (w *world) object() *testobjects.Script { return &testobjects.Script{Answer: w.stored} }

func (w *world) stored(op string, body []byte) (int, []byte, error) {
	if w.down > 0 {
		w.down--
		return 0, nil, testobjects.ErrUnreachable
	}
	var j rpc.Job
	if err := json.Unmarshal(body, &j); err != nil {
		return 400, nil, nil
	}
	if op == "job.put" {
		w.puts++
		w.jobs[j.ID] = j
		return 200, []byte(`{}`), nil
	}
	job, ok := w.jobs[j.ID]
	if !ok {
		return 404, nil, nil
	}
	out, err := json.Marshal(job)
	return 200, out, err
}

func (w *world) Answer(_ context.Context, _ *auth.Call, a *proxy.Request) (*proxy.Result, error) {
	w.request = a
	return &proxy.Result{
		Response: &httpmsg.Response{Status: 200, Body: stream.FromString(w.answer)}, ResponseID: w.id,
		Target: &routing.Target{Provider: provider.Lookup("openai"), Model: "m"}, Connection: &store.Connection{ID: "c1"},
	}, nil
}

func (w *world) CountAt(_ context.Context, _ *auth.Call, d llm.Dialect, _ []byte, connection string) (proxy.Tokens, error) {
	w.counted = connection
	return proxy.Tokens{Input: 7, Exact: d == llm.Responses}, nil
}

func (w *world) Fetch(_ context.Context, _ *auth.Call, k *proxy.StoredCall) (*httpmsg.Response, error) {
	w.forwarded = k
	if w.gone {
		return nil, proxy.ErrConnectionGone
	}
	return &httpmsg.Response{Status: 200}, nil
}

func call(body string, params ...string) *auth.Call {
	return &auth.Call{
		Request: &httpmsg.Request{Body: stream.FromString(body)},
		Trace:   accounts.Trace{KeyID: "k1"},
		Params:  params, Machine: snapshot.New(&store.Machine{ID: "abcdefgh01234567"}), MaxBody: 1 << 20,
	}
}

func statusOf(err error) (int, string) {
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Status, e.Code
	}
	return 0, ""
}

func TestStoredResponseIsBoundToItsAccount(t *testing.T) {
	ctx := context.Background()
	w := &world{jobs: map[string]rpc.Job{}, id: "resp_1"}
	h := &Handler{Proxy: w, Object: w.object()}
	if _, err := h.Create(ctx, call(`{"model":"m","input":"x"}`)); err != nil {
		t.Fatal(err)
	}
	want := rpc.Job{ID: "resp_1", Kind: "response", ConnectionID: "c1", Provider: "openai", Model: "m", KeyID: "k1"}
	if !reflect.DeepEqual(w.jobs["resp_1"], want) {
		t.Errorf("stored %+v, want %+v", w.jobs["resp_1"], want)
	}
	if _, err := h.Create(ctx, call(`{"model":"m","input":"x","previous_response_id":"resp_1"}`)); err != nil || w.request.Connection != "c1" {
		t.Errorf("%v, continues at %q", err, w.request.Connection)
	}
	for _, tt := range []struct {
		f            func(context.Context, *auth.Call) (*httpmsg.Response, error)
		method, rest string
	}{{h.Get, "GET", ""}, {h.Items, "GET", "/input_items"}, {h.Delete, "DELETE", ""}, {h.Cancel, "POST", "/cancel"}} {
		if _, err := tt.f(ctx, call("", "resp_1")); err != nil || !reflect.DeepEqual(*w.forwarded, proxy.StoredCall{Method: tt.method, ID: "resp_1", Subpath: tt.rest, Provider: "openai", Model: "m", Connection: "c1"}) {
			t.Errorf("%s%s: %v, %+v", tt.method, tt.rest, err, w.forwarded)
		}
	}
	w.gone = true
	if _, err := h.Get(ctx, call("", "resp_1")); err == nil {
		t.Error("its account is gone")
	} else if s, _ := statusOf(err); s != 404 {
		t.Errorf("got %v", err)
	}
}

func TestUnstoredResponseIsNotBound(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct{ name, id, body string }{
		{"store_false", "resp_1", `{"model":"m","input":"x","store":false}`},
		{"translated", "", `{"model":"m","input":"x"}`},
	} {
		w := &world{jobs: map[string]rpc.Job{}, id: tt.id}
		if _, err := (&Handler{Proxy: w, Object: w.object()}).Create(ctx, call(tt.body)); err != nil || w.puts != 0 {
			t.Errorf("%s: %v, %d put", tt.name, err, w.puts)
		}
	}
}

func TestAnswerIsSentWhenRecordFails(t *testing.T) {
	ctx := context.Background()
	w := &world{jobs: map[string]rpc.Job{}, id: "resp_1", down: 1}
	c := call(`{"model":"m","input":"x"}`)
	c.ID = "req-1"
	resp, err := (&Handler{Proxy: w, Object: w.object()}).Create(ctx, c)
	if err != nil || len(resp.After) != 1 || w.puts != 0 {
		t.Fatalf("%v, %d put", err, w.puts)
	}
	resp.After[0](ctx)
	if j := w.jobs["resp_1"]; j.ConnectionID != "c1" || j.RequestID != "req-1" {
		t.Error("it is not stored after the answer")
	}
}

func TestResponsesOfOtherMachinesAreNotFound(t *testing.T) {
	ctx := context.Background()
	w := &world{jobs: map[string]rpc.Job{"vid_1": {ID: "vid_1", Kind: "video", ConnectionID: "c1"}}}
	h := &Handler{Proxy: w, Object: w.object()}
	for _, id := range []string{"resp_9", "vid_1", "a/b", "..", "a?b", "a b", ""} {
		_, err := h.Get(ctx, call("", id))
		if s, _ := statusOf(err); s != 404 || w.forwarded != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	_, err := h.Create(ctx, call(`{"model":"m","input":"x","previous_response_id":"resp_9"}`))
	if s, code := statusOf(err); s != 400 || code != "previous_response_not_found" || w.request != nil {
		t.Errorf("%v", err)
	}
	w.down = 2
	for _, f := range []func() error{
		func() error { _, err := h.Get(ctx, call("", "resp_1")); return err },
		func() error {
			_, err := h.Create(ctx, call(`{"model":"m","input":"x","previous_response_id":"resp_1"}`))
			return err
		},
	} {
		if s, _ := statusOf(f()); s != 503 {
			t.Errorf("with the object down: %d", s)
		}
	}
}

func TestInputTokens(t *testing.T) {
	ctx := context.Background()
	w := &world{jobs: map[string]rpc.Job{"resp_1": {ID: "resp_1", Kind: kind, ConnectionID: "c1"}}}
	h := &Handler{Proxy: w, Object: w.object()}
	resp, err := h.InputTokens(ctx, call(`{"model":"m","input":"x","previous_response_id":"resp_1"}`))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := stream.ReadAll(resp.Body, 100)
	if string(raw) != `{"object":"response.input_tokens","input_tokens":7}` || resp.Header.Get("x-weir-token-count") != "exact" || w.counted != "c1" {
		t.Errorf("got %s %v by %q", raw, resp.Header, w.counted)
	}
	for body, code := range map[string]string{`{`: "invalid_json", `{"previous_response_id":7}`: "", `{"previous_response_id":"resp_9"}`: "previous_response_not_found"} {
		_, err := h.InputTokens(ctx, call(body))
		if s, got := statusOf(err); s != 400 || got != code {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCompactRepeatsTheUsersMessages(t *testing.T) {
	const summary = `{"id":"resp_1","object":"response","created_at":5,"output":[{"id":"cmp_1","type":"compaction","encrypted_content":"weir.compaction.eA=="}],"usage":{"total_tokens":3}}`
	for _, tt := range []struct{ name, body, answer, want string }{
		{"the vendor's own passes", `{"model":"m","input":"x"}`, `{"object":"response.compaction","output":[ ]}`, `{"object":"response.compaction","output":[ ]}`},
		{"a text", `{"model":"m","input":"x"}`, summary, `{"id":"resp_1","object":"response.compaction","created_at":5,"output":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]},{"id":"cmp_1","type":"compaction","encrypted_content":"weir.compaction.eA=="}],"usage":{"total_tokens":3}}`},
		{"items", `{"model":"m","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"type":"function_call_output","call_id":"c","output":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"e"}]}]}`, summary,
			`{"id":"resp_1","object":"response.compaction","created_at":5,"output":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"e"}]},{"id":"cmp_1","type":"compaction","encrypted_content":"weir.compaction.eA=="}],"usage":{"total_tokens":3}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{answer: tt.answer}
			resp, err := (&Handler{Proxy: w, Object: w.object()}).Compact(context.Background(), call(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := stream.ReadAll(resp.Body, 1<<20)
			if string(raw) != tt.want {
				t.Errorf("got %s", raw)
			}
			if r := w.request; !r.Compacts || !r.Compaction || r.Stream {
				t.Errorf("asked %+v", r)
			}
		})
	}
	long := `{"role":"user","content":"` + strings.Repeat("x", 200<<10) + `"}`
	w := &world{answer: summary}
	resp, err := (&Handler{Proxy: w, Object: w.object()}).Compact(context.Background(), call(`{"model":"m","input":[`+long+`,`+long+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := stream.ReadAll(resp.Body, 1<<20); strings.Count(string(raw), `"role":"user"`) != 1 {
		t.Errorf("%d bytes", len(raw))
	}
	if _, err := (&Handler{Proxy: &world{answer: "<html>"}, Object: w.object()}).Compact(context.Background(), call(`{"model":"m","input":"x"}`)); err == nil {
		t.Error("an answer that is not JSON passes")
	}
}
