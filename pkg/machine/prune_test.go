package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

// Someone who makes rows without end fills no turn with removing them.
func TestManyRowsAreRemovedInTurns(t *testing.T) {
	w := newWorld(t)
	w.Create()
	st := w.Loc.Storage(mid)
	const jobs = 2*storage.MaxRemoved + 500
	var rows []storage.Row
	for i := range jobs {
		rows = append(rows, storage.Row{Key: fmt.Sprintf("%s%05d", storage.JobPrefix, i), Value: []byte(`{"id":"a","connectionId":"c","expiresAt":1}`)})
	}
	rows = append(rows, storage.Row{Key: storage.JobPrefix + "kept", Value: []byte(`{"id":"b","connectionId":"c","expiresAt":9999999999999}`)}, storage.Row{Key: storage.JobPrefix + "unreadable", Value: []byte(`{"id":[]}`)})
	st.Write(rows, storage.KeepAlarm)
	st.Flush()
	left := func() int { return len(st.Listed(storage.JobPrefix)) - 2 }
	w.Clock.Add(61 * time.Minute)
	before := jobs
	for turn := 1; turn <= 3; turn++ {
		w.Loc.Alarms(w.Ctx)
		now := left()
		if removed := before - now; removed < 500 || removed > storage.MaxRemoved {
			t.Errorf("turn %d: %d rows removed, %d left", turn, removed, now)
		}
		before = now
		w.Clock.Add(11 * time.Second)
	}
	if before != 0 || len(st.Listed(storage.JobPrefix)) != 2 {
		t.Errorf("%d rows left", before)
	}
	// Then it is an hour's work again.
	st.Write([]storage.Row{{Key: storage.JobPrefix + "late", Value: []byte(`{"id":"a","connectionId":"c","expiresAt":1}`)}}, storage.KeepAlarm)
	st.Flush()
	w.Loc.Alarms(w.Ctx)
	if left() != 1 {
		t.Error("pruned before the hour was over")
	}
	w.Clock.Add(61 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	if left() != 0 {
		t.Error("not pruned after an hour")
	}
}

// A job is billed once. One that never was counts as an attempt without a price when it
// expires.
func TestJobsAreBilledOnceOrCountAsUnpriced(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for _, id := range []string{"billed", "lost"} {
		w.Want(200, "job.put", fmt.Sprintf(`{"id":%q,"connectionId":"c","expiresAt":%d,"unbilled":{"model":"m","requests":1,"unpriced":1}}`, id, w.Clock.Now().Add(time.Hour).UnixMilli()))
	}
	for _, billed := range []bool{true, false} {
		if a := w.Want(200, "job.bill", `{"id":"billed","usage":{"model":"m","requests":1,"inputTokens":5,"costUsd":0.25}}`); a.Get("billed").Bool() != billed {
			t.Errorf("got %s", a.Raw)
		}
	}
	w.Want(400, "job.bill", `{"id":"billed","usage":{"requests":-1}}`)
	w.Want(404, "job.bill", `{"id":"none","usage":{}}`)
	w.Clock.Add(2 * time.Hour)
	w.Loc.Alarms(w.Ctx)
	var sum usage.Row
	w.tx().Hours(w.Clock.Now().Add(-5*time.Hour).UnixMilli(), w.Clock.Now().UnixMilli(), func(_ string, r *usage.Row) { sum.Add(r) })
	if sum.Requests != 2 || sum.Unpriced != 1 || sum.CostUSD != 0.25 || sum.InputTokens != 5 {
		t.Errorf("usage is %+v", sum)
	}
}

// A job has the labels of the call that created it, whoever asks for it, and also if no one does.
// One of an earlier version has those of who asks.
func TestJobsHaveTheLabelsOfTheirCreation(t *testing.T) {
	w := newWorld(t)
	w.Create()
	created := `,"labels":[{"kind":"tool","rows":[{"value":"codex","keyId":"k1","requests":1,"unpriced":1}]},{"kind":"tag","name":"project","rows":[{"value":"a","keyId":"k1","requests":1,"unpriced":1}]}]`
	for id, labels := range map[string]string{"billed": created, "lost": created, "old": ""} {
		w.Want(200, "job.put", fmt.Sprintf(`{"id":%q,"connectionId":"c","expiresAt":%d,"unbilled":{"keyId":"k1","model":"m","requests":1,"unpriced":1}%s}`, id, w.Clock.Now().Add(time.Hour).UnixMilli(), labels))
	}
	for _, id := range []string{"billed", "old", "billed"} {
		w.Want(200, "job.bill", fmt.Sprintf(`{"id":%q,"usage":{"keyId":"k2","model":"m","requests":1,"costUsd":0.25},"labels":[{"kind":"tool","rows":[{"value":"curl","keyId":"k2","requests":1,"costUsd":0.25}]}]}`, id))
	}
	w.Clock.Add(2 * time.Hour)
	w.Loc.Alarms(w.Ctx)
	for query, want := range map[string]string{"groupBy=tool": "curl 1 0.25 0; codex 2 0.25 1; ", "groupBy=tag:project": " 1 0.25 0; project=a 2 0.25 1; "} {
		got := ""
		for _, r := range w.OK("GET", "/api/usage?"+query, "").Get("data").Array() {
			got += fmt.Sprintf("%s%s %v %v %d; ", r.Get("tool").Str, r.Get("tag").Str, r.Get("attempts"), r.Get("costUsd").Num, r.Get("unpricedAttempts").Int())
		}
		if !sameParts(got, want) {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// sameParts reports whether two lists have the same parts in any order.
func sameParts(a, b string) bool {
	x, y := strings.Split(a, "; "), strings.Split(b, "; ")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// A put that is repeated, because the answer to the first was lost, bills nothing again.
// Another request whose upstream uses the same id is billed.
func TestRepeatedPutOfAJobBillsItOnce(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for _, step := range []struct {
		request string
		billed  bool
	}{{"r1", true}, {"r1", false}, {"r2", true}} {
		w.Want(200, "job.put", fmt.Sprintf(`{"id":"resp_1","connectionId":"c","requestId":%q,"unbilled":{"model":"m","requests":1,"unpriced":1},"counted":{"b1":5}}`, step.request))
		if a := w.Want(200, "job.bill", `{"id":"resp_1","usage":{"model":"m","requests":1,"costUsd":0.25}}`); a.Get("billed").Bool() != step.billed {
			t.Errorf("%s: got %s, want %v", step.request, a.Raw, step.billed)
		}
	}
}

// The audit is bounded also between two of the hour's works, and its chain
// holds where the oldest records went.
func TestAuditIsBoundedWhileItGrows(t *testing.T) {
	w := newWorld(t)
	w.Create()
	st := w.Loc.Storage(mid)
	count := func() int { return len(st.Listed(storage.AuditPrefix)) }
	grow := func(n int) {
		tx := w.obj.Begin(st, mid)
		for range n {
			tx.Audit("operator", "test", "", nil)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		st.Flush()
	}
	grow(2*storage.MaxAudit + 300)
	if n := count(); n != 2*storage.MaxAudit {
		t.Errorf("%d records, want %d", n, 2*storage.MaxAudit)
	}
	tx := w.obj.Begin(st, mid)
	if at := tx.ChainBreak(); at != 0 {
		t.Errorf("the chain breaks at %d", at)
	}
	for range 4 { // in turns
		w.Clock.Add(61 * time.Minute)
		w.Loc.Alarms(w.Ctx)
	}
	if n := count(); n != storage.MaxAudit {
		t.Errorf("%d records, want %d", n, storage.MaxAudit)
	}
	if a := w.OK("GET", "/api/audit?verify=true&limit=1", ""); !a.Get("chain.ok").Bool() || !a.Get("has_more").Bool() {
		t.Errorf("got %s", a.Raw)
	}
	// A record that is changed breaks it still.
	rows := st.Listed(storage.AuditPrefix)
	st.Write([]storage.Row{{Key: rows[50].Key, Value: []byte(strings.Replace(string(rows[50].Value), "operator", "nobody", 1))}}, storage.KeepAlarm)
	st.Flush()
	if a := w.OK("GET", "/api/audit?verify=true&limit=1", ""); a.Get("chain.ok").Bool() || a.Get("chain.brokenAt").Int() == 0 {
		t.Errorf("got %s", a.Raw)
	}
}
