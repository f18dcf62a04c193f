package accounts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// oauth is a connection with an access token of generation 1.
func (w *world) oauth(id string, expires time.Duration) store.Connection {
	c := store.Connection{ID: id, AuthType: "oauth", TokenGeneration: 1, Secrets: map[string]secret.Sealed{
		store.AccessToken:  w.seal(id, store.AccessToken, "tok-"+id+"-generation1"),
		store.RefreshToken: w.seal(id, store.RefreshToken, "ref-"+id+"-0123456789"),
	}}
	if expires != 0 {
		c.ExpiresAt = w.Now().Add(expires).UnixMilli()
	}
	return c
}

// refresher is an object that returns generation n+1 for n, and counts.
func (w *world) refresher(count *int) func(op string, body []byte) (int, []byte, error) {
	return func(op string, body []byte) (int, []byte, error) {
		if op != "refresh" {
			return 200, []byte(`{}`), nil
		}
		*count++
		// The object takes overlapping calls with the same bytes for one.
		if want := fmt.Sprintf(`{"connectionId":"a","tokenGeneration":%d}`, gjson.GetBytes(body, "tokenGeneration").Int()); string(body) != want {
			w.Errorf("asked %s, want exactly %s", body, want)
		}
		var in struct {
			ConnectionID    string
			TokenGeneration int64
		}
		json.Unmarshal(body, &in)
		n := in.TokenGeneration + 1
		sealed := w.seal(in.ConnectionID, store.AccessToken, fmt.Sprintf("tok-%s-generation%d", in.ConnectionID, n))
		return 200, fmt.Appendf(nil, `{"connection":{"id":"a","secrets":{"accessToken":%q},"tokenGeneration":%d,"expiresAt":%d}}`, sealed, n, w.Now().Add(time.Hour).UnixMilli()), nil
	}
}

func TestRefreshOnceAfter401(t *testing.T) {
	for _, kind := range kinds {
		w := newWorld(t)
		w.add(w.oauth("a", 0))
		n := 0
		w.object.Answer = w.refresher(&n)
		w.script["tok-a-generation1"] = []fake.Answer{{Status: 401}}
		res, e := w.sendCall(w.kind(kind))
		if e != nil || res.Status != 200 || strings.Join(w.creds(), " ") != "tok-a-generation1 tok-a-generation2" || n != 1 {
			t.Errorf("%s: saw %v, refreshed %d times, %v", kind, w.creds(), n, e)
		}
		if w.trace.Attempts() != 2 || w.pool.Unreported() > 0 {
			t.Errorf("%s: attempts %d, %d pending", kind, w.trace.Attempts(), w.pool.Unreported())
		}
		if _, e := w.sendCall(w.kind(kind)); e != nil || strings.Join(w.creds(), " ") != "tok-a-generation2" || n != 1 {
			t.Errorf("%s: the next call saw %v", kind, w.creds())
		}
	}
}

// Of calls that are refused together the slower ones come back when a faster
// one has a newer token already.
func TestTokenRefreshedByAnotherCallIsUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		refused string // beside generation 1
		asked   int
		saw     string
	}{
		"it works":            {"", 0, "1 2"},
		"it is refused too":   {"2", 1, "1 2 3"},
		"and the next one":    {"2 3", 1, "1 2 3"},
		"and all of a plan's": {"2 3 4 5 6 7", 1, "1 2 3"},
	} {
		w := newWorld(t)
		w.add(w.oauth("a", 0))
		n := 0
		w.object.Answer = w.refresher(&n)
		for _, g := range append(strings.Fields(tt.refused), "1") {
			w.script["tok-a-generation"+g] = []fake.Answer{{Status: 401}}
		}
		w.meanwhile = func(cred string) {
			if cred == "tok-a-generation1" {
				w.pool.renew(t.Context(), mid, &w.machine.Connections[0], 1)
				n = 0
			}
		}
		_, e := w.send()
		if saw := strings.ReplaceAll(strings.Join(w.creds(), " "), "tok-a-generation", ""); saw != tt.saw || n != tt.asked || (e == nil) != (name == "it works" || name == "it is refused too") {
			t.Errorf("%s: saw %s, asked %d times, %v", name, saw, n, e)
		}
	}
}

func TestOlderTokenDoesNotReplaceNewerOne(t *testing.T) {
	w := newWorld(t)
	w.add(w.oauth("a", 0))
	n, conn := 0, &w.machine.Connections[0]
	w.object.Answer = w.refresher(&n)
	for _, had := range []int64{1, 4, 2} { // the answer to the last was overtaken
		if ok, _, _ := w.pool.renew(t.Context(), mid, conn, had); !ok {
			t.Errorf("no token newer than %d", had)
		}
	}
	if got := w.pool.current(mid, conn).generation; got != 5 {
		t.Errorf("generation %d is used, want 5", got)
	}
}

func TestModelListRefreshesRefusedToken(t *testing.T) {
	w := newWorld(t)
	w.add(w.oauth("a", 0))
	n, conn := 0, &w.machine.Connections[0]
	w.object.Answer = w.refresher(&n)
	c := &Credentials{w.pool}
	first, _ := c.Credential(t.Context(), w.machine, conn)
	for _, want := range []struct {
		asked int
		token string
	}{{1, "tok-a-generation2"}, {1, "tok-a-generation2"}} { // two that were refused with the first
		got, err := c.Refreshed(t.Context(), w.machine, conn, first)
		if err != nil || got.AccessToken.Reveal() != want.token || n != want.asked {
			t.Errorf("%s, asked %d times, %v", got.AccessToken.Reveal(), n, err)
		}
	}
}

func TestForbiddenRefreshesOnlyUnbilledCalls(t *testing.T) {
	for kind, want := range map[string]string{"json": "aab", "billable": "ab"} {
		w := newWorld(t)
		w.add(w.oauth("a", 0)).add(accounts("b")...)
		n := 0
		w.object.Answer = w.refresher(&n)
		w.script["tok-a-generation1"] = []fake.Answer{{Status: 403}}
		w.script["tok-a-generation2"] = []fake.Answer{{Status: 403}}
		if _, e := w.sendCall(w.kind(kind)); e != nil || w.saw() != want {
			t.Errorf("%s: saw %s, want %s (%v)", kind, w.saw(), want, e)
		}
	}
}

func TestNoLoopWhen401Stays(t *testing.T) {
	w := newWorld(t)
	w.add(w.oauth("a", 0)).add(accounts("b")...)
	n := 0
	w.object.Answer = w.refresher(&n)
	w.script["tok-a-generation1"] = []fake.Answer{{Status: 401}}
	w.script["tok-a-generation2"] = []fake.Answer{{Status: 401}}
	if w.send(); w.saw() != "aab" || n != 1 {
		t.Errorf("saw %s, refreshed %d times", w.saw(), n)
	}
	if _, whole := w.cooling("a"); whole != 2*time.Minute {
		t.Errorf("cools %v, want 2 min", whole)
	}
	if w.send(); w.saw() != "b" || n != 1 {
		t.Errorf("saw %s, refreshed %d times", w.saw(), n)
	}
}

func TestRefreshThatFails(t *testing.T) {
	for name, object := range map[string]func(string, []byte) (int, []byte, error){
		"object down": nil,
		"refused": func(string, []byte) (int, []byte, error) {
			return 409, []byte(`{"connection":{"status":"needs_reauth"}}`), nil
		},
		"needs_reauth": func(string, []byte) (int, []byte, error) {
			return 200, []byte(`{"connection":{"status":"needs_reauth"}}`), nil
		},
		"same": func(string, []byte) (int, []byte, error) {
			return 200, []byte(`{"connection":{"secrets":{"accessToken":"v1.x"},"tokenGeneration":1}}`), nil
		},
		"no JSON": func(string, []byte) (int, []byte, error) { return 200, []byte(`<html>`), nil },
		"does not open": func(string, []byte) (int, []byte, error) {
			return 200, []byte(`{"connection":{"secrets":{"accessToken":"v1.x"},"tokenGeneration":2}}`), nil
		},
	} {
		w := newWorld(t)
		w.add(w.oauth("a", 0)).add(accounts("b")...)
		w.object.Answer = object
		w.script["tok-a-generation1"] = []fake.Answer{{Status: 401}}
		if _, e := w.send(); e != nil || w.saw() != "ab" {
			t.Errorf("%s: saw %s, %v", name, w.saw(), e)
		}
	}
}

func TestExpiredTokenIsRenewedBeforeItIsSent(t *testing.T) {
	w := newWorld(t)
	w.add(w.oauth("a", -time.Second))
	n := 0
	w.object.Answer = w.refresher(&n)
	if _, e := w.send(); e != nil || strings.Join(w.creds(), " ") != "tok-a-generation2" || n != 1 {
		t.Errorf("saw %v, refreshed %d times, %v", w.creds(), n, e)
	}
	w = newWorld(t)
	w.add(w.oauth("a", -time.Second)) // its object is down
	if _, e := w.send(); e != nil || strings.Join(w.creds(), " ") != "tok-a-generation1" {
		t.Errorf("without a refresh the old one is tried: saw %v, %v", w.creds(), e)
	}
}

func TestServiceAccountTokenIsRequested(t *testing.T) {
	w := newWorld(t)
	w.add(store.Connection{ID: "a", Secrets: map[string]secret.Sealed{store.ServiceAccount: w.seal("a", store.ServiceAccount, `{"private_key":"x"}`)}})
	n := 0
	w.object.Answer = w.refresher(&n)
	c := w.call()
	c.Targets[0].Provider = &provider.Descriptor{ID: "openai", Auth: provider.Auth{Scheme: provider.GoogleSA}}
	if _, e := w.sendCall(c); e != nil || strings.Join(w.creds(), " ") != "tok-a-generation1" || n != 1 {
		t.Errorf("saw %v, refreshed %d times, %v", w.creds(), n, e)
	}
}

func TestNewerSnapshotGoesBeforeARememberedToken(t *testing.T) {
	w := newWorld(t)
	w.add(w.oauth("a", 0))
	n := 0
	w.object.Answer = w.refresher(&n)
	w.script["tok-a-generation1"] = []fake.Answer{{Status: 401}}
	w.send()
	conn := w.machine.Connections[0]
	conn.TokenGeneration = 7
	conn.Secrets = map[string]secret.Sealed{store.AccessToken: w.seal("a", store.AccessToken, "tok-a-generation7"), store.RefreshToken: "x"}
	w.machine.Connections[0] = conn
	if w.send(); strings.Join(w.creds(), " ") != "tok-a-generation7" || len(w.pool.tokens) != 0 {
		t.Errorf("saw %v, remembered %d", w.creds(), len(w.pool.tokens))
	}
}

func TestAPIKeyIsNotRefreshed(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	n := 0
	w.object.Answer = w.refresher(&n)
	w.script[key("a")] = []fake.Answer{{Status: 401}}
	if _, e := w.send(); e.Status != 401 || n != 0 || w.saw() != "a" {
		t.Errorf("saw %s, refreshed %d times, got %v", w.saw(), n, e)
	}
}

// An account that has no access token yet: what its provider cannot give now
// is no fault of the caller's. Another account serves.
func TestTokenThatIsTemporarilyUnavailable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		object int
		status int
		code   string
	}{{"later", 503, 503, "token_unavailable"}, {"never", 409, 400, "no_credentials"}} {
		w := newWorld(t)
		first := store.Connection{ID: "a", Secrets: map[string]secret.Sealed{store.RefreshToken: w.seal("a", store.RefreshToken, "refresh-0123456789")}}
		w.add(first)
		w.object.Answer = func(string, []byte) (int, []byte, error) {
			return tt.object, []byte(`{"error":{"message":"x","type":"x","retryAfterMs":7000}}`), nil
		}
		_, e := w.send()
		if e == nil || e.Status != tt.status || e.Code != tt.code || len(w.Seen) != 0 || tt.status == 503 && e.RetryAfter != 7*time.Second {
			t.Errorf("%s: saw %v, got %+v", tt.name, w.creds(), e)
		}
		w.add(w.oauth("b", 0))
		if _, e := w.send(); e != nil || strings.Join(w.creds(), " ") != "tok-b-generation1" {
			t.Errorf("%s: saw %v, got %v", tt.name, w.creds(), e)
		}
	}
}

// A token that was refused and cannot be renewed for a passing reason is no
// evidence against the account: nothing cools, callers may try again.
func TestTemporaryRefreshFailureDoesNotCool(t *testing.T) {
	for name, expires := range map[string]time.Duration{"refused": 0, "past its end": -time.Second} {
		w := newWorld(t)
		w.add(w.oauth("a", expires))
		w.script["tok-a-generation1"] = []fake.Answer{{Status: 401}}
		asked := 0
		w.object.Answer = func(string, []byte) (int, []byte, error) {
			asked++
			return 503, []byte(`{"error":{"message":"x","type":"x","code":"refresh_failed","retryAfterMs":4000}}`), nil
		}
		for call := range 3 {
			_, e := w.send()
			if e == nil || e.Status != 503 || e.Code != "token_unavailable" || e.RetryAfter != 4*time.Second-time.Duration(call)*time.Second || e.NoRetry {
				t.Fatalf("%s, call %d: got %+v", name, call, e)
			}
			if asked != 1 {
				t.Errorf("%s, call %d: the object was asked %d times within its wait", name, call, asked)
			}
			if sent := len(w.Seen); sent != 1 && expires == 0 || sent != 0 && expires != 0 {
				t.Errorf("%s, call %d: %d calls went out", name, call, sent)
			}
			w.Add(time.Second)
		}
		if model, whole := w.cooling("a"); model+whole != 0 || w.pool.Unreported() > 0 {
			t.Errorf("%s: cools %v, %v", name, model, whole)
		}
		// Another account serves; a billable creation too, as 401 is a refusal.
		w.add(w.oauth("b", 0))
		for _, kind := range kinds {
			if _, e := w.sendCall(w.kind(kind)); e != nil || credential(w.Seen[len(w.Seen)-1]) != "tok-b-generation1" {
				t.Errorf("%s, %s: saw %v, %v", name, kind, w.creds(), e)
			}
		}
		w.Add(time.Second)
		n := 0
		w.object.Answer = w.refresher(&n)
		if _, e := w.send(); e != nil || credential(w.Seen[len(w.Seen)-1]) != "tok-a-generation2" || n != 1 {
			t.Errorf("%s: after the wait saw %v, %v", name, w.creds(), e)
		}
	}
}

// A refusal that waiting does not resolve cools the account.
func TestRefusedRefreshCools(t *testing.T) {
	w := newWorld(t)
	w.add(w.oauth("a", 0))
	w.script["tok-a-generation1"] = []fake.Answer{{Status: 401}}
	w.object.Answer = func(string, []byte) (int, []byte, error) {
		return 409, []byte(`{"error":{"message":"x","type":"x","code":"refresh_refused"}}`), nil
	}
	if _, e := w.send(); e.Status != 401 || e.Code != "account_key_refused" {
		t.Errorf("got %+v", e)
	}
	if _, whole := w.cooling("a"); whole != 2*time.Minute {
		t.Errorf("cools %v", whole)
	}
}

// A regression: an instance that was two refreshes behind got the token of the first
// from the object, and the account cooled down for the refusal of that.
func TestTokenOfAnEarlierRefreshIsNotTheLast(t *testing.T) {
	w := newWorld(t)
	w.add(w.oauth("a", 0))
	n := 0
	fresh := w.refresher(&n)
	w.object.Answer = func(op string, body []byte) (int, []byte, error) {
		status, answer, err := fresh(op, body)
		if n == 1 {
			answer = append([]byte(`{"earlier":true,`), answer[1:]...)
		}
		return status, answer, err
	}
	w.script["tok-a-generation1"] = []fake.Answer{{Status: 401}}
	w.script["tok-a-generation2"] = []fake.Answer{{Status: 401}}
	if _, e := w.send(); e != nil || strings.Join(w.creds(), " ") != "tok-a-generation1 tok-a-generation2 tok-a-generation3" || n != 2 {
		t.Errorf("saw %v, refreshed %d times, %v", w.creds(), n, e)
	}
}
