package program

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"weir/server/store"
)

// The control socket is how the commands reach a running server. It
// is a unix socket in the data directory that only its owner can connect to. The
// server's own address would need its port, its certificate's name and a token that
// may be in another process's environment, and would serve the database to the network.
const (
	controlName = "control.sock"
	// controlPathName has the path of the socket if the data directory cannot have
	// one: the path is too long (a unix socket's has about 100 bytes), or the file
	// system has no sockets.
	controlPathName = "control.path"
	maxSocketPath   = 100 // bytes
)

// listenControl opens the control socket. The caller has the directory's lock, so a
// socket that is there is of a process that has ended. close removes it.
func listenControl(dir string) (l net.Listener, close func(), err error) {
	path, pointer := filepath.Join(dir, controlName), filepath.Join(dir, controlPathName)
	os.Remove(path)
	os.Remove(pointer)
	removeLeft(dir, ".control-")
	if l, err = bindControl(dir, path); err == nil {
		return l, func() { l.Close(); os.Remove(path) }, nil
	}
	elsewhere, failed := os.MkdirTemp("", "weir-") // mode 700
	if failed != nil {
		return nil, nil, err
	}
	path = filepath.Join(elsewhere, controlName)
	if l, failed = net.Listen("unix", path); failed == nil {
		failed = createFile(pointer, func(f *os.File) error {
			_, err := io.WriteString(f, path)
			return err
		}, true)
	}
	if failed != nil {
		if l != nil {
			l.Close()
		}
		os.RemoveAll(elsewhere)
		return nil, nil, err
	}
	return l, func() { l.Close(); os.Remove(pointer); os.RemoveAll(elsewhere) }, nil
}

// runningName has, in the usual data directory, the path of another one on which a server of this user runs, so
// that commands that name none can say where it is.
const runningName = ".running"

// announce writes the data directory of the server there, if that can be written. withdraw removes it.
func (r *run) announce(dir string) (withdraw func()) {
	usual, err := r.dataDir("")
	if err != nil || usual == dir || store.MakeDir(usual) != nil {
		return func() {}
	}
	path := filepath.Join(usual, runningName)
	_ = createFile(path, func(f *os.File) error { _, err := io.WriteString(f, dir); return err }, true)
	return func() {
		if raw, err := os.ReadFile(path); err == nil && string(raw) == dir { // not of a later server
			os.Remove(path)
		}
	}
}

// announced returns the data directory on which another server of this user runs if the command names none, else "".
func (r *run) announced(ctx context.Context, s *settings) string {
	if s.database != "" || s.variable("DATA_DIR") != "" {
		return ""
	}
	dir, err := os.ReadFile(filepath.Join(s.data, runningName))
	if err != nil {
		return ""
	}
	res, err := control(ctx, string(dir), "GET", "/health", nil)
	if err != nil { // it was killed
		return ""
	}
	res.Body.Close()
	return string(dir)
}

// removeLeft removes what a process that was killed left in a directory that the
// caller has locked.
func removeLeft(dir, prefix string) {
	entries, _ := os.ReadDir(dir) // what cannot be listed stays
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// bindControl binds the socket in a folder that only its owner can enter, since its
// own mode is set after others could connect to it, and then moves it to path.
func bindControl(dir, path string) (net.Listener, error) {
	if runtime.GOOS == "windows" { // has no modes; the folder of the user's data is private
		return net.Listen("unix", path)
	}
	private, err := os.MkdirTemp(dir, ".control-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	bound := filepath.Join(private, "s")
	if len(bound) > maxSocketPath || len(path) > maxSocketPath {
		return nil, errors.New("the path of the data directory is too long for a socket")
	}
	l, err := net.Listen("unix", bound)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(bound, 0o600); err == nil {
		err = os.Rename(bound, path)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// controls are the operations of the control socket.
type controls struct {
	backup     func(w io.Writer) error
	initialize func(ctx context.Context, name string) (initialized, error)
	api        http.Handler       // with the operator's rights; may be nil
	state      func() serverState // nil if no server runs
}

// Handler serves the operations.
//
//	GET  /backup           → the database
//	POST /init {"name":""} → initialized
//	GET  /server           → serverState
//	/…                     → the same path of the server, see operatorHandler
//
// A failure of the first two has status 500 and its text as the body.
func (c controls) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /backup", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		out := &started{w: w}
		switch err := c.backup(out); {
		case err == nil:
		case out.any: // the client sees that the body is cut
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, oneLine(err), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /init", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Name string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&in); err != nil {
			http.Error(w, "invalid body", http.StatusInternalServerError)
			return
		}
		out, err := c.initialize(r.Context(), in.Name)
		if err != nil {
			http.Error(w, oneLine(err), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(out)
	})
	if c.state != nil {
		mux.HandleFunc("GET /server", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(c.state()) })
	}
	if c.api != nil {
		mux.Handle("/", c.api)
	}
	return mux
}

// operatorHandler serves calls without a credential as the operator's, since the owner of
// the data directory can read the operator token. base is the address for the commands that
// answers have, "" if it is unknown.
func operatorHandler(next http.Handler, token, base string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if u, err := url.Parse(base); err == nil {
			if r.Host = u.Host; u.Scheme == "https" {
				r.TLS = &tls.ConnectionState{}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// started is a writer that knows whether anything was written.
type started struct {
	w   io.Writer
	any bool
}

func (s *started) Write(p []byte) (int, error) {
	s.any = true
	return s.w.Write(p)
}

// ofOwner reports whether a folder is private to the user that owns a file. A socket
// in the temporary directory may be of another user if the server was killed.
func ofOwner(folder, file string) bool {
	a, err := os.Lstat(folder)
	b, failed := os.Lstat(file)
	return err == nil && failed == nil && a.IsDir() && sameOwner(a, b) &&
		(runtime.GOOS == "windows" || a.Mode().Perm()&0o077 == 0)
}

// errNotRunning reports that no server runs on the data directory.
var errNotRunning = errors.New("no server runs")

// control makes a call of the control socket. The answer's body is to be closed.
func control(ctx context.Context, dir, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://weir"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := controlTransport{dir}.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusNotFound { // a command that has opened the directory itself is no server
		return nil, errors.Join(errNotRunning, res.Body.Close())
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	return res, nil
}

// controlTransport makes calls of the control socket of a data directory.
type controlTransport struct{ dir string }

// RoundTrip makes a call. The error is errNotRunning if no server runs.
func (c controlTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	socket := filepath.Join(c.dir, controlName)
	pointer := filepath.Join(c.dir, controlPathName)
	if raw, err := os.ReadFile(pointer); err == nil {
		if socket = string(raw); !ofOwner(filepath.Dir(socket), pointer) {
			return nil, errNotRunning
		}
	}
	if len(socket) > maxSocketPath {
		return nil, errNotRunning
	}
	transport := &http.Transport{DisableKeepAlives: true}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: 5 * time.Second}
		return d.DialContext(ctx, "unix", socket)
	}
	res, err := transport.RoundTrip(req)
	var op *net.OpError
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("data directory %s: permission denied; run the command as the user that runs the server", c.dir)
	case errors.As(err, &op) && op.Op == "dial":
		return nil, errNotRunning
	}
	return nil, fmt.Errorf("the server on %s did not answer: %w; is it stopping?", c.dir, err)
}
