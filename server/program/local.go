package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"weir/server/cli"
	"weir/server/host"
	"weir/server/store"
)

// now returns the clock of the program.
func (r *run) now() func() time.Time {
	if r.Now != nil {
		return r.Now
	}
	return time.Now
}

// settingsFor returns the settings of the environment, with a data directory if data is not "".
func (r *run) settingsFor(data string) (*settings, error) {
	f := newFlags(command{settings: []string{"data"}})
	if data != "" {
		if err := f.Set("data", data); err != nil {
			return nil, err
		}
	}
	return r.readSettings(f)
}

// local returns a transport to the gateway of a data directory: to the server that runs on
// it, else to the program itself, which serves the control socket until close is called.
func (r *run) local(ctx context.Context, data string) (http.RoundTripper, func() error, error) {
	s, err := r.settingsFor(data)
	if err != nil {
		return nil, nil, err
	}
	if s.database != "" {
		return nil, nil, errors.New("the data is a database that servers share: weir login URL uses one of them")
	}
	t := controlTransport{s.data}
	res, err := control(ctx, s.data, "GET", "/health", nil)
	switch {
	case err == nil:
		return t, func() error { return nil }, res.Body.Close()
	case !errors.Is(err, errNotRunning):
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(s.data, store.FileName)); err != nil {
		if dir := r.announced(ctx, s); dir != "" {
			return nil, nil, fmt.Errorf("no database in %s, but a server runs on %s: add --data %[2]s, or set DATA_DIR", s.data, cli.ShellWord(dir))
		}
		return nil, nil, fmt.Errorf("no database in %s; start a server with weir serve, name its folder with --data, or another gateway with weir login URL", s.data)
	}
	close, err := r.serveLocal(s)
	return t, close, err
}

// serveLocal serves the control socket of a data directory on which no server runs.
func (r *run) serveLocal(s *settings) (close func() error, err error) {
	k, err := r.open(s, &logger{w: r.stderr, lowest: 2}, nil)
	if err != nil {
		return nil, err
	}
	h := host.New(k.config, k.app)
	end := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), r.limits.after)
		defer cancel()
		return errors.Join(h.Wait(ctx), k.close(ctx))
	}
	l, remove, err := listenControl(s.data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: no control socket: %w", s.data, err), end())
	}
	server := &http.Server{
		Handler: controls{
			backup:     k.engine.Backup,
			initialize: func(ctx context.Context, name string) (initialized, error) { return k.initialize(ctx, name, nil) },
			api:        operatorHandler(h, k.secrets.AdminToken, s.base(nil)),
		}.Handler(),
		ErrorLog: h.ErrorLog(), ReadHeaderTimeout: r.limits.header,
	}
	go server.Serve(l) // ends when it is closed
	return func() error {
		server.Close()
		remove()
		return end()
	}, nil
}
