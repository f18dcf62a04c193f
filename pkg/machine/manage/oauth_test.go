package manage_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const (
	ticket   = inprocess.Ticket
	redirect = inprocess.Redirect
)

func (w *world) back(state string) (int, gjson.Result) {
	w.Helper()
	raw, _ := json.Marshal(rpc.CallbackQuery{Session: ticket, RedirectURI: redirect, Query: "code=code-0123456789&state=" + state})
	return w.Call("oauth.callback", string(raw))
}

// flows returns the keys and values of a machine's flows.
func (w *world) flows() (all string, n int) {
	for _, r := range w.Loc.Storage(mid).Listed(storage.OAuthPrefix) {
		all += r.Key + string(r.Value) + "\n"
		n++
	}
	return all, n
}

// A state is used up durably before its code goes out: a crash during the call
// cannot lead to a second exchange.
func TestStateIsUsedUpBeforeTheCodeIsSent(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	state := w.BeginSignIn(`{}`, "")
	all, n := w.flows()
	if n != 1 || strings.Contains(all, state) || strings.Contains(all, ticket) {
		t.Fatalf("%d rows: %s", n, all)
	}
	left := -1
	w.IDP.During = func() { _, left = w.flows() }
	status, a := w.back(state)
	if status != 200 || left != 0 || a.Get("connectionId").Str == "" {
		t.Fatalf("%d %s, %d rows while the call was out", status, a.Raw, left)
	}
	if status, _ := w.back(state); status != 400 || w.IDP.Calls != 1 {
		t.Errorf("a second time: %d, %d calls", status, w.IDP.Calls)
	}
	c := w.Replica().Connections[0]
	if w.Open(&c, store.RefreshToken) != w.IDP.Refresh || c.AuthType != "oauth" || c.Name != "Acme" || c.Data.BaseURL != "https://api.example.com/v1" {
		t.Errorf("%+v", c)
	}
}

// An OAuth client needs no name in OAUTH_PROVIDERS.
func TestSignInsAtAClientWithoutANameAreNamed(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	w.Manager.OAuth[0].Name = ""
	id := w.Manager.OAuth[0].ID
	for _, want := range []string{id, id + " 2"} {
		_, a := w.back(w.BeginSignIn(`{}`, ""))
		if got := w.OK("GET", "/api/providers/"+a.Get("connectionId").Str, "").Get("name").Str; got != want {
			t.Errorf("got the name %q, want %q", got, want)
		}
	}
}

// The storage fails before the call: no code is sent, and the flow is there
// still.
func TestNoCodeIsSentWhileTheStorageFails(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	state := w.BeginSignIn(`{}`, "")
	st := w.Loc.Storage(mid)
	st.Fault = func(string) bool { return true }
	if status, a := w.back(state); status != 503 || w.IDP.Calls != 0 {
		t.Fatalf("%d %s, %d calls", status, a.Raw, w.IDP.Calls)
	}
	st.Fault = nil
	st.Rollback()
	if status, a := w.back(state); status != 200 {
		t.Errorf("%d %s", status, a.Raw)
	}
}

func TestGrantWithoutManageAccessIsDropped(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	key := w.OK("POST", "/api/keys", `{"name":"m","scopes":["manage"]}`).Get("id").Str
	state := w.BeginSignIn(`{}`, key)
	w.IDP.During = func() {
		w.IDP.During = nil
		w.API("DELETE", "/api/keys/"+key, "")
	}
	if status, a := w.back(state); status != 401 || len(w.Replica().Connections) != 0 {
		t.Errorf("%d %s", status, a.Raw)
	}
	state = w.BeginSignIn(`{}`, "")
	w.IDP.During = func() { w.IDP.During = nil; w.Want(204, "delete", "") }
	if status, a := w.back(state); status != 404 {
		t.Errorf("a machine that is gone: %d %s", status, a.Raw)
	}
}

// CREDENTIALS_KEY is replaced while users are at their provider: neither flow
// is lost, and nothing is left that only the old key opens.
func TestFlowsInProgressAreResealedAfterARotation(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	w.Clock.Add(58 * time.Minute)
	w.obj.OAuth[0].DevicePKCE = true
	state := w.BeginSignIn(`{}`, "")
	w.IDP.Answer = func() (int, string, bool) {
		return 200, `{"device_code":"device-code-01","user_code":"ABCD","verification_uri":"https://login.example.com/go","expires_in":900,"interval":5}`, false
	}
	if status, a := w.OAuthCall("device", `{}`, ""); status != 200 {
		t.Fatal(a.Raw)
	}
	old, fresh := sealed.Secret, strings.Repeat("n", 40)
	before, _ := w.flows()
	w.obj.Keyring = sealed.Keys(t, fresh, old)
	w.Clock.Add(3 * time.Minute)
	w.Loc.Alarms(w.Ctx)
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
	if status, a := w.OAuthCall("poll", `{}`, ""); status != 200 || a.Get("body.status").Str != "connected" {
		t.Errorf("the poll: %d %s", status, a.Raw)
	}
	if form := w.IDP.LastForm; form.Get("device_code") != "device-code-01" || len(form.Get("code_verifier")) != 43 {
		t.Errorf("polled with %v", form)
	}
}

// Renewing takes the client of the grant, not one that was typed in before.
func TestRenewedConnectionRefreshesAsTheOperatorsClient(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	id := w.Connect(`{"provider":"` + oauthID + `","accessToken":"typed-access","refreshToken":"typed-refresh","clientSecret":"typed-secret","providerSpecificData":{"baseUrl":"https://api.example.com/v1","clientId":"typed-client","region":"eu"}}`)
	w.IDP.Answer = func() (int, string, bool) { return 400, `{"error":"invalid_grant"}`, false }
	w.Call("refresh", inprocess.RefreshBody(id, w.Replica().Connections[0].TokenGeneration))
	if v := w.OK("GET", "/api/providers/"+id, ""); v.Get("status").Str != "needs_reauth" {
		t.Fatal(v.Raw)
	}
	w.IDP.Answer = nil
	if status, a := w.back(w.BeginSignIn(`{"connectionId":"`+id+`"}`, "")); status != 200 || !a.Get("renewed").Bool() {
		t.Fatalf("%d %s", status, a.Raw)
	}
	if v := w.OK("GET", "/api/providers/"+id, ""); v.Get("status").Str != "active" || v.Get("lastError").Exists() {
		t.Errorf("renewed: %s", v.Raw)
	}
	c := w.Replica().Connections[0]
	if c.ID != id || c.Data.Vars["clientId"] != "" || c.Data.Vars["region"] != "eu" || c.Secrets[store.ClientSecret] != "" {
		t.Errorf("%+v", c)
	}
	w.Want(200, "refresh", inprocess.RefreshBody(id, c.TokenGeneration))
	if w.IDP.LastForm.Get("client_id") != "weir-client" || w.IDP.LastForm.Get("client_secret") != "weir-client-secret" {
		t.Errorf("%v", w.IDP.LastForm)
	}
}

func TestEndedFlowsArePruned(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	for range 3 {
		w.BeginSignIn(`{"name":"x"}`, "")
	}
	w.Clock.Add(9 * time.Minute)
	w.BeginSignIn(`{}`, "")
	if _, n := w.flows(); n != 4 {
		t.Fatalf("%d rows", n)
	}
	w.Clock.Add(2 * time.Minute)
	w.BeginSignIn(`{}`, "") // drops those of before
	if _, n := w.flows(); n != 2 {
		t.Fatalf("%d rows", n)
	}
	w.Clock.Add(2 * time.Hour)
	w.Loc.Alarms(w.Ctx)
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
			w.Create()
			answer := `{"access_token":"access-by-proxy-0001","refresh_token":"refresh-by-proxy-0001"}`
			s := &inprocess.Sockets{Proxy: inprocess.Tunnel, Endpoint: "HTTP/1.1 200 OK\r\ncontent-length: " + strconv.Itoa(len(answer)) + "\r\n\r\n" + answer}
			w.obj.Dialer = s
			body := tt.body
			if tt.connection != "" {
				id := w.Connect(`{"provider":"` + oauthID + `","accessToken":"typed-access","refreshToken":"typed-refresh","providerSpecificData":{"baseUrl":"https://api.example.com/v1"` + tt.connection + `}}`)
				body = `{"connectionId":"` + id + `"}`
			}
			status, a := w.back(w.BeginSignIn(body, ""))
			if status != 200 || w.IDP.Calls != 0 || len(s.Dialled) != 1 || s.Dialled[0] != "proxy.example.com:3128" {
				t.Fatalf("%d %s, %d direct calls, dialled %v", status, a.Raw, w.IDP.Calls, s.Dialled)
			}
			if strings.Contains(strings.ToLower(s.Sent.String()), "proxy-authorization") != (tt.connection != "") {
				t.Errorf("%s", s.Sent.String())
			}
			c := w.Replica().Connections[0]
			if w.Open(&c, store.AccessToken) != "access-by-proxy-0001" || c.Data.Proxy == "" {
				t.Errorf("%+v", c)
			}
			w.obj.Dialer = &inprocess.Sockets{}
			status, a = w.back(w.BeginSignIn(body, ""))
			if status != 503 || w.IDP.Calls != 0 || !strings.Contains(a.Get("error.message").Str, "the proxy does not work") {
				t.Errorf("a broken proxy: %d %s, %d direct calls", status, a.Raw, w.IDP.Calls)
			}
		})
	}
	w := newWorld(t).withFlows()
	w.Create()
	if status, a := w.OAuthCall("authorize", `{"providerSpecificData":{"proxyUrl":"http://user:password@proxy.example.com:3128"}}`, ""); status != 400 || strings.Contains(a.Raw, "password@") {
		t.Errorf("a note holds no secret: %d %s", status, a.Raw)
	}
}

// A sign-in with fields that its caller may not set is refused, with the name of the field.
func TestInvalidSignInsAreRefused(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	key := w.Connect(`{"provider":"groq","apiKey":"gsk-0123456789"}`)
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
			status, a := w.OAuthCall(step, tt.body, "")
			if _, n := w.flows(); status != tt.status || tt.param != "" && a.Get("error.param").Str != tt.param || n != 0 {
				t.Errorf("%s %s: %d %s, %d flows", step, tt.body, status, a.Raw, n)
			}
		}
	}
	w.obj.OAuth[0].BaseURL = "" // the caller's own server
	if status, a := w.OAuthCall("authorize", `{}`, ""); status != 400 || a.Get("error.param").Str != "providerSpecificData.baseUrl" {
		t.Errorf("no address: %d %s", status, a.Raw)
	}
	if status, a := w.back(w.BeginSignIn(`{"providerSpecificData":{"baseUrl":"https://mine.example.com/v1","prefix":"own"}}`, "")); status != 200 {
		t.Errorf("an own address: %d %s", status, a.Raw)
	}
	w.obj.OAuth[0].AuthorizeURL = ""
	if status, a := w.OAuthCall("authorize", `{"providerSpecificData":{"baseUrl":"https://mine.example.com/v1"}}`, ""); status != 400 {
		t.Errorf("a provider without this flow: %d %s", status, a.Raw)
	}
	w.obj.OAuth = nil
	if status, a := w.OAuthCall("authorize", `{}`, ""); status != 404 {
		t.Errorf("a provider without a client: %d %s", status, a.Raw)
	}
	w.obj.Unusable = map[string]string{oauthID: "OAUTH_PROVIDERS: row 1: bad proxy"}
	if status, a := w.OAuthCall("authorize", `{}`, ""); status != 503 || !isFailure(a, "misconfigured") {
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
		{"refuses the client", func() (int, string, bool) { return 401, `{"error":"invalid_client"}`, false }, 502, "refused the OAuth client of this gateway (invalid_client)"},
		{"refuses the code", func() (int, string, bool) { return 400, `{"error":"invalid_grant"}`, false }, 400, "no longer accepts the code"},
		{"fails", func() (int, string, bool) { return 503, "", false }, 503, "no usable answer"},
		{"loses the answer", func() (int, string, bool) { return 0, "", true }, 503, "no usable answer"},
		{"sends a page", func() (int, string, bool) { return 200, "<html>", false }, 502, "answer was lost"},
		{"sends text in its error", func() (int, string, bool) { return 400, `{"error":"<b>canary</b>","error_description":"<b>"}`, false }, 502, "refused"},
	} {
		w := newWorld(t).withFlows()
		w.Create()
		state := w.BeginSignIn(`{}`, "")
		w.IDP.Answer = tt.answer
		status, a := w.back(state)
		if status != tt.status || !strings.Contains(a.Get("error.message").Str, tt.says) || strings.Contains(a.Raw, "<b>") || strings.Contains(a.Raw, "canary") {
			t.Errorf("%s: %d %s", tt.name, status, a.Raw)
		}
		if status, _ := w.back(state); status != 400 || w.IDP.Calls != 1 || len(w.Replica().Connections) != 0 {
			t.Errorf("%s, once more: %d, %d calls", tt.name, status, w.IDP.Calls)
		}
	}
}

// The user is at the provider while the connection is deleted.
func TestDeletedConnectionIsNotRenewed(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	id := w.OAuth()
	state := w.BeginSignIn(`{"connectionId":"`+id+`"}`, "")
	w.IDP.Answer = func() (int, string, bool) {
		return 200, `{"device_code":"d","user_code":"u","verification_uri":"https://login.example.com/go","expires_in":900,"interval":1}`, false
	}
	if status, a := w.OAuthCall("device", `{"connectionId":"`+id+`"}`, ""); status != 200 || a.Get("body.connectionId").Str != id {
		t.Fatalf("%d %s", status, a.Raw)
	}
	w.IDP.Answer = nil
	w.API("DELETE", "/api/providers/"+id, "")
	w.Clock.Add(5 * time.Second)
	calls := w.IDP.Calls
	if status, a := w.OAuthCall("poll", `{}`, ""); status != 404 || !isFailure(a, "connection_not_found") || w.IDP.Calls != calls {
		t.Errorf("the poll: %d %s, %d calls", status, a.Raw, w.IDP.Calls-calls)
	}
	if status, a := w.back(state); status != 404 || !strings.Contains(a.Raw, "No account has this id") || len(w.Replica().Connections) != 0 {
		t.Errorf("the browser comes back: %d %s", status, a.Raw)
	}
}

func TestSignInsUnderWayAreBounded(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
	for range 50 {
		w.BeginSignIn(`{}`, "")
	}
	if status, a := w.OAuthCall("authorize", `{}`, ""); status != 429 {
		t.Errorf("%d %s", status, a.Raw)
	}
}

// A provider without a device code has another explanation than one that refuses the client.
func TestFailedDeviceFlowIsExplained(t *testing.T) {
	w := newWorld(t).withFlows()
	w.Create()
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
		w.IDP.Answer = func() (int, string, bool) { return tt.status, tt.body, false }
		if status, a := w.OAuthCall("device", `{}`, ""); status != tt.want || !isFailure(a, tt.code) {
			t.Errorf("%d %s: %d %s", tt.status, tt.body, status, a.Raw)
		}
	}
	w.IDP.Answer = func() (int, string, bool) {
		return 200, `{"device_code":"d","user_code":"u","verification_uri":"https://login.example.com/go","expires_in":900,"interval":1}`, false
	}
	if status, a := w.OAuthCall("device", `{}`, ""); status != 200 {
		t.Fatalf("%d %s", status, a.Raw)
	}
	if status, a := w.OAuthCall("device", `{"name":"another"}`, ""); status != 409 {
		t.Errorf("for another connection: %d %s", status, a.Raw)
	}
	w.IDP.Answer = func() (int, string, bool) { return 503, "", false }
	w.Clock.Add(6 * time.Second)
	if status, a := w.OAuthCall("poll", `{}`, ""); status != 200 || a.Get("body.status").Str != "pending" {
		t.Errorf("a failed poll: %d %s", status, a.Raw)
	}
	if status, _ := w.OAuthCall("cancel", `{}`, ""); status != 200 {
		t.Errorf("cancelled: %d", status)
	}
	if status, a := w.OAuthCall("poll", `{}`, ""); status != 400 || !isFailure(a, "no_flow") {
		t.Errorf("after that: %d %s", status, a.Raw)
	}
}
