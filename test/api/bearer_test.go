package api

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/internal/testgw/issuer"
	"weir/pkg/gateway"
	"weir/pkg/wire/httpmsg"
	"weir/server/jwk"
)

// issuerWorld is a gateway with an identity provider of a kind, whose rule has a value of the claim groups.
func issuerWorld(t *testing.T, address, body string) (*world, *issuer.Issuer, string) {
	t.Helper()
	s := issuer.New(address)
	w := &world{Gateway: front.New(func(p *gateway.Ports) { p.Verify = jwk.Verify }), t: t, origin: "https://gateway.example"}
	w.Answer = func(call *fake.Seen) fake.Answer {
		a, _ := s.Reply(call, w.Now().Unix())
		return a
	}
	r := w.do("POST", "/api/identity-providers", adminToken, body)
	if r.status != 201 {
		t.Fatalf("create: %d %s", r.status, r.body)
	}
	return w, s, gjson.Get(r.body, "id").Str
}

func TestProxyHeaderIsVerifiedWithEachCall(t *testing.T) {
	const team = "https://acme.cloudflareaccess.com"
	w, s, id := issuerWorld(t, team, `{"name":"Access","kind":"cloudflare-access","issuer":"`+team+`","clientId":"aud1",`+
		`"rules":[{"claim":["email"],"value":"ada@acme.com","role":"editor","machines":["*"]}]}`)
	made := w.do("POST", "/api/machines", adminToken, "{}")
	at := "/" + gjson.Get(made.body, "machineId").Str
	token := func(change issuer.Claims) httpmsg.Field {
		now := w.Now().Unix()
		c := issuer.Claims{"iss": team, "aud": []string{"aud1"}, "sub": "ada", "email": "ada@acme.com", "iat": now - 60, "exp": now + 3600}
		for k, v := range change {
			c[k] = v
		}
		return httpmsg.Field{Name: "cf-access-jwt-assertion", Value: s.Sign("RS256", nil, c)}
	}
	origin := httpmsg.Field{Name: "origin", Value: w.origin}
	if r := w.do("GET", "/api/session", "", "", token(nil)); gjson.Get(r.body, "personName").Str != "ada@acme.com" ||
		gjson.Get(r.body, "roles.*").Str != "" && gjson.Get(r.body, "roles.\\*").Str != "editor" {
		t.Fatalf("session: %d %s", r.status, r.body)
	}
	for _, v := range []struct {
		name, method, path, body string
		fields                   []httpmsg.Field
		want                     int
	}{
		{"reads", "GET", "/api/providers", "", []httpmsg.Field{token(nil)}, 200},
		{"changes", "POST", "/api/keys", `{"name":"a"}`, []httpmsg.Field{token(nil), origin}, 201},
		{"another site changes", "POST", "/api/keys", `{"name":"b"}`, []httpmsg.Field{token(nil), {Name: "origin", Value: "https://evil.example"}}, 403},
		{"no page changes", "POST", "/api/keys", `{"name":"b"}`, []httpmsg.Field{token(nil)}, 403},
		{"another site reads", "GET", "/api/providers", "", []httpmsg.Field{token(nil), {Name: "sec-fetch-site", Value: "cross-site"}}, 403},
		{"beyond the role", "GET", "/api/export", "", []httpmsg.Field{token(nil)}, 403},
		{"a route of the operator", "GET", "/api/identity-providers", "", []httpmsg.Field{token(nil)}, 403},
		{"no header", "GET", "/api/providers", "", nil, 401},
		{"a name alone", "GET", "/api/providers", "", []httpmsg.Field{{Name: "x-forwarded-user", Value: "ada@acme.com"}}, 401},
		{"another application", "GET", "/api/providers", "", []httpmsg.Field{token(issuer.Claims{"aud": []string{"aud2"}})}, 403},
		{"another team", "GET", "/api/providers", "", []httpmsg.Field{token(issuer.Claims{"iss": "https://evil.cloudflareaccess.com"})}, 401},
		{"a proxy that is not configured", "GET", "/api/providers", "", []httpmsg.Field{{Name: "x-goog-iap-jwt-assertion", Value: token(nil).Value}}, 401},
		{"a person without a rule", "GET", "/api/providers", "", []httpmsg.Field{token(issuer.Claims{"sub": "eve", "email": "eve@acme.com"})}, 403},
		{"a forged one", "GET", "/api/providers", "", []httpmsg.Field{{Name: "cf-access-jwt-assertion", Value: token(nil).Value + "AAAA"}}, 403},
		{"with a wrong key beside it", "GET", "/api/providers", "", []httpmsg.Field{token(nil), {Name: "authorization", Value: "Bearer sk-wrong"}}, 401},
	} {
		if r := w.do(v.method, at+v.path, "", v.body, v.fields...); r.status != v.want {
			t.Errorf("%s: got %d, want %d: %s", v.name, r.status, v.want, r.body)
		}
	}
	person := gjson.Get(w.do("GET", at+"/api/people", adminToken, "").body, "data.0.id").Str
	if r := w.do("DELETE", at+"/api/people/"+person, adminToken, ""); r.status != 204 {
		t.Fatalf("remove: %d %s", r.status, r.body)
	}
	if r := w.do("GET", at+"/api/providers", "", "", token(nil)); r.status != 403 {
		t.Errorf("a person who was removed: %d", r.status)
	}
	w.do("DELETE", "/api/identity-providers/"+id, adminToken, "")
	if r := w.do("GET", at+"/api/providers", "", "", token(nil)); r.status != 401 {
		t.Errorf("without the provider: %d", r.status)
	}
	if r := w.do("GET", "/api/sign-ins", adminToken, ""); strings.Contains(r.body, "eyJ") {
		t.Errorf("a record has a token: %s", r.body)
	}
}

func TestCIJobExchangesItsToken(t *testing.T) {
	const github = "https://token.actions.githubusercontent.com"
	w, s, _ := issuerWorld(t, github, `{"name":"CI","kind":"ci","issuer":"`+github+`","clientId":"https://gateway.example",`+
		`"rules":[{"claim":["sub"],"value":"repo:acme/app:ref:refs/heads/main","role":"editor","machines":["*"]}]}`)
	made := w.do("POST", "/api/machines", adminToken, "{}")
	at := "/" + gjson.Get(made.body, "machineId").Str
	exchange := func(change issuer.Claims) reply {
		now := w.Now().Unix()
		c := issuer.Claims{"iss": github, "aud": "https://gateway.example", "sub": "repo:acme/app:ref:refs/heads/main",
			"repository": "acme/app", "iat": now, "exp": now + 300}
		for k, v := range change {
			c[k] = v
		}
		return w.do("POST", "/api/token", "", `{"token":"`+s.Sign("RS256", nil, c)+`"}`)
	}
	r := exchange(nil)
	token := gjson.Get(r.body, "token").Str
	if life := gjson.Get(r.body, "expiresAt").Int() - w.Now().UnixMilli(); r.status != 200 || life <= 0 || life > 3600_000 {
		t.Fatalf("got %d %s, for %d ms", r.status, r.body, life)
	}
	if r := w.do("POST", at+"/api/keys", token, `{"name":"a"}`); r.status != 201 {
		t.Errorf("a change without a page: %d %s", r.status, r.body)
	}
	for _, path := range []string{at + "/api/export", "/api/identity-providers"} {
		if r := w.do("GET", path, token, ""); r.status != 403 {
			t.Errorf("%s: %d, want 403", path, r.status)
		}
	}
	if r := w.do("GET", at+"/api/providers", token[:len(token)-1]+"x", ""); r.status != 401 {
		t.Errorf("a forged token: %d", r.status)
	}
	for name, change := range map[string]issuer.Claims{
		"another branch":     {"sub": "repo:acme/app:ref:refs/heads/other"},
		"a pull request":     {"sub": "repo:acme/app:pull_request"},
		"another repository": {"sub": "repo:evil/app:ref:refs/heads/main"},
		"another audience":   {"aud": "https://github.com/acme"},
		"another issuer":     {"iss": "https://gitlab.com"},
		"expired":            {"exp": w.Now().Unix() - 120},
	} {
		if r := exchange(change); r.status != 403 || strings.Contains(r.body, "wt_") {
			t.Errorf("%s: got %d %s", name, r.status, r.body)
		}
	}
	if r := w.do("POST", "/api/token", "", `{"token":"x"}`); r.status != 403 {
		t.Errorf("no token: %d %s", r.status, r.body)
	}
	for passed, want := range []int{200, 401} { // after 59 minutes, and an hour
		w.Add(time.Duration(59-58*passed) * time.Minute)
		if r := w.do("GET", at+"/api/providers", token, ""); r.status != want {
			t.Errorf("an unused token, step %d: %d, want %d", passed, r.status, want)
		}
	}
	token = gjson.Get(exchange(nil).body, "token").Str
	if r := w.do("DELETE", "/api/session", token, ""); r.status != 204 {
		t.Errorf("sign out: %d", r.status)
	}
	if r := w.do("GET", at+"/api/providers", token, ""); r.status != 401 {
		t.Errorf("after it signed out: %d", r.status)
	}
}

func TestSessionsOfPeopleEnd(t *testing.T) {
	w, s, id := issuerWorld(t, "https://id.example.com", `{"name":"Acme","issuer":"https://id.example.com","clientId":"weir",`+
		`"rules":[{"claim":["groups"],"value":"ai","role":"viewer","machines":["*"]}]}`)
	made := w.do("POST", "/api/machines", adminToken, "{}")
	at := "/" + gjson.Get(made.body, "machineId").Str
	signIn := func(sub, sid string) httpmsg.Field {
		t.Helper()
		s.User = issuer.Claims{"sub": sub, "sid": sid, "groups": "ai"}
		begun := w.do("POST", "/api/sign-in/"+id, "", "{}")
		done := w.do("GET", "/oidc/callback?"+s.Authorize(gjson.Get(begun.body, "url").Str), "", "",
			cookieOf(begun, "__Host-weir-oauth"))
		session := cookieOf(done, "__Host-weir")
		if session.Name == "" {
			t.Fatalf("sign-in: %d %s", done.status, done.body)
		}
		return session
	}
	lives := func(session httpmsg.Field) bool {
		return gjson.Get(w.do("GET", "/api/session", "", "", session).body, "signedIn").Bool()
	}
	logout := func(claims issuer.Claims) int {
		c := issuer.Claims{"iss": s.URL, "aud": "weir", "iat": w.Now().Unix(), "exp": w.Now().Unix() + 60, "jti": "1",
			"events": issuer.Claims{"http://schemas.openid.net/event/backchannel-logout": issuer.Claims{}}}
		for k, v := range claims {
			c[k] = v
		}
		return w.do("POST", "/oidc/logout", "", url.Values{"logout_token": {s.Sign("RS256", nil, c)}}.Encode()).status
	}
	laptop, phone, eve := signIn("ada", "1"), signIn("ada", "2"), signIn("eve", "3")
	if got := logout(issuer.Claims{"sub": "ada", "nonce": "n"}); got != 403 || !lives(laptop) {
		t.Errorf("an ID token: %d", got)
	}
	if got := logout(issuer.Claims{"sub": "ada", "sid": "1"}); got != 200 || lives(laptop) || !lives(phone) {
		t.Errorf("one session: %d", got)
	}
	if got := logout(issuer.Claims{"sid": "2"}); got != 200 || lives(phone) || !lives(eve) {
		t.Errorf("a session alone: %d", got)
	}
	laptop, phone = signIn("ada", "1"), signIn("ada", "2")
	if got := logout(issuer.Claims{"sub": "ada"}); got != 200 || lives(laptop) || lives(phone) || !lives(eve) {
		t.Errorf("all of a person: %d", got)
	}
	laptop = signIn("ada", "1")
	people := gjson.Get(w.do("GET", at+"/api/people", adminToken, "").body, "data").Array()
	for _, p := range people {
		if r := w.do("DELETE", at+"/api/people/"+p.Get("id").Str+"/sessions", "", "", laptop); r.status < 400 {
			t.Errorf("a viewer ended sessions: %d", r.status)
		}
	}
	w.do("DELETE", at+"/api/people/"+people[0].Get("id").Str+"/sessions", adminToken, "")
	if lives(laptop) == lives(eve) {
		t.Errorf("the sessions of one person: %v, %v", lives(laptop), lives(eve))
	}
	if r := w.do("DELETE", at+"/api/people/p_00000000000000000000000000000000/sessions", adminToken, ""); r.status != 404 {
		t.Errorf("an unknown person: %d", r.status)
	}
	laptop, eve = signIn("ada", "1"), signIn("eve", "3")
	if r := w.do("DELETE", "/api/sessions", adminToken, ""); r.status != 204 || lives(laptop) || lives(eve) {
		t.Errorf("all people: %d", r.status)
	}
	laptop = signIn("ada", "1")
	for range 25 {
		w.Add(29 * time.Minute)
		if !lives(laptop) {
			break
		}
	}
	if lives(laptop) {
		t.Error("a session outlives twelve hours")
	}
}
