package objects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/gateway"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/server/host"
	"weir/server/objects"
	"weir/server/store"
)

const (
	mid     = "abcdefgh01234567"
	oauthID = "openai-compatible-00000001"
)

// tokenEndpoint rotates refresh tokens, and revokes the grant when one is used
// again.
type tokenEndpoint struct {
	mu      sync.Mutex
	valid   string
	calls   int
	revoked int
	wait    chan struct{} // an answer waits until it is closed; nil for none
}

// RoundTrip answers a call to the token endpoint.
func (e *tokenEndpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	form, _ := url.ParseQuery(string(body))
	e.mu.Lock()
	wait := e.wait
	e.mu.Unlock()
	if wait != nil {
		<-wait
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	status, text := 200, ""
	if form.Get("refresh_token") == e.valid {
		e.valid = fmt.Sprint("refresh-token-", e.calls)
		text = fmt.Sprintf(`{"access_token":"access-token-%d","refresh_token":%q,"expires_in":3600}`, e.calls, e.valid)
	} else {
		e.revoked++
		status, text = 400, `{"error":"invalid_grant"}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

// faultyEngine is an engine whose writes fail while it is broken.
type faultyEngine struct {
	objects.Engine
	broken *atomic.Bool
}

func (e faultyEngine) Rows(machineID string) storage.Storage {
	return faulty{e.Engine.Rows(machineID), e.broken}
}

// faulty is a storage whose writes fail while it is broken.
type faulty struct {
	storage.Storage
	broken *atomic.Bool
}

func (f faulty) Write(rows []storage.Row, alarm int64) error {
	if f.broken.Load() {
		return storage.ErrStorage
	}
	return f.Storage.Write(rows, alarm)
}

// world is the program's own objects over a store.
type world struct {
	*testing.T
	dir    string
	broken atomic.Bool
	idp    tokenEndpoint
	store  *store.Store
	runner *objects.Runner
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, dir: t.TempDir(), idp: tokenEndpoint{valid: "refresh-token-0"}}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *world) start() {
	w.Helper()
	var err error
	if w.store, err = store.Open(w.dir); err != nil {
		w.Fatal(err)
	}
	log := func(level int, line string) { w.Log(level, line) }
	w.runner = objects.New(faultyEngine{w.store, &w.broken}, objects.Log(log))
	c := host.Config{
		Gateway: gateway.Config{
			AdminToken: strings.Repeat("a", 40), KeySecret: strings.Repeat("s", 40), CredentialsKey: strings.Repeat("c", 40), RequireKey: true,
			OAuthProviders: [gateway.MaxOAuthLists]string{`[{"id":"` + oauthID + `","name":"Test","tokenUrl":"https://login.example.com/token","clientId":"client"}]`},
		},
		Objects: w.runner, Outside: w.runner.Outside, Transport: &w.idp, Log: log,
	}
	app := host.NewApp(c)
	if app.Misconfigured != "" {
		w.Fatal(app.Misconfigured)
	}
	w.runner.Use(app)
	if err := w.runner.Start(); err != nil {
		w.Fatal(err)
	}
}

func (w *world) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.runner.Stop(ctx); err != nil {
		w.Error(err)
	}
	if err := w.store.Close(); err != nil {
		w.Error(err)
	}
}

// call calls an operation, which must be answered with a status.
func (w *world) call(id, op, body string, status int) gjson.Result {
	w.Helper()
	got, answer, err := w.runner.Call(w.Context(), id, op, []byte(body))
	if got != status || err != nil {
		w.Errorf("%s %s: got %d %s, %v, want %d", op, body, got, answer, err, status)
	}
	return gjson.ParseBytes(answer)
}

// connect creates an account with tokens and returns its id.
func (w *world) connect() string {
	w.Helper()
	call, err := json.Marshal(rpc.ManageCall{Method: "POST", Route: "/api/providers", Body: json.RawMessage(
		`{"provider":"` + oauthID + `","accessToken":"access-token-0","refreshToken":"refresh-token-0","providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`)})
	if err != nil {
		w.Fatal(err)
	}
	return w.call(mid, "manage", string(call), 200).Get("body.id").Str
}

func (w *world) snapshot() gjson.Result {
	w.Helper()
	return w.call(mid, "snapshot", `{"have":0}`, 200)
}

// listed returns the ids in the list of machines.
func (w *world) listed() string {
	w.Helper()
	return w.call(rpc.RegistryID, "list", "", 200).Get("data.#.machineId").Raw
}

func TestMachineOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.call(mid, "snapshot", `{"have":0}`, 404)
		w.call(mid, "create", `{"name":"demo"}`, 201)
		id := w.connect()
		<-time.After(10 * time.Second)
		if listed := w.listed(); listed != `["`+mid+`"]` {
			t.Errorf("machines: %s", listed)
		}
		before := w.snapshot()
		w.stop()
		w.start()
		if after := w.snapshot(); after.Get("generation").Int() != before.Get("generation").Int() || after.Get("connections.0.id").Str != id {
			t.Errorf("after a restart: %s\nbefore: %s", after.Raw, before.Raw)
		}
		w.call(mid, "delete", "", 204)
		<-time.After(10 * time.Second)
		if listed := w.listed(); listed != `[]` {
			t.Errorf("machines after the deletion: %s", listed)
		}
	})
}

func TestBufferedReportsAreWrittenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.call(mid, "create", `{"name":"demo"}`, 201)
		for range 3 {
			w.call(mid, "report", `{"usage":[{"keyId":"k","model":"openai/m","requests":1,"calls":1}]}`, 200)
		}
		w.stop()
		w.start()
		usage := `{"method":"GET","route":"/api/usage"}`
		if got := w.call(mid, "manage", usage, 200).Get("body.total.requests").Int(); got != 3 {
			t.Errorf("%d of 3 requests after a restart", got)
		}
		w.call(mid, "report", `{"usage":[{"keyId":"k","model":"openai/m","requests":1,"calls":1}]}`, 200)
		w.call(mid, "report", `{"usage":[{"keyId":"k","model":"openai/m","requests":1,"calls":1}]}`, 200)
		<-time.After(11 * time.Second) // by alarm
		row, err := w.store.Rows(mid).Get("activity")
		if err != nil || !strings.Contains(string(row), `"model":"openai/m","requests":5`) {
			t.Errorf("the alarm has not written the reports: %q, %v", row, err)
		}
	})
}

// An alarm that was due while the program did not run refreshes the token.
func TestAlarmDueDuringADowntimeFiresAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.call(mid, "create", `{"name":"demo"}`, 201)
		id := w.connect()
		w.call(mid, "refresh", refreshBody(id, w.snapshot()), 200)
		for range 3 {
			calls := w.idp.calls
			w.stop()
			<-time.After(2 * time.Hour) // the token expires
			w.start()
			<-time.After(time.Minute)
			synctest.Wait()
			if w.idp.calls != calls+1 {
				t.Errorf("%d calls to the token endpoint within a minute, want 1", w.idp.calls-calls)
			}
		}
		if w.idp.revoked != 0 {
			t.Errorf("%d refresh tokens were used twice", w.idp.revoked)
		}
	})
}

func refreshBody(id string, snapshot gjson.Result) string {
	return fmt.Sprintf(`{"connectionId":"%s","tokenGeneration":%d}`, id, snapshot.Get("connections.0.tokenGeneration").Int())
}

func TestTwoHundredCallersRefreshOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.call(mid, "create", `{"name":"demo"}`, 201)
		id := w.connect()
		const rounds, callers = 5, 200
		for range rounds {
			before := w.snapshot()
			w.idp.wait = make(chan struct{})
			tokens := make([]string, callers)
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					tokens[i] = w.call(mid, "refresh", refreshBody(id, before), 200).Get("connection.secrets.accessToken").Str
				})
			}
			synctest.Wait()
			// The machine serves others while the token endpoint is asked.
			if w.snapshot().Get("generation").Int() < before.Get("generation").Int() {
				t.Error("an older snapshot")
			}
			close(w.idp.wait)
			wg.Wait()
			w.idp.wait = nil
			for _, token := range tokens {
				if token == "" || token != tokens[0] {
					t.Fatalf("tokens %q and %q", token, tokens[0])
				}
			}
			<-time.After(61 * time.Second)
		}
		if w.idp.calls != rounds || w.idp.revoked != 0 {
			t.Errorf("%d calls, %d revocations, want %d and 0", w.idp.calls, w.idp.revoked, rounds)
		}
	})
}

// The client leaves while its refresh waits for the token endpoint: the rotated
// token must be stored.
func TestSlowTokenEndpointLosesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.call(mid, "create", `{"name":"demo"}`, 201)
		id := w.connect()
		w.idp.wait = make(chan struct{})
		before := w.snapshot()
		answer := w.call(mid, "refresh", refreshBody(id, before), 503)
		if answer.Get("error.code").Str != "refresh_in_progress" {
			t.Errorf("answer %s", answer.Raw)
		}
		close(w.idp.wait)
		synctest.Wait()
		if after := w.snapshot(); after.Get("connections.0.tokenGeneration").Int() == before.Get("connections.0.tokenGeneration").Int() {
			t.Error("the new token is not stored")
		}
	})
}

func TestFailingStorageIsAnswered503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.call(mid, "create", `{"name":"demo"}`, 201)
		id := w.connect()
		before := w.snapshot()
		w.broken.Store(true)
		job := `{"id":"job-1","kind":"video","connectionId":"` + id + `"}`
		answer := w.call(mid, "job.put", job, 503)
		if answer.Get("error.code").Str != "storage_failed" || answer.Get("error.retryAfterMs").Int() <= 0 {
			t.Errorf("answer %s", answer.Raw)
		}
		if after := w.snapshot(); !reflect.DeepEqual(after.Value(), before.Value()) {
			t.Errorf("snapshot %s, want %s", after.Raw, before.Raw)
		}
		w.call(mid, "job.get", `{"id":"job-1"}`, 404)
		w.broken.Store(false)
		w.call(mid, "job.put", job, 200)
		w.call(mid, "job.get", `{"id":"job-1"}`, 200)
	})
}
