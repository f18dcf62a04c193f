package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

var keySecret = []byte("0123456789abcdef0123456789abcdef")

const (
	mid   = "abcdefgh01234567"
	other = "zzzzzzzz01234567"
)

const adminToken = "operator-token-operator-token-123"

// loader has machines, and counts the look-ups.
type loader struct {
	known  int // of gets, by Known
	have   map[string]*store.Machine
	newer  map[string]*store.Machine // what Confirm and a due Revalidate find
	err    error
	gets   []string
	forced int
	due    bool
}

func (l *loader) InMemory(string) *snapshot.Machine { return nil }

// Known is called for machine ids that may be forged.
func (l *loader) Known(ctx context.Context, id string) (*snapshot.Machine, error) {
	l.known++
	return l.Get(ctx, id)
}

func (l *loader) Get(_ context.Context, id string) (*snapshot.Machine, error) {
	l.gets = append(l.gets, id)
	if l.err != nil {
		return nil, l.err
	}
	if m := l.have[id]; m != nil {
		return snapshot.New(m), nil
	}
	return nil, snapshot.ErrUnknown
}

// Revalidate makes the newer machines known, as for a snapshot that is due.
func (l *loader) Revalidate(_ context.Context, id string) {
	if m := l.newer[id]; m != nil && l.due {
		l.have[id] = m
	}
}

func (l *loader) Confirm(ctx context.Context, id string) (*snapshot.Machine, error) {
	l.forced++
	if m := l.newer[id]; m != nil {
		return snapshot.New(m), nil
	}
	return l.Get(ctx, id)
}

var now = time.UnixMilli(1_800_000_000_000)

type keys struct {
	loader
	data, manage, both, revoked, expired, foreign, fresh, unknown, noMachine, wrongCheck string
	auth                                                                                 Authenticator
}

const oldKey = "sk-old0123456789"

func newKeys(t *testing.T) *keys {
	k := &keys{loader: loader{have: map[string]*store.Machine{}, newer: map[string]*store.Machine{}}}
	mint := func(machine string, rec store.Key) string {
		s, key, err := rpc.MintKey(rand.Reader, keySecret, machine)
		if err != nil {
			t.Fatal(err)
		}
		if k.have[machine] == nil {
			k.have[machine] = &store.Machine{ID: machine}
		}
		rec.ID, rec.Digest = key.ID, key.Digest
		k.have[machine].Keys = append(k.have[machine].Keys, rec)
		return s
	}
	at := now.UnixMilli()
	k.data = mint(mid, store.Key{ExpiresAt: at + 1})
	k.manage = mint(mid, store.Key{Scopes: []string{"manage"}})
	k.both = mint(mid, store.Key{Scopes: []string{"data", "manage"}})
	k.revoked = mint(mid, store.Key{RevokedAt: 1})
	k.expired = mint(mid, store.Key{ExpiresAt: at})
	k.foreign = mint(other, store.Key{Scopes: []string{"data", "manage"}})
	old := Digest(oldKey)
	k.have[mid].Keys = append(k.have[mid].Keys, store.Key{ID: "old", Digest: fmt.Sprintf("%x", old[:])})
	var fresh store.Key
	k.fresh, fresh, _ = rpc.MintKey(rand.Reader, keySecret, mid)
	newer := *k.have[mid]
	newer.Keys = append([]store.Key{{ID: "fresh", Digest: fresh.Digest}}, newer.Keys...)
	k.newer[mid] = &newer
	k.unknown, _, _ = rpc.MintKey(rand.Reader, keySecret, mid)
	k.noMachine, _, _ = rpc.MintKey(rand.Reader, keySecret, "nomachine0123456")
	k.wrongCheck, _, _ = rpc.MintKey(rand.Reader, []byte("another"), mid)
	k.auth = Authenticator{KeySecret: keySecret, AdminToken: Digest(adminToken), RequireKey: true, Machines: k, Now: func() time.Time { return now }}
	return k
}

func bearer(key string) httpmsg.Header {
	if key == "" {
		return nil
	}
	return httpmsg.Header{{Name: "authorization", Value: "Bearer " + key}}
}

// outcome is the status, and on success whose call it is.
func outcome(c *Call, err error) string {
	var e *apierr.Error
	switch {
	case errors.As(err, &e):
		return fmt.Sprint(e.Status)
	case err != nil:
		return err.Error()
	case c.Operator:
		return "operator of " + c.MachineID
	case c.Machine == nil:
		return "nobody"
	case c.Machine.ID != c.MachineID:
		return "machine and id differ"
	}
	return c.MachineID
}

func TestWhoMayCall(t *testing.T) {
	ctx := context.Background()
	k := newKeys(t)
	tests := []struct {
		name, key, path    string
		data, list, manage string
		open               string // Data where no key is required
	}{
		{"no key", "", "", "401", "401", "401", "401"},
		{"no key, machine in the path", "", mid, "401", "401", "401", mid},
		{"no key, unknown machine", "", "nomachine0123456", "401", "401", "401", "401"},
		{"no key, no machineId in the path", "", "../machine", "401", "401", "401", "401"},
		{"malformed", "garbage", mid, "401", "401", "401", "401"},
		{"wrong check", k.wrongCheck, "", "401", "401", "401", "401"},
		{"unknown machine", k.noMachine, "", "401", "401", "401", "401"},
		{"key not of that machine", k.unknown, "", "401", "401", "401", "401"},
		{"revoked", k.revoked, "", "401", "401", "401", "401"},
		{"expired", k.expired, "", "401", "401", "401", "401"},
		{"data key", k.data, "", mid, mid, "403", mid},
		{"data key, own path", k.data, mid, mid, mid, "403", mid},
		{"data key, path of another", k.data, other, mid, mid, "401", mid},
		{"data key, path of nobody", k.data, "nomachine0123456", mid, mid, "401", mid},
		{"manage key", k.manage, "", "403", "403", mid, "403"},
		{"manage key, own path", k.manage, mid, "403", "403", mid, "403"},
		{"manage key, path of another", k.manage, other, "403", "403", "401", "403"},
		{"key with both scopes", k.both, "", mid, mid, mid, mid},
		{"manage key of another machine", k.foreign, mid, other, other, "401", other},
		{"key made a moment ago", k.fresh, "", mid, mid, "403", mid},
		{"old key, bare", oldKey, "", "400", "400", "400", "400"},
		{"old key, its machine", oldKey, mid, mid, mid, "403", mid},
		{"old key, another machine", oldKey, other, "401", "401", "401", "401"},
		{"old key, no machineId in the path", oldKey, "x", "401", "401", "401", "401"},
		{"operator", adminToken, mid, "401", "401", "operator of " + mid, "401"},
		{"operator, machine that may not exist", adminToken, "nomachine0123456", "401", "401", "operator of nomachine0123456", "401"},
		{"operator, no machine", adminToken, "", "401", "401", "400", "401"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := func(form, want string, c *Call, err error) {
				t.Helper()
				if got := outcome(c, err); got != want {
					t.Errorf("%s: got %s, want %s", form, got, want)
				}
			}
			r := &httpmsg.Request{Path: "/v1/embeddings", Header: bearer(tt.key)}
			a := k.auth
			c, err := a.Data(ctx, r, tt.path)
			want("data", tt.data, c, err)
			c, err = a.List(ctx, r, tt.path)
			want("list", tt.list, c, err)
			c, err = a.Manage(ctx, r, tt.path)
			want("manage", tt.manage, c, err)
			c, err = a.Operator(ctx, r, tt.path)
			if tt.key == adminToken {
				want("operator", "operator of "+tt.path, c, err)
			} else {
				want("operator", "401", c, err)
			}
			a.RequireKey = false
			c, err = a.Data(ctx, r, tt.path)
			want("no key required", tt.open, c, err)
			c, err = a.Manage(ctx, r, tt.path)
			want("management always needs one", tt.manage, c, err)
		})
	}
}

// A provider's own key may have the form of a key without a machine: that it is not one of this
// gateway comes first.
func TestProvidersOwnKeyIsCalledUnknown(t *testing.T) {
	_, err := newKeys(t).auth.Data(context.Background(), &httpmsg.Request{Path: "/v1/models", Header: bearer("sk-0123456789abcdef0123456789abcdef")}, "")
	const want = "This gateway finds no such API key: send one that it has issued, not a provider's own. " +
		"A key of this form without its machine in it needs that in the path: /{machineId}/v1/models."
	if e := (*apierr.Error)(nil); !errors.As(err, &e) || e.Code != "machine_required" || e.Message != want {
		t.Errorf("%v", err)
	}
}

func TestListIsOpenWithoutAMachineWhereNoKeyIsRequired(t *testing.T) {
	k := newKeys(t)
	k.auth.RequireKey = false
	c, err := k.auth.List(context.Background(), &httpmsg.Request{}, "")
	if got := outcome(c, err); got != "nobody" || len(k.gets) != 0 {
		t.Errorf("got %s after %d reads", got, len(k.gets))
	}
	c, err = k.auth.List(context.Background(), &httpmsg.Request{Header: bearer("garbage")}, "")
	if got := outcome(c, err); got != "401" {
		t.Errorf("with a bad key: got %s, want 401", got)
	}
}

// No refusal shows which machines and keys exist. Who has a valid key may know what it lacks.
func TestEveryWrongKeyGetsOneBody(t *testing.T) {
	k := newKeys(t)
	ctx := context.Background()
	admit := map[string]func(context.Context, *httpmsg.Request, string) (*Call, error){
		"data": k.auth.Data, "list": k.auth.List, "manage": k.auth.Manage, "operator": k.auth.Operator,
	}
	for name, key := range map[string]string{
		"check": k.wrongCheck, "machine": k.noMachine, "unknown": k.unknown, "revoked": k.revoked, "expired": k.expired, "data scope": k.data, "manage scope": k.manage,
		"key of another machine": k.foreign, "old form": "sk-notofthatmachine",
	} {
		for plane, f := range admit {
			c, err := f(ctx, &httpmsg.Request{Header: bearer(key)}, mid)
			want := rpc.ErrInvalidKey()
			if plane == "operator" {
				want = rpc.ErrNeedsToken()
			}
			if allowed := key == k.data && (plane == "data" || plane == "list") || key == k.manage && plane == "manage" ||
				key == k.foreign && (plane == "data" || plane == "list"); allowed {
				if err != nil || c == nil {
					t.Errorf("%s on %s: %v", name, plane, err)
				}
			} else if strings.HasSuffix(name, "scope") && plane != "operator" {
				has, _, _ := strings.Cut(name, " ")
				needs := map[string]string{"data": "data", "list": "data", "manage": "manage"}[plane]
				if text := "This key has the scope " + has + "; this needs " + needs; outcome(c, err) != "403" || !strings.Contains(err.Error(), text) {
					t.Errorf("%s on %s: got %v", name, plane, err)
				}
			} else if !reflect.DeepEqual(err, error(want)) {
				t.Errorf("%s on %s: got %#v, want %#v", name, plane, err, want)
			}
		}
	}
}

// A hint depends on the form of the credential alone.
func TestRefusalNamesFormOfCredential(t *testing.T) {
	k := newKeys(t)
	ctx := context.Background()
	field := func(name, value string) httpmsg.Header { return httpmsg.Header{{Name: name, Value: value}} }
	long := strings.Repeat("x", rpc.MaxKey+1)
	for _, tt := range []struct {
		name   string
		header httpmsg.Header
		want   *apierr.Error
	}{
		{"nothing", nil, rpc.ErrNoKey()},
		{"an empty Bearer", field("authorization", "Bearer "), rpc.ErrNoKey()},
		{"a key without Bearer", field("authorization", k.data), rpc.ErrNotBearer()},
		{"another scheme", field("authorization", "Basic "+k.data), rpc.ErrNotBearer()},
		{"a header that is too long", field("authorization", "Bearer "+long), rpc.ErrNotBearer()},
		{"a provider's key", bearer("sk-proj-0123456789abcdef"), rpc.ErrNotKey()},
		{"a provider's key in x-api-key", field("x-api-key", "sk-ant-api03-0123456789"), rpc.ErrNotKey()},
		{"an x-api-key that is too long", field("x-api-key", long), rpc.ErrNotKey()},
		{"text", bearer("garbage"), rpc.ErrNotKey()},
		{"the operator token", bearer(adminToken), rpc.ErrNotKey()},
	} {
		for plane, f := range map[string]func(context.Context, *httpmsg.Request, string) (*Call, error){
			"data": k.auth.Data, "list": k.auth.List, "manage": k.auth.Manage, "operator": k.auth.Operator,
		} {
			if tt.header.Get("authorization") == "Bearer "+adminToken && (plane == "manage" || plane == "operator") {
				continue
			}
			tt := tt
			if tt.want.Message == rpc.ErrNotKey().Message && (plane == "manage" || plane == "operator") {
				tt.want = rpc.ErrNotToken()
			}
			k.gets = nil
			if _, err := f(ctx, &httpmsg.Request{Header: tt.header}, ""); !reflect.DeepEqual(err, error(tt.want)) || len(k.gets) != 0 {
				t.Errorf("%s on %s without a path: got %v, want %v; %d machines were read", tt.name, plane, err, tt.want, len(k.gets))
			}
			if _, err := f(ctx, &httpmsg.Request{Header: tt.header}, mid); !reflect.DeepEqual(err, error(tt.want)) {
				t.Errorf("%s on %s: got %v, want %v", tt.name, plane, err, tt.want)
			}
		}
	}
	if k.forced != 0 {
		t.Errorf("%d revalidations", k.forced)
	}
	texts := map[string]bool{}
	for _, e := range []*apierr.Error{rpc.ErrNoKey(), rpc.ErrNotBearer(), rpc.ErrNotKey(), rpc.ErrInvalidKey(),
		rpc.ErrNotToken(), rpc.ErrNeedsToken()} {
		if texts[e.Message] = true; e.Status != 401 || e.Code != "invalid_api_key" {
			t.Errorf("%v: status %d, code %s", e, e.Status, e.Code)
		}
	}
	if len(texts) != 6 {
		t.Errorf("%d texts, want 6", len(texts))
	}
}

func TestNothingIsReadForAKeyWithAWrongCheck(t *testing.T) {
	k := newKeys(t)
	for _, key := range []string{k.wrongCheck, "' OR 1=", "../", "\x00", "sk-" + string(make([]byte, 1<<20))} {
		if _, err := k.auth.Data(context.Background(), &httpmsg.Request{Header: bearer(key)}, other); outcome(nil, err) != "401" {
			t.Errorf("%.20q: got %v", key, err)
		}
	}
	if len(k.gets)+k.forced != 0 {
		t.Errorf("%d reads, want none", len(k.gets)+k.forced)
	}
}

// A seed document may have keys of any form, which are those of its machine alone.
func TestSeededKeyOfAnyFormIsAdmittedByPath(t *testing.T) {
	for _, key := range []string{"my-own-gateway-key", "sk-short1", "sk-with.dots", "two words"} {
		k := newKeys(t)
		sum := Digest(key)
		k.have[mid].Keys = append(k.have[mid].Keys, store.Key{ID: "seeded", Digest: fmt.Sprintf("%x", sum[:])})
		for path, want := range map[string]error{mid: nil, other: rpc.ErrNotKey(), "": rpc.ErrNotKey(), "nosuchmachine001": rpc.ErrNotKey()} {
			_, err := k.auth.Data(context.Background(), &httpmsg.Request{Header: bearer(key)}, path)
			if !reflect.DeepEqual(err, want) {
				t.Errorf("%s at %q: got %v, want %v", key, path, err, want)
			}
		}
		if k.known != 3 || k.forced != 0 {
			t.Errorf("%s: %d machines were looked for as possibly forged, want 3; %d revalidations", key, k.known, k.forced)
		}
	}
}

func TestOldKeyForcesNoRevalidation(t *testing.T) {
	k := newKeys(t)
	k.auth.Data(context.Background(), &httpmsg.Request{Header: bearer("sk-notofthatmachine")}, mid)
	if k.forced != 0 {
		t.Errorf("anybody can make keys of that form: %d revalidations", k.forced)
	}
}

// An old key of a document that replaced another was refused for as long as the
// machine saw no other call.
func TestOldKeyIsFoundInASnapshotThatWasDue(t *testing.T) {
	for _, due := range []bool{false, true} {
		k := newKeys(t)
		k.due = due
		rec := *k.have[mid]
		rec.Keys = []store.Key{{ID: "seeded", Digest: rpc.KeyDigest("sk-newlyseeded1")}}
		k.newer = map[string]*store.Machine{mid: &rec}
		_, err := k.auth.Data(context.Background(), &httpmsg.Request{Header: bearer("sk-newlyseeded1")}, mid)
		if (err == nil) != due {
			t.Errorf("due %v: %v", due, err)
		}
	}
}

func TestStoreDownIsNot401(t *testing.T) {
	k := newKeys(t)
	k.err = apierr.New(503, "unavailable", "down")
	c, err := k.auth.Data(context.Background(), &httpmsg.Request{Header: bearer(k.data)}, "")
	if got := outcome(c, err); got != "503" {
		t.Errorf("got %s, want 503", got)
	}
}

// The check digits of a key are computed once for a snapshot. Everything else is judged
// for each call.
func TestCheckedKeyIsJudgedForEachCall(t *testing.T) {
	text, key, _ := rpc.MintKey(rand.Reader, keySecret, mid)
	forged, wrong, _ := rpc.MintKey(rand.Reader, []byte("another"), mid)
	admitted := func(change func(a *Authenticator, m *snapshot.Machine)) bool {
		m := snapshot.New(&store.Machine{ID: mid, Keys: []store.Key{{ID: key.ID, Digest: key.Digest}, {ID: wrong.ID, Digest: wrong.Digest}}})
		a := Authenticator{KeySecret: keySecret, RequireKey: true, Machines: one{m}, Now: func() time.Time { return now }}
		r := &httpmsg.Request{Header: bearer(text)}
		for range 2 {
			if c, err := a.Data(t.Context(), r, ""); err != nil || c.Key.ID != key.ID || c.Machine != m {
				t.Fatalf("before: got %v, %v", c, err)
			}
		}
		change(&a, m)
		c, err := a.Data(t.Context(), r, "")
		if _, err := a.Data(t.Context(), &httpmsg.Request{Header: bearer(forged)}, ""); outcome(nil, err) != "401" {
			t.Errorf("a key with wrong check digits: got %v", err)
		}
		return err == nil && c.Key.ID == key.ID
	}
	for _, tt := range []struct {
		name   string
		change func(a *Authenticator, m *snapshot.Machine)
		want   bool
	}{
		{"nothing", func(*Authenticator, *snapshot.Machine) {}, true},
		{"the check is not computed again", func(a *Authenticator, _ *snapshot.Machine) { a.KeySecret = []byte("another secret") }, true},
		{"but for the next snapshot", func(a *Authenticator, m *snapshot.Machine) {
			a.KeySecret, a.Machines = []byte("another secret"), one{snapshot.New(m.Machine)}
		}, false},
		{"revoked", func(_ *Authenticator, m *snapshot.Machine) { m.Keys[0].RevokedAt = 1 }, false},
		{"paused", func(_ *Authenticator, m *snapshot.Machine) { m.Keys[0].PausedAt = 1 }, false},
		{"expired", func(a *Authenticator, m *snapshot.Machine) { m.Keys[0].ExpiresAt = now.UnixMilli() }, false},
		{"without the scope", func(_ *Authenticator, m *snapshot.Machine) { m.Keys[0].Scopes = []string{"manage"} }, false},
		{"removed", func(a *Authenticator, m *snapshot.Machine) {
			a.Machines = one{snapshot.New(&store.Machine{ID: mid, Keys: m.Keys[1:]})}
		}, false},
	} {
		if got := admitted(tt.change); got != tt.want {
			t.Errorf("%s: admitted %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The text that a rotation has replaced is valid until its time, in every snapshot and
// for sockets that are open.
func TestEarlierTextOfAKey(t *testing.T) {
	old, was, _ := rpc.MintKey(rand.Reader, keySecret, mid)
	text, is, _ := rpc.MintKey(rand.Reader, keySecret, mid)
	until := now.UnixMilli() + 1000
	rec := store.Key{ID: was.ID, Digest: is.Digest, Earlier: &store.EarlierKey{Digest: was.Digest, Until: until}}
	m := snapshot.New(&store.Machine{ID: mid, Keys: []store.Key{rec}})
	at := now
	a := Authenticator{KeySecret: keySecret, RequireKey: true, Machines: one{m}, Now: func() time.Time { return at }}
	call := func(text string) (*Call, string) {
		c, err := a.Data(t.Context(), &httpmsg.Request{Header: bearer(text)}, "")
		return c, outcome(c, err)
	}
	socket, _ := call(old)
	for range 2 { // the second call is one of a checked key
		for _, text := range []string{old, text} {
			if c, got := call(text); got != mid || c.Key.ID != was.ID || c.KeyDigest != Digest(text) {
				t.Errorf("within the overlap: got %s", got)
			}
		}
	}
	if !a.Live(t.Context(), socket) {
		t.Error("a socket was ended within the overlap")
	}
	at = at.Add(time.Second)
	if _, got := call(old); got != "401" {
		t.Errorf("the earlier text after its time: got %s", got)
	}
	if _, got := call(text); got != mid {
		t.Errorf("the current text: got %s", got)
	}
	if a.Live(t.Context(), socket) {
		t.Error("a socket of the earlier text stays open")
	}
}

func TestPausedKeyIsNamed(t *testing.T) {
	text, key, _ := rpc.MintKey(rand.Reader, keySecret, mid)
	rec := store.Key{ID: key.ID, Digest: key.Digest, PausedAt: 1, Scopes: []string{"data", "manage"}}
	refusal := func(change func(k *store.Key)) string {
		k := rec
		change(&k)
		a := Authenticator{KeySecret: keySecret, RequireKey: true, Machines: one{snapshot.New(&store.Machine{ID: mid, Keys: []store.Key{k}})}, Now: func() time.Time { return now }}
		r := &httpmsg.Request{Header: bearer(text)}
		var all []string
		for _, f := range []func(context.Context, *httpmsg.Request, string) (*Call, error){a.Data, a.Key, a.Manage, a.Realtime} {
			_, err := f(t.Context(), r, mid)
			var e *apierr.Error
			if !errors.As(err, &e) {
				t.Fatal("admitted")
			}
			all = append(all, fmt.Sprint(e.Status, " ", e.Code))
		}
		return strings.Join(slices.Compact(all), ", ")
	}
	for name, tt := range map[string]struct {
		change func(k *store.Key)
		want   string
	}{
		"paused":             {func(*store.Key) {}, "403 key_paused"},
		"paused and revoked": {func(k *store.Key) { k.RevokedAt = 1 }, "401 invalid_api_key"},
		"paused and expired": {func(k *store.Key) { k.ExpiresAt = 1 }, "401 invalid_api_key"},
	} {
		if got := refusal(tt.change); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestKeyMayAskAboutItself(t *testing.T) {
	k := newKeys(t)
	for name, tt := range map[string]struct{ key, want string }{
		"data": {k.data, mid}, "both": {k.both, mid},
		"manage": {k.manage, "403"}, "revoked": {k.revoked, "401"}, "none": {"", "401"},
	} {
		c, err := k.auth.Key(t.Context(), &httpmsg.Request{Header: bearer(tt.key)}, mid)
		if got := outcome(c, err); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestWhereTheKeyIsRead(t *testing.T) {
	k := newKeys(t)
	const auth, x, goog = "authorization", "x-api-key", "x-goog-api-key"
	for _, tt := range []struct {
		name string
		h    httpmsg.Header
		want string
	}{
		{"bearer", httpmsg.Header{{Name: auth, Value: "Bearer " + k.data}}, mid},
		{"scheme in any case", httpmsg.Header{{Name: auth, Value: "bEARER " + k.data}}, mid},
		{"spaces around", httpmsg.Header{{Name: auth, Value: "Bearer  " + k.data + " "}}, mid},
		{"x-api-key", httpmsg.Header{{Name: x, Value: k.data}}, mid},
		{"both alike", httpmsg.Header{{Name: x, Value: k.data}, {Name: auth, Value: "Bearer " + k.data}}, mid},
		{"authorization goes before", httpmsg.Header{{Name: x, Value: k.data}, {Name: auth, Value: "Bearer " + k.foreign}}, other},
		{"a bad authorization too", httpmsg.Header{{Name: x, Value: k.data}, {Name: auth, Value: "Bearer garbage"}}, "401"},
		{"another scheme", httpmsg.Header{{Name: x, Value: k.data}, {Name: auth, Value: "Basic " + k.data}}, "401"},
		{"empty bearer is none", httpmsg.Header{{Name: x, Value: k.data}, {Name: auth, Value: "Bearer "}}, mid},
		{"no scheme", httpmsg.Header{{Name: auth, Value: k.data}}, "401"},
		{"bearer in x-api-key", httpmsg.Header{{Name: x, Value: "Bearer " + k.data}}, "401"},
		{"two keys in one field", httpmsg.Header{{Name: auth, Value: "Bearer " + k.data + ", Bearer " + k.data}}, "401"},
		{"x-goog-api-key", httpmsg.Header{{Name: goog, Value: k.data}}, mid},
		{"x-api-key goes before", httpmsg.Header{{Name: goog, Value: k.data}, {Name: x, Value: k.foreign}}, other},
		{"an empty x-api-key does not count", httpmsg.Header{{Name: goog, Value: k.data}, {Name: x, Value: " "}}, mid},
		{"an empty x-goog-api-key does not count", httpmsg.Header{{Name: goog, Value: ""}}, "401"},
		{"long x-goog-api-key", httpmsg.Header{{Name: goog, Value: k.data + strings.Repeat(" ", 4096)}}, "401"},
		{"other fields", httpmsg.Header{{Name: "api-key", Value: k.data}, {Name: "x-forwarded-for", Value: "127.0.0.1"}}, "401"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := outcome(k.auth.Data(context.Background(), &httpmsg.Request{Header: tt.h}, "")); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAllowsModel(t *testing.T) {
	k := &store.Key{Models: []string{"openai/gpt-5", "anthropic/*", "best"}}
	for id, want := range map[string]bool{"openai/gpt-5": true, "openai/gpt-5-mini": false, "anthropic/claude": true,
		"anthropic": false, "best": true, "": false, "best2": false} {
		if got := AllowsModel(k, id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
	// The names for Claude Code's discovery allow no more than the plain ones do.
	k.Models = []string{"claude*", "openai/gpt-5"}
	for id, want := range map[string]bool{"claude-haiku-4-5": true, "claude-weir/openai/gpt-5": true, "claude-weir/openai/gpt-4o": false,
		"claude-weir/claude-weir/openai/gpt-4o": false, "claude-weir/": false} {
		if got := AllowsModel(k, id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
	if !AllowsModel(nil, "a/b") || !AllowsModel(&store.Key{}, "a/b") || !AllowsModel(&store.Key{Models: []string{"*"}}, "a/b") {
		t.Error("no list, no key and * allow everything")
	}
}

func TestUnsetAdminTokenOpensNothing(t *testing.T) {
	a := Authenticator{Now: func() time.Time { return now }}
	for _, key := range []string{"", "x"} {
		if _, err := a.Operator(context.Background(), &httpmsg.Request{Header: bearer(key)}, ""); outcome(nil, err) != "401" {
			t.Errorf("%q: got %v", key, err)
		}
	}
}

func BenchmarkData(b *testing.B) {
	s, k, _ := rpc.MintKey(rand.Reader, keySecret, mid)
	m := snapshot.New(&store.Machine{ID: mid, Keys: []store.Key{{Digest: k.Digest}}})
	a := Authenticator{KeySecret: keySecret, RequireKey: true, Machines: one{m}, Now: func() time.Time { return now }}
	r := &httpmsg.Request{Header: bearer(s)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Data(context.Background(), r, ""); err != nil {
			b.Fatal(err)
		}
	}
}

type one struct{ m *snapshot.Machine }

func (o one) Get(context.Context, string) (*snapshot.Machine, error)     { return o.m, nil }
func (o one) InMemory(string) *snapshot.Machine                          { return o.m }
func (o one) Known(context.Context, string) (*snapshot.Machine, error)   { return o.m, nil }
func (o one) Revalidate(context.Context, string)                         {}
func (o one) Confirm(context.Context, string) (*snapshot.Machine, error) { return o.m, nil }

// A forged machine id must not create an object.
func TestForgedMachineIDsAreOnlyLookedUpInKV(t *testing.T) {
	for name, key := range map[string]string{"without a key": "", "two-part key": oldKey} {
		l := &loader{}
		a := Authenticator{Machines: l, KeySecret: []byte("s"), Now: time.Now}
		r := &httpmsg.Request{Path: "/v1/models"}
		if key != "" {
			r.Header = httpmsg.Header{{Name: "authorization", Value: "Bearer " + key}}
		}
		if _, err := a.Data(context.Background(), r, "zzzzzzzz01234567"); err == nil || l.known != 1 || len(l.gets) != 1 {
			t.Errorf("%s: %v, looked %d times, %d in KV first", name, err, len(l.gets), l.known)
		}
	}
}

// A socket stays open for an hour: its caller is looked at again.
func TestCallerOfAnOpenSocket(t *testing.T) {
	k := newKeys(t)
	call := func(key string) *Call {
		c, err := k.auth.Data(context.Background(), &httpmsg.Request{Header: bearer(key)}, "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := call(k.data)
	if !k.auth.Live(context.Background(), c) {
		t.Error("a key that did not change")
	}
	k.err = errors.New("down")
	if !k.auth.Live(context.Background(), c) {
		t.Error("a machine that cannot be read")
	}
	k.err = nil
	newer := *k.have[mid]
	newer.Keys = append([]store.Key(nil), newer.Keys...)
	k.newer[mid], k.due = &newer, true
	for i := range newer.Keys {
		if newer.Keys[i].ID == c.Key.ID {
			newer.Keys[i].RevokedAt = 1
		}
	}
	if k.auth.Live(context.Background(), c) {
		t.Error("a revoked key")
	}
	newer.Keys = nil
	if k.auth.Live(context.Background(), c) {
		t.Error("a removed key")
	}
	delete(k.have, mid)
	delete(k.newer, mid)
	if k.auth.Live(context.Background(), c) {
		t.Error("a removed machine")
	}
	k.auth.RequireKey = false
	if keyless := (&Call{MachineID: other}); !k.auth.Live(context.Background(), keyless) {
		t.Error("a call without a key")
	}
}

func TestMetricsAreReadWithTheirScope(t *testing.T) {
	k := newKeys(t)
	metrics, key, err := rpc.MintKey(rand.Reader, keySecret, mid)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*store.Machine{k.have[mid], k.newer[mid]} {
		m.Keys = append(m.Keys, store.Key{ID: key.ID, Digest: key.Digest, Scopes: []string{ScopeMetrics}})
	}
	for _, tt := range []struct{ key, path, want string }{
		{adminToken, "", "operator of "}, {adminToken, mid, "operator of " + mid}, {metrics, "", mid}, {metrics, mid, mid},
		{metrics, other, "401"}, {k.both, mid, "403"}, {"", mid, "401"},
	} {
		if got := outcome(k.auth.Metrics(t.Context(), &httpmsg.Request{Header: bearer(tt.key)}, tt.path)); got != tt.want {
			t.Errorf("%.12s at %q: got %s, want %s", tt.key, tt.path, got, tt.want)
		}
	}
	if got := outcome(k.auth.Manage(t.Context(), &httpmsg.Request{Header: bearer(metrics)}, mid)); got != "403" {
		t.Errorf("management by a key for metrics: got %s", got)
	}
}
