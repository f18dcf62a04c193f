package contentcoding

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"weir/pkg/wire/stream"
)

var decoder = Decoder{Brotli: func(r io.Reader) io.Reader { return brotli.NewReader(r) }}

var codings = []string{"gzip", "br", "zstd"}

// encode encodes parts, each flushed by itself.
func encode(t testing.TB, coding string, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: 18})
	case "zstd":
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	for _, p := range parts {
		if _, err := io.WriteString(w, p); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(coding string, body []byte) ([]byte, error) {
	return io.ReadAll(decoder.NewReader(coding, io.NopCloser(bytes.NewReader(body)), Call{}))
}

func TestDecode(t *testing.T) {
	text := strings.Repeat(`{"role":"user","content":"hello"},`, 5000)
	for _, coding := range codings {
		for _, body := range []string{"{}", text} {
			raw := encode(t, coding, body)
			for name, src := range map[string]io.Reader{"whole": bytes.NewReader(raw), "byte by byte": iotest.OneByteReader(bytes.NewReader(raw))} {
				got, err := io.ReadAll(decoder.NewReader(coding, io.NopCloser(src), Call{}))
				if err != nil || string(got) != body {
					t.Errorf("%s %s: %d bytes, %v; want %d", coding, name, len(got), err, len(body))
				}
			}
		}
	}
}

func TestBadBodies(t *testing.T) {
	lost := errors.New("lost")
	for _, coding := range codings {
		raw := encode(t, coding, strings.Repeat("hello, world ", 1000))
		for name, body := range map[string][]byte{
			"empty": nil, "not encoded": []byte(`{"model":"m"}`), "cut": raw[:len(raw)/2], "one byte": raw[:1],
		} {
			if got, err := decode(coding, body); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s %s: %d bytes, %v", coding, name, len(got), err)
			}
		}
		src := io.MultiReader(bytes.NewReader(raw[:len(raw)/2]), iotest.ErrReader(lost))
		if _, err := io.ReadAll(decoder.NewReader(coding, io.NopCloser(src), Call{})); err != lost {
			t.Errorf("%s: a body that breaks off: %v", coding, err)
		}
	}
}

// The memory of a decoder is acquired before it is taken, and released at the end.
// endless is a body that repeats its bytes.
type endless struct {
	again []byte
	at, n int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.again[e.at:])
	e.at, e.n = (e.at+n)%len(e.again), e.n+n
	return n, nil
}

func TestBodyWithoutOutputEnds(t *testing.T) {
	for coding, again := range map[string][]byte{
		"gzip": encode(t, "gzip", ""),
		"zstd": {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0}, // a frame without content
	} {
		const limit = 1 << 20
		body := &endless{again: again}
		_, err := io.ReadAll(Decoder{}.NewReader(coding, io.NopCloser(io.LimitReader(body, 4*limit)), Call{MaxEncoded: limit}))
		if !errors.Is(err, stream.ErrTooLarge) || body.n > limit+64<<10 {
			t.Errorf("%s: %v after %d bytes", coding, err, body.n)
		}
	}
}

func TestWindowIsAcquired(t *testing.T) {
	for _, tt := range []struct {
		coding string
		window int64
	}{{"br", 256 << 10}, {"zstd", 256 << 10}, {"gzip", 0}} {
		raw := encode(t, tt.coding, strings.Repeat("a", 300<<10), "b")
		var acquired int64
		released := 0
		r := decoder.NewReader(tt.coding, io.NopCloser(bytes.NewReader(raw)), Call{Acquire: func(n int64) error { acquired += n; return nil }, Release: func() { released++ }})
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if acquired != tt.window || released != min(1, int(tt.window)) {
			t.Errorf("%s: acquired %d, released %d times", tt.coding, acquired, released)
		}
		refused := errors.New("no memory")
		r = decoder.NewReader(tt.coding, io.NopCloser(bytes.NewReader(raw)), Call{Acquire: func(int64) error { return refused }})
		if _, err := io.ReadAll(r); tt.window > 0 && err != refused {
			t.Errorf("%s: without memory: %v", tt.coding, err)
		}
		released = 0
		r = decoder.NewReader(tt.coding, io.NopCloser(bytes.NewReader(raw)), Call{Acquire: func(int64) error { return nil }, Release: func() { released++ }})
		r.Read(make([]byte, 10))
		r.Close()
		if released != min(1, int(tt.window)) {
			t.Errorf("%s: closed early, released %d times", tt.coding, released)
		}
	}
}

// zstdFrame is the head of a frame with a window of 2 to the power of bits.
func zstdFrame(bits byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, 0xFD2FB528), 0, (bits-10)<<3, 3, 0, 0, 'x')
}

func TestLargeWindowIsRefused(t *testing.T) {
	if _, err := decode("zstd", zstdFrame(25)); !errors.Is(err, ErrWindow) {
		t.Errorf("got %v", err)
	}
	// Nor may a later frame have a larger one than the first.
	if _, err := decode("zstd", append(encode(t, "zstd", "a", "b"), zstdFrame(24)...)); !errors.Is(err, ErrWindow) {
		t.Errorf("got %v", err)
	}
}

// A short body that stands for a long one is decoded no further than it is read.
func TestOutputIsNotAhead(t *testing.T) {
	for _, coding := range codings {
		raw := encode(t, coding, strings.Repeat("\x00", 64<<20))
		pauses := 0
		r := decoder.NewReader(coding, io.NopCloser(bytes.NewReader(raw)), Call{Pause: func() { pauses++ }})
		if n, err := io.CopyN(io.Discard, r, 1<<20); n != 1<<20 || err != nil {
			t.Fatalf("%s: %d, %v", coding, n, err)
		}
		allocs := testing.AllocsPerRun(1, func() {
			if _, err := io.CopyN(io.Discard, r, 8<<20); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 500 {
			t.Errorf("%s: %.0f allocations for 8 MiB", coding, allocs)
		}
		if pauses < 15 || pauses > 17 { // 17 MiB, AllocsPerRun reads twice
			t.Errorf("%s: %d pauses", coding, pauses)
		}
		r.Close()
	}
}

// The bytes of clients are of any form; reading them ends, with linear output.
func FuzzDecode(f *testing.F) {
	for i, coding := range codings {
		f.Add(uint8(i), encode(f, coding, "hello", " world"))
	}
	f.Add(uint8(2), zstdFrame(20))
	f.Fuzz(func(t *testing.T, coding uint8, body []byte) {
		r := decoder.NewReader(codings[int(coding)%len(codings)], io.NopCloser(bytes.NewReader(body)), Call{})
		if _, err := io.Copy(io.Discard, io.LimitReader(r, 4<<20)); err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrWindow) {
			t.Fatal(err)
		}
		r.Close()
	})
}

// A client that states a large window, and then sends nothing, has no decoder's memory.
func TestLargeWindowIsAcquiredForAWholeBody(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000)
	for _, coding := range []string{"br", "zstd"} {
		for _, bytewise := range []bool{false, true} {
			encoded := encode(t, coding, text[:500_000], text[500_000:])
			var src io.Reader = bytes.NewReader(encoded)
			if bytewise {
				src = iotest.OneByteReader(src)
			}
			var order []string
			r := decoder.NewReader(coding, io.NopCloser(src), Call{
				MaxEncoded: int64(len(encoded)),
				Whole: func(body io.ReadCloser) ([]byte, error) {
					order = append(order, "whole")
					return io.ReadAll(body)
				},
				Acquire: func(int64) error { order = append(order, "acquire"); return nil },
			})
			got, err := io.ReadAll(r)
			if string(got) != text || err != nil || strings.Join(order, " ") != "whole acquire" {
				t.Errorf("%s: %d bytes, %v, %q", coding, len(got), err, order)
			}
			for want, read := range map[error]func(io.ReadCloser) ([]byte, error){
				stream.ErrIdle:     func(io.ReadCloser) ([]byte, error) { return nil, stream.ErrIdle },
				stream.ErrTooLarge: func(io.ReadCloser) ([]byte, error) { return make([]byte, len(encoded)), nil },
			} {
				r := decoder.NewReader(coding, io.NopCloser(bytes.NewReader(encoded)), Call{
					MaxEncoded: int64(len(encoded)), Whole: read,
					Acquire: func(int64) error { t.Error("memory was acquired"); return nil },
				})
				if _, err := io.ReadAll(r); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", coding, err, want)
				}
			}
		}
	}
	r := decoder.NewReader("gzip", io.NopCloser(bytes.NewReader(encode(t, "gzip", text))), Call{
		Whole: func(io.ReadCloser) ([]byte, error) { t.Error("gzip has a small window"); return nil, nil },
	})
	if got, err := io.ReadAll(r); string(got) != text || err != nil {
		t.Errorf("gzip: %d bytes, %v", len(got), err)
	}
}

// A long body is decoded into memory of its length, and not into one that grows.
func TestDecodedBodyTakesItsLength(t *testing.T) {
	for _, coding := range codings {
		for _, n := range []int{0, 100, inOnePass - 1, inOnePass, inOnePass + 1, 5 << 20} {
			text := strings.Repeat("ab", n/2) + strings.Repeat("c", n%2)
			raw := encode(t, coding, text)
			released := 0
			r := decoder.NewReader(coding, io.NopCloser(bytes.NewReader(raw)), Call{
				MaxEncoded: 1 << 20,
				Whole:      func(body io.ReadCloser) ([]byte, error) { return io.ReadAll(body) },
				Release:    func() { released++ },
			})
			var acquired int64
			m := stream.Metered{ReadCloser: r, Length: -1, Grow: func(total int64, _ bool) error {
				if total > 2*inOnePass && total < int64(n) {
					t.Errorf("%s %d: a part of %d bytes is acquired", coding, n, total)
				}
				acquired = total
				return nil
			}}
			all, err := m.ReadAll(8 << 20)
			if err != nil || string(all) != text || acquired != int64(n) || released != 1 {
				t.Errorf("%s %d: %d bytes, %v, acquired %d, released %d times", coding, n, len(all), err, acquired, released)
			}
			if n > inOnePass && cap(all) != n {
				t.Errorf("%s %d: a buffer of %d bytes", coding, n, cap(all))
			}
			r = decoder.NewReader(coding, io.NopCloser(bytes.NewReader(raw)), Call{Whole: func(body io.ReadCloser) ([]byte, error) { return io.ReadAll(body) }})
			m.ReadCloser = r
			if _, err := m.ReadAll(int64(n) - 1); n > 0 && err != stream.ErrTooLarge {
				t.Errorf("%s %d, over the limit: %v", coding, n, err)
			}
		}
	}
}
