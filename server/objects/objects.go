// Package objects runs the objects of machines in this process: one turn at a
// time for each machine, over a durable store. It does what the edge platform
// does for its objects. See docs/decisions/0063-turns-of-machines.md.
package objects

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/redact"
)

// Object is the logic of the objects: a *gateway.App.
type Object interface {
	Object(ctx context.Context, st storage.Storage, machineID, op string, body []byte) (status int, answer []byte)
	// Alarm logs its error. It runs again after one.
	Alarm(ctx context.Context, st storage.Storage, machineID string) error
	Cron(ctx context.Context, expression string)
	// Buffered returns the machines whose reports are not written yet. The operation
	// "flush" writes those of one.
	Buffered() []string
}

var (
	errNoAnswer = errors.New("objects: no answer in time")
	errStopped  = errors.New("objects: the program is stopping")
)

// Runner runs the objects of all machines. It is the Stub of the program, whose ports
// wait with Outside.
type Runner struct {
	engine Engine
	object Object
	log    func(level int, line string)
	now    func() time.Time

	alarms *alarms

	mu        sync.Mutex
	machines  map[string]*machine
	refreshes map[string]*refresh
	active    int           // calls, alarms and loops under way
	stopping  bool          // the last of them closes idle
	refuses   bool          // nothing begins any more
	shared    bool          // the engine rings the alarms; set by Start
	quit      chan struct{} // closed by Stop
	idle      chan struct{} // closed when nothing is under way after Stop
}

var _ rpc.Stub = (*Runner)(nil)

// Option changes a Runner.
type Option func(*Runner)

// Log sets what receives log lines. Level 2 and above is an error.
func Log(write func(level int, line string)) Option { return func(r *Runner) { r.log = write } }

// Clock sets the clock of alarms. Without it that is the system's.
func Clock(now func() time.Time) Option { return func(r *Runner) { r.now = now } }

// New returns a Runner over an engine. Use must follow before the first call.
func New(e Engine, options ...Option) *Runner {
	r := &Runner{
		engine: e, log: func(int, string) {}, now: time.Now,
		machines: map[string]*machine{}, refreshes: map[string]*refresh{}, quit: make(chan struct{}),
		idle: make(chan struct{}),
	}
	r.alarms = newAlarms(r)
	for _, set := range options {
		set(r)
	}
	return r
}

// Use sets the logic of the objects, whose ports may have the Runner as their Stub.
func (r *Runner) Use(o Object) { r.object = o }

// machine is the turn of one machine, while something holds it or waits for it.
type machine struct {
	id   string
	turn chan struct{} // has one element while a goroutine has the turn
	uses int           // guarded by Runner.mu
}

// turnKey is the key of the *machine whose turn a context is in.
type turnKey struct{}

// count changes the number of what is under way, and reports whether more may
// begin.
func (r *Runner) count(change int) bool {
	if change > 0 && r.refuses {
		return false
	}
	if r.active += change; r.active == 0 && r.stopping {
		r.refuses = true
		select {
		case <-r.idle:
		default:
			close(r.idle)
		}
	}
	return true
}

// begin counts one more use of a machine, and reports whether it may begin.
func (r *Runner) begin(id string) (*machine, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.count(1) {
		return nil, false
	}
	m := r.machines[id]
	if m == nil {
		m = &machine{id: id, turn: make(chan struct{}, 1)}
		r.machines[id] = m
	}
	m.uses++
	return m, true
}

// end is the end of what began. It forgets an idle machine.
func (r *Runner) end(m *machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.uses--; m.uses == 0 {
		delete(r.machines, m.id)
	}
	r.count(-1)
}

// Outside runs wait without the turn of ctx, if it has one, for code of the objects that
// waits for something else. The turn is taken again before it returns, also if wait
// panics.
func (r *Runner) Outside(ctx context.Context, wait func()) {
	if m, ok := ctx.Value(turnKey{}).(*machine); ok {
		r.engine.Release(m.id)
		<-m.turn
		defer func() { m.turn <- struct{}{} }()
	}
	wait()
}

// Call runs one operation of a machine's object. A call whose turn has begun
// runs to its end. It does not end with ctx, because what a client has caused
// must be stored also when the client has left.
func (r *Runner) Call(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error) {
	if op == "refresh" {
		return r.callRefresh(ctx, machineID, body)
	}
	m, ok := r.begin(machineID)
	if !ok {
		return 0, nil, errStopped
	}
	late := time.NewTimer(rpc.Limit(op))
	defer late.Stop()
	select {
	case m.turn <- struct{}{}:
	case <-late.C:
		r.end(m)
		return 0, nil, errNoAnswer
	}
	done := make(chan result, 1)
	go func() {
		a := r.run(ctx, m, op, body)
		if r.shared && a.status == 200 && tells(op, body) {
			m.turn <- struct{}{}
			r.run(ctx, m, "flush", nil)
		}
		r.end(m)
		done <- a
	}()
	select {
	case a := <-done:
		return a.status, a.answer, nil
	case <-late.C:
		return 0, nil, errNoAnswer
	}
}

// result is the answer of an operation.
type result struct {
	status int
	answer []byte
}

// run runs an operation in the turn of its machine, which it ends.
func (r *Runner) run(ctx context.Context, m *machine, op string, body []byte) (a result) {
	ctx = context.WithValue(context.WithoutCancel(ctx), turnKey{}, m)
	if !r.runTurn(m, func() { a.status, a.answer = r.object.Object(ctx, r.storage(m), m.id, op, body) }) {
		return result{status: 500}
	}
	return a
}

// runTurn runs fn, and ends the turn of m, which may be nil. A panic is logged; runTurn
// then returns false.
func (r *Runner) runTurn(m *machine, fn func()) (ok bool) {
	defer func() {
		p := recover()
		if m != nil {
			r.engine.Release(m.id)
			<-m.turn
		}
		if p != nil {
			ok = false
			r.log(2, redact.PanicLine("", p))
		}
	}()
	fn()
	return true
}

// Flush writes what the objects have buffered in memory.
func (r *Runner) Flush(ctx context.Context) error {
	if r.object == nil {
		return nil
	}
	var failed error
	for _, id := range r.object.Buffered() {
		status, _, err := r.Call(ctx, id, "flush", nil)
		if err == nil && status != 200 {
			err = storage.ErrStorage
		}
		if err != nil {
			failed = fmt.Errorf("machine %s: reports were not written: %w", id, err)
		}
	}
	return failed
}

// Stop writes what the objects have buffered, starts no more alarms and waits until
// no call is under way. Calls that come meanwhile are served; later ones fail. It may
// be called again.
func (r *Runner) Stop(ctx context.Context) error {
	flushed := make(chan error, 1)
	go func() { flushed <- r.Flush(ctx) }()
	select {
	case err := <-flushed:
		if err != nil {
			r.log(2, err.Error())
		}
	case <-ctx.Done():
	}
	r.mu.Lock()
	if !r.stopping {
		r.stopping = true
		close(r.quit)
	}
	r.count(0)
	r.mu.Unlock()
	select {
	case <-r.idle:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == 0 {
		return nil
	}
	r.refuses = true
	return fmt.Errorf("objects: %d calls still run: %w", r.active, ctx.Err())
}

// turnStorage is the storage of one machine in its turn.
type turnStorage struct {
	storage.Storage
	r  *Runner
	id string
}

func (r *Runner) storage(m *machine) storage.Storage {
	return turnStorage{r.engine.Rows(m.id), r, m.id}
}

// Write stores rows and sets the alarm.
func (t turnStorage) Write(rows []storage.Row, alarm int64) error {
	err := t.Storage.Write(rows, alarm)
	if err == nil && alarm != storage.KeepAlarm && !t.r.shared {
		t.r.alarms.set(t.id, alarm)
	}
	return err
}
