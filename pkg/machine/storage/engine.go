package storage

// engine is the storage under the turns of one call. It remembers the first read that
// has failed.
type engine struct {
	st     Storage
	failed error
}

// Err returns the error of the caller if a read has failed, in this turn or in an earlier
// one of the same call. Rows were taken for absent then, so that nothing that follows from
// them may leave the object, be stored or be remembered.
func (e *engine) Err() error { return e.failed }

// note remembers the error of a read.
func (e *engine) note(err error) {
	if err != nil {
		e.failed = storageFailed(err)
	}
}

// get returns a stored value, nil if it is missing or could not be read.
func (e *engine) get(key string) (value []byte) {
	if e.failed == nil {
		var err error
		value, err = e.st.Get(key)
		e.note(err)
	}
	return value
}

// Scan returns stored rows as List of Storage does, without the changes of the turn.
func (e *engine) Scan(prefix, start string, limit int) (rows []Row) {
	if e.failed == nil {
		var err error
		rows, err = e.st.List(prefix, start, limit)
		e.note(err)
	}
	return rows
}

// write writes rows and the alarm.
func (e *engine) write(rows []Row, alarm int64) error {
	if err := e.st.Write(rows, alarm); err != nil {
		return storageFailed(err)
	}
	return nil
}

// SetAlarm sets the alarm at once, without the changes of the turn.
func (e *engine) SetAlarm(at int64) error { return e.write(nil, at) }
