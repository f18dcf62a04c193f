package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"weir/pkg/catalog"
	"weir/pkg/llm"
)

// priced finds a model with all four prices, and one without the last two.
func priced(t *testing.T, alias string, whole bool) (catalog.Model, catalog.Rates) {
	t.Helper()
	for _, m := range catalog.Models(alias) {
		if r, ok := m.Price.Rates(); ok && m.Kind == catalog.LLM && r.Input > 0 && r.Output > 0 && whole == (r.CacheRead >= 0 && r.CacheWrite >= 0) {
			return m, r
		}
	}
	t.Fatalf("%s: no such model", alias)
	return catalog.Model{}, catalog.Rates{}
}

func TestCost(t *testing.T) {
	full, r := priced(t, "anthropic", true)
	part, _ := priced(t, "openai", false)
	tests := []struct {
		name, alias, model string
		u                  llm.Usage
		want               float64
		known              bool
	}{
		{"every_part_has_its_rate", "anthropic", full.ID, llm.Usage{Input: 3000, Output: 200, CacheRead: 1000, CacheWrite: 500, Known: true},
			(1500*r.Input + 200*r.Output + 1000*r.CacheRead + 500*r.CacheWrite) / 1e6, true},
		{"reasoning_is_part_of_the_output", "anthropic", full.ID, llm.Usage{Output: 200, Reasoning: 150, Known: true}, 200 * r.Output / 1e6, true},
		{"nothing_used_costs_nothing", "anthropic", full.ID, llm.Usage{Known: true}, 0, true},
		{"usage_that_is_not_known", "anthropic", full.ID, llm.Usage{Input: 1}, 0, false},
		{"a_model_that_is_not_known", "anthropic", "no-such-model", llm.Usage{Input: 1, Known: true}, 0, false},
		{"a_rate_that_is_not_known_is_not_guessed", "openai", part.ID, llm.Usage{Input: 10, CacheRead: 5, CacheWrite: 5, Known: true}, 0, false},
	}
	for _, tt := range tests {
		got, known := Cost(tt.alias, tt.model, tt.u)
		if known != tt.known || math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: got %v %v, want %v %v", tt.name, got, known, tt.want, tt.known)
		}
	}
}

func TestAddMergesRowsOfOneKind(t *testing.T) {
	var list []Row
	row := func(model string) Row {
		r := Row{KeyID: "k", ConnectionID: "c", Provider: "p", Model: model, Endpoint: "/e", Requests: 1, LatencyMs: 30, Calls: 1, FailedCalls: 1}
		r.Price("openai", "no-such-model", llm.Usage{Input: 10, Output: 2, CacheRead: 3, CacheWrite: 1, Reasoning: 1, Known: true})
		return r
	}
	list = Add(Add(Add(list, row("a")), row("b")), row("a"))
	want := Row{
		KeyID: "k", ConnectionID: "c", Provider: "p", Model: "a", Endpoint: "/e",
		Requests: 2, InputTokens: 20, OutputTokens: 4, ReasoningTokens: 2, CacheReadTokens: 6, CacheWriteTokens: 2,
		LatencyMs: 60, Calls: 2, FailedCalls: 2, Unpriced: 2,
	}
	if len(list) != 2 || list[0] != want {
		t.Errorf("got %+v, want %+v first of two", list, want)
	}
	for i := range 3 * maxRows {
		list = Add(list, row(fmt.Sprint(i)))
	}
	var requests int64
	for _, r := range list {
		requests += r.Requests
	}
	if len(list) > maxRows+1 || requests != 3*maxRows+3 {
		t.Errorf("%d rows of %d requests", len(list), requests)
	}
}

// A column that is added to Row must be added up, bounded and shown.
func TestEveryColumnIsAddedBoundedAndShown(t *testing.T) {
	kind := reflect.TypeFor[Row]()
	for i := range kind.NumField() {
		f := kind.Field(i)
		set := func(n int64) (r Row) {
			switch v := reflect.ValueOf(&r).Elem().Field(i); f.Type.Kind() {
			case reflect.Int64:
				v.SetInt(n)
			case reflect.Float64:
				v.SetFloat(float64(n))
			case reflect.String:
				v.SetString(strings.Repeat("x", int(n)))
			default:
				t.Fatalf("Row.%s: no test for a %s", f.Name, f.Type)
			}
			return r
		}
		one := set(7)
		shown, _ := json.Marshal(one.View(""))
		blank, _ := json.Marshal(new(Row).View(""))
		if bytes.Equal(shown, blank) {
			t.Errorf("Row.%s is not in View", f.Name)
		}
		if f.Type.Kind() == reflect.String {
			if long := set(maxName + 1); long.Valid() {
				t.Errorf("Row.%s: an id of %d bytes is valid", f.Name, maxName+1)
			}
			if other := set(3); one.sameKind(&other) || one.Kind() != one {
				t.Errorf("Row.%s does not distinguish kinds", f.Name)
			}
			continue
		}
		if negative := set(-1); negative.Valid() {
			t.Errorf("Row.%s: a negative count is valid; is it missing in counts?", f.Name)
		}
		sum := set(1)
		if sum.Add(&one); sum != set(8) {
			t.Errorf("Row.%s is not added up; is it missing in counts?", f.Name)
		}
		if one.Kind() != (Row{}) {
			t.Errorf("Row.%s: a count is part of the kind", f.Name)
		}
	}
}

// The dashboard adds up and exports every column.
func TestDashboardHasEveryColumn(t *testing.T) {
	const page = "../../worker/dashboard/src/pages/usage/columns.ts"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	view := reflect.TypeFor[View]()
	for i := range view.NumField() {
		name, _, _ := strings.Cut(view.Field(i).Tag.Get("json"), ",")
		if k := view.Field(i).Type.Kind(); k != reflect.String && !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("%s: the column %q is missing", page, name)
		}
	}
}
