package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/upstream"
)

// feeds is a machine with accounts at providers.
func feeds(w *world, providers ...string) (list func() gjson.Result) {
	w.t.Helper()
	id, _ := w.tenant(1) // a server of the owner has no status page
	for _, p := range providers {
		w.get(201, w.do("POST", "/"+id+"/api/providers", adminToken, `{"provider":"`+p+`","apiKey":"sk-`+p+`"}`), nil)
	}
	return func() gjson.Result {
		w.t.Helper()
		r := w.do("GET", "/"+id+"/api/health/providers", adminToken, "")
		w.get(200, r, nil)
		return gjson.Parse(r.body)
	}
}

// asked counts the calls of status pages.
func (w *world) asked() (n int) {
	for _, s := range w.Seen {
		if strings.HasSuffix(s.URL, "/api/v2/summary.json") {
			n++
		}
	}
	return n
}

const summary = `{"page":{"id":"x"},"status":{"indicator":"minor","description":"Partial System Outage"},` +
	`"incidents":[{"name":"Old","status":"resolved"},{"name":"Elevated errors","status":"investigating"}]}`

func TestStatusPagesAreReadOnceInFiveMinutesForAllMachines(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(s *fake.Seen) fake.Answer {
		if s.URL == "https://status.openai.com/api/v2/summary.json" && len(s.Header) == 1 && s.MaxBody == 1<<20 && s.Timeout == 10*time.Second {
			return fake.JSON(summary)
		}
		return fake.Reply(404, `{}`)
	}
	one, other := feeds(w, "openai", "openai", "mistral", "groq"), feeds(w, "openai")
	got := one()
	want := fmt.Sprintf(`{"object":"list","enabled":true,"data":[{"provider":"openai","name":"OpenAI","page":"https://status.openai.com","indicator":"minor","description":"Partial System Outage","incidents":["Elevated errors"],"readAt":%d},{"provider":"groq","name":"Groq","page":"https://groqstatus.com","indicator":"unknown","readAt":%[1]d}]}`, w.Now().UnixMilli())
	if got.Raw != want {
		t.Errorf("\n got %s\nwant %s", got.Raw, want)
	}
	w.Add(4*time.Minute + 59*time.Second)
	if other().Get("data.0.description").Str != "Partial System Outage" || one().Raw != want || w.asked() != 2 {
		t.Errorf("%d calls", w.asked())
	}
	w.Add(time.Second)
	one()
	other()
	if w.asked() != 4 {
		t.Errorf("%d calls after five minutes", w.asked())
	}
	w.Add(-time.Hour) // a clock that is set back does not stop the reading
	if one(); w.asked() != 6 {
		t.Errorf("%d calls after the clock was set back", w.asked())
	}
}

func TestStatusPagesAreNotReadIfTheSettingIsOff(t *testing.T) {
	w := newWorld(t)
	list := feeds(w, "openai")
	id := gjson.Get(w.do("GET", "/api/machines", adminToken, "").body, "data.0.machineId").Str
	w.get(200, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"statusFeeds":"off"}`), nil)
	if got := list().Raw; got != `{"object":"list","enabled":false,"data":[]}` || w.asked() != 0 {
		t.Errorf("%d calls, got %s", w.asked(), got)
	}
	w.get(400, w.do("PATCH", "/"+id+"/api/settings", adminToken, `{"statusFeeds":"maybe"}`), nil)
}

func TestHostileStatusPagesAreUnknown(t *testing.T) {
	of := func(status string) string { return `{"status":` + status + `}` }
	deep := strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000)
	for name, c := range map[string]struct {
		answer fake.Answer
		want   string // indicator, description and incidents
	}{
		"good":               {fake.JSON(of(`{"indicator":"none","description":"All Systems Operational"}`)), "none All Systems Operational []"},
		"without text":       {fake.JSON(of(`{"indicator":"critical"}`)), "critical  []"},
		"empty":              {fake.JSON(""), "unknown  []"},
		"no JSON":            {fake.OK("text/html", "<html>ok</html>"), "unknown  []"},
		"cut JSON":           {fake.JSON(`{"status":{"indicator":"none"`), "unknown  []"},
		"deep":               {fake.JSON(`{"status":{"indicator":"none"},"x":` + deep + `}`), "unknown  []"},
		"another indicator":  {fake.JSON(of(`{"indicator":"fine"}`)), "unknown  []"},
		"an object for text": {fake.JSON(of(`{"indicator":{"a":1}}`)), "unknown  []"},
		"an array":           {fake.JSON(`[1]`), "unknown  []"},
		"redirect":           {fake.Reply(302, summary), "unknown  []"},
		"failure":            {fake.Reply(500, summary), "unknown  []"},
		"too long":           {fake.Answer{Err: upstream.ErrNetwork}, "unknown  []"},
		"no answer":          {fake.Answer{Err: upstream.ErrTimeout}, "unknown  []"},
		"long text": {fake.JSON(of(`{"indicator":"major","description":"` + strings.Repeat("é", 5000) + `"}`)),
			"major " + strings.Repeat("é", 100) + " []"},
		"controls": {fake.JSON(`{"status":{"indicator":"major","description":"a\u0000\u202eb\n\nc<b>"},"incidents":[{"name":5},{"name":" "},` +
			`{"name":"1"},{"name":"2"},{"name":"3"},{"name":"4"}]}`), "major a b c<b> [1 2 3]"},
		"incidents that are none": {fake.JSON(`{"status":{"indicator":"minor","description":"x"},"incidents":{"a":"b"}}`), "minor x []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Answer = func(*fake.Seen) fake.Answer { return c.answer }
			row := feeds(w, "anthropic")().Get("data.0")
			incidents := []string{}
			for _, i := range row.Get("incidents").Array() {
				incidents = append(incidents, i.Str)
			}
			got := fmt.Sprint(row.Get("indicator").Str, " ", row.Get("description").Str, " ", incidents)
			if got != c.want || row.Get("page").Str != "https://status.claude.com" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
