// Package storage has the rows of a Machine object, the durable truth of one tenant,
// and the turns that read and write them. See docs/reference/design.md, 2.
//
// The object runs as a Durable Object on the edge. Its storage is synchronous,
// so everything between two calls out of the object happens in one piece; a
// handler that has called out must read again what it read before.
package storage

// Storage is the synchronous key-value storage of one object. Writes made
// without a call out in between become durable together or not at all.
type Storage interface {
	Get(key string) ([]byte, bool)
	// Write stores rows, of which one without a value is removed, and sets the
	// alarm as SetAlarm does, unless it is KeepAlarm. When it panics, nothing
	// of it has happened.
	Write(rows []Row, alarm int64)
	// List returns the rows whose key starts with prefix and sorts after start
	// ("" for the first), in order, at most limit (0 for all).
	List(prefix, start string, limit int) []Row
	// SetAlarm calls Alarm at the time, Unix milliseconds; 0 removes it. One
	// alarm is kept, the last one set.
	SetAlarm(at int64)
}

// KeepAlarm leaves the alarm of a Write as it is.
const KeepAlarm = -1

// Row is one stored value.
type Row struct {
	Key   string
	Value []byte
}
