package oidc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/issuer"
	"weir/pkg/people"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

const redirect = "https://gateway.example/oidc/callback"

// world is a flow against identity providers.
type world struct {
	*Flow
	at      time.Time
	spent   map[string]bool
	issuers []*issuer.Issuer
	auth    string // the credential of the client at the token endpoint
}

func newWorld(issuers ...*issuer.Issuer) *world {
	w := &world{at: time.Unix(now, 0), spent: map[string]bool{}, issuers: issuers}
	up := &fake.Upstream{Clock: fake.NewClock(w.at), Answer: func(s *fake.Seen) fake.Answer {
		if v := s.Header.Get("authorization"); strings.HasPrefix(v, "Basic ") {
			w.auth = v
		}
		for _, i := range w.issuers {
			if a, ok := i.Reply(s, w.at.Unix()); ok {
				return a
			}
		}
		return fake.Answer{Err: errors.New("no such host")}
	}}
	w.Flow = &Flow{KeySecret: []byte(strings.Repeat("k", 32)), Rand: rand.Reader,
		Client: &Client{Do: up, Verify: verifier, Now: func() time.Time { return w.at }},
		Spend: func(_ context.Context, digest string, _ int64) (bool, error) {
			fresh := !w.spent[digest]
			w.spent[digest] = true
			return fresh, nil
		}}
	return w
}

func providerOf(s *issuer.Issuer, rules ...people.Rule) *Provider {
	return &Provider{ID: "p1", Issuer: s.URL, ClientID: "client", ClientSecret: secret.New("s:e/c"), Rules: rules}
}

// signIn signs in, with the query of the callback changed.
func (w *world) signIn(p *Provider, s *issuer.Issuer, change func(q url.Values)) (*people.Identity, error) {
	ctx := context.Background()
	address, err := w.Begin(ctx, p, "ticket", redirect, "")
	if err != nil {
		return nil, err
	}
	q, _ := url.ParseQuery(s.Authorize(address))
	if change != nil {
		change(q)
	}
	return w.Finish(ctx, p, "ticket", redirect, q.Encode())
}

func rule(value string, path ...string) people.Rule {
	return people.Rule{Claim: path, Value: value, Role: people.Editor, Machines: []string{people.Everywhere}}
}

func TestSignInWithClaimsOfProviders(t *testing.T) {
	long := make([]string, 201)
	for i := range long {
		long[i] = "g"
	}
	for name, v := range map[string]struct {
		url, alg   string
		user, info claims
		rule       people.Rule
		role       people.Role
		err        error
	}{
		"Google": {"https://accounts.google.com", "RS256", claims{"sub": "1", "hd": "acme.com", "email": "ada@acme.com",
			"email_verified": true, "name": "Ada"}, nil, rule("acme.com", "hd"), people.Editor, nil},
		"Google, the domain in the address alone": {"https://accounts.google.com", "RS256",
			claims{"sub": "1", "email": "ada@acme.com"}, nil, rule("acme.com", "hd"), "", nil},
		"an address that is verified": {"https://accounts.google.com", "RS256", claims{"sub": "1", "email": "ada@acme.com",
			"email_verified": true}, nil, rule("ada@acme.com", "email"), people.Editor, nil},
		"an address that is not": {"https://id.acme.com", "RS256", claims{"sub": "1", "email": "ada@acme.com",
			"email_verified": false}, nil, rule("ada@acme.com", "email"), "", nil},
		"an address of which nothing is said": {"https://login.microsoftonline.com/t1/v2.0", "RS256", claims{"sub": "1",
			"email": "ada@acme.com"}, nil, rule("ada@acme.com", "email"), "", nil},
		"an address that is not, in userinfo": {"https://id.acme.com", "RS256", claims{"sub": "1"},
			claims{"email": "ada@acme.com", "email_verified": "false"}, rule("ada@acme.com", "email"), "", nil},
		"Entra with app roles": {"https://login.microsoftonline.com/t1/v2.0", "RS256", claims{"sub": "2", "tid": "t1",
			"roles": []string{"weir.editor"}, "name": "Ada"}, nil, rule("weir.editor", "roles"), people.Editor, nil},
		"Entra with too many groups": {"https://login.microsoftonline.com/t1/v2.0", "RS256", claims{"sub": "2",
			"_claim_names": claims{"groups": "src1"}, "_claim_sources": claims{"src1": claims{}}},
			claims{"groups": long}, rule("g", "groups"), "", people.ErrTooManyGroups},
		"Okta": {"https://acme.okta.com", "RS256", claims{"sub": "3", "groups": []string{"Everyone", "ai"}}, nil,
			rule("ai", "groups"), people.Editor, nil},
		"Keycloak, roles in userinfo alone": {"https://id.acme.com/realms/acme", "ES256", claims{"sub": "4"},
			claims{"realm_access": claims{"roles": []string{"ai"}}}, rule("ai", "realm_access", "roles"), people.Editor, nil},
		"Zitadel": {"https://acme.zitadel.cloud", "EdDSA", claims{"sub": "5",
			"urn:zitadel:iam:org:project:roles": claims{"ai": claims{"1": "acme"}}}, nil,
			rule("ai", "urn:zitadel:iam:org:project:roles"), people.Editor, nil},
		"Auth0": {"https://acme.eu.auth0.com/", "PS256", claims{"sub": "auth0|6", "https://acme.com/roles": "ai"}, nil,
			rule("ai", "https://acme.com/roles"), people.Editor, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := issuer.New(v.url)
			if strings.HasSuffix(v.url, "/") { // the endpoints are below it
				t.Skip("see TestIssuerWithSlash")
			}
			s.Alg, s.User, s.Info = v.alg, v.user, v.info
			w := newWorld(s)
			who, err := w.signIn(providerOf(s, v.rule), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			grants, err := people.Resolve([]people.Rule{v.rule}, who.Claims)
			if grants[people.Everywhere].Role != v.role || !errors.Is(err, v.err) {
				t.Errorf("got %v, %v", grants, err)
			}
			if who.Issuer != v.url || who.Subject != v.user["sub"] || who.EmailVerified != (v.user["email_verified"] == true) {
				t.Errorf("got %+v", who)
			}
			if w.auth != "Basic Y2xpZW50OnMlM0FlJTJGYw==" {
				t.Errorf("the client's credential is %q", w.auth)
			}
		})
	}
}

// keysOf answers with a JWKS of one key.
func keysOf(key claims) func(string) fake.Answer {
	return func(path string) fake.Answer {
		if path != "/keys" {
			return fake.Answer{Status: -1}
		}
		raw, _ := json.Marshal(claims{"keys": []claims{key}})
		return fake.JSON(string(raw))
	}
}

func TestAttacksOnFlow(t *testing.T) {
	ctx := context.Background()
	for name, v := range map[string]struct {
		attack func(w *world, p *Provider, s *issuer.Issuer) error
		want   error
	}{
		"replayed state": {func(w *world, p *Provider, s *issuer.Issuer) error {
			address, _ := w.Begin(ctx, p, "ticket", redirect, "")
			query := s.Authorize(address)
			if _, err := w.Finish(ctx, p, "ticket", redirect, query); err != nil {
				return err
			}
			_, err := w.Finish(ctx, p, "ticket", redirect, query)
			return err
		}, errUsed},
		"replayed code": {func(w *world, p *Provider, s *issuer.Issuer) error {
			var code string
			if _, err := w.signIn(p, s, func(q url.Values) { code = q.Get("code") }); err != nil {
				return err
			}
			_, err := w.signIn(p, s, func(q url.Values) { q.Set("code", code) })
			return err
		}, errStatus},
		"code of another sign-in": {func(w *world, p *Provider, s *issuer.Issuer) error {
			address, _ := w.Begin(ctx, p, "victim", redirect, "")
			q, _ := url.ParseQuery(s.Authorize(address))
			_, err := w.signIn(p, s, func(own url.Values) { own.Set("code", q.Get("code")) })
			return err
		}, errStatus}, // PKCE
		"state of another browser": {func(w *world, p *Provider, s *issuer.Issuer) error {
			address, _ := w.Begin(ctx, p, "attacker", redirect, "")
			_, err := w.Finish(ctx, p, "victim", redirect, s.Authorize(address))
			return err
		}, errState},
		"no ticket": {func(w *world, p *Provider, s *issuer.Issuer) error {
			address, _ := w.Begin(ctx, p, "", redirect, "")
			_, err := w.Finish(ctx, p, "", redirect, s.Authorize(address))
			return err
		}, errState},
		"another invitation": {func(w *world, p *Provider, s *issuer.Issuer) error {
			_, err := w.signIn(p, s, func(q url.Values) {
				parts := strings.Split(q.Get("state"), ".")
				parts[3] = "abc"
				q.Set("state", strings.Join(parts, "."))
			})
			return err
		}, errState},
		"old state": {func(w *world, p *Provider, s *issuer.Issuer) error {
			_, err := w.signIn(p, s, func(url.Values) { w.at = w.at.Add(10 * time.Minute) })
			return err
		}, errOld},
		"iss of another": {func(w *world, p *Provider, s *issuer.Issuer) error {
			_, err := w.signIn(p, s, func(q url.Values) { q.Set("iss", "https://evil.example") })
			return err
		}, errMixUp},
		"no iss although promised": {func(w *world, p *Provider, s *issuer.Issuer) error {
			_, err := w.signIn(p, s, func(q url.Values) { q.Del("iss") })
			return err
		}, errMixUp},
		"mix-up of two providers": {func(w *world, p *Provider, s *issuer.Issuer) error {
			evil := issuer.New("https://evil.example")
			w.issuers = append(w.issuers, evil)
			other := providerOf(evil)
			other.ID = "p2"
			address, _ := w.Begin(ctx, p, "ticket", redirect, "")
			_, err := w.Finish(ctx, other, "ticket", redirect, s.Authorize(address))
			return err
		}, errState},
		"two codes": {func(w *world, p *Provider, s *issuer.Issuer) error {
			_, err := w.signIn(p, s, func(q url.Values) { q.Add("code", "x") })
			return err
		}, errQuery},
		"refused by the provider": {func(w *world, p *Provider, s *issuer.Issuer) error {
			_, err := w.signIn(p, s, func(q url.Values) { q.Set("error", "access_denied"); q.Del("code") })
			return err
		}, errDenied},
		"nonce of another sign-in": {func(w *world, p *Provider, s *issuer.Issuer) error {
			s.Change = func(_, c claims) { c["nonce"] = "theirs" }
			_, err := w.signIn(p, s, nil)
			return err
		}, errNonce},
		"unsigned token": {func(w *world, p *Provider, s *issuer.Issuer) error {
			s.Token = func(c claims) string { return s.Sign("none", nil, c) + "AA" }
			_, err := w.signIn(p, s, nil)
			return err
		}, errAlgorithm},
		"PKCE removed on the way": {func(w *world, p *Provider, s *issuer.Issuer) error {
			address, _ := w.Begin(ctx, p, "ticket", redirect, "")
			u, _ := url.Parse(address)
			q := u.Query()
			q.Del("code_challenge")
			q.Del("code_challenge_method")
			u.RawQuery = q.Encode()
			_, err := w.Finish(ctx, p, "ticket", redirect, s.Authorize(u.String()))
			return err
		}, errStatus},
		"a shared secret among the keys": {func(w *world, p *Provider, s *issuer.Issuer) error {
			s.Answer = keysOf(claims{"kid": "RS256", "kty": "oct", "k": "c2VjcmV0"})
			_, err := w.signIn(p, s, nil)
			return err
		}, errKeyType},
		"a key for another algorithm": {func(w *world, p *Provider, s *issuer.Issuer) error {
			key := s.Key("RS256")
			key["alg"] = "ES256"
			s.Answer = keysOf(key)
			_, err := w.signIn(p, s, nil)
			return err
		}, errKeyType},
		"a key id with a path": {func(w *world, p *Provider, s *issuer.Issuer) error {
			s.Change = func(header, _ claims) { header["kid"] = "../../keys#.0 | RS256" }
			_, err := w.signIn(p, s, nil)
			return err
		}, errNoKey},
		"userinfo of another person": {func(w *world, p *Provider, s *issuer.Issuer) error {
			s.Info = claims{"sub": "eve"}
			_, err := w.signIn(p, s, nil)
			return err
		}, errSubject},
	} {
		s := issuer.New("https://id.example")
		s.User = claims{"sub": "ada"}
		w := newWorld(s)
		if err := v.attack(w, providerOf(s), s); err != v.want {
			t.Errorf("%s: got %v, want %v", name, err, v.want)
		}
	}
}

func TestBadIssuers(t *testing.T) {
	document := func(name, value string) func(string) fake.Answer {
		return func(path string) fake.Answer {
			if path != wellKnown {
				return fake.Answer{Status: -1}
			}
			return fake.JSON(strings.Replace(`{"issuer":"https://id.example","authorization_endpoint":"https://id.example/a",`+
				`"token_endpoint":"https://id.example/token","jwks_uri":"https://id.example/keys"}`, name, value, 1))
		}
	}
	only := func(path string, a fake.Answer) func(string) fake.Answer {
		return func(p string) fake.Answer {
			if p == path {
				return a
			}
			return fake.Answer{Status: -1}
		}
	}
	moved := fake.Answer{Status: 302, Header: httpmsg.Header{{Name: "location", Value: "https://evil.example/"}}}
	for name, v := range map[string]struct {
		answer func(string) fake.Answer
		want   error
	}{
		"down":                  {only(wellKnown, fake.Answer{Err: errors.New("refused")}), errUnreachable},
		"slow":                  {only(wellKnown, fake.Answer{Err: upstream.ErrTimeout}), errUnreachable},
		"a failure":             {only(wellKnown, fake.Answer{Status: 500}), errStatus},
		"a redirect":            {only(wellKnown, moved), errRedirect},
		"a page":                {only(wellKnown, fake.OK("text/html", "<html>")), errDocument},
		"of another name":       {document("https://id.example", "https://evil.example"), errOtherIssuer},
		"a template of tenants": {document("https://id.example", "https://id.example/{tenantid}"), errOtherIssuer},
		"private keys address":  {document("https://id.example/keys", "https://10.0.0.1/keys"), errAddress},
		"metadata service":      {document("https://id.example/keys", "http://169.254.169.254/keys"), errAddress},
		"plain http":            {document("https://id.example/token", "http://id.example/token"), errAddress},
		"a script to open":      {document("https://id.example/a", "javascript:alert(1)"), errAddress},
		"keys of 10 MB":         {only("/keys", fake.JSON(`{"keys":"`+strings.Repeat("a", 10<<20)+`"}`)), errTooLarge},
		"keys that move":        {only("/keys", moved), errRedirect},
	} {
		s := issuer.New("https://id.example")
		s.User, s.Answer = claims{"sub": "ada"}, v.answer
		if _, err := newWorld(s).signIn(providerOf(s), s, func(q url.Values) {}); err != v.want {
			t.Errorf("%s: got %v, want %v", name, err, v.want)
		}
	}
	private := issuer.New("https://192.168.1.5")
	if _, err := newWorld(private).signIn(providerOf(private), private, nil); err != errAddress {
		t.Errorf("a private issuer: %v", err)
	}
}

func TestIssuerWithSlash(t *testing.T) {
	s := issuer.New("https://acme.eu.auth0.com")
	s.User = claims{"sub": "auth0|6", "https://acme.com/roles": "ai", "iss": s.URL + "/"}
	w, p := newWorld(s), providerOf(s, rule("ai", "https://acme.com/roles"))
	p.Issuer += "/"
	s.Answer = func(path string) fake.Answer {
		if path != wellKnown {
			return fake.Answer{Status: -1}
		}
		return fake.JSON(`{"issuer":"https://acme.eu.auth0.com/","authorization_endpoint":"https://acme.eu.auth0.com/a",` +
			`"token_endpoint":"https://acme.eu.auth0.com/token","jwks_uri":"https://acme.eu.auth0.com/keys"}`)
	}
	who, err := w.signIn(p, s, func(q url.Values) { q.Del("iss") })
	if err != nil || who.Issuer != p.Issuer {
		t.Fatalf("got %+v, %v", who, err)
	}
}

func TestUnknownKeysAreAskedForOnceAMinute(t *testing.T) {
	s := issuer.New("https://id.example")
	s.User = claims{"sub": "ada"}
	w, p := newWorld(s), providerOf(s)
	s.Change = func(header, _ claims) { header["kid"] = "unknown" }
	for range 1000 {
		if _, err := w.signIn(p, s, nil); err != errNoKey {
			t.Fatal(err)
		}
	}
	if n := s.Seen["/keys"]; n != 1 {
		t.Errorf("%d requests for keys", n)
	}
	w.at = w.at.Add(time.Minute)
	w.signIn(p, s, nil)
	if n := s.Seen["/keys"]; n != 2 {
		t.Errorf("%d requests for keys a minute later", n)
	}
}

func TestOldAnswersServeWhileIssuerIsDown(t *testing.T) {
	s := issuer.New("https://id.example")
	s.User = claims{"sub": "ada", "email": "a@b.example", "name": "Ada"}
	w, p := newWorld(s), providerOf(s)
	if _, err := w.signIn(p, s, nil); err != nil {
		t.Fatal(err)
	}
	s.Answer = func(path string) fake.Answer {
		if path == wellKnown || path == "/keys" {
			return fake.Answer{Err: errors.New("down")}
		}
		return fake.Answer{Status: -1}
	}
	w.at = w.at.Add(23 * time.Hour)
	if _, err := w.signIn(p, s, nil); err != nil {
		t.Errorf("after 23 hours: %v", err)
	}
	w.at = w.at.Add(2 * time.Hour)
	if _, err := w.signIn(p, s, nil); err != errUnreachable {
		t.Errorf("after 25 hours: %v", err)
	}
}

func examine(w *world, s *issuer.Issuer) error {
	_, err := w.Examine(context.Background(), providerOf(s))
	return err
}

// A document that was wrong was not asked for again within an hour.
func TestExamineAsksAgain(t *testing.T) {
	s := issuer.New("https://id.example")
	w := newWorld(s)
	s.Answer = func(string) fake.Answer { return fake.JSON(`{"issuer":"https://evil.example"}`) }
	if err := examine(w, s); err != errOtherIssuer {
		t.Fatal(err)
	}
	s.Answer = nil
	if err := examine(w, s); err != nil {
		t.Errorf("after it was corrected: %v", err)
	}
	s.Answer = func(string) fake.Answer { return fake.Answer{Err: errors.New("down")} }
	if err := examine(w, s); err != errUnreachable {
		t.Errorf("an issuer that is down: %v", err)
	}
}
