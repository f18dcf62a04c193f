package contentcoding

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// writers are compressors. One has 1 MiB of tables, which take as long to make as a body takes.
var writers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails for other levels alone
	return w
}}

// Gzip compresses a body, for speed.
func Gzip(body []byte) []byte {
	b := bytes.NewBuffer(make([]byte, 0, len(body)/8+64))
	w := writers.Get().(*gzip.Writer)
	w.Reset(b)
	w.Write(body) // to memory, which does not fail
	w.Close()
	w.Reset(nil)
	writers.Put(w)
	return b.Bytes()
}
