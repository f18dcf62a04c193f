package machine

import (
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

// remove deletes the machine: its rows go, its replica follows by alarm. A
// mark of the deletion stays, with the seed documents that were imported, since
// KV may return them for long.
func (o *Object) remove(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	if err := o.tellRegistry(r, machineRow{ID: r.ID, Name: r.Meta.Name, CreatedAt: r.Meta.CreatedAt,
		State: deleting}); err != nil {
		return nil, err
	}
	r.Reload(o.Now())
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	if err := r.DropCaptures(); err != nil {
		return nil, err
	}
	if err := r.DropLogs(); err != nil {
		return nil, err
	}
	r.Wipe()
	r.Touch()
	r.Meta.Deleted, r.Meta.Name, r.Meta.RefreshAt, r.Meta.PruneAt, r.Meta.EraseAt = true, "", 0, 0, 0
	r.Meta.Unregistered, r.Meta.RegisterFrom, r.Meta.RegisterFail = true, r.Now, 0
	r.Meta.AuditBase = r.Meta.AuditHash
	r.Audit("operator", "DELETE /api/machines/{id}", r.ID, nil)
	return storage.Reply{Status: 204, Body: struct{}{}}, nil
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

// existing reports to the registry whether the machine is there.
func (o *Object) existing(r *storage.Call) (any, error) {
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	return machineRow{ID: r.ID, Name: r.Meta.Name, CreatedAt: r.Meta.CreatedAt}, nil
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
	e := apierr.New(503, "unavailable", "The list of machines cannot be reached at the moment.")
	e.RetryAfter, e.Err = time.Second, err
	return e
}

// create creates the machine. The registry knows of it first.
func (o *Object) create(r *storage.Call) (any, error) {
	return o.CreateMachine(r, func(name string) error {
		return o.tellRegistry(r, machineRow{ID: r.ID, Name: name, State: creating})
	})
}
