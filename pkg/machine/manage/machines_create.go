package manage

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// CreateMachine creates the machine with its first key, or withoutKey. The registry knows of it first.
//
//	create {name, scopes, withoutKey, mutationId} → 201 Created; 409 when it is there
func (o *Manager) CreateMachine(r *storage.Call, announce func(name string) error) (any, error) {
	in := readObject(orEmpty(r.Body), "")
	in.only("name", "scopes", "withoutKey", "mutationId")
	name, _ := in.text("name", 200)
	scopes := readScopes(in)
	withoutKey, _ := in.bool("withoutKey")
	mutation, _ := in.text("mutationId", rpc.MaxIdempotencyKey)
	if in.Err != nil {
		return nil, in.Err
	}
	c := &change{Call: r, o: o, actor: "operator", env: rpc.ManageCall{Method: "POST", Route: "/api/machines",
		MutationID: mutation, Body: r.Body}}
	if r.Meta.DeletedAt > 0 {
		return nil, apierr.New(409, "machine_exists", "%s", storage.StillDeleted)
	}
	if a, err := c.replay(); a != nil || err != nil {
		return unwrap(a), err
	}
	if r.Exists() {
		return nil, apierr.New(409, "machine_exists", "A machine with this id exists already.")
	}
	if err := announce(name); err != nil {
		return nil, err
	}
	r.Reload(o.Now())
	if r.Exists() || r.Meta.DeletedAt > 0 {
		return nil, apierr.New(409, "machine_exists", "A machine with this id exists already.")
	}
	r.Create(name)
	created := rpc.Created{MachineID: r.ID}
	if !withoutKey {
		var key storage.Key
		text, err := o.mint(&key, r.ID)
		if err != nil {
			return nil, err
		}
		key.Name, key.Scopes, key.CreatedAt = "Default key", scopes, r.Now
		r.PutKey(&key)
		created.APIKey = text
	}
	r.Audit("operator", "POST /api/machines", r.ID, []string{"name"})
	out := storage.Reply{Status: 201, Body: created}
	if err := c.keep(rpc.ManageAnswer{Status: 201, Body: storage.EncodeJSON(out.Body)}); err != nil {
		return nil, err
	}
	return out, nil
}

// RenameMachine changes the name of the machine. The registry knows of it first.
//
//	rename {name} → {machineId, name, createdAt}; an empty name leaves it unnamed
func (o *Manager) RenameMachine(r *storage.Call, announce func(name string) error) (any, error) {
	in := readObject(r.Body, "")
	in.only("name")
	name, given := in.text("name", 200)
	if !given {
		in.fail("name", "is missing")
	}
	if in.Err != nil {
		return nil, in.Err
	}
	if err := announce(name); err != nil {
		return nil, err
	}
	r.Reload(o.Now())
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	r.Rename(name)
	r.Audit("operator", "PATCH /api/machines/{id}", r.ID, []string{"name"})
	return struct {
		ID        string `json:"machineId"`
		Name      string `json:"name,omitempty"`
		CreatedAt int64  `json:"createdAt"`
	}{r.ID, name, r.Meta.CreatedAt}, nil
}

// readScopes reads the scopes of a key; none means data.
func readScopes(in *Input) []string {
	scopes, _ := in.texts("scopes", 4, 20)
	for _, s := range scopes {
		if !isScope(s) {
			in.fail("scopes", "must be data, manage, export or metrics")
		}
	}
	return scopes
}

// isScope reports whether a key may have a scope.
func isScope(s string) bool { return s == "data" || s == "manage" || s == "export" || s == "metrics" }

func orEmpty(body []byte) []byte {
	var c jsonscan.Cursor
	if c.Reset(body); c.Kind() == jsonscan.Absent && len(body) == 0 {
		return []byte("{}")
	}
	return body
}

// unwrap makes the plain answer of a kept one.
func unwrap(a *rpc.ManageAnswer) any {
	if a == nil {
		return nil
	}
	return storage.Reply{Status: a.Status, Body: a.Body}
}
