package openapi

import (
	"bytes"
	"testing"

	"weir/internal/golden"
)

// The document in the repository is that of the route table and of the two files.
func TestDocumentIsCurrent(t *testing.T) {
	got, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.Index(got, []byte(`": null`)); i >= 0 {
		t.Errorf("a text with a comma has no quotes: %s", got[max(i-200, 0):i])
	}
	golden.Bytes(t, "../../../docs/reference/openapi.json", append(got, '\n'))
}
