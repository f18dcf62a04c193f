package objects

import (
	"context"
	"io"
	"time"

	"weir/pkg/machine/storage"
)

// Engine keeps the rows and the alarms of machines. A server alone has store.Store, which is
// bbolt in a folder; servers that share a database have postgres.Engine.
//
// A Runner uses the rows of a machine in its turn alone, so an engine that only this process
// uses needs no lock for them. In one that several servers share, the first access of a turn
// locks them until Release, and a Write fails unless they are as that access has found them.
type Engine interface {
	// Rows returns the storage of a machine. Its Write is durable when it returns, and
	// stores all rows and the alarm, or nothing.
	Rows(machineID string) storage.Storage
	// Release ends what the turn of a machine has locked: at its end, and while it waits for
	// something outside. The next access finds what others have written meanwhile.
	Release(machineID string)
	// Each calls fn for each machine, in the order of their ids; alarm is 0 without one.
	Each(ctx context.Context, fn func(machineID string, rows []storage.Row, alarm int64) error) error
	// Alarms returns the times of all alarms by machine, in Unix milliseconds; nil if the
	// engine rings them itself, at one of the servers that share it.
	Alarms() (map[string]int64, error)
	// Watch reports what happens at other servers: changed is called for each machine of
	// which one has changed the configuration or what calls have shown, then confirmed, since
	// no other machine has changed between two times. ring is Runner.Ring, for an engine that
	// rings alarms. Watch returns at once; an engine of one process reports nothing.
	Watch(changed func(machineID string), confirmed func(since, at time.Time), ring func(machineID string) error)
	// Backup writes a copy of everything as it is at one moment. Reads and writes go on.
	Backup(w io.Writer) error
	Close() error
}
