package program

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/pkg/machine/manage"
	"weir/server/cli"
	"weir/server/store"
)

const (
	// configPoll is the time between two looks at the file and at the files that it names.
	// Their contents are compared, so links that Kubernetes exchanges are followed.
	configPoll = 2 * time.Second
	// configRetry is the time before a file that could not be applied is tried again.
	configRetry = 30 * time.Second
	// maxConfig bounds the file, in bytes.
	maxConfig = 8 << 20
	// managedName has, in the data directory, what the file owns.
	managedName = "managed.json"
)

// configFile is weir.yaml of a server with --config: it is applied whenever it changes, and
// what it owns is changed by nothing else.
type configFile struct {
	v    *server
	path string
	keep string // where managed is stored; "" for nowhere
	http http.RoundTripper

	mu    sync.Mutex
	owned managed
	state configState
}

// managed is what the file owns.
type managed struct {
	MachineID string    `json:"machineId"`
	Owned     cli.Owned `json:"owned"`
}

// configState is what became of the file.
type configState struct {
	applied bool // the file as it is now
	tried   bool
	err     string // why not
}

// openConfig starts to apply the file of the settings. close ends that.
func (v *server) openConfig() (close func()) {
	if v.file == nil {
		return func() {}
	}
	l := newPipeListener()
	inner := &http.Server{Handler: operatorHandler(v.host, v.secrets.AdminToken, v.settings.base(v.at)),
		ErrorLog: v.host.ErrorLog(), ReadHeaderTimeout: v.limits.header,
		BaseContext: func(net.Listener) context.Context { return context.WithValue(context.Background(), applies{}, true) }}
	go inner.Serve(l) // ends when it is closed
	v.file.http = &http.Transport{DisableKeepAlives: true, DialContext: l.dial}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer func() { done <- struct{}{} }()
		v.file.watch(ctx)
	}()
	return func() {
		cancel()
		<-done
		inner.Close()
	}
}

// openOwned reads what the file owned when the server ended.
func (v *server) openOwned() {
	c := v.file
	if c == nil {
		return
	}
	if c.v = v; v.settings.data == "" {
		return
	}
	c.keep = filepath.Join(v.settings.data, managedName)
	if raw, err := os.ReadFile(c.keep); err == nil {
		if err := json.Unmarshal(raw, &c.owned); err != nil {
			v.warn("%s: %v; rows that the configuration file no longer has will stay", c.keep, err)
		}
	}
}

// watch applies the file now and after each change, until ctx ends.
func (c *configFile) watch(ctx context.Context) {
	var last [sha256.Size]byte
	var at time.Time
	ok := false
	for {
		raw, print, err := c.read()
		if print != last || !ok && time.Since(at) >= configRetry {
			last, at = print, time.Now()
			changes := 0
			if err == nil {
				changes, err = c.apply(ctx, raw)
			}
			if ok = err == nil; ctx.Err() == nil {
				c.note(err, changes)
			}
		}
		t := time.NewTimer(configPoll)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// read returns the file, and a digest of it and of the files that it names.
func (c *configFile) read() (raw []byte, print [sha256.Size]byte, err error) {
	h := sha256.New()
	add := func(name string) (raw []byte, err error) {
		f, err := os.Open(name)
		if err == nil {
			defer f.Close()
			raw, err = io.ReadAll(io.LimitReader(f, maxConfig+1))
		}
		if err == nil && len(raw) > maxConfig {
			err = fmt.Errorf("it is larger than %d bytes", maxConfig)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", name, store.Cause(err))
		}
		fmt.Fprintf(h, "%q %v %d\n", name, err, len(raw))
		h.Write(raw)
		return raw, err
	}
	raw, err = add(c.path)
	for _, name := range cli.FilesOf(raw) {
		add(name) // the plan names one that cannot be read
	}
	return raw, [sha256.Size]byte(h.Sum(nil)), err
}

// apply makes the machine what the file says. Rows that the file owned before and no longer
// names are deleted. After a failure it owns what it owned before.
func (c *configFile) apply(ctx context.Context, raw []byte) (changes int, err error) {
	c.mu.Lock()
	before := c.owned
	c.mu.Unlock()
	host := cli.Host{Env: c.v.env, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Version: c.v.version(), Now: c.v.now()}
	done, err := cli.ApplyFile(ctx, host, c.http, raw, before.Owned)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.path, err)
	}
	next := managed{done.MachineID, done.Owned}
	c.mu.Lock()
	c.owned = next
	c.mu.Unlock()
	return done.Changed, c.store(next)
}

// store stores what the file owns.
func (c *configFile) store(m managed) error {
	if c.keep == "" {
		return nil
	}
	raw, err := json.Marshal(m)
	if err == nil {
		err = createFile(c.keep, func(f *os.File) error { _, err := f.Write(raw); return err }, true)
	}
	return err
}

// note stores and logs what became of the file.
func (c *configFile) note(err error, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := configState{applied: err == nil, tried: true}
	if err == nil {
		fmt.Fprintf(c.v.stdout, "%s is applied, changes: %d\n", c.path, changes)
	} else if s.err = oneLine(err); s.err != c.state.err {
		c.v.log.line(2, "the configuration file is not applied, the machine stays as it is: "+s.err)
	}
	c.state = s
}

// word returns applied, failed or pending; "" without a file.
func (c *configFile) word() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.word()
}

func (s configState) word() string {
	switch {
	case s.applied:
		return "applied"
	case s.tried:
		return "failed"
	}
	return "pending"
}

// of returns what became of the file for its machine, or for any while that is not known.
func (c *configFile) of(machineID string) *manage.ConfigFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned.MachineID != "" && c.owned.MachineID != machineID {
		return nil
	}
	return &manage.ConfigFile{Name: filepath.Base(c.path), State: c.state.word(), Error: c.state.err, Owned: c.owned.Owned}
}

// applies marks the context of the calls of the file itself.
type applies struct{}

// managing returns the name of the file if it owns what a call would change, and does not come of the file.
func (c *configFile) managing(ctx context.Context, method, machineID, path string) string {
	if method == "GET" || method == "HEAD" || ctx.Value(applies{}) != nil || !c.owns(method, machineID, path) {
		return ""
	}
	return filepath.Base(c.path)
}

// owns reports whether a call would change what the file owns.
func (c *configFile) owns(method, machineID, path string) bool {
	_, path, found := strings.Cut(path, "/api/")
	if !found {
		return false
	}
	c.mu.Lock()
	m := c.owned
	c.mu.Unlock()
	path = "/api/" + path
	if id, ok := strings.CutPrefix(path, "/api/machines/"); ok {
		return id == m.MachineID && id != ""
	}
	if id, ok := strings.CutPrefix(path, "/api/identity-providers/"); ok { // of all machines
		return slices.Contains(m.Owned["/api/identity-providers"], id)
	}
	if machineID != m.MachineID || len(m.Owned) == 0 {
		return false
	}
	if path == "/api/import" || slices.Contains(m.Owned[path], cli.All) {
		return true
	}
	collection, id := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
	return method != "POST" && slices.Contains(m.Owned[collection], id)
}

// pipeListener is a listener whose connections stay within the process.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipeListener() *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), client.Close())
	}
}

// Accept waits for a connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (l *pipeListener) Close() error { l.close(); return nil }

// Addr returns an address that names nothing.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
