package usage

import (
	"testing"

	"weir/internal/codectest"
)

func TestGeneratedCodeHasEveryField(t *testing.T) {
	codectest.Check(t, &Row{})
	codectest.Check(t, &Label{})
}
