package api

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"weir/pkg/auth"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// OAuth connects accounts by the sign-in of their identity provider: the
// routes /api/oauth/{provider}/… and the address that browsers come back to.
// Package rpc has the shapes, and the machine's object stores what a flow needs.
type OAuth struct {
	*Handler
	Clients []oauth.Provider // the operator's
	// Unusable has the reason why a provider's client cannot be used.
	Unusable map[string]string
	// PublicURL is scheme and host that browsers reach the gateway at; "" takes
	// what a request was addressed to.
	PublicURL string
	Rand      io.Reader
	// AllowPrivate is that of provider.CheckBaseURL.
	AllowPrivate bool
}

// callbackPath is registered with the identity providers, behind PublicURL.
const callbackPath = "/oauth/callback"

// The cookie of a browser that has begun an authorization. The callback comes
// from another site, so the session's own cookie, which is strict, is not sent
// with it; this one does nothing else, and for ten minutes.
const (
	flowCookie     = "__Host-weir-oauth"
	flowCookieTail = "; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600"
	ticketLen      = 43 // 256 bits in base64url
)

// Forward serves device, poll and cancel: they have no use for the answer of
// an earlier call of the same name.
func (h *OAuth) Forward(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	env.MutationID = ""
	return h.send(ctx, c, env)
}

// Authorize serves POST /api/oauth/{provider}/authorize. The flow belongs to
// the browser that keeps the cookie of the answer: a URL that is handed on
// connects no one else's account (docs/reference/reliability.md, T58).
func (h *OAuth) Authorize(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	env, err := envelope(c)
	if err != nil {
		return nil, err
	}
	ticket, err := h.anyTicket(c.Header)
	if err != nil {
		return nil, err
	}
	env.MutationID, env.Session = "", ticket
	if env.RedirectURI, err = h.redirectURI(c.Request); err != nil {
		return nil, err
	}
	resp, err := h.send(ctx, c, env)
	if err == nil {
		resp.Header.Add("set-cookie", flowCookie+"="+ticket+flowCookieTail)
	}
	return resp, err
}

// Callback serves GET /oauth/callback: a page that says in words what came of
// the sign-in. Nothing of the query is shown.
func (h *OAuth) Callback(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	done, err := h.callback(ctx, c)
	if err == nil {
		name := cmp.Or(done.Name, done.Provider)
		what := "is connected."
		if done.Renewed {
			what = "is connected again."
		}
		return page(200, "Connected", "The account at "+name+" "+what), nil
	}
	c.Trace.Err = err
	var e *apierr.Error
	if !errors.As(err, &e) {
		e = apierr.New(500, "", "Something went wrong in the gateway. Start again.")
	}
	return page(e.Status, "Not connected", sentence(e.Message)), nil
}

func (h *OAuth) callback(ctx context.Context, c *auth.Call) (done rpc.Connected, err error) {
	ticket, ok := h.ticket(c.Header)
	if !ok {
		return done, apierr.New(400, "invalid_callback",
			"The sign-in was not started in this browser, or more than ten minutes ago. Start again.")
	}
	id := oauth.MachineOf(c.Query)
	if !rpc.IsMachineID(id) {
		return done, apierr.New(400, "invalid_callback", "This is not the address of a finished sign-in. Start again.")
	}
	uri, err := h.redirectURI(c.Request)
	if err != nil {
		return done, err
	}
	q := rpc.CallbackQuery{Session: ticket, RedirectURI: uri, Query: c.Query}
	done, err = rpc.Call[rpc.Connected](ctx, h.Objects, id, "oauth.callback", q)
	h.Cache.Invalidate(id)
	if err != nil {
		return done, err
	}
	c.MachineID = id
	return done, nil
}

// redirectURI returns the address that browsers come back to: below PUBLIC_URL,
// else below what this request was addressed to, which must be https or
// loopback. The provider knows which ones are the gateway's.
func (h *OAuth) redirectURI(r *httpmsg.Request) (string, error) {
	origin := cmp.Or(h.PublicURL, r.Origin)
	if h.PublicURL == "" && !oauth.IsOrigin(origin, false) {
		return "", apierr.New(400, "insecure_origin", "Signing in at a provider needs https. Open the dashboard over https, or set PUBLIC_URL.")
	}
	return origin + callbackPath, nil
}

// newTicket makes the value of the cookie: 256 random bits, and the proof
// that this gateway created them.
func (h *OAuth) newTicket() (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(h.Rand, b[:]); err != nil {
		return "", fmt.Errorf("make a ticket: %w", err)
	}
	id := base64.RawURLEncoding.EncodeToString(b[:])
	return id + "." + h.proof(id), nil
}

func (h *OAuth) proof(id string) string {
	mac := hmac.New(sha256.New, h.KeySecret)
	mac.Write([]byte("oauth ticket " + id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// ticket finds the one cookie of a flow. A cookie of another origin is
// ignored: no machine is asked for it.
func (h *OAuth) ticket(header httpmsg.Header) (string, bool) {
	found, n := "", 0
	for _, f := range header {
		if f.Name != "cookie" {
			continue
		}
		for _, pair := range strings.Split(f.Value, ";") {
			if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); name == flowCookie {
				found = value
				n++
			}
		}
	}
	id, proof, _ := strings.Cut(found, ".")
	return found, n == 1 && len(id) == ticketLen && hmac.Equal([]byte(proof), []byte(h.proof(id)))
}

// anyTicket returns the cookie of a flow, else a new one.
func (h *OAuth) anyTicket(header httpmsg.Header) (string, error) {
	if found, ok := h.ticket(header); ok {
		return found, nil
	}
	return h.newTicket()
}

// page is a page without script, style or any other request.
func page(status int, title, text string) *httpmsg.Response {
	return &httpmsg.Response{
		Status: status,
		Header: httpmsg.Header{
			{Name: "content-type", Value: "text/html; charset=utf-8"},
			{Name: "content-security-policy", Value: "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
			{Name: "referrer-policy", Value: "no-referrer"}, // the address has the code
			{Name: "x-frame-options", Value: "DENY"},
			{Name: "cross-origin-opener-policy", Value: "same-origin"},
		},
		Body: stream.FromString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
			`<meta name="color-scheme" content="light dark"><title>` + title + ` – weir</title></head><body><h1>` + title +
			`</h1><p>` + escape(text) + `</p><p><a href="/">Back to weir</a></p></body></html>`),
	}
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(s)
}

// sentence begins a message with a capital and ends it with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}
