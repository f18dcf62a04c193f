package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/store"
)

// The health of a connection is what its calls showed last: a cooldown that
// ended makes no account ready that has not answered since.
func TestHealthOfConnection(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`)
	health := func() string { return w.OK("GET", "/api/providers/"+id, "").Get("health").Str }
	request := func(status int, failed string) {
		w.Clock.Add(time.Second)
		attempts, code := 1, ""
		if status >= 400 {
			code = "x"
		}
		w.Want(200, "report", fmt.Sprintf(`{"requests":[{"id":"r","at":%d,"endpoint":"/v1/chat/completions","status":%d,"error":%q,"latencyMs":5,"attempts":%d,"connectionId":%q,"failed":[%s]}]}`,
			w.Clock.Now().UnixMilli()-5, status, code, attempts, id, failed))
	}
	failed := func(status int, code string) string {
		return fmt.Sprintf(`{"connectionId":%q,"provider":"openai","status":%d,"code":%q,"ms":5}`, id, status, code)
	}
	cool := func(reason string, seconds int) {
		now := w.Clock.Now().UnixMilli()
		w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"until":%d,"since":%d,"reason":%q}]}`, id, now+int64(seconds)*1000, now, reason))
	}
	is := func(what, want string) {
		t.Helper()
		if got := health(); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	is("new", "untested")
	request(400, failed(400, "invalid_request"))
	is("a request that the provider refused", "untested")
	request(200, "")
	is("answered", "ready")
	request(401, failed(401, "invalid_api_key"))
	cool("unauthorized", 120)
	is("refused", "key_refused")
	w.Clock.Add(3 * time.Minute)
	is("refused, after the cooldown", "key_refused")
	request(429, failed(429, "rate_limit_exceeded"))
	is("limited after a refusal", "key_refused")
	request(200, "")
	is("answered again", "ready")
	cool("rate_limited", 30)
	is("limited", "limited")
	w.Clock.Add(time.Minute)
	is("limit over", "ready")
	request(402, failed(402, ""))
	is("no credit", "out_of_credit")
	request(200, "")
	request(429, failed(429, "insufficient_quota"))
	is("no credit, by its code", "out_of_credit")
	request(200, "")
	request(502, failed(502, "upstream_unreachable"))
	is("no answer", "unreachable")
	request(200, "")
	request(503, failed(503, ""))
	is("server error", "failing")
	request(200, "")
	request(403, failed(403, "upstream_blocked_here"))
	is("refused for the place", "blocked")
	w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":"key_refused","status":401}`, id))
	is("refused in a test", "key_refused")
	cool("key_refused", 600)
	w.Clock.Add(time.Second)
	w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":"out_of_credit"}`, id))
	is("another refusal in a test", "out_of_credit")
	w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":""}`, id))
	is("answered in a test", "ready")
	if out := w.OK("GET", "/api/providers/"+id, "").Get("cooldownUntil"); out.Exists() {
		t.Errorf("still out until %s after a test that succeeded", out.Raw)
	}
	w.Clock.Add(15 * time.Minute)
	w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"until":%d,"since":%d,"reason":"key_refused"}]}`, id, w.Clock.Now().UnixMilli()+1000, w.Clock.Now().UnixMilli()))
	w.Clock.Add(time.Minute)
	is("refused, by the cooldown alone", "key_refused")
	w.Want(200, "report", fmt.Sprintf(`{"usage":[{"connectionId":%q,"requests":3,"errors":1}]}`, id))
	is("answered, by the usage alone", "ready")
	w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":"key_refused"}`, id))
	w.OK("PUT", "/api/providers/"+id, `{"name":"other"}`)
	is("renamed", "key_refused")
	w.OK("PUT", "/api/providers/"+id, `{"apiKey":"sk-other-0123456789abcdef"}`)
	is("new key", "untested")
	if status, _ := w.Call("tested", `{"connectionId":"nobody"}`); status != 404 {
		t.Errorf("unknown connection: %d", status)
	}
}

// A regression: an account that cooled as a whole, since too many models were limited,
// stayed out after a test that succeeded.
func TestSuccessfulTestEndsTheCooldownOfTheAccount(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`)
	now := w.Clock.Now().UnixMilli()
	var rows []string
	for i := range store.MaxCooledModels + 1 {
		rows = append(rows, fmt.Sprintf(`{"connectionId":%q,"model":"invented-%d","until":%d,"since":%d,"reason":"rate_limited"}`, id, i, now+1800_000, now))
	}
	w.Want(200, "report", `{"cooldowns":[`+strings.Join(rows, ",")+`]}`)
	if got := w.Replica().Cooldowns; len(got) != 1 || got[0].Model != "" {
		t.Fatalf("cooldowns %+v, want one of the account", got)
	}
	w.Clock.Add(time.Second)
	w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":""}`, id))
	if got := w.Replica().Cooldowns; len(got) != 0 {
		t.Errorf("after a test that succeeded: %+v", got)
	}
}

func TestConnectionWithoutCredentialNeedsOne(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for body, want := range map[string]string{
		`{"provider":"anthropic"}`:                                             "needs_credential",
		`{"provider":"anthropic","apiKey":"k"}`:                                "active",
		`{"provider":"bedrock","providerSpecificData":{"region":"us-east-1"}}`: "needs_credential",
		`{"provider":"openai-compatible-0123abcd","providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`: "active",
	} {
		if got := w.OK("POST", "/api/providers", body).Get("status").Str; got != want {
			t.Errorf("%s: status %s, want %s", body, got, want)
		}
	}
}
