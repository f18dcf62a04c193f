package manage

import (
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

// Policy returns what the addresses of destinations are judged by.
func (o *Manager) Policy() deliver.Policy {
	return deliver.Policy{AllowPrivate: o.AllowPrivate, OwnHosts: o.OwnHosts}
}

// OpenDestination opens the secrets of a destination.
func (o *Manager) OpenDestination(machineID string, row *storage.Destination) (*deliver.Opened, error) {
	d := &deliver.Opened{MachineID: machineID, Destination: *row, Values: map[string]secret.Secret{},
		Key: o.WebhookKey(machineID, row.ID), Policy: o.Policy(), Now: o.Now()}
	for field, value := range row.Options {
		d.Values[field] = secret.New(value)
	}
	for field, sealed := range row.Secrets {
		plain, err := o.Keyring.Open(machineID, row.SealedAs(), field, sealed)
		if err != nil {
			return nil, err
		}
		d.Values[field] = plain
	}
	return d, nil
}

// Deliver sends an item and returns what its answer means. The turn is another one
// afterwards.
func (o *Manager) Deliver(r *storage.Call, d *deliver.Opened, item *storage.Delivery) storage.Result {
	ctx, err := r.Outside()
	if err != nil {
		return storage.Result{Verdict: storage.Again, Why: "the storage has failed"}
	}
	if k := deliver.KindOf(d.Kind); k != nil && k.Send != nil {
		result := k.Send(ctx, o.Dialer, d, item)
		r.Reload(o.Now())
		return result
	}
	req, err := d.RequestOf(item)
	if err != nil {
		return storage.Result{Verdict: storage.Refused, Why: err.Error()}
	}
	resp, err := upstream.Do(ctx, o.Do, req)
	result := d.Judge(resp, err)
	result.Lost = min(result.Lost, max(item.Entries, 1)) // the answer may state anything
	r.Reload(o.Now())
	return result
}
