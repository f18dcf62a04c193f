package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/tokens"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

const (
	mid     = sealed.MachineID
	oauthID = "openai-compatible-00000001" // its token endpoint is the fake one
)

// world is an object run in process, with everything around it.
type world struct {
	*testing.T
	clock *fake.Clock
	kv    *fake.KV
	idp   *idp
	obj   *Object
	loc   *objects.Local
	logs  []string
	ctx   context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: fake.NewClock(time.UnixMilli(1_800_000_000_000)), kv: fake.NewKV(), idp: &idp{}, ctx: context.Background()}
	src := rand.NewChaCha8([32]byte{1})
	w.obj = &Object{KV: w.kv, Manager: manage.Manager{CanonicalURL: fake.CanonicalURL, KeySecret: []byte(strings.Repeat("s", 32)), Service: tokens.Service{
		Keyring: sealed.Keys(t), Do: &fake.Upstream{Clock: w.clock, Answer: w.idp.reply}, Pause: w.clock, Now: w.clock.Now, Rand: src,
		Log:       func(l string) { w.logs = append(w.logs, l) },
		OAuth:     []oauth.Provider{{ID: oauthID, TokenURL: "https://login.example.com/token", ClientID: "weir-client", ClientSecret: secret.New("weir-client-secret")}},
		SignRS256: func(_ context.Context, key, data []byte) ([]byte, error) { return []byte("sig"), nil },
	}}}
	w.loc = objects.New(w.obj, w.obj.Now, &w.obj.Do, &w.obj.KV, &w.obj.Objects)
	return w
}

// call runs an operation and returns status and answer.
func (w *world) call(op, body string) (int, gjson.Result) {
	w.Helper()
	status, answer, err := w.loc.Call(w.ctx, mid, op, []byte(body))
	if err != nil {
		w.Fatal(err)
	}
	return status, gjson.ParseBytes(answer)
}

// want runs an operation that must answer with a status.
func (w *world) want(status int, op, body string) gjson.Result {
	w.Helper()
	got, answer := w.call(op, body)
	if got != status {
		w.Fatalf("%s %s: got %d %s, want %d", op, body, got, answer.Raw, status)
	}
	return answer
}

// create creates the machine and returns its key.
func (w *world) create() string {
	w.Helper()
	return w.want(201, "create", `{"name":"demo"}`).Get("apiKey").Str
}

// api runs a management call as the operator. path may have a query and an id.
func (w *world) api(method, path, body string, set ...func(*rpc.ManageCall)) (int, gjson.Result) {
	w.Helper()
	path, query, _ := strings.Cut(path, "?")
	e := rpc.ManageCall{Method: method, Route: path, Query: map[string]string{}}
	if body != "" {
		e.Body = json.RawMessage(body)
	}
	for _, kv := range strings.Split(query, "&") {
		if k, v, ok := strings.Cut(kv, "="); ok {
			e.Query[k] = v
		}
	}
	for _, base := range []string{"/api/providers/", "/api/combos/", "/api/keys/", "/api/requests/"} {
		if id, ok := strings.CutPrefix(path, base); ok {
			id, restore := strings.CutSuffix(id, "/restore")
			if e.Route, e.Params = base+"{id}", []string{id}; restore {
				e.Route += "/restore"
			}
		}
	}
	for _, f := range set {
		f(&e)
	}
	raw, err := json.Marshal(e)
	if err != nil { // a body that is no JSON
		e.Body = nil
		raw, _ = json.Marshal(e)
		raw = append(append(raw[:len(raw)-1], `,"body":`...), body+"}"...)
	}
	return w.call("manage", string(raw))
}

// ok is api for a call that must succeed; it returns the body.
func (w *world) ok(method, path, body string, set ...func(*rpc.ManageCall)) gjson.Result {
	w.Helper()
	status, a := w.api(method, path, body, set...)
	if status != 200 {
		w.Fatalf("%s %s %s: got %d %s", method, path, body, status, a.Raw)
	}
	return a.Get("body")
}

// connect creates a connection and returns its id.
func (w *world) connect(body string) string {
	w.Helper()
	return w.ok("POST", "/api/providers", body).Get("id").Str
}

// oauth makes a connection with tokens of the fake provider.
func (w *world) oauth() string {
	w.Helper()
	access, refresh := w.idp.issue()
	return w.connect(fmt.Sprintf(`{"provider":%q,"accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`, oauthID, access, refresh))
}

// replica returns what the object answers to the data plane.
func (w *world) replica() *store.Machine {
	w.Helper()
	m := new(store.Machine)
	if err := json.Unmarshal([]byte(w.want(200, "snapshot", `{"have":0}`).Raw), m); err != nil {
		w.Fatal(err)
	}
	return m
}

// open returns the secret of a connection in the replica.
func (w *world) open(c *store.Connection, field string) string {
	w.Helper()
	s, err := w.obj.Keyring.Open(mid, c.ID, field, c.Secrets[field])
	if err != nil {
		w.Fatalf("%s does not open: %v", field, err)
	}
	return s.Reveal()
}

// idp is a token endpoint that rotates refresh tokens, and revokes all tokens
// of the grant when one is used again.
type idp struct {
	mu           sync.Mutex
	n            int
	refresh      string // the one that is valid
	access       string
	used         map[string]bool
	calls        int
	revocations  int
	answer       func() (status int, body string, lost bool) // instead of a new token, once
	lose         bool                                        // the next answer, after rotating
	during       func()                                      // runs while a call is out
	life         string
	lastForm     url.Values
	keepRefresh  bool
	lastEndpoint string
	header       httpmsg.Header // of every answer
	timeout      bool           // there is no answer in time
}

var errLost = fmt.Errorf("connection lost: %w", upstream.ErrNetwork)

func (p *idp) issue() (access, refresh string) {
	p.n++
	p.access, p.refresh = fmt.Sprintf("access-token-%06d", p.n), fmt.Sprintf("refresh-token-%06d", p.n)
	return p.access, p.refresh
}

// reply returns the answer to a call once it is waited for.
func (p *idp) reply(s *fake.Seen) fake.Answer {
	return fake.Answer{Late: func() fake.Answer { return p.late(s) }}
}

func (p *idp) late(s *fake.Seen) fake.Answer {
	form, _ := url.ParseQuery(s.Body)
	if p.during != nil {
		p.during()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	p.lastForm, p.lastEndpoint = form, s.URL
	reply := func(status int, body string) fake.Answer {
		return fake.Answer{Status: status, Header: p.header, Body: body}
	}
	if p.timeout {
		return fake.Answer{Err: fmt.Errorf("token endpoint: %w", upstream.ErrTimeout)}
	}
	if p.answer != nil {
		status, body, lost := p.answer()
		p.answer = nil
		if lost {
			return fake.Answer{Err: errLost}
		}
		return reply(status, body)
	}
	if form.Get("grant_type") == "refresh_token" {
		given := form.Get("refresh_token")
		if p.used[given] && !p.keepRefresh {
			p.revocations++
			p.refresh, p.access = "", ""
		}
		if given == "" || given != p.refresh {
			return reply(400, `{"error":"invalid_grant"}`)
		}
		if p.used == nil {
			p.used = map[string]bool{}
		}
		p.used[given] = true
	}
	old := p.refresh
	access, refresh := p.issue()
	if p.keepRefresh {
		p.refresh = old
		refresh = ""
	}
	if p.lose {
		p.lose = false
		return fake.Answer{Err: errLost}
	}
	life := p.life
	if life == "" {
		life = "3600"
	}
	return reply(200, fmt.Sprintf(`{"access_token":%q,"refresh_token":%q,"expires_in":%s}`, access, refresh, life))
}

// isKey reports whether an error is one of a status and a code.
func isFailure(a gjson.Result, code string) bool { return a.Get("error.code").Str == code }
