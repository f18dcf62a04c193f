package machine

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/storage"
)

// failingReader is a source of random bytes that fails.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("no entropy") }

func TestProgramKeepsItsRandomName(t *testing.T) {
	w := newWorld(t)
	name := w.obj.seatID()
	if len(name) != 16 || name == strings.Repeat("0", 16) || w.obj.seatID() != name {
		t.Errorf("got %q, then %q", name, w.obj.seatID())
	}
	w = newWorld(t)
	w.obj.Rand = failingReader{}
	if got := w.obj.seatID(); got != "unknown" {
		t.Errorf("without random bytes: got %q", got)
	}
}

// tx begins a turn of the machine.
func (w *world) tx() *storage.Tx {
	tx, _ := w.obj.begin(w.Loc.Storage(mid), mid)
	return tx
}

// alarm runs the alarm of the machine now, whenever it is set.
func (w *world) alarm() {
	st := w.Loc.Storage(mid)
	w.obj.Alarm(w.Ctx, st, mid)
	st.Flush()
}

func TestRegisteredMachineDoesNotRegisterAgain(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Loc.Alarms(w.Ctx)
	stub := objects.Constant(200, "")
	w.obj.Objects = stub
	w.Clock.Add(2 * time.Hour)
	w.alarm()
	if len(stub.Calls) != 0 {
		t.Errorf("called %v", stub.Calls)
	}
}

func TestReplicaIsWrittenOnlyAfterAChangeAndOnceASecond(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Loc.Alarms(w.Ctx)
	w.Clock.Add(time.Minute)
	w.Loc.Alarms(w.Ctx)
	published := func() int64 { return gjson.GetBytes(w.KV.Dump()[kvKey(mid)], "generation").Int() }
	generation := func() int64 { return w.Want(200, "snapshot", `{"have":0}`).Get("generation").Int() }
	if published() != generation() || published() == 0 {
		t.Fatalf("published %d of %d", published(), generation())
	}
	w.KV.Delete(w.Ctx, kvKey(mid))
	w.Clock.Add(time.Hour)
	w.alarm()
	if published() != 0 {
		t.Error("an unchanged replica is written again")
	}
	w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	w.Clock.Add(time.Second)
	w.Loc.Alarms(w.Ctx)
	first := published()
	if first != generation() {
		t.Fatalf("published %d of %d", first, generation())
	}
	w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef2"}`)
	w.Clock.Add(time.Second - time.Millisecond)
	w.alarm()
	if published() != first {
		t.Error("written twice within a second")
	}
	w.Clock.Add(time.Millisecond)
	w.alarm()
	if published() != generation() || published() == first {
		t.Errorf("after a second: published %d of %d", published(), generation())
	}
}

func TestWithoutKVNothingIsPublishedOrAdopted(t *testing.T) {
	w := newWorld(t)
	w.obj.KV = nil
	w.Create()
	w.Loc.Alarms(w.Ctx)
	st := w.Loc.Storage(mid)
	m := w.tx().Meta
	if m.Dirty || m.AlarmAt != m.PruneAt || st.AlarmAt() != m.PruneAt {
		t.Errorf("dirty %v, alarm at %d, stored %d, the next work at %d", m.Dirty, m.AlarmAt, st.AlarmAt(), m.PruneAt)
	}
	w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	if changed := w.tx().Meta; changed.Generation == m.Generation || changed.Dirty || changed.AlarmAt != m.PruneAt {
		t.Errorf("after a change: dirty %v, alarm at %d, want %d", changed.Dirty, changed.AlarmAt, m.PruneAt)
	}
	w.alarm()

	w.Want(422, "adopt", `{"doc":{"providers":1}}`)
	w.Loc.Call(w.Ctx, "zzzzzzzz01234567", "adopt", []byte(`{"doc":{"providers":1}}`))
	w.Want(204, "delete", `{"now":true}`)
	w.Loc.Alarms(w.Ctx)
	if m := w.tx().Meta; !m.Deleted || m.Dirty || st.AlarmAt() != 0 {
		t.Errorf("after deletion: %+v, alarm at %d", m, st.AlarmAt())
	}
	if stored := w.KV.Dump(); len(stored) != 0 {
		t.Errorf("in KV: %v", stored)
	}
}

// A platform may stop publishing to a machine that was moved to it with its rows.
func TestDueReplicaIsForgottenWithoutKV(t *testing.T) {
	w := newWorld(t)
	w.Create()
	if !w.tx().Meta.Dirty {
		t.Fatal("no replica is due")
	}
	w.obj.KV = nil
	w.alarm()
	if w.tx().Meta.Dirty {
		t.Error("a replica is still due")
	}
}

// A program may be killed while its alarm waits for an answer: nothing is stored after the
// call out, and the platform has no alarm any more. Without a call out none is stored twice.
func TestKilledAlarmRunsAgain(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "refresh", `{"connectionId":"`+w.OAuth()+`","tokenGeneration":1}`)
	target := w.OK("POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/a"}}`).Get("id").Str
	w.Loc.Alarms(w.Ctx)
	w.Clock.Add(time.UnixMilli(w.tx().Meta.RefreshAt).Sub(w.Clock.Now()) - time.Minute)
	w.Loc.Alarms(w.Ctx)
	rows := w.Loc.Storage(mid).Dump()
	for _, tt := range []struct {
		name string
		set  func(tx *storage.Tx)
		out  string // the call out, "" for none
	}{
		{"nothing", func(tx *storage.Tx) { tx.Meta.RefreshAt = 0 }, ""},
		{"a replica", func(tx *storage.Tx) { tx.Meta.Dirty = true }, kvKey(mid)},
		{"an entry of the registry", func(tx *storage.Tx) { tx.Meta.Unregistered = true }, "put "},
		{"a notification", func(tx *storage.Tx) { tx.Enqueue((&deliver.Message{Title: "a"}).Item(target)) }, "POST https://hooks.example.com/a"},
		{"tokens", func(tx *storage.Tx) { tx.Meta.AlarmAt = tx.Meta.RefreshAt }, "refresh "},
		{"no tokens yet", func(tx *storage.Tx) { tx.Meta.AlarmAt = tx.Meta.RefreshAt - 1 }, ""},
	} {
		st := objects.NewStorage()
		maps.Copy(st.Rows, rows)
		tx, _ := w.obj.begin(st, mid)
		if m := &tx.Meta; m.Dirty || m.Unregistered || m.SendAt != 0 || m.RefreshAt <= tx.Now {
			t.Fatalf("before: %+v", m)
		}
		tx.Meta.AlarmAt = tx.Now
		if tt.set(tx); tx.Commit() != nil {
			t.Fatalf("%s: not stored", tt.name)
		}
		st.Flush()
		at, out := tx.Meta.AlarmAt, &outside{}
		alarms := 0
		run := func(at int64) {
			*out = outside{kv: fake.NewKV(), up: &fake.Upstream{}, script: objects.Constant(200, `{}`)}
			st.Alarm = 0
			w.program(out, fake.NewClock(time.UnixMilli(at))).Alarm(w.Ctx, st, mid)
			st.Flush()
		}
		st.Fault = func(key string) bool {
			if key == "alarm" {
				alarms++
			}
			return len(out.all()) > 0
		}
		run(at)
		st.Fault = nil
		called := out.all()
		if tt.out == "" {
			if len(called) != 0 || alarms != 1 || st.Alarm <= at {
				t.Errorf("%s: called %q, %d alarms set, the last at %d", tt.name, called, alarms, st.Alarm-at)
			}
			continue
		}
		if len(called) == 0 || !strings.HasPrefix(called[0], tt.out) || st.Alarm != at+storage.AlarmSpare {
			t.Errorf("%s: called %q, the next alarm in %d ms, want %d", tt.name, called, st.Alarm-at, storage.AlarmSpare)
			continue
		}
		if run(st.Alarm); !slices.Contains(out.all(), called[0]) {
			t.Errorf("%s: the run after a kill called %q, want %q", tt.name, out.all(), called)
		}
	}
}
