package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/auth/oidc"
	"weir/pkg/auth/passkey"
	"weir/pkg/auth/session"
	"weir/pkg/endpoint"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// Purposes of challenges; that of an invitation has its digest, that of a person their id.
const (
	toSignIn = "sign-in"
	toAccept = "invitation "
	toAdd    = "person "
)

// passkeyOptions are what a browser needs to use or make a passkey.
type passkeyOptions struct {
	Challenge string `json:"challenge"`
	RPID      string `json:"rpId"`
	*rpc.PasskeyFor
}

func (h *SignIn) challenges() *passkey.Challenges {
	return &passkey.Challenges{Secret: h.KeySecret, Rand: h.Rand, Now: h.Flow.Now}
}

// passkeySite returns where passkeys are used. It refuses them if they are off.
func (h *SignIn) passkeySite(ctx context.Context, r *httpmsg.Request) (passkey.Site, error) {
	all, err := h.providers(ctx)
	if err == nil && !slices.ContainsFunc(all, func(p rpc.IdentityProvider) bool { return p.Kind == oidc.Passkey }) {
		err = apierr.New(404, "passkeys_off", "Passkeys are off. The operator turns them on, on the page Sign-in.")
	}
	if err != nil {
		return passkey.Site{}, err
	}
	return h.siteOf(r)
}

func (h *SignIn) siteOf(r *httpmsg.Request) (passkey.Site, error) {
	return passkey.SiteOf(cmp.Or(h.PublicURL, r.Origin))
}

// passkeyOptions returns a challenge. A page of another address could not use it.
func (h *SignIn) passkeyOptions(ctx context.Context, c *auth.Call, purpose string,
	begin *rpc.PasskeyBegin) (*httpmsg.Response, error) {
	site, err := h.passkeySite(ctx, c.Request)
	if o := c.Header.Get("origin"); err == nil && o != "" && o != site.Origin {
		err = apierr.New(400, "passkey_address", "Passkeys belong to %s. Open the dashboard there.", site.Origin)
	}
	if err != nil {
		return nil, err
	}
	out := passkeyOptions{RPID: site.ID}
	if out.Challenge, err = h.challenges().New(purpose); err != nil {
		return nil, err
	}
	if begin != nil {
		begin.Subject = out.Challenge
		whose, err := rpc.Call[rpc.PasskeyFor](ctx, h.Objects, rpc.RegistryID, "passkey.begin", begin)
		if err != nil {
			return nil, err
		}
		out.PasskeyFor = &whose
	}
	return secretAnswer(out), nil
}

// BeginPasskey serves POST /api/sign-in/passkey: {"invitation"?} → passkeyOptions, to sign in, or to accept
// an invitation by a new passkey.
func (h *SignIn) BeginPasskey(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	digest, err := invitation(raw)
	if err != nil {
		return nil, err
	}
	if digest == "" {
		return h.passkeyOptions(ctx, c, toSignIn, nil)
	}
	return h.passkeyOptions(ctx, c, toAccept+digest, &rpc.PasskeyBegin{Invite: digest})
}

// FinishPasskey serves POST /api/session/passkey, and answers as POST /api/session.
//
//	{"passkey", "invitation"?}            signs in, and takes the role of an invitation
//	{"newPasskey", "invitation", "name"?} accepts an invitation by a new passkey
func (h *SignIn) FinishPasskey(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	if err := session.SameOrigin(c.Request); err != nil {
		return nil, err
	}
	resp, err := h.finishPasskey(ctx, c)
	if err != nil {
		return nil, h.passkeyRefused(ctx, c, err)
	}
	return resp, nil
}

func (h *SignIn) finishPasskey(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	site, err := h.passkeySite(ctx, c.Request)
	if err != nil {
		return nil, err
	}
	var in struct {
		Passkey    *passkey.Assertion
		NewPasskey *passkey.Registration
		Invitation string
		Name       string
	}
	if err := readPasskey(c, &in); err != nil {
		return nil, err
	}
	open := rpc.PersonSignIn{Name: in.Name}
	if in.Invitation != "" {
		open.Invite = rpc.KeyDigest(in.Invitation)
	}
	switch {
	case in.Passkey != nil && in.NewPasskey == nil:
		open.Passkey, err = h.asserted(ctx, site, in.Passkey)
	case in.NewPasskey != nil && in.Passkey == nil && open.Invite != "":
		open.NewPasskey, open.Subject, err = h.registered(ctx, site, in.NewPasskey, toAccept+open.Invite)
	default:
		err = apierr.Invalid("passkey", "The body must be {passkey} or {newPasskey, invitation, name}.")
	}
	if err != nil {
		return nil, err
	}
	return h.Sessions.Open(ctx, c, &open)
}

// readPasskey reads a body. Its error is an oidc.Refusal if binary data of a passkey is malformed.
func readPasskey(c *auth.Call, in any) error {
	raw, err := jsonBody(c)
	if err != nil {
		return err
	}
	var why oidc.Refusal
	if err := json.Unmarshal(raw, in); errors.As(err, &why) {
		return why
	} else if err != nil {
		return apierr.Invalid("passkey", "The body has fields of other types than those of a passkey.")
	}
	return nil
}

// passkeyRefused returns and records a refusal as refused does, also one of the registry.
func (h *SignIn) passkeyRefused(ctx context.Context, c *auth.Call, err error) error {
	if e, ok := errors.AsType[*apierr.Error](err); ok && e.Status == 403 && strings.HasPrefix(e.Code, rpc.PasskeyRefused) {
		err = oidc.Refusal(e.Code)
	}
	return h.refused(ctx, c.Request, oidc.Passkey, err)
}

// asserted verifies a sign-in but for its counter, and spends its challenge.
func (h *SignIn) asserted(ctx context.Context, site passkey.Site, a *passkey.Assertion) (*rpc.PasskeyUse, error) {
	challenge, counter, err := a.Check(site)
	if err != nil {
		return nil, err
	}
	until, err := h.challenges().Check(toSignIn, challenge)
	if err != nil {
		return nil, err
	}
	digest := rpc.KeyDigest(string(a.ID))
	k, err := rpc.Call[rpc.Passkey](ctx, h.Objects, rpc.RegistryID, "passkey.find", map[string]string{"digest": digest})
	if err != nil {
		return nil, err
	}
	if string(a.UserHandle) != k.Person {
		return nil, passkey.ErrPerson
	}
	if err := a.Verify(ctx, h.Flow.Verify, k.Key, k.Alg); err != nil {
		return nil, err
	}
	return &rpc.PasskeyUse{Digest: digest, Counter: counter}, h.spendChallenge(ctx, challenge, until)
}

// registered checks a new passkey, and spends its challenge.
func (h *SignIn) registered(ctx context.Context, site passkey.Site, r *passkey.Registration,
	purpose string) (k *rpc.Passkey, challenge string, err error) {
	made, challenge, err := r.Check(site)
	if err != nil {
		return nil, "", err
	}
	until, err := h.challenges().Check(purpose, challenge)
	if err != nil {
		return nil, "", err
	}
	return &made, challenge, h.spendChallenge(ctx, challenge, until)
}

func (h *SignIn) spendChallenge(ctx context.Context, challenge string, until int64) error {
	fresh, err := h.Flow.Spend(ctx, rpc.KeyDigest(challenge), until)
	if err == nil && !fresh {
		err = passkey.ErrUsed
	}
	return err
}

// forPerson returns a handler that serves people alone.
func forPerson(serve endpoint.Handler) endpoint.Handler {
	return func(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
		if c.Person == nil {
			return nil, apierr.New(403, "person_required", "Only people have passkeys. The operator has the operator token.")
		}
		return serve(ctx, c)
	}
}

// OwnPasskeys serves GET /api/passkeys: those of the person who is signed in.
func (h *SignIn) OwnPasskeys(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	type list struct {
		Object string            `json:"object"`
		Data   []rpc.PasskeyView `json:"data"`
	}
	l, err := rpc.Call[list](ctx, h.Objects, rpc.RegistryID, "passkey.list", map[string]string{"person": c.Person.ID})
	if err != nil {
		return nil, err
	}
	l.Object = "list"
	return answer(200, rpc.JSON(l)), nil
}

// ChallengePasskey serves POST /api/passkeys/challenge → passkeyOptions of a further passkey.
func (h *SignIn) ChallengePasskey(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	return h.passkeyOptions(ctx, c, toAdd+c.Person.ID, &rpc.PasskeyBegin{Person: c.Person.ID})
}

// AddPasskey serves POST /api/passkeys: {"newPasskey","name"?} → 201 rpc.PasskeyView.
func (h *SignIn) AddPasskey(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	v, err := h.addPasskey(ctx, c)
	if err != nil {
		return nil, h.passkeyRefused(ctx, c, err)
	}
	return answer(201, rpc.JSON(v)), nil
}

func (h *SignIn) addPasskey(ctx context.Context, c *auth.Call) (v rpc.PasskeyView, err error) {
	site, err := h.passkeySite(ctx, c.Request)
	if err != nil {
		return v, err
	}
	var in struct {
		NewPasskey passkey.Registration
		Name       string
	}
	if err := readPasskey(c, &in); err != nil {
		return v, err
	}
	k, _, err := h.registered(ctx, site, &in.NewPasskey, toAdd+c.Person.ID)
	if err != nil {
		return v, err
	}
	k.Person, k.Name = c.Person.ID, in.Name
	return rpc.Call[rpc.PasskeyView](ctx, h.Objects, rpc.RegistryID, "passkey.add", k)
}

// RenamePasskey serves PUT /api/passkeys/{id}: {"name"} → rpc.PasskeyView.
func (h *SignIn) RenamePasskey(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	name, err := textField(c, "name")
	if err != nil {
		return nil, err
	}
	v, err := rpc.Call[rpc.PasskeyView](ctx, h.Objects, rpc.RegistryID, "passkey.rename",
		rpc.PasskeyChange{Person: c.Person.ID, ID: c.Params[0], Name: name})
	if err != nil {
		return nil, err
	}
	return answer(200, rpc.JSON(v)), nil
}

// DeletePasskey serves DELETE /api/passkeys/{id}.
func (h *SignIn) DeletePasskey(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	_, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "passkey.delete",
		rpc.PasskeyChange{Person: c.Person.ID, ID: c.Params[0]})
	if err != nil {
		return nil, err
	}
	return &httpmsg.Response{Status: 204}, nil
}
