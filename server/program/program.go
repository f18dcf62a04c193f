// Package program is the command weir: its commands, settings and secrets, the
// listener, and the order in which the server starts and stops.
package program

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"weir/server/cli"
	"weir/server/host"
	"weir/server/objects"
)

// Options are what a binary that uses the package sets. The zero value is the
// product without a version; the other fields are for test binaries.
type Options struct {
	// Version is set when the binary is built, such as v1.2.0.
	Version string
	// Releases is the address of the releases and Signer the public key that signs them, for
	// weir upgrade. Both may be "".
	Releases, Signer string
	// Name is how the program was called, for the commands that it prints. ""
	// means weir.
	Name string
	// Transport returns the transport of upstream calls, built around the one that
	// enforces the address policy. nil leaves that one.
	Transport func(http.RoundTripper) http.RoundTripper
	// Engine returns the engine of the objects, built around the durable one. nil leaves
	// that one.
	Engine func(objects.Engine) objects.Engine
	// Started receives the parts of a server before it serves. nil ignores them.
	Started func(Parts)
	// Resolver resolves the names of upstreams. nil means the system's.
	Resolver *net.Resolver
	// Signals has the signals that stop the server. nil means those of the process.
	Signals <-chan os.Signal
	// Now is the clock of the program and of its machines. nil means the system's, by
	// which the time limits of connections and calls run in any case.
	Now func() time.Time
}

// Parts are the parts of a server.
type Parts struct {
	Address net.Addr // where it listens
	Host    *host.Host
	Engine  objects.Engine // without what Options.Engine has put around it
	Objects *objects.Runner
	Metrics net.Listener // nil if metrics have no address of their own
}

// Main runs the command of args, which does not include the program's name, and
// returns the exit code: 0, 1 for a failure, 2 for a wrong command, flag or
// setting. env looks up a variable of the environment.
func (o Options) Main(args []string, env func(string) (string, bool), stdin io.Reader,
	stdout, stderr io.Writer) (code int) {
	if len(args) == 0 && isTerminal(stdin) && isTerminal(stdout) {
		switch r := o.run(env, stdin, stdout, stderr); {
		case r.isRunning():
			args = []string{"status"}
		case offersStart(stdin, stdout):
			args = []string{"serve"}
		default:
			return 0
		}
	}
	if len(args) == 0 {
		args, stdout = []string{"help"}, stderr
		defer func() { code = 2 }()
	}
	return o.run(env, stdin, stdout, stderr).main(args)
}

func (o Options) run(env func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) *run {
	return &run{Options: o, env: env, stdin: stdin, stdout: stdout, stderr: stderr, limits: standardLimits()}
}

// isRunning reports whether a server runs on the usual data directory.
func (r *run) isRunning() bool {
	s, err := r.settingsFor("")
	if err != nil || s.database != "" {
		return false
	}
	res, err := control(context.Background(), s.data, "GET", "/health", nil)
	return err == nil && res.Body.Close() == nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// offersStart asks whether to start the server, and reports whether the answer is yes or empty.
func offersStart(in io.Reader, out io.Writer) bool {
	fmt.Fprint(out, "weir is an AI gateway: one address and one key for the model providers that you use.\nweir help lists its commands.\n\nStart the server now? [Y/n] ")
	line, err := bufio.NewReader(in).ReadString('\n')
	line = strings.ToLower(strings.TrimSpace(line))
	return err == nil && (line == "" || line == "y" || line == "yes")
}

// main runs a command and returns the exit code.
func (r *run) main(args []string) int {
	err := r.command(args)
	if err == nil {
		return 0
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.Code
	}
	fmt.Fprintf(r.stderr, "weir: %s\n", oneLine(err))
	if errors.As(err, new(*usageError)) {
		return 2
	}
	return 1
}

// Main runs the product with the arguments and the environment of the process.
func Main(o Options) int {
	o.Name = os.Args[0]
	if code, is := o.asService(os.Args[1:]); is {
		return code
	}
	return o.Main(os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr)
}

// run is one run of the program.
type run struct {
	Options
	env            func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
	limits         limits
}

// call returns the command line that runs a command on the data directory of s.
func (r *run) call(command string, s *settings) string {
	line := cmp.Or(r.Name, "weir")
	if strings.ContainsRune(line, filepath.Separator) {
		line = cli.ShellWord(line)
	}
	line += " " + command
	if s.database != "" {
		return line // DATABASE_URL may have a password
	}
	if usual, err := r.dataDir(""); err != nil || usual != s.data {
		line += " --data " + cli.ShellWord(s.data)
	}
	return line
}

// usageError is a mistake in the command line or in a setting.
type usageError = cli.UsageError

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// exitError ends the program with a code and without a text.
type exitError = cli.ExitError

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// command is a command that runs or keeps a server.
type command struct {
	name, args, summary, text string
	example                   string   // a command line
	settings                  []string // names of the flags of settings that it takes
	run                       func(*run, *flags) error
	flags                     func(*flags) // further flags; may be nil
}

// serveSettings are the flags of weir serve, which weir service install takes too.
var serveSettings = []string{"listen", "data", "public-url", "tls-cert", "tls-key", "trusted-proxies", "cells", "memory",
	"requests", "metrics", "away", "drain", "config", "log-level"}

// commands returns the commands in the order of the help.
func commands() []command {
	return []command{
		{
			name: "serve", summary: "run the server", example: "weir serve --listen 127.0.0.1:9000 --data ./data",
			text:     "The first start creates the data directory, secrets and a machine in it, and prints\na link that signs you in to the dashboard. SIGTERM and SIGINT stop the server: new\ncalls are answered with 503, those under way have 30 seconds; a second signal\nstops at once.",
			settings: serveSettings,
			run:      (*run).serve,
		},
		{
			name: "init", summary: "print a sign-in link; create the first machine",
			text:     "A machine is a tenant with its own accounts, keys and models. Without one,\ninit creates it and prints its key. The link works once, within an hour, and\nreplaces the one before it. init works beside a running server and without one.",
			settings: []string{"data", "listen", "public-url", "tls-cert", "tls-key"},
			flags: func(f *flags) {
				f.StringVar(&f.name, "name", "", "create a machine of this `NAME`, also if there are machines; the first is \"main\"")
			},
			run: (*run).initialize,
		},
		{
			name: "token", args: " rotate", summary: "replace the operator token and print the new one", example: "weir token rotate",
			text:     "It is ADMIN_TOKEN of secrets.json in the data directory. A server that runs accepts the\none before until it is restarted, which also ends the sessions of the operator.",
			settings: []string{"data"},
			run:      (*run).token,
		},
		{
			name: "backup", args: " FILE", summary: "copy the database, also while the server runs",
			example:  "weir backup weir-copy.db",
			text:     "FILE is replaced only with --force; - is the standard output. To restore, stop the\nserver and copy FILE to weir.db in the data directory. The credentials in it are\nencrypted with CREDENTIALS_KEY: keep a copy of secrets.json apart from the backups.",
			settings: []string{"data"},
			flags:    func(f *flags) { f.BoolVar(&f.force, "force", false, "replace FILE if it exists") },
			run:      (*run).backup,
		},
		{
			name: "migrate", summary: "copy machines between data directories and databases",
			example: "weir migrate --from /var/lib/weir --to postgres://weir@db.example.com/weir",
			text:    "--from and --to are each a data directory or a postgres:// URL, of which no server may\nbe running. Each machine is copied as a whole and compared; the command may be repeated,\nand overwrites nothing.",
			flags: func(f *flags) {
				f.StringVar(&f.from, "from", "", "where the machines are: a `PLACE`")
				f.StringVar(&f.to, "to", "", "an empty `PLACE`")
			},
			run: (*run).migrate,
		},
		{
			name: "health", summary: "exit with 0 if the server answers, else with 1",
			text:     "For the health checks of containers: it asks /health at the address that the server\nlistens at, so it takes the same --listen and --tls-cert. Without an address it asks the\nserver of the data directory, wherever that listens.",
			settings: []string{"listen", "tls-cert", "data"},
			run:      (*run).health,
		},
		{
			name: "service", args: " install|uninstall|status", summary: "have the system start the server", example: "weir service install --listen 127.0.0.1:8787",
			text:     "By systemd, launchd or the services of Windows: as root under Linux for the whole\ncomputer, else for the user. install takes the flags of weir serve; uninstall keeps the data.",
			settings: serveSettings,
			run:      (*run).service,
		},
		{
			name: "upgrade", summary: "replace this program by the latest release",
			text: "The release is verified by its signed checksums. The program may run meanwhile; the one\nbefore is kept as weir.old. A program of a package manager is left to that.",
			flags: func(f *flags) {
				f.BoolVar(&f.check, "check", false, "only print whether there is a newer release")
				f.StringVar(&f.version, "version", "", "a `VERSION` in place of the latest, also an older one")
				f.StringVar(&f.from, "from", "", "`ADDRESS` of the files of a release, for a mirror or a server of your own")
			},
			run: (*run).upgrade,
		},
		{name: "version", summary: "print the version", run: (*run).printVersion},
	}
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// flags are the parsed flags and arguments of a command.
type flags struct {
	*pflag.FlagSet
	args    []string
	name    string // of a machine
	force   bool
	from    string // a data directory or a database; of upgrade an address
	to      string // a data directory or a database
	check   bool
	version string
}

// set returns the value of a setting's flag, if the command line has it.
func (f *flags) set(name string) (value string, ok bool) {
	if one := f.Lookup(name); one != nil && one.Changed {
		return one.Value.String(), true
	}
	return "", false
}

func newFlags(c command) *flags {
	f := &flags{FlagSet: pflag.NewFlagSet(c.name, pflag.ContinueOnError)}
	if c.flags != nil {
		c.flags(f)
	}
	for _, name := range c.settings {
		s := settingOf(name)
		f.String(name, "", s.help)
		f.Lookup(name).Annotations = map[string][]string{"setting": {s.value, s.variable}}
	}
	return f
}

// signals returns the signals that stop the server, and a function that releases
// them. A hangup stops it too, unless the process was started to survive one.
func (r *run) signals() (<-chan os.Signal, func()) {
	if r.Signals != nil {
		return r.Signals, func() {}
	}
	c := make(chan os.Signal, 4)
	for _, s := range stopSignals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}
