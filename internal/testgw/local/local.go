// Package local runs machines in this process for native tests.
package local

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/tokens"
)

// KeySecret is the KEY_SECRET of the machines of Machines.
var KeySecret = []byte(strings.Repeat("s", 32))

// New runs the objects of machines, whose calls out it wraps.
func New(o *machine.Object) *objects.Local {
	return objects.New(o, o.Now, &o.Do, &o.KV, &o.Objects)
}

// Machines runs objects that publish to kv and make no calls of their own. The
// ids and keys that they generate are the same in each test.
func Machines(t testing.TB, now func() time.Time, kv *fake.KV) *objects.Local {
	t.Helper()
	return New(&machine.Object{KV: kv, Manager: manage.Manager{
		Service:   tokens.Service{Keyring: sealed.Keys(t), Now: now, Rand: rand.NewChaCha8([32]byte{1})},
		KeySecret: KeySecret,
	}})
}
