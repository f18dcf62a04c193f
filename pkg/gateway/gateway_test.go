package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/snapshot"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

const machineID = "abcdefgh01234567"

// keyring admits whoever shows the word for the access asked for.
type keyring struct {
	asked   []string
	machine *snapshot.Machine // of the calls; may be nil
}

func (k *keyring) check(r *httpmsg.Request, path string, words ...string) (*auth.Call, error) {
	k.asked = append(k.asked, words[0])
	for _, w := range words {
		if r.Header.Get("authorization") == w {
			return &auth.Call{Request: r, MachineID: path, Machine: k.machine}, nil
		}
	}
	return nil, apierr.New(401, "invalid_api_key", "no")
}
func (k *keyring) Data(_ context.Context, r *httpmsg.Request, p string) (*auth.Call, error) {
	return k.check(r, p, "data")
}
func (k *keyring) Realtime(_ context.Context, r *httpmsg.Request, p string) (*auth.Call, error) {
	return k.check(r, p, "realtime", "data")
}
func (k *keyring) List(_ context.Context, r *httpmsg.Request, p string) (*auth.Call, error) {
	return k.check(r, p, "list", "data")
}
func (k *keyring) Key(_ context.Context, r *httpmsg.Request, p string) (*auth.Call, error) {
	return k.check(r, p, "data")
}
func (k *keyring) Manage(_ context.Context, r *httpmsg.Request, p string) (*auth.Call, error) {
	return k.check(r, p, "manage")
}
func (k *keyring) Refused(context.Context, *auth.Call) {}

func (k *keyring) Metrics(_ context.Context, r *httpmsg.Request, p string) (*auth.Call, error) {
	return k.check(r, p, "metrics", "operator")
}
func (k *keyring) Operator(_ context.Context, r *httpmsg.Request, p string) (*auth.Call, error) {
	return k.check(r, p, "operator")
}

type fixture struct {
	*Gateway
	keys    *keyring
	handled []string
	log     []string
}

func newFixture() *fixture {
	f := &fixture{keys: &keyring{}}
	f.Gateway = &Gateway{
		Auth:   f.keys,
		Now:    func() time.Time { return time.Unix(1000, 0) },
		Log:    func(_ int, l string) { f.log = append(f.log, l) },
		Redact: func(s string) string { return strings.ReplaceAll(s, "sk-hidden", "***") },
	}
	h := func(name string, err error) endpoint.Handler {
		return func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
			f.handled = append(f.handled, name+" "+strings.Join(c.Params, "|"))
			if err != nil {
				return nil, err
			}
			if c.Body != nil {
				if _, err := c.ReadBody(); err != nil {
					return nil, err
				}
			}
			return &httpmsg.Response{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}}, Body: stream.FromString("{}")}, nil
		}
	}
	f.SetRoutes([]Route{
		{Pattern: "/health", Access: endpoint.Public, Methods: []Method{{Name: "GET", Handler: h("health", nil)}}},
		{Pattern: "/v1/embeddings", Access: endpoint.Data, Cors: endpoint.OpenCors, MaxBody: 100, Methods: []Method{{Name: "POST", Handler: h("embeddings", nil)}}},
		{Pattern: "/v1/messages", Access: endpoint.Data, Dialect: llm.Messages, Cors: endpoint.OpenCors, MaxBody: 100, Methods: []Method{{Name: "POST", Handler: h("messages", apierr.Invalid("model", "no such model"))}}},
		{Pattern: "/v1/models", Access: endpoint.List, Models: true, Cors: endpoint.ListCors, Methods: []Method{{Name: "GET", Handler: h("models", errors.New("list broke with sk-hidden"))}}},
		{Pattern: "/v1/models/{kind}", Access: endpoint.List, Models: true, Cors: endpoint.ListCors, Methods: []Method{{Name: "GET", Handler: h("kind", nil)}}},
		{Pattern: "/v1/models/{alias}/{model...}", Access: endpoint.List, Models: true, Cors: endpoint.ListCors, Methods: []Method{{Name: "GET", Handler: h("model", nil)}}},
		{Pattern: "/api/keys", Access: endpoint.Manage, MaxBody: 100, Methods: []Method{{Name: "GET", Handler: h("keys", nil)}}},
		{Pattern: "/api/machines", Access: endpoint.Operator, Methods: []Method{{Name: "GET", Handler: h("machines", nil)}}},
		{Pattern: "/api/closed", Methods: []Method{{Name: "GET", Handler: h("closed", nil)}}},
	})
	return f
}

func (f *fixture) get(method, path, key string, body string) (*httpmsg.Response, string) {
	r := &httpmsg.Request{Method: method, Path: path, Start: f.Now(), Length: int64(len(body))}
	r.Header = httpmsg.Header{{Name: "origin", Value: "https://app.example"}}
	if key != "" {
		r.Header.Add("authorization", key)
	}
	if body != "" {
		r.Body = stream.FromString(body)
	}
	resp := f.Serve(context.Background(), r)
	var b []byte
	if resp.Body != nil {
		b, _ = io.ReadAll(resp.Body)
	}
	for _, after := range resp.After {
		after(context.Background())
	}
	return resp, string(b)
}

func TestAccess(t *testing.T) {
	routes := []struct {
		method, path string
		admits       string
	}{
		{"POST", "/v1/embeddings", "data"},
		{"POST", "/v1/messages", "data"},
		{"GET", "/v1/models", "list data"},
		{"GET", "/v1/models/tts", "list data"},
		{"GET", "/api/keys", "manage"},
		{"GET", "/api/machines", "operator"},
		{"GET", "/api/closed", ""},
	}
	for _, r := range routes {
		for _, key := range []string{"", "garbage", "list", "data", "manage", "operator"} {
			for _, path := range []string{r.path, "/" + machineID + r.path} {
				f := newFixture()
				resp, _ := f.get(r.method, path, key, "")
				admitted := key != "" && strings.Contains(" "+r.admits+" ", " "+key+" ")
				if got := len(f.handled) == 1; got != admitted {
					t.Errorf("%s %s with %q: handled %v, want %v", r.method, path, key, got, admitted)
				}
				if !admitted && resp.Status != 401 && resp.Status != 404 {
					t.Errorf("%s %s with %q: status %d", r.method, path, key, resp.Status)
				}
			}
		}
	}
}

func TestPathsThatAreNotCanonicalMatchNothing(t *testing.T) {
	spellings := []string{
		"/v1/embeddings/", "//v1/embeddings", "/v1//embeddings", "/V1/embeddings", "/v1/Embeddings", "/v1/%65mbeddings",
		"/v1/embeddings;x", "/v1/embeddings%2f", "/v1/./embeddings", "/v1/../v1/embeddings", "/v1/v1/v1/embeddings", "/v1",
		"/", "", "/api", "/api/keys/", "/api/keys%00", "/api/%6beys", "/" + machineID + "//v1/embeddings", "/" + machineID + "/v1",
		"/" + strings.ToUpper(machineID) + "/v1/embeddings", "/short/v1/embeddings", "/" + machineID + "/" + machineID + "/v1/embeddings",
		"/" + machineID + "/health", "/v1/models//x", "/v1/models/%zz", "/v1/api/keys",
	}
	for _, p := range spellings {
		for _, key := range []string{"data", "manage", "operator", "list"} {
			f := newFixture()
			resp, _ := f.get("POST", p, key, "")
			if resp.Status == 200 || len(f.handled) > 0 {
				t.Errorf("POST %q as %s: %d, handled %v", p, key, resp.Status, f.handled)
			}
			f = newFixture()
			resp, _ = f.get("GET", p, key, "")
			if resp.Status == 200 || len(f.handled) > 0 {
				t.Errorf("GET %q as %s: %d, handled %v", p, key, resp.Status, f.handled)
			}
		}
	}
}

func TestParams(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/models/tts":                       "kind tts",
		"/v1/v1/models/tts":                    "kind tts",
		"/v1/models/openai/gpt-5":              "model openai|gpt-5",
		"/v1/models/or/meta/llama%3Afree":      "model or|meta/llama:free",
		"/v1/models/or%2Fx/y":                  "model or/x|y",
		"/" + machineID + "/v1/models/a/b/c/d": "model a|b/c/d",
	} {
		f := newFixture()
		f.get("GET", path, "list", "")
		if got := strings.Join(f.handled, ","); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestRefusalsBeforeTheBodyIsRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		key    string
		header httpmsg.Header
		length int64
		want   int
	}{
		{"no_key", "", nil, 10, 401},
		{"declared_too_large", "data", nil, 101, 413},
		{"compressed_in_another_coding", "data", httpmsg.Header{{Name: "content-encoding", Value: "deflate"}}, 10, 415},
		{"compressed_twice", "data", httpmsg.Header{{Name: "content-encoding", Value: "gzip, br"}}, 10, 415},
		{"too_many_hops", "data", httpmsg.Header{{Name: "x-weir-hop", Value: "3"}}, 10, 508},
		{"hops_unreadable", "data", httpmsg.Header{{Name: "x-weir-hop", Value: "x"}}, 10, 508},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture()
			body := &unread{}
			r := &httpmsg.Request{Method: "POST", Path: "/v1/embeddings", Header: tt.header, Body: body, Length: tt.length}
			r.Header = append(r.Header, httpmsg.Field{Name: "authorization", Value: tt.key})
			if resp := f.Serve(context.Background(), r); resp.Status != tt.want {
				t.Errorf("status %d, want %d", resp.Status, tt.want)
			}
			if body.reads != 0 {
				t.Errorf("%d reads of the body, want none", body.reads)
			}
		})
	}
	f := newFixture()
	r := &httpmsg.Request{Method: "POST", Path: "/v1/embeddings", Header: httpmsg.Header{{Name: "authorization", Value: "data"}}, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 101))), Length: -1}
	if resp := f.Serve(context.Background(), r); resp.Status != 413 {
		t.Errorf("undeclared body over the limit: %d, want 413", resp.Status)
	}
}

type unread struct{ reads int }

func (u *unread) Read([]byte) (int, error) { u.reads++; return 0, io.EOF }
func (u *unread) Close() error             { return nil }

func TestErrorsHaveTheDialectOfTheEndpoint(t *testing.T) {
	f := newFixture()
	parts := map[string]bool{} // of ids
	for _, tt := range []struct{ method, path, key, want string }{
		{"POST", "/v1/messages", "data", `400 {"type":"error","error":{"type":"invalid_request_error","message":"no such model"},"request_id":"ID"}`},
		{"POST", "/v1/messages", "", `401 {"type":"error","error":{"type":"authentication_error","message":"no"},"request_id":"ID"}`},
		{"POST", "/v1/messages/none", "", `404 {"type":"error","error":{"type":"not_found_error","message":"No route POST /v1/messages/none."},"request_id":"ID"}`},
		{"GET", "/v1/embeddings", "data", `405 {"error":{"message":"GET is not allowed for /v1/embeddings. Use POST.","type":"invalid_request_error","param":null,"code":"method_not_allowed"}}`},
		{"GET", "/v1/none", "data", `404 {"error":{"message":"No route GET /v1/none.","type":"invalid_request_error","param":null,"code":"not_found"}}`},
		{"GET", "/v1/models", "list", `500 {"error":{"message":"Internal error.","type":"server_error"}}`},
	} {
		resp, b := f.get(tt.method, tt.path, tt.key, "")
		id := resp.Get("x-request-id")
		if got := fmt.Sprintf("%d %s", resp.Status, strings.ReplaceAll(b, id, "ID")); got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.method, tt.path, got, tt.want)
		}
		if !strings.HasPrefix(id, "req_") {
			t.Errorf("%s: x-request-id %q", tt.path, id)
		}
		for n := range 24 { // a count of the calls would be in common
			if part := id[4+n : 12+n]; parts[part] {
				t.Errorf("two ids have %q", part)
			}
		}
		for n := range 24 {
			parts[id[4+n:12+n]] = true
		}
	}
	last := f.log[len(f.log)-1]
	if !json.Valid([]byte(last)) || !strings.Contains(last, "list broke with ***") {
		t.Errorf("log line %s", last)
	}
}

// An error with a code of weir has the address of its entry in the documentation, in
// every dialect; an error of a provider is as the provider sent it.
func TestErrorsNameTheirPage(t *testing.T) {
	const own, at = "https://weir.example.com", "/docs/reference/errors#not_found"
	providers := &apierr.Error{Status: 404, Type: "t", Code: "not_found", Message: "no", Own: true}
	weirs := apierr.New(404, "not_found", "no")
	for _, tt := range []struct {
		name, public, origin string
		e                    *apierr.Error
		want                 string
	}{
		{"the request's", "", "http://127.0.0.1:8787", weirs, "http://127.0.0.1:8787" + at},
		{"PUBLIC_URL", own, "http://10.0.0.1", weirs, own + at},
		{"no code", own, own, apierr.Invalid("model", "no"), ""},
		{"a provider's", own, own, providers, ""},
		{"a provider's code", own, own, &apierr.Error{Status: 404, Code: "voice_not_found", VendorCode: "voice_not_found", Message: "no"}, ""},
		{"instead of a provider's code", own, own, &apierr.Error{Status: 404, Code: "not_found", VendorCode: "NOT_FOUND", Message: "no"}, own + at},
		{"a provider's body", own, own, &apierr.Error{Status: 404, Code: "not_found", Body: []byte("{}")}, ""},
		{"an unusable host", "", `https://a"b`, weirs, ""},
	} {
		g := &Gateway{PublicURL: tt.public}
		e := g.documented(tt.e, &httpmsg.Request{Origin: tt.origin})
		if e.DocURL != tt.want || tt.e.DocURL != "" {
			t.Errorf("%s: %q, want %q; the error itself has %q", tt.name, e.DocURL, tt.want, tt.e.DocURL)
		}
		for _, d := range []llm.Dialect{llm.Chat, llm.Messages, llm.Gemini} {
			for _, path := range []string{"/v1/x", "/v1beta/models/x:streamGenerateContent"} {
				got := string(body(e, &Route{Dialect: d}, &httpmsg.Request{Path: path}))
				if !json.Valid([]byte(got)) || strings.Contains(got, at) != (tt.want != "") {
					t.Errorf("%s, dialect %s, %s: %s", tt.name, d, path, got)
				}
			}
		}
	}
}

// An upgrade is refused on every address, before anything is looked at.
func TestUpgradesAreRefused(t *testing.T) {
	f := newFixture()
	for _, tt := range []struct{ method, path, upgrade, want string }{
		{"GET", "/v1/responses", "websocket", "426 openai"}, {"POST", "/v1/embeddings", "WebSocket", "426 openai"},
		{"GET", "/v1/messages", "websocket", "426 anthropic"}, {"GET", "/none", "h2c, websocket", "426 openai"},
		{"GET", "/v1/models", "h2c", "served"}, {"GET", "/v1/models", "HTTP/2.0", "served"},
	} {
		resp := f.Serve(context.Background(), &httpmsg.Request{Method: tt.method, Path: tt.path, Header: httpmsg.Header{{Name: "upgrade", Value: tt.upgrade}}})
		raw, _ := stream.ReadAll(resp.Body, 1<<20)
		got := "served"
		if resp.Status == 426 {
			got = "426 openai"
			if strings.HasPrefix(string(raw), `{"type":"error"`) {
				got = "426 anthropic"
			}
			if !json.Valid(raw) || resp.Get("content-type") != "application/json" {
				t.Errorf("%s: %s", tt.path, raw)
			}
		}
		if got != tt.want {
			t.Errorf("%s %s with %s: %s, want %s", tt.method, tt.path, tt.upgrade, got, tt.want)
		}
	}
}

// An Anthropic client's look-up of models fails in its own dialect.
func TestModelErrorsUseCallersDialect(t *testing.T) {
	f := newFixture()
	for _, version := range []string{"", "2023-06-01"} {
		req := &httpmsg.Request{Method: "GET", Path: "/v1/models", Header: httpmsg.Header{{Name: "authorization", Value: "Bearer list"}}}
		if version != "" {
			req.Header = append(req.Header, httpmsg.Field{Name: "anthropic-version", Value: version})
		}
		resp := f.Serve(context.Background(), req)
		raw, _ := stream.ReadAll(resp.Body, 1<<20)
		if anthropic := strings.HasPrefix(string(raw), `{"type":"error"`); resp.Status < 400 || anthropic != (version != "") {
			t.Errorf("version %q: %d %s", version, resp.Status, raw)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	f := newFixture()
	type row struct{ method, path, origin, methods, headers, exposed string }
	for _, want := range []row{
		{"OPTIONS", "/v1/models", "*", "GET, OPTIONS", "*", ""},
		{"OPTIONS", "/" + machineID + "/v1/models/tts", "*", "GET, OPTIONS", "*", ""},
		{"GET", "/v1/models/tts", "*", "", "", ""},
		{"OPTIONS", "/v1/embeddings", "*", "POST, OPTIONS", "*, Authorization", "yes"},
		{"POST", "/v1/embeddings", "*", "", "", "yes"},
		{"POST", "/v1/none", "*", "", "", "yes"},
		{"OPTIONS", "/api/keys", "", "", "", ""},
		{"GET", "/api/keys", "", "", "", ""},
		{"GET", "/health", "", "", "", ""},
	} {
		for _, key := range []string{"data", ""} {
			resp, body := f.get(want.method, want.path, key, "")
			h := resp
			got := row{want.method, want.path, h.Get("access-control-allow-origin"), h.Get("access-control-allow-methods"), h.Get("access-control-allow-headers"), ""}
			if h.Get("access-control-expose-headers") != "" {
				got.exposed = "yes"
			}
			if got != want {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if h.Get("access-control-allow-credentials") != "" {
				t.Error("credentials are allowed")
			}
			if want.methods != "" && body != "" {
				t.Errorf("preflight has a body: %q", body)
			}
		}
	}
}

func TestMisconfiguredAnswersOnlyHealth(t *testing.T) {
	f := newFixture()
	f.Misconfigured = "ADMIN_TOKEN"
	for path, want := range map[string]int{"/health": 200, "/v1/embeddings": 405, "/v1/models": 503, "/api/machines": 503} {
		if resp, _ := f.get("GET", path, "operator", ""); resp.Status != want {
			t.Errorf("%s: %d, want %d", path, resp.Status, want)
		}
	}
	if len(f.keys.asked) != 0 {
		t.Errorf("keys were checked: %v", f.keys.asked)
	}
}

// A client's text for a model may be a key that was put into the wrong field.
func TestLogHasNoKeyInPlaceOfAModel(t *testing.T) {
	f := newFixture()
	f.SetRoutes([]Route{{Pattern: "/v1/x", Access: endpoint.Data, Methods: []Method{{Name: "GET", Handler: func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
		c.Trace.Model = "up/sk-hidden"
		return &httpmsg.Response{Status: 200}, nil
	}}}}})
	f.get("GET", "/v1/x", "data", "")
	if len(f.log) != 1 || strings.Contains(f.log[0], "sk-hidden") || !strings.Contains(f.log[0], `"model":"up/***"`) {
		t.Errorf("%q", f.log)
	}
}

func TestLoggedTimeEndsWithTheAnswer(t *testing.T) {
	f := newFixture()
	now := time.Unix(1000, 0)
	f.Now = func() time.Time { return now }
	f.Observers = []Observer{observe(func(*Ended) { now = now.Add(time.Second) })} // waits to record usage with others
	f.SetRoutes([]Route{{Pattern: "/slow", Access: endpoint.Data, Methods: []Method{{Name: "GET", Handler: func(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
		now = now.Add(7 * time.Millisecond)
		return &httpmsg.Response{Status: 200, After: []func(context.Context){func(context.Context) { now = now.Add(time.Second) }}}, nil
	}}}}})
	f.get("GET", "/slow", "data", "")
	if len(f.log) != 1 || !strings.Contains(f.log[0], `"ms":7,`) && !strings.Contains(f.log[0], `"ms":7}`) {
		t.Errorf("%q", f.log)
	}
}

// observe is an Observer.
type observe func(e *Ended)

func (o observe) Ended(_ context.Context, e *Ended) { o(e) }
