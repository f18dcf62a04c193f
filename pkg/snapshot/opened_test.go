package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// inMemory returns texts made at run time, as decryption does.
func inMemory(text string) secret.Secret { return secret.New(strings.Clone(text)) }

func zeros(s string) bool { return strings.Trim(s, "\x00") == "" }

var bearer = &provider.Descriptor{ID: "openai"}

// open opens the credential of the first connection and presents it. It returns all
// texts that hold it.
func open(t *testing.T, m *Machine) []string {
	t.Helper()
	conn := &m.Connections[0]
	o := m.Opened(conn, "")
	if o == nil {
		o = m.Open(conn, "", provider.Credential{
			APIKey: inMemory("the-api-key"), AccessKeyID: inMemory("the-id"), SecretAccessKey: inMemory("the-access-key"),
			SessionToken: inMemory("the-session"), ServiceAccount: inMemory(`{"private_key":"x"}`), AccessToken: inMemory("the-token"),
		})
	}
	var h httpmsg.Header
	if err := o.Authorize(&h, bearer, nil, conn); err != nil || h.Get("authorization") != "Bearer the-api-key" {
		t.Fatalf("got %v, %v", h, err)
	}
	c := &o.Credential
	return []string{
		h.Get("authorization"), c.APIKey.Reveal(), c.AccessKeyID.Reveal(), c.SecretAccessKey.Reveal(), c.SessionToken.Reveal(), c.ServiceAccount.Reveal(), c.AccessToken.Reveal(),
	}
}

// Opened secrets live as long as their snapshot, and as the requests that hold it.
func TestOpenedSecretsAreWipedWithTheirSnapshot(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"replaced": func(w *world) {
			w.obj.state.Generation++
			w.now = w.now.Add(10 * time.Second)
			w.cache.Revalidate(t.Context(), mid)
		},
		"deleted": func(w *world) {
			w.obj.state = nil
			w.now = w.now.Add(10 * time.Second)
			w.cache.Revalidate(t.Context(), mid)
		},
		"changed here": func(w *world) {
			w.obj.state.Generation++
			w.cache.Invalidate(mid)
			w.cache.Get(t.Context(), mid)
		},
		"evicted": func(w *world) {
			w.cache.Max = 1
			w.obj.state.ID = "zzzzzzzz01234567"
			w.cache.Get(t.Context(), w.obj.state.ID)
		},
	} {
		w := newWorld(t)
		w.obj.state = &store.Machine{Version: Version, ID: mid, Generation: 1, Connections: []store.Connection{{ID: "a", Provider: "openai"}}}
		m, err := w.cache.Get(t.Context(), mid)
		if err != nil {
			t.Fatal(err)
		}
		m.Hold()
		m.Hold()
		texts := open(t, m)
		if again := open(t, m); unsafe.StringData(again[0]) != unsafe.StringData(texts[0]) {
			t.Errorf("%s: the header field is built again", name)
		}
		m.Release()
		end(w)
		for _, s := range texts {
			if zeros(s) {
				t.Errorf("%s: wiped while a request holds the snapshot", name)
			}
		}
		m.Release()
		for i, s := range texts {
			if !zeros(s) {
				t.Errorf("%s: text %d is left", name, i)
			}
		}
		m.Hold()
		open(t, m)
		if m.Release(); m.Opened(&m.Connections[0], "") != nil {
			t.Errorf("%s: a discarded snapshot keeps secrets", name)
		}
	}
}

// A token that was renewed takes the place of the one before, which calls may still use.
func TestRenewedTokenReplacesTheOldOne(t *testing.T) {
	m := New(&store.Machine{ID: mid, Connections: []store.Connection{{ID: "a"}}})
	m.KeepOpened()
	m.Hold()
	conn := &m.Connections[0]
	before := m.Open(conn, "old", provider.Credential{AccessToken: inMemory("old-token")})
	if m.Opened(conn, "old") != before || m.Opened(conn, "new") != nil {
		t.Fatal("an opened token stands for another")
	}
	after := m.Open(conn, "new", provider.Credential{AccessToken: inMemory("new-token")})
	if m.Opened(conn, "new") != after || m.Opened(conn, "old") != nil {
		t.Fatal("the old token is used")
	}
	if before.Credential.AccessToken.Reveal() != "old-token" {
		t.Error("the old token is wiped while a call may use it")
	}
	texts := []string{before.Credential.AccessToken.Reveal(), after.Credential.AccessToken.Reveal()}
	m.Discard()
	m.Release()
	if !zeros(texts[0]) || !zeros(texts[1]) {
		t.Errorf("left: %q", texts)
	}
}

func TestOpenedSecretsAreBounded(t *testing.T) {
	rec := &store.Machine{ID: mid, Connections: make([]store.Connection, 2*maxOpened)}
	m := New(rec)
	m.KeepOpened()
	m.Hold()
	for i := range rec.Connections {
		o := m.Open(&rec.Connections[i], "", provider.Credential{APIKey: inMemory(fmt.Sprint("key-", i))})
		if o.Credential.APIKey.Reveal() != fmt.Sprint("key-", i) {
			t.Fatal("not opened")
		}
	}
	if n := len(m.opened.all); n != maxOpened {
		t.Errorf("%d credentials are kept, at most %d", n, maxOpened)
	}
}

// No one holds the snapshot: nothing says how long its secrets are used.
func TestSecretsAreNotKeptWithoutHold(t *testing.T) {
	rec := &store.Machine{ID: mid, Connections: []store.Connection{{ID: "a"}}}
	for _, keeps := range []bool{false, true} {
		m := New(rec)
		if keeps {
			m.KeepOpened()
		} else {
			m.Hold()
		}
		m.Open(&rec.Connections[0], "", provider.Credential{APIKey: inMemory("key")})
		if m.Opened(&rec.Connections[0], "") != nil {
			t.Error("kept")
		}
	}
}

func TestDerivedValuesAreBounded(t *testing.T) {
	m, other := New(&store.Machine{ID: mid}), New(&store.Machine{ID: mid})
	for i := range 10 * maxDerived {
		key := Derived{Kind: "llm", Model: fmt.Sprint(i)}
		m.KeepDerived(key, i)
		if m.Derived(key) != i || m.Derived(Derived{Model: key.Model}) != nil || other.Derived(key) != nil {
			t.Fatal("a value is missing, or another's")
		}
		if len(m.derived) > maxDerived {
			t.Fatalf("%d values", len(m.derived))
		}
	}
}
