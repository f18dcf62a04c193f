package machine

import (
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

const (
	jobFor   = int64(30 * 24 * time.Hour / time.Millisecond)
	maxJobID = 4096 // bytes
)

// jobPut keeps which account made a job. A job of the same id is replaced: an
// upstream may answer twice.
func (o *Object) jobPut(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var j rpc.Job
	if json.Unmarshal(r.Body, &j) != nil || j.ID == "" || len(j.ID) > maxJobID || j.ConnectionID == "" {
		return nil, apierr.Invalid("id", "A job has an id and a connection.")
	}
	j.CreatedAt = r.Now
	if j.ExpiresAt <= r.Now || j.ExpiresAt > r.Now+3*jobFor {
		j.ExpiresAt = r.Now + jobFor
	}
	r.Put(storage.JobPrefix+storage.DigestOf(j.ID), j)
	return struct{}{}, nil
}

// jobGet returns a job of this machine.
func (o *Object) jobGet(r *storage.Call) (any, error) {
	var j rpc.Job
	id := gjson.GetBytes(r.Body, "id").Str
	if !r.Exists() || !r.Load(storage.JobPrefix+storage.DigestOf(id), &j) || j.ID != id || j.ExpiresAt <= r.Now {
		return nil, apierr.New(404, "job_not_found", "There is no such job.")
	}
	return j, nil
}
