// Package local runs machines in this process for native tests.
package local

import (
	"weir/internal/testgw/objects"
	"weir/pkg/machine"
)

// New runs the objects of machines, whose calls out it wraps.
func New(o *machine.Object) *objects.Local {
	return objects.New(o, o.Now, &o.Do, &o.KV, &o.Objects)
}
