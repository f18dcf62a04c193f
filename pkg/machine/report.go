package machine

import (
	"encoding/json"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// report takes in what an isolate has seen. Everything in it is one turn.
func (o *Object) report(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var rep rpc.Report
	if len(r.Body) > rpc.MaxReport || json.Unmarshal(r.Body, &rep) != nil {
		return nil, apierr.Invalid("", "The report is not readable.")
	}
	if max(len(rep.Cooldowns), len(rep.Cleared), len(rep.Errors), len(rep.Keys), len(rep.Usage), len(rep.Requests), len(rep.Refusals)) > rpc.MaxReportEntries {
		return nil, apierr.Invalid("", "The report has too many entries.")
	}
	known := map[string]bool{}
	has := func(conn string) bool {
		ok, asked := known[conn]
		if !asked {
			ok = rpc.IsRowID(conn)
			if ok {
				_, ok = r.Get(storage.ConnectionPrefix + conn)
			}
			known[conn] = ok
		}
		return ok
	}
	added := map[string]bool{} // connections with a new row
	for _, c := range rep.Cooldowns {
		if has(c.ConnectionID) && r.AddCooldown(c) {
			added[c.ConnectionID] = true
		}
	}
	if len(added) > 0 {
		r.BoundCooldowns(added)
	}
	for _, c := range rep.Cleared {
		if has(c.ConnectionID) {
			r.ClearCooldown(c)
		}
	}
	for _, e := range rep.Errors {
		if has(e.ConnectionID) {
			r.SetError(e.ConnectionID, e.Text)
		}
	}
	for _, f := range rep.Refusals {
		if has(f.ConnectionID) {
			r.AddRefusal(f)
		}
	}
	r.AddOutcomes(&rep, has)
	limited := r.CountRequests(rep.Keys)
	r.AddUsage(rep.Usage)
	r.AddRequests(rep.Requests)
	return rpc.Reported{Generation: r.Meta.Generation, Limited: limited}, nil
}
