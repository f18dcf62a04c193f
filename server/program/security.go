package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"weir/server/cli"
	"weir/server/store"
)

// serverState is what a running server says of itself on the control socket.
type serverState struct {
	Address     string   `json:"address"` // for people
	Version     string   `json:"version"`
	StartedMs   int64    `json:"startedMs"`
	Open        bool     `json:"open"` // to other computers, without TLS
	Environment []string `json:"environment,omitempty"`
}

// state returns the state of the server.
func (v *server) state() serverState {
	return serverState{Address: v.where(), Version: v.version(), StartedMs: v.began.UnixMilli(),
		Open: v.settings.isOpen(v.at), Environment: v.secretsOfEnvironment()}
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
	if s.database == "" {
		found = append(found, r.unsafeFiles(s.data)...)
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
	if v := strings.ToLower(s.variable("REQUIRE_API_KEY")); v != "" && !isTrue(v) {
		add("REQUIRE_API_KEY is false, so whoever knows the id of a machine uses its accounts; leave it out")
	}
	if readable(s.tlsKey, 0o007) {
		add("%s, the private key, is open to all users; run chmod 600 %[1]s", s.tlsKey)
	}
	return found, nil
}

// unsafeFiles examines the files of a data directory.
func (r *run) unsafeFiles(dir string) (found []string) {
	if readable(dir, 0o077) {
		found = append(found, fmt.Sprintf("the data directory %s is open to other users; run chmod 700 %[1]s", dir))
	}
	for _, name := range []string{secretsName, store.FileName, checkName, codeName} {
		if path := filepath.Join(dir, name); readable(path, 0o077) {
			found = append(found, fmt.Sprintf("%s is open to other users; run chmod 600 %[1]s", path))
		}
	}
	if info, err := os.Stat(filepath.Join(dir, secretsName)); err == nil {
		if age := r.now()().Sub(info.ModTime()); age > maxSecretAge {
			found = append(found, fmt.Sprintf("the secrets are %d days old; replace the operator token with weir token rotate, and the others as docs/security.md says", int(age.Hours()/24)))
		}
	}
	return found
}

// readable reports whether a file exists and others have one of some rights to it.
func readable(path string, rights os.FileMode) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&rights != 0
}
