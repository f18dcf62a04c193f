package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// An isolate that has refused a key admits it as soon as its limit is higher.
func TestRaisedLimitHoldsForTheNextCall(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(1)
	var key struct{ ID, APIKey string }
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"dailyMax":2}`), &key)
	calls := func(n int) string {
		var got []string
		for range n {
			got = append(got, fmt.Sprint(w.embed(key.APIKey).status))
			w.Add(time.Second)
		}
		return strings.Join(got, " ")
	}
	if got := calls(4); got != "200 200 429 429" {
		t.Fatalf("with a limit of 2: got %s", got)
	}
	w.get(200, w.do("PUT", "/"+id+"/api/keys/"+key.ID, adminToken, `{"dailyMax":4}`), nil)
	if got := calls(4); got != "200 200 429 429" {
		t.Errorf("with a limit of 4: got %s", got)
	}
	w.get(200, w.do("PUT", "/"+id+"/api/keys/"+key.ID, adminToken, `{"dailyMax":null}`), nil)
	if got := calls(2); got != "200 200" {
		t.Errorf("without a limit: got %s", got)
	}
}

// A rotation does not begin the day of a limited key again.
func TestRotationKeepsTheCount(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(1)
	var key struct{ ID, APIKey string }
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"dailyMax":2}`), &key)
	for range 2 {
		w.embed(key.APIKey)
		w.Add(time.Second)
	}
	var rotated struct{ ID, APIKey string }
	w.get(200, w.do("POST", "/"+id+"/api/keys/"+key.ID+"/rotate", adminToken, ``), &rotated)
	for _, text := range []string{key.APIKey, rotated.APIKey} {
		if r := w.embed(text); r.status != 429 {
			t.Errorf("got %d %s", r.status, r.body)
		}
		own := w.do("GET", "/v1/usage", text, "")
		if l := gjson.Get(own.body, "limits.0"); own.status != 200 || l.Get("used").Int() != 2 || l.Get("remaining").Int() != 0 || gjson.Get(own.body, "requests").Int()-gjson.Get(own.body, "refused").Int() != 2 {
			t.Errorf("got %d %s", own.status, own.body)
		}
	}
}

// A key that is limited to some models names no other for the upstream to fall back to, at
// any endpoint.
func TestLimitedKeyNamesNoFallbackModel(t *testing.T) {
	w, id, plain := hostileWorld(t, "upstream-key-0123456789")
	var made struct{ APIKey string }
	w.get(201, w.do("POST", "/"+id+"/api/keys", adminToken, `{"name":"limited","models":["up/m","an/m"],"allowUnknown":true}`), &made)
	for _, call := range endpoints {
		if strings.Contains(call[0], "videos") || strings.Contains(call[0], "rerank") {
			continue // their vendors know no such field
		}
		for _, more := range []string{`"models":["m","b"]`, `"fallbacks":[{"model":"b"}]`} {
			r := w.do("POST", call[0], made.APIKey, strings.TrimSuffix(call[1], "}")+","+more+"}")
			if r.status != 403 || !strings.Contains(r.body, "fallback") || len(w.Seen) != 0 {
				t.Errorf("%s %s: %d %s, %d calls", call[0], more, r.status, r.body, len(w.Seen))
			}
		}
	}
	for _, tt := range [][2]string{{made.APIKey, `"models":["m"]`}, {plain, `"models":["b"]`}} {
		if r := w.do("POST", "/v1/embeddings", tt[0], `{"model":"up/m","input":"a",`+tt[1]+`}`); r.status != 200 {
			t.Errorf("%s: %d %s", tt[1], r.status, r.body)
		}
	}
}
