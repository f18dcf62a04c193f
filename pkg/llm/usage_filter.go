package llm

import (
	"bytes"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

var usageMember = []byte(`"usage"`)

// UsageFilter removes the chunk of a chat stream that has nothing but its usage, which
// the client has not asked for. All other bytes pass. It holds the line that has begun,
// up to maxSeenLine bytes.
type UsageFilter struct {
	line    []byte // begun
	long    bool   // it has been passed on
	removed bool   // the last line was removed, and a blank one after it is too
}

// Push appends the next part of the stream to out.
func (f *UsageFilter) Push(chunk, out []byte) []byte {
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n') + 1
		if end == 0 {
			return f.store(chunk, out)
		}
		line := chunk[:end]
		chunk = chunk[end:]
		if f.long {
			f.long = false
			out = append(out, line...)
			continue
		}
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line = f.line
		}
		blank := len(line) <= len("\r\n") && len(bytes.TrimRight(line, "\r\n")) == 0
		switch {
		case isUsage(line):
			f.removed = true
		case blank && f.removed:
			f.removed = false
		default:
			f.removed = false
			out = append(out, line...)
		}
		f.line = f.line[:0]
	}
	return out
}

// store keeps the beginning of a line. A long one, and one of a stream whose lines end
// with CR, passes.
func (f *UsageFilter) store(part, out []byte) []byte {
	if f.long || len(f.line)+len(part) > maxSeenLine || bytes.IndexByte(part[:len(part)-1], '\r') >= 0 {
		f.long = true
		out = append(append(out, f.line...), part...)
		f.line = f.line[:0]
		return out
	}
	f.line = append(f.line, part...)
	return out
}

// Begun reports whether the client has not received the beginning of a line.
func (f *UsageFilter) Begun() bool { return len(f.line) > 0 || f.removed }

// End appends what is still held.
func (f *UsageFilter) End(out []byte) []byte {
	out = append(out, f.line...)
	f.line = nil
	return out
}

// isUsage reports whether a line is a chunk without choices that has the usage:
//
//	data: {…,"choices":[],"usage":{…}}
func isUsage(line []byte) bool {
	if !bytes.HasPrefix(line, dataField) || !bytes.Contains(line, usageMember) {
		return false
	}
	data := bytes.TrimSpace(line[len(dataField):])
	if ir.Check(data) != nil {
		return false
	}
	root := gjson.Parse(ir.View(data))
	choices := root.Get("choices")
	return choices.IsArray() && choices.Get("#").Int() == 0 && root.Get("usage").IsObject()
}
