package realtime

import (
	"context"
	"strings"
	"testing"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/llm/ir"
	"weir/pkg/snapshot"
	"weir/pkg/wire/socket"
	"weir/pkg/wire/upstream"
)

// watched is a connection whose relay is checked until the program ends it.
type watched struct {
	socket.Conn
	end    *socket.Closed
	checks int
}

func (c *watched) Relay(_ socket.Conn, w socket.Watch) (*socket.Closed, bool) {
	for c.end == nil {
		c.checks++
		c.end = w.Check()
	}
	return c.end, false
}

// revoked is a key that is revoked after some checks.
type revoked struct{ after int }

func (*revoked) SealClientSecret(string, *auth.ClientSecret) (string, error) { return "", nil }
func (r *revoked) Live(context.Context, *auth.Call) bool                     { r.after--; return r.after > 0 }

type reports struct{ sent int }

func (r *reports) Flush(context.Context, *snapshot.Machine) { r.sent++ }

func TestRevokedKeyEndsSession(t *testing.T) {
	sent := &reports{}
	h := &Handler{Keys: &revoked{3}, Reports: sent}
	c := &watched{}
	h.relay(context.Background(), &auth.Call{}, c, &accounts.Result{Response: &upstream.Response{}})
	if c.end.Code != socket.Policy || c.checks != 3 || sent.sent != 2 {
		t.Errorf("got %v after %d checks and %d reports", c.end, c.checks, sent.sent)
	}
}

func TestUsageOfEvents(t *testing.T) {
	for _, tt := range []struct {
		name, event string
		want        accounts.Used
		ok          bool
	}{
		{"a response in text", `{"type":"response.done","response":{"usage":{"total_tokens":9,"input_tokens":5,"output_tokens":4,"input_token_details":{"cached_tokens":2,"audio_tokens":0}}}}`,
			accounts.Used{Tokens: ir.Usage{Known: true, Final: true, Input: 5, Output: 4, CacheRead: 2}}, true},
		{"a response with audio", `{"response":{"usage":{"input_tokens":5,"output_tokens":4,"output_token_details":{"audio_tokens":3}}},"type":"response.done"}`,
			accounts.Used{Tokens: ir.Usage{Known: true, Final: true, Input: 5, Output: 4, AudioOutput: 3}}, true},
		{"a response with cached text", `{"type":"response.done","response":{"usage":{"input_tokens":50,"output_tokens":4,"input_token_details":{"audio_tokens":10,"image_tokens":5,"cached_tokens":20,"cached_tokens_details":{"text_tokens":20,"audio_tokens":0}}}}}`,
			accounts.Used{Tokens: ir.Usage{Known: true, Final: true, Input: 50, Output: 4, CacheRead: 20, AudioInput: 10, ImageInput: 5, CacheByKind: true}}, true},
		{"a response with cached audio", `{"type":"response.done","response":{"usage":{"input_tokens":50,"output_tokens":4,"input_token_details":{"audio_tokens":10,"cached_tokens":20,"cached_tokens_details":{"text_tokens":15,"audio_tokens":5}}}}}`,
			accounts.Used{Tokens: ir.Usage{Known: true, Final: true, Input: 50, Output: 4, CacheRead: 20, AudioInput: 10, AudioCacheRead: 5, CacheByKind: true}}, true},
		{"a transcription by tokens", `{"type":"conversation.item.input_audio_transcription.completed","usage":{"type":"tokens","input_tokens":7,"output_tokens":1}}`,
			accounts.Used{Tokens: ir.Usage{Known: true, Final: true, Input: 7, Output: 1, Unrated: "transcription"}, Price: accounts.Unknown}, true},
		{"a transcription by seconds", `{"type":"conversation.item.input_audio_transcription.completed","usage":{"type":"duration","seconds":3}}`,
			accounts.Used{Tokens: ir.Usage{Unrated: "transcription"}, Price: accounts.Unknown}, true},
		{"a text that names the event", `{"type":"response.output_text.done","text":"\"response.done\""}`, accounts.Used{}, false},
		{"a response that was canceled", `{"type":"response.done","response":{"status":"cancelled","usage":null}}`, accounts.Used{}, false},
		{"no JSON", `"response.done"`, accounts.Used{}, false},
	} {
		if got, ok := usedBy([]byte(tt.event)); got != tt.want || ok != tt.ok {
			t.Errorf("%s: got %+v %v", tt.name, got, ok)
		}
	}
}

func TestOffersOfSubProtocols(t *testing.T) {
	for list, want := range map[string]bool{"realtime": true, "a,realtime": true, "a, realtime ,b": true, "": false, "realtimes": false, "Realtime": false} {
		if offers(list, protocol) != want {
			t.Errorf("%q: got %v", list, !want)
		}
	}
}

// The work for an event grows with its length only.
func TestUsageOfLongEvents(t *testing.T) {
	work := func(n int) float64 {
		event := []byte(`{"type":"response.done","response":{"output":[` + strings.Repeat(`{"a":["\"response.done\""]},`, n) + `0],"usage":{"input_tokens":1}}}`)
		return testing.AllocsPerRun(5, func() { usedBy(event) })
	}
	if short, long := work(10), work(100_000); long > short+4 {
		t.Errorf("%.0f allocations for a short event, %.0f for a long one", short, long)
	}
}

func FuzzUsageOfEvents(f *testing.F) {
	for _, s := range []string{
		`{"type":"response.done","response":{"usage":{"input_tokens":-1,"output_tokens":1e99}}}`,
		`{"type":"conversation.item.input_audio_transcription.completed","usage":[]}`, `{"type":"response.done","response":`, ``, `[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		if u, _ := usedBy(event); u.Tokens.Input < 0 || u.Tokens.Output < 0 || u.Tokens.CacheRead < 0 {
			t.Errorf("negative counts: %+v", u.Tokens)
		}
	})
}

func TestAnswersOfEvents(t *testing.T) {
	for event, want := range map[string]int{
		`{"type":"response.created","response":{}}`: 1, `{"type":"response.done","response":{"usage":null}}`: -1,
		`{"type":"response.output_text.delta","delta":"\"response.created\""}`: 0, `"response.done"`: 0, ``: 0,
	} {
		if got := answersBy([]byte(event)); got != want {
			t.Errorf("%s: %d, want %d", event, got, want)
		}
	}
}
