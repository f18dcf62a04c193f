package bedrock

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"weir/pkg/llm"
	"weir/pkg/wire/eventstream"
	"weir/pkg/wire/stream"
)

// client returns what a chat client gets of a Converse stream.
func client(body []byte, cut error) (string, *llm.Translator) {
	tr := llm.Stream(llm.Converse, llm.Chat, llm.Options{ID: "r"})
	src := iotest.OneByteReader(bytes.NewReader(body))
	if cut != nil {
		src = &failing{src, cut}
	}
	return through(src, &Chain{First: &Frames{}, Then: tr}), tr
}

// failing ends with an error where src ends.
type failing struct {
	src interface{ Read([]byte) (int, error) }
	err error
}

func (f *failing) Read(d []byte) (int, error) {
	n, err := f.src.Read(d)
	if err != nil {
		err = f.err
	}
	return n, err
}

func TestConverseStreamForChatClient(t *testing.T) {
	whole := answer()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-20] ^= 1 // in the last message, after the answer
	early := bytes.Clone(whole)
	early[150] ^= 1
	tests := []struct {
		name string
		body []byte
		cut  error
		ok   bool
	}{
		{"whole", whole, nil, true},
		{"cut_in_a_message", whole[:200], nil, false},
		{"reset", whole[:200], errors.New("reset"), false},
		{"corrupt", early, nil, false},
		{"corrupt_at_the_end", flipped, nil, false},
		{"throttled", eventstream.Exception(bytes.Clone(whole[:120]), "throttlingException", []byte(`{"message":"slow"}`)), nil, false},
		{"empty", nil, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, tr := client(tt.body, tt.cut)
			if tr.Complete() != tt.ok || strings.Contains(out, `"error"`) == tt.ok || !strings.HasSuffix(out, "data: [DONE]\n\n") {
				t.Errorf("complete %v, failure %v\n%s", tr.Complete(), tr.Failure(), out)
			}
			if tt.ok && (!strings.Contains(out, "Grüße") || tr.Usage().Output != 2) {
				t.Errorf("%+v\n%s", tr.Usage(), out)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	b := eventstream.Exception(nil, "throttlingException", []byte(`{"message":"slow"}`))
	for n := range len(b) {
		if name, _, ok := First(b[:n]); ok {
			t.Fatalf("%d bytes: %s", n, name)
		}
	}
	name, data, ok := First(append(b, answer()...))
	if e := llm.FirstFailure(llm.Converse, []byte(name), data); !ok || e == nil || e.Status != 429 {
		t.Errorf("%s %s %v", name, data, e)
	}
	b[3] ^= 1
	name, data, ok = First(b)
	if e := llm.FirstFailure(llm.Converse, []byte(name), data); !ok || e == nil || e.Status != 502 {
		t.Errorf("%s %s %v", name, data, e)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(answer(), 5)
	f.Add(eventstream.Exception(nil, "throttlingException", []byte(`{"message":"slow"}`)), 1)
	f.Add(eventstream.Event(nil, "chunk", []byte(`{"bytes":"eyJ0eXBlIjoicGluZyJ9"}`)), 3)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		frames := &Frames{}
		var pieces []byte
		for rest := body; len(rest) > 0; {
			k := min(max(n, 1), len(rest))
			pieces = frames.Push(rest[:k], pieces)
			rest = rest[k:]
		}
		if whole := through(bytes.NewReader(body), &Frames{}); whole != string(frames.End(nil, pieces)) {
			t.Errorf("in pieces\n%s\nwhole\n%s", pieces, whole)
		}
		// A client's stream always ends, and with an error unless the
		// upstream's has ended with its terminator.
		tr := llm.Stream(llm.Converse, llm.Chat, llm.Options{ID: "r"})
		out := through(bytes.NewReader(body), &Chain{First: &Frames{}, Then: tr})
		if !strings.HasSuffix(out, "data: [DONE]\n\n") || tr.Complete() != (tr.Failure() == nil) {
			t.Errorf("%q", out)
		}
	})
}

var _ stream.Transform = (*llm.Translator)(nil)
