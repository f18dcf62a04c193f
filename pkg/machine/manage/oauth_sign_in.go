package manage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// Accounts that are connected by an identity provider's own sign-in. The flows
// live in the machine's rows until they end: sealed, used once, ten minutes.
// See docs/reference/reliability.md, T58, T59.
//
//	POST /api/oauth/{provider}/authorize Connecting     200 Authorizing
//	POST /api/oauth/{provider}/device    Connecting     200 Showing
//	POST /api/oauth/{provider}/poll      {}             200 Polling
//	POST /api/oauth/{provider}/cancel    {}             204
//	oauth.callback                       CallbackQuery  200 Connected
//
// Connecting is {"connectionId"} to renew the grant of a connection, or what
// the new one is to have: {"name","priority","providerSpecificData"}.

// maxFlows is the number of sign-ins under way in one machine.
const maxFlows = 50

// Authorizing is a flow that goes on in the user's browser, at URL.
type Authorizing struct {
	URL         string `json:"url"`
	State       string `json:"state"`
	RedirectURI string `json:"redirectUri"`
	ExpiresAt   int64  `json:"expiresAt"` // Unix milliseconds
}

// Showing is what the user of a device flow is shown.
type Showing struct {
	UserCode                string `json:"userCode"`
	VerificationURI         string `json:"verificationUri"`
	VerificationURIComplete string `json:"verificationUriComplete,omitempty"`
	IntervalMs              int64  `json:"intervalMs"`
	ExpiresAt               int64  `json:"expiresAt"` // Unix milliseconds
	ConnectionID            string `json:"connectionId,omitempty"`
}

// Polling is the answer to a poll: pending, then connected.
type Polling struct {
	Status       string    `json:"status"`
	WaitMs       int64     `json:"waitMs,omitempty"`
	ConnectionID string    `json:"connectionId,omitempty"`
	Connection   *connView `json:"connection,omitempty"`
}

// oauthNote comes back with a grant: who began, and what is to become of it.
type oauthNote struct {
	KeyID        string          `json:"keyId,omitempty"` // "" is the operator
	ConnectionID string          `json:"connectionId,omitempty"`
	Fields       json.RawMessage `json:"fields,omitempty"` // of the new connection
}

// oauthClient returns the provider that the call names.
func (c *change) oauthClient() (*oauth.Provider, error) {
	p := c.o.Client(c.param())
	if why := c.o.Unusable[c.param()]; p == nil && why != "" {
		return nil, apierr.New(503, "misconfigured", "The OAuth client of this provider cannot be used. %s.", why)
	}
	if p == nil {
		return nil, apierr.New(404, "unknown_provider", "No OAuth client is configured for this provider.")
	}
	c.target = p.ID
	return p, nil
}

// note reads the body of a call that begins a flow, as the note of its grant.
func (c *change) note(p *oauth.Provider) (oauthNote, string, error) {
	n := oauthNote{KeyID: c.env.KeyID}
	body := orEmpty(c.env.Body)
	in := readObject(body, "")
	in.only("connectionId", "name", "priority", "providerSpecificData")
	if id, ok := in.text("connectionId", 64); ok && id != "" {
		if len(in.names) > 1 {
			in.fail("connectionId", "must be the only field: the account keeps its others")
		}
		if err := in.failed(); err != nil {
			return n, "", err
		}
		n.ConnectionID = id
		if _, err := c.renewed(p, id); err != nil {
			return n, "", err
		}
	} else {
		if err := in.failed(); err != nil {
			return n, "", err
		}
		if len(in.names) > 0 {
			n.Fields = body
		}
		if _, err := c.drafted(p, in); err != nil {
			return n, "", err
		}
		if len(c.List(storage.ConnectionPrefix)) >= MaxConns {
			return n, "", apierr.New(409, "too_many", "A machine has at most %d accounts.", MaxConns)
		}
	}
	raw, err := json.Marshal(n)
	if err != nil {
		return n, "", err
	}
	err = json.Unmarshal(raw, &n) // the fields as they come back with the grant
	return n, string(raw), err
}

// drafted makes the connection that a grant is for, of the fields that were
// sent; the operator's base address stays.
func (c *change) drafted(p *oauth.Provider, in *Input) (*connInput, error) {
	draft := storage.Connection{Connection: store.Connection{Provider: p.ID, AuthType: "oauth"}}
	draft.Data.BaseURL, draft.Data.Prefix = p.BaseURL, p.Prefix
	got := c.o.applyConnection(in, draft, false)
	switch {
	case in.Err != nil:
	case got.row.Data.Vars["clientId"] != "":
		in.fail("providerSpecificData.clientId", "is the operator's for a sign-in")
	case hasText(got.secrets):
		in.fail("providerSpecificData", "has a secret: add it to the account after the sign-in")
	case p.BaseURL != "" && got.row.Data.BaseURL != p.BaseURL:
		in.fail("providerSpecificData.baseUrl", "is the operator's for this provider")
	default:
		checkBase(in, &got.row.Connection)
	}
	return &got, in.failed()
}

func hasText(secrets map[string]string) bool {
	for _, s := range secrets {
		if s != "" {
			return true
		}
	}
	return false
}

// renewed loads the connection whose grant is to be renewed.
func (c *change) renewed(p *oauth.Provider, id string) (*connInput, error) {
	var row storage.Connection
	if !rpc.IsRowID(id) || !c.Load(storage.ConnectionPrefix+id, &row) {
		return nil, rpc.ErrNoConnection()
	}
	if row.Provider != p.ID || row.AuthType != "oauth" {
		return nil, apierr.Invalid("connectionId", "No account with this id was signed in to at this provider.")
	}
	return &connInput{row: row, secrets: map[string]string{}}, nil
}

// connect makes a connection of a grant, or renews the one it is for.
func (c *change) connect(p *oauth.Provider, g *oauth.Grant) (*connInput, error) {
	if !c.Exists() {
		return nil, storage.ErrNoMachine()
	}
	if c.env.KeyID != "" { // it may have been revoked meanwhile
		if err := c.stillAllowed(); err != nil {
			return nil, err
		}
	}
	var n oauthNote
	json.Unmarshal([]byte(g.Note), &n)
	var got *connInput
	var err error
	if n.ConnectionID != "" {
		if got, err = c.renewed(p, n.ConnectionID); err != nil {
			return nil, err
		}
		vars := map[string]string{}
		for k, v := range got.row.Data.Vars {
			if k != "clientId" { // the grant is the operator's client's
				vars[k] = v
			}
		}
		got.row.Data.Vars = vars
		got.secrets[store.ClientSecret] = ""
	} else {
		if got, err = c.drafted(p, readObject(orEmpty(n.Fields), "")); err != nil {
			return nil, err
		}
		if got.row.ID, err = rpc.NewID(c.o.Rand, 20); err != nil {
			return nil, err
		}
		if got.row.Name == "" {
			got.row.Name = freeName(cmp.Or(p.Name, p.ID), takenNames(c.Connections(), connectionName))
		}
	}
	got.secrets[store.AccessToken] = g.Token.Access.Reveal()
	got.secrets[store.RefreshToken] = g.Token.Refresh.Reveal()
	got.row.ExpiresAt = g.Token.ExpiresAt.UnixMilli()
	c.target, c.fields = got.row.ID, []string{store.AccessToken, store.RefreshToken, "expiresAt"}
	if err := c.o.finishConnection(c.Tx, got); err != nil {
		return nil, err
	}
	c.SetError(got.row.ID, "")
	return got, nil
}

func (c *change) oauthAuthorize() (any, error) {
	p, err := c.oauthClient()
	if err != nil {
		return nil, err
	}
	_, note, err := c.note(p)
	if err != nil {
		return nil, err
	}
	live := 0
	for _, row := range c.List(storage.FlowPrefix) {
		if oauth.Stale(row.Value, time.UnixMilli(c.Now)) {
			c.Del(row.Key)
		} else {
			live++
		}
	}
	if live >= maxFlows {
		e := apierr.New(429, "too_many", "Too many sign-ins are open. Finish one, or try again later.")
		e.RetryAfter = time.Minute
		return nil, e
	}
	a, err := c.o.signIns(c.Call).Authorize(p.ID, c.env.Session, c.env.RedirectURI, note)
	if err != nil {
		return nil, err
	}
	return Authorizing{a.URL, a.State, c.env.RedirectURI, a.ExpiresAt.UnixMilli()}, nil
}

func (c *change) oauthDevice() (any, error) {
	p, err := c.oauthClient()
	if err != nil {
		return nil, err
	}
	mine, note, err := c.note(p)
	if err != nil {
		return nil, err
	}
	ctx, err := c.Outside()
	if err != nil {
		return nil, err
	}
	d, err := c.o.signIns(c.Call).Device(ctx, p.ID, note)
	if err != nil {
		return nil, c.settle(err)
	}
	var n oauthNote
	json.Unmarshal([]byte(d.Note), &n)
	if n.ConnectionID != mine.ConnectionID || !bytes.Equal(n.Fields, mine.Fields) {
		return nil, apierr.New(409, "flow_under_way",
			"Another sign-in at this provider is under way: finish or cancel it first.")
	}
	return Showing{d.UserCode, d.VerificationURI, d.VerificationURIComplete, d.Interval.Milliseconds(),
		d.ExpiresAt.UnixMilli(), n.ConnectionID}, nil
}

func (c *change) oauthPoll() (any, error) {
	p, err := c.oauthClient()
	if err != nil {
		return nil, err
	}
	c.quiet = true
	ctx, err := c.Outside()
	if err != nil {
		return nil, err
	}
	polled, err := c.o.signIns(c.Call).Poll(ctx, p.ID)
	var f *oauth.Failure
	var unmade *apierr.Error
	switch {
	case errors.As(err, &f) && f.Kind == oauth.Transient && !errors.As(f.Err, &unmade): // polling goes on
		return Polling{Status: "pending", WaitMs: max(f.RetryAfter, pollAgain).Milliseconds()}, nil
	case err != nil:
		return nil, c.settle(err)
	case polled.Grant == nil:
		return Polling{Status: "pending", WaitMs: polled.Wait.Milliseconds()}, nil
	}
	got, err := c.connect(p, polled.Grant)
	if err != nil {
		return nil, c.settle(err)
	}
	c.quiet = false
	view := viewConnection(c.Tx, &got.row, c.Cooldowns())
	return Polling{Status: "connected", ConnectionID: got.row.ID, Connection: &view}, nil
}

// pollAgain is when a poll may be tried again after a failure.
const pollAgain = 5 * time.Second

func (c *change) oauthCancel() (any, error) {
	p, err := c.oauthClient()
	if err != nil {
		return nil, err
	}
	c.o.signIns(c.Call).Cancel(p.ID)
	c.status = 204
	return nil, nil
}

// FinishSignIn ends an authorization. It is the browser's call that began:
// whoever that was must still be allowed to.
func (o *Manager) FinishSignIn(r *storage.Call) (any, error) {
	var in rpc.CallbackQuery
	if json.Unmarshal(r.Body, &in) != nil {
		return nil, apierr.Invalid("", "The call is not readable.")
	}
	if !r.Exists() {
		return nil, storage.ErrNoMachine()
	}
	c := &change{Call: r, o: o}
	ctx, err := r.Outside()
	if err != nil {
		return nil, err
	}
	g, err := o.signIns(r).Callback(ctx, in.Session, in.RedirectURI, in.Query)
	if err != nil {
		return nil, c.settle(err)
	}
	p := o.Client(g.Provider)
	var n oauthNote
	if json.Unmarshal([]byte(g.Note), &n) != nil || p == nil {
		return nil, apierr.New(400, "invalid_callback", "This sign-in is unknown, used or expired. Start again.")
	}
	c.env.KeyID, c.actor = n.KeyID, "operator"
	if n.KeyID != "" {
		c.actor = "key:" + o.MaskedKey(n.KeyID)
	}
	got, err := c.connect(p, g)
	if err != nil {
		return nil, c.settle(err)
	}
	c.Audit(c.actor, "GET /oauth/callback", c.target, c.fields)
	return rpc.Connected{Provider: p.ID, Name: p.Name, ConnectionID: got.row.ID, Renewed: n.ConnectionID != ""}, nil
}
