//go:build unix

package program

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// supervisor does what systemd does for weir.socket and weir.service: it opens the socket, keeps it
// open, and starts the program with it.
type supervisor struct {
	*testing.T
	home   string
	base   string
	socket *os.File
	state  *net.UnixConn // NOTIFY_SOCKET
	env    []string
}

// stopping is the state of a program that stops, with the time that it may take.
const stopping = "STOPPING=1\nEXTEND_TIMEOUT_USEC=49000000"

func newSupervisor(t *testing.T) *supervisor {
	t.Helper()
	s := &supervisor{T: t, home: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if s.socket, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.home, "notify")
	if s.state, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.socket.Close(); s.state.Close() })
	s.base = "http://" + l.Addr().String()
	s.env = []string{"LISTEN_FDS=1", "NOTIFY_SOCKET=" + path, "ALLOW_PRIVATE_UPSTREAMS=true", "ADMIN_TOKEN=" + long("a")}
	return s
}

// start starts the program.
func (s *supervisor) start() *process {
	s.Helper()
	p := program(s.T, s.home, s.env, "-c", `LISTEN_PID=$$ exec "$0" "$@"`, s.executable(), "serve", "--data", s.data())
	p.cmd.Path, p.cmd.Args[0] = "/bin/sh", "sh"
	p.cmd.ExtraFiles = []*os.File{s.socket}
	return p.start()
}

func (s *supervisor) executable() string {
	exe, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	return exe
}

func (s *supervisor) data() string { return filepath.Join(s.home, "data") }

// until waits for a state of the program, as the service manager does.
func (s *supervisor) until(state string) {
	s.Helper()
	s.state.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 100)
	if n, err := s.state.Read(b); err != nil || string(b[:n]) != state {
		s.Fatalf("the state is %q, want %s: %v", b[:n], state, err)
	}
}

// restart replaces the program. Overlapping, the next process starts before the one before is told to end.
func (s *supervisor) restart(p *process, overlap bool) *process {
	s.Helper()
	next := p
	if overlap {
		next = s.start()
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	s.until(stopping)
	if code := p.end(); code != 0 {
		s.Errorf("exit code %d: %s%s", code, &p.stdout, &p.stderr)
	}
	if !overlap {
		next = s.start()
	}
	s.until("READY=1")
	return next
}

// connected initializes the server with a connection to an upstream as "up", and returns a key.
func (s *supervisor) connected(upstream string) (key string) {
	s.Helper()
	out, err := askInit(s.Context(), s.data(), "own")
	if err != nil {
		s.Fatal(err)
	}
	if status, body, _ := answer(s.T, http.DefaultClient, "POST", s.base+"/"+strings.Split(out.APIKey, "-")[1]+"/api/providers",
		`{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"`+upstream+`","prefix":"up"}}`,
		"Authorization", "Bearer "+long("a"), "Content-Type", "application/json"); status/100 != 2 {
		s.Fatalf("connect: %d %s", status, body)
	}
	return out.APIKey
}

// newSteady is an upstream whose streams last a while.
func newSteady(t *testing.T, lasts time.Duration) *httptest.Server {
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		const chunk = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":%s}]}`
		if !strings.Contains(string(body), `"stream":true`) {
			io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: "+chunk+"\n\n", "null")
		w.(http.Flusher).Flush()
		time.Sleep(lasts)
		fmt.Fprintf(w, "data: "+chunk+"\n\ndata: [DONE]\n\n", `"stop"`)
	}))
	t.Cleanup(u.Close)
	return u
}

// load calls a server until it ends, from clients that keep their connections, that use a new one
// for each call, and that read streams.
type load struct {
	calls, lost atomic.Int64
	first       atomic.Value // the first failure
	stop        chan struct{}
	clients     sync.WaitGroup
}

func newLoad(base, key string) *load {
	l := &load{stop: make(chan struct{})}
	for i := range 9 {
		l.clients.Go(func() {
			t := &http.Transport{DisableKeepAlives: i%3 == 1}
			defer t.CloseIdleConnections()
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				l.calls.Add(1)
				if err := call(&http.Client{Transport: t, Timeout: time.Minute}, base, key, i%3 == 2); err != nil {
					l.lost.Add(1)
					l.first.CompareAndSwap(nil, err.Error())
				}
			}
		})
	}
	return l
}

// more waits until further calls were sent.
func (l *load) more(calls int64) {
	for until := l.calls.Load() + calls; l.calls.Load() < until; {
		time.Sleep(time.Millisecond)
	}
}

// end ends the load and returns how many calls it has made, and the failures.
func (l *load) end() (calls, lost int64, first any) {
	close(l.stop)
	l.clients.Wait()
	return l.calls.Load(), l.lost.Load(), l.first.Load()
}

// call makes a call that must succeed.
func call(c *http.Client, base, key string, stream bool) error {
	body := fmt.Sprintf(`{"model":"up/m","stream":%v,"messages":[{"role":"user","content":"a"}]}`, stream)
	req, _ := http.NewRequest("POST", base+"/v1/chat/completions", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || stream && !strings.HasSuffix(string(raw), "data: [DONE]\n\n") ||
		strings.Contains(string(raw), `"error"`) {
		return fmt.Errorf("%d %v %s", res.StatusCode, err, raw)
	}
	return nil
}

// A socket that the program was started with outlives it: no call is lost while it restarts, whether
// it starts after the process before it or beside it, when it waits for the data directory.
func TestRestartWithAPassedSocketLosesNoCall(t *testing.T) {
	s := newSupervisor(t)
	p := s.start()
	s.until("READY=1")
	key := s.connected(newSteady(t, 200*time.Millisecond).URL)
	l := newLoad(s.base, key)
	for i := range 4 {
		l.more(500)
		p = s.restart(p, i%2 == 1)
	}
	l.more(500)
	calls, lost, first := l.end()
	if lost > 0 {
		t.Errorf("%d of %d calls were lost, the first: %v", lost, calls, first)
	}
	t.Logf("%d calls over 4 restarts, %d lost", calls, lost)
	p.cmd.Process.Signal(syscall.SIGTERM)
	s.until(stopping)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestPassedSocketsThatCannotBeUsedEndTheStart(t *testing.T) {
	for _, tt := range []struct {
		name, sockets string
		code          int
		says          string
	}{
		{"two", "2", 2, "the socket unit must have one ListenStream"},
		{"a file", "1", 1, "not a socket that listens"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSupervisor(t)
			file, err := os.Create(filepath.Join(s.home, "file"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			s.socket, s.env[0] = file, "LISTEN_FDS="+tt.sockets
			p := s.start()
			if code := p.end(); code != tt.code || !strings.Contains(p.stderr.String(), tt.says) || strings.Count(p.stderr.String(), "\n") != 1 {
				t.Errorf("exit code %d: %s", code, &p.stderr)
			}
		})
	}
}

// The variables are inherited by processes that they are not meant for.
func TestSocketOfAnotherProcessIsNotUsed(t *testing.T) {
	p, base := serving(t, t.TempDir(), []string{"LISTEN_FDS=1", "LISTEN_PID=1"})
	if status, _, _ := answer(t, http.DefaultClient, "GET", base+"/health", ""); status != 200 {
		t.Errorf("status %d", status)
	}
	p.stop()
}
