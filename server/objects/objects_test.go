package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/server/store"
)

// fake is an Object of functions.
type fake struct {
	call  func(ctx context.Context, st storage.Storage, id, op string, body []byte) (int, []byte)
	alarm func(ctx context.Context, st storage.Storage, id string)
	fails func() error // alarm, if it is nil
	cron  func(ctx context.Context, expression string)
	// buffered are the machines that a call of "flush" has not reached.
	buffered map[string]bool
}

func (f *fake) Buffered() []string { return slices.Sorted(maps.Keys(f.buffered)) }

func (f *fake) Object(ctx context.Context, st storage.Storage, id, op string, body []byte) (int, []byte) {
	return f.call(ctx, st, id, op, body)
}

func (f *fake) Alarm(ctx context.Context, st storage.Storage, id string) error {
	if f.alarm == nil {
		return f.fails()
	}
	f.alarm(ctx, st, id)
	return nil
}

func (f *fake) Cron(ctx context.Context, expression string) {
	if f.cron != nil {
		f.cron(ctx, expression)
	}
}

func open(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// lines are the log lines of a Runner.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(level int, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprint(level, " ", line))
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// start returns a Runner of o over a new store, which is stopped at the end of
// the test.
func start(t testing.TB, o *fake, set ...Option) *Runner {
	t.Helper()
	return startOver(t, o, open(t, t.TempDir()), set...)
}

func startOver(t testing.TB, o *fake, st Engine, set ...Option) *Runner {
	t.Helper()
	r := New(st, append([]Option{Log(func(level int, line string) { t.Log(level, line) })}, set...)...)
	r.Use(o)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r) })
	return r
}

func stop(t testing.TB, r *Runner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// want calls an operation that must be answered with 200 and the text.
func want(t testing.TB, r *Runner, id, op, text string) {
	t.Helper()
	status, answer, err := r.Call(t.Context(), id, op, nil)
	if status != 200 || string(answer) != text || err != nil {
		t.Errorf("%s of %s: got %d %q, %v, want 200 %q", op, id, status, answer, err, text)
	}
}

func row(key, value string) []storage.Row {
	return []storage.Row{{Key: key, Value: []byte(value)}}
}

func TestTurnsOfOneMachineDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		r := start(t, o)
		inside := map[string]*int{"m0": new(int), "m1": new(int), "m2": new(int)} // their turns guard them
		o.call = func(_ context.Context, st storage.Storage, id, op string, _ []byte) (int, []byte) {
			if *inside[id]++; *inside[id] > 1 {
				t.Errorf("two turns of %s", id)
			}
			st.Write(row("k", op), storage.KeepAlarm)
			if v, _ := st.Get("k"); string(v) != op {
				t.Errorf("%s: read %q after writing %q", id, v, op)
			}
			*inside[id]--
			return 200, []byte(op)
		}
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() { want(t, r, fmt.Sprint("m", i%3), fmt.Sprint("op", i), fmt.Sprint("op", i)) })
		}
		wg.Wait()
		if len(r.machines) != 0 {
			t.Errorf("%d idle machines are in memory", len(r.machines))
		}
	})
}

// slow is a storage whose writes wait.
type slow struct {
	storage.Storage
	began   chan struct{}
	release chan struct{}
}

func (s *slow) Write(rows []storage.Row, alarm int64) error {
	s.began <- struct{}{}
	<-s.release
	return s.Storage.Write(rows, alarm)
}

func TestWriteKeepsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan struct{}), make(chan struct{})
		o := &fake{}
		r := startOver(t, o, wrapped{open(t, t.TempDir()), func(st storage.Storage) storage.Storage { return &slow{st, began, release} }})
		var order []string
		o.call = func(_ context.Context, st storage.Storage, id, op string, _ []byte) (int, []byte) {
			if op == "write" {
				st.Write(row("k", "v"), storage.KeepAlarm)
			}
			order = append(order, op)
			return 200, []byte(op)
		}
		var wg sync.WaitGroup
		wg.Go(func() { want(t, r, "a", "write", "write") })
		<-began
		wg.Go(func() { want(t, r, "a", "second", "second") })
		synctest.Wait()
		want(t, r, "b", "other", "other")
		close(release)
		wg.Wait()
		if got := fmt.Sprint(order); got != "[other write second]" {
			t.Errorf("order %s", got)
		}
	})
}

func TestOutsideLetsOtherTurnsOfTheMachineIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		r := start(t, o)
		out, back := make(chan struct{}), make(chan struct{})
		var order []string
		o.call = func(ctx context.Context, _ storage.Storage, _, op string, _ []byte) (int, []byte) {
			if op == "out" {
				r.Outside(ctx, func() { close(out); <-back })
			}
			order = append(order, op)
			return 200, []byte(op)
		}
		var wg sync.WaitGroup
		wg.Go(func() { want(t, r, "a", "out", "out") })
		<-out
		want(t, r, "a", "meanwhile", "meanwhile")
		close(back)
		wg.Wait()
		if got := fmt.Sprint(order); got != "[meanwhile out]" {
			t.Errorf("order %s", got)
		}
	})
}

// An object calls others, and itself, while it is outside.
func TestObjectsCallEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		r := start(t, o)
		call := func(ctx context.Context, id, op string) (text string) {
			r.Outside(ctx, func() {
				status, answer, err := r.Call(ctx, id, op, nil)
				text = fmt.Sprint(status, " ", string(answer), " ", err)
			})
			return text
		}
		o.call = func(ctx context.Context, _ storage.Storage, id, op string, _ []byte) (int, []byte) {
			switch id + " " + op {
			case "m create":
				return 200, []byte(call(ctx, "registry", "put") + ", " + call(ctx, "m", "tick"))
			case "registry put":
				return 200, []byte(call(ctx, "m", "exists"))
			}
			return 200, []byte(op)
		}
		want(t, r, "m", "create", "200 200 exists <nil> <nil>, 200 tick <nil>")
	})
}

func TestPanicIsAnswered500AndFreesTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, log := &fake{}, &lines{}
		r := start(t, o, Log(log.add))
		o.call = func(ctx context.Context, st storage.Storage, _, op string, _ []byte) (int, []byte) {
			switch op {
			case "panic":
				panic("the body of a request")
			case "panic outside":
				r.Outside(ctx, func() { var list []int; list[len(op)]++ })
			case "storage":
				err := st.Write([]storage.Row{{Value: []byte("a row without a key")}}, storage.KeepAlarm)
				return 503, []byte(err.Error())
			}
			return 200, nil
		}
		for _, op := range []string{"panic", "panic outside"} {
			if status, answer, err := r.Call(t.Context(), "m", op, nil); status != 500 || answer != nil || err != nil {
				t.Errorf("%s: got %d %q, %v", op, status, answer, err)
			}
			want(t, r, "m", "next", "")
		}
		status, answer, err := r.Call(t.Context(), "m", "storage", nil)
		if status != 503 || string(answer) != "object storage failed: key required" || err != nil {
			t.Errorf("storage: got %d %q, %v", status, answer, err)
		}
		want(t, r, "m", "next", "")
		text := log.text()
		for _, part := range []string{`2 {"level":"error","msg":"panic"`, "index out of range", "objects_test.go"} {
			if !strings.Contains(text, part) {
				t.Errorf("the log has no %q:\n%s", part, text)
			}
		}
		if strings.Contains(text, "the body") {
			t.Errorf("the log has data of a request:\n%s", text)
		}
	})
}

func TestCallRunsForAClientThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		r := start(t, o)
		type key struct{}
		o.call = func(ctx context.Context, _ storage.Storage, _, op string, _ []byte) (int, []byte) {
			r.Outside(ctx, func() {})
			return 200, fmt.Append(nil, ctx.Err(), ctx.Value(key{}))
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		cancel()
		for _, op := range []string{"job.put", "refresh"} {
			status, answer, err := r.Call(ctx, "m", op, nil)
			if status != 200 || string(answer) != "<nil>value" || err != nil {
				t.Errorf("%s: got %d %q, %v", op, status, answer, err)
			}
		}
	})
}

func TestCallersWaitNoLongerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		// Not started: the scheduled work would wait for the turn that the first call keeps,
		// and time stands still while a goroutine waits for a lock.
		r := New(open(t, t.TempDir()))
		r.Use(o)
		began, release := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var ran []string
		o.call = func(_ context.Context, _ storage.Storage, _, op string, body []byte) (int, []byte) {
			mu.Lock()
			ran = append(ran, op+string(body))
			mu.Unlock()
			if string(body) == " first" {
				close(began)
				<-release
			}
			return 200, []byte(op)
		}
		start := time.Now()
		if _, _, err := r.Call(t.Context(), "m", "snapshot", []byte(" first")); !errors.Is(err, errNoAnswer) || time.Since(start) != 10*time.Second {
			t.Errorf("a call that runs: %v after %v", err, time.Since(start))
		}
		<-began
		if _, _, err := r.Call(t.Context(), "m", "snapshot", []byte(" second")); !errors.Is(err, errNoAnswer) {
			t.Errorf("a call that waits for its turn: %v", err)
		}
		start = time.Now()
		if _, _, err := r.Call(t.Context(), "m", "report", nil); !errors.Is(err, errNoAnswer) || time.Since(start) != 30*time.Second {
			t.Errorf("another call: %v after %v", err, time.Since(start))
		}
		var wg sync.WaitGroup
		wg.Go(func() { want(t, r, "m", "other", "other") }) // has its own limit
		synctest.Wait()
		close(release)
		wg.Wait()
		if got := fmt.Sprint(ran); got != "[snapshot first other]" {
			t.Errorf("ran %s", got)
		}
	})
}

func TestIdenticalRefreshesAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 50
		o := &fake{}
		r := start(t, o)
		release := make(chan struct{})
		var calls atomic.Int32
		o.call = func(ctx context.Context, _ storage.Storage, id, _ string, body []byte) (int, []byte) {
			calls.Add(1)
			r.Outside(ctx, func() { <-release })
			return 200, append([]byte(id+" "), body...)
		}
		var wg sync.WaitGroup
		refresh := func(id, body string) {
			wg.Go(func() {
				status, answer, err := r.Call(t.Context(), id, "refresh", []byte(body))
				if status != 200 || string(answer) != id+" "+body || err != nil {
					t.Errorf("got %d %q, %v", status, answer, err)
				}
			})
		}
		for range callers {
			refresh("m", "token 1")
		}
		refresh("m", "token 2")
		refresh("n", "token 1")
		synctest.Wait()
		close(release)
		wg.Wait()
		if n := calls.Load(); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		release = make(chan struct{})
		close(release)
		refresh("m", "token 1")
		wg.Wait()
		if n := calls.Load(); n != 4 || len(r.refreshes) != 0 {
			t.Errorf("%d calls after another one, want 4; %d refreshes under way", n, len(r.refreshes))
		}
	})
}

func TestSlowRefreshIsAnsweredAndContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		r := start(t, o)
		release, ended := make(chan struct{}), make(chan struct{})
		o.call = func(ctx context.Context, st storage.Storage, _, op string, _ []byte) (int, []byte) {
			if op == "refresh" {
				r.Outside(ctx, func() { <-release })
				st.Write(row("token", "new"), storage.KeepAlarm)
				close(ended)
			}
			v, _ := st.Get("token")
			return 200, v
		}
		start := time.Now()
		for range 2 { // the second joins the first
			status, answer, err := r.Call(t.Context(), "m", "refresh", []byte("body"))
			if status != 503 || string(answer) != rpc.StillRefreshing || err != nil || time.Since(start) != 10*time.Second {
				t.Errorf("got %d %q, %v after %v", status, answer, err, time.Since(start))
			}
		}
		close(release)
		<-ended
		want(t, r, "m", "read", "new")
	})
}

func TestStopWaitsForCallsAndThenRefusesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		r := New(open(t, t.TempDir()))
		r.Use(o)
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		began, release := make(chan struct{}), make(chan struct{})
		o.call = func(ctx context.Context, _ storage.Storage, id, op string, _ []byte) (int, []byte) {
			if op == "wait" {
				close(began)
				r.Outside(ctx, func() {
					<-release
					want(t, r, "other", "nested", "nested")
				})
			}
			return 200, []byte(op)
		}
		var wg sync.WaitGroup
		wg.Go(func() { want(t, r, "m", "wait", "wait") })
		<-began
		stopped := make(chan error)
		go func() { stopped <- r.Stop(t.Context()) }()
		synctest.Wait()
		close(release)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		wg.Wait()
		for _, op := range []string{"op", "refresh"} {
			if _, _, err := r.Call(t.Context(), "m", op, nil); !errors.Is(err, errStopped) {
				t.Errorf("%s after the stop: %v", op, err)
			}
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Errorf("second stop: %v", err)
		}
	})
}

func TestStopReportsCallsThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fake{}
		r := start(t, o)
		began, release := make(chan struct{}), make(chan struct{})
		o.call = func(ctx context.Context, _ storage.Storage, _, _ string, _ []byte) (int, []byte) {
			close(began)
			r.Outside(ctx, func() { <-release })
			return 200, nil
		}
		var wg sync.WaitGroup
		wg.Go(func() { want(t, r, "m", "wait", "") })
		<-began
		expired, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Stop(expired); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, _, err := r.Call(t.Context(), "m", "op", nil); !errors.Is(err, errStopped) {
			t.Errorf("a call after the stop: %v", err)
		}
		close(release)
		wg.Wait()
	})
}
