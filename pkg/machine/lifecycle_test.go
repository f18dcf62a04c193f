package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/snapshot"
)

func (w *world) machines() []string {
	w.Helper()
	status, answer, err := w.Loc.Call(w.Ctx, rpc.RegistryID, "list", nil)
	if err != nil || status != 200 {
		w.Fatalf("list: %d %s %v", status, answer, err)
	}
	var ids []string
	for _, m := range gjson.GetBytes(answer, "data").Array() {
		ids = append(ids, m.Get("machineId").Str)
	}
	return ids
}

func TestCreatedMachineHasAKeyThatWorks(t *testing.T) {
	w := newWorld(t)
	w.Want(404, "snapshot", `{"have":0}`)
	text := w.Create()
	k, ok := rpc.ParseKey(text)
	if !ok || k.MachineID != mid || !k.CheckOK(w.obj.KeySecret) {
		t.Fatalf("%s is no key of the machine", text)
	}
	m := snapshot.New(w.Replica())
	if found := m.FindKey(k.Digest, nil); found == nil {
		t.Error("the digest of the key is not in the replica")
	}
	w.Want(409, "create", `{"name":"again"}`)
	if got := w.machines(); !slices.Equal(got, []string{mid}) {
		t.Errorf("list: got %v", got)
	}
}

func (w *world) names() (names []string) {
	w.Helper()
	_, answer, _ := w.Loc.Call(w.Ctx, rpc.RegistryID, "list", nil)
	for _, m := range gjson.GetBytes(answer, "data.#.name").Array() {
		names = append(names, m.Str)
	}
	return names
}

func TestRenamedMachineIsListedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Want(404, "rename", `{"name":"none"}`)
	w.Create()
	w.machines()
	w.Want(200, "rename", `{"name":"Team"}`)
	if got := w.names(); !slices.Equal(got, []string{"Team"}) {
		t.Errorf("list: got %q", got)
	}
	audit := w.Want(200, "manage", `{"method":"GET","route":"/api/audit"}`)
	if got := audit.Get("body.data.0.action").Str; got != "PATCH /api/machines/{id}" {
		t.Errorf("audit: got %s", audit.Raw)
	}
}

// Whatever comes between the intent and the change, the list has the name of the machine.
func TestRegistryOfAMachineThatIsRenamed(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Loc.Storage(rpc.RegistryID).Unreadable = func() bool { return true }
	w.Want(503, "rename", `{"name":"Team"}`)
	w.Loc.Storage(rpc.RegistryID).Unreadable = nil
	was := w.names()
	w.Loc.Storage(mid).Fault = func(string) bool { return true }
	w.Want(503, "rename", `{"name":"Team"}`)
	w.Loc.Storage(mid).Fault = nil
	if got := w.names(); slices.Equal(got, []string{"Team"}) || !slices.Equal(got, was) {
		t.Errorf("list: got %q, then %q", was, got)
	}
	w.Want(200, "rename", `{"name":"Team"}`)
	w.Clock.Add(time.Minute)
	w.Loc.Alarms(w.Ctx)
	if got := w.names(); !slices.Equal(got, []string{"Team"}) {
		t.Errorf("after the alarm: got %q", got)
	}
}

func TestDeletedMachineIsGone(t *testing.T) {
	for _, now := range []bool{false, true} {
		t.Run(fmt.Sprintf("now=%v", now), func(t *testing.T) { machineIsGone(t, now) })
	}
}

func machineIsGone(t *testing.T, now bool) {
	w := newWorld(t)
	w.Create()
	w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	w.Loc.Alarms(w.Ctx)
	if w.KV.Dump()[kvKey(mid)] == nil {
		t.Fatal("the replica was not published")
	}
	w.Want(204, "delete", fmt.Sprintf(`{"now":%v}`, now))
	w.Want(404, "exists", "")
	w.Want(404, "snapshot", `{"have":0}`)
	w.Want(404, "manage", `{"method":"GET","route":"/api/providers"}`)
	w.Want(404, "report", `{}`)
	w.Clock.Add(2 * time.Second)
	w.Loc.Alarms(w.Ctx)
	if len(w.KV.Dump()) != 0 {
		t.Error("the replica is still in KV")
	}
	if got := w.machines(); len(got) != 0 {
		t.Errorf("list: got %v", got)
	}
	if !now {
		w.Clock.Add(storage.Milliseconds(storage.RestorableFor))
		w.Loc.Alarms(w.Ctx)
		w.Clock.Add(2 * time.Second)
		w.Loc.Alarms(w.Ctx)
	}
	if got := w.deleted(); len(got) != 0 {
		t.Errorf("restorable: got %v", got)
	}
	w.Want(404, "restore", "")
	for k := range w.Loc.Storage(mid).Dump() {
		if k != "meta" && !strings.HasPrefix(k, storage.AuditPrefix) {
			t.Errorf("row %s outlives the machine", k)
		}
	}
	if n := w.Loc.Alarms(w.Ctx); n != 0 {
		t.Errorf("%d alarms of a machine that is gone", n)
	}
	w.Create()
	if got := w.machines(); len(got) != 1 {
		t.Errorf("made again: got %v", got)
	}
}

// The audit log of a machine ends with it, and a new operator token left no record at all.
func TestRegistryRecordsMachinesAndTheOperatorToken(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "rename", `{"name":"sk-0123456789abcdefghij"}`)
	w.Want(200, "rename", `{"name":"Second"}`)
	w.Want(204, "delete", "")
	w.Want(200, "restore", "")
	w.Want(204, "delete", `{"now":true}`)
	w.Create()
	w.Want(204, "delete", "")
	w.Clock.Add(storage.Milliseconds(storage.RestorableFor))
	w.Loc.Alarms(w.Ctx)
	w.Clock.Add(2 * time.Second)
	w.Loc.Alarms(w.Ctx)
	for _, token := range []string{"", "a", "a", "b"} {
		w.obj.Token = token
		w.obj.Cron(w.Ctx)
	}
	_, a := w.At(rpc.RegistryID, "signIn.list", `{}`)
	var got []string
	for _, r := range a.Get("data").Array() {
		got = append(got, r.Get("actor").Str+": "+r.Get("action").Str+" "+r.Get("name").Str)
	}
	want := []string{"operator: token.rotate ", "system: machine.erase demo", "operator: DELETE /api/machines/{id} demo",
		"operator: POST /api/machines demo", "operator: machine.erase Second", "operator: POST /api/machines/{id}/restore Second",
		"operator: DELETE /api/machines/{id} Second", "operator: PATCH /api/machines/{id} Second",
		"operator: PATCH /api/machines/{id} ***", "operator: POST /api/machines demo"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || a.Get("names."+mid).Str != "demo" {
		t.Errorf("got\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), a.Raw)
	}
}

// deleted returns the deleted machines that the registry lists.
func (w *world) deleted() []gjson.Result {
	w.Helper()
	_, answer, _ := w.Loc.Call(w.Ctx, rpc.RegistryID, "list", []byte(`{"deleted":true}`))
	return gjson.GetBytes(answer, "data").Array()
}

func TestDeletedMachineIsRestoredWithinSevenDays(t *testing.T) {
	for after, want := range map[time.Duration]int{
		0: 200, time.Hour: 200, 7*24*time.Hour - time.Millisecond: 200, 7 * 24 * time.Hour: 404,
	} {
		w := newWorld(t)
		w.Want(404, "restore", "")
		w.Create()
		w.Want(404, "restore", "")
		id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`)
		w.Want(200, "report", fmt.Sprintf(`{"usage":[{"keyId":"k","connectionId":%q,"model":"openai/m","requests":3,"calls":3}]}`, id))
		w.invite(1, rpc.InviteCreate{Role: people.Viewer})
		w.signIn(1, rpc.PersonSignIn{Identity: &ann, Invite: by(1)})
		w.Loc.Alarms(w.Ctx)
		at := w.Clock.Now().UnixMilli()
		w.Want(204, "delete", "")
		w.Want(404, "delete", "")
		w.Want(404, "manage", `{"method":"GET","route":"/api/export"}`)
		if got := w.machines(); len(got) != 0 {
			t.Errorf("list: got %v", got)
		}
		if got := w.deleted(); len(got) != 1 || got[0].Get("name").Str != "demo" || got[0].Get("deletedAt").Int() != at ||
			got[0].Get("restoreUntil").Int() != at+storage.RestorableFor {
			t.Errorf("deleted: got %v", got)
		}
		w.Clock.Add(min(after, time.Minute))
		w.Loc.Alarms(w.Ctx)
		if after > 0 && len(w.KV.Dump()) != 0 {
			t.Error("the replica is still in KV")
		}
		w.Clock.Add(after - min(after, time.Minute))
		status, got := w.Call("restore", "")
		if status != want {
			t.Fatalf("after %v: got %d %s, want %d", after, status, got.Raw, want)
		}
		if want != 200 {
			continue
		}
		if all := w.machines(); !slices.Equal(all, []string{mid}) || len(w.deleted()) != 0 {
			t.Errorf("after %v: listed %v", after, all)
		}
		w.Clock.Add(time.Minute)
		w.Loc.Alarms(w.Ctx)
		if all := w.machines(); !slices.Equal(all, []string{mid}) || w.KV.Dump()[kvKey(mid)] == nil {
			t.Errorf("after %v and an alarm: listed %v", after, all)
		}
		if m := w.Replica(); len(m.Connections) != 1 || m.Connections[0].ID != id || len(m.Keys) != 1 {
			t.Errorf("after %v: calls may use %+v", after, m.Connections)
		}
		if n := w.OK("GET", "/api/usage", "").Get("total.requests").Int(); n != 3 && after <= time.Hour {
			t.Errorf("after %v: %d requests are counted", after, n)
		}
		registry, _ := w.obj.begin(w.Loc.Storage(rpc.RegistryID), rpc.RegistryID)
		if p, _ := loadPerson(registry, ann.ID()); !p.roles().Of(mid).Role.Valid() {
			t.Errorf("after %v: the person has no role", after)
		}
		w.Want(404, "restore", "")
		w.Clock.Add(storage.Milliseconds(2 * storage.RestorableFor))
		w.Loc.Alarms(w.Ctx)
		w.Replica() // it is not erased
	}
}

// Nothing of a deleted machine runs, and what is stored for hours or less is erased at once.
func TestDeletedMachineRests(t *testing.T) {
	w, b, _ := logged(t)
	account := w.OAuth()
	w.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
	w.Want(200, "capture.put", `{"id":"req_1"}`+"\nv1.sealed")
	other := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`)
	w.calls(1)
	w.Loc.Alarms(w.Ctx)
	w.OK("DELETE", "/api/providers/"+other, "")
	w.Want(204, "delete", "")
	for key := range w.Loc.Storage(mid).Dump() {
		if strings.HasPrefix(key, storage.CapturePrefix) {
			t.Errorf("%s is left", key)
		}
	}
	was, alarms := w.tx(), 0
	for range 6 * 24 {
		w.Clock.Add(time.Hour)
		alarms += w.Loc.Alarms(w.Ctx)
	}
	var before, after storage.Connection
	was.Load(storage.ConnectionPrefix+account, &before)
	now := w.tx()
	now.Load(storage.ConnectionPrefix+account, &after)
	if after.TokenGeneration != before.TokenGeneration || len(b.objects) != 0 {
		t.Errorf("tokens %d, then %d; %d objects of logs", before.TokenGeneration, after.TokenGeneration, len(b.objects))
	}
	if rows := now.List(storage.DeletedPrefix); len(rows) != 0 {
		t.Error("the credential of an account that was deleted before is stored")
	}
	if alarms > 3 {
		t.Errorf("%d alarms in six days", alarms)
	}
	w.Want(200, "restore", "")
	w.pass(2, func(int) {})
	w.Clock.Add(time.Hour)
	w.Loc.Alarms(w.Ctx)
	if len(b.objects) != 1 {
		t.Errorf("%d objects of logs after the restore", len(b.objects))
	}
}

// Whatever comes between the intent and the change, the list says what can be done.
func TestRegistryOfAMachineThatIsRestored(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(204, "delete", "")
	w.Loc.Storage(mid).Fault = func(string) bool { return true }
	w.Want(503, "restore", "")
	w.Loc.Storage(mid).Fault = nil
	if len(w.machines()) != 0 || len(w.deleted()) != 1 {
		t.Errorf("listed %v and %v", w.machines(), w.deleted())
	}
	w.Want(200, "restore", "")
	w.Loc.Storage(mid).Fault = func(string) bool { return true }
	w.Want(503, "delete", "")
	w.Want(503, "delete", `{"now":true}`)
	w.Loc.Storage(mid).Fault = nil
	if len(w.machines()) != 1 || len(w.deleted()) != 0 {
		t.Errorf("listed %v and %v", w.machines(), w.deleted())
	}
	w.Clock.Add(6 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	if len(w.machines()) != 1 || len(w.deleted()) != 0 {
		t.Errorf("later listed %v and %v", w.machines(), w.deleted())
	}
}

// A document of KV neither brings a deleted machine back nor mixes with its rows.
func TestSeedOfADeletedMachineIsRefused(t *testing.T) {
	w := newWorld(t)
	w.obj.Reseed = true
	w.Create()
	w.Want(204, "delete", "")
	w.Want(422, "adopt", `{"doc":`+seed+`}`)
	w.Want(404, "snapshot", `{}`)
	w.Want(204, "delete", `{"now":true}`)
	w.Want(200, "adopt", `{"doc":`+seed+`}`)
}

// A clock that went back makes no deleted machine stay for longer than it can be restored.
func TestClockBackDoesNotKeepADeletedMachine(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(204, "delete", "")
	w.Clock.Add(-10 * 365 * 24 * time.Hour)
	w.Want(200, "tick", "")
	for range 8 * 24 {
		w.Clock.Add(time.Hour)
		w.Loc.Alarms(w.Ctx)
	}
	if rows := w.Loc.Storage(mid).Listed(storage.KeyPrefix); len(rows) != 0 {
		t.Error("its rows are still stored")
	}
}

// A seed that no one has seen yet does not bring a deleted machine back.
func TestDeletionWinsOverASeedInKV(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.KV.Put(w.Ctx, kvKey(mid), []byte(`{"apiKeys":["sk-fromhand12"]}`))
	w.Want(204, "delete", "")
	w.Clock.Add(2 * time.Second)
	w.Loc.Alarms(w.Ctx)
	w.Want(404, "snapshot", `{}`)
	if len(w.KV.Dump()) != 0 {
		t.Error("the seed is still in KV")
	}
}

// A crash between the intent and the confirmation loses nothing visible.
func TestRegistryAfterACrash(t *testing.T) {
	put := func(w *world, state string) {
		w.Loc.Call(w.Ctx, rpc.RegistryID, "put", fmt.Appendf(nil, `{"machineId":%q,"name":"demo","state":%q}`, mid, state))
	}
	t.Run("before the machine was created", func(t *testing.T) {
		w := newWorld(t)
		put(w, creating)
		if got := w.machines(); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		w.Clock.Add(6 * time.Minute)
		w.machines()
		if n := len(w.Loc.Storage(rpc.RegistryID).Listed(machinePrefix)); n != 0 {
			t.Error("the intent stays for ever")
		}
	})
	t.Run("after the machine was created", func(t *testing.T) {
		w := newWorld(t)
		w.Create()
		put(w, creating) // as if never confirmed
		if got := w.machines(); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("before the machine was deleted", func(t *testing.T) {
		w := newWorld(t)
		w.Create()
		put(w, deleting)
		if got := w.machines(); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		w.Clock.Add(6 * time.Minute)
		if got := w.machines(); len(got) != 1 {
			t.Errorf("later: got %v", got)
		}
	})
	t.Run("the registry is down", func(t *testing.T) {
		w := newWorld(t)
		real := w.obj.Objects
		w.obj.Objects = &objects.Script{}
		status, a := w.Call("create", `{}`)
		if status != 503 {
			t.Fatalf("got %d %s, want 503", status, a.Raw)
		}
		w.Want(404, "snapshot", `{}`)
		w.obj.Objects = real
		w.Want(200, "adopt", `{"doc":{"apiKeys":["sk-abcdefgh12"]}}`)
		w.obj.Objects = &objects.Script{}
		w.Loc.Alarms(w.Ctx)
		w.obj.Objects = real
		if got := w.machines(); len(got) != 0 {
			t.Fatalf("got %v", got)
		}
		w.Clock.Add(5 * time.Second)
		w.Loc.Alarms(w.Ctx)
		if got := w.machines(); len(got) != 1 {
			t.Errorf("a seeded machine is not registered: %v", got)
		}
	})
}

func TestPublishingIsCoalescedAndRetried(t *testing.T) {
	w := newWorld(t)
	w.Create()
	puts := func() (n int) {
		for _, k := range w.KV.Writes() {
			if k == kvKey(mid) {
				n++
			}
		}
		return n
	}
	w.Loc.Alarms(w.Ctx)
	if puts() != 1 {
		t.Fatalf("%d writes after the first change", puts())
	}
	for i := range 50 {
		w.Connect(fmt.Sprintf(`{"provider":"openai","name":"c%d","apiKey":"sk-0123456789abcdef"}`, i))
		w.Loc.Alarms(w.Ctx)
	}
	if puts() != 1 {
		t.Errorf("%d writes within a second", puts())
	}
	w.KV.Down(true)
	for range 10 {
		w.Clock.Add(time.Second)
		w.Loc.Alarms(w.Ctx)
	}
	if n := puts() - 1; n < 3 || n > 5 {
		t.Errorf("%d tries in 10 s of KV down, want them further and further apart", n)
	}
	w.KV.Down(false)
	w.Clock.Add(time.Minute)
	w.Loc.Alarms(w.Ctx)
	m, err := snapshot.Parse(mid, w.KV.Dump()[kvKey(mid)])
	if err != nil || len(m.Connections) != 50 || m.Generation != w.Replica().Generation {
		t.Errorf("KV is behind: %v", err)
	}
	before := puts()
	w.Clock.Add(time.Minute)
	w.Loc.Alarms(w.Ctx)
	if puts() != before {
		t.Error("published without a change")
	}
}

func TestLostAlarmIsSetAgain(t *testing.T) {
	for _, by := range []string{"snapshot", "tick"} {
		w := newWorld(t)
		w.Create()
		w.Loc.Storage(mid).Alarm = 0 // lost
		w.Clock.Add(2 * time.Minute)
		if by == "snapshot" {
			w.Want(200, "snapshot", `{"have":0}`)
		} else {
			w.Loc.Call(w.Ctx, rpc.RegistryID, "put", []byte(`{"machineId":"`+mid+`","state":"active"}`))
			w.obj.Cron(w.Ctx)
		}
		w.Loc.Alarms(w.Ctx)
		if w.KV.Dump()[kvKey(mid)] == nil {
			t.Errorf("%s: still not published", by)
		}
	}
}

func TestClockJumpsMakeNothingPermanent(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour} {
		w := newWorld(t)
		w.Create()
		id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
		w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"until":%d,"since":%d,"reason":"rate_limited"}]}`,
			id, w.Clock.Now().Add(20*time.Minute).UnixMilli(), w.Clock.Now().UnixMilli()))
		w.Loc.Alarms(w.Ctx)
		w.Clock.Add(jump)
		id2 := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
		for range 5 {
			w.Clock.Add(2 * time.Second)
			w.Loc.Alarms(w.Ctx)
		}
		m, err := snapshot.Parse(mid, w.KV.Dump()[kvKey(mid)])
		if err != nil || m.Connection(id2) == nil {
			t.Errorf("%v: publishing has stopped", jump)
		}
		for _, c := range w.Replica().Cooldowns {
			left := c.Until - w.Clock.Now().UnixMilli()
			if jump < 0 || left > (20*time.Minute-jump).Milliseconds() {
				t.Errorf("%v: a cooldown of 20 min has %d ms left", jump, left)
			}
		}
		if rows := w.OK("GET", "/api/models/availability", "").Get("data.#").Int(); rows != 0 {
			t.Errorf("%v: %d cooldowns are shown", jump, rows)
		}
	}
}

func TestGenerationsMoveWithEveryChange(t *testing.T) {
	w := newWorld(t)
	w.Create()
	gen := w.Replica().Generation
	if a := w.Want(200, "snapshot", fmt.Sprintf(`{"have":%d}`, gen)); !a.Get("same").Bool() || a.Get("generation").Int() != gen {
		t.Errorf("got %s", a.Raw)
	}
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	m := w.Replica()
	if m.Generation != gen+1 || m.Connections[0].Generation != gen+1 {
		t.Errorf("got %d, row %d, want %d", m.Generation, m.Connections[0].Generation, gen+1)
	}
	w.OK("POST", "/api/keys", `{}`)
	if m = w.Replica(); m.Generation != gen+2 || m.Connections[0].Generation != gen+1 {
		t.Errorf("another row's change moved the connection's generation to %d", m.Connections[0].Generation)
	}
	w.OK("DELETE", "/api/providers/"+id, "")
	if m = w.Replica(); m.Generation != gen+3 || len(m.Connections) != 0 {
		t.Errorf("got %d", m.Generation)
	}
	raw, _ := json.Marshal(m)
	if _, err := snapshot.Parse(mid, raw); err != nil {
		t.Error(err)
	}
}

// A page of machines costs one pass, whatever their number, and is searched in
// the object.
func TestMachinesAreListedInPages(t *testing.T) {
	w := newWorld(t)
	const n = 10_000
	var rows []storage.Row
	for i := range n {
		id := fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15)
		rows = append(rows, storage.Row{Key: machinePrefix + id, Value: []byte(fmt.Sprintf(`{"machineId":%q,"name":"Team %d","createdAt":%d,"state":"active","at":1}`, id, i, 1_000+i/2))})
	}
	w.Loc.Storage(rpc.RegistryID).Write(rows, 0)
	w.Loc.Storage(rpc.RegistryID).Flush()
	list := func(body string) gjson.Result {
		t.Helper()
		status, answer, err := w.Loc.Call(w.Ctx, rpc.RegistryID, "list", []byte(body))
		if err != nil || status != 200 {
			t.Fatalf("%s: %d %s %v", body, status, answer, err)
		}
		return gjson.ParseBytes(answer)
	}
	seen, cursor, before := map[string]bool{}, "", int64(0)
	for {
		page := list(fmt.Sprintf(`{"limit":900,"cursor":%q}`, cursor))
		for _, m := range page.Get("data").Array() {
			if at := m.Get("createdAt").Int(); at < before || seen[m.Get("machineId").Str] {
				t.Fatalf("%s is out of order", m.Raw)
			} else {
				before = at
			}
			seen[m.Get("machineId").Str] = true
		}
		if page.Get("total").Int() != n {
			t.Fatalf("total %s", page.Get("total").Raw)
		}
		if cursor = page.Get("next").Str; cursor == "" || !page.Get("has_more").Bool() {
			break
		}
	}
	if len(seen) != n {
		t.Errorf("%d machines over all pages, want %d", len(seen), n)
	}
	if got := list(`{}`); len(got.Get("data").Array()) != 100 {
		t.Errorf("%d machines without a limit, want 100", len(got.Get("data").Array()))
	}
	if got := list(`{"q":"TEAM 999"}`); got.Get("total").Int() != 11 || got.Get("has_more").Bool() {
		t.Errorf("search: %s", got.Raw)
	}
	for _, bad := range []string{`{"limit":1001}`, `{"cursor":"x"}`, `[]`} {
		if status, _, _ := w.Loc.Call(w.Ctx, rpc.RegistryID, "list", []byte(bad)); status != 400 {
			t.Errorf("%s: got %d, want 400", bad, status)
		}
	}
}
