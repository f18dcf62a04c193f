// Package script is a scripted upstream behind the real accounts and router,
// for the tests of endpoints.
package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/provider"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// MachineID is the machine of all calls.
const MachineID = "abcdefgh01234567"

// Seen is a call as the upstream saw it.
type Seen struct {
	Method, URL string
	Header      httpmsg.Header
	Body        string
	Length      int64  // promised for the body, -1 when not
	Account     string // whose credential it carried, "" without one
	BodyErr     error
}

// Answer is what the upstream does. Err is no answer at all; Body breaks off at
// its end when Cut.
type Answer struct {
	Status int
	Header httpmsg.Header
	Body   string
	Cut    bool
	Err    error
}

// OK is a 200 with a body of a content type.
func OK(contentType, body string) Answer {
	return Answer{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: contentType}}, Body: body}
}

// JSON is a 200 with JSON.
func JSON(body string) Answer { return OK("application/json", body) }

// World is one machine with accounts a, b, c, … at a scripted upstream.
type World struct {
	testing.TB
	Time    time.Time
	Pool    *accounts.Pool
	Machine *snapshot.Machine
	Answer  func(s *Seen) Answer
	Seen    []*Seen
	Paused  time.Duration
	keys    *store.Keyring
}

// New makes a world with an account of each provider.
func New(t testing.TB, providers ...string) *World {
	t.Helper()
	keys, err := store.NewKeyring(strings.Repeat("k", 40))
	if err != nil {
		t.Fatal(err)
	}
	w := &World{TB: t, Time: time.UnixMilli(1_800_000_000_000), keys: keys}
	w.Pool = &accounts.Pool{Doer: w, Object: object{}, Keys: keys, Now: w.Now}
	rec := &store.Machine{Version: 1, ID: MachineID}
	for i, p := range providers {
		id := string(rune('a' + i))
		sealed, err := keys.Seal(MachineID, id, store.APIKey, secret.New(Secret(id)))
		if err != nil {
			t.Fatal(err)
		}
		conn := store.Connection{ID: id, Provider: p, Secrets: map[string]secret.Sealed{store.APIKey: sealed}}
		if d := provider.Lookup(p); d != nil {
			conn.Data.Vars = map[string]string{}
			for _, v := range d.Vars {
				conn.Data.Vars[v] = "v-" + strings.ReplaceAll(v, "_", "-")
			}
			if d.Compatible {
				conn.Data.BaseURL = "https://llm.example.com/v1"
			}
		}
		rec.Connections = append(rec.Connections, conn)
	}
	w.Machine = snapshot.New(rec)
	return w
}

// Secret is the credential of an account.
func Secret(id string) string { return "key-" + id + "-0123456789abcdef" }

// Now is the time of the world.
func (w *World) Now() time.Time { return w.Time }

// Pause lets the time pass at once.
func (w *World) Pause(_ context.Context, d time.Duration) error {
	w.Time, w.Paused = w.Time.Add(d), w.Paused+d
	return nil
}

type object struct{}

func (object) Call(context.Context, string, string, []byte) (int, []byte, error) {
	return 0, nil, errors.New("no object")
}

// Start is the upstream.
func (w *World) Start(_ context.Context, req *upstream.Request) upstream.Pending {
	s := &Seen{Method: req.Method, URL: req.URL, Header: req.Header, Length: -1}
	switch b := req.Body.(type) {
	case nil:
	case *stream.Bytes:
		s.Length = int64(len(b.All()))
	case *stream.Through:
		if l, ok := b.T.(interface{ Length() int64 }); ok {
			s.Length = l.Length()
		}
	}
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		s.Body, s.BodyErr = string(b), err
	}
	for _, f := range req.Header {
		if at := strings.Index(f.Value, "key-"); at >= 0 && len(f.Value) > at+4 {
			s.Account = f.Value[at+4 : at+5]
		}
	}
	w.Seen = append(w.Seen, s)
	return pending(w.Answer(s))
}

// Took returns the accounts that the upstream saw, "aab".
func (w *World) Took() string {
	var b strings.Builder
	for _, s := range w.Seen {
		b.WriteString(s.Account)
	}
	return b.String()
}

type pending Answer

func (p pending) Wait() (*upstream.Response, error) {
	if p.Err != nil {
		return nil, p.Err
	}
	r := &upstream.Response{Status: p.Status, Header: p.Header, Body: stream.FromString(p.Body)}
	if p.Cut {
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(p.Body), broken{}))
	}
	return r, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, upstream.ErrNetwork }

// Call makes a client's call. The header is given as name, value, …; "query"
// is the query string. A body that is not given as *stream.Bytes stands for one
// that the host holds.
func (w *World) Call(method string, body io.ReadCloser, length int64, header ...string) *auth.Call {
	r := &httpmsg.Request{Method: method, Path: "/v1/x", Origin: "https://weir.example", Body: body, Length: length, Start: w.Time}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "query" {
			r.Query = header[i+1]
		} else {
			r.Header.Add(header[i], header[i+1])
		}
	}
	return &auth.Call{Request: r, Machine: w.Machine, MachineID: MachineID, MaxBody: 64 << 20}
}

// Post makes a client's JSON call.
func (w *World) Post(body string, header ...string) *auth.Call {
	return w.Call("POST", stream.FromString(body), int64(len(body)), append([]string{"content-type", "application/json"}, header...)...)
}

// Outcome is what the client sees: "200 type body" or "status code".
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

// Canonical stands in for the platform's URL parser.
func Canonical(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", false
	}
	return u.String(), true
}
