package api

import (
	"strings"
	"testing"

	"weir/pkg/wire/upstream"
)

// A server without a Responses endpoint is remembered by calls, and a plan shows
// the endpoint that the next call uses.
func TestExplainShowsChatOfServerWithoutResponses(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	w.answer = func(r *upstream.Request) (*upstream.Response, error) {
		if strings.HasSuffix(r.URL, "/responses") {
			return whole(404, `{"detail":"Not Found"}`), nil
		}
		return whole(200, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`), nil
	}
	const body = `{"model":"up/m","input":"a"}`
	plan := func() string {
		var p struct{ Plan []struct{ Upstream string } }
		w.get(200, w.do("POST", "/"+id+"/api/explain", adminToken, `{"path":"/v1/responses","body":`+body+`}`), &p)
		return p.Plan[0].Upstream
	}
	before := plan()
	w.get(200, w.do("POST", "/v1/responses", key, body), nil)
	first := w.seen[0].Method + " " + w.seen[0].URL
	after := plan()
	w.seen = nil
	w.get(200, w.do("POST", "/v1/responses", key, body), nil)
	second := w.seen[0].Method + " " + w.seen[0].URL
	if before != first || after != second || !strings.HasSuffix(second, "/chat/completions") {
		t.Errorf("planned %q and %q, called %q and %q", before, after, first, second)
	}
}
