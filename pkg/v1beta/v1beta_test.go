package v1beta

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/auth"
	"weir/pkg/llm/proxy"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

func TestSplitAtTheLastColon(t *testing.T) {
	for name, want := range map[string][2]string{
		"gemini-2.5-flash:generateContent":         {"gemini-2.5-flash", "generateContent"},
		"openai/gpt-4o:countTokens":                {"openai/gpt-4o", "countTokens"},
		"or/meta/llama:free:streamGenerateContent": {"or/meta/llama:free", "streamGenerateContent"},
		"openai/gpt-4o":                            {"openai/gpt-4o", ""},
		":x":                                       {"", "x"},
		"":                                         {"", ""},
	} {
		if model, method := Split(name); model != want[0] || method != want[1] {
			t.Errorf("%q: %q and %q", name, model, method)
		}
	}
}

func TestArrayForm(t *testing.T) {
	for _, tt := range []struct {
		path, query string
		want        bool
	}{
		{"/v1beta/models/a:streamGenerateContent", "", true},
		{"/v1/models/a:streamGenerateContent", "alt=json", true},
		{"/v1beta/models/a:streamGenerateContent", "x=1&alt=sse", false},
		{"/v1beta/models/a:generateContent", "", false},
		{"/v1beta/models/streamGenerateContent", "", false},
	} {
		if got := IsArray(&httpmsg.Request{Path: tt.path, Query: tt.query}); got != tt.want {
			t.Errorf("%s?%s: %v", tt.path, tt.query, got)
		}
	}
}

type vectors []string

func (v *vectors) Gemini(_ context.Context, _ *auth.Call, model string, batch bool) (*httpmsg.Response, error) {
	*v = append(*v, fmt.Sprint(model, " ", batch))
	return nil, nil
}

func TestEmbeddingMethods(t *testing.T) {
	v := &vectors{}
	for _, name := range []string{"a/b:c:embedContent", "a:batchEmbedContents"} {
		c := &auth.Call{Request: &httpmsg.Request{Route: "/v1beta/models/{model...}"}, Params: []string{name}}
		if _, err := (&Handler{Embeddings: v}).Call(context.Background(), c); err != nil {
			t.Error(err)
		}
		if want := "/v1beta/models/{model}" + name[strings.LastIndex(name, ":"):]; c.Route != want {
			t.Errorf("route %s, want %s", c.Route, want)
		}
	}
	if got := strings.Join(*v, ", "); got != "a/b:c false, a true" {
		t.Error(got)
	}
}

type counts struct {
	answerer
	n proxy.Tokens
}

func (n counts) CountGemini(_ context.Context, _ *auth.Call, model string, body []byte) (proxy.Tokens, error) {
	if model != "a/b" || string(body) == "bad" {
		return proxy.Tokens{}, apierr.Invalid("", "bad")
	}
	return n.n, nil
}

func TestCountTokens(t *testing.T) {
	ask := func(n proxy.Tokens, body string) (*httpmsg.Response, error) {
		c := &auth.Call{Request: &httpmsg.Request{Body: stream.FromString(body)}, MaxBody: 100, Params: []string{"a/b:countTokens"}}
		return (&Handler{Chats: counts{n: n}}).Call(context.Background(), c)
	}
	for _, tt := range []struct {
		n         proxy.Tokens
		body, how string
	}{
		{proxy.Tokens{Input: 7}, `{"totalTokens":7}`, "estimate"},
		{proxy.Tokens{Input: 7, Exact: true}, `{"totalTokens":7}`, "exact"},
		{proxy.Tokens{Input: 7, Exact: true, Answer: `{ "totalTokens":7, "x":1 }`}, `{ "totalTokens":7, "x":1 }`, "exact"},
	} {
		resp, err := ask(tt.n, "{}")
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := stream.ReadAll(resp.Body, 100)
		if string(raw) != tt.body || resp.Header.Get("x-weir-token-count") != tt.how || resp.Header.Get("content-type") != "application/json" {
			t.Errorf("got %s %v, want %s %s", raw, resp.Header, tt.body, tt.how)
		}
	}
	if _, err := ask(proxy.Tokens{}, "bad"); err == nil {
		t.Error("a refusal passes")
	}
	if _, err := ask(proxy.Tokens{}, strings.Repeat(" ", 101)); !errors.Is(err, stream.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}

func TestUnknownMethods(t *testing.T) {
	for name, want := range map[string]int{"a:predictLongRunning": 501, "a:": 404, "a": 404, ":generateContent": 404} {
		_, err := (&Handler{}).Call(context.Background(), &auth.Call{Params: []string{name}})
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != want || e.NoRetry != (want == 501) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
