package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode"

	"weir/server/cli"
)

// serverState is what a running server says of itself on the control socket.
type serverState struct {
	Address     string   `json:"address"` // for people
	Version     string   `json:"version"`
	StartedMs   int64    `json:"startedMs"`
	Open        bool     `json:"open"` // to other computers, without TLS
	Environment []string `json:"environment,omitempty"`
	Weak        []string `json:"weak,omitempty"` // secrets that can be guessed, each with why
}

// state returns the state of the server.
func (v *server) state() serverState {
	return serverState{Address: v.where(), Version: v.version(), StartedMs: v.began.UnixMilli(),
		Open: v.settings.isOpen(v.at), Environment: v.secretsOfEnvironment(), Weak: v.secrets.weak()}
}

// secretsOfEnvironment returns the names of the secrets whose values are in the environment, which
// every process of the user can read. Those of NAME_FILE are not.
func (r *run) secretsOfEnvironment() (names []string) {
	for _, f := range new(secrets).fields() {
		if v, _ := r.env(f.name); v != "" {
			names = append(names, f.name)
		}
	}
	return names
}

// maxSecretAge is after how long secrets should be replaced.
const maxSecretAge = 365 * 24 * time.Hour

// security examines the server of a data directory, "" for the usual one, and returns what is not
// safe and what to do, a line each.
func (r *run) security(ctx context.Context, data string) (found []string, err error) {
	s, err := r.settingsFor(data)
	if err != nil {
		return nil, err
	}
	state := serverState{Environment: r.secretsOfEnvironment()}
	if at, err := net.ResolveTCPAddr("tcp", s.listen.name); err == nil && s.listen.network == "tcp" {
		state.Open = s.isOpen(at)
	}
	own := s.secretEnvironment
	if s.database == "" {
		found = append(found, r.unsafeFiles(s.data)...)
		quiet := &run{stderr: io.Discard} // the file's mode is among the findings
		file, _, err := quiet.readSecrets(filepath.Join(s.data, secretsName))
		if err != nil {
			return nil, err
		}
		own, _ = own.over(file)
	}
	state.Weak = own.weak()
	if s.database == "" {
		res, err := control(ctx, s.data, "GET", "/server", nil)
		if err == nil {
			err = errors.Join(json.NewDecoder(res.Body).Decode(&state), res.Body.Close())
		}
		if err != nil && !errors.Is(err, errNotRunning) {
			return nil, err
		}
	}
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if state.Open {
		add("the server is open to other computers without TLS; set --tls-cert and --tls-key, put a proxy with a certificate before it and set --trusted-proxies, or listen at 127.0.0.1")
	}
	if u, err := url.Parse(s.publicURL); err == nil && u.Scheme == "http" && !cli.IsLoopback(u.Hostname()) {
		add("PUBLIC_URL is http, so keys cross the network in plain text; serve it by https")
	}
	if len(state.Environment) > 0 {
		add("the environment has %s, which every process of this user can read; leave it to secrets.json, or name a file by NAME_FILE", strings.Join(state.Environment, ", "))
	}
	for _, why := range state.Weak {
		add("%s; replace it by what openssl rand -hex 32 prints, as docs/security.md says", why)
	}
	if v := strings.ToLower(s.variable("REQUIRE_API_KEY")); v != "" && !isTrue(v) {
		add("REQUIRE_API_KEY is false, so whoever knows the id of a machine uses its accounts; leave it out")
	}
	if at, err := net.ResolveTCPAddr("tcp", s.listen.name); err == nil && s.listen.network == "tcp" && !at.IP.IsLoopback() &&
		isTrue(s.variable("ALLOW_PRIVATE_UPSTREAMS")) {
		add("ALLOW_PRIVATE_UPSTREAMS is true and others reach the server, so whoever may change accounts can call services of this network; leave it out if no model server is there")
	}
	if readable(s.tlsKey, 0o007) {
		add("%s, the private key, is open to all users; run chmod 600 %s", s.tlsKey, cli.ShellWord(s.tlsKey))
	}
	return found, nil
}

// unsafeFiles examines the files of a data directory.
func (r *run) unsafeFiles(dir string) (found []string) {
	if readable(dir, 0o077) {
		found = append(found, fmt.Sprintf("the data directory %s is open to other users; run chmod 700 %s", dir, cli.ShellWord(dir)))
	}
	// Backups and copies that people have made there count as well.
	var open []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && readable(path, 0o077) {
			open = append(open, path)
		}
		return nil // what cannot be read is not examined
	})
	if len(open) == 1 {
		found = append(found, fmt.Sprintf("%s is open to other users; run chmod 600 %s", open[0], cli.ShellWord(open[0])))
	} else if len(open) > 1 {
		found = append(found, fmt.Sprintf("%d files, such as %s, are open to other users; run chmod -R go= %s", len(open), open[0], cli.ShellWord(dir)))
	}
	if info, err := os.Stat(filepath.Join(dir, secretsName)); err == nil {
		if age := r.now()().Sub(info.ModTime()); age > maxSecretAge {
			found = append(found, fmt.Sprintf("the secrets are %d days old; replace the operator token with weir token rotate, and the others as docs/security.md says", int(age.Hours()/24)))
		}
	}
	return found
}

// commonWords are parts of secrets that people make up, in the order in which they are looked for.
var commonWords = []string{"correcthorsebatterystaple", "changeme", "password", "passwort", "administrator", "operator", "example",
	"default", "letmein", "welcome", "insecure", "secret", "qwertyuiop", "qwerty", "abcdefghijklmnopqrstuvwxyz", "abcdef",
	"1234567890", "0123456789", "123456789", "12345678", "123456", "admin", "token", "gateway", "weir", "test", "root", "key"}

// weak returns the secrets that can be guessed, each with why.
func (s secrets) weak() (why []string) {
	for _, f := range s.fields() {
		value, _, _ := strings.Cut(*f.value, ",") // CREDENTIALS_KEY may have a new key before the old one
		if value == "" {
			continue
		}
		rest := strings.ToLower(value)
		for _, word := range commonWords {
			rest = strings.ReplaceAll(rest, word, "")
		}
		different := map[rune]bool{}
		for _, c := range value {
			different[c] = true
		}
		kinds := 0
		sign := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
		for _, is := range []func(rune) bool{unicode.IsLower, unicode.IsUpper, unicode.IsDigit, sign} {
			if strings.ContainsFunc(value, is) {
				kinds++
			}
		}
		switch {
		case len(value) < minSecret:
			why = append(why, fmt.Sprintf("%s is weak: it has fewer than %d bytes", f.name, minSecret))
		case len(rest) < minSecret/2:
			why = append(why, f.name+" is weak: it consists of common words")
		case len(different) < 8:
			why = append(why, f.name+" is weak: it repeats a few characters")
		case kinds == 1:
			why = append(why, f.name+" is weak: its characters are all of one kind")
		}
	}
	return why
}

// readable reports whether a file exists and others have one of some rights to it.
func readable(path string, rights os.FileMode) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&rights != 0
}
