package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/endpoint"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
)

// caller is a way in: what a call carries, and what it may do.
type caller struct {
	name     string
	key      string
	fields   []httpmsg.Field // of a session
	data     bool            // scope data
	manage   bool            // scope manage
	export   bool            // scope export
	metrics  bool            // scope metrics
	operator bool
	old      bool // a session whose sign-in is not recent
}

const site = "http://gateway.example"

// session signs in and returns the fields of calls of the session.
func (w *world) session(token string) []httpmsg.Field {
	w.t.Helper()
	body, _ := json.Marshal(map[string]string{"token": token})
	r := w.do("POST", "/api/session", "", string(body), httpmsg.Field{Name: "origin", Value: site})
	var v struct{ CSRFToken string }
	w.get(200, r, &v)
	cookie, _, _ := strings.Cut(r.header.Get("set-cookie"), ";")
	return []httpmsg.Field{{Name: "origin", Value: site}, {Name: "content-type", Value: "application/json"}, {Name: "cookie", Value: cookie}, {Name: "x-csrf-token", Value: v.CSRFToken}}
}

// minted creates a key and returns its id and text.
func (w *world) minted(machine, scopes string) (id, text string) {
	w.t.Helper()
	var k struct{ ID, APIKey string }
	w.get(201, w.do("POST", "/"+machine+"/api/keys", adminToken, `{"name":"k","scopes":`+scopes+`}`), &k)
	return k.ID, k.APIKey
}

// callers returns every way in. Sign-ins that are old are six minutes old.
func (w *world) callers(machine string) []caller {
	_, data := w.minted(machine, `["data"]`)
	_, manage := w.minted(machine, `["manage"]`)
	_, export := w.minted(machine, `["manage","export"]`)
	_, only := w.minted(machine, `["export"]`)
	_, metrics := w.minted(machine, `["metrics"]`)
	list := []caller{
		{name: "no credential"},
		{name: "key of scope data", key: data, data: true},
		{name: "key of scope manage", key: manage, manage: true},
		{name: "key of scopes manage and export", key: export, manage: true, export: true},
		{name: "key of scope export", key: only},
		{name: "key of scope metrics", key: metrics, metrics: true},
		{name: "operator token", key: adminToken, manage: true, export: true, operator: true, metrics: true},
		{name: "key of a set-up command", key: w.claimed(machine), data: true},
		{name: "old session of a key", fields: w.session(manage), manage: true, old: true},
		{name: "old session of an export key", fields: w.session(export), manage: true, export: true, old: true},
		{name: "old session of the operator", fields: w.session(adminToken), manage: true, export: true, operator: true, old: true},
	}
	w.Add(6 * time.Minute)
	return append(list,
		caller{name: "session of a key", fields: w.session(manage), manage: true},
		caller{name: "session of an export key", fields: w.session(export), manage: true, export: true},
		caller{name: "session of the operator", fields: w.session(adminToken), manage: true, export: true, operator: true})
}

// claimed returns the key that a set-up script gets for its lease.
func (w *world) claimed(machine string) string {
	w.t.Helper()
	var l struct{ Lease string }
	w.get(201, w.do("POST", "/"+machine+"/api/setup", adminToken, `{"tool":"codex","model":"up/m","allowUnknown":true}`), &l)
	var k struct{ APIKey string }
	w.get(200, w.do("POST", "/setup/claim", "", `{"lease":"`+l.Lease+`","tool":"codex"}`), &k)
	return k.APIKey
}

// refusal returns the status and code of a call that its caller may not make, "" for
// others.
func refusal(r reply) string {
	var e struct {
		Error struct {
			Code json.RawMessage
			Type string
		}
	}
	_ = json.Unmarshal([]byte(r.body), &e)
	code := strings.Trim(string(e.Error.Code), `"`)
	switch {
	case r.status == 401:
		return "401"
	case r.status == 403 && strings.Contains(r.body, "This key has the scope "): // in every dialect
		return "403 scope_required"
	case r.status == 403 && (code == "scope_required" || code == "reauth_required"):
		return "403 " + code
	}
	return ""
}

// Every route and method with every way in: who lacks a scope is refused, also behind a
// session of a key that lacks it. A regression: the session of a key of scope manage
// could export all credentials.
func TestScopesHoldForEveryWayIn(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(embedding) }
	machine, _ := w.tenant(1)
	exporter, _ := w.minted(machine, `["manage","export"]`)
	type probe struct {
		method, path, body, needs string
		recent                    bool // a session needs a recent sign-in
	}
	var probes []probe
	for _, route := range gateway.Routes() {
		for _, m := range route.Methods {
			access := route.Access
			if m.Access != 0 {
				access = m.Access
			}
			needs := map[endpoint.Access]string{
				endpoint.Data: "data", endpoint.Realtime: "data", endpoint.List: "data", endpoint.Own: "data",
				endpoint.Manage: "manage", endpoint.Operator: "operator",
				endpoint.Metrics: "metrics",
			}[access]
			if access == endpoint.Public {
				continue
			}
			path := strings.NewReplacer("{id}", "x", "{provider}", "openai", "{kind}", "llm", "{alias}", "up", "{model...}", "m:embedContent",
				"{request_id}", "x", "{file}", "x").Replace(route.Pattern)
			body, recent := "", false
			if m.Name != "GET" && route.MaxBody > 0 {
				body = "{}"
			}
			switch m.Name + " " + route.Pattern {
			case "POST /api/export":
				body, needs, recent = `{"passphrase":"a long passphrase"}`, "export", true
			case "GET /api/captures/{id}":
				needs, recent = "export", true
			case "DELETE /api/machines/{id}", "POST /api/passkeys", "POST /api/passkeys/challenge":
				recent = true
			}
			if needs == "manage" || needs == "export" {
				path = "/" + machine + path
			}
			probes = append(probes, probe{m.Name, path, body, needs, recent})
		}
	}
	grant := func(method, path, body string) {
		probes = append(probes, probe{method, "/" + machine + path, body, "export", true})
	}
	grant("POST", "/api/keys", `{"name":"n","scopes":["manage","export"]}`)
	grant("POST", "/api/keys/"+exporter+"/rotate", `{"overlapSeconds":0}`)
	if len(probes) < 90 {
		t.Fatalf("%d probes", len(probes))
	}
	callers := w.callers(machine)
	for _, p := range probes {
		for _, c := range callers {
			got := refusal(w.do(p.method, p.path, c.key, p.body, c.fields...))
			want := map[string]bool{"data": c.data, "manage": c.manage, "export": c.export, "operator": c.operator,
				"metrics": c.metrics}[p.needs]
			if p.recent && c.old {
				want = false
			}
			if want == (got != "") {
				t.Errorf("%s %s needs %s; by %s: got %q", p.method, p.path, p.needs, c.name, got)
			}
		}
	}
}
