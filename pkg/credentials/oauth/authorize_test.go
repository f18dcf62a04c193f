package oauth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/pkg/wire/apierr"
)

const (
	session  = "session-of-the-browser"
	redirect = "https://gw.test/oauth/callback"
	granted  = `{"access_token":"access-1","refresh_token":"refresh-1","expires_in":3600,"token_type":"Bearer","id_token":"dropped"}`
)

func grant(string, map[string]string) (int, string) { return 200, granted }

func status(err error) int {
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

func TestChallengeMatchesRFC(t *testing.T) { // RFC 7636 appendix B
	if got := Challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"); got != "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" {
		t.Errorf("got %s", got)
	}
}

func TestAuthorizationCodeFlow(t *testing.T) {
	w := newWorld(t, grant)
	a, err := w.Authorize("acme", session, redirect, "note")
	if err != nil {
		t.Fatal(err)
	}
	base, query, _ := strings.Cut(a.URL, "?")
	q, ok := params(query)
	if !ok || base != "https://id.acme.test/authorize" || q["tenant"] != "a" || q["response_type"] != "code" || q["client_id"] != "client-1" ||
		q["redirect_uri"] != redirect || q["scope"] != "a b:c" || q["state"] != a.State || q["code_challenge_method"] != "S256" || len(q["code_challenge"]) != 43 {
		t.Errorf("%s", a.URL)
	}
	if MachineOf("state="+a.State+"&code=x") != "abcdefgh12345678" || len(a.State) != 16+1+43 || a.ExpiresAt != w.now.Add(10*time.Minute) {
		t.Errorf("%+v", a)
	}
	g, err := w.Callback(context.Background(), session, redirect, "code=c%2F1&state="+a.State+"&iss=https%3A%2F%2Fid.acme.test")
	if err != nil {
		t.Fatal(err)
	}
	if g.Provider != "acme" || g.Note != "note" || g.Token.Access.Reveal() != "access-1" || g.Token.Refresh.Reveal() != "refresh-1" || g.Token.ExpiresAt != w.now.Add(59*time.Minute) {
		t.Errorf("%+v", g)
	}
	c := w.idp.calls[0]
	if c["url"] != "https://id.acme.test/token" || c["grant_type"] != "authorization_code" || c["code"] != "c/1" || c["redirect_uri"] != redirect ||
		c["client_id"] != "client-1" || Challenge(c["code_verifier"]) != q["code_challenge"] || len(c["code_verifier"]) < 43 {
		t.Errorf("%v", c)
	}
	if len(w.rows) != 0 {
		t.Errorf("left: %v", w.rows)
	}
	// The same callback again: no second exchange.
	if _, err := w.Callback(context.Background(), session, redirect, "code=c%2F1&state="+a.State); status(err) != 400 || len(w.idp.calls) != 1 {
		t.Errorf("replayed: %v, %d calls", err, len(w.idp.calls))
	}
}

func TestStoredFlowHasNoPlaintextSecret(t *testing.T) {
	w := newWorld(t, grant)
	a, _ := w.Authorize("acme", session, redirect, "note")
	secret := strings.SplitN(a.State, ".", 2)[1]
	rest := w.atRest()
	w.Callback(context.Background(), session, redirect, "code=1&state="+a.State)
	for _, s := range []string{secret, session, w.idp.calls[0]["code_verifier"]} {
		if s == "" || strings.Contains(rest, s) {
			t.Errorf("the rows hold %q", s)
		}
	}
}

func TestConfidentialClientAuthenticates(t *testing.T) {
	w := newWorld(t, grant)
	a, err := w.Authorize("conf", session, redirect, "note")
	if err != nil || !strings.Contains(a.URL, "&access_type=offline") {
		t.Fatal(a, err)
	}
	if _, err := w.Callback(context.Background(), session, redirect, "code=1&state="+a.State+"&iss=https://issuer.conf.test"); err != nil {
		t.Fatal(err)
	}
	// base64("id%3A2:s3cret%2F%2Bword")
	if got := w.idp.header.Get("authorization"); got != "Basic aWQlM0EyOnMzY3JldCUyRiUyQndvcmQ=" {
		t.Errorf("authorization %q", got)
	}
	if c := w.idp.calls[0]; c["client_secret"] != "" || c["client_id"] != "" {
		t.Errorf("%v", c)
	}
}

// docs/reference/reliability.md, T58: each is refused without a call of the
// token endpoint.
func TestForeignCallbacksAreRefused(t *testing.T) {
	ok := "code=1&state=STATE"
	tests := []struct {
		name, provider, session, redirect, query string
		later                                    time.Duration
		kept                                     bool // the flow can still be ended by its own session
	}{
		{name: "no_state", query: "code=1", kept: true},
		{name: "no_code", query: "state=STATE"},
		{name: "empty_code", query: "code=&state=STATE"},
		{name: "unknown_state", query: "code=1&state=STATEx", kept: true},
		{name: "state_twice", query: ok + "&state=STATE", kept: true},
		{name: "code_twice", query: ok + "&code=2", kept: true},
		{name: "broken_escape", query: ok + "&x=%4", kept: true},
		{name: "no_session", query: ok, session: "-", kept: true},
		{name: "another_session", query: ok, session: "session-of-another-one", kept: true},
		{name: "another_redirect", query: ok, redirect: redirect + "/"},
		{name: "open_redirect", query: ok, redirect: "https://evil.test/oauth/callback"},
		{name: "other_issuer", query: ok + "&iss=https://evil.test"},
		{name: "empty_issuer", query: ok + "&iss="},
		{name: "configured_issuer_missing", provider: "conf", query: ok},
		{name: "configured_issuer_differs", provider: "conf", query: ok + "&iss=https://conf.test"},
		{name: "expired", query: ok, later: 10 * time.Minute},
		{name: "denied", query: "error=access_denied&error_description=<script>&state=STATE"},
		{name: "error_and_code", query: ok + "&error=server_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, grant)
			p, s, r := tt.provider, tt.session, tt.redirect
			if p == "" {
				p = "acme"
			}
			if r == "" {
				r = redirect
			}
			switch s {
			case "":
				s = session
			case "-":
				s = ""
			}
			a, err := w.Authorize(p, session, redirect, "note")
			if err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(tt.later)
			g, err := w.Callback(context.Background(), s, r, strings.ReplaceAll(tt.query, "STATE", a.State))
			if g != nil || status(err) != 400 || len(w.idp.calls) != 0 {
				t.Fatalf("%v, %v, %d calls", g, err, len(w.idp.calls))
			}
			if strings.Contains(err.Error(), "script") {
				t.Errorf("text of the provider in %v", err)
			}
			_, err = w.Callback(context.Background(), session, redirect, "code=1&state="+a.State)
			if kept := err == nil; kept != tt.kept {
				t.Errorf("usable afterwards: %v (%v), want %v", kept, err, tt.kept)
			}
		})
	}
}

func TestFailedExchangeConsumesState(t *testing.T) {
	w := newWorld(t, func(string, map[string]string) (int, string) { return 400, `{"error":"invalid_grant"}` })
	a, _ := w.Authorize("acme", session, redirect, "note")
	_, err := w.Callback(context.Background(), session, redirect, "code=1&state="+a.State)
	var f *Failure
	if !errors.As(err, &f) || f.Kind != Reauth {
		t.Fatal(err)
	}
	if _, err := w.Callback(context.Background(), session, redirect, "code=1&state="+a.State); status(err) != 400 || len(w.idp.calls) != 1 {
		t.Errorf("%v, %d calls", err, len(w.idp.calls))
	}
}

func TestAuthorizeRefuses(t *testing.T) {
	tests := []struct {
		name, provider, session, redirect string
		status                            int
	}{
		{"unknown_provider", "none", session, redirect, 404},
		{"no_such_flow", "onlydevice", session, redirect, 400},
		{"no_session", "acme", "", redirect, 400},
		{"guessable_session", "acme", "1234", redirect, 400},
		{"plain_http", "acme", session, "http://gw.test/oauth/callback", 400},
		{"fragment", "acme", session, redirect + "#x", 400},
		{"script", "acme", session, "javascript:alert(1)", 400},
	}
	for _, tt := range tests {
		w := newWorld(t, grant)
		if a, err := w.Authorize(tt.provider, tt.session, tt.redirect, "note"); a != nil || status(err) != tt.status || len(w.rows) != 0 {
			t.Errorf("%s: %v %v", tt.name, a, err)
		}
	}
	if _, err := newWorld(t, grant).Authorize("acme", session, "http://127.0.0.1:8787/oauth/callback", "note"); err != nil {
		t.Errorf("loopback: %v", err)
	}
}

func TestRowsGoStale(t *testing.T) {
	w := newWorld(t, grant)
	w.Authorize("acme", session, redirect, "note")
	for _, v := range w.rows {
		if Stale(v, w.now.Add(10*time.Minute-1)) || !Stale(v, w.now.Add(10*time.Minute)) {
			t.Error("a flow lasts ten minutes")
		}
	}
	if !Stale([]byte("x"), w.now) {
		t.Error("what cannot be read is stale")
	}
}
