package manage

import (
	"cmp"
	"encoding/json"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/setup"
	"weir/pkg/wire/apierr"
)

const (
	leaseFor  = 5 * time.Minute
	maxLeases = 100 // of one machine
)

// leaseCreate stores a lease for a tool. Its models are those of the body, else those of
// the settings.
func (c *change) leaseCreate() (any, error) {
	in := c.input()
	in.only("tool", "model", "smallModel", "allowUnknown")
	id, _ := in.text("tool", 64)
	tool := setup.Lookup(id)
	if tool == nil || len(tool.Files) == 0 {
		in.fail("tool", "must be a tool with a set-up script: GET /api/setup lists them")
	}
	s := c.Settings()
	model := c.modelOf(in, "model", s.DefaultModel)
	small := c.modelOf(in, "smallModel", s.SmallModel)
	if model == "" {
		in.fail("model", "is required: this machine has no default model")
	}
	small = cmp.Or(small, model)
	if err := in.failed(); err != nil {
		return nil, err
	}
	if err := c.roomForLease(); err != nil {
		return nil, err
	}
	text, err := rpc.MintLease(c.o.Rand, c.o.KeySecret, c.ID)
	if err != nil {
		return nil, err
	}
	row := storage.Lease{Tool: tool.ID, Model: model, SmallModel: small, KeyID: c.env.KeyID, KeyDigest: c.env.KeyDigest,
		Person: c.env.Person, ExpiresAt: c.Now + leaseFor.Milliseconds()}
	c.Put(storage.LeasePrefix+rpc.KeyDigest(text), row)
	c.target, c.fields, c.status = tool.ID, in.names, 201
	return rpc.Lease{Tool: tool.ID, Text: text, Model: model, SmallModel: small, ExpiresAt: row.ExpiresAt}, nil
}

// roomForLease drops the leases that have expired, and refuses another one if there are too many.
func (c *change) roomForLease() error {
	live := 0
	for _, row := range c.List(storage.LeasePrefix) {
		var l storage.Lease
		if c.Load(row.Key, &l) && l.ExpiresAt > c.Now {
			live++
		} else {
			c.Del(row.Key)
		}
	}
	if live >= maxLeases {
		return apierr.New(409, "too_many",
			"A machine has at most %d unused set-up commands. They expire after five minutes.", maxLeases)
	}
	return nil
}

// notPlain is the error of a model name that setup.IsModel refuses.
const notPlain = "has a character other than letters, digits and ._:/@+~-: add an alias for the model, and use that"

// modelOf returns the model name in a field, or otherwise. It refuses one that scripts
// cannot write without quoting.
func (c *change) modelOf(in *Input, field, otherwise string) string {
	name, _ := in.text(field, setup.MaxModel)
	name = cmp.Or(name, otherwise)
	if name != "" && !setup.IsModel(name) {
		in.fail(field, notPlain)
	}
	if unknown, _ := in.bool("allowUnknown"); name != "" && in.Err == nil && !unknown {
		namesOf(c.Tx).checkModel(in, field, name)
	}
	return name
}

// ClaimLease creates the key of a lease, once: the lease is removed in the same turn.
// It is refused if its creator may no longer create keys.
func (o *Manager) ClaimLease(r *storage.Call) (any, error) {
	var in rpc.ClaimLease
	var row storage.Lease
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) {
		return nil, apierr.Invalid("digest", "digest is not valid.")
	}
	if !r.Exists() || !r.Load(storage.LeasePrefix+in.Digest, &row) || row.ExpiresAt <= r.Now {
		return nil, rpc.ErrLease()
	}
	actor, until, maker := "operator", int64(0), row.Person
	if row.KeyID != "" {
		k, ok := r.ManageKey(row.KeyID)
		if !ok || row.KeyDigest != "" && !k.Accepts(row.KeyDigest, r.Now) {
			return nil, rpc.ErrLease()
		}
		actor, until, maker = "key:"+o.MaskedKey(row.KeyID), k.ExpiresAt, makerOf(&k)
	}
	if p := row.Person; p != nil {
		var removedAt int64
		if actor = "person:" + p.ID; r.Load(storage.RemovedPrefix+p.ID, &removedAt) && p.SeenAt <= removedAt {
			return nil, rpc.ErrLease()
		}
	}
	key, action := storage.Key{}, "POST /setup/claim"
	tool := setup.Lookup(row.Tool)
	switch {
	case row.Device != "" && in.Tool == rpc.DeviceTool:
		key.Key, action = deviceKey(row.Device, r.Now, until), "POST /api/device/token"
	case row.Device == "" && tool != nil && in.Tool == row.Tool:
		key.Name = tool.Name
	default:
		return nil, apierr.Invalid("tool", "This set-up command is for %s.", row.Tool)
	}
	if len(r.List(storage.KeyPrefix)) >= MaxKeys {
		return nil, apierr.New(409, "too_many",
			"A machine has at most %d keys. Revoke one that is not needed, then run the command again.", MaxKeys)
	}
	key.Name = freeName(key.Name, takenNames(r.Keys(), keyName))
	text, err := o.mint(&key, r.ID)
	if err != nil {
		return nil, err
	}
	r.Del(storage.LeasePrefix + in.Digest)
	key.CreatedAt = r.Now
	if err := own(r.Tx, maker, &key); err != nil {
		return nil, err
	}
	r.PutKey(&key)
	o.keyCreated(r.Tx, &key, actor)
	r.Audit(actor, action, o.MaskedKey(key.ID), []string{"name"})
	if err := r.CheckSize(); err != nil {
		return nil, err
	}
	return rpc.ClaimedLease{APIKey: text, Model: row.Model, SmallModel: row.SmallModel}, nil
}
