package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
)

// small is a server whose model has a context of 8,192 tokens, which it states in its list
// if it is asked.
func small(s *fake.Seen) fake.Answer {
	if strings.HasSuffix(s.URL, "/models") {
		return fake.JSON(`{"data":[{"id":"m","max_model_len":8192}]}`)
	}
	for _, field := range []string{"max_tokens", "max_output_tokens"} {
		if n := gjson.Get(s.Body, field).Int(); n > 8184 {
			return fake.Answer{Status: 400, Pieces: []string{fmt.Sprintf(`{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested %d tokens (8 in the messages, %d in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}}`, n+8, n)}}
		}
	}
	if strings.HasSuffix(s.URL, "/messages") {
		return fake.JSON(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":8,"output_tokens":1}}`)
	}
	return fake.JSON(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":1}}`)
}

// A regression: the limit that a budget added was above the context of a server's model, which
// refused every call without one.
func TestBudgetAddsNoLimitThatTheModelRefuses(t *testing.T) {
	const chat, anthropic = `"openai-compatible-0123abcd"`, `"anthropic-compatible-0123abcd"`
	for _, tt := range []struct {
		name, provider, prices, budget, custom string
		listed                                 string // how the list of the server is read: by "models", or by a "test"
		status                                 int
	}{
		{"nothing is known", chat, "", `"unit":"tokens","limit":500000`, "", "", 400},
		{"the server lists its context", chat, "", `"unit":"tokens","limit":500000`, "", "models", 200},
		{"a test reads the list", chat, "", `"unit":"tokens","limit":500000`, "", `{}`, 200},
		{"a test of one model reads the list", chat, "", `"unit":"tokens","limit":500000`, "", `{"model":"m"}`, 200},
		{"a custom model has its context", chat, "", `"unit":"tokens","limit":500000`, `"contextLength":8192`, "", 200},
		{"a custom model has its longest answer", chat, "", `"unit":"tokens","limit":500000`, `"maxTokens":2048`, "", 200},
		{"dollars", chat, `"up/m":"1/10"`, `"unit":"usd","limit":5`, "", "", 400},
		{"another vendor's model of a Messages server gets what it gets without a budget", anthropic, "", `"unit":"tokens","limit":500000`, "", "", 200},
	} {
		w := newWorld(t)
		w.Answer = small
		id, key := w.tenant(0)
		var account struct{ ID string }
		w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":`+tt.provider+`,"name":"a","apiKey":"k","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`), &account)
		w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"modelPrices":{`+tt.prices+`}}`), nil)
		w.get(201, w.do("POST", "/"+id+"/api/budgets", adminToken, `{"name":"b","window":"day",`+tt.budget+`}`), nil)
		if tt.custom != "" {
			w.get(201, w.do("POST", "/"+id+"/api/models/custom", adminToken, `{"providerAlias":"up","id":"m",`+tt.custom+`}`), nil)
		}
		switch tt.listed {
		case "":
		case "models":
			w.get(200, w.do("GET", "/v1/models", key, ""), nil)
		default:
			w.get(200, w.do("POST", "/"+id+"/api/providers/"+account.ID+"/test", adminToken, tt.listed), nil)
		}
		w.Seen = nil
		const body = `{"model":"up/m","messages":[{"role":"user","content":"a"}]}`
		plan := w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"/v1/chat/completions","body":`+body+`}`)
		if set := gjson.Get(plan.body, "plan.0.dropped.0").Str; strings.HasPrefix(set, "max_tokens=") != (tt.status == 400) {
			t.Errorf("%s: the plan sets %q", tt.name, set)
		}
		sent := w.do("POST", "/v1/chat/completions", key, body)
		if sent.status != tt.status || len(w.Seen) != 1 {
			t.Errorf("%s: %d after %d attempts: %s", tt.name, sent.status, len(w.Seen), sent.body)
		}
	}
}

// Fields that weir has set are named apart from those that it has left out.
func TestFieldsThatWeirSetsAreNoDroppedFields(t *testing.T) {
	w := newWorld(t)
	w.Answer = small
	id, key := w.tenant(0)
	w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"anthropic-compatible-0123abcd","name":"a","apiKey":"k","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`), nil)
	w.get(201, w.do("POST", "/"+id+"/api/budgets", adminToken, `{"name":"b","window":"day","unit":"tokens","limit":50000}`), nil)
	sent := w.do("POST", "/v1/chat/completions", key, `{"model":"up/claude-opus-5","seed":7,"messages":[{"role":"user","content":"a"}]}`)
	set, dropped := sent.header.Get("x-weir-set"), sent.header.Get("x-weir-dropped")
	if want := fmt.Sprintf("max_completion_tokens=%d", gjson.Get(w.Seen[0].Body, "max_tokens").Int()); sent.status != 200 || set != want || dropped != "seed" {
		t.Errorf("%d, set %q, want %q, dropped %q", sent.status, set, want, dropped)
	}
	w.Add(2 * time.Second)
	w.do("GET", "/v1/models", key, "") // reports
	rows := w.rowsOf("/" + id + "/api/requests.csv")
	if got := column(rows, "fields_set"); got[0] != set || column(rows, "fields_not_sent")[0] != "seed" {
		t.Errorf("the file has %q", rows)
	}
}
