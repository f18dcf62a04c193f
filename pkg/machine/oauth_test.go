package machine

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/sealed"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const (
	ticket   = "ticket-0123456789-of-a-browser"
	redirect = "https://weir.example.com/oauth/callback"
)

func (w *world) withFlows() *world {
	p := &w.obj.OAuth[0]
	p.AuthorizeURL, p.DeviceURL, p.BaseURL, p.Name = "https://login.example.com/authorize", "https://login.example.com/device", "https://api.example.com/v1", "Acme"
	return w
}

// oauthCall is a management call of a flow.
func (w *world) oauthCall(step, body, keyID string) (int, gjson.Result) {
	w.Helper()
	raw, _ := json.Marshal(rpc.ManageCall{
		Method: "POST", Route: "/api/oauth/{provider}/" + step, Params: []string{oauthID}, Body: json.RawMessage(body), KeyID: keyID, Session: ticket, RedirectURI: redirect,
	})
	return w.call("manage", string(raw))
}

// begin begins an authorization and returns its state.
func (w *world) begin(body, keyID string) string {
	w.Helper()
	status, a := w.oauthCall("authorize", body, keyID)
	if status != 200 {
		w.Fatal(a.Raw)
	}
	u, err := url.Parse(a.Get("body.url").Str)
	if err != nil || u.Query().Get("state") != a.Get("body.state").Str {
		w.Fatal(a.Raw)
	}
	return a.Get("body.state").Str
}

func (w *world) back(state string) (int, gjson.Result) {
	w.Helper()
	raw, _ := json.Marshal(rpc.CallbackQuery{Session: ticket, RedirectURI: redirect, Query: "code=code-0123456789&state=" + state})
	return w.call("oauth.callback", string(raw))
}

// flows returns the keys and values of a machine's flows.
func (w *world) flows() (all string, n int) {
	for _, r := range w.loc.Storage(mid).Listed(storage.OAuthPrefix) {
		all += r.Key + string(r.Value) + "\n"
		n++
	}
	return all, n
}

// A state is used up durably before its code goes out: a crash during the call
// cannot lead to a second exchange.
func TestStateIsUsedUpBeforeTheCodeIsSent(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	state := w.begin(`{}`, "")
	all, n := w.flows()
	if n != 1 || strings.Contains(all, state) || strings.Contains(all, ticket) {
		t.Fatalf("%d rows: %s", n, all)
	}
	left := -1
	w.idp.during = func() { _, left = w.flows() }
	status, a := w.back(state)
	if status != 200 || left != 0 || a.Get("connectionId").Str == "" {
		t.Fatalf("%d %s, %d rows while the call was out", status, a.Raw, left)
	}
	if status, _ := w.back(state); status != 400 || w.idp.calls != 1 {
		t.Errorf("a second time: %d, %d calls", status, w.idp.calls)
	}
	c := w.replica().Connections[0]
	if w.open(&c, store.RefreshToken) != w.idp.refresh || c.AuthType != "oauth" || c.Name != "Acme" || c.Data.BaseURL != "https://api.example.com/v1" {
		t.Errorf("%+v", c)
	}
}

// The storage fails before the call: no code is sent, and the flow is there
// still.
func TestNoCodeIsSentWhileTheStorageFails(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	state := w.begin(`{}`, "")
	st := w.loc.Storage(mid)
	st.Fault = func(string) bool { return true }
	if status, a := w.back(state); status != 503 || w.idp.calls != 0 {
		t.Fatalf("%d %s, %d calls", status, a.Raw, w.idp.calls)
	}
	st.Fault = nil
	st.Rollback()
	if status, a := w.back(state); status != 200 {
		t.Errorf("%d %s", status, a.Raw)
	}
}

func TestGrantWithoutManageAccessIsDropped(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	key := w.ok("POST", "/api/keys", `{"name":"m","scopes":["manage"]}`).Get("id").Str
	state := w.begin(`{}`, key)
	w.idp.during = func() {
		w.idp.during = nil
		w.api("DELETE", "/api/keys/"+key, "")
	}
	if status, a := w.back(state); status != 401 || len(w.replica().Connections) != 0 {
		t.Errorf("%d %s", status, a.Raw)
	}
	state = w.begin(`{}`, "")
	w.idp.during = func() { w.idp.during = nil; w.want(204, "delete", "") }
	if status, a := w.back(state); status != 404 {
		t.Errorf("a machine that is gone: %d %s", status, a.Raw)
	}
}

// CREDENTIALS_KEY is replaced while users are at their provider: neither flow
// is lost, and nothing is left that only the old key opens.
func TestFlowsInProgressAreResealedAfterARotation(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	w.clock.Add(58 * time.Minute)
	w.obj.OAuth[0].DevicePKCE = true
	state := w.begin(`{}`, "")
	w.idp.answer = func() (int, string, bool) {
		return 200, `{"device_code":"device-code-01","user_code":"ABCD","verification_uri":"https://login.example.com/go","expires_in":900,"interval":5}`, false
	}
	if status, a := w.oauthCall("device", `{}`, ""); status != 200 {
		t.Fatal(a.Raw)
	}
	old, fresh := sealed.Secret, strings.Repeat("n", 40)
	before, _ := w.flows()
	w.obj.Keyring = sealed.Keys(t, fresh, old)
	w.clock.Add(3 * time.Minute)
	w.loc.Alarms(w.ctx)
	all, n := w.flows()
	fields := strings.Count(all, `"v1.`)
	id := strings.Split(all[strings.Index(all, `"v1.`):], ".")[1]
	if n != 2 || fields != 3 || strings.Count(all, `"v1.`+id+`.`) != 3 || strings.Contains(before, id) {
		t.Fatalf("%d rows, %d sealed: %s", n, fields, all)
	}
	w.obj.Keyring = sealed.Keys(t, fresh)
	if status, a := w.back(state); status != 200 {
		t.Errorf("the browser comes back: %d %s", status, a.Raw)
	}
	if status, a := w.oauthCall("poll", `{}`, ""); status != 200 || a.Get("body.status").Str != "connected" {
		t.Errorf("the poll: %d %s", status, a.Raw)
	}
	if form := w.idp.lastForm; form.Get("device_code") != "device-code-01" || len(form.Get("code_verifier")) != 43 {
		t.Errorf("polled with %v", form)
	}
}

// Renewing takes the client of the grant, not one that was typed in before.
func TestRenewedConnectionRefreshesAsTheOperatorsClient(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	id := w.connect(`{"provider":"` + oauthID + `","accessToken":"typed-access","refreshToken":"typed-refresh","clientSecret":"typed-secret","providerSpecificData":{"baseUrl":"https://api.example.com/v1","clientId":"typed-client","region":"eu"}}`)
	w.idp.answer = func() (int, string, bool) { return 400, `{"error":"invalid_grant"}`, false }
	w.call("refresh", refreshBody(id, w.replica().Connections[0].TokenGeneration))
	if v := w.ok("GET", "/api/providers/"+id, ""); v.Get("status").Str != "needs_reauth" {
		t.Fatal(v.Raw)
	}
	w.idp.answer = nil
	if status, a := w.back(w.begin(`{"connectionId":"`+id+`"}`, "")); status != 200 || !a.Get("renewed").Bool() {
		t.Fatalf("%d %s", status, a.Raw)
	}
	if v := w.ok("GET", "/api/providers/"+id, ""); v.Get("status").Str != "active" || v.Get("lastError").Exists() {
		t.Errorf("renewed: %s", v.Raw)
	}
	c := w.replica().Connections[0]
	if c.ID != id || c.Data.Vars["clientId"] != "" || c.Data.Vars["region"] != "eu" || c.Secrets[store.ClientSecret] != "" {
		t.Errorf("%+v", c)
	}
	w.want(200, "refresh", refreshBody(id, c.TokenGeneration))
	if w.idp.lastForm.Get("client_id") != "weir-client" || w.idp.lastForm.Get("client_secret") != "weir-client-secret" {
		t.Errorf("%v", w.idp.lastForm)
	}
}

func TestEndedFlowsArePruned(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	for range 3 {
		w.begin(`{"name":"x"}`, "")
	}
	w.clock.Add(9 * time.Minute)
	w.begin(`{}`, "")
	if _, n := w.flows(); n != 4 {
		t.Fatalf("%d rows", n)
	}
	w.clock.Add(2 * time.Minute)
	w.begin(`{}`, "") // drops those of before
	if _, n := w.flows(); n != 2 {
		t.Fatalf("%d rows", n)
	}
	w.clock.Add(2 * time.Hour)
	w.loc.Alarms(w.ctx)
	if all, n := w.flows(); n != 0 {
		t.Errorf("%s", all)
	}
}

// A sign-in goes through the proxy of the connection that it is for, as its
// refreshes do. Nothing goes around it.
func TestSignInGoesThroughTheProxyOfTheConnection(t *testing.T) {
	for _, tt := range []struct{ name, body, connection string }{
		{name: "new", body: `{"providerSpecificData":{"proxyUrl":"http://proxy.example.com:3128"}}`},
		{name: "renewed", connection: `,"proxyUrl":"http://user:password@proxy.example.com:3128"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t).withFlows()
			w.create()
			answer := `{"access_token":"access-by-proxy-0001","refresh_token":"refresh-by-proxy-0001"}`
			s := &sockets{proxy: tunnel, endpoint: "HTTP/1.1 200 OK\r\ncontent-length: " + strconv.Itoa(len(answer)) + "\r\n\r\n" + answer}
			w.obj.Dialer = s
			body := tt.body
			if tt.connection != "" {
				id := w.connect(`{"provider":"` + oauthID + `","accessToken":"typed-access","refreshToken":"typed-refresh","providerSpecificData":{"baseUrl":"https://api.example.com/v1"` + tt.connection + `}}`)
				body = `{"connectionId":"` + id + `"}`
			}
			status, a := w.back(w.begin(body, ""))
			if status != 200 || w.idp.calls != 0 || len(s.dialled) != 1 || s.dialled[0] != "proxy.example.com:3128" {
				t.Fatalf("%d %s, %d direct calls, dialled %v", status, a.Raw, w.idp.calls, s.dialled)
			}
			if strings.Contains(strings.ToLower(s.sent.String()), "proxy-authorization") != (tt.connection != "") {
				t.Errorf("%s", s.sent.String())
			}
			c := w.replica().Connections[0]
			if w.open(&c, store.AccessToken) != "access-by-proxy-0001" || c.Data.Proxy == "" {
				t.Errorf("%+v", c)
			}
			w.obj.Dialer = &sockets{}
			status, a = w.back(w.begin(body, ""))
			if status != 503 || w.idp.calls != 0 || !strings.Contains(a.Get("error.message").Str, "the proxy does not work") {
				t.Errorf("a broken proxy: %d %s, %d direct calls", status, a.Raw, w.idp.calls)
			}
		})
	}
	w := newWorld(t).withFlows()
	w.create()
	if status, a := w.oauthCall("authorize", `{"providerSpecificData":{"proxyUrl":"http://user:password@proxy.example.com:3128"}}`, ""); status != 400 || strings.Contains(a.Raw, "password@") {
		t.Errorf("a note holds no secret: %d %s", status, a.Raw)
	}
}

// A sign-in with fields that its caller may not set is refused, with the name of the field.
func TestInvalidSignInsAreRefused(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	key := w.connect(`{"provider":"groq","apiKey":"gsk-0123456789"}`)
	for _, tt := range []struct {
		body   string
		status int
		param  string
	}{
		{`{"connectionId":"unknown"}`, 404, ""},
		{`{"connectionId":"` + key + `"}`, 400, "connectionId"},
		{`{"connectionId":"` + key + `","name":"x"}`, 400, "connectionId"},
		{`{"redirectUri":"https://evil.example.com"}`, 400, "redirectUri"},
		{`{"tokenUrl":"https://evil.example.com"}`, 400, "tokenUrl"},
		{`{"providerSpecificData":{"baseUrl":"https://evil.example.com"}}`, 400, "providerSpecificData.baseUrl"},
		{`{"providerSpecificData":null}`, 400, "providerSpecificData.baseUrl"},
		{`{"providerSpecificData":{"clientId":"other"}}`, 400, ""},
		{`{"providerSpecificData":{"clientSecret":"other-secret"}}`, 400, ""},
		{`{"name":5}`, 400, "name"},
	} {
		for _, step := range []string{"authorize", "device"} {
			status, a := w.oauthCall(step, tt.body, "")
			if _, n := w.flows(); status != tt.status || tt.param != "" && a.Get("error.param").Str != tt.param || n != 0 {
				t.Errorf("%s %s: %d %s, %d flows", step, tt.body, status, a.Raw, n)
			}
		}
	}
	w.obj.OAuth[0].BaseURL = "" // the caller's own server
	if status, a := w.oauthCall("authorize", `{}`, ""); status != 400 || a.Get("error.param").Str != "providerSpecificData.baseUrl" {
		t.Errorf("no address: %d %s", status, a.Raw)
	}
	if status, a := w.back(w.begin(`{"providerSpecificData":{"baseUrl":"https://mine.example.com/v1","prefix":"own"}}`, "")); status != 200 {
		t.Errorf("an own address: %d %s", status, a.Raw)
	}
	w.obj.OAuth[0].AuthorizeURL = ""
	if status, a := w.oauthCall("authorize", `{"providerSpecificData":{"baseUrl":"https://mine.example.com/v1"}}`, ""); status != 400 {
		t.Errorf("a provider without this flow: %d %s", status, a.Raw)
	}
	w.obj.OAuth = nil
	if status, a := w.oauthCall("authorize", `{}`, ""); status != 404 {
		t.Errorf("a provider without a client: %d %s", status, a.Raw)
	}
	w.obj.Unusable = map[string]string{oauthID: "OAUTH_PROVIDERS: row 1: bad proxy"}
	if status, a := w.oauthCall("authorize", `{}`, ""); status != 503 || !isFailure(a, "misconfigured") {
		t.Errorf("a client that cannot be used: %d %s", status, a.Raw)
	}
}

// The code is sent once, whatever its endpoint makes of it.
func TestFailedExchangeIsExplained(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func() (int, string, bool)
		status int
		says   string
	}{
		{"refuses the client", func() (int, string, bool) { return 401, `{"error":"invalid_client"}`, false }, 502, "refused the gateway"},
		{"refuses the code", func() (int, string, bool) { return 400, `{"error":"invalid_grant"}`, false }, 400, "no longer accepts the code"},
		{"fails", func() (int, string, bool) { return 503, "", false }, 503, "no usable answer"},
		{"loses the answer", func() (int, string, bool) { return 0, "", true }, 503, "no usable answer"},
		{"sends a page", func() (int, string, bool) { return 200, "<html>", false }, 502, "answer was lost"},
		{"sends text in its error", func() (int, string, bool) { return 400, `{"error":"<b>canary</b>","error_description":"<b>"}`, false }, 502, "refused"},
	} {
		w := newWorld(t).withFlows()
		w.create()
		state := w.begin(`{}`, "")
		w.idp.answer = tt.answer
		status, a := w.back(state)
		if status != tt.status || !strings.Contains(a.Get("error.message").Str, tt.says) || strings.Contains(a.Raw, "<b>") || strings.Contains(a.Raw, "canary") {
			t.Errorf("%s: %d %s", tt.name, status, a.Raw)
		}
		if status, _ := w.back(state); status != 400 || w.idp.calls != 1 || len(w.replica().Connections) != 0 {
			t.Errorf("%s, once more: %d, %d calls", tt.name, status, w.idp.calls)
		}
	}
}

// The user is at the provider while the connection is deleted.
func TestDeletedConnectionIsNotRenewed(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	id := w.oauth()
	state := w.begin(`{"connectionId":"`+id+`"}`, "")
	w.idp.answer = func() (int, string, bool) {
		return 200, `{"device_code":"d","user_code":"u","verification_uri":"https://login.example.com/go","expires_in":900,"interval":1}`, false
	}
	if status, a := w.oauthCall("device", `{"connectionId":"`+id+`"}`, ""); status != 200 || a.Get("body.connectionId").Str != id {
		t.Fatalf("%d %s", status, a.Raw)
	}
	w.idp.answer = nil
	w.api("DELETE", "/api/providers/"+id, "")
	w.clock.Add(5 * time.Second)
	calls := w.idp.calls
	if status, a := w.oauthCall("poll", `{}`, ""); status != 404 || !isFailure(a, "connection_not_found") || w.idp.calls != calls {
		t.Errorf("the poll: %d %s, %d calls", status, a.Raw, w.idp.calls-calls)
	}
	if status, a := w.back(state); status != 404 || !strings.Contains(a.Raw, "No connection has this id") || len(w.replica().Connections) != 0 {
		t.Errorf("the browser comes back: %d %s", status, a.Raw)
	}
}

func TestSignInsUnderWayAreBounded(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	for range 50 {
		w.begin(`{}`, "")
	}
	if status, a := w.oauthCall("authorize", `{}`, ""); status != 429 {
		t.Errorf("%d %s", status, a.Raw)
	}
}

// A provider without a device code has another explanation than one that refuses the client.
func TestFailedDeviceFlowIsExplained(t *testing.T) {
	w := newWorld(t).withFlows()
	w.create()
	for _, tt := range []struct {
		status int
		body   string
		want   int
		code   string
	}{
		{500, "", 503, "provider_unavailable"},
		{200, "<html>", 503, "provider_unavailable"},
		{200, `{"user_code":"X","verification_uri":"javascript:alert(1)","device_code":"d"}`, 503, "provider_unavailable"},
		{400, `{"error":"unauthorized_client"}`, 502, "provider_refused"},
	} {
		w.idp.answer = func() (int, string, bool) { return tt.status, tt.body, false }
		if status, a := w.oauthCall("device", `{}`, ""); status != tt.want || !isFailure(a, tt.code) {
			t.Errorf("%d %s: %d %s", tt.status, tt.body, status, a.Raw)
		}
	}
	w.idp.answer = func() (int, string, bool) {
		return 200, `{"device_code":"d","user_code":"u","verification_uri":"https://login.example.com/go","expires_in":900,"interval":1}`, false
	}
	if status, a := w.oauthCall("device", `{}`, ""); status != 200 {
		t.Fatalf("%d %s", status, a.Raw)
	}
	if status, a := w.oauthCall("device", `{"name":"another"}`, ""); status != 409 {
		t.Errorf("for another connection: %d %s", status, a.Raw)
	}
	w.idp.answer = func() (int, string, bool) { return 503, "", false }
	w.clock.Add(6 * time.Second)
	if status, a := w.oauthCall("poll", `{}`, ""); status != 200 || a.Get("body.status").Str != "pending" {
		t.Errorf("a failed poll: %d %s", status, a.Raw)
	}
	if status, _ := w.oauthCall("cancel", `{}`, ""); status != 200 {
		t.Errorf("cancelled: %d", status)
	}
	if status, a := w.oauthCall("poll", `{}`, ""); status != 400 || !isFailure(a, "no_flow") {
		t.Errorf("after that: %d %s", status, a.Raw)
	}
}
