package web

import (
	"bufio"
	"encoding/json"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

func handler(w *testgw.World) *Handler {
	return &Handler{Accounts: w.Pool, Do: w, Now: w.Now}
}

func html(body string) fake.Answer {
	return fake.Answer{Header: httpmsg.Header{{Name: "content-type", Value: "text/html; charset=utf-8"}}, Body: body}
}

func fetch(t *testing.T, w *testgw.World, body string) (gjson.Result, error) {
	t.Helper()
	resp, err := handler(w).Fetch(t.Context(), w.Ask("/v1/web/fetch", body))
	if err != nil {
		return gjson.Result{}, err
	}
	return gjson.Parse(testgw.Body(t, resp, nil)), nil
}

func TestBadInputNamesTheField(t *testing.T) {
	tests := []struct{ name, body, param string }{
		{"not_json", `{`, ""},
		{"no_object", `[]`, ""},
		{"no_url", `{}`, "url"},
		{"url_no_string", `{"url":1}`, "url"},
		{"url_empty", `{"url":" "}`, "url"},
		{"url_relative", `{"url":"/x"}`, "url"},
		{"url_of_another_scheme", `{"url":"ftp://a.example.com/"}`, "url"},
		{"url_too_long", `{"url":"https://a.example.com/` + strings.Repeat("a", 9000) + `"}`, "url"},
		{"url_twice", `{"url":"https://a.example.com/","url":"https://b.example.com/"}`, "url"},
		{"format", `{"url":"https://a.example.com/","format":"pdf"}`, "format"},
		{"format_null_is_the_default_but_a_number_is_not", `{"url":"https://a.example.com/","format":1}`, "format"},
		{"max_characters_zero", `{"url":"https://a.example.com/","max_characters":0}`, "max_characters"},
		{"max_characters_fraction", `{"url":"https://a.example.com/","max_characters":1.5}`, "max_characters"},
		{"model_empty", `{"url":"https://a.example.com/","model":""}`, "model"},
		{"model_and_provider", `{"url":"https://a.example.com/","model":"web","provider":"exa"}`, "provider"},
		{"unknown_provider", `{"url":"https://a.example.com/","provider":"nobody"}`, "model"},
		{"a_provider_without_the_service", `{"url":"https://a.example.com/","provider":"brave"}`, "model"},
		{"a_provider_without_an_account", `{"url":"https://a.example.com/","provider":"exa"}`, "model"},
		{"the_gateway_itself", `{"url":"https://gateway.example.org/v1/models"}`, "url"},
		{"user_and_password", `{"url":"https://u:p@a.example.com/"}`, "url"},
		{"another_port", `{"url":"https://a.example.com:8443/"}`, "url"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.Recorded(t, "brave")
			_, err := fetch(t, w, tt.body)
			if e := testgw.Refused(t, err, 400); e.Param != tt.param {
				t.Errorf("param %q, want %q: %s", e.Param, tt.param, e.Message)
			}
			if len(w.Seen) != 0 {
				t.Errorf("%d calls were sent", len(w.Seen))
			}
		})
	}
}

func TestGatewayFetchesPage(t *testing.T) {
	w := testgw.Recorded(t)
	w.Answer = func(s *fake.Seen) fake.Answer {
		switch s.URL {
		case "http://a.example.com/start?x=1":
			return fake.Answer{Status: 302, Header: httpmsg.Header{{Name: "location", Value: "../next/page"}}}
		case "http://a.example.com/next/page":
			return fake.Answer{Status: 308, Header: httpmsg.Header{{Name: "location", Value: "//b.example.com/final"}}}
		}
		return html(`<html lang=de><title>Hi</title><p>Hello <a href="x">link</a>`)
	}
	c := w.Ask("/v1/web/fetch", `{"provider":"builtin","url":"http://a.example.com/start?x=1#part"}`)
	c.Header = httpmsg.Header{{Name: "authorization", Value: "Bearer client"}, {Name: "cookie", Value: "a=b"}, {Name: "x-api-key", Value: "client"}}
	resp, err := handler(w).Fetch(t.Context(), c)
	got := gjson.Parse(testgw.Body(t, resp, err))
	for path, want := range map[string]string{
		"provider": "web", "url": "http://b.example.com/final", "title": "Hi", "metadata.language": "de", "metadata.author": "",
		"content.text": "Hello [link](http://b.example.com/x)", "content.format": "markdown", "content.length": "36", "usage.fetch_cost_usd": "0",
	} {
		if got.Get(path).String() != want {
			t.Errorf("%s: got %s, want %s", path, got.Get(path).Raw, want)
		}
	}
	if len(w.Seen) != 3 || c.Trace.Attempts() != 3 || c.Trace.Model != "web/fetch" {
		t.Errorf("%d calls, trace %+v", len(w.Seen), c.Trace)
	}
	for _, s := range w.Seen {
		if s.Method != "GET" || s.Body != "" || len(s.Header) != 4 || s.Header.Get("x-weir-hop") != "1" || s.MaxBody != 5<<20 || s.Timeout <= 0 || s.Timeout > 30*time.Second {
			t.Errorf("call %+v", s)
		}
	}
}

func TestWithoutAProviderTheGatewayFetches(t *testing.T) {
	w := testgw.Recorded(t, "brave", "openai")
	w.Answer = func(*fake.Seen) fake.Answer { return html("<p>x") }
	if got, err := fetch(t, w, `{"url":"https://a.example.com/"}`); err != nil || got.Get("provider").Str != "web" {
		t.Errorf("got %s %v", got.Raw, err)
	}
	w = testgw.Recorded(t, "exa")
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: `{"results":[{"text":"x"}]}`} }
	if got, err := fetch(t, w, `{"url":"https://a.example.com/"}`); err != nil || got.Get("provider").Str != "exa" {
		t.Errorf("got %s %v", got.Raw, err)
	}
}

func TestInvalidPages(t *testing.T) {
	as := func(kind, body string) fake.Answer {
		return fake.Answer{Header: httpmsg.Header{{Name: "content-type", Value: kind}}, Body: body}
	}
	tests := []struct {
		name   string
		answer fake.Answer
		status int
		code   string
		text   string // when there is a page after all
		format string
	}{
		{name: "not_found", answer: fake.Answer{Status: 404}, status: 404, code: pageNotFound},
		{name: "gone", answer: fake.Answer{Status: 410}, status: 404, code: pageNotFound},
		{name: "forbidden", answer: fake.Answer{Status: 403, Body: "secret wall"}, status: 502, code: pageUnavailable},
		{name: "server_error", answer: fake.Answer{Status: 500}, status: 502, code: pageUnavailable},
		{name: "no_content_status", answer: fake.Answer{Status: 304}, status: 502, code: pageUnavailable},
		{name: "redirect_without_address", answer: fake.Answer{Status: 302}, status: 502, code: pageUnavailable},
		{name: "unreachable", answer: fake.Answer{Err: upstream.ErrNetwork}, status: 502, code: pageUnavailable},
		{name: "too_slow", answer: fake.Answer{Takes: time.Minute}, status: 504, code: "upstream_timeout"},
		{name: "too_large_or_a_bomb", answer: as("text/html", strings.Repeat("a", 5<<20+1)), status: 422, code: pageUnreadable},
		{name: "binary", answer: as("application/pdf", "%PDF"), status: 422, code: pageUnreadable},
		{name: "picture", answer: as("image/png", "x"), status: 422, code: pageUnreadable},
		{name: "binary_without_a_type", answer: as("", "\x7fELF\x00\x00"), status: 422, code: pageUnreadable},
		{name: "unknown_encoding", answer: as("text/html; charset=shift_jis", "\x83\x65"), status: 422, code: pageUnreadable},
		{name: "plain_text_stays", answer: as("text/plain", "a <b>"), text: "a <b>", format: "text"},
		{name: "json_is_text", answer: as("application/json", `{"a":1}`), text: `{"a":1}`, format: "text"},
		{name: "markdown_stays", answer: as("text/markdown; charset=utf-8", "# a"), text: "# a", format: "markdown"},
		{name: "html_by_its_looks", answer: as("", "\n<!DOCTYPE html><p>a"), text: "a", format: "markdown"},
		{name: "latin1", answer: as("text/html; charset=iso-8859-1", "<p>\xe4"), text: "ä", format: "markdown"},
		{name: "empty", answer: as("text/html", ""), text: "", format: "markdown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.Recorded(t)
			w.Answer = func(*fake.Seen) fake.Answer { return tt.answer }
			got, err := fetch(t, w, `{"model":"web/fetch","url":"https://a.example.com/"}`)
			if tt.status != 0 {
				if e := testgw.Refused(t, err, tt.status); e.Code != tt.code || strings.Contains(e.Message, "secret") {
					t.Errorf("got %+v", e)
				}
				return
			}
			if err != nil || got.Get("content.text").Str != tt.text || got.Get("content.format").Str != tt.format {
				t.Errorf("got %s %v", got.Raw, err)
			}
		})
	}
}

func TestFormatsOfAPage(t *testing.T) {
	w := testgw.Recorded(t)
	w.Answer = func(*fake.Seen) fake.Answer { return html("<title>t</title><p>Hello <b>you</b>") }
	for more, want := range map[string]string{
		`"format":"text","max_characters":7`: `{"format":"text","text":"Hello y","length":7}`,
		`"format":"html"`:                    `{"format":"html","text":"<title>t</title><p>Hello <b>you</b>","length":35}`,
	} {
		if got, err := fetch(t, w, `{"url":"https://a.example.com/",`+more+`}`); err != nil || got.Get("content").Raw != want {
			t.Errorf("%s: got %s %v", more, got.Raw, err)
		}
	}
}

// The metadata of a page is bounded, whatever max_characters is.
func TestPageMetadataIsBounded(t *testing.T) {
	long := strings.Repeat("ä ", 100_000)
	w := testgw.Recorded(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return html("<html lang='" + long + "'><title>" + long + "</title><meta name=author content='" + long + "'><h1>" + long + "</h1>")
	}
	got, err := fetch(t, w, `{"url":"https://a.example.com/","max_characters":9}`)
	if err != nil || len(got.Raw) > 3000 || utf8.RuneCountInString(got.Get("title").Str) != maxTitle || got.Get("content.length").Int() != 9 {
		t.Errorf("%d bytes, title of %d characters: %v", len(got.Raw), utf8.RuneCountInString(got.Get("title").Str), err)
	}
	// A provider's metadata has whatever the page's meta elements say.
	w = testgw.Recorded(t)
	w.Connect("firecrawl", "c1", store.ProviderData{})
	for given, want := range map[string]string{
		"javascript:alert(1)": "https://a.example.com/", "https://a.example.com/" + strings.Repeat("x", maxURL): "https://a.example.com/",
		"https://b.example.com/moved": "https://b.example.com/moved", "": "https://a.example.com/",
	} {
		w.Answer = func(*fake.Seen) fake.Answer {
			return fake.Answer{Body: `{"success":true,"data":{"markdown":"x","metadata":{"title":"` + long + `","author":"` + long + `","language":"` + long + `","url":"` + given + `"}}}`}
		}
		if got, err := fetch(t, w, `{"provider":"firecrawl","url":"https://a.example.com/"}`); err != nil || got.Get("url").Str != want || len(got.Raw) > 3000 {
			t.Errorf("%.40s: got %.200s %v", given, got.Raw, err)
		}
	}
}

// An encoding that is not known here goes to the platform.
func TestHostDecodesOtherEncodings(t *testing.T) {
	w := testgw.Recorded(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.Answer{Header: httpmsg.Header{{Name: "content-type", Value: "text/html;charset=Shift_JIS"}}, Body: "<p>\x83\x65"}
	}
	h := handler(w)
	h.Decode = func(label string, raw []byte) (string, bool) {
		return "<p>テ", label == "shift_jis" && string(raw) == "<p>\x83\x65"
	}
	resp, err := h.Fetch(t.Context(), w.Ask("/v1/web/fetch", `{"url":"https://a.example.com/"}`))
	if got := gjson.Get(testgw.Body(t, resp, err), "content.text").Str; got != "テ" {
		t.Errorf("got %q", got)
	}
}

func TestRedirectsAreFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"/x", "http://plain.example.com/"} {
			w := testgw.Recorded(t)
			w.Answer = func(s *fake.Seen) fake.Answer {
				if len(w.Seen) == 1 {
					return fake.Answer{Status: status, Header: httpmsg.Header{{Name: "location", Value: to}}}
				}
				return html("<p>end")
			}
			if got, err := fetch(t, w, `{"url":"https://a.example.com/"}`); err != nil || got.Get("content.text").Str != "end" || len(w.Seen) != 2 {
				t.Errorf("%d to %s: %s %v after %d calls", status, to, got.Raw, err, len(w.Seen))
			}
		}
	}
	for _, to := range []string{"https://", "http://[", "", "https://gateway.example.org/health"} {
		w := testgw.Recorded(t)
		w.Answer = func(*fake.Seen) fake.Answer {
			return fake.Answer{Status: 307, Header: httpmsg.Header{{Name: "location", Value: to}}}
		}
		_, err := fetch(t, w, `{"url":"https://a.example.com/"}`)
		if e := testgw.Refused(t, err, 502); e.Code != pageUnavailable || len(w.Seen) != 1 {
			t.Errorf("to %q: %v after %d calls", to, err, len(w.Seen))
		}
	}
}

func TestEndlessRedirectsEnd(t *testing.T) {
	w := testgw.Recorded(t)
	w.Answer = func(s *fake.Seen) fake.Answer {
		return fake.Answer{Status: 301, Header: httpmsg.Header{{Name: "location", Value: s.URL + "x"}}}
	}
	_, err := fetch(t, w, `{"url":"https://a.example.com/"}`)
	if testgw.Refused(t, err, 502); len(w.Seen) != 6 {
		t.Errorf("%d calls, want the first and 5 more", len(w.Seen))
	}
}

func TestSlowRedirectsShareTheTime(t *testing.T) {
	w := testgw.Recorded(t)
	w.Answer = func(s *fake.Seen) fake.Answer {
		return fake.Answer{Status: 301, Header: httpmsg.Header{{Name: "location", Value: "/x"}}, Takes: 12 * time.Second}
	}
	_, err := fetch(t, w, `{"url":"https://a.example.com/"}`)
	if testgw.Refused(t, err, 504); len(w.Seen) != 3 || w.Seen[2].Timeout != 6*time.Second {
		t.Errorf("%d calls", len(w.Seen))
	}
}

// spellings returns what may be typed for a host.
func spellings(t *testing.T) (typed []string) {
	f, err := os.Open("../../provider/testdata/hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if sc.Text() == "" || sc.Text()[0] == '#' {
			continue
		}
		var raw string
		dec := json.NewDecoder(strings.NewReader(sc.Text()))
		if err := dec.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		to, _, _ := strings.Cut(sc.Text()[dec.InputOffset()+1:], "|")
		typed = append(typed, raw)
		if plain, ok := strings.CutPrefix(raw, "https:"); ok && strings.HasPrefix(to, "https:") {
			typed = append(typed, "http:"+plain)
		}
	}
	return typed
}

// public judges a called address by the purpose of the policy, independently of
// its code.
func public(called string) bool {
	u, err := url.Parse(called)
	if err != nil || u.User != nil || u.Port() != "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".") || strings.ContainsAny(host, "_%:[]") {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return false
	}
	for _, s := range strings.Fields("localhost local localdomain internal intranet lan home corp home.arpa test invalid onion arpa gateway.example.org") {
		if host == s || strings.HasSuffix(host, "."+s) {
			return false
		}
	}
	return true
}

// No address that is not public is ever called: neither when the client names
// it, nor when a page redirects to it, in whatever spelling.
func TestOnlyPublicAddressesAreCalled(t *testing.T) {
	typed := spellings(t)
	asked, refused, moved := 0, 0, 0
	for _, raw := range typed {
		for _, redirect := range []bool{false, true} {
			w := testgw.Recorded(t)
			w.Answer = func(s *fake.Seen) fake.Answer {
				if !public(s.URL) {
					t.Errorf("%q (redirect %v): called %s", raw, redirect, s.URL)
				}
				if redirect && len(w.Seen) == 1 {
					return fake.Answer{Status: 302, Header: httpmsg.Header{{Name: "location", Value: raw}}}
				}
				return html("<p>ok")
			}
			h := handler(w)
			to := raw
			if redirect {
				to = "https://start.example.com/"
			}
			body, _ := json.Marshal(map[string]string{"url": to})
			_, err := h.Fetch(t.Context(), w.Ask("/v1/web/fetch", string(body)))
			asked++
			switch {
			case redirect && err != nil:
				moved++
				if e := testgw.Refused(t, err, 502); strings.Contains(e.Message, "public") {
					t.Errorf("%q: the reason is told: %s", raw, e.Message)
				}
			case err != nil:
				refused++
				if testgw.Refused(t, err, 400); len(w.Seen) > 0 {
					t.Errorf("%q: refused after %d calls", raw, len(w.Seen))
				}
			}
		}
	}
	if asked < 300 || refused < 100 || moved < 100 {
		t.Errorf("%d spellings asked, %d refused, %d redirects refused: the table is not read", asked, refused, moved)
	}
}

func TestCombosFallBack(t *testing.T) {
	tests := []struct {
		name    string
		members []string
		exa     fake.Answer
		page    fake.Answer
		want    string // provider, or the status of the failure
		calls   int
	}{
		{"the_first_that_can", []string{"exa/fetch", "web/fetch"}, fake.Answer{Body: `{"results":[{"text":"x"}]}`}, html("<p>y"), "exa", 1},
		{"to_the_gateway_after_a_5xx", []string{"exa/fetch", "web/fetch"}, fake.Answer{Status: 500}, html("<p>y"), "web", 2},
		{"to_the_gateway_after_a_limit", []string{"exa", "builtin"}, fake.Answer{Status: 429}, html("<p>y"), "web", 2},
		{"not_after_a_refused_request", []string{"exa/fetch", "web/fetch"}, fake.Answer{Status: 400}, html("<p>y"), "400", 1},
		{"after_a_page_that_could_not_be_read", []string{"exa/fetch", "web/fetch"}, fake.Answer{Body: `{"results":[],"statuses":[]}`}, html("<p>y"), "web", 2},
		{"from_the_gateway_to_a_provider", []string{"web/fetch", "exa/fetch"}, fake.Answer{Body: `{"results":[{"text":"x"}]}`}, fake.Answer{Status: 403}, "exa", 2},
		{"members_without_an_account_are_left_out", []string{"tavily/fetch", "web"}, fake.Answer{}, html("<p>y"), "web", 1},
		{"between_two_providers", []string{"exa/fetch", "jina-reader/fetch"}, fake.Answer{Body: `{"results":[],"statuses":[]}`}, fake.Answer{Body: `{"data":{"content":"z"}}`}, "jina-reader", 2},
		{"all_fail", []string{"exa/fetch", "web/fetch"}, fake.Answer{Status: 503}, fake.Answer{Status: 404}, "404", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := testgw.Recorded(t, "exa", "jina-reader")
			w.Record.Combos = []store.Combo{{ID: "1", Name: "reader", Kind: "webFetch", Models: tt.members}}
			w.Answer = func(s *fake.Seen) fake.Answer {
				if strings.HasPrefix(s.URL, "https://api.exa.ai/") {
					return tt.exa
				}
				return tt.page
			}
			got, err := fetch(t, w, `{"model":"reader","url":"https://a.example.com/"}`)
			if err == nil && got.Get("provider").Str != tt.want {
				t.Errorf("got %s, want %s", got.Raw, tt.want)
			} else if err != nil {
				if len(tt.want) != 3 || tt.want[0] != '4' {
					t.Fatalf("got %v, want %s", err, tt.want)
				}
				testgw.Refused(t, err, int(tt.want[0]-'0')*100+int(tt.want[2]-'0'))
			}
			if len(w.Seen) != tt.calls {
				t.Errorf("%d calls, want %d", len(w.Seen), tt.calls)
			}
		})
	}
}

// The router does not know the gateway's own fetch: a combo within a combo has
// lost it before.
func TestCombosWithinCombosKeepTheGateway(t *testing.T) {
	combos := []store.Combo{
		{ID: "1", Name: "inner", Kind: "webFetch", Models: []string{"exa/fetch", "mine"}},
		{ID: "2", Name: "outer", Kind: "webFetch", Models: []string{"inner", "jina-reader"}},
		{ID: "3", Name: "turns", Kind: "webFetch", Strategy: "round-robin", Models: []string{"inner", "jina-reader"}},
		{ID: "4", Name: "chats", Kind: "llm", Models: []string{"openai/gpt-5", "inner"}},
		{ID: "5", Name: "ping", Models: []string{"web", "pong"}}, {ID: "6", Name: "pong", Models: []string{"ping"}},
		{ID: "7", Name: "half", Models: strings.Split("web,web,web,web,web,web,web,web,web", ",")}, {ID: "8", Name: "wide", Models: []string{"half", "half"}},
	}
	for _, tt := range []struct{ model, want string }{
		{"outer", "exa web jina-reader"}, {"turns", "exa web jina-reader"}, {"chats", "exa web"},
		{"ping", "400"}, {"wide", "400"}, {"loop/a", "400"},
	} {
		w := testgw.Recorded(t, "exa", "jina-reader", "openai")
		w.Record.Combos = combos
		w.Record.ModelAliases = map[string]string{"mine": "web/fetch", "loop/a": "loop/b", "loop/b": "loop/a"} // the last were planted
		w.Answer = func(s *fake.Seen) fake.Answer { return fake.Answer{Status: 503} }
		_, err := fetch(t, w, `{"model":"`+tt.model+`","url":"https://a.example.com/"}`)
		if tt.want == "400" {
			testgw.Refused(t, err, 400)
			continue
		}
		got := ""
		for _, c := range w.Seen {
			switch {
			case strings.HasPrefix(c.URL, "https://api.exa.ai/"):
				got += " exa"
			case strings.HasPrefix(c.URL, "https://a.example.com/"):
				got += " web"
			default:
				got += " jina-reader"
			}
		}
		if err == nil || got != " "+tt.want {
			t.Errorf("%s: asked%s, want %s (%v)", tt.model, got, tt.want, err)
		}
	}
}

// One turn is taken per call and combo, whoever is nested in it.
func TestNestedCombosTakeTurns(t *testing.T) {
	w := testgw.Recorded(t)
	w.Record.Combos = []store.Combo{
		{Name: "outer", Strategy: "round-robin", Models: []string{"inner", "c"}},
		{Name: "inner", Strategy: "round-robin", Models: []string{"a", "web"}},
	}
	c := w.Ask("/v1/web/fetch", "{}")
	for _, want := range []string{"a web c", "c web a", "a web c"} {
		got, err := members(c, nil, c.Machine.Combo("outer"), 0)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	}
}

func TestOtherNamesOfGatewayAreNotFetched(t *testing.T) {
	for _, redirect := range []string{"", "https://gw.example.com/v1/models"} {
		w := testgw.Recorded(t)
		w.Answer = func(*fake.Seen) fake.Answer {
			return fake.Answer{Status: 302, Header: httpmsg.Header{{Name: "location", Value: redirect}}}
		}
		h, to, status, calls := handler(w), "https://gw.example.com/", 400, 0
		h.OwnHosts = []string{"gw.example.com"}
		if redirect != "" {
			to, status, calls = "https://a.example.com/", 502, 1
		}
		_, err := h.Fetch(t.Context(), w.Ask("/v1/web/fetch", `{"url":"`+to+`"}`))
		if testgw.Refused(t, err, status); len(w.Seen) != calls {
			t.Errorf("%d calls, want %d", len(w.Seen), calls)
		}
	}
}

func TestKeyLimitsAndDisabledModelsApply(t *testing.T) {
	w := testgw.Recorded(t)
	c := w.Ask("/v1/web/fetch", `{"url":"https://a.example.com/"}`)
	c.Key = &store.Key{Models: []string{"openai/*"}}
	_, err := handler(w).Fetch(t.Context(), c)
	testgw.Refused(t, err, 403)
	w.Record.Disabled = []store.DisabledModels{{ProviderAlias: "web", IDs: []string{"fetch"}}}
	_, err = fetch(t, w, `{"url":"https://a.example.com/"}`)
	testgw.Refused(t, err, 404)
	// A combo named like the gateway's own fetch is what the name means.
	w = testgw.Recorded(t, "exa")
	w.Record.Combos = []store.Combo{{ID: "1", Name: "web", Kind: "webFetch", Models: []string{"exa/fetch"}}}
	w.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Body: `{"results":[{"text":"x"}]}`} }
	if got, err := fetch(t, w, `{"model":"web","url":"https://a.example.com/"}`); err != nil || got.Get("provider").Str != "exa" {
		t.Errorf("got %s %v", got.Raw, err)
	}
}
