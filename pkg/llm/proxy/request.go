package proxy

import (
	"context"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
)

// Request is a client's request whose body is valid JSON.
type Request struct {
	Dialect llm.Dialect
	Body    []byte
	Model   string
	Stream  bool
	// WantsUsage reports that the client gets the usage of a stream; in the chat
	// dialect it must ask for that.
	WantsUsage bool
	// mayAskUsage reports that the upstream of a chat client's stream may be asked for
	// its usage in place of the client.
	mayAskUsage bool
	// Previous is previous_response_id of a Responses request.
	Previous string
	// Stateful reports that the request refers to state of the upstream, or
	// runs in the background.
	Stateful bool
	// Background reports a Responses request whose answer is polled.
	Background bool
	// Unstored reports a Responses request with store false.
	Unstored bool
	// Compacts reports a Responses request for a compaction of its conversation:
	// its input ends with a compaction_trigger, or it is Compaction.
	Compacts bool
	// Compaction reports the body of POST /v1/responses/compact.
	Compaction bool
	// LongUser reports that user or safety_identifier may be over an upstream's
	// limit.
	LongUser bool
	// Dropped names the fields that were left out when the request was brought into
	// its dialect.
	Dropped []string
	// marked and modelAt are what ReadRequest has found for llm.Options.
	marked  *jsonscan.Marked
	modelAt jsonscan.Span
	// Array reports that the stream of a Gemini client is a JSON array, HideThoughts
	// that it has not asked for thoughts.
	Array, HideThoughts bool
	// Connection is the id of the only account that may answer; empty is any.
	Connection string

	session sessionParts
}

// marks are what ReadRequest looks for besides the routing fields of a dialect.
var marks = func() (all [llm.Dialects]jsonscan.Marks) {
	for d := range all {
		all[d] = jsonscan.Marks{Strings: llm.Marks(llm.Dialect(d)), Names: endpoint.FurtherFields[:]}
	}
	return all
}()

// minUserLimit is the smallest limit of an upstream for a user's id, in bytes.
const minUserLimit = 64

// ReadRequest parses a request of a client's dialect other than Gemini's: strict JSON, one object,
// none of its routing fields twice. The upstream or the translation validates
// all other fields. The body is not parsed again for an upstream of the same
// dialect.
func ReadRequest(d llm.Dialect, body []byte) (*Request, error) {
	a, set, err := readFields(d, body)
	if err != nil {
		return nil, err
	}
	if a.Model, _, err = set.String("model"); err != nil || a.Model == "" {
		return nil, apierr.Invalid("model", "model is required.")
	}
	if a.Stream, _, err = set.Bool("stream"); err != nil {
		return nil, apierr.Invalid("stream", "stream must be a boolean.")
	}
	if d == llm.Chat && (!set.Has("messages") || llm.FlatTools(set.Raw("tools"))) {
		if other, err := readOtherShape(a, set.Has("messages")); other != nil || err != nil {
			return other, err
		}
	}
	client := d.Client()
	if client.MessagesArray && set.Get(client.Messages[0]).Kind != jsonscan.Array {
		return nil, apierr.Invalid(client.Messages[0], "%s must be an array.", client.Messages[0])
	}
	a.LongUser = max(len(set.Raw("user")), len(set.Raw("safety_identifier"))) > minUserLimit
	switch {
	case client.UsageOnDemand:
		a.WantsUsage = a.Stream && gjson.GetBytes(set.Raw("stream_options"), "include_usage").Type == gjson.True
		switch v := set.Get("stream_options"); v.Kind {
		case jsonscan.Absent, jsonscan.Null, jsonscan.Object:
			a.mayAskUsage = a.Stream && !a.WantsUsage
		}
	case d == llm.Responses:
		if set.Has("previous_response_id") {
			if a.Previous, _, err = set.String("previous_response_id"); err != nil || a.Previous == "" {
				return nil, apierr.Invalid("previous_response_id", "previous_response_id must be a string.")
			}
		}
		background, _, err := set.Bool("background")
		if err != nil {
			return nil, apierr.Invalid("background", "background must be a boolean.")
		}
		stored, given, err := set.Bool("store")
		if err != nil {
			return nil, apierr.Invalid("store", "store must be a boolean.")
		}
		a.Compacts = a.marked.Has(llm.CompactionMark) && llm.AsksForCompaction(set.Raw("input"))
		a.Background = background
		a.Unstored = given && !stored && !background
		a.Stateful = a.Previous != "" || background || set.Has("conversation") || set.Has("prompt")
	}
	return a, nil
}

// readFields reads the routing fields of a request.
func readFields(d llm.Dialect, body []byte) (*Request, jsonscan.Set, error) {
	read := &struct { // one allocation
		Request
		found jsonscan.Marked
	}{Request: Request{Dialect: d, Body: body, WantsUsage: true}}
	a := &read.Request
	a.marked = &read.found
	set, err := jsonscan.ReadMarked(body, &marks[d], a.marked, d.Client().Routing...)
	if err != nil {
		return nil, set, endpoint.BadJSON(err)
	}
	a.modelAt = set.Get("model").Span
	a.readSession(&set)
	return a, set, nil
}

// ReadGemini parses a request of the Gemini dialect, as ReadRequest. The URL names the
// model, and says whether the answer is a stream.
func ReadGemini(model string, stream bool, body []byte) (*Request, error) {
	a, set, err := readFields(llm.Gemini, body)
	if err != nil {
		return nil, err
	}
	a.Model, a.Stream = model, stream
	if k := set.Get("contents").Kind; k != jsonscan.Array && k != jsonscan.Object {
		return nil, apierr.Invalid("contents", "contents must be an array.")
	}
	a.HideThoughts = true
	for _, name := range [...]string{"generationConfig", "generation_config"} {
		for _, path := range [...]string{"thinkingConfig.includeThoughts", "thinking_config.include_thoughts"} {
			if gjson.GetBytes(set.Raw(name), path).Type == gjson.True {
				a.HideThoughts = false
			}
		}
	}
	return a, nil
}

// readOtherShape reads a request to the chat endpoint that has the form of another
// dialect, as Cursor sends (docs/reference/clients.md, 6.3): input in place of
// messages, or flat tools. It returns nil for one that has neither messages nor
// input.
func readOtherShape(a *Request, messages bool) (*Request, error) {
	if !messages && !gjson.GetBytes(a.Body, "input").Exists() {
		return nil, nil
	}
	body, dropped, err := llm.ToChat(a.Body, messages, a.Model)
	if err != nil {
		return nil, err
	}
	chat, err := ReadRequest(llm.Chat, body)
	if err == nil {
		chat.Dropped = dropped
	}
	return chat, err
}

// Handler returns the endpoint of a client's dialect other than Gemini's: it reads a request
// and answers it. The answer's model is the upstream's; x-weir-model is the target that
// answered. See docs/reference/api-shapes.md, 3, 8.
func (d *Proxy) Handler(dialect llm.Dialect) endpoint.Handler {
	return func(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
		body, err := c.ReadBody()
		if err != nil {
			return nil, err
		}
		req, err := ReadRequest(dialect, body)
		if err != nil {
			return nil, err
		}
		result, err := d.Answer(ctx, c, req)
		if err != nil {
			return nil, err
		}
		return result.Response, nil
	}
}
