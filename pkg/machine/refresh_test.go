package machine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

// 200 callers with an expired token, 20 rotations: 20 calls, no revocation.
// The rows cannot be read when the token endpoint has answered.
func TestNewTokensOutliveAFailedRead(t *testing.T) {
	for reads := range 4 {
		w := newWorld(t)
		w.Create()
		id := w.OAuth()
		st := w.Loc.Storage(mid)
		left := reads
		w.IDP.During = func() {
			st.Unreadable = func() bool { left--; return left < 0 }
		}
		body := fmt.Sprintf(`{"connectionId":%q,"tokenGeneration":1}`, id)
		a := w.Want(200, "refresh", body)
		if !a.Get("unsaved").Bool() || a.Get("connection.tokenGeneration").Int() != 2 {
			t.Errorf("after %d reads: got %s", reads, a.Raw)
		}
		st.Unreadable = nil
		w.Want(200, "refresh", body)
		if c := w.Replica().Connections[0]; w.Open(&c, store.RefreshToken) != w.IDP.Refresh || w.Open(&c, store.AccessToken) != w.IDP.Access {
			t.Errorf("after %d reads: the new tokens are not stored", reads)
		}
		if w.IDP.Calls != 1 {
			t.Errorf("after %d reads: %d token calls", reads, w.IDP.Calls)
		}
	}
}

func TestOneRefreshForAllCallers(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	for round := range 20 {
		c := w.Replica().Connections[0]
		var wg sync.WaitGroup
		tokens := make([]string, 200)
		for i := range tokens {
			wg.Add(1)
			go func() {
				defer wg.Done()
				status, answer, err := w.Loc.Call(w.Ctx, mid, "refresh", []byte(inprocess.RefreshBody(id, c.TokenGeneration)))
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
			if tok != w.IDP.Access {
				t.Fatalf("round %d: caller %d got %q, want %q", round, i, tok, w.IDP.Access)
			}
		}
		w.Clock.Add(61 * time.Second)
	}
	if w.IDP.Calls != 20 || w.IDP.Revocations != 0 {
		t.Errorf("%d token calls and %d revocations, want 20 and 0", w.IDP.Calls, w.IDP.Revocations)
	}
	c := w.Replica().Connections[0]
	if got := w.Open(&c, store.RefreshToken); got != w.IDP.Refresh {
		t.Errorf("stored refresh token: got %q, want %q", got, w.IDP.Refresh)
	}
}

func TestCallersWithDifferentGenerationsDoNotRefreshTwice(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	var inner gjson.Result
	status := 0
	w.IDP.During = func() {
		w.IDP.During = nil
		_, a, _ := w.Loc.Call(w.Ctx, mid, "refresh", []byte(inprocess.RefreshBody(id, gen+5)))
		inner = gjson.ParseBytes(a)
		status, _ = w.Call("refresh", inprocess.RefreshBody(id, gen-1))
	}
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
	if !isFailure(inner, "refresh_in_progress") || status != 200 || w.IDP.Calls != 1 {
		t.Errorf("got %s, %d, %d calls", inner.Raw, status, w.IDP.Calls)
	}
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen)) // the newer one is simply returned
	if w.IDP.Calls != 1 {
		t.Errorf("%d calls", w.IDP.Calls)
	}
	if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen+1)); !isFailure(a, "refreshed_recently") || w.IDP.Calls != 1 {
		t.Errorf("a token of a moment ago: got %s, %d calls", a.Raw, w.IDP.Calls)
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
		w.Create()
		id := w.OAuth()
		other := &Object{KV: w.KV, Manager: manage.Manager{Service: tokens.Service{
			Keyring: w.obj.Keyring, Do: w.obj.Do, Pause: w.Clock, Rand: w.obj.Rand, Log: w.obj.Log, OAuth: w.obj.OAuth,
			Now: func() time.Time { return w.Clock.Now().Add(tt.ahead) },
		}}}
		status, inner := 0, gjson.Result{}
		w.IDP.During = func() {
			w.IDP.During = nil
			var answer []byte
			status, answer = other.Handle(w.Ctx, w.Loc.Storage(mid), mid, "refresh", []byte(inprocess.RefreshBody(id, 1)))
			inner = gjson.ParseBytes(answer)
		}
		w.Want(200, "refresh", inprocess.RefreshBody(id, 1))
		if status != 503 || !isFailure(inner, "refresh_in_progress") ||
			inner.Get("error.retryAfterMs").Int() != 1000 || w.IDP.Calls != 1 || w.IDP.Revocations != 0 {
			t.Errorf("%s: %d %s, %d token calls, %d revocations", tt.name, status, inner.Raw, w.IDP.Calls,
				w.IDP.Revocations)
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
		w.Create()
		id := w.OAuth()
		tx := w.obj.Begin(w.Loc.Storage(mid), mid)
		at := w.Clock.Now().Add(tt.ahead).UnixMilli()
		tx.Put(storage.IntentPrefix+id, tokens.IntentRow{Generation: 1, At: at, Unknown: 1, Calling: true})
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		waited := time.Duration(0)
		for w.IDP.Calls == 0 && waited < 10*time.Minute {
			status, a := w.Call("refresh", inprocess.RefreshBody(id, 1))
			if w.IDP.Calls == 0 {
				if status != 503 || !isFailure(a, "refresh_in_progress") {
					t.Fatalf("%s: %d %s", tt.name, status, a.Raw)
				}
				w.Clock.Add(time.Second)
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
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	w.IDP.Lose = true
	for range 50 {
		w.Call("refresh", inprocess.RefreshBody(id, gen))
	}
	if w.IDP.Calls != 1 {
		t.Fatalf("%d calls while the outcome is unknown", w.IDP.Calls)
	}
	w.Clock.Add(61 * time.Second)
	for range 50 {
		if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen)); !isFailure(a, storage.NeedsReauth) {
			t.Fatal(a.Raw)
		}
		w.Clock.Add(10 * time.Minute)
		w.Loc.Alarms(w.Ctx)
	}
	if w.IDP.Calls != 2 {
		t.Errorf("%d calls, want 2: the lost one and one attempt", w.IDP.Calls)
	}
	v := w.OK("GET", "/api/providers/"+id, "")
	if v.Get("status").Str != storage.NeedsReauth || !strings.Contains(v.Get("lastError").Str, "revoked the sign-in (invalid_grant)") || !strings.Contains(v.Get("lastError").Str, "Connect the account again") {
		t.Errorf("got %s", v.Raw)
	}
	// Typed in again, it works again.
	access, refresh := w.IDP.Issue()
	w.OK("PUT", "/api/providers/"+id, fmt.Sprintf(`{"accessToken":%q,"refreshToken":%q}`, access, refresh))
	gen = w.Replica().Connections[0].TokenGeneration
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
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
			w.Create()
			id := w.OAuth()
			gen := w.Replica().Connections[0].TokenGeneration
			w.IDP.Answer = func() (int, string, bool) { return tt.status, tt.body, false }
			_, a := w.Call("refresh", inprocess.RefreshBody(id, gen))
			if !isFailure(a, tt.code) || a.Get("error.retryAfterMs").Int() != tt.later {
				t.Fatal(a.Raw)
			}
			if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen)); w.IDP.Calls != 1 || !isFailure(a, tt.code) {
				t.Fatalf("asked again at once: %s", a.Raw)
			}
			w.Clock.Add(61 * time.Second)
			w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
			if w.IDP.Revocations != 0 {
				t.Error("revoked")
			}
		})
	}
}

func TestUnusableAnswersOfATokenEndpoint(t *testing.T) {
	for _, body := range []string{"<html>", "", "[]", `{}`, `{"access_token":5}`, `{"access_token":"short"}`, `{"access_token":"0123456789\n"}`} {
		w := newWorld(t)
		w.Create()
		id := w.OAuth()
		c := w.Replica().Connections[0]
		w.IDP.Answer = func() (int, string, bool) { return 200, body, false }
		if _, a := w.Call("refresh", inprocess.RefreshBody(id, c.TokenGeneration)); !isFailure(a, "refresh_failed") {
			t.Errorf("%q: got %s", body, a.Raw)
		}
		if now := w.Replica().Connections[0]; now.TokenGeneration != c.TokenGeneration || w.Open(&now, store.RefreshToken) != w.IDP.Refresh {
			t.Errorf("%q changed the tokens", body)
		}
	}
}

func TestRefreshTokenIsKeptWithoutRotation(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.IDP.KeepRefresh = true
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	for i := range 3 {
		w.Want(200, "refresh", inprocess.RefreshBody(id, gen+int64(i)))
		w.Clock.Add(2 * time.Minute)
	}
	c := w.Replica().Connections[0]
	if w.Open(&c, store.RefreshToken) != w.IDP.Refresh || w.Open(&c, store.AccessToken) != w.IDP.Access {
		t.Error("the tokens are not those of the endpoint")
	}
}

// A crash at any write: tokens are in the storage before anybody has them.
func TestCrashesAroundARefresh(t *testing.T) {
	for _, when := range []string{"before the call", "before the write", "after the write"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t)
			w.Create()
			id := w.OAuth()
			gen := w.Replica().Connections[0].TokenGeneration
			st := w.Loc.Storage(mid)
			w.obj.Pause = nil
			switch when {
			case "before the call":
				st.Fault = func(key string) bool { return strings.HasPrefix(key, storage.IntentPrefix) }
			case "before the write":
				w.IDP.During = func() { st.Fault = func(string) bool { return true } }
			}
			status, a := w.Call("refresh", inprocess.RefreshBody(id, gen))
			st.Fault, w.IDP.During = nil, nil
			// the instance is lost
			w.obj.Flights, w.obj.Unsaved = nil, nil
			st.Rollback()
			switch when {
			case "before the call":
				if status != 503 || w.IDP.Calls != 0 {
					t.Fatalf("got %d %s, %d calls", status, a.Raw, w.IDP.Calls)
				}
				w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
			case "before the write":
				if !a.Get("unsaved").Bool() {
					t.Fatalf("not marked as unsaved: %s", a.Raw)
				}
				w.Clock.Add(61 * time.Second)
				for range 10 {
					w.Call("refresh", inprocess.RefreshBody(id, gen))
					w.Clock.Add(10 * time.Minute)
				}
				if w.IDP.Calls != 2 || w.OK("GET", "/api/providers/"+id, "").Get("status").Str != storage.NeedsReauth {
					t.Errorf("%d calls", w.IDP.Calls)
				}
				return
			case "after the write":
				w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
			}
			if w.IDP.Calls != 1 || w.IDP.Revocations != 0 {
				t.Errorf("%d calls, %d revocations", w.IDP.Calls, w.IDP.Revocations)
			}
		})
	}
}

// The storage fails for longer than can be waited for: the token is used, and
// stored by what comes next.
func TestUnsavedTokensAreStoredLater(t *testing.T) {
	for _, by := range []string{"alarm", "refresh"} {
		w := newWorld(t)
		w.Create()
		id := w.OAuth()
		gen := w.Replica().Connections[0].TokenGeneration
		st := w.Loc.Storage(mid)
		w.IDP.During = func() { st.Fault = func(key string) bool { return key != "alarm" } }
		a := w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
		if !a.Get("unsaved").Bool() || a.Get("connection.tokenGeneration").Int() != gen+1 {
			t.Fatal(a.Raw)
		}
		w.IDP.During = nil
		if a = w.Want(200, "refresh", inprocess.RefreshBody(id, gen)); !a.Get("unsaved").Bool() || w.IDP.Calls != 1 {
			t.Fatalf("another caller: %s, %d calls", a.Raw, w.IDP.Calls)
		}
		st.Fault = nil
		w.Clock.Add(2 * time.Second)
		if by == "alarm" {
			w.Loc.Alarms(w.Ctx)
		} else if a = w.Want(200, "refresh", inprocess.RefreshBody(id, gen)); a.Get("unsaved").Bool() {
			t.Error("still marked as unsaved")
		}
		c := w.Replica().Connections[0]
		if c.TokenGeneration != gen+1 || w.Open(&c, store.RefreshToken) != w.IDP.Refresh || len(w.obj.Unsaved) != 0 {
			t.Errorf("%s: the new tokens are not stored", by)
		}
	}
}

func TestCredentialReplacedDuringRefreshIsKept(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	w.IDP.During = func() {
		w.IDP.During = nil
		w.OK("PUT", "/api/providers/"+id, `{"refreshToken":"typed-in-meanwhile","accessToken":"typed-in-access"}`)
	}
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
	c := w.Replica().Connections[0]
	if got := w.Open(&c, store.RefreshToken); got != "typed-in-meanwhile" {
		t.Errorf("got %q", got)
	}
	w.IDP.During = func() { w.IDP.During = nil; w.OK("DELETE", "/api/providers/"+id, "") }
	w.Clock.Add(2 * time.Minute)
	if status, a := w.Call("refresh", inprocess.RefreshBody(id, c.TokenGeneration)); status != 404 {
		t.Errorf("deleted meanwhile: got %s", a.Raw)
	}
}

// The stored credential is sealed again while the call is out: the new tokens
// are kept.
func TestRotationOfTheSealDuringARefreshLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	w.IDP.During = func() {
		w.IDP.During = nil
		both := sealed.Keys(t, strings.Repeat("n", 40), sealed.Secret)
		w.obj.Keyring = both
		w.Clock.Add(61 * time.Minute)
		w.Loc.Alarms(w.Ctx)
	}
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
	c := w.Replica().Connections[0]
	if w.Open(&c, store.RefreshToken) != w.IDP.Refresh || c.TokenGeneration != gen+1 || w.IDP.Calls != 1 {
		t.Errorf("generation %d, %d calls", c.TokenGeneration, w.IDP.Calls)
	}
}

func TestTokensAreRefreshedAheadOfTheirExpiry(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	w.Want(200, "refresh", inprocess.RefreshBody(id, w.Replica().Connections[0].TokenGeneration))
	for range 53 {
		w.Clock.Add(time.Minute)
		w.Loc.Alarms(w.Ctx)
	}
	if w.IDP.Calls != 1 {
		t.Fatalf("%d calls 6 minutes before the end", w.IDP.Calls)
	}
	w.Clock.Add(2 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	if w.IDP.Calls != 2 {
		t.Errorf("%d calls 4 minutes before the end, want 2", w.IDP.Calls)
	}
	// Tokens that live a minute are not refreshed all the time.
	w.IDP.Life = "60"
	w.Clock.Add(56 * time.Minute)
	w.Loc.Alarms(w.Ctx)
	calls := w.IDP.Calls
	for range 60 {
		w.Clock.Add(10 * time.Second)
		w.Loc.Alarms(w.Ctx)
	}
	if n := w.IDP.Calls - calls; n > 10 {
		t.Errorf("%d calls in 10 minutes", n)
	}
}

func TestConnectionsWithoutRefresh(t *testing.T) {
	w := newWorld(t)
	w.Create()
	key := w.Connect(`{"provider":"openai","apiKey":"sk-0123456789abcdef"}`)
	for id, code := range map[string]string{key: "not_refreshable", "nobody": "connection_not_found", "a/b": "connection_not_found"} {
		if _, a := w.Call("refresh", inprocess.RefreshBody(id, 0)); !isFailure(a, code) {
			t.Errorf("%s: got %s, want %s", id, a.Raw, code)
		}
	}
	if w.IDP.Calls != 0 {
		t.Error("the token endpoint was called")
	}
}

func TestServiceAccountsSignTheirClaim(t *testing.T) {
	w := newWorld(t)
	w.Create()
	file := `{"type":"service_account","client_email":"weir@acme.iam.gserviceaccount.com","private_key_id":"k1","token_uri":"https://evil.example.com","private_key":"-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----\\n"}`
	id := w.Connect(`{"provider":"vertex","serviceAccount":"` + strings.ReplaceAll(file, `"`, `\"`) + `","providerSpecificData":{"project":"acme","location":"global"}}`)
	a := w.Want(200, "refresh", inprocess.RefreshBody(id, w.Replica().Connections[0].TokenGeneration))
	if w.IDP.LastEndpoint != "https://oauth2.googleapis.com/token" {
		t.Errorf("asked %s", w.IDP.LastEndpoint)
	}
	if n := strings.Count(w.IDP.LastForm.Get("assertion"), "."); n != 2 || a.Get("connection.secrets.accessToken").Str == "" {
		t.Errorf("assertion %q, answer %s", w.IDP.LastForm.Get("assertion"), a.Raw)
	}
	if shown := w.OK("GET", "/api/providers", "").Raw; strings.Contains(shown, "PRIVATE KEY") || strings.Contains(shown, `"k1"`) {
		t.Errorf("the key file is shown in %s", shown)
	}
	if got := w.Replica().Connections[0].AuthType; got != "service_account" {
		t.Errorf("authType %q", got)
	}
}

// A failure that may pass is tried again after 1, 4 and 15 s, then as often as
// any refresh.
func TestTemporaryRefreshFailureIsRetriedSoon(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		w.Create()
		id := w.OAuth()
		gen := w.Replica().Connections[0].TokenGeneration
		began := w.Clock.Now()
		var tried []time.Duration
		for range 400 {
			w.IDP.Answer = func() (int, string, bool) {
				tried = append(tried, w.Clock.Now().Sub(began))
				return 503, "busy", lost
			}
			if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen)); !isFailure(a, "refresh_failed") || a.Get("error.retryAfterMs").Int() <= 0 {
				t.Fatal(a.Raw)
			}
			w.Clock.Add(500 * time.Millisecond)
		}
		const s = time.Second
		if want := []time.Duration{0, s, 5 * s, 20 * s, 80 * s}; !slices.Equal(tried, want) {
			t.Errorf("lost %v: tried after %v, want %v", lost, tried, want)
		}
		w.Clock.Add(10 * time.Minute)
		w.IDP.Answer = nil
		w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
		if v := w.OK("GET", "/api/providers/"+id, ""); v.Get("status").Str != "active" || v.Get("lastError").Exists() {
			t.Errorf("got %s", v.Raw)
		}
	}
}

// The endpoint has said for how long.
func TestTemporaryRefreshFailureWithWait(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	w.IDP.Header = httpmsg.Header{{Name: "retry-after", Value: "30"}}
	w.IDP.Answer = func() (int, string, bool) { return 503, "", false }
	if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen)); a.Get("error.retryAfterMs").Int() != 30_000 {
		t.Errorf("got %s", a.Raw)
	}
}

// An endpoint that times out may still rotate the token: the next attempt comes
// after a minute.
func TestTokenEndpointTimeoutIsNotRetriedSoon(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.OAuth()
	gen := w.Replica().Connections[0].TokenGeneration
	w.IDP.During = func() { w.Clock.Add(60 * time.Second) }
	w.IDP.Timeout = true
	if _, a := w.Call("refresh", inprocess.RefreshBody(id, gen)); !isFailure(a, "refresh_failed") || a.Get("error.retryAfterMs").Int() != 60_000 {
		t.Errorf("got %s", a.Raw)
	}
	w.IDP.During, w.IDP.Timeout = nil, false
	w.Clock.Add(59 * time.Second)
	w.Call("refresh", inprocess.RefreshBody(id, gen))
	if w.IDP.Calls != 1 {
		t.Errorf("%d calls within the minute", w.IDP.Calls)
	}
	w.Clock.Add(time.Second)
	w.Want(200, "refresh", inprocess.RefreshBody(id, gen))
}
