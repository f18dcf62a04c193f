package eventstream

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
)

// vector is one of the test vectors of AWS's SDKs.
type vector struct {
	Name    string
	OK      bool
	Encoded string
	Headers []struct {
		Name, Type string
		Value      any
	}
	Body string
}

func vectors(t testing.TB) []vector {
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func (v *vector) bytes(t testing.TB) []byte {
	b, err := hex.DecodeString(v.Encoded)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// value prints a header's value as the vectors have it.
func value(h *Header) string {
	switch h.Type {
	case True, False:
		return fmt.Sprint(h.Type == True)
	case UUID:
		return fmt.Sprintf("%x-%x-%x-%x-%x", h.Value[:4], h.Value[4:6], h.Value[6:8], h.Value[8:10], h.Value[10:])
	case Bytes, String:
		return string(h.Value)
	}
	var n int64
	switch h.Type {
	case Byte:
		n = int64(int8(h.Value[0]))
	case Int16:
		n = int64(int16(binary.BigEndian.Uint16(h.Value)))
	case Int32:
		n = int64(int32(binary.BigEndian.Uint32(h.Value)))
	default:
		n = int64(binary.BigEndian.Uint64(h.Value))
	}
	return fmt.Sprint(n)
}

var errCut = errors.New("eventstream: the stream ends inside a message")

// finish returns nil if the stream may end here, errCut inside a message, or the error of Err.
func finish(r *Reader) error {
	if r.err == nil && len(r.in) > 0 {
		return errCut
	}
	return r.err
}

var typeNames = [types]string{"boolean", "boolean", "byte", "short", "integer", "long", "binary", "string", "timestamp", "uuid"}

func TestSDKVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			var r Reader
			var m Message
			r.Push(v.bytes(t))
			if got := r.Next(&m); got != v.OK {
				t.Fatalf("read %v (%v), want %v", got, r.Err(), v.OK)
			}
			if !v.OK {
				if !errors.Is(r.Err(), ErrCorrupt) || finish(&r) == nil {
					t.Errorf("error %v", r.Err())
				}
				return
			}
			if string(m.Payload) != v.Body || len(m.Headers) != len(v.Headers) {
				t.Fatalf("payload %q, %d headers", m.Payload, len(m.Headers))
			}
			for i, want := range v.Headers {
				h := &m.Headers[i]
				wantValue := fmt.Sprint(want.Value)
				if f, ok := want.Value.(float64); ok {
					wantValue = fmt.Sprint(int64(f))
				}
				if string(h.Name) != want.Name || typeNames[h.Type] != want.Type || value(h) != wantValue {
					t.Errorf("header %s %s %s, want %v", h.Name, typeNames[h.Type], value(h), want)
				}
			}
			if got := Append(nil, m.Headers, m.Payload); !bytes.Equal(got, v.bytes(t)) {
				t.Errorf("written again: %x\nwant %s", got, v.Encoded)
			}
			if err := finish(&r); err != nil {
				t.Error(err)
			}
		})
	}
}

// script reads a stream cut into pieces of n bytes and tells what came.
func script(stream []byte, n int) string {
	var r Reader
	var m Message
	var out strings.Builder
	for len(stream) > 0 {
		k := min(n, len(stream))
		piece := bytes.Clone(stream[:k]) // a piece is only good until Next returns false
		r.Push(piece)
		for r.Next(&m) {
			fmt.Fprintf(&out, "%s %s|", m.Get(":event-type"), m.Payload)
		}
		for i := range piece {
			piece[i] = 0xee
		}
		stream = stream[k:]
	}
	fmt.Fprint(&out, finish(&r))
	return out.String()
}

func recording() []byte {
	b := Event(nil, "messageStart", []byte(`{"role":"assistant"}`))
	for i := range 20 {
		b = Event(b, "contentBlockDelta", fmt.Appendf(nil, `{"contentBlockIndex":0,"delta":{"text":"%s"}}`, strings.Repeat("é", i*17)))
	}
	return Event(b, "messageStop", []byte(`{"stopReason":"end_turn"}`))
}

func TestEveryCutResultsInTheSameMessages(t *testing.T) {
	whole := recording()
	want := script(whole, len(whole))
	if strings.Count(want, "|") != 22 || !strings.HasSuffix(want, "<nil>") {
		t.Fatalf("whole: %s", want)
	}
	for n := 1; n < 700; n++ {
		if got := script(whole, n); got != want {
			t.Fatalf("pieces of %d: got\n%s\nwant\n%s", n, got, want)
		}
	}
}

func TestStreamEndingInsideMessageIsCut(t *testing.T) {
	whole := Event(nil, "messageStop", []byte(`{}`))
	for n := 1; n < len(whole); n++ {
		if got := script(whole[:n], 5); got != errCut.Error() {
			t.Fatalf("%d bytes: %s", n, got)
		}
	}
}

func TestFlippedBitIsDetected(t *testing.T) {
	whole := Event(nil, "metadata", []byte(`{"usage":{}}`))
	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		var r Reader
		var m Message
		r.Push(b)
		if r.Next(&m) || r.Err() == nil {
			t.Fatalf("bit %d: read %v, error %v", i, m, r.Err())
		}
	}
}

// framed makes a message with right checksums around any headers.
func framed(headers []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(frameLen+len(headers)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, headers...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func prelude(total, headers uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, total)
	b = binary.BigEndian.AppendUint32(b, headers)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		want error
	}{
		{"shorter_than_its_frame", prelude(15, 0), ErrCorrupt},
		{"html", []byte("<html>no</html>"), ErrCorrupt},
		{"headers_longer_than_the_message", prelude(100, 85), ErrCorrupt},
		{"lengths_that_overflow", prelude(16, 1<<32-1), ErrCorrupt},
		{"over_the_limit_before_its_bytes_arrive", prelude(8<<20+1, 0), ErrTooLarge},
		{"largest_length", prelude(1<<32-1, 0), ErrTooLarge},
		{"headers_over_the_formats_limit", prelude(1<<20, 128<<10+1), ErrTooLarge},
		{"empty_name", framed([]byte{0, 0}), ErrCorrupt},
		{"name_past_the_end", framed([]byte{9, 'a'}), ErrCorrupt},
		{"no_type", framed([]byte{1, 'a'}), ErrCorrupt},
		{"unknown_type", framed([]byte{1, 'a', 10}), ErrCorrupt},
		{"short_integer", framed([]byte{1, 'a', 5, 0, 0, 0}), ErrCorrupt},
		{"missing_length_of_string", framed([]byte{1, 'a', 7, 0}), ErrCorrupt},
		{"string_past_the_end", framed([]byte{1, 'a', 7, 0, 3, 'x', 'y'}), ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r Reader
			var m Message
			r.Push(tt.in)
			if r.Next(&m) || !errors.Is(r.Err(), tt.want) {
				t.Fatalf("read %v, error %v, want %v", m, r.Err(), tt.want)
			}
			// Nothing follows a broken message.
			r.Push(recording())
			if r.Next(&m) || !errors.Is(finish(&r), tt.want) || r.rest != nil {
				t.Error("a broken stream went on")
			}
		})
	}
}

func TestConfiguredLimit(t *testing.T) {
	b := Event(nil, "x", make([]byte, 100))
	for _, tt := range []struct {
		limit int
		ok    bool
	}{{len(b), true}, {len(b) - 1, false}} {
		r := Reader{MaxMessage: tt.limit}
		var m Message
		r.Push(b)
		if r.Next(&m) != tt.ok {
			t.Errorf("limit %d: %v", tt.limit, r.Err())
		}
	}
}

func TestExceptionsAndErrorsKeepTheirNames(t *testing.T) {
	var r Reader
	var m Message
	r.Push(Exception(nil, "throttlingException", []byte(`{"message":"slow down"}`)))
	if !r.Next(&m) || string(m.Get(":message-type")) != "exception" || string(m.Get(":exception-type")) != "throttlingException" || m.Get(":event-type") != nil {
		t.Errorf("%v", m)
	}
}

func TestOversizedHeadersAreOmitted(t *testing.T) {
	b := Append(nil, []Header{
		{Name: nil, Type: String}, {Name: bytes.Repeat([]byte("n"), 256), Type: True},
		{Name: []byte("a"), Type: Int32, Value: []byte{1}}, {Name: []byte("b"), Type: 77},
		{Name: []byte("c"), Type: String, Value: make([]byte, 1<<16)}, {Name: []byte("d"), Type: False},
	}, nil)
	var r Reader
	var m Message
	r.Push(b)
	if !r.Next(&m) || len(m.Headers) != 1 || string(m.Headers[0].Name) != "d" {
		t.Errorf("%v %v", m, r.Err())
	}
}

func FuzzReader(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.bytes(f), 3)
	}
	f.Add(recording(), 17)
	f.Add(framed([]byte{1, 'a', 7, 0, 3, 'x', 'y'}), 1)
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		if n < 1 {
			n = 1
		}
		if got, want := script(stream, n), script(stream, len(stream)+1); got != want {
			t.Errorf("pieces of %d: got\n%s\nwant\n%s", n, got, want)
		}
		// A message that is read and written again is unchanged.
		var r Reader
		var m Message
		r.Push(stream)
		at := 0
		for r.Next(&m) {
			b := Append(nil, m.Headers, m.Payload)
			if !bytes.HasPrefix(stream[at:], b) {
				t.Fatalf("written again: %x", b)
			}
			at += len(b)
		}
	})
}
