package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
)

// keyFile is a service account as a JSON string.
const keyFile = `"{\"type\":\"service_account\",\"client_email\":\"weir@acme.iam.gserviceaccount.com\",\"private_key\":\"-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----\\n\"}"`

// copies creates connections with the tokens of one grant and returns their ids.
func (w *world) copies(n int) (ids []string) {
	w.Helper()
	access, refresh := w.IDP.Issue()
	for i := range n {
		ids = append(ids, w.Connect(fmt.Sprintf(`{"provider":%q,"name":"n%d","accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`, oauthID, i, access, refresh)))
	}
	return ids
}

// serviceAccount creates a connection with a key file and returns its id.
func (w *world) serviceAccount() string {
	w.Helper()
	return w.Connect(`{"provider":"vertex","serviceAccount":` + keyFile + `,"providerSpecificData":{"project":"acme","location":"global"}}`)
}

// unsaved refreshes a connection while the storage fails: its new tokens, and
// those of its copies, are in memory alone.
func (w *world) unsaved(id string) gjson.Result {
	w.Helper()
	st := w.Loc.Storage(mid)
	w.IDP.During = func() { w.IDP.During = nil; st.Fault = func(key string) bool { return key != "alarm" } }
	a := w.Want(200, "refresh", inprocess.RefreshBody(id, 1))
	if !a.Get("unsaved").Bool() {
		w.Fatal(a.Raw)
	}
	return a
}

func TestUnsavedTokenThatFailsIsNotReturnedAgain(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	w.unsaved(id)
	if a := w.Want(200, "refresh", inprocess.RefreshBody(id, 1)); a.Get("connection.tokenGeneration").Int() != 2 {
		t.Errorf("with the earlier token: %s", a.Raw)
	}
	if _, a := w.Call("refresh", inprocess.RefreshBody(id, 2)); !isFailure(a, "refresh_in_progress") || w.IDP.Calls != 1 {
		t.Errorf("with the unsaved token: %s, %d calls", a.Raw, w.IDP.Calls)
	}
}

// New tokens are worth waiting for, but not longer than a caller waits.
func TestFailedWriteOfNewTokensIsRetried(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.unsaved(w.OAuth())
	if got := w.Clock.Paused(); got != 8*time.Second {
		t.Errorf("waited %s", got)
	}
	if in := w.Loc.Storage(mid).AlarmAt() - w.Clock.Now().UnixMilli(); in != 1000 {
		t.Errorf("the alarm comes in %d ms", in)
	}
}

func TestUnsavedTokensOfOtherMachinesAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	w.unsaved(id)
	w.Loc.Storage(mid).Fault = nil
	const others = 50
	for i := range others {
		w.obj.Unsaved[fmt.Sprintf("machine%09d:%s", i, id)] = w.obj.Unsaved[mid+":"+id]
	}
	w.Clock.Add(2 * time.Second)
	w.Loc.Alarms(w.Ctx)
	if c := w.Replica().Connections[0]; c.TokenGeneration != 2 || len(w.obj.Unsaved) != others {
		t.Errorf("generation %d, %d still unsaved", c.TokenGeneration, len(w.obj.Unsaved))
	}
}

// A change by the owner wins over tokens that could not be stored before, and its
// copies still get theirs.
func TestUnsavedTokensDoNotUndoAChange(t *testing.T) {
	w := newWorld(t)
	w.Create()
	ids := w.copies(12)
	last := ids[11]
	w.unsaved(last)
	w.Loc.Storage(mid).Fault = nil
	for i, id := range ids[:11] {
		switch i % 3 {
		case 0:
			w.OK("PUT", "/api/providers/"+id, `{"accessToken":"typed-in-access","refreshToken":"typed-in-refresh"}`)
		case 1:
			w.OK("PUT", "/api/providers/"+id, `{"accessToken":"","refreshToken":""}`)
		case 2:
			w.OK("DELETE", "/api/providers/"+id, "")
		}
	}
	w.Clock.Add(2 * time.Second)
	w.Loc.Alarms(w.Ctx)
	if len(w.obj.Unsaved) != 0 {
		t.Errorf("%d still unsaved", len(w.obj.Unsaved))
	}
	m := w.Replica()
	for i, id := range ids {
		c := inprocess.Connection(m, id)
		switch {
		case id == last:
			if w.Open(c, store.RefreshToken) != w.IDP.Refresh {
				t.Error("the unchanged copy has not the new token")
			}
		case i%3 == 0:
			if got := w.Open(c, store.RefreshToken); got != "typed-in-refresh" {
				t.Errorf("typed in: %q", got)
			}
		case i%3 == 1:
			if c.Secrets[store.RefreshToken] != "" || c.Status != storage.NeedsCredential {
				t.Errorf("removed: %+v", c)
			}
		default:
			if c != nil {
				t.Errorf("deleted: %+v", c)
			}
		}
	}
}

func TestCopyDeletedDuringRefreshLeavesTheOthers(t *testing.T) {
	w := newWorld(t)
	w.Create()
	ids := w.copies(4)
	w.IDP.During = func() {
		w.IDP.During = nil
		w.OK("DELETE", "/api/providers/"+ids[1], "")
		w.OK("PUT", "/api/providers/"+ids[2], `{"refreshToken":"typed-in-refresh"}`)
	}
	w.Want(200, "refresh", inprocess.RefreshBody(ids[0], 1))
	m := w.Replica()
	for i, want := range map[int]string{0: w.IDP.Refresh, 2: "typed-in-refresh", 3: w.IDP.Refresh} {
		if got := w.Open(inprocess.Connection(m, ids[i]), store.RefreshToken); got != want {
			t.Errorf("copy %d has %q, want %q", i, got, want)
		}
	}
}

// A copy that is created while the token is out must not send it a second time.
func TestCopyCreatedDuringRefreshWaits(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	var inner gjson.Result
	w.IDP.During = func() {
		w.IDP.During = nil
		added := w.Connect(fmt.Sprintf(`{"provider":%q,"name":"copy","accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`, oauthID, w.IDP.Access, w.IDP.Refresh))
		_, inner = w.Call("refresh", inprocess.RefreshBody(added, 1))
	}
	w.Want(200, "refresh", inprocess.RefreshBody(id, 1))
	if !isFailure(inner, "refresh_in_progress") || w.IDP.Calls != 1 || w.IDP.Revocations != 0 {
		t.Errorf("%s, %d calls, %d revocations", inner.Raw, w.IDP.Calls, w.IDP.Revocations)
	}
}

func TestConnectionOfADeletedMachineIsNotRefreshed(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	st := w.Loc.Storage(mid)
	tx := w.obj.Begin(st, mid)
	tx.Meta.Deleted = true // its rows are not removed yet
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	st.Flush()
	if a := w.Want(404, "refresh", inprocess.RefreshBody(id, 1)); !isFailure(a, "connection_not_found") || w.IDP.Calls != 0 {
		t.Errorf("%s, %d calls", a.Raw, w.IDP.Calls)
	}
}

// The owner reads why a sign-in ended: a lost answer is weir's doing, or the
// network's, not the provider's.
func TestEndedSignInIsExplained(t *testing.T) {
	const lost = "an earlier answer of its token endpoint was lost"
	gone := func() (int, string, bool) { return 400, `{"error":"invalid_grant"}`, false }
	for _, tt := range []struct {
		name   string
		begin  func(w *world) (id string)
		want   string
		mayNot string
	}{
		{"revoked", func(w *world) string { return w.OAuth() }, "The provider no longer accepts the sign-in (invalid_grant). Connect the account again.", lost},
		{"key file", (*world).serviceAccount, "Google no longer accepts the key file (invalid_grant). Replace it.", lost},
		{"answer lost", func(w *world) string {
			id := w.OAuth()
			w.IDP.Lose = true
			w.Call("refresh", inprocess.RefreshBody(id, 1))
			return id
		}, lost, "no longer accepts"},
		{"process ended", func(w *world) string {
			id := w.OAuth()
			st := w.Loc.Storage(mid)
			w.IDP.During = func() { w.IDP.During = nil; st.Fault = func(string) bool { return true } }
			w.Call("refresh", inprocess.RefreshBody(id, 1))
			st.Fault = nil
			w.obj.Flights, w.obj.Unsaved = nil, nil
			st.Rollback()
			return id
		}, lost, "no longer accepts"},
	} {
		w := newWorld(t)
		w.Create()
		id := tt.begin(w)
		w.Clock.Add(2 * time.Minute)
		w.IDP.Answer = gone
		w.Want(409, "refresh", inprocess.RefreshBody(id, w.Replica().Connections[0].TokenGeneration))
		if got := w.OK("GET", "/api/providers/"+id, "").Get("lastError").Str; !strings.Contains(got, tt.want) || strings.Contains(got, tt.mayNot) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// A key that cannot sign does not sign better at once.
func TestKeyThatCannotSignIsARefusal(t *testing.T) {
	w := newWorld(t)
	w.Create()
	signed := 0
	w.obj.SignRS256 = func(context.Context, []byte, []byte) ([]byte, error) {
		signed++
		return nil, errors.New("not a key")
	}
	id := w.serviceAccount()
	if a := w.Want(503, "refresh", inprocess.RefreshBody(id, 1)); !isFailure(a, "refresh_failed") {
		t.Error(a.Raw)
	}
	if got := w.OK("GET", "/api/providers/"+id, "").Get("lastError").Str; got != "The access token could not be renewed: the request for it could not be made" {
		t.Errorf("last error %q", got)
	}
	if a := w.Want(409, "refresh", inprocess.RefreshBody(id, 1)); !isFailure(a, "refresh_refused") || signed != 1 || w.IDP.Calls != 0 {
		t.Errorf("at once: %s, signed %d times, %d calls", a.Raw, signed, w.IDP.Calls)
	}
}

func TestKeyFileWithoutASignerIsNotRefreshable(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.obj.SignRS256 = nil
	if a := w.Want(409, "refresh", inprocess.RefreshBody(w.serviceAccount(), 1)); !isFailure(a, "not_refreshable") || w.IDP.Calls != 0 {
		t.Errorf("%s, %d calls", a.Raw, w.IDP.Calls)
	}
}

// The provider table names the endpoint where the operator has no client.
func TestRefreshTokenWithoutTheOperatorsClient(t *testing.T) {
	w := newWorld(t)
	w.Create()
	access, refresh := w.IDP.Issue()
	id := w.Connect(fmt.Sprintf(`{"provider":"vertex","accessToken":%q,"refreshToken":%q,"providerSpecificData":{"project":"acme","location":"global","clientId":"own-client"}}`, access, refresh))
	w.Want(200, "refresh", inprocess.RefreshBody(id, 1))
	if f := w.IDP.LastForm; w.IDP.LastEndpoint != "https://oauth2.googleapis.com/token" || f.Get("client_id") != "own-client" || f.Get("refresh_token") != refresh {
		t.Errorf("asked %s with %v", w.IDP.LastEndpoint, f)
	}
}

// The table's endpoint would be called without the client's proxy.
func TestRefreshDoesNotGoAroundAnUnusableClient(t *testing.T) {
	w := newWorld(t)
	w.Create()
	const why = "OAUTH_PROVIDERS: row 2: bad proxy"
	w.obj.Unusable = map[string]string{"vertex": why}
	id := w.Connect(`{"provider":"vertex","accessToken":"access-0123456789","refreshToken":"refresh-0123456789",` +
		`"providerSpecificData":{"project":"acme","location":"global","clientId":"own-client"}}`)
	if a := w.Want(409, "refresh", inprocess.RefreshBody(id, 1)); !isFailure(a, "not_refreshable") || w.IDP.Calls != 0 {
		t.Errorf("%s, %d calls", a.Raw, w.IDP.Calls)
	}
	_, a := w.API("POST", "/api/oauth/{provider}/authorize", "{}", func(c *rpc.ManageCall) { c.Params = []string{"vertex"} })
	if !isFailure(a, "misconfigured") || !strings.Contains(a.Raw, why) {
		t.Errorf("a sign-in: %s", a.Raw)
	}
}

func TestRefreshTokenWithoutAnEndpointIsNotRefreshable(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.Connect(`{"provider":"openai","accessToken":"access-0123456789","refreshToken":"refresh-0123456789"}`)
	if a := w.Want(409, "refresh", inprocess.RefreshBody(id, 1)); !isFailure(a, "not_refreshable") || w.IDP.Calls != 0 {
		t.Errorf("%s, %d calls", a.Raw, w.IDP.Calls)
	}
}

func TestRefusedRefreshWaitsAsTheEndpointAsks(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	w.IDP.Header = httpmsg.Header{{Name: "retry-after", Value: "300"}}
	w.IDP.Answer = func() (int, string, bool) { return 400, `{"error":"invalid_client"}`, false }
	w.Want(409, "refresh", inprocess.RefreshBody(id, 1))
	w.Clock.Add(299 * time.Second)
	if a := w.Want(409, "refresh", inprocess.RefreshBody(id, 1)); !isFailure(a, "refresh_refused") || w.IDP.Calls != 1 {
		t.Errorf("a second early: %s, %d calls", a.Raw, w.IDP.Calls)
	}
	w.Clock.Add(time.Second)
	w.Want(200, "refresh", inprocess.RefreshBody(id, 1))
}

// A caller that comes later has less to wait.
func TestPauseAfterAFailureRunsOut(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	w.IDP.Header = httpmsg.Header{{Name: "retry-after", Value: "30"}}
	w.IDP.Answer = func() (int, string, bool) { return 503, "", false }
	w.Want(503, "refresh", inprocess.RefreshBody(id, 1))
	w.Clock.Add(12 * time.Second)
	if a := w.Want(503, "refresh", inprocess.RefreshBody(id, 1)); a.Get("error.retryAfterMs").Int() != 18_000 || w.IDP.Calls != 1 {
		t.Errorf("12 s later: %s, %d calls", a.Raw, w.IDP.Calls)
	}
}

// Each call without an answer may have used up the refresh token, so the pause
// grows.
func TestPauseDoublesWithEachTimeout(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	w.IDP.Timeout = true
	for _, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if a := w.Want(503, "refresh", inprocess.RefreshBody(id, 1)); a.Get("error.retryAfterMs").Int() != pause.Milliseconds() {
			t.Errorf("got %s, want %s", a.Raw, pause)
		}
		calls := w.IDP.Calls
		if a := w.Want(503, "refresh", inprocess.RefreshBody(id, 1)); !isFailure(a, "refresh_failed") || w.IDP.Calls != calls {
			t.Errorf("within the pause: %s, %d more calls", a.Raw, w.IDP.Calls-calls)
		}
		w.Clock.Add(pause)
	}
}

func TestOperatorSetsLeastTimeBetweenRefreshes(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.obj.RefreshEvery = 2 * time.Second
	id := w.OAuth()
	w.Want(200, "refresh", inprocess.RefreshBody(id, 1))
	w.Clock.Add(time.Second)
	if a := w.Want(409, "refresh", inprocess.RefreshBody(id, 2)); !isFailure(a, "refreshed_recently") {
		t.Error(a.Raw)
	}
	w.Clock.Add(time.Second)
	w.Want(200, "refresh", inprocess.RefreshBody(id, 2))
}
