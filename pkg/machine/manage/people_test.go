package manage_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/api"
	"weir/pkg/auth/session"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
)

// as sets the person of a call.
func as(id string, role people.Role, t *people.Template) func(*rpc.ManageCall) {
	return func(e *rpc.ManageCall) {
		e.Person = &rpc.Person{ID: id, Name: id, Role: role, Template: t, SeenAt: 1_800_000_000_000}
	}
}

const (
	annID = "p_00000000000000000000000000000001"
	bobID = "p_00000000000000000000000000000002"
)

var small = &people.Template{Keys: 2, Models: []string{"openai/gpt-4o"}, RPM: 5, Days: 30, BudgetUSD: 10}

func TestMemberCreatesKeysWithinTemplate(t *testing.T) {
	w := newWorld(t)
	w.Create()
	ann := as(annID, people.Member, small)
	for _, body := range []string{`{"scopes":["manage"]}`, `{"models":["openai/o1"]}`, `{"rpm":1000}`, `{"tags":["a=b"]}`,
		`{"budget":{"limit":1,"unit":"usd","window":"day"}}`, `{"capturePercent":100}`} {
		if status, a := w.API("POST", "/api/keys", body, ann); status != 400 {
			t.Errorf("%s: got %d %s", body, status, a.Raw)
		}
	}
	_, made := w.API("POST", "/api/keys", `{"name":"laptop"}`, ann)
	key := made.Get("body")
	if key.Get("person").Str != annID || key.Get("rpm").Int() != 5 || key.Get("models.0").Str != "openai/gpt-4o" ||
		key.Get("tags.0").Str != "person="+annID || key.Get("expiresAt").Int() == 0 || key.Get("apiKey").Str == "" {
		t.Fatalf("got %s", made.Raw)
	}
	for _, b := range []string{`{"paused":false}`, `{"rpm":0}`, `{"expiresAt":0}`, `{"models":[]}`} {
		if status, a := w.API("PUT", "/api/keys/"+key.Get("id").Str, b, ann); status != 400 {
			t.Errorf("PUT %s: got %d %s", b, status, a.Raw)
		}
	}
	w.API("POST", "/api/keys", `{}`, ann)
	if status, a := w.API("POST", "/api/keys", `{}`, ann); status != 409 {
		t.Errorf("a third key: got %d %s", status, a.Raw)
	}
	budgets := w.OK("GET", "/api/budgets", "").Get("data")
	if b := budgets.Get("0"); budgets.Get("#").Int() != 1 || b.Get("tag").Str != "person="+annID || b.Get("limit").Num != 10 ||
		b.Get("window").Str != "month" {
		t.Errorf("got budgets %s", budgets.Raw)
	}
}

func TestMemberSeesOwnRecordsOnly(t *testing.T) {
	w := newWorld(t)
	w.Create()
	ann, bob := as(annID, people.Member, small), as(bobID, people.Member, small)
	id := func(set func(*rpc.ManageCall)) string {
		_, a := w.API("POST", "/api/keys", `{}`, set)
		return a.Get("body.id").Str
	}
	annKey, bobKey := id(ann), id(bob)
	report := `{"usage":[{"keyId":"` + annKey + `","requests":1,"calls":1,"costUsd":1},{"keyId":"` + bobKey + `","requests":2,"calls":2,"costUsd":7}],
		"requests":[{"id":"req_a","keyId":"` + annKey + `","status":200,"at":1800000000000},{"id":"req_b","keyId":"` + bobKey + `","status":200,"at":1800000000000}]}`
	w.Want(200, "report", report)
	if keys := w.OK("GET", "/api/keys", "", ann).Get("data"); keys.Get("#").Int() != 1 || keys.Get("0.id").Str != annKey {
		t.Errorf("keys: got %s", keys.Raw)
	}
	step := func(s string) func(*rpc.ManageCall) {
		return func(e *rpc.ManageCall) { e.Route, e.Params = "/api/keys/{id}"+s, []string{bobKey} }
	}
	for _, c := range []struct{ method, step string }{{"GET", ""}, {"PUT", ""}, {"DELETE", ""}, {"POST", "/rotate"},
		{"GET", "/usage"}, {"GET", "/networks"}} {
		if status, a := w.API(c.method, "/api/keys", `{}`, ann, step(c.step)); status != 404 || a.Get("error.code").Str != "key_not_found" {
			t.Errorf("%s another's key%s: got %d %s", c.method, c.step, status, a.Raw)
		}
	}
	for query, want := range map[string]int64{"": 1, "?key=" + bobKey: 0, "?groupBy=key": 1, "?groupBy=hour": 1,
		"?groupBy=tag:person": 1, "?groupBy=month": 1} {
		if a := w.OK("GET", "/api/usage"+query, "", ann); a.Get("total.attempts").Int() > want || strings.Contains(a.Raw, bobKey) {
			t.Errorf("usage%s: got %s", query, a.Raw)
		}
	}
	if a := w.OK("GET", "/api/usage", "", ann); a.Get("total.costUsd").Num != 1 {
		t.Errorf("own usage: got %s", a.Raw)
	}
	for _, query := range []string{"", "?key=" + bobKey, "?q=req_b"} {
		if status, a := w.API("GET", "/api/requests"+query, "", ann); status == 200 && (strings.Contains(a.Raw, "req_b") ||
			a.Get("body.total").Int() != 0) {
			t.Errorf("requests%s: got %s", query, a.Raw)
		}
	}
	if status, _ := w.API("GET", "/api/requests/req_b", "", ann); status != 404 {
		t.Errorf("another's request: got %d", status)
	}
	if a := w.OK("GET", "/api/requests/req_a", "", ann); a.Get("id").Str != "req_a" {
		t.Errorf("own request: got %s", a.Raw)
	}
}

func TestMemberIsRefusedElsewhere(t *testing.T) {
	w := newWorld(t)
	w.Create()
	admitted := 0
	for _, r := range api.Routes(&api.Handlers{Objects: &api.Handler{}, Sessions: &session.Sessions{}}) {
		for _, m := range r.Methods {
			raw, _ := json.Marshal(rpc.ManageCall{Method: m.Name, Route: r.Pattern, Params: []string{"x"}, Body: []byte(`{}`),
				Person: &rpc.Person{ID: annID, Role: people.Member, SeenAt: 1_800_000_000_000}})
			status, a := w.Call("manage", string(raw))
			if refused := status == 403 && a.Get("error.code").Str == "role_required"; !refused {
				if admitted++; m.Role != people.Member {
					t.Errorf("%s %s: got %d %s", m.Name, r.Pattern, status, a.Raw)
				}
			}
		}
	}
	if admitted != 13 {
		t.Errorf("%d routes admit a member, want 13", admitted)
	}
}

func TestEditorCannotMakeOwners(t *testing.T) {
	w := newWorld(t)
	w.Create()
	editor := as(bobID, people.Editor, nil)
	for _, scopes := range []string{`["manage"]`, `["export"]`, `["data","manage"]`} {
		if status, a := w.API("POST", "/api/keys", `{"scopes":`+scopes+`}`, editor); status != 403 {
			t.Errorf("%s: got %d %s", scopes, status, a.Raw)
		}
	}
	_, made := w.API("POST", "/api/keys", `{"scopes":["manage"]}`)
	boss := made.Get("body.id").Str
	if status, a := w.API("POST", "/api/keys", `{}`, editor, func(e *rpc.ManageCall) {
		e.Route, e.Params = "/api/keys/{id}/rotate", []string{boss}
	}); status != 403 {
		t.Errorf("rotates a key that manages: got %d %s", status, a.Raw)
	}
	if status, _ := w.API("POST", "/api/keys", `{"name":"ci"}`, editor); status != 200 {
		t.Errorf("a plain key: got %d", status)
	}
	if a := w.OK("GET", "/api/audit", ""); a.Get("data.0.actor").Str != "person:"+bobID {
		t.Errorf("the actor: got %s", a.Get("data.0").Raw)
	}
}

func TestRemovalPausesKeysOfPerson(t *testing.T) {
	w := newWorld(t)
	w.Create()
	ann, bob := as(annID, people.Member, small), as(bobID, people.Member, small)
	_, lease := w.API("POST", "/api/setup", `{"tool":"codex","model":"openai/gpt-4o","allowUnknown":true}`, ann)
	w.API("POST", "/api/keys", `{"name":"a"}`, ann)
	w.API("POST", "/api/keys", `{"name":"b"}`, bob)
	status, a := w.API("DELETE", "/api/people", "", func(e *rpc.ManageCall) {
		e.Route, e.Params = "/api/people/{id}", []string{annID}
	})
	if status != 200 {
		t.Fatalf("got %d %s", status, a.Raw)
	}
	for _, k := range w.OK("GET", "/api/keys", "").Get("data").Array() {
		if paused := k.Get("pausedAt").Int() > 0; paused != (k.Get("person").Str == annID) {
			t.Errorf("got %s", k.Raw)
		}
	}
	if status, a := w.API("POST", "/api/keys", `{}`, ann); status != 403 {
		t.Errorf("a key by roles that were read before: got %d %s", status, a.Raw)
	}
	claim, _ := json.Marshal(rpc.ClaimLease{Digest: rpc.KeyDigest(lease.Get("body.lease").Str), Tool: "codex"})
	if status, a := w.Call("lease.claim", string(claim)); status == 200 || lease.Get("body.lease").Str == "" {
		t.Errorf("a lease of before: got %d %s, lease %s", status, a.Raw, lease.Raw)
	}
	later := func(e *rpc.ManageCall) { ann(e); e.Person.SeenAt = 1_900_000_000_000 }
	if status, a := w.API("GET", "/api/keys", "", later); status != 200 || a.Get("body.data.#").Int() != 1 {
		t.Errorf("invited again: got %d %s", status, a.Raw)
	}
}

// An editor's keys, and the key of a command line that an owner has signed in, are paused too.
func TestRemovalPausesKeysOfEveryRole(t *testing.T) {
	w := newWorld(t)
	w.Create()
	editor, owner := as(annID, people.Editor, nil), as(bobID, people.Owner, nil)
	_, made := w.API("POST", "/api/keys", `{"name":"ci","tags":["team=a"]}`, editor)
	if k := made.Get("body"); k.Get("person").Str != annID || k.Get("tags").Raw != `["team=a","person=`+annID+`"]` {
		t.Fatalf("got %s", made.Raw)
	}
	digest := rpc.KeyDigest("device")
	body, _ := json.Marshal(map[string]any{"approve": true, "digest": digest, "name": "laptop"})
	if status, a := w.API("POST", "/api/device", string(body), owner, func(e *rpc.ManageCall) {
		e.Route, e.Params = "/api/device/{code}", []string{"code"}
	}); status != 200 {
		t.Fatalf("device: got %d %s", status, a.Raw)
	}
	claim, _ := json.Marshal(rpc.ClaimLease{Digest: digest, Tool: rpc.DeviceTool})
	if status, a := w.Call("lease.claim", string(claim)); status != 200 {
		t.Fatalf("claim: got %d %s", status, a.Raw)
	}
	if a := w.OK("GET", "/api/audit", ""); a.Get("data.0.actor").Str != "person:"+bobID {
		t.Errorf("the actor: got %s", a.Get("data.0").Raw)
	}
	for _, id := range []string{annID, bobID} {
		w.API("DELETE", "/api/people", "", func(e *rpc.ManageCall) { e.Route, e.Params = "/api/people/{id}", []string{id} })
	}
	for _, k := range w.OK("GET", "/api/keys", "").Get("data").Array() {
		if k.Get("person").Exists() && !k.Get("pausedAt").Exists() {
			t.Errorf("got %s", k.Raw)
		}
	}
}

// An owner who was removed kept access by a second key, which the first one had made.
func TestRemovalReachesWhatKeysOfPersonMade(t *testing.T) {
	w := newWorld(t)
	w.Create()
	_, made := w.API("POST", "/api/keys", `{"name":"cli","scopes":["manage"]}`, as(annID, people.Owner, nil))
	byKey := func(e *rpc.ManageCall) { e.KeyID = made.Get("body.id").Str }
	if status, a := w.API("POST", "/api/keys", `{"name":"spare","scopes":["manage"]}`, byKey); status != 200 ||
		a.Get("body.person").Str != annID || a.Get("body.tags").Raw != `["person=`+annID+`"]` {
		t.Errorf("got %d %s", status, a.Raw)
	}
	_, lease := w.API("POST", "/api/setup", `{"tool":"codex","model":"openai/gpt-4o"}`, byKey)
	if status, a := w.claim(mid, lease.Get("body.lease").Str, "codex"); status != 200 {
		t.Fatalf("claim: got %d %s", status, a.Raw)
	}
	if _, a := w.API("POST", "/api/invitations", `{"role":"owner"}`, byKey); a.Get("body.by").Str != "person:"+annID {
		t.Errorf("the invitation: got %s", a.Raw)
	}
	w.API("DELETE", "/api/people", "", func(e *rpc.ManageCall) { e.Route, e.Params = "/api/people/{id}", []string{annID} })
	for _, k := range w.OK("GET", "/api/keys", "").Get(`data.#(name!="Default key")#`).Array() {
		if !k.Get("pausedAt").Exists() {
			t.Errorf("after the removal: got %s", k.Raw)
		}
	}
}

// An owner who was removed kept access by a key of an import, whose document named no one or another person.
func TestRemovalReachesWhatPersonImported(t *testing.T) {
	w := newWorld(t)
	w.Create()
	owner := as(annID, people.Owner, nil)
	_, made := w.API("POST", "/api/keys", `{"name":"cli","scopes":["manage","export"]}`, owner)
	byKey := func(e *rpc.ManageCall) { e.KeyID = made.Get("body.id").Str }
	doc := func(n, person string) string {
		return sealedDoc(t, "correct horse battery", `{"format":"`+manage.ExportFormat+`","version":1,"connections":[],"keys":[{"id":"spare`+
			n+`","digest":"`+strings.Repeat(n, 64)+`","scopes":["manage"],"person":"`+person+`"}]}`)
	}
	for _, call := range []struct {
		body string
		by   func(*rpc.ManageCall)
	}{
		{doc("1", ""), owner}, {doc("2", bobID), owner}, {doc("3", ""), byKey},
		{`{"document":{"apiKeys":["sk-0123456789abcdef0123456789"]},"keys":true}`, owner},
	} {
		w.Clock.Add(time.Minute) // few keys are made of passphrases in one
		if status, a := w.API("POST", "/api/import", call.body, call.by); status != 200 || a.Get("body.keys").Int() != 1 {
			t.Fatalf("got %d %s", status, a.Raw)
		}
	}
	w.API("DELETE", "/api/people", "", func(e *rpc.ManageCall) { e.Route, e.Params = "/api/people/{id}", []string{annID} })
	keys := w.OK("GET", "/api/keys", "").Get("data").Array()
	for _, k := range keys {
		if k.Get("name").Str != "Default key" && !k.Get("pausedAt").Exists() {
			t.Errorf("after the removal: got %s", k.Raw)
		}
	}
	if len(keys) != 6 {
		t.Errorf("%d keys", len(keys))
	}
}

// A sign-in of a device that an owner had approved made a key that manages after the owner's role was lowered.
func TestLowerRoleEndsLeases(t *testing.T) {
	for role, want := range map[people.Role]int{people.Owner: 200, people.Editor: 403, people.Member: 403} {
		w := newWorld(t)
		w.Create()
		digest := rpc.KeyDigest("device")
		body, _ := json.Marshal(map[string]any{"approve": true, "digest": digest, "name": "laptop"})
		owner := as(annID, people.Owner, nil)
		w.API("POST", "/api/device", string(body), owner, func(e *rpc.ManageCall) {
			e.Route, e.Params = "/api/device/{code}", []string{"code"}
		})
		w.API("PUT", "/api/people", `{"role":"`+string(role)+`"}`, func(e *rpc.ManageCall) {
			e.Route, e.Params = "/api/people/{id}", []string{annID}
		})
		claim, _ := json.Marshal(rpc.ClaimLease{Digest: digest, Tool: rpc.DeviceTool})
		if status, a := w.Call("lease.claim", string(claim)); status != want {
			t.Errorf("%s: claim got %d %s, want %d", role, status, a.Raw, want)
		}
		if status, a := w.API("POST", "/api/keys", `{"scopes":["manage"]}`, owner); status != want {
			t.Errorf("%s: a call whose role was read before got %d %s, want %d", role, status, a.Raw, want)
		}
	}
}

// The gateway checks a change of a role before it stores the role, and applies it to the keys afterwards: an owner
// whose role was being lowered could make a key in between.
func TestCheckOfRoleChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.Create()
	owner := as(annID, people.Owner, nil)
	w.API("POST", "/api/keys", `{"name":"boss","scopes":["manage"]}`, owner)
	records := w.OK("GET", "/api/audit", "").Get("data.#").Int()
	for body, want := range map[string]int{`{"role":"member","template":{"rpm":3}}`: 200, `{"role":"root"}`: 400} {
		status, a := w.API("PUT", "/api/people", body, func(e *rpc.ManageCall) {
			e.Route, e.Params, e.Check = "/api/people/{id}", []string{annID}, true
		})
		if status != want || want == 200 && a.Get("body.template.rpm").Int() != 3 {
			t.Errorf("%s: got %d %s", body, status, a.Raw)
		}
	}
	if k := w.OK("GET", "/api/keys", "").Get(`data.#(name="boss")`); k.Get("pausedAt").Exists() || k.Get("rpm").Exists() {
		t.Errorf("got %s", k.Raw)
	}
	if n := w.OK("GET", "/api/audit", "").Get("data.#").Int(); n != records {
		t.Errorf("the check added %d records", n-records)
	}
	if status, a := w.API("POST", "/api/keys", `{"scopes":["manage"]}`, owner); status != 200 {
		t.Errorf("a call of the owner: got %d %s", status, a.Raw)
	}
}

// Another role or template changes the keys that a person has.
func TestLowerRoleReachesKeys(t *testing.T) {
	w := newWorld(t)
	w.Create()
	owner := as(annID, people.Owner, nil)
	w.API("POST", "/api/keys", `{"name":"plain"}`, owner)
	w.API("POST", "/api/keys", `{"name":"boss","scopes":["manage"]}`, owner)
	set := func(body string) {
		t.Helper()
		if status, a := w.API("PUT", "/api/people", body, func(e *rpc.ManageCall) {
			e.Route, e.Params = "/api/people/{id}", []string{annID}
		}); status != 200 {
			t.Fatalf("%s: got %d %s", body, status, a.Raw)
		}
	}
	key := func(name string) gjson.Result {
		return w.OK("GET", "/api/keys", "").Get(`data.#(name="` + name + `")`)
	}
	if set(`{"role":"owner"}`); key("boss").Get("pausedAt").Exists() {
		t.Error("the key of an owner is paused")
	}
	set(`{"role":"member","template":{"models":["openai/gpt-4o"],"rpm":3,"days":1}}`)
	if k := key("plain"); k.Get("models.0").Str != "openai/gpt-4o" || k.Get("rpm").Int() != 3 ||
		k.Get("expiresAt").Int() == 0 || k.Get("pausedAt").Exists() {
		t.Errorf("got %s", k.Raw)
	}
	set(`{"role":"member","template":{"budgetUsd":7,"budgetWindow":"day"}}`)
	if b := w.OK("GET", "/api/budgets", "").Get("data.0"); b.Get("limit").Num != 7 || b.Get("tag").Str != "person="+annID {
		t.Errorf("a budget for the keys that are there: got %s", b.Raw)
	}
	budget := w.OK("GET", "/api/budgets", "").Get("data.0.id").Str
	used := func() bool { return w.OK("GET", "/api/budgets", "").Get("data.0.exhausted").Bool() }
	for _, ask := range []string{`"own":6900000000,"need":6900000000`, `"used":6900000000,"own":200000000,"need":200000000`} {
		start := w.Clock.Now().Truncate(24 * time.Hour).UnixMilli()
		w.Want(200, "budget.take", fmt.Sprintf(`{"holder":"a","asks":[{"budget":%q,"start":%d,%s}]}`, budget, start, ask))
	}
	if !used() {
		t.Error("the budget is not used up")
	}
	if set(`{"role":"member","template":{"budgetUsd":9,"budgetWindow":"day"}}`); used() {
		t.Error("a higher limit is used up")
	}
	set(`{"role":"member"}`)
	if n := w.OK("GET", "/api/budgets", "").Get("data.#").Int(); n != 0 {
		t.Errorf("without a budget: %d are left", n)
	}
	if k := key("boss"); !k.Get("pausedAt").Exists() {
		t.Errorf("got %s", k.Raw)
	}
	member := as(annID, people.Member, small)
	boss := key("boss").Get("id").Str
	for _, step := range []struct{ method, step, body string }{{"PUT", "", `{"paused":false}`}, {"POST", "/rotate", `{}`}} {
		if status, a := w.API(step.method, "/api/keys", step.body, member, func(e *rpc.ManageCall) {
			e.Route, e.Params = "/api/keys/{id}"+step.step, []string{boss}
		}); status != 400 && status != 403 {
			t.Errorf("%s: got %d %s", step.method, status, a.Raw)
		}
	}
}

func TestMemberSeesOwnBudgetOnly(t *testing.T) {
	w := newWorld(t)
	w.Create()
	ann, bob := as(annID, people.Member, small), as(bobID, people.Member, small)
	before := w.OK("GET", "/api/budgets", "", ann).Get("data")
	if b := before.Get("0"); before.Get("#").Int() != 1 || b.Get("limit").Num != 10 || b.Get("spent").Num != 0 || b.Get("window").Str != "month" {
		t.Errorf("before the first key: %s", before.Raw)
	}
	if n := w.OK("GET", "/api/budgets", "").Get("data.#").Int(); n != 0 {
		t.Errorf("%d budgets are stored before the first key", n)
	}
	w.API("POST", "/api/keys", `{}`, ann)
	if rows := w.OK("GET", "/api/budgets", "", ann).Get("data"); rows.Get("#").Int() != 1 || rows.Get("0.id").Str != before.Get("0.id").Str {
		t.Errorf("with a key: %s", rows.Raw)
	}
	w.API("POST", "/api/keys", `{}`, bob)
	w.OK("POST", "/api/budgets", `{"name":"all","limit":1,"unit":"usd","window":"day"}`)
	if rows := w.OK("GET", "/api/budgets", "", ann).Get("data"); rows.Get("#").Int() != 1 ||
		rows.Get("0.tag").Str != "person="+annID {
		t.Errorf("got %s", rows.Raw)
	}
	if n := w.OK("GET", "/api/budgets", "").Get("data.#").Int(); n != 3 {
		t.Errorf("the operator sees %d, want 3", n)
	}
}

// Records of invitations and removals say whom they are about: the registry forgets it.
func TestAuditNamesWhoWasInvitedOrRemoved(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for _, c := range []struct {
		method, route, body string
		of                  rpc.PersonGrant
		want                string
	}{
		{"POST", "/api/invitations", `{"role":"viewer","note":"Ada <ada@example.com>"}`, rpc.PersonGrant{}, "Ada <ada@example.com> (viewer)"},
		{"POST", "/api/invitations", `{"role":"owner"}`, rpc.PersonGrant{}, "owner"},
		{"POST", "/api/invitations", `{"person":"` + annID + `"}`, rpc.PersonGrant{}, annID},
		{"DELETE", "/api/invitations", "", rpc.PersonGrant{Name: "Ada", Role: people.Viewer}, "Ada (viewer)"},
		{"DELETE", "/api/invitations", "", rpc.PersonGrant{ID: annID}, annID},
		{"DELETE", "/api/people", "", rpc.PersonGrant{ID: annID, Name: "Ann"}, "Ann"},
	} {
		status, a := w.API(c.method, c.route, c.body, func(e *rpc.ManageCall) {
			if c.method == "DELETE" {
				e.Route, e.Params, e.People = c.route+"/{id}", []string{cmp.Or(c.of.ID, "0123456789abcdef")}, []rpc.PersonGrant{c.of}
			}
		})
		if status != 200 {
			t.Fatalf("%s %s: got %d %s", c.method, c.route, status, a.Raw)
		}
		a = w.OK("GET", "/api/audit?limit=1", "")
		target := a.Get("data.0.target").Str
		if got := cmp.Or(a.Get("names").Map()[target].Str, target); got != c.want {
			t.Errorf("%s %s %s: got %q, want %q", c.method, c.route, c.body, got, c.want)
		}
	}
}

func TestInvitationsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for body, want := range map[string]int{
		`{"role":"viewer"}`: 200, `{"role":"member","template":{"keys":2,"budgetUsd":5,"budgetWindow":"day"}}`: 200,
		`{"person":"` + annID + `"}`: 200, `{"role":"owner","signIn":"provider","note":"Ann"}`: 200,
		`{}`: 400, `{"role":"none"}`: 400, `{"role":"root"}`: 400, `{"role":"viewer","template":{}}`: 400,
		`{"role":"member","template":{"keys":-1}}`: 400, `{"role":"member","template":{"budgetUsd":-5}}`: 400,
		`{"role":"member","template":{"budgetUsd":5,"budgetWindow":"eon"}}`: 400, `{"role":"member","template":{"scopes":[]}}`: 400,
		`{"role":"viewer","signIn":"none"}`: 400, `{"person":"Ann"}`: 400, `{"role":"viewer","machines":["*"]}`: 400,
	} {
		if status, a := w.API("POST", "/api/invitations", body); status != want {
			t.Errorf("%s: got %d %s, want %d", body, status, a.Raw, want)
		}
	}
}
