package accounts

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// kinds of calls: JSON with the body in memory, a stream whose first event is
// checked, and a billable creation.
var kinds = []string{"json", "stream", "billable"}

func (w *world) kind(kind string) *Call {
	c := w.call()
	switch kind {
	case "billable":
		c.Billable = true
	case "stream":
		c.Read = func(_ *Attempt, resp *upstream.Response) error {
			b, _ := io.ReadAll(resp.Body)
			resp.Body = io.NopCloser(strings.NewReader(string(b)))
			if s := gjson.GetBytes(b, "first_event_status").Int(); s != 0 {
				return apierr.New(int(s), gjson.GetBytes(b, "code").Str, "first event")
			}
			return nil
		}
	}
	return c
}

// TestTable is docs/fallback.md: for an answer of account a, what
// the upstream saw, what the client got, and how long a cools down after it.
func TestTable(t *testing.T) {
	type want struct {
		saw    string // accounts called, in order
		status int    // to the client
	}
	same := func(w want) map[string]want { return map[string]want{"json": w, "stream": w, "billable": w} }
	but := func(w, billable want) map[string]want {
		return map[string]want{"json": w, "stream": w, "billable": billable}
	}
	const quota = `{"error":{"message":"no credit","code":"insufficient_quota"}}`
	html := `<html><body>Bad Gateway sk-0123456789abcdef0</body></html>`
	tests := []struct {
		name         string
		a            fake.Answer
		want         map[string]want
		model, whole time.Duration // cooldown of a after one failure
	}{
		{"200", fake.Answer{Status: 200}, same(want{"a", 200}), 0, 0},
		{"201", fake.Answer{Status: 201}, same(want{"a", 201}), 0, 0},
		{"400", fake.Answer{Status: 400}, same(want{"a", 400}), 0, 0},
		{"404", fake.Answer{Status: 404}, same(want{"a", 404}), 0, 0},
		{"405", fake.Answer{Status: 405}, same(want{"a", 405}), 0, 0},
		{"409", fake.Answer{Status: 409}, same(want{"a", 409}), 0, 0},
		{"413", fake.Answer{Status: 413}, same(want{"a", 413}), 0, 0},
		{"415", fake.Answer{Status: 415}, same(want{"a", 415}), 0, 0},
		{"422", fake.Answer{Status: 422}, same(want{"a", 422}), 0, 0},
		{"418", fake.Answer{Status: 418}, same(want{"a", 418}), 0, 0},
		{"401", fake.Answer{Status: 401}, same(want{"ab", 200}), 0, 2 * time.Minute},
		{"403", fake.Answer{Status: 403}, same(want{"ab", 200}), 0, 2 * time.Minute},
		{"402", fake.Answer{Status: 402}, but(want{"ab", 200}, want{"a", 402}), 0, time.Hour},
		{"402 with a reset", fake.Answer{Status: 402, Header: httpmsg.Header{{Name: "retry-after", Value: "600"}}}, but(want{"ab", 200}, want{"a", 402}), 0, 10 * time.Minute},
		{"429 without credit", fake.Answer{Status: 429, Body: quota}, same(want{"ab", 200}), 0, time.Hour},
		{"429 that talks of credit", fake.Answer{Status: 429, Body: `{"error":{"message":"insufficient_quota"}}`}, same(want{"ab", 200}), 2 * time.Second, 0},
		{"429", fake.Answer{Status: 429}, same(want{"ab", 200}), 2 * time.Second, 0},
		{"429 with a wait", fake.Answer{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "7"}}}, same(want{"ab", 200}), 7 * time.Second, 0},
		{"529", fake.Answer{Status: 529}, but(want{"ab", 200}, want{"a", 529}), 0, 0},
		{"408", fake.Answer{Status: 408}, but(want{"ab", 200}, want{"a", 408}), 0, 0},
		{"500", fake.Answer{Status: 500, Body: html}, but(want{"ab", 200}, want{"a", 500}), 0, 0},
		{"502", fake.Answer{Status: 502}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
		{"503", fake.Answer{Status: 503}, but(want{"ab", 200}, want{"a", 503}), 0, 0},
		{"504", fake.Answer{Status: 504}, but(want{"ab", 200}, want{"a", 504}), 0, 0},
		{"network", fake.Answer{Err: fmt.Errorf("x: %w", upstream.ErrNetwork)}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
		{"header time-out", fake.Answer{Err: upstream.ErrTimeout}, but(want{"ab", 200}, want{"a", 504}), 0, 0},
		{"client left", fake.Answer{Err: upstream.ErrCanceled}, same(want{"a", 499}), 0, 0},
		{"no more calls", fake.Answer{Err: fmt.Errorf("x: %w", upstream.ErrBudget)}, same(want{"a", 503}), 0, 0},
		{"no connection", fake.Answer{Err: fmt.Errorf("x: %w", upstream.ErrLocal)}, same(want{"a", 503}), 0, 0},
		{"stopping", fake.Answer{Err: stream.ErrStopping}, same(want{"a", 503}), 0, 0},
		{"too large", fake.Answer{Err: stream.ErrTooLarge}, same(want{"a", 502}), 0, 0},
		{"redirect", fake.Answer{Status: 302}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
		{"204", fake.Answer{Status: 204}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
		{"205", fake.Answer{Status: 205}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
		{"304", fake.Answer{Status: 304}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
		{"103", fake.Answer{Status: 103}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
		{"999", fake.Answer{Status: 999}, but(want{"ab", 200}, want{"a", 502}), 0, 0},
	}
	for _, tt := range tests {
		for _, kind := range kinds {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				w := newWorld(t).add(accounts("ab")...)
				w.script[key("a")] = []fake.Answer{tt.a}
				res, e := w.sendCall(w.kind(kind))
				status := 0
				if e != nil {
					status = e.Status
				} else {
					status = res.Status
				}
				want := tt.want[kind]
				if w.saw() != want.saw || status != want.status {
					t.Errorf("upstream saw %s, client got %d; want %s and %d", w.saw(), status, want.saw, want.status)
				}
				if model, whole := w.cooling("a"); model != tt.model || whole != tt.whole {
					t.Errorf("a cools for model %v, whole %v; want %v, %v", model, whole, tt.model, tt.whole)
				}
				if model, whole := w.cooling("b"); model+whole != 0 {
					t.Errorf("b cools")
				}
				if kind == "billable" && e != nil && e.Status >= 500 && !e.NoRetry && !errors.Is(e, upstream.ErrLocal) {
					t.Error("a billable call without a clear outcome must tell the client not to retry")
				}
				if e != nil && (strings.Contains(e.Message, "<") || strings.Contains(e.Message, "sk-0")) {
					t.Errorf("shows %q", e.Message)
				}
				tr := &w.trace
				served := want.saw[len(want.saw)-1:]
				if tr.Attempts() != len(want.saw) || tr.ConnectionID != served || tr.Provider != "openai" || tr.Model != "openai/gpt" {
					t.Errorf("trace %+v", tr)
				}
			})
		}
	}
}

func TestStrangeAnswersHaveACodeOfTheirOwn(t *testing.T) {
	for status, codes := range map[int][2]string{ // plain, billable
		302: {"upstream_redirect", "upstream_redirect"},
		204: {"empty_upstream", "upstream_outcome_unknown"},
		999: {"bad_upstream_status", "upstream_outcome_unknown"},
		0:   {"upstream_unreachable", "upstream_outcome_unknown"},
	} {
		for i, billable := range []bool{false, true} {
			w := newWorld(t).add(accounts("a")...)
			w.script["*"] = []fake.Answer{{Status: status}}
			if status == 0 {
				w.script["*"][0].Err = upstream.ErrNetwork
			}
			c := w.call()
			c.Billable = billable
			if _, e := w.sendCall(c); e.Status != 502 || e.Code != codes[i] || e.NoRetry != billable {
				t.Errorf("%d, billable %v: got %+v", status, billable, e)
			}
		}
	}
}

// A GET may be answered with nothing, a DELETE usually is.
func Test204AnswersOtherMethodsThanPOST(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script["*"] = []fake.Answer{{Status: 204}}
	c := w.call()
	build := c.Build
	c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
		a, err := build(to, conn, before)
		a.Request.Method = "DELETE"
		return a, err
	}
	if res, e := w.sendCall(c); e != nil || res.Status != 204 {
		t.Errorf("got %v", e)
	}
}

// closing reports whether a body was closed.
type closing struct {
	io.Reader
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

func TestRefusedStreamIsClosed(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	c, closed := w.call(), false
	c.Read = func(_ *Attempt, resp *upstream.Response) error {
		resp.Body = closing{strings.NewReader(""), &closed}
		return apierr.New(529, "", "overloaded")
	}
	if w.sendCall(c); !closed {
		t.Error("the upstream continues to send without a reader")
	}
}

// Every way an upstream can echo a credential, to everything that keeps a text.
func TestNoCredentialReachesAnySink(t *testing.T) {
	for i := range 40 {
		for _, status := range []int{400, 401, 402, 403, 404, 408, 422, 429, 500, 503, 529} {
			w := newWorld(t).add(accounts("a")...)
			secret := fmt.Sprintf("%c-%04d/s3cr3t+%d", 'A'+i%26, i*7919, i*i)
			w.machine.Connections[0].Secrets[store.APIKey] = w.seal("a", store.APIKey, secret)
			forms := []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte("user:" + secret)), hex.EncodeToString([]byte(secret)), strings.ReplaceAll(secret, "/", `\\/`)}
			text := strings.Join(forms, " ")
			w.script["*"] = []fake.Answer{{Status: status, Header: httpmsg.Header{{Name: "x-ratelimit-limit-requests", Value: secret}, {Name: "request-id", Value: forms[1]}},
				Body: `{"error":{"message":"` + text + `","code":"` + secret + `","type":"` + secret + `","param":"` + secret + `"}}`}}
			_, e := w.send()
			w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
			w.pool.Flush(context.Background(), w.machine)
			all := fmt.Sprintf("%+v %v %v %v %v", *e, e, e.Header, w.trace, w.object.Calls)
			for _, f := range forms {
				if strings.Contains(all, f) {
					t.Fatalf("status %d: %q in %s", status, f, all)
				}
			}
		}
	}
}

func TestFirstEventOfAStreamCountsAsItsStatus(t *testing.T) {
	for status, saw := range map[int]string{400: "a", 429: "ab", 529: "ab", 500: "ab", 401: "ab"} {
		w := newWorld(t).add(accounts("ab")...)
		w.script[key("a")] = []fake.Answer{{Status: 200, Body: fmt.Sprintf(`{"first_event_status":%d}`, status)}}
		res, e := w.sendCall(w.kind("stream"))
		if w.saw() != saw || (e == nil) != (saw == "ab") {
			t.Errorf("%d: upstream saw %s, want %s (%v, %v)", status, w.saw(), saw, res, e)
		}
		if model, _ := w.cooling("a"); (model > 0) != (status == 429) {
			t.Errorf("%d: model cools %v", status, model)
		}
	}
}

func TestAtMostFiveAttempts(t *testing.T) {
	w := newWorld(t).add(accounts("abcdefg")...)
	w.script["*"] = []fake.Answer{{Status: 503}}
	_, e := w.send()
	if w.saw() != "abcde" || e.Status != 503 {
		t.Errorf("upstream saw %s, client got %d", w.saw(), e.Status)
	}
}

// An upload that was cut was sent to five accounts, as one that never began.
func TestCutUploadGoesToOneMoreAccount(t *testing.T) {
	sent := func(err error) fake.Answer { return fake.Answer{Err: fmt.Errorf("%w: %w", err, upstream.ErrSent)} }
	reset, late, unsent := sent(upstream.ErrNetwork), sent(upstream.ErrTimeout), fake.Answer{Err: upstream.ErrNetwork}
	for _, tt := range []struct {
		accounts string
		answers  []fake.Answer
		saw      string
		status   int
	}{
		{"abcdefg", []fake.Answer{unsent}, "abcde", 502},
		{"abcdefg", []fake.Answer{reset}, "ab", 502},
		{"abcdefg", []fake.Answer{late}, "ab", 504},
		{"abcdefg", []fake.Answer{unsent, reset, unsent, late}, "abcd", 504},
		{"abc", []fake.Answer{late, {Status: 200, Body: "{}"}}, "ab", 200},
		{"a", []fake.Answer{reset}, "aa", 502},
	} {
		w := newWorld(t).add(accounts(tt.accounts)...)
		for i, id := range strings.Split(tt.accounts, "") {
			w.script[key(id)] = tt.answers[min(i, len(tt.answers)-1):]
		}
		c := w.call()
		c.Repeats = true
		status := 200
		if _, e := w.sendCall(c); e != nil {
			status = e.Status
		}
		if w.saw() != tt.saw || status != tt.status {
			t.Errorf("%v: upstream saw %s, client got %d; want %s, %d", tt.answers, w.saw(), status, tt.saw, tt.status)
		}
	}
}

func TestDeadlineOfTheWholePlan(t *testing.T) {
	w := newWorld(t).add(accounts("abc")...)
	w.req.Header = httpmsg.Header{{Name: "x-stainless-timeout", Value: "20"}}
	w.script["*"] = []fake.Answer{{Status: 503}}
	c := w.call()
	build := c.Build
	c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
		a, err := build(to, conn, before)
		a.Request.MaxBody = 1 << 20
		if len(w.Seen) > 0 {
			w.Add(12 * time.Second)
		}
		return a, err
	}
	_, e := w.sendCall(c)
	if w.saw() != "ab" || e.Status != 504 {
		t.Fatalf("saw %s, got %v; want two calls and 504", w.saw(), e)
	}
	for i, want := range []time.Duration{20 * time.Second, 8 * time.Second} {
		if r := w.Seen[i].Request; r.HeaderTimeout != want || r.Timeout != want {
			t.Errorf("call %d: limits %v, %v, want %v", i, r.HeaderTimeout, r.Timeout, want)
		}
	}
	w.script["*"] = []fake.Answer{{Status: 200}}
	for _, v := range []string{"0", "-5", "abc", "NaN", "1e300"} {
		w.req.Header = httpmsg.Header{{Name: "x-stainless-timeout", Value: v}}
		if w.send(); w.Seen[0].Request.HeaderTimeout != store.WholeAnswer {
			t.Errorf("%s: limit %v, want the default", v, w.Seen[0].Request.HeaderTimeout)
		}
	}
}

func TestComboGoesOnToTheNextMember(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	c := w.call()
	c.Targets = []routing.Target{w.target("gpt"), w.target("mini")}
	w.script["*"] = []fake.Answer{{Status: 429}, {Status: 429}, {Status: 200}}
	res, e := w.sendCall(c)
	if e != nil || res.Target.Model != "mini" || w.saw() != "aba" || w.trace.Model != "openai/mini" {
		t.Errorf("saw %s, got %v, %v", w.saw(), res, e)
	}
	res, e = w.sendCall(c) // the first member's accounts cool down
	if e != nil || res.Target.Model != "mini" || w.saw() != "a" {
		t.Errorf("saw %s, got %v, %v", w.saw(), res, e)
	}
}

func TestMostUsefulFailureIsReturned(t *testing.T) {
	for _, tt := range []struct {
		a, b, want int
	}{{401, 500, 500}, {500, 401, 500}, {429, 500, 500}, {500, 429, 500}, {429, 401, 429}, {401, 429, 429}, {401, 403, 401}, {402, 429, 429}, {429, 402, 429},
		{402, 401, 402}, {403, 402, 402}, {403, 403, 401}, {402, 402, 402}, {500, 529, 529}} {
		w := newWorld(t).add(accounts("ab")...)
		w.script[key("a")] = []fake.Answer{{Status: tt.a}}
		w.script[key("b")] = []fake.Answer{{Status: tt.b}}
		if _, e := w.send(); e.Status != tt.want {
			t.Errorf("%d, then %d: got %d, want %d", tt.a, tt.b, e.Status, tt.want)
		}
	}
}

func TestNoCredentials(t *testing.T) {
	w := newWorld(t)
	if _, e := w.send(); e.Status != 400 || e.Code != "no_credentials" {
		t.Errorf("none: got %v", e)
	}
	w.add(store.Connection{ID: "a", Status: "needs_reauth"})
	if _, e := w.send(); e.Status != 401 || e.Code != "account_key_refused" || !e.NoRetry || w.saw() != "" {
		t.Errorf("needs_reauth: got %+v", e)
	}
	w = newWorld(t).add(store.Connection{ID: "a", Status: "needs_credential"})
	if _, e := w.send(); e.Status != 400 || e.Code != "no_credentials" || w.saw() != "" {
		t.Errorf("needs_credential: got %+v", e)
	}
	w = newWorld(t).add(store.Connection{ID: "a", Secrets: map[string]secret.Sealed{store.APIKey: "plain-0123456789"}})
	if _, e := w.send(); e.Status != 503 || e.Code != "key_unavailable" || w.saw() != "" {
		t.Errorf("does not open: got %v", e)
	}
	w.add(store.Connection{ID: "b"})
	if _, e := w.send(); e != nil || w.saw() != "b" {
		t.Errorf("another account is not affected: %v", e)
	}
}

func TestBuildErrors(t *testing.T) {
	w := newWorld(t).add(accounts("ab")...)
	c := w.call()
	build := c.Build
	c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
		if conn.ID == "a" {
			return nil, fmt.Errorf("region: %w", provider.ErrIncomplete)
		}
		return build(to, conn, before)
	}
	if _, e := w.sendCall(c); e != nil || w.saw() != "b" {
		t.Errorf("incomplete connection: saw %s, %v", w.saw(), e)
	}
	c.Build = func(*routing.Target, *store.Connection, *Attempt) (*Attempt, error) {
		return nil, apierr.Invalid("input", "too long")
	}
	if _, e := w.sendCall(c); e.Status != 400 || e.Param != "input" {
		t.Errorf("got %v", e)
	}
	c.Build = func(*routing.Target, *store.Connection, *Attempt) (*Attempt, error) {
		return nil, fmt.Errorf("x: %w", provider.ErrNoEndpoint)
	}
	if _, e := w.sendCall(c); e.Status != 400 || e.Code != "unsupported_endpoint" {
		t.Errorf("got %v", e)
	}
}

func TestErrorReachesTheClientClean(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script[key("a")] = []fake.Answer{{Status: 400, Header: httpmsg.Header{{Name: "x-ratelimit-limit-requests", Value: "5"}, {Name: "set-cookie", Value: "x"}, {Name: "retry-after", Value: "5"}},
		Body: `{"error":{"message":"bad ` + key("a") + ` ` + strings.Repeat("x", 900) + `","type":"invalid_request_error","param":"messages[0].content","code":"context_length_exceeded"}}`}}
	_, e := w.send()
	if !strings.HasPrefix(e.Message, "bad *** xxx") || len(e.Message) != 500 || e.Param != "messages[0].content" || e.Code != "context_length_exceeded" || e.Type != "invalid_request_error" {
		t.Errorf("got %+v", e)
	}
	if len(e.Header) != 1 || e.Header[0].Name != "x-ratelimit-limit-requests" {
		t.Errorf("header %v", e.Header)
	}
}

func TestStreamIsASuccessOnlyAtItsCleanEnd(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.script[key("a")] = []fake.Answer{{Status: 429}, {Status: 200, Body: "{}"}}
	w.send()
	w.Add(3 * time.Second)
	res, _ := w.sendCall(w.kind("stream"))
	if w.machine.State("a", "gpt").Failures != 1 {
		t.Fatal("cleared before the end")
	}
	res.Done(stream.ErrClient)
	if w.machine.State("a", "gpt").Failures != 1 {
		t.Fatal("cleared by a client that left")
	}
	res.Done(nil)
	if w.machine.State("a", "gpt") != (snapshot.State{}) {
		t.Error("not cleared at the end")
	}
	res.Done(apierr.New(429, "", "in the stream"))
	if model, _ := w.cooling("a"); model == 0 {
		t.Error("an error within the stream is evidence")
	}
}

func TestBillableIsAcceptedAtMostOnce(t *testing.T) {
	faults := []fake.Answer{{Err: upstream.ErrNetwork}, {Err: upstream.ErrTimeout}, {Status: 500}, {Status: 503}, {Status: 529}, {Status: 103}, {Status: 302}, {Status: 204}, {Status: 408},
		{Status: 401}, {Status: 403}, {Status: 429}, {Status: 400}, {Status: 200}}
	for i, first := range faults {
		for j, second := range faults {
			w := newWorld(t).add(accounts("abc")...)
			w.script["*"] = []fake.Answer{first, second, {Status: 200}}
			w.sendCall(w.kind("billable"))
			maybe := 0 // answers after which the creation may have been accepted
			for _, k := range []fake.Answer{first, second, {Status: 200}}[:len(w.Seen)] {
				if k.Status != 401 && k.Status != 403 && k.Status != 429 && k.Status != 400 {
					maybe++
				}
			}
			if maybe > 1 {
				t.Errorf("faults %d, %d: %d calls, %d may have been accepted", i, j, len(w.Seen), maybe)
			}
			for _, r := range w.Seen {
				if !r.Outlive {
					t.Error("a creation must go on when the client leaves")
				}
			}
		}
	}
}

func TestGatewaysInACircle(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.send()
	if got := w.Seen[0].Request.Header.Get("x-weir-hop"); got != "1" {
		t.Errorf("hop %q, want 1", got)
	}
	w.req.Header = httpmsg.Header{{Name: "x-weir-hop", Value: "3"}}
	if _, e := w.send(); e.Status != 508 || w.saw() != "" {
		t.Errorf("got %v", e)
	}
}

func BenchmarkSendFirstAccountWorks(b *testing.B) {
	w := newWorld(b).add(accounts("abc")...)
	c := w.call()
	b.ReportAllocs()
	for b.Loop() {
		w.Seen = w.Seen[:0]
		if _, err := w.pool.Send(context.Background(), c); err != nil {
			b.Fatal(err)
		}
	}
}
