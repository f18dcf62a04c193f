package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
)

// Alarm does what is due: it publishes the replica, tells the registry,
// refreshes tokens ahead of their expiry, and prunes. A failed step is retried
// later. It never deletes a machine.
func (o *Object) Alarm(ctx context.Context, st storage.Storage, machineID string) {
	r := &storage.Call{Ctx: ctx, Tx: o.begin(st, machineID)}
	if r.ID == "" {
		return
	}
	o.SaveTokens(r)
	if r.Meta.AlarmAt == 0 {
		return
	}
	// Should this run end half way, another alarm follows.
	r.Meta.AlarmAt = r.Now + alarmSpare
	if err := r.Commit(); err != nil {
		o.WriteLog(fmt.Sprintf("machine %s: alarm: %v", r.ID, err))
		panic(storage.ErrStorage) // the platform runs the alarm again
	}
	if r.ID != rpc.RegistryID {
		o.publish(r)
		o.register(r)
		o.RefreshDue(r)
		o.prune(r)
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
		err = o.KV.Put(r.Ctx, kvKey(r.ID), storage.Encode(r.Replica()))
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

// snapshot returns the machine to the data plane: {"same":true} when the caller
// has this generation.
func (o *Object) snapshot(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	r.Rearm()
	if gjson.GetBytes(r.Body, "have").Int() == r.Meta.Generation {
		return rpc.Same{Same: true, Generation: r.Meta.Generation}, nil
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
