package models

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// script is an upstream that answers calls by a part of their address.
type script struct {
	*fake.Upstream
	rules []rule
}

type rule struct {
	part   string // of the address
	answer func(*fake.Seen) fake.Answer
}

func newScript(clock *fake.Clock) *script {
	s := &script{Upstream: &fake.Upstream{Clock: clock}}
	s.Answer = func(seen *fake.Seen) fake.Answer {
		return fake.Answer{Late: func() fake.Answer { return s.late(seen) }}
	}
	return s
}

// late returns what the first rule answers that is for the address.
func (s *script) late(seen *fake.Seen) fake.Answer {
	for _, r := range s.rules {
		if strings.Contains(seen.URL, r.part) {
			return r.answer(seen)
		}
	}
	return fake.Answer{Err: upstream.ErrNetwork}
}

func (s *script) on(part string, answer func(*fake.Seen) fake.Answer) {
	s.rules = append([]rule{{part: part, answer: answer}}, s.rules...)
}

func (s *script) json(part string, status int, body string) {
	s.on(part, func(*fake.Seen) fake.Answer { return fake.Answer{Status: status, Body: body} })
}

// stall is an upstream that says nothing until the call's time is up.
func (s *script) stall(part string) { s.slow(part, time.Hour, "") }

// slow is an upstream that answers after a while.
func (s *script) slow(part string, takes time.Duration, body string) {
	s.on(part, func(*fake.Seen) fake.Answer { return fake.Answer{Takes: takes, Body: body} })
}

// to counts the calls to addresses that contain part.
func (s *script) to(part string) int {
	n := 0
	for _, r := range s.Seen {
		if strings.Contains(r.URL, part) {
			n++
		}
	}
	return n
}

// keyring returns for every connection the key "key-<id>", and a new one after
// a refresh.
type keyring struct {
	refreshed map[string]int
	cannot    bool // refresh
	signed    int
	none      map[string]bool
	expired   map[string]bool
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

func (k *keyring) Ready(_ *snapshot.Machine, conn *store.Connection) bool { return !k.expired[conn.ID] }

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
	clock *fake.Clock
	up    *script
	keys  *keyring
	rec   *store.Machine
}

func newWorld(conns ...store.Connection) *world {
	c := fake.NewClock(time.Unix(1_700_000_000, 0))
	up := newScript(c)
	keys := &keyring{}
	for i := range conns {
		if conns[i].ID == "" {
			conns[i].ID = "c" + strconv.Itoa(i+1)
		}
	}
	return &world{
		Handler: &Handler{Now: c.Now, Live: &LiveLists{Do: up, Credentials: keys, Now: c.Now}},
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
	return store.Connection{Provider: compatibleID, Data: store.ProviderData{BaseURL: base, Prefix: "c"},
		Secrets: map[string]secret.Sealed{store.APIKey: "sealed"}}
}
