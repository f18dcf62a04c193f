package api

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// capturing returns a world whose machine stores the bodies of every call.
func capturing(t testing.TB) (w *world, id, key string) {
	w = newWorld(t)
	id, key = w.tenant(1)
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"capturePercent":100}`), nil)
	w.Add(time.Second)
	return w, id, key
}

func (w *world) captures(id string) []gjson.Result {
	w.t.Helper()
	r := w.do("GET", "/"+id+"/api/captures", adminToken, "")
	w.get(200, r, nil)
	return gjson.Get(r.body, "data").Array()
}

// captureOf returns the capture of the answer to a call.
func (w *world) captureOf(id string, r reply) gjson.Result {
	w.t.Helper()
	shown := w.do("GET", "/"+id+"/api/captures/"+r.header.Get("x-request-id"), adminToken, "")
	w.get(200, shown, nil)
	return gjson.Parse(shown.body)
}

const (
	chatAnswer = `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	chatStream = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hello\"}}]}\n\n" +
		"data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
)

func TestBodiesOfEveryKindOfCallAreStored(t *testing.T) {
	for _, tt := range []struct{ name, path, body, answer string }{
		{"embeddings", "/v1/embeddings", `{"model":"up/m","input":"hi"}`, embedding},
		{"chat", "/v1/chat/completions", `{"model":"up/m","messages":[{"role":"user","content":"hi"}]}`, chatAnswer},
		{"stream", "/v1/chat/completions", `{"model":"up/m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`, chatStream},
		{"stream whose usage is asked for", "/v1/chat/completions", `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"hi"}]}`, chatStream},
		{"translated", "/v1/messages", `{"model":"up/m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, chatAnswer},
		{"translated stream", "/v1/messages", `{"model":"up/m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, chatStream},
		{"Gemini", "/v1beta/models/up/m:streamGenerateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, chatStream},
		{"refused by the provider", "/v1/chat/completions", `{"model":"up/m","messages":[]}`, `{"error":{"message":"no messages"}}`},
		{"of an unknown model", "/v1/chat/completions", `{"model":"none/m","messages":[]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, id, key := capturing(t)
			w.Answer = func(*fake.Seen) fake.Answer {
				if strings.HasPrefix(tt.answer, "data:") {
					return fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "text/event-stream"}}, Body: tt.answer}
				}
				return fake.JSON(tt.answer)
			}
			r := w.do("POST", tt.path, key, tt.body)
			c := w.captureOf(id, r)
			if got := c.Get("request.text").Str; got != tt.body {
				t.Errorf("request: got %s", got)
			}
			if got := c.Get("answer.text").Str; got != r.body || c.Get("answer.cut").Bool() || c.Get("answer.bytes").Int() != int64(len(r.body)) {
				t.Errorf("answer: got %s\nsent: %s", got, r.body)
			}
			if !strings.HasPrefix(r.header.Get("content-type"), c.Get("answer.contentType").Str) || c.Get("request.contentType").Str != "application/json" {
				t.Errorf("got %s", c)
			}
			w.Add(11 * time.Second)
			w.embed(key)
			list := w.do("GET", "/"+id+"/api/requests?q="+r.header.Get("x-request-id"), adminToken, "")
			if got := gjson.Get(list.body, "data.0.captured"); !got.Bool() {
				t.Errorf("the request is not marked: %s", list.body)
			}
		})
	}
}

func TestBodiesAreStoredOnlyOnRequest(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	set := func(path, body string) {
		w.get(200, w.do("PUT", "/"+id+path, adminToken, body), nil)
		w.Add(time.Second)
	}
	settings := func(body string) {
		w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, body), nil)
		w.Add(time.Second)
	}
	var own struct{ ID, APIKey string }
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{}`), &own)
	calls := func(step string, want int) {
		t.Helper()
		before := len(w.captures(id))
		for _, k := range []string{key, own.APIKey} {
			w.embed(k)
		}
		if got := len(w.captures(id)) - before; got != want {
			t.Errorf("%s: %d of two calls are stored, want %d", step, got, want)
		}
	}
	calls("by default", 0)
	set("/api/keys/"+own.ID, `{"capturePercent":100}`)
	calls("with one key", 1)
	settings(`{"capturePercent":100}`)
	calls("with the machine", 2)
	set("/api/keys/"+own.ID, `{"capturePercent":0}`)
	calls("without one key", 1)
	set("/api/keys/"+own.ID, `{"capturePercent":null}`)
	calls("with the machine again", 2)
	settings(`{"capturePercent":null}`)
	calls("off again", 0)
}

// An isolate that knows the settings of a minute ago sends a capture that the object
// does not store.
func TestCaptureEndsAtOnce(t *testing.T) {
	w, id, key := capturing(t)
	w.embed(key)
	change := `{"method":"PATCH","route":"/api/settings","body":{"capturePercent":0}}`
	if status, answer, err := w.Objects.Call(context.Background(), id, "manage", []byte(change)); status != 200 || err != nil {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	w.embed(key)
	if n := len(w.captures(id)); n != 1 {
		t.Errorf("%d captures", n)
	}
}

func TestShareOfCallsIsStored(t *testing.T) {
	w, id, key := capturing(t)
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"capturePercent":25}`), nil)
	w.Add(time.Second)
	for range 400 {
		w.embed(key)
	}
	if n := len(w.captures(id)); n < 60 || n > 140 {
		t.Errorf("%d of 400 calls are stored, want about 100", n)
	}
}

func TestStoredBodiesHaveNoCredentials(t *testing.T) {
	w, id, key := capturing(t)
	secrets := []string{key, "upstream-key-0", "sk-ant-api03-abcdefghijklmnop", "ghp_0123456789abcdefghij"}
	text := strings.Join(secrets, " and ")
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: strings.Replace(chatAnswer, "hello", text, 1)}
	}
	r := w.do("POST", "/v1/chat/completions", key, `{"model":"up/m","messages":[{"role":"user","content":"`+text+`"}]}`)
	c := w.captureOf(id, r)
	for _, s := range secrets {
		if strings.Contains(c.Raw, s) {
			t.Errorf("has %s", s)
		}
	}
	if !strings.Contains(c.Get("request.text").Str, "*** and ***") || !strings.Contains(c.Get("answer.text").Str, "*** and ***") {
		t.Errorf("got %s", c)
	}
	if !strings.Contains(r.body, secrets[2]) {
		t.Errorf("the client's answer is changed: %s", r.body)
	}
}

func TestStoredBodiesAreSealedForTheirMachineAndRequest(t *testing.T) {
	w, id, key := capturing(t)
	other, _ := w.tenant(0)
	first := w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a telling text"}`).header.Get("x-request-id")
	second := w.embed(key).header.Get("x-request-id")
	rows := w.Objects.Storage(id)
	stored, err := rows.Get("capture:" + first)
	if err != nil || strings.Contains(string(stored), "telling") || !strings.HasPrefix(string(stored), "v1.") {
		t.Fatalf("got %.80s", stored)
	}
	get := func(machine, request string) int {
		return w.do("GET", "/"+machine+"/api/captures/"+request, adminToken, "").status
	}
	if got := get(other, first); got != 404 {
		t.Errorf("another machine: %d", got)
	}
	rows.Rows["capture:"+second] = stored
	if got := get(id, second); got != 503 {
		t.Errorf("under another request: %d", got)
	}
	if got := get(id, first); got != 200 {
		t.Errorf("in its place: %d", got)
	}
}

func TestOnlyItsManagersSeeStoredBodies(t *testing.T) {
	w, id, key := capturing(t)
	request := w.embed(key).header.Get("x-request-id")
	_, foreign := w.tenant(0)
	var manage, export struct{ ID, APIKey string }
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"scopes":["manage"]}`), &manage)
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"scopes":["manage","export"]}`), &export)
	for _, tt := range []struct {
		name, key string
		want      int
	}{{"no key", "", 401}, {"a data key", key, 403}, {"a key of another machine", foreign, 401}, {"a manage key", manage.APIKey, 403}, {"a manage key with export", export.APIKey, 200}, {"the operator", adminToken, 200}} {
		if got := w.do("GET", "/"+id+"/api/captures/"+request, tt.key, "").status; got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
	audit := w.do("GET", "/"+id+"/api/audit", adminToken, "")
	var looks []string
	for _, a := range gjson.Get(audit.body, "data").Array() {
		if a.Get("action").Str == "GET /api/captures/{id}" {
			looks = append(looks, a.Get("actor").Str[:4]+" "+a.Get("target").Str)
		}
	}
	if want := fmt.Sprint([]string{"oper " + request, "key: " + request}); fmt.Sprint(looks) != want {
		t.Errorf("got %v, want %v", looks, want)
	}
	for _, format := range []string{"GET", "POST"} {
		body := ""
		if format == "POST" {
			body = `{"passphrase":"a long passphrase"}`
		}
		if r := w.do(format, "/"+id+"/api/export", adminToken, body); r.status != 200 || strings.Contains(r.body, request) || strings.Contains(r.body, "capturePercent") {
			t.Errorf("%s export: %d %s", format, r.status, r.body)
		}
	}
}

func TestStoredBodiesEnd(t *testing.T) {
	hours := func(n int) func(w *world, id, request string) {
		return func(w *world, _, _ string) { w.Add(time.Duration(n) * time.Hour) }
	}
	for _, tt := range []struct {
		name string
		end  func(w *world, id, request string)
		want int
	}{
		{"before their time", hours(23), 200},
		{"after their time", hours(24), 404},
		{"deleted", func(w *world, id, request string) {
			w.get(204, w.do("DELETE", "/"+id+"/api/captures/"+request, adminToken, ""), nil)
		}, 404},
		{"all deleted", func(w *world, id, _ string) {
			w.get(204, w.do("DELETE", "/"+id+"/api/captures", adminToken, ""), nil)
		}, 404},
		{"with the machine", func(w *world, id, _ string) {
			w.get(204, w.do("DELETE", "/api/machines/"+id, adminToken, ""), nil)
			for _, row := range w.Objects.Storage(id).Listed("") {
				if strings.HasPrefix(row.Key, "capture") {
					w.t.Errorf("the row %s is left", row.Key)
				}
			}
		}, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, id, key := capturing(t)
			request := w.embed(key).header.Get("x-request-id")
			tt.end(w, id, request)
			if got := w.do("GET", "/"+id+"/api/captures/"+request, adminToken, "").status; got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// A creation by stream has its outcome stored, whether its bodies are or not.
func TestCapturedStreamOfACreationEndsItsClaim(t *testing.T) {
	w, _, key := capturing(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "text/event-stream"}}, Body: "data: {\"type\":\"image_generation.completed\",\"b64_json\":\"aGk=\"}\n\ndata: [DONE]\n\n"}
	}
	for _, want := range []string{"200 ", "409 idempotency_done"} {
		r := w.do("POST", "/v1/images/generations", key, `{"model":"up/m","prompt":"x","stream":true}`, httpmsg.Field{Name: "idempotency-key", Value: "one"})
		if got := fmt.Sprint(r.status, " ", gjson.Get(r.body, "error.code").Str); got != want {
			t.Errorf("got %s %s, want %s", got, r.body, want)
		}
	}
}

// Each turn over a WebSocket of the Responses API is a call with bodies of its own.
func TestBodiesOfTurnsOverWebSocketAreStored(t *testing.T) {
	recorded, err := os.ReadFile("../../pkg/llm/testdata/streams/responses/text.sse")
	if err != nil {
		t.Fatal(err)
	}
	w, id, key := capturing(t)
	w.Answer = func(*fake.Seen) fake.Answer { return fake.OK("text/event-stream", string(recorded)) }
	c := &fake.Socket{Messages: []string{
		`{"type":"response.create","model":"up/m","input":"first question","store":false}`, "",
		`{"type":"response.create","model":"up/m","input":"second question","store":false}`, "",
	}}
	if resp := w.connect("/v1/responses", key, c); resp.Status != 101 {
		t.Fatal(resp.Status)
	}
	all := w.captures(id)
	if len(all) != 2 {
		t.Fatalf("%d captures of two turns", len(all))
	}
	for i, want := range []string{"second question", "first question"} {
		shown := w.do("GET", "/"+id+"/api/captures/"+all[i].Get("id").Str, adminToken, "")
		if got := gjson.Parse(shown.body); !strings.Contains(got.Get("request.text").Str, want) || !strings.Contains(got.Get("answer.text").Str, "response.completed") {
			t.Errorf("turn %d: %s", i, shown.body)
		}
	}
}
