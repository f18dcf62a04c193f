package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The audit log is filtered by actor, kind, text and time, and names what its records are of, also
// what was deleted.
func TestAuditIsFilteredAndNamed(t *testing.T) {
	w := newWorld(t)
	w.Create()
	key := w.newKey(`{"name":"Laptop"}`).Get("id").Str
	w.OK("PUT", "/api/keys/"+key, `{"rpm":5}`)
	gone := w.newKey(`{"name":"Gone"}`).Get("id").Str
	w.OK("DELETE", "/api/keys/"+gone, "")
	conn := w.Connect(`{"provider":"openai","apiKey":"sk-by-hand-0123456789","name":"Work"}`)
	w.Clock.Add(time.Hour)
	from := w.Clock.Now().UnixMilli()
	w.OK("PATCH", "/api/settings", `{"idleSeconds":7}`)
	actions := func(query string) string {
		a := w.OK("GET", "/api/audit?"+query, "")
		var list []string
		for _, r := range a.Get("data").Array() {
			list = append(list, strings.ReplaceAll(r.Get("action").Str, "/api/", ""))
		}
		return strings.Join(list, ", ")
	}
	for query, want := range map[string]string{
		"kind=keys":               "DELETE keys/{id}, POST keys, PUT keys/{id}, POST keys",
		"kind=settings":           "PATCH settings",
		"kind=nothing":            "",
		"q=laptop":                "PUT keys/{id}, POST keys",
		"q=gone":                  "DELETE keys/{id}, POST keys",
		"q=RPM":                   "PUT keys/{id}",
		"kind=keys&actor=key":     "",
		"kind=keys&limit=1":       "DELETE keys/{id}",
		"actor=system":            "",
		fmt.Sprint("from=", from): "PATCH settings",
		"kind=providers&q=work":   "POST providers",
		fmt.Sprint("to=", from-10, "&kind=settings"): "",
	} {
		if got := actions(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	a := w.OK("GET", "/api/audit?kind=keys", "")
	masked, removed := a.Get("data.2.target").Str, a.Get("data.0.target").Str
	if a.Get("names."+masked).Str != "Laptop" || a.Get("names."+removed).Str != "Gone" || len(a.Get("names").Map()) != 2 || a.Get("has_more").Bool() {
		t.Errorf("got %s", a.Raw)
	}
	if got := w.OK("GET", "/api/audit?limit=1&q="+gone, ""); got.Get("names."+got.Get("data.0.target").Str).Str != "Gone" {
		t.Errorf("the id of the deleted key finds %s", got.Raw)
	}
	if got := w.OK("GET", "/api/audit?kind=providers", "").Get("names." + conn).Str; got != "Work" {
		t.Errorf("the connection is named %q", got)
	}
	w.OK("PUT", "/api/providers/"+conn, `{"name":"Work sk-by-hand-0123456789abcdef"}`)
	w.OK("DELETE", "/api/providers/"+conn, "")
	if got := w.OK("GET", "/api/audit?kind=providers&limit=1", "").Get("data.0.name").Str; !strings.HasPrefix(got, "Work ") || strings.Contains(got, "by-hand") {
		t.Errorf("the deleted connection is named %q", got)
	}
	w.OK("POST", "/api/providers/"+conn+"/restore", "")
	w.OK("PUT", "/api/providers/"+conn, `{"name":"Play"}`)
	if got := w.OK("GET", "/api/audit?kind=providers", "").Get("names." + conn).Str; got != "Play" {
		t.Errorf("the restored connection is named %q", got)
	}
	hook := w.OK("POST", "/api/destinations", `{"name":"Chat","kind":"webhook","settings":{"url":"https://hooks.example.com/a"}}`).Get("id").Str
	if got := w.OK("GET", "/api/audit?kind=destinations&q=chat", "").Get("names." + hook).Str; got != "Chat" {
		t.Errorf("the destination is named %q", got)
	}
	// The last names of several ids are one call.
	named := w.OK("GET", "/api/audit?ids="+gone+","+conn+","+key+",unknown", "")
	if got := named.Get("names"); got.Get(gone).Str != "Gone" || got.Get(conn).Str != "Play" || got.Get(key).Str != "Laptop" || named.Get("data.#").Int() != 3 || named.Get("has_more").Bool() {
		t.Errorf("by ids: %s", named.Raw)
	}
	if status, _ := w.API("GET", "/api/audit?ids="+strings.Repeat("a,", 50)+"a", ""); status != 400 {
		t.Errorf("51 ids: %d", status)
	}
	// Pages with a filter follow each other.
	var all []string
	for before := ""; ; {
		p := w.OK("GET", "/api/audit?kind=keys&limit=1"+before, "")
		for _, r := range p.Get("data").Array() {
			all = append(all, r.Get("action").Str)
		}
		if !p.Get("has_more").Bool() {
			break
		}
		before = "&before=" + p.Get("next").Raw
	}
	if len(all) != 4 {
		t.Errorf("pages of %v", all)
	}
}

// A call reads a bounded number of records, whatever the filter.
func TestAuditReadsABoundedNumberOfRecords(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for i := range 2100 {
		w.OK("PUT", "/api/models/alias", fmt.Sprintf(`{"alias":"a%d","model":"openai/x"}`, i%50))
	}
	p := w.OK("GET", "/api/audit?actor=unknown", "")
	if len(p.Get("data").Array()) != 0 || !p.Get("has_more").Bool() {
		t.Fatalf("got %s", p.Raw)
	}
	if p = w.OK("GET", "/api/audit?kind=machines&before="+p.Get("next").Raw, ""); len(p.Get("data").Array()) != 1 || p.Get("has_more").Bool() {
		t.Errorf("got %s", p.Raw)
	}
}

func TestHealthOfAMachine(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.obj.Alarm(w.Ctx, w.Loc.Storage(mid), mid)
	h := w.OK("GET", "/api/health", "")
	if !h.Get("ok").Bool() || h.Get("replica.pending").Bool() || h.Get("replica.failures").Int() != 0 || h.Get("configuration.bytes").Int() < 100 || h.Get("now").Int() != w.Clock.Now().UnixMilli() {
		t.Errorf("got %s", h.Raw)
	}
}

// A change of prices was recorded without the models.
func TestAuditNamesModelsOfPrices(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Connect(`{"provider":"openai","apiKey":"sk-by-hand-0123456789","name":"Work"}`)
	fields := func(body string) string {
		w.OK("PATCH", "/api/settings", body)
		return w.OK("GET", "/api/audit?limit=1", "").Get("data.0.fields").Raw
	}
	if got := fields(`{"modelPrices":{"openai/gpt-4.1":"1/8"},"idleSeconds":7}`); got != `["idleSeconds","modelPrices.openai/gpt-4.1"]` {
		t.Errorf("one model: %s", got)
	}
	if got := fields(`{"modelPrices":null}`); got != `["modelPrices"]` {
		t.Errorf("all of them: %s", got)
	}
	many := ""
	for n := range 30 {
		many += fmt.Sprintf(`"openai/m%d":"1/8",`, n)
	}
	got := fields(`{"allowUnknown":true,"modelPrices":{` + strings.TrimSuffix(many, ",") + `}}`)
	if n := strings.Count(got, ","); n != 20 || !strings.HasSuffix(got, `"modelPrices.openai/m19","modelPrices"]`) {
		t.Errorf("thirty models: %s", got)
	}
}

// A pause and its end had the same record: the name of the field.
func TestAuditTellsPausesFromTheirEnds(t *testing.T) {
	w := newWorld(t)
	w.Create()
	key := "/api/keys/" + w.newKey(`{"name":"Laptop"}`).Get("id").Str
	account := "/api/providers/" + w.Connect(`{"provider":"openai","apiKey":"sk-by-hand-0123456789","name":"Work"}`)
	target := "/api/destinations/" + w.OK("POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/x"}}`).Get("id").Str
	for _, step := range []struct{ path, body, want string }{
		{key, `{"paused":true}`, `["paused"]`},
		{key, `{"paused":false,"rpm":5}`, `["resumed","rpm"]`},
		{key, `{"rpm":6,"paused":false}`, `["rpm"]`},
		{account, `{"isActive":false}`, `["paused"]`},
		{account, `{"isActive":true}`, `["resumed"]`},
		{account, `{"isActive":true,"name":"Play"}`, `["name"]`},
		{target, `{"enabled":false}`, `["paused"]`},
		{target, `{"enabled":true}`, `["resumed"]`},
	} {
		w.OK("PUT", step.path, step.body)
		if got := w.OK("GET", "/api/audit?limit=1", "").Get("data.0.fields").Raw; got != step.want {
			t.Errorf("%s: got %s, want %s", step.body, got, step.want)
		}
	}
}
