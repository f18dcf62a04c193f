package machine

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
)

// oneCall is the report of a call of a connection.
func oneCall(w *world, id string, n int) string {
	return fmt.Sprintf(`{"usage":[{"keyId":"k","connectionId":%q,"model":"openai/m","requests":1,"calls":1}],"requests":[{"id":"r%d","at":%d,"endpoint":"/v1/embeddings","status":200,"attempts":1,"connectionId":%q}]}`,
		id, n, w.Clock.Now().UnixMilli(), id)
}

// quiet creates a machine with a connection, and returns the connection and how many
// rows the machine has written since.
func quiet(w *world) (id string, written func() int) {
	w.Helper()
	w.Create()
	id = w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	for range 5 {
		w.Clock.Add(2 * time.Second)
		w.Loc.Alarms(w.Ctx)
	}
	st := w.Loc.Storage(mid)
	was := st.Written
	return id, func() int { return st.Written - was }
}

// pass lets time pass in steps of a second, in which each is called and due alarms
// run.
func (w *world) pass(seconds int, each func(second int)) {
	for s := range seconds {
		each(s)
		w.Clock.Add(time.Second)
		w.Loc.Alarms(w.Ctx)
	}
}

func TestCallsOfSparseMachineWriteTwoRowsAtMost(t *testing.T) {
	w := newWorld(t)
	id, written := quiet(w)
	const calls = 300
	hours := 0
	for n := range calls {
		w.Want(200, "report", oneCall(w, id, n))
		for range 3 {
			w.Clock.Add(20 * time.Second)
			hours += w.Loc.Alarms(w.Ctx)
		}
	}
	rows := written() - 5*hours // the hour's work is not of the calls
	if rows > calls*5/4 {
		t.Errorf("%d calls, one a minute, write %d rows", calls, rows)
	}
	if n := w.OK("GET", "/api/usage", "").Get("total.requests").Int(); n != calls {
		t.Errorf("usage has %d calls", n)
	}
}

func TestTwoCallsWriteTwoRowsEachAtMost(t *testing.T) {
	w := newWorld(t)
	id, written := quiet(w)
	w.Want(200, "report", oneCall(w, id, 1))
	if n := written(); n != 1 {
		t.Errorf("the first call writes %d rows", n)
	}
	w.pass(15, func(s int) {
		if s == 3 {
			w.Want(200, "report", oneCall(w, id, 2))
		}
	})
	if n := written(); n > 4 {
		t.Errorf("two calls write %d rows", n)
	}
	if st := w.Loc.Storage(mid); st.AlarmAt() != w.tx().Meta.AlarmAt || len(w.obj.Buffered()) != 0 {
		t.Errorf("alarm at %d, want %d; buffered %v", st.AlarmAt(), w.tx().Meta.AlarmAt, w.obj.Buffered())
	}
}

func TestBusyMachineWritesOneRowASecondAtMost(t *testing.T) {
	w := newWorld(t)
	id, written := quiet(w)
	const seconds, isolates, most = 120, 3, 64
	n := 0
	w.pass(seconds, func(int) {
		for range isolates {
			requests := ""
			for i := range most {
				if i > 0 {
					requests += ","
				}
				requests += inprocess.Request(n)
				n++
			}
			w.Want(200, "report", fmt.Sprintf(`{"usage":[{"connectionId":%q,"model":"openai/m","requests":%d,"calls":%d}],"requests":[%s]}`, id, most, most, requests))
		}
	})
	if rows := written(); rows > seconds {
		t.Errorf("%d s of %d requests a second write %d rows", seconds, isolates*most, rows)
	}
	w.pass(11, func(int) {})
	if got := w.OK("GET", "/api/usage", "").Get("total.requests").Int(); got != int64(n) {
		t.Errorf("usage has %d requests of %d", got, n)
	}
	if got := w.OK("GET", "/api/requests?limit=1", "").Get("data.0.seq").Int(); got < 1000 {
		t.Errorf("the last request has the number %d", got)
	}
}

// A day of an account that is limited, or works again, every three seconds.
func TestCooldownCycleNeverWritesKV(t *testing.T) {
	w := newWorld(t)
	id, written := quiet(w)
	puts := len(w.KV.Writes())
	day := storage.DayOf(w.Clock.Now().UnixMilli())
	const seconds, step = 24 * 3600, 3
	for s := range seconds / step {
		now := w.Clock.Now().UnixMilli()
		switch s % 2 {
		case 0:
			w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"model":"m","until":%d,"since":%d,"reason":"rate_limited"}],"errors":[{"connectionId":%q,"text":"slow down"}]}`, id, now+2000, now, id))
		case 1:
			w.Want(200, "report", fmt.Sprintf(`{"cleared":[{"connectionId":%q,"model":"m","at":%d}],"errors":[{"connectionId":%q,"text":""}]}`, id, now, id))
		}
		w.Clock.Add(step * time.Second)
		w.Loc.Alarms(w.Ctx)
	}
	if n := len(w.KV.Writes()) - puts; n != 0 {
		t.Errorf("KV was written %d times", n)
	}
	if rows := written(); rows > seconds/2 {
		t.Errorf("%d rows in a day", rows)
	}
	if storage.DayOf(w.Clock.Now().UnixMilli()) == day {
		t.Error("no day has passed")
	}
}

func TestIdleMachineWritesNoKV(t *testing.T) {
	w := newWorld(t)
	_, written := quiet(w)
	puts := len(w.KV.Writes())
	for range 24 * 60 {
		w.Clock.Add(time.Minute)
		w.Loc.Alarms(w.Ctx)
		w.Want(200, "tick", "")
	}
	if n := len(w.KV.Writes()) - puts; n != 0 {
		t.Errorf("KV was written %d times", n)
	}
	if rows := written(); rows > 75 {
		t.Errorf("%d rows in a day", rows)
	}
}

func TestBufferedReportsAreSeen(t *testing.T) {
	w := newWorld(t)
	id, _ := quiet(w)
	w.Want(200, "report", oneCall(w, id, 1))
	w.Clock.Add(time.Second)
	st := w.Loc.Storage(mid)
	now := w.Clock.Now().UnixMilli()
	before := w.Replica()
	was := st.Written
	a := w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"until":%d,"since":%d,"reason":"rate_limited"}],"usage":[{"keyId":"k","connectionId":%q,"model":"openai/m","requests":1,"calls":1,"errors":1}],"requests":[{"id":"r2","endpoint":"/v1/embeddings","status":429,"attempts":1,"connectionId":%q}]}`, id, now+60_000, now, id, id))
	if st.Written != was+1 || len(w.obj.Buffered()) != 1 {
		t.Errorf("%d rows for a report that is buffered; buffered %v", st.Written-was, w.obj.Buffered())
	}
	was = st.Written
	query := fmt.Sprintf(`{"have":%d,"observed":%d}`, before.Generation, before.Observed)
	got := w.Want(200, "snapshot", query)
	if !got.Get("same").Bool() || got.Get("state.cooldowns.#").Int() != 1 || got.Get("observed").Int() != a.Get("observed").Int() || got.Get("connections").Exists() {
		t.Errorf("got %s", got.Raw)
	}
	query = fmt.Sprintf(`{"have":%d,"observed":%d}`, before.Generation, got.Get("observed").Int())
	if got := w.Want(200, "snapshot", query); !got.Get("same").Bool() || got.Get("state").Exists() {
		t.Errorf("known: %s", got.Raw)
	}
	if m := w.Replica(); len(m.Cooldowns) != 1 || m.Observed != a.Get("observed").Int() {
		t.Errorf("whole: %+v", m)
	}
	if got := w.OK("GET", "/api/usage", ""); got.Get("total.requests").Int() != 2 {
		t.Errorf("usage: %s", got.Raw)
	}
	if got := w.OK("GET", "/api/requests", ""); got.Get("data.#").Int() != 2 || got.Get("data.0.id").Str != "r2" {
		t.Errorf("requests: %s", got.Raw)
	}
	if got := w.OK("GET", "/api/providers/"+id, ""); got.Get("status").Str != "cooling" {
		t.Errorf("connection: %s", got.Raw)
	}
	if st.Written != was {
		t.Errorf("reading wrote %d rows", st.Written-was)
	}
	// A change is written together with it.
	w.OK("PUT", "/api/providers/"+id, `{"name":"other"}`)
	if len(w.obj.Buffered()) != 0 {
		t.Error("still buffered after a change")
	}
	w.obj.buffers = buffers{} // the program is killed
	if got := w.OK("GET", "/api/usage", ""); got.Get("total.requests").Int() != 2 {
		t.Errorf("stored usage: %s", got.Raw)
	}
	if m := w.Replica(); len(m.Cooldowns) != 1 || m.Observed != a.Get("observed").Int() {
		t.Errorf("stored state: %+v", m)
	}
}

// A kill loses what was buffered, never the counts of a limit.
func TestKillLosesSecondsOfStatisticsOnly(t *testing.T) {
	w := newWorld(t)
	id, _ := quiet(w)
	key := w.OK("POST", "/api/keys", `{"rpm":10}`).Get("id").Str
	w.Want(200, "report", oneCall(w, id, 1))
	now := w.Clock.Now().UnixMilli()
	said := w.Want(200, "report", fmt.Sprintf(`{"budgets":{"holder":"a","asks":[{"budget":"rpm:%s","start":%d,"used":9}]},"cooldowns":[{"connectionId":%q,"until":%d,"since":%d,"reason":"rate_limited"}]}`, key, now-now%storage.Minute, id, now+60_000, now))
	w.obj.buffers = buffers{}
	if m := w.Replica(); len(m.Cooldowns) != 0 || m.Observed == said.Get("observed").Int() {
		t.Errorf("after a kill: %+v", m)
	}
	if a := w.Want(200, "key.usage", fmt.Sprintf(`{"keyId":%q}`, key)); a.Get("limits.0.used").Int() != 9 {
		t.Errorf("9 of 10 after a kill: %s", a.Raw)
	}
}

func TestProgramThatReplacesAnotherTakesOverItsBuffer(t *testing.T) {
	w := newWorld(t)
	id, _ := quiet(w)
	for n := range 3 {
		w.Want(200, "report", oneCall(w, id, n))
	}
	left := w.obj.HandOver()
	if len(w.obj.Buffered()) != 0 || left == nil {
		t.Fatalf("buffered %v after handing over %s", w.obj.Buffered(), left)
	}
	w.Want(200, "report", oneCall(w, id, 3)) // a late one is written
	if len(w.obj.Buffered()) != 0 {
		t.Error("the replaced program buffers")
	}
	if w.obj.HandOver() != nil {
		t.Error("handed over twice")
	}
	w.obj.buffers = buffers{}
	w.obj.TakeOver(left)
	w.obj.TakeOver([]byte("nonsense"))
	w.pass(11, func(int) {})
	w.obj.buffers = buffers{}
	if got := w.OK("GET", "/api/usage", ""); got.Get("total.requests").Int() != 4 {
		t.Errorf("usage: %s", got.Raw)
	}
}

func TestReportsAreWrittenAfterAStorageFault(t *testing.T) {
	w := newWorld(t)
	id, _ := quiet(w)
	st := w.Loc.Storage(mid)
	st.Fault = func(string) bool { return true }
	w.Want(503, "report", oneCall(w, id, 1)) // the isolate reports it again
	st.Fault = nil
	w.Want(200, "report", oneCall(w, id, 1))
	w.Want(200, "report", oneCall(w, id, 2))
	st.Fault = func(string) bool { return true }
	w.pass(12, func(s int) {
		if s == 1 {
			w.Want(200, "report", oneCall(w, id, 3))
		}
	})
	st.Fault = nil
	w.pass(12, func(int) {})
	w.obj.buffers = buffers{}
	if got := w.OK("GET", "/api/usage", ""); got.Get("total.requests").Int() != 3 {
		t.Errorf("usage: %s", got.Raw)
	}
}

func TestDeletedMachineLeavesNothingBuffered(t *testing.T) {
	w := newWorld(t)
	id, _ := quiet(w)
	w.Want(200, "report", oneCall(w, id, 1))
	w.Want(200, "report", oneCall(w, id, 2))
	w.Want(204, "delete", `{"now":true}`)
	w.Loc.Alarms(w.Ctx)
	if ids := w.obj.Buffered(); len(ids) != 0 {
		t.Errorf("buffered %v", ids)
	}
	for key := range w.Loc.Storage(mid).Dump() {
		if key == storage.ActivityRow {
			t.Error("the activity of a deleted machine is stored")
		}
	}
	w.Create()
	if got := w.OK("GET", "/api/usage", ""); got.Get("total.requests").Int() != 0 {
		t.Errorf("usage: %s", got.Raw)
	}
}

// Programs before the common row had a row for each.
func TestRowsOfAnEarlierVersionAreRead(t *testing.T) {
	w := newWorld(t)
	id, _ := quiet(w)
	now := w.Clock.Now().UnixMilli()
	w.Write(mid, storage.CooldownPrefix+id+":", fmt.Sprintf(`{"connectionId":%q,"until":%d,"since":%d,"reason":"rate_limited"}`, id, now+60_000, now))
	w.Write(mid, storage.HealthPrefix+id, fmt.Sprintf(`{"at":%d,"succeedAt":%d}`, now-1000, now-1000))
	w.Write(mid, storage.UsagePrefix+storage.DayOf(now)+":x", fmt.Sprintf(`{"day":%q,"connectionId":%q,"requests":4}`, storage.DayOf(now), id))
	if m := w.Replica(); len(m.Cooldowns) != 1 {
		t.Errorf("cooldowns: %+v", m.Cooldowns)
	}
	w.Want(200, "report", fmt.Sprintf(`{"cleared":[{"connectionId":%q,"at":%d}]}`, id, now+1))
	if m := w.Replica(); len(m.Cooldowns) != 0 || w.has(mid, storage.CooldownPrefix+id+":") {
		t.Errorf("cleared: %+v", m.Cooldowns)
	}
	if got := w.OK("GET", "/api/usage", ""); got.Get("total.attempts").Int() != 4 {
		t.Errorf("usage: %s", got.Raw)
	}
}

// Reports may be buffered while a turn has taken the earlier ones and does not write them.
func TestReleasedReportsAreCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.Create()
	all := &w.obj.buffers
	report := func(size int) (sizes [2]int) {
		_, b := w.obj.begin(w.Loc.Storage(mid), mid)
		b.add(&rpc.Report{Errors: []rpc.LastError{{Text: "busy"}}}, size)
		return [2]int{all.size, all.machines[mid].pending.Size}
	}
	if got := report(100); got != [2]int{100, 100} {
		t.Fatalf("the first: %v", got)
	}
	_, b := w.obj.begin(w.Loc.Storage(mid), mid)
	if b.settle(); all.size != 0 {
		t.Errorf("taken: %d bytes are left", all.size)
	}
	if got := report(30); got != [2]int{30, 30} {
		t.Errorf("meanwhile: %v", got)
	}
	b.release()
	if p := all.machines[mid].pending; all.size != 130 || p.Size != 130 || len(p.Errors) != 2 {
		t.Errorf("released: %d bytes, of the machine %+v", all.size, p)
	}
}
