package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/llm"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

const mid = sealed.MachineID

func events(body string) fake.Answer {
	a := fake.OK("text/event-stream", "")
	a.Pieces = []string{body}
	return a
}

func jsonOf(status int, body string) fake.Answer {
	a := fake.Reply(status, "")
	a.Pieces = []string{body}
	return a
}

// world is a machine with connections, and an upstream that follows a script.
type world struct {
	testing.TB
	*fake.Clock
	*fake.Upstream
	dialog  *Proxy
	pool    *accounts.Pool
	machine *snapshot.Machine
	key     *store.Key
	noted   []usage.Row   // see rows
	skew    time.Duration // of the clock, for a report
	call    *auth.Call
	query   string // of the client's address
}

// provided is a connection to a provider under a prefix, with the key
// key-<prefix>-0123456789.
type provided struct {
	prefix, provider, base string
	priority               int
	vars                   map[string]string
}

var usual = []provided{
	{prefix: "up", provider: "openai-compatible-0123abcd", base: "https://up.example/v1"},
	{prefix: "an", provider: "anthropic-compatible-0123abcd", base: "https://an.example/v1"},
	{prefix: "oa", provider: "openai"}, {prefix: "cl", provider: "anthropic"},
	{prefix: "ge", provider: "gemini"}, {prefix: "co", provider: "cohere"},
	{prefix: "br", provider: "bedrock", vars: map[string]string{"region": "us-east-1"}},
	{prefix: "mo", provider: "moonshot"}, {prefix: "dg", provider: "deepgram"}, {prefix: "mi", provider: "mistral"},
}

func newWorld(t testing.TB, list ...provided) *world {
	t.Helper()
	keys := sealed.Keys(t)
	rec := &store.Machine{Version: 1, ID: mid, Generation: 1}
	for _, p := range list {
		id := "c-" + p.prefix
		prefix, _, _ := strings.Cut(p.prefix, "#")
		field := store.APIKey
		if p.provider == "vertex" && p.vars["project"] != "" {
			field = store.AccessToken
		}
		rec.Connections = append(rec.Connections, store.Connection{
			ID: id, Provider: p.provider, Priority: p.priority, Secrets: map[string]secret.Sealed{field: sealed.Field(t, keys, id, field, "key-"+p.prefix+"-0123456789")},
			Data: store.ProviderData{BaseURL: p.base, Prefix: prefix, Vars: p.vars},
		})
	}
	clock := fake.NewClock(time.UnixMilli(1_800_000_000_000))
	w := &world{TB: t, Clock: clock, Upstream: &fake.Upstream{Clock: clock}, machine: snapshot.New(rec)}
	w.pool = &accounts.Pool{Doer: w.Upstream, Object: &objects.Script{Answer: w.report}, Keys: keys, Now: w.Now}
	w.dialog = &Proxy{Accounts: w.pool, Now: w.Now, ChatOnly: &ChatOnly{}}
	return w
}

// report is the machine's object, which adds up the usage of reports.
func (w *world) report(op string, body []byte) (int, []byte, error) {
	var report struct{ Usage []usage.Row }
	if err := json.Unmarshal(body, &report); err != nil || op != "report" {
		return 0, nil, objects.ErrUnreachable
	}
	for _, row := range report.Usage {
		w.noted = usage.Add(w.noted, row)
	}
	return 200, []byte(`{}`), nil
}

// bodies returns what the upstream was sent.
func (w *world) bodies() (list []string) {
	for _, s := range w.Seen {
		list = append(list, s.Body)
	}
	return list
}

// rows returns the usage that was recorded, a row for each account and model.
func (w *world) rows() []usage.Row {
	w.skew += 2 * time.Second // a machine's usage is reported once a second
	w.Add(w.skew)
	w.pool.Flush(context.Background(), w.machine)
	w.Add(-w.skew)
	return w.noted
}

// attempts returns the number of recorded attempts.
func (w *world) attempts() (n int64) {
	for _, r := range w.rows() {
		n += r.Requests
	}
	return n
}

// ask sends a client's request.
func (w *world) ask(d llm.Dialect, raw string, header ...httpmsg.Field) (*Result, error) {
	w.Helper()
	var a *Request
	var err error
	if d == llm.Gemini {
		url, body, _ := strings.Cut(raw, " ")
		i := strings.LastIndexByte(url, ':')
		a, err = ReadGemini(url[:i], strings.Contains(url[i:], "stream"), []byte(body))
		if a != nil {
			a.Array = a.Stream && !strings.HasSuffix(url, "alt=sse")
		}
	} else {
		a, err = ReadRequest(d, []byte(raw))
	}
	if err != nil {
		return nil, err
	}
	return w.send(a, header...)
}

func (w *world) send(a *Request, header ...httpmsg.Field) (*Result, error) {
	route := map[llm.Dialect]string{llm.Chat: "/v1/chat/completions", llm.Responses: "/v1/responses", llm.Messages: "/v1/messages", llm.Gemini: "/v1beta/models/{model...}", llm.Completions: "/v1/completions"}[a.Dialect]
	w.call = &auth.Call{
		Request: &httpmsg.Request{ID: "req_1", Method: "POST", Path: route, Query: w.query, Header: header, Start: w.Now(), Route: route},
		Trace:   accounts.Trace{KeyID: "k1"},
		Machine: w.machine, MachineID: mid, Key: w.key, MaxBody: 32 << 20,
	}
	return w.dialog.Answer(context.Background(), w.call, a)
}

// text reads a client's answer to its end.
func (w *world) text(r *Result) string {
	w.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(raw)
}

func status(err error) int {
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
