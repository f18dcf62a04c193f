package cli_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/issuer"
)

// ciServer plays an issuer, and the endpoint where a job of GitHub Actions gets its ID token.
func ciServer(t *testing.T, claims issuer.Claims) *httptest.Server {
	t.Helper()
	var i *issuer.Issuer
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/job" && r.Header.Get("Authorization") == "Bearer of-the-job" {
			now := time.Now().Unix()
			c := issuer.Claims{"iss": i.URL, "aud": r.URL.Query().Get("audience"), "iat": now, "exp": now + 300}
			maps.Copy(c, claims)
			fmt.Fprintf(out, `{"value":%q}`, i.Sign("RS256", nil, c))
			return
		}
		a, _ := i.Reply(&fake.Seen{URL: i.URL + r.URL.Path}, time.Now().Unix())
		out.WriteHeader(a.Status)
		io.WriteString(out, a.Body)
	}))
	t.Cleanup(s.Close)
	i = issuer.New(s.URL)
	return s
}

// issuer returns the address of an issuer, which is started once.
func (w *world) issuer() string {
	if w.idp == nil {
		w.idp = ciServer(w.T, nil)
	}
	return w.idp.URL
}

func TestCommandsInCISignInByThemselves(t *testing.T) {
	w := newWorld(t)
	sub := "repo:acme/app:ref:refs/heads/main"
	s := ciServer(t, issuer.Claims{"sub": sub, "repository": "acme/app"})
	job := w.env("WEIR_GATEWAY", w.url, "ACTIONS_ID_TOKEN_REQUEST_URL", s.URL+"/job?api-version=2",
		"ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-job")
	if code, _, text := w.runIn(job, "", "keys"); code != 1 || !strings.Contains(text, "issuer_unknown") {
		t.Fatalf("without a provider: %d %s", code, text)
	}
	_, machines, _ := w.run("", "machines", "--json")
	id := machines[strings.Index(machines, `"machineId":"`)+13:][:16]
	code, _, text := w.run(fmt.Sprintf(`{"name":"CI","kind":"ci","issuer":%q,"clientId":%q,"rules":[{"claim":["sub"],"value":%q,
		"role":"editor","machines":[%q]}]}`, s.URL, w.url, sub, id), "api", "POST", "/api/identity-providers", "--body", "-")
	if code != 0 {
		t.Fatal(text)
	}
	if code, _, text := w.runIn(w.env("WEIR_GATEWAY", w.url, "WEIR_ID_TOKEN", "no token"), "", "keys"); code != 1 ||
		!strings.Contains(text, "issuer_unknown") {
		t.Errorf("a wrong token: %d %s", code, text)
	}
	for _, v := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"keys", "add", "of-ci"}, 0, "sk-"},
		{[]string{"keys"}, 0, "of-ci"},
		{[]string{"export"}, 1, "role_required"},
		{[]string{"login", w.url, "--ci", "--name", "job"}, 0, "as a CI job"},
		{[]string{"gateways"}, 0, "CI job"},
		{[]string{"keys", "--gateway", "job", "--machine", id}, 0, "of-ci"},
	} {
		code, out, failed := w.runIn(job, "", v.args...)
		if code != v.code || !strings.Contains(out+failed, v.want) {
			t.Errorf("%v: exit %d, %s%s", v.args, code, out, failed)
		}
	}
	if code, _, text := w.run("", "login", w.url, "--ci"); code != 2 || !strings.Contains(text, "id-token: write") {
		t.Errorf("no CI: %d %s", code, text)
	}
}
