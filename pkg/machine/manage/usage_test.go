package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/usage"
)

// The usage of a key, an account, a provider, a model and an endpoint, with the models
// whose price is not known.
func TestUsageIsFiltered(t *testing.T) {
	w := newWorld(t)
	w.Create()
	report := func() {
		w.Want(200, "report", `{"usage":[
			{"keyId":"k1","connectionId":"c1","provider":"openai","model":"openai/a","endpoint":"/v1/chat/completions","requests":3,"calls":2,"costUsd":0.1},
			{"keyId":"k1","connectionId":"c2","provider":"groq","model":"groq/b","endpoint":"/v1/embeddings","requests":5,"calls":5,"unpriced":5},
			{"keyId":"k2","connectionId":"c1","provider":"openai","model":"openai/c","endpoint":"/v1/embeddings","requests":9,"calls":9,"unpriced":7}]}`)
	}
	report()
	w.Clock.Add(24 * time.Hour)
	report()
	requests := func(query string) int64 { return w.OK("GET", "/api/usage"+query, "").Get("total.requests").Int() }
	today := w.Clock.Now().UTC().Format(time.DateOnly)
	for query, want := range map[string]int64{
		"": 32, "?key=k1": 14, "?connection=c1": 22, "?provider=groq": 10, "?model=openai/a": 4, "?endpoint=/v1/embeddings": 28,
		"?key=k1&connection=c1": 4, "?key=other": 0, "?key=k2&period=day": 9, "?groupBy=hour&key=k2&period=25h": 18, "?groupBy=hour&key=k2&period=3h": 9,
		"?from=" + today: 16, "?to=" + today: 32, "?from=2020-01-01&to=" + today: 32, "?from=" + today + "&to=9999-01-01": 16,
		"?from=2020-01-01&to=2020-02-01": 0, "?period=90d": 32,
	} {
		if got := requests(query); got != want {
			t.Errorf("%q: %d requests, want %d", query, got, want)
		}
	}
	unpriced := func(query string) string {
		return strings.ReplaceAll(w.OK("GET", "/api/usage"+query, "").Get("unpriced").Raw, `"`, "")
	}
	if got, want := unpriced(""), "[{model:openai/c,provider:openai,attempts:14},{model:groq/b,provider:groq,attempts:10}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := unpriced("?model=openai/a&groupBy=hour"); got != "" {
		t.Errorf("of a model with a price: %s", got)
	}
}

// With more values and keys than have rows of their own, the rows of a label still add up to all
// usage.
func TestUsageByTagAddsUpBeyondItsBounds(t *testing.T) {
	w := newWorld(t)
	w.Create()
	for from := 0; from < 1500; from += 100 {
		tx := w.tx()
		var rows []usage.Row
		var labels []usage.Label
		for i := range 100 {
			row := usage.Row{KeyID: fmt.Sprint("k", from+i), Model: "m", Requests: 2, Calls: 1, InputTokens: 10, CostUSD: 0.5}
			rows = append(rows, row)
			if i > 0 { // one has no tag
				labels = usage.AddLabel(labels, usage.ByName, "project", fmt.Sprint("v", from+i), &row)
			}
		}
		tx.AddUsage(tx.Now, rows)
		tx.AddLabels(tx.Now, labels)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for _, query := range []string{"", "?groupBy=tag:project", "?groupBy=tag:project,key", "?groupBy=month,tag:project"} {
		a := w.OK("GET", "/api/usage"+query, "")
		n, untagged := a.Get("total"), int64(0)
		for _, r := range a.Get("data").Array() {
			if r.Get("tag").Str == "" {
				untagged += r.Get("requests").Int()
			}
		}
		if query == "" {
			untagged = 15
		}
		if n.Get("requests").Int() != 1500 || n.Get("attempts").Int() != 3000 || n.Get("inputTokens").Int() != 15_000 || n.Get("costUsd").Num != 750 || untagged != 15 {
			t.Errorf("%q: %d without a tag, total %s", query, untagged, n.Raw)
		}
	}
}

// Usage is grouped and filtered by tool and by a name of tags, for each key. Calls without a value
// are the rest of all usage.
func TestUsageByToolAndTag(t *testing.T) {
	w := newWorld(t)
	w.Create()
	report := func() {
		w.Want(200, "report", `{"usage":[
			{"keyId":"k1","model":"openai/a","requests":6,"calls":5,"inputTokens":600,"costUsd":0.6},
			{"keyId":"k2","model":"openai/c","requests":4,"calls":4,"inputTokens":400,"costUsd":0.5,"unpriced":2}],
			"labels":[
			{"kind":"tool","rows":[{"value":"codex","keyId":"k1","requests":6,"calls":5,"inputTokens":600,"costUsd":0.6},{"value":"curl","keyId":"k2","requests":4,"calls":4,"inputTokens":400,"costUsd":0.5}]},
			{"kind":"tag","name":"project","rows":[{"value":"atlas","keyId":"k1","requests":2,"calls":2,"inputTokens":200,"costUsd":0.2},
				{"value":"atlas","keyId":"k2","requests":1,"calls":1,"inputTokens":100,"costUsd":0.3},{"value":"sk-abcdefghijklmnopqrstuvwxyz0123456789","keyId":"k1","requests":1,"calls":1,"costUsd":0.1}]},
			{"kind":"tag","name":"team","rows":[{"value":"core","keyId":"k1","requests":6,"calls":5,"inputTokens":600,"costUsd":0.6}]}]}`)
	}
	report()
	w.Clock.Add(24 * time.Hour)
	report()
	rows := func(query string) string {
		a := w.OK("GET", "/api/usage?"+query, "")
		var out []string
		list := a.Get("data").Array()
		if !strings.Contains(query, "day") {
			list = a.Get("groups").Array()
		}
		if len(list) == 0 {
			list = a.Get("data").Array()
		}
		for _, r := range list {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s%s %s %d/%d $%v", r.Get("tool").Str, r.Get("tag").Str, r.Get("keyId").Str, r.Get("requests").Int(), r.Get("inputTokens").Int(), r.Get("costUsd").Num)))
		}
		if sum := a.Get("total"); sum.Get("requests").Int() > 0 {
			out = append(out, fmt.Sprintf("all %d $%v", sum.Get("requests").Int(), sum.Get("costUsd").Num))
		}
		return strings.Join(out, "; ")
	}
	today := w.Clock.Now().UTC().Format(time.DateOnly)
	for query, want := range map[string]string{
		"groupBy=tool":                               "codex  10/1200 $1.2; curl  8/800 $1; all 18 $2.2",
		"groupBy=month,tool":                         "codex  10/1200 $1.2; curl  8/800 $1; all 18 $2.2",
		"groupBy=day,tool&from=" + today:             "codex  5/600 $0.6; curl  4/400 $0.5; all 9 $1.1",
		"groupBy=tag:project":                        "10/1400 $1; project=***  2/0 $0.2; project=atlas  6/600 $1; all 18 $2.2",
		"groupBy=tag:project,key":                    "k1 4/800 $0.6; project=*** k1 2/0 $0.2; project=atlas k1 4/400 $0.4; k2 6/600 $0.4; project=atlas k2 2/200 $0.6; all 18 $2.2",
		"groupBy=tag:project&key=k2":                 "6/600 $0.4; project=atlas  2/200 $0.6; all 8 $1",
		"groupBy=key&tag=project=atlas":              "project=atlas k1 4/400 $0.4; project=atlas k2 2/200 $0.6; all 6 $1",
		"groupBy=tag:project&tag=project=atlas":      "project=atlas  6/600 $1; all 6 $1",
		"groupBy=key&tool=curl":                      "curl k2 8/800 $1; all 8 $1",
		"groupBy=tag:team":                           "8/800 $1; team=core  10/1200 $1.2; all 18 $2.2",
		"groupBy=tag:none":                           "18/2000 $2.2; all 18 $2.2",
		"groupBy=tool&tool=none":                     "",
		"groupBy=tool&from=2020-01-01&to=2020-01-02": "",
	} {
		got := rows(query)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
	if a := w.OK("GET", "/api/usage?groupBy=tool", ""); a.Get("tagNames").Raw != `["project","team"]` || a.Get("unpriced").Exists() {
		t.Errorf("names %s, unpriced %s", a.Get("tagNames").Raw, a.Get("unpriced").Raw)
	}
	for _, query := range []string{"groupBy=tool,tag:project", "groupBy=tool,model", "groupBy=hour,tool", "groupBy=tag:", "groupBy=tool&model=openai/a",
		"tag=project", "groupBy=tag:team&tag=project=atlas", "tool=curl&groupBy=hour"} {
		if status, a := w.API("GET", "/api/usage?"+query, ""); status != 400 {
			t.Errorf("%s: %d %s", query, status, a.Raw)
		}
	}
}
