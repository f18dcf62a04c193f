package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/auth/oidc"
	"weir/pkg/auth/session"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// SignIn serves the sign-in of people by an identity provider, and the providers themselves. The
// browser keeps the cookie that authorizations of accounts use.
type SignIn struct {
	*OAuth
	Flow     *oidc.Flow
	Sessions *session.Sessions
	Keys     *store.Keyring
}

// signInPath is registered with identity providers, behind PublicURL.
const signInPath = "/oidc/callback"

func errNoProvider() error {
	return apierr.New(404, "identity_provider_not_found", "No identity provider has this id.")
}

// providers returns the identity providers.
func (h *SignIn) providers(ctx context.Context) ([]rpc.IdentityProvider, error) {
	type list struct{ Data []rpc.IdentityProvider }
	l, err := rpc.Call[list](ctx, h.Objects, rpc.RegistryID, "idp.list", struct{}{})
	return l.Data, err
}

// row returns the provider with an id.
func (h *SignIn) row(ctx context.Context, id string) (*rpc.IdentityProvider, error) {
	all, err := h.providers(ctx)
	for i := range all {
		if all[i].ID == id {
			return &all[i], nil
		}
	}
	if err == nil {
		err = errNoProvider()
	}
	return nil, err
}

// provider returns the provider with an id, with its secret in the clear.
func (h *SignIn) provider(ctx context.Context, id string) (*oidc.Provider, error) {
	p, err := h.row(ctx, id)
	if err != nil {
		return nil, err
	}
	if p.Kind != "" { // no one signs in there
		return nil, errNoProvider()
	}
	out := providerOf(p)
	if p.ClientSecret != "" {
		out.ClientSecret, err = h.Keys.Open(rpc.RegistryID, p.SealedAs(), rpc.ClientSecretField, p.ClientSecret)
	}
	return out, err
}

// Spend returns Spend of oidc.Flow, by the registry.
func Spend(objects rpc.Stub) func(ctx context.Context, digest string, until int64) (bool, error) {
	return func(ctx context.Context, digest string, until int64) (bool, error) {
		type spent struct{ Fresh bool }
		s, err := rpc.Call[spent](ctx, objects, rpc.RegistryID, "signIn.spend", rpc.SpentState{Digest: digest, Until: until})
		return s.Fresh, err
	}
}

// Methods serves GET /api/auth: how people sign in here.
func (h *SignIn) Methods(ctx context.Context, _ *auth.Call) (*httpmsg.Response, error) {
	all, err := h.providers(ctx)
	if err != nil {
		return nil, err
	}
	type shown struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	out := struct {
		Methods   []string `json:"methods"`
		Providers []shown  `json:"providers"`
	}{methodsOf(all), []shown{}}
	for i := range all {
		if all[i].Kind == "" {
			out.Providers = append(out.Providers, shown{all[i].ID, all[i].Name})
		}
	}
	return answer(200, rpc.JSON(out)), nil
}

// invitation returns the digest of the invitation in a body, "" without one.
func invitation(body []byte) (digest string, err error) {
	var in struct{ Invitation string }
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		return "", apierr.Invalid("", "The body must be {} or {invitation}.")
	}
	if in.Invitation == "" {
		return "", nil
	}
	return rpc.KeyDigest(in.Invitation), nil
}

// Begin serves POST /api/sign-in/{id}: {"invitation"?} → {"url"}, the address to open, which
// belongs to the browser that keeps the cookie of the answer. The invitation is its secret.
func (h *SignIn) Begin(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	if o := c.Header.Get("origin"); o != "" && o != c.Origin {
		return nil, apierr.New(403, "cross_site", "A sign-in must begin on a page of this gateway.")
	}
	raw, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	invite, err := invitation(raw)
	if err != nil {
		return nil, err
	}
	p, err := h.provider(ctx, c.Params[0])
	if err != nil {
		return nil, err
	}
	ticket, err := h.anyTicket(c.Header)
	if err != nil {
		return nil, err
	}
	uri, err := h.signInURI(c.Request)
	if err != nil {
		return nil, err
	}
	address, err := h.Flow.Begin(ctx, p, ticket, uri, invite)
	if err != nil {
		return nil, h.refused(ctx, c.Request, p.ID, err)
	}
	resp := answer(200, rpc.JSON(map[string]string{"url": address}))
	resp.Header.Add("set-cookie", flowCookie+"="+ticket+flowCookieTail)
	return resp, nil
}

func (h *SignIn) signInURI(r *httpmsg.Request) (string, error) {
	uri, err := h.redirectURI(r)
	return strings.TrimSuffix(uri, callbackPath) + signInPath, err
}

// Callback serves GET /oidc/callback: it opens a session and leads to the dashboard, or shows a
// page that says why not. Nothing of the query is shown.
func (h *SignIn) Callback(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	done, err := h.finish(ctx, c)
	if err == nil {
		resp := &httpmsg.Response{Status: 303, Header: httpmsg.Header{{Name: "location", Value: "/"},
			{Name: "referrer-policy", Value: "no-referrer"}}} // the address has the code
		for _, f := range done.Header {
			if f.Name == "set-cookie" {
				resp.Header.Add(f.Name, f.Value)
			}
		}
		return resp, nil
	}
	c.Trace.Err = err
	var e *apierr.Error
	if !errors.As(err, &e) {
		e = apierr.New(500, "", "Something went wrong in the gateway. Start again.")
	}
	return page(e.Status, "Not signed in", sentence(e.Message)), nil
}

func (h *SignIn) finish(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	ticket, ok := h.ticket(c.Header)
	if !ok {
		return nil, apierr.New(400, "invalid_callback",
			"The sign-in was not started in this browser, or more than ten minutes ago. Start again.")
	}
	id, invite := oidc.ProviderOf(c.Query) // both are signed by the state
	p, err := h.provider(ctx, id)
	if err != nil {
		return nil, err
	}
	uri, err := h.signInURI(c.Request)
	if err != nil {
		return nil, err
	}
	who, err := h.Flow.Finish(ctx, p, ticket, uri, c.Query)
	if err != nil {
		return nil, h.refused(ctx, c.Request, id, err)
	}
	resp, err := h.Sessions.OpenPerson(ctx, c, &session.SignIn{Identity: *who, Rules: p.Rules, Invite: invite,
		Sid: oidc.SessionOf(p.Issuer, who.Claims)})
	if err != nil {
		return nil, h.refused(ctx, c.Request, id, reasonOf(err))
	}
	return resp, nil
}

// refused returns what a person reads of a sign-in that is refused, and reports it to the audit. An
// address with too many of them has no more records, so that it cannot push out those of others.
func (h *SignIn) refused(ctx context.Context, r *httpmsg.Request, id string, err error) error {
	var why oidc.Refusal
	if !errors.As(err, &why) {
		return err
	}
	if err := h.Sessions.Failed(ctx, r, ""); err != nil {
		return err
	}
	in := rpc.FailedSignIn{Provider: id, Reason: string(why)}
	if _, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "signIn.failed", in); err != nil {
		return err
	}
	return apierr.New(403, "sign_in_refused", "The sign-in was refused (%s). %s.", string(why), why.Text())
}

// providerView is an identity provider as the operator sees and sets it.
type providerView struct {
	ID           string        `json:"id,omitempty"`
	Kind         string        `json:"kind,omitempty"`
	Name         string        `json:"name"`
	Issuer       string        `json:"issuer"`
	ClientID     string        `json:"clientId"`
	ClientSecret string        `json:"clientSecret,omitempty"` // is never shown
	HasSecret    bool          `json:"hasSecret"`
	Scopes       []string      `json:"scopes,omitempty"`
	Rules        []people.Rule `json:"rules"`
}

func viewOf(p *rpc.IdentityProvider) providerView {
	return providerView{ID: p.ID, Kind: p.Kind, Name: p.Name, Issuer: p.Issuer, ClientID: p.ClientID,
		HasSecret: p.ClientSecret != "", Scopes: p.Scopes, Rules: append([]people.Rule{}, p.Rules...)}
}

// List serves GET /api/identity-providers.
func (h *SignIn) List(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	all, err := h.providers(ctx)
	if err != nil {
		return nil, err
	}
	out := struct {
		Object string         `json:"object"`
		Data   []providerView `json:"data"`
		// RedirectURI is to be registered at the providers; "" without https.
		RedirectURI string `json:"redirectUri,omitempty"`
	}{Object: "list", Data: []providerView{}}
	if uri, err := h.signInURI(c.Request); err == nil {
		out.RedirectURI = uri
	}
	for i := range all {
		out.Data = append(out.Data, viewOf(&all[i]))
	}
	return answer(200, rpc.JSON(out)), nil
}

// Put serves POST /api/identity-providers and PUT /api/identity-providers/{id}. The issuer is
// asked for its document and keys first. A secret that is not sent stays, unless it would reach
// another issuer.
func (h *SignIn) Put(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	row, clientSecret, err := readProvider(c)
	if err != nil {
		return nil, err
	}
	status, err := h.identify(ctx, c, &row)
	if err != nil {
		return nil, err
	}
	if _, err := h.examine(ctx, c.Request, &row); err != nil {
		var why oidc.Refusal
		if errors.As(err, &why) {
			err = apierr.Invalid("issuer", "The issuer cannot be used (%s). %s.", string(why), why.Text())
		}
		return nil, err
	}
	if clientSecret != "" {
		row.ClientSecret, err = h.Keys.Seal(rpc.RegistryID, row.SealedAs(), rpc.ClientSecretField, secret.New(clientSecret))
		if err != nil {
			return nil, err
		}
	}
	if _, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "idp.put", row); err != nil {
		return nil, err
	}
	return answer(status, rpc.JSON(viewOf(&row))), nil
}

// readProvider reads the body of Put: a provider without an id, and the secret of its client.
func readProvider(c *auth.Call) (row rpc.IdentityProvider, clientSecret string, err error) {
	raw, err := jsonBody(c)
	if err != nil {
		return row, "", err
	}
	var in providerView
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return row, "", apierr.Invalid("", "The body must be an identity provider: name, issuer, clientId and rules.")
	}
	if in.Kind == oidc.Passkey { // there is one, without an issuer and rules
		in = providerView{Kind: in.Kind, Name: in.Name, Issuer: in.Kind, ClientID: in.Kind, Rules: []people.Rule{}}
	}
	row = rpc.IdentityProvider{Kind: in.Kind, Name: in.Name, Issuer: in.Issuer, ClientID: in.ClientID, Scopes: in.Scopes,
		Rules: in.Rules}
	if err = checkProvider(&row); err == nil {
		err = checkKind(&row, in.ClientSecret)
	}
	return row, in.ClientSecret, err
}

// identify sets the id and the stored secret of a provider, and returns the status of the answer.
func (h *SignIn) identify(ctx context.Context, c *auth.Call, row *rpc.IdentityProvider) (status int, err error) {
	if c.Method == "POST" && row.Kind == oidc.Passkey {
		row.ID = row.Kind
		return 201, nil
	}
	if c.Method == "POST" {
		row.ID, err = rpc.NewID(h.Rand, 20)
		return 201, err
	}
	before, err := h.row(ctx, c.Params[0])
	if err != nil {
		return 0, err
	}
	if row.ID = before.ID; before.Issuer == row.Issuer && row.Kind == "" && before.ClientID == row.ClientID {
		row.ClientSecret = before.ClientSecret
	}
	return 200, nil
}

// checkProvider checks what an operator has set of a provider.
func checkProvider(p *rpc.IdentityProvider) error {
	for _, f := range [...]struct {
		name, value string
		max         int
	}{{"name", p.Name, 100}, {"issuer", p.Issuer, 500}, {"clientId", p.ClientID, 500}} {
		if f.value == "" || len(f.value) > f.max {
			return apierr.Invalid(f.name, "%s must have 1 to %d characters.", f.name, f.max)
		}
	}
	if len(p.Scopes) > 20 || len(p.Rules) > 200 {
		return apierr.Invalid("rules", "At most 20 scopes and 200 rules are allowed.")
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		if len(r.Claim) == 0 || r.Value == "" || !r.Role.Valid() || len(r.Machines) == 0 {
			return apierr.Invalid("rules", "Rule %d needs a claim, a value, a role and machines.", i+1)
		}
		for _, m := range r.Machines {
			if m != people.Everywhere && !rpc.IsMachineID(m) {
				return apierr.Invalid("rules", "Rule %d: machines must have ids of machines, or *.", i+1)
			}
		}
	}
	return nil
}

// Compare serves POST /api/compare. The object of the machine compares; the secrets of identity providers,
// which are in the registry, are sent with a call of the operator.
func (h *SignIn) Compare(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err == nil && gjson.GetBytes(env.Body, "identityProviders").Exists() {
		if !c.Operator {
			return nil, rpc.ErrOperator()
		}
		env.IdentityProviders, err = h.providers(ctx)
	}
	if err != nil {
		return nil, err
	}
	return h.send(ctx, c, env)
}

// Delete serves DELETE /api/identity-providers/{id}.
func (h *SignIn) Delete(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	_, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "idp.delete", map[string]string{"id": c.Params[0]})
	return &httpmsg.Response{Status: 204}, err
}

// Records serves GET /api/sign-ins?before=: who has signed in or was refused, and who has changed the
// identity providers.
func (h *SignIn) Records(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	var in rpc.SignInQuery
	q, err := url.ParseQuery(c.Query)
	if v := q.Get("before"); err == nil && v != "" {
		in.Before, err = strconv.ParseInt(v, 10, 64)
	}
	if err != nil || in.Before < 0 {
		return nil, apierr.Invalid("before", "before must be the number of a record.")
	}
	out, err := rpc.Call[rpc.SignInRecords](ctx, h.Objects, rpc.RegistryID, "signIn.list", in)
	if err != nil {
		return nil, err
	}
	return answer(200, rpc.JSON(struct {
		Object string `json:"object"`
		rpc.SignInRecords
	}{"list", out})), nil
}
