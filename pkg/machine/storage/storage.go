// Package storage has the rows of a Machine object, the durable truth of one tenant,
// and the turns that read and write them. See docs/architecture.md.
//
// The object runs as a Durable Object on the edge. Its storage is synchronous,
// so everything between two calls out of the object happens in one piece; a
// handler that has called out must read again what it read before.
package storage

// Storage is the synchronous key-value storage of one object. Writes made
// without a call out in between become durable together or not at all. An error
// wraps ErrStorage, and means that nothing has happened.
type Storage interface {
	// Get returns the value of a key, nil if it is missing.
	Get(key string) ([]byte, error)
	// Write stores rows, of which one without a value is removed, and sets when
	// Alarm is called, Unix milliseconds: 0 is never, KeepAlarm changes nothing. One
	// alarm is kept, the last one set.
	Write(rows []Row, alarm int64) error
	// List returns the rows whose key starts with prefix and sorts after start
	// ("" for the first), in order, at most limit (0 for all).
	List(prefix, start string, limit int) ([]Row, error)
}

// KeepAlarm leaves the alarm of a Write as it is.
const KeepAlarm = -1

// Row is one stored value.
type Row struct {
	Key   string
	Value []byte
}
