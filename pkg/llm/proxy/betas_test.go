package proxy

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/wire/httpmsg"
)

func TestBetasOfHostedClaude(t *testing.T) {
	for _, tt := range []struct{ name, model, betas, header, body, dropped string }{
		{"vertex", "ve/claude-sonnet-4-5", "context-1m-2025-08-07, web-search-2025-03-05,,effort-2025-11-24", "context-1m-2025-08-07,web-search-2025-03-05", "", "anthropic-beta"},
		{"bedrock", "br/anthropic.claude-sonnet-4-5-v1:0", "context-1m-2025-08-07,effort-2025-11-24", "", `["context-1m-2025-08-07","effort-2025-11-24"]`, ""},
		{"another_name", "br/anthropic.claude-sonnet-4-5-v1:0", "advanced-tool-use-2025-11-20", "", `["tool-search-tool-2025-10-19"]`, ""},
		{"claude_3_does_not_interleave", "br/anthropic.claude-3-7-sonnet-v1:0", "interleaved-thinking-2025-05-14", "", "", "anthropic-beta"},
		{"unknown", "br/anthropic.claude-sonnet-4-5-v1:0", `x"y,files-api-2025-04-14`, "", "", "anthropic-beta"},
		{"converse_has_no_betas", "br/amazon.nova-lite-v1:0", "context-1m-2025-08-07", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, append(usual, provided{prefix: "ve", provider: "vertex", vars: map[string]string{"project": "p-1", "location": "us-east5"}})...)
			var body []byte
			w.Answer = func(r *fake.Seen) fake.Answer {
				body = []byte(r.Body)
				if strings.Contains(r.URL, "/converse") {
					return recorded(t, llm.Converse, false)
				}
				return recorded(t, llm.Messages, false)
			}
			if _, err := w.ask(llm.Messages, request(llm.Messages, tt.model, false), httpmsg.Field{Name: "anthropic-beta", Value: tt.betas}); err != nil {
				t.Fatal(err)
			}
			if got := w.Seen[0].Header.Get("anthropic-beta"); got != tt.header {
				t.Errorf("header %q, want %q", got, tt.header)
			}
			if got := gjson.GetBytes(body, "anthropic_beta").Raw; got != tt.body || !gjson.ValidBytes(body) {
				t.Errorf("body has %q, want %q, in %s", got, tt.body, body)
			}
			if got := strings.Join(w.call.Trace.Dropped, ","); strings.Contains(got, "anthropic-beta") != (tt.dropped != "") {
				t.Errorf("dropped %q, want %q", got, tt.dropped)
			}
		})
	}
}
