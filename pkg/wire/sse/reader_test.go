package sse_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"weir/pkg/wire/sse"
)

// events reads a stream that comes in the given pieces, as "name|data".
func events(pieces ...[]byte) (list []string, err error) {
	var r sse.Reader
	var ev sse.Event
	for _, p := range pieces {
		// The reader must not refer to the piece afterwards.
		lent := bytes.Clone(p)
		r.Push(lent)
		for r.Next(&ev) {
			list = append(list, string(ev.Name)+"|"+string(ev.Data))
		}
		for i := range lent {
			lent[i] = 'X'
		}
	}
	for r.Finish(&ev) {
		list = append(list, string(ev.Name)+"|"+string(ev.Data))
	}
	return list, r.Err()
}

func TestFieldsFollowTheStandard(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"one_space_is_cut", "data:  a\n\ndata:b\n\n", []string{"| a", "|b"}},
		{"lines_are_joined", "data: a\ndata\ndata: b\n\n", []string{"|a\n\nb"}},
		{"event_without_data_is_ignored", "event: x\n\nevent: y\ndata: 1\n\n", []string{"y|1"}},
		{"empty_data_is_an_event", "data\n\ndata:\n\n", []string{"|", "|"}},
		{"the_last_name_counts", "event: x\nevent: y\ndata: 1\n\ndata: 2\n\n", []string{"y|1", "|2"}},
		{"comments_and_other_fields_pass", ": ping\n\nid: 7\nretry: 5\nfoo: x\n:\ndata: 1\n\n", []string{"|1"}},
		{"line_ends_mix", "data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\rdata: e\n\n", []string{"|a\nb\nc", "|d", "|e"}},
		{"a_mark_at_the_start_is_cut", "\uFEFFdata: a\n\n\uFEFFdata: b\n\n", []string{"|a"}},
		{"half_a_mark_is_text", "\xEF\xBBdata: a\n\ndata: b\n\n", []string{"|b"}},
		{"the_end_completes_an_event", "data: a\n\ndata: [DONE]", []string{"|a", "|[DONE]"}},
		{"the_end_completes_two_lines", "event: e\ndata: a\ndata: b", []string{"e|a\nb"}},
		{"nothing", "", nil},
		{"only_line_ends", "\n\r\n\r\r\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := events([]byte(tt.in))
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q %v, want %q", got, err, tt.want)
			}
		})
	}
}

// recordings are streams of every kind of line end and content.
func recordings(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) < 3 {
		t.Fatalf("recordings: %v %v", files, err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[f] = b
		all[f+" CRLF"] = bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
		all[f+" CR"] = bytes.ReplaceAll(b, []byte("\n"), []byte("\r"))
		all[f+" BOM"] = append([]byte("\uFEFF: hello\r\n\r\n"), b...)
	}
	return all
}

func TestEverySplitResultsInTheSameEvents(t *testing.T) {
	for name, b := range recordings(t) {
		want, err := events(b)
		if err != nil || len(want) < 4 {
			t.Fatalf("%s: %d events, %v", name, len(want), err)
		}
		check := func(how string, got []string, err error) {
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s %s: got %q %v, want %q", name, how, got, err, want)
			}
		}
		for i := 0; i <= len(b); i++ {
			got, err := events(b[:i], b[i:])
			check(fmt.Sprint("cut at ", i), got, err)
		}
		for size := 1; size < 9; size++ {
			var pieces [][]byte
			for i := 0; i < len(b); i += size {
				pieces = append(pieces, b[i:min(i+size, len(b))])
			}
			got, err := events(pieces...)
			check(fmt.Sprint("in pieces of ", size), got, err)
		}
	}
}

func TestLongLinesArriveWhole(t *testing.T) {
	for _, n := range []int{64<<10 + 1, 1<<20 + 1, sse.MaxLine - 6} {
		line := append(append([]byte("data: "), bytes.Repeat([]byte{'a'}, n)...), '\n', '\n')
		for _, cut := range []int{len(line), 1 << 15, n - 1} {
			got, err := events(line[:cut], line[cut:])
			if err != nil || len(got) != 1 || len(got[0]) != n+1 {
				t.Errorf("%d bytes cut at %d: %d events, %v", n, cut, len(got), err)
			}
		}
	}
}

func TestLimitsAreErrors(t *testing.T) {
	line := append([]byte("data: "), bytes.Repeat([]byte{'a'}, sse.MaxLine-5)...)
	long := append(bytes.Clone(line), '\n', '\n')
	for _, pieces := range [][][]byte{{long}, {long[:100], long[100:]}, {line, line, line}} {
		got, err := events(append([][]byte{[]byte("data: 1\n\n")}, pieces...)...)
		if err != sse.ErrLine || len(got) != 1 {
			t.Errorf("line: %d events, %v", len(got), err)
		}
	}
	part := []byte("data: " + strings.Repeat("a", 1<<20) + "\n")
	var pieces [][]byte
	for range 9 {
		pieces = append(pieces, part)
	}
	if got, err := events(pieces...); err != sse.ErrEvent || len(got) != 0 {
		t.Errorf("event: %d events, %v", len(got), err)
	}
	if got, err := events(append(pieces[:7], []byte("\n"))...); err != nil || len(got) != 1 || len(got[0]) != 7<<20+7 {
		t.Errorf("below the limit: %d events, %v", len(got), err)
	}
}

func TestEndlessLineUsesBoundedMemory(t *testing.T) {
	var r sse.Reader
	var ev sse.Event
	piece := bytes.Repeat([]byte{'a'}, 64<<10)
	for range 128 { // 8 MiB
		r.Push(piece)
		if r.Next(&ev) {
			t.Fatal("an event out of nothing")
		}
	}
	if r.Err() != sse.ErrLine {
		t.Fatal(r.Err())
	}
	if n := testing.AllocsPerRun(100, func() { r.Push(piece); r.Next(&ev) }); n != 0 {
		t.Errorf("%v allocations after the limit", n)
	}
}

func TestWrittenEventsAreReadBack(t *testing.T) {
	out := sse.Named(nil, "x", []byte("a\nb\r\nc\rd"))
	out = sse.Comment(out, "ping")
	out = sse.Named(out, "", []byte(`{"a":1}`))
	out = sse.Done(out)
	got, err := events(out)
	want := []string{"x|a\nb\nc\nd", `|{"a":1}`, "|[DONE]"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
}

func TestWholeEventsAreNotCopied(t *testing.T) {
	chunk := bytes.Repeat([]byte("event: m\ndata: {\"a\":\"some text\"}\n\n"), 50)
	var r sse.Reader
	var ev sse.Event
	r.Push(chunk)
	for r.Next(&ev) {
	}
	if n := testing.AllocsPerRun(100, func() {
		r.Push(chunk)
		for r.Next(&ev) {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\uFEFFdata: a\r\n\r\nevent: b\ndata: c\n\n"), uint8(3))
	f.Add([]byte("data: a\rdata\r\r\n: x\n\ndata: é☃\n\n"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		want, err := events(b)
		if err != nil {
			return
		}
		var pieces [][]byte
		for step := int(size)%7 + 1; len(b) > 0; {
			n := min(step, len(b))
			pieces = append(pieces, b[:n])
			b = b[n:]
		}
		got, err := events(pieces...)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %q %v, want %q", got, err, want)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	chunk := []byte("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"some words\"},\"finish_reason\":null}]}\n\n")
	var r sse.Reader
	var ev sse.Event
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		r.Push(chunk)
		for r.Next(&ev) {
		}
	}
}

func TestLineEndIsTheFirstOfBoth(t *testing.T) {
	for _, s := range []string{"", "a", "\n", "\r", "abcdefgh\n", "abc\tdef\x00gh\r\n", "\x80\xff\x9f\x8a\x8d\xa0\x1f\x20abc\n", "0123456789", strings.Repeat("é", 20) + "\r"} {
		for pad := range 17 {
			b := append(bytes.Repeat([]byte{' '}, pad), s...)
			if got, want := sse.LineEnd(b), bytes.IndexAny(b, "\r\n"); got != want {
				t.Errorf("%q: got %d, want %d", b, got, want)
			}
		}
	}
}
