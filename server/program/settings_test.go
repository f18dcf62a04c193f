package program

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// environment is an environment with these variables and a home folder.
func environment(home string, pairs ...string) func(string) (string, bool) {
	all := map[string]string{"HOME": home, "LocalAppData": home, "PRICES_URL": "off"}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := all[name]; return v, ok }
}

// settingsOf parses a command line of serve.
func settingsOf(t *testing.T, env func(string) (string, bool), args ...string) (*settings, error) {
	t.Helper()
	c, _ := find("serve")
	f := newFlags(c)
	if err := f.Parse(doubleDashes(args)); err != nil {
		t.Fatal(err)
	}
	return (&run{env: env, stderr: new(bytes.Buffer)}).readSettings(f)
}

func TestFlagIsStrongerThanVariable(t *testing.T) {
	dir := t.TempDir()
	env := environment(dir, "LISTEN", "127.0.0.1:1", "DATA_DIR", filepath.Join(dir, "a"), "PUBLIC_URL", "https://a.example/", "LOG_LEVEL", "ERROR", "TRUSTED_PROXIES", "10.0.0.1")
	s, err := settingsOf(t, env)
	if err != nil {
		t.Fatal(err)
	}
	if s.listen.String() != "127.0.0.1:1" || s.data != filepath.Join(dir, "a") || s.publicURL != "https://a.example" || s.logLevel != 2 || !s.proxies.any() {
		t.Errorf("variables: %+v", s)
	}
	s, err = settingsOf(t, env, "--listen", "unix:/run/weir.sock", "-data="+filepath.Join(dir, "b"), "--public-url", "https://b.example", "--log-level", "info")
	if err != nil {
		t.Fatal(err)
	}
	if s.listen.String() != "unix:/run/weir.sock" || s.data != filepath.Join(dir, "b") || s.publicURL != "https://b.example" || s.logLevel != 0 {
		t.Errorf("flags: %+v", s)
	}
	if c, _ := s.config(secrets{strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)}); c.PublicURL != "https://b.example" || c.Quiet || c.AdminToken == "" {
		t.Errorf("the program's settings: %+v", c)
	}
}

func TestDefaultsServeThisComputer(t *testing.T) {
	home := t.TempDir()
	s, err := settingsOf(t, environment(home, "LISTEN", "", "ALLOW_PRIVATE_UPSTREAMS", ""))
	if err != nil {
		t.Fatal(err)
	}
	if s.listen.String() != "127.0.0.1:8787" || !strings.HasPrefix(s.data, home) || s.tls() || s.proxies.any() {
		t.Errorf("%+v", s)
	}
	for _, tt := range []struct{ goos, name, value, want string }{
		{"linux", "XDG_STATE_HOME", "/state", "/state/weir"},
		{"linux", "XDG_STATE_HOME", "relative", "/home/me/.local/state/weir"},
		{"freebsd", "", "", "/home/me/.local/state/weir"},
		{"darwin", "XDG_STATE_HOME", "/state", "/home/me/Library/Application Support/weir"},
		{"windows", "LocalAppData", "/local", "/local/weir"},
	} {
		if got, err := defaultData(tt.goos, environment("/home/me", tt.name, tt.value)); err != nil || filepath.ToSlash(got) != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.goos, got, err, tt.want)
		}
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if _, err := defaultData(goos, environment("")); !errors.As(err, new(*usageError)) {
			t.Errorf("%s without a home: %v", goos, err)
		}
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		env  []string
		args []string
	}{
		{"--listen", nil, []string{"--listen", "8787"}},
		{"--listen", nil, []string{"--listen", "localhost:http"}},
		{"--listen", nil, []string{"--listen", "127.0.0.1:99999"}},
		{"--listen", nil, []string{"--listen", "unix:"}},
		{"--listen", nil, []string{"--data", "/d", "--listen", "unix:/d/control.sock"}},
		{"--listen", []string{"LISTEN", "weir"}, nil},
		{"--listen", nil, []string{"--listen", ""}},
		{"--log-level", nil, []string{"--log-level", "loud"}},
		{"--drain", nil, []string{"--drain", "0"}},
		{"--drain", []string{"DRAIN", "30s"}, nil},
		{"--away", nil, []string{"--away", "59"}},
		{"--away", []string{"AWAY", "15m"}, nil},
		{"--away", []string{"AWAY", "901"}, nil},
		{"--trusted-proxies", nil, []string{"--trusted-proxies", "proxy.example"}},
		{"ADMIN_TOKEN", []string{"ADMIN_TOKEN", "short"}, nil},
		{"REQUIRE_API_KEY", []string{"REQUIRE_API_KEY", "flase"}, nil},
		{"API_KEY_SECRET", []string{"API_KEY_SECRET", strings.Repeat("a", 32), "API_KEY_SECRET_FILE", empty}, nil},
		{"CREDENTIALS_KEY_FILE", []string{"CREDENTIALS_KEY_FILE", filepath.Join(dir, "missing")}, nil},
		{"PROXY_URL_FILE", []string{"PROXY_URL_FILE", empty}, nil},
	} {
		_, err := settingsOf(t, environment(dir, tt.env...), tt.args...)
		if !errors.As(err, new(*usageError)) || !strings.Contains(err.Error(), tt.name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v %v: %v", tt.env, tt.args, err)
		}
	}
}

func TestSecretsAreReadFromFiles(t *testing.T) {
	dir := t.TempDir()
	file, token := filepath.Join(dir, "token"), strings.Repeat("t", 40)
	if err := os.WriteFile(file, []byte(token+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settingsOf(t, environment(dir, "ADMIN_TOKEN_FILE", file, "OAUTH_PROVIDERS_FILE", file, "OAUTH_PROVIDERS_16_FILE", file, "API_KEY_SECRET_FILE", ""))
	if err != nil {
		t.Fatal(err)
	}
	if s.secretEnvironment != (secrets{AdminToken: token}) || s.variable("OAUTH_PROVIDERS") != token || s.variable("OAUTH_PROVIDERS_16") != token {
		t.Errorf("%+v", s.secretEnvironment)
	}
}

func TestLinkLeadsToTheServer(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8787} }
	for _, tt := range []struct {
		s    settings
		at   net.Addr
		want string
	}{
		{settings{}, at("127.0.0.1"), "http://127.0.0.1:8787"},
		{settings{}, at("0.0.0.0"), "http://localhost:8787"},
		{settings{}, at("::"), "http://localhost:8787"},
		{settings{tlsCert: "a"}, at("192.0.2.1"), "https://192.0.2.1:8787"},
		{settings{}, at("2001:db8::1"), "http://[2001:db8::1]:8787"},
		{settings{publicURL: "https://weir.example"}, at("0.0.0.0"), "https://weir.example"},
		{settings{listen: address{"tcp", ":9"}}, nil, "http://localhost:9"},
		{settings{listen: address{"tcp", "127.0.0.1:9"}}, nil, "http://127.0.0.1:9"},
		{settings{listen: address{"unix", "/run/weir.sock"}}, &net.UnixAddr{}, ""},
		{settings{listen: address{"unix", "/run/weir.sock"}, publicURL: "https://weir.example"}, nil, "https://weir.example"},
	} {
		if got := tt.s.base(tt.at); got != tt.want {
			t.Errorf("%+v at %v: %q, want %q", tt.s, tt.at, got, tt.want)
		}
	}
}

func TestGuideAndHelpListEverySetting(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/self-hosting.md")
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	(Options{}).Main([]string{"help", "serve"}, environment(""), nil, &help, &help)
	for _, s := range settingTable() {
		for _, name := range []string{"--" + s.flag, s.variable} {
			if !strings.Contains(string(guide), "`"+name+"`") || !strings.Contains(help.String(), name) {
				t.Errorf("%s is not in the guide or in the help", name)
			}
		}
	}
	for _, v := range variables() {
		if !strings.Contains(string(guide), "`"+v.name+"`") || !strings.Contains(help.String(), v.name) {
			t.Errorf("%s is not in the guide or in the help", v.name)
		}
	}
}

// A setting with a secret in it may be in a file of its own. The page says where each is kept and how
// it is replaced.
func TestSecurityPageHasEverySecret(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, stored, _ := strings.Cut(string(page), "\n## How secrets are stored\n")
	stored, _, _ = strings.Cut(stored, "\n## ")
	_, replaced, _ := strings.Cut(string(page), "\n## Replacing each secret\n")
	replaced, _, _ = strings.Cut(replaced, "\n## ")
	names := []string{"client secret of an identity provider"}
	for _, v := range variables() {
		if v.file {
			names = append(names, "`"+v.name+"`")
		}
	}
	for _, name := range names {
		if !strings.Contains(stored, name) || !strings.Contains(replaced, name) {
			t.Errorf("docs/security.md does not say where %s is kept, or how it is replaced", name)
		}
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands() {
		var out, failed bytes.Buffer
		if code := (Options{}).Main([]string{"help", c.name}, environment(""), nil, &out, &failed); code != 0 || !strings.Contains(out.String(), "Usage: weir "+c.name) {
			t.Errorf("help %s: exit %d, %s%s", c.name, code, out.String(), failed.String())
		}
	}
	var out, failed bytes.Buffer
	if code := (Options{}).Main(nil, environment(""), nil, &out, &failed); code != 2 || out.Len() > 0 || !strings.Contains(failed.String(), "weir serve") {
		t.Errorf("without a command: exit %d, %q, %q", code, out.String(), failed.String())
	}
	out.Reset()
	if code := (Options{Version: "v1.2.3"}).Main([]string{"--version"}, environment(""), nil, &out, &failed); code != 0 || !strings.HasPrefix(out.String(), "weir v1.2.3 ") {
		t.Errorf("version: exit %d, %q", code, out.String())
	}
}
