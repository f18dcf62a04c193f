package objects

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir/pkg/machine/storage"
)

func in(d time.Duration) int64 { return time.Now().Add(d).UnixMilli() }

// alarmOf returns the stored alarm of a machine, 0 without one.
func alarmOf(t testing.TB, r *Runner, id string) int64 {
	t.Helper()
	all, err := r.engine.Alarms()
	if err != nil {
		t.Fatal(err)
	}
	return all[id]
}

// setting is an object whose calls set the alarm to the number in the body.
func setting(alarm func(ctx context.Context, st storage.Storage, id string)) *fake {
	return &fake{alarm: alarm, call: func(_ context.Context, st storage.Storage, _, _ string, body []byte) (int, []byte) {
		var at int64
		fmt.Sscan(string(body), &at)
		st.Write(nil, at)
		return 200, nil
	}}
}

func (r *Runner) setAlarm(t testing.TB, id string, at int64) {
	t.Helper()
	if status, _, err := r.Call(t.Context(), id, "set", fmt.Append(nil, at)); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

func TestDueAlarmFiresAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		st := open(t, dir)
		st.Rows("past").Write(nil, in(-time.Hour))
		st.Rows("soon").Write(nil, in(20*time.Millisecond))
		st.Rows("later").Write(nil, in(time.Hour))
		st.Close()

		fired := make(chan string)
		r := startOver(t, &fake{alarm: func(_ context.Context, _ storage.Storage, id string) { fired <- id }}, open(t, dir))
		for _, id := range []string{"past", "soon"} {
			if got := <-fired; got != id {
				t.Errorf("alarm of %s, want %s", got, id)
			}
		}
		stop(t, r)
		if all, err := r.engine.Alarms(); err != nil || len(all) != 1 || all["later"] == 0 {
			t.Errorf("alarms after the two have run: %v, %v", all, err)
		}
	})
}

func TestAlarmIsStoredUntilItHasRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan struct{}), make(chan struct{})
		r := start(t, setting(func(context.Context, storage.Storage, string) {
			began <- struct{}{}
			<-release
		}))
		at := in(0)
		r.setAlarm(t, "m", at)
		<-began
		if stored := alarmOf(t, r, "m"); stored != at {
			t.Errorf("stored while it runs: %d, want %d", stored, at)
		}
		close(release)
		synctest.Wait()
		if stored := alarmOf(t, r, "m"); stored != 0 || r.pending() != 0 {
			t.Errorf("stored after it has run: %d, in memory: %d", stored, r.pending())
		}
	})
}

// pending returns how many alarms are in memory.
func (r *Runner) pending() int {
	r.alarms.mu.Lock()
	defer r.alarms.mu.Unlock()
	return len(r.alarms.all)
}

func TestAlarmMaySetItselfAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, done := 0, make(chan struct{})
		r := start(t, setting(func(_ context.Context, st storage.Storage, _ string) {
			if runs++; runs < 5 {
				st.Write(row("runs", fmt.Sprint(runs)), in(time.Millisecond))
				return
			}
			st.Write(row("runs", fmt.Sprint(runs)), in(time.Hour))
			close(done)
		}))
		r.setAlarm(t, "m", in(0))
		<-done
		synctest.Wait()
		if v, _ := r.engine.Rows("m").Get("runs"); string(v) != "5" || alarmOf(t, r, "m") == 0 {
			t.Errorf("%s runs, alarm at %d", v, alarmOf(t, r, "m"))
		}
	})
}

func TestLastAlarmSetCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan string)
		r := start(t, setting(func(_ context.Context, _ storage.Storage, id string) { fired <- id }))
		r.setAlarm(t, "removed", in(time.Hour))
		r.setAlarm(t, "removed", 0)
		r.setAlarm(t, "postponed", in(10*time.Minute))
		r.setAlarm(t, "postponed", in(time.Hour))
		r.setAlarm(t, "hastened", in(time.Hour))
		for i := range 20 {
			r.setAlarm(t, fmt.Sprint("other", i), in(time.Duration(20-i)*time.Minute))
		}
		r.setAlarm(t, "hastened", in(0))
		if id := <-fired; id != "hastened" {
			t.Errorf("alarm of %s", id)
		}
		stop(t, r)
		if n := r.pending(); n != 21 || r.alarms.queue[0].id != "other19" {
			t.Errorf("%d alarms, first %s", n, r.alarms.queue[0].id)
		}
		for i, e := range r.alarms.queue {
			if e.index != i {
				t.Errorf("alarm %d has index %d", i, e.index)
			}
		}
	})
}

func TestAlarmDoesNotRunTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *Runner
		running, runs := 0, 0
		out, back := make(chan struct{}), make(chan struct{})
		o := setting(func(ctx context.Context, _ storage.Storage, id string) {
			if running++; running > 1 {
				t.Error("two at once")
			}
			if runs++; runs == 1 {
				r.Outside(ctx, func() { close(out); <-back })
			}
			running--
		})
		r = start(t, o)
		r.setAlarm(t, "m", in(0))
		<-out
		r.setAlarm(t, "m", in(0)) // while it runs
		synctest.Wait()
		close(back)
		synctest.Wait()
		if runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
	})
}

func TestPostponedAlarmDoesNotRunEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := setting(func(_ context.Context, _ storage.Storage, id string) { t.Errorf("alarm of %s", id) })
		r := start(t, o)
		set := o.call
		began, release := make(chan struct{}), make(chan struct{})
		o.call = func(ctx context.Context, st storage.Storage, id, op string, body []byte) (int, []byte) {
			close(began)
			<-release // the alarm waits for this turn
			return set(ctx, st, id, op, body)
		}
		var wg sync.WaitGroup
		wg.Go(func() { r.setAlarm(t, "m", in(time.Hour)) })
		<-began
		r.alarms.set("m", in(0))
		synctest.Wait()
		close(release)
		wg.Wait()
		synctest.Wait()
		if r.pending() != 1 {
			t.Errorf("%d alarms, want 1", r.pending())
		}
	})
}

func TestFailedAlarmIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []int // seconds after the first
		var first time.Time
		o := setting(nil)
		o.fails = func() error {
			if len(runs) == 0 {
				first = time.Now()
			}
			runs = append(runs, int(time.Since(first)/time.Second))
			switch {
			case len(runs) == 2:
				panic("a mistake")
			case len(runs) < 9:
				return storage.ErrStorage
			}
			return nil
		}
		r := start(t, o)
		at := in(time.Second)
		r.setAlarm(t, "m", at)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if stored := alarmOf(t, r, "m"); stored != at {
			t.Errorf("stored after a failure: %d, want %d", stored, at)
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(runs); got != "[0 2 6 14 30 62 122 182 242]" {
			t.Errorf("runs after %s seconds", got)
		}
		if stored := alarmOf(t, r, "m"); stored != 0 || r.pending() != 0 {
			t.Errorf("stored after a success: %d, in memory: %d", stored, r.pending())
		}
	})
}

func TestAlarmSetAfterFailuresIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []int // seconds after the start
		began := time.Now()
		o := setting(nil)
		o.fails = func() error {
			runs = append(runs, int(time.Since(began)/time.Second))
			return storage.ErrStorage
		}
		r := start(t, o)
		r.setAlarm(t, "m", in(0))
		<-time.After(10 * time.Second)
		r.setAlarm(t, "m", in(0))
		<-time.After(3 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(runs); got != "[0 2 6 10 12]" {
			t.Errorf("runs after %s seconds", got)
		}
	})
}

// broken is a storage whose writes fail while it is broken.
type broken struct {
	storage.Storage
	is *atomic.Bool
}

func (b broken) Write(rows []storage.Row, alarm int64) error {
	if b.is.Load() {
		return storage.ErrStorage
	}
	return b.Storage.Write(rows, alarm)
}

// An alarm that has run is removed by a write, which may fail.
func TestAlarmThatCannotBeRemovedRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var is atomic.Bool
		var runs atomic.Int32
		o := setting(func(context.Context, storage.Storage, string) { runs.Add(1) })
		r := startOver(t, o, wrapped{open(t, t.TempDir()), func(st storage.Storage) storage.Storage { return broken{st, &is} }})
		r.setAlarm(t, "m", in(20*time.Millisecond))
		is.Store(true)
		<-time.After(3 * time.Second)
		synctest.Wait()
		is.Store(false)
		<-time.After(time.Minute)
		synctest.Wait()
		if n := runs.Load(); n != 3 || r.pending() != 0 {
			t.Errorf("%d runs, %d alarms in memory", n, r.pending())
		}
		stop(t, r)
		if stored := alarmOf(t, r, "m"); stored != 0 {
			t.Errorf("alarm at %d", stored)
		}
	})
}

func TestManyDueAlarmsAllFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const machines = 300
		st := open(t, t.TempDir())
		for m := range machines {
			st.Rows(fmt.Sprint("m", m)).Write(nil, int64(m+1))
		}
		var r *Runner
		var mu sync.Mutex
		running, most, fired := 0, 0, 0
		r = New(st)
		defer stop(t, r)
		r.Use(&fake{alarm: func(ctx context.Context, _ storage.Storage, id string) {
			mu.Lock()
			running++
			fired++
			most = max(most, running)
			mu.Unlock()
			r.Outside(ctx, func() { <-time.After(time.Second) })
			mu.Lock()
			running--
			mu.Unlock()
		}})
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if fired != machines || most != maxAlarms {
			t.Errorf("%d alarms, up to %d at once", fired, most)
		}
	})
}

func TestCronCallsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *Runner
		var calls []string
		began := time.Now()
		o := &fake{
			cron: func(ctx context.Context, expression string) {
				r.Outside(ctx, func() { want(t, r, "registry", expression, "") }) // it has no turn
			},
			call: func(_ context.Context, _ storage.Storage, id, op string, _ []byte) (int, []byte) {
				calls = append(calls, fmt.Sprint(id, " ", op, " after ", time.Since(began)))
				return 200, nil
			},
		}
		r = New(open(t, t.TempDir()))
		r.Use(o)
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		defer stop(t, r)
		<-time.After(11 * time.Minute)
		synctest.Wait()
		if got := strings.Join(calls, ", "); got != "registry */5 * * * * after 2s, registry */5 * * * * after 5m2s, registry */5 * * * * after 10m2s" {
			t.Errorf("called %s", got)
		}
	})
}

// The clock of a computer may be set, or stand still while it sleeps.
func TestAlarmFollowsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		fired := make(chan string, 1)
		r := start(t, setting(func(_ context.Context, _ storage.Storage, id string) { fired <- id }),
			Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
		r.setAlarm(t, "m", in(time.Hour))
		synctest.Wait()
		ahead.Store(int64(time.Hour))
		began := time.Now()
		<-fired
		if late := time.Since(began); late > time.Minute {
			t.Errorf("fired after %v", late)
		}
	})
}

func TestPanicOfTheCronIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		start(t, &fake{cron: func(context.Context, string) { panic("a mistake") }}, Log(log.add))
		<-time.After(6 * time.Minute)
		synctest.Wait()
		if !strings.HasPrefix(log.text(), `2 {"level":"error","msg":"panic"`) {
			t.Errorf("log: %s", log.text())
		}
	})
}
