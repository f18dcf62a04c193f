package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// The cookie. Its prefix makes browsers refuse one that is not Secure, not for
// the whole host, or from a neighbouring host. It has no end of its own: the
// object decides. Browsers take http://localhost for secure.
const (
	CookieName = "__Host-weir"
	cookieTail = "; Path=/; Secure; HttpOnly; SameSite=Strict"
	goneCookie = CookieName + "=" + cookieTail + "; Max-Age=0"
	idLen      = 43 // 256 bits in base64url
)

// bearerPrefix begins the text of a session that a program sends as a bearer token.
const bearerPrefix = "wt_"

// ticket is what the cookie says.
type ticket struct {
	home string // the object that knows the session: a machineId, or the registry
	id   string
	// bearer reports that it came as a bearer token, which no browser sends by itself.
	bearer bool
}

func (s *Sessions) text(t ticket) string { return t.home + "." + t.id + "." + s.mac(t) }

// cookie returns the session cookie: home, id and a MAC of both, so that a
// forged one creates no object.
func (s *Sessions) cookie(t ticket) string {
	return CookieName + "=" + s.text(t) + cookieTail
}

func (s *Sessions) mac(t ticket) string {
	mac := hmac.New(sha256.New, s.KeySecret)
	mac.Write([]byte("session:" + t.home + "." + t.id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func (t ticket) digest() string { return rpc.KeyDigest(t.id) }

// readCookie finds the one cookie of a session. Two of them, which no browser
// sends, count as none, as does one with a wrong MAC.
func (s *Sessions) readCookie(h httpmsg.Header) (t ticket, ok bool) {
	text, found := "", 0
	for _, f := range h {
		if f.Name != "cookie" {
			continue
		}
		for _, pair := range strings.Split(f.Value, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if name != CookieName || value == "" {
				continue
			}
			found++
			text = value
		}
	}
	if found != 1 {
		return ticket{}, false
	}
	return s.parse(text)
}

// readBearer returns the session of a program.
func (s *Sessions) readBearer(h httpmsg.Header) (t ticket, ok bool) {
	scheme, text, _ := strings.Cut(h.Get("authorization"), " ")
	text, ok = strings.CutPrefix(text, bearerPrefix)
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ticket{}, false
	}
	t, ok = s.parse(text)
	t.bearer = true
	return t, ok
}

// parse reads the text of a ticket. One with a wrong MAC calls no object.
func (s *Sessions) parse(text string) (t ticket, ok bool) {
	t.home, t.id, _ = strings.Cut(text, ".")
	id, mac, _ := strings.Cut(t.id, ".")
	t.id = id
	if t.home != rpc.RegistryID && !rpc.IsMachineID(t.home) || len(t.id) != idLen {
		return ticket{}, false
	}
	for i := 0; i < len(t.id); i++ {
		if c := t.id[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return ticket{}, false
		}
	}
	return t, hmac.Equal([]byte(mac), []byte(s.mac(t)))
}

// SameOrigin admits a mutation that a page of this gateway sends. A form
// cannot have this content type, and a browser names the page's origin.
func SameOrigin(r *httpmsg.Request) error {
	kind, _, _ := strings.Cut(r.Header.Get("content-type"), ";")
	site := r.Header.Get("sec-fetch-site")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") || r.Origin == "" ||
		r.Header.Get("origin") != r.Origin ||
		site != "" && site != "same-origin" {
		return apierr.New(403, "cross_site", "A change must come from a page of this gateway, as JSON.")
	}
	return nil
}

// crossSite reports whether another site's page made the browser ask.
func crossSite(r *httpmsg.Request) bool {
	site := r.Header.Get("sec-fetch-site")
	return site != "" && site != "same-origin" && site != "none"
}

func errCrossSite() error {
	return apierr.New(403, "cross_site", "Requests from other sites are not accepted here.")
}

// checkMutation admits a mutation in the name of a session. No browser sends a bearer token by
// itself, so one needs no proof of the page.
func (s *Sessions) checkMutation(r *httpmsg.Request, t ticket) error {
	if t.bearer {
		return nil
	}
	if err := SameOrigin(r); err != nil {
		return err
	}
	if !hmac.Equal([]byte(r.Header.Get("x-csrf-token")), []byte(s.csrf(t))) {
		return apierr.New(403, "csrf_token", "The CSRF token of the session is missing or wrong. Reload the dashboard.")
	}
	return nil
}

func isRefusal(err error) bool {
	var e *apierr.Error
	return errors.As(err, &e) && (e.Status == 401 || e.Status == 404)
}
