package api

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/pkg/gateway"
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
