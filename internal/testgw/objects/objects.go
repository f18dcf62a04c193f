// Package objects runs the objects of machines in this process, with their
// storage in memory, for native tests. It imports neither the object nor its
// handlers, so that their own tests can use it.
package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/upstream"
)

// ErrFault is the error of a Storage that fails.
var ErrFault = fmt.Errorf("%w: injected fault", storage.ErrStorage)

// ErrUnreachable is the error of a call to an object that cannot be reached.
var ErrUnreachable = errors.New("objects: object unreachable")

// Script is an rpc.Stub and an rpc.Starter whose answers a test writes.
type Script struct {
	// Started, if set, is called when a call begins.
	Started func()
	// Answer is the answer to an operation, when it is waited for. Without it the
	// objects are unreachable.
	Answer func(op string, body []byte) (status int, answer []byte, err error)
	// MachineID, if set, is the one machine that may be called.
	MachineID string
	Calls     []string // so far, "op body"
	Called    []string // the machines of Calls

	mu sync.Mutex // of Calls and Called
}

// Constant returns a Script whose every answer is the same.
func Constant(status int, answer string) *Script {
	return &Script{Answer: func(string, []byte) (int, []byte, error) { return status, []byte(answer), nil }}
}

// Call records the call and scripts its answer.
func (s *Script) Call(ctx context.Context, machineID, op string, body []byte) (int, []byte, error) {
	return s.Start(ctx, machineID, op, body).Wait()
}

// Start records the call, whose answer is scripted when it is waited for.
func (s *Script) Start(_ context.Context, machineID, op string, body []byte) rpc.Pending {
	s.mu.Lock()
	s.Calls, s.Called = append(s.Calls, op+" "+string(body)), append(s.Called, machineID)
	s.mu.Unlock()
	if s.MachineID != "" && machineID != s.MachineID {
		panic("objects: a call of the machine " + machineID)
	}
	if s.Started != nil {
		s.Started()
	}
	return scripted(func() (int, []byte, error) {
		if s.Answer == nil {
			return 0, nil, ErrUnreachable
		}
		return s.Answer(op, body)
	})
}

// scripted is a call under way.
type scripted func() (int, []byte, error)

// Wait returns the answer.
func (f scripted) Wait() (int, []byte, error) { return f() }

// Storage is a storage.Storage in memory. Writes become durable at Flush, as
// on the platform at the end of a turn; Rollback discards them, as a crash does.
type Storage struct {
	Rows    map[string][]byte // durable
	pending map[string][]byte // nil deletes
	Alarm   int64             // the time of the alarm, 0 without one
	pendAt  int64
	pendSet bool
	// Fault, when set, is asked before each write; true makes it fail.
	Fault func(key string) bool
	// Unreadable, when set, is asked before each read; true makes it fail.
	Unreadable func() bool
	// Read and Written count the rows as the platform bills them: each row that a
	// Get or List returns or a Get misses, each row that is stored or deleted, and
	// each alarm that is set.
	Read, Written int
}

// NewStorage returns an empty storage.
func NewStorage() *Storage { return &Storage{Rows: map[string][]byte{}, pending: map[string][]byte{}} }

// Get returns a value.
func (m *Storage) Get(key string) ([]byte, error) {
	if m.unreadable() {
		return nil, ErrFault
	}
	m.Read++
	v, ok := m.pending[key]
	if !ok {
		v = m.Rows[key]
	}
	return slices.Clone(v), nil
}

func (m *Storage) unreadable() bool { return m.Unreadable != nil && m.Unreadable() }

// Write stores copies of rows. Each row and the alarm may fail on its own.
func (m *Storage) Write(rows []storage.Row, alarm int64) error {
	for i := range rows {
		if m.fault(rows[i].Key) {
			return ErrFault
		}
	}
	if alarm != storage.KeepAlarm {
		if m.fault("alarm") {
			return ErrFault
		}
		m.pendAt, m.pendSet = alarm, true
	}
	for _, r := range rows {
		v := r.Value
		if v != nil {
			v = append([]byte{}, v...)
		}
		m.pending[r.Key] = v
	}
	return nil
}

func (m *Storage) fault(key string) bool {
	m.Written++
	return m.Fault != nil && m.Fault(key)
}

// Listed returns the rows under a prefix, in order.
func (m *Storage) Listed(prefix string) []storage.Row { return m.list(prefix, "", 0) }

// List returns the rows under a prefix, in order.
func (m *Storage) List(prefix, start string, limit int) ([]storage.Row, error) {
	if m.unreadable() {
		return nil, ErrFault
	}
	return m.list(prefix, start, limit), nil
}

func (m *Storage) list(prefix, start string, limit int) []storage.Row {
	var rows []storage.Row
	add := func(k string, v []byte) {
		if strings.HasPrefix(k, prefix) && k > start {
			rows = append(rows, storage.Row{Key: k, Value: append([]byte{}, v...)})
		}
	}
	for k, v := range m.Rows {
		if _, ok := m.pending[k]; !ok {
			add(k, v)
		}
	}
	for k, v := range m.pending {
		if v != nil {
			add(k, v)
		}
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Key < rows[j].Key })
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	m.Read += len(rows)
	return rows
}

// Flush makes everything written durable.
func (m *Storage) Flush() {
	for k, v := range m.pending {
		if v == nil {
			delete(m.Rows, k)
		} else {
			m.Rows[k] = v
		}
	}
	m.pending = map[string][]byte{}
	if m.pendSet {
		m.Alarm, m.pendSet = m.pendAt, false
	}
}

// Rollback forgets what was written since the last Flush.
func (m *Storage) Rollback() { m.pending, m.pendSet = map[string][]byte{}, false }

// Dump returns a copy of every durable row.
func (m *Storage) Dump() map[string][]byte {
	out := map[string][]byte{}
	for k, v := range m.Rows {
		out[k] = append([]byte{}, v...)
	}
	return out
}

// AlarmAt returns the alarm that is set, 0 for none.
func (m *Storage) AlarmAt() int64 { return m.Alarm }

// Local runs objects in this process, one call at a time as the platform runs
// an instance: another call gets in only while one has called out. It is the
// Stub of native tests.
type Local struct {
	o       Object
	now     func() time.Time
	mu      sync.Mutex
	stores  map[string]*Storage
	flights map[string]*flight
	// Down makes every call fail as an unreachable object does; Fail, when set,
	// is asked before each operation and reports whether that one fails.
	Down bool
	Fail func(op string) bool
	// Ops are the operations that were called, in order, also those that failed.
	Ops []string
}

// flight is a refresh under way, which identical ones wait for.
type flight struct {
	done   sync.WaitGroup
	status int
	answer []byte
	err    error
}

// inside marks the context of a call that runs, and has the storage it is for.
type inside struct{ *Storage }

type insideKey struct{}

// Object is the code of an object: a *machine.Object.
type Object interface {
	Handle(ctx context.Context, st storage.Storage, machineID, op string, body []byte) (status int, answer []byte)
	Alarm(ctx context.Context, st storage.Storage, machineID string) error
}

// New runs an object in process by the clock now. Its calls out, do and kv, are
// wrapped so that they let other calls in, and stub becomes the Local if it is
// nil.
func New(o Object, now func() time.Time, do *upstream.Doer, kv *store.KV, stub *rpc.Stub) *Local {
	l := &Local{o: o, now: now, stores: map[string]*Storage{}, flights: map[string]*flight{}}
	if *do != nil {
		*do = localDoer{l, *do}
	}
	if *kv != nil {
		*kv = localKV{l, *kv}
	}
	if *stub == nil {
		*stub = l
	}
	return l
}

// Storage returns the storage of a machine's object.
func (l *Local) Storage(machineID string) *Storage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storage(machineID)
}

func (l *Local) storage(machineID string) *Storage {
	m := l.stores[machineID]
	if m == nil {
		m = NewStorage()
		l.stores[machineID] = m
	}
	return m
}

// Call runs one operation. Identical refreshes that overlap are one call.
func (l *Local) Call(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error) {
	defer l.leave(ctx)()
	l.mu.Lock()
	l.Ops = append(l.Ops, op)
	if l.Down || l.Fail != nil && l.Fail(op) {
		l.mu.Unlock()
		return 0, nil, ErrUnreachable
	}
	if op != "refresh" {
		defer l.mu.Unlock()
		return l.run(ctx, machineID, op, body)
	}
	key := machineID + "\n" + string(body)
	if f := l.flights[key]; f != nil {
		l.mu.Unlock()
		f.done.Wait()
		return f.status, f.answer, f.err
	}
	f := &flight{}
	f.done.Add(1)
	l.flights[key] = f
	f.status, f.answer, f.err = l.run(ctx, machineID, op, body)
	delete(l.flights, key)
	l.mu.Unlock()
	f.done.Done()
	return f.status, f.answer, f.err
}

// run is one call, with the lock held.
func (l *Local) run(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error) {
	st := l.storage(machineID)
	status, answer = l.o.Handle(context.WithValue(ctx, insideKey{}, inside{st}), st, machineID, op, body)
	st.Flush()
	return status, answer, nil
}

// Rows returns how many rows all machines have read and written so far.
func (l *Local) Rows() (read, written int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, st := range l.stores {
		read, written = read+st.Read, written+st.Written
	}
	return read, written
}

// Alarms runs the alarms that are due, also those that set themselves again
// for now, and returns how many ran.
func (l *Local) Alarms(ctx context.Context) int {
	ran := 0
	for range 100 {
		again := false
		l.mu.Lock()
		ids := slices.Sorted(maps.Keys(l.stores))
		now := l.now().UnixMilli()
		for _, id := range ids {
			st := l.stores[id]
			if st.Alarm == 0 || st.Alarm > now {
				continue
			}
			again = true
			ran++
			st.Alarm = 0
			l.alarm(ctx, st, id)
		}
		l.mu.Unlock()
		if !again {
			break
		}
	}
	return ran
}

func (l *Local) alarm(ctx context.Context, st *Storage, id string) {
	err := l.o.Alarm(context.WithValue(ctx, insideKey{}, inside{st}), st, id)
	st.Flush()
	if err != nil {
		st.Alarm = l.now().UnixMilli() + 2000 // the platform tries again
	}
}

// leave lets other calls in while a call of this context is out.
func (l *Local) leave(ctx context.Context) (back func()) {
	in, ok := ctx.Value(insideKey{}).(inside)
	if !ok {
		return func() {}
	}
	in.Flush()
	l.mu.Unlock()
	return l.mu.Lock
}

type localDoer struct {
	l    *Local
	next upstream.Doer
}

type localPending struct {
	l    *Local
	ctx  context.Context
	next upstream.Pending
}

func (d localDoer) Start(ctx context.Context, req *upstream.Request) upstream.Pending {
	return localPending{d.l, ctx, d.next.Start(ctx, req)}
}

func (p localPending) Wait() (*upstream.Response, error) {
	defer p.l.leave(p.ctx)()
	return p.next.Wait()
}

type localKV struct {
	l    *Local
	next store.KV
}

func (k localKV) Get(ctx context.Context, key string) ([]byte, error) {
	defer k.l.leave(ctx)()
	return k.next.Get(ctx, key)
}

func (k localKV) Put(ctx context.Context, key string, value []byte) error {
	defer k.l.leave(ctx)()
	return k.next.Put(ctx, key, value)
}

func (k localKV) Delete(ctx context.Context, key string) error {
	defer k.l.leave(ctx)()
	return k.next.Delete(ctx, key)
}
