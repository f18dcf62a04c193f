package provider

import (
	"errors"
	"strconv"
	"strings"

	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
)

// maxValueBytes is the longest header value sent.
const maxValueBytes = 8 << 10

// SafeValue reports whether v may be sent as a header value: printable ASCII,
// with tabs and blanks inside only, at most 8 KiB. The empty value is safe.
func SafeValue(v string) bool {
	if len(v) > maxValueBytes {
		return false
	}
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c > 0x20 && c < 0x7f:
		case (c == ' ' || c == '\t') && i > 0 && i < len(v)-1:
		default:
			return false
		}
	}
	return true
}

// SafeName reports whether n is a header name: RFC 9110's token, in lower case.
func SafeName(n string) bool {
	if len(n) == 0 || len(n) > 128 {
		return false
	}
	for i := 0; i < len(n); i++ {
		c := n[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return true
}

// RequestHeader returns the fields of a client's request that are forwarded to
// the upstreams in to, see package clientheader. A field is not forwarded if
// the client's Connection field names it.
func RequestHeader(client httpmsg.Header, to clientheader.Upstreams) httpmsg.Header {
	return AppendRequestHeader(make(httpmsg.Header, 0, 8), client, to)
}

// AppendRequestHeader appends the fields of RequestHeader.
func AppendRequestHeader(out, client httpmsg.Header, to clientheader.Upstreams) httpmsg.Header {
	for _, f := range client {
		if clientheader.Sent(f.Name, to) && SafeValue(f.Value) && !perHop(client, f.Name) {
			out = append(out, f)
		}
	}
	return out
}

// IdempotencyKey returns the client's idempotency key as it goes upstream, with
// another value for each further call, from 1 on, that a request is split into.
func IdempotencyKey(client httpmsg.Header, part int) httpmsg.Header {
	v := client.Get("idempotency-key")
	if v == "" || !SafeValue(v) || perHop(client, "idempotency-key") {
		return nil
	}
	if part > 0 {
		v += "-" + strconv.Itoa(part)
	}
	return httpmsg.Header{{Name: "idempotency-key", Value: v}}
}

// perHop reports whether the Connection field of h names a field.
func perHop(h httpmsg.Header, name string) bool {
	for _, f := range h {
		if f.Name != "connection" {
			continue
		}
		for v := range strings.SplitSeq(f.Value, ",") {
			if strings.EqualFold(strings.TrimSpace(v), name) {
				return true
			}
		}
	}
	return false
}

// ResponseHeader returns the fields of an upstream's response that are forwarded to the
// client, and fields that keep a browser from executing the body: content-type is one
// of a list or application/octet-stream, nosniff and a sandbox are added. Length and
// encoding of the body are never forwarded: the platform has decompressed it.
func ResponseHeader(upstream httpmsg.Header) httpmsg.Header {
	out := make(httpmsg.Header, 0, 12)
	typed, size := false, 0
	for _, f := range upstream {
		switch {
		case f.Name == "content-type":
			if !typed {
				typed = true
				out = append(out, httpmsg.Field{Name: "content-type", Value: ContentType(f.Value)})
			}
		case sentDown(f.Name) && SafeValue(f.Value):
			if size += len(f.Name) + len(f.Value); size <= maxNotes {
				out = append(out, f)
			}
		}
	}
	if !typed {
		out = append(out, httpmsg.Field{Name: "content-type", Value: "application/octet-stream"})
	}
	return append(out,
		httpmsg.Field{Name: "x-content-type-options", Value: "nosniff"},
		httpmsg.Field{Name: "content-security-policy", Value: "sandbox"})
}

// ResponseNotes returns the same fields without those about the body, for a response
// whose body the gateway writes.
func ResponseNotes(upstream httpmsg.Header) httpmsg.Header { return AppendNotes(nil, upstream) }

// AppendNotes appends the fields of ResponseNotes to those of a response.
func AppendNotes(out, upstream httpmsg.Header) httpmsg.Header {
	size := 0
	for _, f := range upstream {
		if !sentDown(f.Name) || !SafeValue(f.Value) {
			continue
		}
		if size += len(f.Name) + len(f.Value); size <= maxNotes {
			out = append(out, f)
		}
	}
	return out
}

// maxNotes bounds the fields of an upstream's answer that go to the client, in
// bytes: Node.js, for one, refuses an answer with more than 16 KiB of them.
const maxNotes = 10 << 10

func sentDown(name string) bool {
	switch name {
	case "retry-after", "retry-after-ms", "request-id", "x-request-id", "openai-processing-ms",
		"x-codex-turn-state", "x-reasoning-included": // Codex sends them back
		return true
	}
	return strings.HasPrefix(name, "x-ratelimit-") || strings.HasPrefix(name, "anthropic-ratelimit-")
}

// ContentType returns a content type that is safe to serve from the gateway's origin:
// the upstream's own if it is JSON, an event stream, plain text, audio, video, an image
// or bytes, else application/octet-stream.
func ContentType(v string) string {
	media, _, _ := strings.Cut(v, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if !SafeValue(v) {
		return "application/octet-stream"
	}
	switch media {
	case "application/json", "text/event-stream", "application/octet-stream", "text/plain":
		return v
	}
	for _, p := range [...]string{"audio/", "video/", "image/"} {
		if rest, ok := strings.CutPrefix(media, p); ok && SafeName(rest) {
			return v
		}
	}
	return "application/octet-stream"
}

// MaxHops is the number of gateways of this kind that a call may pass
// (docs/reference/reliability.md, T57).
const MaxHops = 3

// ErrLoop is the error for a call that has passed too many gateways: 508.
var ErrLoop = errors.New("the call goes round in circles between gateways")

// Hop returns the header field that counts gateways, for the upstream call of a
// client's call. The error is ErrLoop if the call has passed three gateways.
func Hop(client httpmsg.Header) (httpmsg.Field, error) {
	n := 0
	for _, f := range client {
		if f.Name != clientheader.Hop {
			continue
		}
		if v, err := strconv.Atoi(f.Value); err == nil {
			n = max(n, v)
		}
	}
	if n >= MaxHops {
		return httpmsg.Field{}, ErrLoop
	}
	if n == 0 {
		return httpmsg.Field{Name: clientheader.Hop, Value: "1"}, nil
	}
	return httpmsg.Field{Name: clientheader.Hop, Value: strconv.Itoa(n + 1)}, nil
}
