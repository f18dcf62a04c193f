package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsoncodec"
)

// Alarm does what is due: it writes what is buffered, publishes the replica, reports to
// the registry, refreshes tokens ahead of their expiry, and prunes. A failed step is retried
// later. It never deletes a machine.
func (o *Object) Alarm(ctx context.Context, st storage.Storage, machineID string) {
	tx, buffer := o.begin(st, machineID)
	defer buffer.release()
	r := &storage.Call{Ctx: ctx, Tx: tx}
	if r.ID == "" {
		return
	}
	o.SaveTokens(r)
	buffer.woken()
	buffer.settle()
	if r.Meta.AlarmAt == 0 || r.Meta.AlarmAt > r.Now { // only the buffer was due
		r.Flush, r.Rearmed = true, r.Meta.AlarmAt != 0
		if err := r.Commit(); err != nil {
			o.WriteLog(fmt.Sprintf("machine %s: alarm: %v", r.ID, err))
			panic(storage.ErrStorage)
		}
		return
	}
	if r.Meta.Dirty || r.Meta.Unregistered || r.Meta.AlertAt > 0 || r.Meta.RefreshAt > 0 && r.Meta.RefreshAt <= r.Now {
		// Should this run end while it waits, another alarm follows.
		r.Meta.AlarmAt = r.Now + alarmSpare
		if err := r.Commit(); err != nil {
			o.WriteLog(fmt.Sprintf("machine %s: alarm: %v", r.ID, err))
			panic(storage.ErrStorage) // the platform runs the alarm again
		}
	}
	if r.ID != rpc.RegistryID {
		o.publish(r)
		o.register(r)
		o.RefreshDue(r)
		o.sendAlerts(r)
		o.prune(r)
		r.Erase()
	}
	r.Meta.AlarmAt = 0
	if err := r.Commit(); err != nil {
		o.WriteLog(fmt.Sprintf("machine %s: alarm: %v", r.ID, err))
	}
}

// kvKey is where the replica of a machine is.
func kvKey(machineID string) string { return "machine:" + machineID }

// publish writes the newest replica to KV, or removes it, at most once a
// second. A seed document that lies there is adopted first, unless it was
// adopted before. Without KV there is no replica.
func (o *Object) publish(r *storage.Call) {
	if o.KV == nil || !r.Meta.Dirty || r.Now < r.Meta.PutAt+storage.Backoff(r.Meta.PutFails) && r.Now >= r.Meta.PutAt {
		return
	}
	r.Meta.PutAt = r.Now
	found, err := o.KV.Get(r.Ctx, kvKey(r.ID))
	r.Reload(o.Now())
	if err == nil && r.Exists() && len(found) > 0 && gjson.ValidBytes(found) && !gjson.GetBytes(found, "v").Exists() {
		o.AdoptDocument(r, found)
		if r.Commit() != nil {
			r.Reload(o.Now())
		}
	}
	var generation, now = r.Meta.Generation, r.Now
	if r.Meta.Deleted {
		err = o.KV.Delete(r.Ctx, kvKey(r.ID))
	} else {
		err = o.KV.Put(r.Ctx, kvKey(r.ID), storage.Encode(r.Configuration()))
	}
	r.Reload(o.Now())
	r.Meta.PutAt = now
	if err != nil {
		r.Meta.PutFails++
		o.WriteLog(fmt.Sprintf("machine %s: publishing failed, try %d", r.ID, r.Meta.PutFails))
	} else {
		r.Meta.PutFails = 0
		r.Meta.Dirty = r.Meta.Generation != generation
	}
	if r.Commit() != nil {
		r.Reload(o.Now())
	}
}

// snapshot returns to the data plane what has changed since the caller's replica,
// with the reports that are still buffered.
func (o *Object) snapshot(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var q rpc.SnapshotQuery
	if jsoncodec.Unmarshal(r.Body, &q) != nil {
		return nil, apierr.Invalid("", "The query is not readable.")
	}
	r.Rearm()
	buffer := r.Buffer.(*turn)
	observed := max(r.Meta.Observed, buffer.observed())
	same := rpc.Same{Same: q.Have == r.Meta.Generation, Generation: r.Meta.Generation, Observed: observed}
	if same.Same && q.Observed == observed {
		return same, nil
	}
	buffer.settle()
	if same.Same || q.Confirm {
		state := r.State()
		same.State = &state
		return same, nil
	}
	return r.Replica(), nil
}

// tick is the cron's word: should an alarm have been lost, it is set again.
func (o *Object) tick(r *storage.Call) (any, error) {
	r.Rearm()
	return struct{}{}, nil
}

// alarmSpare is when the alarm runs again if a run of it ends half way.
const alarmSpare = int64(30 * time.Second / time.Millisecond)
