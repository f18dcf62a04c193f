package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// gateway is a row of the file of gateways.
type gateway struct {
	URL     string `json:"url"`
	Token   string `json:"token"` // the operator's, or a key
	Machine string `json:"machine,omitempty"`
}

// gateways is the file gateways.json of the user's configuration.
type gateways struct {
	Current  string             `json:"current,omitempty"` // "" for the data directory
	Gateways map[string]gateway `json:"gateways"`
	// Calls has the keys of weir call by URL and machine, each for an hour.
	Calls map[string]string `json:"calls,omitempty"`
}

func (a *app) variable(name string) string { v, _ := a.Env(name); return v }

// gatewaysPath returns where the gateways are stored.
func (a *app) gatewaysPath() (string, error) {
	dir := a.variable("XDG_CONFIG_HOME")
	switch {
	case runtime.GOOS == "windows":
		dir = a.variable("AppData")
	case runtime.GOOS == "darwin" && a.variable("HOME") != "":
		dir = filepath.Join(a.variable("HOME"), "Library", "Application Support")
	case !filepath.IsAbs(dir) && a.variable("HOME") != "":
		dir = filepath.Join(a.variable("HOME"), ".config")
	}
	if !filepath.IsAbs(dir) {
		return "", Usagef("the environment names no home folder; set HOME")
	}
	return filepath.Join(dir, "weir", "gateways.json"), nil
}

func (a *app) readGateways() (g gateways, err error) {
	path, err := a.gatewaysPath()
	if err != nil {
		return g, err
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(raw, &g); err != nil {
			return g, fmt.Errorf("%s: %w; correct or delete the file", path, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return g, err
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(a.Stderr, "weir: warning: %s: other users can read it; run chmod 600 %[1]s\n", path)
	}
	if g.Gateways == nil {
		g.Gateways = map[string]gateway{}
	}
	return g, nil
}

// writeGateways replaces the file, which only its owner can read.
func (a *app) writeGateways(g gateways) error {
	path, err := a.gatewaysPath()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".gateways-*") // mode 600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of no effect once it is renamed
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// open returns the client of the gateway that flags, variables (WEIR_GATEWAY, then DATA_DIR) or the
// last login name; else that of the data directory.
func (a *app) open(ctx context.Context) (c *client, err error) {
	name := a.gateway
	if name != "" && a.data != "" {
		return nil, Usagef("use --gateway or --data, not both")
	}
	var g gateways
	if a.data == "" {
		if name == "" {
			name = a.variable("WEIR_GATEWAY")
		}
		if g, err = a.readGateways(); err != nil {
			return nil, err
		}
		if name == "" && a.variable("DATA_DIR") == "" {
			name = g.Current
		}
	}
	var row gateway
	if name == "" {
		t, closeLocal, err := a.Local(ctx, a.data)
		if err != nil {
			return nil, err
		}
		a.close = closeLocal
		c = newClient("http://weir", "", a.Version, t)
		c.name = "the server of this computer"
	} else {
		if row, err = a.named(ctx, g, name); err != nil {
			return nil, err
		}
		c = newClient(row.URL, row.Token, a.Version, nil)
	}
	c.machine = cmp.Or(a.machine, a.variable("WEIR_MACHINE"), row.Machine)
	return c, nil
}

// noGateway returns the error of a name that no gateway has.
func noGateway(g gateways, name string) error {
	near := closest(name, slices.Sorted(maps.Keys(g.Gateways)))
	return Usagef("no gateway has the name %q; %sweir gateways lists them, weir login URL adds one", name, maybe(near))
}

// named returns the gateway of a name or URL.
func (a *app) named(ctx context.Context, g gateways, name string) (gateway, error) {
	if !strings.Contains(name, "://") {
		row, ok := g.Gateways[name]
		if !ok {
			return row, noGateway(g, name)
		}
		return row, nil
	}
	address, err := parseURL(name)
	if err != nil {
		return gateway{}, err
	}
	if token := strings.TrimSpace(a.variable("WEIR_TOKEN")); token != "" {
		return gateway{URL: address, Token: token}, nil
	}
	for _, name := range append([]string{g.Current}, slices.Sorted(maps.Keys(g.Gateways))...) {
		if row := g.Gateways[name]; row.URL == address {
			return row, nil
		}
	}
	if a.inCI() {
		token, err := a.ciToken(ctx, address)
		return gateway{URL: address, Token: token}, err
	}
	return gateway{}, Usagef("no credential for %s: set WEIR_TOKEN, or run weir login %[1]s", address)
}

// parseURL returns scheme and host of a gateway's URL.
func parseURL(text string) (string, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || u.Path != "" {
		return "", Usagef("%q is not the URL of a gateway: scheme and host, as in https://weir.example.com", text)
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// login stores a credential that the gateway accepts.
func (a *app) login(ctx context.Context, in *input) error {
	address, err := parseURL(in.args[0])
	if err != nil {
		return err
	}
	u, _ := url.Parse(address)
	name := in.values["name"]
	if name == "" {
		name = u.Host
	}
	if strings.Contains(name, "://") {
		return Usagef("login --name %s: a name is not a URL", name)
	}
	if host := u.Hostname(); u.Scheme == "http" && host != "localhost" && !strings.HasPrefix(host, "127.") && host != "::1" {
		fmt.Fprintf(a.Stderr, "weir: warning: %s has no TLS: others on the way can read the credential\n", address)
	}
	token := ""
	if in.values["ci"] != "" {
		token, err = a.ciToken(ctx, address)
	} else if _, ok := a.terminal(a.Stdin); ok && in.values["token"] == "" {
		token, err = a.loginByDevice(ctx, newClient(address, "", a.Version, nil))
	} else {
		token, err = a.secret("Operator token or key of " + address)
	}
	if err != nil {
		return err
	}
	c := newClient(address, token, a.Version, nil)
	c.machine = a.machine
	who, err := a.tryLogin(ctx, c)
	if err != nil {
		return err
	}
	g, err := a.readGateways()
	if err != nil {
		return err
	}
	g.Gateways[name], g.Current = gateway{address, token, a.machine}, name
	if err := a.writeGateways(g); err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "Signed in to %s as %s. Commands use it from now on; weir gateways use changes that.\n", name, who)
	a.warnOfDirectory(name)
	return nil
}

// warnOfDirectory says that commands do not use the gateway that was chosen.
func (a *app) warnOfDirectory(chosen string) {
	if dir := a.variable("DATA_DIR"); chosen != "" && dir != "" {
		fmt.Fprintf(a.Stderr, "weir: warning: DATA_DIR is set, so that commands use %s; unset it, or add --gateway %s\n", dir, ShellWord(chosen))
	}
}

// tryLogin reports as whom a credential is accepted.
func (a *app) tryLogin(ctx context.Context, c *client) (who string, err error) {
	if c.operator() {
		if _, err = c.call(ctx, "GET", "/api/version", nil); err == nil && c.machine != "" {
			_, err = c.findMachine(ctx)
		}
		return "the operator", err
	}
	if strings.HasPrefix(c.token, sessionPrefix) {
		_, err = c.ownMachine(ctx)
		return "a CI job, for an hour", err
	}
	_, err = c.call(ctx, "GET", "/api/settings", nil)
	var refused *apiError
	if errors.As(err, &refused) && (refused.status == 401 || refused.status == 403) {
		if _, err = c.call(ctx, "GET", "/v1/models", nil); err == nil {
			fmt.Fprintln(a.Stderr, "weir: warning: the key has not the scope manage: only weir call works with it")
		}
	}
	return "a key", err
}

// changeGateways changes the file. Without a name, the current gateway is meant.
func (a *app) changeGateways(in *input, change func(g *gateways, name string)) error {
	g, err := a.readGateways()
	if err != nil {
		return err
	}
	name := ""
	if len(in.args) > 0 {
		if name = in.args[0]; g.Gateways[name].URL == "" {
			return noGateway(g, name)
		}
	}
	change(&g, name)
	return a.writeGateways(g)
}

func (a *app) useGateway(_ context.Context, in *input) error {
	return a.changeGateways(in, func(g *gateways, name string) {
		g.Current = name
		a.warnOfDirectory(name)
	})
}

func (a *app) forgetGateway(_ context.Context, in *input) error {
	return a.changeGateways(in, func(g *gateways, name string) {
		maps.DeleteFunc(g.Calls, func(place, _ string) bool { return strings.HasPrefix(place, g.Gateways[name].URL+"/") })
		delete(g.Gateways, name)
		if g.Current == name {
			g.Current = ""
		}
	})
}

func (a *app) listGateways(context.Context, *input) error {
	g, err := a.readGateways()
	if err != nil {
		return err
	}
	t := table{columns: []column{{title: ""}, {title: "NAME"}, {title: "URL"}, {title: "CREDENTIAL"}, {title: "MACHINE"}}}
	for _, name := range slices.Sorted(maps.Keys(g.Gateways)) {
		row, mark, kind := g.Gateways[name], "", "operator token"
		if name == g.Current {
			mark = "*"
		}
		switch {
		case strings.HasPrefix(row.Token, "sk-"):
			kind = "key"
		case strings.HasPrefix(row.Token, sessionPrefix):
			kind = "CI job"
		}
		t.add(plain(mark), plain(name), plain(row.URL), plain(kind), plain(row.Machine))
	}
	return a.print(t)
}
