package endpoint

import (
	"testing"

	"weir/pkg/auth"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

type rows []usage.Row

func (r *rows) Use(_ *snapshot.Machine, row usage.Row) { *r = append(*r, row) }

// Each attempt that was made is one row, whatever came of it.
func TestTally(t *testing.T) {
	var got rows
	c := &auth.Call{Request: &httpmsg.Request{}}
	c.Trace.Route, c.Trace.KeyID, c.Trace.Attempts = "/v1/search", "k1", 2 // of an earlier part of the call
	to := &routing.Target{Provider: &provider.Descriptor{ID: "exa"}, Alias: "e", Model: "search"}
	tally := Tally{Meter: &got, Call: c}
	attempt := func(conn string, made bool) {
		tally.Begin(to, &store.Connection{ID: conn})
		if made {
			c.Trace.Attempts++
		}
	}
	attempt("a", true)
	attempt("b", false) // it could not be built
	attempt("c", true)
	tally.Done(Costs(0.25, true))
	tally.Failed(apierr.New(500, "", "x")) // what is noted is noted once
	attempt("d", true)
	tally.Failed(apierr.New(502, "", "x"))
	attempt("e", true)
	tally.Failed(apierr.New(499, "", "the client left"))
	want := rows{
		{ConnectionID: "a", Errors: 1}, {ConnectionID: "c", CostUSD: 0.25}, {ConnectionID: "d", Errors: 1},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		w := want[i]
		w.KeyID, w.Provider, w.Model, w.Endpoint, w.Requests = "k1", "exa", "e/search", "/v1/search", 1
		if got[i] != w {
			t.Errorf("got %+v, want %+v", got[i], w)
		}
	}
	var row usage.Row
	row.Requests = 1
	Costs(0, false)(&row)
	if row.Unpriced != 1 {
		t.Error("an unknown cost counts as nothing")
	}
	tally = Tally{Call: c}
	attempt("f", true)
	tally.Done(Costs(0, true)) // without a meter nothing happens
}
