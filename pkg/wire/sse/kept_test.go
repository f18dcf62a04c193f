package sse

import (
	"strings"
	"testing"
)

// A stream stays open long after an event with an image.
func TestMemoryOfALongLineIsFreed(t *testing.T) {
	var r Reader
	var ev Event
	for _, piece := range []string{"data: " + strings.Repeat("a", 1<<20), "a\n\n", "data: b\n", "\n"} {
		r.Push([]byte(piece))
		for r.Next(&ev) {
		}
	}
	if cap(r.held)+cap(r.data) > 2*maxKept {
		t.Errorf("%d and %d bytes are kept", cap(r.held), cap(r.data))
	}
}
