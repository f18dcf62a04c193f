package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/storage"
)

func TestDeletedConnectionIsRestoredWithinAMinute(t *testing.T) {
	w := newWorld(t)
	w.Create()
	const undo = storage.UndoFor * int64(time.Millisecond)
	for _, after := range []time.Duration{0, time.Duration(undo) - time.Millisecond, time.Duration(undo), time.Duration(undo) + time.Hour} {
		id := w.Connect(`{"provider":"openai","name":"Main","apiKey":"sk-0123456789abcdefghij","priority":7,"providerSpecificData":{"prefix":"main"}}`)
		w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":"failing","status":500,"text":"broken"}`, id))
		before := w.OK("GET", "/api/providers/"+id, "")
		w.OK("DELETE", "/api/providers/"+id, "")
		if status, _ := w.API("GET", "/api/providers/"+id, ""); status != 404 {
			t.Errorf("deleted: %d", status)
		}
		if m := w.Replica(); len(m.Connections) != 0 {
			t.Errorf("calls may use %d connections", len(m.Connections))
		}
		w.Clock.Add(after)
		status, got := w.API("POST", "/api/providers/"+id+"/restore", "")
		if late := int64(after) >= undo; late {
			if status != 404 {
				t.Errorf("after %v: status %d", after, status)
			}
			continue
		}
		for _, field := range []string{"name", "priority", "last4", "status", "health", "lastError", "createdAt", "providerSpecificData.prefix"} {
			if g, b := got.Get("body."+field).Raw, before.Get(field).Raw; g != b || g == "" {
				t.Errorf("after %v: %s is %s, was %s", after, field, g, b)
			}
		}
		if m := w.Replica(); len(m.Connections) != 1 || m.Connections[0].ID != id {
			t.Errorf("after %v: calls may use %+v", after, m.Connections)
		}
		if status, _ := w.API("POST", "/api/providers/"+id+"/restore", ""); status != 404 {
			t.Errorf("restored twice: %d", status)
		}
		w.OK("DELETE", "/api/providers/"+id, "")
	}
	for _, id := range []string{"x", "..", "connection0000000001"} {
		if status, _ := w.API("POST", "/api/providers/"+id+"/restore", ""); status != 404 {
			t.Errorf("%s: %d", id, status)
		}
	}
}

// A connection that an import has brought back is neither replaced nor erased.
func TestImportedConnectionIsNotUndone(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","name":"Old","apiKey":"sk-0123456789abcdefghij"}`)
	w.OK("DELETE", "/api/providers/"+id, "")
	w.OK("POST", "/api/import", fmt.Sprintf(`{"document":{"connections":[{"id":%q,"provider":"openai","name":"New","apiKey":"sk-9876543210abcdefghij"}]}}`, id))
	if status, _ := w.API("POST", "/api/providers/"+id+"/restore", ""); status != 404 {
		t.Errorf("restored: %d", status)
	}
	w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":"failing","status":500,"text":"broken"}`, id))
	w.Clock.Add(time.Duration(storage.UndoFor)*time.Millisecond + time.Second)
	w.Loc.Alarms(w.Ctx)
	if got := w.OK("GET", "/api/providers/"+id, ""); got.Get("name").Str != "New" || got.Get("lastError").Str == "" {
		t.Errorf("it is %s", got.Raw)
	}
	if _, left := w.Loc.Storage(mid).Dump()[storage.DeletedPrefix+id]; left {
		t.Error("the deleted one is still stored")
	}
}

// Nothing of a deleted connection stays in the storage.
func TestDeletedConnectionIsErased(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`)
	w.Want(200, "report", fmt.Sprintf(`{"usage":[{"connectionId":%q,"requests":3,"errors":1}]}`, id))
	w.Want(200, "tested", fmt.Sprintf(`{"connectionId":%q,"reason":"failing","status":500,"text":"broken"}`, id))
	w.OK("DELETE", "/api/providers/"+id, "")
	stored := func() (n int) {
		for key, row := range w.Loc.Storage(mid).Dump() {
			for _, prefix := range []string{storage.DeletedPrefix, storage.HealthPrefix, storage.ConnUsePrefix, storage.ErrorPrefix} {
				if strings.HasPrefix(key, prefix+id) || strings.Contains(string(row), prefix+id) {
					n++
				}
			}
		}
		return n
	}
	if stored() == 0 {
		t.Fatal("it cannot be restored")
	}
	w.Clock.Add(time.Duration(storage.UndoFor)*time.Millisecond + time.Second)
	w.Loc.Alarms(w.Ctx)
	if n := stored(); n != 0 {
		t.Errorf("%d rows of it are stored", n)
	}
}
