package responses

import (
	"context"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

const (
	// maxCompaction is the length of an answer whose parts are read, in bytes.
	maxCompaction = 32 << 20
	// maxRepeated is how much of the user's messages a compaction repeats, about
	// the 64,000 tokens of Codex.
	maxRepeated = 256 << 10
)

// Compact serves POST /v1/responses/compact: a conversation that stands for a
// longer one.
//
//	{"model","input",…} → {"id","object":"response.compaction","created_at","output":[items],"usage"}
//
// The vendor compacts if it can. Otherwise the model writes a summary, and the
// output has the latest messages of the user and a compaction item with it.
func (h *Handler) Compact(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, req, err := h.request(ctx, c)
	if err != nil {
		return nil, err
	}
	req.Compacts, req.Compaction, req.Stream = true, true, false
	result, err := h.Proxy.Answer(ctx, c, req)
	if err != nil {
		return nil, err
	}
	raw, err := stream.ReadAll(result.Body, maxCompaction)
	if err != nil {
		return nil, err
	}
	if endpoint.ValidJSON(raw) != nil {
		return nil, endpoint.BadBody(nil)
	}
	answer := gjson.ParseBytes(raw)
	if answer.Get("object").Str == "response" {
		raw = compaction(answer, repeated(gjson.GetBytes(body, "input")))
	}
	result.Body = stream.FromBytes(raw)
	return result.Response, nil
}

// compaction returns the answer for a response whose output is a compaction item.
func compaction(answer gjson.Result, messages []string) []byte {
	b := append([]byte(`{"id":`), answer.Get("id").Raw...)
	b = append(append(b, `,"object":"response.compaction","created_at":`...), answer.Get("created_at").Raw...)
	b = append(b, `,"output":[`...)
	for i := len(messages) - 1; i >= 0; i-- {
		b = append(append(b, messages[i]...), ',')
	}
	b = append(append(b, answer.Get("output.0").Raw...), ']')
	if u := answer.Get("usage"); u.IsObject() {
		b = append(append(b, `,"usage":`...), u.Raw...)
	}
	return append(b, '}')
}

// repeated returns the user's messages that a compaction repeats, the latest first.
func repeated(input gjson.Result) (messages []string) {
	if input.Type == gjson.String {
		return []string{message(input.Raw)}
	}
	left := maxRepeated
	list := input.Array()
	for i := len(list) - 1; i >= 0; i-- {
		item := list[i]
		if kind := item.Get("type"); item.Get("role").Str != "user" || kind.Exists() && kind.Str != "message" {
			continue
		}
		raw := item.Raw
		if content := item.Get("content"); content.Type == gjson.String {
			raw = message(content.Raw)
		}
		if left -= len(raw); left < 0 {
			break
		}
		messages = append(messages, raw)
	}
	return messages
}

// message returns a message of the user with a text in JSON.
func message(text string) string {
	return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + text + `}]}`
}
