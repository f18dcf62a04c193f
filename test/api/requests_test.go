package api

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/pkg/gateway"
	"weir/pkg/usage"
	"weir/pkg/wire/httpmsg"
)

// newListWorld returns a gateway whose machines list a number of requests.
func newListWorld(t testing.TB, most int64) *world {
	w := &world{Gateway: front.New(func(p *gateway.Ports) { p.MaxRequests = most }), t: t}
	w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(embedding) }
	return w
}

// listRequests reports requests of a machine, n in all, and returns their costs by id.
func (w *world) listRequests(id, keyID string, n int) map[string]float64 {
	w.t.Helper()
	random := rand.New(rand.NewPCG(7, 8))
	costs := map[string]float64{}
	for len(costs) < n {
		var list []string
		for range 500 {
			name := fmt.Sprintf("req_%06d", len(costs))
			costs[name] = float64(random.IntN(1e6)) / 1e6
			list = append(list, fmt.Sprintf(`{"id":%q,"at":%d,"keyId":%q,"endpoint":"/v1/embeddings","asked":"=1+1","model":"up/m","status":200,"latencyMs":5,"attempts":1,"inputTokens":7,"costUsd":%g,"priced":true}`,
				name, w.Now().UnixMilli(), keyID, costs[name]))
		}
		if status, answer, err := w.Objects.Call(w.t.Context(), id, "report", []byte(`{"requests":[`+strings.Join(list, ",")+`]}`)); status != 200 {
			w.t.Fatal(status, string(answer), err)
		}
	}
	return costs
}

// A list of more pages than a call of the object reads is searched and sorted as a whole.
func TestLongListIsReadInParts(t *testing.T) {
	w := newListWorld(t, 20_000)
	id, key := w.tenant(0)
	costs := w.listRequests(id, "k1", 15_000)
	var byCost []string
	for name := range costs {
		byCost = append(byCost, name)
	}
	slices.SortFunc(byCost, func(a, b string) int {
		return cmp.Or(cmp.Compare(costs[b], costs[a]), cmp.Compare(b, a))
	})
	get := func(query string) gjson.Result {
		t.Helper()
		r := w.do("GET", "/"+id+"/api/requests?"+query, adminToken, "")
		if r.status != 200 {
			t.Fatalf("%s: %d %s", query, r.status, r.body)
		}
		return gjson.Parse(r.body)
	}
	var got []string
	cursor := ""
	for range 3 {
		page := get("sort=cost&limit=200" + cursor)
		for _, r := range page.Get("data").Array() {
			got = append(got, r.Get("id").Str)
		}
		if page.Get("kept").Int() != 15_000 || page.Get("total").Int() != 15_000 || page.Get("scan").Exists() {
			t.Errorf("kept %s of %s", page.Get("kept").Raw, page.Get("total").Raw)
		}
		cursor = "&cursor=" + page.Get("cursor").Str
	}
	if !slices.Equal(got, byCost[:600]) {
		t.Errorf("the dearest are %v, want %v", got[:9], byCost[:9])
	}
	if page := get("order=asc&limit=2"); page.Get("data.#.id").Raw != `["req_000000","req_000001"]` || page.Get("cursor").Str == "" {
		t.Errorf("the oldest: %s", page.Raw)
	}
	if page := get("q=req_000123"); page.Get("data.#.id").Raw != `["req_000123"]` || page.Get("has_more").Bool() {
		t.Errorf("found %s", page.Raw)
	}
	if page := get("q=nothing"); page.Get("data").Raw != `[]` || page.Get("has_more").Bool() {
		t.Errorf("found %s", page.Raw)
	}
	for name, want := range map[string]int{"req_000000": 200, "req_014999": 200, "req_015000": 404} {
		if r := w.do("GET", "/"+id+"/api/requests/"+name, adminToken, ""); r.status != want || want == 200 && gjson.Get(r.body, "id").Str != name {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	for _, query := range []string{"format=csv", "sort=size", "limit=201", "scan=1"} {
		if r := w.do("GET", "/"+id+"/api/requests?"+query, adminToken, ""); r.status != 400 {
			t.Errorf("%s: %d", query, r.status)
		}
	}
	if r := w.do("GET", "/v1/usage/requests/req_000000", key, ""); r.status != 404 {
		t.Errorf("a call of another key: %d %s", r.status, r.body)
	}
}

// The tags of requests are listed, filtered and sorted by, and are not sent to providers.
func TestRequestsAreFoundByTheirTags(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	long := strings.Repeat("l", 65)
	for _, tags := range []string{"", "project=b", " project=a, nightly ,,project=a", "project=a=2," + long, "1,2,3,4,5,6,7,8,9"} {
		w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a"}`, httpmsg.Field{Name: "x-weir-tags", Value: tags})
		w.Add(time.Second)
	}
	w.do("POST", "/v1/embeddings", key, `{"model":"up/none","input":7}`, httpmsg.Field{Name: "x-weir-tags", Value: "refused"})
	w.Add(2 * time.Second)
	w.embed(key) // reports what came before
	tags := func(query string) string {
		t.Helper()
		r := w.do("GET", "/"+id+"/api/requests?"+query, adminToken, "")
		if r.status != 200 {
			t.Fatalf("%s: %d %s", query, r.status, r.body)
		}
		return gjson.Get(r.body, "data.#.tags").Raw
	}
	for query, want := range map[string]string{
		"tag=project%3Da":          `[["project=a","nightly"]]`,
		"tag=project":              `[]`,
		"tag=refused&reason=model": `[]`,
		"tag=refused":              `[["refused"]]`,
		"q=NIGHT":                  `[["project=a","nightly"]]`,
		"sort=tag&limit=3":         `[["refused"],["project=b"],["project=a=2"]]`,
		"tag=8":                    `[["1","2","3","4","5","6","7","8"]]`,
	} {
		if got := tags(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if cells := column(w.rowsOf("/"+id+"/api/requests.csv?tag=nightly"), "tags"); !slices.Equal(cells, []string{"project=a; nightly"}) {
		t.Errorf("in the file: %q", cells)
	}
	for _, s := range w.Seen {
		if s.Header.Get("x-weir-tags") != "" {
			t.Error("tags are sent to the provider")
		}
	}
}

// Requests are found by the tool of their user agent, of which nothing else is stored.
func TestRequestsAreFoundByTheirTool(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	for _, agent := range []string{"", "claude-cli/2.1.236 (external, cli)", "OpenAI/Python 2.20.0", "secret-agent/7"} {
		w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a"}`, httpmsg.Field{Name: "user-agent", Value: agent})
		w.Add(time.Second)
	}
	w.Add(2 * time.Second)
	w.embed(key) // reports what came before
	for query, want := range map[string]string{
		"tool=claude-code":   `["claude-code"]`,
		"tool=openai-python": `["openai-python"]`,
		"tool=other":         `["other","other","other"]`,
		"tool=secret-agent":  `[]`,
	} {
		r := w.do("GET", "/"+id+"/api/requests?"+query, adminToken, "")
		if got := gjson.Get(r.body, "data.#.tool").Raw; got != want || strings.Contains(r.body, "secret-agent") {
			t.Errorf("%s: %s", query, r.body)
		}
	}
	if cells := column(w.rowsOf("/"+id+"/api/requests.csv?tool=claude-code"), "tool"); !slices.Equal(cells, []string{"claude-code"}) {
		t.Errorf("in the file: %q", cells)
	}
}

// A key sees what its own calls have used, soon after them, and no other key does.
func TestKeySeesItsOwnCalls(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	other := gjson.Get(w.do("POST", "/"+id+"/api/keys", adminToken, `{"name":"other"}`).body, "apiKey").Str
	call := w.embed(key).header.Get("x-request-id")
	w.Add(2 * time.Second)
	w.embed(key) // reports what came before
	r := w.do("GET", "/v1/usage/requests/"+call, key, "")
	got := gjson.Parse(r.body)
	if r.status != 200 || got.Get("id").Str != call || got.Get("outcome").Str != "succeeded" || got.Get("inputTokens").Int() != 3 || got.Get("attempts").Int() != 1 || got.Get("model").Str != "up/m" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got.Get("keyId").Exists() || got.Get("connectionId").Exists() || got.Get("failed").Exists() {
		t.Errorf("it shows more than the call: %s", r.body)
	}
	for name, r := range map[string]reply{
		"another key": w.do("GET", "/v1/usage/requests/"+call, other, ""),
		"no such id":  w.do("GET", "/v1/usage/requests/req_none", key, ""),
	} {
		if r.status != 404 || r.header.Get("retry-after") != "2" || gjson.Get(r.body, "error.code").Str != "request_not_found" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

// rowsOf returns the rows of a CSV file.
func (w *world) rowsOf(path string) (rows [][]string) {
	w.t.Helper()
	r := w.do("GET", path, adminToken, "")
	text, ok := strings.CutPrefix(r.body, "\ufeff")
	if r.status != 200 || !ok || !strings.HasPrefix(r.header.Get("content-type"), "text/csv") {
		w.t.Fatalf("%s: %d %.200s", path, r.status, r.body)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

func column(rows [][]string, head string) (cells []string) {
	at := slices.Index(rows[0], head)
	for _, row := range rows[1:] {
		cells = append(cells, row[at])
	}
	return cells
}

func TestRequestsAreExportedAsCSV(t *testing.T) {
	w := newListWorld(t, 20_000)
	id, _ := w.tenant(0)
	keyID := gjson.Get(w.do("GET", "/"+id+"/api/keys", adminToken, "").body, "data.0.id").Str
	w.do("PUT", "/"+id+"/api/keys/"+keyID, adminToken, `{"name":"a \"team\""}`)
	costs := w.listRequests(id, keyID, 6500)
	rows := w.rowsOf("/" + id + "/api/requests.csv")
	ids, cost := column(rows, "id"), column(rows, "cost_usd")
	if len(ids) != len(costs) || ids[0] != "req_006499" || !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Fatalf("%d rows", len(ids))
	}
	for i := range ids {
		if n, _ := strconv.ParseFloat(cost[i], 64); n != costs[ids[i]] {
			t.Fatalf("%s costs %s, want %g", ids[i], cost[i], costs[ids[i]])
		}
	}
	if key, asked, at := column(rows, "key")[0], column(rows, "requested_model")[0], column(rows, "time")[0]; key != `a "team"` || asked != "'=1+1" || at != w.Now().UTC().Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("%q, %q, %q", key, asked, at)
	}
	if rows := w.rowsOf("/" + id + "/api/requests.csv?q=req_0000"); len(rows) != 101 {
		t.Errorf("%d rows of a filter", len(rows))
	}
	for _, query := range []string{"sort=cost", "limit=1", "format=csv", "status=x"} {
		if r := w.do("GET", "/"+id+"/api/requests.csv?"+query, adminToken, ""); r.status != 400 {
			t.Errorf("%s: %d", query, r.status)
		}
	}
}

func TestUsageIsExportedAsCSV(t *testing.T) {
	w := newWorld(t)
	id, key := w.tenant(1)
	for day := range 40 {
		w.do("POST", "/v1/embeddings", key, `{"model":"up/m","input":"a"}`,
			httpmsg.Field{Name: "x-weir-tags", Value: fmt.Sprint("project=a", day%3)}, httpmsg.Field{Name: "user-agent", Value: []string{"curl/8", ""}[day%2]})
		w.Add(24 * time.Hour)
		w.Objects.Alarms(t.Context())
	}
	for query, want := range map[string]int{"period=60d": 40, "period=60d&groupBy=day,model": 40, "period=60d&groupBy=model": 1, "groupBy=month": 3, "period=60d&key=none": 0} {
		rows := w.rowsOf("/" + id + "/api/usage.csv?" + query)
		var sum int
		for _, n := range column(rows, "requests") {
			var one int
			fmt.Sscan(n, &one)
			sum += one
		}
		if calls := min(want, 1) * 40; len(rows)-1 != want && query != "groupBy=month" || sum != calls {
			t.Errorf("%s: %d rows with %d requests", query, len(rows)-1, sum)
		}
	}
	byProvider := w.rowsOf("/" + id + "/api/usage.csv?period=60d&groupBy=provider")
	if name, of := column(byProvider, "provider")[0], column(byProvider, "provider_id")[0]; name != "account 0" || of != "openai-compatible-0123abcd" {
		t.Errorf("the provider is %q, with the id %q", name, of)
	}
	for _, query := range []string{"period=60d", "period=60d&groupBy=day,model", "period=60d&groupBy=month,key", "period=60d&groupBy=tool", "period=60d&groupBy=day,tool",
		"groupBy=month,tag:project", "period=60d&groupBy=day,key,tag:project", "period=60d&groupBy=tag:project&tag=project=a1", "period=192h&groupBy=hour"} {
		path := "/" + id + "/api/usage%s?" + query
		var file, answer []string
		rows := w.rowsOf(fmt.Sprintf(path, ".csv"))
		fields := []string{"month", "day", "hour", "requests", "attempts", "inputTokens", "costUsd", "failedAttempts", "latencyMs", "key_id keyId", "tool", "tag"}
		for _, row := range rows[1:] {
			line := ""
			for _, f := range fields {
				head, _, _ := strings.Cut(f, " ")
				head = regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(head, func(s string) string { return "_" + strings.ToLower(s) })
				line += strings.TrimPrefix(","+row[slices.Index(rows[0], head)], ",0")
			}
			file = append(file, line)
		}
		for _, row := range gjson.Get(w.do("GET", fmt.Sprintf(path, ""), adminToken, "").body, "data").Array() {
			line := ""
			for _, f := range fields {
				line += strings.TrimPrefix(","+row.Get(f[strings.Index(f, " ")+1:]).String(), ",0")
			}
			answer = append(answer, line)
		}
		slices.Sort(file)
		slices.Sort(answer)
		if !slices.Equal(file, answer) || len(file) == 0 {
			t.Errorf("%s: the file has\n%q\nthe answer\n%q", query, file, answer)
		}
	}
	for _, path := range []string{"usage?format=csv", "usage.csv?format=csv", "usage.csv?groupBy=x"} {
		if r := w.do("GET", "/"+id+"/api/"+path, adminToken, ""); r.status != 400 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	rows := w.rowsOf("/" + id + "/api/usage.csv")
	for i := range reflect.TypeFor[usage.View]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[usage.View]().Field(i).Tag.Get("json"), ",")
		head := strings.TrimPrefix(regexp.MustCompile("[A-Z]|P[0-9]+").ReplaceAllStringFunc(name, func(s string) string { return "_" + strings.ToLower(s) }), "_")
		if head != "failed_by" && !slices.Contains(rows[0], head) {
			t.Errorf("no column %s", head)
		}
	}
	for _, cause := range usage.CauseNames {
		if !slices.Contains(rows[0], "failed_"+cause) {
			t.Errorf("no column failed_%s", cause)
		}
	}
}

// The tokens that were written to a cache are billed apart: without them the cost of a row of the file
// could not be checked.
func TestCSVOfRequestsHasAllTokensThatCost(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.JSON(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":40}}`)
	}
	id, key := w.tenant(0)
	w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"anthropic-compatible-0123abcd","name":"a","apiKey":"k","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`), nil)
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"modelPrices":{"up/m":"3/15/0.3/3.75"}}`), nil)
	w.get(200, w.do("POST", "/v1/messages", key, `{"model":"up/m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`), nil)
	w.Add(2 * time.Second)
	w.do("GET", "/v1/models", key, "") // reports
	rows := w.rowsOf("/" + id + "/api/requests.csv")
	in, out, read, written := column(rows, "input_tokens")[0], column(rows, "output_tokens")[0], column(rows, "cache_read_tokens")[0], column(rows, "cache_write_tokens")[0]
	if in != "70" || out != "5" || read != "20" || written != "40" || column(rows, "cost_usd")[0] != "0.000261" {
		t.Errorf("the file has %q", rows)
	}
}
