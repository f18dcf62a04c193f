package models

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"weir/pkg/auth"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// clock is the time of a test; waiting for a stalled call moves it.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// script answers calls by a part of their address. It counts how many run at
// the same time.
type script struct {
	clock *clock
	rules []rule
	sent  []*upstream.Request
	open  int
	most  int
}

type rule struct {
	part   string // of the address
	answer func(*upstream.Request) (*upstream.Response, error)
	takes  time.Duration
}

func (s *script) on(part string, answer func(*upstream.Request) (*upstream.Response, error)) {
	s.rules = append([]rule{{part: part, answer: answer}}, s.rules...)
}

func (s *script) json(part string, status int, body string) {
	s.on(part, func(*upstream.Request) (*upstream.Response, error) { return reply(status, body), nil })
}

// stall is an upstream that says nothing until the call's time is up.
func (s *script) stall(part string) {
	s.rules = append([]rule{{part: part, takes: time.Hour, answer: func(*upstream.Request) (*upstream.Response, error) {
		return nil, upstream.ErrTimeout
	}}}, s.rules...)
}

// slow is an upstream that answers after a while.
func (s *script) slow(part string, takes time.Duration, body string) {
	s.rules = append([]rule{{part: part, takes: takes, answer: func(r *upstream.Request) (*upstream.Response, error) {
		if takes > r.Timeout {
			return nil, upstream.ErrTimeout
		}
		return reply(200, body), nil
	}}}, s.rules...)
}

func (s *script) Start(_ context.Context, req *upstream.Request) upstream.Pending {
	s.sent = append(s.sent, req)
	s.open++
	s.most = max(s.most, s.open)
	return &pending{s: s, req: req, begun: s.clock.now}
}

// to counts the calls to addresses that contain part.
func (s *script) to(part string) int {
	n := 0
	for _, r := range s.sent {
		if strings.Contains(r.URL, part) {
			n++
		}
	}
	return n
}

type pending struct {
	s     *script
	req   *upstream.Request
	begun time.Time
}

func (p *pending) Wait() (*upstream.Response, error) {
	p.s.open--
	for _, r := range p.s.rules {
		if !strings.Contains(p.req.URL, r.part) {
			continue
		}
		if r.takes > 0 {
			if end := p.begun.Add(min(r.takes, p.req.Timeout)); end.After(p.s.clock.now) {
				p.s.clock.now = end
			}
		}
		resp, err := r.answer(p.req)
		if err == nil && p.req.MaxBody > 0 {
			b, rerr := stream.ReadAll(resp.Body, p.req.MaxBody)
			if rerr != nil {
				return nil, rerr
			}
			resp.Body = stream.FromBytes(b)
		}
		return resp, err
	}
	return nil, upstream.ErrNetwork
}

func reply(status int, body string) *upstream.Response {
	return &upstream.Response{Status: status, Body: stream.FromString(body)}
}

// keyring returns for every connection the key "key-<id>", and a new one after
// a refresh.
type keyring struct {
	refreshed map[string]int
	cannot    bool // refresh
	signed    int
	none      map[string]bool
}

func (k *keyring) Credential(_ context.Context, _ *snapshot.Machine, conn *store.Connection) (provider.Credential, error) {
	if k.none[conn.ID] {
		return provider.Credential{}, nil
	}
	if conn.AuthType == "aws" {
		return provider.Credential{APIKey: secret.New("AKIA"), SecretAccessKey: secret.New("s")}, nil
	}
	return provider.Credential{APIKey: secret.New("key-" + conn.ID)}, nil
}

func (k *keyring) Refreshed(_ context.Context, _ *snapshot.Machine, conn *store.Connection, _ provider.Credential) (provider.Credential, error) {
	if k.cannot {
		return provider.Credential{}, errors.New("no refresh token")
	}
	if k.refreshed == nil {
		k.refreshed = map[string]int{}
	}
	k.refreshed[conn.ID]++
	return provider.Credential{APIKey: secret.New("fresh" + strconv.Itoa(k.refreshed[conn.ID]))}, nil
}

func (k *keyring) Sign(req *upstream.Request, _ *provider.Descriptor, _ *store.Connection, _ provider.Credential) error {
	k.signed++
	req.Header.Add("authorization", "AWS4-HMAC-SHA256 …")
	return nil
}

// world is a handler with everything around it.
type world struct {
	*Handler
	clock *clock
	up    *script
	keys  *keyring
	rec   *store.Machine
}

func newWorld(conns ...store.Connection) *world {
	c := &clock{time.Unix(1_700_000_000, 0)}
	up := &script{clock: c}
	keys := &keyring{}
	for i := range conns {
		if conns[i].ID == "" {
			conns[i].ID = "c" + strconv.Itoa(i+1)
		}
	}
	return &world{
		Handler: &Handler{Now: c.Now, Live: &Lives{Do: up, Credentials: keys, Now: c.Now}},
		clock:   c, up: up, keys: keys,
		rec: &store.Machine{Version: 1, ID: "m000000000000000", Generation: 1, Connections: conns},
	}
}

// call is a caller's request; header are pairs.
func (w *world) call(query string, header ...string) *auth.Call {
	c := &auth.Call{Request: &httpmsg.Request{Method: "GET", Query: query}, Machine: snapshot.New(w.rec), MachineID: w.rec.ID}
	for i := 0; i+1 < len(header); i += 2 {
		c.Header.Add(header[i], header[i+1])
	}
	return c
}

// body reads an answer whole and runs what comes after it.
func body(resp *httpmsg.Response, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	b, _ := stream.ReadAll(resp.Body, 64<<20)
	for _, f := range resp.After {
		f(context.Background())
	}
	return string(b)
}

const compatibleID, anthropicID = "openai-compatible-0123abcd", "anthropic-compatible_0123abcd"

func compat(base string) store.Connection {
	return store.Connection{Provider: compatibleID, Data: store.ProviderData{BaseURL: base, Prefix: "c"}}
}
