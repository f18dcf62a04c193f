package messages

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
)

// Client is what is known of the clients of Anthropic's Messages API.
var Client = ir.Client{
	Routing: []string{"model", "stream", "messages", "session_id", "metadata", "system"},
	System:  []string{"system"}, Messages: []string{"messages"}, MessagesArray: true,
	OutputLimits: []string{"max_completion_tokens", "max_tokens"}, Choices: []string{"n"},
	Answer: "content", Usage: "usage",
	Header:      clientheader.ToMessages,
	AppendError: appendError, ErrorSchema: "MessagesError", IDField: true, Unknown404: true,
	TooLong: ir.MessagesText, Compacts: compacts,
}

// compacts reports whether Claude Code recognizes an error as a context overflow.
func compacts(body []byte) bool { return ir.ClaudeCompacts(gjson.GetBytes(body, "error.message").Str) }

// appendError appends {"type":"error","error":{type,message,provider?,doc_url?},"request_id"}.
func appendError(dst []byte, e *apierr.Error, requestID string) []byte {
	type failure struct {
		Type     string          `json:"type"`
		Message  string          `json:"message"`
		Param    string          `json:"param,omitempty"` // of another vendor's error
		Code     string          `json:"code,omitempty"`
		Provider string          `json:"provider,omitempty"`
		Details  json.RawMessage `json:"details,omitempty"`
		DocURL   string          `json:"doc_url,omitempty"`
	}
	m := struct {
		Type      string  `json:"type"`
		Error     failure `json:"error"`
		RequestID string  `json:"request_id"`
	}{
		Type: "error",
		Error: failure{
			Type: apierr.MessagesType(e.Status), Message: e.Message, Details: json.RawMessage(e.Details), Provider: e.Provider,
			DocURL: e.DocURL,
		},
		RequestID: requestID,
	}
	if e.Own {
		m.Error.Type, m.Error.Param = e.Type, e.Param
		m.Error.Code, _ = e.ShownCode()
	}
	return ir.AppendJSON(dst, m)
}
