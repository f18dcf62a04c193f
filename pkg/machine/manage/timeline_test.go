package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// attempts returns a report with the attempts of an account with a model.
func attempts(conn, model string, n, failed int) string {
	provider, _, _ := strings.Cut(model, "/")
	return fmt.Sprintf(`{"usage":[{"keyId":"k","connectionId":%q,"provider":%q,"model":%q,"endpoint":"/v1/embeddings",`+
		`"requests":%d,"errors":%d,"calls":%d,"latencyMs":1000,"latency":[11,%d],"firstToken":[8,1]}]}`, conn, provider, model, n, failed, n, n)
}

// setClock sets the clock to a time of UTC.
func (w *world) setClock(year int, month time.Month, day, hour, minute int) {
	w.Clock.Add(time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Sub(w.Clock.Now()))
}

// lines writes the lines of a time line: their ids, and for each step how many hours or days
// it is back, its state and its counts.
func lines(a gjson.Result) (out []string) {
	last := a.Get("from").Int() + (a.Get("steps").Int()-1)*a.Get("stepMs").Int()
	for _, l := range a.Get("data").Array() {
		text := l.Get("connectionId").Str + l.Get("provider").Str + l.Get("model").Str + ":"
		for _, s := range l.Get("steps").Array() {
			text += fmt.Sprintf(" %d %s %d/%d", (last-s.Get("at").Int())/a.Get("stepMs").Int(), s.Get("state").Str,
				s.Get("failed").Int(), s.Get("attempts").Int())
		}
		out = append(out, text)
	}
	return out
}

func TestTimelineHasTheStepsOfAttempts(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OK("POST", "/api/providers", `{"provider":"openai","name":"A","apiKey":"sk-1"}`).Get("id").Str
	w.setClock(2026, 11, 27, 22, 59)
	report := func(conn, model string, n, failed int) {
		t.Helper()
		w.Want(200, "report", attempts(conn, model, n, failed))
	}
	report(id, "openai/a", 100, 5)
	w.Clock.Add(2 * time.Minute) // 23:01
	report(id, "openai/a", 100, 6)
	report("gone", "openai/b", 3, 2) // an account that was deleted since
	w.Clock.Add(time.Hour)           // 00:01 of the next day
	report(id, "openai/c", 2, 1)     // the model has another name now
	w.Want(200, "report", `{"usage":[{"keyId":"k","model":"openai/a","endpoint":"/v1/embeddings","calls":7,"failedCalls":7,"refusedModel":7}]}`)

	for query, want := range map[string]string{
		"":                                      "[: 2 operational 5/100 1 degraded 8/103 0 degraded 1/2]",
		"?span=30d":                             "[: 1 degraded 13/203 0 degraded 1/2]",
		"?groupBy=model":                        "[openai/a: 2 operational 5/100 1 degraded 6/100 openai/b: 1 down 2/3 openai/c: 0 degraded 1/2]",
		"?groupBy=provider":                     "[openai: 2 operational 5/100 1 degraded 8/103 0 degraded 1/2]",
		"?groupBy=connection":                   "[IDopenai: 2 operational 5/100 1 degraded 6/100 0 degraded 1/2 goneopenai: 1 down 2/3]",
		"?groupBy=connection&span=30d":          "[IDopenai: 1 degraded 11/200 0 degraded 1/2 goneopenai: 1 down 2/3]",
		"?connection=ID":                        "[: 2 operational 5/100 1 degraded 6/100 0 degraded 1/2]",
		"?model=openai/b":                       "[: 1 down 2/3]",
		"?model=openai/b&provider=other":        "[]",
		"?connection=ID&groupBy=model&span=24h": "[openai/a: 2 operational 5/100 1 degraded 6/100 openai/c: 0 degraded 1/2]",
	} {
		a := w.OK("GET", "/api/health/timeline"+strings.ReplaceAll(query, "ID", id), "")
		if got := strings.ReplaceAll(fmt.Sprint(lines(a)), id, "ID"); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
	a := w.OK("GET", "/api/health/timeline?groupBy=connection", "")
	total := a.Get("data.0.total")
	if a.Get("steps").Int() != 24 || total.Get("attempts").Int() != 202 || total.Get("failed").Int() != 12 ||
		total.Get("latencyP95Ms").Int() != 610 || total.Get("firstTokenP50Ms").Int() != 216 || total.Get("state").Str != "degraded" ||
		total.Get("success").Num < 0.94 || total.Get("success").Num > 0.941 {
		t.Errorf("got %s", a.Raw)
	}
	if a.Get("data.0.health").Str != "ready" || a.Get("data.1.health").Exists() {
		t.Errorf("got %s", a.Raw)
	}
	w.Clock.Add(24 * time.Hour)
	if a := w.OK("GET", "/api/health/timeline?span=24h", ""); len(lines(a)) != 0 {
		t.Errorf("after a day: %s", a.Raw)
	}
	w.Clock.Add(29 * 24 * time.Hour)
	if a := w.OK("GET", "/api/health/timeline?span=30d", ""); len(lines(a)) != 0 || a.Get("steps").Int() != 30 {
		t.Errorf("after thirty days: %s", a.Raw)
	}
}

// The stored sum of a day is not shown any more after its usage has changed.
func TestTimelineHoldsWhenTheClockJumps(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.setClock(2026, 11, 27, 12, 0)
	w.Want(200, "report", attempts("c", "openai/a", 4, 0))
	check := func(when, span, want string) {
		t.Helper()
		if got := fmt.Sprint(lines(w.OK("GET", "/api/health/timeline?span="+span, ""))); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	w.Clock.Add(24 * time.Hour) // the clock is ahead: the 27th is added up
	check("ahead", "30d", "[: 1 operational 0/4]")
	w.Want(200, "report", attempts("c", "openai/a", 5, 5))
	check("ahead", "30d", "[: 1 operational 0/4 0 down 5/5]")
	w.Clock.Add(-24 * time.Hour)
	check("set back", "30d", "[: 0 operational 0/4]")
	check("set back", "24h", "[: 0 operational 0/4]")
	w.Want(200, "report", attempts("c", "openai/a", 4, 4))
	check("set back, after another report", "30d", "[: 0 degraded 4/8]")
	w.Clock.Add(24 * time.Hour)
	check("the next day", "30d", "[: 1 degraded 4/8 0 down 5/5]")
	check("the next day", "24h", "[: 0 down 5/5]")
}

func TestTimelineSaysWhyAttemptsFailed(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "report", `{"usage":[{"keyId":"k","connectionId":"c","provider":"openai","model":"openai/a",`+
		`"endpoint":"/v1/embeddings","requests":20,"errors":9,"causes":[1,0,0,0,0,0,0,8]},`+
		`{"keyId":"k","connectionId":"d","provider":"openai","model":"openai/a",`+
		`"endpoint":"/v1/embeddings","requests":2,"errors":2,"causes":[0,0,0,0,0,0,0,2]}]}`)
	a := w.OK("GET", "/api/health/timeline?groupBy=connection", "")
	if got, want := a.Get("data.0.total").Raw, `{"state":"degraded","attempts":20,"failed":9,"failedBy":{"limited":1,"refused":8},"success":0.9166666666666666}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// Requests that are not valid say nothing of the account.
	if got, want := a.Get("data.1.total").Raw, `{"attempts":2,"failed":2,"failedBy":{"refused":2},"success":0}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTimelineIsBounded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for i := range 1000 {
		w.Clock.Add(12 * time.Second)
		w.Want(200, "report", attempts(fmt.Sprintf("c%d", i), fmt.Sprintf("openai/m%d", i), 1+i, 0))
	}
	a := w.OK("GET", "/api/health/timeline?groupBy=connection,model", "")
	if n := len(a.Get("data").Array()); n != 200 || a.Get("leftOut").Int() < 500 || len(a.Raw) > 100_000 {
		t.Errorf("%d lines, %d left out, %d bytes", n, a.Get("leftOut").Int(), len(a.Raw))
	}
	if got := a.Get("data.0.connectionId").Str; got != "c999" {
		t.Errorf("the account with the most attempts is not the first: %s", got)
	}
}

func TestTimelineRefusesOtherQueries(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for _, query := range []string{"span=7d", "span=1", "groupBy=key", "groupBy=model,model", "groupBy=,", "from=1"} {
		if status, a := w.API("GET", "/api/health/timeline?"+query, ""); status != 400 || a.Get("error.param").Str == "" {
			t.Errorf("%s: %d %s", query, status, a.Raw)
		}
	}
}
