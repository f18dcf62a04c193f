package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"

	"weir/pkg/auth"
	"weir/pkg/auth/session"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/wire/httpmsg"
)

// People serves the people of a machine. They are stored in the registry; the machine's object
// checks and records each change.
type People struct {
	*Handler
	// PublicURL is scheme and host of links; "" takes those of the request.
	PublicURL string
}

// List serves GET /api/people: the people with a role on the machine, and open invitations.
//
//	200 {"object":"list","data":[rpc.PersonView],"invitations":[rpc.Invitation]}
func (h *People) List(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	out, err := rpc.Call[rpc.PeopleList](ctx, h.Objects, rpc.RegistryID, "person.list",
		rpc.PeopleQuery{MachineID: c.MachineID})
	if err != nil {
		return nil, err
	}
	return answer(200, rpc.JSON(struct {
		Object      string           `json:"object"`
		Data        []rpc.PersonView `json:"data"`
		Invitations []rpc.Invitation `json:"invitations"`
	}{"list", out.People, out.Invitations})), nil
}

// inMachine runs the machine's part of a change.
func (h *People) inMachine(ctx context.Context, c *auth.Call) (a rpc.ManageAnswer, err error) {
	env, err := envelope(c)
	if err != nil {
		return a, err
	}
	return h.apply(ctx, c, &env)
}

func (h *People) apply(ctx context.Context, c *auth.Call, env *rpc.ManageCall) (a rpc.ManageAnswer, err error) {
	a, err = h.manage(ctx, c.MachineID, env)
	h.Cache.Invalidate(c.MachineID)
	return a, err
}

func (h *People) set(ctx context.Context, c *auth.Call, g people.Grant) error {
	_, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "person.set",
		rpc.PersonSet{ID: c.Params[0], MachineID: c.MachineID, Grant: g, By: actorOf(c)})
	return err
}

// Update serves PUT /api/people/{id}: {"role","template"} → 200 the same. The role goes first, as in Remove.
func (h *People) Update(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	env.Check = true
	a, err := h.apply(ctx, c, &env)
	if err != nil {
		return nil, err
	}
	var g people.Grant
	if err := json.Unmarshal(a.Body, &g); err != nil {
		return nil, err
	}
	if err := h.set(ctx, c, g); err != nil {
		return nil, err
	}
	id := c.Params[0]
	env.Check, env.People = false, []rpc.PersonGrant{{ID: id, Name: h.peopleNames(ctx, c.MachineID, []string{id})[id]}}
	if _, err := h.apply(ctx, c, &env); err != nil {
		return nil, err
	}
	return answer(200, a.Body), nil
}

// Remove serves DELETE /api/people/{id}. The role goes first, so that no key is created after the
// keys are paused; after a failure in between it is repeated.
func (h *People) Remove(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	id := c.Params[0]
	env.People = []rpc.PersonGrant{{ID: id, Name: h.peopleNames(ctx, c.MachineID, []string{id})[id]}} // while it is known
	if err := h.set(ctx, c, people.Grant{Role: people.None}); err != nil {
		return nil, err
	}
	if _, err := h.apply(ctx, c, &env); err != nil {
		return nil, err
	}
	return &httpmsg.Response{Status: 204}, nil
}

// Invite serves POST /api/invitations → 201 rpc.Invitation with the link, which is shown this once.
func (h *People) Invite(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	secret, err := session.NewSecret(rand.Reader, session.InvitePrefix)
	if err != nil {
		return nil, err
	}
	a, err := h.inMachine(ctx, c)
	if err != nil {
		return nil, err
	}
	var in rpc.InviteCreate
	if err := json.Unmarshal(a.Body, &in); err != nil {
		return nil, err
	}
	in.Digest, in.MachineID = rpc.KeyDigest(secret), c.MachineID
	made, err := rpc.Call[rpc.Invitation](ctx, h.Objects, rpc.RegistryID, "invite.create", in)
	if err != nil {
		return nil, err
	}
	link := cmp.Or(h.PublicURL, c.Origin) + "/#/invitation/" + secret
	resp := answer(201, rpc.JSON(struct {
		rpc.Invitation
		Link string `json:"link"`
	}{made, link}))
	resp.Header.Set("cache-control", "no-store")
	return resp, nil
}

// Export serves POST /api/export. The object encrypts what the registry has of the machine's people with the rest.
func (h *People) Export(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	of, err := rpc.Call[rpc.PeopleGrants](ctx, h.Objects, rpc.RegistryID, "person.export", rpc.PeopleQuery{MachineID: c.MachineID})
	if err != nil {
		return nil, err
	}
	env.People = of.People
	return h.send(ctx, c, env)
}

// Import serves POST /api/import. The machine is changed first: after a failure in between, repeating the call
// completes it.
func (h *People) Import(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	a, err := h.apply(ctx, c, &env)
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	in := rpc.PeopleGrants{MachineID: c.MachineID, By: actorOf(c)}
	if err := json.Unmarshal(a.Body, &out); err != nil {
		return nil, err
	}
	if raw, ok := out["people"]; ok {
		if err := json.Unmarshal(raw, &in.People); err != nil {
			return nil, err
		}
		if _, preview := out["preview"]; !preview {
			if _, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "person.import", in); err != nil {
				return nil, err
			}
		}
		out["people"] = rpc.JSON(len(in.People))
		a.Body = rpc.JSON(out)
	}
	return tagged(&a), nil
}

// Withdraw serves DELETE /api/invitations/{id}.
func (h *People) Withdraw(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	in := map[string]string{"machineId": c.MachineID, "id": c.Params[0]}
	i, err := rpc.Call[rpc.Invitation](ctx, h.Objects, rpc.RegistryID, "invite.delete", in)
	if err != nil {
		return nil, err
	}
	env.People = []rpc.PersonGrant{{ID: i.Person, Name: i.Note, Role: i.Role}}
	if _, err := h.apply(ctx, c, &env); err != nil {
		return nil, err
	}
	return &httpmsg.Response{Status: 204}, nil
}
