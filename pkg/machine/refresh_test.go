package machine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/sealed"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

func refreshBody(id string, generation int64) string {
	return fmt.Sprintf(`{"connectionId":"%s","tokenGeneration":%d}`, id, generation)
}

// 200 callers with an expired token, 20 rotations: 20 calls, no revocation.
// The rows cannot be read when the token endpoint has answered.
func TestNewTokensOutliveAFailedRead(t *testing.T) {
	for reads := range 4 {
		w := newWorld(t)
		w.create()
		id := w.oauth()
		st := w.loc.Storage(mid)
		left := reads
		w.idp.during = func() {
			st.Unreadable = func() bool { left--; return left < 0 }
		}
		body := fmt.Sprintf(`{"connectionId":%q,"tokenGeneration":1}`, id)
		a := w.want(200, "refresh", body)
		if !a.Get("unsaved").Bool() || a.Get("connection.tokenGeneration").Int() != 2 {
			t.Errorf("after %d reads: got %s", reads, a.Raw)
		}
		st.Unreadable = nil
		w.want(200, "refresh", body)
		if c := w.replica().Connections[0]; w.open(&c, store.RefreshToken) != w.idp.refresh || w.open(&c, store.AccessToken) != w.idp.access {
			t.Errorf("after %d reads: the new tokens are not stored", reads)
		}
		if w.idp.calls != 1 {
			t.Errorf("after %d reads: %d token calls", reads, w.idp.calls)
		}
	}
}

func TestOneRefreshForAllCallers(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	for round := range 20 {
		c := w.replica().Connections[0]
		var wg sync.WaitGroup
		tokens := make([]string, 200)
		for i := range tokens {
			wg.Add(1)
			go func() {
				defer wg.Done()
				status, answer, err := w.loc.Call(w.ctx, mid, "refresh", []byte(refreshBody(id, c.TokenGeneration)))
				if err == nil && status == 200 {
					got := gjson.GetBytes(answer, "connection.secrets.accessToken").Str
					s, err := w.obj.Keyring.Open(mid, id, store.AccessToken, secret.Sealed(got))
					if err == nil {
						tokens[i] = s.Reveal()
					}
				}
			}()
		}
		wg.Wait()
		for i, tok := range tokens {
			if tok != w.idp.access {
				t.Fatalf("round %d: caller %d got %q, want %q", round, i, tok, w.idp.access)
			}
		}
		w.clock.Add(61 * time.Second)
	}
	if w.idp.calls != 20 || w.idp.revocations != 0 {
		t.Errorf("%d token calls and %d revocations, want 20 and 0", w.idp.calls, w.idp.revocations)
	}
	c := w.replica().Connections[0]
	if got := w.open(&c, store.RefreshToken); got != w.idp.refresh {
		t.Errorf("stored refresh token: got %q, want %q", got, w.idp.refresh)
	}
}

func TestCallersWithDifferentGenerationsDoNotRefreshTwice(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	var inner gjson.Result
	status := 0
	w.idp.during = func() {
		w.idp.during = nil
		_, a, _ := w.loc.Call(w.ctx, mid, "refresh", []byte(refreshBody(id, gen+5)))
		inner = gjson.ParseBytes(a)
		status, _ = w.call("refresh", refreshBody(id, gen-1))
	}
	w.want(200, "refresh", refreshBody(id, gen))
	if !isFailure(inner, "refresh_in_progress") || status != 200 || w.idp.calls != 1 {
		t.Errorf("got %s, %d, %d calls", inner.Raw, status, w.idp.calls)
	}
	w.want(200, "refresh", refreshBody(id, gen)) // the newer one is simply returned
	if w.idp.calls != 1 {
		t.Errorf("%d calls", w.idp.calls)
	}
	if _, a := w.call("refresh", refreshBody(id, gen+1)); !isFailure(a, "refreshed_recently") || w.idp.calls != 1 {
		t.Errorf("a token of a moment ago: got %s, %d calls", a.Raw, w.idp.calls)
	}
}

// Two programs serve the object of one machine, as while the platform moves it: the second
// one is asked while the token call of the first runs.
func TestTwoProgramsRefreshOnce(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ahead time.Duration // how far the clock of the second program is ahead
	}{
		{"equal clocks", 0},
		{"second one behind", -time.Second},
		{"minutes behind", -5 * time.Minute},
		{"ahead within the call's time", 59 * time.Second},
	} {
		w := newWorld(t)
		w.create()
		id := w.oauth()
		other := &Object{KV: w.kv, Manager: manage.Manager{Service: tokens.Service{
			Keyring: w.obj.Keyring, Do: w.obj.Do, Pause: w.clock, Rand: w.obj.Rand, Log: w.obj.Log, OAuth: w.obj.OAuth,
			Now: func() time.Time { return w.clock.Now().Add(tt.ahead) },
		}}}
		status, inner := 0, gjson.Result{}
		w.idp.during = func() {
			w.idp.during = nil
			var answer []byte
			status, answer = other.Handle(w.ctx, w.loc.Storage(mid), mid, "refresh", []byte(refreshBody(id, 1)))
			inner = gjson.ParseBytes(answer)
		}
		w.want(200, "refresh", refreshBody(id, 1))
		if status != 503 || !isFailure(inner, "refresh_in_progress") ||
			inner.Get("error.retryAfterMs").Int() != 1000 || w.idp.calls != 1 || w.idp.revocations != 0 {
			t.Errorf("%s: %d %s, %d token calls, %d revocations", tt.name, status, inner.Raw, w.idp.calls,
				w.idp.revocations)
		}
	}
}

// The refresh of a program that has ended is tried again once its call can no longer run. An
// intent whose clock was far ahead delays nothing.
func TestRefreshAfterAProgramHasEnded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ahead time.Duration // of the ended program's clock
		after time.Duration // when the token endpoint is called
	}{
		{"same clock", 0, time.Minute},
		{"clock ahead", 2 * time.Minute, 3 * time.Minute},
		{"clock far ahead", time.Hour, 0},
	} {
		w := newWorld(t)
		w.create()
		id := w.oauth()
		tx := w.obj.Begin(w.loc.Storage(mid), mid)
		at := w.clock.Now().Add(tt.ahead).UnixMilli()
		tx.Put(storage.IntentPrefix+id, tokens.IntentRow{Generation: 1, At: at, Unknown: 1, Calling: true})
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		waited := time.Duration(0)
		for w.idp.calls == 0 && waited < 10*time.Minute {
			status, a := w.call("refresh", refreshBody(id, 1))
			if w.idp.calls == 0 {
				if status != 503 || !isFailure(a, "refresh_in_progress") {
					t.Fatalf("%s: %d %s", tt.name, status, a.Raw)
				}
				w.clock.Add(time.Second)
				waited += time.Second
			}
		}
		if waited != tt.after {
			t.Errorf("%s: refreshed after %v, want %v", tt.name, waited, tt.after)
		}
	}
}

func TestLostAnswerEndsInOneNeedsReauth(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	w.idp.lose = true
	for range 50 {
		w.call("refresh", refreshBody(id, gen))
	}
	if w.idp.calls != 1 {
		t.Fatalf("%d calls while the outcome is unknown", w.idp.calls)
	}
	w.clock.Add(61 * time.Second)
	for range 50 {
		if _, a := w.call("refresh", refreshBody(id, gen)); !isFailure(a, storage.NeedsReauth) {
			t.Fatal(a.Raw)
		}
		w.clock.Add(10 * time.Minute)
		w.loc.Alarms(w.ctx)
	}
	if w.idp.calls != 2 {
		t.Errorf("%d calls, want 2: the lost one and one attempt", w.idp.calls)
	}
	v := w.ok("GET", "/api/providers/"+id, "")
	if v.Get("status").Str != storage.NeedsReauth || !strings.Contains(v.Get("lastError").Str, "revoked the sign-in (invalid_grant)") || !strings.Contains(v.Get("lastError").Str, "Connect the account again") {
		t.Errorf("got %s", v.Raw)
	}
	// Typed in again, it works again.
	access, refresh := w.idp.issue()
	w.ok("PUT", "/api/providers/"+id, fmt.Sprintf(`{"accessToken":%q,"refreshToken":%q}`, access, refresh))
	gen = w.replica().Connections[0].TokenGeneration
	w.want(200, "refresh", refreshBody(id, gen))
}

func TestDefiniteRefusalsAreTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		code   string
		later  int64 // ms
	}{{500, "oops", "refresh_failed", 1000}, {503, `{"error":"invalid_grant"}`, "refresh_failed", 1000}, {429, `{}`, "refresh_failed", 1000}, {302, ``, "refresh_failed", 1000},
		{400, `{"error":"invalid_client"}`, "refresh_refused", 0}} {
		t.Run(fmt.Sprint(tt.status, tt.body), func(t *testing.T) {
			w := newWorld(t)
			w.create()
			id := w.oauth()
			gen := w.replica().Connections[0].TokenGeneration
			w.idp.answer = func() (int, string, bool) { return tt.status, tt.body, false }
			_, a := w.call("refresh", refreshBody(id, gen))
			if !isFailure(a, tt.code) || a.Get("error.retryAfterMs").Int() != tt.later {
				t.Fatal(a.Raw)
			}
			if _, a := w.call("refresh", refreshBody(id, gen)); w.idp.calls != 1 || !isFailure(a, tt.code) {
				t.Fatalf("asked again at once: %s", a.Raw)
			}
			w.clock.Add(61 * time.Second)
			w.want(200, "refresh", refreshBody(id, gen))
			if w.idp.revocations != 0 {
				t.Error("revoked")
			}
		})
	}
}

func TestUnusableAnswersOfATokenEndpoint(t *testing.T) {
	for _, body := range []string{"<html>", "", "[]", `{}`, `{"access_token":5}`, `{"access_token":"short"}`, `{"access_token":"0123456789\n"}`} {
		w := newWorld(t)
		w.create()
		id := w.oauth()
		c := w.replica().Connections[0]
		w.idp.answer = func() (int, string, bool) { return 200, body, false }
		if _, a := w.call("refresh", refreshBody(id, c.TokenGeneration)); !isFailure(a, "refresh_failed") {
			t.Errorf("%q: got %s", body, a.Raw)
		}
		if now := w.replica().Connections[0]; now.TokenGeneration != c.TokenGeneration || w.open(&now, store.RefreshToken) != w.idp.refresh {
			t.Errorf("%q changed the tokens", body)
		}
	}
}

func TestRefreshTokenIsKeptWithoutRotation(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.idp.keepRefresh = true
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	for i := range 3 {
		w.want(200, "refresh", refreshBody(id, gen+int64(i)))
		w.clock.Add(2 * time.Minute)
	}
	c := w.replica().Connections[0]
	if w.open(&c, store.RefreshToken) != w.idp.refresh || w.open(&c, store.AccessToken) != w.idp.access {
		t.Error("the tokens are not those of the endpoint")
	}
}

// A crash at any write: tokens are in the storage before anybody has them.
func TestCrashesAroundARefresh(t *testing.T) {
	for _, when := range []string{"before the call", "before the write", "after the write"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			id := w.oauth()
			gen := w.replica().Connections[0].TokenGeneration
			st := w.loc.Storage(mid)
			w.obj.Pause = nil
			switch when {
			case "before the call":
				st.Fault = func(key string) bool { return strings.HasPrefix(key, storage.IntentPrefix) }
			case "before the write":
				w.idp.during = func() { st.Fault = func(string) bool { return true } }
			}
			status, a := w.call("refresh", refreshBody(id, gen))
			st.Fault, w.idp.during = nil, nil
			// the instance is lost
			w.obj.Flights, w.obj.Unsaved = nil, nil
			st.Rollback()
			switch when {
			case "before the call":
				if status != 503 || w.idp.calls != 0 {
					t.Fatalf("got %d %s, %d calls", status, a.Raw, w.idp.calls)
				}
				w.want(200, "refresh", refreshBody(id, gen))
			case "before the write":
				if !a.Get("unsaved").Bool() {
					t.Fatalf("not marked as unsaved: %s", a.Raw)
				}
				w.clock.Add(61 * time.Second)
				for range 10 {
					w.call("refresh", refreshBody(id, gen))
					w.clock.Add(10 * time.Minute)
				}
				if w.idp.calls != 2 || w.ok("GET", "/api/providers/"+id, "").Get("status").Str != storage.NeedsReauth {
					t.Errorf("%d calls", w.idp.calls)
				}
				return
			case "after the write":
				w.want(200, "refresh", refreshBody(id, gen))
			}
			if w.idp.calls != 1 || w.idp.revocations != 0 {
				t.Errorf("%d calls, %d revocations", w.idp.calls, w.idp.revocations)
			}
		})
	}
}

// The storage fails for longer than can be waited for: the token is used, and
// stored by what comes next.
func TestUnsavedTokensAreStoredLater(t *testing.T) {
	for _, by := range []string{"alarm", "refresh"} {
		w := newWorld(t)
		w.create()
		id := w.oauth()
		gen := w.replica().Connections[0].TokenGeneration
		st := w.loc.Storage(mid)
		w.idp.during = func() { st.Fault = func(key string) bool { return key != "alarm" } }
		a := w.want(200, "refresh", refreshBody(id, gen))
		if !a.Get("unsaved").Bool() || a.Get("connection.tokenGeneration").Int() != gen+1 {
			t.Fatal(a.Raw)
		}
		w.idp.during = nil
		if a = w.want(200, "refresh", refreshBody(id, gen)); !a.Get("unsaved").Bool() || w.idp.calls != 1 {
			t.Fatalf("another caller: %s, %d calls", a.Raw, w.idp.calls)
		}
		st.Fault = nil
		w.clock.Add(2 * time.Second)
		if by == "alarm" {
			w.loc.Alarms(w.ctx)
		} else if a = w.want(200, "refresh", refreshBody(id, gen)); a.Get("unsaved").Bool() {
			t.Error("still marked as unsaved")
		}
		c := w.replica().Connections[0]
		if c.TokenGeneration != gen+1 || w.open(&c, store.RefreshToken) != w.idp.refresh || len(w.obj.Unsaved) != 0 {
			t.Errorf("%s: the new tokens are not stored", by)
		}
	}
}

func TestCredentialReplacedDuringRefreshIsKept(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	w.idp.during = func() {
		w.idp.during = nil
		w.ok("PUT", "/api/providers/"+id, `{"refreshToken":"typed-in-meanwhile","accessToken":"typed-in-access"}`)
	}
	w.want(200, "refresh", refreshBody(id, gen))
	c := w.replica().Connections[0]
	if got := w.open(&c, store.RefreshToken); got != "typed-in-meanwhile" {
		t.Errorf("got %q", got)
	}
	w.idp.during = func() { w.idp.during = nil; w.ok("DELETE", "/api/providers/"+id, "") }
	w.clock.Add(2 * time.Minute)
	if status, a := w.call("refresh", refreshBody(id, c.TokenGeneration)); status != 404 {
		t.Errorf("deleted meanwhile: got %s", a.Raw)
	}
}

// The stored credential is sealed again while the call is out: the new tokens
// are kept.
func TestRotationOfTheSealDuringARefreshLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	w.idp.during = func() {
		w.idp.during = nil
		both := sealed.Keys(t, strings.Repeat("n", 40), sealed.Secret)
		w.obj.Keyring = both
		w.clock.Add(61 * time.Minute)
		w.loc.Alarms(w.ctx)
	}
	w.want(200, "refresh", refreshBody(id, gen))
	c := w.replica().Connections[0]
	if w.open(&c, store.RefreshToken) != w.idp.refresh || c.TokenGeneration != gen+1 || w.idp.calls != 1 {
		t.Errorf("generation %d, %d calls", c.TokenGeneration, w.idp.calls)
	}
}

func TestTokensAreRefreshedAheadOfTheirExpiry(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	w.want(200, "refresh", refreshBody(id, w.replica().Connections[0].TokenGeneration))
	for range 53 {
		w.clock.Add(time.Minute)
		w.loc.Alarms(w.ctx)
	}
	if w.idp.calls != 1 {
		t.Fatalf("%d calls 6 minutes before the end", w.idp.calls)
	}
	w.clock.Add(2 * time.Minute)
	w.loc.Alarms(w.ctx)
	if w.idp.calls != 2 {
		t.Errorf("%d calls 4 minutes before the end, want 2", w.idp.calls)
	}
	// Tokens that live a minute are not refreshed all the time.
	w.idp.life = "60"
	w.clock.Add(56 * time.Minute)
	w.loc.Alarms(w.ctx)
	calls := w.idp.calls
	for range 60 {
		w.clock.Add(10 * time.Second)
		w.loc.Alarms(w.ctx)
	}
	if n := w.idp.calls - calls; n > 10 {
		t.Errorf("%d calls in 10 minutes", n)
	}
}

func TestConnectionsWithoutRefresh(t *testing.T) {
	w := newWorld(t)
	w.create()
	key := w.connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	for id, code := range map[string]string{key: "not_refreshable", "nobody": "connection_not_found", "a/b": "connection_not_found"} {
		if _, a := w.call("refresh", refreshBody(id, 0)); !isFailure(a, code) {
			t.Errorf("%s: got %s, want %s", id, a.Raw, code)
		}
	}
	if w.idp.calls != 0 {
		t.Error("the token endpoint was called")
	}
}

func TestServiceAccountsSignTheirClaim(t *testing.T) {
	w := newWorld(t)
	w.create()
	file := `{"type":"service_account","client_email":"weir@acme.iam.gserviceaccount.com","private_key_id":"k1","token_uri":"https://evil.example.com","private_key":"-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----\\n"}`
	id := w.connect(`{"provider":"vertex","serviceAccount":"` + strings.ReplaceAll(file, `"`, `\"`) + `","providerSpecificData":{"project":"acme","location":"global"}}`)
	a := w.want(200, "refresh", refreshBody(id, w.replica().Connections[0].TokenGeneration))
	if w.idp.lastEndpoint != "https://oauth2.googleapis.com/token" {
		t.Errorf("asked %s", w.idp.lastEndpoint)
	}
	if n := strings.Count(w.idp.lastForm.Get("assertion"), "."); n != 2 || a.Get("connection.secrets.accessToken").Str == "" {
		t.Errorf("assertion %q, answer %s", w.idp.lastForm.Get("assertion"), a.Raw)
	}
	if shown := w.ok("GET", "/api/providers", "").Raw; strings.Contains(shown, "PRIVATE KEY") || strings.Contains(shown, `"k1"`) {
		t.Errorf("the key file is shown in %s", shown)
	}
	if got := w.replica().Connections[0].AuthType; got != "service_account" {
		t.Errorf("authType %q", got)
	}
}

// A failure that may pass is tried again after 1, 4 and 15 s, then as often as
// any refresh.
func TestTemporaryRefreshFailureIsRetriedSoon(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		w.create()
		id := w.oauth()
		gen := w.replica().Connections[0].TokenGeneration
		began := w.clock.Now()
		var tried []time.Duration
		for range 400 {
			w.idp.answer = func() (int, string, bool) {
				tried = append(tried, w.clock.Now().Sub(began))
				return 503, "busy", lost
			}
			if _, a := w.call("refresh", refreshBody(id, gen)); !isFailure(a, "refresh_failed") || a.Get("error.retryAfterMs").Int() <= 0 {
				t.Fatal(a.Raw)
			}
			w.clock.Add(500 * time.Millisecond)
		}
		const s = time.Second
		if want := []time.Duration{0, s, 5 * s, 20 * s, 80 * s}; !slices.Equal(tried, want) {
			t.Errorf("lost %v: tried after %v, want %v", lost, tried, want)
		}
		w.clock.Add(10 * time.Minute)
		w.idp.answer = nil
		w.want(200, "refresh", refreshBody(id, gen))
		if v := w.ok("GET", "/api/providers/"+id, ""); v.Get("status").Str != "active" || v.Get("lastError").Exists() {
			t.Errorf("got %s", v.Raw)
		}
	}
}

// The endpoint has said for how long.
func TestTemporaryRefreshFailureWithWait(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	w.idp.header = httpmsg.Header{{Name: "retry-after", Value: "30"}}
	w.idp.answer = func() (int, string, bool) { return 503, "", false }
	if _, a := w.call("refresh", refreshBody(id, gen)); a.Get("error.retryAfterMs").Int() != 30_000 {
		t.Errorf("got %s", a.Raw)
	}
}

// An endpoint that times out may still rotate the token: the next attempt comes
// after a minute.
func TestTokenEndpointTimeoutIsNotRetriedSoon(t *testing.T) {
	w := newWorld(t)
	w.create()
	id := w.oauth()
	gen := w.replica().Connections[0].TokenGeneration
	w.idp.during = func() { w.clock.Add(60 * time.Second) }
	w.idp.timeout = true
	if _, a := w.call("refresh", refreshBody(id, gen)); !isFailure(a, "refresh_failed") || a.Get("error.retryAfterMs").Int() != 60_000 {
		t.Errorf("got %s", a.Raw)
	}
	w.idp.during, w.idp.timeout = nil, false
	w.clock.Add(59 * time.Second)
	w.call("refresh", refreshBody(id, gen))
	if w.idp.calls != 1 {
		t.Errorf("%d calls within the minute", w.idp.calls)
	}
	w.clock.Add(time.Second)
	w.want(200, "refresh", refreshBody(id, gen))
}
