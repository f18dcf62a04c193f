package api

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/upstream"
)

// Every call of a mix is counted once, by its outcome, its key and its model, and is
// listed: as the client saw it and as the upstream counted its calls and tokens.
func TestEveryCallIsCountedByItsOutcome(t *testing.T) {
	t.Run("native", func(t *testing.T) { countsCalls(t, 100_000) })
	t.Run("edge", func(t *testing.T) { countsCalls(t, 0) })
}

// countsCalls makes the calls with machines that list a number of requests, see
// gateway.Ports.MaxRequests.
func countsCalls(t *testing.T, most int64) {
	w := newListWorld(t, most)
	id, plain := w.tenant(1)
	api := func(method, path, body string) gjson.Result {
		t.Helper()
		r := w.do(method, "/"+id+"/api"+path, adminToken, body)
		if r.status >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
		}
		return gjson.Parse(r.body)
	}
	ids := map[string]string{plain: api("GET", "/keys", "").Get("data.0.id").Str}
	key := func(body string) string {
		k := api("POST", "/keys", body)
		ids[k.Get("apiKey").Str] = k.Get("id").Str
		return k.Get("apiKey").Str
	}
	limited := key(`{"name":"limited","dailyMax":40}`)
	paused := key(`{"name":"paused"}`)
	api("PUT", "/keys/"+ids[paused], `{"paused":true}`)
	expired := key(fmt.Sprintf(`{"name":"expired","expiresAt":%d}`, w.Now().Add(time.Second).UnixMilli()))
	manager := key(`{"name":"manager","scopes":["manage"]}`)
	narrow := key(`{"name":"narrow","models":["up/other"]}`)
	poor := key(`{"name":"poor"}`)
	api("POST", "/budgets", fmt.Sprintf(`{"name":"poor","keyId":%q,"unit":"tokens","limit":1,"window":"day"}`, ids[poor]))
	api("POST", "/combos", `{"name":"fall","models":["up/broken","up/m"]}`)
	api("PATCH", "/settings", `{"modelPrices":{"up/m":"1/10"}}`) // $ per million tokens
	w.Add(2 * time.Second)

	var sent, accepted, tokens int64 // as the upstream counts; tokens are those of the last call
	w.Answer = func(s *fake.Seen) fake.Answer {
		sent++
		tokens = 0
		switch {
		case strings.Contains(s.Body, "broken"):
			return fake.Answer{Status: 500}
		case strings.Contains(s.Body, "picky"):
			return fake.Answer{Status: 400, Body: `{"error":{"message":"no"}}`}
		case strings.Contains(s.Body, "leaves"):
			tokens = 2 // an estimate
			return fake.Answer{Err: upstream.ErrCanceled}
		}
		accepted++
		tokens = 1 + sent%97
		return fake.JSON(strings.ReplaceAll(embedding, `_tokens":3`, fmt.Sprintf(`_tokens":%d`, tokens)))
	}
	calls := []struct{ outcome, key, model, input, counted string }{
		{"succeeded", plain, "up/m", "a", "up/m"},
		{"succeeded", plain, "up/m", "b", "up/m"},
		{"succeeded", plain, "fall", "i", "up/m"},
		{"provider_failed", plain, "up/p", "picky", "up/p"},
		{"left", plain, "up/m", "leaves", "up/m"},
		{"limit", limited, "up/m", "c", "up/m"},
		{"refused key", paused, "up/m", "d", "up/m"},
		{"refused key", expired, "up/m", "e", "up/m"},
		{"refused key", manager, "up/m", "f", "up/m"},
		{"refused model", narrow, "up/m", "g", "up/m"},
		{"refused model", plain, "invented", "h", ""},
		{"refused model", plain, "groq/x", "j", ""},
		{"refused budget", poor, "up/m", "several words of text", "up/m"},
		{"refused request", plain, "up/m", `","dimensions":"x`, "up/m"},
		{"refused request", plain, "invented", `","dimensions":"x`, ""},
	}
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]int64{}
	truth := map[string]string{} // what is listed of each request, see listed
	for range 2000 {
		c := calls[random.IntN(len(calls))]
		before := sent
		tokens = 0
		r := w.do("POST", "/v1/embeddings", c.key, fmt.Sprintf(`{"model":"%s","input":"%s"}`, c.model, c.input))
		outcome := c.outcome
		if outcome == "limit" {
			if outcome = "succeeded"; r.status == 429 {
				outcome = "refused key_limit"
			}
		}
		if ok := r.status == 200; ok != (outcome == "succeeded") {
			t.Fatalf("%+v: %d %s", c, r.status, r.body)
		}
		name, reason, _ := strings.Cut(outcome, " ")
		truth[r.header.Get("x-request-id")] = fmt.Sprintln(name, reason, c.counted, r.status, sent-before, tokens, float64(tokens)/1e6)
		want["outcome "+outcome]++
		want["key "+ids[c.key]+" "+outcome]++
		want["model "+c.counted+" "+outcome]++
		w.Add(time.Duration(random.IntN(10)) * time.Millisecond) // about 220 calls a second
	}
	w.Add(time.Second)
	last := w.embed(plain) // brings the last report
	truth[last.header.Get("x-request-id")] = fmt.Sprintln("succeeded", "", "up/m", 200, 1, tokens, float64(tokens)/1e6)
	want["outcome succeeded"]++
	want["key "+ids[plain]+" succeeded"]++
	want["model up/m succeeded"]++

	got := map[string]int64{}
	count := func(of string, v gjson.Result) {
		for name, field := range map[string]string{
			"succeeded": "succeeded", "provider_failed": "providerFailed", "no_account": "noAccount", "left": "left", "refused key_limit": "refusedKeyLimit",
			"refused budget": "refusedBudget", "refused concurrency": "refusedConcurrency", "refused key": "refusedKey",
			"refused model": "refusedModel", "refused request": "refusedRequest",
		} {
			if n := v.Get(field).Int(); n > 0 {
				got[of+" "+name] = n
			}
		}
	}
	u := api("GET", "/usage?groupBy=key", "")
	count("outcome", u.Get("total"))
	for _, v := range u.Get("data").Array() {
		count("key "+v.Get("keyId").Str, v)
	}
	for _, v := range api("GET", "/usage?groupBy=model", "").Get("data").Array() {
		count("model "+v.Get("model").Str, v)
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: got %d, want %d", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	total := u.Get("total")
	if n := total.Get("requests").Int(); n != 2001 || total.Get("refused").Int() != n-total.Get("succeeded").Int()-total.Get("providerFailed").Int()-total.Get("noAccount").Int()-total.Get("left").Int() {
		t.Errorf("got %s", total.Raw)
	}
	if total.Get("succeeded").Int() != accepted || total.Get("attempts").Int() != sent {
		t.Errorf("the upstream was called %d times and answered %d: got %s", sent, accepted, total.Raw)
	}
	for _, q := range []string{"outcome=left", "outcome=provider_failed", "outcome=refused&reason=budget", "reason=key_limit", "reason=key&key=" + ids[expired]} {
		list := api("GET", "/requests?"+q, "").Get("data").Array()
		if len(list) == 0 {
			t.Errorf("%s: no request", q)
		}
		for _, r := range list {
			if !strings.Contains("outcome="+r.Get("outcome").Str+"&reason="+r.Get("reason").Str+"&key="+r.Get("keyId").Str, q) || r.Get("keyId").Str == "" || r.Get("model").Str == "" {
				t.Errorf("%s: got %s", q, r.Raw)
			}
		}
	}

	rows := map[string]string{} // of the whole list, by id
	var page gjson.Result
	for cursor := ""; ; cursor = "&cursor=" + page.Get("cursor").Str {
		page = api("GET", "/requests?limit=200"+cursor, "")
		for _, r := range page.Get("data").Array() {
			rows[r.Get("id").Str] = fmt.Sprintln(r.Get("outcome").Str, r.Get("reason").Str, r.Get("model").Str,
				r.Get("status").Int(), r.Get("attempts").Int(),
				r.Get("inputTokens").Int()+r.Get("outputTokens").Int(), r.Get("costUsd").Float())
		}
		if !page.Get("has_more").Bool() {
			break
		}
	}
	for name, row := range rows {
		if row != truth[name] {
			t.Errorf("%s: listed %q, want %q", name, row, truth[name])
		}
	}
	for name, row := range truth {
		failed := strings.HasPrefix(row, "refused") || strings.HasPrefix(row, "provider_failed") || strings.HasPrefix(row, "no_account")
		if rows[name] == "" && (failed || most > 0) {
			t.Errorf("%s is not listed: %q", name, row)
		}
	}
	if kept := page.Get("kept").Int(); kept != int64(len(rows)) || kept < 1000 || page.Get("total").Int() != 2001 || page.Get("lostFailureAt").Exists() {
		t.Errorf("%d rows, kept %s, total %s", len(rows), page.Get("kept").Raw, page.Get("total").Raw)
	}

	file := w.rowsOf("/" + id + "/api/requests.csv")
	cell := func(row []string, head string) string { return row[slices.Index(file[0], head)] }
	number := func(row []string, head string) float64 {
		n, _ := strconv.ParseFloat(cell(row, head), 64)
		return n
	}
	if len(file)-1 != len(rows) {
		t.Errorf("%d rows in the file, want %d", len(file)-1, len(rows))
	}
	for _, row := range file[1:] {
		got := fmt.Sprintln(cell(row, "outcome"), cell(row, "reason"), cell(row, "model"), number(row, "status"), number(row, "attempts"),
			number(row, "input_tokens")+number(row, "output_tokens"), number(row, "cost_usd"))
		if name := cell(row, "id"); got != rows[name] {
			t.Errorf("%s in the file: %q, want %q", name, got, rows[name])
		}
	}
}
