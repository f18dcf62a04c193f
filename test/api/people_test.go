package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/front"
	"weir/pkg/wire/httpmsg"
)

// visitor is a person with a session.
type visitor struct {
	*world
	id, token string
	header    []httpmsg.Field
}

// peopleWorld is a gateway with one machine.
func peopleWorld(t *testing.T) (w *world, machineID string) {
	w = &world{Gateway: front.New(nil), t: t, origin: "https://gateway.example"}
	w.Answer = newWorld(t).Answer
	machineID, _ = w.tenant(1)
	return w, machineID
}

// invited returns the secret of an invitation by the operator.
func (w *world) invited(machineID, body string) string {
	w.t.Helper()
	r := w.do("POST", "/"+machineID+"/api/invitations", adminToken, body)
	_, secret, ok := strings.Cut(gjson.Get(r.body, "link").Str, "/#/invitation/")
	if r.status != 201 || !ok {
		w.t.Fatalf("invite: %d %s", r.status, r.body)
	}
	return secret
}

// enter signs in by the body of POST /api/session.
func (w *world) enter(body string) (*visitor, reply) {
	w.t.Helper()
	r := w.do("POST", "/api/session", "", body, httpmsg.Field{Name: "origin", Value: w.origin})
	cookie, _, _ := strings.Cut(r.header.Get("set-cookie"), ";")
	return &visitor{w, gjson.Get(r.body, "personId").Str, gjson.Get(r.body, "token").Str, []httpmsg.Field{
		{Name: "cookie", Value: cookie}, {Name: "origin", Value: w.origin},
		{Name: "x-csrf-token", Value: gjson.Get(r.body, "csrfToken").Str}}}, r
}

// joined is a person with a role on the machine.
func (w *world) joined(machineID, name, invitation string) *visitor {
	w.t.Helper()
	v, r := w.enter(`{"invitation":"` + w.invited(machineID, invitation) + `","name":"` + name + `"}`)
	if r.status != 200 || v.id == "" {
		w.t.Fatalf("%s: %d %s", name, r.status, r.body)
	}
	return v
}

func (v *visitor) asks(method, path, body string) reply {
	v.t.Helper()
	return v.do(method, path, "", body, v.header...)
}

// wants fails the test unless an answer has a status.
func (v *visitor) wants(status int, method, path, body string) reply {
	v.t.Helper()
	r := v.asks(method, path, body)
	if r.status != status {
		v.t.Errorf("%s %s %s: %d %s, want %d", method, path, body, r.status, r.body, status)
	}
	return r
}

func TestPersonListsMachinesWithRole(t *testing.T) {
	w, mine := peopleWorld(t)
	other, _ := w.tenant(0)
	ann := w.joined(mine, "Ann", `{"role":"viewer"}`)
	for query, want := range map[string]int{"": 1, "?q=" + mine: 1, "?q=" + other: 0, "?limit=1": 1} {
		r := ann.wants(200, "GET", "/api/machines"+query, "")
		if got := gjson.Get(r.body, "data").Array(); len(got) != want || gjson.Get(r.body, "total").Int() != int64(want) ||
			want == 1 && (got[0].Get("machineId").Str != mine || got[0].Get("role").Str != "viewer") {
			t.Errorf("machines%s: got %s", query, r.body)
		}
	}
	if r := w.do("GET", "/api/machines", adminToken, ""); gjson.Get(r.body, "total").Int() != 2 ||
		gjson.Get(r.body, "data.0.role").Exists() {
		t.Errorf("the operator: got %s", r.body)
	}
	for _, c := range [][2]string{{"POST", "/api/machines"}, {"GET", "/api/version"}, {"GET", "/api/identity-providers"}} {
		if r := ann.wants(403, c[0], c[1], map[string]string{"POST": "{}"}[c[0]]); gjson.Get(r.body, "error.code").Str != "role_required" {
			t.Errorf("%s %s: got %s", c[0], c[1], r.body)
		}
	}
	ann.wants(403, "DELETE", "/api/machines/"+mine, "")
	ann.wants(403, "GET", "/"+other+"/api/keys", "")
	w.do("DELETE", "/"+mine+"/api/people/"+ann.id, adminToken, "")
	ann.wants(401, "GET", "/api/machines", "")
}

// A budget of a changed role is named like one that the first key of a member creates.
func TestBudgetOfAMemberHasTheName(t *testing.T) {
	w, mine := peopleWorld(t)
	const budget = `{"role":"member","template":{"budgetUsd":20,"budgetWindow":"month"}}`
	w.joined(mine, "Ann", budget).wants(201, "POST", "/"+mine+"/api/keys", `{"name":"laptop"}`)
	bob := w.joined(mine, "Bob", `{"role":"member"}`)
	w.get(200, w.do("PUT", "/"+mine+"/api/people/"+bob.id, adminToken, budget), nil)
	r := w.do("GET", "/"+mine+"/api/budgets", adminToken, "")
	if got := gjson.Get(r.body, "data.#.name").Raw; got != `["Budget of Ann","Budget of Bob"]` {
		t.Errorf("got %s in %s", got, r.body)
	}
}

// Names of people stand where their ids do. A member sees no one else's.
// An owner learns nothing of the people of other machines.
func TestPeopleOfOtherMachinesDoNotExist(t *testing.T) {
	w, machineID := peopleWorld(t)
	other, _ := w.tenant(0)
	elsewhere := w.joined(other, "Zoe", `{"role":"editor"}`)
	owner := w.joined(machineID, "Ana", `{"role":"owner"}`)
	nobody := "p_" + strings.Repeat("a", len(elsewhere.id)-2)
	for _, call := range [][3]string{{"DELETE", "", `{}`}, {"PUT", "", `{"role":"viewer"}`}, {"DELETE", "/sessions", `{}`}} {
		there := owner.asks(call[0], "/"+machineID+"/api/people/"+elsewhere.id+call[1], call[2])
		none := owner.asks(call[0], "/"+machineID+"/api/people/"+nobody+call[1], call[2])
		if there.status < 400 || there.status != none.status || gjson.Get(there.body, "error.message").Str != gjson.Get(none.body, "error.message").Str {
			t.Errorf("%v: of another machine %d %s, of none %d %s", call, there.status, there.body, none.status, none.body)
		}
	}
	w.get(201, owner.asks("POST", "/"+machineID+"/api/keys", `{"name":"`+elsewhere.id+`"}`), nil)
	for _, path := range []string{"/api/audit", "/api/keys", "/api/people"} {
		if r := owner.asks("GET", "/"+machineID+path, ""); r.status != 200 || strings.Contains(r.body, "Zoe") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	// A removal can be repeated, and the record keeps the name.
	gone := w.joined(machineID, "Bob", `{"role":"viewer"}`)
	for range 2 {
		if r := owner.asks("DELETE", "/"+machineID+"/api/people/"+gone.id, `{}`); r.status != 204 {
			t.Errorf("removal: %d %s", r.status, r.body)
		}
	}
	if r := owner.asks("GET", "/"+machineID+"/api/audit", ""); !strings.Contains(r.body, "Bob") || strings.Contains(r.body, "\"target\":\""+elsewhere.id) {
		t.Errorf("audit: %s", r.body)
	}
}

func TestAnswersNamePeople(t *testing.T) {
	w, mine := peopleWorld(t)
	ann, owner := w.joined(mine, "Ann", `{"role":"member"}`), w.joined(mine, "=Olga", `{"role":"owner"}`)
	var key struct{ ID, APIKey string }
	w.get(201, ann.asks("POST", "/"+mine+"/api/keys", `{"name":"laptop"}`), &key)
	w.get(200, w.embed(key.APIKey), nil)
	owner.wants(201, "POST", "/"+mine+"/api/keys", `{"name":"ci"}`)
	for path, id := range map[string]string{"keys": ann.id, "keys/" + key.ID: ann.id, "audit": owner.id,
		"usage?groupBy=tag:person": ann.id, "keys/" + key.ID + "/usage": ann.id} {
		want := map[string]string{ann.id: "Ann", owner.id: "=Olga"}[id]
		r := owner.wants(200, "GET", "/"+mine+"/api/"+path, "")
		if got := gjson.Get(r.body, "people."+id).Str; got != want {
			t.Errorf("%s: got %q, want %q in %s", path, got, want, r.body)
		}
	}
	if r := owner.wants(200, "GET", "/"+mine+"/api/export", ""); gjson.Get(r.body, "people").Exists() {
		t.Errorf("the export has names: %s", r.body)
	}
	for _, path := range []string{"requests.csv", "usage.csv?groupBy=key", "usage.csv?groupBy=tag:person"} {
		r := owner.wants(200, "GET", "/"+mine+"/api/"+path, "")
		head, rows, _ := strings.Cut(r.body, "\r\n")
		if !strings.Contains(head, ",person") || !strings.Contains(rows, `"Ann"`) {
			t.Errorf("%s: got %s", path, r.body)
		}
	}
	ann.wants(200, "PUT", "/"+mine+"/api/keys/"+key.ID, `{"name":"`+owner.id+`"}`)
	if r := ann.wants(200, "GET", "/"+mine+"/api/keys", ""); strings.Contains(r.body, "Olga") {
		t.Errorf("a member reads another's name: %s", r.body)
	}
}
