package machine

import (
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// remove deletes the machine: no call finds it any more. It can be restored for
// storage.RestorableFor; with now it is erased at once, also if it was deleted before.
//
//	delete {now} → 204
func (o *Object) remove(r *storage.Call) (any, error) {
	now := gjson.GetBytes(r.Body, "now").Bool()
	there := func() bool { return r.Exists() || now && r.Meta.DeletedAt > 0 }
	if !there() {
		return nil, storage.ErrNoMachine()
	}
	if err := o.intend(r, machineRow{State: deleting, Now: now}); err != nil {
		return nil, err
	}
	if !there() {
		return nil, storage.ErrNoMachine()
	}
	var err error
	if now {
		err = r.EraseMachine()
	} else {
		r.Buffer.(*turn).settle()
		if err = r.DeleteMachine(); err == nil {
			r.Audit("operator", "DELETE /api/machines/{id}", r.ID, nil)
		}
	}
	return storage.Reply{Status: 204, Body: struct{}{}}, err
}

// restore restores a deleted machine. The registry knows of it first.
//
//	restore → {machineId, name, createdAt}
func (o *Object) restore(r *storage.Call) (any, error) {
	if !r.Restorable() {
		return nil, errNotDeleted()
	}
	if err := o.intend(r, machineRow{State: restoring}); err != nil {
		return nil, err
	}
	if !r.Restorable() {
		return nil, errNotDeleted()
	}
	r.RestoreMachine()
	r.Audit("operator", "POST /api/machines/{id}/restore", r.ID, nil)
	return listedMachine{ID: r.ID, Name: r.Meta.Name, CreatedAt: r.Meta.CreatedAt}, nil
}

func errNotDeleted() error {
	return apierr.New(404, "machine_not_found", "No machine with this id was deleted in the last 7 days.")
}

// intend tells the registry what is to be done with the machine, and begins the turn again.
func (o *Object) intend(r *storage.Call, m machineRow) error {
	m.ID, m.Name, m.CreatedAt = r.ID, r.Meta.Name, r.Meta.CreatedAt
	err := o.tellRegistry(r, m)
	if err == nil {
		r.Reload(o.Now())
	}
	return err
}

// rename changes the name of the machine. The registry knows of it first.
func (o *Object) rename(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	return o.RenameMachine(r, func(name string) error {
		return o.tellRegistry(r, machineRow{ID: r.ID, Name: name, CreatedAt: r.Meta.CreatedAt, State: renaming})
	})
}

// existing reports whether the machine is there, to the registry also one that can be restored.
//
//	exists {deleted} → machineRow
func (o *Object) existing(r *storage.Call) (any, error) {
	if !r.Exists() && (r.Meta.DeletedAt == 0 || !gjson.GetBytes(r.Body, "deleted").Bool()) {
		return nil, storage.ErrNoMachine()
	}
	return registered(r.Tx), nil
}

// registered returns the machine as the registry has to list it.
func registered(t *storage.Tx) machineRow {
	m := machineRow{ID: t.ID, Name: t.Meta.Name, CreatedAt: t.Meta.CreatedAt, State: active}
	switch {
	case t.Meta.DeletedAt > 0:
		m.State, m.DeletedAt = deleted, t.Meta.DeletedAt
	case t.Meta.Deleted:
		m.State = gone
	}
	return m
}

// tellRegistry writes an intent. Without it nothing is done.
func (o *Object) tellRegistry(r *storage.Call, m machineRow) error {
	ctx, err := r.Outside()
	if err != nil {
		return err
	}
	status, _, err := o.Objects.Call(ctx, rpc.RegistryID, "put", storage.Encode(m))
	if err == nil && status == 200 {
		return nil
	}
	e := apierr.New(503, "unavailable", "The list of machines cannot be reached at the moment. Try again in a moment.")
	e.RetryAfter, e.Err = time.Second, err
	return e
}

// create creates the machine. The registry knows of it first.
func (o *Object) create(r *storage.Call) (any, error) {
	return o.CreateMachine(r, func(name string) error {
		return o.tellRegistry(r, machineRow{ID: r.ID, Name: name, State: creating})
	})
}
