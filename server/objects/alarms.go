package objects

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

var errPanic = errors.New("objects: the alarm has panicked")

const (
	cronFirst      = 2 * time.Second // after the start
	cronEvery      = 5 * time.Minute
	cronExpression = "*/5 * * * *" // of cronEvery, as in wrangler.toml

	flushEvery = 10 * time.Second // of buffers, where servers share the alarms

	maxAlarms = 32 // that run at once

	// A failed alarm is repeated after retryFirst, and then after twice as long
	// each time, up to retryMost.
	retryFirst = 2 * time.Second
	retryMost  = time.Minute

	// A timer may be late after the clock was set or the computer has slept.
	maxSleep = time.Minute
)

// alarm is the alarm of one machine.
type alarm struct {
	id      string
	at      int64 // as it is stored, Unix milliseconds; 0 without one
	due     int64 // later than at after failures
	fails   int
	running bool
	set     bool // since it has last begun to run
	index   int  // in the queue; -1 outside
}

// alarms calls the objects' alarms at their times.
type alarms struct {
	r    *Runner
	wake chan struct{} // has an element after a change of the first alarm
	free chan struct{} // has an element for each alarm that runs

	mu    sync.Mutex
	all   map[string]*alarm
	queue queue
}

func newAlarms(r *Runner) *alarms {
	return &alarms{r: r, wake: make(chan struct{}, 1), free: make(chan struct{}, maxAlarms), all: map[string]*alarm{}}
}

// Start begins the stored alarms and the cron.
func (r *Runner) Start() error {
	stored, err := r.engine.Alarms()
	if err != nil {
		return err
	}
	a, loops := r.alarms, []func(){r.alarms.loop, r.cron}
	if r.shared = stored == nil; r.shared {
		loops = []func(){r.flushes, r.cron}
	}
	a.mu.Lock()
	for id, at := range stored {
		if a.all[id] == nil { // else a call has set it since
			a.put(id).setAt(a, at)
		}
	}
	a.mu.Unlock()
	for _, loop := range loops {
		if !r.enter() {
			return errStopped
		}
		go func() {
			defer r.leave()
			loop()
		}()
	}
	return nil
}

// enter counts one more loop, and reports whether it may begin.
func (r *Runner) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count(1)
}

func (r *Runner) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(-1)
}

// put returns the entry of a machine, which is created if it is missing.
func (a *alarms) put(id string) *alarm {
	e := a.all[id]
	if e == nil {
		e = &alarm{id: id, index: -1}
		a.all[id] = e
	}
	return e
}

// set notes that the alarm of a machine was stored.
func (a *alarms) set(id string, at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.put(id)
	e.set, e.fails = true, 0
	e.setAt(a, at)
}

// setAt queues the alarm, unless it runs.
func (e *alarm) setAt(a *alarms, at int64) {
	e.at, e.due = at, at
	if !e.running {
		e.queue(a)
	}
}

// queue moves the alarm to its place in the queue, or removes it if it is not set.
func (e *alarm) queue(a *alarms) {
	switch {
	case e.at == 0 && e.index >= 0:
		heap.Remove(&a.queue, e.index)
		fallthrough
	case e.at == 0:
		delete(a.all, e.id)
		return
	case e.index >= 0:
		heap.Fix(&a.queue, e.index)
	default:
		heap.Push(&a.queue, e)
	}
	if a.queue[0] == e {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// next takes the first alarm that is due, or returns how long to wait.
func (a *alarms) next() (*alarm, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return nil, maxSleep
	}
	e := a.queue[0]
	if wait := time.Duration(e.due-a.r.now().UnixMilli()) * time.Millisecond; wait > 0 {
		return nil, min(wait, maxSleep)
	}
	heap.Pop(&a.queue)
	e.running, e.set = true, false
	return e, 0
}

func (a *alarms) loop() {
	for {
		e, wait := a.next()
		if e != nil {
			select {
			case a.free <- struct{}{}:
				go func() {
					defer func() { <-a.free }()
					a.r.alarm(e)
				}()
			case <-a.r.quit:
				return
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-a.wake:
		case <-a.r.quit:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// alarm runs one alarm. The stored one is removed after it has run, unless it
// was set again, so it runs once more after a crash. One that fails is repeated.
func (r *Runner) alarm(e *alarm) {
	m, ok := r.begin(e.id)
	if !ok {
		return
	}
	defer r.end(m)
	m.turn <- struct{}{}
	ctx := context.WithValue(context.Background(), turnKey{}, m)
	var failed error
	ok = r.runTurn(m, func() {
		if r.alarms.changed(e) {
			return // to another time while this waited for its turn
		}
		st := r.storage(m)
		if failed = r.object.Alarm(ctx, st, m.id); failed == nil && !r.alarms.changed(e) {
			if failed = st.Write(nil, 0); failed != nil {
				r.log(2, fmt.Sprintf("machine %s: %v", m.id, failed))
			}
		}
	})
	r.alarms.ran(e, ok && failed == nil)
}

// Ring runs the alarm of a machine once, for an engine that rings the alarms itself.
func (r *Runner) Ring(machineID string) error {
	m, ok := r.begin(machineID)
	if !ok {
		return errStopped
	}
	defer r.end(m)
	m.turn <- struct{}{}
	ctx := context.WithValue(context.Background(), turnKey{}, m)
	failed := errPanic
	r.runTurn(m, func() { failed = r.object.Alarm(ctx, r.storage(m), m.id) })
	return failed
}

// flushes writes what the objects have buffered every flushEvery until the Runner stops.
// Where servers share the alarms, that of a buffer may ring at another one.
func (r *Runner) flushes() {
	ticks := time.NewTicker(flushEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if err := r.Flush(context.Background()); err != nil {
				r.log(2, err.Error())
			}
		case <-r.quit:
			return
		}
	}
}

// tells reports whether an operation has buffered what other servers must know at once.
func tells(op string, body []byte) bool {
	return op == "report" && (gjson.GetBytes(body, "cooldowns").Exists() || gjson.GetBytes(body, "refusals").Exists())
}

// changed reports whether the alarm was set since it has begun to run.
func (a *alarms) changed(e *alarm) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return e.set
}

// ran queues the alarm for its next run.
func (a *alarms) ran(e *alarm, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.running = false
	if !ok {
		pause := min(retryFirst<<min(e.fails, 10), retryMost)
		e.fails++
		e.due = max(e.due, a.r.now().Add(pause).UnixMilli())
	}
	e.queue(a)
}

// Cron runs the scheduled work once.
func (r *Runner) Cron() {
	r.runTurn(nil, func() { r.object.Cron(context.Background(), cronExpression) })
}

// cron runs the scheduled work soon after the start, when a new server has no prices but
// those of its build, and then until the Runner stops.
func (r *Runner) cron() {
	ticks := time.NewTicker(cronFirst)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			ticks.Reset(cronEvery)
			r.Cron()
		case <-r.quit:
			return
		}
	}
}

// queue is a heap of alarms by their times.
type queue []*alarm

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	e := x.(*alarm)
	e.index = len(*q)
	*q = append(*q, e)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	e.index = -1
	return e
}
