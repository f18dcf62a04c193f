package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/server/program"
)

// asProgram is the variable that makes the test binary be the program. With the value starts
// a server stops once it has started.
const (
	asProgram = "WEIR_TEST_PROGRAM"
	starts    = "starts"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(asProgram); mode != "" {
		o := program.Options{Version: "v0.0.0-test"}
		if mode == starts {
			stop := make(chan os.Signal, 1)
			o.Signals, o.Started = stop, func(program.Parts) { stop <- os.Interrupt }
		}
		os.Exit(program.Main(o))
	}
	os.Exit(m.Run())
}

// terminal is a command that runs in a terminal.
type terminal struct {
	*testing.T
	keyboard *os.File
	screen   buffer
	cmd      *exec.Cmd
	done     chan struct{}
}

// inTerminal starts a command in a terminal with a number of columns.
func (w *world) inTerminal(columns uint16, env []string, args ...string) *terminal {
	w.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		w.Skip(err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		w.Fatal(err)
	}
	unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		w.Fatal(err)
	}
	defer tty.Close()
	x := &terminal{T: w.T, keyboard: master, cmd: w.process(args...), done: make(chan struct{})}
	x.cmd.Env = append(x.cmd.Env, env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tty, tty, tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			if err != nil { // the command has ended
				break
			}
			x.screen.Write(b[:n])
		}
		x.cmd.Wait() // the state is read from cmd.ProcessState
		close(x.done)
	}()
	w.Cleanup(func() { x.cmd.Process.Kill(); <-x.done; master.Close() })
	return x
}

// process returns a command of the program in a process of its own.
func (w *world) process(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Dir = w.home
	cmd.Env = []string{asProgram + "=1", "HOME=" + w.home, "DATA_DIR=" + w.data, "PRICES_URL=off", "TERM=xterm", "PATH=" + os.Getenv("PATH")}
	return cmd
}

// until waits for a text on the screen.
func (x *terminal) until(text string) {
	x.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(x.screen.String(), text); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.Fatalf("no %q on the screen: %s", text, x.screen.String())
		}
	}
}

func (x *terminal) enter(text string) { x.keyboard.WriteString(text) }

func (x *terminal) end() int {
	<-x.done
	return x.cmd.ProcessState.ExitCode()
}

func TestPromptsDoNotEchoSecrets(t *testing.T) {
	w := newWorld(t)
	x := w.inTerminal(80, nil, "login", w.url, "--name", "prod", "--token")
	x.until("Operator token or key of " + w.url + ": ")
	if state, err := unix.IoctlGetTermios(int(x.keyboard.Fd()), unix.TCGETS); err != nil || state.Lflag&unix.ECHO != 0 {
		t.Errorf("the terminal echoes once the prompt is there: %v", err)
	}
	x.enter(token + "\n")
	x.until("Signed in to prod as the operator")
	if code := x.end(); code != 0 || strings.Contains(x.screen.String(), token) {
		t.Errorf("exit %d, %s", code, x.screen.String())
	}
	x = w.inTerminal(80, nil, "accounts", "add", "openai", "--name", "main", "--no-test")
	x.until("API key of OpenAI: ")
	x.enter("sk-typed-secret\n")
	x.until("The account main")
	if code := x.end(); code != 0 || strings.Contains(x.screen.String(), "typed-secret") {
		t.Errorf("exit %d, %s", code, x.screen.String())
	}
}

func TestLoginByDeviceCode(t *testing.T) {
	w := newWorld(t)
	code := regexp.MustCompile(`[A-Z]{4}-[A-Z]{4}`)
	for _, tt := range []struct {
		body, want string
		code       int
	}{{`{"approve":false}`, "access_denied", 1}, {`{"approve":true}`, "as a key", 0}} {
		x := w.inTerminal(100, nil, "login", w.url, "--name", "prod")
		x.until("compare the code")
		file := filepath.Join(w.home, "body.json")
		os.WriteFile(file, []byte(tt.body), 0o600)
		w.ok("api", "POST", "/api/device/"+code.FindString(x.screen.String()), "--body", file)
		if got := x.end(); got != tt.code || !strings.Contains(x.screen.String(), tt.want) {
			t.Fatalf("exit %d, %s", got, x.screen.String())
		}
	}
	if out := w.ok("keys"); !strings.Contains(out, "weir on ") || !strings.Contains(out, "manage") {
		t.Error(out)
	}
	if code, out, failed := w.runIn(w.env("WEIR_GATEWAY", "prod"), "", "keys"); code != 0 || !strings.Contains(out, "weir on ") {
		t.Errorf("exit %d, %s", code, failed)
	}
	if out := w.ok("audit"); !strings.Contains(out, "Created API key for a device") || !strings.Contains(out, "deny") {
		t.Error(out)
	}
}

func TestDeletionAsksOnATerminal(t *testing.T) {
	w := newWorld(t)
	w.run("", "keys", "add", "old")
	for answer, code := range map[string]int{"n": 1, "": 1, "y": 0} {
		x := w.inTerminal(80, nil, "keys", "revoke", "old")
		x.until("[y/N] ")
		x.enter(answer + "\n")
		if got := x.end(); got != code {
			t.Errorf("%q: exit %d, %s", answer, got, x.screen.String())
		}
		if answer == "y" {
			break
		}
		if _, out, _ := w.run("", "keys"); !strings.Contains(out, "old") {
			t.Fatalf("%q deleted the key", answer)
		}
	}
}

func TestTailFollowsUntilCtrlC(t *testing.T) {
	w := newWorld(t)
	w.run("", "accounts", "add", "openai-compatible", "--base-url", w.upstream.URL+"/v1", "--prefix", "local", "--api-key", "env:API_KEY")
	x := w.inTerminal(200, nil, "requests", "-f")
	x.until("OUTCOME")
	for _, text := range []string{"first", "second"} {
		if code, _, failed := w.run("", "call", "local/echo", text); code != 0 {
			t.Fatal(failed)
		}
		before := strings.Count(x.screen.String(), "succeeded")
		for deadline := time.Now().Add(time.Minute); strings.Count(x.screen.String(), "succeeded") == before; time.Sleep(2 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the tail shows nothing: %s", x.screen.String())
			}
		}
	}
	x.enter("\x03")
	if code := x.end(); code != 0 || strings.Count(x.screen.String(), "OUTCOME") != 1 {
		t.Errorf("exit %d, %s", code, x.screen.String())
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	w := newWorld(t)
	w.run("", "keys", "add", "a name of a key that is too long for a terminal of eighty columns, and then some more")
	for _, tt := range []struct {
		columns uint16
		env     []string
		colored bool
	}{{60, nil, true}, {80, []string{"NO_COLOR=1"}, false}, {80, []string{"TERM=dumb"}, false}} {
		x := w.inTerminal(tt.columns, tt.env, "keys")
		x.end()
		text := x.screen.String()
		if strings.Contains(text, "\x1b[32mok") != tt.colored {
			t.Errorf("%+v: %q", tt, text)
		}
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.NewReplacer("\x1b[32m", "", "\x1b[0m", "", "\r\n", "").Replace(line))); n > int(tt.columns) {
				t.Errorf("%+v: a line of %d characters: %q", tt, n, line)
			}
		}
	}
	if _, out, _ := w.run("", "keys"); strings.Contains(out, "\x1b") || !strings.Contains(out, "and then some more") {
		t.Errorf("without a terminal: %q", out)
	}
}

// In a terminal nothing that says what to do is cut.
func TestTextsInATerminal(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		columns uint16
		args    string
		want    []string
	}{
		{80, "budgets", []string{"No budgets. To add one: weir budgets add NAME LIMIT\r\n"}},
		{80, "people", []string{"No people. To invite one: weir people invite NOTE\r\n"}},
		{80, "people invitations", []string{"No open invitations.\r\n"}},
		{80, "models unavailable", []string{"No models that cannot be called at the moment.\r\n"}},
		{80, "captures", []string{"No captures. To store prompts and answers: weir settings set capturePercent=100\r\n"}},
		{80, "gateways ls", []string{"No gateways. To add one: weir login URL\r\n"}},
		{80, "models aliases", []string{"No aliases.\r\n"}},
		{80, "accounts", []string{"No accounts. To add one: weir accounts add PROVIDER\r\n"}},
		{80, "models", []string{"connect an account: weir accounts add PROVIDER\r\n"}},
		{40, "doctor", []string{"weir accounts\r\n      add PROVIDER connects one\r\n"}},
		{50, "status", []string{"for less than a\r\n        minute\r\n", "add\r\n        PROVIDER connects one\r\n"}},
		{60, "keys", []string{"NAME         ID                          STATE  MONTH\r\n"}},
		{80, "", []string{"Server  http://127.0.0.1:", "main    accounts: none"}}, // it runs already
		{60, "help plan", []string{"or its URL with the\r\n        credential in WEIR_TOKEN"}},
		{80, "requests -n 1", []string{"No requests.\r\n"}},
		{80, "machines ls --deleted", []string{"No deleted machines that can be restored.\r\n"}},
		{80, "accounts quota", []string{"No account has stated its limits yet: providers state them in their answers.\r\n"}},
		{80, "usage", []string{" (UTC)\r\nMODEL "}},
		{80, "destinations kinds", []string{"smtp         notification  host, port, tls, user, password, from, to,\r\n                           coolingMinutes"}},
		{80, "help status", []string{"Flags of all commands that use a gateway:\r\n  --gateway NAME\r\n"}},
	} {
		x := w.inTerminal(tt.columns, []string{"NO_COLOR=1"}, strings.Fields(tt.args)...)
		x.end()
		for _, want := range tt.want {
			if text := x.screen.String(); !strings.Contains(text, want) {
				t.Errorf("weir %s: %q has no %q", tt.args, text, want)
			}
		}
	}
	w.ok("keys", "add", "laptop", "--expires", "30d")
	x := w.inTerminal(80, []string{"NO_COLOR=1"}, "keys")
	x.end()
	if !regexp.MustCompile(`laptop .* ok .* \d{4}-\d\d-\d\d \d\d:\d\d\r\n`).MatchString(x.screen.String()) {
		t.Errorf("a time is cut: %q", x.screen.String())
	}
	x = w.inTerminal(80, []string{"NO_COLOR=1"}, "call", "local/echo")
	x.until("Type the prompt, then Ctrl-D at the start of a line:\r\n")
	x.enter("\x03")
	x.end()
	x = w.inTerminal(80, []string{"DATA_DIR=" + w.home + "/none"})
	x.until("\r\n\r\nStart the server now? [Y/n] ")
	x.enter("n\n")
	if code := x.end(); code != 0 {
		t.Errorf("no server was wanted: exit %d", code)
	}
	if _, out, _ := w.run("", "budgets"); !strings.HasPrefix(out, "NAME  ID") {
		t.Errorf("in a pipe: %q", out)
	}
}

// Names come from others, and must not steer the terminal.
func TestTablesHaveNoForeignEscapes(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprint(out, `{"data":[{"id":"1","name":"\u001b[2Jname\u202e\r\n"}]}`)
	}))
	defer s.Close()
	x := w.inTerminal(200, []string{"WEIR_GATEWAY=" + s.URL, "WEIR_TOKEN=sk-key"}, "keys")
	if code, text := x.end(), x.screen.String(); code != 0 || strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\u202e") ||
		!strings.Contains(text, "[2Jname") {
		t.Errorf("exit %d, %q", code, text)
	}
}

func TestCtrlCCancelsASignIn(t *testing.T) {
	w := &world{T: t, home: t.TempDir()}
	var canceled atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/oauth/github/device":
			fmt.Fprint(out, `{"userCode":"ABCD","verificationUri":"https://id.example.com","intervalMs":3600000}`)
		case "/api/oauth/github/cancel":
			canceled.Store(true)
			out.WriteHeader(204)
		}
	}))
	defer s.Close()
	x := w.inTerminal(80, []string{"WEIR_GATEWAY=" + s.URL, "WEIR_TOKEN=sk-key"}, "accounts", "sign-in", "github")
	x.until("enter the code ABCD")
	x.enter("\x03")
	if code := x.end(); code != 1 || !canceled.Load() {
		t.Errorf("exit %d, canceled %v, %s", code, canceled.Load(), x.screen.String())
	}
}
