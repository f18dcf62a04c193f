package proxy

import (
	"errors"
	"strings"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// overflow returns the answer to a request that failed. One that is too long for
// the model is refused in the form on which tools compact the conversation,
// whatever the upstream said: 400 with the client's own code or text, and for a
// stream of the Responses dialect, as OpenAI's own, a stream that ends with
// response.failed. See docs/reference/clients.md, 12.
func (x *exchange) overflow(err error) (*Result, error) {
	var e *apierr.Error
	if !errors.As(err, &e) || !x.overflows(e) {
		return nil, err
	}
	o := *e
	o.Status, o.Type, o.Code = 400, "invalid_request_error", ir.CodeContextLength
	client := x.req.Dialect.Client()
	own := len(e.Body) > 0 && e.Status == 400 && client.Compacts(e.Body) // the vendor's own body tells the client
	o.Message = client.TooLong(&o)
	o.Body = nil
	switch {
	case x.req.Stream && x.req.Dialect == llm.Responses:
	case own:
		return nil, err
	default:
		return nil, &o
	}
	x.call.Trace.Err = &o
	body := llm.FailedStream(llm.Responses, llm.Options{ID: strings.TrimPrefix(x.call.ID, "req_"), Model: x.req.Model, Now: x.proxy.Now().Unix()}, &o)
	return &Result{Response: &httpmsg.Response{
		Status: 200,
		Header: append(httpmsg.Header{{Name: "content-type", Value: eventStream}}, o.Header...),
		Body:   stream.FromBytes(body),
	}}, nil
}

// overflows reports whether a failure means that the request is too long. Codex
// compacts on nothing but a context overflow, so for its streams that holds for
// every request that is too large, too.
func (x *exchange) overflows(e *apierr.Error) bool {
	return e.Code == ir.CodeContextLength && e.Status < 500 ||
		e.Status == 413 && e.Code != "rate_limit_exceeded" && x.req.Stream && x.req.Dialect == llm.Responses
}
