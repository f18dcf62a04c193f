package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
)

const (
	putEvery   = int64(time.Second / time.Millisecond) // KV takes one write a second per key
	putBackoff = int64(time.Minute / time.Millisecond) // the longest wait after failures
	pruneEvery = int64(time.Hour / time.Millisecond)
	alarmLost  = int64(time.Minute / time.Millisecond) // an alarm this late is set again
	alarmSpare = int64(30 * time.Second / time.Millisecond)
)

// backoff doubles from one second up to a minute.
func backoff(fails int) int64 {
	if fails > 6 {
		return putBackoff
	}
	return min(putEvery<<fails, putBackoff)
}

// schedule finds when the object must next act by itself, and notes it as the
// alarm to set.
func (t *tx) schedule() {
	m := &t.meta
	at := int64(0)
	due := func(when int64) {
		if when = max(when, t.now); at == 0 || when < at {
			at = when
		}
	}
	if m.Dirty {
		if m.PutAt > t.now { // the clock went back
			m.PutAt = t.now
		}
		due(m.PutAt + backoff(m.PutFails))
	}
	if m.Unregistered {
		due(min(m.RegisterFrom, t.now+putBackoff))
	}
	if t.exists() && t.id != rpc.RegistryID {
		if m.RefreshAt > 0 {
			due(m.RefreshAt)
		}
		if m.PruneAt == 0 || m.PruneAt > t.now+2*pruneEvery {
			m.PruneAt = t.now + pruneEvery
		}
		due(m.PruneAt)
	}
	if at != 0 && (m.AlarmAt == 0 || at < m.AlarmAt || m.AlarmAt < t.now-alarmLost) {
		m.AlarmAt = at
	}
}

// late tells whether the alarm seems lost, or set in a time that never was.
func (t *tx) late() bool {
	return t.meta.AlarmAt != 0 && (t.meta.AlarmAt < t.now-alarmLost || t.meta.AlarmAt > t.now+3*pruneEvery)
}

// rearm sets a lost alarm again.
func (t *tx) rearm() {
	if t.late() {
		t.meta.AlarmAt = 0
	}
}

// Alarm does what is due: it publishes the replica, tells the registry,
// refreshes tokens ahead of their expiry, and prunes. What fails is tried
// again later. It never deletes a machine.
func (o *Object) Alarm(ctx context.Context, st Storage, machineID string) {
	r := &request{ctx: ctx, tx: o.begin(st, machineID)}
	if r.id == "" {
		return
	}
	o.saveTokens(r)
	if r.meta.AlarmAt == 0 {
		return
	}
	// Should this run end half way, another alarm follows.
	r.meta.AlarmAt = r.now + alarmSpare
	if err := r.commit(); err != nil {
		o.log(fmt.Sprintf("machine %s: alarm: %v", r.id, err))
		panic(ErrStorage) // the platform runs the alarm again
	}
	if r.id != rpc.RegistryID {
		o.publish(r)
		o.register(r)
		o.refreshDueNow(r)
		o.prune(r)
	}
	r.meta.AlarmAt = 0
	if err := r.commit(); err != nil {
		o.log(fmt.Sprintf("machine %s: alarm: %v", r.id, err))
	}
}

// kvKey is where the replica of a machine is.
func kvKey(machineID string) string { return "machine:" + machineID }

// publish writes the newest replica to KV, or removes it, at most once a
// second. A seed document that lies there is adopted first, unless it was
// adopted before.
func (o *Object) publish(r *request) {
	if !r.meta.Dirty || r.now < r.meta.PutAt+backoff(r.meta.PutFails) && r.now >= r.meta.PutAt {
		return
	}
	r.meta.PutAt = r.now
	found, err := o.KV.Get(r.ctx, kvKey(r.id))
	r.reload(o.Now())
	if err == nil && r.exists() && len(found) > 0 && gjson.ValidBytes(found) && !gjson.GetBytes(found, "v").Exists() {
		r.adoptDoc(o, found)
		if r.commit() != nil {
			r.reload(o.Now())
		}
	}
	var generation, now = r.meta.Generation, r.now
	if r.meta.Deleted {
		err = o.KV.Delete(r.ctx, kvKey(r.id))
	} else {
		err = o.KV.Put(r.ctx, kvKey(r.id), encode(r.replica()))
	}
	r.reload(o.Now())
	r.meta.PutAt = now
	if err != nil {
		r.meta.PutFails++
		o.log(fmt.Sprintf("machine %s: publishing failed, try %d", r.id, r.meta.PutFails))
	} else {
		r.meta.PutFails = 0
		r.meta.Dirty = r.meta.Generation != generation
	}
	if r.commit() != nil {
		r.reload(o.Now())
	}
}

// maxReplica is the size limit of a replica, in bytes. Every isolate that serves
// the machine reads all of it.
const maxReplica = 2 << 20

// small refuses a change that makes the replica larger than maxReplica. A larger
// one may shrink.
func (r *request) small(o *Object) error {
	if !r.moved {
		return nil
	}
	grown := 0
	for _, row := range r.writes {
		grown += len(row)
	}
	if r.meta.Size > 0 && r.meta.Size+grown <= maxReplica {
		r.meta.Size += grown
		return nil
	}
	size := len(encode(r.replica()))
	r.meta.Size = size
	if size <= maxReplica || size < len(encode(o.begin(r.st, r.id).replica())) {
		return nil
	}
	return apierr.New(413, "machine_too_large", "with this change the machine's configuration would be larger than %d MiB: remove connections, models or keys that are not used", maxReplica>>20)
}

// snapshot gives the machine to the data plane: {"same":true} when the caller
// has this generation.
func (o *Object) snapshot(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	r.rearm()
	if gjson.GetBytes(r.body, "have").Int() == r.meta.Generation {
		return rpc.Same{Same: true, Generation: r.meta.Generation}, nil
	}
	return r.replica(), nil
}

// tick is the cron's word: should an alarm have been lost, it is set again.
func (o *Object) tick(r *request) (any, error) {
	r.rearm()
	return struct{}{}, nil
}

// jsonOf is encode for a value kept inside another.
func jsonOf(v any) json.RawMessage { return encode(v) }
