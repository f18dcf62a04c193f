//go:build unix

// Package postgrestest runs a PostgreSQL server for tests: that of the folder POSTGRES_BIN, or the
// newest of the system.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a running server with its data in a temporary folder.
type Server struct {
	Port     int
	dir      string
	bin      string
	cmd      *exec.Cmd
	settings []string
	size     int // MiB of the disk of its own, 0 for none
	// databases counts those that were created.
	databases atomic.Int64
}

// Databases are the databases of the tests of a package, on one server. The zero value is ready.
type Databases struct {
	mu     sync.Mutex
	server *Server
}

// Run runs the tests and ends the server.
func (d *Databases) Run(m *testing.M) (code int) {
	defer func() {
		if d.server != nil {
			d.server.Remove()
		}
	}()
	return m.Run()
}

// New returns the URL of a new database. Without PostgreSQL the test is skipped, unless CI=1.
func (d *Databases) New(t testing.TB) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		var settings []string
		if _, ok := t.(*testing.B); !ok {
			settings = append(settings, "fsync=off")
		}
		d.server = Start(t, settings...)
	}
	return d.server.Database(t)
}

// Server returns the server of the databases, which New has started.
func (d *Databases) Server() *Server { return d.server }

// Start starts a server. Without PostgreSQL the test is skipped, unless CI=1.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(settings...)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "1" {
		t.Skip("PostgreSQL is not installed (apt-get install postgresql)")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// New starts a server with further settings, as in "fsync=off". It returns exec.ErrNotFound if PostgreSQL is not installed.
func New(settings ...string) (*Server, error) { return newServer(0, settings...) }

func newServer(size int, settings ...string) (*Server, error) {
	s, err := place(size)
	if err != nil {
		return nil, err
	}
	out, err := s.command("initdb", "-D", filepath.Join(s.dir, "data"), "-A", "trust", "-U", "weir", "-E", "UTF8",
		"--locale=C", "--no-sync").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s, s.Start(settings...)
}

// place returns a server without data, in a new folder.
func place(size int) (*Server, error) {
	bin, err := folder()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, size: size}
	if s.Port, err = freePort(); err != nil {
		return nil, err
	}
	if size > 0 {
		if err := mount(dir, size); err != nil {
			return nil, err
		}
	}
	id, err := credential()
	if err == nil && id != nil {
		err = os.Chown(dir, int(id.Uid), int(id.Gid))
	}
	return s, err
}

// Start starts a server that was stopped, with the settings of the first time unless there are others.
func (s *Server) Start(settings ...string) error {
	if len(settings) == 0 {
		settings = s.settings
	}
	s.settings = settings
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.Port), "-k", s.dir, "-h", "127.0.0.1"}
	for _, set := range settings {
		args = append(args, "-c", set)
	}
	s.cmd = s.command("postgres", args...)
	if s.size > 0 && faketime() != "" {
		s.cmd.Env = append(os.Environ(), "LD_PRELOAD="+faketime(), "FAKETIME_TIMESTAMP_FILE="+s.clock(),
			"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 200 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		cancel()
		if err == nil {
			return c.Close(context.Background())
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	return fmt.Errorf("postgres does not answer: %s", text)
}

// Stop ends the server at once; what was committed stays. A lock of faketime may keep it from ending.
func (s *Server) Stop() {
	s.cmd.Process.Signal(syscall.SIGQUIT)
	late := time.AfterFunc(20*time.Second, func() { s.cmd.Process.Kill() })
	s.cmd.Wait()
	late.Stop()
}

// Remove ends the server and removes its data.
func (s *Server) Remove() {
	s.Stop()
	if s.size > 0 {
		unmount(s.dir)
	}
	os.RemoveAll(s.dir)
}

// Version returns the major version of PostgreSQL.
func (s *Server) Version() int {
	text, _ := os.ReadFile(filepath.Join(s.dir, "data", "PG_VERSION"))
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// Address returns where the server listens.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// URL returns the address of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://weir@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
}

// Database creates a database and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	Exec(t, s.URL("postgres"), "CREATE DATABASE "+name)
	return s.URL(name)
}

// Exec runs statements.
func Exec(t testing.TB, url, sql string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// command returns a command of PostgreSQL.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	return s.tool(filepath.Join(s.bin, name), args...)
}

// tool returns a command that does not run as root, which PostgreSQL refuses.
func (s *Server) tool(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.dir
	id, _ := credential()
	c.SysProcAttr = &syscall.SysProcAttr{Credential: id, Setpgid: true}
	return c
}

// credential returns the user of PostgreSQL's package, or one without rights; nil if this process
// is not root's.
func credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if errors.As(err, new(user.UnknownUserError)) {
		return &syscall.Credential{Uid: 65534, Gid: 65534}, nil
	}
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// folder returns the folder of initdb and postgres.
func folder() (string, error) {
	if bin := os.Getenv("POSTGRES_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		at, err := exec.LookPath("postgres")
		return filepath.Dir(at), err
	}
	return filepath.Dir(slices.Max(found)), nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Pooler starts PgBouncer before the server in a mode, and returns its port. Without PgBouncer the
// test is skipped.
func (s *Server) Pooler(t testing.TB, mode string) int {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed (apt-get install pgbouncer)")
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(s.dir, mode+".ini")
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=weir\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"+
		"listen_port = %d\nauth_type = any\npool_mode = %s\nunix_socket_dir =\n", s.Port, port, mode)
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := s.tool(bin, settings)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	for range 100 {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			conn.Close()
			return port
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("PgBouncer does not answer")
	return 0
}
