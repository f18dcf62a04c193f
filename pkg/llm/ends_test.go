package llm_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
)

// Each client gets the end of an answer in the words of its dialect, whole and as a stream.
func TestEndOfAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		chat, messages               string // as an upstream says it
		finish, stop, status, reason string // as the clients read it
	}{
		{"stop", "end_turn", "stop", "end_turn", "completed", ""},
		{"length", "max_tokens", "length", "max_tokens", "incomplete", "max_output_tokens"},
		{"content_filter", "refusal", "content_filter", "refusal", "incomplete", "content_filter"},
	} {
		for from, answer := range map[llm.Dialect]string{
			llm.Chat:     `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"So"},"finish_reason":"` + tt.chat + `"}]}`,
			llm.Messages: `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"So"}],"stop_reason":"` + tt.messages + `","usage":{"input_tokens":1,"output_tokens":1}}`,
		} {
			for to, path := range map[llm.Dialect][2]string{
				llm.Chat:      {"choices.0.finish_reason", tt.finish},
				llm.Messages:  {"stop_reason", tt.stop},
				llm.Responses: {"status", tt.status},
			} {
				whole, _, err := llm.Response(from, to, []byte(answer), options())
				if err != nil {
					t.Fatal(err)
				}
				if got := gjson.GetBytes(whole, path[0]).Str; got != path[1] {
					t.Errorf("%s to %v: ended by %q, want %q", tt.chat, to, got, path[1])
				}
				events, _, err := llm.Replay(from, to, []byte(answer), options())
				if err != nil {
					t.Fatal(err)
				}
				if got := endOf(to, events); got != path[1] {
					t.Errorf("%s to %v, streamed: ended by %q, want %q", tt.chat, to, got, path[1])
				}
				if to != llm.Responses {
					continue
				}
				for how, r := range map[string]gjson.Result{"whole": gjson.ParseBytes(whole), "streamed": lastResponse(events)} {
					if got := r.Get("incomplete_details.reason").Str; got != tt.reason {
						t.Errorf("%s, %s: incomplete because of %q, want %q", tt.chat, how, got, tt.reason)
					}
				}
			}
		}
	}
}

// endOf returns how a client's stream says that it ended.
func endOf(d llm.Dialect, events []byte) (end string) {
	for _, e := range eventsOf(events) {
		switch v := gjson.ParseBytes(e.Data); d {
		case llm.Chat:
			end += v.Get("choices.0.finish_reason").Str
		case llm.Messages:
			end += v.Get("delta.stop_reason").Str
		case llm.Responses:
			if name := string(e.Name); name == "response.completed" || name == "response.incomplete" {
				end += strings.TrimPrefix(name, "response.")
			}
		}
	}
	return end
}
