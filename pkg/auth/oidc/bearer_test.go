package oidc

import (
	"context"
	"strings"
	"testing"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/issuer"
	"weir/pkg/wire/httpmsg"
)

const aud = "4714c1358e65fe4b408ad6d432a5f878f08194bdb4752441fd56faefa9b2b6f2"

func TestBearerTokens(t *testing.T) {
	s := issuer.New("https://acme.cloudflareaccess.com")
	access := &Provider{Kind: CloudflareAccess, Issuer: s.URL, ClientID: aud}
	with := func(change claims) claims {
		c := claims{"iss": s.URL, "sub": "7335d417", "aud": []string{aud}, "email": "ada@acme.com", "type": "app",
			"iat": now - 3600, "exp": now + 3600}
		for k, v := range change {
			if c[k] = v; v == nil {
				delete(c, k)
			}
		}
		return c
	}
	w := newWorld(s)
	b, err := w.Bearer(context.Background(), access, s.Sign("RS256", nil, with(nil)))
	if err != nil || b.Identity.Name != "ada@acme.com" || !b.Identity.EmailVerified || b.Until != now+3600 {
		t.Fatalf("got %+v, %v", b, err)
	}
	for name, v := range map[string]struct {
		token string
		want  error
	}{
		"another application":     {s.Sign("RS256", nil, with(claims{"aud": []string{"other"}})), errAudience},
		"no application":          {s.Sign("RS256", nil, with(claims{"aud": nil})), errAudience},
		"another team":            {s.Sign("RS256", nil, with(claims{"iss": "https://evil.cloudflareaccess.com"})), errIssuer},
		"a service token":         {s.Sign("RS256", nil, with(claims{"sub": "", "common_name": "ci"})), errSubject},
		"expired":                 {s.Sign("RS256", nil, with(claims{"exp": now - 61})), errExpired},
		"without an end":          {s.Sign("RS256", nil, with(claims{"exp": nil})), errExpired},
		"from 13 hours ago":       {s.Sign("RS256", nil, with(claims{"iat": now - 13*3600})), errIssuedAt},
		"from a clock that leads": {s.Sign("RS256", nil, with(claims{"iat": now + 61})), errIssuedAt},
		"signed by another":       {issuer.New(s.URL).Sign("ES256", nil, with(nil)), errSignature},
		"HS256 with the key":      {s.Sign("HS256", claims{"kid": "RS256"}, with(nil)), errAlgorithm},
		"unsigned":                {s.Sign("none", nil, with(nil)) + "AA", errAlgorithm},
		"text":                    {"ada@acme.com", errForm},
		"a huge one":              {s.Sign("RS256", nil, with(claims{"x": strings.Repeat("a", maxToken)})), errForm},
	} {
		if _, err := w.Bearer(context.Background(), access, v.token); err != v.want {
			t.Errorf("%s: got %v, want %v", name, err, v.want)
		}
	}
	if n := len(s.Seen); n != 1 || s.Seen["/cdn-cgi/access/certs"] != 1 {
		t.Errorf("asked for %v", s.Seen)
	}
	if kind, token := Assertion(httpmsg.Header{{Name: "x-forwarded-user", Value: "ada"}}); kind != "" || token != "" {
		t.Error("a header without a signature counts")
	}
}

func TestIAPToken(t *testing.T) {
	s := issuer.New("https://www.gstatic.com")
	s.Answer = func(path string) fake.Answer {
		if path == "/iap/verify/public_key-jwk" {
			return fake.JSON(s.Keys())
		}
		return fake.Answer{Status: 404}
	}
	p := &Provider{Kind: GoogleIAP, Issuer: "https://cloud.google.com/iap", ClientID: "/projects/1/global/backendServices/2"}
	token := s.Sign("ES256", nil, claims{"iss": p.Issuer, "aud": p.ClientID, "azp": p.ClientID, "iat": now, "exp": now + 600,
		"sub": "accounts.google.com:1", "email": "ada@acme.com", "hd": "acme.com"})
	b, err := newWorld(s).Bearer(context.Background(), p, token)
	if err != nil || b.Identity.Email != "ada@acme.com" {
		t.Fatalf("got %+v, %v", b, err)
	}
}

func TestCIToken(t *testing.T) {
	for name, v := range map[string]struct {
		url    string
		claims claims
	}{
		"GitHub Actions": {"https://token.actions.githubusercontent.com", claims{"sub": "repo:acme/app:ref:refs/heads/main",
			"repository": "acme/app", "ref": "refs/heads/main", "job_workflow_ref": "acme/app/.github/workflows/a.yml@refs/heads/main"}},
		"GitLab": {"https://gitlab.com", claims{"sub": "project_path:acme/app:ref_type:branch:ref:main",
			"project_path": "acme/app", "ref_protected": "true"}},
	} {
		s := issuer.New(v.url)
		p := &Provider{Kind: CI, Issuer: s.URL, ClientID: "https://weir.acme.com"}
		c := claims{"iss": s.URL, "aud": "https://weir.acme.com", "iat": now, "exp": now + 300}
		for k, value := range v.claims {
			c[k] = value
		}
		b, err := newWorld(s).Bearer(context.Background(), p, s.Sign("RS256", nil, c))
		if err != nil || b.Identity.Name != c["sub"] {
			t.Errorf("%s: got %+v, %v", name, b, err)
		}
		c["aud"] = "https://github.com/acme" // what GitHub sends unless a job asks for another
		if _, err := newWorld(s).Bearer(context.Background(), p, s.Sign("RS256", nil, c)); err != errAudience {
			t.Errorf("%s, another audience: %v", name, err)
		}
	}
}

func TestLogoutToken(t *testing.T) {
	s := issuer.New("https://id.example")
	p := providerOf(s)
	event := claims{logoutEvent: claims{}}
	good := func() claims {
		return claims{"iss": s.URL, "aud": "client", "iat": now, "exp": now + 120, "jti": "1", "sub": "ada", "events": event}
	}
	w := newWorld(s)
	sign := func(c claims) (string, string, error) {
		return w.Logout(context.Background(), p, s.Sign("RS256", claims{"typ": "logout+jwt"}, c))
	}
	person, session, err := sign(good())
	if err != nil || person == "" || session != "" {
		t.Fatalf("got %q, %q, %v", person, session, err)
	}
	only := good()
	delete(only, "sub")
	only["sid"] = "s1"
	if person, session, err = sign(only); err != nil || person != "" || session != SessionOf(s.URL, []byte(`{"sid":"s1"}`)) {
		t.Errorf("a session alone: %q, %q, %v", person, session, err)
	}
	for name, change := range map[string]func(c claims){
		"an ID token":       func(c claims) { delete(c, "events") },
		"with a nonce":      func(c claims) { c["nonce"] = "n" },
		"of nobody":         func(c claims) { delete(c, "sub") },
		"without a number":  func(c claims) { delete(c, "jti") },
		"of another event":  func(c claims) { c["events"] = claims{"http://other": claims{}} },
		"an event as text":  func(c claims) { c["events"] = claims{logoutEvent: "x"} },
		"for another":       func(c claims) { c["aud"] = "other" },
		"of long ago":       func(c claims) { c["iat"] = now - 3600; delete(c, "exp") },
		"of another issuer": func(c claims) { c["iss"] = "https://evil.example" },
	} {
		c := good()
		change(c)
		if _, _, err := sign(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestExamineNamesWhatIsMissing(t *testing.T) {
	s := issuer.New("https://id.example")
	s.Answer = func(path string) fake.Answer {
		switch path {
		case wellKnown:
			return fake.JSON(`{"issuer":"https://id.example","authorization_endpoint":"https://id.example/a",
				"token_endpoint":"https://id.example/t","jwks_uri":"https://id.example/keys","response_types_supported":["token"],
				"code_challenge_methods_supported":["plain"],"id_token_signing_alg_values_supported":["HS256"],
				"scopes_supported":["openid"],"claims_supported":["sub"]}`)
		case "/keys":
			return fake.JSON(`{"keys":[{"kty":"oct","k":"AAAA"}]}`)
		}
		return fake.Answer{Status: -1}
	}
	p := providerOf(s, rule("ai", "groups"))
	p.Scopes = []string{"groups"}
	found, err := newWorld(s).Examine(context.Background(), p)
	if all := strings.Join(found, "\n"); err != nil || len(found) != 6 || !strings.Contains(all, "scope groups") ||
		!strings.Contains(all, "claim groups") || !strings.Contains(all, "PKCE") {
		t.Errorf("got %d findings, %v:\n%s", len(found), err, all)
	}
	s.Answer = nil
	if found, err := newWorld(s).Examine(context.Background(), p); err != nil || len(found) != 0 {
		t.Errorf("a provider that works: %v, %v", found, err)
	}
}

// Of two clients of one issuer the first was taken: the tokens of the other were refused, and ended no session.
func TestProviderIsChosenByAudience(t *testing.T) {
	s := issuer.New("https://acme.cloudflareaccess.com")
	all := []*Provider{{ID: "people", Issuer: s.URL, ClientID: "a"}, {ID: "first", Kind: CloudflareAccess, Issuer: s.URL, ClientID: "a"},
		{ID: "second", Kind: CloudflareAccess, Issuer: s.URL, ClientID: "b"}}
	for name, v := range map[string]struct {
		iss  string
		aud  any
		want string
	}{
		"the first":          {s.URL, "a", "first"},
		"the second":         {s.URL, "b", "second"},
		"the second in list": {s.URL, []string{"x", "b"}, "second"},
		"neither":            {s.URL, "c", "first"}, // which refuses it
		"of another issuer":  {s.URL + "/", "b", ""},
	} {
		got := ""
		if p := Chosen(all, CloudflareAccess, s.Sign("RS256", nil, claims{"iss": v.iss, "aud": v.aud})); p != nil {
			got = p.ID
		}
		if got != v.want {
			t.Errorf("%s: got %q, want %q", name, got, v.want)
		}
	}
	for _, token := range []string{"", "a.b.c", "a.e30.c"} {
		if p := Chosen(all, CloudflareAccess, token); p != nil {
			t.Errorf("%q: got %s", token, p.ID)
		}
	}
}
