package machine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/inprocess"
	"weir/pkg/machine/rpc"
)

// opened opens session n of the operator.
func (w *world) opened(n int) gjson.Result {
	w.Helper()
	status, a := w.At(rpc.RegistryID, "session.open", `{"digest":"`+inprocess.Digest(n)+`","bound":"b"}`)
	if status != 200 {
		w.Fatalf("session %d: got %d %s", n, status, a.Raw)
	}
	return a
}

// checked checks session n of the operator.
func (w *world) checked(n int) (int, gjson.Result) {
	w.Helper()
	return w.At(rpc.RegistryID, "session.check", `{"digest":"`+inprocess.Digest(n)+`","bound":"b"}`)
}

func TestUnusedSessionLivesForTwelveHours(t *testing.T) {
	for idle, want := range map[time.Duration]int{0: 200, 12*time.Hour - time.Millisecond: 200, 12 * time.Hour: 401, -30 * time.Minute: 200, -30*time.Minute - time.Millisecond: 401} {
		w := newWorld(t)
		now := w.Clock.Now().UnixMilli()
		if a := w.opened(1); a.Get("authAt").Int() != now || a.Get("idleAt").Int() != now+12*3600_000 || a.Get("expiresAt").Int() != now+12*3600_000 || a.Get("key").Exists() {
			t.Errorf("opened: got %s", a.Raw)
		}
		w.Clock.Add(idle)
		if status, a := w.checked(1); status != want {
			t.Errorf("after %v: got %d %s, want %d", idle, status, a.Raw, want)
		}
	}
}

func TestSessionInUseLivesForTwelveHours(t *testing.T) {
	w := newWorld(t)
	end := w.opened(1).Get("expiresAt").Int()
	for range 35 {
		w.Clock.Add(20 * time.Minute)
		w.checked(1)
	}
	w.Clock.Add(20*time.Minute - time.Millisecond)
	if status, a := w.checked(1); status != 200 || a.Get("expiresAt").Int() != end || a.Get("idleAt").Int() != end {
		t.Errorf("before its end: got %d %s", status, a.Raw)
	}
	w.Clock.Add(time.Millisecond)
	if status, _ := w.checked(1); status != 401 {
		t.Errorf("at its end: got %d", status)
	}
}

func TestUseOfSessionIsNotedOnceAMinute(t *testing.T) {
	w := newWorld(t)
	w.opened(1)
	seen := func() int64 {
		var s sessionRow
		json.Unmarshal(w.Loc.Storage(rpc.RegistryID).Listed(sessionPrefix)[0].Value, &s)
		return s.SeenAt
	}
	first := seen()
	for _, tt := range []struct{ step, later time.Duration }{{time.Minute - time.Millisecond, 0}, {time.Millisecond, time.Minute}, {time.Minute - time.Millisecond, time.Minute}} {
		w.Clock.Add(tt.step)
		if w.checked(1); seen() != first+tt.later.Milliseconds() {
			t.Errorf("after %v more: seen at %d", tt.step, seen()-first)
		}
	}
}

func TestSessionOfAnotherTokenEnds(t *testing.T) {
	w := newWorld(t)
	w.opened(1)
	if status, _ := w.At(rpc.RegistryID, "session.check", `{"digest":"`+inprocess.Digest(1)+`","bound":"other"}`); status != 401 {
		t.Errorf("another token: got %d", status)
	}
	if status, _ := w.checked(1); status != 401 {
		t.Errorf("afterwards: got %d", status)
	}
	for _, body := range []string{`{`, `{"digest":"x","bound":"b"}`, `{"digest":"` + inprocess.Digest(2) + `","bound":"b"}`, `{"digest":"` + strings.ToUpper(inprocess.Digest(0xabc)) + `"}`} {
		if status, _ := w.At(rpc.RegistryID, "session.check", body); status != 401 {
			t.Errorf("%s: got %d, want 401", body, status)
		}
	}
	for _, body := range []string{`{`, `{"digest":"x"}`, `{"digest":"` + inprocess.Digest(3) + `","bound":5}`} {
		if status, _ := w.At(rpc.RegistryID, "session.open", body); status != 400 {
			t.Errorf("open %s: got %d, want 400", body, status)
		}
	}
	if status, _ := w.At(rpc.RegistryID, "session.open", `{"digest":"`+inprocess.Digest(4)+`","keyId":"k"}`); status != 401 {
		t.Errorf("a key's session in the registry: got %d", status)
	}
}

func TestSignInReplacesItsSession(t *testing.T) {
	w := newWorld(t)
	w.opened(1)
	w.opened(2)
	w.At(rpc.RegistryID, "session.open", `{"digest":"`+inprocess.Digest(3)+`","bound":"b","replaces":"`+inprocess.Digest(1)+`"}`)
	for n, want := range map[int]int{1: 401, 2: 200, 3: 200} {
		if status, _ := w.checked(n); status != want {
			t.Errorf("session %d: got %d, want %d", n, status, want)
		}
	}
}

func TestLeastRecentlyUsedOfFiftySessionsEnds(t *testing.T) {
	w := newWorld(t)
	for n := range maxSessions {
		w.opened(n)
		w.Clock.Add(time.Second)
	}
	count := func() int { return len(w.Loc.Storage(rpc.RegistryID).Listed(sessionPrefix)) }
	if n := count(); n != maxSessions {
		t.Fatalf("%d sessions", n)
	}
	w.Clock.Add(time.Minute)
	w.checked(0) // so the second is the oldest
	w.opened(100)
	for n, want := range map[int]int{0: 200, 1: 401, 2: 200, 49: 200, 100: 200} {
		if status, _ := w.checked(n); status != want {
			t.Errorf("session %d: got %d, want %d", n, status, want)
		}
	}
	if n := count(); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	w.Clock.Add(12 * time.Hour)
	w.opened(101)
	if n := count(); n != 1 {
		t.Errorf("%d sessions after the others ended", n)
	}
}

func TestSessionsEndTogether(t *testing.T) {
	w := newWorld(t)
	for n := range 3 {
		w.opened(n)
	}
	end := func(body string) {
		t.Helper()
		if status, a := w.At(rpc.RegistryID, "session.end", body); status != 200 {
			t.Errorf("%s: got %d %s", body, status, a.Raw)
		}
	}
	states := func(want string) {
		t.Helper()
		got := ""
		for n := range 3 {
			status, _ := w.checked(n)
			got += fmt.Sprint(status, " ")
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, body := range []string{`{`, `{"digest":"x","all":true}`, `{"digest":"` + inprocess.Digest(9) + `","all":true}`, `{"digest":"` + inprocess.Digest(0) + `","all":5}`} {
		end(body)
	}
	states("200 200 200")
	end(`{"digest":"` + inprocess.Digest(0) + `"}`)
	states("401 200 200")
	end(`{"digest":"` + inprocess.Digest(1) + `","all":true}`)
	states("401 401 401")
}

func TestSessionOfKeyLivesAsLongAsTheKeyManages(t *testing.T) {
	w := newWorld(t)
	w.Create()
	first := w.OK("POST", "/api/keys", `{"name":"first","scopes":["manage"]}`).Get("id").Str
	second := w.OK("POST", "/api/keys", `{"name":"second","scopes":["manage"]}`).Get("id").Str
	open := func(n int, key string) (int, gjson.Result) {
		return w.At(mid, "session.open", `{"digest":"`+inprocess.Digest(n)+`","keyId":"`+key+`"}`)
	}
	check := func(n int) int {
		status, _ := w.At(mid, "session.check", `{"digest":"`+inprocess.Digest(n)+`","bound":"any"}`)
		return status
	}
	if status, a := open(1, first); status != 200 || a.Get("key.id").Str != first || a.Get("key.digest").Str != "" {
		t.Errorf("got %d %s", status, a.Raw)
	}
	open(2, first)
	if status, a := open(3, second); status != 200 {
		t.Fatalf("second key: got %d %s", status, a.Raw)
	}
	for _, id := range []string{"", "unknown"} {
		if status, _ := open(4, id); status != 401 {
			t.Errorf("key %q: got %d, want 401", id, status)
		}
	}
	signIns := 0
	for _, rec := range w.OK("GET", "/api/audit", "").Get("data").Array() {
		if strings.Contains(rec.Raw, "sign-in") {
			signIns++
		}
	}
	if signIns != 3 {
		t.Errorf("%d sign-ins in the audit, want 3", signIns)
	}
	w.At(mid, "session.end", `{"digest":"`+inprocess.Digest(1)+`","all":true}`)
	if got := fmt.Sprint(check(1), check(2), check(3)); got != "401 401 200" {
		t.Errorf("after all of the first key ended: %s", got)
	}
	if rec := w.OK("GET", "/api/audit?limit=1", "").Get("data.0"); rec.Get("action").Str != "sessions.end" || rec.Get("fields").Raw != `["2 sessions"]` {
		t.Errorf("the record of it is %s", rec.Raw)
	}
	w.OK("DELETE", "/api/keys/"+second, "")
	if got := check(3); got != 401 {
		t.Errorf("after the key was revoked: %d", got)
	}
}

func TestFailedSignInsAreLimited(t *testing.T) {
	w := newWorld(t)
	from := strings.Repeat("a", 32)
	fail := func() (int, time.Duration) {
		status, a := w.At(rpc.RegistryID, "session.failed", `{"from":"`+from+`"}`)
		return status, time.Duration(a.Get("error.retryAfterMs").Int()) * time.Millisecond
	}
	ten := func() {
		t.Helper()
		for n := range attemptMost {
			if status, _ := fail(); status != 200 {
				t.Fatalf("attempt %d: got %d", n+1, status)
			}
		}
	}
	for _, minutes := range []time.Duration{15, 30, 60, 120, 240, 240} {
		ten()
		if status, wait := fail(); status != 429 || wait != minutes*time.Minute {
			t.Errorf("got %d, wait %v; want %v min", status, wait, int(minutes))
		}
		w.Clock.Add(minutes*time.Minute - time.Second)
		if status, wait := fail(); status != 429 || wait != time.Second {
			t.Errorf("a second before: got %d, wait %v", status, wait)
		}
		w.Clock.Add(time.Second)
	}
	ten()
	w.Clock.Add(15*time.Minute - time.Millisecond)
	if status, _ := fail(); status != 429 {
		t.Errorf("within the window: got %d", status)
	}
	w.Clock.Add(4*time.Hour + 24*time.Hour)
	ten()
	if _, wait := fail(); wait != 4*time.Hour {
		t.Errorf("a day later: wait %v, want 4 h", wait)
	}
	w.Clock.Add(4*time.Hour + 24*time.Hour + time.Millisecond)
	ten()
	if _, wait := fail(); wait != 15*time.Minute {
		t.Errorf("over a day later: wait %v, want 15 min", wait)
	}
	from = strings.Repeat("b", 32)
	ten()
	w.Clock.Add(15 * time.Minute)
	ten()
	w.Clock.Add(-time.Hour) // a window that begins later does not count
	ten()
	for _, body := range []string{`{`, `{"from":"x"}`, `{"from":5}`, `{"from":"` + strings.Repeat("A", 32) + `"}`} {
		if status, _ := w.At(rpc.RegistryID, "session.failed", body); status != 400 {
			t.Errorf("%s: got %d", body, status)
		}
	}
}

// Wrong operator tokens were counted and not recorded.
func TestRefusedSignInsAreRecordedWithinTheLimit(t *testing.T) {
	w := newWorld(t)
	for range attemptMost + 5 {
		w.At(rpc.RegistryID, "session.failed", `{"from":"`+strings.Repeat("a", 32)+`","reason":"wrong_credential","network":"203.0.113.0/24"}`)
	}
	_, a := w.At(rpc.RegistryID, "signIn.list", `{}`)
	if n := a.Get(`data.#(action=="sign-in.refused")#|#`).Int(); n != attemptMost || a.Get("data.0.fields").Raw != `["wrong_credential","from 203.0.113.0/24"]` {
		t.Errorf("%d records, want %d: %s", n, attemptMost, a.Raw)
	}
}

func TestAddressesOfFailedSignInsAreBounded(t *testing.T) {
	w := newWorld(t)
	fail := func(n int) { w.At(rpc.RegistryID, "session.failed", fmt.Sprintf(`{"from":"%032d"}`, n)) }
	rows := func() map[string]bool {
		has := map[string]bool{}
		for _, r := range w.Loc.Storage(rpc.RegistryID).Listed(attemptPrefix) {
			has[strings.TrimPrefix(r.Key, attemptPrefix)] = true
		}
		return has
	}
	name := func(n int) string { return fmt.Sprintf("%032d", n) }
	for n := range maxAttempts { // the oldest has the last name
		fail(maxAttempts - n)
		w.Clock.Add(time.Millisecond)
	}
	if n := len(rows()); n != maxAttempts {
		t.Fatalf("%d rows", n)
	}
	fail(1000)
	if has := rows(); len(has) != maxAttempts || has[name(maxAttempts)] || !has[name(1)] || !has[name(1000)] {
		t.Errorf("%d rows, the oldest left: %v", len(has), has[name(maxAttempts)])
	}
	w.Clock.Add(15*time.Minute - time.Millisecond)
	fail(1001)
	if has := rows(); len(has) != 3 || !has[name(1)] || !has[name(1000)] || !has[name(1001)] {
		t.Errorf("%d rows after their windows", len(has))
	}
}
