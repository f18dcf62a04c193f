package bedrock

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"weir/pkg/wire/eventstream"
	"weir/pkg/wire/sse"
	"weir/pkg/wire/stream"
)

func answer() []byte {
	b := eventstream.Event(nil, "messageStart", []byte(`{"role":"assistant"}`))
	b = eventstream.Event(b, "contentBlockDelta", []byte(`{"contentBlockIndex":0,"delta":{"text":"Grüße"},"p":"abc"}`))
	b = eventstream.Event(b, "messageStop", []byte(`{"stopReason":"end_turn"}`))
	return eventstream.Event(b, "metadata", []byte(`{"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}`))
}

const asEvents = `event: messageStart
data: {"role":"assistant"}

event: contentBlockDelta
data: {"contentBlockIndex":0,"delta":{"text":"Grüße"},"p":"abc"}

event: messageStop
data: {"stopReason":"end_turn"}

event: metadata
data: {"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}

`

func through(src io.Reader, t stream.Transform) string {
	b, err := io.ReadAll(&stream.Through{Src: io.NopCloser(src), T: t})
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestFramesBecomeEvents(t *testing.T) {
	for name, src := range map[string]io.Reader{
		"whole":        bytes.NewReader(answer()),
		"byte_by_byte": iotest.OneByteReader(bytes.NewReader(answer())),
		"halves":       iotest.HalfReader(bytes.NewReader(answer())),
	} {
		if got := through(src, &Frames{}); got != asEvents {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, asEvents)
		}
	}
}

func header(name, value string) eventstream.Header {
	return eventstream.Header{Name: []byte(name), Type: eventstream.String, Value: []byte(value)}
}

func TestFailuresBecomeEvents(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"exception", eventstream.Exception(nil, "throttlingException", []byte(`{"message":"slow"}`)), "event: throttlingException\ndata: {\"message\":\"slow\"}\n\n"},
		{"exception_without_a_body", eventstream.Exception(nil, "internalServerException", nil), "event: internalServerException\ndata: {}\n\n"},
		{"error", eventstream.Append(nil, []eventstream.Header{header(":message-type", "error"), header(":error-code", "InternalFailure"), header(":error-message", "a \"b\"\nc")}, nil),
			"event: InternalFailureException\ndata: {\"message\":\"a \\\"b\\\"\\nc\"}\n\n"},
		{"payload_is_not_json", eventstream.Event(nil, "metadata", []byte("a\n\ndata: [DONE]")), "event: metadata\ndata: {\"message\":\"a\\n\\ndata: [DONE]\"}\n\n"},
		{"name_with_a_line_break", eventstream.Exception(nil, "x\nevent: y", []byte(`{}`)), "event: unknownException\ndata: {}\n\n"},
		{"no_name", eventstream.Append(nil, nil, []byte(`{}`)), "data: {}\n\n"},
		{"chunk", eventstream.Event(nil, "chunk", []byte(`{"bytes":"eyJ0eXBlIjoicGluZyJ9","p":"abc"}`)), "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
		{"chunk_without_a_type", eventstream.Event(nil, "chunk", []byte(`{"bytes":"eyJhIjoxfQ=="}`)), "data: {\"a\":1}\n\n"},
		{"invalid_chunk", eventstream.Event(nil, "chunk", []byte(`{"bytes":"!"}`)), "event: chunk\ndata: {\"bytes\":\"!\"}\n\n"},
	}
	for _, tt := range tests {
		if got := through(bytes.NewReader(tt.in), &Frames{}); got != tt.want {
			t.Errorf("%s: got\n%q\nwant\n%q", tt.name, got, tt.want)
		}
	}
}

func TestCorruptStreamIsReportedOnce(t *testing.T) {
	b := answer()
	b[len(b)/2] ^= 1
	got := through(iotest.OneByteReader(bytes.NewReader(append(b, answer()...))), &Frames{})
	if strings.Count(got, "event: corruptStreamException\n") != 1 || strings.Contains(got, "metadata") {
		t.Errorf("%s", got)
	}
}

func TestCutStreamHasNoTerminator(t *testing.T) {
	b := answer()
	if got := through(bytes.NewReader(b[:len(b)-1]), &Frames{}); got != asEvents[:strings.Index(asEvents, "event: metadata")] {
		t.Errorf("%s", got)
	}
}

// lines counts the events of its input and writes how the stream ended.
type lines struct {
	stream.Plain
	in sse.Reader
	n  int
}

func (l *lines) Push(chunk, out []byte) []byte {
	l.in.Push(chunk)
	var ev sse.Event
	for l.in.Next(&ev) {
		l.n++
		out = append(append(out, ev.Name...), ' ')
	}
	return out
}

func (l *lines) End(cause error, out []byte) []byte {
	if cause != nil {
		return append(out, cause.Error()...)
	}
	return append(out, "end"...)
}

// last writes its input at the end only.
type last struct {
	stream.Plain
	input []byte
}

func (l *last) Push(chunk, out []byte) []byte  { l.input = append(l.input, chunk...); return out }
func (l *last) End(_ error, out []byte) []byte { return append(out, l.input...) }

func TestChainAppliesBothTransforms(t *testing.T) {
	l := &lines{}
	want := "messageStart contentBlockDelta messageStop metadata "
	if got := through(iotest.OneByteReader(bytes.NewReader(answer())), &Chain{First: &Frames{}, Then: l}); got != want+"end" || l.n != 4 {
		t.Errorf("%q", got)
	}
	// The output of the first at its end still goes through the second.
	if got := through(bytes.NewReader([]byte(asEvents)), &Chain{First: &last{}, Then: &lines{}}); got != want+"end" {
		t.Errorf("%q", got)
	}
	broken := io.MultiReader(bytes.NewReader(answer()), iotest.ErrReader(errors.New("reset")))
	if got := through(broken, &Chain{First: &Frames{}, Then: &lines{}}); got != want+stream.ErrReset.Error() {
		t.Errorf("%q", got)
	}
}
