package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// The client's error while accounts cool down, in the call in which they failed
// and in the next one, which tries none.
func TestErrorNamesCauseOfUnavailableAccounts(t *testing.T) {
	limit := fake.Answer{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "40"}}}
	long := fake.Answer{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "61"}}}
	refused := fake.Answer{Status: 401, Body: `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`}
	forbidden, unpaid := fake.Answer{Status: 403}, fake.Answer{Status: 402}
	quota := fake.Answer{Status: 429, Body: `{"error":{"message":"no credit","code":"insufficient_quota"}}`}
	for _, tt := range []struct {
		name    string
		answers []fake.Answer
		status  int
		code    string
		wait    time.Duration
		noRetry bool
		names   string // of the account in the message
	}{
		{"refused", []fake.Answer{refused}, 401, "account_key_refused", 0, true, "first"},
		{"forbidden", []fake.Answer{forbidden}, 401, "account_key_refused", 0, true, "first"},
		{"all refused", []fake.Answer{refused, forbidden}, 401, "account_key_refused", 0, true, "first"},
		{"unpaid", []fake.Answer{unpaid}, 402, "insufficient_quota", 0, true, "first"},
		{"quota", []fake.Answer{quota}, 402, "insufficient_quota", 0, true, "first"},
		{"limited", []fake.Answer{limit}, 429, "rate_limit_exceeded", 40 * time.Second, false, ""},
		{"limited for over a minute", []fake.Answer{long}, 429, "rate_limit_exceeded", 61 * time.Second, true, ""},
		{"refused and limited", []fake.Answer{refused, limit}, 429, "rate_limit_exceeded", 40 * time.Second, false, ""},
		{"limited and refused", []fake.Answer{limit, refused}, 429, "rate_limit_exceeded", 40 * time.Second, false, ""},
		{"unpaid and limited", []fake.Answer{unpaid, limit}, 429, "rate_limit_exceeded", 40 * time.Second, false, ""},
		{"the smallest wait", []fake.Answer{long, limit, refused}, 429, "rate_limit_exceeded", 40 * time.Second, false, ""},
		{"refused and unpaid", []fake.Answer{refused, unpaid}, 402, "insufficient_quota", 0, true, "second"},
		{"unpaid and refused", []fake.Answer{unpaid, refused}, 402, "insufficient_quota", 0, true, "first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conns := accounts("abc"[:len(tt.answers)])
			for i := range conns {
				conns[i].Name = []string{"first", "second", "third"}[i]
			}
			w := newWorld(t).add(conns...)
			for i, a := range tt.answers {
				w.script[key("abc"[i:i+1])] = []fake.Answer{a}
			}
			since := w.Now().UTC().Format("Jan 2, 15:04 UTC")
			for call := range 3 {
				_, e := w.send()
				wait := max(0, tt.wait-time.Duration(call)*time.Second)
				if e == nil || e.Status != tt.status || e.Code != tt.code || e.NoRetry != (tt.noRetry && (tt.wait == 0 || wait > time.Minute)) {
					t.Fatalf("call %d: got %+v", call, e)
				}
				if got := e.RetryAfter; got != wait {
					t.Errorf("call %d: wait %v, want %v", call, got, wait)
				}
				if (w.saw() == "") != (call > 0) {
					t.Errorf("call %d: upstream saw %q", call, w.saw())
				}
				if tt.names != "" && (!strings.Contains(e.Message, `"`+tt.names+`"`) || !strings.Contains(e.Message, since) || !strings.Contains(e.Message, "openai")) {
					t.Errorf("call %d: %s does not name the account and since when", call, e.Message)
				}
				if cooling := errors.Is(e, ErrCooling); cooling != (call > 0) {
					t.Errorf("call %d: is ErrCooling: %v", call, cooling)
				}
				w.Add(time.Second)
			}
		})
	}
}

// One account, and nothing was sent to the client yet.
func TestPassingFailureOfTheOnlyAccountIsTriedOnceMore(t *testing.T) {
	reset, busy, good := fake.Answer{Err: upstream.ErrNetwork}, fake.Answer{Status: 503}, fake.Answer{Status: 200, Body: `{}`}
	wait := fake.Answer{Status: 503, Header: httpmsg.Header{{Name: "retry-after", Value: "5"}}}
	for _, tt := range []struct {
		name     string
		accounts string
		answers  []fake.Answer // of a
		change   func(*Call)
		saw      string
		status   int
	}{
		{"reset", "a", []fake.Answer{reset, good}, nil, "aa", 200},
		{"503", "a", []fake.Answer{busy, good}, nil, "aa", 200},
		{"once only", "a", []fake.Answer{reset, busy, good}, nil, "aa", 503},
		{"with a wait", "a", []fake.Answer{wait, good}, nil, "a", 503},
		{"500", "a", []fake.Answer{{Status: 500}, good}, nil, "a", 500},
		{"timeout", "a", []fake.Answer{{Err: upstream.ErrTimeout}, good}, nil, "a", 504},
		{"billable", "a", []fake.Answer{reset, good}, func(c *Call) { c.Billable = true }, "a", 502},
		{"another account", "ab", []fake.Answer{reset, good}, nil, "ab", 200},
		{"another target", "a", []fake.Answer{reset, reset, good}, func(c *Call) { c.Targets = append(c.Targets, c.Targets[0]) }, "aaa", 200},
	} {
		w := newWorld(t).add(accounts(tt.accounts)...)
		w.script[key("a")] = tt.answers
		c := w.call()
		c.Repeats = true
		if tt.change != nil {
			tt.change(c)
		}
		got := 200
		if _, e := w.sendCall(c); e != nil {
			got = e.Status
		}
		// The provider may have closed the idle connections.
		if broke := errors.Is(tt.answers[0].Err, upstream.ErrNetwork); w.Seen[0].Request.Fresh || len(w.Seen) > 1 && w.Seen[1].Request.Fresh != broke {
			t.Errorf("%s: over a new connection: %v, then %v", tt.name, w.Seen[0].Request.Fresh, !broke)
		}
		if saw := w.saw(); got != tt.status || saw != tt.saw {
			t.Errorf("%s: status %d, saw %q; want %d, %q", tt.name, got, saw, tt.status, tt.saw)
		}
	}
}

// A model that an account may not use says nothing about its other models.
func TestForbiddenModelKeepsTheAccount(t *testing.T) {
	const denied = `{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}`
	googles := func(reason, domain, metadata string) string {
		return `{"error":{"code":403,"message":"Denied","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` +
			reason + `","domain":"` + domain + `","metadata":{` + metadata + `}}]}}`
	}
	for _, tt := range []struct {
		name       string
		cloud      provider.Cloud
		body, said string
		kept       bool
	}{
		{"not in Vertex AI's Model Garden", provider.Vertex, denied, "Permission denied", true},
		{"a model in Vertex AI", provider.Vertex, googles("IAM_PERMISSION_DENIED", "aiplatform.googleapis.com", `"resource":"projects/p/locations/l/publishers/google/models/m"`),
			"Denied", true},
		{"Vertex AI for a service account", provider.Vertex, googles("IAM_PERMISSION_DENIED", "aiplatform.googleapis.com", `"resource":"projects/p/locations/l/endpoints/openapi"`),
			"", false},
		{"Vertex AI is off", provider.Vertex, googles("SERVICE_DISABLED", "googleapis.com", `"service":"aiplatform.googleapis.com"`), "", false},
		{"billing is off", provider.Vertex, googles("BILLING_DISABLED", "googleapis.com", ``), "", false},
		{"openai", 0, `{"error":{"message":"Project p does not have access to model m","type":"invalid_request_error","code":"model_not_found"}}`,
			"Project p does not have access to model m", true},
		{"anthropic", 0, `{"type":"error","error":{"type":"permission_error","message":"Not this key"}}`, "", false},
		{"bedrock", 0, `{"message":"You don't have access to the model with the specified model ID."}`,
			"You don't have access to the model with the specified model ID", true},
		{"groq", 0, `{"error":{"message":"blocked","type":"permissions_error","code":"model_permission_blocked_project"}}`, "blocked", true},
		{"another reason", 0, denied, "", false},
	} {
		w := newWorld(t).add(accounts("ab")...)
		of := *openai
		of.Cloud = tt.cloud
		call := func() *Call {
			c := w.call()
			c.Targets[0].Provider = &of
			return c
		}
		w.script[key("a")] = []fake.Answer{{Status: 403, Body: tt.body}}
		if _, e := w.sendCall(call()); e != nil || w.saw() != "ab" {
			t.Fatalf("%s: saw %q, got %+v", tt.name, w.saw(), e)
		}
		if model, whole := w.cooling("a"); model != 0 || (whole == 0) != tt.kept {
			t.Errorf("%s: out for %v, %v", tt.name, model, whole)
		}
		if !tt.kept {
			continue
		}
		w.script[key("b")] = w.script[key("a")]
		if _, e := w.sendCall(call()); e == nil || e.Status != 403 || e.Code != "account_lacks_model" || !e.NoRetry ||
			!strings.HasSuffix(e.Message, "use another model. Provider said: “"+tt.said+"”.") {
			t.Errorf("%s, no account left: got %+v", tt.name, e)
		}
		// The wait for another account is the more useful error.
		w.script[key("b")] = []fake.Answer{{Status: 429}}
		if _, e := w.sendCall(call()); e == nil || e.Status != 429 {
			t.Errorf("%s beside a limit: got %+v", tt.name, e)
		}
	}
}

// Vendors that do not answer a refused key with 401, or a spent account with 402.
func TestRefusedKeyWithAnotherStatus(t *testing.T) {
	const info = `"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]`
	for _, tt := range []struct {
		name   string
		answer fake.Answer
		code   string // of the client's error if no other account is left; "" for the upstream's own 4xx
	}{
		{"google", fake.Answer{Status: 400, Body: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT",` + info + `}}`}, "account_key_refused"},
		{"google's list", fake.Answer{Status: 400, Body: `[{"error":{"code":400,"message":"API key expired.","status":"INVALID_ARGUMENT",` + info + `}}]`}, "account_key_refused"},
		{"xai", fake.Answer{Status: 400, Body: `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***ab."}`}, "account_key_refused"},
		{"cloudflare", fake.Answer{Status: 400, Body: `{"success":false,"errors":[{"code":6003,"message":"Invalid request headers","error_chain":[{"code":6111,"message":"Invalid format for Authorization header"}]}]}`}, "account_key_refused"},
		{"brave", fake.Answer{Status: 422, Body: `{"type":"ErrorResponse","error":{"id":"1","status":422,"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"The provided subscription token is invalid."}}`}, "account_key_refused"},
		{"elevenlabs", fake.Answer{Status: 400, Body: `{"detail":{"status":"invalid_api_key","message":"Invalid API key"}}`}, "account_key_refused"},
		{"hugging face", fake.Answer{Status: 400, Body: `{"error":"Authorization header is correct, but the token seems invalid"}`}, "account_key_refused"},
		{"bedrock", fake.Answer{Status: 400, Header: httpmsg.Header{{Name: "x-amzn-errortype", Value: "IncompleteSignature:http://x"}}, Body: `{"message":"m"}`}, "account_key_refused"},
		{"anthropic", fake.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`}, quotaCode},
		{"alibaba", fake.Answer{Status: 400, Body: `{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}`}, quotaCode},
		{"a request that quotes it", fake.Answer{Status: 400, Body: `{"error":{"message":"the text says Incorrect API key provided","code":"invalid_value"}}`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t).add(accounts("ab")...)
			w.script[key("a")] = []fake.Answer{tt.answer}
			_, e := w.send()
			if tt.code == "" {
				if e == nil || e.Status != 400 || w.saw() != "a" {
					t.Errorf("saw %q, got %+v", w.saw(), e)
				}
				return
			}
			if _, whole := w.cooling("a"); e != nil || w.saw() != "ab" || whole == 0 {
				t.Errorf("saw %q, out for %v, got %+v", w.saw(), whole, e)
			}
			w.script[key("b")] = []fake.Answer{tt.answer}
			if _, e = w.send(); e == nil || e.Code != tt.code {
				t.Errorf("no account left: got %+v", e)
			}
		})
	}
}

// Clients repeat a 429 ten times unless x-should-retry tells them not to.
func TestProviderMayForbidRepeating(t *testing.T) {
	answer := func(status int, retry string) fake.Answer {
		return fake.Answer{Status: status, Header: httpmsg.Header{{Name: "retry-after", Value: "7"}, {Name: "x-should-retry", Value: retry}}}
	}
	for _, tt := range []struct {
		name    string
		answers []fake.Answer
		noRetry bool
	}{
		{"spending limit", []fake.Answer{answer(429, "false")}, true},
		{"short limit", []fake.Answer{answer(429, "true")}, false},
		{"another account is ready before", []fake.Answer{answer(429, "false"), answer(429, "true")}, false},
		{"invalid request", []fake.Answer{answer(400, "false")}, true},
		{"failing provider", []fake.Answer{answer(500, "false")}, false},
	} {
		w := newWorld(t).add(accounts("abc"[:len(tt.answers)])...)
		for i, a := range tt.answers {
			w.script[key("abc"[i:i+1])] = []fake.Answer{a}
		}
		if _, e := w.send(); e == nil || e.NoRetry != tt.noRetry {
			t.Errorf("%s: got %+v", tt.name, e)
		}
	}
}

func TestBillableWithoutCreditFailsAtOnce(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	w.script["*"] = []fake.Answer{{Status: 402}}
	if _, e := w.sendCall(w.kind("billable")); e.Status != 402 || e.Code != "insufficient_quota" || !e.NoRetry || w.saw() != "a" || !strings.Contains(e.Message, `"a"`) {
		t.Errorf("saw %s, got %+v", w.saw(), e)
	}
}

func TestClockSetBackDoesNotLengthenCooldown(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script[key("a")] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "7"}}}, {Status: 200}}
	w.send()
	w.Add(-time.Hour)
	if _, e := w.send(); e != nil || w.saw() != "a" {
		t.Errorf("an hour back: saw %q, %v", w.saw(), e)
	}
	// The clocks of two isolates may differ a little.
	at := w.Now().Add(3 * time.Second).UnixMilli()
	w.machine.Cool(store.Cooldown{ConnectionID: "a", Model: "gpt", Since: at, Until: at + 7000, Reason: store.RateLimited})
	if _, e := w.send(); e == nil || e.RetryAfter != 7*time.Second {
		t.Errorf("three seconds apart: got %+v", e)
	}
}

func TestQuotaInsideAnswer(t *testing.T) {
	own, other := &provider.Descriptor{ID: "openai", BaseURL: openai.BaseURL, SpentInside: true}, openai
	for _, status := range []int{402, 429} {
		for _, d := range []*provider.Descriptor{own, other} {
			for _, late := range []bool{false, true} {
				w := newWorld(t).add(accounts("a")...)
				c := w.kind("stream")
				c.Targets[0].Provider = d
				body := fmt.Sprintf(`{"first_event_status":%d,"code":"insufficient_quota"}`, status)
				if late {
					w.script["*"] = []fake.Answer{{Status: 200}}
					res, e := w.sendCall(c)
					if e != nil {
						t.Fatal(e)
					}
					res.Done(apierr.New(status, "insufficient_quota", "no credit"))
				} else {
					w.script["*"] = []fake.Answer{{Status: 200, Body: body}}
					w.sendCall(c)
				}
				model, whole := w.cooling("a")
				if d == own && (whole != time.Hour || model != 0) || d == other && (whole != 0 || model != 2*time.Second) {
					t.Errorf("%d, row says so %v, in the stream %v: model cools %v, account %v", status, d.SpentInside, late, model, whole)
				}
			}
		}
	}
}

// Places.

const (
	openaiPlace = `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`
	geminiPlace = `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`
	page        = `<!DOCTYPE html><html><title>Just a moment...</title></html>`
)

func TestBlockedHere(t *testing.T) {
	html := httpmsg.Header{{Name: "content-type", Value: "text/html; charset=UTF-8"}}
	for _, tt := range []struct {
		name    string
		a       fake.Answer
		blocked bool
	}{
		{"OpenAI's code", fake.Answer{Status: 403, Body: openaiPlace}, true},
		{"the code with 451", fake.Answer{Status: 451, Body: openaiPlace}, true},
		{"the code beside nothing", fake.Answer{Status: 403, Body: `{"code":"unsupported_country_region_territory","message":"x"}`}, true},
		{"Gemini's text", fake.Answer{Status: 400, Body: geminiPlace}, true},
		{"Gemini's text in an array", fake.Answer{Status: 400, Body: "[" + geminiPlace + "]"}, true},
		{"Anthropic's text", fake.Answer{Status: 403, Body: `{"error":{"type":"forbidden","message":"Request not allowed"}}`}, true},
		{"a challenge", fake.Answer{Status: 403, Header: httpmsg.Header{{Name: "cf-mitigated", Value: "challenge"}}}, true},
		{"a page", fake.Answer{Status: 403, Header: html, Body: page}, true},
		{"a page of another type", fake.Answer{Status: 403, Body: "\n" + page}, true},
		{"a page with 400", fake.Answer{Status: 400, Header: html, Body: page}, false},
		{"a page with 500", fake.Answer{Status: 500, Header: html, Body: page}, false},
		{"a plain 403", fake.Answer{Status: 403, Body: `{"error":{"message":"You have insufficient permissions"}}`}, false},
		{"an empty 403", fake.Answer{Status: 403}, false},
		{"a plain 451", fake.Answer{Status: 451, Body: `{"error":{"message":"content refused"}}`}, false},
		{"another precondition", fake.Answer{Status: 400, Body: `{"error":{"message":"Please enable billing.","status":"FAILED_PRECONDITION"}}`}, false},
		{"the text within another", fake.Answer{Status: 400, Body: `{"error":{"message":"bad input: User location is not supported"}}`}, false},
		{"the text elsewhere", fake.Answer{Status: 400, Body: `{"detail":"User location is not supported"}`}, false},
		{"the code with 401", fake.Answer{Status: 401, Body: openaiPlace}, false},
		{"the code with 500", fake.Answer{Status: 500, Body: openaiPlace}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.add(w.oauth("a", 0)).add(accounts("b")...)
			n := 0
			w.object.Answer = w.refresher(&n)
			w.script["*"] = []fake.Answer{tt.a}
			_, e := w.send()
			if blocked := e.Code == "upstream_blocked_here"; blocked != tt.blocked {
				t.Fatalf("got %+v", e)
			}
			if !tt.blocked {
				return
			}
			_, whole := w.cooling("a")
			if e.Status != tt.a.Status || w.saw() != "a" || n != 0 || whole != 0 || w.pool.Unreported() > 0 {
				t.Errorf("got %d, saw %s, %d refreshes, cools %v", e.Status, w.saw(), n, whole)
			}
			if tried := w.trace.Failed(); len(tried) != 1 || tried[0].Place != "" || tried[0].Text == "" {
				t.Errorf("recorded %+v", tried)
			}
			if strings.Contains(e.Message, "<") {
				t.Errorf("shows a page: %s", e.Message)
			}
			w.Add(59 * time.Second)
			if _, again := w.send(); w.saw() != "" || again == nil || again.Status != e.Status || again.Code != e.Code || again.Message != e.Message {
				t.Errorf("within the minute: saw %q, got %+v, want %+v", w.saw(), again, e)
			}
			w.Add(time.Second)
			w.script["*"] = []fake.Answer{{Status: 200}}
			if _, e := w.send(); e != nil || w.saw() != "a" {
				t.Errorf("after it: saw %q, %v", w.saw(), e)
			}
		})
	}
}

func TestRefusedPlaceIsNamed(t *testing.T) {
	for ray, want := range map[string]string{
		"": "", "8f2c1d0e4b5a6978-FRA": "FRA", "8f2c1d0e4b5a6978": "", "8f2c1d0e4b5a6978-fra": "", "8f2c-FRAX": "", "8f2c-F-A": "", "FRA": "",
	} {
		w := newWorld(t).add(accounts("a")...)
		w.script["*"] = []fake.Answer{{Status: 403, Body: openaiPlace, Header: httpmsg.Header{{Name: "cf-ray", Value: ray}}}}
		w.send()
		if tried := w.trace.Failed(); len(tried) != 1 || tried[0].Place != want {
			t.Errorf("cf-ray %q: recorded %+v, want %q", ray, tried, want)
		}
	}
}

// A place is a provider's origin for one machine: another address of the
// provider, another provider and another machine are not affected.
func TestBlockedHereGoesToTheNextTarget(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	c := w.call()
	other := *openai
	other.ID, other.BaseURL = "other", "https://else.example/v1"
	next := w.target("mini")
	next.Provider = &other
	c.Targets = append(c.Targets, next)
	w.script["*"] = []fake.Answer{{Status: 403, Body: openaiPlace}, {Status: 200}}
	for call, saw := range []string{"aa", "a"} {
		res, e := w.sendCall(c)
		if e != nil || res.Target.Model != "mini" || w.saw() != saw {
			t.Errorf("call %d: saw %s, %v", call, w.saw(), e)
		}
	}
	// The second account has an address of its own.
	w = newWorld(t).add(accounts("ab")...)
	c = w.call()
	c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
		return &Attempt{Request: upstream.Request{Method: "POST", URL: "https://" + conn.ID + ".example/v1"}}, nil
	}
	w.script[key("a")] = []fake.Answer{{Status: 403, Body: openaiPlace}}
	if _, e := w.sendCall(c); e != nil || w.saw() != "ab" {
		t.Errorf("saw %s, %v", w.saw(), e)
	}
	if _, e := w.sendCall(c); e != nil || w.saw() != "b" {
		t.Errorf("then saw %s, %v", w.saw(), e)
	}
	// A refused location has the lowest rank.
	w.script[key("b")] = []fake.Answer{{Status: 429}}
	if _, e := w.sendCall(c); e.Status != 429 {
		t.Errorf("got %+v, want the limit", e)
	}
}

func TestComboSkipsMemberThatCannotServe(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		goesOn bool
	}{
		{400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, true},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, true},
		{404, `{"error":{"message":"The model gpt-4-32k has been deprecated","code":"model_not_found"}}`, true},
		{404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-2"}}`, true},
		{400, `{"error":{"message":"temperature must be at most 2"}}`, false},
		{404, `{"error":{"message":"no such path"}}`, false},
		{422, `{"error":{"message":"say: prompt is too long"}}`, false},
	} {
		w := newWorld(t).add(accounts("ab")...)
		c := w.call()
		w.script["*"] = []fake.Answer{{Status: tt.status, Body: tt.body}}
		if _, e := w.sendCall(c); e.Status != tt.status || w.saw() != "a" {
			t.Errorf("%s: a single model: saw %s, got %v", tt.body, w.saw(), e)
		}
		c.Targets = append(c.Targets, w.target("mini"))
		w.script["*"] = []fake.Answer{{Status: tt.status, Body: tt.body}, {Status: 200}}
		if _, e := w.sendCall(c); (e == nil) != tt.goesOn {
			t.Errorf("%s: a combo: saw %s, got %v", tt.body, w.saw(), e)
		}
		w.script["*"] = []fake.Answer{{Status: tt.status, Body: tt.body}}
		if _, e := w.sendCall(c); e.Status != tt.status {
			t.Errorf("%s: all members: got %v", tt.body, e)
		}
		c.Billable = true
		if _, e := w.sendCall(c); e.Status != tt.status || w.saw() != "a" {
			t.Errorf("%s: billable: saw %s, got %v", tt.body, w.saw(), e)
		}
		if w.pool.Unreported() > 0 {
			t.Errorf("%s: there is something to report", tt.body)
		}
	}
}

// A test of the connection, which another isolate has served, ends the cooldown in the
// object.
func TestRefusedAccountIsConfirmedBeforeTheRefusal(t *testing.T) {
	for _, status := range []int{401, 402} {
		w := newWorld(t).add(accounts("a")...)
		w.script["*"] = []fake.Answer{{Status: status}, {Status: 200}}
		asked, tested := 0, false
		w.pool.Confirm = func(context.Context, string) (*snapshot.Machine, error) {
			asked++
			if tested {
				w.machine.Clear("a", "", w.Now().UnixMilli())
				w.machine.Observe(0, 1, &rpc.State{}, w.Now().UnixMilli())
			}
			return w.machine, nil
		}
		if _, e := w.send(); e == nil || e.Status != status || asked != 0 {
			t.Errorf("%d: %v, asked %d times after an attempt", status, e, asked)
		}
		if _, e := w.send(); e == nil || e.Status != status || w.saw() != "" || asked != 1 {
			t.Errorf("%d: before the test %v, asked %d times", status, e, asked)
		}
		tested = true
		if _, e := w.send(); e != nil || w.saw() != "a" || asked != 2 {
			t.Errorf("%d: after the test %v, saw %q, asked %d times", status, e, w.saw(), asked)
		}
	}
	limited := newWorld(t).add(accounts("a")...)
	limited.script["*"] = []fake.Answer{{Status: 429}}
	limited.pool.Confirm = func(context.Context, string) (*snapshot.Machine, error) {
		t.Error("asked for a limit")
		return limited.machine, nil
	}
	limited.send()
	limited.send()
}

func TestUnreachableProviderIsNamed(t *testing.T) {
	for err, cause := range map[error]string{
		upstream.ErrNetwork: ", or the connection was lost. Try again, or check the base URL.",
		upstream.ErrName:    ": its host name cannot be resolved to an address that may be called. Check the base URL and the DNS of the gateway.",
		upstream.ErrPrivate: ": this gateway calls no private addresses, as that of its base URL. ALLOW_PRIVATE_UPSTREAMS=true allows them.",
		upstream.ErrRefused: ": it refuses the connection. Check that it is running, and the port of the base URL.",
		upstream.ErrTLS:     ": its TLS certificate is not valid, or it has no TLS. Check the base URL.",
	} {
		w := newWorld(t).add(store.Connection{ID: "a", Name: "off"})
		w.script["*"] = []fake.Answer{{Err: err}}
		want := `The provider of account "off" (openai) could not be reached` + cause
		if _, e := w.send(); e == nil || e.Code != "upstream_unreachable" || e.Message != want {
			t.Errorf("got %+v, want %s", e, want)
		}
		if failed := w.trace.Failed(); len(failed) == 0 || failed[0].Text != want {
			t.Errorf("recorded %+v", failed)
		}
	}
}

// An error of a provider that is too slow names the account, the limit and what can be done.
func TestLateProviderIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name, timeout string // of the client
		answer        fake.Answer
		want          string
	}{
		{"no answer", "", fake.Answer{Err: upstream.ErrTimeout}, "did not answer within 7 s. Try again, or raise the setting firstByteSeconds."},
		{"the client waits less", "3", fake.Answer{Err: upstream.ErrTimeout}, "did not answer within 3 s. Try again."},
		{"a silent answer", "", fake.Answer{End: stream.ErrIdle}, "was silent for 5 s. Try again, or raise the setting idleSeconds."},
		{"a long answer", "", fake.Answer{End: stream.ErrTimeout}, "did not end its answer within 600 s. Ask for a shorter answer."},
	} {
		w := newWorld(t).add(store.Connection{ID: "a", Name: "off"})
		w.machine.Settings.FirstByteSeconds, w.machine.Settings.IdleSeconds = 7, 5
		w.script["*"] = []fake.Answer{tt.answer}
		call := w.call()
		if tt.timeout != "" {
			call.Request.Header.Add("x-stainless-timeout", tt.timeout)
		}
		build := call.Build
		call.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
			a, err := build(to, conn, before)
			a.Request.HeaderTimeout, a.Request.Timeout = call.Machine.Settings.FirstByte(), call.Machine.Settings.Whole()
			return a, err
		}
		call.Read = func(_ *Attempt, resp *upstream.Response) error {
			_, err := stream.ReadAll(resp.Body, 1<<20)
			return err
		}
		_, err := w.pool.Send(context.Background(), call)
		_, _, e := refusal(err)
		if want := `The provider of account "off" (openai) ` + tt.want; e == nil || e.Code != "upstream_timeout" || e.Message != want {
			t.Errorf("%s: got %+v, want %s", tt.name, e, want)
		}
	}
}

// The id of an own server ends with random digits.
func TestErrorNamesNoIDOfAnOwnServer(t *testing.T) {
	c := &store.Connection{Name: "fake", Provider: "openai-compatible-0123abcd"}
	if got := account(&missed{conns: []*store.Connection{c}}); got != `account "fake" (OpenAI-compatible)` {
		t.Errorf("got %s", got)
	}
}

// A regression: "Rate limit reached" of a single account named neither the account nor what to
// do, and an error without a code had none. The provider's own words stay readable.
func TestErrorOfAProviderNamesItsAccountAndTheNextStep(t *testing.T) {
	says := func(code string) string {
		return `{"error":{"message":"Its words","type":"x","param":null,"code":` + code + `}}`
	}
	const of = `The provider of account "main" (openai) `
	const words = ` Provider said: “Its words”.`
	limit := func(wait string) string {
		return `The provider's rate limit is reached on account "main" (openai). Try again in ` + wait +
			`, or add another account under Providers.`
	}
	const busy = of + "is overloaded. Try again in a moment, or use another account or model."
	for _, tt := range []struct {
		name       string
		status     int
		body, wait string
		code       string
		message    string
		own        bool // the code is weir's
	}{
		{"no code", 500, says("null"), "", "upstream_failed", of + "failed with status 500. Try again." + words, true},
		{"HTML", 502, "<html>nginx</html>", "", "upstream_failed", of + "failed with status 502. Try again.", true},
		{"its code", 500, says(`"engine_died"`), "", "engine_died", of + "failed with status 500. Try again." + words, false},
		{"a code of weir", 500, says(`"stale"`), "", "upstream_failed", of + "failed with status 500. Try again." + words, true},
		{"overloaded", 503, says(`"overloaded"`), "", "upstream_overloaded", busy + words, true},
		{"overloaded, nothing said", 529, "", "", "upstream_overloaded", busy, true},
		{"late", 504, "", "", "timeout", of + "took too long. Try again.", true},
		{"a limit", 429, says("null"), "7", "rate_limit_exceeded", limit("7 s") + words, true},
		{"a limit with the code of the status", 429, says(`"rate_limit_exceeded"`), "7", "rate_limit_exceeded", limit("7 s") + words, true},
		{"a limit with a code of its own", 429, says(`"tokens"`), "150", "tokens", limit("3 min") + words, false},
		{"a limit of a day", 429, "", "7201", "rate_limit_exceeded", limit("3 h"), true},
		{"no reason", 404, "<html>", "", "upstream_refused", of + "answered with status 404 and no reason. Check the base URL of the account, and the name of the model.", true},
		{"too large", 413, "", "", "upstream_refused", of + "refuses the request as too large. Send less.", true},
		{"about the request", 400, `{"message":"Its words"}`, "", "", "Its words", false},
		{"a redirect", 302, "", "", "upstream_redirect", `Account "main" (openai): The provider answered with a redirect, which is not followed. Check the base URL.`, true},
	} {
		w := newWorld(t).add(store.Connection{ID: "a", Name: "main"})
		a := fake.Answer{Status: tt.status, Body: tt.body}
		if tt.wait != "" {
			a.Header = httpmsg.Header{{Name: "retry-after", Value: tt.wait}}
		}
		w.script["*"] = []fake.Answer{a}
		c := w.call()
		_, e := w.sendCall(c)
		code, vendors := e.ShownCode()
		if e.Message != tt.message || code != tt.code || vendors == tt.own && code != "" || e.Provider != "openai" || e.Status != max(tt.status, 400) && tt.status != 302 {
			t.Errorf("%s: %d %q, vendor's %v, of %q: %s", tt.name, e.Status, code, vendors, e.Provider, e.Message)
		}
	}
	w := newWorld(t).add(accounts("abc")...)
	w.script["*"] = []fake.Answer{{Status: 500}}
	if _, e := w.send(); e.Message != `The provider of account "c" (openai) and 2 more failed with status 500. Try again.` {
		t.Error(e.Message)
	}
	w = newWorld(t).add(accounts("a")...)
	w.script["*"] = []fake.Answer{{Status: 500}}
	c := w.call()
	c.Billable = true
	if _, e := w.sendCall(c); !strings.Contains(e.Message, "failed with status 500. Check at the provider what it has done") {
		t.Error(e.Message)
	}
}
