// Package bedrock translates the binary streams of Amazon Bedrock into
// server-sent events.
package bedrock

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/eventstream"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

// Frames is a stream.Transform from application/vnd.amazon.eventstream to
// text/event-stream:
//
//	event: <:event-type or :exception-type>
//	data: <payload>
//
// Of an :error message the name is its code and the data {"message"}. A chunk
// of InvokeModelWithResponseStream, {"bytes": base64}, becomes the event of the
// model's own dialect that it holds, named by its type if it has one.
// A corrupt stream results in one event corruptStreamException and nothing
// after it; one that ends inside a message just ends, without the terminator
// that its reader waits for.
type Frames struct {
	stream.Plain
	in     eventstream.Reader
	m      eventstream.Message
	broken bool
}

// Push translates the next part.
func (f *Frames) Push(chunk, out []byte) []byte {
	f.in.Push(chunk)
	for f.in.Next(&f.m) {
		name, data := describe(&f.m)
		out = sse.Named(out, name, data)
	}
	if err := f.in.Err(); err != nil && !f.broken {
		f.broken = true
		out = sse.Named(out, corrupt, []byte(corruptData))
	}
	return out
}

// End adds nothing.
func (f *Frames) End(_ error, out []byte) []byte { return out }

const (
	corrupt     = "corruptStreamException"
	corruptData = `{"message":"The provider's event stream is corrupt."}`
)

// describe returns the name of a message and its JSON.
func describe(m *eventstream.Message) (name string, data []byte) {
	data = m.Payload
	switch string(m.Get(":message-type")) {
	case "exception":
		name = string(m.Get(":exception-type"))
	case "error":
		name = string(m.Get(":error-code"))
		data = append(jsonscan.Quote([]byte(`{"message":`), string(m.Get(":error-message"))), '}')
	default:
		name = string(m.Get(":event-type"))
	}
	if name == "chunk" {
		if inside := unpack(data); inside != nil {
			data, name = inside, gjson.GetBytes(inside, "type").Str
		}
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	if !jsonscan.Valid(data) {
		// It would end the line of an event, or be taken for a terminator.
		data = append(jsonscan.Quote([]byte(`{"message":`), string(data)), '}')
	}
	if kind := string(m.Get(":message-type")); kind == "exception" || kind == "error" {
		if !isName(name) {
			name = "unknown"
		}
		if !strings.HasSuffix(name, "Exception") {
			name += "Exception"
		}
	} else if !isName(name) {
		name = ""
	}
	return name, data
}

// unpack returns the JSON inside a chunk, or nil.
func unpack(payload []byte) []byte {
	b, err := base64.StdEncoding.DecodeString(gjson.GetBytes(payload, "bytes").Str)
	if err != nil || len(b) == 0 || !jsonscan.Valid(b) {
		return nil
	}
	return b
}

// isName reports whether a name may be written on an event line.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-') {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// Chain combines two transforms: the output of First is the input of Then.
type Chain struct {
	stream.Plain
	First, Then stream.Transform
	mid         []byte
}

// Push applies both transforms to the next part.
func (c *Chain) Push(chunk, out []byte) []byte {
	c.mid = c.First.Push(chunk, c.mid[:0])
	if len(c.mid) == 0 {
		return out
	}
	return c.Then.Push(c.mid, out)
}

// Beat appends a heartbeat of Then.
func (c *Chain) Beat(out []byte) []byte { return c.Then.Beat(out) }

// End ends both, in order.
func (c *Chain) End(cause error, out []byte) []byte {
	c.mid = c.First.End(cause, c.mid[:0])
	if len(c.mid) > 0 {
		out = c.Then.Push(c.mid, out)
	}
	return c.Then.End(cause, out)
}
