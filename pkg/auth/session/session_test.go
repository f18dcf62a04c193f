package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/local"
	"weir/internal/testgw/objects"
	"weir/pkg/auth"
	"weir/pkg/machine/rpc"
	"weir/pkg/snapshot"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

const (
	own   = "https://weir.example"
	mid   = "abcdefgh01234567"
	admin = "operator-token-0123456789abcdef0123456789"
)

// world has sessions over objects in process.
type world struct {
	*testing.T
	now   time.Time
	local *objects.Local
	s     *Sessions
	auth  *Authenticator
	keyID string // of the manage key
	key   string
	data  string // a key that manages nothing
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, now: time.UnixMilli(1_800_000_000_000)}
	clock := func() time.Time { return w.now }
	secret, kv, src := local.KeySecret, fake.NewKV(), rand.NewChaCha8([32]byte{1})
	w.local = local.Machines(t, clock, kv)
	inner := &auth.Authenticator{KeySecret: secret, AdminToken: auth.Digest(admin), RequireKey: true,
		Machines: &snapshot.Cache{KV: kv, Object: w.local, Now: clock}, Now: clock}
	w.s = &Sessions{Credentials: inner, Objects: w.local, Rand: src, Now: clock, KeySecret: secret, AdminToken: inner.AdminToken}
	w.auth = w.s.Wrap()
	w.data = w.object(mid, "create", `{}`).Get("apiKey").Str
	made := w.object(mid, "manage", `{"method":"POST","route":"/api/keys","body":{"name":"boss","scopes":["manage"]}}`)
	w.key, w.keyID = made.Get("body.apiKey").Str, made.Get("body.id").Str
	return w
}

func (w *world) object(id, op, body string) gjson.Result {
	w.Helper()
	status, raw, err := w.local.Call(context.Background(), id, op, []byte(body))
	if err != nil || status > 299 {
		w.Fatalf("%s %s: %d %s %v", op, body, status, raw, err)
	}
	return gjson.ParseBytes(raw)
}

// from makes a request as a page of the gateway sends it.
func from(method, route, body string, more ...string) *httpmsg.Request {
	r := &httpmsg.Request{Method: method, Path: route, Origin: own, Body: stream.FromBytes([]byte(body)), Header: httpmsg.Header{
		{Name: "content-type", Value: "application/json"}, {Name: "origin", Value: own}, {Name: "sec-fetch-site", Value: "same-origin"},
	}}
	r.Route = route
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	return r
}

// signIn returns the cookie and what the page is told; status is that of a
// refusal.
func (w *world) signIn(token string, more ...string) (cookie string, v View, status int) {
	w.Helper()
	body, _ := json.Marshal(map[string]string{"token": token})
	resp, err := w.s.Create(context.Background(), &auth.Call{Request: from("POST", "/api/session", string(body), more...), MaxBody: 4096})
	if err != nil {
		return "", v, statusOf(err)
	}
	raw, _ := stream.ReadAll(resp.Body, 1<<16)
	if err := json.Unmarshal(raw, &v); err != nil {
		w.Fatal(err)
	}
	set := resp.Header.Get("set-cookie")
	cookie, _, _ = strings.Cut(set, ";")
	for _, attr := range []string{"; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"} {
		if !strings.Contains(set, attr) {
			w.Errorf("the cookie lacks %s: %s", attr, set)
		}
	}
	if !strings.HasPrefix(set, "__Host-") || strings.Contains(set, "Domain") || strings.Contains(set, "Max-Age") {
		w.Errorf("unexpected cookie %s", set)
	}
	return cookie, v, 200
}

func statusOf(err error) int {
	var e *apierr.Error
	if errors.As(err, &e) {
		return e.Status
	}
	if err != nil {
		return 500
	}
	return 200
}

func codeOf(err error) string {
	var e *apierr.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Code
}

// get asks for management with a cookie.
func (w *world) get(cookie, path string) (*auth.Call, error) {
	return w.auth.Manage(context.Background(), from("GET", "/api/providers", "", "cookie", cookie), path)
}

func TestSessionOfTheOperator(t *testing.T) {
	w := newWorld(t)
	cookie, v, _ := w.signIn(admin)
	if !v.SignedIn || !v.Operator || v.MachineID != "" || len(v.CSRFToken) != 64 {
		t.Errorf("got %+v", v)
	}
	c, err := w.get(cookie, mid)
	if err != nil || !c.Operator || c.MachineID != mid || c.Key != nil {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := w.get(cookie, ""); statusOf(err) != 400 {
		t.Errorf("without a machine: got %v, want 400", err)
	}
	c, err = w.auth.Operator(context.Background(), from("GET", "/api/machines", "", "cookie", cookie), "")
	if err != nil || !c.Operator {
		t.Errorf("got %+v, %v", c, err)
	}
	// No id is kept in the clear, here or there.
	for _, id := range []string{rpc.RegistryID, mid} {
		for k, row := range w.local.Storage(id).Dump() {
			if secret := cookie[len(cookie)-idLen:]; strings.Contains(k+string(row), secret) || strings.Contains(string(row), admin) {
				t.Errorf("the row %s holds the session's id or the token", k)
			}
		}
	}
}

func TestSessionOfAManageKey(t *testing.T) {
	w := newWorld(t)
	cookie, v, _ := w.signIn(w.key)
	if !v.SignedIn || v.Operator || v.MachineID != mid || v.KeyName != "boss" {
		t.Errorf("got %+v", v)
	}
	for _, path := range []string{"", mid} {
		c, err := w.get(cookie, path)
		if err != nil || c.Operator || c.Key == nil || c.Key.ID != w.keyID || c.Key.Digest != "" || c.MachineID != mid {
			t.Errorf("path %q: got %+v, %v", path, c, err)
		}
	}
	if _, err := w.get(cookie, "zzzzzzzz01234567"); statusOf(err) != 401 {
		t.Errorf("another machine: got %v, want 401", err)
	}
	if _, err := w.auth.Operator(context.Background(), from("GET", "/api/machines", "", "cookie", cookie), ""); statusOf(err) != 401 {
		t.Errorf("the operator's routes: got %v, want 401", err)
	}
	if _, _, status := w.signIn(w.data); status != 403 {
		t.Errorf("a data key: got %d, want 403", status)
	}
	w.object(mid, "manage", fmt.Sprintf(`{"method":"DELETE","route":"/api/keys/{id}","params":[%q]}`, w.keyID))
	if _, err := w.get(cookie, ""); statusOf(err) != 401 {
		t.Errorf("after its key was revoked: got %v, want 401", err)
	}
}

func TestSessionCountsForManagementAlone(t *testing.T) {
	w := newWorld(t)
	cookie, _, _ := w.signIn(w.key)
	r := from("POST", "/v1/embeddings", "{}", "cookie", cookie)
	if _, err := w.auth.Data(context.Background(), r, mid); statusOf(err) != 401 {
		t.Errorf("the data plane: got %v, want 401", err)
	}
	// A credential that was sent decides alone.
	r = from("GET", "/api/providers", "", "cookie", cookie, "authorization", "Bearer sk-wrong")
	if _, err := w.auth.Manage(context.Background(), r, mid); statusOf(err) != 401 {
		t.Errorf("a wrong key beside a good cookie: got %v, want 401", err)
	}
}

// A mutation needs everything that only a page of the gateway can send
// (docs/reference/reliability.md, T27).
func TestMutationsAreSameOrigin(t *testing.T) {
	w := newWorld(t)
	cookie, v, _ := w.signIn(admin)
	send := func(more ...string) error {
		r := from("POST", "/api/keys", "{}", append([]string{"cookie", cookie, "x-csrf-token", v.CSRFToken}, more...)...)
		_, err := w.auth.Manage(context.Background(), r, mid)
		return err
	}
	if err := send(); err != nil {
		t.Fatalf("from a page of the gateway: %v", err)
	}
	tests := map[string][]string{
		"form":              {"content-type", "application/x-www-form-urlencoded"},
		"multipart":         {"content-type", "multipart/form-data; boundary=x"},
		"JSON as text":      {"content-type", "text/plain"},
		"no content type":   {"content-type", ""},
		"no origin":         {"origin", ""},
		"null origin":       {"origin", "null"},
		"sibling":           {"origin", "https://evil.weir.example"},
		"longer name":       {"origin", own + ".evil"},
		"plain http":        {"origin", "http://weir.example"},
		"same-site":         {"sec-fetch-site", "same-site"},
		"cross-site":        {"sec-fetch-site", "cross-site"},
		"typed address":     {"sec-fetch-site", "none"},
		"no token":          {"x-csrf-token", ""},
		"wrong token":       {"x-csrf-token", strings.Repeat("0", 64)},
		"method override":   {"x-csrf-token", "", "x-http-method-override", "GET"},
		"twice the cookie":  {"cookie", cookie + "; " + cookie},
		"token of a former": {"x-csrf-token", strings.Repeat("a", 64)},
	}
	for name, more := range tests {
		t.Run(name, func(t *testing.T) {
			if got := statusOf(send(more...)); got != 403 && got != 401 {
				t.Errorf("got %d, want a refusal", got)
			}
		})
	}
	if err := send("content-type", "application/json; charset=utf-8"); err != nil {
		t.Errorf("with a charset: %v", err)
	}
	r := from("GET", "/api/providers", "", "cookie", cookie, "sec-fetch-site", "cross-site")
	if _, err := w.auth.Manage(context.Background(), r, mid); statusOf(err) != 403 {
		t.Errorf("a read by another site: got %v, want 403", err)
	}
	for name, more := range map[string][]string{"form": {"content-type", "text/plain"}, "origin": {"origin", "https://evil.example"}} {
		if _, _, status := w.signIn(admin, more...); status != 403 {
			t.Errorf("sign-in, %s: got %d, want 403", name, status)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	tests := []struct {
		name string
		do   func(w *world, cookie string, v View)
		want int
	}{
		{"in use it lives", func(w *world, c string, _ View) {
			for range 40 {
				w.now = w.now.Add(15 * time.Minute)
				w.get(c, mid)
			}
		}, 200},
		{"11 hours without use", func(w *world, _ string, _ View) { w.now = w.now.Add(11 * time.Hour) }, 200},
		{"12 hours without use", func(w *world, _ string, _ View) { w.now = w.now.Add(12 * time.Hour) }, 401},
		{"12 hours in use", func(w *world, c string, _ View) {
			for range 48 {
				w.now = w.now.Add(15 * time.Minute)
				w.get(c, mid)
			}
		}, 401},
		{"sign-out", func(w *world, c string, v View) {
			r := from("DELETE", "/api/session", "", "cookie", c, "x-csrf-token", v.CSRFToken)
			resp, err := w.s.End(context.Background(), &auth.Call{Request: r})
			if err != nil || !strings.Contains(resp.Header.Get("set-cookie"), "Max-Age=0") {
				w.Errorf("sign-out: %v", err)
			}
		}, 401},
		{"sign-out elsewhere, of all", func(w *world, c string, _ View) {
			other, v, _ := w.signIn(admin)
			r := from("DELETE", "/api/session", "", "cookie", other, "x-csrf-token", v.CSRFToken)
			r.Query = "all=true"
			if _, err := w.s.End(context.Background(), &auth.Call{Request: r}); err != nil {
				w.Error(err)
			}
		}, 401},
		{"sign-out elsewhere, of that one", func(w *world, c string, _ View) {
			other, v, _ := w.signIn(admin)
			r := from("DELETE", "/api/session", "", "cookie", other, "x-csrf-token", v.CSRFToken)
			if _, err := w.s.End(context.Background(), &auth.Call{Request: r}); err != nil {
				w.Error(err)
			}
		}, 200},
		{"a forged sign-out", func(w *world, c string, _ View) {
			r := from("DELETE", "/api/session", "", "cookie", c)
			if _, err := w.s.End(context.Background(), &auth.Call{Request: r}); statusOf(err) != 403 {
				w.Errorf("got %v, want 403", err)
			}
		}, 200},
		{"a new sign-in replaces it", func(w *world, c string, _ View) { w.signIn(admin, "cookie", c) }, 401},
		{"another operator's token", func(w *world, _ string, _ View) { w.s.AdminToken[0]++ }, 401},
		{"50 newer ones", func(w *world, _ string, _ View) {
			for range 50 {
				w.now = w.now.Add(time.Second)
				w.signIn(admin)
			}
		}, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			cookie, v, _ := w.signIn(admin)
			tt.do(w, cookie, v)
			if _, err := w.get(cookie, mid); statusOf(err) != tt.want {
				t.Errorf("got %v, want %d", err, tt.want)
			}
			resp, err := w.s.Show(context.Background(), &auth.Call{Request: from("GET", "/api/session", "", "cookie", cookie)})
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := stream.ReadAll(resp.Body, 1<<16)
			if got := gjson.GetBytes(raw, "signedIn").Bool(); got != (tt.want == 200) {
				t.Errorf("the page is told signedIn %v", got)
			}
		})
	}
}

func TestDestructiveActionsNeedReauthentication(t *testing.T) {
	w := newWorld(t)
	cookie, v, _ := w.signIn(admin)
	remove := func() error {
		r := from("DELETE", "/api/machines/{id}", "", "cookie", cookie, "x-csrf-token", v.CSRFToken)
		_, err := w.auth.Operator(context.Background(), r, "")
		return err
	}
	if err := remove(); err != nil {
		t.Errorf("at once: %v", err)
	}
	w.now = w.now.Add(5 * time.Minute)
	if err := remove(); codeOf(err) != "reauth_required" {
		t.Errorf("after five minutes: got %v", err)
	}
	before := cookie
	cookie, v, _ = w.signIn(admin, "cookie", cookie)
	if err := remove(); err != nil || cookie == before {
		t.Errorf("after signing in again: %v", err)
	}
}

// Captured bodies are read after a recent sign-in alone, also by the holder of a key; a
// list of them needs none.
func TestCapturedBodiesNeedARecentSignIn(t *testing.T) {
	w := newWorld(t)
	cookie, _, _ := w.signIn(admin)
	read := func(route string) error {
		_, err := w.auth.Manage(context.Background(), from("GET", route, "", "cookie", cookie), mid)
		return err
	}
	if err := read("/api/captures/{id}"); err != nil {
		t.Errorf("at once: %v", err)
	}
	w.now = w.now.Add(5 * time.Minute)
	if err := read("/api/captures/{id}"); codeOf(err) != "reauth_required" {
		t.Errorf("after five minutes: got %v", err)
	}
	if err := read("/api/captures"); err != nil {
		t.Errorf("the list: %v", err)
	}
}

// Each address has ten failed attempts in a window. A valid credential always
// passes, so guessing cannot lock out the operator.
// Wrong operator tokens of calls are counted and recorded as those of sign-ins are, a few of each
// address; the calls stay 401, and valid tokens are not limited.
func TestWrongTokensOfCallsAreRecorded(t *testing.T) {
	w := newWorld(t)
	call := func(do func(context.Context, *httpmsg.Request, string) (*auth.Call, error), token, address string) int {
		r := from("GET", "/api/keys", "", "authorization", "Bearer "+token, "cf-connecting-ip", address)
		_, err := do(context.Background(), r, mid)
		return statusOf(err)
	}
	records := func() int64 {
		return w.object(rpc.RegistryID, "signIn.list", `{}`).Get(`data.#(fields.0=="wrong_credential")#|#`).Int()
	}
	for i, do := range []func(context.Context, *httpmsg.Request, string) (*auth.Call, error){w.auth.Manage, w.auth.Operator, w.auth.Metrics} {
		if status := call(do, "wrong", "192.0.2.1"); status != 401 || records() != int64(i+1) {
			t.Errorf("call %d: got %d, %d records", i, status, records())
		}
	}
	for range 30 {
		call(w.auth.Manage, "wrong", "192.0.2.1")
	}
	if n := records(); n != 10 {
		t.Errorf("%d records of one address, want 10", n)
	}
	if got := w.object(rpc.RegistryID, "signIn.list", `{}`).Get("data.0.fields.1").Str; got != "from 192.0.2.0/24" {
		t.Errorf("the record has %q, want the network", got)
	}
	for i := range 40 {
		call(w.auth.Manage, "wrong", fmt.Sprintf("198.51.100.%d", i))
	}
	if n := records(); n > maxNoted {
		t.Errorf("%d records in a minute", n)
	}
	if call(w.auth.Manage, admin, "192.0.2.1") >= 400 || call(w.auth.Manage, w.key, "192.0.2.1") >= 400 {
		t.Error("a valid token is refused")
	}
	before := records()
	w.now = w.now.Add(time.Minute)
	if call(w.auth.Manage, w.data, "192.0.2.9"); records() != before {
		t.Error("a key without the scope is recorded")
	}
}

func TestWrongAttemptsAreLimitedByAddress(t *testing.T) {
	w := newWorld(t)
	judged := func(n int, address string) (judged int) {
		for i := range n {
			_, _, status := w.signIn(fmt.Sprintf("guess-%d-0123456789abcdef0123456789abcdef", i), "cf-connecting-ip", address, "x-forwarded-for", fmt.Sprint(i))
			if status == 401 {
				judged++
			} else if status != 429 {
				t.Fatalf("got %d, want 401 or 429", status)
			}
		}
		return judged
	}
	if got := judged(500, "192.0.2.1"); got != 10 {
		t.Errorf("got %d guesses judged, want 10", got)
	}
	for _, token := range []string{admin, w.key} {
		for _, address := range []string{"192.0.2.1", "192.0.2.2", ""} {
			if _, _, status := w.signIn(token, "cf-connecting-ip", address); status != 200 {
				t.Errorf("what is right from %q meanwhile: got %d, want 200", address, status)
			}
		}
	}
	if got := judged(50, "192.0.2.2"); got != 10 {
		t.Errorf("another address: got %d guesses judged, want 10", got)
	}
	if got := judged(5, "2001:db8::1") + judged(20, "2001:db8::ffff"); got != 10 {
		t.Errorf("one network of IPv6: got %d guesses judged, want 10", got)
	}
	w.now = w.now.Add(15 * time.Minute)
	if got := judged(50, "192.0.2.1"); got != 10 {
		t.Errorf("after a quarter of an hour: got %d guesses judged, want 10", got)
	}
	w.now = w.now.Add(15 * time.Minute)
	if got := judged(5, "192.0.2.1"); got != 0 {
		t.Errorf("the second wait is no longer than the first: %d guesses judged", got)
	}
	for i := range 700 {
		judged(1, fmt.Sprintf("198.51.%d.%d", i/250, i%250))
	}
	rows := 0
	for key := range w.local.Storage(rpc.RegistryID).Dump() {
		if strings.HasPrefix(key, "attempt:") {
			rows++
		}
	}
	if rows > 500 {
		t.Errorf("%d addresses are remembered", rows)
	}
}

// A forged session cookie created an object.
func TestForgedCookieCallsNoObject(t *testing.T) {
	w := newWorld(t)
	w.local.Ops = nil
	for i := range 30 {
		cookie := fmt.Sprintf("%s=%016d.%s", CookieName, i, strings.Repeat("a", idLen))
		for _, value := range []string{cookie, cookie + ".", cookie + "." + strings.Repeat("0", 32)} {
			if _, err := w.s.Show(context.Background(), &auth.Call{Request: from("GET", "/api/session", "", "cookie", value)}); err != nil {
				t.Fatal(err)
			}
			r := from("GET", "/api/providers", "", "cookie", value)
			if _, err := w.auth.Manage(context.Background(), r, ""); statusOf(err) != 401 {
				t.Errorf("got %v, want 401", err)
			}
		}
	}
	if len(w.local.Ops) != 0 {
		t.Errorf("called %v", w.local.Ops)
	}
}

func TestReadCookie(t *testing.T) {
	w := newWorld(t)
	id := strings.Repeat("a", idLen)
	of := func(home string) string { return home + "." + id + "." + w.s.mac(ticket{home: home, id: id}) }
	tests := []struct {
		name, cookie string
		ok           bool
	}{
		{"of a machine", CookieName + "=" + of(mid), true},
		{"of the registry", "x=1; " + CookieName + "=" + of("registry") + "; y=2", true},
		{"none", "x=1", false},
		{"another object", CookieName + "=../etc/passwd0000." + id, false},
		{"short id", CookieName + "=registry." + id[1:], false},
		{"foreign letters", CookieName + "=registry." + id[1:] + "\"", false},
		{"without the prefix", "weir=" + of("registry"), false},
		{"without a MAC", CookieName + "=registry." + id, false},
		{"the MAC of another object", CookieName + "=" + mid + strings.TrimPrefix(of("registry"), "registry"), false},
		{"two", CookieName + "=" + of("registry") + "; " + CookieName + "=" + of(mid), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, ok := w.s.readCookie(httpmsg.Header{{Name: "cookie", Value: tt.cookie}}); ok != tt.ok {
				t.Errorf("got %v, want %v", ok, tt.ok)
			}
		})
	}
}

func TestOneTimeCodeSignsInOnce(t *testing.T) {
	w := newWorld(t)
	const code = "once-0123456789"
	if _, _, status := w.signIn(code); status != 401 {
		t.Errorf("a gateway without codes: status %d", status)
	}
	spent := false
	w.s.SpendCode = func(text string) bool {
		ok := text == code && !spent
		spent = spent || ok
		return ok
	}
	cookie, v, status := w.signIn(code)
	if status != 200 || !v.Operator || cookie == "" {
		t.Fatalf("status %d, view %+v, cookie %q", status, v, cookie)
	}
	if _, _, status := w.signIn(code); status != 401 {
		t.Errorf("the second use: status %d", status)
	}
	if _, _, status := w.signIn(admin); status != 200 {
		t.Errorf("the operator token: status %d", status)
	}
}
