package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// An amount of which a part is not known is a lower bound, and one of which nothing is known is no 0.
func TestAmountsSayWhatIsUnknown(t *testing.T) {
	spentColumns := []column{{title: "MONTH", show: spentMonth}}
	for _, tt := range []struct {
		columns        []column
		row, cell, out string
	}{
		{usageColumns, `{"costUsd":1.234}`, "COST", "$1.23"},
		{usageColumns, `{}`, "COST", "$0.00"},
		{usageColumns, `{"costUsd":0.0012,"unpricedAttempts":2}`, "COST", "≥ $0.0012"},
		{usageColumns, `{"costUsd":0.063}`, "COST", "$0.063"},
		{usageColumns, `{"costUsd":0.5}`, "COST", "$0.50"},
		{usageColumns, `{"costUsd":0.000016}`, "COST", "$0.000016"},
		{usageColumns, `{"costUsd":0.07988,"unpricedAttempts":2}`, "COST", "≥ $0.0798"},
		{usageColumns, `{"costUsd":0.29,"unpricedAttempts":2}`, "COST", "≥ $0.29"},
		{usageColumns, `{"costUsd":1.239,"unpricedAttempts":2}`, "COST", "≥ $1.23"},
		{usageColumns, `{"costUsd":0.00001699,"unpricedAttempts":2}`, "COST", "≥ $0.000016"},
		{usageColumns, `{"unpricedAttempts":2}`, "COST", "unknown"},
		// A half is rounded up, as in the dashboard, whatever float is the nearest.
		{usageColumns, `{"costUsd":0.00015}`, "COST", "$0.0002"},
		{usageColumns, `{"costUsd":0.00025}`, "COST", "$0.0003"},
		{usageColumns, `{"costUsd":1.005}`, "COST", "$1.01"},
		{usageColumns, `{"costUsd":0.000095}`, "COST", "$0.000095"},
		{usageColumns, `{"costUsd":0.99999}`, "COST", "$1.00"},
		{usageColumns, `{"costUsd":123456.785}`, "COST", "$123456.79"},
		// Estimated tokens and their cost are marked, as in the dashboard.
		{usageColumns, `{"costUsd":1.5,"inputTokens":9,"estimatedAttempts":1}`, "COST", "≈ $1.50"},
		{usageColumns, `{"costUsd":1.5,"unpricedAttempts":1,"estimatedAttempts":1}`, "COST", "≥ $1.50"},
		{usageColumns, `{"inputTokens":9,"estimatedAttempts":1}`, "INPUT", "≈ 9"},
		{usageColumns, `{"inputTokens":9,"outputTokens":0,"estimatedAttempts":1}`, "OUTPUT", "0"},
		{usageColumns, `{"inputTokens":9}`, "INPUT", "9"},
		{requestColumns, `{"costUsd":1.5,"priced":true,"outputTokens":9,"estimated":true}`, "COST", "≈ $1.50"},
		{requestColumns, `{"costUsd":1.5,"priced":true,"outputTokens":9,"estimated":true}`, "OUTPUT", "≈ 9"},
		{requestColumns, `{}`, "OUTPUT", ""},
		{usageColumns, `{"providerFailed":2,"noAccount":3}`, "FAILED", "5"},
		{spentColumns, `{"spentMonthUsd":0,"unpricedAttempts":2}`, "MONTH", "unknown"},
		{spentColumns, `{"spentMonthUsd":1,"unpricedAttempts":2}`, "MONTH", "≥ $1.00"},
		{spentColumns, `{"spentMonthUsd":0,"unpricedAttempts":2}`, "MONTH", "unknown"},
		{spentColumns, `{"spentMonthUsd":0}`, "MONTH", "$0.00"},
		{spentColumns, `{}`, "MONTH", ""},
		{requestColumns, `{"costUsd":1.234,"priced":true,"inputTokens":9}`, "COST", "$1.23"},
		{requestColumns, `{"priced":true,"inputTokens":9}`, "COST", "$0.00"},
		{requestColumns, `{"costUsd":1.234,"inputTokens":9}`, "COST", "≥ $1.23"},
		{requestColumns, `{"inputTokens":9}`, "COST", "unknown"},
		{requestColumns, `{}`, "COST", ""}, // not sent
		{budgetColumns, `{"unit":"usd","spent":1.234,"limit":20}`, "SPENT", "$1.23"},
		{budgetColumns, `{"unit":"usd","spent":1.234,"limit":20,"unpricedCalls":1}`, "SPENT", "≥ $1.23"},
		{budgetColumns, `{"unit":"usd","spent":0,"limit":20,"unpricedCalls":1}`, "SPENT", "≥ $0.00"},
		{budgetColumns, `{"unit":"usd","spent":0,"limit":20}`, "LIMIT", "$20.00"},
		{budgetColumns, `{"unit":"tokens","spent":12000,"limit":20000}`, "SPENT", "12000"},
		{budgetColumns, `{"unit":"tokens","spent":12000,"limit":20000}`, "LIMIT", "20000"},
		{timelineColumns, `{"total":{"latencyP50Ms":16,"latencyP95Ms":19}}`, "P50", "≤ 16 ms"},
		{timelineColumns, `{"total":{"latencyP50Ms":16,"latencyP95Ms":19}}`, "P95", "≈ 19 ms"},
	} {
		row := (&app{Host: Host{Now: time.Now}}).rows(tt.columns, []gjson.Result{gjson.Parse(tt.row)}).rows[0]
		for i, c := range tt.columns {
			if c.title == tt.cell && strings.TrimSpace(row[i].text) != tt.out {
				t.Errorf("%s: %s %q, want %q", tt.row, tt.cell, row[i].text, tt.out)
			}
		}
	}
}

// A group of requests without a key, an account or another name has words for that.
func TestUsageNamesWhatHasNoName(t *testing.T) {
	for by, want := range map[string]string{
		"key": "no key", "account": "no account", "model": "unknown model", "provider": "no provider", "endpoint": "other", "tool": "unknown tool", "person": "no person",
	} {
		for row, want := range map[string]string{"{}": want, `{"keyId":"x","connectionId":"x","model":"x","provider":"x","endpoint":"x","tool":"x","tag":"x"}`: "x"} {
			if got := new(app).rows([]column{usageBy[by]}, []gjson.Result{gjson.Parse(row)}).rows[0][0].text; got != want {
				t.Errorf("%s of %s: %q, want %q", by, row, got, want)
			}
		}
	}
}

// Milliseconds are said as such: a fast answer took no 0.00s.
func TestDurationsHaveTheirUnit(t *testing.T) {
	for ms, want := range map[string]string{"0": "0 ms", "4": "4 ms", "999": "999 ms", "1000": "1.0 s", "83400": "83.4 s", "": ""} {
		if got := seconds(nil, gjson.Parse(ms)).text; got != want {
			t.Errorf("%s: %q, want %q", ms, got, want)
		}
	}
}

// The amounts of a key whose calls have no price are unknown, not $0.00.
func TestDescribedAmountsAreThoseOfTheTables(t *testing.T) {
	for row, want := range map[string]string{
		`{"spentMonthUsd":0,"unpricedAttempts":8}`:             "Spent this month   unknown\nUnpriced attempts  8\n",
		`{"unit":"usd","limit":100,"spent":0.5}`:               "Unit   usd\nLimit  $100.00\nSpent  $0.50\n",
		`{"unit":"tokens","limit":500000,"authType":"apikey"}`: "Unit        tokens\nLimit       500000\nCredential  API key\n",
	} {
		var out strings.Builder
		if err := (&app{Host: Host{Stdout: &out}}).describe(t.Context(), nil, gjson.Parse(row)); err != nil || out.String() != want {
			t.Errorf("%s: %v %q, want %q", row, err, out.String(), want)
		}
	}
}

// A key or an account that is gone has the last name that the audit log has.
func TestGoneNamesComeFromTheAuditLog(t *testing.T) {
	a := &app{known: map[string]string{"k1": "laptop", "k2": ""}, lastName: func(id string) string {
		return map[string]string{"k3": "old (revoked)"}[id]
	}}
	for id, want := range map[string]string{"k1": "laptop", "k2": "k2", "k3": "old (revoked)", "k4": "k4"} {
		if got := named(a, gjson.Parse(`"`+id+`"`)).text; got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	row := gjson.Parse(`{"provider":"openai-compatible-0123abcd"}`)
	if got := providerOf(a, row).text; got != "OpenAI-compatible (deleted)" {
		t.Error(got)
	}
}
