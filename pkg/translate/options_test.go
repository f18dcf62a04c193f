package translate_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/pkg/apierr"
	"weir/pkg/stream"
	"weir/pkg/translate"

	"github.com/tidwall/gjson"
)

func send(t *testing.T, from, to translate.Dialect, body string, opt translate.Options) (gjson.Result, []string) {
	t.Helper()
	out, dropped, err := translate.Request(from, to, []byte(body), opt)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.ParseBytes(out), dropped
}

func TestTheNewerVersionTakesNoSampling(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"a"}],"temperature":0.5,"top_p":0.5}`
	old, _ := send(t, translate.Chat, translate.Messages, body, translate.Options{Model: "claude-sonnet-4"})
	if old.Get("temperature").Raw != "0.5" || old.Get("top_p").Raw != "0.5" {
		t.Errorf("2023-06-01: %s", old.Raw)
	}
	newer, dropped := send(t, translate.Chat, translate.Messages, body, translate.Options{Model: "claude-sonnet-4", Version: "2026-10-21"})
	if newer.Get("temperature").Exists() || newer.Get("top_p").Exists() || strings.Join(dropped, ",") != "temperature,top_p" {
		t.Errorf("2026-10-21: %s, dropped %v", newer.Raw, dropped)
	}
}

func TestTheLimitOfTokens(t *testing.T) {
	tests := []struct {
		body string
		opt  translate.Options
		want int64
	}{
		{``, translate.Options{Model: "claude-sonnet-4-5"}, 64000},
		{``, translate.Options{Model: "claude-opus-4-6"}, 128000},
		{``, translate.Options{Model: "anthropic/claude-3-haiku"}, 4096},
		{``, translate.Options{Model: "claude-test"}, 32000},
		{``, translate.Options{Model: "glm-5"}, 4096},
		{`,"max_tokens":200000`, translate.Options{Model: "claude-test"}, 200000},
		{``, translate.Options{Model: "claude-sonnet-4-5", MaxTokens: 9000}, 9000},
		{``, translate.Options{Model: "claude-sonnet-4-5", MaxTokens: 9000, MaxOutput: 8000}, 8000},
		{`,"max_tokens":100000`, translate.Options{Model: "claude-3-haiku"}, 4096},
		{`,"max_tokens":1,"max_completion_tokens":7`, translate.Options{Model: "claude-3-haiku"}, 7},
	}
	for _, tt := range tests {
		got, _ := send(t, translate.Chat, translate.Messages, `{"messages":[{"role":"user","content":"a"}]`+tt.body+`}`, tt.opt)
		if got.Get("max_tokens").Int() != tt.want {
			t.Errorf("%s %+v: got %s, want %d", tt.body, tt.opt, got.Get("max_tokens").Raw, tt.want)
		}
	}
}

func TestASignatureOnlyGoesBackToItsIssuer(t *testing.T) {
	answer := []byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"GSIG"}]},"finishReason":"STOP"}]}`)
	for _, client := range clients {
		out, _, err := translate.Response(translate.Gemini, client, answer, translate.Options{Issuer: "vertex"})
		if err != nil {
			t.Fatal(err)
		}
		// The client sends the turn back as it got it.
		turn := gjson.ParseBytes(out)
		var body string
		switch client {
		case translate.Chat:
			body = `{"messages":[{"role":"user","content":"a"},` + turn.Get("choices.0.message").Raw + `,{"role":"tool","tool_call_id":"` + turn.Get("choices.0.message.tool_calls.0.id").Str + `","content":"r"}]}`
		case translate.Messages:
			body = `{"max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":` + turn.Get("content").Raw + `},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r"}]}]}`
		case translate.Responses:
			body = `{"input":[{"role":"user","content":"a"},` + strings.Trim(turn.Get("output").Raw, "[]") + `,{"type":"function_call_output","call_id":"x","output":"r"}]}`
		}
		home, _ := send(t, client, translate.Gemini, body, translate.Options{Model: "gemini-3-pro", Issuer: "vertex"})
		if !strings.Contains(home.Raw, `"thoughtSignature":"GSIG"`) {
			t.Errorf("%v: not sent home: %s", client, home.Raw)
		}
		for _, issuer := range []string{"", "gemini", "other"} {
			if client == translate.Chat {
				break // extra_content names Google alone as the issuer
			}
			other, _ := send(t, client, translate.Gemini, body, translate.Options{Model: "gemini-3-pro", Issuer: issuer})
			if strings.Contains(other.Raw, "GSIG") {
				t.Errorf("%v: sent to %q: %s", client, issuer, other.Raw)
			}
		}
		for _, to := range upstreams {
			if to == client || to == translate.Gemini {
				continue
			}
			other, _ := send(t, client, to, body, translate.Options{Model: "m", Deviations: translate.DeviationsOf("openrouter")})
			if strings.Contains(other.Raw, "GSIG") {
				t.Errorf("%v: sent to %v: %s", client, to, other.Raw)
			}
		}
	}
}

func TestWhatIsNoAnswerIsABadGateway(t *testing.T) {
	for _, from := range upstreams {
		for _, body := range []string{``, `null`, `[]`, `[1]`, `{}`, `"x"`, `<html></html>`, `{"choices":{}}`, `{"content":"x"}`, `{"output":1}`, `{"candidates":[]}`, `{"message":"x"}`} {
			for _, to := range clients {
				_, _, err := translate.Response(from, to, []byte(body), options())
				var e *apierr.Error
				if !errors.As(err, &e) || e.Status != 502 || e.Code != "bad_upstream_body" {
					t.Errorf("%v %s: %v", from, body, err)
				}
			}
		}
	}
}

func TestAJSONAnswerIsMadeOfAStream(t *testing.T) {
	for _, from := range upstreams {
		for name, body := range cases(t, "streams/"+from.String(), ".sse") {
			_, s := run(from, translate.Chat, body)
			for _, to := range clients {
				out, usage, err := translate.Collect(from, to, body, options())
				if (err == nil) != s.Complete() {
					t.Fatalf("%v/%s: %v, complete %v", from, name, err, s.Complete())
				}
				if err != nil {
					continue
				}
				if usage != s.Usage() || !gjson.ValidBytes(out) {
					t.Errorf("%v/%s to %v: %+v, %s", from, name, to, usage, out)
				}
				if to != translate.Chat && name != "refusal" { // other dialects tell it elsewhere
					want, _, _ := translate.Collect(from, translate.Chat, body, options())
					same(t, fmt.Sprint(from, "/", name, " to ", to), plain(t, to, out, options()), string(want))
				}
			}
		}
	}
}

func TestWhatAClientAsks(t *testing.T) {
	tests := []struct {
		d             translate.Dialect
		body          string
		stream, usage bool
	}{
		{translate.Chat, `{}`, false, false},
		{translate.Chat, `{"stream":true}`, true, false},
		{translate.Chat, `{"stream":true,"stream_options":{"include_usage":true}}`, true, true},
		{translate.Chat, `{"stream":"true"}`, false, false},
		{translate.Messages, `{"stream":true}`, true, true},
		{translate.Responses, `{"stream":false}`, false, true},
	}
	for _, tt := range tests {
		if s, u := translate.Asked(tt.d, []byte(tt.body)); s != tt.stream || u != tt.usage {
			t.Errorf("%v %s: got %v %v", tt.d, tt.body, s, u)
		}
	}
}

func TestFailureFramesEndAStream(t *testing.T) {
	e := translate.Failure(503, nil)
	for _, to := range clients {
		grammar(t, to, translate.FailureFrame(nil, to, e), false)
	}
	s := translate.Stream(translate.Chat, translate.Chat, options())
	if out := s.End(stream.ErrReset, []byte("x")); !bytes.HasPrefix(out, []byte("x")) {
		t.Error("what was written before is gone")
	}
}

func TestAnswersThatPassAreJudged(t *testing.T) {
	known := translate.Usage{Input: 3, Output: 2, Known: true}
	tests := []struct {
		d      translate.Dialect
		body   string
		usage  translate.Usage
		status int
	}{
		{translate.Chat, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, known, 0},
		{translate.Chat, `{"choices":[]}`, translate.Usage{}, 0},
		{translate.Chat, `{"error":{"message":"m","type":"rate_limit_error"}}`, translate.Usage{}, 429},
		{translate.Chat, `{"base_resp":{"status_code":1004,"status_msg":"m"}}`, translate.Usage{}, 401},
		{translate.Chat, `{"object":"x"}`, translate.Usage{}, 502},
		{translate.Messages, `{"content":[],"usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":2}}`, translate.Usage{Input: 3, CacheRead: 2, Output: 2, Known: true}, 0},
		{translate.Messages, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, translate.Usage{}, 529},
		{translate.Responses, `{"output":[],"status":"failed","error":{"code":"server_error","message":"m"},"usage":{"input_tokens":3,"output_tokens":2}}`, known, 0},
		{translate.Responses, `{"error":{"message":"m","code":"server_error"}}`, translate.Usage{}, 500},
		{translate.Responses, `{"choices":[]}`, translate.Usage{}, 502},
		{translate.Chat, `null`, translate.Usage{}, 502},
		{translate.Chat, `[]`, translate.Usage{}, 502},
		{translate.Messages, `<html>`, translate.Usage{}, 502},
		{translate.Messages, ``, translate.Usage{}, 502},
	}
	for _, tt := range tests {
		usage, err := translate.Judge(tt.d, []byte(tt.body))
		var e *apierr.Error
		errors.As(err, &e)
		if usage != tt.usage || statusOf(e) != tt.status {
			t.Errorf("%v %s: got %+v %v", tt.d, tt.body, usage, err)
		}
	}
}
