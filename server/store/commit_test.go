package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"weir/pkg/machine/storage"
)

// attempt writes one row and returns the error of a write that fails.
func attempt(s *Store, id, key, value string) error { return put(s, id, key, value) }

// hold lets the first commit wait until release is called.
func hold(s *Store) (began chan struct{}, release func()) {
	began, released := make(chan struct{}), make(chan struct{})
	first := true
	s.commit = func(tx *bolt.Tx) error {
		if first {
			first = false
			close(began)
			<-released
		}
		return tx.Commit()
	}
	return began, sync.OnceFunc(func() { close(released) })
}

// queued waits until n writes wait for the next commit.
func queued(s *Store, n int) {
	for {
		s.mu.Lock()
		waiting := len(s.waiting)
		s.mu.Unlock()
		if waiting == n {
			return
		}
		yield()
	}
}

func TestWritesThatWaitShareOneCommit(t *testing.T) {
	const machines = 64
	s := open(t, t.TempDir())
	began, release := hold(s)
	defer release()
	before := s.newest()
	var wg sync.WaitGroup
	wg.Go(func() { put(s, "first", "k", "v") })
	<-began
	for m := range machines {
		wg.Go(func() { put(s, fmt.Sprint("m", m), "k", "v") })
	}
	queued(s, machines)
	if v, err := s.Rows("first").Get("k"); v != nil || err != nil {
		t.Error("a row is read before it is durable")
	}
	release()
	wg.Wait()
	if commits := s.newest() - before; commits != 2 {
		t.Errorf("%d writes in %d commits, want 2", machines+1, commits)
	}
	if rows := dump(t, s); len(rows) != machines+1 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestWriteThatCannotBeStoredFailsNoOther(t *testing.T) {
	s := open(t, t.TempDir())
	began, release := hold(s)
	defer release()
	var wg sync.WaitGroup
	wg.Go(func() { put(s, "first", "k", "v") })
	<-began
	errs := make([]error, 8)
	for m := range errs {
		wg.Go(func() {
			key := "k"
			if m == 3 {
				key = "" // the database refuses it
			}
			errs[m] = attempt(s, fmt.Sprint("m", m), key, "v")
		})
	}
	queued(s, len(errs))
	release()
	wg.Wait()
	for m, err := range errs {
		if m == 3 && !errors.Is(err, storage.ErrStorage) {
			t.Errorf("the write without a key: %v", err)
		}
		if m != 3 && err != nil {
			t.Errorf("write %d: %v", m, err)
		}
	}
	if rows := dump(t, s); len(rows) != len(errs) {
		t.Errorf("rows: %v", rows)
	}
}

func TestFailedWriteChangesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	put(s, "m", "a", "1")
	s.Rows("m").Write(nil, 5)
	for name, commit := range map[string]func(tx *bolt.Tx) error{
		"error": func(tx *bolt.Tx) error { return errors.New("no space left on device") },
		"panic": func(tx *bolt.Tx) error { panic("page 5: bad") },
	} {
		s.commit = commit
		err := s.Rows("m").Write([]storage.Row{{Key: "a", Value: []byte("2")}, {Key: "b", Value: []byte("2")}}, 7)
		if !errors.Is(err, storage.ErrStorage) {
			t.Errorf("%s: %v", name, err)
		}
		if got := fmt.Sprint(dump(t, s)); got != "map[alarm of m:5 m/a:1]" {
			t.Errorf("%s: after the failure: %s", name, got)
		}
		s.commit = (*bolt.Tx).Commit
		if err := attempt(s, "m", "a", "1"); err != nil {
			t.Errorf("%s: the next write: %v", name, err)
		}
	}
}

// A disk may fail after it has stored the last page of a commit: the database
// then reads what it has reported as failed.
func TestCommitWithUnknownOutcomeStopsWrites(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(s, "m", "a", "1")
	s.commit = func(tx *bolt.Tx) error {
		if err := tx.Commit(); err != nil {
			return err
		}
		return errors.New("input/output error")
	}
	if err := attempt(s, "m", "a", "2"); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("the write: %v", err)
	}
	s.commit = (*bolt.Tx).Commit
	if err := attempt(s, "m", "a", "3"); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("a later write: %v", err)
	}
	if v, err := s.Rows("m").Get("a"); v == nil || err != nil {
		t.Error("reads do not go on")
	}
	s.Close()
	if err := attempt(open(t, dir), "m", "a", "4"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestClosedStoreFails(t *testing.T) {
	s := open(t, t.TempDir())
	s.Close()
	if err := attempt(s, "m", "a", "1"); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("write: %v", err)
	}
	if _, err := s.Rows("m").Get("a"); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("read: %v", err)
	}
	if _, err := s.Rows("m").List("", "", 0); !errors.Is(err, storage.ErrStorage) {
		t.Errorf("list: %v", err)
	}
}
