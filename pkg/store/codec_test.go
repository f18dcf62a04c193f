package store

import (
	"testing"

	"weir/internal/codectest"
)

func TestGeneratedCodeHasEveryField(t *testing.T) {
	codectest.Check(t, &Machine{})
	codectest.Check(t, &Settings{})
	codectest.Check(t, &Request{})
	codectest.Check(t, &KeyNetwork{})
}
