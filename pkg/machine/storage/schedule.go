package storage

import (
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
)

// Backoff doubles from one second up to a minute.
func Backoff(fails int) int64 {
	if fails > 6 {
		return putBackoff
	}
	return min(putEvery<<fails, putBackoff)
}

// schedule finds when the object must next act by itself, and notes it as the
// alarm to set.
func (t *Tx) schedule() {
	m := &t.Meta
	if m.RunUntil > t.Now+AlarmSpare { // the clock went back
		m.RunUntil = 0
	}
	at := int64(0)
	due := func(when int64) {
		if when = max(when, t.Now, m.RunUntil); at == 0 || when < at {
			at = when
		}
	}
	if t.Unpublished {
		m.Dirty, m.PutFails = false, 0
	}
	if m.Dirty {
		if m.PutAt > t.Now { // the clock went back
			m.PutAt = t.Now
		}
		due(m.PutAt + Backoff(m.PutFails))
	}
	if m.Unregistered {
		due(min(m.RegisterFrom, t.Now+putBackoff))
	}
	if m.DeletedAt > 0 {
		m.DeletedAt = min(m.DeletedAt, t.Now) // also if the clock went back
		due(m.DeletedAt + RestorableFor)
	}
	if m.EraseAt > 0 {
		due(min(m.EraseAt, t.Now+UndoFor))
	}
	if t.Exists() && t.ID != rpc.RegistryID {
		if m.RefreshAt > 0 {
			due(m.RefreshAt)
		}
		if m.MetricsAt > 0 {
			due(min(m.MetricsAt, t.Now+Minute))
		}
		if m.SendAt > 0 {
			due(min(m.SendAt, t.Now+maxWait))
		}
		if m.JudgeAt > 0 {
			due(min(m.JudgeAt, t.Now+Day))
		}
		if m.LogAt > 0 {
			due(m.LogAt)
		}
		if m.PruneAt == 0 || m.PruneAt > t.Now+2*PruneEvery {
			m.PruneAt = t.Now + PruneEvery
		}
		due(m.PruneAt)
	}
	if at != 0 && (m.AlarmAt == 0 || at < m.AlarmAt || m.AlarmAt < t.Now-alarmLost) {
		m.AlarmAt = at
	}
}

// late reports whether the alarm seems lost, or set in a time that never was.
func (t *Tx) late() bool {
	return t.Meta.AlarmAt != 0 && (t.Meta.AlarmAt < t.Now-alarmLost || t.Meta.AlarmAt > t.Now+3*PruneEvery)
}

// Rearm sets a lost alarm again.
func (t *Tx) Rearm() {
	if t.late() {
		t.Meta.AlarmAt = 0
	}
}

// MaxReplica is the size limit of a replica, in bytes. Every isolate that
// serves the machine reads all of it.
const MaxReplica = 2 << 20

// CheckSize refuses a change that makes the replica larger than maxReplica. A
// larger one may shrink.
func (t *Tx) CheckSize() error {
	if !t.moved {
		return nil
	}
	grown := 0
	for k, row := range t.writes {
		if !isPacked(k) {
			grown += len(row)
		}
	}
	if t.Meta.Size > 0 && t.Meta.Size+grown <= MaxReplica {
		t.Meta.Size += grown
		return nil
	}
	size := len(Encode(t.Configuration()))
	t.Meta.Size = size
	if size <= MaxReplica || size < len(Encode(t.Stored().Configuration())) {
		return nil
	}
	return apierr.New(413, "machine_too_large",
		"With this change the machine's configuration would be larger than %d MiB: remove accounts, models or keys that are not used.", MaxReplica>>20)
}

const (
	putEvery   = int64(time.Second / time.Millisecond) // KV takes one write a second per key
	putBackoff = int64(time.Minute / time.Millisecond) // the longest wait after failures
	PruneEvery = int64(time.Hour / time.Millisecond)
	alarmLost  = int64(time.Minute / time.Millisecond) // an alarm this late is set again

	// AlarmSpare is when the alarm runs again if a run of it ends half way.
	AlarmSpare = int64(30 * time.Second / time.Millisecond)
)
