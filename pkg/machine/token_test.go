package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
		w.create()
		access, refresh := w.idp.issue()
		vars := ""
		if strings.HasPrefix(tt.name, "own") {
			vars = `,"clientId":"own-client"`
		}
		id := w.connect(fmt.Sprintf(`{"provider":%q,"accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"%s}%s}`, oauthID, access, refresh, vars, tt.fields))
		w.want(200, "refresh", refreshBody(id, w.replica().Connections[0].TokenGeneration))
		if f := w.idp.lastForm; f.Get("client_id") != tt.id || f.Get("client_secret") != tt.secret || f.Get("refresh_token") != refresh || w.idp.lastEndpoint != "https://login.example.com/token" {
			t.Errorf("%s: asked %s with %v", tt.name, w.idp.lastEndpoint, f)
		}
	}
}

// Tokens that no one can refresh do not keep the alarm going.
func TestTokensWithoutAnEndpointSetNoAlarm(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.connect(fmt.Sprintf(`{"provider":"openai","accessToken":"access-0123456789","refreshToken":"refresh-0123456789","expiresAt":%d}`, w.clock.Now().UnixMilli()-1000))
	for range 5 {
		w.clock.Add(2 * time.Second)
		w.loc.Alarms(w.ctx)
	}
	if m := (w.obj.Begin(w.loc.Storage(mid), mid)).Meta; m.RefreshAt != 0 || m.AlarmAt < w.clock.Now().Add(30*time.Minute).UnixMilli() {
		t.Errorf("refresh at %d, alarm at %d, now %d", m.RefreshAt, m.AlarmAt, w.clock.Now().UnixMilli())
	}
	if w.idp.calls != 0 {
		t.Errorf("%d calls", w.idp.calls)
	}
}

func TestProviderSetsLeastTimeBetweenRefreshes(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.obj.OAuth[0].RefreshEvery = 2 * time.Second
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	w.want(200, "refresh", refreshBody(id, gen))
	w.clock.Add(time.Second)
	if _, a := w.call("refresh", refreshBody(id, gen+1)); !isFailure(a, "refreshed_recently") {
		t.Error(a.Raw)
	}
	w.clock.Add(time.Second)
	w.want(200, "refresh", refreshBody(id, gen+1))
}

// After final refusals an endpoint is called less and less often, and not
// before the time it states.
func TestRefusalsBackOff(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	for range 60 * 24 {
		w.idp.answer = func() (int, string, bool) { return 401, `{"error":"invalid_client"}`, false }
		w.call("refresh", refreshBody(id, gen))
		w.clock.Add(time.Minute)
	}
	if w.idp.calls < 10 || w.idp.calls > 60 {
		t.Errorf("%d calls in a day", w.idp.calls)
	}
	v := w.ok("GET", "/api/providers/"+id, "")
	if v.Get("status").Str == storage.NeedsReauth || v.Get("lastError").Str != "token endpoint: refused, status 401, invalid_client" {
		t.Error(v.Raw)
	}
	w.idp.answer = nil
	w.clock.Add(time.Hour)
	w.want(200, "refresh", refreshBody(id, gen))
	if v := w.ok("GET", "/api/providers/"+id, ""); v.Get("lastError").Exists() {
		t.Error(v.Raw)
	}
}

// The stored and logged failure quotes nothing of the answer.
func TestFailuresOfATokenEndpointQuoteNothing(t *testing.T) {
	for _, body := range []string{`{"error":"refresh-token-000001"}`, `{"error":"invalid_client","error_description":"refresh-token-000001"}`, `<p>refresh-token-000001`} {
		w := newWorld(t)
		w.create()
		id := w.oauth()
		w.idp.answer = func() (int, string, bool) { return 400, body, false }
		_, a := w.call("refresh", refreshBody(id, w.replica().Connections[0].TokenGeneration))
		all := a.Raw + w.ok("GET", "/api/providers/"+id, "").Get("lastError").Str + strings.Join(w.logs, "\n") + w.ok("GET", "/api/audit", "").Raw
		for _, s := range []string{"refresh-token", "weir-client-secret", "access-token"} {
			if strings.Contains(all, s) {
				t.Errorf("%s: %q in %s", body, s, all)
			}
		}
	}
}

func TestLastFourOfRefreshedTokensAreTheirs(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	w.want(200, "refresh", refreshBody(id, w.replica().Connections[0].TokenGeneration))
	c := w.replica().Connections[0]
	refresh := w.open(&c, store.RefreshToken)
	if got := w.ok("GET", "/api/providers/"+id, "").Get("last4").Str; got != rpc.Last4(refresh) {
		t.Errorf("got %q of %q", got, refresh)
	}
}

// Two connections with the tokens of one grant: what is done to one's refresh
// token is done to the other's.
func TestCopiesOfAGrantAreRefreshedTogether(t *testing.T) {
	start := func(t *testing.T) (*world, []string) {
		w := newWorld(t)
		w.create()
		access, refresh := w.idp.issue()
		var ids []string
		for i := range 3 {
			token := refresh
			if i == 2 {
				token = "refresh-of-another-grant"
			}
			ids = append(ids, w.connect(fmt.Sprintf(`{"provider":%q,"name":"n%d","accessToken":%q,"refreshToken":%q,"providerSpecificData":{"baseUrl":"https://api.example.com/v1"}}`, oauthID, i, access, token)))
		}
		return w, ids
	}
	t.Run("rotated", func(t *testing.T) {
		w, ids := start(t)
		for round := range 10 {
			gen := w.replica().Connections[round%2].TokenGeneration
			w.want(200, "refresh", refreshBody(ids[round%2], gen))
			other := w.want(200, "refresh", refreshBody(ids[1-round%2], gen))
			if s, _ := w.obj.Keyring.Open(mid, ids[1-round%2], store.AccessToken, secret.Sealed(other.Get("connection.secrets.accessToken").Str)); s.Reveal() != w.idp.access {
				t.Fatalf("round %d: the copy has %q", round, s.Reveal())
			}
			w.clock.Add(61 * time.Second)
		}
		if w.idp.calls != 10 || w.idp.revocations != 0 {
			t.Errorf("%d calls, %d revocations", w.idp.calls, w.idp.revocations)
		}
		c := w.replica().Connections[2]
		if got := w.open(&c, store.RefreshToken); got != "refresh-of-another-grant" || c.TokenGeneration != 1 {
			t.Errorf("another grant has %q", got)
		}
	})
	t.Run("lost", func(t *testing.T) {
		w, ids := start(t)
		w.idp.lose = true
		for i := range 20 {
			w.call("refresh", refreshBody(ids[i%2], 1))
			w.clock.Add(10 * time.Second)
		}
		if w.idp.calls != 2 {
			t.Errorf("%d calls", w.idp.calls)
		}
		for _, id := range ids[:2] {
			if v := w.ok("GET", "/api/providers/"+id, ""); v.Get("status").Str != storage.NeedsReauth {
				t.Error(v.Raw)
			}
		}
	})
	t.Run("at_once", func(t *testing.T) {
		w, ids := start(t)
		var inner string
		w.idp.during = func() {
			w.idp.during = nil
			_, a, _ := w.loc.Call(w.ctx, mid, "refresh", []byte(refreshBody(ids[1], 1)))
			inner = string(a)
		}
		w.want(200, "refresh", refreshBody(ids[0], 1))
		if !strings.Contains(inner, "refresh_in_progress") || w.idp.calls != 1 {
			t.Errorf("%s, %d calls", inner, w.idp.calls)
		}
	})
	t.Run("not_stored_at_first", func(t *testing.T) {
		w, ids := start(t)
		st := w.loc.Storage(mid)
		w.idp.during = func() { w.idp.during = nil; st.Fault = func(key string) bool { return key != "alarm" } }
		if a := w.want(200, "refresh", refreshBody(ids[0], 1)); !a.Get("unsaved").Bool() {
			t.Fatal(a.Raw)
		}
		st.Fault = nil
		w.clock.Add(2 * time.Second)
		w.loc.Alarms(w.ctx)
		for i := range 2 {
			c := w.replica().Connections[i]
			if w.open(&c, store.RefreshToken) != w.idp.refresh {
				t.Errorf("copy %d has not the new token", i)
			}
		}
		if len(w.obj.Unsaved) != 0 || w.idp.calls != 1 {
			t.Errorf("%d unsaved, %d calls", len(w.obj.Unsaved), w.idp.calls)
		}
	})
}

// A credential that is typed in while the new tokens cannot be stored stays.
func TestUnstoredTokensChangeNothingElse(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	st := w.loc.Storage(mid)
	w.idp.during = func() { w.idp.during = nil; st.Fault = func(string) bool { return true } }
	n := 0
	w.clock.Meanwhile = func() {
		if n++; n == 2 {
			st.Fault = nil
			body := `{"method":"PUT","route":"/api/providers/{id}","params":["` + id + `"],"body":{"name":"renamed meanwhile"}}`
			if status, a := w.obj.Handle(w.ctx, st, mid, "manage", []byte(body)); status != 200 {
				t.Errorf("%d %s", status, a)
			}
		}
	}
	w.want(200, "refresh", refreshBody(id, 1))
	c := w.replica().Connections[0]
	if c.Name != "renamed meanwhile" || c.TokenGeneration != 2 || w.open(&c, store.RefreshToken) != w.idp.refresh || n != 2 {
		t.Errorf("%+v after %d pauses", c, n)
	}
}
