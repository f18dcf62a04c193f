package manage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
)

const hookURL = "https://hooks.example.com/services/T00/B00?sig=canary-0123456789-last"

// targeted is a world with a webhook as a destination, and what it receives.
func targeted(t *testing.T) (w *world, hook *fake.Upstream, id string) {
	w = newWorld(t)
	hook = &fake.Upstream{Clock: w.Clock}
	w.obj.Do = hook
	w.Create()
	a := w.OK("POST", "/api/destinations", fmt.Sprintf(`{"kind":"webhook","name":"ours","settings":{"url":%q}}`, hookURL))
	return w, hook, a.Get("id").Str
}

func TestDestinationIsReadStrictly(t *testing.T) {
	w, _, id := targeted(t)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/api/destinations", `{}`, "400 kind"},
		{"POST", "/api/destinations", `{"kind":"pigeon"}`, "400 kind"},
		{"POST", "/api/destinations", `{"kind":"webhook"}`, "400 settings.url"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":""}}`, "400 settings.url"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://10.0.0.1/a"}}`, "400 settings.url"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"http://hooks.example.com/a"}}`, "400 settings.url"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://user:pass@hooks.example.com/a"}}`, "400 settings.url"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/a#b"}}`, "400 settings.url"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":["x"]}}`, "400 settings.url"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":"x"}`, "400 settings"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/","uri":"x"}}`, "400 settings.uri"},
		{"POST", "/api/destinations", `{"kind":"webhook","events":["none"],"settings":{"url":"https://hooks.example.com/"}}`, "400 events"},
		{"POST", "/api/destinations", `{"kind":"webhook","name":"a\u0000b","settings":{"url":"https://hooks.example.com/"}}`, "400 name"},
		{"POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/","bodies":true}}`, "400 settings.bodies"},
		{"POST", "/api/destinations", `{"kind":"otlp","settings":{"endpoint":"https://otel.example.com/","bodies":"all"}}`, "400 settings.bodies"},
		{"POST", "/api/destinations", `{"kind":"otlp","settings":{"endpoint":"https://otel.example.com/","bodies":1}}`, "400 settings.bodies"},
		{"POST", "/api/destinations", `{"kind":"otlp","settings":{"endpoint":"https://otel.example.com/","signals":"traces","bodies":true}}`, "400 settings.bodies"},
		{"POST", "/api/destinations", `{"kind":"otlp","settings":{"endpoint":true}}`, "400 settings.endpoint"},
		{"PUT", "/api/destinations/" + id, `{"kind":"slack"}`, "400 kind"},
		{"PUT", "/api/destinations/" + id, `{"settings":{"url":null}}`, "400 settings.url"},
		{"PUT", "/api/destinations/none", `{}`, "404 destination_not_found"},
		{"GET", "/api/destinations/none/deliveries", ``, "404 destination_not_found"},
		{"POST", "/api/destinations/none/test", `{}`, "404 destination_not_found"},
	} {
		status, a := w.API(c.method, c.path, c.body)
		got := fmt.Sprintf("%d %s%s", status, a.Get("error.param").Str, a.Get("error.code").Str)
		if status == 400 {
			got = fmt.Sprintf("400 %s", a.Get("error.param").Str)
		}
		if got != c.want {
			t.Errorf("%s %s %s: got %s %s, want %s", c.method, c.path, c.body, got, a.Raw, c.want)
		}
	}
	if status, _ := w.API("PUT", "/api/destinations/"+id, `{"name":"x"}`, func(e *rpc.ManageCall) { e.IfMatch = `"1"` }); status != 412 {
		t.Errorf("a stale change: %d", status)
	}
	for range manage.MaxDestinations - 1 {
		w.OK("POST", "/api/destinations", fmt.Sprintf(`{"kind":"webhook","settings":{"url":%q}}`, hookURL))
	}
	if status, a := w.API("POST", "/api/destinations", fmt.Sprintf(`{"kind":"webhook","settings":{"url":%q}}`, hookURL)); status != 409 {
		t.Errorf("too many: %d %s", status, a.Raw)
	}
}

// Captured bodies are sent only where a caller who may read them has chosen that.
func TestBodiesAreChosenByThoseWhoMayReadThem(t *testing.T) {
	const settings = `"endpoint":"https://otel.example.com/"`
	w := newWorld(t)
	w.Create()
	manager := w.newKey(`{"scopes":["manage"]}`).Get("id").Str
	exporter := w.newKey(`{"scopes":["manage","export"]}`).Get("id").Str
	by := func(key, signIn string) func(e *rpc.ManageCall) {
		return func(e *rpc.ManageCall) { e.KeyID, e.SignIn = key, signIn }
	}
	make := `{"kind":"otlp","settings":{` + settings + `,"bodies":true}}`
	id := w.OK("POST", "/api/destinations", make, by(exporter, "")).Get("id").Str
	if v := w.OK("GET", "/api/destinations/"+id, ""); v.Get("settings").Raw != `{"bodies":"true"}` {
		t.Errorf("the settings are %s", v.Get("settings").Raw)
	}
	plain := w.OK("POST", "/api/destinations", `{"kind":"otlp","settings":{`+settings+`}}`, by(manager, "")).Get("id").Str
	for _, c := range []struct {
		what, method, path, body string
		by                       func(e *rpc.ManageCall)
		want                     int
	}{
		{"a new one", "POST", "/api/destinations", make, by(manager, ""), 403},
		{"by an old sign-in", "POST", "/api/destinations", make, by("", rpc.SignInOld), 403},
		{"of one that has none", "PUT", "/api/destinations/" + plain, `{"settings":{"bodies":"true"}}`, by(manager, ""), 403},
		{"of one that has none, by an exporter", "PUT", "/api/destinations/" + plain, `{"settings":{"bodies":"true"}}`, by(exporter, ""), 200},
		{"another address", "PUT", "/api/destinations/" + id, `{"settings":{"endpoint":"https://otel.example.com/other"}}`, by(manager, ""), 403},
		{"another host", "PUT", "/api/destinations/" + id, `{"settings":{"endpoint":"https://other.example.com/"}}`, by(manager, ""), 403},
		{"other headers", "PUT", "/api/destinations/" + id, `{"settings":{"headers":"tenant=other"}}`, by(manager, ""), 403},
		{"another name", "PUT", "/api/destinations/" + id, `{"name":"other","enabled":false}`, by(manager, ""), 200},
		{"an import", "POST", "/api/import", `{"document":{"destinations":[{"kind":"otlp","settings":{"bodies":"true"}}]}}`, by(manager, ""), 403},
		{"the end of it", "PUT", "/api/destinations/" + id, `{"settings":{"bodies":null}}`, by(manager, ""), 200},
		{"another address then", "PUT", "/api/destinations/" + id, `{"settings":{"endpoint":"https://other.example.com/"}}`, by(manager, ""), 200},
	} {
		if status, a := w.API(c.method, c.path, c.body, c.by); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, status, a.Raw, c.want)
		}
	}
}

// The address is a secret: it is sealed, and shown by its host and its last characters.
func TestAddressOfDestinationIsNotReadBack(t *testing.T) {
	w, hook, id := targeted(t)
	hook.Answer = func(s *fake.Seen) fake.Answer {
		return fake.Reply(403, "refused "+s.URL+" "+s.Header.Get("webhook-signature"))
	}
	var all []string
	note := func(_ int, a gjson.Result) { all = append(all, a.Raw) }
	note(w.API("GET", "/api/destinations", ""))
	note(w.API("GET", "/api/destinations/"+id, ""))
	note(w.API("PUT", "/api/destinations/"+id, `{"name":"other"}`))
	note(w.API("PUT", "/api/destinations/"+id, `{"settings":{"url":"https://10.0.0.1/canary-0123456789-last"}}`))
	note(w.API("POST", "/api/destinations/"+id+"/test", ""))
	note(w.API("GET", "/api/destinations/"+id+"/deliveries", ""))
	note(w.API("GET", "/api/audit", ""))
	note(w.API("GET", "/api/export", ""))
	w.Loc.Alarms(w.Ctx)
	all = append(all, w.Logs...)
	for key, row := range w.Loc.Storage(mid).Dump() {
		all = append(all, key+string(row))
	}
	for _, v := range w.KV.Dump() {
		all = append(all, string(v))
	}
	for _, a := range all {
		if strings.Contains(a, "canary-0123456789") || strings.Contains(a, "services/T00") {
			t.Errorf("the address is in %.400s", a)
		}
	}
	d := w.OK("GET", "/api/destinations/"+id, "")
	if d.Get("host").Str != "hooks.example.com" || d.Get("last4.url").Str != "last" || d.Get("secrets.0").Str != "url" || d.Get("name").Str != "other" {
		t.Errorf("shown as %s", d.Raw)
	}
}

func TestDestinationIsTested(t *testing.T) {
	w, hook, id := targeted(t)
	test := func() gjson.Result { return w.OK("POST", "/api/destinations/"+id+"/test", "") }
	if a := test(); !a.Get("delivered").Bool() || a.Get("error").Exists() || hook.Seen[0].URL != hookURL {
		t.Fatalf("got %s", a.Raw)
	}
	s := hook.Seen[0]
	if gjson.Get(s.Body, "type").Str != "test" || s.Header.Get("webhook-id") == "" || s.Header.Get("webhook-signature") == "" || s.Header.Get("x-weir-hop") != "1" {
		t.Errorf("sent %v %s", s.Header, s.Body)
	}
	for name, tt := range map[string]struct {
		answer    fake.Answer
		delivered bool
		err       string
	}{
		"garbage":     {fake.Answer{Status: 200, Body: "\x00\xff{"}, true, ""},
		"nothing":     {fake.Answer{Status: 204}, true, ""},
		"10 MB":       {fake.Answer{Status: 200, Body: strings.Repeat("x", 10<<20)}, true, ""},
		"a cut body":  {fake.Answer{Status: 200, Pieces: []string{"x"}, Cut: true}, true, ""},
		"too large":   {fake.Answer{Status: 413}, false, "status 413"},
		"a redirect":  {fake.Answer{Status: 307, Header: httpmsg.Header{{Name: "location", Value: "https://10.0.0.1/"}}}, false, "status 307: redirects are not followed"},
		"unreachable": {fake.Answer{Err: errors.New("dial tcp hooks.example.com: canary")}, false, "not reachable"},
		"silent":      {fake.Answer{Takes: time.Minute}, false, "no answer in time"},
		"status 0":    {fake.Answer{Status: 99}, false, "status 99"},
	} {
		w.Clock.Add(time.Minute)
		hook.Answer = func(*fake.Seen) fake.Answer { return tt.answer }
		if a := test(); a.Get("delivered").Bool() != tt.delivered || a.Get("error").Str != tt.err {
			t.Errorf("%s: got %s, want %q", name, a.Raw, tt.err)
		}
	}
	hook.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: 204} }
	for i := range 12 {
		if status, a := w.API("POST", "/api/destinations/"+id+"/test", ""); i >= 10 && status != 429 {
			t.Errorf("test %d of a minute: %d %s", i+1, status, a.Raw)
		}
	}
}

// A secret was given for the host of its address: another host does not receive it.
func TestSecretsStayWithTheirHost(t *testing.T) {
	w, _, id := targeted(t)
	w.OK("PUT", "/api/destinations/"+id, `{"settings":{"url":"https://elsewhere.example.com/x"}}`)
	if d := w.OK("GET", "/api/destinations/"+id, ""); d.Get("host").Str != "elsewhere.example.com" || d.Get("secrets.#").Int() != 1 {
		t.Errorf("shown as %s", d.Raw)
	}
}

// The state of a destination is visible: what waits, what was dropped, why it is disabled.
func TestStateOfDestinationIsShown(t *testing.T) {
	w, hook, id := targeted(t)
	status := 500
	hook.Answer = func(*fake.Seen) fake.Answer { return fake.Answer{Status: status} }
	budget := w.OK("POST", "/api/budgets", `{"name":"team","unit":"requests","limit":100,"window":"total"}`).Get("id").Str
	use := func(n int) {
		w.Want(200, "report", fmt.Sprintf(`{"budgets":{"holder":"a","asks":[{"budget":%q,"used":%d}]}}`, budget, n))
		w.Loc.Alarms(w.Ctx)
	}
	show := func() gjson.Result { return w.OK("GET", "/api/destinations/"+id, "") }
	use(50)
	if d := show(); d.Get("status").Str != "failing" || d.Get("waiting").Int() != 1 || d.Get("lastError").Str != "status 500" || d.Get("nextTryAt").Int() != w.Clock.Now().UnixMilli()+5000 {
		t.Errorf("after a failure: %s", d.Raw)
	}
	l := w.OK("GET", "/api/destinations/"+id+"/deliveries", "")
	if l.Get("data.0.title").Str != `The budget "team" has reached 50 %` || l.Get("data.0.state").Str != "waiting" || l.Get("data.0.tries").Int() != 1 {
		t.Errorf("what waits: %s", l.Raw)
	}
	status = 410
	w.Clock.Add(5 * time.Second)
	w.Loc.Alarms(w.Ctx)
	if d := show(); d.Get("status").Str != "disabled" || d.Get("disabledReason").Str != "status 410: the address no longer exists" || d.Get("waiting").Int() != 1 || d.Get("dropped").Int() != 0 || d.Get("nextTryAt").Exists() {
		t.Errorf("after 410: %s", d.Raw)
	}
	if l = w.OK("GET", "/api/destinations/"+id+"/deliveries", ""); l.Get("data.0.state").Str != "waiting" || l.Get("data.#").Int() != 1 {
		t.Errorf("what waits after 410: %s", l.Raw)
	}
	use(80)
	if len(hook.Seen) != 2 {
		t.Errorf("a disabled destination is called: %d calls", len(hook.Seen))
	}
	status = 200
	w.OK("POST", "/api/destinations/"+id+"/test", "")
	if text := gjson.Get(hook.Seen[2].Body, "text").Str; !strings.Contains(text, `of the machine "demo" arrive`) {
		t.Errorf("the test says %q", text)
	}
	use(100)
	if n := len(hook.Seen); n != 5 || gjson.Get(hook.Seen[3].Body, "type").Str != "budget.exhausted" || show().Get("status").Str != "active" {
		t.Errorf("after a test that arrives: %d calls, %s", n, show().Raw)
	}
	w.OK("PUT", "/api/destinations/"+id, `{"enabled":false}`)
	if show().Get("status").Str != "paused" {
		t.Errorf("paused: %s", show().Raw)
	}
	if s, _ := w.API("DELETE", "/api/destinations/"+id, ""); s != 200 && s != 204 {
		t.Errorf("deleted: %d", s)
	}
	for key := range w.Loc.Storage(mid).Dump() {
		if strings.HasPrefix(key, "outbox:"+id) || strings.HasPrefix(key, "item:") || strings.HasPrefix(key, "dest:") {
			t.Errorf("the row %s is left", key)
		}
	}
}

// An encrypted export has the secrets of destinations; one in the clear has none, and a new one
// that it brings is paused.
func TestDestinationsAreExportedAndImported(t *testing.T) {
	w, hook, id := targeted(t)
	w.OK("PUT", "/api/destinations/"+id, `{"events":["key.created"],"settings":{"quietHours":"22:00-07:00"}}`)
	plain := w.OK("GET", "/api/export", "").Raw
	sealed := w.OK("POST", "/api/export", `{"passphrase":"a long passphrase"}`).Raw
	if strings.Contains(plain, "canary") || strings.Contains(sealed, "canary") || !strings.Contains(plain, "quietHours") {
		t.Fatalf("the export is %s", plain)
	}
	preview := w.OK("POST", "/api/import", `{"preview":true,"replace":true,"passphrase":"a long passphrase","document":`+sealed+`}`)
	if d := preview.Get("changes.destinations"); len(d.Get("changed").Array())+len(d.Get("added").Array())+len(d.Get("deleted").Array()) != 0 {
		t.Errorf("the preview has %s", d.Raw)
	}
	w.API("DELETE", "/api/destinations/"+id, "")
	other := w.OK("POST", "/api/destinations", `{"kind":"webhook","settings":{"url":"https://hooks.example.com/other"}}`).Get("id").Str
	w.OK("POST", "/api/import", `{"replace":true,"passphrase":"a long passphrase","document":`+sealed+`}`)
	d := w.OK("GET", "/api/destinations/"+id, "")
	if d.Get("status").Str != "active" || d.Get("events.0").Str != "key.created" || d.Get("settings.quietHours").Str != "22:00-07:00" {
		t.Errorf("imported: %s", d.Raw)
	}
	if w.OK("POST", "/api/destinations/"+id+"/test", ""); hook.Seen[len(hook.Seen)-1].URL != hookURL {
		t.Errorf("the test went to %s", hook.Seen[len(hook.Seen)-1].URL)
	}
	if status, _ := w.API("GET", "/api/destinations/"+other, ""); status != 404 {
		t.Errorf("a destination that the document lacks is left: %d", status)
	}
	w.OK("POST", "/api/import", `{"document":`+plain+`}`)
	if d = w.OK("GET", "/api/destinations/"+id, ""); d.Get("status").Str != "active" || d.Get("last4.url").Str != "last" {
		t.Errorf("imported again without secrets: %s", d.Raw)
	}
	w.API("DELETE", "/api/destinations/"+id, "")
	w.OK("POST", "/api/import", `{"document":`+plain+`}`)
	if d = w.OK("GET", "/api/destinations/"+id, ""); d.Get("status").Str != "paused" || d.Get("secrets.#").Int() != 0 {
		t.Errorf("a new one without secrets: %s", d.Raw)
	}
	for _, bad := range []string{`[{"kind":"none"}]`, `{}`, `[{"id":"a b","kind":"webhook"}]`, `[{"id":"a","kind":"slack"},{"id":"a","kind":"slack"}]`, `[{"kind":"webhook","settings":{"url":"https://10.0.0.1/"}}]`} {
		if status, a := w.API("POST", "/api/import", `{"document":{"destinations":`+bad+`}}`); status != 400 {
			t.Errorf("%s: %d %s", bad, status, a.Raw)
		}
	}
}

// A list of headers is several secrets: no end of it is shown, and an answer that repeats one
// of them, or the path of the endpoint, does not show it.
func TestHeadersOfCollectorAreSecretOneByOne(t *testing.T) {
	w, hook, _ := targeted(t)
	a := w.OK("POST", "/api/destinations", `{"kind":"otlp","settings":{"endpoint":"https://otel.example.com/canary-of-path","headers":"authorization=Api-Token%20canary-0123456789,x-key=canary-other","protocol":"http/json"}}`)
	path := "/api/destinations/" + a.Get("id").Str
	hook.Answer = func(s *fake.Seen) fake.Answer {
		_, token, _ := strings.Cut(s.Header.Get("authorization"), " ")
		return fake.Reply(200, `{"partialSuccess":{"rejectedSpans":9223372036854775807,"rejectedLogRecords":9223372036854775807,"errorMessage":"bad `+token+`, `+s.Header.Get("x-key")+` at `+strings.TrimPrefix(s.URL, "https://otel.example.com")+`"}}`)
	}
	for range 2 {
		w.OK("POST", path+"/test", "")
	}
	d := w.OK("GET", path, "")
	if !strings.HasPrefix(d.Get("lastError").Str, "9223372036854775807 rejected: bad ***, *** at ") || strings.Contains(d.Raw, "canary") {
		t.Errorf("shown as %s", d.Raw)
	}
	if a.Get("last4.headers").Exists() || d.Get("last4.headers").Exists() || d.Get("last4.endpoint").Str != "path" {
		t.Errorf("the last characters are %s", d.Get("last4").Raw)
	}
	if n := d.Get("dropped").Int(); n < 0 || n > 2 {
		t.Errorf("%d entries are lost of two", n)
	}
	for _, bad := range []string{"host=internal", "X-Weir-Hop=9", "Content-Length=0", "a(b)=c", "x=%E2%82%AC", "x=a%0d%0ay:b", "a b=c"} {
		if status, a := w.API("PUT", path, fmt.Sprintf(`{"settings":{"headers":%q}}`, bad)); status != 400 || a.Get("error.param").Str != "settings.headers" {
			t.Errorf("%s: %d %s", bad, status, a.Raw)
		}
	}
}

// A later version may have stored a kind that this one does not know.
func TestDestinationOfUnknownKindIsShown(t *testing.T) {
	w, _, _ := targeted(t)
	const row = `{"id":"d","name":"later","kind":"pigeon","createdAt":1,"updatedAt":1,"generation":1}`
	if err := w.Loc.Storage(mid).Write([]storage.Row{{Key: "dest:d", Value: []byte(row)}}, storage.KeepAlarm); err != nil {
		t.Fatal(err)
	}
	if d := w.OK("GET", "/api/destinations/d", ""); d.Get("kind").Str != "pigeon" {
		t.Errorf("shown as %s", d.Raw)
	}
	if a := w.OK("POST", "/api/destinations/d/test", ""); a.Get("delivered").Bool() || a.Get("error").Str == "" {
		t.Errorf("tested: %s", a.Raw)
	}
	if status, a := w.API("PUT", "/api/destinations/d", `{"name":"x"}`); status != 400 {
		t.Errorf("changed: %d %s", status, a.Raw)
	}
	w.OK("GET", "/api/export", "")
	if status, _ := w.API("DELETE", "/api/destinations/d", ""); status != 200 {
		t.Errorf("deleted: %d", status)
	}
}
