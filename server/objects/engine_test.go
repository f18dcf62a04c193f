package objects

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	memory "weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
)

// memoryEngine is an engine in memory: the smallest example of one.
type memoryEngine struct {
	mu       sync.Mutex
	machines map[string]*memory.Storage
	released []string
}

// durable is a storage whose writes are durable at once.
type durable struct{ *memory.Storage }

func (d durable) Write(rows []storage.Row, alarm int64) error {
	defer d.Flush()
	return d.Storage.Write(rows, alarm)
}

func (e *memoryEngine) Rows(id string) storage.Storage {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.machines == nil {
		e.machines = map[string]*memory.Storage{}
	}
	if e.machines[id] == nil {
		e.machines[id] = memory.NewStorage()
	}
	return durable{e.machines[id]}
}

func (e *memoryEngine) Alarms() (map[string]int64, error) {
	alarms := map[string]int64{}
	for id, m := range e.machines {
		if m.Alarm != 0 {
			alarms[id] = m.Alarm
		}
	}
	return alarms, nil
}

func (e *memoryEngine) Watch(func(string), func(since, at time.Time), func(string) error) {}

func (e *memoryEngine) Each(_ context.Context, fn func(string, []storage.Row, int64) error) error {
	for _, id := range slices.Sorted(maps.Keys(e.machines)) {
		rows, _ := e.machines[id].List("", "", 0)
		if err := fn(id, rows, e.machines[id].Alarm); err != nil {
			return err
		}
	}
	return nil
}

func (e *memoryEngine) Backup(io.Writer) error { return errors.ErrUnsupported }
func (e *memoryEngine) Close() error           { return nil }

// Release notes what the turns have given back.
func (e *memoryEngine) Release(id string) { e.released = append(e.released, id) }

// wrapped is an engine whose storages a test wraps.
type wrapped struct {
	Engine
	wrap func(storage.Storage) storage.Storage
}

func (w wrapped) Rows(id string) storage.Storage { return w.wrap(w.Engine.Rows(id)) }

// ringing is an engine that rings the alarms itself.
type ringing struct{ *memoryEngine }

func (ringing) Alarms() (map[string]int64, error) { return nil, nil }

// The lock of a turn is released at its end, and while it waits for something outside.
func TestTurnIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &memoryEngine{}
		var r *Runner
		r = startOver(t, &fake{call: func(ctx context.Context, _ storage.Storage, _, op string, _ []byte) (int, []byte) {
			if op == "wait" {
				r.Outside(ctx, func() { engine.released = append(engine.released, "outside") })
			}
			return 200, nil
		}}, engine)
		want(t, r, "a", "get", "")
		want(t, r, "b", "wait", "")
		if got := strings.Join(engine.released, " "); got != "a b outside b" {
			t.Errorf("released: %s", got)
		}
	})
}

// Where servers share an engine, a Runner rings no alarm by itself, writes what its own
// objects have buffered, and writes at once what the others must know.
func TestSharedEngineRingsAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, rang, broken := ringing{&memoryEngine{}}, 0, error(nil)
		var flushed []string
		o := &fake{buffered: map[string]bool{"b": true}, fails: func() error { rang++; return broken }}
		o.call = func(_ context.Context, st storage.Storage, id, op string, _ []byte) (int, []byte) {
			switch op {
			case "put":
				st.Write(nil, in(time.Second))
			case "flush":
				flushed = append(flushed, id)
				delete(o.buffered, id)
			}
			return 200, nil
		}
		r := startOver(t, o, engine)
		want(t, r, "a", "put", "")
		time.Sleep(time.Minute)
		synctest.Wait()
		if rang != 0 {
			t.Errorf("the alarm rang %d times", rang)
		}
		if err := r.Ring("a"); err != nil || rang != 1 {
			t.Errorf("rang %d times, %v", rang, err)
		}
		broken = errors.New("broken")
		if err := r.Ring("a"); !errors.Is(err, broken) {
			t.Errorf("a failed alarm: %v", err)
		}
		for _, body := range []string{`{"usage":[]}`, `{"cooldowns":[{}]}`} {
			r.Call(t.Context(), "c", "report", []byte(body))
		}
		if !slices.Equal(flushed, []string{"b", "c"}) {
			t.Errorf("flushed: %q", flushed)
		}
	})
}

// The turns, the rows and the alarms of a Runner need nothing of an engine but its methods.
func TestEngineInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &memoryEngine{}
		rang := make(chan string, 9)
		o := &fake{
			call: func(_ context.Context, st storage.Storage, id, op string, body []byte) (int, []byte) {
				if op == "put" {
					row := storage.Row{Key: "k", Value: []byte(id + " " + strings.Clone(string(body)))}
					if err := st.Write([]storage.Row{row}, time.Now().Add(time.Minute).UnixMilli()); err != nil {
						return 500, []byte(err.Error())
					}
				}
				value, err := st.Get("k")
				if err != nil {
					return 500, []byte(err.Error())
				}
				return 200, value
			},
			alarm: func(_ context.Context, st storage.Storage, id string) {
				value, _ := st.Get("k")
				rang <- string(value)
			},
		}
		first := New(engine)
		first.Use(o)
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b"} {
			if status, answer, err := first.Call(t.Context(), id, "put", []byte("row")); status != 200 || string(answer) != id+" row" || err != nil {
				t.Fatalf("%d %s %v", status, answer, err)
			}
		}
		stop(t, first)
		second := startOver(t, o, engine) // reads the alarms of the first
		want(t, second, "a", "get", "a row")
		got := []string{<-rang, <-rang}
		slices.Sort(got)
		if time.Sleep(2 * time.Minute); !slices.Equal(got, []string{"a row", "b row"}) || len(rang) > 0 {
			t.Errorf("alarms: %q, and %d more", got, len(rang))
		}
		synctest.Wait()
		if left, _ := engine.Alarms(); len(left) != 0 {
			t.Errorf("alarms are left: %v", left)
		}
	})
}
