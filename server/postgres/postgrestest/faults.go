//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// StartSmall starts a server with a disk of its own of some MiB, which Fill fills, and a clock of its
// own, which Step sets. Only root can have them: another user gets those of the computer.
func StartSmall(t testing.TB, size int, settings ...string) *Server {
	t.Helper()
	if os.Getuid() != 0 {
		return Start(t, settings...)
	}
	if _, err := folder(); err != nil {
		return Start(t, settings...)
	}
	s, err := newServer(size, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mount(dir string, size int) error {
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", size), "tmpfs", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	return nil
}

func unmount(dir string) { exec.Command("umount", dir).Run() }

func (s *Server) ballast() string { return filepath.Join(s.dir, "ballast") }

// Fill fills the server's disk, and reports whether it has one of its own.
func (s *Server) Fill() bool {
	if s.size == 0 {
		return false
	}
	f, err := os.Create(s.ballast())
	if err != nil {
		return false
	}
	defer f.Close()
	for size := 1 << 20; size >= 1<<12; size >>= 4 {
		for b := make([]byte, size); err == nil; {
			_, err = f.Write(b)
		}
		err = nil
	}
	return true
}

// faketime is the library of the package of that name.
func faketime() string {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	return strings.Join(found, ":")
}

// Step sets the server's clock, ahead of the computer's or behind it, and reports whether it has one
// of its own.
func (s *Server) Step(ahead time.Duration) bool {
	if s.size == 0 || faketime() == "" {
		return false
	}
	return os.WriteFile(s.clock(), fmt.Appendf(nil, "%+.0f", ahead.Seconds()), 0o644) == nil
}

func (s *Server) clock() string { return filepath.Join(s.dir, "clock") }

// Free makes room again. A server that cannot write its log ends, and is started then.
func (s *Server) Free() error {
	if err := os.Remove(s.ballast()); err != nil {
		return err
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		cancel()
		if err == nil {
			return c.Close(context.Background())
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Stop()
	return s.Start()
}

// Standby starts a standby of the server, which waits for it with each commit from now on.
func (s *Server) Standby() (*Server, error) {
	b, err := place(s.size)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx)
	if err := s.copyTo(ctx, c, filepath.Join(b.dir, "data")); err != nil {
		return nil, err
	}
	if err := b.Start(s.settings...); err != nil {
		return nil, err
	}
	for _, sql := range []string{`ALTER SYSTEM SET synchronous_standby_names = 'walreceiver'`, `SELECT pg_reload_conf()`} {
		if _, err := c.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	for n := 0; n == 0; time.Sleep(20 * time.Millisecond) {
		err := c.QueryRow(ctx, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`).Scan(&n)
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// copyTo copies the data of the running server as a standby has them. pg_basebackup does the same; it
// is missing in packages that have only the server.
func (s *Server) copyTo(ctx context.Context, c *pgx.Conn, data string) error {
	start, stop := `SELECT pg_backup_start('standby', true)`, `SELECT labelfile FROM pg_backup_stop(false)`
	if s.Version() < 15 {
		start, stop = `SELECT pg_start_backup('standby', true, false)`, `SELECT labelfile FROM pg_stop_backup(false, false)`
	}
	if _, err := c.Exec(ctx, start); err != nil {
		return err
	}
	s.tool("cp", "-a", filepath.Join(s.dir, "data"), data).Run() // fails if a file goes meanwhile, which the log has
	var label string
	if err := c.QueryRow(ctx, stop).Scan(&label); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil {
		return err
	}
	for name, text := range map[string]string{"backup_label": label, "standby.signal": "", "postgresql.auto.conf": fmt.Sprintf(
		"primary_conninfo = 'host=127.0.0.1 port=%d user=weir'\n", s.Port)} {
		write := s.tool("tee", filepath.Join(data, name))
		write.Stdin = strings.NewReader(text)
		if err := write.Run(); err != nil {
			return err
		}
	}
	return nil
}

// Promote makes a standby the primary, whose server has been stopped.
func (s *Server) Promote() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	promoted := false
	if err := c.QueryRow(ctx, `SELECT pg_promote()`).Scan(&promoted); err != nil {
		return err
	}
	if !promoted {
		return errors.New("the standby was not promoted")
	}
	return nil
}
