package cli

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

func TestNamesMatch(t *testing.T) {
	rows := gjson.Parse(`[{"id":"aaaa1","name":"Main"},{"id":"aaaa2","name":"test"},{"id":"bbbb1","name":"Test"},{"id":"bbbb2","name":"cccc"},{"id":"cccc3","name":"x"}]`).Array()
	for text, want := range map[string]string{
		"aaaa1": "aaaa1", "Main": "aaaa1", "main": "aaaa1", "test": "aaaa2", "Test": "bbbb1", "bbbb1": "bbbb1", "cccc": "bbbb2", "CCCC": "bbbb2", "cccc3": "cccc3",
		"TEST": "", "aaaa": "", "mai": "", "": "",
	} {
		if got, err := match("account", text, rows, "/api/providers"); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// The words of the API are its own: a list has those of people.
func TestHealthIsInWords(t *testing.T) {
	a := &app{}
	rows := gjson.Parse(`[{"name":"Main","provider":"openai","health":"key_refused"}]`).Array()
	if text := string(a.render(a.rows(accountColumns, rows), false)); !strings.Contains(text, "key refused") {
		t.Error(text)
	}
}

// A list of requests has the date of those of other days.
func TestRequestsOfOtherDaysHaveTheirDate(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)
	a := &app{Host: Host{Now: func() time.Time { return now }}}
	for at, want := range map[time.Time]string{now.Add(-time.Hour): "11:00:00", now.AddDate(0, 0, -2): "11-27 12:00"} {
		if got := clock(a, gjson.Parse(strconv.FormatInt(at.UnixMilli(), 10))).text; got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

// The id of a server of one's own has random digits. A list of providers without accounts or models names it after
// its account, as two may have the same API.
func TestProvidersAreNamed(t *testing.T) {
	a := &app{known: map[string]string{"openai-compatible-0123abcd": "Local (OpenAI-compatible)"}}
	for _, tt := range []struct {
		columns   []column
		row, want string
	}{
		{accountColumns, `{"name":"Local","provider":"openai-compatible-0123abcd"}`, "OpenAI-compatible"},
		{accountColumns, `{"name":"Main","provider":"openai"}`, "OpenAI"},
		{accountColumns, `{"name":"Later","provider":"of-a-later-version"}`, "of-a-later-version"},
		{timelineColumns, `{"connectionId":"1","provider":"openai-compatible-0123abcd"}`, "OpenAI-compatible"},
		{[]column{usageBy["provider"]}, `{"provider":"openai-compatible-0123abcd"}`, "Local (OpenAI-compatible)"},
		{[]column{usageBy["provider"], usageBy["model"]}, `{"provider":"openai-compatible-0123abcd","model":"local/echo"}`, "OpenAI-compatible"},
	} {
		text := string(a.render(a.rows(tt.columns, gjson.Parse("["+tt.row+"]").Array()), true))
		if !strings.Contains(text, tt.want) || tt.want == "OpenAI-compatible" && (strings.Contains(text, "0123abcd") || strings.Contains(text, "(")) {
			t.Errorf("%s: %q has no %q", tt.row, text, tt.want)
		}
	}
	var out findings
	out.accounts(a, gjson.Parse(`[{"name":"Local","provider":"openai-compatible-0123abcd","health":"unreachable"}]`).Array())
	if !strings.HasPrefix(out[0].text.text, "account Local (OpenAI-compatible): unreachable") {
		t.Errorf("%v", out)
	}
}

// An account that failed once, or is limited for a while, is called again: a warning says so.
func TestDegradedAccountsWork(t *testing.T) {
	for health, want := range map[string]bool{"ready": true, "failing": true, "limited": true, "key_refused": false, "unreachable": false} {
		var out findings
		out.accounts(new(app), gjson.Parse(`[{"name":"Main","provider":"openai","health":"`+health+`"}]`).Array())
		works := true
		for _, f := range out {
			works = works && f.word != failure
		}
		if works != want || health != "ready" && out[0].word != warning {
			t.Errorf("%s: %v", health, out)
		}
	}
}

// The state of an account is what it lacks before what its last call found, whose age is said.
func TestAccountStateHasItsAge(t *testing.T) {
	rows := gjson.Parse(`[{"name":"a","provider":"openai","health":"unreachable","status":"active","healthAt":1795978952494},
		{"name":"b","provider":"openai","health":"untested","status":"needs_credential"}]`).Array()
	if got := countAccounts(rows); got != "1 unreachable, 1 needs credential" {
		t.Error(got)
	}
	var out findings
	out.accounts(&app{Host: Host{Now: func() time.Time { return time.UnixMilli(1795978952494).Add(5 * time.Minute) }}}, rows)
	for i, want := range []string{"account a (OpenAI): unreachable, seen 5 minutes ago; weir accounts test a tests it again",
		"account b (OpenAI): needs credential; weir accounts rotate b replaces its credential"} {
		if out[i].text.text != want {
			t.Errorf("%q, want %q", out[i].text.text, want)
		}
	}
}

// A regression: status counted paused accounts as ready, above the line that no account works.
func TestPausedAccountsAreNotReady(t *testing.T) {
	rows := gjson.Parse(`[{"name":"a","health":"ready","status":"inactive"},{"name":"b","health":"untested","status":"inactive"}]`).Array()
	var out findings
	if out.accounts(new(app), rows); countAccounts(rows) != "2 paused" || len(out) != 1 || out[0].word != failure ||
		out[0].text.text != "every account is paused; weir accounts resume NAME resumes one" {
		t.Errorf("%s, %v", countAccounts(rows), out)
	}
	rows = append(rows, gjson.Parse(`{"name":"c","health":"unreachable","status":"active"}`))
	if got := countAccounts(rows); got != "2 paused, 1 unreachable" {
		t.Error(got)
	}
}

// A budget in dollars does not count calls without a price, and limits nothing if all are.
func TestDoctorWarnsOfUnpricedCallsOfABudget(t *testing.T) {
	for budget, want := range map[string]bool{
		`{"name":"b","unit":"usd","limit":5,"unpriced":"pass","unpricedCalls":2}`:   true,
		`{"name":"b","unit":"usd","limit":5,"unpriced":"pass"}`:                     false,
		`{"name":"b","unit":"usd","limit":5,"unpriced":"refuse","unpricedCalls":2}`: false, // they were before it refused
	} {
		a, got := &app{Host: Host{Now: time.Now}}, 0
		for _, f := range a.judge(gjson.Parse(`{"budgets":{"data":[` + budget + `]}}`)) {
			if f.word == warning && f.text.text == "budget b does not count calls without a price, 2 so far; weir settings set modelPrices=… sets "+
				"prices, weir budgets set b --unpriced refuse refuses such calls" {
				got++
			}
		}
		if got == 1 != want {
			t.Errorf("%s: %d warnings", budget, got)
		}
	}
}
