package dial

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
)

// Decode returns a round tripper that decodes answers as fetch in workerd does: a
// content-encoding of gzip or br, whatever was asked for, with all header fields
// left as they are. Others pass as they are. Content-Length of the response is -1
// after decoding.
//
// A malformed or incomplete body is an error of Read.
func Decode(next http.RoundTripper) http.RoundTripper { return decoder{next} }

type decoder struct{ next http.RoundTripper }

func (d decoder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r)
	if err != nil || r.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent ||
		resp.StatusCode == http.StatusNotModified {
		return resp, err
	}
	encodings := resp.Header["Content-Encoding"]
	if len(encodings) != 1 {
		return resp, nil
	}
	switch encoding := encodings[0]; {
	case strings.EqualFold(encoding, "gzip"):
		resp.Body = &decoded{source: resp.Body, open: openGzip}
	case strings.EqualFold(encoding, "br"):
		resp.Body = &decoded{source: resp.Body, open: func(r io.Reader) (io.Reader, error) {
			return brotli.NewReader(r), nil
		}}
	default:
		return resp, nil
	}
	resp.ContentLength = -1
	return resp, nil
}

func openGzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(bufio.NewReader(r)) }

// decoded is a body that is decoded as it is read. The decoder is created by the
// first Read, which waits for the first bytes.
type decoded struct {
	source io.ReadCloser
	open   func(io.Reader) (io.Reader, error)
	reader io.Reader
	err    error
}

func (d *decoded) Read(p []byte) (int, error) {
	if d.reader == nil && d.err == nil {
		if d.reader, d.err = d.open(d.source); d.err == io.EOF {
			d.err = io.ErrUnexpectedEOF // an empty body is not a compressed one
		}
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.reader.Read(p)
	d.err = err
	return n, err
}

func (d *decoded) Close() error { return d.source.Close() }
