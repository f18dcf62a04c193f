package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
)

// Usage that is empty, zero beside a text, no number or absurd counts as not stated: it is
// estimated, or the attempt unpriced, but never free, and adds no absurd number to a total or
// a budget. The log names counts that cannot be true once.
func TestInvalidUsageIsNeitherFreeNorAbsurd(t *testing.T) {
	// Of %s the first is the field of the input, the second that of the output.
	stated := []string{
		`{}`, `null`, `"x"`, `[]`, `{"%s":0,"%s":0}`, `{"%s":"100","%s":"50"}`, `{"%s":null,"%s":null}`, `{"%s":{},"%s":[]}`, `{"%s":-5,"%s":-5}`,
		`{"%s":1e18,"%s":1e18}`, `{"%s":1e308,"%s":1e308}`, // from here on absurd
	}
	const absurd = 9
	text := strings.Repeat("word ", 200)
	ask := func(model, more string) string { return `{"model":"` + model + `",` + more + `}` }
	for _, tt := range []struct {
		name, path, body, answer string // USAGE is replaced
		in, out                  string
		unpriced                 bool
		quiet                    bool // absurd counts are no counts
	}{
		{"chat", "/v1/chat/completions", ask("openai/gpt-5.5", `"messages":[{"role":"user","content":"a"}]`),
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}],"usage":USAGE}`,
			"prompt_tokens", "completion_tokens", false, false},
		{"chat of an own server", "/v1/chat/completions", ask("up/m", `"messages":[{"role":"user","content":"a"}]`),
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}],"usage":USAGE}`,
			"prompt_tokens", "completion_tokens", false, false},
		{"a stream", "/v1/chat/completions", ask("openai/gpt-5.5", `"stream":true,"messages":[{"role":"user","content":"a"}]`),
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + `data: {"id":"c","choices":[],"usage":USAGE}` + "\n\ndata: [DONE]\n\n",
			"prompt_tokens", "completion_tokens", false, false},
		{"Responses", "/v1/responses", ask("openai/gpt-5.5", `"input":"a"`),
			`{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}],"usage":USAGE}`,
			"input_tokens", "output_tokens", false, false},
		{"Messages", "/v1/messages", ask("anthropic/claude-opus-4-8", `"max_tokens":5000,"messages":[{"role":"user","content":"a"}]`),
			`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"` + text + `"}],"stop_reason":"end_turn","usage":USAGE}`,
			"input_tokens", "output_tokens", false, false},
		{"Gemini", "/v1beta/models/gemini/gemini-3.8-flash:generateContent", `{"contents":[{"role":"user","parts":[{"text":"a"}]}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]},"finishReason":"STOP"}],"usageMetadata":USAGE}`,
			"promptTokenCount", "candidatesTokenCount", false, false},
		{"embeddings", "/v1/embeddings", ask("openai/text-embedding-3-small", `"input":"a b c"`),
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":USAGE}`, "prompt_tokens", "total_tokens", false, true},
		{"rerank by tokens", "/v1/rerank", ask("voyage/rerank-2.5", `"query":"a","documents":["b"]`),
			`{"object":"list","data":[{"index":0,"relevance_score":0.5}],"usage":USAGE}`, "total_tokens", "x", false, false},
		{"rerank by searches", "/v1/rerank", ask("cohere/rerank-v3.5", `"query":"a","documents":["b"]`),
			`{"id":"x","results":[{"index":0,"relevance_score":0.5}],"meta":{"billed_units":USAGE}}`, "search_units", "x", false, true},
		{"images", "/v1/images/generations", ask("openai/gpt-image-2", `"prompt":"a"`),
			`{"created":1,"data":[{"b64_json":"aGVsbG8="}],"usage":USAGE}`, "input_tokens", "output_tokens", true, false},
	} {
		for i, usage := range stated {
			if strings.Contains(usage, "%s") {
				usage = fmt.Sprintf(usage, tt.in, tt.out)
			}
			what := tt.name + ", usage " + usage
			w := newWorld(t)
			machine, key := w.priced()
			api := func(method, path, body string) gjson.Result {
				return gjson.Parse(w.do(method, "/"+machine+"/api"+path, adminToken, body).body)
			}
			for _, p := range []string{"cohere", "voyage"} {
				api("POST", "/providers", `{"provider":"`+p+`","name":"a","apiKey":"upstream-key"}`)
			}
			api("POST", "/providers", `{"provider":"openai-compatible-0123abcd","name":"a","apiKey":"k","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`)
			api("PATCH", "/settings", `{"allowUnknown":true,"modelPrices":{"openai/gpt-5.5":"1/10","up/m":"1/10"}}`)
			api("POST", "/budgets", `{"name":"usd","unit":"usd","limit":1000,"window":"day"}`)
			api("POST", "/budgets", `{"name":"tokens","unit":"tokens","limit":1000000000000,"window":"day"}`)
			answer := strings.Replace(tt.answer, "USAGE", usage, 1)
			w.Answer = func(*fake.Seen) fake.Answer {
				if strings.HasPrefix(answer, "data: ") {
					return fake.OK("text/event-stream", answer)
				}
				return fake.JSON(answer)
			}
			for range 2 {
				if got := w.do("POST", tt.path, key, tt.body); got.status != 200 {
					t.Fatalf("%s: %d %s", what, got.status, got.body)
				}
			}
			w.Clock.Add(2 * time.Second)
			w.do("GET", "/v1/models", key, "")
			row, total := api("GET", "/requests", "").Get("data.0"), api("GET", "/usage", "").Get("total")
			tokens, cost := row.Get("inputTokens").Int()+row.Get("outputTokens").Int(), row.Get("costUsd").Num
			if row.Get("priced").Bool() == tt.unpriced || !tt.unpriced && (!row.Get("estimated").Bool() || cost == 0 || tokens == 0) || tokens > 2000 || cost > 0.01 {
				t.Errorf("%s: the request is %s", what, row.Raw)
			}
			if got := total.Get("inputTokens").Int() + total.Get("outputTokens").Int(); got != 2*tokens || total.Get("costUsd").Num != 2*cost || total.Get("unpricedAttempts").Exists() != tt.unpriced {
				t.Errorf("%s: usage is %s, a request %s", what, total.Raw, row.Raw)
			}
			budgets := api("GET", "/budgets", "").Get("data")
			if usd, n := budgets.Get("0.spent").Num, budgets.Get("1.spent").Int(); !tt.unpriced && (usd != 2*cost || n != 2*tokens) || n > 4000 {
				t.Errorf("%s: the budgets have $%v and %d tokens, a request %s", what, usd, n, row.Raw)
			}
			named := 0
			for _, line := range w.Log {
				if strings.Contains(line, "cannot be true") {
					named++
				}
			}
			if want := i >= absurd && !tt.quiet; named != 1 && want || named != 0 && !want {
				t.Errorf("%s: named %d times: %q", what, named, w.Log)
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
// machine is used (docs/reference/reliability.md, T5). A wrong key is told nothing about the
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

// An upstream's page, or an image that may contain a script, is no page of the gateway
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
	state := func() string {
		all := ""
		for _, path := range []string{"/export", "/keys", "/audit"} {
			all += regexp.MustCompile(`"exportedAt":\d+`).ReplaceAllString(w.do("GET", base+path, adminToken, "").body, "")
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
