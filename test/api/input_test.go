package api

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// both answers as an OpenAI-compatible and as an Anthropic-compatible server.
func both(s *fake.Seen) fake.Answer {
	if strings.HasSuffix(s.URL, "/messages") {
		return fake.JSON(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}
	return described(s)
}

// hostileWorld is a machine with servers of both kinds and one of videos, all with one
// credential.
func hostileWorld(t *testing.T, credential string) (*world, string, string) {
	w := newWorld(t)
	w.Answer = both
	w.App.Quiet = false
	var made struct{ MachineID, APIKey string }
	w.get(201, w.do("POST", "/api/machines", adminToken, `{}`), &made)
	for _, body := range []string{
		`{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"` + credential + `","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`,
		`{"provider":"anthropic-compatible-0123abcd","name":"an","apiKey":"` + credential + `","providerSpecificData":{"baseUrl":"http://an.example/v1","prefix":"an"}}`,
		`{"provider":"xai","apiKey":"` + credential + `"}`,
	} {
		w.get(201, w.do("POST", "/"+made.MachineID+"/api/providers", adminToken, body), nil)
	}
	return w, made.MachineID, made.APIKey
}

// passing are the calls whose bytes go to a server of the same dialect.
var passing = [][3]string{
	{"/v1/embeddings", "up/m", `"input":"a"`},
	{"/v1/chat/completions", "up/m", `"messages":[{"role":"user","content":"Hello"}]`},
	{"/v1/messages", "an/m", `"max_tokens":9,"messages":[{"role":"user","content":"Hello"}]`},
	{"/v1/responses", "up/m", `"input":"Hello"`},
}

// A body goes up with only the model's value changed, and every reader sees the same
// model (docs/reference/reliability.md, T35, T36).
func TestEveryReaderSeesTheSameModel(t *testing.T) {
	w, _, key := hostileWorld(t, "upstream-key-0123456789")
	value := regexp.MustCompile(`"(?:up|an)\\?/(?:m|\\u006d)"`)
	for _, p := range passing {
		path, model, rest := p[0], p[1], p[2]
		for _, tt := range []struct {
			name, body string
			taken      bool
		}{
			{"plain", `{"model":"MODEL",REST}`, true},
			{"model last", `{REST,"model":"MODEL"}`, true},
			{"blanks", " \t\r\n{ \"model\" : \"MODEL\" , REST } \n", true},
			{"escaped name", `{"\u006dodel":"MODEL",REST}`, true},
			{"escaped value", `{"model":"` + strings.NewReplacer("/", `\/`, "m", `\u006d`).Replace(model) + `",REST}`, true},
			{"deeper", `{"x":{"model":"up/evil"},"model":"MODEL",REST}`, true},
			{"prototype", `{"__proto__":{"model":"up/evil"},"model":"MODEL",REST}`, true},
			{"name with a zero", `{"model\u0000":"up/evil","model":"MODEL",REST}`, true},
			{"big numbers", `{"seed":9007199254740993,"x":0.1000,"y":1e400,"z":-0,"w":1E+2,"model":"MODEL",REST}`, true},
			{"unicode", "{\"x\":\"\u2028\u2029<>&\\u2028\\ud83d\\ude00😀\",\"model\":\"MODEL\",REST}", true},
			{"half a pair elsewhere", `{"x":"\ud800","model":"MODEL",REST}`, true},
			{"other case of the name", `{"Model":"up/evil","MODEL":"up/evil",REST,"model":"MODEL"}`, false},
			{"folding letters", `{"ſtream":true,"` + "\u212a" + `ind":1,"model":"MODEL",REST}`, false},
			{"given twice", `{"model":"MODEL","model":"up/evil",REST}`, false},
			{"given twice, once escaped", `{"model":"MODEL",REST,"\u006dodel":"up/evil"}`, false},
			{"half a pair in the model", `{"model":"MODEL\ud800",REST}`, false},
			{"byte order mark", "\ufeff" + `{"model":"MODEL",REST}`, false},
			{"something after", `{"model":"MODEL",REST}{"model":"up/evil"}`, false},
			{"comma at the end", `{"model":"MODEL",REST,}`, false},
			{"comment", `{/* x */"model":"MODEL",REST}`, false},
			{"single quotes", `{'model':'MODEL',REST}`, false},
			{"not a number", `{"model":"MODEL","x":NaN,REST}`, false},
			{"hex", `{"model":"MODEL","x":0x10,REST}`, false},
			{"leading zero", `{"model":"MODEL","x":01,REST}`, false},
			{"vertical tab", "{\v\"model\":\"MODEL\",REST}", false},
			{"raw control", "{\"x\":\"a\x01\",\"model\":\"MODEL\",REST}", false},
			{"raw zero", "{\"model\":\"MODEL\x00\",REST}", false},
			{"list", `[{"model":"MODEL",REST}]`, false},
			{"bytes that are no UTF-8", "{\"x\":\"\xc0\xaf\xff\",\"model\":\"MODEL\",REST}", false},
		} {
			body := strings.NewReplacer("MODEL", model, "REST", rest).Replace(tt.body)
			w.Seen = nil
			r := w.do("POST", path, key, body)
			if !tt.taken {
				if r.status != 400 || len(w.Seen) != 0 {
					t.Errorf("%s, %s: status %d after %d calls", path, tt.name, r.status, len(w.Seen))
				}
				continue
			}
			if r.status != 200 || len(w.Seen) != 1 {
				t.Errorf("%s, %s: status %d after %d calls: %s", path, tt.name, r.status, len(w.Seen), r.body)
				continue
			}
			sent := w.Seen[0].Body
			if want := value.ReplaceAllLiteralString(body, `"m"`); sent != want {
				t.Errorf("%s, %s: sent %q, want %q", path, tt.name, sent, want)
			}
			var other map[string]json.RawMessage
			if err := json.Unmarshal([]byte(sent), &other); err != nil || string(other["model"]) != `"m"` {
				t.Errorf("%s, %s: another reader sees %s, %v", path, tt.name, other["model"], err)
			}
		}
	}
}

// Bodies that are deep, wide or have a long name are refused before a call
// (docs/reference/reliability.md, T37).
func TestDeepAndWideBodiesAreRefused(t *testing.T) {
	w, _, key := hostileWorld(t, "upstream-key-0123456789")
	for _, p := range passing {
		path, model, rest := p[0], p[1], p[2]
		for name, body := range map[string]string{
			"depth 129":             `{"model":"MODEL",REST,"x":` + strings.Repeat("[", 129) + strings.Repeat("]", 129) + `}`,
			"depth 10,000":          `{"model":"MODEL",REST,"x":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + `}`,
			"a million open lists":  `{"model":"MODEL",REST,"x":` + strings.Repeat("[", 1_000_000),
			"depth in front":        `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `,"model":"MODEL",REST}`,
			"1,100,000 empty lists": `{"model":"MODEL",REST,"x":[` + strings.Repeat("[],", 1_100_000) + `[]]}`,
			"a model of 300 bytes":  `{"model":"up/` + strings.Repeat("m", 300) + `",REST}`,
			"a model of a megabyte": `{"model":"up/` + strings.Repeat("m", 1<<20) + `",REST}`,
		} {
			r := w.do("POST", path, key, strings.NewReplacer("MODEL", model, "REST", rest).Replace(body))
			if !slices.Contains([]int{400, 404, 413}, r.status) || len(gjson.Get(r.body, "error.message").Str) >= 600 || len(w.Seen) != 0 {
				t.Errorf("%s, %s: status %d after %d calls: %.200s", path, name, r.status, len(w.Seen), r.body)
			}
		}
	}
}

// A variable in a provider's address leads only to that provider
// (docs/reference/reliability.md, T15).
func TestVariablesLeadToTheirProviderOnly(t *testing.T) {
	evil := []string{
		"evil.example/", "evil.example#", "evil.example?", "x.local:8443#", "127.0.0.1:9/#", "a@evil.example", "a:b@evil.example", "..", "../x", "a/../b",
		"%2e%2e", "a%2fb", "a.evil.example", "evil.example:443", "[::1]", `a\b`, "a b", "\u3002evil", "\uff0fevil", "a\x00", "{project}",
		strings.Repeat("x", 300), "us-central1.evil.example/",
	}
	saved, called := 0, 0
	for _, tt := range []struct {
		provider, secrets string
		vars              map[string]string
		hosts             string
	}{
		{"vertex", `"accessToken":"canary-access-token"`, map[string]string{"project": "p", "location": "us-central1"}, `^([a-z0-9-]+-)?aiplatform\.(googleapis\.com|[a-z]+\.rep\.googleapis\.com)$`},
		{"bedrock", `"apiKey":"AKIA0123456789ABCDEF","secretAccessKey":"canary-secret-access-key"`, map[string]string{"region": "us-east-1"}, `^bedrock(-runtime|-mantle)?\.[a-z0-9-]+\.(amazonaws\.com|api\.aws)$`},
		{"azure", `"apiKey":"canary-api-key-0123"`, map[string]string{"resource": "r", "apiVersion": "v1"}, `^[a-z0-9-]+\.(openai\.azure\.com|services\.ai\.azure\.com|cognitiveservices\.azure\.com)$`},
		{"cloudflare", `"apiKey":"canary-api-key-0123"`, map[string]string{"account_id": strings.Repeat("a", 32)}, `^api\.cloudflare\.com$`},
	} {
		hosts := regexp.MustCompile(tt.hosts)
		for name, good := range tt.vars {
			for _, value := range append([]string{good}, evil...) {
				w := newWorld(t)
				w.Answer = both
				var made struct{ MachineID, APIKey string }
				w.get(201, w.do("POST", "/api/machines", adminToken, `{}`), &made)
				vars := map[string]string{}
				for n, v := range tt.vars {
					vars[n] = v
				}
				vars[name] = value
				data, _ := json.Marshal(vars)
				r := w.do("POST", "/"+made.MachineID+"/api/providers", adminToken, `{"provider":"`+tt.provider+`",`+tt.secrets+`,"providerSpecificData":`+string(data)+`}`)
				if r.status == 400 {
					continue
				}
				w.get(201, r, nil)
				saved++
				for _, call := range [][2]string{{"/v1/chat/completions", `"messages":[{"role":"user","content":"a"}]`}, {"/v1/embeddings", `"input":"a"`}} {
					if r := w.do("POST", call[0], made.APIKey, `{"model":"`+tt.provider+`/m",`+call[1]+`}`); r.status == 500 {
						t.Errorf("%s.%s %q: %s", tt.provider, name, value, r.body)
					}
				}
				for _, s := range w.Seen {
					called++
					u, err := url.Parse(s.URL)
					if err != nil || !hosts.MatchString(u.Host) || regexp.MustCompile(`/\.\.?(/|$)|(?i:%2e%2e)|\\`).MatchString(u.EscapedPath()) {
						t.Errorf("%s.%s %q led to %s (%v)", tt.provider, name, value, s.URL, err)
					}
				}
			}
		}
	}
	if saved <= 4 || called <= 4 {
		t.Errorf("%d were saved, %d calls went out", saved, called)
	}
}

// Control characters are refused where they would be stored
// (docs/reference/reliability.md, T21).
func TestControlCharactersAreNotStored(t *testing.T) {
	w, id, key := hostileWorld(t, "upstream-key-0123456789")
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	const data = `"baseUrl":"http://up.example/v1","prefix":"x"`
	connection := func(more string) string {
		return `{"provider":"openai-compatible-0123abcd","name":"n",` + more + `}`
	}
	for _, v := range []string{"a\r\nx-injected: 1", "a\nb", "a\rb", "a\x00b", "a\x01b", "a\x7fb", "a\u2028b"} {
		bad := q(v)
		for _, tt := range [][3]string{
			{"apiKey", "/providers", connection(`"apiKey":` + q(v+"-canary-0123456789") + `,"providerSpecificData":{` + data + `}`)},
			{"accessToken", "/providers", connection(`"accessToken":` + q(v+"-canary-0123456789") + `,"providerSpecificData":{` + data + `}`)},
			{"name", "/providers", `{"provider":"openai-compatible-0123abcd","name":` + bad + `,"apiKey":"canary-0123456789","providerSpecificData":{` + data + `}}`},
			{"prefix", "/providers", connection(`"providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":` + bad + `}`)},
			{"region", "/providers", `{"provider":"bedrock","apiKey":"AKIA0123456789","secretAccessKey":"canary-secret-key","providerSpecificData":{"region":` + bad + `}}`},
			{"project", "/providers", `{"provider":"vertex","accessToken":"canary-access-token","providerSpecificData":{"project":` + bad + `,"location":"l"}}`},
			{"enabledModels", "/providers", connection(`"providerSpecificData":{` + data + `,"enabledModels":[` + bad + `]}`)},
			{"a field's name", "/providers", connection(`"providerSpecificData":{` + data + `,` + bad + `:"x"}`)},
			{"a key", "/keys", `{"name":` + bad + `}`},
			{"a combo", "/combos", `{"name":` + bad + `,"models":["up/m"]}`},
			{"a model", "/models/custom", `{"id":` + bad + `,"providerAlias":"up"}`},
			{"a disabled model", "/models/disabled", `{"providerAlias":"up","ids":[` + bad + `]}`},
		} {
			if r := w.do("POST", "/"+id+"/api"+tt[1], adminToken, tt[2]); r.status != 400 || strings.Contains(r.body, "canary") {
				t.Errorf("%s %s: %d %s", tt[0], bad, r.status, r.body)
			}
		}
	}
	for _, k := range []string{"a\x01b", "a\x7fb", "caf\u00e9", strings.Repeat("a", 256)} {
		r := w.do("POST", "/v1/videos/generations", key, `{"model":"xai/m","prompt":"a"}`, httpmsg.Field{Name: "idempotency-key", Value: k})
		if r.status != 400 {
			t.Errorf("idempotency key %q: %d %s", k, r.status, r.body)
		}
	}
	if len(w.Seen) != 0 {
		t.Errorf("%d calls were sent", len(w.Seen))
	}
}

// endpoints are the calls of the data plane, each with an account that serves it.
var endpoints = [][2]string{
	{"/v1/embeddings", `{"model":"up/m","input":"a"}`},
	{"/v1/chat/completions", `{"model":"up/m","messages":[{"role":"user","content":"a"}]}`},
	{"/v1/chat/completions", `{"model":"up/m","messages":[{"role":"user","content":"a"}],"stream":true}`},
	{"/v1/messages", `{"model":"up/m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`},
	{"/v1/messages", `{"model":"an/m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"stream":true}`},
	{"/v1/responses", `{"model":"up/m","input":"a"}`},
	{"/v1/audio/speech", `{"model":"up/m","input":"a","voice":"v"}`},
	{"/v1/images/generations", `{"model":"up/m","prompt":"a"}`},
	{"/v1/videos/generations", `{"model":"xai/m","prompt":"a"}`},
	{"/v1/moderations", `{"model":"up/m","input":"a"}`},
	{"/v1/rerank", `{"model":"up/m","query":"a","documents":["a"]}`},
}

// canary finds a credential in what a client, an operator or the log is shown.
type canary struct {
	t      *testing.T
	secret string
}

func (c canary) search(where, text string) {
	c.t.Helper()
	b := base64.StdEncoding.EncodeToString([]byte(c.secret))
	beside := base64.StdEncoding.EncodeToString([]byte(":" + c.secret))
	for _, form := range []string{c.secret, b[:len(b)-2], beside[2 : len(beside)-3], hex.EncodeToString([]byte(c.secret))} {
		if strings.Contains(text, form) {
			c.t.Errorf("%s shows the credential: %.300s", where, text)
		}
	}
}

func (r *reply) all() string {
	text := r.body
	for _, f := range r.header {
		text += "\n" + f.Name + ": " + f.Value
	}
	return text
}

// A credential that an upstream returns, in whatever shape of an error, reaches no client,
// no stored field and no line of the log (docs/reference/reliability.md, T46, T47). The
// credentials are of letters and digits alone: nothing in their form shows that they are
// keys.
func TestReturnedCredentialIsShownNowhere(t *testing.T) {
	for _, secret := range []string{"a3f91c07d25be84f6610937bd2c4e58a", "Canary41d7b2903fe65c8d10ab9f24", "Zq81xTn5RwLk0Vb7Hd93CyMe2Ug"} {
		shapes := []string{
			`{"error":{"message":"refused S","type":"invalid_request_error"}}`, `{"error":{"message":"no","type":"S"}}`, `{"error":{"message":"no","code":"S"}}`,
			`{"error":{"message":"no","param":"S"}}`, `{"error":{"message":"no","status":"S"}}`, `{"error":"S"}`, `{"message":"S"}`, `{"detail":"S"}`,
			`{"detail":[{"msg":"S","loc":["S"]}]}`, `{"type":"error","error":{"type":"S","message":"S"}}`,
			`[{"error":{"message":"S","status":"S","details":["S"]}}]`, `{"S":"S"}`, `"S"`,
		}
		for _, call := range endpoints {
			for i, shape := range shapes {
				for _, status := range [...]int{[...]int{400, 404, 409, 422}[i%4], [...]int{401, 403, 429, 500, 503, 529}[i%6]} {
					w, id, key := hostileWorld(t, secret)
					c := canary{t, secret}
					w.Answer = func(*fake.Seen) fake.Answer {
						return fake.Reply(status, strings.ReplaceAll(shape, "S", secret),
							httpmsg.Field{Name: "x-request-id", Value: secret}, httpmsg.Field{Name: "retry-after", Value: secret},
							httpmsg.Field{Name: "x-ratelimit-reset-requests", Value: secret}, httpmsg.Field{Name: "openai-processing-ms", Value: secret})
					}
					r := w.do("POST", call[0], key, call[1])
					what := fmt.Sprintf("%s %d %s", call[0], status, shape)
					if r.status < 400 {
						t.Fatalf("%s: %d", what, r.status)
					}
					c.search(what, r.all())
					// It is written in the client's dialect, or forwarded but for the secret.
					m := gjson.Get(r.body, "error.message")
					if (m.Type != gjson.String || len(m.Str) > 600) && r.body != strings.ReplaceAll(shape, "S", "***") {
						t.Errorf("%s: %s", what, r.body)
					}
					if regexp.MustCompile(`goroutine|\.go:|/pkg/`).MatchString(r.body) {
						t.Errorf("%s: %s", what, r.body)
					}
					for _, path := range []string{"/api/providers", "/api/models/availability", "/api/audit", "/api/requests"} {
						shown := w.do("GET", "/"+id+path, adminToken, "")
						c.search(what+" at "+path, shown.body)
					}
					c.search(what+" in the log", strings.Join(w.Log, "\n"))
				}
			}
		}
	}
}

// The same holds for an invalid answer, an error with status 200, forms, and jobs that were
// created before.
func TestInvalidAnswerWithACredentialIsShownNowhere(t *testing.T) {
	const secret = "a3f91c07d25be84f6610937bd2c4e58a"
	c := canary{t, secret}
	for _, call := range endpoints {
		for _, tt := range [][2]string{
			{"application/json", `{"error":{"message":"bad S","code":"S"}}`}, {"application/json", `{"detail":"S"}`}, {"text/html", "<html>S"},
			{"application/json", `{"a":"S"`}, {"application/json", `"S"`}, {"text/plain", "S"},
		} {
			if strings.HasSuffix(call[0], "speech") && tt[0] != "application/json" {
				continue // its bytes flow
			}
			w, _, key := hostileWorld(t, secret)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.OK(tt[0], strings.ReplaceAll(tt[1], "S", secret)) }
			r := w.do("POST", call[0], key, call[1])
			if r.status < 500 {
				t.Errorf("%s, %s: %d %s", call[0], tt[1], r.status, r.body)
			}
			c.search(call[0]+" "+tt[1], r.all()+strings.Join(w.Log, "\n"))
		}
	}
	w, _, key := hostileWorld(t, secret)
	w.get(200, w.do("POST", "/v1/responses", key, `{"model":"up/m","input":"a"}`), nil)
	w.get(200, w.do("POST", "/v1/videos/generations", key, `{"model":"xai/m","prompt":"a"}`), nil)
	for _, status := range []int{200, 404} {
		for _, shape := range []string{`{"error":{"message":"bad S","code":"S"}}`, `{"detail":"S"}`} {
			w.Answer = func(*fake.Seen) fake.Answer {
				return fake.Reply(status, strings.ReplaceAll(shape, "S", secret), httpmsg.Field{Name: "x-request-id", Value: secret})
			}
			for _, call := range [][2]string{
				{"GET", "/v1/responses/resp_x"}, {"GET", "/v1/responses/resp_x/input_items"}, {"DELETE", "/v1/responses/resp_x"}, {"POST", "/v1/responses/resp_x/cancel"},
				{"GET", "/v1/videos/v"}, {"GET", "/v1/videos/v/content"}, {"GET", "/v1/models"},
			} {
				r := w.do(call[0], call[1], key, "")
				c.search(strings.Join(call[:], " "), r.all())
			}
			r := w.form("/v1/audio/transcriptions", key)
			c.search("a transcription", r.all())
			w.Add(time.Minute)
		}
	}
	c.search("the log", strings.Join(w.Log, "\n"))
}

// An error within a stream is read where the stream is translated, and where it is the
// first event. Later, bytes of the client's own dialect pass: they are the upstream's word
// to its customer.
func TestCredentialInAStreamIsShownNowhere(t *testing.T) {
	const secret = "a3f91c07d25be84f6610937bd2c4e58a"
	c := canary{t, secret}
	for prefix, events := range map[string][2]string{
		"up": {`data: {"id":"c","created":1,"model":"m","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}` + "\n\n",
			`data: {"error":{"message":"bad S","type":"S","code":"S","param":"S"}}` + "\n\n"},
		"an": {"event: message_start\n" + `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n",
			"event: error\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"bad S"}}` + "\n\n"},
	} {
		for _, first := range []bool{true, false} {
			for path, rest := range map[string]string{
				"/v1/chat/completions": `"messages":[{"role":"user","content":"a"}]`,
				"/v1/messages":         `"messages":[{"role":"user","content":"a"}],"max_tokens":9`,
				"/v1/responses":        `"input":"a"`,
			} {
				w, id, key := hostileWorld(t, secret)
				body := strings.ReplaceAll(events[1], "S", secret)
				if !first {
					body = events[0] + body
				}
				w.Answer = func(*fake.Seen) fake.Answer { return fake.OK("text/event-stream", body) }
				r := w.do("POST", path, key, `{"model":"`+prefix+`/m","stream":true,`+rest+`}`)
				passes := prefix == "an" && path == "/v1/messages" || prefix == "up" && path != "/v1/messages"
				if first != (r.status >= 400) || !strings.Contains(r.body, "error") {
					t.Errorf("%s over %s, first %v: %d %s", path, prefix, first, r.status, r.body)
				}
				if first || !passes {
					c.search(path+" over "+prefix, r.all())
				}
				for _, shown := range []string{"/api/providers", "/api/models/availability", "/api/requests"} {
					c.search(path+" over "+prefix+" at "+shown, w.do("GET", "/"+id+shown, adminToken, "").body)
				}
				c.search("the log", strings.Join(w.Log, "\n"))
			}
		}
	}
}

// undated removes what differs in every answer.
func undated(r reply) string {
	var names []string
	for _, f := range r.header {
		if f.Name != "date" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(r.status, regexp.MustCompile(`req_[0-9a-z]+`).ReplaceAllString(r.body, ""), names)
}

// A path with another machine's id never leads to that machine's credentials: the key's own
// machine is used (docs/reference/reliability.md, T5). A wrong key learns nothing about the
// machine that it names.
func TestPathOfAnotherMachineIsTheKeysOwn(t *testing.T) {
	w, _, key := hostileWorld(t, "canary-upstream-of-me-0123")
	var other struct{ MachineID, APIKey string }
	w.get(201, w.do("POST", "/api/machines", adminToken, `{}`), &other)
	w.get(201, w.do("POST", "/"+other.MachineID+"/api/providers", adminToken,
		`{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"canary-upstream-of-other-0123","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`), nil)
	w.Seen = nil
	served := 0
	for _, call := range endpoints {
		if strings.Contains(call[1], `"stream":true`) {
			continue // its answer is not scripted here
		}
		r := w.do("POST", "/"+other.MachineID+call[0], key, call[1])
		if served++; r.status != 200 || len(r.header.Get("x-weir-connection-id")) != 20 {
			t.Errorf("%s: %d %s", call[0], r.status, r.body)
		}
		unknown := w.do("POST", "/zzzzzzzzzzzzzzzz"+call[0], "sk-zzzzzzzzzzzzzzzz-aaaaaaaaaaaaaaaaaaaaaaaaaa-00000000", call[1])
		wrong := w.do("POST", "/"+other.MachineID+call[0], "sk-"+other.MachineID+"-aaaaaaaaaaaaaaaaaaaaaaaaaa-00000000", call[1])
		if wrong.status != 401 || undated(wrong) != undated(unknown) {
			t.Errorf("%s: a wrong key is answered\n%s, one of no machine\n%s", call[0], undated(wrong), undated(unknown))
		}
	}
	if len(w.Seen) != served {
		t.Errorf("%d calls were sent, %d were served", len(w.Seen), served)
	}
	for _, s := range w.Seen {
		if !strings.Contains(s.Header.Get("authorization")+s.Header.Get("x-api-key"), "canary-upstream-of-me") {
			t.Errorf("%s was sent with another machine's credential", s.URL)
		}
	}
}

// Another machine's connections, responses and jobs cannot be named, and are answered as
// those that do not exist (docs/reference/reliability.md, T12).
func TestOtherMachinesRowsCannotBeNamed(t *testing.T) {
	w, id, key := hostileWorld(t, "canary-upstream-of-me-0123")
	w.get(200, w.do("POST", "/v1/responses", key, `{"model":"up/m","input":"a"}`), nil)
	w.get(200, w.do("POST", "/v1/videos/generations", key, `{"model":"xai/m","prompt":"a"}`), nil)
	var theirs struct{ Data []struct{ ID string } }
	w.get(200, w.do("GET", "/"+id+"/api/providers", adminToken, ""), &theirs)
	var foreign struct{ MachineID, APIKey string }
	w.get(201, w.do("POST", "/api/machines", adminToken, `{}`), &foreign)
	w.get(201, w.do("POST", "/"+foreign.MachineID+"/api/providers", adminToken,
		`{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"canary-upstream-of-foreign","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`), nil)
	w.get(201, w.do("POST", "/"+foreign.MachineID+"/api/providers", adminToken, `{"provider":"xai","apiKey":"canary-upstream-of-foreign"}`), nil)
	w.Seen = nil
	for _, c := range theirs.Data {
		for _, call := range endpoints {
			r := w.do("POST", call[0], foreign.APIKey, call[1], httpmsg.Field{Name: "x-connection-id", Value: c.ID})
			if r.status != 400 && r.status != 404 || strings.Contains(r.body, c.ID) {
				t.Errorf("%s: %d %s", call[0], r.status, r.body)
			}
		}
	}
	for _, call := range [][2]string{
		{"GET", "/v1/videos/v"}, {"GET", "/v1/videos/v/content"}, {"GET", "/v1/responses/resp_x"}, {"GET", "/v1/responses/resp_x/input_items"},
		{"DELETE", "/v1/responses/resp_x"}, {"POST", "/v1/responses/resp_x/cancel"},
	} {
		there := w.do(call[0], call[1], foreign.APIKey, "")
		none := w.do(call[0], strings.NewReplacer("/videos/v", "/videos/none-such", "resp_x", "none-such").Replace(call[1]), foreign.APIKey, "")
		if there.status != 404 || undated(there) != undated(none) {
			t.Errorf("%s %s: %s, one that does not exist: %s", call[0], call[1], undated(there), undated(none))
		}
	}
	if len(w.Seen) != 0 {
		t.Errorf("%d calls were sent", len(w.Seen))
	}
}

// No answer may be kept by a cache, and no origin is allowed with credentials
// (docs/reference/reliability.md, T25, T26).
func TestNoAnswerIsCacheableOrForOneOrigin(t *testing.T) {
	w, id, key := hostileWorld(t, "upstream-key-0123456789")
	ways := [][3]string{
		{"GET", "/v1/models"}, {"GET", "/v1/models/image"}, {"GET", "/v1/nothing"}, {"GET", "/api/machines"}, {"GET", "/api/nothing"},
		{"GET", "/" + id + "/api/providers"}, {"PUT", "/v1/embeddings", "{}"},
	}
	for _, call := range endpoints {
		ways = append(ways, [3]string{"POST", call[0], call[1]})
	}
	for _, way := range ways {
		management := strings.Contains(way[1], "/api/")
		for _, origin := range []string{"https://evil.example", "null", "http://gateway.example", "https://sub.evil.example", "http://gateway.example.evil.example"} {
			for _, token := range []string{key, "sk-wrong", adminToken} {
				r := w.do(way[0], way[1], token, way[2], httpmsg.Field{Name: "origin", Value: origin})
				allow := r.header.Get("access-control-allow-origin")
				if r.header.Get("access-control-allow-credentials") != "" || allow != map[bool]string{false: "*"}[management] ||
					!strings.Contains(r.header.Get("cache-control"), "no-store") || r.header.Get("x-content-type-options") != "nosniff" ||
					r.status == 200 && !strings.Contains(r.header.Get("vary"), "Authorization") {
					t.Errorf("%s %s of %s: %d %v", way[0], way[1], origin, r.status, r.header)
				}
			}
		}
		if management {
			r := w.do("OPTIONS", way[1], "", "", httpmsg.Field{Name: "origin", Value: "https://evil.example"}, httpmsg.Field{Name: "access-control-request-method", Value: way[0]})
			if r.status < 400 || strings.Contains(r.all(), "access-control-") {
				t.Errorf("the preflight of %s: %d %v", way[1], r.status, r.header)
			}
		}
	}
}

// An upstream's page, or an image that may contain a script, is not served as a page of the gateway
// (docs/reference/reliability.md, T30).
func TestPageOfAnUpstreamIsNotServed(t *testing.T) {
	for _, kind := range []string{"text/html", "text/html; charset=utf-8", "application/xhtml+xml", "image/svg+xml", "text/javascript", "text/xml", "TEXT/HTML"} {
		w, _, key := hostileWorld(t, "upstream-key-0123456789")
		w.Answer = func(*fake.Seen) fake.Answer { return fake.OK(kind, "<script>alert(1)</script>") }
		r := w.do("POST", "/v1/audio/speech", key, `{"model":"up/m","input":"a","voice":"v"}`)
		served := r.header.Get("content-type")
		switch {
		case r.status != 200:
			if r.status < 500 || !strings.Contains(served, "json") {
				t.Errorf("%s: %d %s", kind, r.status, served)
			}
		case !regexp.MustCompile(`^(application/octet-stream|audio/|image/)`).MatchString(served) || r.header.Get("x-content-type-options") != "nosniff" || !strings.Contains(r.header.Get("content-security-policy"), "sandbox"):
			t.Errorf("%s: %v", kind, r.header)
		}
	}
}

// Malformed requests of management are refused with a reason and change nothing.
func TestMalformedManagementChangesNothing(t *testing.T) {
	w, id, key := hostileWorld(t, "upstream-key-0123456789")
	base := "/" + id + "/api"
	var conns struct{ Data []struct{ ID string } }
	w.get(200, w.do("GET", base+"/providers", adminToken, ""), &conns)
	conn := conns.Data[0].ID
	var combo, manager struct{ ID, APIKey string }
	w.get(201, w.do("POST", base+"/combos", adminToken, `{"name":"c","models":["up/m"]}`), &combo)
	w.get(201, w.do("POST", base+"/keys", adminToken, `{"name":"m","scopes":["manage"]}`), &manager)
	reads := regexp.MustCompile(`"exportedAt":\d+|\{"seq":\d+,[^}]*"GET /api/export"[^}]*\},`) // that of a state, and its record
	state := func() string {
		all := ""
		for _, path := range []string{"/export", "/keys", "/audit"} {
			all += reads.ReplaceAllString(w.do("GET", base+path, adminToken, "").body, "")
		}
		return all
	}
	had := state()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	bodies := []string{
		"", "null", "[]", "0", `"a"`, "{", `{"a":1}{}`, "\ufeff" + `{"name":"a"}`, `{"name":"a","name":"b"}`, `{"n\u0061me":"a","name":"b"}`,
		`{"__proto__":{"scopes":["manage"]}}`, `{"constructor":{}}`, `{"name":` + deep(200) + `}`, `{"name":` + deep(20_000) + `}`, `{"name":1e999}`,
		`{"priority":` + strings.Repeat("9", 4000) + `}`, `{"name":"\ud800"}`, `{"name":"a\u0000b"}`, `{"NAME":"a"}`,
		`{"name":"` + strings.Repeat("a", 100_000) + `"}`, "{\"a\xff\":1}",
	}
	refused := func(what string, r reply) {
		t.Helper()
		if m := gjson.Get(r.body, "error.message").Str; r.status < 400 || r.status > 499 || m == "" || len(m) >= 600 {
			t.Errorf("%.120s: %d %.200s", what, r.status, r.body)
		}
	}
	for _, route := range []string{
		"POST /providers", "PUT /providers/" + conn, "POST /combos", "PUT /combos/" + combo.ID, "POST /keys", "PUT /models/alias", "POST /models/custom",
		"POST /models/disabled", "PATCH /settings", "POST /import", "POST /export", "POST /explain", "POST /providers/" + conn + "/test", "POST /api/machines",
	} {
		method, path, _ := strings.Cut(route, " ")
		token := manager.APIKey
		if path == "/api/machines" {
			token = adminToken
		} else {
			path = base + path
		}
		for _, body := range bodies {
			if body == "" && regexp.MustCompile(`keys$|test$|machines$`).MatchString(path) || strings.HasSuffix(path, "/test") && body == `{"name":"a","name":"b"}` {
				continue // no body is one there
			}
			refused(route+" "+body, w.do(method, path, token, body))
		}
	}
	for _, query := range []string{"alias=a&alias=b", "alias=%zz", "alias=__proto__", "alias[]=a", "alias=" + strings.Repeat("a", 10_000), "%61lias=a&alias=b", "alias=%00"} {
		refused(query, w.do("DELETE", base+"/models/alias?"+query, manager.APIKey, ""))
	}
	for _, match := range []string{`"0"`, `"-1"`, `"9223372036854775808"`, "W/", `""`, `"100", "200"`, strings.Repeat("x", 5000), `"é"`} {
		if r := w.do("PUT", base+"/providers/"+conn, manager.APIKey, `{"name":"never"}`, httpmsg.Field{Name: "if-match", Value: match}); r.status != 412 {
			t.Errorf("if-match %.20s: %d %s", match, r.status, r.body)
		}
	}
	for _, other := range []string{"..", "__proto__", "\x00", "☃", conn + " ", strings.ToUpper(conn), strings.Repeat("a", 3000)} {
		refused(other, w.do("DELETE", base+"/providers/"+other, manager.APIKey, ""))
	}
	for _, bad := range []string{"1000001", "-1000001", "1.5", `"1"`, `"-Infinity"`, "1e300", "true", "[1]", `{"a":1}`} {
		refused("priority "+bad, w.do("PUT", base+"/providers/"+conn, manager.APIKey, `{"priority":`+bad+`}`))
	}
	if now := state(); now != had {
		t.Errorf("something changed: %s", now)
	}
	w.get(200, w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a"}`), nil)
}

// Accounts are tried by priority, whatever its value.
func TestAccountsAreOrderedByPriority(t *testing.T) {
	w := newWorld(t)
	var made struct{ MachineID, APIKey string }
	w.get(201, w.do("POST", "/api/machines", adminToken, `{}`), &made)
	ids := map[string]string{}
	for _, priority := range []string{"5", "-1000000", "1000000", "0", "-1"} {
		var c struct{ ID string }
		w.get(201, w.do("POST", "/"+made.MachineID+"/api/providers", adminToken,
			`{"provider":"openai-compatible-0123abcd","apiKey":"key-of-`+priority+`-0","priority":`+priority+`,"providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`), &c)
		ids[c.ID] = priority
	}
	order := func() string {
		var p struct {
			Plan []struct{ ConnectionID string }
		}
		w.get(200, w.do("POST", "/"+made.MachineID+"/api/explain", adminToken, `{"path":"/v1/embeddings","body":{"model":"up/m","input":"a"}}`), &p)
		var got []string
		for _, s := range p.Plan {
			got = append(got, ids[s.ConnectionID])
		}
		return strings.Join(got, " ")
	}
	if got := order(); got != "-1000000 -1 0 5 1000000" {
		t.Errorf("tried in the order %s", got)
	}
	for c, priority := range ids {
		if priority == "5" {
			w.get(200, w.do("PUT", "/"+made.MachineID+"/api/providers/"+c, adminToken, `{"priority":null}`), nil)
		}
	}
	if got := order(); got != "-1000000 -1 0 5 1000000" && got != "-1000000 -1 5 0 1000000" {
		t.Errorf("with the default: tried in the order %s", got)
	}
	if r := w.do("POST", "/v1/embeddings", made.APIKey, `{"model":"up/m","input":"a"}`); ids[r.header.Get("x-weir-connection-id")] != "-1000000" {
		t.Errorf("served by %s", ids[r.header.Get("x-weir-connection-id")])
	}
}

// A field whose name differs from one that is read by the case of its letters alone is
// refused at every endpoint, also with letters that fold to those of ASCII.
func TestNamesInAnotherCaseAreRefused(t *testing.T) {
	w, _, key := hostileWorld(t, "upstream-key-0123456789")
	for _, call := range endpoints {
		for _, more := range []string{`"Model":"secret"`, `"MODEL":"secret"`, `"Stream":true`, `"ſtream":true`} {
			if strings.HasSuffix(call[0], "rerank") || strings.HasSuffix(call[0], "moderations") && strings.Contains(more, "tream") {
				continue // no stream is read there, and the body of a rerank is built, not passed on
			}
			if r := w.do("POST", call[0], key, strings.TrimSuffix(call[1], "}")+","+more+"}"); r.status != 400 || len(w.Seen) != 0 {
				t.Errorf("%s with %s: %d after %d calls", call[0], more, r.status, len(w.Seen))
			}
		}
	}
}

// A regression: a credential that a client sends in place of a model's name was stored with
// the usage and the request if a provider was called with it.
func TestCredentialAsModelIsStoredNowhere(t *testing.T) {
	for _, status := range []int{200, 404, 500} {
		w, id, key := hostileWorld(t, "upstream-key-0123456789")
		const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
		c := canary{t, secret}
		w.Answer = func(*fake.Seen) fake.Answer { return fake.Reply(status, embedding) }
		w.do("POST", "/v1/embeddings", key, `{"model":"up/`+secret+`","input":"a"}`)
		w.Add(2 * time.Second)
		w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a"}`)
		for _, path := range []string{"/requests", "/requests.csv", "/usage?groupBy=model", "/usage.csv?groupBy=model", "/usage/recent", "/health/timeline?groupBy=model", "/models/availability", "/providers", "/audit"} {
			shown := w.do("GET", "/"+id+"/api"+path, adminToken, "")
			if shown.status != 200 {
				t.Errorf("%s: %d %s", path, shown.status, shown.body)
			}
			c.search(fmt.Sprint(path, " after ", status), shown.body)
		}
		c.search("the log", strings.Join(w.Log, "\n"))
	}
}
