package contentcoding

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
)

// Gzip compresses a body, for speed and without tables of its own, which take 1 MiB and as
// long to make as a body takes.
func Gzip(body []byte) []byte {
	b := bytes.NewBuffer(make([]byte, 0, len(body)/8+64))
	w, _ := gzip.NewWriterLevel(b, gzip.StatelessCompression) // fails for other levels alone
	w.Write(body)                                             // to memory, which does not fail
	w.Close()
	return b.Bytes()
}

// IsGzip reports whether a body is one of gzip.
func IsGzip(body []byte) bool { return bytes.HasPrefix(body, []byte{0x1f, 0x8b}) }
