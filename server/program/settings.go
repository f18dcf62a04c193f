package program

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"weir/pkg/gateway"
	"weir/server/postgres"
	"weir/server/store"
)

// setting is a setting with a flag. The flag is stronger than the variable.
type setting struct{ flag, variable, value, help string }

// settingTable returns the settings that have flags. docs/guides/self-hosting.md
// lists them.
func settingTable() []setting {
	return []setting{
		{"listen", "LISTEN", "ADDRESS", "where to listen: HOST:PORT, :PORT for every address, or unix:PATH (default 127.0.0.1:8787)"},
		{"data", "DATA_DIR", "FOLDER|URL", "data directory, or postgres://… of a database that several servers share (default " + defaultDataText() + ")"},
		{"public-url", "PUBLIC_URL", "URL", "scheme and host under which browsers reach the server, https://weir.example.com"},
		{"tls-cert", "TLS_CERT", "FILE", "certificate chain in PEM; a changed file is used at once"},
		{"tls-key", "TLS_KEY", "FILE", "private key of the certificate in PEM"},
		{"trusted-proxies", "TRUSTED_PROXIES", "LIST",
			"addresses of proxies whose X-Forwarded fields count: 10.0.0.7,192.168.0.0/16, or loopback, private"},
		{"cells", "CELLS", "NUMBER", "without effect: the server uses every core"},
		{"memory", "MEMORY", "MIB", "memory for large requests and answers at once, in MiB (default 128 for each core)"},
		{"requests", "REQUESTS", "NUMBER", "requests of the last 30 days that the list of each machine has (default 100000)"},
		{"metrics", "METRICS", "ADDRESS",
			"where /metrics is read without a token: HOST:PORT, such as 127.0.0.1:9090 (default nowhere)"},
		{"away", "AWAY", "SECONDS", "how long calls go on while the database does not answer, 60 to 900 (default 60)"},
		{"drain", "DRAIN", "SECONDS", "how long calls under way may take to end when the server stops, 1 to 3600 (default 30)"},
		{"config", "CONFIG_FILE", "FILE", "weir.yaml, which is applied at the start and whenever it changes"},
		{"log-level", "LOG_LEVEL", "LEVEL", "debug, info, warn or error; debug and info add a line for each successful call (default warn)"},
	}
}

func settingOf(flag string) setting {
	for _, s := range settingTable() {
		if s.flag == flag {
			return s
		}
	}
	panic("no setting --" + flag)
}

// variable is a setting that has no flag.
type variable struct {
	name string
	file bool // NAME_FILE may name a file with the value
	is   kind
	help string
}

type kind int

const (
	text kind = iota
	secret
	boolean
)

// variables returns the settings without a flag, those of the edge platform.
func variables() []variable {
	list := []variable{
		{"ADMIN_TOKEN", true, secret, "the operator token; at least 32 bytes, like the next two"},
		{"API_KEY_SECRET", true, secret, "checks the form of keys"},
		{"CREDENTIALS_KEY", true, secret, "encrypts stored credentials; NEW,OLD while one replaces the other"},
		{"DATABASE_URL", true, text, "a database in place of the data directory, postgres://user:password@host:5432/weir"},
		{"REQUIRE_API_KEY", false, boolean, "false lets /{machineId}/v1/… work without a key (default true)"},
		{"ALLOW_PRIVATE_UPSTREAMS", false, boolean,
			"true allows upstreams at private addresses and over plain http (default false)"},
		{"ALLOW_RESEED", false, boolean, "of the edge platform; without effect here, where there is no KV"},
		{"OAUTH_PROVIDERS", true, text, "clients for sign-in at providers, JSON; further lists in OAUTH_PROVIDERS_2 to _" +
			strconv.Itoa(gateway.MaxOAuthLists)},
		{"PROXY_URL", true, text, "HTTP CONNECT proxy for token refresh, http://user:password@host:port"},
		{"PRICES_URL", false, text, "where prices and new models come from once an hour, off for nowhere (default: https://models.dev/api.json)"},
		{"PRICES_KEY", false, text, "the Ed25519 public key that signs PRICES_URL, in base64 (default: the source is not signed)"},
		{"CHECK_UPDATES", false, boolean, "true looks for a newer release once a day and shows it in the dashboard (default false)"},
	}
	for _, name := range gateway.OTelVariables() {
		secret := strings.HasSuffix(name, "_HEADERS")
		list = append(list, variable{name, secret, text, "of OpenTelemetry, a collector for all machines: docs/guides/opentelemetry.md"})
	}
	return list
}

// address is where the server listens.
type address struct{ network, name string }

func (a address) String() string {
	if a.network == "unix" {
		return "unix:" + a.name
	}
	return a.name
}

// settings are the parsed settings of a command.
type settings struct {
	listen            address
	passed            bool   // the process was started with the socket of listen
	data              string // absolute path; "" with a database
	database          string // URL of the database; "" for a data directory
	tlsCert, tlsKey   string
	configFile        string // absolute path of weir.yaml; "" without one
	publicURL         string
	proxies           proxies
	memory            int64         // bytes for large bodies and answers, 0 for the default
	requests          int64         // that are listed, 0 for the default
	logLevel          int           // the lowest level that is logged
	away              time.Duration // for which calls go on without the database
	drain             time.Duration // of calls under way when the server stops, 0 for the default
	metrics           string        // where metrics are read without a token, "" for nowhere
	variable          func(name string) string
	secretEnvironment secrets // those that the environment has
}

// readSettings reads flags and variables. Every mistake is a usageError.
func (r *run) readSettings(f *flags) (*settings, error) {
	s := &settings{}
	values := map[string]string{}
	for _, row := range settingTable() {
		if v, ok := f.set(row.flag); ok {
			if v == "" {
				return nil, usagef("--%s: the value is empty", row.flag)
			}
			values[row.variable] = v
		} else if v, ok := r.env(row.variable); ok {
			values[row.variable] = v
		}
	}
	for _, row := range variables() {
		v, err := r.variable(row)
		if err != nil {
			return nil, err
		}
		values[row.name] = v
	}
	for i := 1; i < gateway.MaxOAuthLists; i++ {
		name := gateway.OAuthVariable(i)
		v, err := r.variable(variable{name: name, file: true})
		if err != nil {
			return nil, err
		}
		values[name] = v
	}
	s.variable = func(name string) string { return values[name] }
	s.secretEnvironment = secrets{values["ADMIN_TOKEN"], values["API_KEY_SECRET"], values["CREDENTIALS_KEY"]}
	for _, read := range []func() error{
		func() (err error) { s.listen, err = parseListen(values["LISTEN"]); return err },
		func() (err error) { s.data, s.database, err = r.where(f, values); return err },
		func() (err error) { s.proxies, err = parseProxies(values["TRUSTED_PROXIES"]); return err },
		func() (err error) { s.memory, err = parseMemory(values["MEMORY"]); return err },
		func() (err error) { s.requests, err = parseRequests(values["REQUESTS"]); return err },
		func() (err error) {
			s.away, err = parseSeconds("away", values["AWAY"], minAway, maxAway, minAway)
			return err
		},
		func() (err error) {
			s.drain, err = parseSeconds("drain", values["DRAIN"], time.Second, time.Hour, 0)
			return err
		},
		func() (err error) { s.metrics, err = parseMetrics(values["METRICS"]); return err },
		func() (err error) { s.logLevel, err = parseLevel(values["LOG_LEVEL"]); return err },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	switch name := s.socketInData(); name {
	case store.FileName, store.LockName, secretsName, codeName, controlName, controlPathName, managedName:
		return nil, usagef("--listen %s: the data directory has a file of this name; choose another", s.listen)
	}
	s.tlsCert, s.tlsKey = values["TLS_CERT"], values["TLS_KEY"]
	if name := values["CONFIG_FILE"]; name != "" {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, usagef("--config %s: %v", name, err)
		}
		s.configFile = path
	}
	s.publicURL = strings.TrimRight(strings.TrimSpace(values["PUBLIC_URL"]), "/")
	s.proxies.unix = s.listen.network == "unix"
	s.proxies.public = s.publicURL
	_, s.proxies.host, _ = strings.Cut(strings.ToLower(s.publicURL), "://")
	return s, nil
}

// variable reads a variable without a flag, or the file that NAME_FILE names.
func (r *run) variable(row variable) (string, error) {
	v, set := r.env(row.name)
	set = set && v != ""
	if row.file {
		if path, ok := r.env(row.name + "_FILE"); ok && path != "" {
			if set {
				return "", usagef("%s and %s_FILE are both set; unset one of them", row.name, row.name)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return "", usagef("%s_FILE: %s: %v", row.name, path, store.Cause(err))
			}
			v = strings.TrimRight(string(raw), "\r\n")
			if v == "" {
				return "", usagef("%s_FILE: %s: the file is empty", row.name, path)
			}
			set = true
		}
	}
	switch {
	case !set:
	case row.is == secret && len(strings.TrimSpace(v)) < minSecret:
		return "", usagef("%s: it has fewer than %d bytes; openssl rand -hex 32 prints a good one", row.name, minSecret)
	case row.is == boolean && !isBoolean(v):
		return "", usagef("%s: %q is neither true nor false", row.name, v)
	}
	return v, nil
}

// isTrue reports whether v is a spelling of true that gateway.ReadConfig knows.
func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "1", "on", "yes":
		return true
	}
	return false
}

// isBoolean reports whether v is a spelling that gateway.ReadConfig knows.
func isBoolean(v string) bool {
	switch strings.ToLower(v) {
	case "false", "0", "off", "no":
		return true
	}
	return isTrue(v)
}

// socketInData returns the name of the unix socket to listen at if its folder is the
// data directory, else "".
func (s *settings) socketInData() string {
	if s.listen.network != "unix" || s.data == "" {
		return ""
	}
	path, err := filepath.Abs(s.listen.name)
	if err != nil || filepath.Dir(path) != s.data {
		return ""
	}
	return filepath.Base(path)
}

// config returns the settings of the program, with its secrets. An error names the
// setting.
func (s *settings) config(own secrets) (gateway.Config, error) {
	c := gateway.ReadConfig(s.variable)
	c.AdminToken, c.KeySecret, c.CredentialsKey = own.AdminToken, own.KeySecret, own.CredentialsKey
	if err := c.Check(); err != nil {
		return c, usagef("%s", err)
	}
	return c, nil
}

func parseListen(v string) (address, error) {
	v = cmp.Or(v, "127.0.0.1:8787")
	if path, ok := strings.CutPrefix(v, "unix:"); ok {
		if path == "" {
			return address{}, usagef("--listen %s: the path is missing, as in unix:/run/weir.sock", v)
		}
		return address{"unix", path}, nil
	}
	_, port, err := net.SplitHostPort(v)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n > 65535 {
		return address{}, usagef("--listen %s: it must be HOST:PORT, :PORT or unix:PATH", v)
	}
	return address{"tcp", v}, nil
}

// parseMemory returns a number of MiB in bytes.
func parseMemory(v string) (int64, error) {
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < minMemory || n > 1<<20 {
		return 0, usagef("--memory %s: it must be a number of MiB from %d to %d", v, minMemory, 1<<20)
	}
	return n << 20, nil
}

// How long calls may go on without the database: a change that another server has made, such as
// the end of a key, is not known meanwhile.
const minAway, maxAway = time.Minute, 15 * time.Minute

// parseSeconds returns a number of seconds, or the default value for none.
func parseSeconds(flag, v string, least, most, otherwise time.Duration) (time.Duration, error) {
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	d := time.Duration(n) * time.Second
	if err != nil || d < least || d > most {
		return 0, usagef("--%s %s: it must be a number of seconds from %d to %d", flag, v, int(least.Seconds()), int(most.Seconds()))
	}
	return d, nil
}

func parseRequests(v string) (int64, error) {
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1000 || n > 1_000_000 {
		return 0, usagef("--requests %s: it must be a number from 1000 to 1000000", v)
	}
	return n, nil
}

// minMemory is the least memory for large bodies, in MiB: less would refuse ordinary
// ones.
const minMemory = 64

// parseLevel returns the lowest level that is logged, as gateway.Ports counts.
func parseLevel(v string) (int, error) {
	switch strings.ToLower(v) {
	case "debug", "info":
		return 0, nil
	case "", "warn":
		return 1, nil
	case "error":
		return 2, nil
	}
	return 0, usagef("--log-level %s: it must be debug, info, warn or error", v)
}

// where returns the data directory, or the URL of a database: of --data, else DATABASE_URL, else
// DATA_DIR.
func (r *run) where(f *flags, values map[string]string) (dir, database string, err error) {
	data, flag := values["DATA_DIR"], false
	if f != nil {
		_, flag = f.set("data")
	}
	if url := values["DATABASE_URL"]; url != "" && !flag {
		if !postgres.IsAddress(url) {
			return "", "", usagef("DATABASE_URL: it must begin with postgres://")
		}
		return "", url, nil
	}
	if postgres.IsAddress(data) {
		return "", data, nil
	}
	dir, err = r.dataDir(data)
	return dir, "", err
}

// place returns where the data is, for people.
func (s *settings) place() string {
	if s.database != "" {
		return postgres.Redact(s.database)
	}
	return s.data
}

// dataDir returns the data directory as an absolute path.
func (r *run) dataDir(v string) (string, error) {
	if strings.HasPrefix(v, "-") { // the next flag: --data --help
		return "", usagef("--data %s: that is a flag; for a folder of this name write ./%s", v, v)
	}
	if v == "" {
		var err error
		if v, err = defaultData(runtime.GOOS, r.env); err != nil {
			return "", err
		}
	}
	v, err := filepath.Abs(v)
	if err != nil {
		return "", usagef("--data: %v", err)
	}
	return v, nil
}

// defaultData returns the platform's folder for the state of programs.
func defaultData(goos string, env func(string) (string, bool)) (string, error) {
	variable := func(name string) string { v, _ := env(name); return v }
	switch goos {
	case "windows":
		if v := variable("LocalAppData"); v != "" {
			return filepath.Join(v, "weir"), nil
		}
	case "darwin":
		if v := variable("HOME"); v != "" {
			return filepath.Join(v, "Library", "Application Support", "weir"), nil
		}
	default:
		if v := variable("XDG_STATE_HOME"); filepath.IsAbs(v) {
			return filepath.Join(v, "weir"), nil
		}
		if v := variable("HOME"); v != "" {
			return filepath.Join(v, ".local", "state", "weir"), nil
		}
	}
	return "", usagef("no data directory: the environment names no home folder; name one with --data or DATA_DIR")
}

func defaultDataText() string {
	switch runtime.GOOS {
	case "windows":
		return `%LocalAppData%\weir`
	case "darwin":
		return "~/Library/Application Support/weir"
	}
	return "~/.local/state/weir"
}

// tls reports whether the server itself speaks TLS.
func (s *settings) tls() bool { return s.tlsCert != "" || s.tlsKey != "" }

// base returns the URL under which a browser on this computer reaches the server
// at an address, or the public one. It is "" for a unix socket without one.
func (s *settings) base(at net.Addr) string {
	if s.publicURL != "" {
		return s.publicURL
	}
	host, port := "", ""
	if a, ok := at.(*net.TCPAddr); ok {
		host, port = a.AddrPort().Addr().Unmap().String(), strconv.Itoa(a.Port)
	} else if s.listen.network == "tcp" {
		host, port, _ = net.SplitHostPort(s.listen.name)
	} else {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	if s.tls() {
		u.Scheme = "https"
	}
	return u.String()
}

// warn prints a warning, one line.
func (r *run) warn(format string, args ...any) {
	fmt.Fprintf(r.stderr, "weir: warning: "+format+"\n", args...)
}
