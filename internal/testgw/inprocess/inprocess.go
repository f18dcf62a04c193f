// Package inprocess runs the object of a machine in process, with a provider of tokens and all else
// that it calls, for the tests of the object and of its handlers. It does not import the
// object, whose own tests use it.
package inprocess

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
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

const (
	MachineID = sealed.MachineID
	OAuthID   = "openai-compatible-00000001" // its token endpoint is the fake one
)

// World is an object run in process, with everything around it.
type World struct {
	*testing.T
	Clock   *fake.Clock
	KV      *fake.KV
	IDP     *IDP
	Manager *manage.Manager
	Loc     *objects.Local
	Logs    []string
	Ctx     context.Context
}

// New returns a World of an object without ports.
func New(t *testing.T, o Built) *World {
	t.Helper()
	clock := fake.NewClock(time.UnixMilli(1_800_000_000_000))
	w := &World{T: t, Clock: clock, KV: fake.NewKV(), IDP: &IDP{}, Ctx: context.Background()}
	m := o.Manager
	w.Manager, *o.KV = m, w.KV
	m.KeySecret = []byte(strings.Repeat("s", 32))
	m.Keyring, m.Do = sealed.Keys(t), &fake.Upstream{Clock: w.Clock, Answer: w.IDP.Reply}
	m.Pause, m.Now, m.Rand = w.Clock, w.Clock.Now, rand.NewChaCha8([32]byte{1})
	m.Log = func(l string) { w.Logs = append(w.Logs, l) }
	m.OAuth = []oauth.Provider{{ID: OAuthID, TokenURL: "https://login.example.com/token", ClientID: "weir-client",
		ClientSecret: secret.New("weir-client-secret")}}
	m.SignRS256 = func(_ context.Context, key, data []byte) ([]byte, error) { return []byte("sig"), nil }
	w.Loc = objects.New(o.Object, m.Now, &m.Do, o.KV, &m.Objects)
	return w
}

// Built is an object and the fields of it that a World changes.
type Built struct {
	Object  objects.Object
	Manager *manage.Manager
	KV      *store.KV
}

// Call runs an operation and returns status and answer.
func (w *World) Call(op, body string) (int, gjson.Result) {
	w.Helper()
	status, answer, err := w.Loc.Call(w.Ctx, MachineID, op, []byte(body))
	if err != nil {
		w.Fatal(err)
	}
	return status, gjson.ParseBytes(answer)
}

// Want runs an operation that must answer with a status.
func (w *World) Want(status int, op, body string) gjson.Result {
	w.Helper()
	got, answer := w.Call(op, body)
	if got != status {
		w.Fatalf("%s %s: got %d %s, want %d", op, body, got, answer.Raw, status)
	}
	return answer
}

// Create creates the machine and returns its key.
func (w *World) Create() string {
	w.Helper()
	return w.Want(201, "create", `{"name":"demo"}`).Get("apiKey").Str
}

// API runs a management call as the operator. path may have a query and an id.
func (w *World) API(method, path, body string, set ...func(*rpc.ManageCall)) (int, gjson.Result) {
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
	for _, base := range []string{"/api/providers/", "/api/combos/", "/api/keys/", "/api/requests/", "/api/destinations/",
		"/api/captures/"} {
		if rest, ok := strings.CutPrefix(path, base); ok {
			id, step, _ := strings.Cut(rest, "/")
			if e.Route, e.Params = base+"{id}", []string{id}; step == "restore" || step == "test" || step == "deliveries" {
				e.Route += "/" + step
			} else {
				e.Params[0] = rest
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
	return w.Call("manage", string(raw))
}

// OK is api for a call that must succeed; it returns the body.
func (w *World) OK(method, path, body string, set ...func(*rpc.ManageCall)) gjson.Result {
	w.Helper()
	status, a := w.API(method, path, body, set...)
	if status != 200 {
		w.Fatalf("%s %s %s: got %d %s", method, path, body, status, a.Raw)
	}
	return a.Get("body")
}

// Connect creates a connection and returns its id.
func (w *World) Connect(body string) string {
	w.Helper()
	return w.OK("POST", "/api/providers", body).Get("id").Str
}

// OAuth makes a connection with tokens of the fake provider.
func (w *World) OAuth() string {
	w.Helper()
	access, refresh := w.IDP.Issue()
	return w.Connect(fmt.Sprintf(`{"provider":%q,"accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`, OAuthID, access, refresh))
}

// Replica returns what the object answers to the data plane.
func (w *World) Replica() *store.Machine {
	w.Helper()
	m := new(store.Machine)
	if err := json.Unmarshal([]byte(w.Want(200, "snapshot", `{"have":0}`).Raw), m); err != nil {
		w.Fatal(err)
	}
	return m
}

// Open returns the secret of a connection in the replica.
func (w *World) Open(c *store.Connection, field string) string {
	w.Helper()
	s, err := w.Manager.Keyring.Open(MachineID, c.ID, field, c.Secrets[field])
	if err != nil {
		w.Fatalf("%s does not open: %v", field, err)
	}
	return s.Reveal()
}

// IDP is a token endpoint that rotates refresh tokens, and revokes all tokens
// of the grant when one is used again.
type IDP struct {
	mu           sync.Mutex
	N            int
	Refresh      string // the one that is valid
	Access       string
	Used         map[string]bool
	Calls        int
	Revocations  int
	Answer       func() (status int, body string, lost bool) // instead of a new token, once
	Lose         bool                                        // the next answer, after rotating
	During       func()                                      // runs while a call is out
	Life         string
	LastForm     url.Values
	KeepRefresh  bool
	LastEndpoint string
	Header       httpmsg.Header // of every answer
	Timeout      bool           // there is no answer in time
}

var ErrLost = fmt.Errorf("connection lost: %w", upstream.ErrNetwork)

func (p *IDP) Issue() (access, refresh string) {
	p.N++
	p.Access, p.Refresh = fmt.Sprintf("access-token-%06d", p.N), fmt.Sprintf("refresh-token-%06d", p.N)
	return p.Access, p.Refresh
}

// Reply returns the answer to a call once it is waited for.
func (p *IDP) Reply(s *fake.Seen) fake.Answer {
	return fake.Answer{Late: func() fake.Answer { return p.late(s) }}
}

func (p *IDP) late(s *fake.Seen) fake.Answer {
	form, _ := url.ParseQuery(s.Body)
	if p.During != nil {
		p.During()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Calls++
	p.LastForm, p.LastEndpoint = form, s.URL
	reply := func(status int, body string) fake.Answer {
		return fake.Answer{Status: status, Header: p.Header, Body: body}
	}
	if p.Timeout {
		return fake.Answer{Err: fmt.Errorf("token endpoint: %w", upstream.ErrTimeout)}
	}
	if p.Answer != nil {
		status, body, lost := p.Answer()
		p.Answer = nil
		if lost {
			return fake.Answer{Err: ErrLost}
		}
		return reply(status, body)
	}
	if form.Get("grant_type") == "refresh_token" {
		given := form.Get("refresh_token")
		if p.Used[given] && !p.KeepRefresh {
			p.Revocations++
			p.Refresh, p.Access = "", ""
		}
		if given == "" || given != p.Refresh {
			return reply(400, `{"error":"invalid_grant"}`)
		}
		if p.Used == nil {
			p.Used = map[string]bool{}
		}
		p.Used[given] = true
	}
	old := p.Refresh
	access, refresh := p.Issue()
	if p.KeepRefresh {
		p.Refresh = old
		refresh = ""
	}
	if p.Lose {
		p.Lose = false
		return fake.Answer{Err: ErrLost}
	}
	life := p.Life
	if life == "" {
		life = "3600"
	}
	return reply(200, fmt.Sprintf(`{"access_token":%q,"refresh_token":%q,"expires_in":%s}`, access, refresh, life))
}

// At runs an operation of any machine, and returns status and answer.
func (w *World) At(id, op, body string) (int, gjson.Result) {
	w.Helper()
	status, answer, err := w.Loc.Call(w.Ctx, id, op, []byte(body))
	if err != nil {
		w.Fatal(err)
	}
	return status, gjson.ParseBytes(answer)
}

// Write stores a row of a machine as it is.
func (w *World) Write(id, key, value string) {
	st := w.Loc.Storage(id)
	st.Write([]storage.Row{{Key: key, Value: []byte(value)}}, storage.KeepAlarm)
	st.Flush()
}

// Connection returns a connection of a replica, nil without it.
func Connection(m *store.Machine, id string) *store.Connection {
	for i := range m.Connections {
		if m.Connections[i].ID == id {
			return &m.Connections[i]
		}
	}
	return nil
}

// Request returns the JSON of a request in a report.
func Request(i int) string {
	failed, status := "", 200
	if i%10 == 0 {
		failed, status = `,"failed":[{"connectionId":"c1","status":429,"text":"slow down"}]`, 429
	}
	return fmt.Sprintf(`{"id":"req_%d","at":%d,"keyId":"k%d","endpoint":"/v1/embeddings","asked":"fast","model":"openai/m%d","connectionId":"c1","status":%d,"latencyMs":5,"attempts":1%s}`, i, i, i%2, i%3, status, failed)
}

// RefreshBody returns the body of the operation "refresh".
func RefreshBody(id string, generation int64) string {
	return fmt.Sprintf(`{"connectionId":"%s","tokenGeneration":%d}`, id, generation)
}

// Digest returns a digest of its own for each number.
func Digest(n int) string { return fmt.Sprintf("%064x", n) }

// WithFlows lets accounts of OAuthID sign in.
func (w *World) WithFlows() {
	p := &w.Manager.OAuth[0]
	p.AuthorizeURL, p.DeviceURL, p.BaseURL, p.Name = "https://login.example.com/authorize", "https://login.example.com/device", "https://api.example.com/v1", "Acme"
}

// Ticket and Redirect are those of the browser of a sign-in.
const (
	Ticket   = "ticket-0123456789-of-a-browser"
	Redirect = "https://weir.example.com/oauth/callback"
)

// Lease creates a lease and returns it.
func (w *World) Lease(set ...func(*rpc.ManageCall)) string {
	w.Helper()
	return w.OK("POST", "/api/setup", `{"tool":"codex","model":"openai/gpt-4o-mini"}`, set...).Get("lease").Str
}

// OAuthCall makes a call of a sign-in.
func (w *World) OAuthCall(step, body, keyID string) (int, gjson.Result) {
	w.Helper()
	raw, _ := json.Marshal(rpc.ManageCall{
		Method: "POST", Route: "/api/oauth/{provider}/" + step, Params: []string{OAuthID},
		Body: json.RawMessage(body), KeyID: keyID, Session: Ticket, RedirectURI: Redirect,
	})
	return w.Call("manage", string(raw))
}

// BeginSignIn begins a sign-in and returns its state.
func (w *World) BeginSignIn(body, keyID string) string {
	w.Helper()
	status, a := w.OAuthCall("authorize", body, keyID)
	if status != 200 {
		w.Fatal(a.Raw)
	}
	u, err := url.Parse(a.Get("body.url").Str)
	if err != nil || u.Query().Get("state") != a.Get("body.state").Str {
		w.Fatal(a.Raw)
	}
	return a.Get("body.state").Str
}
