package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// gatewaysFile returns the file of gateways of a home folder.
func (w *world) gatewaysFile() string {
	if runtime.GOOS == "darwin" {
		return filepath.Join(w.home, "Library", "Application Support", "weir", "gateways.json")
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(w.home, "weir", "gateways.json")
	}
	return filepath.Join(w.home, ".config", "weir", "gateways.json")
}

func TestLoginStoresSeveralGateways(t *testing.T) {
	w := newWorld(t)
	_, key, _ := w.run("", "keys", "add", "manager", "--scopes", "manage")
	_, data, _ := w.run("", "keys", "add", "caller")
	for _, tt := range []struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		{token + "\n", []string{"login", w.url, "--name", "prod"}, 0, "Signed in to prod as the operator"},
		{key, []string{"login", w.url, "--name", "team"}, 0, "as a key"},
		{data, []string{"login", w.url, "--name", "caller"}, 0, "has not the scope manage"},
		{"wrong-token-0123456789-0123456789-0123", []string{"login", w.url, "--name", "bad"}, 1, "invalid_api_key"},
		{"", []string{"login", w.url}, 1, "it is empty"},
		{token, []string{"login", w.url, "--name", "a", "--machine", "nowhere"}, 1, "nowhere"},
		{token, []string{"login", "http://127.0.0.1:1"}, 1, "does not answer"},
		{token, []string{"login", w.url + "/path"}, 2, "scheme and host"},
		{token, []string{"login", "https://user:pw@weir.example.com"}, 2, "scheme and host"},
	} {
		if code, _, failed := w.run(tt.stdin, tt.args...); code != tt.code || !strings.Contains(failed, tt.want) {
			t.Errorf("%v: exit %d, %s", tt.args, code, failed)
		}
	}
	path := w.gatewaysFile()
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	raw, _ := os.ReadFile(path)
	var file struct {
		Current  string
		Gateways map[string]any
	}
	if json.Unmarshal(raw, &file); file.Current != "caller" || len(file.Gateways) != 3 {
		t.Errorf("%s", raw)
	}
	code, out, _ := w.run("", "gateways")
	if code != 0 || !strings.Contains(out, "prod") || strings.Contains(out, token) || strings.Contains(out, strings.TrimSpace(key)) {
		t.Errorf("gateways: exit %d, %s", code, out)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"keys"}, 1, "has the scope"},
		{[]string{"gateways", "use", "team"}, 0, ""},
		{[]string{"keys"}, 0, "manager"},
		{[]string{"machines"}, 1, "weir: "},
		{[]string{"machines", "--gateway", "prod"}, 0, "main"},
		{[]string{"keys", "--gateway", w.url + "/"}, 0, "manager"},
		{[]string{"keys", "--gateway", "https://other.example.com"}, 2, "no credential"},
		{[]string{"keys", "--gateway", "nowhere"}, 2, "nowhere"},
		{[]string{"keys", "--gateway", "prod", "--data", w.data}, 2, "not both"},
		{[]string{"keys", "--data", w.data}, 0, "manager"},
		{[]string{"gateways", "rm", "team"}, 0, ""},
		{[]string{"status", "--data", w.data}, 1, "main "},
	} {
		code, out, failed := w.runIn(w.env("DATA_DIR", ""), "", tt.args...)
		if code != tt.code || !strings.Contains(out+failed, tt.want) {
			t.Errorf("%v: exit %d, %s%s", tt.args, code, out, failed)
		}
	}
	w.runIn(w.env("DATA_DIR", ""), "", "gateways", "use", "caller") // whose key may not list keys
	if code, out, failed := w.run("", "keys"); code != 0 || !strings.Contains(out, "manager") {
		t.Errorf("DATA_DIR beside a gateway that was chosen: exit %d, %s%s", code, out, failed)
	}
	if _, _, failed := w.run("", "gateways", "use", "prod"); !strings.Contains(failed, "DATA_DIR is set, so that commands use "+w.data) {
		t.Errorf("a choice of no effect: %s", failed)
	}
	os.Chmod(path, 0o644)
	if _, _, failed := w.run("", "gateways"); runtime.GOOS != "windows" && !strings.Contains(failed, "chmod 600") {
		t.Errorf("a file that others can read: %s", failed)
	}
	os.WriteFile(path, []byte("{"), 0o600)
	if code, _, failed := w.run("", "gateways"); code != 1 || !strings.Contains(failed, path) {
		t.Errorf("a damaged file: exit %d, %s", code, failed)
	}
}

// A credential is sent to the URL of its gateway only.
func TestRedirectsAreNotFollowed(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer first.Close()
	code, _, failed := w.run(token, "login", first.URL)
	if code != 1 || !strings.Contains(failed, "redirects to "+other.URL) {
		t.Errorf("exit %d, %s", code, failed)
	}
}

func TestAnswersOfOtherServersAreNamed(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	code, _, failed := w.run(token, "login", page.URL)
	if code != 1 || !strings.Contains(failed, "not as weir does") {
		t.Errorf("exit %d, %s", code, failed)
	}
}

// A token that was replaced was called a provider's key.
func TestReplacedOperatorTokenIsNamed(t *testing.T) {
	w := newWorld(t)
	for _, line := range [][]string{{"keys"}, {"machines"}, {"status"}} {
		code, _, failed := w.runIn(w.env("WEIR_GATEWAY", w.url, "WEIR_TOKEN", strings.Repeat("0123456789abcdef", 4)), "", line...)
		if code != 1 || !strings.Contains(failed, "If the token was replaced, send the current one: ADMIN_TOKEN in secrets.json") {
			t.Errorf("%v: exit %d, %s", line, code, failed)
		}
	}
}
