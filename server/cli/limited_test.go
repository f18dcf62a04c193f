package cli

import (
	"testing"

	"github.com/tidwall/gjson"
)

// The budget of a person bounds the keys of that person alone.
func TestPersonalBudgetLimitsKeysOfPerson(t *testing.T) {
	budgets := gjson.Parse(`[{"tag":"person=p_1"},{"tag":"person=p_3","tool":"codex"}]`).Array()
	for key, want := range map[string]bool{`{"person":"p_1"}`: true, `{"person":"p_2"}`: false, `{"person":"p_3"}`: false, `{}`: false} {
		if got := limited(gjson.Parse(key), budgets); got != want {
			t.Errorf("%s: limited %v, want %v", key, got, want)
		}
	}
}

func TestBudgetNamesWhatItAppliesTo(t *testing.T) {
	a := &app{known: map[string]string{"k": "laptop", "p_1": "Ada"}}
	for row, want := range map[string]string{
		`{}`:                 "all requests",
		`{"keyId":"k"}`:      "laptop",
		`{"tag":"team=web"}`: "team=web",
		`{"tag":"person=p_1","tool":"codex","models":["openai/*","a/b"]}`: "Ada, codex, openai/*, a/b",
	} {
		if got := appliesTo(a, gjson.Parse(row)).text; got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

func TestLastErrorIsListedOfWhatDoesNotWork(t *testing.T) {
	for row, want := range map[string]string{
		`"status":"active","health":"ready"`:        "", // an account
		`"status":"inactive","health":"ready"`:      "",
		`"status":"needs_sign_in","health":"ready"`: "bad",
		`"status":"active","health":"key_refused"`:  "bad",
		`"status":"active"`:                         "", // a destination
		`"status":"failing"`:                        "bad",
		`"status":"disabled"`:                       "bad",
	} {
		if got := lastError(nil, gjson.Parse(`{"lastError":"bad",`+row+`}`)).text; got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}
