package api

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// A server without a Responses endpoint is remembered by calls, and a plan shows
// the endpoint that the next call uses.
func TestExplainShowsChatOfServerWithoutResponses(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.HasSuffix(r.URL, "/responses") {
			return fake.Reply(404, `{"detail":"Not Found"}`)
		}
		return fake.Reply(200, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)
	}
	const body = `{"model":"up/m","input":"a"}`
	plan := func() string {
		var p struct{ Plan []struct{ Upstream string } }
		w.get(200, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"/v1/responses","body":`+body+`}`), &p)
		return p.Plan[0].Upstream
	}
	before := plan()
	w.get(200, w.do("POST", "/v1/responses", key, body), nil)
	first := w.Seen[0].Method + " " + w.Seen[0].URL
	after := plan()
	w.Seen = nil
	w.get(200, w.do("POST", "/v1/responses", key, body), nil)
	second := w.Seen[0].Method + " " + w.Seen[0].URL
	if before != first || after != second || !strings.HasSuffix(second, "/chat/completions") {
		t.Errorf("planned %q and %q, called %q and %q", before, after, first, second)
	}
}

// The Gemini API names the model in the path, a socket of the Realtime API in the query.
func TestExplainKnowsRoutesWithParametersAndSockets(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(1)
	w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"openai","apiKey":"sk-0123456789abcdef"}`), nil)
	for _, tt := range []struct{ path, body, want string }{
		{"/v1beta/models/up/m:generateContent", `,"body":{"contents":[{"parts":[{"text":"a"}]}]}`, "/chat/completions"},
		{"/" + id + "/v1beta/models/up/m:streamGenerateContent?alt=sse", `,"body":{"contents":[{"parts":[{"text":"a"}]}]}`, "/chat/completions"},
		{"/v1/realtime?model=gpt-realtime", "", "/realtime"},
	} {
		var p struct {
			Plan []struct{ Upstream, Skipped string }
		}
		w.get(200, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"`+tt.path+`"`+tt.body+`}`), &p)
		if len(p.Plan) != 1 || !strings.HasSuffix(p.Plan[0].Upstream, tt.want) || p.Plan[0].Skipped != "" {
			t.Errorf("%s: %+v", tt.path, p.Plan)
		}
	}
	if len(w.Seen) != 0 {
		t.Errorf("%d calls were sent", len(w.Seen))
	}
	for path, body := range map[string]string{"/v1/responses/{id}/cancel": `,"body":{}`, "/v1/embeddings": "", "/v1beta/models": `,"body":{}`} {
		w.get(400, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"`+path+`"`+body+`}`), nil)
	}
}

// A request of the list is explained as it went, although the body of the example is
// another one: its session, its key and the account that it named go along.
func TestListedRequestIsExplainedAsItWent(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(4)
	var list struct{ Data []struct{ ID string } }
	w.get(200, w.do("GET", "/"+id+"/api/providers", adminToken, ""), &list)
	for _, c := range list.Data { // of equal priority, so that the session decides
		w.get(200, w.do("PUT", "/"+id+"/api/providers/"+c.ID, adminToken, `{"priority":1}`), nil)
	}
	const members = `{"name":"%s","models":["up/m","up/n","up/o"],"strategy":"affinity"}`
	w.get(201, w.do("POST", "/"+id+"/api/combos", adminToken, fmt.Sprintf(members, "any")), nil)
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.HasSuffix(r.URL, "/embeddings") {
			return fake.JSON(embedding)
		}
		return fake.JSON(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}
	chat := func(model, text string, header ...httpmsg.Field) {
		w.get(200, w.do("POST", "/v1/chat/completions", key, fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, model, text), header...), nil)
	}
	for i := range 8 {
		chat("up/m", fmt.Sprint("text ", i))
		chat("any", fmt.Sprint("text ", i))
		chat("up/m", "same", httpmsg.Field{Name: "x-session-id", Value: fmt.Sprint("session ", i)})
	}
	chat("up/m", "same", httpmsg.Field{Name: "x-connection-id", Value: list.Data[2].ID})
	w.get(200, w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a"}`, httpmsg.Field{Name: "x-session-id", Value: "of embeddings"}), nil)
	w.Add(2 * time.Second)
	w.embed(key) // reports what came before

	accounts := map[string]bool{}
	for _, r := range gjson.Get(w.do("GET", "/"+id+"/api/requests?limit=200", adminToken, "").body, "data").Array() {
		headers := r.Get("headers").Raw
		if headers == "" {
			headers = "{}"
		}
		answer := w.do("POST", "/"+id+"/api/explain", adminToken, fmt.Sprintf(`{"path":%s,"keyId":%s,"session":%q,"headers":%s,"body":{"model":%s,"input":"x","messages":[{"role":"user","content":"An example"}]}}`,
			r.Get("endpoint").Raw, r.Get("keyId").Raw, r.Get("session").Str, headers, r.Get("asked").Raw))
		first := gjson.Get(answer.body, `plan.#(try==1)`)
		named := r.Get("session").Exists() || r.Get("headers").Exists()
		if same := first.Get("connectionId").Str == r.Get("connectionId").Str && first.Get("model").Str == r.Get("model").Str; answer.status != 200 || named && !same {
			t.Errorf("%s\nis explained by %s", r.Raw, answer.body)
		}
		if r.Get("session").Exists() && gjson.Get(answer.body, "session").Str != "session" {
			t.Errorf("the session is recognized by %s", gjson.Get(answer.body, "session").Raw)
		}
		if named {
			accounts[r.Get("connectionId").Str+" "+r.Get("asked").Str] = true
		}
	}
	if len(accounts) < 6 {
		t.Errorf("the calls went to %v only", accounts)
	}
	for _, session := range []string{"0", "x", "-1", "10000000000000000"} {
		w.get(400, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"/v1/embeddings","body":{"model":"up/m","input":"a"},"session":"`+session+`"}`), nil)
	}
}

// A plan of services names their models and addresses, the gateway's own fetch among them.
func TestExplainKnowsSearchAndFetch(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(0)
	for _, p := range []string{"tavily", "exa"} {
		w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"`+p+`","apiKey":"vendor-key-0123456789"}`), nil)
	}
	w.get(201, w.do("POST", "/"+id+"/api/combos", adminToken, `{"name":"find","kind":"webSearch","models":["tavily","exa"]}`), nil)
	w.get(201, w.do("POST", "/"+id+"/api/combos", adminToken, `{"name":"reader","kind":"webFetch","models":["exa/fetch","web/fetch"]}`), nil)
	for _, tt := range []struct{ path, body, want string }{
		{"/v1/search", `{"model":"find","query":"q"}`, "tavily/search POST https://api.tavily.com/search, exa/search POST https://api.exa.ai/search"},
		{"/v1/web/fetch", `{"model":"reader","url":"https://page.example.com/a?b=c"}`, "exa/fetch POST https://api.exa.ai/contents, web/fetch GET https://page.example.com/a"},
	} {
		var p struct {
			Plan []struct{ Model, Upstream string }
		}
		w.get(200, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"`+tt.path+`","body":`+tt.body+`}`), &p)
		var got []string
		for _, s := range p.Plan {
			got = append(got, s.Model+" "+s.Upstream)
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %v", tt.path, got)
		}
	}
	if len(w.Seen) != 0 {
		t.Errorf("%d calls were sent", len(w.Seen))
	}
}

// A connection to a search service is tested by one search for one result.
func TestConnectionToASearchServiceIsTestedBySearching(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(0)
	w.Answer = func(s *fake.Seen) fake.Answer {
		if strings.Contains(s.URL, "tavily") {
			return fake.JSON(`{"results":[{"url":"https://a.example.com/","title":"a"}]}`)
		}
		return fake.Reply(401, `{}`)
	}
	for provider, want := range map[string]string{"tavily": "true tavily/search ", "brave": "false brave/search unauthorized"} {
		w.Seen = nil
		var made struct{ ID string }
		w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"`+provider+`","apiKey":"vendor-key-0123456789"}`), &made)
		var got struct {
			OK           bool
			Model, Error string
		}
		w.get(200, w.do("POST", "/"+id+"/api/providers/"+made.ID+"/test", adminToken, ""), &got)
		if fmt.Sprint(got.OK, " ", got.Model, " ", got.Error) != want || len(w.Seen) != 1 {
			t.Errorf("%s: %+v after %d calls", provider, got, len(w.Seen))
		}
		if provider == "tavily" && !strings.Contains(w.Seen[0].Body, `"max_results":1`) {
			t.Errorf("sent %s", w.Seen[0].Body)
		}
	}
}

// A plan with a key has the code with which a call with the key is refused.
func TestExplainRefusesAsTheKeyIsRefused(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(2)
	w.get(201, w.do("POST", "/"+id+"/api/combos", adminToken, `{"name":"mix","models":["up/m","up/n"]}`), nil)
	for _, tt := range []struct {
		key, change string
		served      int
		code        string
	}{
		{`{}`, "", 3, ""},
		{`{"dailyMax":2}`, "", 2, "rate_limit_exceeded"},
		{`{"rpm":2}`, "", 2, "rate_limit_exceeded"},
		{`{"rpm":2,"dailyMax":9,"budget":{"unit":"requests","limit":2,"window":"minute"}}`, "", 2, "rate_limit_exceeded"},
		{`{"tpm":13}`, "", 3, "rate_limit_exceeded"}, // 3 each, for which 7 are reserved
		{`{"dailyMax":9,"budget":{"unit":"requests","limit":2,"window":"day"}}`, "", 2, "budget_exceeded"},
		{`{"maxParallel":1}`, "", 3, ""},
		{`{}`, `{"paused":true}`, 0, "key_paused"},
		{`{"scopes":["manage"]}`, "", 0, "scope_required"},
		{`{"expiresAt":%d}`, "", 0, "invalid_api_key"},
	} {
		var key struct{ ID, APIKey string }
		w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, strings.ReplaceAll(tt.key, "%d", fmt.Sprint(w.Now().UnixMilli()+1000))), &key)
		if tt.change != "" {
			w.get(200, w.do("PUT", "/"+id+"/api/keys/"+key.ID, adminToken, tt.change), nil)
		}
		w.Add(2 * time.Second)
		plan := func(model string) string {
			t.Helper()
			r := w.do("POST", "/"+id+"/api/explain", adminToken, fmt.Sprintf(`{"path":"/v1/embeddings","keyId":%q,"body":{"model":%q,"input":"a"}}`, key.ID, model))
			if r.status != 200 {
				t.Fatalf("%s: %d %s", tt.key, r.status, r.body)
			}
			return gjson.Get(r.body, "plan.#.skipped").Raw
		}
		for i := range 4 {
			r := w.embed(key.APIKey)
			if served := r.status == 200; served != (i < tt.served) && tt.code != "" || !served && gjson.Get(r.body, "error.code").Str != tt.code {
				t.Errorf("%s, call %d: %d %s", tt.key, i+1, r.status, r.body)
			}
			w.Add(time.Second)
		}
		one, both := fmt.Sprintf(`[%q,%[1]q]`, tt.code), fmt.Sprintf(`[%q,%[1]q,"not_reached","not_reached"]`, tt.code)
		switch tt.code {
		case "":
			both = `["","","",""]`
		case "budget_exceeded": // another member of a combo may have one
			both = fmt.Sprintf(`[%q,%[1]q,%[1]q,%[1]q]`, tt.code)
		}
		if got := plan("up/m"); got != one {
			t.Errorf("%s %s: %s, want %s", tt.key, tt.change, got, one)
		}
		if got := plan("mix"); got != both {
			t.Errorf("%s %s, with a combo: %s, want %s", tt.key, tt.change, got, both)
		}
		w.Add(time.Minute)
	}
}

// A plan names the fields that a translation would change and leave out.
func TestExplainNamesTranslatedAndDroppedFields(t *testing.T) {
	w, id, _ := hostileWorld(t, "upstream-key-0123456789")
	const messages = `[{"role":"system","content":"b"},{"role":"user","content":"a"}]`
	for _, tt := range []struct{ path, body, upstream, translated, dropped string }{
		{"/v1/chat/completions", `{"model":"up/m","messages":` + messages + `,"stream":true,"seed":1,"own_field":{"a b":[1.0,2]}}`, "/chat/completions", "", ""},
		{"/v1/chat/completions", `{"model":"an/m","messages":` + messages + `,"max_tokens":9,"seed":1,"stop":"x"}`, "/messages", "messages stop", "seed"},
		{"/v1/messages", `{"model":"an/m","messages":[{"role":"user","content":"a"}],"system":"b","max_tokens":9}`, "/messages", "", ""},
		{"/v1/messages", `{"model":"up/m","messages":[{"role":"user","content":"a"}],"system":"b","max_tokens":9,"top_k":3}`, "/chat/completions", "messages system", "top_k"},
		{"/v1/embeddings", `{"model":"up/m","input":["a"],"user":"u"}`, "/embeddings", "", ""},
	} {
		var p struct {
			Plan []struct {
				Upstream            string
				Translated, Dropped []string
			}
		}
		w.get(200, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"`+tt.path+`","body":`+tt.body+`}`), &p)
		s := p.Plan[0]
		if !strings.HasSuffix(s.Upstream, "/v1"+tt.upstream) || strings.Join(s.Translated, " ") != tt.translated || strings.Join(s.Dropped, " ") != tt.dropped {
			t.Errorf("%s: %+v", tt.body, s)
		}
	}
	if len(w.Seen) != 0 {
		t.Errorf("%d calls were sent", len(w.Seen))
	}
}

// Random calls of keys with and without tags, of tools, and with fields of bodies that are tags,
// count in the budgets that their plan names, and are refused where it says so.
func TestExplainedBudgetsAreThoseThatCount(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(1)
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"tagsFrom":["user"]}`), nil)
	for i, of := range []string{`"tag":"project=a"`, `"tag":"project = a","limit":15`, `"tool":"codex"`, `"tag":"user=ann"`, `"tag":"project=ä"`,
		`"tag":"project=b","tool":"curl"`, `"tag":"project=a","limit":4,"tool":"codex"`} {
		if !strings.Contains(of, "limit") {
			of += `,"limit":100`
		}
		w.get(201, w.do("POST", "/"+id+"/api/budgets", adminToken, fmt.Sprintf(`{"name":"b%d","unit":"requests","window":"day",%s}`, i, of)), nil)
	}
	var keys []struct{ ID, APIKey string }
	for _, tags := range []string{`[]`, `["project=a"]`, `["project=b","user=bob"]`, `["1","2","3","4","5","6","7","8"]`} {
		var key struct{ ID, APIKey string }
		w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"name":"k","tags":`+tags+`}`), &key)
		keys = append(keys, key)
	}
	w.Add(2 * time.Second)
	spent := func() map[string]int64 {
		w.Add(2 * time.Second)
		w.do("GET", "/v1/models", keys[0].APIKey, "") // reports
		all := map[string]int64{}
		for _, b := range gjson.Get(w.do("GET", "/"+id+"/api/budgets", adminToken, "").body, "data").Array() {
			all[b.Get("id").Str] = b.Get("spent").Int()
		}
		return all
	}
	before, refused, counted := spent(), 0, 0
	for n := range 80 {
		key := keys[random.IntN(len(keys))]
		tags := pick("", "project=a", "project=A", "project = a", "project=a,project=b", "project=b,project=a", "project=ä", "project=", "=a", "user=ann",
			"1,2,3,4,5,6,7,project=a", "1,2,3,4,5,6,7,8,project=a", "project=a\xff")
		agent := pick("", "curl/8", "codex_exec/1")
		body := `{"model":"up/m","input":"a"` + pick("", `,"user":"ann"`, `,"user":"bob"`, `,"user":""`) + `}`
		headers := fmt.Sprintf(`{"x-weir-tags":%q,"user-agent":%q}`, strings.TrimSuffix(tags, "\xff"), agent)
		if strings.HasSuffix(tags, "\xff") { // not in JSON: as without the tag
			headers = fmt.Sprintf(`{"user-agent":%q}`, agent)
		}
		plan := w.do("POST", "/"+id+"/api/explain", adminToken, fmt.Sprintf(`{"path":"/v1/embeddings","keyId":%q,"headers":%s,"body":%s}`, key.ID, headers, body))
		step := gjson.Get(plan.body, "plan.0")
		sent := w.do("POST", "/v1/embeddings", key.APIKey, body, httpmsg.Field{Name: "x-weir-tags", Value: tags}, httpmsg.Field{Name: "user-agent", Value: agent})
		what := fmt.Sprintf("call %d, key %s, tags %q, agent %q, %s: %d %s\nplan %s", n, key.ID, tags, agent, body, sent.status, sent.body, plan.body)
		if plan.status != 200 || !step.Exists() || (sent.status == 200) != (step.Get("skipped").Str == "") {
			t.Fatal(what)
		}
		after, named := spent(), map[string]bool{}
		for _, b := range step.Get("budgets").Array() {
			named[b.Get("id").Str] = true
		}
		for budget, had := range before {
			want := had
			if sent.status == 200 && named[budget] {
				want++
				counted++
			}
			if after[budget] != want {
				t.Fatalf("the budget %s has counted %d, want %d: %s", budget, after[budget], want, what)
			}
		}
		if sent.status != 200 {
			refused++
		}
		before = after
	}
	if refused == 0 || counted < 20 {
		t.Errorf("%d calls refused, %d counted", refused, counted)
	}
}
