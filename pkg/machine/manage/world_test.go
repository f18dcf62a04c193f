package manage_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine"
	"weir/pkg/machine/storage"
)

const (
	mid     = inprocess.MachineID
	oauthID = inprocess.OAuthID
)

// world is an object run in process, with everything around it.
type world struct {
	*inprocess.World
	obj *machine.Object
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{obj: &machine.Object{}}
	w.World = inprocess.New(t, inprocess.Built{Object: w.obj, Manager: &w.obj.Manager, KV: &w.obj.KV})
	return w
}

// withFlows lets accounts of oauthID sign in.
func (w *world) withFlows() *world {
	w.WithFlows()
	return w
}

// tx returns a turn of the object.
func (w *world) tx() *storage.Tx { return w.obj.Begin(w.Loc.Storage(mid), mid) }

// kvKey names the replica of a machine in KV.
func kvKey(machineID string) string { return "machine:" + machineID }

// isFailure reports whether an error has a code.
func isFailure(a gjson.Result, code string) bool { return a.Get("error.code").Str == code }
