package api

import (
	"strings"
	"testing"
	"weir/internal/testgw/fake"
)

// A server without a Responses endpoint is remembered by calls, and a plan shows
// the endpoint that the next call uses.
func TestExplainShowsChatOfServerWithoutResponses(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.HasSuffix(r.URL, "/responses") {
			return fake.Reply(404, `{"detail":"Not Found"}`)
		}
		return fake.Reply(200, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)
	}
	const body = `{"model":"up/m","input":"a"}`
	plan := func() string {
		var p struct{ Plan []struct{ Upstream string } }
		w.get(200, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"/v1/responses","body":`+body+`}`), &p)
		return p.Plan[0].Upstream
	}
	before := plan()
	w.get(200, w.do("POST", "/v1/responses", key, body), nil)
	first := w.Seen[0].Method + " " + w.Seen[0].URL
	after := plan()
	w.Seen = nil
	w.get(200, w.do("POST", "/v1/responses", key, body), nil)
	second := w.Seen[0].Method + " " + w.Seen[0].URL
	if before != first || after != second || !strings.HasSuffix(second, "/chat/completions") {
		t.Errorf("planned %q and %q, called %q and %q", before, after, first, second)
	}
}

// The Gemini API names the model in the path, a socket of the Realtime API in the query.
func TestExplainKnowsRoutesWithParametersAndSockets(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(1)
	w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"openai","apiKey":"sk-0123456789abcdef"}`), nil)
	for _, tt := range []struct{ path, body, want string }{
		{"/v1beta/models/up/m:generateContent", `,"body":{"contents":[{"parts":[{"text":"a"}]}]}`, "/chat/completions"},
		{"/" + id + "/v1beta/models/up/m:streamGenerateContent?alt=sse", `,"body":{"contents":[{"parts":[{"text":"a"}]}]}`, "/chat/completions"},
		{"/v1/realtime?model=gpt-realtime", "", "/realtime"},
	} {
		var p struct {
			Plan []struct{ Upstream, Skipped string }
		}
		w.get(200, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"`+tt.path+`"`+tt.body+`}`), &p)
		if len(p.Plan) != 1 || !strings.HasSuffix(p.Plan[0].Upstream, tt.want) || p.Plan[0].Skipped != "" {
			t.Errorf("%s: %+v", tt.path, p.Plan)
		}
	}
	if len(w.Seen) != 0 {
		t.Errorf("%d calls were sent", len(w.Seen))
	}
	for path, body := range map[string]string{"/v1/responses/{id}/cancel": `,"body":{}`, "/v1/embeddings": "", "/v1beta/models": `,"body":{}`} {
		w.get(400, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"`+path+`"`+body+`}`), nil)
	}
}
