package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
)

// This test uses a machine for longer than it keeps anything: each day calls that succeed,
// fail and are refused, changes and deletions, each month a new isolate. Its rows stop
// growing, and the figures of the last month are right.
func TestRowsOfAMachineAreBoundedOverYears(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(2)
	manage := func(want int, method, path, body string, v any) {
		t.Helper()
		w.get(want, w.do(method, "/"+id+path, adminToken, body), v)
	}
	var limited struct{ ID, APIKey string }
	manage(201, "POST", "/api/keys", `{"name":"limited","dailyMax":2}`, &limited)
	manage(201, "POST", "/api/budgets", `{"name":"a day","unit":"requests","limit":1000,"window":"day"}`, nil)
	failing := false
	w.Answer = func(r *fake.Seen) fake.Answer {
		if failing && r.Header.Get("authorization") == "Bearer upstream-key-0" {
			return fake.Reply(429, `{"error":{"message":"slow down"}}`, httpmsg.Field{Name: "retry-after", Value: "60"})
		}
		return fake.JSON(embedding)
	}
	const perDay = 3 // calls with tokens
	day := func(n int) {
		for i := range perDay {
			if failing = i == 0; i < 2 {
				w.get(200, w.embed(limited.APIKey), nil)
			} else {
				w.get(200, w.embed(key), nil)
			}
			w.Add(8 * time.Hour)
		}
		w.Objects.Alarms(context.Background())
		w.embed("sk-wrong")
		w.do("POST", "/v1/embeddings", key, `{"model":"unknown/m","input":"a"}`)
		var made struct{ ID, APIKey string }
		manage(201, "POST", "/api/keys", `{"name":"of a day"}`, &made)
		w.get(200, w.do("GET", "/v1/models", made.APIKey, ""), nil)
		manage(204, "DELETE", "/api/keys/"+made.ID, "", nil)
		if n%30 == 0 {
			w.Restart()
		}
	}
	size := func() (rows, bytes int) {
		for key, value := range w.Objects.Storage(id).Dump() {
			if strings.HasPrefix(key, storage.AuditPrefix) {
				continue // bounded by their number alone
			}
			rows, bytes = rows+1, bytes+len(key)+len(value)
		}
		return rows, bytes
	}
	var rows, bytes, kv int
	for n := range 460 {
		if n == 410 { // usage is kept for 13 months
			rows, bytes = size()
			kv = len(w.KV.Dump())
		}
		day(n)
		w.Seen, w.Log = nil, nil
	}
	if r, b := size(); r > rows+rows/20 || b > 2<<20 { // the list of requests fills slowly
		t.Errorf("%d rows of %d bytes after 460 days, %d of %d after 410", r, b, rows, bytes)
	}
	if n := len(w.KV.Dump()); n != kv {
		t.Errorf("%d rows in KV, %d before", n, kv)
	}
	var list struct{ Data []struct{ ID string } }
	if manage(200, "GET", "/api/keys", "", &list); len(list.Data) != 2 {
		t.Errorf("%d keys are listed", len(list.Data))
	}
	month := w.do("GET", "/"+id+"/api/usage?period=30d&groupBy=day", adminToken, "").body
	total := gjson.Get(month, "total")
	if n := total.Get("succeeded").Int(); n < 29*perDay || n > 31*perDay || total.Get("inputTokens").Int() != 3*n || total.Get("failedAttempts").Int() < 29 || total.Get("refused").Int() < 29 {
		t.Errorf("the usage of a month: %s", total.Raw)
	}
}
