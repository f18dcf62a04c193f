package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// The client that a token is refreshed as: the connection's own where it names
// one, else the operator's; never one's id with the other's secret.
func TestClientOfARefresh(t *testing.T) {
	for _, tt := range []struct{ name, fields, id, secret string }{
		{"operators", ``, "weir-client", "weir-client-secret"},
		{"own", `,"clientSecret":"own-secret-0123"`, "own-client", "own-secret-0123"},
		{"own_public", ``, "own-client", ""},
	} {
		w := newWorld(t)
		w.Create()
		access, refresh := w.IDP.Issue()
		vars := ""
		if strings.HasPrefix(tt.name, "own") {
			vars = `,"clientId":"own-client"`
		}
		id := w.Connect(fmt.Sprintf(`{"provider":%q,"accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"%s}%s}`, oauthID, access, refresh, vars, tt.fields))
		w.Want(200, "refresh", inprocess.RefreshBody(id, w.Replica().Connections[0].TokenGeneration))
		if f := w.IDP.LastForm; f.Get("client_id") != tt.id || f.Get("client_secret") != tt.secret || f.Get("refresh_token") != refresh || w.IDP.LastEndpoint != "https://login.example.com/token" {
			t.Errorf("%s: asked %s with %v", tt.name, w.IDP.LastEndpoint, f)
		}
	}
}

// The operator's client gets another secret at the provider, and later in OAUTH_PROVIDERS. Refreshes
// fail until then, and no account has to sign in again (docs/security.md).
func TestSecretOfAClientIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	w.IDP.Answer = func() (int, string, bool) { return 401, `{"error":"invalid_client"}`, false }
	if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen)); !isFailure(a, "refresh_refused") {
		t.Fatal(a.Raw)
	}
	w.obj.OAuth[0].ClientSecret = secret.New("replaced-client-secret")
	w.Clock.Add(61 * time.Second)
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
	if got := w.IDP.LastForm.Get("client_secret"); got != "replaced-client-secret" || w.IDP.Revocations != 0 {
		t.Errorf("refreshed by %q, %d revocations", got, w.IDP.Revocations)
	}
	if v := w.OK("GET", "/api/providers/"+id, ""); v.Get("lastError").Exists() || v.Get("status").Str != "active" {
		t.Error(v.Raw)
	}
}

// Tokens that no one can refresh do not keep the alarm going.
func TestTokensWithoutAnEndpointSetNoAlarm(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Connect(fmt.Sprintf(`{"provider":"openai","accessToken":"access-0123456789","refreshToken":"refresh-0123456789","expiresAt":%d}`, w.Clock.Now().UnixMilli()-1000))
	for range 5 {
		w.Clock.Add(2 * time.Second)
		w.Loc.Alarms(w.Ctx)
	}
	if m := (w.obj.Begin(w.Loc.Storage(mid), mid)).Meta; m.RefreshAt != 0 || m.AlarmAt < w.Clock.Now().Add(30*time.Minute).UnixMilli() {
		t.Errorf("refresh at %d, alarm at %d, now %d", m.RefreshAt, m.AlarmAt, w.Clock.Now().UnixMilli())
	}
	if w.IDP.Calls != 0 {
		t.Errorf("%d calls", w.IDP.Calls)
	}
}

func TestProviderSetsLeastTimeBetweenRefreshes(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.obj.OAuth[0].RefreshEvery = 2 * time.Second
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
	w.Clock.Add(time.Second)
	if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen+1)); !isFailure(a, "refreshed_recently") {
		t.Error(a.Raw)
	}
	w.Clock.Add(time.Second)
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen+1))
}

// After final refusals an endpoint is called less and less often, and not
// before the time it states.
func TestRefusalsBackOff(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	for range 60 * 24 {
		w.IDP.Answer = func() (int, string, bool) { return 401, `{"error":"invalid_client"}`, false }
		w.Call("refresh", inprocess.RefreshBody(id, gen))
		w.Clock.Add(time.Minute)
	}
	if w.IDP.Calls < 10 || w.IDP.Calls > 60 {
		t.Errorf("%d calls in a day", w.IDP.Calls)
	}
	v := w.OK("GET", "/api/providers/"+id, "")
	if v.Get("status").Str == storage.NeedsReauth || v.Get("lastError").Str != "The access token could not be renewed: refused, status 401, invalid_client" {
		t.Error(v.Raw)
	}
	w.IDP.Answer = nil
	w.Clock.Add(time.Hour)
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
	if v := w.OK("GET", "/api/providers/"+id, ""); v.Get("lastError").Exists() {
		t.Error(v.Raw)
	}
}

// The stored and logged failure quotes nothing of the answer.
func TestFailuresOfATokenEndpointQuoteNothing(t *testing.T) {
	for _, body := range []string{`{"error":"refresh-token-000001"}`, `{"error":"invalid_client","error_description":"refresh-token-000001"}`, `<p>refresh-token-000001`} {
		w := newWorld(t)
		w.Create()
		id := w.OAuth()
		w.IDP.Answer = func() (int, string, bool) { return 400, body, false }
		_, a := w.Call("refresh", inprocess.RefreshBody(id, w.Replica().Connections[0].TokenGeneration))
		all := a.Raw + w.OK("GET", "/api/providers/"+id, "").Get("lastError").Str + strings.Join(w.Logs, "\n") + w.OK("GET", "/api/audit", "").Raw
		for _, s := range []string{"refresh-token", "weir-client-secret", "access-token"} {
			if strings.Contains(all, s) {
				t.Errorf("%s: %q in %s", body, s, all)
			}
		}
	}
}

func TestLastFourOfRefreshedTokensAreTheirs(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	w.Want(200, "refresh", inprocess.RefreshBody(id, w.Replica().Connections[0].TokenGeneration))
	c := w.Replica().Connections[0]
	refresh := w.Open(&c, store.RefreshToken)
	if got := w.OK("GET", "/api/providers/"+id, "").Get("last4").Str; got != rpc.Last4(refresh) {
		t.Errorf("got %q of %q", got, refresh)
	}
}

// Two connections with the tokens of one grant: what is done to one's refresh
// token is done to the other's.
func TestCopiesOfAGrantAreRefreshedTogether(t *testing.T) {
	start := func(t *testing.T) (*world, []string) {
		w := newWorld(t)
		w.Create()
		access, refresh := w.IDP.Issue()
		var ids []string
		for i := range 3 {
			token := refresh
			if i == 2 {
				token = "refresh-of-another-grant"
			}
			ids = append(ids, w.Connect(fmt.Sprintf(`{"provider":%q,"name":"n%d","accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`, oauthID, i, access, token)))
		}
		return w, ids
	}
	t.Run("rotated", func(t *testing.T) {
		w, ids := start(t)
		for round := range 10 {
			gen := w.Replica().Connections[round%2].TokenGeneration
			w.Want(200, "refresh", inprocess.RefreshBody(ids[round%2], gen))
			other := w.Want(200, "refresh", inprocess.RefreshBody(ids[1-round%2], gen))
			if s, _ := w.obj.Keyring.Open(mid, ids[1-round%2], store.AccessToken, secret.Sealed(other.Get("connection.secrets.accessToken").Str)); s.Reveal() != w.IDP.Access {
				t.Fatalf("round %d: the copy has %q", round, s.Reveal())
			}
			w.Clock.Add(61 * time.Second)
		}
		if w.IDP.Calls != 10 || w.IDP.Revocations != 0 {
			t.Errorf("%d calls, %d revocations", w.IDP.Calls, w.IDP.Revocations)
		}
		c := w.Replica().Connections[2]
		if got := w.Open(&c, store.RefreshToken); got != "refresh-of-another-grant" || c.TokenGeneration != 1 {
			t.Errorf("another grant has %q", got)
		}
	})
	t.Run("lost", func(t *testing.T) {
		w, ids := start(t)
		w.IDP.Lose = true
		for i := range 20 {
			w.Call("refresh", inprocess.RefreshBody(ids[i%2], 1))
			w.Clock.Add(10 * time.Second)
		}
		if w.IDP.Calls != 2 {
			t.Errorf("%d calls", w.IDP.Calls)
		}
		for _, id := range ids[:2] {
			if v := w.OK("GET", "/api/providers/"+id, ""); v.Get("status").Str != storage.NeedsReauth {
				t.Error(v.Raw)
			}
		}
	})
	t.Run("at_once", func(t *testing.T) {
		w, ids := start(t)
		var inner string
		w.IDP.During = func() {
			w.IDP.During = nil
			_, a, _ := w.Loc.Call(w.Ctx, mid, "refresh", []byte(inprocess.RefreshBody(ids[1], 1)))
			inner = string(a)
		}
		w.Want(200, "refresh", inprocess.RefreshBody(ids[0], 1))
		if !strings.Contains(inner, "refresh_in_progress") || w.IDP.Calls != 1 {
			t.Errorf("%s, %d calls", inner, w.IDP.Calls)
		}
	})
	t.Run("not_stored_at_first", func(t *testing.T) {
		w, ids := start(t)
		st := w.Loc.Storage(mid)
		w.IDP.During = func() { w.IDP.During = nil; st.Fault = func(key string) bool { return key != "alarm" } }
		if a := w.Want(200, "refresh", inprocess.RefreshBody(ids[0], 1)); !a.Get("unsaved").Bool() {
			t.Fatal(a.Raw)
		}
		st.Fault = nil
		w.Clock.Add(2 * time.Second)
		w.Loc.Alarms(w.Ctx)
		for i := range 2 {
			c := w.Replica().Connections[i]
			if w.Open(&c, store.RefreshToken) != w.IDP.Refresh {
				t.Errorf("copy %d has not the new token", i)
			}
		}
		if len(w.obj.Unsaved) != 0 || w.IDP.Calls != 1 {
			t.Errorf("%d unsaved, %d calls", len(w.obj.Unsaved), w.IDP.Calls)
		}
	})
}

// A credential that is typed in while the new tokens cannot be stored stays.
func TestUnstoredTokensChangeNothingElse(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	st := w.Loc.Storage(mid)
	w.IDP.During = func() { w.IDP.During = nil; st.Fault = func(string) bool { return true } }
	n := 0
	w.Clock.Meanwhile = func() {
		if n++; n == 2 {
			st.Fault = nil
			body := `{"method":"PUT","route":"/api/providers/{id}","params":["` + id + `"],"body":{"name":"renamed meanwhile"}}`
			if status, a := w.obj.Handle(w.Ctx, st, mid, "manage", []byte(body)); status != 200 {
				t.Errorf("%d %s", status, a)
			}
		}
	}
	w.Want(200, "refresh", inprocess.RefreshBody(id, 1))
	c := w.Replica().Connections[0]
	if c.Name != "renamed meanwhile" || c.TokenGeneration != 2 || w.Open(&c, store.RefreshToken) != w.IDP.Refresh || n != 2 {
		t.Errorf("%+v after %d pauses", c, n)
	}
}
