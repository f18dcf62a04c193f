package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name  string
		d     llm.Dialect
		body  string
		param string // of the 400
		want  Request
	}{
		{"chat", llm.Chat, `{"model":"a/b","messages":[]}`, "", Request{Model: "a/b"}},
		{"stream", llm.Chat, `{"model":"a/b","messages":[],"stream":true}`, "", Request{Model: "a/b", Stream: true}},
		{"stream_with_usage", llm.Chat, `{"model":"a/b","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, "", Request{Model: "a/b", Stream: true, WantsUsage: true}},
		{"null_stream", llm.Messages, `{"model":"a/b","messages":[],"stream":null}`, "", Request{Model: "a/b", WantsUsage: true}},
		{"escaped_model", llm.Chat, `{"mod\u0065l":"a\/b","messages":[]}`, "", Request{Model: "a/b"}},
		{"responses", llm.Responses, `{"model":"m","input":"x"}`, "", Request{Model: "m", WantsUsage: true}},
		{"unstored", llm.Responses, `{"model":"m","input":"x","store":false}`, "", Request{Model: "m", WantsUsage: true, Unstored: true}},
		{"background_is_stored", llm.Responses, `{"model":"m","input":"x","store":false,"background":true}`, "", Request{Model: "m", WantsUsage: true, Stateful: true}},
		{"previous", llm.Responses, `{"model":"m","input":"x","previous_response_id":"resp_1"}`, "", Request{Model: "m", WantsUsage: true, Stateful: true, Previous: "resp_1"}},
		{"conversation", llm.Responses, `{"model":"m","conversation":"c"}`, "", Request{Model: "m", WantsUsage: true, Stateful: true}},
		{"null_previous", llm.Responses, `{"model":"m","previous_response_id":null}`, "", Request{Model: "m", WantsUsage: true}},

		{"no_json", llm.Chat, `{"model":`, "-", Request{}},
		{"trailing", llm.Chat, `{"model":"a","messages":[]}x`, "-", Request{}},
		{"bom", llm.Chat, "\uFEFF" + `{"model":"a","messages":[]}`, "-", Request{}},
		{"not_an_object", llm.Messages, `[]`, "-", Request{}},
		{"no_model", llm.Chat, `{"messages":[]}`, "model", Request{}},
		{"empty_model", llm.Chat, `{"model":"","messages":[]}`, "model", Request{}},
		{"model_of_another_type", llm.Responses, `{"model":1}`, "model", Request{}},
		{"two_models_T35", llm.Chat, `{"model":"a","messages":[],"model":"b"}`, "model", Request{}},
		{"two_streams_T35", llm.Chat, `{"model":"a","stream":true,"messages":[],"stream":false}`, "stream", Request{}},
		{"stream_of_another_type", llm.Chat, `{"model":"a","stream":"true","messages":[]}`, "stream", Request{}},
		{"no_messages", llm.Messages, `{"model":"a"}`, "messages", Request{}},
		{"messages_of_another_type", llm.Chat, `{"model":"a","messages":"x"}`, "messages", Request{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadRequest(tt.d, []byte(tt.body))
			if tt.param != "" {
				var e *apierr.Error
				if !errors.As(err, &e) || e.Status != 400 || tt.param != "-" && e.Param != tt.param {
					t.Fatalf("got %v, want a 400 about %s", err, tt.param)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Dialect, tt.want.Body = tt.d, got.Body
			if !equal(*got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", *got, tt.want)
			}
		})
	}
}

func equal(a, b Request) bool {
	return string(a.Body) == string(b.Body) && a.Dialect == b.Dialect && a.Model == b.Model && a.Stream == b.Stream && a.WantsUsage == b.WantsUsage &&
		a.Previous == b.Previous && a.Stateful == b.Stateful && a.Unstored == b.Unstored && a.Connection == b.Connection
}

// TestEveryChatProviderHasAnAPI tests every row of the provider table with
// every client.
func TestEveryChatProviderHasAnAPI(t *testing.T) {
	rows := append(provider.All()[:len(provider.All()):len(provider.All())], provider.Lookup("openai-compatible-0123abcd"), provider.Lookup("anthropic-compatible-0123abcd"))
	for _, d := range rows {
		chat := d.Serves("chat") || d.Serves("messages")
		for _, from := range clients {
			w, ok := chooseAPI(&routing.Target{Provider: d, Model: "m"}, nil, from, false)
			if ok != chat {
				t.Errorf("%s for %s: %v", d.ID, from, ok)
				continue
			}
			if !ok {
				continue
			}
			conn := &store.Connection{Data: store.ProviderData{BaseURL: "https://own.example/v1", Vars: map[string]string{
				"region": "r", "location": "l", "project": "p", "resource": "r", "account_id": "a",
			}}}
			for _, name := range []string{w.endpoint, w.stream} {
				if _, url, err := w.address(d, conn, name); err != nil || !strings.Contains(url, "://") {
					t.Errorf("%s for %s: %s %v", d.ID, from, url, err)
				}
			}
			if own, ok := chooseAPI(&routing.Target{Provider: d, Model: "m"}, conn, from, false); !ok || d.Rebase && own.base != nil {
				t.Errorf("%s for %s: the key of another address would go to %v", d.ID, from, own.base)
			}
		}
	}
}

func TestHostedClaude(t *testing.T) {
	vertex, bedrock := provider.Lookup("vertex"), provider.Lookup("bedrock")
	tests := []struct {
		d      *provider.Descriptor
		model  string
		from   llm.Dialect
		want   llm.Dialect
		name   string
		frames bool
		hosted bool
		sent   string
	}{
		{vertex, "claude-sonnet-4-5", llm.Messages, llm.Messages, "messagesStream", false, true, "claude-sonnet-4-5"},
		{vertex, "claude-sonnet-4-5", llm.Chat, llm.Messages, "messagesStream", false, true, "claude-sonnet-4-5"},
		{vertex, "gemini-2.5-pro", llm.Messages, llm.Gemini, "chatStream", false, false, "gemini-2.5-pro"},
		{vertex, "gemini-2.5-pro", llm.Chat, llm.Chat, "chat", false, false, "google/gemini-2.5-pro"},
		{bedrock, "us.anthropic.claude-sonnet-4-5-v1:0", llm.Messages, llm.Messages, "messagesStream", true, true, "us.anthropic.claude-sonnet-4-5-v1:0"},
		{bedrock, "us.anthropic.claude-sonnet-4-5-v1:0", llm.Chat, llm.Converse, "chatStream", true, false, "us.anthropic.claude-sonnet-4-5-v1:0"},
		{bedrock, "amazon.nova-pro-v1:0", llm.Messages, llm.Converse, "chatStream", true, false, "amazon.nova-pro-v1:0"},
	}
	for _, tt := range tests {
		w, ok := chooseAPI(&routing.Target{Provider: tt.d, Model: tt.model}, nil, tt.from, false)
		if !ok || w.dialect != tt.want || w.stream != tt.name || w.frames != tt.frames || w.hosted != tt.hosted || w.model != tt.sent {
			t.Errorf("%s for %s: %v %+v", tt.model, tt.from, ok, w)
		}
	}
}

// good returns a valid answer to every call.
func (w *world) good() func(r *fake.Seen) fake.Answer {
	return func(r *fake.Seen) fake.Answer {
		d := upstreamDialect(w, r)
		return recorded(w, d, strings.Contains(r.Header.Get("accept"), "stream"))
	}
}

func TestVersionAndBetaAreSentToMessagesOnly(t *testing.T) {
	header := []httpmsg.Field{{Name: "anthropic-version", Value: "2026-10-21"}, {Name: "anthropic-beta", Value: "a,b"}, {Name: "authorization", Value: "Bearer sk-client"}, {Name: "x-api-key", Value: "sk-client"}}
	for _, tt := range []struct {
		d             llm.Dialect
		model         string
		version, beta string
	}{
		{llm.Messages, "cl/m", "2026-10-21", "a,b"},
		{llm.Messages, "an/m", "2026-10-21", "a,b"},
		{llm.Chat, "cl/m", "2023-06-01", ""},
		{llm.Messages, "up/m", "", ""},
	} {
		w := newWorld(t, usual...)
		w.Answer = w.good()
		if _, err := w.ask(tt.d, request(tt.d, tt.model, false), header...); err != nil {
			t.Fatal(err)
		}
		h := w.Seen[0].Header
		n := 0
		for _, f := range h {
			if f.Name == "anthropic-version" {
				n++
			}
			if strings.Contains(f.Value, "sk-client") {
				t.Errorf("%s: the client's key goes up in %s", tt.model, f.Name)
			}
		}
		if h.Get("anthropic-version") != tt.version || h.Get("anthropic-beta") != tt.beta || n > 1 {
			t.Errorf("%s for %s: %+v", tt.model, tt.d, h)
		}
	}
}

func combo(w *world, name string, models ...string) {
	rec := *w.machine.Machine
	rec.Combos = append(rec.Combos, store.Combo{ID: name, Name: name, Models: models})
	w.machine = snapshot.New(&rec)
}

func TestComboMembersGetTheirOwnDialect(t *testing.T) {
	for _, d := range clients {
		for _, streams := range []bool{false, true} {
			w := newWorld(t, usual...)
			combo(w, "team", "up/a", "cl/b", "ge/c", "co/d")
			good := w.good()
			w.Answer = func(r *fake.Seen) fake.Answer {
				if len(w.Seen) < 4 {
					return jsonOf([]int{429, 503, 529}[len(w.Seen)-1], `{}`)
				}
				return good(r)
			}
			reply, err := w.ask(d, request(d, "team", streams))
			if err != nil {
				t.Fatalf("%s: %v", d, err)
			}
			w.text(reply)
			var models []string
			for _, r := range w.rows() {
				models = append(models, r.Model)
			}
			if got := strings.Join(models, " "); got != "up/a cl/b ge/c co/d" || w.rows()[2].Errors != 1 || w.rows()[3].Errors != 0 || w.call.Trace.Model != "co/d" {
				t.Errorf("%s: rows %+v, answered by %s", d, w.rows(), w.call.Trace.Model)
			}
		}
	}
}

func TestComboMemberThatRefusesRequestIsSkipped(t *testing.T) {
	body := `{"model":"team","n":2,"messages":[{"role":"user","content":"x"}]}`
	w := newWorld(t, usual...)
	combo(w, "team", "cl/b", "up/a")
	w.Answer = w.good()
	if _, err := w.ask(llm.Chat, body); err != nil || len(w.Seen) != 1 || !strings.Contains(w.Seen[0].URL, "up.example") {
		t.Errorf("%v, %d calls", err, len(w.Seen))
	}
	combo(w, "none", "cl/b", "cl/c")
	_, err := w.ask(llm.Chat, strings.Replace(body, "team", "none", 1))
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 400 || e.Param != "n" || len(w.Seen) != 1 {
		t.Errorf("%v, %d calls", err, len(w.Seen))
	}
}

func TestProviderWithoutChatReturns400(t *testing.T) {
	w := newWorld(t, usual...)
	for model, want := range map[string]int{"dg/nova-3": 400, "no/such": 400, "azure/gpt": 400} {
		if _, err := w.ask(llm.Chat, request(llm.Chat, model, true)); status(err) != want || len(w.Seen) != 0 {
			t.Errorf("%s: %v", model, err)
		}
	}
}

func TestKeyMayUseItsModelsOnly(t *testing.T) {
	w := newWorld(t, usual...)
	combo(w, "team", "up/a", "cl/b")
	w.Answer = w.good()
	w.key = &store.Key{Models: []string{"cl/b"}}
	if _, err := w.ask(llm.Chat, request(llm.Chat, "up/a", false)); status(err) != 403 {
		t.Errorf("%v", err)
	}
	if _, err := w.ask(llm.Chat, request(llm.Chat, "team", false)); err != nil || !strings.Contains(w.Seen[0].URL, "anthropic") {
		t.Errorf("%v", err)
	}
}

func TestServerWithoutResponsesGetsChat(t *testing.T) {
	w := newWorld(t, usual...)
	good := w.good()
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.HasSuffix(r.URL, "/responses") {
			return jsonOf(404, `{"detail":"Not Found"}`)
		}
		return good(r)
	}
	reply, err := w.ask(llm.Responses, request(llm.Responses, "up/m", true))
	if err != nil {
		t.Fatal(err)
	}
	if got := ends(t, llm.Responses, w.text(reply)); got != "well" || len(w.Seen) != 2 || reply.ResponseID != "" {
		t.Errorf("ended %s after %d calls", got, len(w.Seen))
	}
	if _, err = w.ask(llm.Responses, request(llm.Responses, "up/m", false)); err != nil || len(w.Seen) != 3 {
		t.Errorf("a second call went to Responses: %v, %d calls", err, len(w.Seen))
	}
	// Another machine may use the same id for a connection to another server,
	// which is not affected.
	if id := w.machine.Connections[0].ID; !w.dialog.ChatOnly.has(connectionKey{w.machine.ID, id}) || w.dialog.ChatOnly.has(connectionKey{"otherotherother0", id}) {
		t.Errorf("remembered %v", w.dialog.ChatOnly)
	}
	// Requests that need the server's state are not sent to its chat endpoint.
	w = newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer { return jsonOf(404, `{"error":{"message":"no"}}`) }
	if _, err := w.ask(llm.Responses, `{"model":"up/m","input":"x","conversation":"c"}`); status(err) != 404 || len(w.Seen) != 1 {
		t.Errorf("%v, %d calls", err, len(w.Seen))
	}
	// An unknown model is unknown to the chat as well.
	if _, err := w.ask(llm.Responses, `{"model":"up/m","input":"x"}`); status(err) != 404 || len(w.dialog.ChatOnly.set) != 0 {
		t.Errorf("%v, remembered %v", err, w.dialog.ChatOnly)
	}
}

// A resource of Azure OpenAI with an older version has no Responses API.
func TestAzureWithoutResponsesGetsChatOfItsDeployment(t *testing.T) {
	w := newWorld(t, provided{prefix: "az", provider: "azure", vars: map[string]string{"resource": "acme", "api_version": "2024-06-01"}})
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.Contains(r.URL, "/responses") {
			return jsonOf(404, `{"error":{"code":"404","message":"Resource not found"}}`)
		}
		return recorded(t, llm.Chat, false)
	}
	if _, err := w.ask(llm.Responses, request(llm.Responses, "az/gpt-prod", false)); err != nil {
		t.Fatal(err)
	}
	const base = "https://acme.openai.azure.com/openai"
	if len(w.Seen) != 2 || w.Seen[0].URL != base+"/responses?api-version=2024-06-01" || w.Seen[1].URL != base+"/deployments/gpt-prod/chat/completions?api-version=2024-06-01" {
		t.Errorf("sent %+v", w.Seen)
	}
}

func TestStatefulRequestNeedsResponsesUpstream(t *testing.T) {
	w := newWorld(t, usual...)
	_, err := w.ask(llm.Responses, `{"model":"cl/m","input":"x","previous_response_id":"resp_1"}`)
	if status(err) != 400 || len(w.Seen) != 0 {
		t.Errorf("%v, %d calls", err, len(w.Seen))
	}
}

func TestResponseIDOfStoredResponse(t *testing.T) {
	for _, streams := range []bool{false, true} {
		w := newWorld(t, usual...)
		w.Answer = w.good()
		for model, want := range map[string]bool{"oa/m": true, "cl/m": false} {
			reply, err := w.ask(llm.Responses, request(llm.Responses, model, streams))
			if err != nil || (reply.ResponseID != "") != want {
				t.Errorf("%s: %v, id %q", model, err, reply.ResponseID)
			}
		}
	}
}

func TestUnreportedUsageIsEstimated(t *testing.T) {
	w := newWorld(t, usual...)
	var b strings.Builder
	for range 50 {
		b.WriteString(`data: {"id":"1","choices":[{"index":0,"delta":{"content":"four"},"finish_reason":null}]}` + "\n\n")
	}
	b.WriteString(`data: {"id":"1","choices":[{"index":0,"delta":{"content":"a \"b\" \\"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	w.Answer = func(*fake.Seen) fake.Answer { return events(b.String()) }
	for _, long := range []bool{false, true} {
		w.rows()
		w.noted = nil
		text := "A question of ten words is asked of this model."
		if long {
			text = strings.Repeat(text+" ", 1000)
		}
		reply, err := w.ask(llm.Chat, `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"`+text+`"}]}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.text(reply); got != b.String() || strings.Contains(w.Seen[len(w.Seen)-1].Body, "include_usage") {
			t.Error("the bytes do not pass")
		}
		r := w.rows()[0]
		if r.OutputTokens < 50 || r.OutputTokens > 55 || !long && (r.InputTokens < 10 || r.InputTokens > 30) || long && (r.InputTokens < 9000 || r.InputTokens > 16000) {
			t.Errorf("usage %+v", r)
		}
	}
}

func TestServerWithoutStreaming(t *testing.T) {
	for _, f := range families {
		for _, d := range clients {
			w := newWorld(t, usual...)
			w.Answer = func(r *fake.Seen) fake.Answer { return recorded(t, upstreamDialect(t, r), false) }
			reply, err := w.ask(d, request(d, f.prefix+"/m", true))
			if err != nil {
				t.Fatal(err)
			}
			if got := ends(t, d, w.text(reply)); got != "well" || reply.Header.Get("content-type") != eventStream || w.rows()[0].OutputTokens == 0 {
				t.Errorf("%s from %s ended %s, usage %+v", f.prefix, d, got, w.rows())
			}
			// And one that only streams.
			w = newWorld(t, usual...)
			w.Answer = func(r *fake.Seen) fake.Answer { return recorded(t, upstreamDialect(t, r), true) }
			if reply, err = w.ask(d, request(d, f.prefix+"/m", false)); err != nil {
				t.Fatal(err)
			}
			if got := w.text(reply); !gjson.Valid(got) || !gjson.Get(got, d.Client().Answer).IsArray() || w.rows()[0].OutputTokens == 0 {
				t.Errorf("%s from %s: %s", f.prefix, d, got)
			}
		}
	}
}

func TestLimitsAreMachineSettings(t *testing.T) {
	w := newWorld(t, usual...)
	w.machine.Settings.FirstByteSeconds, w.machine.Settings.IdleSeconds = 7, 9
	w.Answer = w.good()
	for _, streams := range []bool{false, true} {
		reply, err := w.ask(llm.Chat, request(llm.Chat, "up/m", streams))
		if err != nil {
			t.Fatal(err)
		}
		if r := w.Seen[len(w.Seen)-1]; r.Request.HeaderTimeout.Seconds() != 7 {
			t.Errorf("first byte within %v", r.Request.HeaderTimeout)
		}
		w.text(reply)
	}
}

// A server without a Responses endpoint was called by chat with a separate
// count of attempts, so that one request made up to ten. See
// docs/fallback.md.
func TestBothAPIsShareFiveAttempts(t *testing.T) {
	for _, absent := range []int{1, 2, 4, 5, 6} { // the attempt that finds no such address
		var list []provided
		for i := range 9 {
			list = append(list, provided{prefix: "up#" + string(rune('0'+i)), provider: "openai-compatible-0123abcd", base: "https://up.example/v1", priority: i})
		}
		w := newWorld(t, list...)
		w.Answer = func(r *fake.Seen) fake.Answer {
			if len(w.Seen) == absent {
				return jsonOf(404, `{"detail":"Not Found"}`)
			}
			return jsonOf(503, `{"error":{"message":"busy"}}`)
		}
		_, err := w.ask(llm.Responses, request(llm.Responses, "up/m", false))
		want := 503
		if absent == 5 {
			want = 404
		}
		if status(err) != want || len(w.Seen) != 5 || w.attempts() != 5 {
			t.Errorf("no address at attempt %d: %v after %d calls, %d recorded", absent, err, len(w.Seen), w.attempts())
		}
	}
}

func TestMissingItemIsNotMissingEndpoint(t *testing.T) {
	w := newWorld(t, usual...)
	w.Answer = func(*fake.Seen) fake.Answer {
		return jsonOf(404, `{"error":{"message":"Item with id 'msg_1' not found.","type":"invalid_request_error","param":"input","code":null}}`)
	}
	_, err := w.ask(llm.Responses, `{"model":"oa/m","input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x"}]}`)
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 404 || e.Param != "input" || len(w.Seen) != 1 {
		t.Errorf("%v after %d calls", err, len(w.Seen))
	}
}

// Three accounts of one server without Responses: each was called at the
// missing endpoint, and the client got 404 after their chat had failed.
func TestAccountsOfServerWithoutResponsesGetChat(t *testing.T) {
	const id, base = "openai-compatible-0123abcd", "https://a.example/v1"
	w := newWorld(t, provided{prefix: "up", provider: id, base: base}, provided{prefix: "up#2", provider: id, base: base}, provided{prefix: "up#3", provider: id, base: base})
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.HasSuffix(r.URL, "/responses") {
			return jsonOf(404, `{"detail":"Not Found"}`)
		}
		return jsonOf(503, `{"error":{"message":"busy"}}`)
	}
	if _, err := w.ask(llm.Responses, request(llm.Responses, "up/m", true)); status(err) != 503 || len(w.Seen) != 4 {
		t.Errorf("%v after %d calls, want 503 after one for the address and three of chat", err, len(w.Seen))
	}
}

// With round-robin the second request goes to the account that has no Responses
// endpoint, and only that one is remembered.
func TestAccountWithoutResponsesIsRemembered(t *testing.T) {
	for _, code := range []int{404, 405, 501} {
		w := newWorld(t, provided{prefix: "up", provider: "openai-compatible-0123abcd", base: "https://a.example/v1"}, provided{prefix: "up#2", provider: "openai-compatible-0123abcd", base: "https://b.example/v1"})
		w.machine.Settings.Strategy = "round-robin"
		good := w.good()
		w.Answer = func(r *fake.Seen) fake.Answer {
			if r.URL == "https://a.example/v1/responses" {
				return jsonOf(code, `{"detail":"Not Found"}`)
			}
			return good(r)
		}
		var called []string
		for range 4 {
			w.Seen = nil
			if _, err := w.ask(llm.Responses, request(llm.Responses, "up/m", false)); err != nil {
				t.Fatalf("%d: %v", code, err)
			}
			urls := make([]string, len(w.Seen))
			for i, r := range w.Seen {
				urls[i] = strings.TrimPrefix(r.URL, "https://")
			}
			called = append(called, strings.Join(urls, " "))
		}
		want := "a.example/v1/responses a.example/v1/chat/completions, b.example/v1/responses, a.example/v1/chat/completions, b.example/v1/responses"
		if got := strings.Join(called, ", "); got != want {
			t.Errorf("%d: called %s\nwant %s", code, got, want)
		}
		a, b := w.machine.Connections[0].ID, w.machine.Connections[1].ID
		if !w.dialog.ChatOnly.has(connectionKey{mid, a}) || w.dialog.ChatOnly.has(connectionKey{mid, b}) {
			t.Errorf("%d: remembered %v", code, w.dialog.ChatOnly)
		}
		if n := w.call.Trace.Attempts(); n != 1 {
			t.Errorf("%d: the last call took %d attempts", code, n)
		}
	}
}

// The pass that reads a request notes the fields with fallback models.
func TestLimitedKeyMayNotNameFallbackModels(t *testing.T) {
	for field, want := range map[string]int{`"user":"x"`: 0, `"models":["b"]`: 403, `"Fallba\u0063ks":["b"]`: 403, `"fallbacks":["a"]`: 0} {
		w := newWorld(t, usual[:1]...)
		a, err := ReadRequest(llm.Chat, []byte(`{"model":"up/a","messages":[],`+field+`}`))
		if err != nil {
			t.Fatal(err)
		}
		c := &auth.Call{Request: &httpmsg.Request{}, Machine: w.machine, MachineID: mid, Key: &store.Key{Models: []string{"up/a"}}}
		if _, err = w.dialog.targets(c, a); status(err) != want {
			t.Errorf("%s: got %v, want status %d", field, err, want)
		}
	}
}

// The endpoint of each dialect reads its requests, and answers in it.
func TestHandlerOfEachDialect(t *testing.T) {
	for d, body := range map[llm.Dialect]string{
		llm.Chat:        `"messages":[{"role":"user","content":"a"}]`,
		llm.Messages:    `"max_tokens":9,"messages":[{"role":"user","content":"a"}]`,
		llm.Completions: `"prompt":"a"`,
	} {
		call := func(body string, max int64) (string, error) {
			w := newWorld(t, usual...)
			w.Answer = w.good()
			r := &httpmsg.Request{Body: stream.FromString(body)}
			resp, err := w.dialog.Handler(d)(context.Background(), &auth.Call{Request: r, Machine: w.machine, MachineID: mid, MaxBody: max})
			if err != nil {
				return "", err
			}
			raw, err := stream.ReadAll(resp.Body, 1<<20)
			return string(raw), err
		}
		got, err := call(`{"model":"up/m",`+body+`}`, 100)
		if err != nil || !gjson.Get(got, d.Client().Answer).IsArray() {
			t.Errorf("%s: %s, %v", d, got, err)
		}
		var e *apierr.Error
		if _, err := call(`{`+body+`}`, 100); !errors.As(err, &e) || e.Status != 400 || e.Param != "model" {
			t.Errorf("%s without a model: %v", d, err)
		}
		if _, err := call(`{"model":"up/m"}`, 100); d != llm.Completions && (!errors.As(err, &e) || e.Param != "messages") {
			t.Errorf("%s without messages: %v", d, err)
		}
		if _, err := call(`{"model":"up/m",`+body+`}`, 10); !errors.Is(err, stream.ErrTooLarge) {
			t.Errorf("%s over the limit: %v", d, err)
		}
	}
}
