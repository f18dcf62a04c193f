package videos

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/endpoint/download"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

const mid = testgw.MachineID

// world is the endpoint with the real accounts, router and object behind it,
// and a scripted upstream.
type world struct {
	*testgw.World
	*Handler
	objects *objects.Local
}

func newWorld(t testing.TB, providers ...string) *world {
	t.Helper()
	w := &world{World: testgw.New(t)}
	w.objects = local.Machines(t, w.Now, fake.NewKV())
	for _, id := range []string{mid, "otherotherother0"} {
		if status, raw, _ := w.objects.Call(context.Background(), id, "create", []byte(`{}`)); status != 201 {
			t.Fatalf("create: %d %s", status, raw)
		}
	}
	w.objects.Ops = nil
	w.Pool.Object = w.objects
	w.Handler = &Handler{
		Accounts: w.Pool, Object: w.objects,
		Credentials: &accounts.Credentials{Pool: w.Pool},
		Downloads:   &download.Downloads{Do: w},
	}
	var conns []store.Connection
	for i, p := range providers {
		conns = append(conns, w.connection(p, string(rune('a'+i))))
	}
	w.setMachine(conns...)
	return w
}

func (w *world) connection(providerID, id string) store.Connection {
	return store.Connection{ID: id, Provider: providerID, Secrets: sealed.APIKey(w, w.Keys, id, fake.Secret(id))}
}

func (w *world) setMachine(conns ...store.Connection) {
	w.Machine = snapshot.New(&store.Machine{Version: 1, ID: mid, Connections: conns})
}

// call makes a client's call.
func (w *world) call(contentType, body string, header ...string) *auth.Call {
	if contentType != "" {
		header = append([]string{"content-type", contentType}, header...)
	}
	return w.Call("POST", stream.FromString(body), int64(len(body)), header...)
}

func (w *world) get(id string) *auth.Call {
	c := w.call("", "")
	c.Method, c.Body, c.Params = "GET", nil, []string{id}
	return c
}

// outcome is what the client sees: "200 body" or "status code".
func outcome(resp *httpmsg.Response, err error) string {
	var e *apierr.Error
	switch {
	case errors.As(err, &e):
		s := fmt.Sprintf("%d %s", e.Status, e.Code)
		if e.NoRetry {
			s += " no-retry"
		}
		return s
	case err != nil:
		return "500 " + err.Error()
	}
	body, err := stream.ReadAll(resp.Body, 1<<30)
	if err != nil {
		return "cut"
	}
	return fmt.Sprintf("%d %s", resp.Status, body)
}

// create sends a JSON creation and returns what the client sees.
func (w *world) create(body string, header ...string) (string, *auth.Call) {
	c := w.call("application/json", body, header...)
	resp, err := w.Generations(context.Background(), c)
	if err == nil {
		for _, after := range resp.After {
			after(context.Background())
		}
	}
	return outcome(resp, err), c
}

func (w *world) poll(id string) string {
	return outcome(w.Get(context.Background(), w.get(id)))
}
