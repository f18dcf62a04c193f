package objects

import (
	"io"

	"weir/pkg/machine/storage"
)

// Engine keeps the rows and the alarms of machines. A server alone has store.Store, which is
// bbolt in a folder.
//
// A Runner uses the rows of a machine in its turn alone, so an engine that only this process
// uses needs no lock for them. In one that several servers share, the first access of a turn
// locks them until Outside or the end of the turn.
type Engine interface {
	// Rows returns the storage of a machine. Its Write is durable when it returns, and
	// stores all rows and the alarm, or nothing.
	Rows(machineID string) storage.Storage
	// Alarms returns the times of all alarms by machine, in Unix milliseconds.
	Alarms() (map[string]int64, error)
	// Watch calls changed for each machine that another server has changed. It returns at
	// once; an engine of one process never calls.
	Watch(changed func(machineID string))
	// Backup writes a copy of everything as it is at one moment. Reads and writes go on.
	Backup(w io.Writer) error
	Close() error
}
