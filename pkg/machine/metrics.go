package machine

import (
	"encoding/json"

	"weir/pkg/machine/metrics"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// metrics returns the metrics of the machine, with what is buffered. That is written first:
// a counter that was shown must not fall when the program is killed.
func (o *Object) metrics(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	var ask rpc.MetricsAsk
	if json.Unmarshal(r.Body, &ask) != nil {
		return nil, apierr.Invalid("", "The question is not readable.")
	}
	r.Flush = true
	return metrics.Families(r.Tx, metrics.Options{Keys: ask.Keys, Conventions: ask.Conventions, Zone: o.Zone(r.Tx)}), nil
}
