package ir

import (
	"bytes"
	"encoding/json"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
)

// Client is what is known of a dialect that clients speak besides its translation.
type Client struct {
	// Routing are the top-level fields of a request that decide how it is sent, and by which
	// its session is recognized. System and Messages are those of them with the system prompt
	// and the conversation, by all their names.
	Routing, System, Messages []string
	// MessagesArray reports that the first of Messages must be an array.
	MessagesArray bool
	// UsageOnDemand reports that clients get the usage of a stream only if they ask for it,
	// in stream_options.
	UsageOnDemand bool
	// OutputLimits are the fields that limit the output tokens: the largest counts, since
	// servers differ in which one they read, and in which of two with one name. Choices ask
	// for more than one answer. Config are the objects of a request that have them; nil means
	// the request itself.
	OutputLimits, Choices, Config []string

	// Answer is the member of a JSON answer with its content, an array, and Usage the one
	// with its usage. NoAnswer reports that an answer may come without the first.
	Answer, Usage string
	NoAnswer      bool
	// Header are the fields of a request that go to an upstream of the same dialect.
	Header clientheader.Upstreams

	// AppendError appends the body of a failed call, JSON. requestID is that of the answer's
	// header.
	AppendError func(dst []byte, e *apierr.Error, requestID string) []byte
	ErrorSchema string // its name in the description of the API
	// IDField reports that clients read the request's id in the header field request-id too.
	IDField bool
	// Unknown404 reports that clients recognize an unknown model by the status 404.
	Unknown404 bool
	// TooLong returns the message of an error, for a request that exceeds the model's context
	// in the form on which clients compact the conversation. Compacts reports whether a
	// vendor's own error, JSON with status 400, has such a form.
	TooLong  func(e *apierr.Error) string
	Compacts func(body []byte) bool
	// StreamsTooLong reports that a request for a stream that is too long, or too large for
	// the gateway, is refused by a stream that ends with such an error.
	StreamsTooLong bool
}

// Error returns an error as the clients expect it: an unknown model is a 404 for those that
// recognize it by the status, and not a 400.
func (c *Client) Error(e *apierr.Error) *apierr.Error {
	if !c.Unknown404 || e.Status != 400 || e.Code != "model_not_found" {
		return e
	}
	missing := *e
	missing.Status = 404
	return &missing
}

// AppendOpenAIError is Client.AppendError of OpenAI's dialects:
//
//	{"error":{message,type,param,code,provider?,doc_url?}}
func AppendOpenAIError(dst []byte, e *apierr.Error, _ string) []byte {
	type failure struct {
		Message  string  `json:"message"`
		Type     string  `json:"type"`
		Param    *string `json:"param"`
		Code     *string `json:"code"`
		Provider string  `json:"provider,omitempty"`
		DocURL   string  `json:"doc_url,omitempty"`
	}
	o := struct {
		Error failure `json:"error"`
	}{failure{Message: e.Message, Type: e.Type, Provider: e.Provider, DocURL: e.DocURL}}
	if e.Param != "" {
		o.Error.Param = &e.Param
	}
	if code, _ := e.ShownCode(); code != "" {
		o.Error.Code = &code
	}
	return AppendJSON(dst, o)
}

// AppendJSON appends a value of strings and valid JSON, which cannot fail. A message shows
// <alias>/<model> as it is written.
func AppendJSON(dst []byte, v any) []byte {
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
