package ir

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// failure returns the error of an answer with an error status.
func failure(status int, body string) *apierr.Error {
	e := StatusError(status)
	if gjson.Valid(body) {
		root := gjson.Parse(body)
		if root.IsArray() {
			root = root.Get("0")
		}
		Describe(e, root)
	}
	return e
}

func TestErrorsOfEveryVendorAreRead(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   string // type|code|message
	}{
		{"openai", 404, `{"error":{"message":"No such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`, "invalid_request_error|model_not_found|No such model"},
		{"openai_quota", 429, `{"error":{"message":"Quota","type":"insufficient_quota","code":"insufficient_quota"}}`, "rate_limit_error|insufficient_quota|Quota"},
		{"anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, "server_error|upstream_overloaded|Overloaded"},
		{"gemini", 400, `{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}`, "invalid_request_error||Bad"},
		{"gemini_in_an_array", 429, `[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]`, "rate_limit_error|rate_limit_exceeded|Quota"},
		{"cohere", 401, `{"message":"invalid api token"}`, "authentication_error|invalid_api_key|invalid api token"},
		{"mistral", 422, `{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}`, "invalid_request_error||field required"},
		{"elevenlabs", 401, `{"detail":{"status":"x","message":"Bad key"}}`, "authentication_error|invalid_api_key|Bad key"},
		{"deepgram", 400, `{"err_code":"X","err_msg":"bad audio"}`, "invalid_request_error||bad audio"},
		{"xai", 400, `{"code":"c","error":"Bad thing"}`, "invalid_request_error|c|Bad thing"},
		{"fal", 422, `{"detail":"nope"}`, "invalid_request_error||nope"},
		{"stability", 400, `{"id":"1","name":"bad","errors":["too big"]}`, "invalid_request_error||too big"},
		{"bedrock", 400, `{"message":"Malformed"}`, "invalid_request_error||Malformed"},
		{"azure", 400, `{"error":{"code":"content_filter","message":"Filtered","innererror":{"content_filter_result":{}}}}`, "invalid_request_error|content_filter|Filtered"},
		{"azure_without_the_deployment", 404, `{"error":{"code":"DeploymentNotFound","message":"No such deployment"}}`, "invalid_request_error|DeploymentNotFound|No such deployment"},
		{"cloudflare", 400, `{"errors":[{"code":7000,"message":"No route"}]}`, "invalid_request_error||No route"},
		{"minimax", 500, `{"base_resp":{"status_code":1000,"status_msg":"unknown"}}`, "server_error||unknown"},
		{"groq", 402, `{"error":{"message":"Pay","code":402}}`, "insufficient_quota|insufficient_quota|Pay"},
		{"html_is_not_shown", 502, `<html><b>secret</b></html>`, "server_error||The provider failed."},
		{"nothing", 503, ``, "server_error|upstream_overloaded|The provider is overloaded."},
		{"not_an_object", 500, `null`, "server_error||The provider failed."},
		{"invalid_status", 302, ``, "server_error||The provider failed."},
		{"sentence_is_not_a_code", 400, `{"error":{"message":"m","code":"do not show this"}}`, "invalid_request_error||m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := failure(tt.status, tt.body)
			if got := e.Type + "|" + e.Code + "|" + e.Message; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLongMessageIsTruncated(t *testing.T) {
	e := failure(400, `{"error":{"message":"`+strings.Repeat("é", 400)+`"}}`)
	if len(e.Message) != 500 {
		t.Errorf("%d bytes", len(e.Message))
	}
}
