package api

import (
	"context"
	"encoding/json"
	"time"

	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/setup"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// Setup serves the set-up of tools: their list, the leases, the scripts and the claim
// of a lease (docs/clients.md).
type Setup struct {
	*Handler
	// PublicURL is scheme and host that clients reach the gateway at; "" takes those of
	// the request.
	PublicURL string
}

const (
	leaseFor     = 5 * time.Minute
	maxLeases    = 100 // of one machine
	maxClaimBody = 4 << 10
)

// toolView is a tool as it is listed. The texts have the placeholders of
// setup.Placeholders.
type toolView struct {
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	Kind   setup.Kind   `json:"kind"`
	Script bool         `json:"script"`          // POST /api/setup returns a command
	Files  []string     `json:"files,omitempty"` // that the script writes
	Texts  []setup.Text `json:"texts"`
	Notes  []string     `json:"notes,omitempty"`
}

// Tools serves GET /api/setup: the tools with their settings, and the machine's default
// models.
//
//	200 {"object":"list","data":[toolView],"placeholders":{…},"model":"…","smallModel":"…"}
func (h *Setup) Tools(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	m, err := load(ctx, h.Cache, c)
	if err != nil {
		return nil, err
	}
	out := struct {
		Object       string       `json:"object"`
		Data         []toolView   `json:"data"`
		Placeholders setup.Values `json:"placeholders"`
		Model        string       `json:"model,omitempty"`
		SmallModel   string       `json:"smallModel,omitempty"`
	}{Object: "list", Placeholders: setup.Placeholders, Model: m.Settings.DefaultModel, SmallModel: m.Settings.SmallModel}
	for i := range setup.Tools {
		t := &setup.Tools[i]
		v := toolView{ID: t.ID, Name: t.Name, Kind: t.Kind, Script: len(t.Files) > 0, Texts: t.AllTexts(), Notes: t.Notes}
		for j := range t.Files {
			v.Files = append(v.Files, t.Files[j].Path())
		}
		out.Data = append(out.Data, v)
	}
	return answer(200, storage.Encode(out)), nil
}

// leased is the answer of the object to POST /api/setup.
type leased struct {
	Tool       string         `json:"tool"`
	Lease      string         `json:"lease"`
	Model      string         `json:"model"`
	SmallModel string         `json:"smallModel"`
	ExpiresAt  int64          `json:"expiresAt"` // Unix milliseconds
	Command    *setup.Command `json:"command,omitempty"`
}

// Create serves POST /api/setup: a command that sets up a tool, with a lease.
//
//	{"tool":"codex","model":"…","smallModel":"…"} → 201 leased
func (h *Setup) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	origin := h.PublicURL
	if origin == "" {
		origin = c.Origin
	}
	if !setup.IsOrigin(origin) {
		return nil, apierr.New(400, "unusable_address",
			"The address of this request cannot be put into a command. Use a host name, or set PUBLIC_URL.")
	}
	resp, err := h.Forward(ctx, c)
	if err != nil {
		return nil, err
	}
	raw, err := stream.ReadAll(resp.Body, maxBody)
	if err != nil {
		return nil, err
	}
	var out leased
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	command := setup.CommandOf(out.Tool, origin, out.Lease)
	out.Command = &command
	resp.Body = stream.FromBytes(storage.Encode(out))
	return resp, nil
}

// Script serves GET /setup/{file}: a set-up script, the same for every caller.
func (h *Setup) Script(_ context.Context, c *auth.Call) (*httpmsg.Response, error) {
	text := setup.Script(c.Params[0])
	if text == "" {
		return nil, apierr.New(404, "no_script",
			"No set-up script has this name. GET /api/setup lists the tools; scripts are /setup/TOOL.sh and /setup/TOOL.ps1.")
	}
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "text/plain; charset=utf-8"},
			{Name: "x-content-type-options", Value: "nosniff"},
			{Name: "cache-control", Value: "public, max-age=300"},
		},
		Body: stream.FromString(text),
	}, nil
}

// Claim serves POST /setup/claim: a set-up script exchanges its lease for a key.
//
//	{"lease":"…","tool":"…"} → 200 rpc.ClaimedLease
func (h *Setup) Claim(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	in := readObject(raw, "")
	in.only("lease", "tool")
	lease, _ := in.text("lease", rpc.MaxKey)
	tool, _ := in.text("tool", 64)
	if err := in.failed(); err != nil {
		return nil, err
	}
	machineID, ok := rpc.LeaseMachine(h.KeySecret, lease)
	if !ok {
		return nil, errLease()
	}
	claim := rpc.ClaimLease{Digest: rpc.KeyDigest(lease), Tool: tool}
	out, err := rpc.Call[json.RawMessage](ctx, h.Objects, machineID, "lease.claim", claim)
	h.Cache.Invalidate(machineID)
	if err != nil {
		return nil, err
	}
	resp := answer(200, out)
	resp.Header.Set("cache-control", "no-store")
	return resp, nil
}

// errLease returns the refusal of every lease that cannot be used, without the reason:
// a lease that was used is not stored any more.
func errLease() error {
	return apierr.New(403, "invalid_lease", "This set-up command was used already, or has expired. Copy a new one from the dashboard.")
}

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
		in.fail("model", "is required: this machine has no default model (PATCH /api/settings, defaultModel)")
	}
	if small == "" {
		small = model
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
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
		return nil, apierr.New(409, "too_many",
			"A machine has at most %d unused set-up commands. They expire after five minutes.", maxLeases)
	}
	text, err := rpc.MintLease(c.o.Rand, c.o.KeySecret, c.ID)
	if err != nil {
		return nil, err
	}
	row := storage.Lease{Tool: tool.ID, Model: model, SmallModel: small, KeyID: c.env.KeyID, KeyDigest: c.env.KeyDigest,
		ExpiresAt: c.Now + leaseFor.Milliseconds()}
	c.Put(storage.LeasePrefix+rpc.KeyDigest(text), row)
	c.target, c.fields, c.status = tool.ID, in.names, 201
	return leased{Tool: tool.ID, Lease: text, Model: model, SmallModel: small, ExpiresAt: row.ExpiresAt}, nil
}

// notPlain is the error of a model name that setup.IsModel refuses.
const notPlain = "has a character other than letters, digits and ._:/@+~-: add an alias for the model, and use that"

// modelOf returns the model name in a field, or otherwise. It refuses one that scripts
// cannot write without quoting.
func (c *change) modelOf(in *Input, field, otherwise string) string {
	name, _ := in.text(field, setup.MaxModel)
	if name == "" {
		name = otherwise
	}
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
		return nil, errLease()
	}
	actor := "operator"
	if row.KeyID != "" {
		k, ok := r.ManageKey(row.KeyID)
		if !ok || row.KeyDigest != "" && !k.Accepts(row.KeyDigest, r.Now) {
			return nil, errLease()
		}
		actor = "key:" + o.MaskedKey(row.KeyID)
	}
	tool := setup.Lookup(row.Tool)
	switch {
	case tool == nil || in.Tool != row.Tool:
		return nil, apierr.Invalid("tool", "This set-up command is for %s.", row.Tool)
	case len(r.List(storage.KeyPrefix)) >= MaxKeys:
		return nil, apierr.New(409, "too_many",
			"A machine has at most %d keys. Revoke one that is not needed, then run the command again.", MaxKeys)
	}
	text, minted, err := rpc.MintKey(o.Rand, o.KeySecret, r.ID)
	if err != nil {
		return nil, err
	}
	r.Del(storage.LeasePrefix + in.Digest)
	key := storage.Key{Key: store.Key{ID: minted.ID, Digest: minted.Digest, Last4: minted.Last4, Name: tool.Name,
		CreatedAt: r.Now}}
	r.PutKey(&key)
	r.Audit(actor, "POST /setup/claim", o.MaskedKey(key.ID), []string{"name"})
	if err := r.CheckSize(); err != nil {
		return nil, err
	}
	return rpc.ClaimedLease{APIKey: text, Model: row.Model, SmallModel: row.SmallModel}, nil
}
