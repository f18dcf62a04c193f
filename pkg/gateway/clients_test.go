package gateway

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/wire/httpmsg"
)

// A bad configuration is told, by its field and without its values; what does
// not need it is served.
func TestBadOperatorConfiguration(t *testing.T) {
	row := func(more string) string {
		return `[{"id":"openai-compatible-0acbe001","tokenUrl":"https://id.acme.com/t","clientId":"c","clientSecret":"canary-secret"` + more + `}]`
	}
	for _, tt := range []struct{ name, oauth, public, want string }{
		{"good", row(`,"baseUrl":"https://api.acme.com/v1"`), "https://weir.example.com", ""},
		{"none", "", "", ""},
		{"public_with_slash", "", "https://weir.example.com/", ""},
		{"field", row(`,"tokenUri":"x"`), "", `OAUTH_PROVIDERS: row 1: bad "tokenUri": unknown field`},
		{"type", row(`,"scopes":"canary"`), "", "OAUTH_PROVIDERS: row 1: bad scopes: wrong type"},
		{"proxy_as_url", row(`,"proxy":"http://canary.example:3128"`), "", "OAUTH_PROVIDERS: row 1: bad proxy"},
		{"no_object", `["canary"]`, "", "OAUTH_PROVIDERS: row 1: bad row: not an object"},
		{"no_json", `canary-secret`, "", "OAUTH_PROVIDERS: not a JSON array"},
		{"unknown_provider", strings.Replace(row(""), "openai-compatible-0acbe001", "nobody", 1), "", "OAUTH_PROVIDERS: row 1: bad id"},
		{"base_of_a_vendor", strings.Replace(row(`,"baseUrl":"https://evil.example.com"`), "openai-compatible-0acbe001", "mistral", 1), "", "OAUTH_PROVIDERS: row 1: bad baseUrl"},
		{"private_base", row(`,"baseUrl":"https://10.0.0.1/v1"`), "", "OAUTH_PROVIDERS: row 1: bad baseUrl"},
		{"own_base", row(`,"baseUrl":"https://weir.example.com/v1"`), "https://weir.example.com", "OAUTH_PROVIDERS: row 1: bad baseUrl"},
		{"token_at_an_address", strings.Replace(row(""), "id.acme.com", "10.0.0.1", 1), "", "OAUTH_PROVIDERS: row 1: bad tokenUrl"},
		{"token_in_hex", strings.Replace(row(""), "id.acme.com", "0x7f000001", 1), "", "OAUTH_PROVIDERS: row 1: bad tokenUrl"},
		{"token_at_a_number", strings.Replace(row(""), "id.acme.com", "2130706433", 1), "", "OAUTH_PROVIDERS: row 1: bad tokenUrl"},
		{"token_of_metadata", strings.Replace(row(""), "id.acme.com", "metadata.google.internal", 1), "", "OAUTH_PROVIDERS: row 1: bad tokenUrl"},
		{"token_at_the_gateway", strings.Replace(row(""), "id.acme.com", "weir.example.com", 1), "https://weir.example.com", "OAUTH_PROVIDERS: row 1: bad tokenUrl"},
		{"device_at_localhost", row(`,"deviceUrl":"https://localhost/d"`), "", "OAUTH_PROVIDERS: row 1: bad deviceUrl"},
		{"device_on_a_port", row(`,"deviceUrl":"https://id.acme.com:8443/d"`), "", ""},
		{"public_with_path", "", "https://weir.example.com/x", "PUBLIC_URL"},
		{"public_http", "", "http://weir.example.com", "PUBLIC_URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var logs []string
			secret := strings.Repeat("s", 40)
			app := New(Config{AdminToken: secret, KeySecret: secret, CredentialsKey: secret, OAuthProviders: [MaxOAuthLists]string{tt.oauth}, PublicURL: tt.public}, Ports{
				KV: fake.NewKV(), Now: time.Now, Rand: bytes.NewReader(nil), Log: func(_ int, l string) { logs = append(logs, l) },
			})
			all := strings.Join(logs, "\n")
			if tt.want == "" && all != "" || !strings.Contains(all, tt.want) || strings.Contains(all, "canary") {
				t.Errorf("logged %q, want %q", all, tt.want)
			}
			resp := app.Serve(context.Background(), &httpmsg.Request{Method: "GET", Path: "/health"})
			if app.Misconfigured != "" || resp.Status != 200 {
				t.Errorf("%q, status %d", app.Misconfigured, resp.Status)
			}
			if got := len(app.Machine().OAuth); (got == 1) != (tt.oauth != "" && tt.want == "") {
				t.Errorf("%d clients", got)
			}
			if strings.Contains(app.Redact("x canary-secret y"), "canary") && tt.name == "good" {
				t.Error("the client's secret is not taken out of texts")
			}
		})
	}
}

// A variable of the edge platform has 5 KB, so that many clients need several.
func TestClientsOfSeveralListsAreJoined(t *testing.T) {
	row := func(id string) string {
		return `{"id":"` + id + `","tokenUrl":"https://id.acme.com/t","clientId":"` + strings.Repeat("c", 600) + `"}`
	}
	c := &Config{}
	for i := range c.OAuthProviders {
		var list []string
		for j := range 7 {
			list = append(list, row(fmt.Sprintf("openai-compatible-%04x%04x", i, j)))
		}
		c.OAuthProviders[i] = "[" + strings.Join(list, ",") + "]"
	}
	c.OAuthProviders[1] = "" // a gap ends nothing
	if list, _, errs := c.clients(); errs != nil || len(list) != 7*(MaxOAuthLists-1) {
		t.Errorf("%d clients, %v", len(list), errs)
	}
	for text, want := range map[string]string{
		"[" + row("openai-compatible-00050003") + "]": "OAUTH_PROVIDERS_6: row 4: bad id, which is used twice",
		`[{"tokenUri":"x"}]`:                          `OAUTH_PROVIDERS_2: row 1: bad "tokenUri": unknown field`,
		`{}`:                                          "OAUTH_PROVIDERS_2: not a JSON array of objects",
	} {
		c.OAuthProviders[1] = text
		list, _, errs := c.clients()
		if len(errs) != 1 || errs[0].Error() != want || len(list) != 7*(MaxOAuthLists-1) {
			t.Errorf("%.40s: %d clients, %v, want %q alone", text, len(list), errs, want)
		}
	}
}

// One row with a mistake stopped every route, or all sign-ins.
func TestWrongRowDisablesItselfOnly(t *testing.T) {
	const rows = `[
		{"id":"openai-compatible-0acbe001","tokenUrl":"https://id.acme.com/t","clientId":"c"},
		{"id":"mistral","tokenUrl":"https://id.acme.com/t","clientId":"c","proxy":"http://proxy.example.com:3128"},
		{"id":"vertex","tokenUrl":"http://id.acme.com/t","clientId":"c","proxy":"proxy.example.com:3128"},
		{"id":"openai-compatible-0acbe002","tokenUrl":"https://id.acme.com/t","clientId":"c","proxy":"proxy.example.com:3128"}]`
	good := strings.Repeat("s", 40)
	cfg := Config{AdminToken: good, KeySecret: good, CredentialsKey: good, OAuthProviders: [MaxOAuthLists]string{rows}}
	if err := cfg.Check(); err != nil {
		t.Errorf("the native server does not start: %v", err)
	}
	var logs []string
	app := New(cfg, Ports{KV: fake.NewKV(), Now: time.Now, Rand: bytes.NewReader(nil), Log: func(_ int, l string) { logs = append(logs, l) }})
	if app.Misconfigured != "" {
		t.Fatalf("nothing is served because of %s", app.Misconfigured)
	}
	const mistral, vertex = "OAUTH_PROVIDERS: row 2: bad proxy", "OAUTH_PROVIDERS: row 3: bad tokenUrl"
	if got := strings.Join(logs, "\n"); got != "misconfigured: "+mistral+"\nmisconfigured: "+vertex {
		t.Errorf("logged %q", got)
	}
	m := app.Machine()
	if len(m.OAuth) != 2 || m.OAuth[1].ID != "openai-compatible-0acbe002" || m.Unusable["mistral"] != mistral || m.Unusable["vertex"] != vertex {
		t.Errorf("clients %v, unusable %v", m.OAuth, m.Unusable)
	}
}
