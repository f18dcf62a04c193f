package llm_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/pkg/llm"
)

func TestErrorsOfEveryVendorAreRead(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   string // type|code|message
	}{
		{"openai", 404, `{"error":{"message":"No such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, "invalid_request_error|model_not_found|No such model"},
		{"openai_quota", 429, `{"error":{"message":"Quota","type":"insufficient_quota","code":"insufficient_quota"}}`, "rate_limit_error|insufficient_quota|Quota"},
		{"anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, "server_error|overloaded|Overloaded"},
		{"gemini", 400, `{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}`, "invalid_request_error||Bad"},
		{"gemini_in_an_array", 429, `[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]`, "rate_limit_error|rate_limit_exceeded|Quota"},
		{"cohere", 401, `{"message":"invalid api token"}`, "authentication_error|invalid_api_key|invalid api token"},
		{"mistral", 422, `{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}`, "invalid_request_error||field required"},
		{"elevenlabs", 401, `{"detail":{"status":"x","message":"Bad key"}}`, "authentication_error|invalid_api_key|Bad key"},
		{"deepgram", 400, `{"err_code":"X","err_msg":"bad audio"}`, "invalid_request_error||bad audio"},
		{"xai", 400, `{"code":"c","error":"Bad thing"}`, "invalid_request_error||Bad thing"},
		{"fal", 422, `{"detail":"nope"}`, "invalid_request_error||nope"},
		{"stability", 400, `{"id":"1","name":"bad","errors":["too big"]}`, "invalid_request_error||too big"},
		{"bedrock", 400, `{"message":"Malformed"}`, "invalid_request_error||Malformed"},
		{"azure", 400, `{"error":{"code":"content_filter","message":"Filtered","innererror":{"content_filter_result":{}}}}`, "invalid_request_error|content_filter|Filtered"},
		{"cloudflare", 400, `{"errors":[{"code":7000,"message":"No route"}]}`, "invalid_request_error||No route"},
		{"minimax", 500, `{"base_resp":{"status_code":1000,"status_msg":"unknown"}}`, "server_error||unknown"},
		{"groq", 402, `{"error":{"message":"Pay","code":402}}`, "insufficient_quota|insufficient_quota|Pay"},
		{"html_is_not_shown", 502, `<html><b>secret</b></html>`, "server_error||The provider failed."},
		{"nothing", 503, ``, "server_error|overloaded|The provider is overloaded."},
		{"not_an_object", 500, `null`, "server_error||The provider failed."},
		{"a_status_that_is_none", 302, ``, "server_error||The provider failed."},
		{"a_sentence_is_no_code", 400, `{"error":{"message":"m","code":"do not show this"}}`, "invalid_request_error||m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := llm.Failure(tt.status, []byte(tt.body))
			if got := e.Type + "|" + e.Code + "|" + e.Message; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestALongMessageIsCut(t *testing.T) {
	e := llm.Failure(400, []byte(`{"error":{"message":"`+strings.Repeat("é", 400)+`"}}`))
	if len(e.Message) != 500 {
		t.Errorf("%d bytes", len(e.Message))
	}
}

func TestErrorsAreWrittenInTheDialect(t *testing.T) {
	types := map[int][2]string{ // chat, messages
		400: {"invalid_request_error", "invalid_request_error"}, 401: {"authentication_error", "authentication_error"},
		402: {"insufficient_quota", "billing_error"}, 403: {"permission_error", "permission_error"},
		404: {"invalid_request_error", "not_found_error"}, 413: {"invalid_request_error", "request_too_large"},
		422: {"invalid_request_error", "invalid_request_error"}, 429: {"rate_limit_error", "rate_limit_error"},
		500: {"server_error", "api_error"}, 502: {"server_error", "api_error"}, 503: {"server_error", "overloaded_error"},
		529: {"server_error", "overloaded_error"}, 504: {"server_error", "timeout_error"},
	}
	for status, want := range types {
		e := llm.Failure(status, []byte(`{"message":"m \"q\""}`))
		for i, to := range []llm.Dialect{llm.Chat, llm.Messages, llm.Responses} {
			var v struct {
				Type      string
				RequestID string `json:"request_id"`
				Error     struct {
					Type, Message string
					Code, Param   *string
				}
			}
			if err := json.Unmarshal(llm.AppendError(nil, to, e, "req_1"), &v); err != nil {
				t.Fatal(err)
			}
			if v.Error.Type != want[i%2] || v.Error.Message != `m "q"` || (to == llm.Messages) != (v.Type == "error" && v.RequestID == "req_1") {
				t.Errorf("%d to %v: %+v, want %s", status, to, v, want[i%2])
			}
		}
	}
}

func TestTheDelayOfGoogleIsRead(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"error":{"code":429,"details":[{"@type":"x"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"31s"}]}}`: 31 * time.Second,
		`[{"error":{"details":[{"retryDelay":"1.5s"}]}}]`:                                                                          1500 * time.Millisecond,
		`{"error":{"details":[{"retryDelay":"-1s"}]}}`:                                                                             0,
		`{}`:     0,
		`<html>`: 0,
	} {
		if got := llm.RetryDelay([]byte(body)); got != want {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
}

func TestTheHeaderOfWhatWasDropped(t *testing.T) {
	if _, ok := llm.Dropped(nil); ok {
		t.Error("a header for nothing")
	}
	f, ok := llm.Dropped([]string{"seed", "a\r\nx: y", "tools.bash", "ü"})
	if !ok || f.Name != "x-weir-dropped" || f.Value != "seed,tools.bash" {
		t.Errorf("got %+v", f)
	}
}
