package endpoint

import (
	"io"

	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
)

// largeBody is from where on a body is not copied to change a value in it.
const largeBody = 64 << 10

// Splice returns a body with another value at a place. Of a large one, which
// stays as it is, at most the half is copied.
func Splice(body []byte, at jsonscan.Span, value []byte) io.ReadCloser {
	if len(body) < largeBody {
		return stream.FromBytes(jsonscan.Splice(body, at, value))
	}
	if at.Start <= len(body)/2 {
		head := append(append(make([]byte, 0, at.Start+len(value)), body[:at.Start]...), value...)
		return &stream.Prefix{Head: head, Rest: stream.FromBytes(body[at.End:])}
	}
	rest := append(append(make([]byte, 0, len(value)+len(body)-at.End), value...), body[at.End:]...)
	return &stream.Prefix{Head: body[:at.Start], Rest: stream.FromBytes(rest)}
}
