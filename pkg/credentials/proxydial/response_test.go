package proxydial

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"weir/pkg/wire/stream"
)

// read tells what an answer is: status, fields and body, or the error.
func read(text string, oneByOne bool, limit int64) string {
	src := iotest.DataErrReader(strings.NewReader(text))
	if oneByOne {
		src = iotest.OneByteReader(strings.NewReader(text))
	}
	resp, err := ReadResponse(src, limit)
	switch {
	case errors.Is(err, stream.ErrTooLarge):
		return "too large"
	case errors.Is(err, errMalformed):
		return "malformed"
	case err != nil:
		return err.Error()
	}
	body, _ := stream.ReadAll(resp.Body, 1<<30)
	return fmt.Sprintf("%d %v %s", resp.Status, resp.Header, body)
}

func TestReadResponse(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 [{content-length 2}] hi"},
		{"bytes_after_the_length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhixxx", "200 [{content-length 2}] hi"},
		{"empty_reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 [{content-length 0}] "},
		{"no_reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 [{content-length 0}] "},
		{"bare_lf", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "200 [{content-length 2}] hi"},
		{"until_the_end", "HTTP/1.0 200 OK\r\n\r\nhello", "200 [] hello"},
		{"no_body", "HTTP/1.1 204 No Content\r\ncontent-length: 7\r\n\r\nignored", "204 [{content-length 7}] "},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n3;ext=\"1\"\r\nyou\r\n0\r\nTrailer: x\r\n\r\n", "200 [{transfer-encoding Chunked}] hiyou"},
		{"upper_case_size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\n00\r\n\r\n", "200 [{transfer-encoding chunked}] 0123456789"},
		{"chunks_win_over_length", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "200 [{content-length 3} {transfer-encoding chunked}] x"},
		{"same_length_twice", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx", "200 [{content-length 1} {content-length 1}] x"},
		{"early_answers", "HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", "200 [{content-length 1}] x"},
		{"value_with_a_colon", "HTTP/1.1 200 OK\r\na:  b: c\t\r\ncontent-length: 0\r\n\r\n", "200 [{a b: c} {content-length 0}] "},

		{"empty", "", "malformed"},
		{"other_protocol", "HTTP/2 200 OK\r\n\r\n", "malformed"},
		{"http_0_9", "<html>", "malformed"},
		{"status_of_two", "HTTP/1.1 20 OK\r\n\r\n", "malformed"},
		{"status_of_four", "HTTP/1.1 2000 OK\r\n\r\n", "malformed"},
		{"status_999", "HTTP/1.1 999 OK\r\n\r\n", "malformed"},
		{"signed_status", "HTTP/1.1 +20 OK\r\n\r\n", "malformed"},
		{"switch", "HTTP/1.1 101 S\r\n\r\n", "malformed"},
		{"only_early_answers", strings.Repeat("HTTP/1.1 100 C\r\n\r\n", 9), "malformed"},
		{"cut_in_head", "HTTP/1.1 200 OK\r\ncontent-le", "malformed"},
		{"cut_in_body", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi", "malformed"},
		{"two_lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nhi", "malformed"},
		{"list_of_lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\nx", "malformed"},
		{"negative_length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "malformed"},
		{"huge_length", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n", "malformed"},
		{"empty_length", "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n", "malformed"},
		{"gzip_transfer", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n", "malformed"},
		{"gzip_content", "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx", "malformed"},
		{"chunked_twice", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n", "malformed"},
		{"no_last_chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n", "malformed"},
		{"chunk_without_an_end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", "malformed"},
		{"size_with_0x", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n", "malformed"},
		{"size_that_overflows", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "malformed"},
		{"empty_size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n", "malformed"},
		{"long_extension", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 2000), "malformed"},
		{"folded_field", "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n", "malformed"},
		{"blank_before_colon", "HTTP/1.1 200 OK\r\na : b\r\n\r\n", "malformed"},
		{"no_colon", "HTTP/1.1 200 OK\r\nabc\r\n\r\n", "malformed"},
		{"nul_in_value", "HTTP/1.1 200 OK\r\na: b\x00\r\n\r\n", "malformed"},
		{"cr_in_value", "HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n", "malformed"},
		{"many_fields", "HTTP/1.1 200 OK\r\n" + strings.Repeat("a: b\r\n", 201) + "\r\n", "malformed"},
		{"long_head", "HTTP/1.1 200 OK\r\na: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "malformed"},
		{"long_trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "malformed"},

		{"length_over_the_limit", "HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n", "too large"},
		{"chunk_over_the_limit", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7fffffffffffffff\r\n", "too large"},
		{"chunks_over_the_limit", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", 101) + "0\r\n\r\n", "too large"},
		{"end_over_the_limit", "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 101), "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, oneByOne := range []bool{false, true} {
				if got := read(tt.in, oneByOne, 100); got != tt.want {
					t.Errorf("byte by byte %v: got %q, want %q", oneByOne, got, tt.want)
				}
			}
		})
	}
}

func FuzzReadResponse(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\na: b\r\n\r\n")
	f.Add("HTTP/1.1 100 C\r\n\r\nHTTP/1.0 404\nx: y\n\nbody")
	f.Fuzz(func(t *testing.T, text string) {
		whole, piecewise := read(text, false, 50), read(text, true, 50)
		if whole != piecewise {
			t.Errorf("whole %q, byte by byte %q", whole, piecewise)
		}
	})
}
