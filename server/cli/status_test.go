package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestStatusAtAGlance(t *testing.T) {
	w := newWorld(t)
	w.ok("accounts", "add", "openai-compatible", "--name", "local", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY", "--no-test")
	w.ok("keys", "add", "laptop")
	code, out, failed := w.run("", "status")
	for _, want := range []string{
		`(?m)^Server +http://127\.0\.0\.1:\d+, version v0\.0\.0-test, running for less than a minute$`,
		`(?m)^main +accounts: 1 untested; keys: 2; last hour: 0 requests, 0 failed, 0 refused, cost \$0\.00$`,
	} {
		if code != 0 || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("exit %d, want %s\n%s%s", code, want, out, failed)
		}
	}
	w.ok("machines", "add", "second")
	code, out, _ = w.run("", "status")
	if code != 1 || !strings.Contains(out, "\nmain ") || !strings.Contains(out, "\nsecond ") || !strings.Contains(out, "second: there is no account") {
		t.Errorf("two machines: exit %d\n%s", code, out)
	}
	if out = w.ok("status", "--machine", "main"); strings.Contains(out, "second") {
		t.Errorf("one of them:\n%s", out)
	}
	key := strings.TrimSpace(w.ok("keys", "add", "admin", "--scopes", "manage", "--machine", "second"))
	code, out, failed = w.runIn(w.env("WEIR_GATEWAY", w.url, "WEIR_TOKEN", key), "", "status")
	if code != 1 || strings.Contains(out, "main") || !strings.Contains(out, "\nMachine ") || !strings.Contains(out, "keys: 2") {
		t.Errorf("with a key: exit %d\n%s%s", code, out, failed)
	}
	if code, out, failed = w.run("", "status", "--json", "--machine", "main"); code != 0 || !strings.HasPrefix(out, `{"health":`) {
		t.Errorf("JSON: exit %d\n%s%s", code, out, failed)
	}
}

// Models without a price have a cost that is not known, which is not none.
func TestUnknownCostIsNotZero(t *testing.T) {
	w := newWorld(t)
	w.ok("accounts", "add", "openai-compatible", "--name", "local", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY")
	w.ok("call", "local/echo", "Hello")
	for line, want := range map[string]string{"status": "last hour: 1 request, 0 failed, 0 refused, cost unknown", "accounts": " unknown", "keys": " unknown"} {
		end := time.Now().Add(10 * time.Second)
		for !strings.Contains(w.ok(line), want) { // the use is reported after the answer
			if time.Now().After(end) {
				t.Fatalf("%s:\n%s", line, w.ok(line))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func TestStatusOfAStoppedServer(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	w.data = w.home + "/data"
	if code, _, text := w.run("", "init"); code != 0 {
		t.Fatal(text)
	}
	if code, out, failed := w.run("", "status"); code != 1 || !strings.Contains(out, "FAIL") || !strings.Contains(out, "stopped; weir serve starts it") || !strings.Contains(out, "\nmain ") {
		t.Errorf("exit %d\n%s%s", code, out, failed)
	}
	if code, out, _ := w.run("", "doctor"); code != 1 || !strings.Contains(out, "FAIL  the server of this computer is stopped; weir serve starts it\n") {
		t.Errorf("doctor: exit %d\n%s", code, out)
	}
	if _, out, _ := w.run("", "doctor", "--security"); strings.Contains(out, "FAIL") || !strings.Contains(out, "may spend without a limit") {
		t.Errorf("doctor --security:\n%s", out)
	}
}

// Calls with a key that another API_KEY_SECRET has made get 401, and nothing said so.
func TestDoctorNamesKeysOfAnotherSecret(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	w.data = w.home + "/data"
	run := func(letter string, args ...string) (int, string) {
		code, out, failed := w.runIn(w.env("API_KEY_SECRET", strings.Repeat(letter, 64)), "", args...)
		return code, strings.Join(strings.Fields(out+failed), " ")
	}
	run("a", "init")
	run("a", "keys", "add", "laptop")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"doctor"}, "FAIL keys that calls cannot use, since API_KEY_SECRET is not the one by which they were created: 2 (Default key, laptop);"},
		{[]string{"keys"}, " data invalid "},
	} {
		if _, out := run("a", tt.args...); strings.Contains(out, "API_KEY_SECRET") || strings.Contains(out, "invalid") {
			t.Errorf("%v with the secret:\n%s", tt.args, out)
		}
		if code, out := run("b", tt.args...); !strings.Contains(out, tt.want) || (code == 1) != (tt.args[0] == "doctor") {
			t.Errorf("%v with another secret: exit %d\n%s", tt.args, code, out)
		}
	}
	run("b", "keys", "rotate", "laptop")
	if _, out := run("b", "doctor"); !strings.Contains(out, "created: 1 (Default key);") {
		t.Errorf("after a rotation:\n%s", out)
	}
}

// Another CREDENTIALS_KEY, of a wrong backup or of a rotation that ended too early, opens no account.
func TestDoctorNamesCredentialsThatAreSealedWithAnotherKey(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	w.data = w.home + "/data"
	first, second := strings.Repeat("a", 64), strings.Repeat("b", 64)
	run := func(key string, args ...string) (int, string) {
		code, out, failed := w.runIn(w.env("CREDENTIALS_KEY", key), "", args...)
		return code, out + failed
	}
	if code, text := run(first, "init"); code != 0 {
		t.Fatal(text)
	}
	if code, text := run(first, "accounts", "add", "openai", "--name", "My Main", "--api-key", "env:API_KEY", "--no-test"); code != 0 {
		t.Fatal(text)
	}
	unreadable := []string{"FAIL", "credentials CREDENTIALS_KEY does not open: 1;", "key unavailable; weir accounts rotate 'My Main'"}
	for _, tt := range []struct {
		command, key string
		want         []string
	}{
		{"doctor", second, append(unreadable, "no account works")},
		{"status", second, append(unreadable, "accounts: 1 key unavailable")},
		{"accounts", second, []string{"key unavailable"}},
		{"doctor", second + "," + first, []string{"credentials the earlier CREDENTIALS_KEY has sealed: 1; keep both keys"}},
		{"doctor", first + "," + second, []string{"no credential is sealed with the earlier CREDENTIALS_KEY", "ok    accounts, keys"}},
	} {
		_, out := run(tt.key, tt.command)
		for _, want := range tt.want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s: no %q in\n%s", tt.command, want, out)
			}
		}
	}
	if _, out := run(first, "doctor"); strings.Contains(out, "CREDENTIALS_KEY") {
		t.Errorf("with its key alone:\n%s", out)
	}
}

// An account is tested once it is added, as the dashboard does. One that does not work stays.
func TestAddedAccountIsTested(t *testing.T) {
	w := newWorld(t)
	add := func(name, base string, more ...string) []string {
		return append([]string{"accounts", "add", "openai-compatible", "--name", name, "--base-url", base, "--prefix", name, "--api-key", "env:API_KEY"}, more...)
	}
	for _, tt := range []struct {
		args        []string
		code        int
		out, failed string
	}{
		{add("local", w.upstream.URL+"/v1"), 0, `^ok, local/echo \d+ ms\n$`, `The account local \(\w+\) is connected\.\nAsk a model: weir call local/echo Hello\n$`},
		{add("strict", w.upstream.URL+"/strict/v1"), 1, `^The provider refused the API key \(status 401\)\. \(unauthorized\)\n$`,
			`is connected\.\nweir: the account is stored, and does not work; weir accounts rotate strict replaces its credential\n$`},
		{add("keyless", w.upstream.URL+"/strict/v1", "--api-key", "none"), 1, `^The provider asks for an API key, and the account has none \(status 401\)\. \(unauthorized\)\n$`, ``},
		{add("lost", "http://127.0.0.1:1/v1"), 1, `connection_failed`, `weir accounts set lost --base-url URL changes its address\n$`},
		{add("json", w.upstream.URL+"/strict/v1", "--json"), 1, `^\{[^\n]*"name":"json"[^\n]*\}\n$`, `^weir: the account is stored, and does not work`},
		{add("untested", w.upstream.URL+"/strict/v1", "--no-test"), 0, `^$`, `is connected\.\n$`},
		{[]string{"accounts", "test", "strict"}, 1, `unauthorized`, `^weir: the account does not work; weir accounts rotate strict replaces its credential\n$`},
		{[]string{"accounts"}, 0, `local[^$]*strict[^$]*lost[^$]*json[^$]*untested`, ``},
	} {
		code, out, failed := w.remote("", tt.args...)
		if code != tt.code || !regexp.MustCompile(tt.out).MatchString(strings.ReplaceAll(out, "$", "")) || !regexp.MustCompile(tt.failed).MatchString(failed) {
			t.Errorf("%v: exit %d\n%s%s", tt.args, code, out, failed)
		}
	}
}

// The gateway removes a credential with another host, which cannot be undone.
func TestAnotherHostNeedsItsCredential(t *testing.T) {
	w := newWorld(t)
	w.ok("accounts", "add", "openai-compatible", "--name", "local", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY", "--no-test")
	set := func(more ...string) []string { return append([]string{"accounts", "set", "local"}, more...) }
	for _, tt := range []struct {
		args   []string
		code   int
		failed string
		hasKey bool
	}{
		{set("--base-url", "http://127.0.0.1:1/v1"), 1, "weir: nothing is changed: the credential of local is for " + w.upstream.URL +
			" and is not sent to 127.0.0.1:1; add the new one, as in --api-key env:NAME, or --api-key none for a server without keys\n", true},
		{set("--base-url", strings.ToUpper(w.upstream.URL)+"/other"), 0, "is changed.", true},
		{set("--base-url", "http://127.0.0.1:1/v1", "--api-key", "env:API_KEY"), 0, "is changed.", true},
		{set("--base-url", w.upstream.URL, "--api-key", "none"), 0, "is changed.", false},
		{set("--base-url", "http://127.0.0.1:1/v1"), 0, "is changed.", false},
		{[]string{"accounts", "set", "local", "--name", "other"}, 0, "is changed.", false},
		{[]string{"accounts", "add", "together", "--name", "local", "--api-key", "env:API_KEY", "--no-test"}, 0, "is connected.", true},
		{set("--base-url", "https://together.example/v1"), 1, "is for https://api.together.ai and is not sent to together.example;", true},
	} {
		code, _, failed := w.remote("", tt.args...)
		_, out, _ := w.remote("", "accounts", "show", "local", "--json")
		if code != tt.code || !strings.Contains(failed, tt.failed) || strings.Contains(out, `"hasKey":true`) != tt.hasKey {
			t.Errorf("%v: exit %d, %s%s", tt.args, code, failed, out)
		}
	}
}

// The command would call the provider itself, with the settings of the shell in place of those of
// the server, and store what it finds.
func TestStoppedServerCallsNoProvider(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	w.data = w.home + "/data"
	w.upstream = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the provider is called") }))
	defer w.upstream.Close()
	if code, _, text := w.run("", "init"); code != 0 {
		t.Fatal(text)
	}
	if code, _, text := w.run("", "accounts", "add", "openai-compatible", "--base-url", w.upstream.URL+"/v1",
		"--prefix", "local", "--name", "Local", "--api-key", "env:API_KEY"); code != 0 || !strings.HasSuffix(text,
		"It is not tested: no server runs to call providers; weir serve starts it. To test it: weir accounts test Local\n") {
		t.Fatalf("exit %d, %s", code, text)
	}
	for _, args := range [][]string{{"call", "local/echo", "Hello"}, {"accounts", "test", "Local"}} {
		if code, out, failed := w.run("", args...); code != 1 || out != "" || failed != "weir: no server runs to call providers; weir serve starts it\n" {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, failed)
		}
	}
	if code, _, failed := w.run("", "accounts", "rotate", "Local", "--api-key", "env:API_KEY"); code != 1 ||
		!strings.Contains(failed, "the credential is stored and not tested: no server runs") {
		t.Errorf("rotate: exit %d\n%s", code, failed)
	}
	if _, out, _ := w.run("", "keys", "--json"); strings.Contains(out, "weir call") {
		t.Errorf("a key was created: %s", out)
	}
}

// The configuration file of a server has its own line: the machine works.
func TestDoctorSaysWhyTheConfigurationFileIsNotApplied(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		answer := `{"data":[]}`
		if r.URL.Path == "/api/health" {
			answer = `{"ok":false,"file":{"name":"weir.yaml","state":"failed","error":"line 2, column 9: an integer is expected"}}`
		}
		io.WriteString(out, answer)
	}))
	defer s.Close()
	env := w.env("WEIR_GATEWAY", s.URL, "WEIR_TOKEN", "sk-0123456789abcdef-0123456789abcdefghijklmnop-01234567")
	for _, command := range []string{"status", "doctor"} {
		_, out, failed := w.runIn(env, "", command)
		if !strings.Contains(out, "FAIL") || strings.Contains(out, "object") ||
			!strings.Contains(out, "weir applies it again: line 2, column 9: an integer is expected\n") {
			t.Errorf("%s:\n%s%s", command, out, failed)
		}
	}
}
