package manage_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/storage"
)

func TestLastRequestsAreListed(t *testing.T) {
	w := newWorld(t)
	w.Create()
	gen := w.Replica().Generation
	if got := w.OK("GET", "/api/requests", ""); len(got.Get("data").Array()) != 0 || got.Get("has_more").Bool() {
		t.Errorf("before the first: %s", got.Raw)
	}
	n := 0
	report := func(count int) {
		var list []string
		for range count {
			n++
			list = append(list, inprocess.Request(n))
		}
		w.Want(200, "report", `{"requests":[`+strings.Join(list, ",")+`]}`)
		w.Want(200, "flush", "")
	}
	for _, count := range []int{1, 30, 24, 45} {
		report(count)
	}
	first := w.OK("GET", "/api/requests?limit=60", "")
	if ids := first.Get("data.#.id").Array(); len(ids) != 60 || ids[0].Str != "req_100" || ids[59].Str != "req_41" || !first.Get("has_more").Bool() {
		t.Errorf("got %s", first.Raw)
	}
	rest := w.OK("GET", "/api/requests?limit=60&before="+first.Get("data.59.seq").Raw, "")
	if ids := rest.Get("data.#.id").Array(); len(ids) != 40 || ids[0].Str != "req_40" || ids[39].Str != "req_1" || rest.Get("has_more").Bool() {
		t.Errorf("got %s", rest.Raw)
	}
	if got := w.OK("GET", "/api/requests?before=1", ""); len(got.Get("data").Array()) != 0 {
		t.Errorf("before the first: %s", got.Raw)
	}
	for query, want := range map[string]int{
		"failed=true": 10, "failed=false": 90, "key=k1": 50, "model=openai/m0": 33, "model=fast": 100, "model=fast&key=k0&failed=true": 10,
		"connection=c1": 100, "connection=c2": 0, "endpoint=/v1/messages": 0, "status=429": 10, "status=4xx": 10, "status=2xx": 90, "status=error": 10, "status=client_left": 0,
		"q=req_7": 11, "q=SLOW": 10, "q=m1": 34, "q=nothing": 0, "from=11&to=20": 10, "provider=openai": 0, "q=embeddings&status=429&key=k0": 10,
		"after=90": 10, "after=90&before=96": 5, "after=100": 0, "after=80&status=429": 2,
	} {
		if got := w.OK("GET", "/api/requests?limit=200&"+query, ""); len(got.Get("data").Array()) != want {
			t.Errorf("%s: got %d, want %d", query, len(got.Get("data").Array()), want)
		}
	}
	for n < 2000 {
		report(64)
	}
	kept, failed := 0, 0
	for cursor := ""; ; {
		got := w.OK("GET", "/api/requests?limit=200"+cursor, "")
		for _, r := range got.Get("data").Array() {
			if want := fmt.Sprintf("req_%d", n-kept); kept < 1000 && r.Get("id").Str != want {
				t.Fatalf("got %s, want %s", r.Get("id").Str, want)
			}
			if kept++; r.Get("status").Int() == 429 {
				failed++
			}
		}
		if cursor = "&cursor=" + got.Get("cursor").Str; !got.Get("has_more").Bool() {
			if got.Get("kept").Int() != int64(kept) || got.Get("total").Int() != int64(n) || got.Get("lostFailureAt").Exists() {
				t.Errorf("%d of %d are listed: %s", kept, n, got.Get("total").Raw)
			}
			break
		}
	}
	if kept < 1000 || kept > 1000+n/10+1000/5 || failed != n/10 {
		t.Errorf("%d are listed, %d of them failures", kept, failed)
	}
	if rows := len(w.Loc.Storage(mid).Listed("request:")); rows > 40 {
		t.Errorf("%d rows", rows)
	}
	if w.Replica().Generation != gen {
		t.Error("requests move the generation")
	}
	for _, query := range []string{"limit=0", "limit=201", "limit=x", "before=0", "failed=maybe", "status=bad", "status=9", "from=x", "after=0", "sort=size", "order=up", "cursor=x", "cursor=0", "sort=cost&cursor=1.x", "minCostUsd=-1", "minDurationMs=x", "format=csv",
		"outcome=failed", "reason=budgets", "outcome=left&reason=x"} {
		if status, _ := w.API("GET", "/api/requests?"+query, ""); status != 400 {
			t.Errorf("%s: got %d", query, status)
		}
	}
}

// A request that another account answered is one of the account that failed.
func TestRequestsAreFilteredByTheirFailedAttempts(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "report", `{"requests":[
		{"id":"a","endpoint":"/v1/embeddings","asked":"fall","model":"two/b","provider":"p2","connectionId":"c2","status":200,"attempts":2,"failed":[{"connectionId":"c1","provider":"p1","model":"one/a","status":429,"code":"rate_limit_exceeded","ms":3}]},
		{"id":"b","endpoint":"/v1/embeddings","asked":"two/b","model":"two/b","provider":"p2","connectionId":"c2","status":400,"error":"model_not_found","attempts":1}]}`)
	for query, want := range map[string]string{
		"connection=c1": `["a"]`, "connection=c2": `["b","a"]`, "connection=c3": `[]`, "provider=p1": `["a"]`, "model=one/a": `["a"]`, "model=two/b": `["b","a"]`,
		"model=fall": `["a"]`, "code=rate_limit_exceeded": `["a"]`, "code=model_not_found": `["b"]`, "code=other": `[]`, "code=model_not_found&connection=c1": `[]`,
	} {
		if got := w.OK("GET", "/api/requests?"+query, "").Get("data.#.id").Raw; got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestRequestIsReadByItsID(t *testing.T) {
	w := newWorld(t)
	w.Create()
	n := 0
	for n < 1300 {
		var list []string
		for range 100 {
			n++
			list = append(list, inprocess.Request(n))
		}
		w.Want(200, "report", `{"requests":[`+strings.Join(list, ",")+`]}`)
		w.Want(200, "flush", "")
	}
	for _, id := range []string{"req_1300", "req_1", "req_130", "req_301", "req_2", "req", "req_1301", `"`} {
		status, got := w.API("GET", "/api/requests/"+id, "")
		if listed := id == "req_1300" || id == "req_301" || id == "req_130"; listed && (status != 200 || got.Get("body.id").Str != id) || !listed && (status != 404 || got.Get("error.code").Str != "request_not_found") {
			t.Errorf("%s: %d %s", id, status, got.Raw)
		}
	}
}

func TestRequestRecordIsNormalized(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "report", `{"requests":[
		{"id":"a","endpoint":"/v1/rerank","asked":"sk-abcdefghijklmnopqrstuvwxyz0123456789","status":502,"attempts":1,"failed":[{"connectionId":"c","status":401,"text":"Incorrect API key sk-abcdefghijklmnopqrstuvwxyz0123456789 `+strings.Repeat("x", 900)+`"}]},
		{"id":"b","endpoint":"/v1/rerank","status":7},
		{"id":"c","endpoint":"/v1/rerank","status":200,"latencyMs":-1},
		{"id":"`+strings.Repeat("d", 500)+`","endpoint":"/v1/rerank","status":200}]}`)
	got := w.OK("GET", "/api/requests", "")
	if got.Get("data.#").Int() != 1 || strings.Contains(got.Raw, "abcdefghij") || len(got.Get("data.0.failed.0.text").Str) > 300 {
		t.Errorf("got %s", got.Raw)
	}
}

// Pages in every order, one after the other, are compared with the whole list sorted.
func TestRequestsAreSorted(t *testing.T) {
	w := newWorld(t)
	w.Create()
	random := rand.New(rand.NewPCG(3, 4))
	type row struct {
		seq                     int64
		duration, first, status int64
		cost                    float64
		key, model, connection  string
	}
	var all []row
	for seq := int64(0); seq < 900; {
		var list []string
		for range 90 {
			seq++
			r := row{seq, random.Int64N(50), random.Int64N(20), 200 + random.Int64N(3), float64(random.IntN(9)) / 8, fmt.Sprint("k", random.IntN(4)), fmt.Sprint("a.b/m", random.IntN(4)), fmt.Sprint("c", random.IntN(4))}
			all = append(all, r)
			list = append(list, fmt.Sprintf(`{"id":"r%d","endpoint":"/v1/rerank","status":%d,"latencyMs":%d,"firstMs":%d,"costUsd":%g,"keyId":%q,"model":%q,"connectionId":%q,"attempts":1}`, seq, r.status, r.duration, r.first, r.cost, r.key, r.model, r.connection))
		}
		w.Want(200, "report", `{"requests":[`+strings.Join(list, ",")+`]}`)
	}
	for name, by := range map[string]func(a, b *row) int{
		"time":        func(a, b *row) int { return 0 },
		"duration":    func(a, b *row) int { return cmp.Compare(a.duration, b.duration) },
		"first_token": func(a, b *row) int { return cmp.Compare(a.first, b.first) },
		"cost":        func(a, b *row) int { return cmp.Compare(a.cost, b.cost) },
		"status":      func(a, b *row) int { return cmp.Compare(a.status, b.status) },
		"key":         func(a, b *row) int { return cmp.Compare(a.key, b.key) },
		"model":       func(a, b *row) int { return cmp.Compare(a.model, b.model) },
		"connection":  func(a, b *row) int { return cmp.Compare(a.connection, b.connection) },
	} {
		for _, order := range []string{"asc", "desc"} {
			for _, filter := range []string{"", "&key=k1", "&minDurationMs=40&minFirstTokenMs=5&minCostUsd=0.5"} {
				var want, got []int64
				sorted := slices.Clone(all)
				slices.SortFunc(sorted, func(a, b row) int { return cmp.Or(by(&a, &b), cmp.Compare(a.seq, b.seq)) })
				if order == "desc" {
					slices.Reverse(sorted)
				}
				for _, r := range sorted {
					if filter == "" || filter == "&key=k1" && r.key == "k1" || filter != "&key=k1" && r.duration >= 40 && r.first >= 5 && r.cost >= 0.5 {
						want = append(want, r.seq)
					}
				}
				for cursor := ""; ; {
					page := w.OK("GET", "/api/requests?limit=97&sort="+name+"&order="+order+filter+cursor, "")
					for _, r := range page.Get("data").Array() {
						got = append(got, r.Get("seq").Int())
					}
					if !page.Get("has_more").Bool() {
						break
					}
					cursor = "&cursor=" + page.Get("cursor").Str
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s %s%s: got %v, want %v", name, order, filter, got, want)
				}
			}
		}
	}
}

func TestUsageIsGroupedBySeveral(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "report", `{"usage":[{"keyId":"k1","model":"a","requests":2,"calls":2,"failedCalls":1,"latencyMs":500},{"keyId":"k2","model":"a","requests":1,"errors":1},{"keyId":"k1","model":"b","requests":4},{"model":"b","calls":-1}]}`)
	w.Clock.Add(24 * 3600e9)
	w.Want(200, "report", `{"usage":[{"keyId":"k1","model":"a","requests":8,"calls":1,"latencyMs":100}]}`)
	for by, want := range map[string]int{"day": 2, "model": 2, "key": 2, "day,model": 3, "day,key": 3, "day,key,model": 4, "key,model": 3} {
		got := w.OK("GET", "/api/usage?groupBy="+by, "")
		if rows := got.Get("data").Array(); len(rows) != want {
			t.Errorf("%s: got %s", by, got.Raw)
		}
	}
	got := w.OK("GET", "/api/usage?groupBy=model", "").Get(`data.#(model=="a")`)
	if got.Get("attempts").Int() != 11 || got.Get("requests").Int() != 3 || got.Get("failedRequests").Int() != 1 || got.Get("latencyMs").Int() != 600 || got.Get("failedAttempts").Int() != 1 {
		t.Errorf("got %s", got.Raw)
	}
	// Requests that no account took are one group, whatever their provider.
	w.Want(200, "report", `{"usage":[{"provider":"openai","model":"a","calls":5},{"model":"b","calls":7},{"connectionId":"c1","provider":"openai","requests":1,"calls":1}]}`)
	for by, want := range map[string]int{"connection": 2, "connection,provider": 3, "provider,connection": 3} {
		if rows := w.OK("GET", "/api/usage?groupBy="+by, "").Get("data").Array(); len(rows) != want {
			t.Errorf("%s: got %d rows, want %d: %s", by, len(rows), want, rows)
		}
	}
	for _, by := range []string{"day,day", "day,", "magic,day"} {
		if status, _ := w.API("GET", "/api/usage?groupBy="+by, ""); status != 400 {
			t.Errorf("%s: got %d", by, status)
		}
	}
}

// Days are stored for 13 months.
func TestUsageByMonth(t *testing.T) {
	w := newWorld(t)
	w.Create()
	months := map[string]int64{}
	for range 60 {
		w.Want(200, "report", `{"usage":[{"keyId":"k1","model":"a","requests":1,"calls":1},{"keyId":"k1","model":"b","requests":1,"calls":1},{"keyId":"k2","model":"a","requests":1,"calls":2}]}`)
		months[storage.DayOf(w.Clock.Now().UnixMilli())[:7]] += 2
		w.Clock.Add(7 * 24 * time.Hour)
		w.Loc.Alarms(w.Ctx)
	}
	got := w.OK("GET", "/api/usage?groupBy=month,key,model&key=k2", "")
	data := got.Get("data").Array()
	first := storage.DayOf(w.Clock.Now().UnixMilli() - storage.UsageDays*storage.Day)[:7]
	if len(data) < 13 || data[0].Get("month").Str != first {
		t.Fatalf("want the months from %s on, got %s", first, got.Raw)
	}
	for _, v := range data[1:] { // the first is not whole
		if month := v.Get("month").Str; v.Get("requests").Int() != months[month] || v.Get("model").Str != "a" || v.Get("day").Exists() {
			t.Errorf("got %s, want %d", v.Raw, months[month])
		}
	}
	if n := len(w.OK("GET", "/api/usage?groupBy=month,key,model&period=month", "").Get("data").Array()); n != 6 && n != 3 {
		t.Errorf("of 30 days: %d rows", n)
	}
	for day := range 424 / 7 * 7 {
		of := storage.DayOf(w.Clock.Now().UnixMilli() - int64(day)*storage.Day)
		if rows := w.tx().List(storage.UsagePrefix + of); day > storage.UsageDays && len(rows) > 0 {
			t.Errorf("%s is stored after %d days", of, day)
		}
	}
	for _, q := range []string{"groupBy=month,day", "groupBy=month,hour", "period=398d"} {
		if status, _ := w.API("GET", "/api/usage?"+q, ""); status != 400 {
			t.Errorf("%s: got %d", q, status)
		}
	}
}

func TestUsageByHour(t *testing.T) {
	w := newWorld(t)
	w.Create()
	report := func(body string) { t.Helper(); w.Want(200, "report", `{"usage":[`+body+`]}`) }
	first := storage.HourOf(w.Clock.Now().UnixMilli())
	report(`{"keyId":"k1","model":"a","requests":2,"calls":2,"inputTokens":100,"cacheReadTokens":25,"latency":[11,1,20,1],"firstToken":[9,2]}`)
	w.Clock.Add(3600e9)
	report(`{"keyId":"k2","model":"a","requests":1,"calls":1,"latency":[4,1]},{"keyId":"k1","model":"b","requests":1,"calls":1}`)
	second := storage.HourOf(w.Clock.Now().UnixMilli())
	for query, want := range map[string]int{
		"groupBy=hour": 2, "groupBy=hour,model": 3, "groupBy=hour,key&period=1h": 2, "groupBy=hour&from=" + second: 1,
		"groupBy=hour&to=" + first: 1, "groupBy=hour&period=192h": 2,
	} {
		if got := w.OK("GET", "/api/usage?"+query, ""); len(got.Get("data").Array()) != want {
			t.Errorf("%s: got %s", query, got.Raw)
		}
	}
	got := w.OK("GET", "/api/usage?groupBy=hour,model", "")
	one := got.Get(`data.#(hour=="` + first + `")`)
	if one.Get("latencyP50Ms").Int() != 610 || one.Get("latencyP95Ms").Int() != 13824 || one.Get("firstTokenP95Ms").Int() != 305 || one.Get("cacheShare").Num != 0.25 || one.Get("day").Exists() {
		t.Errorf("got %s", one.Raw)
	}
	if groups := got.Get("groups"); len(groups.Array()) != 2 || groups.Get(`#(model=="a").requests`).Int() != 3 || groups.Get(`#(model=="a").latencyP50Ms`).Int() != 610 {
		t.Errorf("groups: %s", groups.Raw)
	}
	if days := w.OK("GET", "/api/usage?groupBy=day", ""); days.Get("groups").Exists() || days.Get("data.0.latencyP50Ms").Int() != 610 || days.Get("total.latencyP95Ms").Int() != 13824 {
		t.Errorf("by day: %s", days.Raw)
	}
	for _, q := range []string{"groupBy=hour,day", "groupBy=hour&from=2026-01-31", "groupBy=hour&period=30d", "groupBy=hour&period=193h", "groupBy=hour&period=0h", "period=24h"} {
		if status, _ := w.API("GET", "/api/usage?"+q, ""); status != 400 {
			t.Errorf("%s: got %d", q, status)
		}
	}
	w.Clock.Add(9 * 24 * 3600e9)
	w.Loc.Alarms(w.Ctx)
	for _, hour := range []string{first, second} {
		if _, ok := w.tx().Get(storage.HourPrefix + hour); ok {
			t.Errorf("the hour %s is stored after nine days", hour)
		}
	}
	if n := w.OK("GET", "/api/usage?period=30d", "").Get("total.requests").Int(); n != 4 {
		t.Errorf("the days have %d requests", n)
	}
}
