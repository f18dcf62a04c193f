package machine

import (
	"context"
	"fmt"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsoncodec"
)

// Alarm does what is due: it writes what is buffered, publishes the replica, reports to
// the registry, refreshes tokens ahead of their expiry, and prunes. A failed step is retried
// later. It erases a deleted machine that can no longer be restored, never another one. After an error,
// which is logged, the platform runs it again.
func (o *Object) Alarm(ctx context.Context, st storage.Storage, machineID string) error {
	tx, buffer := o.begin(st, machineID)
	defer buffer.release()
	err := o.alarm(storage.NewCall(ctx, tx, nil), buffer)
	if err != nil {
		o.WriteLog(fmt.Sprintf("machine %s: alarm: %v", tx.ID, err))
	}
	return err
}

func (o *Object) alarm(r *storage.Call, buffer *turn) error {
	if err := r.Err(); err != nil || r.ID == "" {
		return err
	}
	o.SaveTokens(r)
	buffer.woken()
	buffer.settle()
	r.Suspect = r.Suspect || r.Meta.JudgeAt > 0 && r.Meta.JudgeAt <= r.Now
	if r.Meta.AlarmAt == 0 || r.Meta.AlarmAt > r.Now { // only the buffer was due
		r.Flush, r.Rearmed = true, r.Meta.AlarmAt != 0
		return r.Commit()
	}
	if r.Exists() {
		shipLogs(r.Tx)
	}
	if r.Meta.Dirty || r.Meta.Unregistered || r.Meta.SendAt > 0 || r.Meta.RefreshAt > 0 && r.Meta.RefreshAt <= r.Now {
		// Should this run end while it waits, another alarm follows, and none meanwhile: another
		// server may ring it.
		r.Meta.RunUntil = r.Now + storage.AlarmSpare
		r.Meta.AlarmAt = r.Meta.RunUntil
		if err := r.Commit(); err != nil {
			return err
		}
	}
	if r.ID != rpc.RegistryID {
		o.publish(r)
		o.register(r)
		if r.Meta.DeletedAt > 0 && !r.Restorable() {
			if err := r.EraseMachine(); err != nil {
				return err
			}
		}
		o.RefreshDue(r)
		o.exportMetrics(r.Tx)
		o.deliver(r)
		o.prune(r)
		r.Erase()
		r.PlanLogs()
	}
	r.Meta.AlarmAt, r.Meta.RunUntil, r.Rearmed = 0, 0, true // also if the next one is due in the same millisecond
	return r.Commit()
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
	ctx, err := r.Outside()
	if err != nil {
		return
	}
	r.Meta.PutAt = r.Now
	found, err := o.KV.Get(ctx, kvKey(r.ID))
	r.Reload(o.Now())
	if err == nil && r.Exists() && len(found) > 0 && gjson.ValidBytes(found) && !gjson.GetBytes(found, "v").Exists() {
		o.AdoptDocument(r, found)
		if r.Commit() != nil {
			r.Reload(o.Now())
		}
	}
	var generation, now = r.Meta.Generation, r.Now
	replica := storage.Encode(r.Configuration())
	if ctx, err = r.Outside(); err != nil {
		return
	}
	if r.Meta.Deleted {
		err = o.KV.Delete(ctx, kvKey(r.ID))
	} else {
		err = o.KV.Put(ctx, kvKey(r.ID), replica)
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

// tick is the cron's word: should an alarm have been lost, it is set again. Its body has the
// notices of the registry.
func (o *Object) tick(r *storage.Call) (any, error) {
	r.Rearm()
	o.notifyNotices(r.Tx, r.Body)
	return struct{}{}, nil
}
