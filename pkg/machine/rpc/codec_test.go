package rpc

import (
	"testing"

	"weir/internal/codectest"
)

func TestGeneratedCodeHasEveryField(t *testing.T) {
	codectest.Check(t, &SnapshotQuery{})
	codectest.Check(t, &Same{})
	codectest.Check(t, &Report{})
	codectest.Check(t, &Reported{})
}
