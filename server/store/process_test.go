//go:build linux || darwin

package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/pkg/machine/storage"
)

// childEnv names what a test binary does as a child process, in the directory
// that is its first argument.
const childEnv = "WEIR_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		children[role](os.Args[1])
		return
	}
	os.Exit(m.Run())
}

var children = map[string]func(dir string){"hold": holdChild, "write": writeChild, "fill": fillChild}

func fatal(err error) {
	fmt.Println("error:", err)
	os.Exit(1)
}

// child starts the test binary in a role.
func child(t *testing.T, role, dir string) (cmd *exec.Cmd, out *bufio.Reader, in io.WriteCloser) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self, dir)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewReader(stdout), in
}

// holdChild opens the directory until its input ends.
func holdChild(dir string) {
	if _, err := Open(dir); err != nil {
		fatal(err)
	}
	fmt.Println("open")
	io.Copy(io.Discard, os.Stdin)
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	cmd, out, in := child(t, "hold", dir)
	if line, err := out.ReadString('\n'); line != "open\n" {
		t.Fatalf("%q, %v", line, err)
	}
	s, err := Open(dir)
	want := fmt.Sprintf("data directory %s: in use by another process (process %d); stop it, or choose another directory with --data", dir, cmd.Process.Pid)
	if !errors.Is(err, errLocked) || err.Error() != want {
		t.Errorf("%v, %v", s, err)
	}
	in.Close()
	cmd.Wait()
	open(t, dir) // also right after the end of the first
}

func TestSecondStoreOfOneProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if s, err := Open(dir); !errors.Is(err, errLocked) {
		t.Errorf("%v, %v", s, err)
	}
}

// writeChild writes with eight goroutines until it is killed, and prints each
// write once it is acknowledged.
func writeChild(dir string) {
	s, err := Open(dir)
	if err != nil {
		fatal(err)
	}
	for w := range writers {
		go func() {
			r := s.Rows(fmt.Sprint("m", w))
			from := 1
			if last, err := r.Get("last"); err != nil {
				fatal(err)
			} else if last != nil {
				from, _ = strconv.Atoi(string(last))
				from++
			}
			for n := from; ; n++ {
				r.Write(numbered(n), int64(n))
				fmt.Printf("%d %d\n", w, n) // one write to the pipe
			}
		}()
	}
	select {}
}

const writers = 8

// numbered is the n-th write of a machine: a row of its own, one that all writes
// replace, and the removal of an old one.
func numbered(n int) []storage.Row {
	return []storage.Row{
		{Key: fmt.Sprintf("row%08d", n), Value: []byte(strings.Repeat(strconv.Itoa(n), 1+n%200))},
		{Key: "last", Value: []byte(strconv.Itoa(n))},
		{Key: fmt.Sprintf("row%08d", n-window)},
	}
}

const window = 50

// checkNumbered checks that the rows of a machine are those after one write, and
// returns its number.
func checkNumbered(t *testing.T, s *Store, machine string, alarms map[string]int64) int {
	t.Helper()
	rows := listed(t, s, machine, "", "", 0)
	if len(rows) == 0 {
		return 0
	}
	last, err := strconv.Atoi(string(rows[0].Value))
	if err != nil || rows[0].Key != "last" {
		t.Fatalf("%s: first row %q", machine, rows[0].Key)
	}
	if alarms[machine] != int64(last) || len(rows)-1 != min(last, window) {
		t.Errorf("%s: %d rows and alarm %d after write %d", machine, len(rows)-1, alarms[machine], last)
	}
	for i, r := range rows[1:] {
		if want := numbered(last - len(rows) + 2 + i)[0]; r.Key != want.Key || string(r.Value) != string(want.Value) {
			t.Errorf("%s: row %q after write %d, want %q", machine, r.Key, last, want.Key)
		}
	}
	return last
}

func TestKillLosesNoAcknowledgedWrite(t *testing.T) {
	kills := 20
	if os.Getenv("SOAK") != "" {
		kills = 200
	}
	dir := t.TempDir()
	var acknowledged [writers]int
	total := 0
	for kill := range kills {
		cmd, out, _ := child(t, "write", dir)
		// Some are killed before their first write, some after hundreds.
		after := rand.IntN(400)
		for n := 0; ; n++ {
			if n == after {
				cmd.Process.Kill()
			}
			line, err := out.ReadString('\n')
			if err != nil {
				break // a last line without its end was acknowledged too, but not read
			}
			var w, seq int
			if _, err := fmt.Sscanf(line, "%d %d\n", &w, &seq); err != nil {
				t.Fatalf("kill %d: the child says %q", kill, line)
			}
			acknowledged[w] = max(acknowledged[w], seq)
			total++
		}
		cmd.Wait()
		s, err := Open(dir)
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		alarms, err := s.Alarms()
		if err != nil {
			t.Fatal(err)
		}
		for w := range acknowledged {
			if last := checkNumbered(t, s, fmt.Sprint("m", w), alarms); last < acknowledged[w] {
				t.Errorf("kill %d: machine %d has %d writes, %d were acknowledged", kill, w, last, acknowledged[w])
			}
		}
		s.Close()
	}
	t.Logf("%d kills, %d acknowledged writes", kills, total)
}

// fillChild writes while the size of files is limited, which is how a disk that
// is full looks, and again without the limit.
func fillChild(dir string) {
	signal.Ignore(unix.SIGXFSZ)
	s, err := Open(dir)
	if err != nil {
		fatal(err)
	}
	size := func() uint64 {
		info, err := os.Stat(filepath.Join(dir, FileName))
		if err != nil {
			fatal(err)
		}
		return uint64(info.Size())
	}
	var before unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_FSIZE, &before)
	limit := func(n uint64) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: before.Max}); err != nil {
			fatal(err)
		}
	}
	acknowledged := map[string]string{}
	value := strings.Repeat("v", 3000)
	n := 0
	try := func() error {
		n++
		key := fmt.Sprint("k", n)
		err := attempt(s, "m", key, value+key)
		if err == nil {
			acknowledged[key] = value + key
		}
		return err
	}
	check := func(when string) {
		rows, err := s.Rows("m").List("", "", 0)
		if err != nil {
			fatal(err)
		}
		for _, r := range rows {
			if acknowledged[r.Key] != string(r.Value) {
				fatal(fmt.Errorf("%s: row %s is there without an acknowledgement", when, r.Key))
			}
		}
		if len(rows) != len(acknowledged) {
			fatal(fmt.Errorf("%s: %d rows, %d acknowledged", when, len(rows), len(acknowledged)))
		}
	}
	for _, full := range []struct {
		name  string
		limit uint64
	}{{"the file cannot grow", size()}, {"its pages cannot be written", size() / 2}} {
		limit(full.limit)
		failures := 0
		for range 2000 {
			if err := try(); err != nil {
				if !errors.Is(err, storage.ErrStorage) || !strings.Contains(err.Error(), unix.EFBIG.Error()) {
					fatal(fmt.Errorf("%s: %w", full.name, err))
				}
				if failures++; failures == 5 {
					break
				}
			}
		}
		if failures < 5 {
			fatal(fmt.Errorf("%s: %d of %d writes failed", full.name, failures, n))
		}
		check(full.name)
		limit(before.Cur)
		for range 20 {
			if err := try(); err != nil {
				fatal(fmt.Errorf("with space again: %w", err))
			}
		}
		check(full.name + ", then with space again")
	}
	s.Close()
	if s, err = Open(dir); err != nil {
		fatal(err)
	}
	check("after reopening")
	s.Close()

	dir = filepath.Join(dir, "first start")
	limit(pageSize)
	if _, err := Open(dir); err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "data directory "+dir+": file too large; ") {
		fatal(fmt.Errorf("first start on a full disk: %w", err))
	}
	if files, err := filepath.Glob(filepath.Join(dir, FileName+"*")); err != nil || len(files) != 0 {
		fatal(fmt.Errorf("first start on a full disk has left %v", files))
	}
	limit(before.Cur)
	if s, err = Open(dir); err != nil {
		fatal(fmt.Errorf("first start with space again: %w", err))
	}
	fmt.Println("done", len(acknowledged))
}

func TestFullDiskFailsWritesOnly(t *testing.T) {
	_, out, _ := child(t, "fill", t.TempDir())
	text, _ := io.ReadAll(out)
	if !strings.HasPrefix(string(text), "done ") {
		t.Errorf("%s", text)
	}
}

func TestBackupOfAStoreInUseIsConsistent(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ended := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				s.Rows(fmt.Sprint("m", w)).Write(numbered(n), int64(n))
			}
		})
	}
	defer wg.Wait()
	defer close(ended)
	last := [writers]int{}
	for range 5 {
		for start := s.newest(); s.newest() < start+20; yield() {
		}
		restored := t.TempDir()
		f, err := os.OpenFile(filepath.Join(restored, FileName), os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Backup(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		b := open(t, restored)
		alarms, err := b.Alarms()
		if err != nil {
			t.Fatal(err)
		}
		for w := range writers {
			n := checkNumbered(t, b, fmt.Sprint("m", w), alarms)
			if n < last[w] {
				t.Errorf("machine %d: write %d, an earlier backup has %d", w, n, last[w])
			}
			last[w] = n
		}
		if info, err := os.Stat(f.Name()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of the restored file: %v, %v", info.Mode(), err)
		}
		b.Close()
	}
}

// asOrdinaryUser runs fn in a thread that has the permissions of an ordinary user.
func asOrdinaryUser(t *testing.T, fn func()) {
	t.Helper()
	if os.Getuid() != 0 {
		fn()
		return
	}
	runAsOrdinaryUser(t, fn)
}

func TestMissingPermissionIsNamed(t *testing.T) {
	base, err := os.MkdirTemp("", "weir-store-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	os.Chmod(base, 0o755)
	for _, c := range []struct {
		name string
		make func(dir string)
	}{
		{"missing below a directory of another user", func(string) {}},
		{"not writable", func(dir string) { os.Mkdir(dir, 0o555) }},
		{"not readable", func(dir string) { os.Mkdir(dir, 0o000) }},
		{"file not readable", func(dir string) {
			open(t, dir).Close()
			os.Chmod(dir, 0o777)
			os.Chmod(filepath.Join(dir, FileName), 0)
			os.Remove(filepath.Join(dir, "weir.lock"))
		}},
		{"file not writable", func(dir string) {
			open(t, dir).Close()
			os.Chmod(dir, 0o777)
			os.Chmod(filepath.Join(dir, FileName), 0o444)
			os.Remove(filepath.Join(dir, "weir.lock"))
		}},
	} {
		dir := filepath.Join(base, strings.ReplaceAll(c.name, " ", "-"))
		c.make(dir)
		if os.Getuid() != 0 && dir == filepath.Join(base, "missing-below-a-directory-of-another-user") {
			dir = "/weir-store-test"
		}
		asOrdinaryUser(t, func() {
			start := time.Now()
			s, err := Open(dir)
			if err == nil {
				s.Close()
				t.Errorf("%s: opened", c.name)
			} else if text := err.Error(); !strings.Contains(text, "permission denied; ") && !strings.Contains(text, "permission denied; create it") || !strings.Contains(text, dir) || strings.Contains(text, "\n") {
				t.Errorf("%s: %q after %v", c.name, text, time.Since(start))
			}
		})
	}
}
