package proxy

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/llm"
	"weir/pkg/provider/bedrock"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// maxHead is the maximum number of bytes of a stream that are stored until its
// first event. A longer event is not read.
const maxHead = 1 << 20

// begin reads a stream up to its first event. An error there counts as an
// answer of its status; a body that is not an event stream is an invalid answer
// (docs/reference/reliability.md, F26). The bytes read go to the client first.
func (a *attempt) begin(resp *upstream.Response) error {
	f := firstEvent{a: a, body: resp.Body, alive: min(a.call.Machine.Settings.FirstEvent(), commentLimit).Milliseconds()}
	err := f.read()
	a.call.Memory.Drop(memory.Line)
	if err != nil {
		return err
	}
	if a.parsed.whole != nil {
		return nil
	}
	a.parsed.events = true
	if f.came {
		a.call.Trace.FirstMs = max(a.proxy.Now().Sub(a.call.Start).Milliseconds(), 1)
	}
	resp.Body = &stream.Prefix{Head: f.head, Rest: resp.Body}
	return nil
}

// commentLimit is how long the first event may take while the upstream sends
// only comments, which are then passed to the client.
const commentLimit = 30 * time.Second

// firstEvent reads the beginning of a stream.
type firstEvent struct {
	a            *attempt
	body         io.Reader
	head         []byte
	in           sse.Reader
	came         bool  // the first event has come
	known        bool  // what kind of body it is has been seen
	start, alive int64 // Unix milliseconds of the first comment; how long they may go on
}

func (f *firstEvent) read() error {
	f.head = make([]byte, 0, 4<<10)
	for {
		from := len(f.head)
		if cap(f.head)-from < 1<<10 {
			if n := int64(2 * cap(f.head)); n > memory.Uncounted {
				if err := f.a.call.Memory.Acquire(f.a.ctx, memory.Line, memory.Both(2*n)); err != nil {
					return err
				}
			}
			f.head = slices.Grow(f.head, cap(f.head))
		}
		n, err := f.body.Read(f.head[from:cap(f.head)])
		f.head = f.head[:from+n]
		if n > 0 {
			if done, bad := f.look(f.head[from:]); done || bad != nil {
				f.came = done
				return bad
			}
		}
		switch {
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return f.ended()
		case err != nil:
			return err
		case len(f.head) > maxHead, f.in.Comments > 0 && f.commented():
			// The upstream is alive; the client gets its events from here on.
			return nil
		}
	}
}

// commented reports whether the upstream has sent only comments for too long.
func (f *firstEvent) commented() bool {
	now := f.a.proxy.Now().UnixMilli()
	f.start = cmp.Or(f.start, now)
	return now-f.start > f.alive
}

// look reads the next part. done reports that the stream may be accepted.
func (f *firstEvent) look(piece []byte) (done bool, err error) {
	if f.a.api.frames {
		name, data, ok := bedrock.First(f.head)
		if !ok {
			return false, nil
		}
		d := f.a.api.dialect
		if strings.HasSuffix(name, "Exception") {
			d = llm.Converse // the frames' own, whatever they hold
		}
		return true, failure(d, []byte(name), data)
	}
	if !f.known {
		switch shapeOf(f.head) {
		case jsonBody:
			return true, f.json()
		case otherBody:
			if f.head[len(f.head)-1] <= ' ' && len(f.head) < 64 || len(f.head) < 7 {
				return false, nil // not enough to tell
			}
			return false, endpoint.BadBody(nil)
		}
		f.known = true
		piece = f.head
	}
	f.in.Push(piece)
	var ev sse.Event
	for f.in.Next(&ev) {
		if string(ev.Name) == "ping" {
			continue
		}
		return true, f.event(&ev)
	}
	if f.in.Err() != nil {
		return false, endpoint.BadBody(f.in.Err())
	}
	return false, nil
}

func (f *firstEvent) event(ev *sse.Event) error {
	if err := failure(f.a.api.dialect, ev.Name, ev.Data); err != nil {
		return err
	}
	if f.a.api.dialect == llm.Gemini { // each event has the form of an answer
		return f.a.filtered(ev.Data)
	}
	if f.a.api.dialect == llm.Responses {
		f.a.parsed.id = gjson.GetBytes(ev.Data, "response.id").Str
	}
	return nil
}

func failure(d llm.Dialect, name, data []byte) error {
	if e := llm.FirstFailure(d, name, data); e != nil {
		return e
	}
	return nil
}

// ended reads a stream that has ended before its first event did.
func (f *firstEvent) ended() error {
	var ev sse.Event
	if f.known && f.in.Finish(&ev) {
		return f.event(&ev)
	}
	return apierr.New(502, "bad_upstream_body", "The provider ended the stream without an answer. Try again.")
}

// json reads a JSON answer to a request for a stream: an error, or the answer
// of a server that does not stream, which becomes a stream.
func (f *firstEvent) json() error {
	rest, err := stream.ReadAll(&stream.Prefix{Head: f.head, Rest: io.NopCloser(f.body)}, maxAnswer)
	if err != nil {
		return err
	}
	a := f.a
	if err = a.filtered(rest); err != nil {
		return err
	}
	a.parsed.answer = rest
	a.parsed.whole, a.parsed.usage, err = llm.Replay(a.api.dialect, a.req.Dialect, rest, a.opt)
	return err
}
