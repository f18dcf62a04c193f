package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"weir/pkg/llm"

	"weir/pkg/store"
)

func TestAddMergesRowsOfOneKind(t *testing.T) {
	var list []Row
	row := func(model string) Row {
		r := Row{KeyID: "k", ConnectionID: "c", Provider: "p", Model: model, Endpoint: "/e", Requests: 1, LatencyMs: 30, Calls: 1, FailedCalls: 1}
		r.Price("", &llm.Usage{Input: 10, Output: 2, CacheRead: 3, CacheWrite: 1, Reasoning: 1, Known: true}, nil)
		return r
	}
	list = Add(Add(Add(list, row("a")), row("b")), row("a"))
	want := Row{
		KeyID: "k", ConnectionID: "c", Provider: "p", Model: "a", Endpoint: "/e",
		Requests: 2, InputTokens: 20, OutputTokens: 4, ReasoningTokens: 2, CacheReadTokens: 6, CacheWriteTokens: 2,
		LatencyMs: 60, Calls: 2, FailedCalls: 2, Unpriced: 2,
	}
	want.Sizes[2], want.Sizes[outputSizes+1] = 2, 2 // up to 16, up to 4
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

// Keys, accounts without a model and endpoints do not let a list grow either.
func TestKindsOfAListAreBounded(t *testing.T) {
	var list []Row
	for i := range 5000 {
		list = Add(list, Row{KeyID: fmt.Sprint("k", i), Calls: 1})
		list = Add(list, Row{KeyID: fmt.Sprint("k", i), ConnectionID: fmt.Sprint("c", i), Calls: 1})
		list = Add(list, Row{Endpoint: fmt.Sprint("/", i), Calls: 1})
	}
	if len(list) > maxKindRows+1 {
		t.Errorf("%d rows", len(list))
	}
	for len(list) > 1 {
		var calls int64
		for _, r := range list {
			calls += r.Calls
		}
		if calls != 15_000 {
			t.Fatalf("%d rows of %d calls", len(list), calls)
		}
		list = Fold(list, len(list)/2)
		if len(list) == 2 {
			list = Fold(list, 0)
		}
	}
	if list[0].Kind() != (Row{}) || list[0].Calls != 15_000 {
		t.Errorf("got %+v", list)
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
			case reflect.Array:
				if at := v.Index(v.Len() - 1); at.CanInt() {
					at.SetInt(n)
				} else {
					at.SetUint(uint64(max(n, 0)))
				}
			case reflect.String:
				v.SetString(strings.Repeat("x", int(n)))
			default:
				t.Fatalf("Row.%s: no test for a %s", f.Name, f.Type)
			}
			return r
		}
		one := set(7)
		shown, _ := json.Marshal(one.View())
		blank, _ := json.Marshal(new(Row).View())
		if bytes.Equal(shown, blank) && f.Name != "Sizes" { // of metrics alone
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
		if negative := set(-1); negative != (Row{}) && negative.Valid() {
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
		if k := view.Field(i).Type.Kind(); k != reflect.String && k != reflect.Map && !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("%s: the column %q is missing", page, name)
		}
	}
}

func TestRefusalsAreAddedUp(t *testing.T) {
	var r Row
	for i, reason := range []string{store.RefusedByKeyLimit, store.RefusedByBudget, store.RefusedByConcurrency, store.RefusedByKey, store.RefusedByModel, store.RefusedByRequest} {
		for range i + 1 {
			r.Call(100, 0, store.Refused, reason)
		}
	}
	if r.Refused() != 21 || r.RefusedKeyLimit != 1 || r.RefusedRequest != 6 || r.FailedCalls != 21 || r.LatencyMs != 0 {
		t.Errorf("%d refusals of %+v", r.Refused(), r)
	}
}

func TestTimesOfCallsAreAddedUp(t *testing.T) {
	var r Row
	r.Call(100, 0, store.Succeeded, "")
	r.Call(50, 20, store.Succeeded, "")
	r.Call(30, 10, store.ProviderFailed, "")
	r.Call(5, 0, store.NoAccount, "")
	if r.LatencyMs != 180 || r.FirstTokenMs != 30 || r.FailedCalls != 2 {
		t.Errorf("got %+v", r)
	}
	if v := r.View(); v.Requests != 4 || v.Succeeded != 2 || v.ProviderFailed != 1 || v.NoAccount != 1 || v.FailedRequests != 2 || v.Refused != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestUsedStatesWhatIsKnownOfTheCost(t *testing.T) {
	for _, tt := range []struct {
		unpriced, estimated int64
		priced, guessed     bool
	}{{0, 0, true, false}, {1, 0, false, false}, {0, 1, true, true}} {
		r := Row{Requests: 1, Unpriced: tt.unpriced, Estimated: tt.estimated}
		if u := r.Used(); u.Priced != tt.priced || u.Estimated != tt.guessed {
			t.Errorf("%+v: %+v", tt, u)
		}
	}
}
