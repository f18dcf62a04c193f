package manage_test

import (
	"fmt"
	"testing"
	"time"
)

func TestPublicStatusHasTheMostUsedModels(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.OK("PATCH", "/api/settings", `{"publicStatus":"models"}`)
	for i := range 150 {
		w.Want(200, "report", attempts("c", fmt.Sprintf("openai/m%03d", i), 1+i, 0))
		w.Clock.Add(11 * time.Second)
	}
	w.Want(200, "report", attempts("c", "openai/made-up", 1000, 1000))
	w.Clock.Add(11 * time.Second)
	a := w.Want(200, "status", "")
	if n := a.Get("data.#").Int(); n != 100 || a.Get("data.0.name").Str != "openai/m050" || a.Get("data.99.name").Str != "openai/m149" {
		t.Errorf("%d rows: %s", n, a.Get("data.#.name").Raw)
	}
}

func TestPublicStateIsThatOfTheLastHours(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.OK("PATCH", "/api/settings", `{"publicStatus":"providers"}`)
	w.setClock(2026, 11, 27, 22, 30)
	report := func(model string, n, failed int) {
		w.Want(200, "report", attempts("c", model, n, failed))
		w.Clock.Add(11 * time.Second)
	}
	check := func(when, want string) {
		t.Helper()
		a := w.Want(200, "status", "")
		got := a.Get("state").Str
		for _, row := range a.Get("data").Array() {
			got += fmt.Sprint(", ", row.Get("name").Str, " ", row.Get("state").Str, " ", row.Get("success24h").Raw, " ", row.Get("success30d").Raw)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", when, got, want)
		}
	}
	check("without calls", "unknown")
	report("openai/a", 10, 0)
	report("groq/a", 10, 4)
	check("at first", "degraded, Groq degraded 0.6 0.6, OpenAI operational 1 1")
	w.Clock.Add(time.Hour)
	report("openai/a", 10, 10)
	report("groq/a", 10, 10)
	check("an hour later", "degraded, Groq down 0.3 0.3, OpenAI degraded 0.5 0.5")
	w.Clock.Add(time.Hour)
	check("at 00:31", "down, Groq down 0.3 0.3, OpenAI down 0.5 0.5")
	w.Clock.Add(24 * time.Hour)
	check("a day later", "unknown, Groq unknown null 0.3, OpenAI unknown null 0.5")
	report("mistral/a", 3, 3)
	check("a provider that never answered", "down, Groq unknown null 0.3, Mistral AI down 0 0, OpenAI unknown null 0.5")
}
