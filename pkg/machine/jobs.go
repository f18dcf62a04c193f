package machine

import (
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
)

const (
	jobFor   = int64(30 * 24 * time.Hour / time.Millisecond)
	maxJobID = 4096 // bytes
)

// jobPut keeps which account made a job. A job of the same id is replaced: an
// upstream may answer twice.
func (o *Object) jobPut(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	var j rpc.Job
	if json.Unmarshal(r.body, &j) != nil || j.ID == "" || len(j.ID) > maxJobID || j.ConnectionID == "" {
		return nil, apierr.Invalid("id", "a job has an id and a connection")
	}
	j.CreatedAt = r.now
	if j.ExpiresAt <= r.now || j.ExpiresAt > r.now+3*jobFor {
		j.ExpiresAt = r.now + jobFor
	}
	r.put(jobPrefix+digestOf(j.ID), j)
	return struct{}{}, nil
}

// jobGet gives a job of this machine.
func (o *Object) jobGet(r *request) (any, error) {
	var j rpc.Job
	id := gjson.GetBytes(r.body, "id").Str
	if !r.exists() || !r.load(jobPrefix+digestOf(id), &j) || j.ID != id || j.ExpiresAt <= r.now {
		return nil, apierr.New(404, "job_not_found", "there is no such job")
	}
	return j, nil
}
