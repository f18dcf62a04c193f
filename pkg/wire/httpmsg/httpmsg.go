// Package httpmsg holds the request and the response as they cross the bridge
// between the platform and Go.
//
// The types are lighter than those of net/http (no URL parsing, no header
// maps, no canonical names): on this runtime they save about a fifth of the
// CPU of a call. A request is read once, by one goroutine.
package httpmsg

import (
	"context"
	"io"
	"time"

	"weir/pkg/wire/socket"
	"weir/pkg/wire/stream"
)

// Field is one header field. Name is in lower case.
type Field struct{ Name, Value string }

// Header is a list of fields in the order they arrived. It is never joined or
// split at commas: two fields of one name stay two.
type Header []Field

// Get returns the first value of name, which must be in lower case, or "".
func (h Header) Get(name string) string {
	for i := range h {
		if h[i].Name == name {
			return h[i].Value
		}
	}
	return ""
}

// Set replaces every field of name by one.
func (h *Header) Set(name, value string) {
	h.Del(name)
	*h = append(*h, Field{name, value})
}

// Add appends a field and keeps those of the same name.
func (h *Header) Add(name, value string) { *h = append(*h, Field{name, value}) }

// Del removes every field of name.
func (h *Header) Del(name string) {
	kept := (*h)[:0]
	for _, f := range *h {
		if f.Name != name {
			kept = append(kept, f)
		}
	}
	*h = kept
}

// Request is a client's request.
type Request struct {
	ID     string // of this request, sent back as x-request-id
	Route  string // the matched pattern, "/v1/embeddings"
	Method string
	Path   string // canonical path of the URL, percent-encoded by the platform
	Query  string // without the question mark, percent-encoded
	Origin string // scheme and host of the gateway as the client addressed it
	Header Header // the allow-listed fields of the client, lower case
	Body   io.ReadCloser
	Length int64 // of the body as declared by the client; -1 when it did not say
	Start  time.Time
	// Memory is the memory that an upstream's answer is counted against. May be nil.
	Memory stream.Memory
}

// Response is an answer to a client.
//
// Body is read natively and moved by the host on the edge: nil, a
// *stream.Bytes, an upstream's body as it is, or another body of
// pkg/wire/stream.
//
// The host sends the fields of Template, if there is one, and those of Header. No
// name is in both.
type Response struct {
	Status   int
	Template *Template
	Header   Header // belongs to the response
	Body     io.ReadCloser
	// Upgrade continues the connection as a WebSocket. Status is 101 then, and Body nil.
	Upgrade *socket.Upgrade
	// After runs once the body or the WebSocket has ended, or once the host has taken
	// over a body that Go does not observe. It may call the host. The client does not wait for it.
	After []func(ctx context.Context)
}

// Get returns the first value of a header field of the response, whose name must be
// in lower case, or "".
func (r *Response) Get(name string) string {
	if r.Template != nil {
		if v := r.Template.Fields.Get(name); v != "" {
			return v
		}
	}
	return r.Header.Get(name)
}

// Template is the constant part of the header of a kind of answers. There are as many
// as there are kinds, and one lives as long as the program that made it, so a host may
// keep each in a form of its own and copy that for an answer.
type Template struct {
	Fields Header // never changed
	// Number is the host's name for its own form of the template; 0 until the host has
	// one. Only the host uses it.
	Number int32
}
