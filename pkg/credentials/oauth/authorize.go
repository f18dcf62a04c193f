package oauth

import (
	"context"
	"crypto/subtle"
	"strings"
	"time"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
)

// flow is a pending authorization. The key of its row contains the digest of the state.
type flow struct {
	Provider    string        `json:"provider"`
	RedirectURI string        `json:"redirectUri"`
	Session     string        `json:"session"` // SHA-256, hex
	Verifier    secret.Sealed `json:"verifier"`
	Note        string        `json:"note,omitempty"`
	ExpiresAt   int64         `json:"expiresAt"` // Unix milliseconds
}

// Authorization is a started flow.
type Authorization struct {
	URL       string // where the user's browser goes
	State     string
	ExpiresAt time.Time
}

// Grant is the result of a completed flow.
type Grant struct {
	Provider string
	Token    Token
	Note     string // as it was given when the flow began
}

const verifierField = "verifier"

func flowKey(state string) string { return "oauth/flow/" + digest(state) }

// Authorize starts an authorization code flow. session binds the callback to the caller
// who started the flow: an unguessable value, such as that of a cookie set with the
// response. redirectURI is the gateway's own callback, https, or http on loopback. note
// is returned with the grant; it must not contain a secret.
func (e *Engine) Authorize(providerID, session, redirectURI, note string) (*Authorization, error) {
	p, err := e.provider(providerID)
	if err != nil {
		return nil, err
	}
	if p.AuthorizeURL == "" {
		return nil, apierr.New(400, "unsupported_flow", "This provider has no sign-in in the browser. Use a device code.")
	}
	if len(session) < 16 {
		return nil, apierr.Invalid("session", "A session is needed to begin an authorization.")
	}
	if !isAddress(redirectURI, isLoopback(redirectURI), false) {
		return nil, apierr.Invalid("redirect_uri", "The redirect URI must be an https address without query and fragment.")
	}
	state, err := e.secret()
	if err != nil {
		return nil, err
	}
	if e.MachineID != "" {
		state = e.MachineID + "." + state
	}
	verifier, err := e.secret()
	if err != nil {
		return nil, err
	}
	key, ends := flowKey(state), e.Now().Add(flowLife)
	sealed, err := e.Vault.Seal(key, verifierField, secret.New(verifier))
	if err != nil {
		return nil, err
	}
	if err := e.save(key, flow{p.ID, redirectURI, digest(session), sealed, note, ends.UnixMilli()}); err != nil {
		return nil, err
	}
	var f form
	f.add("response_type", "code")
	f.add("client_id", p.ClientID)
	f.add("redirect_uri", redirectURI)
	if len(p.Scopes) > 0 {
		f.add("scope", strings.Join(p.Scopes, " "))
	}
	f.add("state", state)
	f.add("code_challenge", Challenge(verifier))
	f.add("code_challenge_method", "S256")
	for _, x := range p.AuthorizeParams {
		f.add(x[0], x[1])
	}
	url, sep := p.AuthorizeURL, "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	return &Authorization{URL: url + sep + string(f), State: state, ExpiresAt: ends}, nil
}

func isLoopback(uri string) bool {
	rest, ok := strings.CutPrefix(uri, "http://127.0.0.1")
	if !ok {
		rest, ok = strings.CutPrefix(uri, "http://localhost")
	}
	return ok && (rest == "" || rest[0] == ':' || rest[0] == '/')
}

// MachineOf returns the machine that the state of a callback's query belongs to,
// or "". It does not verify the state: Callback does.
func MachineOf(query string) string {
	list, ok := params(query)
	if !ok {
		return ""
	}
	id, secret, ok := strings.Cut(list["state"], ".")
	if !ok || secret == "" || !isID(id) {
		return ""
	}
	return id
}

// Callback completes an authorization code flow. query is that of the callback, session
// the value passed to Authorize, and redirectURI the URL that the callback used. The
// first callback of its session consumes the state, also if it fails, and the code is
// exchanged once.
//
// For a callback of another flow the error is a 400, and no call is sent. Other errors
// are a 400 with code access_denied and the *Failure of the exchange.
func (e *Engine) Callback(ctx context.Context, session, redirectURI, query string) (*Grant, error) {
	list, ok := params(query)
	if !ok {
		return nil, badCallback("The callback's parameters are malformed.")
	}
	state := list["state"]
	if state == "" {
		return nil, badCallback("The callback has no state.")
	}
	key := flowKey(state)
	var f flow
	if !e.load(key, &f) {
		return nil, badCallback("This sign-in is unknown, used or expired. Start again.")
	}
	if session == "" || subtle.ConstantTimeCompare([]byte(digest(session)), []byte(f.Session)) != 1 {
		// The flow stays: another browser must not be able to end it.
		return nil, badCallback("The authorization was begun by another session.")
	}
	e.Rows.Delete(key)
	p, err := e.provider(f.Provider)
	switch {
	case err != nil:
		return nil, err
	case f.ExpiresAt <= e.Now().UnixMilli():
		return nil, badCallback("This sign-in is unknown, used or expired. Start again.")
	case redirectURI != f.RedirectURI:
		return nil, badCallback("The callback came to another address than the authorization named.")
	}
	iss, sent := list["iss"]
	if want := p.Issuer; want != "" && iss != want || want == "" && sent && iss != originOf(p.AuthorizeURL) {
		return nil, badCallback("The callback is from another issuer.")
	}
	if code, failed := list["error"]; failed {
		if !isCode(code) || code == "" {
			code = "error"
		}
		return nil, apierr.New(400, code, "The provider did not allow the sign-in (%s). Start again, and allow the access.", code)
	}
	code := list["code"]
	if code == "" {
		return nil, badCallback("The callback has no code.")
	}
	verifier, err := e.Vault.Open(key, verifierField, f.Verifier)
	if err != nil {
		return nil, err
	}
	var body form
	body.add("grant_type", "authorization_code")
	body.add("code", code)
	body.add("redirect_uri", f.RedirectURI)
	body.add("code_verifier", verifier.Reveal())
	t, err := exchange(ctx, e.Doer(p, f.Note), p, body, callTimeout, e.Now())
	if err != nil {
		return nil, err
	}
	return &Grant{p.ID, t, f.Note}, nil
}

func badCallback(message string) error {
	return apierr.New(400, "invalid_callback", "%s", message)
}
