package manage

import (
	"encoding/json"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// RecordTest records the outcome of a connection test.
//
//	tested {connectionId, reason, status, text, place} → 200 {}; 404
//
// reason is "" for success, else a health of storage.
func (o *Manager) RecordTest(r *storage.Call) (any, error) {
	var c struct {
		ID     string `json:"connectionId"`
		Reason string `json:"reason"`
		Status int    `json:"status"`
		Text   string `json:"text"`
		Place  string `json:"place"`
	}
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	if json.Unmarshal(r.Body, &c) != nil || !rpc.IsRowID(c.ID) {
		return nil, rpc.ErrNoConnection()
	}
	if _, ok := r.Get(storage.ConnectionPrefix + c.ID); !ok {
		return nil, rpc.ErrNoConnection()
	}
	switch c.Reason {
	case "", storage.HealthKeyRefused, storage.HealthOutOfCredit, storage.HealthUnreachable, storage.HealthFailing,
		storage.HealthBlocked:
		r.SetHealth(c.ID, storage.Outcome{Reason: c.Reason, Status: c.Status, At: r.Now, Text: c.Text, Place: c.Place})
	}
	if c.Reason == "" {
		for _, row := range r.List(storage.CooldownPrefix + c.ID + ":") {
			var cool store.Cooldown
			if json.Unmarshal(row.Value, &cool) != nil {
				continue
			}
			// A limit of another model may still hold; the account as a whole has answered.
			is := storage.HealthOf(cool.Reason)
			if cool.Model == "" || is == storage.HealthKeyRefused || is == storage.HealthOutOfCredit {
				r.Observe()
				r.Del(row.Key)
			}
		}
	}
	return struct{}{}, nil
}

// wantsCredential reports whether the calls of a provider need a credential.
func wantsCredential(id string) bool {
	d := provider.Lookup(id)
	return d != nil && d.Auth.Scheme != provider.None && !d.Auth.Optional
}

// AdmitTest admits a connection test, and returns the machine for it.
//
//	probe {connectionId} → 200 store.Machine; 404; 429
func (o *Manager) AdmitTest(r *storage.Call) (any, error) {
	var c struct {
		ID string `json:"connectionId"`
	}
	var row storage.Connection
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	if json.Unmarshal(r.Body, &c) != nil || !rpc.IsRowID(c.ID) || !r.Load(storage.ConnectionPrefix+c.ID, &row) {
		return nil, rpc.ErrNoConnection()
	}
	if err := admitTest(r.Tx); err != nil {
		return nil, err
	}
	return r.Replica(), nil
}

// admitTest counts a test.
func admitTest(t *storage.Tx) error {
	return admit(t, &t.Meta.ProbeAt, &t.Meta.Probes, ProbeMost, "tests")
}

// admit counts what may be done most times in a minute, and refuses more.
func admit(t *storage.Tx, at *int64, count *int, most int, what string) error {
	minute := t.Now / storage.Minute
	if *at != minute {
		*at, *count = minute, 0
	}
	if *count >= most {
		e := apierr.New(429, "rate_limit_exceeded", "At most %d %s a minute.", most, what)
		e.RetryAfter = storage.Milliseconds((minute+1)*storage.Minute - t.Now)
		return e
	}
	*count++
	return nil
}

// ProbeMost is the number of tests of connections and destinations a minute
// (docs/reference/reliability.md, T18).
const ProbeMost = 10
