package machine

import (
	"fmt"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsoncodec"
)

// report takes what an isolate has seen. The use of budgets and of the limits of keys is
// written at once, the rest is buffered.
func (o *Object) report(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var rep rpc.Report
	if len(r.Body) > rpc.MaxReport || jsoncodec.Unmarshal(r.Body, &rep) != nil {
		return nil, apierr.Invalid("", "The report is not readable.")
	}
	if len(rep.Requests) > rpc.MaxReportRequests ||
		max(len(rep.Cooldowns), len(rep.Cleared), len(rep.Errors), len(rep.Usage), len(rep.Refusals), len(rep.Quotas),
			len(rep.Labels), len(rep.Networks)) > rpc.MaxReportEntries {
		return nil, apierr.Invalid("", "The report has too many entries.")
	}
	grants := o.take(r.Tx, rep.Budgets)
	if len(grants) > 0 {
		// Budgets hold also if the buffer is lost.
		if err := r.Commit(); err != nil {
			return nil, err
		}
		rep.Budgets = nil
	}
	if err := r.Err(); err != nil { // what is buffered must not be reported again
		return nil, err
	}
	for i := range rep.Refusals {
		rep.Refusals[i].Until = min(rep.Refusals[i].Until, r.Now+storage.KeepRefusal)
	}
	b := r.Buffer.(*turn)
	first := !b.waits()
	if !first && b.ofAnotherHour() {
		b.settle()
		r.Flush = true
	}
	observed := b.add(&rep, len(r.Body))
	if b.due() {
		b.settle()
		r.Flush = true
	}
	if err := r.Commit(); err != nil {
		if first { // the caller reports it again
			b.discard()
			return nil, err
		}
		o.WriteLog(fmt.Sprintf("machine %s: report: %v", r.ID, err))
	}
	r.Settled = true
	return rpc.Reported{Observed: observed, Budgets: grants}, nil
}
