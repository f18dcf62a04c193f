//go:build unix

// Package cluster tests several servers, processes of their own over one PostgreSQL server, each
// behind a proxy that cuts and delays its connections to the database.
package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/server/postgres/postgrestest"
)

// databases are those of the tests.
var databases postgrestest.Databases

// binary is the server under test; TestMain compiles it.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv("CLUSTER") != "1" { // they take minutes
		return
	}
	dir, err := os.MkdirTemp("", "weir-cluster-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "weir")
	compile(binary)
	code := databases.Run(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// compile compiles the server.
func compile(path string, flags ...string) {
	args := append(append([]string{"build", "-o", path}, flags...), "weir/server")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
}

const (
	admin = "admin-token-admin-token-admin-token-1"
	oauth = "openai-compatible-0a0a0001" // signs in at the token endpoint of the upstream
	plain = "openai-compatible-0a0a0002"
)

// world is a database, an upstream and the servers.
type world struct {
	*testing.T
	url     string // of the database, not through a proxy
	often   string // how often tokens may be refreshed, a field of the client
	up      *upstream
	servers []*process
}

// slow is the time limit of a call: longer than any server is frozen.
const slow = 40 * time.Second

// process is one server.
type process struct {
	*world
	mu    sync.Mutex
	base  string // of the running process
	proxy *postgrestest.Proxy
	cmd   *exec.Cmd
	out   *lines
	build string   // the program, if it is another one than binary
	env   []string // further variables
}

// lines is the output of a process.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newWorld starts servers on a new database, with refreshes four times a second.
func newWorld(t *testing.T, servers int) *world {
	t.Helper()
	return newWorldOn(t, databases.New(t), servers, `,"refreshEveryMs":250`)
}

// newWorldOn starts servers on a database.
func newWorldOn(t *testing.T, database string, servers int, often string) *world {
	t.Helper()
	w := &world{T: t, url: database, often: often, up: newUpstream(t)}
	for range servers {
		w.add("")
	}
	t.Cleanup(func() {
		for _, p := range w.servers {
			p.kill()
			if t.Failed() {
				text := p.out.String()
				t.Logf("%s:\n%s", p.base, text[max(0, len(text)-1500):])
			}
		}
	})
	return w
}

// add starts one more server, of a build.
func (w *world) add(build string, env ...string) *process {
	w.Helper()
	u, _ := url.Parse(w.url)
	p := &process{world: w, proxy: postgrestest.NewProxy(w.T, u.Host), build: build, env: env}
	p.start()
	w.servers = append(w.servers, p)
	return p
}

// environment is that of a server whose database is at a URL.
func (w *world) environment(database string) []string {
	client := `[{"id":"` + oauth + `","name":"Acme","tokenUrl":"` + w.up.URL +
		`/token","clientId":"client-of-the-test","clientSecret":"secret-of-the-test"` + w.often + `}]`
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.TempDir(), "DATABASE_URL=" + database, "ADMIN_TOKEN=" + admin,
		"API_KEY_SECRET=" + strings.Repeat("k", 40), "CREDENTIALS_KEY=" + strings.Repeat("c", 40), "PRICES_URL=off",
		"ALLOW_PRIVATE_UPSTREAMS=true", "OAUTH_PROVIDERS=" + client}
}

var isOn = regexp.MustCompile(`weir is running at (http://\S+)\n`)

// start starts the process, which may have been killed before.
func (p *process) start() {
	p.Helper()
	u, _ := url.Parse(p.url)
	u.Host = fmt.Sprintf("127.0.0.1:%d", p.proxy.Port())
	p.out = &lines{}
	p.cmd = exec.Command(cmp.Or(p.build, binary), "serve", "--listen", "127.0.0.1:0")
	p.cmd.Env = append(p.environment(u.String()), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	for range 1500 {
		if m := isOn.FindStringSubmatch(p.out.String()); m != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.base = m[1]
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.Fatalf("the server does not start: %s", p.out)
}

// kill ends the process without a chance to write anything.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// stop ends the process as a supervisor does.
func (p *process) stop() {
	p.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("the stop: %v: %s", err, p.out)
	}
}

// command runs a command of the program on the database.
func (w *world) command(args ...string) string {
	w.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = w.environment(w.url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("%s: %v: %s", args[0], err, out)
	}
	return string(out)
}

// answer is what a server has answered; status 0 is no answer.
type answer struct {
	status int
	body   string
	header http.Header
}

func (a answer) get(path string) gjson.Result { return gjson.Get(a.body, path) }

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// do makes a call, with header fields in pairs.
func (p *process) do(method, path, body string, fields ...string) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), slow)
	defer cancel()
	p.mu.Lock()
	base := p.base
	p.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return a
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return a
	}
	return answer{res.StatusCode, string(raw), res.Header}
}

// manage makes a management call as the operator.
func (p *process) manage(method, path, body string) answer {
	return p.do(method, path, body, "Authorization", "Bearer "+admin)
}

// must is manage for a call that succeeds.
func (p *process) must(method, path, body string) answer {
	p.Helper()
	a := p.manage(method, path, body)
	if a.status/100 != 2 {
		p.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}

// machine creates a machine with a connection to the upstream as "up".
func (p *process) machine() (id, key string) {
	p.Helper()
	a := p.must("POST", "/api/machines", `{"name":"m"}`)
	id, key = a.get("machineId").Str, a.get("apiKey").Str
	p.connect(id, plain, "up", `"apiKey":"upstream-key"`)
	return id, key
}

// connect adds a connection to the upstream.
func (p *process) connect(id, provider, prefix, credential string) {
	p.Helper()
	p.must("POST", "/"+id+"/api/providers", fmt.Sprintf(
		`{"provider":%q,"name":%q,%s,"providerSpecificData":{"baseUrl":"%s/v1","prefix":%q}}`,
		provider, prefix, credential, p.up.URL, prefix))
}

// chat makes a chat call.
func (p *process) chat(key, model string) answer {
	return p.do("POST", "/v1/chat/completions",
		`{"model":"`+model+`","max_tokens":20,"messages":[{"role":"user","content":"a"}]}`, "Authorization", "Bearer "+key)
}

// create makes an image with an idempotency key.
func (p *process) create(key, prompt string) answer {
	return p.do("POST", "/v1/images/generations", `{"model":"up/img","prompt":"`+prompt+`"}`, "Authorization",
		"Bearer "+key, "Idempotency-Key", "key-"+prompt)
}

// until waits until a condition holds, for at most d.
func (w *world) until(d time.Duration, what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			w.Errorf("not within %v: %s", d, what)
			return
		}
	}
}

// upstream is a provider with a token endpoint that rotates refresh tokens, and counts those that
// come twice, for which others revoke the grant.
type upstream struct {
	*httptest.Server
	mu          sync.Mutex
	grants      map[string]int       // how often the grant of a current refresh token was used
	used        map[string]time.Time // earlier refresh tokens
	access      map[string]bool      // tokens that are accepted
	calls       int                  // of the token endpoint
	reused      int                  // of refresh tokens
	reusedEarly int                  // in less than a minute, in which the outcome of a call is waited for
	budgeted    int                  // calls for the model "budgeted"
	chats       int
	images      map[string]int // by prompt
	slow        time.Duration  // of an image
	lastRun     int
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{grants: map[string]int{}, used: map[string]time.Time{}, images: map[string]int{}}
	u.expire()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", u.token)
	mux.HandleFunc("POST /v1/chat/completions", u.chat)
	mux.HandleFunc("POST /v1/images/generations", u.image)
	u.Server = httptest.NewServer(mux)
	t.Cleanup(u.CloseClientConnections)
	return u
}

// grant issues the first tokens of a grant.
func (u *upstream) grant() (access, refresh string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lastRun++
	access, refresh = fmt.Sprintf("access-token-of-grant-%d", u.lastRun), fmt.Sprintf("refresh-token-of-grant-%d", u.lastRun)
	u.grants[refresh], u.access[access] = 0, true
	return access, refresh
}

// expire makes the upstream refuse the access tokens that it has issued.
func (u *upstream) expire() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.access = map[string]bool{"upstream-key": true}
}

func (u *upstream) token(w http.ResponseWriter, r *http.Request) {
	old := r.FormValue("refresh_token")
	time.Sleep(20 * time.Millisecond)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	n, valid := u.grants[old]
	if !valid {
		if at := u.used[old]; !at.IsZero() {
			if u.reused++; time.Since(at) < 53*time.Second { // the clock may be a tenth faster
				u.reusedEarly++
			}
		}
		w.WriteHeader(400)
		io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	delete(u.grants, old)
	u.used[old] = time.Now()
	u.lastRun++
	access, refresh := fmt.Sprintf("access-token-number-%d", u.lastRun), fmt.Sprintf("refresh-token-number-%d", u.lastRun)
	u.grants[refresh], u.access[access] = n+1, true
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"access_token": access, "refresh_token": refresh, "expires_in": 3600})
}

func (u *upstream) chat(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	u.mu.Lock()
	accepted := u.access[token]
	if accepted {
		u.chats++
		if gjson.GetBytes(raw, "model").Str == "budgeted" {
			u.budgeted++
		}
	}
	u.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !accepted {
		w.WriteHeader(401)
		io.WriteString(w, `{"error":{"message":"expired"}}`)
		return
	}
	io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":"b"}}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
}

func (u *upstream) image(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.images[gjson.GetBytes(raw, "prompt").Str]++
	slow := u.slow
	u.mu.Unlock()
	time.Sleep(slow)
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"created":1,"data":[{"b64_json":"aGVsbG8="}]}`)
}

// number returns a counter of the upstream.
func (u *upstream) number(of func() int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return of()
}
