// Package tracecontext reads and writes the header fields of W3C Trace Context, level 1
// (https://www.w3.org/TR/trace-context/).
package tracecontext

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"weir/pkg/wire/httpmsg"
)

// The names of the fields.
const (
	Parent = "traceparent"
	State  = "tracestate"
)

// Sampled is the flag of a trace that is recorded.
const Sampled = 1

const (
	parentLen    = 55  // bytes of version 00
	maxState     = 512 // bytes of a tracestate that is passed on
	maxMembers   = 32
	requestStart = "req_"
)

// TraceID and SpanID are never all zero in what is exported.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// Context is the place of a call in a trace.
type Context struct {
	Trace TraceID
	Span  SpanID // the caller's; zero for a root
	Flags byte
}

// Parse reads the value of a traceparent field.
//
//	00-<32 hex>-<16 hex>-<2 hex>, all in lower case
//
// Of a later version the first 55 characters are read, if they are followed by nothing
// or by "-".
func Parse(s string) (c Context, ok bool) {
	if len(s) < parentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return c, false
	}
	var version, flags [1]byte
	if !decode(version[:], s[:2]) || !decode(c.Trace[:], s[3:35]) || !decode(c.Span[:], s[36:52]) ||
		!decode(flags[:], s[53:parentLen]) {
		return Context{}, false
	}
	c.Flags = flags[0]
	longer := len(s) > parentLen
	if version[0] == 0xff || longer && (version[0] == 0 || s[parentLen] != '-') ||
		c.Trace == (TraceID{}) || c.Span == (SpanID{}) {
		return Context{}, false
	}
	return c, true
}

// decode reads hexadecimal digits in lower case, two for each byte of to.
func decode(to []byte, digits string) bool {
	for i := range to {
		high, low := digit(digits[2*i]), digit(digits[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		to[i] = high<<4 | low
	}
	return true
}

func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// Of returns the traceparent field of a request, or "" if it has none, an invalid one or
// several.
func Of(h httpmsg.Header) string {
	value := ""
	for i := range h {
		if h[i].Name != Parent {
			continue
		}
		if value != "" {
			return ""
		}
		value = strings.Trim(h[i].Value, " \t")
		if _, ok := Parse(value); !ok {
			return ""
		}
	}
	return value
}

// StateOf returns what is passed on of a request's tracestate: whole members, at most 32
// and 512 bytes of them. The caller has a valid traceparent.
func StateOf(h httpmsg.Header) string {
	var out []byte
	members := 0
	for i := range h {
		if h[i].Name != State {
			continue
		}
		for m := range strings.SplitSeq(h[i].Value, ",") {
			m = strings.Trim(m, " \t")
			if m == "" {
				continue
			}
			if members == maxMembers || len(out)+1+len(m) > maxState || !isMember(m) {
				return string(out)
			}
			if members++; len(out) > 0 {
				out = append(out, ',')
			}
			out = append(out, m...)
		}
	}
	return string(out)
}

// isMember reports whether a text can be a member of a list, "key=value" in printable ASCII.
func isMember(m string) bool {
	for i := 0; i < len(m); i++ {
		if m[i] < 0x20 || m[i] > 0x7e {
			return false
		}
	}
	return strings.IndexByte(m, '=') > 0
}

// ForRequest returns the context of a request by its id and its traceparent, which may be
// "". Without one, the trace has the random digits of the request's id, so that each
// program that sees the id finds the same trace, and the caller's flags are those of a
// sampled one.
func ForRequest(id, parent string) Context {
	if c, ok := Parse(parent); ok {
		return c
	}
	c := Context{Flags: Sampled}
	if digits := strings.TrimPrefix(id, requestStart); len(digits) != 2*len(c.Trace) || !decode(c.Trace[:], digits) {
		copy(c.Trace[:], id) // of a request of another form
	}
	if c.Trace == (TraceID{}) {
		c.Trace[0] = 1
	}
	return c
}

// SpanOf returns the id of a span of a request: number 0 is the request, from 1 on its
// attempts. It depends on the request's id alone, so the gateway and the machine's object
// name a span alike without telling each other. It spreads the id by the finalizer of
// SplitMix64.
func SpanOf(id string, number int) (s SpanID) {
	own := ForRequest(id, "").Trace
	x := binary.BigEndian.Uint64(own[8:]) ^ binary.BigEndian.Uint64(own[:8])
	x += uint64(number+1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	if x ^= x >> 31; x == 0 {
		x = 1
	}
	binary.BigEndian.PutUint64(s[:], x)
	return s
}

// Field returns the value of a traceparent field.
func (c Context) Field() string {
	b := make([]byte, 0, parentLen)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.Span[:])
	b = append(b, '-')
	return string(hex.AppendEncode(b, []byte{c.Flags}))
}

// InRatio reports whether a trace belongs to a share of all traces, in percent: by the
// last 7 bytes of its id, which are random, so that all programs decide alike.
func (t TraceID) InRatio(percent float64) bool {
	const all = 1 << 56
	last := binary.BigEndian.Uint64(t[8:]) & (all - 1)
	return last < uint64(percent/100*all)
}
