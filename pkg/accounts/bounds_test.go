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
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

func TestResetAtBoundsOfUnits(t *testing.T) {
	sec := func(n int64) time.Time { return time.Unix(n, 0) }
	const day = 24 * time.Hour
	for _, tt := range []struct {
		v    string
		now  time.Time
		want time.Duration // 0: unreadable
	}{
		{"999999999", sec(0), 999999999 * time.Second}, // seconds
		{"1000000000", sec(1e9 - 60), time.Minute},
		{"99999999999", sec(99999999999 - 60), time.Minute},
		{"100000000000", sec(1e8 - 5), 5 * time.Second}, // milliseconds
		{"1000000000000000", sec(0), 0},
		{"0d", sec(0), time.Second},
		{"999d", sec(0), 999 * day},
		{"1000d", sec(0), 0},
		{"-1d", sec(0), 0},
		{"xd", sec(0), 0},
		{"2d90s", sec(0), 2*day + 90*time.Second},
	} {
		got, ok := statedWait(httpmsg.Header{{Name: "x-ratelimit-reset", Value: tt.v}}, nil, tt.now)
		if got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%s: got %v, %v, want %v", tt.v, got, ok, tt.want)
		}
	}
}

func TestLimitFieldsAreReadOneByOne(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		h    httpmsg.Header
		body string
		want time.Duration
	}{
		{httpmsg.Header{{Name: "x-ratelimit-reset-a", Value: "later"}, {Name: "x-ratelimit-reset-b", Value: "9s"}}, "", 9 * time.Second},
		{httpmsg.Header{{Name: "reset-ratelimit", Value: "9s"}}, "", 9 * time.Second},
		{nil, `{"error":{"resets_in_seconds":5}} trailing`, 0},
	} {
		if got, ok := statedWait(tt.h, []byte(tt.body), now); got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%v %s: got %v, want %v", tt.h, tt.body, got, tt.want)
		}
	}
	if weekly(nil, []byte(`{"error":{"type":"usage_limit_reached"}} trailing`)) {
		t.Error("an invalid body counts as a weekly window")
	}
}

func TestFailuresAreForgottenAfterTenMinutes(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for ago, want := range map[time.Duration]int{0: 3, store.ForgetCooldown: 3, store.ForgetCooldown + time.Millisecond: 0} {
		if got := failuresOf(snapshot.State{Until: now.Add(-ago).UnixMilli(), Failures: 3}, now); got != want {
			t.Errorf("%v after the end: got %d, want %d", ago, got, want)
		}
	}
}

func TestStatedCost(t *testing.T) {
	for _, tt := range []struct {
		usd   float64
		known bool
		want  Used
	}{
		{0, true, Used{Price: Stated}}, {0.5, true, Used{Price: Stated, USD: 0.5}},
		{-0.5, true, Used{Price: Unknown}}, {0.5, false, Used{Price: Unknown}},
	} {
		if got := StatedCost(tt.usd, tt.known); got != tt.want {
			t.Errorf("%v, %v: got %+v, want %+v", tt.usd, tt.known, got, tt.want)
		}
	}
}

func TestPassedErrors(t *testing.T) {
	cred := provider.Credential{APIKey: secret.New("livekey0123456789")}
	for _, tt := range []struct {
		body string
		form ErrorForm
		typ  string
		want string // the body that passes, "" for none
	}{
		{`{"error":{"message":"m","type":"t"}}`, ErrorsByShape, "t", `{"error":{"message":"m","type":"t"}}`},
		{" {\"error\":{\"message\":\"m\",\"param\":null}}\n", ErrorsByShape, "", `{"error":{"message":"m","param":null}}`},
		{`{"error":{"message":"m","code":"c"}}`, ErrorsByShape, "", `{"error":{"message":"m","code":"c"}}`},
		{`{"error":{"message":"m","code":400}}`, ErrorsByShape, "", ""},
		{`{"error":{"message":5,"type":"t","param":"p","code":"c"}}`, ErrorsByShape, "t", ""},
		{`{"error":{"message":"m","code":400}}`, ErrorsSame, "", `{"error":{"message":"m","code":400}}`},
		{`{"error":{"message":"m","type":"t"}}`, ErrorsForeign, "t", ""},
		{`[{"error":{"message":"m","type":"t"}}]`, ErrorsSame, "t", ""},
		{`{"error":{"message":"m","type":7}}`, ErrorsForeign, "", ""},
		{`{"error":{"message":"m","type":"a b"}}`, ErrorsForeign, "", ""},
		{`{"error":{"message":"m","type":"livekey0123456789"}}`, ErrorsSame, "", `{"error":{"message":"m","type":"***"}}`},
		{`{"error":{"message":"m","type":"t"}} trailing`, ErrorsSame, "", ""},
		{"", ErrorsSame, "", ""},
	} {
		e := &apierr.Error{}
		pass(e, []byte(tt.body), cred, tt.form)
		if string(e.Body) != tt.want || e.Type != tt.typ || e.Own != (tt.typ != "") {
			t.Errorf("%s, form %d: got body %s, type %q, own %v; want %s, %q", tt.body, tt.form, e.Body, e.Type, e.Own, tt.want, tt.typ)
		}
	}
	if e := upstreamError(400, nil, []byte(`{"error":{"message":"m"}} trailing`), cred); e.Message != "The provider answered with status 400." {
		t.Errorf("invalid JSON is shown: %s", e.Message)
	}
}

func TestErrorFromAnswerIsShownWithoutCredential(t *testing.T) {
	cred := provider.Credential{APIKey: secret.New("live-key-0123456789")}
	plain, leak := errors.New("plain"), errors.New("with live-key-0123456789")
	for _, tt := range []struct{ in, want apierr.Error }{
		{apierr.Error{Status: 400, Message: "m", Code: "c", Param: "p", Err: plain}, apierr.Error{Status: 400, Message: "m", Code: "c", Param: "p", Err: plain}},
		{apierr.Error{Status: 401, Message: "bad live-key-0123456789", Code: "live-key-0123456789", Param: "p", Err: leak}, apierr.Error{Status: 401, Message: "bad ***", Param: "p"}},
		{apierr.Error{Status: 402, Param: "live-key-0123456789"}, apierr.Error{Status: 402, Message: "The provider answered with status 402."}},
	} {
		got := tt.in
		clean(&got, cred)
		if got.Message != tt.want.Message || got.Code != tt.want.Code || got.Param != tt.want.Param || got.Err != tt.want.Err {
			t.Errorf("%+v: got %+v, want %+v", tt.in, got, tt.want)
		}
	}
	clean(nil, cred)
}

func TestNamesOfCodes(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "_": true, ".": true, "-": true, "[": true, "]": true,
		"`": false, "{": false, "@": false, "/": false, ":": false, "a b": false, "é": false, "messages[0].content": true,
		strings.Repeat("a-", 32): true, strings.Repeat("a-", 32) + "a": false,
	} {
		if identifier(s) != want {
			t.Errorf("%q: got %v", s, !want)
		}
	}
}

func TestLongMessagesAreShownInPart(t *testing.T) {
	if got := shownText(strings.Repeat("word ", 1000), provider.Credential{}); got != strings.Repeat("word ", maxMessage/5) {
		t.Errorf("got %d bytes, want the first 500", len(got))
	}
	if got := shownText(strings.Repeat(" ", 8*maxMessage)+"end", provider.Credential{}); got != "" {
		t.Errorf("got %q, which is beyond 4000 bytes", got)
	}
	if got := shownText(strings.Repeat(" ", 8*maxMessage-3)+"end", provider.Credential{}); got != "end" {
		t.Errorf("got %q, want the end of 4000 bytes", got)
	}
}

func TestDeadline(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for _, tt := range []struct {
		header      string
		limit, want time.Duration // from now; 0 for none
		ago         time.Duration // of the start
	}{
		{"", 0, 0, 0},
		{"", time.Minute, time.Minute, 0},
		{"30", 0, 30 * time.Second, 0},
		{"30", time.Minute, 30 * time.Second, 0},
		{"90", time.Minute, time.Minute, 0},
		{"0.5", 0, 500 * time.Millisecond, 0},
		{"3600", 0, time.Hour, 0},
		{"3600.001", 0, 0, 0},
		{"0", 0, 0, 0},
		{"-1", 0, 0, 0},
		{"-1", time.Minute, time.Minute, 0},
		{"soon", time.Minute, time.Minute, 0},
		{"", time.Minute, 50 * time.Second, 10 * time.Second},
		{"", time.Minute, time.Minute, time.Minute}, // a start that is too old is not believed
		{"", time.Minute, time.Minute, 2 * time.Minute},
		{"", time.Minute, time.Minute, -time.Second}, // nor one to come
	} {
		r := &httpmsg.Request{Start: now.Add(-tt.ago)}
		if tt.header != "" {
			r.Header = httpmsg.Header{{Name: "x-stainless-timeout", Value: tt.header}}
		}
		want := now.Add(tt.want)
		if tt.want == 0 {
			want = time.Time{}
		}
		if got := Deadline(r, tt.limit, now); !got.Equal(want) {
			t.Errorf("%+v: got %v, want %v", tt, got, want)
		}
	}
	if got := Deadline(&httpmsg.Request{}, time.Minute, now); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("without a start: got %v", got)
	}
}

func TestLacksEndpoint(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&apierr.Error{Status: 404}, true}, {&apierr.Error{Status: 405}, true}, {&apierr.Error{Status: 501}, true},
		{&apierr.Error{Status: 404, Code: "not_found"}, true}, {&apierr.Error{Status: 404, Code: "model_not_found"}, false},
		{&apierr.Error{Status: 404, Param: "model"}, false}, {&apierr.Error{Status: 405, Param: "x", Code: "model_not_found"}, true},
		{&apierr.Error{Status: 400}, false}, {&apierr.Error{Status: 500}, false}, {errors.New("x"), false}, {nil, false},
	} {
		if got := lacksEndpoint(tt.err); got != tt.want {
			t.Errorf("%+v: got %v", tt.err, got)
		}
	}
}

// former is a Former with one answer.
type former struct {
	again   bool
	instead *apierr.Error
}

func (f former) OtherForm(*apierr.Error, []byte) (bool, *apierr.Error) { return f.again, f.instead }

func TestSameAccountIsAskedAgain(t *testing.T) {
	instead := apierr.Invalid("", "another error")
	for _, tt := range []struct {
		name     string
		f        failure
		otherAPI bool
		again    bool // of OtherForm
		billable bool
		want     Retry
	}{
		{"new token", failure{refresh: true, next: true}, true, true, false, Refreshed},
		{"new token, billed", failure{refresh: true}, false, false, true, Refreshed},
		{"no endpoint", failure{err: &apierr.Error{Status: 404}}, true, true, false, OtherAPI},
		{"no endpoint, billed", failure{err: &apierr.Error{Status: 404}}, true, true, true, NoRetry},
		{"no endpoint, no other", failure{err: &apierr.Error{Status: 404}}, false, false, false, NoRetry},
		{"another account is next", failure{err: &apierr.Error{Status: 404}, next: true}, true, true, false, NoRetry},
		{"501", failure{err: &apierr.Error{Status: 501}, next: true}, true, false, false, OtherAPI},
		{"field refused", failure{err: &apierr.Error{Status: 400}}, true, true, false, OtherForm},
		{"field refused, billed", failure{err: &apierr.Error{Status: 400}}, false, true, true, OtherForm},
		{"402, billed", failure{err: &apierr.Error{Status: 402}}, false, true, true, NoRetry},
		{"409, billed", failure{err: &apierr.Error{Status: 409}}, false, true, true, NoRetry},
		{"field refused, 501", failure{err: &apierr.Error{Status: 501}, next: true}, false, true, false, OtherForm},
		{"499", failure{err: &apierr.Error{Status: 499}}, false, true, false, OtherForm},
		{"500", failure{err: &apierr.Error{Status: 500}}, false, true, false, NoRetry},
		{"502", failure{err: &apierr.Error{Status: 502}}, false, true, false, NoRetry},
	} {
		a := &Attempt{OtherAPI: tt.otherAPI, Forms: former{tt.again, nil}}
		if got := tt.f.retry(a, tt.billable); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
	for _, tt := range []*apierr.Error{instead, nil} {
		was := &apierr.Error{Status: 400}
		f := &failure{err: was}
		f.retry(&Attempt{Forms: former{false, tt}}, false)
		if tt != nil && f.err != instead || tt == nil && f.err != was {
			t.Errorf("the error is %+v", f.err)
		}
	}
	if got := (&failure{err: &apierr.Error{Status: 400}}).retry(&Attempt{}, false); got != NoRetry {
		t.Errorf("nothing else to try: got %d", got)
	}
}

func TestBilledCallOfUnknownOutcomeIsNotRepeated(t *testing.T) {
	for status, want := range map[int]bool{400: false, 401: false, 402: false, 408: true, 409: false, 429: false, 499: false, 500: true, 501: true, 529: true} {
		for _, billable := range []bool{false, true} {
			e := &apierr.Error{Status: status}
			judge(e, false, billable)
			if e.NoRetry != (want && billable) {
				t.Errorf("%d, billable %v: got %v", status, billable, e.NoRetry)
			}
		}
	}
}

func TestClassOfErrorInsideAnswer(t *testing.T) {
	for _, tt := range []struct {
		status   int
		code     string
		billable bool
		want     routing.Class
	}{
		{404, "model_not_found", false, routing.ModelGone}, {404, "model_not_found", true, routing.Final}, {404, "other", false, routing.Any4xx},
		{410, "", false, routing.ModelGone}, {403, "content_policy_violation", false, routing.ContentFilter},
		{400, "context_length_exceeded", false, routing.ContextLength}, {400, "unsupported_country_region_territory", false, routing.Final},
		{429, "model_not_found", false, routing.Final},
	} {
		f := judgeInside(&apierr.Error{Status: tt.status, Code: tt.code}, openai, tt.billable)
		if f.class != tt.want {
			t.Errorf("%+v: got %v", tt, f.class)
		}
	}
}

func TestClassOfRefusalIsThatOfItsStatus(t *testing.T) {
	for status, want := range map[int]routing.Class{
		0: routing.Final, 399: routing.Final, 400: routing.Any4xx, 409: routing.Any4xx, 410: routing.ModelGone,
		499: routing.Any4xx, 500: routing.Final,
	} {
		if got := classOfAnswer(status, ""); got != want {
			t.Errorf("%d: got %v, want %v", status, got, want)
		}
	}
}

func TestWaitIsStatedInWords(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Second: "1 second", 1001 * time.Millisecond: "2 seconds", 59 * time.Second: "59 seconds", 59001 * time.Millisecond: "1 minute",
		61 * time.Second: "61 seconds", 119 * time.Second: "119 seconds", 2 * time.Minute: "2 minutes", 121 * time.Second: "3 minutes",
		2*time.Hour - time.Minute: "119 minutes", 2 * time.Hour: "2 hours", 2*time.Hour + time.Second: "3 hours", 3 * time.Hour: "3 hours",
	} {
		if got := waitText(wait); got != want {
			t.Errorf("%v: got %q, want %q", wait, got, want)
		}
	}
}

func TestInvalidAnswerCountsAgainstTheAccountExceptARedirect(t *testing.T) {
	for _, tt := range []struct {
		code     string
		billable bool
		shown    string
		effect   effect
	}{
		{"upstream_redirect", false, "upstream_redirect", nothing}, {"upstream_redirect", true, "upstream_redirect", nothing},
		{"empty_upstream", false, "empty_upstream", unsteady}, {"empty_upstream", true, "upstream_outcome_unknown", unsteady},
	} {
		f := strange(tt.code, "m", tt.billable)
		if f.err.Code != tt.shown || f.effect != tt.effect || f.next == tt.billable || f.err.NoRetry != tt.billable {
			t.Errorf("%+v: got %+v, %+v", tt, f, f.err)
		}
	}
}

func TestLongModelNamesAreNotNoted(t *testing.T) {
	for n, noted := range map[int]bool{store.MaxCooledModel: true, store.MaxCooledModel + 1: false} {
		w := newWorld(t).add(accounts("a")...)
		model := strings.Repeat("m", n)
		for range 5 {
			w.pool.note(w.machine, "a", model, &failure{err: &apierr.Error{Status: 503}, effect: unsteady})
		}
		if got := w.machine.Outlier("a", model, w.Now().UnixMilli()); got != noted {
			t.Errorf("%d bytes: outlier %v", n, got)
		}
		w.pool.note(w.machine, "a", model, &failure{err: &apierr.Error{Status: 429}, effect: limited})
		if got := w.machine.State("a", model).Until != 0; got != noted {
			t.Errorf("%d bytes: cools %v", n, got)
		}
	}
}

func TestStatusAtBoundsOfItsClass(t *testing.T) {
	for status, want := range map[int]int{200: 200, 299: 299, 300: 502, 399: 502, 400: 400, 599: 599, 600: 502, 199: 502} {
		w := newWorld(t).add(accounts("a")...)
		w.script["*"] = []fake.Answer{{Status: status}}
		res, e := w.send()
		got := 0
		if e != nil {
			got = e.Status
		} else {
			got = res.Status
		}
		if got != want {
			t.Errorf("%d: got %d, want %d", status, got, want)
		}
	}
}

func TestStatusOfSpentCredit(t *testing.T) {
	for status, want := range map[int]time.Duration{418: time.Hour, 417: 0} {
		w := newWorld(t).add(accounts("a")...)
		c := w.call()
		d := *openai
		d.Spent = []int{418}
		c.Targets[0].Provider = &d
		w.script["*"] = []fake.Answer{{Status: status}}
		_, e := w.sendCall(c)
		if _, whole := w.cooling("a"); whole != want || (e.Code == quotaCode) != (want > 0) {
			t.Errorf("%d: cools %v, %+v", status, whole, e)
		}
	}
}

func TestBilledCallGoesOnAfterARefusedPlaceOnlyAt403(t *testing.T) {
	for status, saw := range map[int]string{403: "aa", 451: "a"} {
		w := newWorld(t).add(accounts("a")...)
		c := w.call()
		c.Billable = true
		other := *openai
		other.ID, other.BaseURL = "other", "https://else.example/v1"
		c.Targets = append(c.Targets, c.Targets[0])
		c.Targets[1].Provider = &other
		w.script["*"] = []fake.Answer{{Status: status, Header: httpmsg.Header{{Name: "cf-mitigated", Value: "challenge"}}}, {Status: 200}}
		if w.sendCall(c); w.saw() != saw {
			t.Errorf("%d: saw %s, want %s", status, w.saw(), saw)
		}
	}
}

func TestOnlyAWeeklyWindowCoolsOverADay(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		claim string
		want  time.Duration
	}{{"seven_day", 3 * day}, {"five_hour", day}} {
		w := newWorld(t).add(accounts("a")...)
		w.script["*"] = []fake.Answer{{Status: 429, Header: httpmsg.Header{{Name: "retry-after", Value: "259200"}, {Name: "anthropic-ratelimit-unified-representative-claim", Value: tt.claim}}}}
		w.send()
		if model, _ := w.cooling("a"); model != tt.want {
			t.Errorf("%s: cools %v, want %v", tt.claim, model, tt.want)
		}
	}
}

func TestErrorThatEndsThePlanPasses(t *testing.T) {
	const body = `{"error":{"message":"m","type":"t"}}`
	for _, tt := range []struct {
		status   int
		billable bool
		want     bool
	}{{400, false, true}, {400, true, true}, {500, true, true}, {500, false, false}, {401, false, false}, {402, true, false}, {529, false, false}} {
		w := newWorld(t).add(accounts("a")...)
		c := w.call()
		c.Billable = tt.billable
		w.script["*"] = []fake.Answer{{Status: tt.status, Body: body}}
		if _, e := w.sendCall(c); (string(e.Body) == body) != tt.want {
			t.Errorf("%+v: got %s", tt, e.Body)
		}
	}
}

func TestLeastWait(t *testing.T) {
	for _, tt := range [][3]time.Duration{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 3}, {3, 5, 3}, {5, -1, 5}} {
		if got := least(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%v and %v: got %v", tt[0], tt[1], got)
		}
	}
	for _, tt := range [][3]time.Duration{{5, 3, 3}, {3, 5, 3}} {
		conn := &store.Connection{}
		s := outcomes{{Connection: conn, err: &noToken{tt[0]}}, {Connection: conn, err: &noToken{tt[1]}}}.summary()
		if s.later.wait != tt[2] {
			t.Errorf("tokens after %v and %v: got %v", tt[0], tt[1], s.later.wait)
		}
	}
}

func TestAccountsOfACauseAreNamed(t *testing.T) {
	a, b := &store.Connection{ID: "a", Provider: "openai"}, &store.Connection{ID: "b", Name: "Work", Provider: "openai"}
	for want, m := range map[string]*missed{
		`account "a" (openai)`:                                       {conns: []*store.Connection{a}},
		`account "Work" (openai, since Jan 1, 00:00 UTC)`:            {conns: []*store.Connection{b}, since: 1000},
		`account "a" (openai) and 1 more`:                            {conns: []*store.Connection{a, b}},
		`account "Work" (openai, since Jan 1, 00:00 UTC) and 2 more`: {conns: []*store.Connection{b, a, a}, since: 1},
	} {
		if got := account(m); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := names(nil); got != "of this model" {
		t.Errorf("no targets: got %q", got)
	}
	if got := names([]routing.Target{{}}); got != "of this model" {
		t.Errorf("no provider: got %q", got)
	}
	e := &apierr.Error{RetryAfter: 5 * time.Second}
	if waiting(e, 0); e.RetryAfter != 5*time.Second {
		t.Errorf("without a wait: got %v", e.RetryAfter)
	}
}

func TestRevokedSignInIsToldApartFromARefusedKey(t *testing.T) {
	const told = "is no longer valid. Sign in again"
	w := newWorld(t).add(store.Connection{ID: "r", Status: needsReauth})
	w.machine.Connections[0].Provider = "openai"
	c := w.call()
	c.Targets[0].Connections = []*store.Connection{&w.machine.Connections[0]}
	if _, e := w.sendCall(c); e.Status != 401 || !strings.Contains(e.Message, told) || errors.Is(e, ErrCooling) {
		t.Errorf("got %+v", e)
	}
	w = newWorld(t).add(accounts("a")...)
	w.script["*"] = []fake.Answer{{Status: 401, Body: `{"error":{"message":"wrong key"}}`}}
	if _, e := w.send(); strings.Contains(e.Message, told) || !strings.Contains(e.Message, "wrong key") {
		t.Errorf("refused key: got %+v", e)
	}
	if _, e := w.send(); w.saw() != "" || strings.Contains(e.Message, told) || !errors.Is(e, ErrCooling) {
		t.Errorf("while it cools: got %+v", e)
	}
	w = newWorld(t).add(accounts("a")...)
	w.script["*"] = []fake.Answer{{Status: 401, Body: `{"error":{"message":"` + strings.Repeat("wrong ", 200) + `key"}}`}}
	if _, e := w.send(); !strings.HasSuffix(e.Message, "”.") {
		t.Errorf("the quote of a long text is open: %s", e.Message)
	}
}

func TestRecordOfAttemptHasTextOnlyIfAccountIsConcerned(t *testing.T) {
	for _, tt := range []struct {
		f    failure
		want string
	}{{failure{next: true}, "m"}, {failure{effect: limited}, "m"}, {failure{}, ""}} {
		tt.f.err = &apierr.Error{Message: "m"}
		o := Outcome{Target: &routing.Target{Provider: &provider.Descriptor{}}, Connection: &store.Connection{}}
		if got := tried(&o, &tt.f, 0, 0); got.Text != tt.want {
			t.Errorf("%+v: got %q", tt.f, got.Text)
		}
	}
}

func TestRecordCountsAnswersFrom400AsFailed(t *testing.T) {
	for _, tt := range []struct {
		status   int
		e, cause *apierr.Error
		failed   int64
		code     string
	}{
		{399, nil, nil, 0, ""}, {400, nil, nil, 1, ""},
		{200, &apierr.Error{Status: 500, Code: "x"}, &apierr.Error{Status: 500, Code: "y"}, 1, "x"},
		{499, &apierr.Error{Status: 499, Code: "left"}, nil, 0, "left"}, {499, &apierr.Error{Status: 498, Code: "c"}, nil, 1, "c"},
	} {
		w := newWorld(t).add(accounts("a")...)
		tr := &Trace{Provider: "openai", ConnectionID: "a", Model: "m"}
		if tt.cause != nil {
			tr.Err = tt.cause
		}
		w.pool.Record(w.Now(), w.machine, &httpmsg.Request{Method: "POST", Route: "/v1/x", Start: w.Now()}, tr, tt.status, tt.e)
		r := w.pool.reportOf(mid)
		if u := r.Usage; len(u) != 1 || int64(u[0].FailedCalls) != tt.failed || u[0].Provider != "" {
			t.Errorf("%+v: got %+v", tt, u)
		}
		if got := r.Requests[0].Error; got != tt.code {
			t.Errorf("%+v: error %q", tt, got)
		}
	}
}

func TestReportWaitsOnlyWithCountsAlone(t *testing.T) {
	cooldown, cleared := []store.Cooldown{{}}, []rpc.Cleared{{}}
	failures, refusals := []rpc.LastError{{}}, []store.Refusal{{}}
	for i, r := range []rpc.Report{
		{Cooldowns: cooldown}, {Cleared: cleared}, {Errors: failures}, {Refusals: refusals},
		{Cooldowns: cooldown, Cleared: cleared}, {Cleared: cleared, Errors: failures}, {Errors: failures, Refusals: refusals}, {Cooldowns: cooldown, Refusals: refusals},
	} {
		if (&report{Report: r}).onlyCounts() {
			t.Errorf("report %d can wait", i)
		}
	}
	if !(&report{Report: rpc.Report{Requests: []store.Request{{}}}}).onlyCounts() {
		t.Error("counts cannot wait")
	}
}

func TestNewerStateReplacesOnlyThatOfItsAccountAndModel(t *testing.T) {
	for _, tt := range []struct{ conn, model, want string }{
		{"a", "m", "an bm"}, {"a", "n", "am bm"}, {"b", "m", "am an"}, {"b", "n", "am an bm"},
	} {
		r := &report{}
		for _, s := range []string{"am", "an", "bm"} {
			r.Cleared = append(r.Cleared, rpc.Cleared{ConnectionID: s[:1], Model: s[1:]})
			r.Cooldowns = append(r.Cooldowns, store.Cooldown{ConnectionID: s[:1], Model: s[1:]})
		}
		r.drop(tt.conn, tt.model)
		var cleared, cooldowns []string
		for _, c := range r.Cleared {
			cleared = append(cleared, c.ConnectionID+c.Model)
		}
		for _, c := range r.Cooldowns {
			cooldowns = append(cooldowns, c.ConnectionID+c.Model)
		}
		if got := strings.Join(cleared, " "); got != tt.want || strings.Join(cooldowns, " ") != got {
			t.Errorf("%s%s: left %v and %v", tt.conn, tt.model, cleared, cooldowns)
		}
	}
}

func TestReportsOfManyMachinesAreBounded(t *testing.T) {
	p := &Pool{}
	for i := range maxMachines + 10 {
		p.reportOf(fmt.Sprint(i))
		if want := min(i+1, maxMachines); len(p.reports) != want || p.reports[fmt.Sprint(i)] == nil {
			t.Fatalf("after %d machines: %d reports, want %d", i+1, len(p.reports), want)
		}
	}
}

func TestReportIsRepeatedOnlyAfterATemporaryFailure(t *testing.T) {
	for status, want := range map[int]bool{200: false, 400: false, 499: false, 500: true, 503: true} {
		w := newWorld(t).add(accounts("a")...)
		w.script["*"] = []fake.Answer{{Status: 401}}
		w.send()
		w.object.Answer = func(string, []byte) (int, []byte, error) { return status, nil, nil }
		w.pool.Flush(context.Background(), w.machine)
		if got := w.pool.Unreported() > 0; got != want {
			t.Errorf("%d: pending %v", status, got)
		}
	}
}

func TestTokenOfTheSameGenerationIsTheSnapshots(t *testing.T) {
	w := newWorld(t)
	conn := w.oauth("a", 0)
	for generation, want := range map[int64]int64{0: 1, 1: 1, 2: 2} {
		w.pool.tokens = map[tokenKey]*token{{mid, "a"}: {sealed: "x", generation: generation}}
		got := w.pool.current(mid, &conn)
		if got.generation != want || (got.sealed == "x") != (generation > 1) || (len(w.pool.tokens) == 1) != (generation > 1) {
			t.Errorf("generation %d: got %+v, %d remembered", generation, got, len(w.pool.tokens))
		}
	}
}

func TestAnswersToARefresh(t *testing.T) {
	const newer = `{"connection":{"secrets":{"accessToken":"s"},"tokenGeneration":2}}`
	for _, tt := range []struct {
		name   string
		status int
		answer string
		ok     bool
		wait   time.Duration
	}{
		{"newer token", 200, newer, true, 0},
		{"invalid JSON", 200, newer + "x", false, 0},
		{"same generation", 200, `{"connection":{"secrets":{"accessToken":"s"},"tokenGeneration":1}}`, false, 0},
		{"no token", 200, `{"connection":{"tokenGeneration":2}}`, false, 0},
		{"refused", 499, newer, false, 0},
		{"temporary", 500, `{"error":{"message":"m","retryAfterMs":3000}}`, false, 3 * time.Second},
		{"temporary without a wait", 503, ``, false, time.Second},
	} {
		w := newWorld(t)
		w.object.Answer = func(string, []byte) (int, []byte, error) { return tt.status, []byte(tt.answer), nil }
		conn := w.oauth("a", 0)
		ok, asked, wait := w.pool.renew(context.Background(), mid, &conn, 1)
		if ok != tt.ok || !asked || wait != tt.wait {
			t.Errorf("%s: got %v, %v, %v", tt.name, ok, asked, wait)
		}
		if tt.wait == 0 {
			continue
		}
		if _, _, wait := w.pool.renew(context.Background(), mid, &conn, 1); wait != tt.wait || len(w.object.Calls) != 1 {
			t.Errorf("%s: again: %v, %d calls", tt.name, wait, len(w.object.Calls))
		}
		if w.pool.renew(context.Background(), mid, &conn, 2); len(w.object.Calls) != 2 {
			t.Errorf("%s: another token is not asked for", tt.name)
		}
	}
}

func TestRememberedTokensAreBounded(t *testing.T) {
	w := newWorld(t)
	n := 0
	w.object.Answer = func(string, []byte) (int, []byte, error) {
		n++
		if n > 2*maxTokens {
			return 503, nil, nil
		}
		return 200, []byte(`{"connection":{"secrets":{"accessToken":"s"},"tokenGeneration":2}}`), nil
	}
	for i := range 4 * maxTokens {
		conn := store.Connection{ID: fmt.Sprint(i)}
		w.pool.renew(context.Background(), mid, &conn, 1)
		want := min(i+1, maxTokens)
		if len(w.pool.tokens) != want || i < 2*maxTokens && w.pool.tokens[tokenKey{mid, conn.ID}] == nil {
			t.Fatalf("after %d: %d tokens, want %d", i+1, len(w.pool.tokens), want)
		}
		if later := i - 2*maxTokens; later >= 0 && len(w.pool.laters) != later%maxTokens+1 {
			t.Fatalf("after %d failures: %d waits, want %d", later+1, len(w.pool.laters), later%maxTokens+1)
		}
	}
}

func TestTokenEndsAtItsExpiry(t *testing.T) {
	for left, refreshes := range map[time.Duration]int{-time.Millisecond: 1, time.Millisecond: 0} {
		w := newWorld(t)
		conn := w.oauth("a", left)
		n := 0
		w.object.Answer = w.refresher(&n)
		if _, err := w.pool.open(context.Background(), mid, &conn, new(use)); err != nil || n != refreshes {
			t.Errorf("%v left: %d refreshes, %v", left, n, err)
		}
	}
	w := newWorld(t)
	conn := w.oauth("a", time.Second)
	conn.ExpiresAt = w.Now().UnixMilli()
	n := 0
	w.object.Answer = w.refresher(&n)
	if w.pool.open(context.Background(), mid, &conn, new(use)); n != 1 {
		t.Errorf("at its expiry: %d refreshes", n)
	}
}

func TestTraceNamesWhatTheLastAttemptLeftOut(t *testing.T) {
	for _, tt := range []struct {
		attempts int
		dropped  string
		want     string
	}{{1, "x", "x"}, {1, "", "before"}, {2, "", ""}, {2, "x", "x"}} {
		pl := &plan{call: &Call{Trace: &Trace{Dropped: []string{"before"}}}}
		for range tt.attempts {
			pl.outcomes = append(pl.outcomes, Outcome{Sent: true})
		}
		a := &Attempt{}
		if tt.dropped != "" {
			a.Dropped = []string{tt.dropped}
		}
		pl.dropped(a)
		if got := strings.Join(pl.call.Trace.Dropped, " "); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}

func TestAnswerThatIsCutByTheTimeLimitIsNotRepeated(t *testing.T) {
	for _, tt := range []struct {
		err    error
		headed bool
		want   bool
	}{
		{stream.ErrTimeout, false, true}, {stream.ErrTimeout, true, true}, {upstream.ErrTimeout, true, true},
		{upstream.ErrTimeout, false, false}, {upstream.ErrNetwork, true, false},
	} {
		if got := tooLate(&apierr.Error{Err: tt.err}, tt.headed); got != tt.want {
			t.Errorf("%v, headed %v: got %v", tt.err, tt.headed, got)
		}
	}
}

func TestTimeLimitsOfAnAttempt(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name     string
		in, want upstream.Request
		limit    time.Duration
	}{
		{"the machine's", upstream.Request{}, upstream.Request{HeaderTimeout: 7 * s, Idle: 5 * s}, 0},
		{"its own", upstream.Request{HeaderTimeout: 2 * s, Idle: 3 * s}, upstream.Request{HeaderTimeout: 2 * s, Idle: 3 * s}, 0},
		{"of the whole", upstream.Request{Timeout: 9 * s}, upstream.Request{Timeout: 9 * s, Idle: 5 * s}, 0},
		{"a deadline, no body in memory", upstream.Request{Timeout: 9 * s}, upstream.Request{HeaderTimeout: 4 * s, Timeout: 9 * s, Idle: 5 * s}, 4 * s},
		{"a deadline", upstream.Request{Timeout: 9 * s, MaxBody: 9}, upstream.Request{HeaderTimeout: 4 * s, Timeout: 4 * s, Idle: 5 * s}, 4 * s},
		{"a later deadline", upstream.Request{HeaderTimeout: 2 * s, Timeout: 3 * s, MaxBody: 9}, upstream.Request{HeaderTimeout: 2 * s, Timeout: 3 * s, Idle: 5 * s}, 4 * s},
	} {
		w := newWorld(t).add(accounts("a")...)
		w.machine.Settings.FirstByteSeconds, w.machine.Settings.IdleSeconds = 7, 5
		c := w.call()
		c.Timeout = tt.limit
		c.Build = func(to *routing.Target, _ *store.Connection, _ *Attempt) (*Attempt, error) {
			r := tt.in
			r.Method, r.URL, r.Body = "POST", to.Provider.BaseURL+"/x", stream.FromString("{}")
			return &Attempt{Request: r}, nil
		}
		if _, e := w.sendCall(c); e != nil {
			t.Fatalf("%s: %v", tt.name, e)
		}
		if r := w.Seen[0].Request; r.HeaderTimeout != tt.want.HeaderTimeout || r.Timeout != tt.want.Timeout || r.Idle != tt.want.Idle {
			t.Errorf("%s: got %v, %v, %v", tt.name, r.HeaderTimeout, r.Timeout, r.Idle)
		}
	}
}

func TestUsableConnections(t *testing.T) {
	region := store.ProviderData{Vars: map[string]string{"region": "us-east-1"}}
	for _, tt := range []struct {
		name     string
		provider *provider.Descriptor
		fields   []string
		ok       bool
	}{
		{"key", openai, []string{store.APIKey}, true},
		{"nothing", openai, nil, false},
		{"token", openai, []string{store.AccessToken}, true},
		{"token to be renewed", openai, []string{store.RefreshToken}, true},
		{"signing keys", bedrock, []string{store.AccessKeyID, store.SecretAccessKey}, true},
		{"key id in the API key", bedrock, []string{store.APIKey, store.SecretAccessKey}, true},
		{"no key id", bedrock, []string{store.SecretAccessKey}, false},
	} {
		conn := &store.Connection{ID: "a", Provider: tt.provider.ID, Data: region, Secrets: map[string]secret.Sealed{}}
		for _, f := range tt.fields {
			conn.Secrets[f] = "sealed"
		}
		if err := Usable(&Attempt{}, &routing.Target{Provider: tt.provider}, conn); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func TestFaultOfTheClientReplacesTheAnswer(t *testing.T) {
	for _, fault := range []error{apierr.Invalid("file", "The file is too large."), nil} {
		for _, status := range []int{200, 401} {
			w := newWorld(t).add(accounts("a")...)
			w.script["*"] = []fake.Answer{{Status: status}}
			c := w.call()
			build := c.Build
			c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
				a, err := build(to, conn, before)
				a.Fault = func() error { return fault }
				return a, err
			}
			_, e := w.sendCall(c)
			_, whole := w.cooling("a")
			if fault != nil && (e == nil || e.Status != 400 || e.Param != "file" || whole != 0) {
				t.Errorf("%d with a fault: got %+v, cools %v", status, e, whole)
			}
			if fault == nil && ((e != nil) != (status == 401) || (whole != 0) != (status == 401)) {
				t.Errorf("%d: got %+v, cools %v", status, e, whole)
			}
		}
	}
}

func TestServerWithoutEitherAPIAnswersAsTheFirst(t *testing.T) {
	first := fake.Answer{Status: 404, Body: `{"error":{"message":"first"}}`}
	for _, tt := range []struct {
		then   fake.Answer
		status int
		says   string
	}{
		{fake.Answer{Status: 200}, 0, ""},
		{fake.Answer{Status: 405, Body: `{"error":{"message":"second"}}`}, 404, "first"},
		{fake.Answer{Status: 400, Body: `{"error":{"message":"second"}}`}, 400, "second"},
	} {
		w := newWorld(t).add(accounts("a")...)
		w.script["*"] = []fake.Answer{first, tt.then}
		c := w.call()
		build := c.Build
		c.Build = func(to *routing.Target, conn *store.Connection, before *Attempt) (*Attempt, error) {
			a, err := build(to, conn, before)
			a.OtherAPI = before == nil
			return a, err
		}
		res, e := w.sendCall(c)
		if w.saw() != "aa" || tt.status == 0 && res == nil || tt.status != 0 && (e == nil || e.Status != tt.status || !strings.Contains(e.Message, tt.says)) {
			t.Errorf("%d: saw %s, got %+v", tt.then.Status, w.saw(), e)
		}
	}
}
