package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
)

func TestStreamErrorsHaveTypeOfDialect(t *testing.T) {
	types := map[int][2]string{ // chat, messages
		400: {"invalid_request_error", "invalid_request_error"}, 401: {"authentication_error", "authentication_error"},
		402: {"insufficient_quota", "billing_error"}, 403: {"permission_error", "permission_error"},
		404: {"invalid_request_error", "not_found_error"}, 413: {"invalid_request_error", "request_too_large"},
		422: {"invalid_request_error", "invalid_request_error"}, 429: {"rate_limit_error", "rate_limit_error"},
		500: {"server_error", "api_error"}, 502: {"server_error", "api_error"}, 503: {"server_error", "overloaded_error"},
		529: {"server_error", "overloaded_error"}, 504: {"server_error", "timeout_error"},
	}
	for status, want := range types {
		for i, to := range []llm.Dialect{llm.Chat, llm.Messages} {
			frames := string(llm.FailedStream(to, options(), apierr.New(status, "", "m \"q\"")))
			_, data, _ := strings.Cut(frames[strings.LastIndex(frames, "data: {"):], "data: ")
			data, _, _ = strings.Cut(data, "\n")
			var v struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatal(err)
			}
			if v.Error.Type != want[i] || v.Error.Message != `m "q"` || (to == llm.Messages) != (v.Type == "error") {
				t.Errorf("%d to %v: %+v, want %s", status, to, v, want[i])
			}
		}
	}
}
