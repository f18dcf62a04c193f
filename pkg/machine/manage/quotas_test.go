package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Gauges that isolates report are listed at once, and the windows of an hour and more
// are in the state that other isolates get.
func TestReportedQuotas(t *testing.T) {
	w := newWorld(t)
	w.Create()
	connect := func(name string) string {
		return w.Connect(fmt.Sprintf(`{"provider":"openai","name":%q,"apiKey":"sk-0123456789abcdef"}`, name))
	}
	id, other := connect("one"), connect("two")
	now := w.Clock.Now().UnixMilli()
	say := func(id string, moved bool, left float64, at int64) {
		t.Helper()
		w.Want(200, "report", fmt.Sprintf(`{"quotas":[{"connectionId":%q,"moved":%v,"windows":[{"name":"5h","left":%v,"resetsAt":%d,"span":18000,"at":%d},{"name":"requests","model":"gpt","left":0.5,"limit":60,"remaining":30,"resetsAt":%d,"span":60,"at":%d}]}]}`,
			id, moved, left, now+5*3600_000, at, at+30_000, at))
	}
	say(id, true, 0.5, now)
	say("nobody", true, 0.5, now)
	observed := w.Replica().Observed
	got := w.Replica().Quotas
	if len(got) != 1 || got[0].ConnectionID != id || len(got[0].Windows) != 1 || got[0].Windows[0].Name != "5h" || got[0].Windows[0].Left != 0.5 {
		t.Fatalf("the state has %+v", got)
	}
	gen := w.Replica().Generation
	say(id, false, 0.48, now+1)
	if w.Replica().Observed != observed || w.Replica().Generation != gen {
		t.Error("a small change reaches every isolate")
	}
	say(id, true, 0.2, now+2)
	say(id, true, 0.9, now+1) // older, of another isolate
	if r := w.Replica(); r.Observed == observed || r.Quotas[0].Windows[0].Left != 0.2 || r.Generation != gen {
		t.Errorf("after a large change: %+v", r.Quotas)
	}
	list := func() string { return w.OK("GET", "/api/quota", "").Raw }
	rows := gjson.Get(list(), "data")
	if n := len(rows.Array()); n != 2 || rows.Get("0.connectionId").Str != id || rows.Get("0.name").Str != "one" || rows.Get("0.provider").Str != "openai" || rows.Get("1.connectionId").Str != other {
		t.Fatalf("got %s", rows)
	}
	want := fmt.Sprintf(`[{"name":"5h","left":0.2,"resetsAt":%d,"spanSeconds":18000,"observedAt":%d},{"name":"requests","model":"gpt","left":0.5,"limit":60,"remaining":30,"resetsAt":%d,"spanSeconds":60,"observedAt":%d}]`, now+5*3600_000, now+2, now+2+30_000, now+2)
	if got := rows.Get("0.windows").Raw; got != want || rows.Get("1.windows").Raw != "[]" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w.Clock.Add(2 * time.Minute) // the window of a minute is over
	if got := gjson.Get(list(), "data.0.windows.#").Int(); got != 1 {
		t.Errorf("%d windows, want the one of 5 hours", got)
	}
	w.Clock.Add(5 * time.Hour)
	if got := gjson.Get(list(), "data.0.windows").Raw; got != "[]" || len(w.Replica().Quotas) > 0 {
		t.Errorf("after the reset: %s", got)
	}
}

func TestReplacedCredentialForgetsQuota(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	now := w.Clock.Now().UnixMilli()
	say := func() {
		w.Want(200, "report", fmt.Sprintf(`{"quotas":[{"connectionId":%q,"moved":true,"windows":[{"name":"7d","left":0.01,"resetsAt":%d,"span":604800,"at":%d}]}]}`, id, now+3600_000*100, now))
	}
	say()
	w.OK("PUT", "/api/providers/"+id, `{"name":"renamed"}`)
	if len(w.Replica().Quotas) != 1 {
		t.Error("another name forgets the gauge")
	}
	w.OK("PUT", "/api/providers/"+id, `{"apiKey":"sk-fedcba9876543210"}`)
	if got := w.Replica().Quotas; len(got) != 0 {
		t.Errorf("after another key: %+v", got)
	}
	say()
	w.OK("DELETE", "/api/providers/"+id, "")
	if got := w.Replica().Quotas; len(got) != 0 {
		t.Errorf("of a connection that is gone: %+v", got)
	}
	for key, row := range w.Loc.Storage(mid).Dump() {
		if strings.HasPrefix(key, "quota:") || strings.Contains(string(row), "quota:") {
			t.Errorf("row %s: %s", key, row)
		}
	}
}
