package program

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/server/store"
)

// secretsOf loads the secrets of a directory, with those of the environment.
func secretsOf(dir string, environment secrets) (s secrets, created bool, warnings string, err error) {
	var out bytes.Buffer
	r := &run{stderr: &out}
	s, created, err = r.loadSecrets(&settings{data: dir, secretEnvironment: environment})
	return s, created, out.String(), err
}

func long(letter string) string { return strings.Repeat(letter, minSecret) }

func TestFirstStartCreatesSecrets(t *testing.T) {
	dir := t.TempDir()
	s, created, _, err := secretsOf(dir, secrets{})
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	path := filepath.Join(dir, secretsName)
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	seen := map[string]bool{}
	for _, f := range s.fields() {
		if len(*f.value) < minSecret || seen[*f.value] {
			t.Errorf("%s is %q", f.name, *f.value)
		}
		seen[*f.value] = true
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files, want one", len(entries))
	}
	again, created, warnings, err := secretsOf(dir, secrets{})
	if err != nil || created || again != s || warnings != "" {
		t.Errorf("the second start: created %v, the same %v, %q, %v", created, again == s, warnings, err)
	}
	if err := writeSecrets(dir, secrets{AdminToken: long("a")}); err == nil {
		t.Error("the file was overwritten")
	}
}

// A regression: with secrets of the environment alone a start with other ones said
// nothing, and all calls failed.
func TestOtherSecretsOfTheEnvironmentAreNamed(t *testing.T) {
	dir := t.TempDir()
	first := secrets{AdminToken: long("a"), KeySecret: long("b"), CredentialsKey: long("c")}
	start := func(s secrets) string {
		t.Helper()
		_, _, warnings, err := secretsOf(dir, s)
		if err != nil {
			t.Fatal(err)
		}
		return warnings
	}
	if got := start(first); got != "" {
		t.Errorf("the first start says %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, store.FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, checkName)); len(raw) == 0 || strings.Contains(string(raw), long("b")) {
		t.Errorf("%s has %q", checkName, raw)
	}
	for _, tt := range []struct {
		name   string
		change func(s *secrets)
		want   string
	}{
		{"the same", func(*secrets) {}, ""},
		{"another token of the operator", func(s *secrets) { s.AdminToken = long("z") }, ""},
		{"another key for credentials", func(s *secrets) { s.CredentialsKey = long("z") }, "CREDENTIALS_KEY: not"},
		{"another secret of keys", func(s *secrets) { s.KeySecret = long("z") }, "API_KEY_SECRET: not"},
		{"both", func(s *secrets) { s.KeySecret, s.CredentialsKey = long("z"), long("z") }, "API_KEY_SECRET, CREDENTIALS_KEY: not"},
		{"the first ones again", func(*secrets) {}, ""},
		{"a new key before the old one", func(s *secrets) { s.CredentialsKey = long("n") + "," + long("c") }, ""},
		{"the new key alone", func(s *secrets) { s.CredentialsKey = long("n") }, ""},
		{"the old key alone", func(*secrets) {}, "CREDENTIALS_KEY: not"},
	} {
		s := first
		tt.change(&s)
		if got := start(s); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestEnvironmentWinsForEachSecret(t *testing.T) {
	dir := t.TempDir()
	s, created, _, err := secretsOf(dir, secrets{AdminToken: long("a")})
	if err != nil || !created || s.AdminToken != long("a") || s.KeySecret == "" || s.CredentialsKey == "" {
		t.Fatalf("%+v, %v, %v", s, created, err)
	}
	raw, _ := os.ReadFile(filepath.Join(dir, secretsName))
	if strings.Contains(string(raw), long("a")) || strings.Contains(string(raw), "ADMIN_TOKEN") {
		t.Errorf("a secret of the environment is in the file: %s", raw)
	}
	all := secrets{long("a"), long("b"), long("c")}
	other := t.TempDir()
	if s, created, _, err := secretsOf(other, all); err != nil || created || s != all {
		t.Errorf("all from the environment: %v, %v", created, err)
	}
	if entries, _ := os.ReadDir(other); len(entries) != 1 || entries[0].Name() != checkName {
		t.Errorf("%v was created although the environment has every secret", entries)
	}
}

func TestOtherSecretsThanTheDatabasesAreNamed(t *testing.T) {
	dir := t.TempDir()
	s, _, _, err := secretsOf(dir, secrets{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "weir.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		environment secrets
		want        []string
	}{
		{s, nil},
		{secrets{CredentialsKey: long("n") + "," + s.CredentialsKey}, nil},
		{secrets{CredentialsKey: long("n")}, []string{"CREDENTIALS_KEY"}},
		{secrets{AdminToken: long("n"), KeySecret: long("n")}, []string{"ADMIN_TOKEN, API_KEY_SECRET"}},
	} {
		got, _, warnings, err := secretsOf(dir, tt.environment)
		if err != nil || len(tt.want) == 0 && warnings != "" || strings.Count(warnings, "\n") != min(len(tt.want), 1) {
			t.Errorf("%q, %v", warnings, err)
		}
		for _, text := range tt.want {
			if !strings.Contains(warnings, text) {
				t.Errorf("%q lacks %q", warnings, text)
			}
		}
		for i, f := range tt.environment.fields() {
			if *f.value != "" && *got.fields()[i].value != *f.value {
				t.Errorf("%s is not that of the environment", f.name)
			}
		}
		if strings.Contains(warnings, long("n")) {
			t.Error("a secret is in the warning")
		}
	}
}

func TestReadableSecretsAreWarnedAbout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	dir := t.TempDir()
	if _, _, _, err := secretsOf(dir, secrets{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, secretsName), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, _, warnings, err := secretsOf(dir, secrets{}); err != nil || !strings.Contains(warnings, "chmod 600") || strings.Count(warnings, "\n") != 1 {
		t.Errorf("%q, %v", warnings, err)
	}
}

func TestWritableDirectoryIsWarnedAbout(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	for mode, want := range map[os.FileMode]int{0o700: 0, 0o770: 0, 0o777: 1, 0o1777: 1} {
		dir := t.TempDir()
		if mode&0o1000 != 0 {
			mode = mode&0o777 | os.ModeSticky
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		(&run{stderr: &out}).warnOfWritable(dir)
		if strings.Count(out.String(), "\n") != want || want == 1 && !strings.Contains(out.String(), "chmod 700 "+dir) {
			t.Errorf("%v: %q", mode, out.String())
		}
	}
}

func TestTwoFirstStartsAgreeOnTheSecrets(t *testing.T) {
	dir := t.TempDir()
	const starts = 8
	results := make(chan secrets, starts)
	for range starts {
		go func() {
			s, _, _, err := secretsOf(dir, secrets{})
			if err != nil {
				t.Error(err)
			}
			results <- s
		}()
	}
	var file secrets
	first := <-results
	for range starts - 1 {
		if s := <-results; s != first {
			t.Error("two starts have different secrets")
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, secretsName))
	if err != nil || json.Unmarshal(raw, &file) != nil || file != first {
		t.Errorf("the file differs: %v", err)
	}
}

func TestCodeWorksOnceWithinItsHour(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1_800_000_000, 0)
	open := func() *codes {
		c := openCodes(dir, time.Now)
		c.now = func() time.Time { return now }
		return c
	}
	create := func(c *codes) string {
		t.Helper()
		code, err := c.create()
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	c := open()
	if c.spend("") || c.spend(codePrefix) {
		t.Error("there is no code yet")
	}
	code := create(c)
	if raw, _ := os.ReadFile(filepath.Join(dir, codeName)); strings.Contains(string(raw), code) {
		t.Error("the code is stored in the clear")
	}
	if c.spend(code+"x") || c.spend(strings.TrimPrefix(code, codePrefix)) {
		t.Error("another text is accepted")
	}
	if !open().spend(code) { // by the server that starts next
		t.Error("the code is refused")
	}
	if open().spend(code) {
		t.Error("the code works again after a restart")
	}
	c = open()
	code = create(c)
	if !c.spend(code) || c.spend(code) {
		t.Error("the code does not work once")
	}
	old, code := create(c), create(c)
	if c.spend(old) {
		t.Error("a link that was replaced still works")
	}
	now = now.Add(codeLife)
	if c.spend(code) {
		t.Error("the code works after its hour")
	}
	write(t, filepath.Join(dir, codeName), "{")
	if open().spend(code) {
		t.Error("a damaged file is a code")
	}
}
