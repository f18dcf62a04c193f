package program

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"weir/pkg/wire/stream"
	"weir/server/dashboard"
	"weir/server/gctune"
	"weir/server/host"
	"weir/server/postgres"
	"weir/server/store"
)

// maxHead bounds the head of a request, in bytes. It is above the limit of the host,
// which answers with a JSON error; over it net/http closes the connection.
const maxHead = 256 << 10

// limits are the time limits of the server. The bodies of requests and answers
// have limits of their own, see package host.
type limits struct {
	header time.Duration // for the head of a request
	idle   time.Duration // of a connection without a call; longer than that of the usual proxies
	stall  time.Duration // for a client that reads nothing of its answer
	leave  time.Duration // of a graceful stop, for connections whose next call another process can serve
	drain  time.Duration // then for calls under way
	told   time.Duration // then for answers to calls that are told that the server stops
	close  time.Duration // then until their connections end
	cut    time.Duration // then for calls that have not ended even so
	after  time.Duration // then for records of the calls, and for turns of machines
}

func standardLimits() limits {
	return limits{header: 20 * time.Second, idle: 2 * time.Minute, stall: 2 * time.Minute, leave: time.Second,
		drain: 30 * time.Second, told: time.Second, close: time.Second, cut: 5 * time.Second, after: 10 * time.Second}
}

// stop is how long a graceful stop takes at most. The files in deploy/ have DRAIN and 25 s.
func (l limits) stop() time.Duration {
	return l.leave + l.drain + l.told + l.close + l.cut + l.after + postgres.CloseTime
}

// server is the running server.
type server struct {
	*run
	*stack
	log     *logger
	host    *host.Host
	gate    *gate
	http    *http.Server
	clients *boundedListener
	files   uint64                  // may be open
	cut     context.CancelCauseFunc // ends the calls under way
	at      net.Addr
	control *http.Server // nil if the control socket could not be opened
	metrics net.Addr     // where metrics are read without a token; nil for nowhere
}

func (r *run) serve(f *flags) error {
	s, err := r.readSettings(f)
	if err != nil {
		return err
	}
	if s.drain > 0 {
		r.limits.drain = s.drain
	}
	signals, release := r.signals()
	defer release()
	gctune.Start()
	log := &logger{w: r.stderr, lowest: s.logLevel}
	defer stdlog.SetFlags(stdlog.Flags())
	defer stdlog.SetOutput(stdlog.Writer())
	stdlog.SetFlags(0)
	stdlog.SetOutput(log)
	var cert *certificate
	if s.tls() {
		if cert, err = newCertificate(s.tlsCert, s.tlsKey, log.line); err != nil {
			return err
		}
	}
	if s.socketInData() != "" { // its folder must exist
		if err := s.prepare(); err != nil {
			return err
		}
	}
	l, err := r.listen(s)
	if err != nil {
		return err
	}
	defer l.Close()
	files := openFiles()
	most := capacityOf(files)
	clients := newBoundedListener(l, most.clients)
	l = stallListener{clients, r.limits.stall}
	m, err := s.openMetrics()
	if err != nil {
		return err
	}
	listens := own(l.Addr())
	if m != nil {
		defer m.Close()
		listens = append(listens, own(m.Addr())...)
	}
	k, err := r.open(s, log, listens)
	if err != nil {
		return err
	}
	k.config.Calls = most.calls
	k.transport.MaxIdleConns = min(k.transport.MaxIdleConns, most.idle)
	v := &server{run: r, stack: k, log: log, host: host.New(k.config, k.app), clients: clients, files: files,
		at: l.Addr()}
	v.openOwned()
	k.inFlight = func() int { calls, _, _ := v.host.InFlight(); return calls }
	v.gate = newGate(clients.sparing(v.readiness(dashboard.Handler(dashboard.Files(), v.host))))
	base, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	v.cut = cut
	v.http = v.newHTTP()
	v.http.BaseContext = func(net.Listener) context.Context { return base }
	if r.Started != nil {
		r.Started(Parts{v.at, v.host, k.engine, k.objects, m})
	}
	if err := v.createFirst(); err != nil { // before weir init and the configuration file look for one
		v.warn("%s", oneLine(err))
	}
	closeControl, closeMetrics := v.serveControl(), v.serveMetrics(m)
	defer closeMetrics()
	closeConfig := v.openConfig()
	if err := v.greet(); err != nil { // before an answer makes others print
		v.warn("%s", oneLine(err))
	}
	if v.updates != nil {
		go v.updates.watch(base)
	}
	failed := make(chan error, 1)
	if cert != nil {
		v.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}
		go func() { failed <- v.http.ServeTLS(l, "", "") }()
	} else {
		go func() { failed <- v.http.Serve(l) }()
	}
	r.notify("READY=1")
	return v.until(failed, signals, func() { closeConfig(); closeControl() })
}

// until waits until the server fails or is stopped, and ends what is under way.
func (v *server) until(failed <-chan error, signals <-chan os.Signal, closeControl func()) (err error) {
	select {
	case err = <-failed:
		err = fmt.Errorf("listen %s: %w", v.settings.listen, err)
	case sig := <-signals:
		if v.drain(signals) {
			return &exitError{Code: 128 + number(sig)}
		}
	}
	closeControl()
	ctx, cancel := context.WithTimeout(context.Background(), v.limits.after)
	defer cancel()
	if late := v.host.Wait(ctx); late != nil {
		v.log.line(1, "some calls were not recorded before the end")
	}
	if late := v.close(ctx); late != nil && err == nil {
		err = fmt.Errorf("stop: %w", late)
	}
	if err == nil {
		fmt.Fprintln(v.stdout, "weir has stopped.")
	}
	return err
}

// newHTTP returns the part of the server that reads requests.
func (v *server) newHTTP() *http.Server {
	l := v.limits
	return &http.Server{
		Handler: v.gate, ErrorLog: v.host.ErrorLog(),
		ReadHeaderTimeout: l.header, IdleTimeout: l.idle, MaxHeaderBytes: maxHead,
		HTTP2: &http.HTTP2Config{WriteByteTimeout: l.stall, SendPingTimeout: l.stall / 2,
			PingTimeout: l.stall / 4},
		DisableGeneralOptionsHandler: true, // the program answers OPTIONS *
	}
}

// number returns the number of a signal.
func number(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}

// drain ends the calls under way, and reports whether a second signal came. New
// calls go to another process or are answered with 503 meanwhile, and those that have not
// ended within their time with an error of their dialect.
func (v *server) drain(signals <-chan os.Signal) (again bool) {
	v.notify(fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", v.limits.stop().Microseconds()))
	v.gate.leave()
	again = v.handOver(signals)
	v.host.Drain()
	if n := v.gate.close(); n > 0 && !again {
		fmt.Fprintf(v.stdout, "weir is stopping; calls that have %d s to end: %d. A second signal stops at once.\n",
			int(v.limits.drain.Seconds()), n)
	}
	again = again || !v.idleWithin(v.limits.drain, signals)
	v.cut(stream.ErrStopping)
	if !v.idleWithin(v.limits.told, signals) {
		return true
	}
	// Answers of 503 are on their way; then nothing is.
	ctx, cancel := context.WithTimeout(context.Background(), v.limits.close)
	defer cancel()
	if v.http.Shutdown(ctx) != nil {
		v.http.Close()
	}
	return again || !v.idleWithin(v.limits.cut, signals)
}

// idleWithin waits until no call is under way, for at most d. It reports false as soon
// as a signal comes.
func (v *server) idleWithin(d time.Duration, signals <-chan os.Signal) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-v.gate.idle:
	case <-limit.C:
	case <-signals:
		return false
	}
	return true
}

// serveControl serves the control socket. Without one the server runs, but the commands
// on its data directory need it to be stopped.
func (v *server) serveControl() (close func()) {
	if v.settings.database != "" {
		return func() {} // weir init and weir backup use the database themselves
	}
	l, remove, err := listenControl(v.settings.data)
	if err != nil {
		v.warn("no control socket: %v; stop the server to use weir init and weir backup", store.Cause(err))
		return func() {}
	}
	v.control = &http.Server{
		Handler: controls{
			backup: v.backup, initialize: v.initialize, state: v.state,
			api: operatorHandler(v.host, v.secrets.AdminToken, v.settings.base(v.at)),
		}.Handler(),
		ErrorLog: v.host.ErrorLog(), ReadHeaderTimeout: v.limits.header,
	}
	go v.control.Serve(l) // ends when it is closed
	withdraw := v.announce(v.settings.data)
	return func() {
		withdraw()
		v.control.Close()
		remove()
	}
}

// backup writes the database, with what the objects have buffered.
func (v *server) backup(w io.Writer) error {
	if err := v.objects.Flush(context.Background()); err != nil {
		v.log.line(1, err.Error())
	}
	return v.engine.Backup(w)
}

// initialize serves weir init for a server that runs.
func (v *server) initialize(ctx context.Context, name string) (initialized, error) {
	return v.stack.initialize(ctx, name, v.at)
}

// warnOfFiles names a low limit of open files.
func (r *run) warnOfFiles(limit uint64) {
	if limit < minFiles {
		r.warn("at most %d files may be open, so only %d calls are served at once: raise the limit (ulimit -n, LimitNOFILE)",
			limit, capacityOf(limit).calls)
	}
}

// where returns the address of the server for people.
func (v *server) where() string {
	base := v.settings.base(v.at)
	if v.settings.listen.network != "unix" {
		return base
	}
	return strings.TrimSuffix(v.settings.listen.String()+" and "+base, " and ")
}

// createFirst creates a missing first machine: at the first start, or after one that was killed.
// Where the operator sets secrets, or servers share a database, automation creates them. A deleted
// machine counts: it can be restored. The output may be a log, so the new one has no key yet.
func (v *server) createFirst() error {
	if v.settings.database != "" || v.settings.secretEnvironment != (secrets{}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), initTime)
	defer cancel()
	for _, deleted := range []bool{false, true} {
		if any, err := v.hasMachines(ctx, deleted); any || err != nil {
			return err
		}
	}
	v.first = true
	_, err := v.create(ctx, firstMachine, true)
	return err
}

// greet prints where the server is and, at the first start, how to sign in.
func (v *server) greet() error {
	s, base := v.settings, v.settings.base(v.at)
	fmt.Fprintf(v.stdout, "weir is running at %s\nData: %s\n", v.where(), s.place())
	if v.metrics != nil {
		fmt.Fprintf(v.stdout, "Metrics: http://%s/metrics\n", v.metrics)
	}
	if s.isOpen(v.at) {
		v.warn("%s is open to other computers without TLS: set --tls-cert and --tls-key, or --trusted-proxies to the address of the proxy that has the certificate", v.at)
	}
	v.warnOfWritable(s.data)
	v.warnOfFiles(v.files)
	if err := v.warnOfSealed(); err != nil {
		return err
	}
	if !dashboard.Built() {
		fmt.Fprint(v.stdout, "This program has no dashboard, so a link shows a plain page.\n./build.sh serve builds one that has it.\n")
	}
	if !v.first || base == "" {
		fmt.Fprintf(v.stdout, "Sign in: %s prints a link to the dashboard.\n", v.call("init", s))
		return nil
	}
	code, err := v.codes.create()
	if err != nil {
		return err
	}
	fmt.Fprintf(v.stdout, "\nSign in to the dashboard (the link works once, within an hour):\n\n%s\n\nNext: connect an account there. Ctrl-C stops weir.\n%s prints another link.\n",
		signInLink(base, code), v.call("init", s))
	return nil
}

// signInLink returns a link with a one-time code. Browsers send no fragment, so no
// server logs the code.
func signInLink(base, code string) string { return base + "/#/sign-in/" + code }
