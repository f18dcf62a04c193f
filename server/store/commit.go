package store

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"

	"weir/pkg/machine/storage"
)

// write is one Write of a machine that waits for its commit.
type write struct {
	id    string
	rows  []storage.Row
	alarm int64

	wake chan struct{} // closed when the write has its outcome, or leads
	lead bool          // its goroutine runs the next commit
	err  error
}

// write makes w durable. Writes that wait while another commit runs share
// the next one: the goroutine of the first of them runs it.
func (s *Store) write(w *write) error {
	w.wake = make(chan struct{})
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	if s.committing {
		s.mu.Unlock()
		<-w.wake
		if !w.lead {
			return w.err
		}
		s.mu.Lock()
	}
	s.committing = true
	batch := s.waiting
	s.waiting = nil
	s.mu.Unlock()

	s.commitAll(batch)

	s.mu.Lock()
	if s.committing = len(s.waiting) > 0; s.committing {
		s.waiting[0].lead = true
		close(s.waiting[0].wake)
	}
	s.mu.Unlock()
	for _, other := range batch {
		if other != w {
			close(other.wake)
		}
	}
	return w.err
}

// commitAll commits the writes together. If that fails, each is committed alone,
// so that a write that cannot be stored fails no other.
func (s *Store) commitAll(batch []*write) {
	err := s.commitOne(batch)
	if err == nil || len(batch) == 1 || s.broken != nil {
		for _, w := range batch {
			w.err = err
		}
		return
	}
	for _, w := range batch {
		w.err = s.commitOne([]*write{w})
	}
}

// commitOne is one transaction. An error means that it has changed nothing. A
// commit whose outcome is unknown, because the disk failed while the last page
// was written, lets all later ones fail.
func (s *Store) commitOne(batch []*write) (err error) {
	if s.broken != nil {
		return s.broken
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, err := s.begin(true)
	if err != nil {
		return err
	}
	id := tx.ID()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
		if err == nil {
			return
		}
		if !s.rollback(tx) || s.newest() >= id {
			s.broken = fmt.Errorf("the outcome of a commit is unknown, restart weir: %w", err)
			err = s.broken
		}
	}()
	for _, w := range batch {
		if err := w.apply(tx); err != nil {
			return err
		}
	}
	return s.commit(tx)
}

// rollback ends a transaction that has failed, and reports whether it could. A
// transaction that is not ended blocks all others.
func (s *Store) rollback(tx *bolt.Tx) (ended bool) {
	defer func() {
		if recover() != nil {
			s.stuck.Store(true)
			ended = false
		}
	}()
	if tx.DB() != nil {
		tx.Rollback()
	}
	return true
}

// newest returns the number of the newest transaction in the file.
func (s *Store) newest() (id int) {
	s.view(func(tx *bolt.Tx) error {
		id = tx.ID()
		return nil
	})
	return id
}

// apply makes the changes of w in a transaction.
func (w *write) apply(tx *bolt.Tx) error {
	if err := w.applyRows(tx.Bucket([]byte(machineBucket))); err != nil {
		return err
	}
	alarms := tx.Bucket([]byte(alarmBucket))
	switch w.alarm {
	case storage.KeepAlarm:
		return nil
	case 0:
		return alarms.Delete([]byte(w.id))
	}
	at := binary.BigEndian.AppendUint64(nil, uint64(w.alarm))
	return alarms.Put([]byte(w.id), sealRow(alarmBucket, w.id, at))
}

func (w *write) applyRows(machines *bolt.Bucket) error {
	if len(w.rows) == 0 {
		return nil
	}
	b, err := machines.CreateBucketIfNotExists([]byte(w.id))
	if err != nil {
		return err
	}
	removed := false
	for _, r := range w.rows {
		if r.Value == nil {
			removed = true
			err = b.Delete([]byte(r.Key))
		} else {
			err = b.Put([]byte(r.Key), sealRow(w.id, r.Key, r.Value))
		}
		if err != nil {
			return err
		}
	}
	if !removed {
		return nil
	}
	if k, _ := b.Cursor().First(); k == nil {
		return machines.DeleteBucket([]byte(w.id))
	}
	return nil
}
