package oidc

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oauth2-proxy/mockoidc"
	"github.com/tidwall/gjson"

	"weir/server/program"
)

// world is a native server, which is called over loopback by a browser.
type world struct {
	*testing.T
	browser *http.Client
	// cookies are those of the gateway. A jar of Go sends secure ones to https only, browsers to loopback too.
	cookies    map[string]*http.Cookie
	url, token string
	csrf       string // of the session
}

// newWorld starts a server, which ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	secret := func(name string) string { return strings.Repeat(name+"-", 4) + "of-this-test" }
	w := &world{T: t, token: secret("operator"), cookies: map[string]*http.Cookie{}, browser: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	env := map[string]string{"DATA_DIR": data, "ADMIN_TOKEN": w.token, "API_KEY_SECRET": secret("keys"),
		"CREDENTIALS_KEY": secret("credentials"), "ALLOW_PRIVATE_UPSTREAMS": "1", "PRICES_URL": "off", "HOME": t.TempDir()}
	signals, done, started := make(chan os.Signal, 1), make(chan struct{}), make(chan program.Parts, 1)
	var log strings.Builder
	o := program.Options{Version: "v0.0.0-test", Signals: signals, Started: func(p program.Parts) { started <- p }}
	go func() {
		defer close(done)
		o.Main([]string{"serve", "--listen", "127.0.0.1:0"},
			func(name string) (string, bool) { v, ok := env[name]; return v, ok }, strings.NewReader(""), io.Discard, &log)
	}()
	t.Cleanup(func() { signals <- os.Interrupt; <-done })
	select {
	case p := <-started:
		w.url = "http://" + p.Address.String()
	case <-done:
		t.Fatalf("the server did not start: %s", log.String())
	}
	return w
}

// do calls the gateway, as the operator or with the cookies of the browser.
func (w *world) do(method, path, body string, operator bool) (*http.Response, gjson.Result) {
	w.Helper()
	r, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if r.Header.Set("Origin", w.url); operator {
		r.Header.Set("Authorization", "Bearer "+w.token)
	} else {
		r.Header.Set("X-Csrf-Token", w.csrf)
		for _, c := range w.cookies {
			r.AddCookie(c)
		}
	}
	res, err := w.browser.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		w.cookies[c.Name] = c
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res, gjson.ParseBytes(b)
}

// TestSignInAtMockOIDC signs people in at a provider that is not of this repository, from its
// page of the authorization to what the role allows.
func TestSignInAtMockOIDC(t *testing.T) {
	mockoidc.TokenEndpointAuthMethodsSupported = []string{"client_secret_post"} // it names basic too, and refuses it
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Shutdown()
	w := newWorld(t)
	_, made := w.do("POST", "/api/machines", "{}", true)
	machine := made.Get("machineId").Str
	res, row := w.do("POST", "/api/identity-providers", fmt.Sprintf(`{"name":"Mock","issuer":%q,"clientId":%q,
		"clientSecret":%q,"scopes":["profile","email","groups"],
		"rules":[{"claim":["groups"],"value":"ai","role":"editor","machines":[%q]}]}`,
		m.Issuer(), m.ClientID, m.ClientSecret, machine), true)
	if res.StatusCode != 201 {
		t.Fatalf("create: %d %s", res.StatusCode, row.Raw)
	}
	signIn := func(subject string, groups ...string) (*http.Response, string) {
		m.QueueUser(&mockoidc.MockUser{Subject: subject, PreferredUsername: subject, Groups: groups})
		res, begun := w.do("POST", "/api/sign-in/"+row.Get("id").Str, "{}", false)
		if res.StatusCode != 200 {
			t.Fatalf("begin: %d %s", res.StatusCode, begun.Raw)
		}
		at, err := w.browser.Get(begun.Get("url").Str)
		if err != nil {
			t.Fatal(err)
		}
		at.Body.Close()
		back, err := url.Parse(at.Header.Get("Location"))
		if err != nil || at.StatusCode != 302 || back.Path != "/oidc/callback" {
			t.Fatalf("the provider answers %d with %q, %v", at.StatusCode, back, err)
		}
		res, _ = w.do("GET", "/oidc/callback?"+back.RawQuery, "", false)
		return res, back.RawQuery
	}
	if res, _ := signIn("eve", "sales"); res.StatusCode != 403 {
		t.Errorf("a person without a role: %d", res.StatusCode)
	}
	res, query := signIn("ada", "sales", "ai")
	if res.StatusCode != 303 {
		_, records := w.do("GET", "/api/sign-ins", "", true)
		t.Fatalf("callback: %d, %s", res.StatusCode, records.Raw)
	}
	_, who := w.do("GET", "/api/session", "", false)
	if w.csrf = who.Get("csrfToken").Str; who.Get("personName").Str != "ada" ||
		who.Get("roles."+machine).Str != "editor" || who.Get("operator").Bool() {
		t.Errorf("session: %s", who.Raw)
	}
	for _, v := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/api/providers", "", 200},
		{"POST", "/api/keys", `{"name":"laptop"}`, 201},
		{"GET", "/api/export", "", 403},
		{"GET", "/api/people", "", 403},
	} {
		if res, a := w.do(v.method, "/"+machine+v.path, v.body, false); res.StatusCode != v.want {
			t.Errorf("%s %s: got %d, want %d: %s", v.method, v.path, res.StatusCode, v.want, a.Raw)
		}
	}
	if res, _ := w.do("GET", "/oidc/callback?"+query, "", false); res.StatusCode < 400 {
		t.Errorf("a replay: %d", res.StatusCode)
	}
}
