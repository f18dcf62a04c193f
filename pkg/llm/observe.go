package llm

import (
	"bytes"
	"errors"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

// Bounds of what an Observer keeps of one line. A longer line, as the end of a
// long Responses stream is, is searched for its usage in passing.
const (
	maxSeenLine = 64 << 10
	overlap     = 4 << 10 // more than a usage object has
)

// Observer reads along with a stream of the client's own dialect that passes
// byte for byte: it is a stream.Watcher. It takes the pieces in any size, also
// the whole stream at once, parses only the lines that matter, and keeps at
// most about 128 KiB.
type Observer struct {
	dialect Dialect
	line    []byte // the begun line, or the last of a long one
	head    []byte // the beginning of a long line
	kind    []byte // of the event field
	long    bool
	lf      bool // a CR ended the last line
	within  bool // the last line was not blank: an event is begun
	done    bool
	closed  bool // something came after the line that ended the stream
	stopped bool // a finish or stop reason came, and no text after it
	usage   Usage
	failure *apierr.Error
	seen    bool
}

var _ stream.Watcher = (*Observer)(nil)

// Observe makes the observer of one stream. d is Chat, Responses or Messages.
func Observe(d Dialect, opt Options) *Observer {
	return &Observer{dialect: d}
}

// Usage gives what the stream has told so far.
func (o *Observer) Usage() Usage { return o.usage }

// Failure gives the error that the stream held or ended with, or nil.
func (o *Observer) Failure() *apierr.Error { return o.failure }

// Complete tells whether the stream came to its proper end.
func (o *Observer) Complete() bool { return o.done && o.failure == nil }

// Sample sees the next piece.
func (o *Observer) Sample(piece []byte) {
	if len(piece) > 0 {
		o.seen = true
	}
	noCR := bytes.IndexByte(piece, '\r') < 0
	for len(piece) > 0 && !o.done {
		if o.lf {
			o.lf = false
			if piece[0] == '\n' {
				piece = piece[1:]
				continue
			}
		}
		end := -1
		if noCR {
			end = bytes.IndexByte(piece, '\n')
		} else {
			for i, b := range piece {
				if b == '\n' || b == '\r' {
					end, o.lf = i, b == '\r'
					break
				}
			}
		}
		if end < 0 {
			o.keep(piece)
			return
		}
		if len(o.line) == 0 && !o.long {
			o.ended(piece[:end])
		} else {
			o.keep(piece[:end])
			o.ended(o.line)
		}
		o.line, o.long = o.line[:0], false
		piece = piece[end+1:]
	}
	if o.done && o.lf && len(piece) > 0 && piece[0] == '\n' {
		o.lf, piece = false, piece[1:]
	}
	o.closed = o.closed || o.done && len(piece) > 0
}

// keep adds to the begun line. Of a long one only the end is kept, after the
// rest was searched.
func (o *Observer) keep(part []byte) {
	for len(part) > 0 {
		n := min(len(part), maxSeenLine-len(o.line))
		o.line = append(o.line, part[:n]...)
		part = part[n:]
		if len(o.line) == maxSeenLine {
			if !o.long {
				o.long = true
				o.head = append(o.head[:0], o.line[:512]...)
			}
			o.search(o.line)
			copy(o.line, o.line[maxSeenLine-overlap:])
			o.line = o.line[:overlap]
		}
	}
}

var (
	usageName = []byte(`"usage"`)
	errorName = []byte(`"error"`)
	dataField = []byte("data:")
	nameField = []byte("event:")
)

// search finds a usage object in a part of a long line.
func (o *Observer) search(part []byte) {
	for {
		i := bytes.Index(part, usageName)
		if i < 0 {
			return
		}
		part = part[i+len(usageName):]
		j := 0
		for j < len(part) && (part[j] == ' ' || part[j] == ':') {
			j++
		}
		v := gjson.ParseBytes(part[j:min(len(part), j+overlap)])
		if v.Get("input_tokens").Type == gjson.Number {
			if o.dialect == Messages {
				o.usage.merge(messagesUsage(v))
			} else {
				o.usage.merge(responsesUsage(v))
			}
		} else if v.Get("prompt_tokens").Type == gjson.Number {
			o.usage.merge(chatUsage(gjson.Parse(`{"usage":` + v.Raw + `}`)))
		}
	}
}

// ended reads a whole line.
func (o *Observer) ended(line []byte) {
	if len(line) == 0 {
		o.kind, o.within = o.kind[:0], false
		return
	}
	o.within = true
	if bytes.HasPrefix(line, nameField) {
		o.kind = append(o.kind[:0], bytes.TrimSpace(line[len(nameField):])...)
		return
	}
	if o.long {
		o.search(line)
		if !bytes.HasPrefix(o.head, dataField) {
			return
		}
		o.mark(o.kindOf(o.head[len(dataField):]), nil)
		return
	}
	if !bytes.HasPrefix(line, dataField) {
		return
	}
	data := bytes.TrimSpace(line[len(dataField):])
	if o.dialect == Chat {
		o.chat(data)
		return
	}
	o.mark(o.kindOf(data), data)
}

// kindOf gives the name of an event: of its event field, else its type.
func (o *Observer) kindOf(data []byte) string {
	if len(o.kind) > 0 {
		return view(o.kind)
	}
	return gjson.Get(view(data), "type").Str
}

// chat reads a chunk. Only one with usage or an error is parsed.
func (o *Observer) chat(data []byte) {
	if string(data) == "[DONE]" {
		o.done = true
		return
	}
	if o.stopped || !going(data) {
		o.finish(data)
	}
	if bytes.HasSuffix(data, []byte(`"usage":null}`)) && !bytes.HasPrefix(data, []byte(`{"error"`)) {
		return
	}
	if !has(data, usageName, errorName) || check(data) != nil {
		return
	}
	root := gjson.Parse(view(data))
	if u := chatUsage(root); u.Known {
		o.usage.merge(u)
	}
	if e := failureIn(root); e != nil && o.failure == nil {
		o.failure = e
	}
}

// going reports whether a chunk ends like most: without a finish reason. If it
// returns false, finish decides.
func going(data []byte) bool {
	data = bytes.TrimSuffix(data, []byte(`,"usage":null}`))
	return bytes.HasSuffix(bytes.TrimRight(data, "}]"), []byte(`"finish_reason":null`))
}

var reasonName = []byte(`"finish_reason"`)

// finish looks for a finish reason in a chunk, and for text after one: a stream
// of several choices ends with the last.
func (o *Observer) finish(data []byte) {
	at := bytes.Index(data, reasonName)
	if at < 0 {
		return
	}
	rest := bytes.TrimLeft(data[at+len(reasonName):], " :\t")
	if len(rest) > 2 && rest[0] == '"' && rest[1] != '"' {
		o.stopped = true
	} else if o.stopped && check(data) == nil {
		forEach(gjson.Get(view(data), "choices"), func(_, c gjson.Result) bool {
			forEach(c.Get("delta"), func(k, v gjson.Result) bool {
				o.stopped = o.stopped && (k.Str == "role" || v.Type != gjson.String && !v.IsArray() || len(v.Raw) <= 2)
				return true
			})
			return true
		})
	}
}

// mark reads an event of the other two dialects; data is nil when it was too
// long to keep.
func (o *Observer) mark(kind string, data []byte) {
	switch kind {
	case "message_start":
		if u := messagesUsage(gjson.Get(view(data), "message.usage")); u.Known {
			o.usage.merge(u)
		}
	case "message_delta":
		if u := lastUsage(gjson.Get(view(data), "usage")); u.Known {
			o.usage.merge(u)
		}
		o.stopped = o.stopped || str(gjson.Get(view(data), "delta.stop_reason")) != ""
	case "response.completed", "response.incomplete":
		if u := responsesUsage(gjson.Get(view(data), "response.usage")); u.Known {
			o.usage.merge(u)
		}
		o.done = true
	case "message_stop":
		o.done = true
	case "error", "response.failed":
		if o.failure != nil {
			break
		}
		o.failure = ofStatus(500)
		if data != nil && check(data) == nil {
			root := gjson.Parse(view(data))
			if kind == "response.failed" {
				root = root.Get("response")
			}
			if e := failureIn(root); e != nil {
				o.failure = e
			} else if kind == "error" {
				o.failure = ofStatus(statusIn(root))
				describe(o.failure, root)
			}
		}
		o.done = kind == "response.failed"
	}
}

// End gives what the client still has to be told: nothing after a proper end,
// the terminator if only that is missing, else the failure in its dialect. An
// event that was cut off is closed first.
func (o *Observer) End(cause error) []byte {
	if !errors.Is(cause, stream.ErrClient) && len(o.line) > 0 && !o.long && o.whole(o.line) {
		o.ended(o.line)
		o.line = o.line[:0]
		if o.done {
			return []byte("\n\n") // the end lacked its blank line
		}
	}
	if o.done {
		switch {
		case o.closed:
			return nil
		case o.lf: // a first LF would still be the last line's
			return []byte("\n\n")
		}
		return []byte("\n")
	}
	if errors.Is(cause, stream.ErrClient) {
		if o.failure == nil {
			o.failure = causeError(cause)
		}
		return nil
	}
	var out []byte
	if o.within || len(o.line) > 0 {
		out = append(out, "\n\n"...)
	}
	if cause == nil && o.stopped && o.failure == nil {
		// Only the terminator is missing.
		const done = "data: [DONE]"
		switch {
		case o.dialect == Chat && len(o.line) > 0 && bytes.HasPrefix([]byte(done), o.line):
			o.done = true
			return append(out[:0], done[len(o.line):]+"\n\n"...)
		case bytes.HasPrefix(o.line, dataField): // an event was cut
		case o.dialect == Chat:
			o.done = true
			return append(out, done+"\n\n"...)
		default:
			o.done = true
			return append(out, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
		}
	}
	if o.failure != nil {
		// The upstream told it; chat's frame lacks what ends it.
		if o.dialect == Chat {
			return append(out, "data: [DONE]\n\n"...)
		}
		return nil
	}
	o.failure = causeError(cause)
	return FailureFrame(out, o.dialect, o.failure)
}

// whole tells whether a line that no line end followed may be taken for one:
// an event's data that is cut off is not its event.
func (o *Observer) whole(line []byte) bool {
	if !bytes.HasPrefix(line, dataField) {
		return true
	}
	data := bytes.TrimSpace(line[len(dataField):])
	return o.dialect == Chat && string(data) == "[DONE]" || check(data) == nil
}

// has tells whether one of two names of seven bytes is in data, by skipping
// ahead (Boyer, Moore, Horspool).
func has(data, a, b []byte) bool {
	const n = 7
	for i := n - 1; i < len(data); i += int(skips[data[i]]) {
		if data[i] == '"' {
			if w := data[i-n+1 : i+1]; bytes.Equal(w, a) || bytes.Equal(w, b) {
				return true
			}
		}
	}
	return false
}

// skips tells how far the end of a seven-byte window may move on, by its last
// byte, without missing "usage" or "error" with their quotes.
var skips = func() (t [256]uint8) {
	for i := range t {
		t[i] = 7
	}
	for _, w := range [...]string{`"usage"`, `"error"`} {
		for i := 0; i < 6; i++ {
			if s := uint8(6 - i); s < t[w[i]] {
				t[w[i]] = s
			}
		}
	}
	return t
}()
