package machine

import (
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

const (
	jobFor   = int64(30 * 24 * time.Hour / time.Millisecond)
	maxJobID = 4096 // bytes
)

// jobPut keeps which account made a job. A job of the same id is replaced: an
// upstream may answer twice. One of the same request is kept: it is put once more if the
// answer to the first put was lost, and may have been billed since.
func (o *Object) jobPut(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var j rpc.Job
	if json.Unmarshal(r.Body, &j) != nil || j.ID == "" || len(j.ID) > maxJobID || j.ConnectionID == "" {
		return nil, apierr.Invalid("id", "A job has an id and an account.")
	}
	name := storage.JobPrefix + storage.DigestOf(j.ID)
	var old rpc.Job
	if j.RequestID != "" && r.Load(name, &old) && old.ID == j.ID && old.RequestID == j.RequestID {
		return struct{}{}, nil
	}
	j.CreatedAt, j.Labels = r.Now, storage.TidyLabels(j.Labels)
	if j.ExpiresAt <= r.Now || j.ExpiresAt > r.Now+3*jobFor {
		j.ExpiresAt = r.Now + jobFor
	}
	r.Put(name, j)
	return struct{}{}, nil
}

// jobGet returns a job of this machine.
func (o *Object) jobGet(r *storage.Call) (any, error) {
	var j rpc.Job
	id := gjson.GetBytes(r.Body, "id").Str
	if !r.Exists() || !r.Load(storage.JobPrefix+storage.DigestOf(id), &j) || j.ID != id || j.ExpiresAt <= r.Now {
		return nil, apierr.New(404, "job_not_found", "No job has this id.")
	}
	return j, nil
}

// jobBill adds what a job has used to the usage, once: in the turn that notes it.
func (o *Object) jobBill(r *storage.Call) (any, error) {
	var in rpc.JobBill
	var j rpc.Job
	if json.Unmarshal(r.Body, &in) != nil || !in.Usage.Valid() {
		return nil, apierr.Invalid("usage", "A bill has the id of a job and what it used.")
	}
	name := storage.JobPrefix + storage.DigestOf(in.ID)
	if !r.Exists() || !r.Load(name, &j) || j.ID != in.ID {
		return nil, apierr.New(404, "job_not_found", "No job has this id.")
	}
	bills := j.Unbilled != nil
	if bills {
		labels := storage.TidyLabels(in.Labels)
		if len(j.Labels) > 0 {
			labels = relabel(j.Labels, &in.Usage)
		}
		j.Unbilled, j.Counted, j.Labels = nil, nil, nil
		r.Put(name, j)
		addUsage(r.Tx, in.Usage)
		r.AddLabels(r.Now, labels)
	}
	return rpc.Billed{Billed: bills}, nil
}

// relabel returns the labels with the counts of a row.
func relabel(labels []usage.Label, row *usage.Row) (list []usage.Label) {
	for i := range labels {
		for j := range labels[i].Rows {
			list = usage.AddLabel(list, labels[i].Kind, labels[i].Name, labels[i].Rows[j].Value, row)
		}
	}
	return list
}

// addUsage adds an attempt to the usage.
func addUsage(t *storage.Tx, row usage.Row) {
	list := []usage.Row{row}
	t.AddUsage(t.Now, list)
	t.AddConnUse(t.Now, list, func(id string) bool {
		_, ok := t.Get(storage.ConnectionPrefix + id)
		return ok && rpc.IsRowID(id)
	})
}

// pruneJobs removes the jobs that have expired. One that was never billed counts as an
// attempt whose cost is not known.
func pruneJobs(t *storage.Tx) {
	var unbilled []rpc.Job
	storage.RemoveIf(t, storage.JobPrefix, func(_ string, j rpc.Job) bool {
		over := j.ExpiresAt <= t.Now
		if over && j.Unbilled != nil {
			unbilled = append(unbilled, j)
		}
		return over
	})
	for i := range unbilled {
		addUsage(t, *unbilled[i].Unbilled)
		t.AddLabels(t.Now, relabel(unbilled[i].Labels, unbilled[i].Unbilled))
	}
}
