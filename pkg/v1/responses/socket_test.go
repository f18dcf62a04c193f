package responses

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// client is a connection of a test.
type client struct{ fake.Socket }

// types returns the types of the messages received, each with its lane.
func (c *client) types() (out []string) {
	for _, m := range c.Received {
		t := gjson.Get(m, "type").Str
		if lane := gjson.Get(m, "stream_id"); lane.Exists() {
			t = lane.Str + "/" + t
		}
		if status := gjson.Get(m, "status"); status.Exists() {
			t += " " + status.Raw + " " + gjson.Get(m, "error.code").Str
		}
		out = append(out, t)
	}
	return out
}

// server answers the requests of turns.
type server struct {
	*Sockets
	answer func(n int, body string) *httpmsg.Response
	seen   []*httpmsg.Request
	bodies []string
	now    time.Time
	after  int // answers that were followed
}

func newServer(answer func(n int, body string) *httpmsg.Response) *server {
	s := &server{answer: answer, now: time.Unix(1_750_000_000, 0)}
	s.Sockets = &Sockets{Now: func() time.Time { return s.now }, Serve: func(_ context.Context, r *httpmsg.Request) *httpmsg.Response {
		body, _ := io.ReadAll(r.Body)
		s.seen, s.bodies = append(s.seen, r), append(s.bodies, string(body))
		resp := s.answer(len(s.seen), string(body))
		resp.After = append(resp.After, func(context.Context) { s.after++ })
		return resp
	}}
	return s
}

// handshake is the request that opens the sockets of the tests.
func handshake() *httpmsg.Request {
	return &httpmsg.Request{Method: "GET", Path: "/v1/responses", Query: "a=b", Origin: "https://weir.example", Header: httpmsg.Header{
		{Name: "authorization", Value: "Bearer k"}, {Name: "upgrade", Value: "websocket"}, {Name: "session_id", Value: "s1"},
		{Name: "openai-beta", Value: "responses_websockets=2026-02-06, other=1"}, {Name: "origin", Value: "https://app.example"},
		{Name: "idempotency-key", Value: "once"},
	}}
}

// connect serves a client to its end.
func (s *server) connect(t *testing.T, c *client) *client {
	t.Helper()
	resp, err := s.Connect(context.Background(), &auth.Call{Request: handshake(), Machine: snapshot.New(&store.Machine{})})
	if err != nil || resp.Status != 101 || resp.Upgrade == nil {
		t.Fatalf("got %+v, %v", resp, err)
	}
	resp.Upgrade.Serve(context.Background(), c)
	return c
}

func (s *server) send(t *testing.T, messages ...string) *client {
	t.Helper()
	return s.connect(t, &client{fake.Socket{Messages: messages}})
}

// events is an answer that is an event stream.
func events(lines ...string) *httpmsg.Response {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", gjson.Get(l, "type").Str, l)
	}
	return &httpmsg.Response{
		Status: 200, Body: stream.FromString(b.String()),
		Header: httpmsg.Header{{Name: "content-type", Value: "text/event-stream; charset=utf-8"}, {Name: "x-request-id", Value: "req_7"}},
	}
}

// completed is an answer with a text.
func completed(id, text string, more ...string) *httpmsg.Response {
	item := fmt.Sprintf(`{"type":"message","id":"msg_%s","role":"assistant","content":[{"type":"output_text","text":%q}]}`, id, text)
	lines := []string{fmt.Sprintf(`{"type":"response.created","response":{"id":%q}}`, id)}
	lines = append(lines, more...)
	return events(append(lines,
		`{"type":"response.output_item.done","item":`+item+`}`,
		fmt.Sprintf(`{"type":"response.completed","response":{"id":%q,"store":false,"output":[]}}`, id))...)
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSocketServesEachCreateAsPost(t *testing.T) {
	s := newServer(func(n int, _ string) *httpmsg.Response {
		r := completed(fmt.Sprintf("resp_%d", n), "hi")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(": ping\n\n"), r.Body, strings.NewReader("data: [DONE]\n\n")))
		return r
	})
	c := s.send(t,
		`{"type":"response.create","stream":false,"model":"m","input":"x","store":false,"generate":true,"stream_id":"a.b-c_1"}`,
		` { "model" : "m", "input" : [ {"a":[1, 2]} ], "type" : "response.create", "client_metadata":{"k":"v"}, "background":false } `,
		`{"type":"response.processed","response_id":"resp_2"}`)
	equal(t, c.types(),
		"a.b-c_1/response.created", "a.b-c_1/response.output_item.done", "a.b-c_1/response.completed",
		"response.created", "response.output_item.done", "response.completed")
	if want := `{"type":"response.created","response":{"id":"resp_2"}}`; c.Received[3] != want {
		t.Errorf("got %s, want %s", c.Received[3], want)
	}
	equal(t, s.bodies,
		`{"model":"m","input":"x","store":false,"stream":true}`,
		`{"model":"m","input":[ {"a":[1, 2]} ],"client_metadata":{"k":"v"},"stream":true}`)
	for i, r := range s.seen {
		want := httpmsg.Header{
			{Name: "authorization", Value: "Bearer k"}, {Name: "session_id", Value: "s1"}, {Name: "openai-beta", Value: "other=1"},
			{Name: "content-type", Value: "application/json"},
		}
		if r.Method != "POST" || r.Path != "/v1/responses" || r.Query != "a=b" || r.Length != int64(len(s.bodies[i])) || !slices.Equal(r.Header, want) {
			t.Errorf("got %+v", r)
		}
	}
	if s.after != 2 || c.Closed != nil {
		t.Errorf("%d answers were followed, closed: %v", s.after, c.Closed)
	}
}

func TestSocketContinuesItsLatestResponse(t *testing.T) {
	const message = `{"type":"message","role":"user","content":"x"}`
	out := func(n int) string {
		return fmt.Sprintf(`{"type":"message","id":"msg_resp_%d","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`, n)
	}
	s := newServer(func(n int, _ string) *httpmsg.Response { return completed(fmt.Sprintf("resp_%d", n), "hi") })
	s.send(t,
		`{"type":"response.create","model":"m","input":"x","store":false}`,
		`{"type":"response.create","model":"m","input":[{"n":2}],"store":false,"previous_response_id":"resp_1"}`,
		`{"type":"response.create","model":"m2","input":"x","store":false,"previous_response_id":"resp_2","stream_id":"fork"}`,
		`{"type":"response.create","model":"m","input":[],"store":false,"previous_response_id":"resp_2"}`,
		`{"type":"response.create","model":"m","store":false,"previous_response_id":"resp_3","stream_id":"fork","instructions":"i"}`,
		`{"type":"response.create","model":"m","input":"y","previous_response_id":null}`,
	)
	second := message + "," + out(1) + `,{"n":2},` + out(2)
	equal(t, s.bodies,
		`{"model":"m","input":"x","store":false,"stream":true}`,
		`{"model":"m","store":false,"input":[`+message+","+out(1)+`,{"n":2}],"stream":true}`,
		`{"model":"m2","store":false,"input":[`+second+","+message+`],"stream":true}`,
		`{"model":"m","store":false,"input":[`+second+`],"stream":true}`,
		`{"model":"m","store":false,"instructions":"i","input":[`+second+","+message+","+out(3)+`],"stream":true}`,
		`{"model":"m","input":"y","stream":true}`)
	if s.conversations.bytes != 0 || s.conversations.used.Len() != 0 {
		t.Errorf("%d bytes are in memory after the socket has ended", s.conversations.bytes)
	}
}

// A response that the upstream has, or that another connection has created, is
// continued as by POST.
func TestSocketContinuesStoredResponses(t *testing.T) {
	s := newServer(func(n int, body string) *httpmsg.Response {
		id := fmt.Sprintf("resp_%d", n)
		return events(
			`{"type":"response.output_item.done","item":{"n":`+fmt.Sprint(n)+`}}`,
			fmt.Sprintf(`{"type":"response.completed","response":{"id":%q,"store":%v}}`, id, !strings.Contains(body, `"store":false`)))
	})
	s.send(t,
		`{"type":"response.create","model":"m","input":"x","previous_response_id":"resp_0"}`,
		`{"type":"response.create","model":"m","input":[{"y":1}],"previous_response_id":"resp_1","store":false}`,
		`{"type":"response.create","model":"m","input":[{"z":1}],"previous_response_id":"resp_2","store":false}`,
	)
	equal(t, s.bodies,
		`{"model":"m","input":"x","previous_response_id":"resp_0","stream":true}`,
		`{"model":"m","input":[{"y":1}],"store":false,"previous_response_id":"resp_1","stream":true}`,
		`{"model":"m","store":false,"previous_response_id":"resp_1","input":[{"y":1},{"n":2},{"z":1}],"stream":true}`)
}

// Upstreams refuse reasoning without its encrypted content unless they store it. That
// of a translated answer is weir's own.
func TestSocketLeavesOutReasoningThatNoUpstreamCanRead(t *testing.T) {
	s := newServer(func(n int, _ string) *httpmsg.Response {
		return completed(fmt.Sprintf("resp_%d", n), "hi",
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_2","encrypted_content":"e"}}`,
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_7_0","summary":[]}}`)
	})
	s.send(t, `{"type":"response.create","model":"m","input":"x","store":false}`, `{"type":"response.create","model":"m","previous_response_id":"resp_1"}`)
	var ids []string
	for _, item := range gjson.Get(s.bodies[1], "input").Array() {
		ids = append(ids, item.Get("id").Str)
	}
	equal(t, ids, "", "rs_2", "rs_7_0", "msg_resp_1")
}

// A compaction stands for the conversation before it, with the item that asked for it.
func TestSocketContinuesAfterACompaction(t *testing.T) {
	s := newServer(func(n int, _ string) *httpmsg.Response {
		return completed(fmt.Sprintf("resp_%d", n), "hi", `{"type":"response.output_item.done","item":{"type":"compaction","encrypted_content":"c"}}`)
	})
	s.send(t,
		`{"type":"response.create","model":"m","input":[{"n":1},{"type":"compaction_trigger"}],"store":false,"previous_response_id":"resp_0"}`,
		`{"type":"response.create","model":"m","input":[{"n":2}],"store":false,"previous_response_id":"resp_1"}`)
	want := `{"model":"m","store":false,"input":[{"type":"compaction","encrypted_content":"c"},{"type":"message","id":"msg_resp_1","role":"assistant","content":[{"type":"output_text","text":"hi"}]},{"n":2}],"stream":true}`
	if s.bodies[1] != want {
		t.Errorf("got %s, want %s", s.bodies[1], want)
	}
}

func TestSocketTakesOutputOfTheLastEvent(t *testing.T) {
	s := newServer(func(int, string) *httpmsg.Response {
		return events(`{"type":"response.incomplete","response":{"id":"resp_1","output":[{"n":1},{"n":2}]}}`)
	})
	s.send(t, `{"type":"response.create","model":"m","input":[{"n":0}]}`, `{"type":"response.create","model":"m","previous_response_id":"resp_1"}`)
	if got, want := gjson.Get(s.bodies[1], "input").Raw, `[{"n":0},{"n":1},{"n":2}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSocketWarmsUpWithoutAnUpstream(t *testing.T) {
	s := newServer(func(int, string) *httpmsg.Response { return completed("resp_1", "hi") })
	c := &client{fake.Socket{Messages: []string{`{"type":"response.create","model":"m","generate":false,"input":[{"n":1}],"store":false}`, ""}}}
	c.Before = func(i int) {
		if i == 1 {
			id := gjson.Get(c.Received[1], "response.id").Str
			c.Messages[1] = `{"type":"response.create","model":"m","input":[],"store":false,"previous_response_id":"` + id + `"}`
		}
	}
	s.connect(t, c)
	equal(t, c.types(), "response.created", "response.completed", "response.created", "response.output_item.done", "response.completed")
	r := gjson.Get(c.Received[1], "response")
	if !strings.HasPrefix(r.Get("id").Str, "resp_") || r.Get("output").Raw != "[]" || r.Get("usage.total_tokens").Raw != "0" || r.Get("model").Str != "m" {
		t.Errorf("got %s", r.Raw)
	}
	equal(t, s.bodies, `{"model":"m","store":false,"input":[{"n":1}],"stream":true}`)
}

func TestSocketReportsInvalidEvents(t *testing.T) {
	s := newServer(func(int, string) *httpmsg.Response { return completed("resp_1", "hi") })
	for _, tt := range []struct{ message, want, param string }{
		{``, "error 400 invalid_json", ""},
		{`[]`, "error 400 invalid_json", ""},
		{`{"type":"response.create"`, "error 400 invalid_json", ""},
		{`{"type":"response.create","type":"response.create"}`, "error 400 ", "type"},
		{`{}`, "error 400 ", "type"},
		{`{"type":1}`, "error 400 ", "type"},
		{`{"type":"session.update","stream_id":"a"}`, "a/error 400 ", "type"},
		{`{"type":"response.create","stream_id":""}`, "error 400 invalid_stream_id", "stream_id"},
		{`{"type":"response.create","stream_id":"a b"}`, "error 400 invalid_stream_id", "stream_id"},
		{`{"type":"response.create","stream_id":"` + strings.Repeat("a", 257) + `"}`, "error 400 invalid_stream_id", "stream_id"},
		{`{"type":"response.create","stream_id":1}`, "error 400 invalid_stream_id", "stream_id"},
		{`{"type":"response.create","input":"x"}`, "error 400 ", "model"},
		{`{"type":"response.create","model":"m","background":true}`, "error 400 ", "background"},
		{`{"type":"response.create","model":"m","generate":1}`, "error 400 ", "generate"},
		{`{"type":"response.create","model":"m","store":"no"}`, "error 400 ", "store"},
		{`{"type":"response.create","model":"m","previous_response_id":1}`, "error 400 ", "previous_response_id"},
		{`{"type":"response.inject","response_id":"resp_9","input":[{"n":1}],"stream_id":"a"}`, "a/response.inject.failed", ""},
	} {
		c := s.send(t, tt.message, `{"type":"response.processed"}`)
		equal(t, c.types(), tt.want)
		if len(c.Received) == 1 && gjson.Get(c.Received[0], "error.param").Str != tt.param {
			t.Errorf("%s: got %s", tt.message, c.Received[0])
		}
		if c.Reads != 2 || c.Closed != nil {
			t.Errorf("%s: the socket has ended", tt.message)
		}
	}
	if len(s.seen) != 0 {
		t.Errorf("%d requests were served", len(s.seen))
	}
	c := s.send(t, `{"type":"response.create","model":"m","input":"x"}`, `{"type":"response.inject","response_id":"resp_1","input":[{"n":1}]}`)
	if got := c.Received[len(c.Received)-1]; gjson.Get(got, "error.code").Str != "response_already_completed" || gjson.Get(got, "input").Raw != `[{"n":1}]` {
		t.Errorf("got %s", got)
	}
}

func TestSocketReportsRefusedRequests(t *testing.T) {
	answers := []*httpmsg.Response{
		{
			Status: 429, Body: stream.FromString(`{"error":{"message":"slow","type":"rate_limit_error","param":null,"code":"limit"}}`),
			Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}, {Name: "retry-after", Value: "3"}, {Name: "x-weir-attempts", Value: "2"}},
		},
		{Status: 502, Body: stream.FromString(`oh`)},
		{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: stream.FromString(`{"id":"resp_1"}`)},
		{Status: 500},
	}
	s := newServer(func(n int, _ string) *httpmsg.Response { return answers[n-1] })
	create := `{"type":"response.create","model":"m","input":"x","stream_id":"a"}`
	c := s.send(t, create, create, create, create)
	equal(t, c.Received,
		`{"stream_id":"a","type":"error","status":429,"error":{"message":"slow","type":"rate_limit_error","param":null,"code":"limit"},"headers":{"retry-after":"3","x-weir-attempts":"2"}}`,
		`{"stream_id":"a","type":"error","status":502,"error":{"type":"server_error","code":null,"message":"The request failed with status 502.","param":null},"headers":{}}`,
		`{"stream_id":"a","type":"error","status":502,"error":{"type":"server_error","code":null,"message":"The request failed with status 502.","param":null},"headers":{}}`,
		`{"stream_id":"a","type":"error","status":500,"error":{"type":"server_error","code":null,"message":"The request failed with status 500.","param":null},"headers":{}}`)
	if s.after != 4 {
		t.Errorf("%d answers were followed", s.after)
	}
}

// A client waits for more after an error event without a status, which a stream of
// events only has before its end.
func TestSocketEndsEachTurnWithAnEventThatClientsWaitFor(t *testing.T) {
	for _, tt := range []struct {
		events []string
		want   []string
	}{
		{[]string{`{"type":"response.created"}`}, []string{"response.created", "error 502 "}},
		{nil, []string{"error 502 "}},
		{[]string{`{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}`}, []string{"error 429 rate_limit_exceeded"}},
		{[]string{`{"type":"error","error":{"code":"slow_down","message":"m"}}`}, []string{"error 503 slow_down"}},
		{[]string{`{"type":"error","code":"context_length_exceeded","message":"m"}`}, []string{"error 400 context_length_exceeded"}},
		{
			[]string{`{"type":"error","code":"c","message":"m"}`, `{"type":"response.failed","response":{"id":"resp_1"}}`},
			[]string{"error", "response.failed"},
		},
	} {
		s := newServer(func(int, string) *httpmsg.Response { return events(tt.events...) })
		equal(t, s.send(t, `{"type":"response.create","model":"m","input":"x"}`).types(), tt.want...)
	}
}

// An event that the end of the stream has cut is not sent: it is no JSON.
func TestSocketSendsWholeEventsOfCutStreams(t *testing.T) {
	whole, err := stream.ReadAll(completed("resp_1", "hi ☃").Body, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	end := "\n\nevent: error\ndata: {\"type\":\"error\",\"code\":\"upstream_cut\"}\n\n" // as the gateway says it
	for i := range 2 * (len(whole) - 2) {                                               // without the empty line the last event is whole
		n, added := i/2, end[:i%2*len(end)]
		s := newServer(func(int, string) *httpmsg.Response {
			answer := events()
			answer.Body = stream.FromString(string(whole[:n]) + added)
			return answer
		})
		c := s.send(t, `{"type":"response.create","model":"m","input":"x"}`)
		for _, m := range c.Received {
			if !gjson.Valid(m) {
				t.Fatalf("cut at %d: sent %s", n, m)
			}
		}
		if types := c.types(); !strings.HasPrefix(types[len(types)-1], "error 502 ") {
			t.Fatalf("cut at %d: %v", n, types)
		}
	}
}

func TestFailedTurnForgetsItsParent(t *testing.T) {
	for name, failure := range map[string]func() *httpmsg.Response{
		"refused": func() *httpmsg.Response { return &httpmsg.Response{Status: 500} },
		"failed":  func() *httpmsg.Response { return events(`{"type":"response.failed","response":{"id":"resp_2"}}`) },
		"cut":     func() *httpmsg.Response { return events(`{"type":"response.created"}`) },
	} {
		s := newServer(func(n int, _ string) *httpmsg.Response {
			if n == 2 {
				return failure()
			}
			return completed(fmt.Sprintf("resp_%d", n), "hi")
		})
		next := `{"type":"response.create","model":"m","input":"y","previous_response_id":"resp_1"}`
		s.send(t, `{"type":"response.create","model":"m","input":"x"}`, next, next)
		if got, want := s.bodies[2], `{"model":"m","input":"y","previous_response_id":"resp_1","stream":true}`; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestConversationsAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxConversation-1000)
	s := newServer(func(n int, _ string) *httpmsg.Response { return completed(fmt.Sprintf("resp_%d", n), "hi") })
	create := func(lane, input string) string {
		return `{"type":"response.create","model":"m","stream_id":"` + lane + `","input":"` + input + `"}`
	}
	c := &client{fake.Socket{Messages: []string{
		create("a", strings.Repeat("x", maxConversation)), // too long
		create("b", long), create("c", long[:1]), create("d", long), create("e", long), create("f", long), // b makes way
		`{"type":"response.create","model":"m","stream_id":"a","input":[],"previous_response_id":"resp_1"}`,
		`{"type":"response.create","model":"m","stream_id":"b","input":[],"previous_response_id":"resp_2"}`,
		`{"type":"response.create","model":"m","stream_id":"d","input":[],"previous_response_id":"resp_4"}`,
	}}}
	c.Before = func(int) {
		if s.conversations.bytes > maxConversations {
			t.Errorf("%d bytes are in memory", s.conversations.bytes)
		}
	}
	s.connect(t, c)
	got := c.types()[6*3:]
	equal(t, got, "a/error 400 previous_response_not_found", "b/error 400 previous_response_not_found",
		"d/response.created", "d/response.output_item.done", "d/response.completed")
}

func TestSocketLimits(t *testing.T) {
	s := newServer(func(n int, _ string) *httpmsg.Response { return completed(fmt.Sprintf("resp_%d", n), "hi") })
	var messages []string
	for i := range maxLanes + 1 {
		messages = append(messages, fmt.Sprintf(`{"type":"response.create","model":"m","input":"x","stream_id":"l%d"}`, i))
	}
	messages = append(messages, messages[0], `{"type":"response.create","model":"m","input":"x"}`)
	c := s.send(t, messages...)
	types := c.types()
	equal(t, types[3*maxLanes:], "l32/error 400 websocket_stream_limit_reached",
		"l0/response.created", "l0/response.output_item.done", "l0/response.completed",
		"response.created", "response.output_item.done", "response.completed")

	c = &client{fake.Socket{Messages: []string{`{"type":"response.processed"}`, `{"type":"response.create","model":"m","input":"x"}`}}}
	c.Before = func(i int) { s.now = s.now.Add(time.Duration(i) * maxAge) }
	s.connect(t, c)
	equal(t, c.types(), "error 400 websocket_connection_limit_reached")
	if c.Closed == nil || c.Closed.Code != socket.Normal {
		t.Errorf("closed: %v", c.Closed)
	}

	// Another connection has another budget of calls.
	budget := newServer(func(n int, _ string) *httpmsg.Response {
		if n == 1 {
			return completed("resp_1", "hi")
		}
		return &httpmsg.Response{Status: 503, Body: stream.FromString(`{"error":{"code":"budget","message":"m"}}`)}
	})
	create := `{"type":"response.create","model":"m","input":"x"}`
	c = budget.send(t, create, create, create)
	equal(t, c.types()[3:], "error 400 websocket_connection_limit_reached")
	if c.Closed == nil || c.Closed.Code != socket.Normal || len(budget.seen) != 2 {
		t.Errorf("closed: %v after %d requests", c.Closed, len(budget.seen))
	}

	c = s.connect(t, &client{fake.Socket{Messages: []string{"x"}, Binary: true}})
	if c.Closed == nil || c.Closed.Code != socket.Unsupported || len(c.Received) != 0 {
		t.Errorf("closed: %v, got %v", c.Closed, c.Received)
	}
}

// ending is a transform that notes how its stream has ended.
type ending struct {
	stream.Plain
	cause error
}

func (e *ending) Push(chunk, out []byte) []byte    { return append(out, chunk...) }
func (e *ending) End(err error, out []byte) []byte { e.cause = err; return out }

func TestSocketEndsWhenItsClientLeaves(t *testing.T) {
	e := &ending{}
	src := &closing{Reader: completed("resp_1", "hi").Body}
	s := newServer(func(int, string) *httpmsg.Response {
		r := events()
		r.Body = &stream.Through{Src: src, T: e, Watch: true}
		return r
	})
	c := s.connect(t, &client{fake.Socket{Messages: []string{`{"type":"response.create","model":"m","input":"x"}`, "x"}, Leaves: 1}})
	if c.Reads != 1 || e.cause != stream.ErrClient && e.cause != nil || !src.closed || s.after != 1 {
		t.Errorf("%d messages were read, ended with %v, closed: %v, followed: %d", c.Reads, e.cause, src.closed, s.after)
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// breaking is a stream that ends with an error.
type breaking struct {
	head io.Reader
	err  error
}

func (b *breaking) Read(d []byte) (int, error) {
	if n, _ := b.head.Read(d); n > 0 {
		return n, nil
	}
	return 0, b.err
}

func (b *breaking) Close() error { return nil }

// Accounts are judged by how a stream has ended, which its reader has to tell apart.
func TestSocketNamesHowStreamsEnd(t *testing.T) {
	for err, want := range map[error]error{
		upstream.ErrCanceled: stream.ErrClient,
		upstream.ErrTimeout:  stream.ErrIdle,
		upstream.ErrNetwork:  stream.ErrReset,
		io.EOF:               nil,
	} {
		e := &ending{cause: io.ErrNoProgress}
		s := newServer(func(int, string) *httpmsg.Response {
			r := completed("resp_1", "hi")
			r.Body = &stream.Through{Src: &breaking{head: r.Body, err: err}, T: e, Watch: true}
			return r
		})
		s.send(t, `{"type":"response.create","model":"m","input":"x"}`)
		if e.cause != want {
			t.Errorf("%v: ended with %v, want %v", err, e.cause, want)
		}
	}
}

// waiter is a transform that has memory after some requests.
type waiter struct {
	ending
	asks int
}

func (w *waiter) Ready([]byte) bool { w.asks--; return w.asks < 0 }

func TestSocketWaitsForMemory(t *testing.T) {
	for asks, want := range map[int]error{2: nil, 1 << 20: stream.ErrMemory} {
		w := &waiter{asks: asks}
		s := newServer(func(int, string) *httpmsg.Response {
			r := completed("resp_1", "hi")
			r.Body = &stream.Through{Src: r.Body, T: w}
			return r
		})
		clock := fake.NewClock(s.now)
		s.Pause = clock
		c := s.send(t, `{"type":"response.create","model":"m","input":"x"}`)
		if w.cause != want || want == nil && clock.Pauses() != asks || len(c.Received) == 0 {
			t.Errorf("%d: ended with %v after %d pauses", asks, w.cause, clock.Pauses())
		}
	}
}

func TestSocketMayBeTurnedOff(t *testing.T) {
	s := newServer(nil)
	_, err := s.Connect(context.Background(), &auth.Call{Request: handshake(), Machine: snapshot.New(&store.Machine{Settings: store.Settings{ResponsesSocket: "off"}})})
	if e, ok := err.(*apierr.Error); !ok || e.Status != 426 {
		t.Errorf("got %v", err)
	}
}

// A turn allocates in proportion to its messages, and not to their square.
func TestSocketWorkIsLinear(t *testing.T) {
	allocated := func(items int) uint64 {
		s := newServer(func(n int, _ string) *httpmsg.Response {
			lines := slices.Repeat([]string{`{"type":"response.output_item.done","item":{"type":"message"}}`}, items)
			return completed(fmt.Sprintf("resp_%d", n), "hi", lines...)
		})
		create := `{"type":"response.create","model":"m","previous_response_id":"resp_1","input":[` + strings.Repeat(`{"n":[1,"\u00e4"]},`, items) + `0]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.send(t, `{"type":"response.create","model":"m","input":"x"}`, create)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(10)
	if short, long := allocated(1000), allocated(8000); long > 16*short {
		t.Errorf("a turn 8 times as long allocates %.0f times as much", float64(long)/float64(short))
	}
}

func FuzzSocketMessage(f *testing.F) {
	for _, seed := range []string{
		`{"type":"response.create","model":"m","input":"x"}`,
		`{"type":"response.create","model":"m","input":[{}, 1 ],"stream_id":"a","previous_response_id":"resp_1"}`,
		`{"type":"response.create","model":"m","generate":false,"input":null}`,
		`{"type":"response.inject","response_id":"resp_1","input":[]}`,
		"{\"ty\\u0070e\":\"response.create\",\"model\":\"m\",\"\\u0069nput\":\"\\ud83d\\ude00\"}",
	} {
		f.Add([]byte(seed), []byte("data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_2\"}}\n\n"))
	}
	f.Fuzz(func(t *testing.T, message, answer []byte) {
		s := newServer(func(n int, body string) *httpmsg.Response {
			if !gjson.Valid(body) {
				t.Errorf("%q became the request %q", message, body)
			}
			if n == 1 {
				return completed("resp_1", "hi")
			}
			r := events()
			r.Body = stream.FromBytes(bytes.Clone(answer))
			return r
		})
		c := s.send(t, `{"type":"response.create","model":"m","input":"x"}`, string(message), string(message))
		if s.conversations.bytes != 0 {
			t.Errorf("%d bytes are in memory", s.conversations.bytes)
		}
		if len(s.seen) > 1 && !strings.Contains(strings.Join(c.types()[3:], " "), "response") && !strings.Contains(strings.Join(c.types()[3:], " "), "error") {
			t.Errorf("no event ends the turn: %q", c.Received)
		}
	})
}

// A large message was in memory twice while its turn waited for memory or an upstream.
func TestRequestOfATurnIsNotACopyOfItsMessage(t *testing.T) {
	text := []byte(` { "model":"up/m" ,"type" : "response.create" , "input": [{"role":"user","content":"` + strings.Repeat("x", 5<<20) + `"}],"stream":false,"previous_response_id":"resp_1","temperature":1}`)
	set, err := jsonscan.Read(text, fields...)
	if err != nil {
		t.Fatal(err)
	}
	e := &event{Set: set, text: text}
	turn := &turn{session: &session{Sockets: &Sockets{}}, after: "resp_1"}
	body, err := turn.body(e)
	if err != nil || &body[0] != &text[0] {
		t.Errorf("the request of a message is a copy of it: %v", err)
	}
	if got := gjson.GetManyBytes(body, "model", "input.0.content", "previous_response_id", "temperature", "stream", "type"); !gjson.ValidBytes(body) ||
		got[0].Str != "up/m" || len(got[1].Str) != 5<<20 || got[2].Str != "resp_1" || got[3].Int() != 1 || !got[4].Bool() || got[5].Exists() {
		t.Errorf("%.100s … %.100s", body, body[len(body)-100:])
	}
	if !turn.lost || turn.items != nil {
		t.Error("a conversation that is too long is stored")
	}
}
