package machine

import (
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
)

const (
	mid     = inprocess.MachineID
	oauthID = inprocess.OAuthID
)

// world is an object run in process, with everything around it.
type world struct {
	*inprocess.World
	obj *Object
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{obj: &Object{}}
	w.World = inprocess.New(t, inprocess.Built{Object: w.obj, Manager: &w.obj.Manager, KV: &w.obj.KV})
	return w
}

// isFailure reports whether an error is one of a status and a code.
func isFailure(a gjson.Result, code string) bool { return a.Get("error.code").Str == code }
