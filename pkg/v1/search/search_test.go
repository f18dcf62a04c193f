package search

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

func handler(w *testgw.World) *Handler {
	return &Handler{Accounts: w.Pool, Now: w.Now}
}

func target(d *provider.Descriptor, model string) routing.Target {
	return routing.Target{Provider: d, Alias: d.Alias, Model: model}
}

func searched(t *testing.T, w *testgw.World, body string) gjson.Result {
	t.Helper()
	resp, err := handler(w).Create(t.Context(), w.Ask("/v1/search", body))
	return gjson.Parse(testgw.Body(t, resp, err))
}

func TestBadInputNamesTheField(t *testing.T) {
	tests := []struct{ name, fields, param string }{
		{"query_missing", ``, "query"},
		{"query_no_string", `"query":["a"]`, "query"},
		{"query_empty", `"query":"  "`, "query"},
		{"query_too_long", `"query":"` + strings.Repeat("ä", 2001) + `"`, "query"},
		{"query_with_a_newline", `"query":"a\nb"`, "query"},
		{"query_with_a_null", `"query":"a\u0000b"`, "query"},
		{"query_with_a_c1_control", `"query":"a\u009fb"`, "query"},
		{"query_twice", `"query":"a","query":"b"`, "query"},
		{"max_results_zero", `"query":"a","max_results":0`, "max_results"},
		{"max_results_large", `"query":"a","max_results":101`, "max_results"},
		{"max_results_text", `"query":"a","max_results":"5"`, "max_results"},
		{"offset_negative", `"query":"a","offset":-1`, "offset"},
		{"offset_fraction", `"query":"a","offset":1.5`, "offset"},
		{"search_type", `"query":"a","search_type":"images"`, "search_type"},
		{"time_range", `"query":"a","time_range":"hour"`, "time_range"},
		{"country_long", `"query":"a","country":"DEU"`, "country"},
		{"country_digits", `"query":"a","country":"1x"`, "country"},
		{"language", `"query":"a","language":"german, please"`, "language"},
		{"domain_filter_no_list", `"query":"a","domain_filter":"a.example.com"`, "domain_filter"},
		{"domain_filter_address", `"query":"a","domain_filter":["https://a.example.com"]`, "domain_filter"},
		{"domain_filter_operators", `"query":"a","domain_filter":["a.example.com OR site:b.example.com"]`, "domain_filter"},
		{"domain_filter_number", `"query":"a","domain_filter":[1]`, "domain_filter"},
		{"domain_filter_long", `"query":"a","domain_filter":[` + strings.Repeat(`"a.example.com",`, 20) + `"a.example.com"]`, "domain_filter"},
		{"content_options", `"query":"a","content_options":[]`, "content_options"},
		{"full_page", `"query":"a","content_options":{"full_page":"yes"}`, "content_options.full_page"},
		{"content_format", `"query":"a","content_options":{"format":"pdf"}`, "content_options.format"},
		{"content_max", `"query":"a","content_options":{"max_characters":0.5}`, "content_options.max_characters"},
		{"provider_options", `"query":"a","provider_options":[]`, "provider_options"},
		{"an_address_as_option", `"query":"a","provider_options":{"base_url":"https://evil.example.com"}`, "provider_options.base_url"},
		{"a_key_as_option", `"query":"a","provider_options":{"exa":{"apiKey":"x"}}`, "provider_options.exa.apiKey"},
		{"an_object_as_option", `"query":"a","provider_options":{"exa":{"contents":{"text":true}}}`, "provider_options.exa.contents"},
		{"model_and_provider", `"query":"a","model":"exa","provider":"tavily"`, "provider"},
		{"unknown_provider", `"query":"a","provider":"nobody"`, "model"},
		{"a_provider_that_does_not_search", `"query":"a","provider":"voyage"`, "model"},
		{"a_model_that_does_not_search", `"query":"a","model":"openai/text-embedding-3-small"`, "model"},
		{"a_provider_without_an_account", `"query":"a","provider":"tavily"`, "model"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.Recorded(t, "exa", "voyage", "openai")
			_, err := handler(w).Create(t.Context(), w.Ask("/v1/search", "{"+tt.fields+"}"))
			if e := testgw.Refused(t, err, 400); e.Param != tt.param {
				t.Errorf("param %q, want %q: %s", e.Param, tt.param, e.Message)
			}
			if len(w.Seen) > 0 {
				t.Error("a call was sent")
			}
		})
	}
	for _, body := range []string{"", "{", "[]", `"query"`, strings.Repeat("[", 1<<20)} {
		w := testgw.Recorded(t, "exa")
		_, err := handler(w).Create(t.Context(), w.Ask("/v1/search", body))
		testgw.Refused(t, err, 400)
	}
}

func TestQueryIsNormalizedBeforeChecks(t *testing.T) {
	w := testgw.Recorded(t, "exa")
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: `{"results":[]}`} }
	h := handler(w)
	for _, tt := range [][2]string{
		{"plain", "plain"}, {"  ﬁnd ①  ", "find 1"}, {"ｆｕｌｌ\u3000ｗｉｄｔｈ", "full width"}, {"e\u0301 Å", "\u00e9 \u00c5"}, {"½ ㍿", "1⁄2 株式会社"},
		{"\u1112\u1161\u11ab", "한"}, {"a\u0307\u0323", "\u1ea1\u0307"}, {"ｶﾞ ﾊﾟ", "ガ パ"}, {"𝐇𝐢…", "Hi..."}, {"\u1e9b\u0323", "\u1e69"}, {"🏳️‍🌈", "🏳️‍🌈"},
	} {
		body, _ := json.Marshal(map[string]string{"query": tt[0]})
		resp, err := h.Create(t.Context(), w.Ask("/v1/search", string(body)))
		sent := gjson.Get(w.Seen[len(w.Seen)-1].Body, "query").Str
		if got := gjson.Get(testgw.Body(t, resp, err), "query").Str; got != tt[1] || sent != tt[1] {
			t.Errorf("%q: got %q, sent %q", tt[0], got, sent)
		}
	}
	_, err := h.Create(t.Context(), w.Ask("/v1/search", `{"query":"`+strings.Repeat("ﷺ", maxQuery/18+1)+`"}`))
	if e := testgw.Refused(t, err, 400); e.Param != "query" {
		t.Errorf("param %q", e.Param)
	}
}

func TestProviderOptionsReachOnlyTheirProvider(t *testing.T) {
	w := testgw.Recorded(t, "tavily", "brave")
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: `{"results":[],"query":{}}`} }
	c := w.Ask("/v1/search", `{"provider":"tavily","query":"q","provider_options":{"search_depth":"advanced","nonsense":1,"brave":{"safesearch":"off"},"tavily":{"chunks_per_source":2}}}`)
	resp, err := handler(w).Create(t.Context(), c)
	testgw.Body(t, resp, err)
	sent := w.Seen[0].Body
	if gjson.Get(sent, "search_depth").Str != "advanced" || gjson.Get(sent, "chunks_per_source").Raw != "2" ||
		gjson.Get(sent, "nonsense").Exists() || gjson.Get(sent, "safesearch").Exists() {
		t.Errorf("sent %s", sent)
	}
	if got := strings.Join(c.Trace.Dropped, ","); got != "provider_options.nonsense" {
		t.Errorf("dropped %q", got)
	}
	searched(t, w, `{"provider":"brave","query":"a&b=c #d","provider_options":{"freshness":"2026-01-01to2026-02-01"},"time_range":"day"}`)
	if u := w.Seen[1].URL; !strings.Contains(u, "?q=a%26b%3Dc+%23d&") || strings.Count(u, "freshness=") != 1 || !strings.Contains(u, "freshness=2026-01-01to2026-02-01") {
		t.Errorf("called %s", u)
	}
}

func hits(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,{"url":"https://a.example.com/` + strconv.Itoa(i) + `","title":"t` + strconv.Itoa(i) + `"}`)
	}
	return `{"results":[` + b.String()[1:] + `]}`
}

func TestOffsetSkipsResults(t *testing.T) {
	w := testgw.Recorded(t, "tavily", "searxng", "serper", "brave")
	w.Answer = func(s *fake.Seen) fake.Answer {
		return fake.Answer{Body: strings.Replace(hits(20), `"results"`, `"organic":[],"results"`, 1)}
	}
	got := searched(t, w, `{"provider":"tavily","query":"q","offset":3,"max_results":2}`)
	if gjson.Get(w.Seen[0].Body, "max_results").Raw != "5" || got.Get("results.#.title").Raw != `["t3","t4"]` ||
		got.Get("results.#.position").Raw != "[4,5]" || got.Get("results.#.citation.rank").Raw != "[4,5]" {
		t.Errorf("sent %s, got %s", w.Seen[0].Body, got.Raw)
	}
	got = searched(t, w, `{"provider":"searxng","query":"q","offset":25,"max_results":2}`)
	if u := w.Seen[1].URL; !strings.Contains(u, "&pageno=2") || got.Get("results.#.title").Raw != `["t5","t6"]` {
		t.Errorf("called %s, got %s", u, got.Raw)
	}
	searched(t, w, `{"provider":"serper","query":"q","offset":20,"max_results":10}`)
	if sent := w.Seen[2].Body; gjson.Get(sent, "page").Raw != "3" || gjson.Get(sent, "num").Raw != "10" {
		t.Errorf("sent %s", sent)
	}
	// More results are wanted than one call to Brave returns: a page has
	// Brave's maximum.
	searched(t, w, `{"provider":"brave","query":"q","offset":100,"max_results":50}`)
	if u := w.Seen[3].URL; !strings.Contains(u, "&count=20&offset=5") {
		t.Errorf("called %s", u)
	}
}

// Texts that come from a page are limited in length.
func TestResultSizeIsLimited(t *testing.T) {
	long := strings.Repeat("ä ", 50_000)
	w := testgw.Recorded(t, "exa")
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Answer{Body: `{"results":[{"url":"https://a.example.com/` + strings.Repeat("x", maxURL) + `"},{"url":"https://b.example.com/","title":"` + long +
			`","author":"` + long + `","summary":"` + long + `","favicon":"https://b.example.com/` + long + `"}]}`}
	}
	got := searched(t, w, `{"provider":"exa","query":"q"}`)
	if got.Get("results.#.url").Raw != `["https://b.example.com/"]` || len(got.Raw) > 6000 {
		t.Errorf("%d bytes: %.300s", len(got.Raw), got.Raw)
	}
}

// The gateway applies the domain filter itself, also if the provider ignores
// it.
func TestDomainFilterIsEnforced(t *testing.T) {
	w := testgw.Recorded(t, "tavily")
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Answer{Body: `{"results":[{"url":"https://example.com/"},{"url":"https://sub.Example.com:8443/x"},{"url":"https://notexample.com/"},` +
			`{"url":"https://bad.example.com/"},{"url":"https://evil.com/?example.com"},{"url":"https://u@example.com/"},{"url":"https://evil.com\\@example.com/"},{"url":"https://bad.example.com./"},{"url":"mailto:a@example.com"},{"url":""}]}`}
	}
	got := searched(t, w, `{"provider":"tavily","query":"q","domain_filter":["example.com","-bad.example.com"]}`)
	if want := `["https://example.com/","https://sub.Example.com:8443/x","https://u@example.com/"]`; got.Get("results.#.url").Raw != want {
		t.Errorf("got %s, want %s", got.Get("results.#.url").Raw, want)
	}
}

func TestTimeLimits(t *testing.T) {
	w := testgw.Recorded(t, "tavily", "exa", "brave")
	w.Record.Combos = []store.Combo{{ID: "1", Name: "all", Kind: "webSearch", Models: []string{"tavily/search", "exa/search", "brave/search"}}}
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Takes: time.Minute} }
	start := w.Now()
	_, err := handler(w).Create(t.Context(), w.Ask("/v1/search", `{"model":"all","query":"q"}`))
	testgw.Refused(t, err, 504)
	if len(w.Seen) != 2 || w.Seen[0].Timeout != 10*time.Second || w.Seen[1].Timeout != 5*time.Second || w.Now().Sub(start) != 15*time.Second {
		t.Errorf("%d calls, %v in all", len(w.Seen), w.Now().Sub(start))
	}
}

func TestCombosAndAccountsFallBack(t *testing.T) {
	ok := fake.Answer{Body: hits(1)}
	tests := []struct {
		name   string
		tavily fake.Answer
		want   string
		calls  int
	}{
		{"not_after_an_answer", ok, "tavily", 1},
		{"after_a_limit", fake.Answer{Status: 429}, "exa", 3},
		{"after_a_refused_key", fake.Answer{Status: 401}, "exa", 3},
		{"after_a_failure", fake.Answer{Status: 500}, "exa", 3},
		{"after_an_answer_that_is_none", fake.Answer{Body: `<html>`}, "exa", 3},
		{"after_an_answer_of_another_shape", fake.Answer{Body: `{"nothing":true}`}, "exa", 3},
		{"after_a_plan_that_is_used_up", fake.Answer{Status: 432, Body: `{"detail":{"error":"plan limit"}}`}, "exa", 3},
		{"after_a_pay_as_you_go_limit", fake.Answer{Status: 433}, "exa", 3},
		{"not_after_an_unusable_request", fake.Answer{Status: 422, Body: `{"detail":"no"}`}, "422", 1},
		{"not_after_a_refused_request", fake.Answer{Status: 400, Body: `{"detail":{"error":"bad query"}}`}, "400", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.Recorded(t, "tavily", "exa")
			w.Connect("tavily", "c2", store.ProviderData{})
			w.Record.Combos = []store.Combo{{ID: "1", Name: "find", Kind: "webSearch", Models: []string{"tavily/search", "exa/search"}}}
			w.Answer = func(s *fake.Seen) fake.Answer {
				if strings.Contains(s.URL, "tavily") {
					return tt.tavily
				}
				return ok
			}
			c := w.Ask("/v1/search", `{"provider":"find","query":"q"}`)
			resp, err := handler(w).Create(t.Context(), c)
			if status, _ := strconv.Atoi(tt.want); status != 0 {
				testgw.Refused(t, err, status)
			} else if got := gjson.Get(testgw.Body(t, resp, err), "provider").Str; got != tt.want || c.Trace.Provider != tt.want {
				t.Errorf("got %s, trace %+v, want %s", got, c.Trace, tt.want)
			}
			if len(w.Seen) != tt.calls {
				t.Errorf("%d calls, want %d", len(w.Seen), tt.calls)
			}
		})
	}
}

// A plan that is used up puts its account aside. After half an hour it is tried once.
func TestSpentPlanIsNotAskedAgain(t *testing.T) {
	w := testgw.New(t, "tavily")
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Answer{Status: 432, Body: `{"detail":{"error":"This request exceeds your plan's set usage limit."}}`}
	}
	for i, wait := range []time.Duration{0, 29 * time.Minute, 2 * time.Minute} {
		w.Add(wait)
		_, err := handler(w).Create(t.Context(), w.Post(`{"query":"q"}`))
		if e := testgw.Refused(t, err, 402); e.Code != "insufficient_quota" || !e.NoRetry || len(w.Seen) != 1+i/2 {
			t.Errorf("after %v: %+v, %d calls", wait, e, len(w.Seen))
		}
	}
}

// Without a model the machine's search services are asked, and its chat models
// only where it has no service.
func TestTargetsOfASearchWithoutModel(t *testing.T) {
	tests := []struct {
		providers, url string
	}{
		{"openai exa", "https://api.exa.ai/search"},
		{"openai", "https://api.openai.com/v1/responses"},
		{"voyage anthropic", "https://api.anthropic.com/v1/messages"},
		{"gemini", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"},
		{"voyage xai", "https://api.x.ai/v1/responses"},
		{"voyage openrouter", "https://openrouter.ai/api/v1/chat/completions"},
		{"voyage", ""},
		{"", ""},
	}
	for _, tt := range tests {
		w := testgw.Recorded(t, strings.Fields(tt.providers)...)
		w.Answer = func(*fake.Seen) fake.Answer {
			return fake.Answer{Body: `{"results":[],"output":[],"content":[],"candidates":[{}],"choices":[{"message":{"content":"a"}}]}`}
		}
		resp, err := handler(w).Create(t.Context(), w.Ask("/v1/search", `{"query":"q"}`))
		if tt.url == "" {
			if e := testgw.Refused(t, err, 400); e.Code != "no_credentials" {
				t.Errorf("%s: code %s", tt.providers, e.Code)
			}
			continue
		}
		testgw.Body(t, resp, err)
		if w.Seen[0].URL != tt.url {
			t.Errorf("%s: called %s, want %s", tt.providers, w.Seen[0].URL, tt.url)
		}
	}
}

func TestKeyLimitsAndDisabledModelsApply(t *testing.T) {
	w := testgw.Recorded(t, "exa", "openai")
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: `{"results":[],"output":[]}`} }
	c := w.Ask("/v1/search", `{"query":"q"}`)
	c.Key = &store.Key{Models: []string{"tavily/*"}}
	_, err := handler(w).Create(t.Context(), c)
	testgw.Refused(t, err, 403)
	c = w.Ask("/v1/search", `{"query":"q"}`)
	c.Key = &store.Key{Models: []string{"openai/*"}}
	resp, err := handler(w).Create(t.Context(), c)
	testgw.Body(t, resp, err)
	w.Record.Disabled = []store.DisabledModels{{ProviderAlias: "exa", IDs: []string{"search"}}}
	searched(t, w, `{"query":"q"}`)
	for _, s := range w.Seen {
		if !strings.Contains(s.URL, "openai") {
			t.Errorf("called %s", s.URL)
		}
	}
	_, err = handler(w).Create(t.Context(), w.Ask("/v1/search", `{"query":"q","model":"exa/search"}`))
	testgw.Refused(t, err, 404)
	// A provider of chat models stands for the model that searches.
	c = w.Ask("/v1/search", `{"query":"q","provider":"openai"}`)
	c.Key = &store.Key{Models: []string{"openai/gpt-5-mini"}}
	resp, err = handler(w).Create(t.Context(), c)
	if testgw.Body(t, resp, err); c.Trace.Model != "openai/gpt-5-mini" {
		t.Errorf("asked %s", c.Trace.Model)
	}
	w.Record.Disabled = []store.DisabledModels{{ProviderAlias: "openai", IDs: []string{"gpt-5-mini"}}}
	_, err = handler(w).Create(t.Context(), w.Ask("/v1/search", `{"query":"q","provider":"openai"}`))
	testgw.Refused(t, err, 404)
}

// Nothing of the client's own headers goes up.
func TestClientHeadersAreNotForwarded(t *testing.T) {
	w := testgw.Recorded(t, "exa")
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: hits(1)} }
	c := w.Ask("/v1/search", `{"query":"q"}`)
	c.Header = httpmsg.Header{{Name: "authorization", Value: "Bearer client"}, {Name: "cookie", Value: "a=b"}}
	resp, err := handler(w).Create(t.Context(), c)
	testgw.Body(t, resp, err)
	for _, f := range w.Seen[0].Header {
		if strings.Contains(f.Value, "client") || f.Name == "cookie" {
			t.Errorf("sent %v", f)
		}
	}
}
