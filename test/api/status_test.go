package api

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
)

// showing is a machine with an account at OpenAI and a server of the owner, which have
// answered two calls and one, and failed in one and two, and whose status page has a setting.
func showing(w *world, setting string) (id string) {
	w.t.Helper()
	id, key := w.tenant(1)
	w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"openai","name":"Secret name","apiKey":"sk-1"}`), nil)
	w.Answer = func(s *fake.Seen) fake.Answer {
		if strings.Contains(s.Body, "fails") {
			return fake.Reply(500, `{"error":{"message":"x"}}`)
		}
		return fake.JSON(embedding)
	}
	for _, model := range []string{"openai/text-embedding-3-small", "openai/text-embedding-3-small", "openai/fails",
		"up/<b>m", "up/fails", "up/fails"} {
		w.do("POST", "/v1/embeddings", key, `{"model":"`+model+`","input":"a"}`)
		w.Add(11 * time.Second) // reports are written, and cooldowns end
	}
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"publicStatus":"`+setting+`"}`), nil)
	return id
}

func TestPublicStatusShowsStatesWithoutNamesAndCounts(t *testing.T) {
	w := newWorld(t)
	id := showing(w, "providers")
	r := w.do("GET", "/"+id+"/status.json", "", "")
	w.get(200, r, nil)
	got := gjson.Parse(r.body)
	if got.Get("object").Str != "status" || got.Get("by").Str != "provider" || got.Get("state").Str == "" ||
		got.Get("data.#").Int() != 2 {
		t.Fatalf("got %s", r.body)
	}
	for i, name := range []string{"Compatible server", "OpenAI"} {
		row := got.Get("data").Array()[i]
		if row.Get("name").Str != name || row.Get("hours.#").Int() != 24 || row.Get("days.#").Int() != 30 ||
			row.Get("days.29").Str != row.Get("state").Str || row.Get("hours.0").Str != "" || row.Get("success24h").Num >= 1 ||
			row.Get("success30d").Num != row.Get("success24h").Num {
			t.Errorf("%s: %s", name, row.Raw)
		}
	}
	page := w.do("GET", "/"+id+"/status", "", "")
	w.get(200, page, nil)
	if c := page.header.Get("content-security-policy"); !strings.HasPrefix(c, "default-src 'none'; style-src 'sha256-") {
		t.Errorf("policy: %q", c)
	}
	if c := page.header.Get("cache-control"); c != "public, max-age=60" || r.header.Get("cache-control") != c {
		t.Errorf("cache-control: %q", c)
	}
	if !strings.Contains(page.body, `<bdi>OpenAI</bdi>`) || strings.Contains(page.body, "<script") {
		t.Errorf("page: %s", page.body)
	}
	for _, private := range []string{"Secret name", "account 0", "text-embedding", "attempts", "cost", "up/", "0123abcd", "upstream-key"} {
		if strings.Contains(r.body+page.body, private) {
			t.Errorf("the page has %q", private)
		}
	}
}

func TestPublicStatusOfModelsHasThoseThatAnswered(t *testing.T) {
	w := newWorld(t)
	id := showing(w, "models")
	r := w.do("GET", "/"+id+"/status.json", "", "")
	w.get(200, r, nil)
	if got := gjson.Get(r.body, "data.#.name").Raw; got != `["openai/text-embedding-3-small","up/<b>m"]` {
		t.Errorf("got %s", got)
	}
	if got := gjson.Get(r.body, "data.#.state").Raw + gjson.Get(r.body, "state").Raw; got != `["operational","operational"]"operational"` {
		t.Errorf("got %s", got)
	}
	page := w.do("GET", "/"+id+"/status", "", "").body
	if strings.Contains(page, "<b>m") || !strings.Contains(page, "<bdi>up/&lt;b&gt;m</bdi>") {
		t.Errorf("a name of a caller is not text: %s", page)
	}
	if !strings.Contains(page, "Last 24 hours: 100.0% succeeded") {
		t.Errorf("page: %s", page)
	}
	w.Add(3 * time.Hour)
	r = w.do("GET", "/"+id+"/status.json", "", "")
	if got := gjson.Get(r.body, "data.0.state").Str + gjson.Get(r.body, "state").Str; got != "unknownunknown" {
		t.Errorf("after hours without calls: %s", got)
	}
}

// Callers who come while the first page of a machine is read get one that says so.
func TestFirstPublicStatusIsReadOnce(t *testing.T) {
	w := newWorld(t)
	id := showing(w, "models")
	asked, meanwhile := 0, reply{}
	w.Objects.Fail = func(op string) bool {
		if op == "status" {
			if asked++; asked == 1 {
				meanwhile = w.do("GET", "/"+id+"/status.json", "", "")
			}
			return asked == 2
		}
		return false
	}
	first := w.do("GET", "/"+id+"/status.json", "", "")
	if asked != 1 || meanwhile.status != 200 || gjson.Get(meanwhile.body, "state").Str != "unknown" || meanwhile.header.Get("cache-control") != "no-store" ||
		gjson.Get(first.body, "data.#").Int() != 2 {
		t.Errorf("the object was asked %d times; meanwhile: %d %s, then %s", asked, meanwhile.status, meanwhile.body, first.body)
	}
}

func TestPublicStatusIsOffByDefaultAndReadOnceAMinute(t *testing.T) {
	w := newWorld(t)
	id, _ := w.tenant(1)
	missing := func(path string) {
		t.Helper()
		if r := w.do("GET", path, "", ""); r.status != 404 || gjson.Get(r.body, "error.code").Str != "not_found" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	missing("/" + id + "/status")
	missing("/" + id + "/status.json")
	before := len(w.Objects.Ops)
	for _, path := range []string{"/abcdefgh01234567/status", "/status", "/status.json", "/v1/status"} {
		missing(path)
	}
	if called := w.Objects.Ops[before:]; len(called) > 0 {
		t.Errorf("requests for machines that do not exist call objects, which creates them: %v", called)
	}
	w.get(400, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"publicStatus":"all"}`), nil)
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"publicStatus":"models"}`), nil)
	first := w.do("GET", "/"+id+"/status.json", "", "").body
	w.Add(59 * time.Second)
	if again := w.do("GET", "/"+id+"/status.json", "", "").body; again != first || first == "" {
		t.Errorf("got %s after %s", again, first)
	}
	w.Add(time.Second)
	if again := w.do("GET", "/"+id+"/status.json", "", "").body; again == first {
		t.Error("the page is older than a minute")
	}
	asked := 0
	for _, op := range w.Objects.Ops {
		if op == "status" {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("the object was asked %d times", asked)
	}
	w.Add(time.Minute)
	w.Objects.Fail = func(op string) bool { return op == "status" }
	w.get(200, w.do("GET", "/"+id+"/status.json", "", ""), nil) // the page before
	w.Objects.Fail = nil
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"publicStatus":null}`), nil)
	missing("/" + id + "/status.json")
}
