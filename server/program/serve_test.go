package program

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/server/dashboard"
)

var signInCode = regexp.MustCompile(`(http\S+)/#/sign-in/(once-\S+)`)

// codeIn returns the one-time code of a printed link.
func codeIn(t *testing.T, text string) string {
	t.Helper()
	m := signInCode.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no link in %q", text)
	}
	return m[2]
}

// signIn exchanges a code as the dashboard does and returns the status.
func signIn(t *testing.T, base, code string) (status int, body string) {
	t.Helper()
	status, body, _ = answer(t, http.DefaultClient, "POST", base+"/api/session", `{"token":"`+code+`"}`, "Content-Type", "application/json", "Origin", base, "Sec-Fetch-Site", "same-origin")
	return status, body
}

var keyIn = regexp.MustCompile(`sk-\S+`)

// listed returns the status of a list of models for a key.
func listed(t *testing.T, base, key string) int {
	t.Helper()
	status, _, _ := answer(t, http.DefaultClient, "GET", base+"/v1/models", "", "Authorization", "Bearer "+key)
	return status
}

func TestFirstStartPrintsALinkThatSignsIn(t *testing.T) {
	home := t.TempDir()
	p, base := serving(t, home, nil)
	link := signInCode.FindStringSubmatch(p.stdout.String())
	if link == nil || link[1] != base {
		t.Fatalf("no link to %s: %s", base, &p.stdout)
	}
	if status, body := signIn(t, base, link[2]); status != 200 || !strings.Contains(body, `"operator":true`) {
		t.Errorf("the link: %d %s", status, body)
	}
	if status, _ := signIn(t, base, link[2]); status != 401 {
		t.Errorf("the second use: %d", status)
	}
	if got := machines(t, home, base); got != `["main"]` {
		t.Errorf("machines %s, want one, which the link opens", got)
	}
	if status, body, _ := answer(t, http.DefaultClient, "GET", base+"/", ""); status != 200 || !strings.Contains(body, "<html") {
		t.Errorf("the dashboard: %d", status)
	}
	p.stop()
	if strings.Contains(p.stderr.String(), link[2]) {
		t.Error("the code is in the log")
	}
	for line := range strings.Lines(p.stderr.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a line of JSON: %q", line)
		}
	}
	p, base = serving(t, home, nil)
	if strings.Contains(p.stdout.String(), codePrefix) {
		t.Error("a later start prints a link")
	}
	if got := machines(t, home, base); got != `["main"]` {
		t.Errorf("machines %s after a later start", got)
	}
	if text := p.stdout.String(); strings.Contains(text, "sk-") {
		t.Errorf("a key is printed: %s", text)
	}
}

// machines returns the names of the machines, as JSON.
func machines(t *testing.T, home, base string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, "data", secretsName))
	if err != nil {
		t.Fatal(err)
	}
	status, body, _ := answer(t, http.DefaultClient, "GET", base+"/api/machines", "", "Authorization", "Bearer "+gjson.GetBytes(raw, "ADMIN_TOKEN").Str)
	if status != 200 {
		t.Fatalf("status %d: %s", status, body)
	}
	return gjson.Get(body, "data.#.name").Raw
}

// A first start that was killed leaves secrets, or a database without a machine, too: the next one is
// the first for its operator. A deleted machine is not created again.
func TestStartAfterAKilledOneCreatesTheMachine(t *testing.T) {
	for _, left := range []string{"secrets", "database"} {
		home := t.TempDir()
		data := filepath.Join(home, "data")
		r := &run{env: environment(home, "DATA_DIR", data), stderr: io.Discard, limits: standardLimits()}
		s, err := r.readSettings(newFlags(command{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.prepare(); err != nil {
			t.Fatal(err)
		}
		if left == "secrets" {
			_, _, err = r.loadSecrets(s)
		} else {
			var k *stack
			if k, err = r.open(s, &logger{w: io.Discard}, nil); err == nil {
				err = k.close(t.Context())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		p, base := serving(t, home, nil)
		link := signInCode.FindStringSubmatch(p.stdout.String())
		if link == nil || machines(t, home, base) != `["main"]` {
			t.Fatalf("%s: machines %s, and the output %q", left, machines(t, home, base), p.stdout.String())
		}
		if status, _ := signIn(t, base, link[2]); status != 200 {
			t.Errorf("%s: the link: status %d", left, status)
		}
		if code, text, failed := output(t, home, nil, "machines", "rm", "main", "--yes", "--data", data); code != 0 {
			t.Fatal(text, failed)
		}
		p.stop()
		p, base = serving(t, home, nil)
		if got := machines(t, home, base); got != "[]" || strings.Contains(p.stdout.String(), codePrefix) {
			t.Errorf("%s: machines %s after the last was deleted, and the output %q", left, got, p.stdout.String())
		}
	}
}

func TestSecretsOfTheOperatorCreateNoMachine(t *testing.T) {
	token, secret, key := strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)
	for name, env := range map[string][]string{
		"all":   {"ADMIN_TOKEN=" + token, "API_KEY_SECRET=" + secret, "CREDENTIALS_KEY=" + key},
		"token": {"ADMIN_TOKEN=" + token},
	} {
		_, base := serving(t, t.TempDir(), env)
		if _, body, _ := answer(t, http.DefaultClient, "GET", base+"/api/machines", "", "Authorization", "Bearer "+token); gjson.Get(body, "total").Raw != "0" {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestInitWorksBesideAServerAndWithoutOne(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, "data")
	code, first, text := output(t, home, nil, "init", "--data", data)
	if code != 0 {
		t.Fatal(text)
	}
	key := keyIn.FindString(first)
	if key == "" || !strings.Contains(first, " serve --data ") {
		t.Fatalf("init printed %q", first)
	}
	p, base := serving(t, home, nil)
	if strings.Contains(p.stdout.String(), codePrefix) {
		t.Error("the start after init prints a link")
	}
	if status := listed(t, base, key); status != 200 {
		t.Errorf("the key of init: status %d", status)
	}
	if status, _ := signIn(t, base, codeIn(t, first)); status != 200 {
		t.Errorf("the link of init: status %d", status)
	}
	code, second, text := output(t, home, nil, "init", "--data", data)
	if code != 0 || strings.Contains(second, "sk-") || strings.Contains(second, " serve --data ") ||
		!strings.Contains(second, " keys add NAME --data "+data+"\n") {
		t.Errorf("init beside the server: exit %d, %q %s", code, second, text)
	}
	if m := signInCode.FindStringSubmatch(second); m == nil || m[1] != base {
		t.Errorf("no link to %s: %q", base, second)
	}
	if status, _ := signIn(t, base, codeIn(t, second)); status != 200 {
		t.Errorf("the second link: status %d", status)
	}
	other := filepath.Join(home, "other")
	code, _, text = output(t, home, nil, "init", "--data", other, "--listen", strings.TrimPrefix(base, "http://"))
	if _, err := os.Stat(other); code != 1 || err == nil || !strings.Contains(text, base+" has another data directory than "+other) {
		t.Errorf("init with a directory that the server at its address does not use: exit %d, %s", code, text)
	}
	usual := filepath.Join(home, ".local", "state", "weir")
	code, _, text = output(t, home, nil, "init")
	if _, err := os.Stat(filepath.Join(usual, "weir.db")); code != 1 || err == nil ||
		!strings.Contains(text, "a server runs on the data directory "+data+": ") || !strings.Contains(text, " init --data "+data+" prints a link") {
		t.Errorf("init beside a server on another directory: exit %d, %v %s", code, err, text)
	}
	if code, _, text = output(t, home, nil, "keys"); code != 1 || !strings.Contains(text, "add --data "+data) {
		t.Errorf("keys beside a server on another directory: exit %d, %s", code, text)
	}
	code, third, text := output(t, home, nil, "init", "--data", data, "--name", "another")
	if key := keyIn.FindString(third); code != 0 || key == "" || listed(t, base, key) != 200 {
		t.Errorf("init --name: exit %d, %q %s", code, third, text)
	}
	p.stop()
	if status := p.cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("exit code %d", status)
	}
	if _, err := os.Stat(filepath.Join(usual, ".running")); err == nil {
		t.Error("the server has ended and is still announced")
	}
}

func TestBackupRestoresByCopying(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, "data")
	p, base := serving(t, home, nil)
	_, text, _ := output(t, home, nil, "init", "--name", "kept", "--data", data)
	key := keyIn.FindString(text)
	if code, text, failed := output(t, home, nil, "backup", "running.db", "--data", data); code != 0 || !strings.Contains(text, "secrets.json") {
		t.Fatalf("backup: exit %d, %s %s", code, text, failed)
	}
	if info, err := os.Stat(filepath.Join(home, "running.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if status := listed(t, base, key); status != 200 {
		t.Errorf("status %d after a backup", status)
	}
	p.stop()
	if code, _, text := output(t, home, nil, "backup", "--data", data, "--force", "running.db"); code != 0 {
		t.Errorf("backup --force without a server: %s", text)
	}
	code, raw, _ := output(t, home, nil, "backup", "-", "--data", data)
	if code != 0 || len(raw) < 4096 {
		t.Errorf("backup -: exit %d, %d bytes", code, len(raw))
	}
	for name, content := range map[string]func() []byte{
		"file":   func() []byte { b, _ := os.ReadFile(filepath.Join(home, "running.db")); return b },
		"stdout": func() []byte { return []byte(raw) },
	} {
		other := t.TempDir()
		if err := os.Mkdir(filepath.Join(other, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(other, "data", "weir.db"), string(content()))
		secrets, err := os.ReadFile(filepath.Join(data, secretsName))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(other, "data", secretsName), string(secrets))
		restored, base := serving(t, other, nil)
		if status := listed(t, base, key); status != 200 {
			t.Errorf("%s: the key has status %d after a restore", name, status)
		}
		restored.stop()
	}
	if entries, _ := filepath.Glob(filepath.Join(home, ".running*")); len(entries) > 0 {
		t.Errorf("temporary files stay: %v", entries)
	}
}

func TestControlSocketIsPrivate(t *testing.T) {
	home := t.TempDir()
	socket := filepath.Join(home, "data", controlName)
	p, _ := serving(t, home, nil)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	p.cmd.Process.Kill()
	p.end()
	if _, err := os.Stat(socket); err != nil {
		t.Fatal("the killed server left no socket: nothing is tested")
	}
	// Without a server behind it, the socket is not an obstacle for either command.
	if code, _, text := output(t, home, nil, "init", "--data", filepath.Join(home, "data")); code != 0 {
		t.Errorf("init beside a stale socket: %s", text)
	}
	p, _ = serving(t, home, nil)
	if code, _, text := output(t, home, nil, "init", "--data", filepath.Join(home, "data")); code != 0 {
		t.Errorf("init after a stale socket: %s", text)
	}
	p.stop()
	for _, name := range []string{controlName, controlPathName} {
		if _, err := os.Lstat(filepath.Join(home, "data", name)); err == nil {
			t.Errorf("%s stays after a stop", name)
		}
	}
}

func TestControlSocketOfALongPathIsElsewhere(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, strings.Repeat("long", 30))
	p, base := serving(t, home, nil, "--data", data)
	code, text, failed := output(t, home, nil, "init", "--name", "another", "--data", data)
	if code != 0 || listed(t, base, keyIn.FindString(text)) != 200 {
		t.Errorf("init: exit %d, %s %s", code, text, failed)
	}
	raw, err := os.ReadFile(filepath.Join(data, controlPathName))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Dir(string(raw))); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	p.stop()
	if _, err := os.Stat(string(raw)); err == nil {
		t.Error("the socket stays after a stop")
	}
}

func TestSocketOfAnotherUserIsNotUsed(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	socket := filepath.Join(folder, controlName)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err) // the temporary directory's path is too long
	}
	defer l.Close()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "another user's") }))
	write(t, filepath.Join(data, controlPathName), socket)
	for mode, want := range map[os.FileMode]error{0o700: nil, 0o755: errNotRunning} {
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
		res, err := control(t.Context(), data, "GET", "/backup", nil)
		if err == nil {
			res.Body.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("folder of mode %o: got %v, want %v", mode, err, want)
		}
	}
}

func TestHealthAsksWhereTheServerListens(t *testing.T) {
	home := t.TempDir()
	p, base := serving(t, home, nil)
	listen := strings.TrimPrefix(base, "http://")
	_, port, _ := net.SplitHostPort(listen)
	for _, env := range [][]string{{"LISTEN=" + listen}, {"LISTEN=:" + port}, {"LISTEN=0.0.0.0:" + port}, {"LISTEN=localhost:" + port}} {
		if code, text, failed := output(t, home, env, "health"); code != 0 || text != "ok\n" {
			t.Errorf("%v: exit %d, %q %q", env, code, text, failed)
		}
	}
	if code, text, failed := output(t, home, nil, "health", "--data", filepath.Join(home, "data")); code != 0 || text != "ok\n" {
		t.Errorf("by the data directory: exit %d, %q %q", code, text, failed)
	}
	if code, _, _ := output(t, home, []string{"LISTEN=" + listen, "TLS_CERT=a"}, "health"); code != 1 {
		t.Error("a server without TLS is healthy for a client that wants it")
	}
	p.stop()
	if code, _, text := output(t, home, nil, "health", "--listen", listen); code != 1 {
		t.Errorf("after the stop: exit %d, %q", code, text)
	}
}

func TestUnixSocketServesAProxy(t *testing.T) {
	home := t.TempDir()
	socket := filepath.Join(home, "weir.sock")
	start := func() *process {
		p := program(t, home, []string{"PUBLIC_URL=https://weir.example"}, "serve", "--listen", "unix:"+socket, "--data", filepath.Join(home, "data")).start()
		p.until(&p.stdout, " init --data ")
		return p
	}
	p := start()
	if code := codeIn(t, p.stdout.String()); !strings.Contains(p.stdout.String(), "https://weir.example/#/sign-in/"+code) {
		t.Errorf("the link does not lead to the proxy: %s", &p.stdout)
	}
	if strings.Contains(p.stdout.String(), "This program has no dashboard") == dashboard.Built() {
		t.Errorf("built with the dashboard: %v\n%s", dashboard.Built(), &p.stdout)
	}
	c := overUnix(socket)
	if status, body, _ := answer(t, c, "POST", "http://weir.example/api/session", `{"token":"`+codeIn(t, p.stdout.String())+`"}`,
		"Content-Type", "application/json", "Origin", "https://weir.example", "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.1"); status != 200 {
		t.Errorf("sign-in over the socket: %d %s", status, body)
	}
	if code, _, text := output(t, home, nil, "health", "--listen", "unix:"+socket); code != 0 {
		t.Errorf("health: %s", text)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info, err)
	}
	p.cmd.Process.Kill()
	p.end()
	p = start() // over the socket that the killed server left
	second := program(t, home, nil, "serve", "--listen", "unix:"+socket, "--data", filepath.Join(home, "other")).start()
	if code := second.end(); code != 1 || !strings.Contains(second.stderr.String(), "in use") {
		t.Errorf("a second server: exit %d, %s", code, &second.stderr)
	}
	p.stop()
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket stays after a stop")
	}
}

func TestUnixSocketMayBeInTheDataDirectory(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, "data")
	args := []string{"serve", "--listen", "unix:" + filepath.Join("data", "web.sock"), "--data", data}
	for range 2 { // creates the directory, then replaces the socket of a killed server
		p := program(t, home, nil, args...).start()
		p.until(&p.stdout, " init --data ")
		if status, _, _ := answer(t, overUnix(filepath.Join(data, "web.sock")), "GET", "http://weir/health", ""); status != 200 {
			t.Errorf("status %d", status)
		}
		p.cmd.Process.Kill()
		p.end()
	}
	// Nothing but the socket is there if the server was killed before it wrote a file.
	entries, _ := os.ReadDir(data)
	for _, e := range entries {
		if e.Name() != "web.sock" {
			os.RemoveAll(filepath.Join(data, e.Name()))
		}
	}
	p := program(t, home, nil, args...).start()
	p.until(&p.stdout, " init --data ")
	p.stop()
}

func TestOpenAddressIsWarnedAbout(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	for _, tt := range []struct {
		s    settings
		at   net.Addr
		want bool
	}{
		{settings{}, at("127.0.0.1"), false},
		{settings{}, at("::1"), false},
		{settings{}, at("0.0.0.0"), true},
		{settings{}, at("::"), true},
		{settings{}, at("192.168.1.2"), true},
		{settings{tlsCert: "a", tlsKey: "b"}, at("0.0.0.0"), false},
		{settings{proxies: proxiesOf(t, "private", "")}, at("0.0.0.0"), false},
		{settings{}, &net.UnixAddr{}, false},
	} {
		if got := tt.s.isOpen(tt.at); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.at, got, tt.want)
		}
	}
}

// inProcess is a server in the process of the test, with limits of its own.
type inProcess struct {
	*testing.T
	base, key      string
	link           string // that signs in, once
	stdout, stderr buffer
	signals        chan os.Signal
	code           chan int
}

// serveInProcess starts a server that may call upstreams on loopback.
func serveInProcess(t *testing.T, change func(*limits)) *inProcess {
	t.Helper()
	return serveIn(t, t.TempDir(), func(r *run) { change(&r.limits) })
}

// serveIn is serveInProcess over the data of a home, with a machine of its own.
func serveIn(t *testing.T, home string, change func(*run)) *inProcess {
	t.Helper()
	s := &inProcess{T: t, signals: make(chan os.Signal, 2), code: make(chan int, 1)}
	r := &run{Options: Options{Signals: s.signals}, env: environment(home, "ALLOW_PRIVATE_UPSTREAMS", "true"), stdout: &s.stdout, stderr: &s.stderr, limits: standardLimits()}
	change(r)
	go func() {
		s.code <- r.main([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(home, "data")})
	}()
	for !strings.Contains(s.stdout.String(), " init ") {
		select {
		case code := <-s.code:
			t.Fatalf("exit code %d: %s", code, &s.stderr)
		case <-time.After(2 * time.Millisecond):
		}
	}
	s.base = baseURL.FindStringSubmatch(s.stdout.String())[1]
	out, err := askInit(context.Background(), filepath.Join(home, "data"), "own")
	if err != nil {
		t.Fatal(err)
	}
	s.key, s.link = out.APIKey, out.SignIn
	return s
}

// end waits for the exit code.
func (s *inProcess) end() int {
	s.Helper()
	select {
	case code := <-s.code:
		return code
	case <-time.After(2 * time.Minute):
		s.Fatalf("the server did not end: %s", &s.stderr)
		return 0
	}
}

// endless is an upstream whose streams send events until they are released or
// their client leaves.
type endless struct {
	*httptest.Server
	release chan struct{}
	left    chan struct{} // has an element for each client that left
}

func newEndless(t *testing.T) *endless {
	u := &endless{release: make(chan struct{}), left: make(chan struct{}, 10)}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(delta, finish string) {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
			w.(http.Flusher).Flush()
		}
		event(`{"role":"assistant","content":"first"}`, "null")
		select {
		case <-u.release:
			event(`{"content":"last"}`, "null")
			event(`{}`, `"stop"`)
			io.WriteString(w, "data: [DONE]\n\n")
		case <-r.Context().Done():
			u.left <- struct{}{}
		}
	}))
	t.Cleanup(u.Close)
	return u
}

// stream starts a chat stream and reads its first event.
func (s *inProcess) stream(u *endless) *bufio.Reader {
	s.Helper()
	s.connect(u.URL)
	req, _ := http.NewRequest("POST", s.base+"/v1/chat/completions", strings.NewReader(`{"model":"up/m","stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { res.Body.Close() })
	out := bufio.NewReader(res.Body)
	line, err := out.ReadString('\n')
	if err != nil || res.StatusCode != 200 || !strings.Contains(line, "first") {
		s.Fatalf("stream: %d %q %v", res.StatusCode, line, err)
	}
	return out
}

// connection is the body of a connection to an upstream as "up".
func connection(upstream string) string {
	return `{"provider":"openai-compatible-0123abcd","name":"up","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"` + upstream + `/v1","prefix":"up"}}`
}

// connect adds an upstream to the machine.
func (s *inProcess) connect(upstream string) {
	s.Helper()
	machine := strings.Split(s.key, "-")[1]
	if status, body, _ := answer(s.T, http.DefaultClient, "POST", s.base+"/"+machine+"/api/providers", connection(upstream),
		"Authorization", "Bearer "+s.secrets().AdminToken, "Content-Type", "application/json"); status/100 != 2 {
		s.Fatalf("connect: %d %s", status, body)
	}
}

// secrets are those that the first start created.
func (s *inProcess) secrets() (own secrets) {
	s.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dataDir(), secretsName))
	if err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(raw, &own); err != nil {
		s.Fatal(err)
	}
	return own
}

// dataDir is the data directory that the server printed.
func (s *inProcess) dataDir() string {
	_, rest, _ := strings.Cut(s.stdout.String(), "Data: ")
	dir, _, _ := strings.Cut(rest, "\n")
	return dir
}

func (s *inProcess) until(text string) {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(s.stdout.String(), text); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("no %q in %s", text, &s.stdout)
		}
	}
}

func TestStopRefusesNewCallsAndEndsStreams(t *testing.T) {
	u := newEndless(t)
	s := serveInProcess(t, func(l *limits) { l.drain = time.Hour })
	out := s.stream(u)
	s.signals <- syscall.SIGTERM
	s.until("s to end: 1.")
	for _, path := range []string{"/v1/models", "/health", "/api/session"} {
		status, body, header := answer(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, "GET", s.base+path, "", "Authorization", "Bearer "+s.key)
		if status != 503 || header.Get("Retry-After") == "" || !json.Valid([]byte(body)) {
			t.Errorf("%s during the stop: %d, Retry-After %q, %s", path, status, header.Get("Retry-After"), body)
		}
	}
	close(u.release)
	rest, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(rest), "last") || !strings.HasSuffix(strings.TrimSpace(string(rest)), "[DONE]") {
		t.Errorf("the stream did not end whole: %q %v", rest, err)
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, &s.stderr)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://")); err == nil {
		t.Error("the address is still open")
	}
}

func TestStreamIsCutAfterTheGrace(t *testing.T) {
	u := newEndless(t)
	s := serveInProcess(t, func(l *limits) { l.drain = 50 * time.Millisecond })
	out := s.stream(u)
	s.signals <- syscall.SIGTERM
	if rest, err := io.ReadAll(out); err != nil || !strings.Contains(string(rest), `"code":"stopping"`) || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("got %q, %v", rest, err)
	}
	select {
	case <-u.left:
	case <-time.After(2 * time.Minute):
		t.Error("the upstream call was not canceled")
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, &s.stderr)
	}
}

// A call that waits for its upstream gets an answer at the end, too.
func TestCallIsAnsweredAfterTheGrace(t *testing.T) {
	arrived := make(chan struct{})
	u := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
	}))
	defer u.Close()
	s := serveInProcess(t, func(l *limits) { l.drain = 50 * time.Millisecond })
	s.connect(u.URL)
	go func() {
		<-arrived
		s.signals <- syscall.SIGTERM
	}()
	status, body, header := answer(t, http.DefaultClient, "POST", s.base+"/v1/messages", `{"model":"up/m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`,
		"Authorization", "Bearer "+s.key, "Content-Type", "application/json")
	if status != 503 || header.Get("Retry-After") != "1" || !strings.Contains(body, "overloaded_error") || !strings.Contains(body, "stopping") {
		t.Errorf("got %d, Retry-After %q, %s", status, header.Get("Retry-After"), body)
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, &s.stderr)
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	u := newEndless(t)
	s := serveInProcess(t, func(l *limits) { l.drain = time.Hour })
	out := s.stream(u)
	s.signals <- syscall.SIGTERM
	s.until("weir is stopping")
	s.signals <- syscall.SIGTERM
	if rest, err := io.ReadAll(out); err != nil || !strings.Contains(string(rest), `"code":"stopping"`) {
		t.Errorf("got %q, %v", rest, err)
	}
	if code := s.end(); code != 128+15 {
		t.Errorf("exit code %d", code)
	}
}

func TestSlowHeadEndsTheConnection(t *testing.T) {
	s := serveInProcess(t, func(l *limits) { l.header = 50 * time.Millisecond })
	c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /health HTTP/1.1\r\nhost: weir\r\nx-a: ")
	if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	s.signals <- syscall.SIGTERM
	s.end()
}

func TestIdleConnectionIsClosed(t *testing.T) {
	s := serveInProcess(t, func(l *limits) { l.idle = 50 * time.Millisecond })
	c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /health HTTP/1.1\r\nhost: weir\r\n\r\n")
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200") {
		t.Errorf("%q %v", got, err)
	}
	s.signals <- syscall.SIGTERM
	s.end()
}

func TestMachineMovesByExportAndImport(t *testing.T) {
	const passphrase = "at least twelve characters"
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer upstream-key" {
			w.WriteHeader(401)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"m"}`)
	}))
	t.Cleanup(u.Close)
	type place struct {
		*inProcess
		url, token string
	}
	start := func() place {
		s := serveInProcess(t, func(*limits) {})
		return place{s, s.base + "/" + strings.Split(s.key, "-")[1], s.secrets().AdminToken}
	}
	manage := func(p place, path, body string) string {
		t.Helper()
		status, text, _ := answer(t, http.DefaultClient, "POST", p.url+path, body, "Authorization", "Bearer "+p.token, "Content-Type", "application/json")
		if status/100 != 2 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		return text
	}
	from, to := start(), start()
	manage(from, "/api/providers", connection(u.URL))
	document := manage(from, "/api/export", `{"passphrase":"`+passphrase+`"}`)
	if strings.Contains(document, "upstream-key") {
		t.Error("the export has a credential in the clear")
	}
	manage(to, "/api/import", `{"document":`+document+`,"passphrase":"`+passphrase+`"}`)
	status, text, _ := answer(t, http.DefaultClient, "POST", to.base+"/v1/embeddings", `{"model":"up/m","input":"a"}`, "Authorization", "Bearer "+to.key, "Content-Type", "application/json")
	if status != 200 {
		t.Errorf("a call at the new place: %d %s", status, text)
	}
	for _, p := range []place{from, to} {
		p.signals <- syscall.SIGTERM
		if code := p.end(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// Ten wrong tokens of one address end its attempts. Whose address it is decides
// the connection, or a trusted proxy.
func TestWrongSignInsAreCountedForTheClient(t *testing.T) {
	attempt := func(base, client string, i int) int {
		t.Helper()
		status, _, _ := answer(t, http.DefaultClient, "POST", base+"/api/session", fmt.Sprintf(`{"token":"wrong-%d-%s"}`, i, long("x")),
			"Content-Type", "application/json", "Origin", base, "X-Forwarded-For", client, "Cf-Connecting-Ip", client)
		return status
	}
	for _, tt := range []struct {
		name    string
		args    []string
		another int // status for another X-Forwarded-For, once the first is limited
	}{
		{"trusted proxy", []string{"--trusted-proxies", "loopback"}, 401},
		{"no proxy", nil, 429},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, base := serving(t, t.TempDir(), nil, tt.args...)
			status := 0
			for i := 0; i < 20 && status != 429; i++ {
				if status = attempt(base, "192.0.2.1", i); status != 401 && status != 429 {
					t.Fatalf("attempt %d: status %d", i, status)
				}
			}
			if status != 429 {
				t.Fatal("no limit")
			}
			if status := attempt(base, "192.0.2.2", 0); status != tt.another {
				t.Errorf("status %d, want %d", status, tt.another)
			}
			p.stop()
		})
	}
}

func TestHangupStopsTheServer(t *testing.T) {
	// A program ignores the signals that its parent ignores, as nohup does, but not
	// those that it handles.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	defer signal.Stop(handled)
	p, _ := serving(t, t.TempDir(), nil)
	p.cmd.Process.Signal(syscall.SIGHUP)
	if code := p.end(); code != 0 || !strings.Contains(p.stdout.String(), "weir has stopped.") {
		t.Errorf("exit code %d, %s", code, &p.stdout)
	}
}

func TestKilledFirstStartLeavesAUsableDirectory(t *testing.T) {
	for _, state := range []string{"secrets.json", "weir.lock", "weir.db.new", "weir.db", "control.sock", "sign-in.json"} {
		home := t.TempDir()
		data := filepath.Join(home, "data")
		p := program(t, home, nil, "serve", "--listen", "127.0.0.1:0", "--data", data).start()
		for {
			if _, err := os.Lstat(filepath.Join(data, state)); err == nil || strings.Contains(p.stdout.String(), " init --data ") {
				break
			}
		}
		p.cmd.Process.Kill()
		p.end()
		for _, name := range []string{".control-1", "." + codeName + "-1"} { // of a process that was killed a moment later
			write(t, filepath.Join(data, name), "")
		}
		if code, _, text := output(t, home, nil, "init", "--data", data); code != 0 {
			t.Errorf("killed with %s: init: %s", state, text)
		}
		p, base := serving(t, home, nil)
		if status, _, _ := answer(t, http.DefaultClient, "GET", base+"/health", ""); status != 200 {
			t.Errorf("killed with %s: status %d", state, status)
		}
		if left, _ := filepath.Glob(filepath.Join(data, ".[cs]*-*")); len(left) > 0 {
			for _, path := range left {
				if !strings.HasPrefix(filepath.Base(path), ".secrets") {
					t.Errorf("killed with %s: %s stays", state, path)
				}
			}
		}
		p.stop()
	}
}

func TestClientThatReadsNothingIsCut(t *testing.T) {
	left := make(chan struct{})
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		defer close(left)
		w.Header().Set("Content-Type", "text/event-stream")
		text := strings.Repeat("x", 32<<10)
		for {
			if _, err := fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", text); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(u.Close)
	s := serveInProcess(t, func(l *limits) { l.stall = 200 * time.Millisecond })
	s.connect(u.URL)
	c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"model":"up/m","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nhost: weir\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", s.key, len(body), body)
	select {
	case <-left:
	case <-time.After(2 * time.Minute):
		t.Error("the upstream call goes on")
	}
	s.signals <- syscall.SIGTERM
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestClientThatReadsSlowlyIsServed(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := &stallConn{Conn: a, limit: 10 * time.Second}
	const length = 3*maxWrite + 5
	go func() {
		n, err := c.Write(make([]byte, length))
		if n != length || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		c.Close()
	}()
	if got, err := io.ReadAll(b); len(got) != length || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	c.until = time.Now().Add(time.Second)
	if at := c.earlier(time.Now()); !at.Equal(c.until) {
		t.Error("the server's own deadline is not the earlier one")
	}
}

// Service managers wait for as long as a stop may take before they kill the server.
func TestStopTimesAgree(t *testing.T) {
	drain := standardLimits().drain
	most := drain + 25*time.Second
	if took := standardLimits().stop(); took > most {
		t.Errorf("a stop takes %v, what ends it waits %v", took, most)
	}
	for _, tt := range []struct {
		file, pattern string
		longer        time.Duration
	}{
		{"deploy/weir.service", `(?m)^TimeoutStopSec=(\d+)$`, 0},
		{"server/service/testdata/systemd-user.txt", `(?m)^TimeoutStopSec=(\d+)$`, 0},
		{"server/service/testdata/launchd.txt", `ExitTimeOut</key>\s*<integer>(\d+)<`, 0},
		{"deploy/compose.yaml", `(?s)  weir:.*?stop_grace_period: (\d+)s`, 0},
		{"deploy/compose-several.yaml", `(?s)x-weir:.*?stop_grace_period: (\d+)s`, 0},
		{"deploy/kubernetes/one.yaml", `terminationGracePeriodSeconds: (\d+)`, 5 * time.Second},
		{"deploy/kubernetes/several.yaml", `terminationGracePeriodSeconds: (\d+)`, 5 * time.Second},
		{"docs/guides/self-hosting.md", "`DRAIN` and 25 more before you kill the server, (\\d+) by default", 0},
		{"docs/guides/several-servers.md", `then has (\d+) s`, 0},
	} {
		text, err := os.ReadFile("../../" + tt.file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(tt.pattern).FindSubmatch(text)
		if m == nil || string(m[1]) != fmt.Sprint(int((most+tt.longer).Seconds())) {
			t.Errorf("%s: %s, want %v", tt.file, m, most+tt.longer)
		}
	}
}

func TestDrainIsASetting(t *testing.T) {
	u := newEndless(t)
	s := serveIn(t, t.TempDir(), func(r *run) {
		r.limits.drain = time.Hour
		env := r.env
		r.env = func(name string) (string, bool) {
			if name == "DRAIN" {
				return "1", true
			}
			return env(name)
		}
	})
	out := s.stream(u)
	s.signals <- syscall.SIGTERM
	s.until("calls that have 1 s to end: 1.")
	if rest, err := io.ReadAll(out); err != nil || !strings.Contains(string(rest), `"code":"stopping"`) {
		t.Errorf("got %q, %v", rest, err)
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, &s.stderr)
	}
}
