package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/snapshot"
)

// ofKey sets the route of a call about a key, which path has to begin with.
func ofKey(id, rest string) func(*rpc.ManageCall) {
	return func(e *rpc.ManageCall) { e.Route, e.Params = "/api/keys/{id}"+rest, []string{id} }
}

// by sets the caller of a management call to a key, as it was presented.
func (w *world) by(text string) func(*rpc.ManageCall) {
	return func(e *rpc.ManageCall) {
		e.KeyID, e.KeyDigest = w.accepted(text), rpc.KeyDigest(text)
	}
}

// newKey creates a key and returns its view, with the key.
func (w *world) newKey(body string) gjson.Result {
	w.Helper()
	status, a := w.API("POST", "/api/keys", body)
	if status != 200 || a.Get("status").Int() != 201 {
		w.Fatalf("got %d %s", status, a.Raw)
	}
	return a.Get("body")
}

func (w *world) rotate(id, body string, set ...func(*rpc.ManageCall)) (int, gjson.Result) {
	w.Helper()
	return w.API("POST", "/api/keys/"+id, body, append([]func(*rpc.ManageCall){ofKey(id, "/rotate")}, set...)...)
}

// accepted returns the id of the key whose text is valid now by the replica, "" for none.
func (w *world) accepted(text string) string {
	k, _ := rpc.ParseKey(text)
	if found := snapshot.New(w.Replica()).FindKey(k.Digest, w.Clock.Now); found != nil {
		return found.ID
	}
	return ""
}

func TestKeyIsEdited(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.newKey(`{"name":"one","models":["up/a"],"allowUnknown":true,"rpm":5,"dailyMax":50}`).Get("id").Str
	now := w.Clock.Now().UnixMilli()
	for _, tt := range []struct{ body, path, want string }{
		{`{"name":"two"}`, "name", "two"},
		{`{"name":"two"}`, "rpm", "5"},
		{`{"rpm":7}`, "rpm", "7"},
		{`{"rpm":null}`, "rpm", ""},
		{`{"dailyMax":0}`, "dailyMax", ""},
		{`{"models":["up/b","claude-weir/up/c"],"allowUnknown":true}`, "models", `["up/b","up/c"]`},
		{`{"models":null}`, "models", ""},
		{fmt.Sprintf(`{"expiresAt":%d}`, now+1000), "expiresAt", fmt.Sprint(now + 1000)},
		{`{"expiresAt":null}`, "expiresAt", ""},
		{`{"scopes":["data","manage"]}`, "scopes", `["data","manage"]`},
		{`{"scopes":null}`, "scopes", `["data"]`},
		{`{"tags":["project=atlas","nightly"]}`, "tags", `["project=atlas","nightly"]`},
		{`{"tags":null}`, "tags", ""},
		{`{"paused":true}`, "pausedAt", fmt.Sprint(now)},
		{`{"paused":true}`, "pausedAt", fmt.Sprint(now)},
		{`{"name":"three"}`, "pausedAt", fmt.Sprint(now)},
		{`{"paused":false}`, "pausedAt", ""},
	} {
		before := w.Replica().Generation
		v := w.OK("PUT", "/api/keys/"+id, tt.body)
		if got := v.Get(tt.path).String(); got != tt.want {
			t.Errorf("%s: %s is %s, want %s", tt.body, tt.path, got, tt.want)
		}
		if w.Replica().Generation == before || v.Get("apiKey").Exists() {
			t.Errorf("%s: the generation stays, or the key is shown: %s", tt.body, v.Raw)
		}
	}
	for _, body := range []string{
		`{"expiresAt":1}`, `{"rpm":-1}`, `{"scopes":["root"]}`, `{"models":["unknown-model"]}`, `{"paused":"yes"}`, `{"id":"x"}`, `{"apiKey":"sk-x"}`, `[]`,
		`{"tags":"project=a"}`, `{"tags":["a,b"]}`, `{"tags":["project=a","project=b"]}`, `{"tags":["=a"]}`,
		`{"tags":["` + strings.Repeat("é", 40) + `"]}`, `{"tags":["1","2","3","4","5","6","7","8","9"]}`,
	} {
		if status, a := w.API("PUT", "/api/keys/"+id, body); status != 400 {
			t.Errorf("%s: got %d %s", body, status, a.Raw)
		}
	}
	if status, _ := w.API("PUT", "/api/keys/"+id, `{"name":"x"}`, func(e *rpc.ManageCall) { e.IfMatch = `"1"` }); status != 412 {
		t.Errorf("another generation: got %d", status)
	}
	if status, _ := w.API("PUT", "/api/keys/none", `{"name":"x"}`); status != 404 {
		t.Errorf("no such key: got %d", status)
	}
}

// Keys without a name were empty rows of every list.
func TestKeysWithoutANameGetOne(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := ""
	for _, want := range []string{"API key", "API key 2"} {
		v := w.OK("POST", "/api/keys", `{"name":""}`)
		if id = v.Get("id").Str; v.Get("name").Str != want {
			t.Errorf("got %q, want %q", v.Get("name").Str, want)
		}
	}
	w.OK("PUT", "/api/keys/"+id, `{"name":"ci"}`)
	if v := w.OK("PUT", "/api/keys/"+id, `{"name":""}`); v.Get("name").Str != "API key 2" {
		t.Errorf("an emptied name is %q", v.Get("name").Str)
	}
	if v := w.OK("POST", "/api/keys", `{"budget":{"unit":"usd","limit":5,"window":"day"}}`); v.Get("name").Str != "API key 3" || w.OK("GET", "/api/budgets", "").Get("data.0.name").Str != "API key 3" {
		t.Errorf("its budget: %s", w.OK("GET", "/api/budgets", "").Raw)
	}
}

func TestRotatedKeyKeepsItsRecord(t *testing.T) {
	w := newWorld(t)
	w.Create()
	first := w.newKey(`{"name":"one","rpm":9}`)
	id, old := first.Get("id").Str, first.Get("apiKey").Str
	w.Want(200, "report", `{"usage":[{"keyId":"`+id+`","requests":2,"calls":2,"costUsd":0.5}]}`)

	status, a := w.rotate(id, `{"overlapSeconds":60}`)
	second := a.Get("body").Get("apiKey").Str
	until := w.Clock.Now().UnixMilli() + 60_000
	if status != 200 || second == old || !strings.HasPrefix(second, "sk-"+mid+"-") {
		t.Fatalf("got %d %s", status, a.Raw)
	}
	v := w.OK("GET", "/api/keys/"+id, "")
	if v.Get("name").Str != "one" || v.Get("rpm").Int() != 9 || v.Get("requestsToday").Int() != 2 || v.Get("spentUsd").Num != 0.5 ||
		v.Get("last4").Str != second[len(second)-4:] || v.Get("earlier.last4").Str != old[len(old)-4:] || v.Get("earlier.until").Int() != until || v.Get("apiKey").Exists() {
		t.Errorf("got %s", v.Raw)
	}
	if w.accepted(old) != id || w.accepted(second) != id {
		t.Error("a text is not accepted within the overlap")
	}
	w.Clock.Add(time.Minute - time.Millisecond)
	if w.accepted(old) != id {
		t.Error("the earlier text has ended early")
	}
	w.Clock.Add(time.Millisecond)
	if w.accepted(old) != "" || w.accepted(second) != id || w.OK("GET", "/api/keys/"+id, "").Get("earlier").Exists() {
		t.Error("after the overlap: the earlier text is valid, or the new one is not")
	}

	// Another rotation ends what the last one has replaced, and one without an overlap
	// ends every text.
	_, a = w.rotate(id, "")
	third := a.Get("body.apiKey").Str
	if got := a.Get("body.earlier.until").Int() - w.Clock.Now().UnixMilli(); got != 24*3600_000 {
		t.Errorf("the default overlap is %d ms", got)
	}
	_, a = w.rotate(id, `{"overlapSeconds":60}`)
	fourth := a.Get("body.apiKey").Str
	if w.accepted(second) != "" || w.accepted(third) != id || w.accepted(fourth) != id {
		t.Error("after two rotations the first text is valid, or the last ones are not")
	}
	_, a = w.rotate(id, `{"overlapSeconds":0}`)
	if w.accepted(third)+w.accepted(fourth) != "" || w.accepted(a.Get("body.apiKey").Str) != id {
		t.Error("without an overlap an earlier text is valid")
	}
	for _, body := range []string{`{"overlapSeconds":-1}`, `{"overlapSeconds":2592001}`, `{"overlap":1}`} {
		if status, _ := w.rotate(id, body); status != 400 {
			t.Errorf("%s: got %d", body, status)
		}
	}
}

// The object refuses the caller whose text was replaced, although an isolate with an
// older replica admits it.
func TestReplacedKeyManagesNoMore(t *testing.T) {
	w := newWorld(t)
	w.Create()
	first := w.newKey(`{"name":"m","scopes":["manage"]}`)
	id, old := first.Get("id").Str, first.Get("apiKey").Str
	session := func(n int) (status int) {
		status, _ = w.At(mid, "session.check", `{"digest":"`+inprocess.Digest(n)+`","bound":""}`)
		return status
	}
	open := func(n int, text string) {
		t.Helper()
		p, _ := rpc.ParseKey(text)
		if status, a := w.At(mid, "session.open", fmt.Sprintf(`{"digest":%q,"keyId":%q,"keyDigest":"%x"}`, inprocess.Digest(n), id, p.Digest)); status != 200 {
			t.Fatalf("got %d %s", status, a.Raw)
		}
	}
	open(1, old)
	_, a := w.rotate(id, `{"overlapSeconds":60}`)
	text := a.Get("body.apiKey").Str
	called := func(text string) int {
		status, _ := w.API("GET", "/api/keys", "", w.by(text), func(e *rpc.ManageCall) { e.KeyID = id })
		return status
	}
	open(2, text)
	if got := fmt.Sprint(called(old), called(text), session(1), session(2)); got != "200 200 200 200" {
		t.Errorf("within the overlap: got %s", got)
	}
	w.Clock.Add(time.Minute)
	if got := fmt.Sprint(called(old), called(text), session(1), session(2)); got != "401 200 401 200" {
		t.Errorf("after the overlap: got %s", got)
	}
	w.OK("PUT", "/api/keys/"+id, `{"paused":true}`)
	if got := fmt.Sprint(called(text), session(2)); got != "401 401" {
		t.Errorf("paused: got %s", got)
	}
}

// Who may not create a key with some scopes may not get one by editing, resuming or
// rotating another.
func TestKeysOfHigherScopesAreGuarded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	manager := w.newKey(`{"name":"m","scopes":["data","manage"]}`)
	exporter := w.newKey(fmt.Sprintf(`{"name":"e","scopes":["manage","export"],"expiresAt":%d}`, w.Clock.Now().UnixMilli()+3600_000)).Get("id").Str
	plain := w.newKey(`{"name":"p"}`).Get("id").Str
	as := w.by(manager.Get("apiKey").Str)
	edit := func(id, body string, set ...func(*rpc.ManageCall)) int {
		status, _ := w.API("PUT", "/api/keys/"+id, body, set...)
		return status
	}
	for _, body := range []string{`{"scopes":["data","export"]}`, `{"scopes":["manage","export"]}`} {
		if status := edit(plain, body, as); status != 403 {
			t.Errorf("%s: got %d", body, status)
		}
	}
	if status, _ := w.rotate(exporter, "", as); status != 403 {
		t.Errorf("rotated: got %d", status)
	}
	for _, body := range []string{`{"expiresAt":null}`, fmt.Sprintf(`{"expiresAt":%d}`, w.Clock.Now().UnixMilli()+7200_000)} {
		if status := edit(exporter, body, as); status != 403 {
			t.Errorf("%s: got %d", body, status)
		}
	}
	if status := edit(exporter, `{"paused":true,"name":"stopped","expiresAt":`+fmt.Sprint(w.Clock.Now().UnixMilli()+60_000)+`}`, as); status != 200 {
		t.Errorf("paused: got %d", status)
	}
	if status := edit(exporter, `{"paused":false}`, as); status != 403 {
		t.Errorf("resumed: got %d", status)
	}
	old := func(e *rpc.ManageCall) { as(e); e.SignIn = rpc.SignInOld }
	if got := fmt.Sprint(edit(plain, `{"scopes":["manage"]}`, old), edit(plain, `{"name":"x","paused":true}`, old), edit(plain, `{"scopes":["manage"]}`, as)); got != "403 200 200" {
		t.Errorf("with an old sign-in: got %s", got)
	}
}

func TestUsageOfAKey(t *testing.T) {
	w := newWorld(t)
	w.Create()
	one, two := w.newKey(`{"name":"one","rpm":5,"dailyMax":50}`).Get("id").Str, w.newKey(`{"name":"two"}`).Get("id").Str
	at := w.Clock.Now().UnixMilli()
	w.Want(200, "report", `{"usage":[{"keyId":"`+one+`","model":"a","requests":3,"calls":2,"inputTokens":10,"costUsd":0.25},{"keyId":"`+two+`","model":"a","requests":1,"calls":1,"unpriced":1}],
		"budgets":{"holder":"a","asks":[{"budget":"rpm:`+one+fmt.Sprintf(`","start":%d,"used":2},`, at-at%storage.Minute)+`{"budget":"day:`+one+fmt.Sprintf(`","start":%d,"used":2}]}}`, at-at%storage.Day))
	u := w.OK("GET", "/api/keys/"+one, "", ofKey(one, "/usage"))
	if u.Get("total.requests").Int() != 2 || u.Get("total.attempts").Int() != 3 || len(u.Get("data").Array()) != 1 || u.Get("key.id").Str != one || u.Get("key.lastUsedAt").Int() != at {
		t.Errorf("got %s", u.Raw)
	}
	v := w.OK("GET", "/api/keys/"+two, "")
	if v.Get("requests").Int() != 1 || v.Get("requestsLastDay").Int() != 1 || v.Get("unpricedAttempts").Int() != 1 || v.Get("spentUsd").Num != 0 {
		t.Errorf("got %s", v.Raw)
	}
	w.Write(mid, storage.BudgetPrefix+"b1", `{"id":"b1","name":"b","keyId":"`+one+`","unit":"usd","limit":2500000000,"window":"month","models":["up/*"]}`)
	w.Write(mid, storage.LedgerPrefix+"b1", fmt.Sprintf(`{"open":true,"start":%d,"end":%d,"spent":500000000}`, at-1, at+1000))
	w.Write(mid, storage.BudgetPrefix+"b2", `{"id":"b2","name":"shared","unit":"tokens","limit":7,"window":"total"}`)
	own := w.Want(200, "key.usage", `{"keyId":"`+one+`"}`)
	if own.Get("object").Str != "key.usage" || own.Get("spentUsd").Num != 0.25 || own.Get("spentMonthUsd").Num != 0.25 || own.Get("tokens").Int() != 10 ||
		own.Get(`limits.#(window=="minute").remaining`).Int() != 3 || own.Get(`limits.#(window=="day").used`).Int() != 2 || own.Get(`limits.#(window=="day").resetAt`).Int() <= at {
		t.Errorf("got %s", own.Raw)
	}
	if got := own.Get(`limits.#(unit=="usd")`).Raw; got != fmt.Sprintf(`{"unit":"usd","window":"month","models":["up/*"],"limit":2.5,"used":0.5,"remaining":2,"resetAt":%d}`, at+1000) {
		t.Errorf("its budget: %s", got)
	}
	for _, secret := range []string{"digest", "scopes", `"total"`, two} {
		if strings.Contains(own.Raw, secret) {
			t.Errorf("%s is shown: %s", secret, own.Raw)
		}
	}
	if status, _ := w.Call("key.usage", `{"keyId":"none"}`); status != 401 {
		t.Errorf("no such key: got %d", status)
	}
	w.API("DELETE", "/api/keys/"+one, "")
	w.Clock.Add(2 * time.Hour)
	w.Loc.Alarms(w.Ctx)
	if w.tx().KeyUse(one).Requests != 0 || w.tx().KeyUse(two).Requests != 1 {
		t.Error("the use of a deleted key stays, or that of another one is gone")
	}
}

// Regression: a key of three calls at $0.1 has spent $0.30000000000000004, and one
// without a limit has made no requests today.
func TestUseOfAKeyIsShownAsCounted(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.newKey(`{"name":"one"}`).Get("id").Str
	for range 3 {
		w.Want(200, "report", `{"usage":[{"keyId":"`+id+`","requests":1,"calls":1,"costUsd":0.1}]}`)
	}
	v := w.OK("GET", "/api/keys/"+id, "")
	for _, name := range []string{"spentUsd", "spentTodayUsd", "spentMonthUsd"} {
		if got := v.Get(name).Raw; got != "0.3" {
			t.Errorf("%s is %s", name, got)
		}
	}
	if got := w.OK("GET", "/api/usage", "").Get("total.costUsd").Raw; got != "0.3" {
		t.Errorf("costUsd of the usage is %s", got)
	}
	if v.Get("requestsToday").Int() != 3 || v.Get("requestsLastDay").Int() != 3 {
		t.Errorf("got %s", v.Raw)
	}
}

// A budget of a new key is created in the same turn, or neither is.
func TestKeyIsCreatedWithItsBudget(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.newKey(`{"name":"Dan","tpm":1000,"maxParallel":3,"budget":{"unit":"usd","limit":20,"window":"month"}}`).Get("id").Str
	list := w.OK("GET", "/api/budgets", "").Get("data")
	if b := list.Get("0"); len(list.Array()) != 1 || b.Get("name").Str != "Dan" || b.Get("keyId").Str != id || b.Get("limit").Num != 20 || b.Get("window").Str != "month" {
		t.Errorf("budgets: %s", list.Raw)
	}
	if k := w.OK("GET", "/api/keys/"+id, ""); k.Get("tpm").Int() != 1000 || k.Get("maxParallel").Int() != 3 {
		t.Errorf("key: %s", k.Raw)
	}
	for _, bad := range []string{`1`, `{}`, `{"unit":"usd","limit":0,"window":"month"}`, `{"unit":"usd","limit":1,"window":"year"}`, `{"unit":"usd","limit":1,"window":"day","keyId":"x"}`} {
		if status, a := w.API("POST", "/api/keys", `{"budget":`+bad+`}`); status != 400 || !strings.HasPrefix(a.Get("error.param").Str, "budget") {
			t.Errorf("%s: got %d %s", bad, status, a.Raw)
		}
	}
	if n := len(w.OK("GET", "/api/keys", "").Get("data").Array()); n != 2 {
		t.Errorf("%d keys, want the machine's and the new one", n)
	}
	w.API("DELETE", "/api/keys/"+id, "")
	if list := w.OK("GET", "/api/budgets", "").Get("data"); len(list.Array()) != 0 {
		t.Errorf("after the deletion of the key: %s", list.Raw)
	}
}
