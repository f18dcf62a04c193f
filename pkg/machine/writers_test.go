package machine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// 2,000 mutations by 8 writers (10,000 with SOAK) over a storage that fails now and then: what
// was acknowledged is there, what was refused is not.
func TestNoAcknowledgedMutationIsLost(t *testing.T) {
	w := newWorld(t)
	w.Create()
	st := w.Loc.Storage(mid)
	src := rand.New(rand.NewPCG(1, 2))
	st.Fault = func(string) bool { return src.IntN(60) == 0 } // the lock is held
	writers, each := 8, 250
	if os.Getenv("SOAK") != "" {
		each = 1250
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	want := map[string]string{} // alias to model, of what was acknowledged
	refused := 0
	for n := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(n), 7))
			for i := range each {
				name := fmt.Sprintf("w%d-%d", n, r.IntN(40))
				model := fmt.Sprintf("openai/m%d-%d", n, i)
				status, a := 0, gjson.Result{}
				remove := i%5 == 4
				if remove {
					status, a = w.API("DELETE", "/api/models/alias?alias="+name, "")
				} else {
					status, a = w.API("PUT", "/api/models/alias", fmt.Sprintf(`{"alias":%q,"model":%q}`, name, model))
				}
				mu.Lock()
				switch {
				case status == 200 && remove:
					delete(want, name)
				case status == 200:
					want[name] = model
				case status == 503:
					refused++
				case status != 404:
					t.Errorf("got %d %s", status, a.Raw)
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	st.Fault = nil
	got := w.Replica().ModelAliases
	lost, extra := 0, 0
	for name, model := range want {
		if got[name] != model {
			lost++
		}
	}
	for name := range got {
		if want[name] == "" {
			extra++
		}
	}
	if lost != 0 || extra != 0 || refused < writers*each/100 {
		t.Errorf("%d lost, %d that were refused are there, %d refused", lost, extra, refused)
	}
	if at := w.OK("GET", "/api/audit?verify=true", "").Get("chain"); !at.Get("ok").Bool() {
		t.Errorf("the audit chain is broken: %s", at.Raw)
	}
}

// A write that fails half way leaves nothing of itself, whichever write it is.
func TestMutationIsWholeOrNotAtAll(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		w.Create()
		st := w.Loc.Storage(mid)
		before := st.Dump()
		n := 0
		st.Fault = func(string) bool { n++; return n == at }
		status, a := w.API("POST", "/api/providers", `{"provider":"openai","apiKey":"sk-0123456789abcdef"}`, func(e *rpc.ManageCall) { e.MutationID = "m1" })
		st.Fault = nil
		if status == 200 {
			if at < 4 {
				t.Fatalf("only %d writes", at-1)
			}
			return
		}
		if status != 503 || a.Get("error.retryAfterMs").Int() == 0 {
			t.Fatalf("write %d: got %d %s", at, status, a.Raw)
		}
		after := st.Dump()
		if len(after) != len(before) {
			t.Errorf("write %d failed: %d rows, %d before", at, len(after), len(before))
		}
		for k, v := range before {
			if string(after[k]) != string(v) {
				t.Errorf("write %d failed: row %s changed", at, k)
			}
		}
	}
}

func TestMutationIsAppliedOnce(t *testing.T) {
	w := newWorld(t)
	w.Create()
	with := func(id string) func(*rpc.ManageCall) { return func(e *rpc.ManageCall) { e.MutationID = id } }
	first := w.OK("POST", "/api/keys", `{"name":"a"}`, with("one"))
	again := w.OK("POST", "/api/keys", `{"name":"a"}`, with("one"))
	if first.Raw != again.Raw || first.Get("apiKey").Str == "" || len(w.Replica().Keys) != 2 {
		t.Errorf("got %s, then %s", first.Raw, again.Raw)
	}
	if status, a := w.API("POST", "/api/keys", `{"name":"b"}`, with("one")); status != 422 {
		t.Errorf("another request: got %d %s", status, a.Raw)
	}
	// Another caller's id of the same name is another mutation.
	manage := w.OK("POST", "/api/keys", `{"scopes":["manage"]}`).Get("id").Str
	w.OK("POST", "/api/keys", `{"name":"a"}`, with("one"), func(e *rpc.ManageCall) { e.KeyID = manage })
	if n := len(w.Replica().Keys); n != 4 {
		t.Errorf("%d keys, want 4", n)
	}
	w.Clock.Add(25 * 3600e9)
	w.Loc.Alarms(w.Ctx)
	if n := len(w.Loc.Storage(mid).Listed(storage.MutationPrefix)); n != 0 {
		t.Errorf("%d answers are kept after a day", n)
	}
	body := `{"name":"demo","mutationId":"make"}`
	w.Want(204, "delete", "")
	w.Want(409, "create", body)
	w.Want(204, "delete", `{"now":true}`)
	one, two := w.Want(201, "create", body), w.Want(201, "create", body)
	if one.Raw != two.Raw {
		t.Errorf("created twice: %s, %s", one.Raw, two.Raw)
	}
}

func TestCooldownsOfAReport(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	now := w.Clock.Now().UnixMilli()
	report := func(body string) gjson.Result { t.Helper(); return w.Want(200, "report", body) }
	cool := func(model string, until, since int64, reason string) string {
		return fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"model":%q,"until":%d,"since":%d,"reason":%q,"failures":1}]}`, id, model, until, since, reason)
	}
	gen, observed := w.Replica().Generation, w.Replica().Observed
	a := report(cool("m", now+7000, now, "rate_limited"))
	if m := w.Replica(); m.Observed <= observed || m.Observed != a.Get("observed").Int() || m.Generation != gen {
		t.Errorf("got %s, was %d, is %d in generation %d, was %d", a.Raw, observed, m.Observed, m.Generation, gen)
	}
	report(cool("", now+10*3600_000, now, "key_refused"))
	report(cool("q", now+10*3600_000, now, "out_of_credit"))
	report(cool("old", now+10*3600_000, now, "unavailable"))
	report(cool("long", now+100*24*3600_000, now, "rate_limited"))
	report(`{"cooldowns":[{"connectionId":"nobody","until":9999999999999,"reason":"out_of_credit"}]}`)
	left := map[string]int64{}
	for _, c := range w.Replica().Cooldowns {
		left[c.Model] = c.Until - now
	}
	if len(left) != 4 || left["m"] != 7000 || left[""] != 120_000 || left["q"] != 10*3600_000 || left["long"] != 7*24*3600_000 {
		t.Errorf("got %v", left)
	}
	rows := w.OK("GET", "/api/models/availability", "").Get("data").Array()
	if len(rows) != 4 || rows[0].Get("waitMs").Int() <= 0 || rows[0].Get("reason").Str == "" {
		t.Errorf("availability: %v", rows)
	}
	if v := w.OK("GET", "/api/providers/"+id, ""); v.Get("cooldownUntil").Int() != now+7*24*3600_000 || v.Get("status").Str != "cooling" {
		t.Errorf("got %s", v.Raw)
	}
	// A success from before the failure clears nothing, one from after does.
	report(fmt.Sprintf(`{"cleared":[{"connectionId":%q,"model":"m","at":%d}]}`, id, now-1))
	if n := len(w.Replica().Cooldowns); n != 4 {
		t.Errorf("%d cooldowns, want 4", n)
	}
	report(fmt.Sprintf(`{"cleared":[{"connectionId":%q,"model":"m","at":%d},{"connectionId":%q,"at":%d}]}`, id, now+1, id, now))
	if n := len(w.Replica().Cooldowns); n != 2 {
		t.Errorf("%d cooldowns, want 2", n)
	}
	// A new credential starts afresh.
	w.OK("PUT", "/api/providers/"+id, `{"apiKey":"sk-fresh-0123456789"}`)
	if n := len(w.Replica().Cooldowns); n != 0 {
		t.Errorf("%d cooldowns of the old credential", n)
	}
	before := w.Replica().Generation
	report(fmt.Sprintf(`{"errors":[{"connectionId":%q,"text":"Incorrect API key: sk-proj-abcdefghijklmnopqrstuvwxyz"}]}`, id))
	v := w.OK("GET", "/api/providers/"+id, "").Get("lastError").Str
	if v != "Incorrect API key: ***" || w.Replica().Generation != before {
		t.Errorf("lastError %q", v)
	}
	report(fmt.Sprintf(`{"errors":[{"connectionId":%q,"text":""}]}`, id))
	if v := w.OK("GET", "/api/providers/"+id, "").Get("lastError"); v.Exists() {
		t.Errorf("lastError stays: %s", v.Raw)
	}
	for _, body := range []string{``, `[]`, `{"cooldowns":{}}`, `nonsense`} {
		w.Want(400, "report", body)
	}
}

func TestUsageIsSummed(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for range 3 {
		w.Want(200, "report", `{"usage":[{"keyId":"k1","model":"openai/a","requests":2,"calls":2,"inputTokens":10,"costUsd":0.5},{"keyId":"k2","model":"openai/b","requests":1,"errors":1},{"model":"bad","requests":-5}]}`)
	}
	gen := w.Replica().Generation
	w.Clock.Add(24 * 3600e9)
	w.Want(200, "report", `{"usage":[{"keyId":"k1","model":"openai/a","requests":1}]}`)
	all := w.OK("GET", "/api/usage", "")
	if len(all.Get("data").Array()) != 3 || all.Get("total.attempts").Int() != 10 || all.Get("total.failedAttempts").Int() != 3 || all.Get("total.requests").Int() != 6 || all.Get("total.costUsd").Num != 1.5 {
		t.Errorf("got %s", all.Raw)
	}
	by := w.OK("GET", "/api/usage?groupBy=key", "")
	if rows := by.Get("data").Array(); len(rows) != 2 || by.Get(`data.#(keyId=="k1").attempts`).Int() != 7 {
		t.Errorf("by key: %s", by.Raw)
	}
	if a := w.OK("GET", "/api/usage?period=day&group=key", ""); a.Get("from").Str != a.Get("to").Str || len(a.Get("data").Array()) != 1 || a.Get("total.attempts").Int() != 1 {
		t.Errorf("of a day: %s", a.Raw)
	}
	for period, n := range map[string]int64{"week": 10, "month": 10, "2d": 10, "1d": 1, "397d": 10} {
		if a := w.OK("GET", "/api/usage?period="+period, ""); a.Get("total.attempts").Int() != n {
			t.Errorf("%s: %s", period, a.Raw)
		}
	}
	for _, q := range []string{"from=yesterday", "period=0d", "period=398d", "period=year", "period=7", "period=day&from=2026-01-01", "group=nothing"} {
		if status, _ := w.API("GET", "/api/usage?"+q, ""); status != 400 {
			t.Errorf("%s: got %d", q, status)
		}
	}
	if w.Replica().Generation != gen {
		t.Error("usage moves the generation")
	}
	w.Clock.Add(400 * 24 * 3600e9)
	w.Loc.Alarms(w.Ctx)
	if n := len(w.Loc.Storage(mid).Listed("usage")); n != 0 {
		t.Errorf("%d rows after 400 days", n)
	}
}

func TestJobsBelongToTheMachine(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "job.put", `{"id":"vid/../1","kind":"video","connectionId":"c1","origin":"https://api.example.com"}`)
	if a := w.Want(200, "job.get", `{"id":"vid/../1"}`); a.Get("connectionId").Str != "c1" || a.Get("origin").Str == "" {
		t.Errorf("got %s", a.Raw)
	}
	w.Want(404, "job.get", `{"id":"vid"}`)
	w.Want(404, "job.get", `{}`)
	w.Want(400, "job.put", `{"id":""}`)
	if status, _, _ := w.Loc.Call(w.Ctx, "zzzzzzzz01234567", "job.get", []byte(`{"id":"vid/../1"}`)); status != 404 {
		t.Errorf("another machine: %d", status)
	}
	w.Clock.Add(31 * 24 * 3600e9)
	w.Want(404, "job.get", `{"id":"vid/../1"}`)
	w.Loc.Alarms(w.Ctx)
	if n := len(w.Loc.Storage(mid).Listed(storage.JobPrefix)); n != 0 {
		t.Errorf("%d expired jobs are kept", n)
	}
}

// Callers choose the names of models: 4,300 made-up ones that the upstream
// limits must not fill the storage and the replica.
func TestCooldownRowsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	a, b := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`), w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdeg"}`)
	now := w.Clock.Now().UnixMilli()
	cool := func(conn, model string, ms int64) {
		t.Helper()
		w.Want(200, "report", fmt.Sprintf(`{"cooldowns":[{"connectionId":%q,"model":%q,"until":%d,"since":%d,"reason":"rate_limited","failures":1}]}`, conn, model, now+ms, now))
	}
	rows := func(conn string) (list []store.Cooldown) {
		for _, c := range w.Replica().Cooldowns {
			if c.ConnectionID == conn {
				list = append(list, c)
			}
		}
		return list
	}
	for i := range store.MaxCooledModels {
		cool(a, fmt.Sprint("m", i), 1_800_000)
	}
	cool(b, "m", 5000)
	if n := len(rows(a)); n != store.MaxCooledModels {
		t.Fatalf("%d rows, want one for each model", n)
	}
	cool(a, "one more", 900_000)
	got := rows(a)
	if len(got) != 1 || got[0].Model != "" || got[0].Until != now+1_800_000 || got[0].Reason != store.RateLimited || len(rows(b)) != 1 {
		t.Errorf("got %+v, want the connection to cool as a whole", got)
	}
	// Those that are over go first.
	w.Clock.Add(31 * time.Minute)
	now = w.Clock.Now().UnixMilli()
	for i := range 5 * store.MaxCooledModels {
		cool(b, fmt.Sprint("m", i), 1000)
		w.Clock.Add(time.Second)
		now = w.Clock.Now().UnixMilli()
	}
	if got := rows(b); len(got) > store.MaxCooledModels+1 || got[0].Model == "" {
		t.Errorf("%d rows of models that no longer cool", len(got))
	}
}

func TestCooldownRowsOfAMachineAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	now := w.Clock.Now().UnixMilli()
	var last string
	for i := range store.MaxCooledRows/store.MaxCooledModels + 2 {
		last = w.Connect(fmt.Sprintf(`{"provider":"openai","apiKey":"sk-0123456789abcd%02d"}`, i))
		var list []string
		for j := range store.MaxCooledModels {
			list = append(list, fmt.Sprintf(`{"connectionId":%q,"model":"m%d","until":%d,"since":%d,"reason":"rate_limited"}`, last, j, now+int64(i+1)*10_000, now))
		}
		w.Want(200, "report", `{"cooldowns":[`+strings.Join(list, ",")+`]}`)
	}
	n, newest := 0, 0
	for _, c := range w.Replica().Cooldowns {
		n++
		if c.ConnectionID == last {
			newest++
		}
	}
	if n != store.MaxCooledRows || newest != store.MaxCooledModels {
		t.Errorf("%d rows, %d of the longest, want %d and %d", n, newest, store.MaxCooledRows, store.MaxCooledModels)
	}
}
