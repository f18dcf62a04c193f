package llm

import (
	"bytes"
	"encoding/json"

	"weir/pkg/wire/apierr"
)

// AppendError appends the body of a failed call, JSON, as the clients of the dialect read
// it. requestID is that of the answer's header.
func (d Dialect) AppendError(dst []byte, e *apierr.Error, requestID string) []byte {
	return dialects[d].writeError(dst, e, requestID)
}

// ErrorSchema returns the name of the body of AppendError in the description of the API.
func (d Dialect) ErrorSchema() string { return dialects[d].errorSchema }

// IDField reports whether the clients of the dialect read the request's id in the header
// field request-id too.
func (d Dialect) IDField() bool { return dialects[d].idField }

// ClientError returns an error as the clients of the dialect expect it: to those that
// recognize an unknown model by the status, it is a 404 and not a 400.
func (d Dialect) ClientError(e *apierr.Error) *apierr.Error {
	if !dialects[d].unknown404 || e.Status != 400 || e.Code != "model_not_found" {
		return e
	}
	missing := *e
	missing.Status = 404
	return &missing
}

// ModelInURL reports whether the URL of a request names the model, "MODEL:METHOD", and
// its body does not.
func (d Dialect) ModelInURL() bool { return dialects[d].modelInURL }

type openAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
		DocURL  string  `json:"doc_url,omitempty"`
	} `json:"error"`
}

// appendOpenAIError appends {"error":{message,type,param,code}}.
func appendOpenAIError(dst []byte, e *apierr.Error, _ string) []byte {
	var o openAIError
	o.Error.Message, o.Error.Type, o.Error.DocURL = e.Message, e.Type, e.DocURL
	if e.Param != "" {
		o.Error.Param = &e.Param
	}
	if e.Code != "" {
		o.Error.Code = &e.Code
	}
	return appendJSON(dst, o)
}

type messagesError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string          `json:"type"`
		Message string          `json:"message"`
		Param   string          `json:"param,omitempty"` // of another vendor's error
		Code    string          `json:"code,omitempty"`
		Details json.RawMessage `json:"details,omitempty"`
		DocURL  string          `json:"doc_url,omitempty"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

// appendMessagesError appends {"type":"error","error":{type,message},"request_id"}.
func appendMessagesError(dst []byte, e *apierr.Error, requestID string) []byte {
	m := messagesError{Type: "error", RequestID: requestID}
	m.Error.Type, m.Error.Message, m.Error.Details = apierr.MessagesType(e.Status), e.Message, json.RawMessage(e.Details)
	m.Error.DocURL = e.DocURL
	if e.Own {
		m.Error.Type, m.Error.Param, m.Error.Code = e.Type, e.Param, e.Code
	}
	return appendJSON(dst, m)
}

// appendGeminiError appends {"error":{code,message,status,details}}.
func appendGeminiError(dst []byte, e *apierr.Error, _ string) []byte { return e.AppendGemini(dst) }

// appendJSON appends strings and JSON that is valid, which cannot fail. A message shows
// <alias>/<model> as it is written.
func appendJSON(dst []byte, v any) []byte {
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
