package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/auth/oidc"
	"weir/pkg/auth/session"
	"weir/pkg/machine/rpc"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

const (
	maxTokenBody = 32 << 10
	// bearerFor is the longest time that a token of POST /api/token is valid, in milliseconds.
	bearerFor = 60 * 60 * 1000
)

// issued returns the provider of a kind that has issued a token, by its iss and aud alone; nil if none has.
func (h *SignIn) issued(ctx context.Context, kind, token string) (*oidc.Provider, error) {
	rows, err := h.providers(ctx)
	all := make([]*oidc.Provider, len(rows))
	for i := range rows {
		all[i] = providerOf(&rows[i])
	}
	return oidc.Chosen(all, kind, token), err
}

func providerOf(p *rpc.IdentityProvider) *oidc.Provider {
	return &oidc.Provider{ID: p.ID, Kind: p.Kind, Issuer: p.Issuer, ClientID: p.ClientID, Scopes: p.Scopes, Rules: p.Rules}
}

// Proxied is Sessions.Proxy: the person of a header that a proxy has signed, which is verified with each
// call. The header of a proxy that is not configured counts for nothing.
func (h *SignIn) Proxied(ctx context.Context, r *httpmsg.Request) (*rpc.Session, error) {
	kind, token := oidc.Assertion(r.Header)
	if token == "" {
		return nil, nil
	}
	p, err := h.issued(ctx, kind, token)
	if err != nil || p == nil {
		return nil, err
	}
	b, err := h.Flow.Bearer(ctx, p, token)
	if err != nil {
		return nil, h.refused(ctx, r, p.ID, err)
	}
	roles, err := people.Resolve(p.Rules, b.Identity.Claims)
	if err != nil {
		return nil, h.refused(ctx, r, p.ID, reasonOf(err))
	}
	row, err := rpc.Call[rpc.Session](ctx, h.Objects, rpc.RegistryID, "person.seen",
		rpc.PersonSeen{Identity: &b.Identity, Roles: roles, At: b.At * 1000, Until: b.Until * 1000})
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// reasonOf returns the reason of an error of people.Resolve for the audit.
func reasonOf(err error) error {
	if errors.Is(err, people.ErrTooManyGroups) {
		return oidc.ErrTooManyGroups
	}
	return err
}

// Token serves POST /api/token: {"token"} → {"token","expiresAt","roles"}. A CI job exchanges its
// ID token for one of this gateway, which has the roles of the rules for an hour at most.
func (h *SignIn) Token(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	raw, err := jsonBody(c)
	if err != nil {
		return nil, err
	}
	var in struct{ Token string }
	if json.Unmarshal(raw, &in) != nil || in.Token == "" {
		return nil, apierr.Invalid("token", "token is required: the ID token of the CI job.")
	}
	p, err := h.issued(ctx, oidc.CI, in.Token)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, h.refused(ctx, c.Request, "", oidc.ErrUnknownIssuer)
	}
	b, err := h.Flow.Bearer(ctx, p, in.Token)
	if err != nil {
		return nil, h.refused(ctx, c.Request, p.ID, err)
	}
	until := h.Flow.Now().UnixMilli() + bearerFor
	text, v, err := h.Sessions.OpenBearer(ctx, &session.SignIn{Identity: b.Identity, Rules: p.Rules}, until)
	if err != nil {
		return nil, h.refused(ctx, c.Request, p.ID, reasonOf(err))
	}
	resp := answer(200, rpc.JSON(struct {
		Token     string                 `json:"token"`
		ExpiresAt int64                  `json:"expiresAt"`
		Roles     map[string]people.Role `json:"roles"`
	}{text, v.ExpiresAt, v.Roles}))
	resp.Header.Set("cache-control", "no-store")
	return resp, nil
}

// Logout serves POST /oidc/logout, the back-channel logout of a provider: it ends the sessions that the
// logout token names.
func (h *SignIn) Logout(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	raw, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	token := form.Get("logout_token")
	if err != nil || len(form["logout_token"]) != 1 || token == "" {
		return nil, apierr.Invalid("logout_token", "The body must be a form with one logout_token.")
	}
	p, err := h.issued(ctx, "", token)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, h.refused(ctx, c.Request, "", oidc.ErrUnknownIssuer)
	}
	person, sid, err := h.Flow.Logout(ctx, p, token)
	if err != nil {
		return nil, h.refused(ctx, c.Request, p.ID, err)
	}
	err = h.end(ctx, rpc.PersonEnd{ID: person, Sid: sid, By: "system"})
	return &httpmsg.Response{Status: 200, Header: httpmsg.Header{{Name: "cache-control", Value: "no-store"}}}, err
}

func (h *SignIn) end(ctx context.Context, in rpc.PersonEnd) error {
	_, err := rpc.Call[struct{}](ctx, h.Objects, rpc.RegistryID, "person.end", in)
	return err
}

// EndAll serves DELETE /api/sessions: the sessions of all people are over.
func (h *SignIn) EndAll(ctx context.Context, _ *auth.Call) (*httpmsg.Response, error) {
	return &httpmsg.Response{Status: 204}, h.end(ctx, rpc.PersonEnd{All: true, By: "operator"})
}

// EndPerson serves DELETE /api/people/{id}/sessions: the sessions of a person are over, on every machine.
func (h *SignIn) EndPerson(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	in := rpc.PersonEnd{ID: c.Params[0], MachineID: c.MachineID, By: actorOf(c)}
	return &httpmsg.Response{Status: 204}, h.end(ctx, in)
}

// actorOf returns who does what a record of the registry is about.
func actorOf(c *auth.Call) string {
	switch {
	case c.Person != nil:
		return "person:" + c.Person.ID
	case c.Key != nil:
		return "key:" + c.Key.ID
	}
	return "operator"
}

// Examine serves POST /api/identity-providers/{id}/test: what may keep people from signing in.
func (h *SignIn) Examine(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	p, err := h.row(ctx, c.Params[0])
	if err != nil {
		return nil, err
	}
	out := struct {
		OK       bool     `json:"ok"`
		Reason   string   `json:"reason,omitempty"`
		Findings []string `json:"findings"`
	}{OK: true, Findings: []string{}}
	found, err := h.examine(ctx, c.Request, p)
	var why oidc.Refusal
	switch {
	case errors.As(err, &why):
		out.OK, out.Reason, found = false, string(why), []string{why.Text() + "."}
	case err != nil && p.Kind == oidc.Passkey:
		out.OK, found = false, []string{err.Error()}
	case err != nil:
		return nil, err
	}
	out.Findings = append(out.Findings, found...)
	return answer(200, rpc.JSON(out)), nil
}

// examine checks whether people can sign in by a provider, and returns what may keep them from it.
func (h *SignIn) examine(ctx context.Context, r *httpmsg.Request, p *rpc.IdentityProvider) ([]string, error) {
	if p.Kind == oidc.Passkey {
		_, err := h.siteOf(r)
		return nil, err
	}
	return h.Flow.Examine(ctx, providerOf(p))
}

// methodsOf returns the methods of signing in that exist, for GET /api/auth.
func methodsOf(all []rpc.IdentityProvider) []string {
	methods := []string{"token"}
	for _, m := range [...]struct {
		name string
		is   func(kind string) bool
	}{
		{"oidc", func(k string) bool { return k == "" }},
		{"proxy", func(k string) bool { return k != "" && k != oidc.CI && k != oidc.Passkey }},
		{"ci", func(k string) bool { return k == oidc.CI }},
		{"passkey", func(k string) bool { return k == oidc.Passkey }},
	} {
		if slices.ContainsFunc(all, func(p rpc.IdentityProvider) bool { return m.is(p.Kind) }) {
			methods = append(methods, m.name)
		}
	}
	return methods
}

// checkKind checks what depends on the kind of a provider.
func checkKind(p *rpc.IdentityProvider, secret string) error {
	switch form, ok := oidc.CheckIssuer(p.Kind, p.Issuer); {
	case !oidc.IsKind(p.Kind):
		return apierr.Invalid("kind", "kind must be cloudflare-access, google-iap, ci, passkey or empty.")
	case !ok:
		return apierr.Invalid("issuer", "issuer must be %s.", form)
	case p.Kind != "" && (secret != "" || len(p.Scopes) > 0):
		return apierr.Invalid("clientSecret", "Only a provider that people sign in at has a secret and scopes.")
	case p.Kind == oidc.CI && strings.Contains(p.ClientID, " "):
		return apierr.Invalid("clientId", "clientId must be the audience of the tokens: the URL of this gateway.")
	}
	return nil
}
