package llm

import (
	"bytes"
	"errors"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

// Bounds of what an Observer stores of one line. A longer line, like the last
// event of a long Responses stream, is searched for its usage as it passes.
const (
	maxSeenLine = 64 << 10
	overlap     = 4 << 10 // more than a usage object has
	longHead    = 8 << 10
)

// Observer reads a stream that passes byte for byte to a client of the
// upstream's dialect. It accepts parts of any size,
// also the whole stream at once, parses only the lines that matter, and stores
// at most about 128 KiB.
type Observer struct {
	dialect *dialect
	line    []byte // the current line, or the end of a long one
	head    []byte // the beginning of a long line
	kind    []byte // of the event field
	long    bool
	size    int  // of the long line
	lf      bool // a CR ended the last line
	inEvent bool // the last line was not blank: an event has begun
	closed  bool // bytes followed the line that ended the stream
	state   ir.Watched
}

// Observe returns the observer of one stream. d is a dialect that clients speak.
func Observe(d Dialect) *Observer {
	return &Observer{dialect: &dialects[d]}
}

// Usage returns the token counts that the stream has reported so far.
func (o *Observer) Usage() ir.Usage { return o.state.Usage }

// Failure returns the error that the stream held or ended with, or nil.
func (o *Observer) Failure() *apierr.Error { return o.state.Failure }

// Complete reports whether the stream has ended with its terminator.
func (o *Observer) Complete() bool { return o.state.Done && o.state.Failure == nil }

// Finish returns the finish or stop reason that the stream has had, as the upstream writes
// it, or "".
func (o *Observer) Finish() string { return o.state.Finish }

// Text returns the length of the text that the stream has had so far, with thoughts, the
// arguments of calls and the escapes of JSON.
func (o *Observer) Text() int { return o.state.Text }

// Sample reads the next part.
func (o *Observer) Sample(piece []byte) {
	for len(piece) > 0 && !o.state.Done {
		if o.lf {
			o.lf = false
			if piece[0] == '\n' {
				piece = piece[1:]
				continue
			}
		}
		begun := len(o.line) > 0 || o.long
		if !begun {
			if n := o.usual(piece); n > 0 {
				piece = piece[n:]
				continue
			}
		}
		end := sse.LineEnd(piece)
		if end < 0 {
			o.store(piece)
			return
		}
		o.lf = piece[end] == '\r'
		if !begun {
			o.readLine(piece[:end])
		} else {
			o.store(piece[:end])
			o.readLine(o.line)
		}
		o.line, o.long = o.line[:0], false
		piece = piece[end+1:]
	}
	if o.state.Done && o.lf && len(piece) > 0 && piece[0] == '\n' {
		o.lf, piece = false, piece[1:]
	}
	o.closed = o.closed || o.state.Done && len(piece) > 0
}

// usual returns the length of the line at the start of piece, and its end, if it is
// a chunk like the ones before.
func (o *Observer) usual(piece []byte) int {
	if o.state.Stopped || !o.state.Usual.Has || !bytes.HasPrefix(piece, usualField) {
		return 0
	}
	text, n := o.state.Usual.Prefix(piece[len(usualField):])
	if n += len(usualField); len(text) == 0 || n == len(piece) || piece[n] != '\n' {
		return 0
	}
	o.state.Text += len(text)
	o.inEvent = true
	return n + 1
}

// store adds to the current line. Of a long one only the end is stored, after
// the rest was searched.
func (o *Observer) store(part []byte) {
	for len(part) > 0 {
		n := min(len(part), maxSeenLine-len(o.line))
		o.line = append(o.line, part[:n]...)
		part = part[n:]
		if o.long {
			o.size += n
		}
		if len(o.line) == maxSeenLine {
			if !o.long {
				o.long, o.size = true, maxSeenLine
				o.head = append(o.head[:0], o.line[:longHead]...)
			}
			o.search(o.line)
			copy(o.line, o.line[maxSeenLine-overlap:])
			o.line = o.line[:overlap]
		}
	}
}

var (
	dataField = []byte("data:")
	// usualField begins the lines of most servers.
	usualField = []byte("data: ")
	nameField  = []byte("event:")
)

// search finds a usage object and a finish reason in a part of a long line.
func (o *Observer) search(part []byte) {
	if name := o.dialect.finishName; name != "" && bytes.Contains(part, []byte(name)) {
		o.state.Stopped = true
	}
	if o.dialect.seenBilled != nil {
		o.dialect.seenBilled(&o.state.Usage, part)
	}
	name := []byte(o.dialect.usageName)
	if len(name) == 0 {
		name = []byte(`"usage"`)
	}
	for {
		i := bytes.Index(part, name)
		if i < 0 {
			return
		}
		part = part[i+len(name):]
		j := 0
		for j < len(part) && (part[j] == ' ' || part[j] == ':') {
			j++
		}
		v := gjson.ParseBytes(part[j:min(len(part), j+overlap)])
		o.state.Usage.Merge(o.dialect.seenUsage(v))
	}
}

// readLine reads a whole line.
func (o *Observer) readLine(line []byte) {
	if len(line) == 0 {
		o.kind, o.inEvent = o.kind[:0], false
		return
	}
	o.inEvent = true
	if bytes.HasPrefix(line, nameField) {
		o.kind = append(o.kind[:0], bytes.TrimSpace(line[len(nameField):])...)
		return
	}
	if o.long {
		o.search(line)
		if !bytes.HasPrefix(o.head, dataField) {
			return
		}
		text := o.state.Text
		o.dialect.watch(&o.state, o.kind, o.head[len(dataField):], false)
		if o.state.Text > text { // it goes on in the rest of the line
			o.state.Text += o.size - len(o.head)
		}
		return
	}
	if !bytes.HasPrefix(line, dataField) {
		return
	}
	data := bytes.TrimSpace(line[len(dataField):])
	o.dialect.watch(&o.state, o.kind, data, true)
}

// Beat appends a heartbeat, unless an event has begun or the stream is over.
func (o *Observer) Beat(out []byte) []byte {
	over := o.state.Done || o.state.Failure != nil || o.state.Stopped && o.dialect.finishName != ""
	if o.inEvent || len(o.line) > 0 || o.long || over {
		return out
	}
	return append(out, o.dialect.heartbeat...)
}

// End returns what the client's stream still needs: nothing after a complete
// stream, the terminator if only that is missing, or the failure in its
// dialect. An incomplete event is closed first.
func (o *Observer) End(cause error) []byte {
	if !errors.Is(cause, stream.ErrClient) && len(o.line) > 0 && !o.long && o.isWhole(o.line) {
		o.readLine(o.line)
		o.line = o.line[:0]
		if o.state.Done {
			return []byte("\n\n") // the last event lacked its blank line
		}
	}
	if o.state.Done {
		switch {
		case o.closed:
			return nil
		case o.lf: // a first LF would still end the last line
			return []byte("\n\n")
		}
		return []byte("\n")
	}
	if errors.Is(cause, stream.ErrClient) {
		if o.state.Failure == nil {
			o.state.Failure = errorOf(cause)
		}
		return nil
	}
	var out []byte
	if o.inEvent || len(o.line) > 0 {
		out = append(out, "\n\n"...)
	}
	if whole := o.dialect.finishName != "" && len(o.line) == 0; (cause == nil || whole) && o.state.Stopped &&
		o.state.Failure == nil {
		// Only the terminator is missing, if the dialect has one.
		end := o.dialect.terminator
		switch line := strings.TrimRight(end, "\n"); {
		case len(o.line) > 0 && strings.HasPrefix(line, string(o.line)):
			o.state.Done = true
			return append(out[:0], end[len(o.line):]...)
		case bytes.HasPrefix(o.line, dataField): // an event is incomplete
		default:
			o.state.Done = true
			return append(out, end...)
		}
	}
	if o.state.Failure != nil {
		// The upstream sent the error; chat's stream also needs its terminator.
		if o.dialect.afterFailure == "" {
			return nil
		}
		return append(out, o.dialect.afterFailure...)
	}
	o.state.Failure = errorOf(cause)
	return o.dialect.failure(out, o.state.Failure)
}

// isWhole reports whether a line without a line end is complete: an event's
// data may be cut off.
func (o *Observer) isWhole(line []byte) bool {
	if !bytes.HasPrefix(line, dataField) {
		return true
	}
	data := bytes.TrimSpace(line[len(dataField):])
	return len(data) > 0 && string(data) == o.dialect.sentinel || ir.Check(data) == nil
}
