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
