package machine

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// create makes the machine with its first key. The registry knows of it first.
//
//	create {name, scopes, mutationId} → 201 Created; 409 when it is there
func (o *Object) create(r *request) (any, error) {
	in := readObject(orEmpty(r.body), "")
	in.only("name", "scopes", "mutationId")
	name, _ := in.text("name", 200)
	scopes := readScopes(in)
	mutation, _ := in.text("mutationId", rpc.MaxIdempotencyKey)
	if in.err != nil {
		return nil, in.err
	}
	c := &change{request: r, o: o, actor: "operator", env: rpc.ManageCall{Method: "POST", Route: "/api/machines", MutationID: mutation, Body: r.body}}
	if a, err := c.replay(); a != nil || err != nil {
		return unwrap(a), err
	}
	if r.exists() {
		return nil, apierr.New(409, "machine_exists", "there is such a machine already")
	}
	if err := o.tellRegistry(r, machineRow{ID: r.id, Name: name, State: creating}); err != nil {
		return nil, err
	}
	r.reload(o.Now())
	if r.exists() {
		return nil, apierr.New(409, "machine_exists", "there is such a machine already")
	}
	r.born(name)
	text, key, err := rpc.MintKey(o.Rand, o.KeySecret, r.id)
	if err != nil {
		return nil, err
	}
	key.Name, key.Scopes, key.CreatedAt = "first key", scopes, r.now
	r.putKey(&keyRow{Key: key})
	r.audit(o, "operator", "POST /api/machines", r.id, []string{"name"})
	out := reply{201, rpc.Created{MachineID: r.id, APIKey: text}}
	if err := c.keep(rpc.ManageAnswer{Status: 201, Body: jsonOf(out.body)}); err != nil {
		return nil, err
	}
	return out, nil
}

// remove deletes the machine: its rows go, its replica follows by alarm. What
// stays is that it is gone, and which seed documents it has adopted, since KV
// may show them for long.
func (o *Object) remove(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	if err := o.tellRegistry(r, machineRow{ID: r.id, Name: r.meta.Name, CreatedAt: r.meta.CreatedAt, State: deleting}); err != nil {
		return nil, err
	}
	r.reload(o.Now())
	if !r.exists() {
		return nil, errGone()
	}
	r.wipe()
	r.touch()
	r.meta.Deleted, r.meta.Name, r.meta.RefreshAt, r.meta.PruneAt = true, "", 0, 0
	r.meta.Unregistered, r.meta.RegisterFrom, r.meta.RegisterFail = true, r.now, 0
	r.meta.AuditBase = r.meta.AuditHash
	r.audit(o, "operator", "DELETE /api/machines/{id}", r.id, nil)
	return reply{204, struct{}{}}, nil
}

// existing tells the registry whether the machine is there.
func (o *Object) existing(r *request) (any, error) {
	if !r.exists() {
		return nil, errGone()
	}
	return machineRow{ID: r.id, Name: r.meta.Name, CreatedAt: r.meta.CreatedAt}, nil
}

// tellRegistry writes an intent. Without it nothing is done.
func (o *Object) tellRegistry(r *request, m machineRow) error {
	status, _, err := o.Objects.Call(r.ctx, rpc.RegistryID, "put", encode(m))
	if err == nil && status == 200 {
		return nil
	}
	e := apierr.New(503, "unavailable", "the list of machines cannot be reached at the moment")
	e.RetryAfter = later("", 0).RetryAfter
	e.Err = err
	return e
}

// readScopes reads the scopes of a key; none means data.
func readScopes(in *input) []string {
	scopes, _ := in.texts("scopes", 3, 20)
	for _, s := range scopes {
		if s != "data" && s != "manage" && s != "export" {
			in.fail("scopes", "must be data, manage or export")
		}
	}
	return scopes
}

func orEmpty(body []byte) []byte {
	var c jsonscan.Cursor
	if c.Reset(body); c.Kind() == jsonscan.Absent && len(body) == 0 {
		return []byte("{}")
	}
	return body
}
