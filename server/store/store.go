// Package store has the durable rows and alarms of all machines: one file,
// weir.db, in one directory that one process uses at a time. See
// docs/decisions/0062-native-storage.md.
//
//	weir      format → "1"
//	machines  machineId → bucket: key → value
//	alarms    machineId → Unix milliseconds, 8 bytes, big-endian
//
// Each value follows 4 bytes of checksum, see sealRow. The file has a check of its own,
// because bbolt's accepts some damaged files and ends or blocks the process on others.
package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"weir/pkg/machine/storage"
)

// Names in the data directory: of the data file, and of the file that is locked while
// a process uses the directory.
const (
	FileName = "weir.db"
	LockName = "weir.lock"
)

// LockWait is how long Open waits for a process that is about to end.
const LockWait = time.Second

// format is the version of the layout that this package reads and writes.
const format = 1

// Names of the buckets, and of the row with the format.
const (
	infoBucket    = "weir"
	machineBucket = "machines"
	alarmBucket   = "alarms"
	formatKey     = "format"
)

const (
	pageSize = 4096 // of a new file, on every platform
	// allocSize is the step in which a large file grows.
	allocSize = 1 << 20
	// mapSize is how much address space the file's mapping has from the start: a
	// larger mapping can only replace it when no transaction reads, so a backup
	// would block writes. On Windows the file would have this size.
	mapSize = 1 << 30
)

// errLocked reports that another process uses the data directory.
var errLocked = errors.New("in use by another process")

// errDamaged is the error of a file that has become unreadable while it is open.
var errDamaged = errors.New(FileName + " is damaged; stop weir and restore it from a backup")

// Store is an open data directory. Its methods may be called at once by several
// goroutines.
type Store struct {
	// Damaged reports that one of the two pages that name the last commit was not valid
	// when the file was opened: what was acknowledged last may be missing.
	Damaged bool

	db   *bolt.DB
	lock *os.File

	mu         sync.Mutex
	waiting    []*write // for the next commit
	committing bool     // a goroutine commits, and hands over to the first waiting
	broken     error    // set once a commit has an unknown outcome; only the committer uses it

	unreadable atomic.Bool          // see begin
	stuck      atomic.Bool          // a transaction could not be ended, so Close must not wait for it
	commit     func(*bolt.Tx) error // (*bolt.Tx).Commit; replaced in tests
}

// Open opens the data directory dir, which is created if it is missing. Its
// errors are one line that says what is wrong and what to do; the error wraps
// errLocked if another process uses the directory. A file that cannot be used
// is not changed.
func Open(dir string) (*Store, error) { return OpenWithin(dir, LockWait) }

// OpenWithin is Open, but waits longer for another process to release the directory.
func OpenWithin(dir string, wait time.Duration) (*Store, error) {
	if err := MakeDir(dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir, wait)
	if err != nil {
		return nil, err
	}
	s, err := openFile(filepath.Join(dir, FileName))
	if err != nil {
		lock.Close()
		return nil, err
	}
	s.lock = lock
	return s, nil
}

// MakeDir creates a data directory if it is missing.
func MakeDir(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("data directory %s: cannot create it: %w; create it for the user that runs weir, or choose another with --data", dir, Cause(err))
		}
		return nil
	case err != nil:
		return Unusable(dir, err)
	case !info.IsDir():
		return fmt.Errorf("data directory %s: it is not a directory; choose another with --data", dir)
	}
	return nil
}

// lockDir locks the directory until the file is closed or the process ends. Another
// process has wait to release it.
func lockDir(dir string, wait time.Duration) (*os.File, error) {
	path := filepath.Join(dir, LockName)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is not a file; remove it, or choose another directory with --data", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, Unusable(dir, err)
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		held, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("data directory %s: cannot lock it: %v; choose a directory on a local disk with --data", dir,
				Cause(err))
		}
		if held {
			break
		}
		if time.Since(start) > wait {
			owner, _ := io.ReadAll(io.LimitReader(f, 20))
			f.Close()
			if pid, err := strconv.Atoi(string(bytes.TrimSpace(owner))); err == nil {
				return nil, fmt.Errorf("data directory %s: %w (process %d); stop it, or choose another directory with --data", dir,
					errLocked, pid)
			}
			return nil, fmt.Errorf("data directory %s: %w; stop it, or choose another directory with --data", dir, errLocked)
		}
	}
	// The number is for the error text of the second process only.
	if f.Truncate(0) == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// Unusable returns the error for a data directory that cannot be read or written.
func Unusable(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("data directory %s: %w; make it readable and writable for the user that runs weir, or choose another with --data", dir, Cause(err))
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("data directory %s: %w; free some space, or choose another with --data", dir, Cause(err))
	}
	return fmt.Errorf("data directory %s: %w; choose another with --data", dir, Cause(err))
}

// Cause returns an error of package os without the operation and the path, which
// the texts of this program have already.
func Cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	var s *os.SyscallError
	if errors.As(err, &s) {
		return s.Err
	}
	return err
}

// openFile opens the data file, which is created if it is missing.
func openFile(path string) (*Store, error) {
	info, err := os.Stat(path)
	damaged := false
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(path); err != nil {
			return nil, Unusable(filepath.Dir(path), err)
		}
	case err != nil:
		return nil, Unusable(filepath.Dir(path), err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: it is not a file; move it away, or choose another directory with --data", path)
	default:
		if damaged, err = checkFile(path); err != nil {
			return nil, err
		}
		if info.Mode().Perm()&0o077 != 0 {
			os.Chmod(path, 0o600) // a restored backup may be readable by others
		}
	}
	db, err := openDB(path)
	if err != nil {
		return nil, err
	}
	return &Store{Damaged: damaged, db: db, commit: (*bolt.Tx).Commit}, nil
}

// create makes an empty data file. It appears under its name when it is whole,
// so that an empty or half a file is always a damaged one.
func create(path string) (err error) {
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temporary)
		}
	}()
	o := options()
	o.InitialMmapSize = 0 // else the file begins with 16 MiB
	db, err := bolt.Open(temporary, 0o600, o)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{infoBucket, machineBucket, alarmBucket} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(infoBucket)).Put([]byte(formatKey),
			sealRow(infoBucket, formatKey, strconv.AppendInt(nil, format, 10)))
	})
	if closed := db.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func options() *bolt.Options {
	o := &bolt.Options{Timeout: LockWait, FreelistType: bolt.FreelistMapType, PageSize: pageSize, NoStatistics: true}
	if runtime.GOOS != "windows" && strconv.IntSize == 64 {
		o.InitialMmapSize = mapSize
	}
	return o
}

// openDB opens a checked file.
func openDB(path string) (db *bolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = corrupt(path, fmt.Sprint(p))
		}
	}()
	db, err = bolt.Open(path, 0o600, options())
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s: %w; stop it, or choose another directory with --data", path, errLocked)
	case err != nil:
		return nil, fmt.Errorf("%s: %v; make it readable and writable for the user that runs weir", path, Cause(err))
	}
	db.AllocSize = allocSize
	return db, nil
}

func corrupt(path, detail string) error {
	return fmt.Errorf("%s: the file is damaged (%s); restore it from a backup", path, detail)
}

// Close waits for reads and writes under way and closes the directory. Later
// reads and writes fail.
func (s *Store) Close() error {
	var err error
	if !s.stuck.Load() {
		err = s.db.Close()
	}
	if unlocked := s.lock.Close(); err == nil {
		err = unlocked
	}
	return err
}

// begin begins a transaction. If the first pages of the file cannot be read any
// more, the database stays locked: begin then fails from now on.
func (s *Store) begin(writable bool) (tx *bolt.Tx, err error) {
	if s.unreadable.Load() {
		return nil, errDamaged
	}
	defer func() {
		if p := recover(); p != nil {
			s.unreadable.Store(true)
			s.stuck.Store(true)
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return s.db.Begin(writable)
}

// view runs fn in a transaction that reads. A page that cannot be read is an
// error.
func (s *Store) view(fn func(tx *bolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return fn(tx)
}

// Machines returns the ids of all machines that have rows, in order.
func (s *Store) Machines() (ids []string, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(machineBucket)).ForEachBucket(func(id []byte) error {
			ids = append(ids, string(id))
			return nil
		})
	})
	return ids, err
}

// Each calls fn for each machine, in the order of their ids.
func (s *Store) Each(ctx context.Context, fn func(id string, rows []storage.Row, alarm int64) error) error {
	ids, err := s.Machines()
	if err != nil {
		return err
	}
	alarms, err := s.Alarms()
	if err != nil {
		return err
	}
	ids = append(ids, slices.Collect(maps.Keys(alarms))...)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		rows, err := s.Rows(id).List("", "", 0)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = fn(id, rows, alarms[id])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Alarms returns the times of all alarms by machine, in Unix milliseconds.
func (s *Store) Alarms() (map[string]int64, error) {
	alarms := map[string]int64{}
	err := s.view(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(alarmBucket)).ForEach(func(id, sealed []byte) error {
			at, err := openRow(alarmBucket, string(id), sealed)
			if err != nil || len(at) != 8 {
				return fmt.Errorf("%w: alarm of %q", errDamaged, id)
			}
			alarms[string(id)] = int64(binary.BigEndian.Uint64(at))
			return nil
		})
	})
	return alarms, err
}

// Watch reports nothing: no other process uses the data directory.
func (s *Store) Watch(func(string), func(since, at time.Time), func(string) error) {}

// Release does nothing, for the same reason.
func (s *Store) Release(string) {}

// Backup writes a copy of the data file as it is now. Reads and writes go on
// meanwhile.
func (s *Store) Backup(w io.Writer) error {
	return s.view(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(w)
		return err
	})
}

// Rows returns the storage of one machine. It fails if the data file cannot be read or
// written.
func (s *Store) Rows(id string) storage.Storage { return rows{s, id} }
