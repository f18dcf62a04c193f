package proxydial

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// errMalformed reports that an answer is not HTTP/1.1, or was cut.
var errMalformed = errors.New("malformed answer")

// errCut reports that an answer ends too early. It is malformed too.
var errCut = fmt.Errorf("cut: %w", errMalformed)

const (
	maxHead   = 64 << 10 // bytes of a head, and of all trailers
	maxFields = 200
	maxLine   = 1 << 10 // of a chunk's size with its extensions
	maxEarly  = 8       // answers of 1xx before the one
)

// ReadResponse reads one HTTP/1.1 answer to a GET or POST whole, RFC 9112. A
// body of more than maxBody bytes is stream.ErrTooLarge; an incomplete or encoded body is
// an error. Field names are in lower case.
func ReadResponse(src io.Reader, maxBody int64) (*upstream.Response, error) {
	r := newReader(src)
	for range maxEarly {
		status, header, err := r.head()
		switch {
		case err != nil:
			return nil, err
		case status == 101:
			return nil, fmt.Errorf("unasked change of protocol: %w", errMalformed)
		case status < 200:
			continue
		}
		body, err := r.body(status, header, maxBody)
		if err != nil {
			return nil, err
		}
		return &upstream.Response{Status: status, Header: header, Body: stream.FromBytes(body)}, nil
	}
	return nil, fmt.Errorf("only interim answers: %w", errMalformed)
}

// reader reads lines and bytes of src.
type reader struct {
	src io.Reader
	buf []byte
	in  []byte // read from src, not given out
}

func newReader(src io.Reader) *reader { return &reader{src: src, buf: make([]byte, 8<<10)} }

// buffered returns the number of bytes that have arrived and have not been read.
func (r *reader) buffered() int { return len(r.in) }

// fill waits for more input. io.EOF comes as such.
func (r *reader) fill() error {
	for range 100 {
		n, err := r.src.Read(r.buf)
		if n > 0 {
			r.in = r.buf[:n]
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// cut is the error of an input that ends too early.
func cut(err error) error {
	if err == io.EOF {
		return errCut
	}
	return err
}

// line returns the next line without its end, which is CRLF or LF. Its bytes
// count against *left.
func (r *reader) line(left *int) (string, error) {
	var long []byte
	for {
		if len(r.in) == 0 {
			if err := r.fill(); err != nil {
				return "", cut(err)
			}
		}
		i := 0
		for i < len(r.in) && r.in[i] != '\n' {
			i++
		}
		if *left -= i + 1; *left < 0 {
			return "", fmt.Errorf("lines too long: %w", errMalformed)
		}
		if i < len(r.in) {
			line := string(append(long, r.in[:i]...))
			r.in = r.in[i+1:]
			return strings.TrimSuffix(line, "\r"), nil
		}
		*left++
		long = append(long, r.in...)
		r.in = nil
	}
}

// head reads a status line and the fields after it.
func (r *reader) head() (status int, header httpmsg.Header, err error) {
	left := maxHead
	line, err := r.line(&left)
	if err != nil {
		return 0, nil, err
	}
	// HTTP/1.1 200 OK; the blank before an empty reason may be missing.
	if len(line) < 12 || line[:7] != "HTTP/1." || line[7] != '0' && line[7] != '1' || line[8] != ' ' || len(line) > 12 &&
		line[12] != ' ' {
		return 0, nil, fmt.Errorf("status line: %w", errMalformed)
	}
	for _, c := range []byte(line[9:12]) {
		if c < '0' || c > '9' {
			return 0, nil, fmt.Errorf("status: %w", errMalformed)
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 || status > 599 {
		return 0, nil, fmt.Errorf("status: %w", errMalformed)
	}
	header, err = r.fields(&left)
	return status, header, err
}

// fields reads header fields, or trailers, up to the empty line.
func (r *reader) fields(left *int) (httpmsg.Header, error) {
	var h httpmsg.Header
	for {
		line, err := r.line(left)
		if err != nil {
			return nil, err
		}
		if line == "" {
			return h, nil
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		// Folded lines, blanks before the colon and control bytes are refused.
		if !ok || !isToken(name) || !isFieldValue(value) || len(h) == maxFields {
			return nil, fmt.Errorf("header fields: %w", errMalformed)
		}
		h = append(h, httpmsg.Field{Name: strings.ToLower(name), Value: value})
	}
}

// body reads the body that a head announces, RFC 9112 6.3.
func (r *reader) body(status int, h httpmsg.Header, maxBody int64) ([]byte, error) {
	if status == 204 || status == 304 {
		return nil, nil
	}
	length, chunked := int64(-1), false
	for _, f := range h {
		switch f.Name {
		case "transfer-encoding":
			if chunked || !strings.EqualFold(f.Value, "chunked") {
				return nil, fmt.Errorf("transfer-encoding: %w", errMalformed)
			}
			chunked = true
		case "content-length":
			n, err := parseLength(f.Value, 10)
			if err != nil || length >= 0 && n != length {
				return nil, fmt.Errorf("content-length: %w", errMalformed)
			}
			length = n
		case "content-encoding":
			if f.Value != "" && !strings.EqualFold(f.Value, "identity") {
				return nil, fmt.Errorf("content-encoding that was not asked for: %w", errMalformed)
			}
		}
	}
	switch {
	case chunked: // wins over a length
		return r.chunks(maxBody)
	case length > maxBody:
		return nil, stream.ErrTooLarge
	case length >= 0:
		return r.take(nil, length)
	}
	var out []byte // up to the end of the connection
	for {
		if len(r.in) == 0 {
			switch err := r.fill(); {
			case err == io.EOF:
				return out, nil
			case err != nil:
				return nil, err
			}
		}
		if int64(len(out)+len(r.in)) > maxBody {
			return nil, stream.ErrTooLarge
		}
		out = append(out, r.in...)
		r.in = nil
	}
}

// take appends the next n bytes to out.
func (r *reader) take(out []byte, n int64) ([]byte, error) {
	for n > 0 {
		if len(r.in) == 0 {
			if err := r.fill(); err != nil {
				return nil, cut(err)
			}
		}
		k := int(min(n, int64(len(r.in))))
		out = append(out, r.in[:k]...)
		r.in = r.in[k:]
		n -= int64(k)
	}
	return out, nil
}

// chunks reads a chunked body with its trailers, which are dropped.
func (r *reader) chunks(maxBody int64) ([]byte, error) {
	var out []byte
	// Sizes of many small chunks cost bytes too: all lines together are
	// bounded.
	lines := int(min(maxBody, 1<<30))*4 + maxHead
	for {
		lineLen := min(maxLine, lines)
		before := lineLen
		line, err := r.line(&lineLen)
		if err != nil {
			return nil, err
		}
		lines -= before - lineLen
		size, _, _ := strings.Cut(line, ";")
		n, err := parseLength(strings.TrimRight(size, " \t"), 16)
		if err != nil {
			return nil, fmt.Errorf("size of a chunk: %w", errMalformed)
		}
		if n == 0 {
			left := maxHead
			_, err := r.fields(&left)
			return out, err
		}
		if n > maxBody-int64(len(out)) {
			return nil, stream.ErrTooLarge
		}
		if out, err = r.take(out, n); err != nil {
			return nil, err
		}
		left := 2
		if end, err := r.line(&left); err != nil || end != "" {
			return nil, fmt.Errorf("end of a chunk: %w", errMalformed)
		}
	}
}

// parseLength reads digits only: no sign, no blanks, no underscores.
func parseLength(s string, base int) (int64, error) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= '0' && c <= '9' || base == 16 && (c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F')) {
			return 0, errMalformed
		}
	}
	return strconv.ParseInt(s, base, 64)
}
