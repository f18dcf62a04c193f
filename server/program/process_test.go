package program

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// asProgram is the variable that makes the test binary be the program.
const asProgram = "WEIR_TEST_PROGRAM"

// asUser is the variable that makes the program run as an ordinary user, since
// permissions do not bind root.
const asUser = "WEIR_TEST_USER"

// withFiles is the variable that limits how many files the program may have open.
const withFiles = "WEIR_TEST_FILES"

// withReleases and withSigner are the variables that have what the linker sets in a release.
const (
	withReleases = "WEIR_TEST_RELEASES"
	withSigner   = "WEIR_TEST_SIGNER"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if os.Getenv(asUser) != "" {
			becomeUser()
		}
		if n, err := strconv.ParseUint(os.Getenv(withFiles), 10, 64); err == nil {
			limitFiles(n)
		}
		os.Exit(Main(Options{Version: "v0.0.0-test", Releases: os.Getenv(withReleases), Signer: os.Getenv(withSigner)}))
	}
	os.Exit(runTests(m))
}

// buffer is an output that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// process is a run of the program.
type process struct {
	*testing.T
	cmd            *exec.Cmd
	stdout, stderr buffer
	done           chan struct{} // closed when it has ended
}

// program returns a command line of the program; its home is a folder of the test.
func program(t *testing.T, home string, env []string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, cmd: exec.Command(exe, args...), done: make(chan struct{})}
	if args[0] == "init" { // refuses to work beside a server of this computer at the usual address
		env = append([]string{"LISTEN=127.0.0.1:0"}, env...)
	}
	p.cmd.Env = append([]string{asProgram + "=1", "HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"), "PRICES_URL=off"}, env...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = home, &p.stdout, &p.stderr
	return p
}

// start runs the process beside the test.
func (p *process) start() *process {
	p.Helper()
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	go func() {
		p.cmd.Wait() // the state is read from cmd.ProcessState
		close(p.done)
	}()
	p.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		if p.Failed() {
			p.Logf("%v\nstdout: %s\nstderr: %s", p.cmd.Args[1:], &p.stdout, &p.stderr)
		}
	})
	return p
}

// end waits for the end and returns the exit code, -1 after a signal.
func (p *process) end() int {
	p.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		p.cmd.Process.Kill()
		p.Fatal("the program did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// until waits for a text in an output.
func (p *process) until(out *buffer, text string) {
	p.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(out.String(), text); time.Sleep(2 * time.Millisecond) {
		select {
		case <-p.done:
			if !strings.Contains(out.String(), text) {
				p.Fatalf("the program ended without %q: %s%s", text, &p.stdout, &p.stderr)
			}
		default:
		}
		if time.Now().After(deadline) {
			p.Fatalf("no %q: %s%s", text, &p.stdout, &p.stderr)
		}
	}
}

var baseURL = regexp.MustCompile(`weir is running at (https?://\S+|unix:\S+)`)

// serving starts a server on a free port of loopback and waits until it answers.
func serving(t *testing.T, home string, env []string, args ...string) (p *process, base string) {
	t.Helper()
	p = program(t, home, env, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(home, "data")}, args...)...).start()
	p.until(&p.stdout, "weir is running at ")
	p.until(&p.stdout, " init --data ") // the last line
	m := baseURL.FindStringSubmatch(p.stdout.String())
	if m == nil {
		t.Fatalf("no address in %q", &p.stdout)
	}
	return p, m[1]
}

// stop ends a server gracefully.
func (p *process) stop() {
	p.Helper()
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.end(); code != 0 {
		p.Errorf("exit code %d after a signal", code)
	}
}

// output runs a command to its end and returns its exit code and outputs.
func output(t *testing.T, home string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := program(t, home, env, args...).start()
	code = p.end()
	return code, p.stdout.String(), p.stderr.String()
}

// answer makes a call and returns its status and body.
func answer(t *testing.T, c *http.Client, method, url, body string, fields ...string) (status int, text string, header http.Header) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw), res.Header
}

// overUnix is a client of a unix socket.
func overUnix(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}
