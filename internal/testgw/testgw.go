// Package testgw is one machine with accounts in front of a scripted upstream,
// for the tests of endpoints: the real router and the real pool of accounts
// stand between.
package testgw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
)

// MachineID is the machine of all calls.
const MachineID = sealed.MachineID

// World is a machine, its accounts and their upstream.
type World struct {
	testing.TB
	*fake.Clock
	*fake.Upstream
	Pool *accounts.Pool
	Keys *store.Keyring
	// Record is the machine as it is stored; Machine is its snapshot when the
	// world was created, with the cooldowns of Call and Post.
	Record  *store.Machine
	Machine *snapshot.Machine
	// Memory is what the calls of Call and Post acquire memory from.
	Memory memory.Budget
}

// New returns a world with an account of each provider: a, b, c, …, each with
// the credential fake.Secret(id).
func New(t testing.TB, providers ...string) *World {
	t.Helper()
	w := empty(t, time.UnixMilli(1_800_000_000_000))
	for i, p := range providers {
		id := string(rune('a' + i))
		var data store.ProviderData
		if d := provider.Lookup(p); d != nil {
			data.Vars = map[string]string{}
			for _, v := range d.Vars {
				data.Vars[v] = "v-" + strings.ReplaceAll(v, "_", "-")
			}
			if d.Compatible {
				data.BaseURL = "https://llm.example.com/v1"
			}
		}
		w.connect(p, id, fake.Secret(id), data)
	}
	w.Machine = snapshot.New(w.Record)
	return w
}

// RecordedSecret is the credential of every account of Recorded, as the golden
// files have it.
const RecordedSecret = "secret-key-0123456789abcdef"

// Recorded returns a world with an account c-<provider> of each provider, for
// exchanges that golden files record.
func Recorded(t testing.TB, providers ...string) *World {
	t.Helper()
	w := empty(t, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	for _, p := range providers {
		w.Connect(p, "c-"+p, store.ProviderData{})
	}
	return w
}

func empty(t testing.TB, at time.Time) *World {
	t.Helper()
	keys, clock := sealed.Keys(t), fake.NewClock(at)
	w := &World{
		TB: t, Clock: clock, Upstream: &fake.Upstream{Clock: clock}, Keys: keys,
		Record: &store.Machine{Version: 1, ID: MachineID},
	}
	w.Pool = &accounts.Pool{Doer: w.Upstream, Object: &objects.Script{}, Keys: keys, Now: w.Now}
	return w
}

// Connect adds an account to the record, with the credential RecordedSecret.
func (w *World) Connect(provider, id string, data store.ProviderData) {
	w.Helper()
	w.connect(provider, id, RecordedSecret, data)
}

func (w *World) connect(provider, id, key string, data store.ProviderData) {
	w.Helper()
	w.Record.Connections = append(w.Record.Connections, store.Connection{
		ID: id, Provider: provider, Data: data, Secrets: sealed.APIKey(w, w.Keys, id, key),
	})
}

// Seal seals a credential for a field of an account.
func (w *World) Seal(id, field, plain string) secret.Sealed {
	w.Helper()
	return sealed.Field(w, w.Keys, id, field, plain)
}

// Call returns a client's call. The header is name, value, …; "query" is the
// query string. A body that is not a *stream.Bytes stands for one that the host
// holds.
func (w *World) Call(method string, body io.ReadCloser, length int64, header ...string) *auth.Call {
	r := &httpmsg.Request{Method: method, Path: "/v1/x", Origin: "https://weir.example", Body: body, Length: length,
		Start: w.Now()}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "query" {
			r.Query = header[i+1]
		} else {
			r.Header.Add(header[i], header[i+1])
		}
	}
	c := &auth.Call{Request: r, Machine: w.Machine, MachineID: MachineID, MaxBody: 64 << 20}
	w.Memory.Start(&c.Memory, MachineID, 0)
	return c
}

// Post returns a client's JSON call.
func (w *World) Post(body string, header ...string) *auth.Call {
	return w.Call("POST", stream.FromString(body), int64(len(body)),
		append([]string{"content-type", "application/json"}, header...)...)
}

// Ask returns a client's call of the machine as it is recorded now, without
// cooldowns.
func (w *World) Ask(path, body string) *auth.Call {
	return &auth.Call{
		Request: &httpmsg.Request{
			Method: "POST", Path: path, Origin: "https://gateway.example.org", Start: w.Now(),
			Body: io.NopCloser(strings.NewReader(body)), Length: int64(len(body)),
		},
		Machine: snapshot.New(w.Record), MachineID: MachineID, MaxBody: 8 << 20,
	}
}

// Outcome returns the answer as a client sees it: "200 type body" or "status
// code", and " <cut>" after a body that breaks off.
func Outcome(resp *httpmsg.Response, err error) string {
	var e *apierr.Error
	switch {
	case errors.As(err, &e):
		return strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.Code))
	case err != nil:
		return "500 " + err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	cut := ""
	if err != nil {
		cut = " <cut>"
	}
	for _, after := range resp.After {
		after(context.Background())
	}
	return fmt.Sprintf("%d %s %s%s", resp.Status, resp.Header.Get("content-type"), body, cut)
}

// Body returns the body of a JSON answer. A failed call ends the test.
func Body(t testing.TB, resp *httpmsg.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != 200 || resp.Header.Get("content-type") != "application/json" {
		t.Fatalf("status %d, header %v", resp.Status, resp.Header)
	}
	return string(b)
}

// Refused returns the error of a call that must fail with this status.
func Refused(t testing.TB, err error, status int) *apierr.Error {
	t.Helper()
	e, ok := err.(*apierr.Error)
	if !ok || e.Status != status {
		t.Fatalf("got %v, want an error of status %d", err, status)
	}
	return e
}
