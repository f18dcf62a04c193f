package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
)

// budget creates a budget and returns its id.
func (w *world) budget(body string) string {
	w.Helper()
	status, a := w.API("POST", "/api/budgets", body)
	if status != 200 || a.Get("status").Int() != 201 {
		w.Fatalf("POST /api/budgets %s: got %d %s", body, status, a.Raw)
	}
	return a.Get("body.id").Str
}

// atBudget names a budget in a call.
func atBudget(id string) func(*rpc.ManageCall) {
	return func(e *rpc.ManageCall) { e.Route, e.Params = "/api/budgets/{id}", []string{id} }
}

func TestBudgetsAreManaged(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.budget(`{"name":"team","unit":"usd","limit":0.5,"window":"month","models":["openai/gpt-4o"]}`)
	b := w.OK("GET", "/api/budgets", "", atBudget(id))
	if b.Get("limit").Num != 0.5 || b.Get("unpriced").Str != "pass" || b.Get("spent").Num != 0 || b.Get("exhausted").Bool() {
		t.Errorf("created: %s", b.Raw)
	}
	b = w.OK("PUT", "/api/budgets", `{"tag":"project=atlas","tool":"codex"}`, atBudget(id))
	if b.Get("tag").Str != "project=atlas" || b.Get("tool").Str != "codex" {
		t.Errorf("got %s", b.Raw)
	}
	b = w.OK("PUT", "/api/budgets", `{"limit":1.25,"unpriced":"refuse","window":"month","tag":null,"tool":""}`, atBudget(id))
	if b.Get("tag").Exists() || b.Get("tool").Exists() {
		t.Errorf("got %s", b.Raw)
	}
	if b.Get("limit").Num != 1.25 || b.Get("unpriced").Str != "refuse" || b.Get("name").Str != "team" {
		t.Errorf("changed: %s", b.Raw)
	}
	if m := w.Replica(); len(m.Budgets) != 1 || m.Budgets[0].Limit != 1_250_000_000 || !m.Budgets[0].RefuseUnpriced {
		t.Errorf("replica: %+v", m.Budgets)
	}
	for _, bad := range []string{
		`{"unit":"usd","limit":1,"window":"day"}`, `{"name":"","unit":"usd","limit":1,"window":"day"}`,
		`{"name":"n","unit":"eur","limit":1,"window":"day"}`, `{"name":"n","unit":"usd","limit":1,"window":"year"}`,
		`{"name":"n","unit":"usd","limit":0,"window":"day"}`, `{"name":"n","unit":"usd","limit":1e-10,"window":"day"}`,
		`{"name":"n","unit":"usd","limit":1e7,"window":"day"}`, `{"name":"n","unit":"usd","window":"day"}`, `{"name":"n","unit":"usd","limit":"1","window":"day"}`,
		`{"name":"n","unit":"tokens","limit":1.5,"window":"day"}`, `{"name":"n","unit":"requests","limit":-1,"window":"day"}`,
		`{"name":"n","unit":"tokens","limit":1,"window":"day","tag":"atlas"}`, `{"name":"n","unit":"tokens","limit":1,"window":"day","tool":"my-tool"}`,
		`{"name":"n","unit":"tokens","limit":1,"window":"day","unpriced":"refuse"}`, `{"name":"n","unit":"usd","limit":1,"window":"day","unpriced":"no"}`,
		`{"name":"n","unit":"usd","limit":1,"window":"day","keyId":"nothing"}`, `{"name":"n","unit":"usd","limit":1,"window":"day","spent":0}`,
		`{"name":"n","unit":"usd","limit":1,"window":"day","models":["openia/gpt-4o"]}`,
	} {
		if status, a := w.API("POST", "/api/budgets", bad); status != 400 {
			t.Errorf("%s: got %d %s", bad, status, a.Raw)
		}
	}
	for _, bad := range []string{`{"unit":"tokens"}`, `{"window":"day"}`, `{"name":""}`} {
		if status, a := w.API("PUT", "/api/budgets", bad, atBudget(id)); status != 400 {
			t.Errorf("PUT %s: got %d %s", bad, status, a.Raw)
		}
	}
	if status, a := w.API("DELETE", "/api/budgets", "", atBudget(id)); status != 200 || a.Get("status").Int() != 204 {
		t.Errorf("DELETE: %d %s", status, a.Raw)
	}
	if status, _ := w.API("GET", "/api/budgets", "", atBudget(id)); status != 404 {
		t.Errorf("after its deletion: %d", status)
	}
}

func TestBudgetsOfADeletedKeyEnd(t *testing.T) {
	w := newWorld(t)
	w.Create()
	_, made := w.API("POST", "/api/keys", `{"name":"left"}`)
	key := made.Get("body.id").Str
	gone := w.budget(fmt.Sprintf(`{"name":"of the key","keyId":%q,"unit":"requests","limit":10,"window":"day"}`, key))
	stays := w.budget(`{"name":"of all","unit":"requests","limit":10,"window":"day"}`)
	w.take("a", gone, 1)
	if status, a := w.API("DELETE", "/api/keys/"+key, ""); status != 200 || a.Get("status").Int() != 204 {
		t.Fatalf("DELETE: %d %s", status, a.Raw)
	}
	if status, _ := w.API("GET", "/api/budgets", "", atBudget(gone)); status != 404 {
		t.Errorf("the budget of the key: %d", status)
	}
	w.OK("GET", "/api/budgets", "", atBudget(stays))
	if m := w.Replica(); len(m.Budgets) != 1 || m.Budgets[0].ID != stays {
		t.Errorf("replica: %+v", m.Budgets)
	}
	for key := range w.Loc.Storage(mid).Dump() {
		if strings.HasSuffix(key, gone) {
			t.Errorf("the row %s is left", key)
		}
	}
}

func (w *world) take(holder, id string, own int) (granted int64, refused bool) {
	w.Helper()
	g := w.Want(200, "budget.take", fmt.Sprintf(`{"holder":%q,"asks":[{"budget":%q,"start":-1,"need":%d,"own":%d}]}`, holder, id, own, own)).Get("grants.0")
	return g.Get("granted").Int(), g.Get("refused").Bool()
}

func TestSliceIsStoredBeforeTheAnswer(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.budget(`{"name":"n","unit":"requests","limit":10,"window":"total"}`)
	if n, refused := w.take("a", id, 8); n < 8 || refused {
		t.Fatalf("granted %d", n)
	}
	w.obj.buffers = buffers{} // a restart of the program
	if _, refused := w.take("b", id, 5); !refused {
		t.Error("what was lent before a restart is lent again")
	}
	if b := w.OK("GET", "/api/budgets", "", atBudget(id)); b.Get("reserved").Num < 8 {
		t.Errorf("shown: %s", b.Raw)
	}
}

func TestReportedUseIsStoredAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.budget(`{"name":"n","unit":"tokens","limit":1000,"window":"total"}`)
	w.take("a", id, 100)
	rep := fmt.Sprintf(`{"budgets":{"holder":"a","asks":[{"budget":%q,"used":70}]}}`, id)
	for range 2 { // an answer may be lost
		if g := w.Want(200, "report", rep).Get("budgets.0"); g.Get("used").Int() != 70 {
			t.Fatalf("got %s", g.Raw)
		}
	}
	w.obj.buffers = buffers{}
	if b := w.OK("GET", "/api/budgets", "", atBudget(id)); b.Get("spent").Num != 70 {
		t.Errorf("shown: %s", b.Raw)
	}
}

func TestWindowsFollowTheTimeZone(t *testing.T) {
	w := newWorld(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("the system has no time zones")
	}
	w.obj.ZoneOffset = func(zone string, ms int64) (int, bool) {
		_, off := time.UnixMilli(ms).In(berlin).Zone()
		return off, zone == "Europe/Berlin"
	}
	w.Create()
	for zone, want := range map[string]int{"Europe/Berlin": 200, "Europe/Nowhere": 400} {
		if status, a := w.API("PATCH", "/api/settings", fmt.Sprintf(`{"timeZone":%q}`, zone)); status != want {
			t.Fatalf("%s: %d %s", zone, status, a.Raw)
		}
	}
	id := w.budget(`{"name":"n","unit":"requests","limit":10,"window":"month"}`)
	w.take("a", id, 1)
	b := w.OK("GET", "/api/budgets", "", atBudget(id))
	end := time.UnixMilli(b.Get("resetsAt").Int()).In(berlin)
	if end.Day() != 1 || end.Hour() != 0 || end.Minute() != 0 {
		t.Errorf("the month ends at %v", end)
	}
	w.Clock.Add(end.Sub(w.Clock.Now()))
	if b := w.OK("GET", "/api/budgets", "", atBudget(id)); b.Get("reserved").Num != 0 || b.Get("resetsAt").Int() <= end.UnixMilli() {
		t.Errorf("after it: %s", b.Raw)
	}
}

func TestHostileAsksAreRefused(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.budget(`{"name":"n","unit":"requests","limit":10,"window":"total"}`)
	for _, body := range []string{
		`{"holder":"a","asks":[{"budget":"` + id + `","used":-5}]}`, `{"holder":"","asks":[{"budget":"` + id + `"}]}`,
		`{"holder":"a/b","asks":[{"budget":"` + id + `"}]}`, `{"holder":"a","asks":[{"budget":"nothing","own":1}]}`, `{"holder":"a","asks":[{"budget":"../x"}]}`,
	} {
		if a := w.Want(200, "budget.take", body); len(a.Get("grants").Array()) != 0 {
			t.Errorf("%s: got %s", body, a.Raw)
		}
	}
	w.Want(400, "budget.take", `{"asks":"`+strings.Repeat("x", 10)+`"}`)
}
