package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

const plainAnswer = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`

// refusing is a chat server that refuses the named fields with OpenAI's error.
func refusing(w *world, names ...string) func(*fake.Seen) fake.Answer {
	return func(*fake.Seen) fake.Answer {
		body := w.Seen[len(w.Seen)-1].Body
		for _, name := range names {
			if name == "developer" && strings.Contains(body, `"role":"developer"`) {
				return jsonOf(400, `{"error":{"message":"messages[0].role: unknown variant `+"`developer`"+`, expected one of ...","type":"invalid_request_error"}}`)
			}
			if gjson.Get(body, name).Exists() {
				return jsonOf(400, `{"error":{"message":"Unsupported parameter","type":"invalid_request_error","param":"`+name+`","code":"unsupported_parameter"}}`)
			}
		}
		return jsonOf(200, plainAnswer)
	}
}

// A name is learned once, and not together with its opposite; one that is remembered yields
// to its opposite.
func TestLearningARefusal(t *testing.T) {
	long := "chat:" + strings.Repeat("a", maxRefusedName)
	for _, tt := range []struct {
		name                   string
		avoid, learned, lifted []string
		refused                string
		want                   bool
		nowLearned, nowLifted  []string
	}{
		{"a field", nil, nil, nil, "chat:seed", true, []string{"chat:seed"}, nil},
		{"a second one", nil, []string{"chat:seed"}, nil, "beta:*", true, []string{"chat:seed", "beta:*"}, nil},
		{"a field that is avoided", []string{"chat:seed"}, nil, nil, "chat:seed", false, nil, nil},
		{"a field that is learned", nil, []string{"chat:seed"}, nil, "chat:seed", false, []string{"chat:seed"}, nil},
		{"a name that is not stored", nil, nil, nil, long, false, nil, nil},
		{"both forms", []string{"max_tokens"}, []string{"max_tokens"}, nil, "max_completion_tokens", false, []string{"max_tokens"}, nil},
		{"the other form is remembered", []string{"max_tokens"}, nil, nil, "max_completion_tokens", true, nil, []string{"max_tokens"}},
		{"a form that was lifted", nil, nil, []string{"max_tokens"}, "max_tokens", false, nil, []string{"max_tokens"}},
		{"a form without an opposite", []string{"developer"}, nil, nil, "reasoning_effort", true, []string{"reasoning_effort"}, nil},
	} {
		r := refusals{avoid: tt.avoid, learned: tt.learned, lifted: tt.lifted}
		if got := r.learn(tt.refused); got != tt.want || !slices.Equal(r.learned, tt.nowLearned) || !slices.Equal(r.lifted, tt.nowLifted) {
			t.Errorf("%s: %v, learned %q, lifted %q", tt.name, got, r.learned, r.lifted)
		}
	}
}

// If a compatible server refuses a field by name, it is called once more
// without, and from then on it gets the older form at once.
func TestRefusedFieldIsSentInOlderForm(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = refusing(w, "max_completion_tokens", "developer")
	const body = `{"model":"up/m","max_completion_tokens":9,"messages":[{"role":"developer","content":"x"},{"role":"user","content":"a"}]}`
	if _, err := w.ask(llm.Chat, body); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		strings.Replace(body, "up/m", "m", 1),
		`{"model":"m","messages":[{"role":"developer","content":"x"},{"role":"user","content":"a"}],"max_tokens":9}`,
		`{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":"a"}],"max_tokens":9}`,
	}; !slices.Equal(w.bodies(), want) {
		t.Errorf("sent\n%s", strings.Join(w.bodies(), "\n"))
	}
	if got := w.call.Trace.Dropped; !slices.Equal(got, []string{"max_completion_tokens", "developer"}) {
		t.Errorf("dropped %v", got)
	}
	w.Seen = nil
	if _, err := w.ask(llm.Chat, body); err != nil || len(w.Seen) != 1 {
		t.Errorf("%d calls the second time, %v", len(w.Seen), err)
	}
	w.Seen = nil
	w.Add(25 * time.Hour)
	if _, err := w.ask(llm.Chat, body); err != nil || len(w.Seen) != 3 {
		t.Errorf("%d calls a day later, %v", len(w.Seen), err)
	}
}

// The report has what was refused, and another isolate with the replica uses
// the older form at once.
func TestRefusalReachesOtherIsolates(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = refusing(w, "max_completion_tokens")
	var report string
	w.pool.Object = &objects.Script{Answer: func(_ string, body []byte) (int, []byte, error) {
		report = string(body)
		return 200, []byte(`{"generation":2}`), nil
	}}
	const body = `{"model":"up/m","max_completion_tokens":9,"messages":[{"role":"user","content":"a"}]}`
	if _, err := w.ask(llm.Chat, body); err != nil {
		t.Fatal(err)
	}
	w.pool.Flush(context.Background(), w.machine)
	got := gjson.Get(report, "refusals")
	if got.Get("#").Int() != 1 || got.Get("0.connectionId").Str != "c-up" || got.Get("0.field").Str != "max_completion_tokens" || got.Get("0.until").Int() != w.Now().Add(24*time.Hour).UnixMilli() {
		t.Fatalf("report %s", report)
	}
	other := *w.machine.Machine
	other.Refusals = []store.Refusal{{ConnectionID: "c-up", Field: "max_completion_tokens", Until: got.Get("0.until").Int()}}
	w.machine, w.Seen = snapshot.New(&other), nil
	if _, err := w.ask(llm.Chat, body); err != nil || len(w.Seen) != 1 || !strings.Contains(w.Seen[0].Body, `"max_tokens":9`) {
		t.Errorf("%v, sent %v", err, w.bodies())
	}
	// A model of the same server that accepts only the newer name gets it.
	w.Answer, w.Seen = refusing(w, "max_tokens"), nil
	if _, err := w.ask(llm.Chat, body); err != nil || len(w.Seen) != 2 || !strings.Contains(w.Seen[1].Body, `"max_completion_tokens":9`) {
		t.Errorf("%v, sent %v", err, w.bodies())
	}
}

// If a server refuses both forms, the client gets the error for its own form.
func TestRefusalOfBothFormsReturnsTheError(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = refusing(w, "max_completion_tokens", "max_tokens")
	_, err := w.ask(llm.Chat, `{"model":"up/m","max_completion_tokens":9,"messages":[{"role":"user","content":"a"}]}`)
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 400 || e.Param != "max_completion_tokens" || len(w.Seen) != 2 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
}

// A Messages client's request has the name that the server accepts.
func TestTranslatedRequestIsRetriedWithNewerName(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = refusing(w, "max_tokens")
	if _, err := w.ask(llm.Messages, `{"model":"up/gpt","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`); err != nil {
		t.Fatal(err)
	}
	if len(w.Seen) != 2 || !strings.Contains(w.Seen[1].Body, `"max_completion_tokens":9`) {
		t.Errorf("sent %v", w.bodies())
	}
}

// An error that no other account can avoid is the upstream's own: its body in
// the same dialect, its type, code, parameter and message in another.
func TestUpstreamErrorsPassUnchanged(t *testing.T) {
	const thread = `{"type":"error","error":{"type":"invalid_request_error","message":"thread is not supported","details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}},"request_id":"req_up"}`
	const azure = `{"error": {"code":"content_filter","message":"filtered","type":null,"param":"prompt","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`
	tests := []struct {
		name         string
		client       llm.Dialect
		model        string
		status       int
		body         string
		passes       string // "" is written by weir
		typ, code, p string
		message      string
	}{
		{"messages to messages", llm.Messages, "an/m", 400, thread, thread, "invalid_request_error", "", "", "thread is not supported"},
		{"chat to chat", llm.Chat, "up/m", 422, azure, azure, "invalid_request_error", "content_filter", "prompt", "filtered"},
		{"with a key in it", llm.Chat, "up/m", 400, `{"error":{"message":"bad key key-up-0123456789","more":[1, 2]}}`, `{"error":{"message":"bad key ***","more":[1, 2]}}`, "invalid_request_error", "", "", "bad key ***"},
		{"any JSON of the same dialect", llm.Chat, "up/m", 404, `{"detail":"Not Found"}`, `{"detail":"Not Found"}`, "invalid_request_error", "", "", "Not Found"},
		{"HTML", llm.Chat, "up/m", 404, `<html>nginx</html>`, "", "invalid_request_error", "upstream_refused", "", `The provider of account "c-up" (OpenAI-compatible) answered with status 404 and no reason. Check the base URL of the account, and the name of the model.`},
		{"messages to chat", llm.Chat, "an/m", 413, `{"type":"error","error":{"type":"request_too_large","message":"too large"}}`, "", "request_too_large", "", "", "too large"},
		{"chat to messages", llm.Messages, "up/m", 400, `{"error":{"message":"long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, "", "invalid_request_error", "context_length_exceeded", "messages", "prompt is too long: long"},
		{"of the machine's own account", llm.Chat, "up/m", 401, `{"error":{"message":"Incorrect API key","type":"x","code":"invalid_api_key"}}`, "", "authentication_error", "account_key_refused", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, usual...)
			w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(tt.status, tt.body) }
			_, err := w.ask(tt.client, `{"model":"`+tt.model+`","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`, httpmsg.Field{})
			var e *apierr.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			if e.Status != tt.status || string(e.Body) != tt.passes || e.Type != tt.typ || e.Code != tt.code || e.Param != tt.p || tt.message != "" && e.Message != tt.message {
				t.Errorf("%d %q, type %q, code %q, param %q, message %q", e.Status, e.Body, e.Type, e.Code, e.Param, e.Message)
			}
		})
	}
}

// ?beta=true and the fields of Claude Code and Codex go to an upstream of the
// client's own dialect, and to no other.
func TestToolHeadersGoOnlyToTheirDialect(t *testing.T) {
	fields := []httpmsg.Field{
		{Name: "anthropic-version", Value: "2026-10-21"}, {Name: "anthropic-beta", Value: "a,b"}, {Name: "anthropic-workspace-id", Value: "w"},
		{Name: "x-claude-code-session-id", Value: "s"}, {Name: "x-app", Value: "cli"}, {Name: "session_id", Value: "codex"}, {Name: "x-codex-turn-state", Value: "t"},
		{Name: "x-other", Value: "o"},
	}
	tests := []struct {
		client   llm.Dialect
		model    string
		url      string
		has, not string
	}{
		{llm.Messages, "an/m", "https://an.example/v1/messages?beta=true", "anthropic-version anthropic-beta anthropic-workspace-id x-claude-code-session-id x-app", "session_id x-codex-turn-state x-other"},
		{llm.Messages, "up/m", "https://up.example/v1/chat/completions", "", "anthropic-version anthropic-beta anthropic-workspace-id x-claude-code-session-id x-app session_id x-other"},
		{llm.Chat, "an/m", "https://an.example/v1/messages", "anthropic-version", "anthropic-beta anthropic-workspace-id x-claude-code-session-id session_id x-other"},
		{llm.Responses, "oa/m", "https://api.openai.com/v1/responses", "session_id x-codex-turn-state", "anthropic-beta anthropic-workspace-id x-app x-other"},
		{llm.Chat, "up/m", "https://up.example/v1/chat/completions", "", "anthropic-beta x-app session_id x-other"},
	}
	for _, tt := range tests {
		w := newWorld(t, usual...)
		w.Answer = w.good()
		a, err := ReadRequest(tt.client, []byte(request(tt.client, tt.model, false)))
		if err != nil {
			t.Fatal(err)
		}
		w.query = "beta=true"
		if _, err := w.send(a, fields...); err != nil {
			t.Fatal(err)
		}
		r := w.Seen[len(w.Seen)-1]
		if r.URL != tt.url {
			t.Errorf("%v to %s: %s, want %s", tt.client, tt.model, r.URL, tt.url)
		}
		for _, name := range strings.Fields(tt.has) {
			if r.Header.Get(name) == "" {
				t.Errorf("%v to %s: %s is missing", tt.client, tt.model, name)
			}
		}
		for _, name := range strings.Fields(tt.not) {
			if r.Header.Get(name) != "" {
				t.Errorf("%v to %s: %s was sent", tt.client, tt.model, name)
			}
		}
	}
}

// Only Anthropic's own API reads the attribution of Claude Code, under whatever
// connection it is called.
func TestAttributionFollowsTheAddress(t *testing.T) {
	for base, gets := range map[string]bool{
		"https://api.anthropic.com/v1": true, "https://api.anthropic.com": true, "https://api.anthropic.com.example.org/v1": false, "https://an.example/v1": false,
	} {
		a := &attempt{}
		a.Target, a.Connection = &routing.Target{Provider: provider.Lookup("anthropic-compatible-0123abcd")}, &store.Connection{Data: store.ProviderData{BaseURL: base}}
		if a.atAnthropic() != gets {
			t.Errorf("%s: got %v", base, !gets)
		}
	}
	const body = `{"model":"%s","max_tokens":9,"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":"Hello"}]}`
	for model, gets := range map[string]bool{"cl/m": true, "an/m": false, "up/m": false} {
		w := newWorld(t, usual...)
		w.Answer = w.good()
		if _, err := w.ask(llm.Messages, strings.ReplaceAll(body, "%s", model)); err != nil {
			t.Fatal(err)
		}
		sent := w.bodies()[0]
		if strings.Contains(sent, "cch=1") != gets || !strings.Contains(sent, "Be brief.") || slices.Contains(w.call.Trace.Dropped, "system.x-anthropic-billing-header") == gets {
			t.Errorf("%s: sent %s, dropped %v", model, sent, w.call.Trace.Dropped)
		}
	}
}
