package llm_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

func send(t *testing.T, from, to llm.Dialect, body string, opt llm.Options) (gjson.Result, []string) {
	t.Helper()
	out, dropped, err := llm.Request(from, to, []byte(body), opt)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.ParseBytes(out), dropped
}

func TestMaxTokensForClaude(t *testing.T) {
	tests := []struct {
		body string
		opt  llm.Options
		want int64
	}{
		{``, llm.Options{Model: "claude-sonnet-4-5"}, 64000},
		{``, llm.Options{Model: "claude-opus-4-6"}, 128000},
		{``, llm.Options{Model: "anthropic/claude-3-haiku"}, 4096},
		{``, llm.Options{Model: "claude-test"}, 32000},
		{``, llm.Options{Model: "glm-5"}, 4096},
		{`,"max_tokens":200000`, llm.Options{Model: "claude-test"}, 200000},
		{``, llm.Options{Model: "claude-sonnet-4-5", MaxTokens: 9000}, 9000},
		{``, llm.Options{Model: "claude-sonnet-4-5", MaxTokens: 9000, MaxOutput: 8000}, 8000},
		{`,"max_tokens":100000`, llm.Options{Model: "claude-3-haiku"}, 4096},
		{`,"max_tokens":1,"max_completion_tokens":7`, llm.Options{Model: "claude-3-haiku"}, 7},
	}
	for _, tt := range tests {
		got, _ := send(t, llm.Chat, llm.Messages, `{"messages":[{"role":"user","content":"a"}]`+tt.body+`}`, tt.opt)
		if got.Get("max_tokens").Int() != tt.want {
			t.Errorf("%s %+v: got %s, want %d", tt.body, tt.opt, got.Get("max_tokens").Raw, tt.want)
		}
	}
}

func TestSignatureIsSentToItsIssuerOnly(t *testing.T) {
	answer := []byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"GSIG"}]},"finishReason":"STOP"}]}`)
	for _, client := range clients {
		out, _, err := llm.Response(llm.Gemini, client, answer, llm.Options{Issuer: "vertex"})
		if err != nil {
			t.Fatal(err)
		}
		// The client sends the turn back unchanged.
		turn := gjson.ParseBytes(out)
		var body string
		switch client {
		case llm.Chat:
			body = `{"messages":[{"role":"user","content":"a"},` + turn.Get("choices.0.message").Raw + `,{"role":"tool","tool_call_id":"` + turn.Get("choices.0.message.tool_calls.0.id").Str + `","content":"r"}]}`
		case llm.Messages:
			body = `{"max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":` + turn.Get("content").Raw + `},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r"}]}]}`
		case llm.Responses:
			body = `{"input":[{"role":"user","content":"a"},` + strings.Trim(turn.Get("output").Raw, "[]") + `,{"type":"function_call_output","call_id":"x","output":"r"}]}`
		case llm.Gemini:
			body = `{"contents":[{"parts":[{"text":"a"}]},` + turn.Get("candidates.0.content").Raw + `,{"parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}}]}]}`
		}
		home, _ := send(t, client, llm.Gemini, body, llm.Options{Model: "gemini-3-pro", Issuer: "vertex"})
		if !strings.Contains(home.Raw, `"thoughtSignature":"GSIG"`) {
			t.Errorf("%v: not sent home: %s", client, home.Raw)
		}
		for _, issuer := range []string{"", "gemini", "other"} {
			if client == llm.Chat {
				break // extra_content names Google alone as the issuer
			}
			other, _ := send(t, client, llm.Gemini, body, llm.Options{Model: "gemini-3-pro", Issuer: issuer})
			if strings.Contains(other.Raw, "GSIG") {
				t.Errorf("%v: sent to %q: %s", client, issuer, other.Raw)
			}
		}
		for _, to := range upstreams {
			if to == client || to == llm.Gemini {
				continue
			}
			other, _ := send(t, client, to, body, llm.Options{Model: "m", Deviations: ir.DeviationsOf("openrouter")})
			if strings.Contains(other.Raw, "GSIG") {
				t.Errorf("%v: sent to %v: %s", client, to, other.Raw)
			}
		}
	}
}

func TestInvalidAnswerReturns502(t *testing.T) {
	for _, from := range upstreams {
		for _, body := range []string{``, `null`, `[]`, `[1]`, `{}`, `"x"`, `<html></html>`, `{"choices":{}}`, `{"content":"x"}`, `{"output":1}`, `{"candidates":[]}`, `{"message":"x"}`} {
			for _, to := range clients {
				_, _, err := llm.Response(from, to, []byte(body), options())
				var e *apierr.Error
				if !errors.As(err, &e) || e.Status != 502 || e.Code != "bad_upstream_body" {
					t.Errorf("%v %s: %v", from, body, err)
				}
			}
		}
	}
}

func TestCollectReturnsAnswerOfStream(t *testing.T) {
	for _, from := range upstreams {
		for name, body := range cases(t, "streams/"+from.String(), ".sse") {
			_, s := run(from, llm.Chat, body)
			for _, to := range clients {
				out, usage, err := llm.Collect(from, to, body, options())
				if (err == nil) != s.Complete() {
					t.Fatalf("%v/%s: %v, complete %v", from, name, err, s.Complete())
				}
				if err != nil {
					continue
				}
				if usage != s.Usage() || !gjson.ValidBytes(out) {
					t.Errorf("%v/%s to %v: %+v, %s", from, name, to, usage, out)
				}
				if to != llm.Chat && name != "refusal" && name != "prompt_blocked" { // other dialects tell it elsewhere
					want, _, _ := llm.Collect(from, llm.Chat, body, options())
					sameAnswer(t, fmt.Sprint(from, "/", name, " to ", to), plain(t, to, out, options()), string(want))
				}
			}
		}
	}
}

func TestFailedStreamEnds(t *testing.T) {
	e := apierr.New(503, "overloaded", "The provider is overloaded.")
	for _, to := range clients {
		grammar(t, to, llm.FailedStream(to, options(), e), false)
	}
	s := llm.Stream(llm.Chat, llm.Chat, options())
	if out := s.End(stream.ErrReset, []byte("x")); !bytes.HasPrefix(out, []byte("x")) {
		t.Error("what was written before is gone")
	}
}
