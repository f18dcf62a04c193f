package messages

import (
	"context"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

type desk struct{ tokens proxy.Tokens }

func (d *desk) Count(_ context.Context, _ *auth.Call, _ llm.Dialect, body []byte) (proxy.Tokens, error) {
	if string(body) == "bad" {
		return proxy.Tokens{}, apierr.Invalid("", "bad")
	}
	return d.tokens, nil
}

func call(body string, max int64) *auth.Call {
	return &auth.Call{Request: &httpmsg.Request{Body: stream.FromString(body)}, MaxBody: max}
}

func TestCountTokensReportsMethod(t *testing.T) {
	for _, tt := range []struct {
		tokens    proxy.Tokens
		body, how string
	}{
		{proxy.Tokens{Input: 14, Exact: true}, `{"input_tokens":14}`, "exact"},
		{proxy.Tokens{Input: 0}, `{"input_tokens":0}`, "estimate"},
	} {
		resp, err := (&Handler{Proxy: &desk{tokens: tt.tokens}}).CountTokens(context.Background(), call(`{}`, 100))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := stream.ReadAll(resp.Body, 100)
		if string(raw) != tt.body || resp.Header.Get("x-weir-token-count") != tt.how || resp.Header.Get("content-type") != "application/json" {
			t.Errorf("got %s %v, want %s %s", raw, resp.Header, tt.body, tt.how)
		}
	}
	if _, err := (&Handler{Proxy: &desk{}}).CountTokens(context.Background(), call(`bad`, 100)); err == nil {
		t.Error("a refusal passes")
	}
}
