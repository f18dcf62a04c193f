package accounts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// recorded sends a call, records it as the gateway does, and gives the report
// that the object was sent.
func (w *world) recorded(c *Call, after time.Duration) gjson.Result {
	w.req.ID, w.req.Method = "req_1", "POST"
	w.req.Trace.Route, w.req.Trace.KeyID, w.req.Trace.Asked = "/v1/embeddings", "k1", "fast"
	_, err := w.pool.Send(context.Background(), c)
	w.now = w.now.Add(after)
	status := 200
	var e *apierr.Error
	if err != nil {
		e = err.(*apierr.Error)
		status = e.Status
	}
	w.pool.Record(w.machine, w.req, status, e)
	w.object = func(string, []byte) (int, []byte, error) { return 200, []byte(`{"generation":1}`), nil }
	w.pool.Flush(context.Background(), w.machine)
	return gjson.Parse(strings.TrimPrefix(w.calls[len(w.calls)-1], "report "))
}

func TestARequestIsRecordedWithWhyItsAttemptsFailed(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.script[key("a")] = []answer{{status: 429, body: `{"error":{"message":"slow down"}}`}}
	w.script[key("b")] = []answer{{status: 401, body: `{"error":{"message":"who are you"}}`}}
	got := w.recorded(w.kind("llm"), 250*time.Millisecond)
	rec := got.Get("requests.0")
	for path, want := range map[string]string{
		"id": "req_1", "at": "1800000000000", "keyId": "k1", "endpoint": "/v1/embeddings", "asked": "fast", "model": "openai/gpt",
		"connectionId": "c", "status": "200", "latencyMs": "250", "attempts": "3", "failed.#": "2",
		"failed.0.connectionId": "a", "failed.0.status": "429", "failed.0.text": "slow down",
		"failed.1.connectionId": "b", "failed.1.status": "401", "failed.1.text": "who are you",
	} {
		if g := rec.Get(path).String(); g != want {
			t.Errorf("%s: got %s, want %s", path, g, want)
		}
	}
	// The endpoint did not count its attempts: they are counted here, with the
	// time of the whole.
	for conn, want := range map[string]string{"a": "1 1 0 0", "b": "1 1 0 0", "c": "1 0 1 250"} {
		u := got.Get(`usage.#(connectionId=="` + conn + `")`)
		if g := fmt.Sprint(u.Get("requests").Int(), u.Get("errors").Int(), u.Get("calls").Int(), u.Get("latencyMs").Int()); g != want {
			t.Errorf("usage of %s: got %s, want %s", conn, g, want)
		}
	}
}

// A provider may repeat in its refusal what it was asked.
func TestTheTextOfARefusedRequestIsNotKept(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script["*"] = []answer{{status: 400, body: `{"error":{"message":"my secret prompt is too long","code":"too_long"}}`}}
	got := w.recorded(w.kind("llm"), 0)
	if strings.Contains(got.Raw, "secret prompt") || got.Get("requests.0.failed.0.code").Str != "too_long" || got.Get("requests.0.error").Str != "too_long" {
		t.Errorf("got %s", got.Raw)
	}
}

func TestWhatAnEndpointCountsItselfIsNotCountedTwice(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	c := w.kind("llm")
	w.req.Trace.Metered = true
	u := w.recorded(c, time.Second).Get("usage")
	if len(u.Array()) != 1 || u.Get("0.requests").Int() != 0 || u.Get("0.calls").Int() != 1 || u.Get("0.latencyMs").Int() != 1000 {
		t.Errorf("got %s", u.Raw)
	}
}

func TestOnlyTheLastRequestsOfAReportAreKept(t *testing.T) {
	var w = newWorld(t).add(accounts("a")...)
	for i := range maxRecords + 10 {
		r := &httpmsg.Request{ID: fmt.Sprint(i), Method: "POST", Start: w.now, Trace: httpmsg.Trace{Route: "/v1/embeddings", Asked: strings.Repeat("m", 500)}}
		w.pool.Record(w.machine, r, 400, apierr.Invalid("model", "no such model"))
	}
	for _, r := range []*httpmsg.Request{
		{Method: "GET", Trace: httpmsg.Trace{Route: "/v1/models"}}, {Method: "POST", Trace: httpmsg.Trace{Route: "/api/keys"}},
	} {
		w.pool.Record(w.machine, r, 200, nil)
	}
	list := w.pool.reportOf(mid).arrange()
	if len(list) != maxRecords || list[0].ID != "10" || list[maxRecords-1].ID != fmt.Sprint(maxRecords+9) {
		t.Errorf("%d, from %s to %s", len(list), list[0].ID, list[len(list)-1].ID)
	}
	if r := list[0]; len(r.Asked) != maxRecordText || r.Error != "invalid_request_error" || r.Attempts != 0 {
		t.Errorf("got %+v", r)
	}
	if u := w.pool.reportOf(mid).Usage; len(u) != 1 || u[0].Calls != maxRecords+10 || u[0].Requests != 0 {
		t.Errorf("got %+v", u)
	}
}

// Requests, failed requests and attempts are three numbers, and a client that
// leaves has not failed.
func TestRecordCountsFailedCalls(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	record := func(status int, e *apierr.Error, cause error) store.Request {
		r := &httpmsg.Request{ID: "r", Method: "POST", Start: w.now, Trace: httpmsg.Trace{Route: "/v1/chat/completions", Err: cause}}
		w.pool.Record(w.machine, r, status, e)
		list := w.pool.reportOf(mid).arrange()
		return list[len(list)-1]
	}
	record(200, nil, nil)
	record(400, apierr.Invalid("model", "no such model"), nil)
	record(200, nil, apierr.New(502, "upstream_cut", "the provider's stream ended early"))
	for _, r := range []store.Request{record(499, apierr.ClientLeft(nil), nil), record(200, nil, apierr.ClientLeft(stream.ErrClient))} {
		if r.Error != "client_closed" {
			t.Errorf("error %q, want client_closed", r.Error)
		}
	}
	if u := w.pool.reportOf(mid).Usage; len(u) != 1 || u[0].Calls != 5 || u[0].FailedCalls != 2 || u[0].Requests != 0 {
		t.Errorf("got %+v", u)
	}
}

func TestRequestsOfAReportThatDidNotGetThroughStayInOrder(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.pool.Pause = &pauser{w: w}
	record := func(id string) {
		w.pool.Record(w.machine, &httpmsg.Request{ID: id, Method: "POST", Start: w.now, Trace: httpmsg.Trace{Route: "/v1/rerank"}}, 200, nil)
	}
	record("1")
	w.pool.Flush(context.Background(), w.machine) // the object cannot be reached
	record("2")
	w.object = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
	w.pool.Flush(context.Background(), w.machine)
	got := gjson.Parse(strings.TrimPrefix(w.calls[len(w.calls)-1], "report ")).Get("requests.#.id").Raw
	if got != `["1","2"]` {
		t.Errorf("got %s", got)
	}
}
