package snapshot

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// Opened secrets live as long as their snapshot.
func TestOpenedSecretsEndWithTheirSnapshot(t *testing.T) {
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
		conn := &m.Connections[0]
		opened := m.Open(conn, "", provider.Credential{APIKey: secret.New("the-api-key")})
		var first, again httpmsg.Header
		bearer := &provider.Descriptor{ID: "openai"}
		if err := opened.Authorize(&first, bearer, nil, conn); err != nil || first.Get("authorization") != "Bearer the-api-key" {
			t.Fatalf("got %v, %v", first, err)
		}
		if err := m.Opened(conn, "").Authorize(&again, bearer, nil, conn); err != nil ||
			unsafe.StringData(again[0].Value) != unsafe.StringData(first[0].Value) {
			t.Errorf("%s: the header field is built again", name)
		}
		collected := make(chan bool, 1)
		runtime.AddCleanup(opened, func(c chan bool) { c <- true }, collected)
		m, opened, conn = nil, nil, nil
		end(w)
		for done := false; !done; { // the test's time limit ends it otherwise
			runtime.GC()
			select {
			case done = <-collected:
			default:
				runtime.Gosched()
			}
		}
		runtime.KeepAlive(w)
	}
}

// A token that was renewed takes the place of the one before, which calls may still use.
func TestRenewedTokenReplacesTheOldOne(t *testing.T) {
	m := New(&store.Machine{ID: mid, Connections: []store.Connection{{ID: "a"}}})
	conn := &m.Connections[0]
	before := m.Open(conn, "old", provider.Credential{AccessToken: secret.New("old-token")})
	if m.Opened(conn, "old") != before || m.Opened(conn, "new") != nil {
		t.Fatal("an opened token stands for another")
	}
	after := m.Open(conn, "new", provider.Credential{AccessToken: secret.New("new-token")})
	if m.Opened(conn, "new") != after || m.Opened(conn, "old") != nil {
		t.Fatal("the old token is used")
	}
	if before.Credential.AccessToken.Reveal() != "old-token" {
		t.Error("a call that has begun lost its token")
	}
}

func TestOpenedSecretsAreBounded(t *testing.T) {
	rec := &store.Machine{ID: mid, Connections: make([]store.Connection, 2*maxOpened)}
	m := New(rec)
	for i := range rec.Connections {
		o := m.Open(&rec.Connections[i], "", provider.Credential{APIKey: secret.New(fmt.Sprint("key-", i))})
		if o.Credential.APIKey.Reveal() != fmt.Sprint("key-", i) {
			t.Fatal("not opened")
		}
	}
	if n := len(m.opened); n != maxOpened {
		t.Errorf("%d credentials are kept, at most %d", n, maxOpened)
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
