package program

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The clock of a computer is set while the server runs, or is wrong until the network is
// there. Accounts, limits of keys, changes, sign-in links and the next start are locked out,
// or last longer, by no more than the clock is wrong.
func TestClockThatJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, jump := range []time.Duration{-10 * year, -24 * time.Hour, -time.Hour, time.Hour, 24 * time.Hour, 10 * year} {
		t.Run(fmt.Sprint(jump), func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			// At the beginning of a minute, and far from midnight.
			begun, noon := time.Now(), time.Date(2026, 11, 26, 12, 0, 2, 0, time.UTC)
			clock := func() time.Time { return noon.Add(time.Since(begun) + time.Duration(ahead.Load())) }
			var limited atomic.Bool
			u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				if limited.Load() {
					w.Header().Set("Retry-After", "1800")
					w.WriteHeader(429)
				}
				io.WriteString(w, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}}`)
			}))
			defer u.Close()
			home := t.TempDir()
			s := serveIn(t, home, func(r *run) { r.Now = clock })
			s.connect(u.URL)
			machine := "/" + strings.Split(s.key, "-")[1]
			admin := s.secrets().AdminToken
			manage := func(want int, method, path, body string, into any) {
				t.Helper()
				status, text, _ := answer(t, http.DefaultClient, method, s.base+machine+path, body, "Authorization", "Bearer "+admin, "Content-Type", "application/json")
				if status != want {
					t.Fatalf("%s %s: %d %s", method, path, status, text)
				}
				if into != nil && json.Unmarshal([]byte(text), into) != nil {
					t.Fatal(text)
				}
			}
			newKey := func(fields string) (k struct{ ID, APIKey string }) {
				manage(201, "POST", "/api/keys", "{"+fields+"}", &k)
				return k
			}
			call := func(key string) (int, string) {
				t.Helper()
				status, text, _ := answer(t, http.DefaultClient, "POST", s.base+"/v1/embeddings", `{"model":"up/m","input":"a"}`, "Authorization", "Bearer "+key, "Content-Type", "application/json")
				return status, text
			}
			embed := func(what, key string, want int) {
				t.Helper()
				if status, text := call(key); status != want {
					t.Errorf("%s: %d, want %d: %s", what, status, want, text)
				}
			}
			requests := func() (n int) {
				var list struct{ Data []json.RawMessage }
				manage(200, "GET", "/api/requests", "", &list)
				return len(list.Data)
			}

			perMinute, perDay, revoked := newKey(`"rpm":1`), newKey(`"dailyMax":1`), newKey(`"name":"revoked"`)
			ends := newKey(fmt.Sprintf(`"expiresAt":%d`, clock().Add(30*time.Minute).UnixMilli()))
			embed("before", s.key, 200)
			embed("a key that ends", ends.APIKey, 200)
			embed("a key to be revoked", revoked.APIKey, 200)
			manage(204, "DELETE", "/api/keys/"+revoked.ID, "", nil)
			for _, k := range []string{perMinute.APIKey, perDay.APIKey} {
				embed("within the limit", k, 200)
				embed("beyond the limit", k, 429)
			}
			limited.Store(true)
			embed("an account at its limit", s.key, 429)
			limited.Store(false)
			// The report of the cooldown must not come after the jump.
			var cools struct{ Data []json.RawMessage }
			for deadline := time.Now().Add(time.Minute); len(cools.Data) == 0; time.Sleep(10 * time.Millisecond) {
				if manage(200, "GET", "/api/models/availability", "", &cools); time.Now().After(deadline) {
					t.Fatal("the cooldown is not reported")
				}
			}

			ahead.Store(int64(jump))
			status, text, _ := answer(t, http.DefaultClient, "GET", s.base+"/health", "")
			if status != 200 {
				t.Errorf("/health: %d %s", status, text)
			}
			if jump < 0 { // what was to last 30 minutes lasts no longer from now on
				call(s.key)
				ahead.Add(int64(31 * time.Minute))
			}
			embed("an account that has waited", s.key, 200)
			embed("a revoked key", revoked.APIKey, 401)
			embed("the limit of a minute", perMinute.APIKey, 200)
			if jump > time.Hour || jump < -24*time.Hour {
				embed("the limit of a day", perDay.APIKey, 200)
			}
			if jump > 0 {
				embed("a key that has ended", ends.APIKey, 401)
			} else {
				embed("a key that has not ended yet", ends.APIKey, 200)
			}
			manage(200, "PATCH", "/api/settings", `{"idleSeconds":77}`, nil)
			later := newKey(`"name":"later"`)
			embed("a new key", later.APIKey, 200)
			manage(204, "DELETE", "/api/keys/"+later.ID, "", nil)
			embed("a key that was revoked afterwards", later.APIKey, 401)
			had := requests()
			if had < 8 && jump < 30*24*time.Hour {
				t.Errorf("%d requests are listed", had)
			}
			want := 401
			if jump == -time.Hour {
				want = 200
			}
			if status, text := signIn(t, s.base, codeIn(t, s.link)); status != want {
				t.Errorf("the link of the start: %d, want %d: %s", status, want, text)
			}
			manage(200, "GET", "/api/audit", "", nil)

			s.signals <- syscall.SIGTERM
			if code := s.end(); code != 0 {
				t.Fatalf("exit code %d: %s", code, &s.stderr)
			}
			key := s.key
			s = serveIn(t, home, func(r *run) { r.Now = clock })
			embed("after the next start", key, 200)
			if n := requests(); n < had {
				t.Errorf("%d of %d requests are listed after the next start", n, had)
			}
			ahead.Store(0) // it is right again
			embed("after the correction", key, 200)
			manage(200, "PATCH", "/api/settings", `{"idleSeconds":78}`, nil)
			s.signals <- syscall.SIGTERM
			if code := s.end(); code != 0 {
				t.Fatalf("exit code %d: %s", code, &s.stderr)
			}
		})
	}
}
