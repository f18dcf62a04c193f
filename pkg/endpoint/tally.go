package endpoint

import (
	"errors"

	"weir/pkg/auth"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
)

// Meter is the part of accounts.Pool that usage is noted with.
type Meter interface {
	Use(m *snapshot.Machine, row usage.Row)
}

// Tally notes the attempts of one call: a row for each that was answered or
// failed. Without a Meter it notes nothing.
type Tally struct {
	Meter   Meter
	Call    *auth.Call
	row     usage.Row // of the attempt under way
	counted int       // attempts that are noted, or were there before
	begun   bool
}

// Begin is for an endpoint's Build: an attempt begins, so the one before has
// failed.
func (t *Tally) Begin(to *routing.Target, conn *store.Connection) {
	if !t.begun {
		t.begun, t.counted = true, t.Call.Trace.Attempts
	}
	t.failed()
	t.row = usage.Row{
		KeyID: t.Call.Trace.KeyID, ConnectionID: conn.ID, Provider: to.Provider.ID, Model: to.ID(), Endpoint: t.Call.Trace.Route, Requests: 1,
	}
}

func (t *Tally) failed() {
	made := t.Call.Trace.Attempts
	if t.Meter == nil || made <= t.counted || t.row.Requests == 0 {
		return
	}
	t.counted, t.Call.Trace.Metered = made, true
	row := t.row
	row.Errors = 1
	t.Meter.Use(t.Call.Machine, row)
}

// Failed notes that the call has come to nothing, but not when the client has
// left.
func (t *Tally) Failed(err error) {
	var e *apierr.Error
	if !errors.As(err, &e) || e.Status != 499 {
		t.failed()
	}
}

// Done notes the attempt that was answered. fill completes its row: the cost in
// USD, or that it is not known.
func (t *Tally) Done(fill func(row *usage.Row)) {
	t.counted = t.Call.Trace.Attempts
	if t.Meter == nil || t.row.Requests == 0 {
		return
	}
	row := t.row
	fill(&row)
	t.Call.Trace.Metered, t.Call.Trace.Used = true, row.Used()
	t.Meter.Use(t.Call.Machine, row)
}

// Costs completes a row by what the provider said that the call cost, in USD as
// a number in JSON; "" is not known.
func Costs(usd float64, known bool) func(*usage.Row) {
	return func(row *usage.Row) {
		if row.CostUSD = usd; !known || usd < 0 {
			row.CostUSD, row.Unpriced = 0, row.Requests
		}
	}
}
