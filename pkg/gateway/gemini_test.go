package gateway

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// geminiFixture serves the routes of Gemini, which record the query that reaches
// them. A model named "limited" fails.
func geminiFixture() (f *fixture, queries *[]string) {
	f, queries = newFixture(), &[]string{}
	h := func(name string) endpoint.Handler {
		return func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
			f.handled = append(f.handled, name+" "+strings.Join(c.Params, "|"))
			*queries = append(*queries, c.Query)
			if len(c.Params) > 0 && strings.HasPrefix(c.Params[0], "limited") {
				e := apierr.New(429, "rate_limit_exceeded", "Slow <down>.")
				e.RetryIn(1500 * time.Millisecond)
				return nil, e
			}
			return &httpmsg.Response{Status: 200, Body: stream.FromString("{}")}, nil
		}
	}
	f.SetRoutes([]Route{
		{Pattern: "/v1/models", Access: endpoint.List, Models: true, Cors: endpoint.ListCors, Methods: []Method{{Name: "GET", Handler: h("v1 list")}}},
		{Pattern: "/v1/models/{kind}", Access: endpoint.List, Models: true, Cors: endpoint.ListCors, Methods: []Method{{Name: "GET", Handler: h("v1 kind")}}},
		{Pattern: "/v1beta/models", Access: endpoint.List, Dialect: llm.Gemini, Cors: endpoint.OpenCors, Methods: []Method{{Name: "GET", Handler: h("list")}}},
		{Pattern: "/v1beta/models/{model...}", Access: endpoint.Data, Dialect: llm.Gemini, Cors: endpoint.OpenCors, Methods: []Method{
			{Name: "GET", Handler: h("model")}, {Name: "POST", Handler: h("call")},
		}},
	})
	return f, queries
}

func TestGeminiPaths(t *testing.T) {
	for _, tt := range []struct{ request, want string }{
		{"GET /v1beta/models", "list "},
		{"GET /v1alpha/models", "list "},
		{"GET /" + machineID + "/v1beta/models", "list "},
		{"GET /" + machineID + "/v1alpha/models/a/b", "model a/b"},
		{"GET /v1beta/models/openai/gpt-4o", "model openai/gpt-4o"},
		{"POST /v1beta/models/gemini-2.5-flash:generateContent", "call gemini-2.5-flash:generateContent"},
		{"POST /v1beta/models/openai/gpt-4o:generateContent", "call openai/gpt-4o:generateContent"},
		{"POST /v1beta/models/openai%2Fgpt-4o:generateContent", "call openai/gpt-4o:generateContent"},
		{"POST /v1beta/models/openai%2Fgpt-4o%3AgenerateContent", "call openai/gpt-4o:generateContent"},
		{"POST /v1beta/models/or/meta/llama:free:countTokens", "call or/meta/llama:free:countTokens"},
		{"POST /" + machineID + "/v1beta/models/a/b:generateContent", "call a/b:generateContent"},
		{"POST /" + machineID + "/v1/models/a/b:generateContent", "call a/b:generateContent"},
		{"POST /v1/models/a/b:generateContent", "call a/b:generateContent"},
		{"POST /v1/v1/models/a:generateContent", "call a:generateContent"},
		{"POST /v1beta/openai/gpt-4o:generateContent", "call openai/gpt-4o:generateContent"},
		{"POST /" + machineID + "/v1alpha/or/meta/llama:free:embedContent", "call or/meta/llama:free:embedContent"},
		{"POST /v1beta/tunedModels/a:generateContent", ""},
		{"POST /v1beta/files/a:register", ""},
		{"POST /v1beta/files", ""},
		{"POST /v1beta/gpt-4o:generateContent", ""},
		{"GET /v1beta/openai/gpt-4o:generateContent", ""},
		{"GET /v1/models", "v1 list "},
		{"GET /v1/models/tts", "v1 kind tts"},
		{"POST /v1/models", ""},
		{"POST /v1beta/models", ""},
		{"POST /v1beta/models/", ""},
		{"POST /v1beta/models//a", ""},
		{"POST /v1beta/models/%zz", ""},
	} {
		f, _ := geminiFixture()
		method, path, _ := strings.Cut(tt.request, " ")
		f.get(method, path, "data", "")
		if got := strings.Join(f.handled, ","); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.request, got, tt.want)
		}
	}
}

// The Gemini API at version v1 has the path of OpenAI's list: the field of the key
// decides.
func TestModelListAtV1OfGeminiClient(t *testing.T) {
	for _, tt := range []struct{ path, key, want string }{
		{"/v1/models", "", "v1 list "},
		{"/v1/models", "sk-x", "list "},
		{"/v1/models/a", "sk-x", "model a"},
		{"/v1/modelsx", "sk-x", ""},
	} {
		f, _ := geminiFixture()
		r := &httpmsg.Request{Method: "GET", Path: tt.path, Header: httpmsg.Header{{Name: "authorization", Value: "data"}}}
		if tt.key != "" {
			r.Header.Add("x-goog-api-key", tt.key)
		}
		f.Serve(context.Background(), r)
		if got := strings.Join(f.handled, ","); got != tt.want {
			t.Errorf("%s with %q: %q, want %q", tt.path, tt.key, got, tt.want)
		}
	}
}

func TestGeminiKeyLeavesTheQuery(t *testing.T) {
	for _, tt := range []struct{ query, header, wantQuery, wantKey string }{
		{"key=sk-a", "", "", "sk-a"},
		{"alt=sse&key=sk-a", "", "alt=sse", "sk-a"},
		{"key=sk-a&alt=sse&pageSize=3", "", "alt=sse&pageSize=3", "sk-a"},
		{"%6bey=sk%2Da", "", "", "sk-a"},
		{"key=sk-a&key=sk-b", "", "", "sk-a"},
		{"key=sk-a", "sk-header", "", "sk-header"},
		{"key=", "", "", ""},
		{"key", "", "", ""},
		{"key=%zz", "", "", ""},
		{"alt=sse", "sk-header", "alt=sse", "sk-header"},
		{"keys=sk-a&xkey=sk-b", "", "keys=sk-a&xkey=sk-b", ""},
	} {
		r := &httpmsg.Request{Query: tt.query}
		if tt.header != "" {
			r.Header.Add("x-goog-api-key", tt.header)
		}
		moveKey(r)
		if key := r.Header.Get("x-goog-api-key"); r.Query != tt.wantQuery || key != tt.wantKey {
			t.Errorf("%s with %q: query %q and key %q, want %q and %q", tt.query, tt.header, r.Query, key, tt.wantQuery, tt.wantKey)
		}
	}
}

func TestTimeLimitOfGeminiClient(t *testing.T) {
	for _, tt := range []struct{ server, stainless, want string }{{"20", "", "20"}, {"20", "5", "5"}, {"", "", ""}} {
		r := &httpmsg.Request{}
		for _, f := range []httpmsg.Field{{Name: "x-server-timeout", Value: tt.server}, {Name: "x-stainless-timeout", Value: tt.stainless}} {
			if f.Value != "" {
				r.Header = append(r.Header, f)
			}
		}
		if fromGemini(r); r.Header.Get("x-stainless-timeout") != tt.want {
			t.Errorf("%q and %q: %q, want %q", tt.server, tt.stainless, r.Header.Get("x-stainless-timeout"), tt.want)
		}
	}
}

func TestGeminiErrors(t *testing.T) {
	ask := func(method, path, query, key string) (*httpmsg.Response, string) {
		f, queries := geminiFixture()
		r := &httpmsg.Request{Method: method, Path: path, Query: query, Start: f.Now(), Header: httpmsg.Header{{Name: "authorization", Value: key}}}
		resp := f.Serve(context.Background(), r)
		raw, _ := stream.ReadAll(resp.Body, 1<<20)
		for _, after := range resp.After {
			after(context.Background())
		}
		if all := strings.Join(append(f.log, *queries...), " ") + string(raw); strings.Contains(all, "sk-canary") {
			t.Errorf("%s %s?%s: the key is shown: %s", method, path, query, all)
		}
		return resp, string(raw)
	}
	for _, tt := range []struct {
		method, path, query, key string
		code                     int
		status, reason           string
		array                    bool
	}{
		{"POST", "/v1beta/models/a:generateContent", "key=sk-canary", "garbage", 401, "UNAUTHENTICATED", "API_KEY_INVALID", false},
		{"POST", "/v1beta/models/a:streamGenerateContent", "key=sk-canary", "garbage", 401, "UNAUTHENTICATED", "API_KEY_INVALID", true},
		{"POST", "/v1beta/models/a:streamGenerateContent", "alt=sse&key=sk-canary", "garbage", 401, "UNAUTHENTICATED", "API_KEY_INVALID", false},
		{"POST", "/v1beta/models/limited:generateContent", "", "data", 429, "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED", false},
		{"POST", "/v1/models/limited:streamGenerateContent", "alt=json", "data", 429, "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED", true},
		{"GET", "/v1beta/nothing", "key=sk-canary", "data", 404, "NOT_FOUND", "NOT_FOUND", false},
		{"GET", "/v1beta/files", "", "data", 501, "UNIMPLEMENTED", "NOT_IMPLEMENTED", false},
		{"PUT", "/v1beta/models/a", "", "data", 405, "INVALID_ARGUMENT", "METHOD_NOT_ALLOWED", false},
	} {
		resp, body := ask(tt.method, tt.path, tt.query, tt.key)
		if array := strings.HasPrefix(body, "[{"); array != tt.array {
			t.Errorf("%s %s: in an array: %v", tt.method, tt.path, array)
		}
		e := gjson.Parse(strings.Trim(body, "[]")).Get("error")
		if resp.Status != tt.code || e.Get("code").Int() != int64(tt.code) || e.Get("status").Str != tt.status || e.Get("details.0.reason").Str != tt.reason || e.Get("message").Str == "" {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, resp.Status, body)
		}
		if resp.Get("access-control-allow-origin") != "*" || resp.Get("x-request-id") == "" {
			t.Errorf("%s %s: fields %v", tt.method, tt.path, resp.Header)
		}
	}
}

// An upstream's own error passes, in an array where the client reads one.
func TestGeminiErrorsOfUpstreams(t *testing.T) {
	e := apierr.New(400, "", "no")
	e.Body = []byte(`{"error":{"code":400}}`)
	for path, want := range map[string]string{":generateContent": `{"error":{"code":400}}`, ":streamGenerateContent": `[{"error":{"code":400}}]`} {
		if got := string(body(e, &Route{Dialect: llm.Gemini}, &httpmsg.Request{Path: path})); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	unknown := apierr.New(400, "model_not_found", "no")
	if got := llm.Gemini.Client().Error(unknown); got.Status != 404 || unknown.Status != 400 {
		t.Errorf("status %d, and %d of the error itself", got.Status, unknown.Status)
	}
	if got := llm.Gemini.Client().Error(e); got != e {
		t.Error("another error is changed")
	}
}

func TestGeminiRouteTable(t *testing.T) {
	h := (&wiring{}).endpoints(nil, nil)
	table := newTable(dataRoutes(h))
	r, params := table.find("/v1beta/models/a/b:generateContent")
	if r == nil || len(params) != 1 || params[0] != "a/b:generateContent" || r.Dialect != llm.Gemini || r.Access != endpoint.Data || r.Method("GET").Access != endpoint.List {
		t.Errorf("route %+v, parameters %q", r, params)
	}
}

func FuzzMoveKey(f *testing.F) {
	for _, q := range []string{"key=a", "alt=sse&%6bey=a&key=b", "k%65y=%zz&&x", "key", "=key&key=+a"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := &httpmsg.Request{Query: query}
		moveKey(r)
		if values, _ := url.ParseQuery(r.Query); values.Has("key") {
			t.Errorf("%q becomes %q", query, r.Query)
		}
		if len(r.Query) > len(query) {
			t.Errorf("%q grows to %q", query, r.Query)
		}
	})
}
