package realtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

const (
	own      = "openai-compatible-0123abcd"
	provided = "ek_provided0123456789"
	minute   = 1_800_000_060 // a minute after the time of the world
)

func world(t *testing.T) (*testgw.World, *Handler) {
	w := testgw.New(t, own, own, "anthropic", "xai")
	for i := range 2 {
		w.Record.Connections[i].Data.Prefix = "up"
	}
	w.Record.Keys = []store.Key{{ID: "k1"}}
	w.Record.Combos = []store.Combo{{Name: "voice", Models: []string{"up/gpt-realtime"}}}
	w.Machine = snapshot.New(w.Record)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.JSON(fmt.Sprintf(`{"value":%q,"expires_at":%d,"session":{"type":"realtime","model":"gpt-realtime","client_secret":{"value":%q,"expires_at":1}}}`, provided, minute, provided))
	}
	keys := &auth.Authenticator{Vault: w.Keys, Machines: only{w}, Now: w.Now, RequireKey: true}
	return w, &Handler{Accounts: w.Pool, Keys: keys, Now: w.Now}
}

// only has the machine of a world.
type only struct{ w *testgw.World }

func (o only) Get(context.Context, string) (*snapshot.Machine, error)     { return o.w.Machine, nil }
func (o only) Known(context.Context, string) (*snapshot.Machine, error)   { return o.w.Machine, nil }
func (o only) Confirm(context.Context, string) (*snapshot.Machine, error) { return o.w.Machine, nil }
func (o only) InMemory(string) *snapshot.Machine                          { return o.w.Machine }
func (only) Revalidate(context.Context, string)                           {}

func create(w *testgw.World, h *Handler, body string) (*httpmsg.Response, error) {
	c := w.Post(body, "openai-safety-identifier", "u1", "cookie", "no")
	c.Key = &w.Machine.Keys[0]
	return h.CreateSecret(context.Background(), c)
}

// connect calls GET /v1/realtime with a client secret.
func connect(w *testgw.World, h *Handler, value, query string) error {
	c := w.Call("GET", nil, 0, "query", query, "authorization", "Bearer "+value)
	call, err := h.Keys.(*auth.Authenticator).Realtime(context.Background(), c.Request, "")
	if err == nil {
		_, err = h.Connect(context.Background(), call)
	}
	return err
}

func TestClientSecretHidesTheProviders(t *testing.T) {
	w, h := world(t)
	resp, err := create(w, h, `{"expires_after":{"anchor":"created_at","seconds":60}, "session":{"type":"realtime","model":"voice","audio":{"output":{"voice":"marin"}}}}`)
	got := testgw.Body(t, resp, err)
	s := w.Seen[0]
	if s.URL != "https://llm.example.com/v1/realtime/client_secrets" || s.Method != "POST" ||
		s.Body != `{"expires_after":{"anchor":"created_at","seconds":60}, "session":{"type":"realtime","model":"gpt-realtime","audio":{"output":{"voice":"marin"}}}}` {
		t.Errorf("sent %s %s %s", s.Method, s.URL, s.Body)
	}
	if s.Header.Get("openai-safety-identifier") != "u1" || s.Header.Get("cookie") != "" || s.Account != "a" {
		t.Errorf("sent %v", s.Header)
	}
	value := gjson.Get(got, "value").Str
	if !strings.HasPrefix(value, "ek_"+testgw.MachineID+"_") || strings.Contains(got, provided) {
		t.Errorf("got %s", got)
	}
	if gjson.Get(got, "session.client_secret.value").Str != value || gjson.Get(got, "session.model").Str != "voice" || gjson.Get(got, "expires_at").Int() != minute {
		t.Errorf("got %s", got)
	}
}

func TestClientSecretReachesItsAccountOnly(t *testing.T) {
	w, h := world(t)
	w.Record.Connections[0].Priority = 2 // the other account is the first choice
	w.Machine = snapshot.New(w.Record)
	resp, err := create(w, h, `{"session":{"type":"realtime","model":"voice"}}`)
	value := gjson.Get(testgw.Body(t, resp, err), "value").Str
	if w.Accounts() != "b" {
		t.Fatalf("created at %s", w.Accounts())
	}
	w.Record.Connections[0].Priority = 0
	w.Record.Connections[1].Priority = 2
	w.Machine = snapshot.New(w.Record)
	for _, query := range []string{"", "model=voice", "model=up%2Fgpt-realtime"} {
		w.Seen = nil
		w.Answer = func(*fake.Seen) fake.Answer {
			return fake.Reply(401, `{"error":{"message":"Incorrect API key provided: ek_"}}`)
		}
		e := testgw.Refused(t, connect(w, h, value, query), 401)
		if len(w.Seen) != 1 || !strings.Contains(e.Message, "client secret") {
			t.Fatalf("%q: %d calls, %s", query, len(w.Seen), e.Message)
		}
		if s := w.Seen[0]; s.Header.Get("authorization") != "Bearer "+provided || s.URL != "https://llm.example.com/v1/realtime?model=gpt-realtime" {
			t.Errorf("%q: sent %s %v", query, s.URL, s.Header)
		}
		// A refused client secret says nothing about the account's own key.
		if s := w.Machine.State("b", ""); s.Until != 0 {
			t.Errorf("the account cools down: %+v", s)
		}
	}
	w.Seen = nil
	for query, want := range map[string]int{"model=up%2Fanother": 403, "model=gpt-realtime": 403} {
		testgw.Refused(t, connect(w, h, value, query), want)
	}
	w.Add(60e9)
	testgw.Refused(t, connect(w, h, value, ""), 401)
	w.Add(-60e9)
	w.Record.Keys[0].Models = []string{"up/another"}
	w.Machine = snapshot.New(w.Record)
	testgw.Refused(t, connect(w, h, value, ""), 403)
	w.Record.Keys[0].Models = nil
	w.Record.Connections = w.Record.Connections[:1]
	w.Machine = snapshot.New(w.Record)
	testgw.Refused(t, connect(w, h, value, ""), 401)
	w.Record.Keys[0].RevokedAt = 1
	w.Machine = snapshot.New(w.Record)
	testgw.Refused(t, connect(w, h, value, ""), 401)
	if len(w.Seen) > 0 {
		t.Errorf("a refused client secret was sent to %s", w.Seen[0].URL)
	}
}

func TestBadRequestsOfClientSecrets(t *testing.T) {
	for body, param := range map[string]string{
		`{`: "", `[]`: "", `{}`: "session", `{"session":null}`: "session", `{"session":[]}`: "session",
		`{"session":{}}`: "session.model", `{"session":{"model":1}}`: "session.model", `{"session":{"model":""}}`: "session.model",
		`{"session":{"model":"up/m","model":"up/n"}}`:         "model",
		`{"session":{"model":"up/m","Model":"up/n"}}`:         "model",
		`{"session":{"model":"up/m"},"session":{}}`:           "session",
		`{"session":{"model":"up/m"},"Session":{}}`:           "session",
		`{"session":{"type":"transcription"}}`:                "session.type",
		`{"session":{"type":1,"model":"up/m"}}`:               "session.type",
		`{"session":{"model":"anthropic/claude"}}`:            "model",
		`{"session":{"model":"xai/grok-voice"}}`:              "model",
		`{"session":{"type":"realtime","model":"nowhere/m"}}`: "model",
	} {
		w, h := world(t)
		_, err := create(w, h, body)
		if e := testgw.Refused(t, err, 400); e.Param != param || len(w.Seen) > 0 {
			t.Errorf("%s: param %q after %d calls: %s", body, e.Param, len(w.Seen), e.Message)
		}
	}
	w, h := world(t)
	w.Record.Keys[0].Models = []string{"up/another"}
	w.Machine = snapshot.New(w.Record)
	_, err := create(w, h, `{"session":{"model":"up/gpt-realtime"}}`)
	testgw.Refused(t, err, 403)
}

func TestUnusableAnswersToClientSecrets(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{`, `{}`, `{"value":"","expires_at":1800000060}`, `{"value":"short","expires_at":1800000060}`, `{"value":"ek_0123456789"}`,
		`{"value":"ek_0123456789","expires_at":1800000000}`, `{"value":"ek_\r\n0123456789","expires_at":1800000060}`, `{"value":["ek_0123456789"],"expires_at":1800000060}`,
		fmt.Sprintf(`{"value":"%s","expires_at":1800000060}`, strings.Repeat("a", maxSecret+1)),
	} {
		w, h := world(t)
		w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(body) }
		_, err := create(w, h, `{"session":{"model":"up/gpt-realtime"}}`)
		testgw.Refused(t, err, 502)
	}
	// A server that does not repeat the session.
	w, h := world(t)
	w.Answer = func(*fake.Seen) fake.Answer {
		return fake.JSON(fmt.Sprintf(`{"value":%q,"expires_at":%d}`, provided, minute))
	}
	resp, err := create(w, h, `{"session":{"type":"realtime","model":"up/gpt-realtime"}}`)
	if got := testgw.Body(t, resp, err); gjson.Get(got, "session").Raw != `{"type":"realtime","model":"up/gpt-realtime"}` {
		t.Errorf("got %s", got)
	}
}

// The work for a request and its answer grows with their length only.
func TestLongSessionsOfClientSecrets(t *testing.T) {
	work := func(n int) float64 {
		session := `{"type":"realtime","tools":[` + strings.Repeat(`{"a":["Session"]},`, n) + `0],"model":"up/m"}`
		made := &createdSecret{raw: []byte(`{"value":"` + provided + `","session":` + session + `}`), value: provided, expiresAt: minute}
		return testing.AllocsPerRun(5, func() {
			x := secretRequest{body: []byte(`{"session":` + session + `}`)}
			if err := x.parse(); err != nil {
				t.Error(err)
			}
			if _, err := x.answer(made, "ek_own"); err != nil {
				t.Error(err)
			}
		})
	}
	if short, long := work(10), work(50_000); long > short+8 {
		t.Errorf("%.0f allocations for a short session, %.0f for a long one", short, long)
	}
}

func FuzzAnswersToClientSecrets(f *testing.F) {
	for _, s := range []string{
		`{"value":"ek_0123456789","expires_at":1800000060,"session":{"client_secret":{"value":"ek_0123456789"}}}`, `{"value":"\u0065k_0123456789","expires_at":2e9}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	x := secretRequest{asked: "voice", body: []byte(`{"session":{"model":"voice"}}`)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		made := &createdSecret{raw: raw, value: gjson.GetBytes(raw, "value").Str, expiresAt: 1}
		if !isToken(made.value) {
			return
		}
		out, err := x.answer(made, "ek_own")
		if err == nil && gjson.GetBytes(out, "value").Str != "ek_own" {
			t.Errorf("got %s", out)
		}
	})
}
