package manage_test

import (
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/manage"
)

// A comparison answers for each secret, never shows one, and is recorded without it if one differs.
func TestSecretsAreComparedAndNotShown(t *testing.T) {
	w := newWorld(t)
	w.Create()
	account := w.OK("POST", "/api/providers", `{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`).Get("id").Str
	hook := w.OK("POST", "/api/destinations", `{"kind":"webhook","name":"h","settings":{"url":"https://hooks.example.com/x?token=0123456789abcdef"}}`).Get("id").Str
	body := `{"accounts":{"A":{"apiKey":" sk-0123456789abcdefghij\n","accessToken":"x"},"none":{"apiKey":""}},
		"destinations":{"D":{"url":"https://HOOKS.example.com/x?token=0123456789abcdef"}}}`
	got := w.OK("POST", "/api/compare", strings.NewReplacer(`"A"`, `"`+account+`"`, `"D"`, `"`+hook+`"`).Replace(body))
	for path, want := range map[string]bool{"accounts." + account + ".apiKey": true, "accounts." + account + ".accessToken": false,
		"accounts.none.apiKey": false, "destinations." + hook + ".url": true} {
		if v := got.Get(path); !v.Exists() || v.Bool() != want {
			t.Errorf("%s is %s, want %v in %s", path, v.Raw, want, got.Raw)
		}
	}
	w.OK("POST", "/api/compare", `{"accounts":{"`+account+`":{"apiKey":"sk-0123456789abcdefghij"}}}`) // teaches nothing: no record
	other := w.OK("POST", "/api/compare", `{"accounts":{"`+account+`":{"apiKey":"sk-0123456789abcdefghik"}}}`)
	if other.Get("accounts." + account + ".apiKey").Bool() {
		t.Errorf("another secret: %s", other.Raw)
	}
	audit := w.OK("GET", "/api/audit", "")
	if n := strings.Count(audit.Raw, "POST /api/compare"); n != 2 || strings.Contains(audit.Raw+got.Raw+other.Raw, "0123456789abcdef") {
		t.Errorf("%d records of comparisons, want 2: %s", n, audit.Raw)
	}
}

// Guesses are limited; comparisons that find the stored secret are not.
func TestWrongComparisonsAreLimited(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OK("POST", "/api/providers", `{"provider":"openai","apiKey":"sk-0123456789abcdefghij"}`).Get("id").Str
	compare := func(key string) int {
		status, _ := w.API("POST", "/api/compare", `{"accounts":{"`+id+`":{"apiKey":"`+key+`"}}}`)
		return status
	}
	for i := range manage.CompareMost + 1 {
		if status := compare("sk-0123456789abcdefghij"); status != 200 {
			t.Fatalf("the stored secret, call %d: %d", i+1, status)
		}
	}
	for i := range manage.CompareMost + 2 {
		want := 200
		if i >= manage.CompareMost {
			want = 429
		}
		if status := compare("another"); status != want {
			t.Fatalf("another secret, call %d: %d, want %d", i+1, status, want)
		}
	}
	w.Clock.Add(time.Minute)
	if status := compare("another"); status != 200 {
		t.Errorf("a minute later: %d", status)
	}
}
