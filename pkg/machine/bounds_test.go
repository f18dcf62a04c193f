package machine

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
)

// has reports whether an object has a row.
func (w *world) has(id, key string) bool { return w.Loc.Storage(id).Dump()[key] != nil }

func TestJobAtItsBounds(t *testing.T) {
	w := newWorld(t)
	w.Create()
	now := w.Clock.Now().UnixMilli()
	long := strings.Repeat("j", maxJobID)
	for body, want := range map[string]int{
		`{"id":"` + long + `","connectionId":"c"}`: 200, `{"id":"` + long + `j","connectionId":"c"}`: 400,
		`{"id":"a"}`: 400, `{"connectionId":"c"}`: 400, `{`: 400, `{"id":"a","connectionId":"c","kind":5}`: 400,
	} {
		if status, a := w.Call("job.put", body); status != want {
			t.Errorf("%.60s: got %d %s, want %d", body, status, a.Raw, want)
		}
	}
	for asked, want := range map[int64]int64{0: jobFor, -1: jobFor, 1: 1, 3 * jobFor: 3 * jobFor, 3*jobFor + 1: jobFor} {
		w.Want(200, "job.put", fmt.Sprintf(`{"id":"a","connectionId":"c","expiresAt":%d}`, now+asked))
		if got := w.Want(200, "job.get", `{"id":"a"}`).Get("expiresAt").Int() - now; got != want {
			t.Errorf("expires in %d: got %d, want %d", asked, got, want)
		}
	}
	w.Want(200, "job.put", fmt.Sprintf(`{"id":"a","connectionId":"c","expiresAt":%d}`, now+2))
	w.Clock.Add(time.Millisecond)
	w.Want(200, "job.get", `{"id":"a"}`)
	w.Clock.Add(time.Millisecond)
	w.Want(404, "job.get", `{"id":"a"}`)
}

func TestIdempotencyKeyAtItsBounds(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for body, want := range map[string]int{
		fmt.Sprintf(`{"key":%q,"digest":"d"}`, strings.Repeat("k", 255)): 200, fmt.Sprintf(`{"key":%q,"digest":"d"}`, strings.Repeat("k", 256)): 400,
		fmt.Sprintf(`{"key":"a","digest":%q}`, strings.Repeat("d", 128)): 200, fmt.Sprintf(`{"key":"a","digest":%q}`, strings.Repeat("d", 129)): 400,
		`{"key":"a","digest":"d","for":"x"}`: 400,
	} {
		if status, _ := w.Call("idem.begin", body); status != want {
			t.Errorf("%.40s: got %d, want %d", body, status, want)
		}
	}
	w.Want(400, "idem.end", `{"digest":"d","status":200}`)
	w.Want(400, "idem.end", `{"key":"a","digest":5}`)
	state := func(key string) string {
		return w.Want(200, "idem.begin", `{"key":"`+key+`","digest":"d"}`).Get("state").Str
	}
	for i, tt := range []struct{ asked, runs time.Duration }{
		{0, 30 * time.Minute}, {-1, 30 * time.Minute}, {time.Millisecond, time.Millisecond},
		{30 * time.Minute, 30 * time.Minute}, {30*time.Minute + time.Millisecond, 30 * time.Minute},
	} {
		key := fmt.Sprint("runs", i)
		w.Want(200, "idem.begin", fmt.Sprintf(`{"key":%q,"digest":"d","for":%d}`, key, tt.asked.Milliseconds()))
		w.Clock.Add(tt.runs)
		if got := state(key); got != "running" {
			t.Errorf("%v: at its end %s", tt.asked, got)
		}
		w.Clock.Add(time.Millisecond)
		if got := state(key); got != "lost" {
			t.Errorf("%v: after its end %s", tt.asked, got)
		}
	}
	const month = 30 * 24 * time.Hour
	for i, tt := range []struct {
		after time.Duration
		want  string
	}{{month - time.Millisecond, "done"}, {month, "new"}, {-month, "done"}, {-month - time.Millisecond, "new"}} {
		key := fmt.Sprint("over", i)
		state(key)
		w.Want(200, "idem.end", `{"key":"`+key+`","digest":"d","status":200}`)
		w.Clock.Add(tt.after)
		if got := state(key); got != tt.want {
			t.Errorf("after %v: got %s, want %s", tt.after, got, tt.want)
		}
	}
	for size, whole := range map[int]bool{rpc.MaxStoredAnswer: true, rpc.MaxStoredAnswer + 1: false} {
		key := fmt.Sprint("size", size)
		state(key)
		w.Want(200, "idem.end", `{"key":"`+key+`","digest":"d","status":200,"body":"`+base64.StdEncoding.EncodeToString(make([]byte, size))+`"}`)
		if got := w.Want(200, "idem.begin", `{"key":"`+key+`","digest":"d"}`); got.Get("whole").Bool() != whole || got.Get("body").Exists() != whole {
			t.Errorf("%d bytes: %.100s", size, got.Raw)
		}
	}
	state("large")
	w.Want(200, "idem.end", `{"key":"large","digest":"d","status":200,"large":true}`)
	if got := w.Want(200, "idem.begin", `{"key":"large","digest":"d"}`); got.Get("whole").Bool() {
		t.Errorf("an answer that is not stored: %s", got.Raw)
	}
}

func TestReportAtItsBounds(t *testing.T) {
	w := newWorld(t)
	w.Create()
	entries := func(n int) string {
		return `{"errors":[` + strings.TrimSuffix(strings.Repeat(`{"connectionId":"x"},`, n), ",") + `]}`
	}
	requests := func(n int) string {
		return `{"requests":[` + strings.TrimSuffix(strings.Repeat(`{"id":"x"},`, n), ",") + `]}`
	}
	for _, tt := range []struct {
		body string
		want int
	}{
		{entries(rpc.MaxReportEntries), 200}, {entries(rpc.MaxReportEntries + 1), 400},
		{requests(rpc.MaxReportRequests), 200}, {requests(rpc.MaxReportRequests + 1), 400},
		{`{}` + strings.Repeat(" ", rpc.MaxReport-2), 200}, {`{}` + strings.Repeat(" ", rpc.MaxReport-1), 400}, {`{"errors":5}`, 400},
	} {
		if status, a := w.Call("report", tt.body); status != tt.want {
			t.Errorf("%.30s… of %d bytes: got %d %s, want %d", tt.body, len(tt.body), status, a.Raw, tt.want)
		}
	}
}

func TestPruningAtItsBounds(t *testing.T) {
	w := newWorld(t)
	w.Create()
	key := w.Replica().Keys[0].ID
	w.Clock.Add(time.Hour) // when it is due
	now := w.Clock.Now().UnixMilli()
	stays := map[string]bool{}
	row := func(stay bool, key, value string) {
		w.Write(mid, key, value)
		stays[key] = stay
	}
	row(false, storage.JobPrefix+"ended", fmt.Sprintf(`{"id":"a","connectionId":"c","expiresAt":%d}`, now))
	row(true, storage.JobPrefix+"runs", fmt.Sprintf(`{"id":"a","connectionId":"c","expiresAt":%d}`, now+1))
	for name, tt := range map[string]struct {
		at   int64
		stay bool
	}{"day": {now - storage.Day, true}, "over": {now - storage.Day - 1, false}, "ahead": {now + storage.Day, true}, "wrong": {now + storage.Day + 1, false}} {
		row(tt.stay, storage.MutationPrefix+name, fmt.Sprintf(`{"at":%d,"request":"r","answer":"a"}`, tt.at))
	}
	row(false, storage.OldCountPrefix+key, fmt.Sprintf(`{"day":%d}`, now/storage.Day))
	row(false, storage.LedgerPrefix+"rpm:unknown", `{}`)
	row(true, storage.LedgerPrefix+"b1", `{}`)
	row(false, storage.ErrorPrefix+"unknown", `"text"`)
	first := storage.DayOf(now - storage.UsageDays*storage.Day)
	before := storage.DayOf(now - (storage.UsageDays+1)*storage.Day)
	row(true, storage.UsagePrefix+first+":a", fmt.Sprintf(`{"day":%q}`, first))
	row(false, storage.UsagePrefix+before+":a", fmt.Sprintf(`{"day":%q}`, before))
	row(true, "usages:"+first, `1`)
	row(false, "usages:"+before, `1`)
	w.Loc.Alarms(w.Ctx)
	for key, stay := range stays {
		if w.has(mid, key) != stay {
			t.Errorf("%s: stays %v, want %v", key, !stay, stay)
		}
	}
	w.Write(mid, storage.OldCountPrefix+key, `{}`)
	w.Clock.Add(time.Hour - time.Millisecond)
	w.Loc.Alarms(w.Ctx)
	if !w.has(mid, storage.OldCountPrefix+key) {
		t.Error("pruned before the hour was over")
	}
	w.Clock.Add(time.Millisecond)
	w.Loc.Alarms(w.Ctx)
	if w.has(mid, storage.OldCountPrefix+key) {
		t.Error("not pruned after an hour")
	}
}

// handle runs an operation of the registry while other objects are replaced by a
// stub.
func (w *world) handle(stub rpc.Stub, op, body string) (int, string) {
	w.Helper()
	was := w.obj.Objects
	w.obj.Objects = stub
	defer func() { w.obj.Objects = was }()
	st := w.Loc.Storage(rpc.RegistryID)
	status, answer := w.obj.Handle(w.Ctx, st, rpc.RegistryID, op, []byte(body))
	st.Flush()
	return status, string(answer)
}

func TestIntentIsResolvedByTheMachinesAnswer(t *testing.T) {
	const five = 5 * time.Minute
	for _, tt := range []struct {
		state  string
		status int
		age    time.Duration
		want   string // the state afterwards, "" for none
	}{
		{creating, 200, 0, active}, {deleting, 404, 0, gone},
		{creating, 404, five, creating}, {creating, 404, five + time.Millisecond, gone},
		{deleting, 200, five, deleting}, {deleting, 200, five + time.Millisecond, active},
		{restoring, 200, 0, active}, {restoring, 404, five, restoring}, {creating, 503, time.Hour, creating}, {deleting, 503, time.Hour, deleting},
	} {
		w := newWorld(t)
		at := w.Clock.Now().Add(-tt.age).UnixMilli()
		w.Write(rpc.RegistryID, machinePrefix+mid, fmt.Sprintf(`{"machineId":%q,"name":"old","createdAt":5,"state":%q,"at":%d}`, mid, tt.state, at))
		stub := objects.Constant(tt.status, `{"name":"new","createdAt":7}`)
		status, answer := w.handle(stub, "list", `{}`)
		if status != 200 || len(stub.Calls) != 1 || !strings.HasPrefix(stub.Calls[0], "exists ") || stub.Called[0] != mid {
			t.Errorf("%+v: got %d, asked %v", tt, status, stub.Calls)
		}
		var m machineRow
		json.Unmarshal(w.Loc.Storage(rpc.RegistryID).Dump()[machinePrefix+mid], &m)
		name := map[string]string{active: "new", gone: ""}
		want, ok := name[tt.want]
		if !ok {
			want = "old"
		}
		if m.State != tt.want || m.Name != want {
			t.Errorf("%+v: the row is %+v", tt, m)
		}
		if listed := strings.Contains(answer, mid); listed != (tt.want != creating && tt.want != gone) {
			t.Errorf("%+v: listed %v", tt, listed)
		}
	}
}

func TestListResolvesTwentyIntents(t *testing.T) {
	w := newWorld(t)
	for i := range maxResolve + 5 {
		w.Write(rpc.RegistryID, fmt.Sprintf("%s%016d", machinePrefix, i), fmt.Sprintf(`{"machineId":"%016d","name":"n","createdAt":%d,"state":"deleting","at":1}`, i, i))
	}
	stub := objects.Constant(503, "")
	if w.handle(stub, "list", `{}`); len(stub.Calls) != maxResolve {
		t.Errorf("asked %d machines, want %d", len(stub.Calls), maxResolve)
	}
}

func TestRegistryPutNeedsAMachine(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[string]int{`{`: 400, `{"machineId":"x"}`: 400, `{"machineId":"` + mid + `","name":5}`: 400, `{"machineId":"` + mid + `","state":"active","createdAt":7}`: 200} {
		if status, a := w.At(rpc.RegistryID, "put", body); status != want {
			t.Errorf("%s: got %d %s", body, status, a.Raw)
		}
	}
	_, a := w.At(rpc.RegistryID, "list", `{}`)
	if at := a.Get("data.0.createdAt").Int(); at != 7 {
		t.Errorf("created at %d, want 7", at)
	}
	w.At(rpc.RegistryID, "put", `{"machineId":"`+mid+`","state":"active"}`)
	if _, a := w.At(rpc.RegistryID, "list", `{}`); a.Get("data.0.createdAt").Int() != w.Clock.Now().UnixMilli() {
		t.Errorf("without a time: %s", a.Raw)
	}
}

func TestMachinesAreFoundByIDOrName(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"Alpha", "Beta", "Alpha two"} {
		id := fmt.Sprintf("m%015d", i)
		w.Write(rpc.RegistryID, machinePrefix+id, fmt.Sprintf(`{"machineId":%q,"name":%q,"createdAt":%d,"state":"active","at":1}`, id, name, 3-i/2))
	}
	for body, want := range map[string]string{
		`{}`:                        "m000000000000002 m000000000000000 m000000000000001",
		`{"q":"alpha"}`:             "m000000000000002 m000000000000000",
		`{"q":" M00000000000000 "}`: "m000000000000002 m000000000000000 m000000000000001",
		`{"q":"0001"}`:              "m000000000000001",
		`{"q":"gamma"}`:             "",
		`{"limit":1}`:               "m000000000000002",
		`{"limit":2,"cursor":"2.m000000000000002"}`: "m000000000000000 m000000000000001",
		`{"limit":2,"cursor":"3.m000000000000000"}`: "m000000000000001",
	} {
		status, a := w.At(rpc.RegistryID, "list", body)
		var ids []string
		for _, m := range a.Get("data").Array() {
			ids = append(ids, m.Get("machineId").Str)
		}
		if got := strings.Join(ids, " "); status != 200 || got != want {
			t.Errorf("%s: got %d %s, want %s", body, status, got, want)
		}
	}
	if _, a := w.At(rpc.RegistryID, "list", `{"limit":1}`); a.Get("next").Str != "2.m000000000000002" || !a.Get("has_more").Bool() || a.Get("total").Int() != 3 {
		t.Errorf("first page: %s", a.Raw)
	}
	for body, want := range map[string]int{`{"limit":1000}`: 200, `{"limit":1001}`: 400, `{"limit":-1}`: 400, `{"limit":"x"}`: 400, ``: 200,
		`{"cursor":"1m000000000000000"}`: 400, `{"cursor":"x.m000000000000000"}`: 400, `{"cursor":"1.m"}`: 400} {
		if status, _ := w.At(rpc.RegistryID, "list", body); status != want {
			t.Errorf("%s: got %d, want %d", body, status, want)
		}
	}
}

func TestTicksWakeAllMachinesInTurn(t *testing.T) {
	w := newWorld(t)
	const n = 2*maxTick + 5
	for i := range n {
		w.Write(rpc.RegistryID, fmt.Sprintf("%s%016d", machinePrefix, i), `{"state":"active"}`)
	}
	for round := range 2 {
		stub := objects.Constant(200, "")
		for _, want := range []int{maxTick, maxTick, 5} {
			before := len(stub.Calls)
			status, answer := w.handle(stub, "tick", ``)
			if got := len(stub.Calls) - before; got != want || status != 200 || answer != fmt.Sprintf(`{"machines":%d}`, want) {
				t.Errorf("round %d: woke %d, %d %s; want %d", round, got, status, answer, want)
			}
		}
		for i, call := range stub.Calls {
			if !strings.HasPrefix(call, "tick ") || stub.Called[i] != fmt.Sprintf("%016d", i) {
				t.Fatalf("round %d: call %d is %s of %s", round, i, call, stub.Called[i])
			}
		}
	}
}

func TestCronLogsThatTheRegistryDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	if w.obj.Cron(w.Ctx); len(w.Logs) != 0 {
		t.Errorf("logged %q", w.Logs)
	}
	w.obj.Objects = &objects.Script{}
	if w.obj.Cron(w.Ctx); len(w.Logs) != 1 {
		t.Errorf("logged %q", w.Logs)
	}
}

func TestOnlyFailuresWithACauseAreLogged(t *testing.T) {
	w := newWorld(t)
	w.Want(404, "snapshot", `{}`)
	w.Want(404, "no-such-operation", `{}`)
	if len(w.Logs) != 0 {
		t.Errorf("logged %q", w.Logs)
	}
	w.obj.Objects = objects.Constant(500, "")
	w.Want(503, "create", `{}`) // without a cause
	if len(w.Logs) != 0 {
		t.Errorf("logged %q", w.Logs)
	}
	w.obj.Objects = &objects.Script{}
	w.Want(503, "create", `{}`)
	if len(w.Logs) != 1 || !strings.Contains(w.Logs[0], "unreachable") {
		t.Errorf("logged %q", w.Logs)
	}
}

func TestPanicsAreNotAnswered(t *testing.T) {
	for _, with := range []any{errors.New("a fault"), storage.ErrStorage, "a fault"} {
		func() {
			defer func() {
				if got := recover(); got != with {
					t.Errorf("recovered %v, want %v", got, with)
				}
			}()
			w := newWorld(t)
			st := objects.NewStorage()
			st.Unreadable = func() bool { panic(with) }
			w.obj.Handle(w.Ctx, st, mid, "snapshot", nil)
		}()
	}
}
