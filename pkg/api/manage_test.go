package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	. "weir/pkg/api"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/machine/rpc"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/v1/embeddings"
	"weir/pkg/v1/models"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// world is the management over objects in process and a scripted upstream.
type world struct {
	*testing.T
	*fake.Clock
	*fake.Upstream
	local  *objects.Local
	h      *Handler
	test   *Connectivity
	listed *ProviderModels
	lists  *models.Handler
	pool   *accounts.Pool
	id     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := fake.NewClock(time.UnixMilli(1_800_000_000_000))
	w := &world{T: t, Clock: clock, Upstream: &fake.Upstream{Clock: clock}}
	kv := fake.NewKV()
	w.local = local.Machines(t, w.Now, kv)
	cache := &snapshot.Cache{KV: kv, Object: w.local, Now: w.Now}
	pool := &accounts.Pool{Doer: w.Upstream, Object: w.local, Keys: sealed.Keys(t), Now: w.Now}
	lists := &models.Handler{Live: &models.LiveLists{Do: w.Upstream, Credentials: &accounts.Credentials{Pool: pool}, Now: w.Now}, Now: w.Now}
	embed := &embeddings.Handler{Accounts: pool}
	w.h = &Handler{Objects: w.local, Cache: cache, KeySecret: local.KeySecret}
	w.test = &Connectivity{Objects: w.local, Models: lists, Embeddings: embed.Create, Now: w.Now}
	w.lists, w.pool = lists, pool
	w.listed = &ProviderModels{Models: lists, Cache: cache}
	return w
}

// answers makes the upstream answer after 120 ms.
func (w *world) answers(a fake.Answer) {
	a.Takes = 120 * time.Millisecond
	w.Answer = func(*fake.Seen) fake.Answer { return a }
}

// call runs a handler as the gateway does.
func (w *world) call(f func(context.Context, *auth.Call) (*httpmsg.Response, error), method, route, query, body string, set ...func(*auth.Call)) (int, gjson.Result, httpmsg.Header) {
	w.Helper()
	r := &httpmsg.Request{Method: method, Query: query, Body: stream.FromString(body), Length: int64(len(body))}
	r.Route = route
	c := &auth.Call{Request: r, Operator: true, MachineID: w.id, MaxBody: 1 << 20}
	for _, s := range set {
		s(c)
	}
	resp, err := f(context.Background(), c)
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Status, gjson.Parse(`{"code":"` + e.Code + `","param":"` + e.Param + `"}`), nil
	}
	if err != nil {
		w.Fatal(err)
	}
	b, err := stream.ReadAll(resp.Body, 1<<20)
	if err != nil {
		w.Fatal(err)
	}
	return resp.Status, gjson.ParseBytes(b), resp.Header
}

func param(id string) func(*auth.Call) { return func(c *auth.Call) { c.Params = []string{id} } }
func header(name, value string) func(*auth.Call) {
	return func(c *auth.Call) { c.Header.Set(name, value) }
}

// machine makes a machine.
func (w *world) machine() {
	w.Helper()
	status, a, _ := w.call(w.h.CreateMachine, "POST", "/api/machines", "", `{"name":"demo"}`)
	if status != 201 {
		w.Fatalf("got %d %s", status, a.Raw)
	}
	w.id = a.Get("machineId").Str
}

// connect creates a connection and returns its id.
func (w *world) connect(body string) string {
	w.Helper()
	status, a, _ := w.call(w.h.Forward, "POST", "/api/providers", "", body)
	if status != 201 {
		w.Fatalf("got %d %s", status, a.Raw)
	}
	return a.Get("id").Str
}

func TestMachines(t *testing.T) {
	w := newWorld(t)
	w.machine()
	_, first, _ := w.call(w.h.CreateMachine, "POST", "/api/machines", "", ``, header("idempotency-key", "once"))
	status, again, _ := w.call(w.h.CreateMachine, "POST", "/api/machines", "", ``, header("idempotency-key", "once"))
	if status != 201 || first.Raw != again.Raw || !rpc.IsMachineID(first.Get("machineId").Str) {
		t.Errorf("got %s, then %d %s", first.Raw, status, again.Raw)
	}
	for _, name := range []string{"withoutKey", "mutationId"} { // of the object alone
		if status, a, _ := w.call(w.h.CreateMachine, "POST", "/api/machines", "", `{"`+name+`":true}`); status != 400 {
			t.Errorf("%s: got %d %s", name, status, a.Raw)
		}
	}
	const moved = "movedmachine0001"
	for _, want := range []int{201, 409} {
		status, a, _ := w.call(w.h.CreateMachine, "POST", "/api/machines", "", `{"name":"moved","machineId":"`+moved+`"}`)
		if status != want || want == 201 && a.Get("machineId").Str != moved {
			t.Errorf("a machine that moves here: got %d %s, want %d", status, a.Raw, want)
		}
	}
	if status, _, _ := w.call(w.h.DeleteMachine, "DELETE", "/api/machines/{id}", "", "", param(moved)); status != 204 {
		t.Errorf("delete: got %d", status)
	}
	w.h.Version = `1.0 "next"`
	if status, a, _ := w.call(w.h.ShowVersion, "GET", "/api/version", "", ""); status != 200 || a.Get("version").Str != w.h.Version {
		t.Errorf("version: %d %s", status, a)
	}
	for _, newer := range []string{"", "v9.0.0"} {
		w.h.Newer = func() string { return newer }
		if _, a, _ := w.call(w.h.ShowVersion, "GET", "/api/version", "", ""); a.Get("newer").Str != newer || a.Get("newer").Exists() != (newer != "") {
			t.Errorf("newer release %q: %s", newer, a)
		}
	}
	if _, list, _ := w.call(w.h.Machines, "GET", "/api/machines", "", ""); len(list.Get("data").Array()) != 2 {
		t.Errorf("list: %s", list.Raw)
	}
	for _, tt := range []struct{ body, param string }{{`{"id":"x"}`, "id"}, {`{"mutationId":"x"}`, "mutationId"}, {`{"machineId":"registry"}`, "machineId"}, {`{"machineId":7}`, "machineId"}, {`[]`, ""}, {`nonsense`, ""}, {`{"scopes":["root"]}`, "scopes"}, {`{"name":"a","name":"b"}`, ""}, {`{"name":"a"}{}`, ""}, {`null`, ""}} {
		if status, a, _ := w.call(w.h.CreateMachine, "POST", "/api/machines", "", tt.body); status != 400 || a.Get("param").Str != tt.param {
			t.Errorf("%s: got %d %s", tt.body, status, a.Raw)
		}
		if status, a, _ := w.call(w.h.CreateMachine, "POST", "/api/machines", "", tt.body, header("idempotency-key", "bad")); status != 400 {
			t.Errorf("%s, named: got %d %s", tt.body, status, a.Raw)
		}
	}
	for _, tt := range []struct {
		id, body    string
		status      int
		name, param string
	}{
		{w.id, `{"name":"  Ünïcode 🚀 "}`, 200, "Ünïcode 🚀", ""}, {w.id, `{"name":null}`, 200, "", ""},
		{w.id, `{}`, 400, "", "name"}, {w.id, ``, 400, "", ""}, {w.id, `{"name":"a","state":"b"}`, 400, "", "state"},
		{w.id, `{"name":"` + strings.Repeat("a", 201) + `"}`, 400, "", "name"}, {w.id, `{"name":"a","name":"b"}`, 400, "", "name"},
		{"../../x", `{"name":"a"}`, 404, "", ""}, {"zzzzzzzz00000000", `{"name":"a"}`, 404, "", ""},
	} {
		status, a, _ := w.call(w.h.RenameMachine, "PATCH", "/api/machines/{id}", "", tt.body, param(tt.id))
		if status != tt.status || a.Get("name").Str != tt.name || a.Get("param").Str != tt.param {
			t.Errorf("rename %s: %s: got %d %s", tt.id, tt.body, status, a.Raw)
		}
	}
	for id, want := range map[string]int{"../../x": 404, "zzzzzzzz00000000": 404, w.id: 204} {
		if status, a, _ := w.call(w.h.DeleteMachine, "DELETE", "/api/machines/{id}", "", "", param(id)); status != want {
			t.Errorf("delete %s: got %d %s, want %d", id, status, a.Raw, want)
		}
	}
	if status, _, _ := w.call(w.h.Forward, "GET", "/api/providers", "", ""); status != 404 {
		t.Errorf("a machine that is gone: %d", status)
	}
}

func TestForwardedCalls(t *testing.T) {
	w := newWorld(t)
	w.machine()
	id := w.connect(`{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`)
	status, a, h := w.call(w.h.Forward, "GET", "/api/providers/{id}", "", "", param(id))
	if status != 200 || h.Get("etag") == "" || h.Get("content-type") != "application/json" || strings.Contains(a.Raw, "0123456789") {
		t.Fatalf("got %d %s %v", status, a.Raw, h)
	}
	tag := h.Get("etag")
	put := func(body string, set ...func(*auth.Call)) (int, gjson.Result) {
		status, a, _ := w.call(w.h.Forward, "PUT", "/api/providers/{id}", "", body, append(set, param(id))...)
		return status, a
	}
	if status, _ := put(`{"name":"a"}`, header("if-match", tag)); status != 200 {
		t.Errorf("fresh: %d", status)
	}
	if status, _ := put(`{"name":"b"}`, header("if-match", tag)); status != 412 {
		t.Errorf("stale: %d", status)
	}
	if status, a := put(`{"name":"b","what":1}`); status != 400 || a.Get("param").Str != "what" {
		t.Errorf("unknown field: %d %s", status, a.Raw)
	}
	for _, key := range []string{"with blank", "é", strings.Repeat("x", 256)} {
		if status, a := put(`{"name":"c"}`, header("idempotency-key", key)); status != 400 || a.Get("param").Str != "idempotency-key" {
			t.Errorf("key %q: %d %s", key, status, a.Raw)
		}
	}
	for _, q := range []string{"provider=a&provider=b", "%zz=1"} {
		if status, _, _ := w.call(w.h.Forward, "GET", "/api/providers", q, ""); status != 400 {
			t.Errorf("%s: %d", q, status)
		}
	}
	if status, _, _ := w.call(w.h.Forward, "DELETE", "/api/providers/{id}", "", "", param(id)); status != 204 {
		t.Errorf("delete: %d", status)
	}
	w.local.Down = true
	if status, _, _ := w.call(w.h.Forward, "GET", "/api/providers", "", ""); status != 503 {
		t.Errorf("object down: %d", status)
	}
}

func TestConnectivity(t *testing.T) {
	const good = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,0.2]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`
	own := `{"provider":"openai-compatible-0123abcd","apiKey":"sk-0123456789abcdef","providerSpecificData":{"baseUrl":"https://api.example.com/v1","enabledModels":["my-embed-model"]}}`
	bare := strings.Replace(own, `,"enabledModels":["my-embed-model"]`, "", 1)
	refused := `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]`
	known := `{"provider":"voyage","apiKey":"sk-0123456789abcdef"}`
	lost := fake.Answer{Err: upstream.ErrNetwork}
	says := func(status int, body string) fake.Answer { return fake.Reply(status, body) }
	tests := []struct {
		name, conn string
		answer     fake.Answer
		want       string
	}{
		{"works", known, says(200, good), `{"ok":true,"latencyMs":120,"status":200,"error":null}`},
		{"wrong key", known, says(401, `{"error":{"message":"Incorrect key sk-0123456789abcdef"}}`), `{"ok":false,"latencyMs":120,"status":401,"error":"unauthorized"}`},
		{"wrong key, told with 400", known, says(400, refused), `{"ok":false,"latencyMs":120,"status":401,"error":"unauthorized"}`},
		{"limited", known, says(429, `{}`), `{"ok":false,"latencyMs":120,"status":429,"error":"rate_limited"}`},
		{"unknown model", known, says(404, `{}`), `{"ok":false,"latencyMs":120,"status":404,"error":"not_found"}`},
		{"refused", known, lost, `{"ok":false,"latencyMs":240,"status":0,"error":"connection_failed"}`},
		{"own address works", own, says(200, good), `{"ok":true,"latencyMs":120,"status":200,"error":null}`},
		{"own address is inactive", strings.Replace(own, `{`, `{"isActive":false,`, 1), says(200, good), `{"ok":true,"latencyMs":120,"status":200,"error":null}`},
		// Failures at a base URL have different errors; the latency of a call
		// without an answer is rounded.
		{"own address refuses the key", own, says(401, `{"error":{"message":"no"}}`), `{"ok":false,"latencyMs":120,"status":401,"error":"unauthorized"}`},
		{"own address forbids", own, says(403, `{"error":{"message":"no"}}`), `{"ok":false,"latencyMs":120,"status":403,"error":"unauthorized"}`},
		{"own address has no such path", own, says(404, `not found`), `{"ok":false,"latencyMs":120,"status":404,"error":"not_found"}`},
		{"own address has no credit", own, says(402, `{}`), `{"ok":false,"latencyMs":120,"status":402,"error":"quota"}`},
		{"own address fails", own, says(500, `panic`), `{"ok":false,"latencyMs":120,"status":500,"error":"failed"}`},
		{"own address refuses to connect", own, lost, `{"ok":false,"latencyMs":1000,"status":0,"error":"connection_failed"}`},
		{"own address is silent", own, fake.Answer{Err: upstream.ErrTimeout}, `{"ok":false,"latencyMs":1000,"status":0,"error":"timeout"}`},
		{"own address has a web page", own, says(200, `<html>router login</html>`), `{"ok":false,"latencyMs":1000,"status":0,"error":"invalid_answer"}`},
		{"list is a web page", bare, says(200, `<html>router login</html>`), `{"ok":false,"latencyMs":1000,"status":0,"error":"invalid_answer"}`},
		{"own address redirects", own, says(302, ``), `{"ok":false,"latencyMs":1000,"status":0,"error":"connection_failed"}`},
		// Without a model the list of models is asked.
		{"refuses the model", known, says(403, `{"error":{"message":"no","code":"model_not_found"}}`), `{"ok":false,"latencyMs":120,"status":403,"error":"rejected"}`},
		{"list refuses the key", bare, says(401, `{}`), `{"ok":false,"latencyMs":120,"status":401,"error":"unauthorized"}`},
		{"list refuses the key with 400", bare, says(400, refused), `{"ok":false,"latencyMs":120,"status":401,"error":"unauthorized"}`},
		{"list is not found", bare, says(404, `{}`), `{"ok":false,"latencyMs":120,"status":404,"error":"not_found"}`},
		{"list is empty", bare, says(200, `{"data":[]}`), `{"ok":false,"latencyMs":120,"status":200,"error":"unsupported"}`},
		{"list of a server that cannot be reached", bare, lost, `{"ok":false,"latencyMs":1000,"status":0,"error":"connection_failed"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.machine()
			id := w.connect(tt.conn)
			w.answers(tt.answer)
			status, a, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param(id))
			got := gjson.Get(a.Raw, "@this").Raw
			for _, field := range []string{`,"message"`, `,"model"`} {
				if i := strings.Index(got, field); i > 0 {
					got = got[:i] + "}"
				}
			}
			if ok := a.Get("ok").Bool(); ok == (a.Get("message").Str != "") {
				t.Errorf("message %q", a.Get("message").Str)
			}
			_, row, _ := w.call(w.h.Forward, "GET", "/api/providers/{id}", "", "", param(id))
			health := map[string]string{"": "ready", "unauthorized": "key_refused", "quota": "out_of_credit", "failed": "failing", "invalid_answer": "failing", "timeout": "unreachable", "connection_failed": "unreachable"}[a.Get("error").Str]
			if health == "" {
				health = "untested"
			}
			if a.Get("error").Str == "not_found" && tt.conn == bare {
				health = "failing"
			}
			if row.Get("health").Str != health {
				t.Errorf("health %q, want %q", row.Get("health").Str, health)
			}
			if status != 200 || got != tt.want {
				t.Errorf("got %d %s, want %s", status, a.Raw, tt.want)
			}
			if len(w.Seen) == 0 || tt.conn != bare && gjson.Get(w.Seen[0].Body, "model").Str == "" || strings.Contains(a.Raw, "sk-0123") {
				t.Errorf("%d calls, answer %s", len(w.Seen), a.Raw)
			}
			if strings.Contains(tt.conn, "example.com") && !strings.HasPrefix(w.Seen[0].URL, "https://api.example.com/v1/") {
				t.Errorf("sent to %s", w.Seen[0].URL)
			}
		})
	}
}

func TestConnectivityOfChatProviders(t *testing.T) {
	w := newWorld(t)
	w.machine()
	var call *auth.Call
	var sent string
	answer := `{"choices":[{"message":{"role":"assistant","content":null,"reasoning_content":"hm"},"finish_reason":"length"}]}`
	w.test.Chat = func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
		call = c
		b, err := c.ReadBody()
		sent = string(b)
		return &httpmsg.Response{Status: 200, Body: stream.FromString(answer)}, err
	}
	w.connect(`{"provider":"anthropic","apiKey":"sk-other-0123456789"}`)
	id := w.connect(`{"provider":"anthropic","apiKey":"sk-0123456789abcdef","providerSpecificData":{"prefix":"work"}}`)
	run := func(body string) gjson.Result {
		status, a, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", body, param(id))
		if status != 200 {
			t.Fatalf("got %d %s", status, a.Raw)
		}
		return a
	}
	if a := run(``); !a.Get("ok").Bool() {
		t.Errorf("a reasoning-only answer: %s", a.Raw)
	}
	if gjson.Get(sent, "max_tokens").Int() != 16 || !strings.HasPrefix(gjson.Get(sent, "model").Str, "work/") {
		t.Errorf("sent %s", sent)
	}
	if m := call.Machine; len(m.Connections) != 1 || m.Connections[0].ID != id {
		t.Error("another connection could have answered")
	}
	run(`{"model":"claude-haiku-4-5"}`)
	if gjson.Get(sent, "model").Str != "work/claude-haiku-4-5" {
		t.Errorf("sent %s", sent)
	}
	for _, answer = range []string{`<html>`, `{"choices":[]}`, `{}`, `"text"`} {
		if a := run(``); a.Get("ok").Bool() || a.Get("error").Str != "invalid_answer" || a.Get("status").Int() != 200 {
			t.Errorf("%s: got %s", answer, a.Raw)
		}
	}
	for _, body := range []string{`{"model":5}`, `{"url":"https://evil.example.com"}`, `{"model":"a/../b"}`, `[1]`} {
		if status, _, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", body, param(id)); status != 400 {
			t.Errorf("%s: got %d", body, status)
		}
	}
	w.Add(time.Minute)
	for range 10 {
		w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param(id))
	}
	if status, _, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param(id)); status != 429 {
		t.Errorf("the eleventh of a minute: %d", status)
	}
	if status, _, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param("nobody")); status != 404 {
		t.Errorf("unknown connection: %d", status)
	}
}

// The first model of the catalogue is not one that every account can call.
func TestConnectionTestTakesTheModelOfTheRow(t *testing.T) {
	const list = `{"models":[{"name":"models/deep-research-max-preview-04-2026","supportedGenerationMethods":["generateContent"]},{"name":"models/gemini-9","supportedGenerationMethods":["generateContent"]}]}`
	gone := &apierr.Error{Status: 404, Code: "model_not_found", Message: "gone"}
	for _, tt := range []struct{ conn, list, want string }{
		{`{"provider":"gemini","apiKey":"AIza-0123456789abcdef"}`, list, "gemini/gemini-2.5-flash-lite gemini/gemini-9"},
		{`{"provider":"gemini","apiKey":"AIza-0123456789abcdef","providerSpecificData":{"enabledModels":["gemini/mine"]}}`, list, "gemini/mine"},
		{`{"provider":"openai","apiKey":"sk-0123456789abcdef","providerSpecificData":{"enabledModels":["gpt-image-2","openai/gpt-9"]}}`, `{"data":[{"id":"gpt-4o"}]}`, "openai/gpt-9"},
		{`{"provider":"openai","apiKey":"sk-0123456789abcdef","providerSpecificData":{"enabledModels":["gpt-image-2","tts-1"]}}`, `{"data":[{"id":"gpt-4o"}]}`, ""},
		{`{"provider":"bedrock","accessKeyId":"AKIA0123456789ABCDEF","secretAccessKey":"0123456789abcdef","providerSpecificData":{"region":"eu-west-1"}}`,
			`{"modelSummaries":[{"modelId":"ai21.jamba"},{"modelId":"eu.amazon.nova-micro-v1:0"}]}`, "bedrock/amazon.nova-micro-v1:0 bedrock/eu.amazon.nova-micro-v1:0"},
		{`{"provider":"azure","apiKey":"0123456789abcdef","providerSpecificData":{"resource":"r"}}`, `{"data":[{"id":"gpt-4o"}]}`, ""},
	} {
		w := newWorld(t)
		w.machine()
		w.answers(fake.Reply(200, tt.list))
		var called []string
		w.test.Chat = func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
			b, _ := c.ReadBody()
			called = append(called, gjson.GetBytes(b, "model").Str)
			return nil, gone
		}
		id := w.connect(tt.conn)
		_, a, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param(id))
		if got := strings.Join(called, " "); got != tt.want || a.Get("ok").Bool() != (tt.want == "") {
			t.Errorf("%s: called %q, want %q: %s", tt.conn, got, tt.want, a.Raw)
		}
	}
}

func TestConnectionTestOfMediaProviders(t *testing.T) {
	for provider, url := range map[string]string{
		"runway": "https://api.dev.runwayml.com/v1/organization", "fal": "https://api.fal.ai/v1/models/pricing?endpoint_id=fal-ai/flux/dev", "assemblyai": "https://api.assemblyai.com/v2/transcript?limit=1",
		"luma": "https://api.lumalabs.ai/dream-machine/v1/credits", "bfl": "https://api.bfl.ai/v1/credits", "stability": "https://api.stability.ai/v1/user/balance",
		"cartesia": "https://api.cartesia.ai/voices", "inworld": "https://api.inworld.ai/voices/v1/voices",
	} {
		for status, want := range map[int]string{200: "", 401: "unauthorized", 403: "unauthorized", 500: "failed"} {
			w := newWorld(t)
			w.machine()
			w.answers(fake.Reply(status, `{"id":1}`))
			id := w.connect(`{"provider":"` + provider + `","apiKey":"0123456789abcdef"}`)
			_, a, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param(id))
			if a.Get("error").Str != want || a.Get("ok").Bool() != (want == "") || len(w.Seen) != 1 || w.Seen[0].URL != url || w.Seen[0].Method != "GET" {
				t.Errorf("%s, status %d: got %s after %+v", provider, status, a.Raw, w.Seen)
			}
		}
	}
}

// The models of a new connection, as the operator.
func TestModelsOfANewConnection(t *testing.T) {
	w := newWorld(t)
	w.machine()
	w.answers(fake.JSON(`{"data":[{"id":"m1"},{"id":"m2"}]}`))
	id := w.connect(`{"provider":"openai-compatible-0123abcd","apiKey":"sk-0123456789abcdef","providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`)
	status, a, _ := w.call(w.listed.List, "GET", "/api/providers/{id}/models", "", "", param(id))
	if status != 200 || a.Get("data.#").Int() != 2 || a.Get("source").Str != "upstream" {
		t.Errorf("got %d %s", status, a.Raw)
	}
	if status, _, _ := w.call(w.listed.List, "GET", "/api/providers/{id}/models", "", "", param("nobody")); status != 404 {
		t.Errorf("unknown: %d", status)
	}
}

// A regression: a wrong CREDENTIALS_KEY was shown as a provider that cannot be reached,
// and stored as the state of the account.
func TestConnectionTestNamesWrongCredentialsKey(t *testing.T) {
	for _, conn := range []string{
		`{"provider":"voyage","apiKey":"sk-0123456789abcdef"}`,
		`{"provider":"openai-compatible-0123abcd","apiKey":"sk-0123456789abcdef","providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`,
	} {
		w := newWorld(t)
		w.machine()
		id := w.connect(conn)
		w.pool.Keys = sealed.Keys(t, strings.Repeat("w", 40))
		_, a, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param(id))
		_, row, _ := w.call(w.h.Forward, "GET", "/api/providers/{id}", "", "", param(id))
		if a.Get("error").Str != "no_credentials" || !strings.Contains(a.Get("message").Str, "CREDENTIALS_KEY") || row.Get("health").Str != "untested" || len(w.Seen) != 0 {
			t.Errorf("%s: %s, health %s, %d calls", conn, a.Raw, row.Get("health"), len(w.Seen))
		}
	}
}

// A regression: a price set under the prefix of a connection did not hold for its test.
func TestConnectionTestCostsTheOwnPrice(t *testing.T) {
	w := newWorld(t)
	w.machine()
	id := w.connect(`{"provider":"openai-compatible-0123abcd","apiKey":"sk-0123456789abcdef","providerSpecificData":{"baseUrl":"https://api.example.com/v1","prefix":"mine","enabledModels":["my-embed-model"]}}`)
	if status, a, _ := w.call(w.h.Forward, "PATCH", "/api/settings", "", `{"modelPrices":{"mine/my-embed-model":"1/0"}}`); status != 200 {
		t.Fatalf("got %d %s", status, a.Raw)
	}
	w.answers(fake.JSON(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}`))
	var price catalog.Price
	embed := w.test.Embeddings
	w.test.Embeddings = func(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
		targets, err := routing.Resolve("openai-compatible-0123abcd/my-embed-model", c.Machine, catalog.Embedding, nil)
		if err == nil {
			price = targets[0].OwnPrice(c.Machine)
		}
		return embed(ctx, c)
	}
	if _, a, _ := w.call(w.test.Test, "POST", "/api/providers/{id}/test", "", "", param(id)); !a.Get("ok").Bool() || price != "1/0" {
		t.Errorf("%s, price %q", a.Raw, price)
	}
}
