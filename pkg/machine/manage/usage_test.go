package manage_test

import (
	"strings"
	"testing"
	"time"
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
