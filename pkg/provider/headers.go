package provider

import (
	"errors"
	"strconv"
	"strings"

	"weir/pkg/edge"
)

// maxValueBytes is the longest header value sent.
const maxValueBytes = 8 << 10

// SafeValue tells whether v may be sent as a header value: printable ASCII,
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

// SafeName tells whether n is a header name: RFC 9110's token, in lower case.
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

// RequestHeader gives the fields of a client's request that go upstream:
// content-type, accept, and those named in also (the version and beta fields
// of a dialect, idempotency-key for videos). No other field does; not even one
// of these when the client's Connection field names it.
func RequestHeader(client edge.Header, also ...string) edge.Header {
	out := make(edge.Header, 0, 8)
	for _, f := range client {
		if !sentUp(f.Name, also) || !SafeValue(f.Value) || perHop(client, f.Name) {
			continue
		}
		out = append(out, f)
	}
	return out
}

// sessions are the fields in which clients of a dialect identify their tool and
// session. A name that ends with "-" is a prefix.
var sessions = map[string][]string{
	"messages":  {"anthropic-", "x-claude-code-", "x-app"},
	"responses": {"x-codex-", "x-openai-", "openai-beta", "session_id", "session-id", "thread-id", "conversation_id", "originator"},
}

// SessionHeader returns the fields of a client of a dialect ("messages" or
// "responses") that go to an upstream of the same dialect besides those of
// RequestHeader: open lists, as the vendors' protocols for gateways ask for.
func SessionHeader(client edge.Header, dialect string) (out edge.Header) {
	for _, f := range client {
		for _, name := range sessions[dialect] {
			if f.Name != name && !(strings.HasSuffix(name, "-") && strings.HasPrefix(f.Name, name)) {
				continue
			}
			if !neverSent(f.Name) && SafeValue(f.Value) && !perHop(client, f.Name) {
				out = append(out, f)
			}
			break
		}
	}
	return out
}

// IdempotencyKey returns the client's idempotency key as it goes upstream, with
// another value for each further call, from 1 on, that a request is split into.
func IdempotencyKey(client edge.Header, part int) edge.Header {
	v := client.Get("idempotency-key")
	if v == "" || !SafeValue(v) || perHop(client, "idempotency-key") {
		return nil
	}
	if part > 0 {
		v += "-" + strconv.Itoa(part)
	}
	return edge.Header{{Name: "idempotency-key", Value: v}}
}

func sentUp(name string, also []string) bool {
	if name == "content-type" || name == "accept" {
		return true
	}
	for _, a := range also {
		if name == a {
			return !neverSent(name)
		}
	}
	return false
}

// neverSent guards the list of a caller against the fields that must not cross
// in any case.
func neverSent(name string) bool {
	switch name {
	case "authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "forwarded", "x-real-ip",
		"via", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect",
		"host", "content-length", "accept-encoding", "origin", "referer", hopField:
		return true
	}
	return strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "cf-")
}

// perHop tells whether the Connection field of h names a field.
func perHop(h edge.Header, name string) bool {
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

// ResponseHeader gives the fields of an upstream's answer that go to the
// client, and those that keep a browser from running what passes: content-type
// is one of a list or application/octet-stream, nosniff and a sandbox are
// added. Length and encoding of the body are never repeated: the platform has
// inflated it.
func ResponseHeader(upstream edge.Header) edge.Header {
	out := make(edge.Header, 0, 12)
	typed, size := false, 0
	for _, f := range upstream {
		switch {
		case f.Name == "content-type":
			if !typed {
				typed = true
				out = append(out, edge.Field{Name: "content-type", Value: ContentType(f.Value)})
			}
		case sentDown(f.Name) && SafeValue(f.Value):
			if size += len(f.Name) + len(f.Value); size <= maxNotes {
				out = append(out, f)
			}
		}
	}
	if !typed {
		out = append(out, edge.Field{Name: "content-type", Value: "application/octet-stream"})
	}
	return append(out,
		edge.Field{Name: "x-content-type-options", Value: "nosniff"},
		edge.Field{Name: "content-security-policy", Value: "sandbox"})
}

// ResponseNotes gives the same fields without anything about the body: for an
// answer whose body is our own.
func ResponseNotes(upstream edge.Header) edge.Header {
	var out edge.Header
	size := 0
	for _, f := range upstream {
		if !sentDown(f.Name) || !SafeValue(f.Value) {
			continue
		}
		if size += len(f.Name) + len(f.Value); size > maxNotes {
			break
		}
		if out == nil {
			out = make(edge.Header, 0, 8)
		}
		out = append(out, f)
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

// ContentType gives a content type that is safe to serve under our origin: the
// upstream's own when it is JSON, an event stream, plain text, audio, video, an
// image or bytes, else application/octet-stream.
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
		if rest, ok := strings.CutPrefix(media, p); ok && rest != "" && SafeName(rest) {
			return v
		}
	}
	return "application/octet-stream"
}

// hopField counts the gateways of our kind that a call has passed.
const hopField = "x-weir-hop"

// maxHops is the number of gateways after which a call is taken to go round in
// circles.
const maxHops = 3

// ErrLoop tells that a call has passed too many gateways: 508.
var ErrLoop = errors.New("the call goes round in circles between gateways")

// Hop gives the counter field of the upstream call that a client's call leads
// to. A client that has passed three gateways gives ErrLoop.
func Hop(client edge.Header) (edge.Field, error) {
	n := 0
	for _, f := range client {
		if f.Name != hopField {
			continue
		}
		if v, err := strconv.Atoi(f.Value); err == nil && v > n {
			n = v
		}
	}
	if n >= maxHops {
		return edge.Field{}, ErrLoop
	}
	if n == 0 {
		return edge.Field{Name: hopField, Value: "1"}, nil
	}
	return edge.Field{Name: hopField, Value: strconv.Itoa(n + 1)}, nil
}
