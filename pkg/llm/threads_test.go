package llm_test

import (
	"errors"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
)

// Anthropic's client sends a part of the conversation only after its thread was
// accepted. It recognizes a refusal by details.error_code.
func TestThreadsAreRefusedForOtherDialects(t *testing.T) {
	body := []byte(`{"max_tokens":9,"thread":{"type":"create"},"messages":[{"role":"user","content":"a"}]}`)
	for _, to := range upstreams {
		out, _, err := llm.Request(llm.Messages, to, body, llm.Options{Model: "m"})
		if to == llm.Messages {
			if err != nil || !strings.Contains(string(out), `"thread":{"type":"create"}`) {
				t.Errorf("%v: %s, %v", to, out, err)
			}
			continue
		}
		var e *apierr.Error
		if !errors.As(err, &e) || e.Status != 400 {
			t.Fatalf("%v: %v", to, err)
		}
		if want := `{"error_code":"thread_unsupported_request","unsupported":["thread"]}`; e.Details != want {
			t.Errorf("%v: details %s", to, e.Details)
		}
	}
	none := strings.Replace(string(body), `{"type":"create"}`, "null", 1)
	if _, _, err := llm.Request(llm.Messages, llm.Chat, []byte(none), llm.Options{Model: "m"}); err != nil {
		t.Errorf("null: %v", err)
	}
}
