package contentcoding

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func TestGzipIsReadable(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("words and ", 30_000), "after another"} {
		r, err := gzip.NewReader(bytes.NewReader(Gzip([]byte(text))))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != text {
			t.Errorf("unpacked %d bytes of %d: %v", len(got), len(text), err)
		}
	}
}
