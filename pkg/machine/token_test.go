package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/store"
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

// Tokens that nobody can refresh do not keep the alarm going.
func TestTokensWithoutAnEndpointSetNoAlarm(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.connect(fmt.Sprintf(`{"provider":"openai","accessToken":"access-0123456789","refreshToken":"refresh-0123456789","expiresAt":%d}`, w.clock.Now().UnixMilli()-1000))
	for range 5 {
		w.clock.add(2 * time.Second)
		w.loc.Alarms(w.ctx)
	}
	if m := (w.obj.begin(w.loc.Storage(mid), mid)).meta; m.RefreshAt != 0 || m.AlarmAt < w.clock.Now().Add(30*time.Minute).UnixMilli() {
		t.Errorf("refresh at %d, alarm at %d, now %d", m.RefreshAt, m.AlarmAt, w.clock.Now().UnixMilli())
	}
	if w.idp.calls != 0 {
		t.Errorf("%d calls", w.idp.calls)
	}
}

func TestLeastTimeBetweenRefreshesIsTheProviders(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.obj.OAuth[0].RefreshEvery = 2 * time.Second
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	w.want(200, "refresh", refreshBody(id, gen))
	w.clock.add(time.Second)
	if _, a := w.call("refresh", refreshBody(id, gen+1)); !isFailure(a, "refreshed_recently") {
		t.Error(a.Raw)
	}
	w.clock.add(time.Second)
	w.want(200, "refresh", refreshBody(id, gen+1))
}

// What an endpoint refuses for good is asked ever less often, and no earlier
// than it says.
func TestRefusalsBackOff(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	for range 60 * 24 {
		w.idp.answer = func() (int, string, bool) { return 401, `{"error":"invalid_client"}`, false }
		w.call("refresh", refreshBody(id, gen))
		w.clock.add(time.Minute)
	}
	if w.idp.calls < 10 || w.idp.calls > 60 {
		t.Errorf("%d calls in a day", w.idp.calls)
	}
	v := w.ok("GET", "/api/providers/"+id, "")
	if v.Get("status").Str == needsReauth || v.Get("lastError").Str != "token endpoint: refused, status 401, invalid_client" {
		t.Error(v.Raw)
	}
	w.idp.answer = nil
	w.clock.add(time.Hour)
	w.want(200, "refresh", refreshBody(id, gen))
	if v := w.ok("GET", "/api/providers/"+id, ""); v.Get("lastError").Exists() {
		t.Error(v.Raw)
	}
}

// What is kept and logged of a failure quotes nothing of the answer.
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
	if got := w.ok("GET", "/api/providers/"+id, "").Get("last4").Str; len(refresh) >= last4From && got != refresh[len(refresh)-4:] {
		t.Errorf("got %q of %q", got, refresh)
	}
}
