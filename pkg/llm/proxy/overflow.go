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
// stream of some dialects a stream that ends with the error. See docs/reference/clients.md, 12.
func (x *exchange) overflow(err error) (*Result, error) {
	var e *apierr.Error
	client := x.req.Dialect.Client()
	streams := x.req.Stream && client.StreamsTooLong
	if !errors.As(err, &e) || !overflows(e, streams) {
		return nil, err
	}
	o := *e
	o.Status, o.Type, o.Code = 400, "invalid_request_error", ir.CodeContextLength
	own := len(e.Body) > 0 && e.Status == 400 && client.Compacts(e.Body) // the vendor's own body tells the client
	o.Message = client.TooLong(&o)
	o.Body = nil
	switch {
	case streams:
	case own:
		return nil, err
	default:
		return nil, &o
	}
	x.call.Trace.Err = &o
	opt := llm.Options{ID: strings.TrimPrefix(x.call.ID, "req_"), Model: x.req.Model, Now: x.proxy.Now().Unix()}
	body := llm.FailedStream(x.req.Dialect, opt, &o)
	return &Result{Response: &httpmsg.Response{
		Status: 200,
		Header: append(httpmsg.Header{{Name: "content-type", Value: eventStream}}, o.Header...),
		Body:   stream.FromBytes(body),
	}}, nil
}

// overflows reports whether a failure means that the request is too long. Where clients get
// that as a stream, it holds for every request that is too large, too.
func overflows(e *apierr.Error, streams bool) bool {
	return e.Code == ir.CodeContextLength && e.Status < 500 ||
		streams && e.Status == 413 && e.Code != "rate_limit_exceeded"
}
