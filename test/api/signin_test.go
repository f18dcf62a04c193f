package api

import (
	"encoding/base64"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/internal/testgw/issuer"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
	"weir/server/jwk"
)

// cookieOf returns a cookie that an answer sets, as a browser sends it.
func cookieOf(r reply, name string) httpmsg.Field {
	for _, f := range r.header {
		if v, ok := strings.CutPrefix(f.Value, name+"="); ok && f.Name == "set-cookie" {
			v, _, _ = strings.Cut(v, ";")
			return httpmsg.Field{Name: "cookie", Value: name + "=" + v}
		}
	}
	return httpmsg.Field{}
}

// TestPersonSignsInByIdentityProvider signs a person in, and refuses one without a role, a
// replay and another browser.
func TestPersonSignsInByIdentityProvider(t *testing.T) {
	s := issuer.New("https://id.example.com")
	w := &world{Gateway: front.New(func(p *gateway.Ports) { p.Verify = jwk.Verify }), t: t, origin: "https://gateway.example"}
	w.Answer = func(call *fake.Seen) fake.Answer {
		a, _ := s.Reply(call, w.Now().Unix())
		return a
	}
	const body = `{"name":"Acme","issuer":"https://id.example.com","clientId":"weir","clientSecret":"s3cret-of-weir",` +
		`"rules":[{"claim":["groups"],"value":"ai","role":"viewer","machines":["*"]}]}`
	if r := w.do("POST", "/api/identity-providers", "", body); r.status != 401 {
		t.Fatalf("without the operator: %d", r.status)
	}
	r := w.do("POST", "/api/identity-providers", adminToken, body)
	if r.status != 201 || strings.Contains(r.body, "s3cret") {
		t.Fatalf("create: %d %s", r.status, r.body)
	}
	id := gjson.Get(r.body, "id").Str
	if r := w.do("GET", "/api/auth", "", ""); gjson.Get(r.body, "providers.0.name").Str != "Acme" {
		t.Fatalf("auth: %d %s", r.status, r.body)
	}
	if r := w.do("GET", "/api/identity-providers", adminToken, ""); strings.Contains(r.body, "s3cret") ||
		!gjson.Get(r.body, "data.0.hasSecret").Bool() {
		t.Fatalf("list: %d %s", r.status, r.body)
	}
	begin := func() (httpmsg.Field, string) {
		r := w.do("POST", "/api/sign-in/"+id, "", "{}")
		if r.status != 200 {
			t.Fatalf("begin: %d %s", r.status, r.body)
		}
		return cookieOf(r, "__Host-weir-oauth"), s.Authorize(gjson.Get(r.body, "url").Str)
	}
	s.User = issuer.Claims{"sub": "ada", "name": "Ada", "groups": []string{"ai"}}
	browser, query := begin()
	done := w.do("GET", "/oidc/callback?"+query, "", "", browser)
	session := cookieOf(done, "__Host-weir")
	if done.status != 303 || session.Name == "" {
		t.Fatalf("callback: %d %s", done.status, done.body)
	}
	if r := w.do("GET", "/api/session", "", "", session); !gjson.Get(r.body, "signedIn").Bool() ||
		gjson.Get(r.body, "operator").Bool() {
		t.Errorf("session: %s", r.body)
	}
	refused := func(name, want string, r reply) {
		t.Helper()
		if r.status < 400 || cookieOf(r, "__Host-weir").Name != "" || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
		if code := url.QueryEscape(strings.Split(query, "&")[0]); strings.Contains(r.body, code) {
			t.Errorf("%s: the page has the code", name)
		}
	}
	refused("a replay", "state_used", w.do("GET", "/oidc/callback?"+query, "", "", browser))
	_, query = begin()
	refused("another browser", "state_invalid", w.do("GET", "/oidc/callback?"+query, "", "", browser))
	refused("no cookie", "not started in this browser", w.do("GET", "/oidc/callback?"+query, "", ""))
	s.User = issuer.Claims{"sub": "eve", "groups": []string{"AI"}}
	browser, query = begin()
	refused("no role", "ccess", w.do("GET", "/oidc/callback?"+query, "", "", browser))
	s.User = issuer.Claims{"sub": "ada", "groups": []string{"ai"}}
	s.Token = func(c issuer.Claims) string { return s.Sign("HS256", issuer.Claims{"kid": "RS256"}, c) }
	browser, query = begin()
	refused("HS256", "token_algorithm", w.do("GET", "/oidc/callback?"+query, "", "", browser))
	s.Token, s.User = nil, issuer.Claims{"sub": "eve", "_claim_names": issuer.Claims{"groups": "s"}}
	browser, query = begin()
	refused("too many groups", "too many groups", w.do("GET", "/oidc/callback?"+query, "", "", browser))
	records := w.do("GET", "/api/sign-ins", adminToken, "")
	for _, want := range []string{`"sign-in"`, `"state_used"`, `"state_invalid"`, `"no_access"`, `"token_algorithm"`,
		`"too_many_groups"`, `"identity-provider.create"`} {
		if strings.Count(records.body, want) != 1 {
			t.Errorf("%d records of %s in %s", strings.Count(records.body, want), want, records.body)
		}
	}
	if !strings.Contains(records.body, `"Ada"`) || strings.Contains(records.body, "eyJ") {
		t.Errorf("records: %s", records.body)
	}
	if r := w.do("DELETE", "/api/identity-providers/"+id, adminToken, ""); r.status != 204 {
		t.Errorf("delete: %d", r.status)
	}
	if r := w.do("POST", "/api/sign-in/"+id, "", "{}"); r.status != 404 {
		t.Errorf("begin without the provider: %d", r.status)
	}
}

// TestSecretOfAnIdentityProviderIsReplaced has the next sign-in use the new client secret, and ends
// no session (docs/security.md).
func TestSecretOfAnIdentityProviderIsReplaced(t *testing.T) {
	s := issuer.New("https://id.example.com")
	s.User = issuer.Claims{"sub": "ada", "groups": []string{"ai"}}
	w := &world{Gateway: front.New(func(p *gateway.Ports) { p.Verify = jwk.Verify }), t: t, origin: "https://gateway.example"}
	expected := "first-secret"
	w.Answer = func(call *fake.Seen) fake.Answer {
		a, _ := s.Reply(call, w.Now().Unix())
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("weir:"+expected))
		if strings.HasSuffix(call.URL, "/token") && call.Header.Get("authorization") != basic {
			return fake.Answer{Status: 401, Body: `{"error":"invalid_client"}`}
		}
		return a
	}
	row := func(secret string) string {
		return `{"name":"Acme","issuer":"https://id.example.com","clientId":"weir","clientSecret":"` + secret +
			`","rules":[{"claim":["groups"],"value":"ai","role":"viewer","machines":["*"]}]}`
	}
	id := gjson.Get(w.do("POST", "/api/identity-providers", adminToken, row(expected)).body, "id").Str
	signIn := func() (reply, httpmsg.Field) {
		r := w.do("POST", "/api/sign-in/"+id, "", "{}")
		done := w.do("GET", "/oidc/callback?"+s.Authorize(gjson.Get(r.body, "url").Str), "", "", cookieOf(r, "__Host-weir-oauth"))
		return done, cookieOf(done, "__Host-weir")
	}
	done, session := signIn()
	if session.Name == "" {
		t.Fatalf("with the first secret: %d %s", done.status, done.body)
	}
	expected = "other-secret" // at the provider
	if done, session := signIn(); session.Name != "" || strings.Contains(done.body, "first-secret") {
		t.Errorf("with a secret that was replaced: %d %s", done.status, done.body)
	}
	if r := w.do("PUT", "/api/identity-providers/"+id, adminToken, row(expected)); r.status != 200 {
		t.Fatalf("replace: %d %s", r.status, r.body)
	}
	if done, session := signIn(); session.Name == "" {
		t.Errorf("with the other secret: %d %s", done.status, done.body)
	}
	if r := w.do("GET", "/api/session", "", "", session); !gjson.Get(r.body, "signedIn").Bool() {
		t.Errorf("the session of before: %s", r.body)
	}
}

// TestProvidersGiveRolesByTheirClaims signs a person in at each kind of provider, with the claims
// of it where it puts them.
func TestProvidersGiveRolesByTheirClaims(t *testing.T) {
	for _, v := range []struct {
		name, address, alg string
		user, info         issuer.Claims
		claim, value, role string
		stranger           issuer.Claims // has similar claims, and no role
	}{
		{"Google", "https://accounts.google.com", "RS256",
			issuer.Claims{"hd": "acme.com", "email": "ada@acme.com", "email_verified": true}, nil,
			`["hd"]`, "acme.com", "viewer", issuer.Claims{"email": "eve@acme.com", "email_verified": true}},
		{"Entra ID", "https://login.microsoftonline.com/0a1b/v2.0", "RS256",
			issuer.Claims{"tid": "0a1b", "oid": "77b2", "roles": []string{"weir.editor"}}, nil,
			`["roles"]`, "weir.editor", "editor", issuer.Claims{"tid": "0a1b", "groups": []string{"weir.editor"}}},
		{"Okta", "https://acme.okta.com", "RS256", issuer.Claims{"groups": []string{"Everyone", "ai-admins"}}, nil,
			`["groups"]`, "ai-admins", "owner", issuer.Claims{"groups": []string{"Everyone", "ai-admins-emea"}}},
		{"Keycloak, roles in userinfo alone", "https://id.acme.com/realms/acme", "ES256", issuer.Claims{},
			issuer.Claims{"realm_access": issuer.Claims{"roles": []string{"ai"}}},
			`["realm_access","roles"]`, "ai", "member", issuer.Claims{"realm_access.roles": []string{"ai"}, "roles": []string{"ai"}}},
		{"Zitadel", "https://acme.zitadel.cloud", "EdDSA",
			issuer.Claims{"urn:zitadel:iam:org:project:roles": issuer.Claims{"ai": issuer.Claims{"1": "acme"}}}, nil,
			`["urn:zitadel:iam:org:project:roles"]`, "ai", "editor",
			issuer.Claims{"urn:zitadel:iam:org:project:roles": issuer.Claims{"guest": issuer.Claims{"ai": "acme"}}}},
	} {
		t.Run(v.name, func(t *testing.T) {
			w, s, id := issuerWorld(t, v.address, `{"name":"Acme","issuer":"`+v.address+`","clientId":"weir","clientSecret":"s3cret",`+
				`"rules":[{"claim":`+v.claim+`,"value":"`+v.value+`","role":"`+v.role+`","machines":["*"]}]}`)
			s.Alg = v.alg
			signIn := func(sub string, user, info issuer.Claims) httpmsg.Field {
				s.User, s.Info = issuer.Claims{"sub": sub}, info
				maps.Copy(s.User, user)
				r := w.do("POST", "/api/sign-in/"+id, "", "{}")
				query := s.Authorize(gjson.Get(r.body, "url").Str)
				return cookieOf(w.do("GET", "/oidc/callback?"+query, "", "", cookieOf(r, "__Host-weir-oauth")), "__Host-weir")
			}
			session := w.do("GET", "/api/session", "", "", signIn("ada", v.user, v.info))
			if got := gjson.Get(session.body, `roles.\*`).Str; got != v.role || gjson.Get(session.body, "operator").Bool() {
				t.Errorf("role %q, want %q: %s", got, v.role, session.body)
			}
			if c := signIn("eve", v.stranger, nil); c.Name != "" {
				t.Error("the stranger has a session")
			}
		})
	}
}
