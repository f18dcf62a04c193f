package llm

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// Dialogue reads the bodies of a call of chat at an endpoint, as its client has sent and received
// them. q or a is nil if that body cannot be read: it is of another endpoint or has only its
// beginning. Of a stream a has what came.
func Dialogue(endpoint, request, answer string) (q *ir.Request, a *ir.Answer) {
	var d Dialect
	switch {
	case endpoint == "/v1/chat/completions":
		d = Chat
	case endpoint == "/v1/messages":
		d = Messages
	case endpoint == "/v1/responses":
		d = Responses
	case strings.HasPrefix(endpoint, "/v1beta/"):
		d = Gemini
	default:
		return nil, nil
	}
	return dialogueRequest(d, request), dialogueAnswer(d, answer)
}

func dialogueRequest(d Dialect, body string) *ir.Request {
	root := gjson.Parse(body)
	pieces, err := ir.CountPieces([]byte(body))
	if err != nil || pieces > ir.MaxPieces || !root.IsObject() {
		return nil
	}
	q := &ir.Request{Fields: dialects[d].fields, Pieces: pieces}
	if dialects[d].read(root, q, &ir.Options{}) != nil || len(q.Messages) == 0 {
		return nil
	}
	return q
}

func dialogueAnswer(d Dialect, body string) *ir.Answer {
	if strings.HasPrefix(body, "{") {
		var a ir.Answer
		if readAnswer(&a, d, []byte(body), len(body), &ir.Options{}) != nil {
			return nil
		}
		return &a
	}
	c, _ := collect(d, []byte(body), &ir.Options{})
	c.Event(&ir.Event{Kind: ir.EventClose}) // the block that a cut has left open
	if len(c.a.Blocks) == 0 {
		return nil
	}
	return &c.a
}
