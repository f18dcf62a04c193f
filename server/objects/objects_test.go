package objects

import (
	"context"
	"sync"
	"testing"
	"time"

	"weir/pkg/machine/storage"
	"weir/server/store"
)

// fake is an Object of functions.
type fake struct {
	call  func(ctx context.Context, st storage.Storage, id, op string, body []byte) (int, []byte)
	alarm func(ctx context.Context, st storage.Storage, id string)
	cron  func(ctx context.Context, expression string)
}

func (f *fake) Object(ctx context.Context, st storage.Storage, id, op string, body []byte) (int, []byte) {
	return f.call(ctx, st, id, op, body)
}

func (f *fake) Alarm(ctx context.Context, st storage.Storage, id string) { f.alarm(ctx, st, id) }
func (f *fake) Cron(ctx context.Context, expression string)              { f.cron(ctx, expression) }

func open(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// start returns a Runner of o that is stopped at the end of the test.
func start(t testing.TB, o *fake, st *store.Store) *Runner {
	t.Helper()
	r := New(st, Log(func(level int, line string) { t.Log(level, line) }))
	r.Use(o)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r) })
	return r
}

func stop(t testing.TB, r *Runner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestTurnsOfOneMachineDoNotOverlap(t *testing.T) {
	o := &fake{}
	r := start(t, o, open(t, t.TempDir()))
	inside := map[string]int{}
	o.call = func(ctx context.Context, st storage.Storage, id, op string, _ []byte) (int, []byte) {
		inside[id]++
		if inside[id] > 1 {
			t.Errorf("two turns of %s", id)
		}
		st.Write([]storage.Row{{Key: "k", Value: []byte(op)}}, storage.KeepAlarm)
		if v, _ := st.Get("k"); string(v) != op {
			t.Errorf("%s: read %q after writing %q", id, v, op)
		}
		inside[id]--
		return 200, []byte(op)
	}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			op := string(rune('a' + i))
			status, answer, err := r.Call(t.Context(), "m"+string(rune('0'+i%3)), op, nil)
			if status != 200 || string(answer) != op || err != nil {
				t.Errorf("%s: %d %q %v", op, status, answer, err)
			}
		})
	}
	wg.Wait()
	if len(r.machines) != 0 {
		t.Errorf("%d idle machines are in memory", len(r.machines))
	}
}

func TestDueAlarmFiresAfterStart(t *testing.T) {
	dir := t.TempDir()
	st := open(t, dir)
	st.Rows("m").SetAlarm(time.Now().UnixMilli() - 1000)
	st.Close()

	st = open(t, dir)
	fired := make(chan string, 1)
	o := &fake{alarm: func(_ context.Context, _ storage.Storage, id string) { fired <- id }}
	r := start(t, o, st)
	if id := <-fired; id != "m" {
		t.Errorf("alarm of %q", id)
	}
	stop(t, r)
	if alarms, err := st.Alarms(); err != nil || len(alarms) != 0 {
		t.Errorf("alarms after it has run: %v, %v", alarms, err)
	}
}
