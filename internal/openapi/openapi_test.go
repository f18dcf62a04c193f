package openapi

import (
	"testing"

	"weir/internal/golden"
)

// The document in the repository is that of the route table and of the two files.
func TestDocumentIsCurrent(t *testing.T) {
	got, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "../../../docs/reference/openapi.json", append(got, '\n'))
}
