package program

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/issuer"
)

// link makes a folder as Kubernetes mounts a ConfigMap: weir.yaml is a link through ..data,
// which is exchanged as a whole.
func link(t *testing.T, folder, version, text string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(folder, version), 0o700))
	must(os.WriteFile(filepath.Join(folder, version, "weir.yaml"), []byte(text), 0o600))
	next := filepath.Join(folder, "..next")
	must(os.Symlink(version, next))
	must(os.Rename(next, filepath.Join(folder, "..data")))
	if _, err := os.Lstat(filepath.Join(folder, "weir.yaml")); err != nil {
		must(os.Symlink(filepath.Join("..data", "weir.yaml"), filepath.Join(folder, "weir.yaml")))
	}
}

func TestConfigFileIsAppliedWhenItChanges(t *testing.T) {
	home := t.TempDir()
	folder, data, key := filepath.Join(home, "config"), filepath.Join(home, "data"), filepath.Join(home, "key")
	const token = "operator-token-of-the-tests-0123456789abcdef"
	env := []string{"ADMIN_TOKEN=" + token, "OTHER_KEY=sk-other-0123456789", "ALLOW_PRIVATE_UPSTREAMS=true"}
	var idp *issuer.Issuer
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		a, _ := idp.Reply(&fake.Seen{URL: idp.URL + r.URL.Path}, time.Now().Unix())
		out.WriteHeader(a.Status)
		io.WriteString(out, a.Body)
	}))
	defer s.Close()
	idp = issuer.New(s.URL)
	write := func(text string) {
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sk-first-0123456789-0123456789\n")
	first := fmt.Sprintf("accounts:\n  - {name: main, provider: openai, apiKey: {file: %q}}\n  - {name: spare, provider: groq, apiKey: {env: OTHER_KEY}}\nkeys:\n  - {name: laptop, rpm: 5}\nsettings: {idleSeconds: 60}\nidentityProviders:\n  - {name: Acme, issuer: %q, clientId: weir, clientSecret: {env: OTHER_KEY}, rules: []}\n", key, s.URL)
	link(t, folder, "one", first)
	init := program(t, home, env, "init", "--data", data).start()
	if init.end() != 0 {
		t.Fatal(init.stderr.String())
	}
	p, base := serving(t, home, env, "--config", filepath.Join(folder, "weir.yaml"))
	p.until(&p.stdout, "is applied, changes: 5")
	call := func(method, path, body string) (int, gjson.Result) {
		t.Helper()
		req, err := http.NewRequest(method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, gjson.ParseBytes(raw)
	}
	_, machines := call("GET", "/api/machines", "")
	machine := "/" + machines.Get("data.0.machineId").Str
	id := func(collection, name string) string {
		_, list := call("GET", machine+collection, "")
		return list.Get(`data.#(name=="` + name + `").id`).Str
	}
	if id("/api/providers", "main") == "" || id("/api/keys", "Default key") == "" {
		t.Fatal("an account or a key is missing")
	}
	_, other := call("POST", machine+"/api/keys", `{"name":"by hand"}`)
	if other.Get("id").Str == "" {
		t.Fatalf("a key by hand: %s", other.Raw)
	}

	// Nothing else changes rows of the file; other rows may be changed.
	_, providers := call("GET", "/api/identity-providers", "")
	acme := providers.Get("data.0.id").Str
	account, laptop := id("/api/providers", "main"), id("/api/keys", "laptop")
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{"PUT", "/api/providers/" + account, `{"priority":3}`, 409}, {"DELETE", "/api/providers/" + account, "", 409},
		{"PUT", "/api/providers/" + account + "/", `{"priority":3}`, 404},
		{"PUT", "/api/keys/" + laptop, `{"rpm":9}`, 409}, {"DELETE", "/api/keys/" + laptop, "", 409}, {"PATCH", "/api/settings", `{"idleSeconds":30}`, 409},
		{"POST", "/api/import", `{}`, 409}, {"POST", "/api/keys/" + laptop + "/rotate", `{}`, 200},
		{"PUT", "/api/keys/" + other.Get("id").Str, `{"rpm":9}`, 200}, {"PUT", "/api/models/alias", `{"alias":"a","model":"openai/b"}`, 200},
		{"PUT", "/api/identity-providers/" + acme, `{}`, 409}, {"DELETE", "/api/identity-providers/" + acme, "", 409},
		{"POST", "/api/identity-providers/" + acme + "/test", `{}`, 200}, {"POST", "/api/identity-providers", `{}`, 400},
	} {
		path := machine + tt.path
		if strings.HasPrefix(tt.path, "/api/identity-providers") {
			path = tt.path
		}
		status, answer := call(tt.method, path, tt.body)
		if status != tt.want || status == 409 && answer.Get("error.code").Str != "managed_by_file" {
			t.Errorf("%s %s: %d %s, want %d", tt.method, tt.path, status, answer.Raw, tt.want)
		}
	}
	// Who has no credential does not learn that there is a file.
	for _, path := range []string{machine + "/api/providers/" + account, "/api/machines" + machine, "/api/identity-providers/" + acme} {
		req, _ := http.NewRequest("DELETE", base+path, nil)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if raw, _ := io.ReadAll(res.Body); res.StatusCode != 401 || strings.Contains(string(raw), "file") {
			t.Errorf("without a credential: %s: %d %s", path, res.StatusCode, raw)
		}
		res.Body.Close()
	}
	if status, answer := call("DELETE", "/api/machines"+machine, ""); status != 409 {
		t.Errorf("delete the machine: %d %s", status, answer.Raw)
	}
	local := program(t, home, env, "accounts", "set", "main", "--priority", "3", "--data", data).start()
	if local.end() != 1 || !strings.Contains(local.stderr.String(), "managed_by_file") {
		t.Errorf("on the data directory: %s%s", &local.stdout, &local.stderr)
	}

	// A secret in a file of its own, and an account that the file no longer has.
	write("sk-second-0123456789-012345678\n")
	p.until(&p.stdout, "is applied, changes: 1")
	link(t, folder, "two", strings.ReplaceAll(first, "spare", "second"))
	p.until(&p.stdout, "is applied, changes: 2")
	if id("/api/providers", "spare") != "" || id("/api/providers", "second") == "" || id("/api/keys", "by hand") == "" {
		t.Error("the accounts are not those of the file, or a key is lost")
	}

	// A bad file changes nothing and says why; what was owned stays so.
	link(t, folder, "three", "accounts:\n  - {name: main, provider: openai, colour: red}\n")
	p.until(&p.stderr, "line 2, column 36: unknown field")
	if _, ready := call("GET", "/health/ready", ""); ready.Get("config").Str != "failed" || ready.Get("status").Str != "ready" {
		t.Errorf("ready: %s", ready.Raw)
	}
	if _, health := call("GET", machine+"/api/health", ""); health.Get("ok").Bool() || health.Get("file.state").Str != "failed" ||
		!strings.Contains(health.Get("file.error").Str, "line 2") || health.Get(`file.owned./api/providers.#(=="`+account+`")`).Str != account ||
		health.Get("file.owned./api/settings.0").Str != "*" {
		t.Errorf("health: %s", health.Raw)
	}
	if status, _ := call("PUT", machine+"/api/providers/"+account, `{"priority":3}`); status != 409 {
		t.Errorf("after a bad file: %d", status)
	}
	p.cmd.Process.Signal(os.Interrupt)
	p.end()

	// The rows of the file are known after a restart.
	link(t, folder, "four", "accounts: []\n")
	p, base = serving(t, home, env, "--config", filepath.Join(folder, "weir.yaml"))
	p.until(&p.stdout, "is applied, changes: 2")
	if id("/api/providers", "main") != "" || id("/api/keys", "laptop") == "" {
		t.Error("the account was not deleted, or the section that is gone was")
	}
	if _, ready := call("GET", "/health/ready", ""); ready.Get("config").Str != "applied" {
		t.Errorf("ready: %s", ready.Raw)
	}
	if status, _ := call("PUT", machine+"/api/keys/"+laptop, `{"rpm":9}`); status != 200 {
		t.Errorf("a key that the file no longer owns: %d", status)
	}
}

// Without a machine, or with a file that is missing, the server serves and says what is missing.
func TestConfigFileThatCannotBeAppliedStopsNothing(t *testing.T) {
	home := t.TempDir()
	env := []string{"ADMIN_TOKEN=" + strings.Repeat("a", 32)} // so there is no machine
	p, base := serving(t, home, env, "--config", filepath.Join(home, "missing.yaml"))
	p.until(&p.stderr, "missing.yaml: no such file")
	res, err := http.Get(base + "/health")
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	res.Body.Close()
	if err := os.WriteFile(filepath.Join(home, "missing.yaml"), []byte("keys: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.until(&p.stderr, "there is no machine")
}
