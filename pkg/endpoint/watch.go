package endpoint

import (
	"bytes"
	"strings"

	"weir/pkg/accounts"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// StreamWatcher watches an event stream that passes unchanged. One that breaks off, or
// ends without any of its last events, gets an error event and [DONE], so that
// a client never takes it for complete (docs/reference/reliability.md, N1).
type StreamWatcher struct {
	stream.Plain
	Result *accounts.Result
	// Last are texts of which one is in the stream once it is complete:
	// `"type":"speech.audio.done"`. [DONE] always is one.
	Last []string

	tail  []byte
	seen  bool
	err   bool
	whole bool // the stream ended properly
}

// Watch returns the upstream's answer with its event stream observed by a
// StreamWatcher. The machine's idle limit ends a silent stream.
func Watch(m *snapshot.Machine, res *accounts.Result, last ...string) *httpmsg.Response {
	w := &StreamWatcher{Result: res, Last: last}
	return &httpmsg.Response{
		Status: res.Status, Header: provider.ResponseHeader(res.Header),
		Body: &stream.Through{Src: res.Body, T: w, Idle: m.Settings.Idle(), Watch: true},
	}
}

const maxTail = 256 // bytes kept for a text cut in two

// Push looks for a last event.
func (e *StreamWatcher) Push(chunk, out []byte) []byte {
	e.tail = append(e.tail, chunk...)
	for _, text := range e.Last {
		e.seen = e.seen || has(e.tail, text)
	}
	e.seen = e.seen || has(e.tail, "data: [DONE]") || has(e.tail, "data:[DONE]")
	e.err = e.err || has(e.tail, "\"error\":{") || has(e.tail, "event: error")
	if over := len(e.tail) - maxTail; over > 0 {
		e.tail = e.tail[:copy(e.tail, e.tail[over:])]
	}
	return append(out, chunk...)
}

// has finds a text, whatever the blanks after its colon.
func has(b []byte, text string) bool {
	if bytes.Contains(b, []byte(text)) {
		return true
	}
	name, value, ok := strings.Cut(text, `":`)
	return ok && bytes.Contains(b, []byte(name+`": `+value))
}

// End reports to the account how the stream ended.
func (e *StreamWatcher) End(cause error, out []byte) []byte {
	switch {
	case cause == stream.ErrClient:
		e.Result.Done(cause)
		return out
	case cause == nil && (e.seen || e.err):
		e.whole = e.seen && !e.err
		e.Result.Done(nil)
		return out
	case cause == nil:
		cause = stream.ErrReset
	}
	e.Result.Done(cause)
	return append(out, CutEvent...)
}

// CutEvent is what a stream that broke off ends with.
var CutEvent = []byte("\n\ndata: {\"error\":{\"message\":\"the provider's stream broke off\",\"type\":\"server_error\",\"param\":null,\"code\":\"upstream_cut\"}}\n\ndata: [DONE]\n\n")

// Refused is the 400 of a model whose provider does not do what is asked for.
func Refused(format string, args ...any) error {
	e := apierr.Invalid("model", format, args...)
	e.Code = "unsupported_endpoint"
	return e
}
