package machine

import (
	"bytes"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsoncodec"
)

// capturePut stores the sealed bodies of a call, if the settings still ask for that:
// what the isolate knows of them may be a minute old. In the same turn it queues them for the
// destinations that have chosen bodies.
func (o *Object) capturePut(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var c store.Request
	head, sealed, _ := bytes.Cut(r.Body, []byte("\n"))
	if jsoncodec.Unmarshal(head, &c) != nil || !rpc.IsRowID(c.ID) || len(sealed) == 0 {
		return nil, apierr.Invalid("", "The capture is not readable.")
	}
	var key *store.Key
	if c.KeyID != "" {
		var row storage.Key
		if !rpc.IsRowID(c.KeyID) || !r.Load(storage.KeyPrefix+c.KeyID, &row) {
			return captured{}, nil
		}
		key = &row.Key
	}
	settings := r.Settings()
	if settings.CapturePercentOf(key) == 0 {
		return captured{}, nil
	}
	until := r.Now + int64(settings.CaptureHoursOf(key))*storage.Hour
	r.AddCapture(storage.Capture{ID: c.ID, KeyID: c.KeyID, At: r.Now, Until: until}, sealed)
	queueBodies(r.Tx, &c, until)
	return captured{true}, nil
}

// captured is the answer to "capture.put".
type captured struct {
	Stored bool `json:"stored"`
}
