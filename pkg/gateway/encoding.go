package gateway

import (
	"context"
	"io"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
)

// encodingOf returns the content coding of a request's body in lower case, "" for
// none.
func encodingOf(r *httpmsg.Request) string {
	enc := r.Header.Get("content-encoding")
	if enc == "" {
		return ""
	}
	if enc = strings.ToLower(strings.TrimSpace(enc)); enc == "identity" {
		return ""
	}
	return enc
}

// decodes reports whether the bodies of a route are decoded. Forms, which the host
// may hold, and the bodies of management routes are not.
func (g *Gateway) decodes(route *Route, enc string) bool {
	return g.Decoder.Knows(enc) && route.Access == endpoint.Data && route.MaxBody <= maxChat
}

// decodeBody makes a body that is encoded one that is not. Both lengths are limited as
// that of any other body.
func (g *Gateway) decodeBody(ctx context.Context, c *auth.Call) {
	r := c.Request
	enc := encodingOf(r)
	if enc == "" {
		return
	}
	r.Body = g.Decoder.NewReader(enc, r.Body, contentcoding.Call{
		MaxEncoded: c.MaxBody,
		Whole: func(body io.ReadCloser) ([]byte, error) {
			return c.Memory.ReadWhole(ctx, body, c.MaxBody)
		},
		Acquire: func(n int64) error {
			return c.Memory.Acquire(ctx, memory.Line, memory.Amount{Program: n})
		},
		Release: func() {
			c.Memory.Drop(memory.Line)
			c.Memory.Drop(memory.Form)
		},
		Pause: func() {
			if g.Memory != nil && g.Memory.Pause != nil {
				_ = g.Memory.Pause.Pause(ctx, 0) // the next read reports a client that has left
			}
		},
	})
	r.Length = -1
}
