//go:build js && wasm

package bridge

import (
	"context"
	"iter"
)

// job is what a task does.
type job interface{ run() }

// task is a coroutine that does one job after another. An export switches
// to it and gets control back once it waits for the host or has nothing more to
// do, without the scheduler of the runtime. One that is used again has its stack
// grown already.
type task struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	job   job
}

// current is the task that runs; nil while none does. idle have nothing to do.
var (
	current *task
	idle    []*task
)

// maxIdle bounds the tasks whose stacks remain in memory.
const maxIdle = 64

// start does a job in a task until it waits or is done.
func start(j job) {
	var t *task
	if n := len(idle); n > 0 {
		t, idle = idle[n-1], idle[:n-1]
	} else {
		t = &task{}
		t.next, _ = iter.Pull(t.loop)
	}
	t.job = j
	t.run()
}

func (t *task) loop(yield func(struct{}) bool) {
	t.yield = yield
	for {
		t.job.run()
		t.job = nil
		if len(idle) == maxIdle {
			return
		}
		idle = append(idle, t)
		if !yield(struct{}{}) {
			return
		}
	}
}

// run continues the task until it waits or has nothing more to do.
func (t *task) run() {
	before := current
	current = t
	t.next()
	current = before
}

// pause returns control to the caller of run.
func (t *task) pause() { t.yield(struct{}{}) }

// goroutines counts those that the runtime must schedule.
var goroutines int

// scheduled reports, as 1, whether goroutines wait for the scheduler of the
// runtime, which runs in its own export resume.
func scheduled() int32 {
	if goroutines > 0 {
		return 1
	}
	return 0
}

// Await runs f on a goroutine of its own, outside the tasks, and waits for it. f
// may block, as code does that awaits promises with syscall/js. It returns false
// without calling f if the call of ctx can use the host no longer.
func Await(ctx context.Context, f func()) bool {
	o := begin(callOf(ctx))
	if !o.usable() {
		o.wait()
		return false
	}
	number := o.number
	goroutines++
	go func() {
		goroutines--
		f()
		finish(number, &event{})
	}()
	return o.wait().outcome == 0
}
