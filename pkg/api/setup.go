package api

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/endpoint"
	"weir/pkg/machine/rpc"
	"weir/pkg/setup"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
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

const maxClaimBody = 4 << 10

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
	Public bool         `json:"public,omitempty"` // its vendor's servers make the calls
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
		v := toolView{ID: t.ID, Name: t.Name, Kind: t.Kind, Script: len(t.Files) > 0, Texts: t.AllTexts(),
			Notes: t.Notes, Public: t.Public}
		for j := range t.Files {
			v.Files = append(v.Files, t.Files[j].Path())
		}
		out.Data = append(out.Data, v)
	}
	return answer(200, rpc.JSON(out)), nil
}

// Create serves POST /api/setup: a command that sets up a tool, with a lease.
//
//	{"tool":"codex","model":"…","smallModel":"…"} → 201 rpc.Lease, with the command
func (h *Setup) Create(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	origin := cmp.Or(h.PublicURL, c.Origin)
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
	var out struct {
		rpc.Lease
		Command setup.Command `json:"command"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	out.Command = setup.CommandOf(out.Tool, origin, out.Text)
	resp.Body = stream.FromBytes(rpc.JSON(out))
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
	lease, tool, err := claimed(raw)
	if err != nil {
		return nil, err
	}
	machineID, ok := rpc.LeaseMachine(h.KeySecret, lease)
	if !ok {
		return nil, rpc.ErrLease()
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

// claimed reads the body of a claim, which has two texts and nothing else.
func claimed(raw []byte) (lease, tool string, err error) {
	if _, err := jsonscan.Read(raw, "lease", "tool"); err != nil {
		return "", "", endpoint.BadJSON(err)
	}
	gjson.ParseBytes(raw).ForEach(func(k, v gjson.Result) bool {
		text := map[string]*string{"lease": &lease, "tool": &tool}[k.String()]
		switch {
		case text == nil:
			err = apierr.Invalid(k.String(), "%s is not a field of this request.", k.String())
		case v.Type == gjson.Null:
		case v.Type != gjson.String || len(v.Str) > rpc.MaxKey:
			err = apierr.Invalid(k.String(), "%s must be a text of at most %d bytes.", k.String(), rpc.MaxKey)
		default:
			*text = strings.TrimSpace(v.Str)
		}
		return err == nil
	})
	return lease, tool, err
}
