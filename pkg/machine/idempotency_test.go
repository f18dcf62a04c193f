package machine

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
)

func TestIdempotencyKeys(t *testing.T) {
	w := newWorld(t)
	if got := w.Want(404, "idem.begin", `{"key":"k","digest":"d"}`); got.Get("error.code").Str != "machine_not_found" {
		t.Errorf("without a machine: %s", got.Raw)
	}
	w.Create()
	state := func(key, digest string) string {
		t.Helper()
		return w.Want(200, "idem.begin", `{"key":"`+key+`","digest":"`+digest+`"}`).Get("state").Str
	}
	steps := []struct{ key, digest, want string }{
		{"k", "d", "new"}, {"k", "d", "running"}, {"k", "e", "other"}, {"l", "e", "new"},
	}
	for i, s := range steps {
		if got := state(s.key, s.digest); got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
	w.Want(200, "idem.end", `{"key":"k","digest":"wrong","status":200}`)
	if got := state("k", "d"); got != "running" {
		t.Errorf("ended by another call: %q", got)
	}
	w.Want(200, "idem.end", `{"key":"k","digest":"d","status":202,"header":[["content-type","application/json"]],"body":"`+base64.StdEncoding.EncodeToString([]byte("answer"))+`"}`)
	w.Want(200, "idem.end", `{"key":"k","digest":"d","status":500}`)
	done := w.Want(200, "idem.begin", `{"key":"k","digest":"d"}`)
	body, _ := base64.StdEncoding.DecodeString(done.Get("body").Str)
	if done.Get("state").Str != "done" || done.Get("status").Int() != 202 || string(body) != "answer" || !done.Get("whole").Bool() || done.Get("header.0.1").Str != "application/json" {
		t.Errorf("got %s", done.Raw)
	}

	w.Want(200, "idem.end", `{"key":"l","digest":"e","status":0}`)
	if got := state("l", "f"); got != "new" {
		t.Errorf("after it was forgotten: %q", got)
	}
	w.Want(200, "idem.end", `{"key":"l","digest":"f","status":200,"body":"`+strings.Repeat("AAAA", rpc.MaxStoredAnswer/3+1)+`"}`)
	big := w.Want(200, "idem.begin", `{"key":"l","digest":"f"}`)
	if big.Get("state").Str != "done" || big.Get("whole").Bool() || big.Get("body").Exists() {
		t.Errorf("a large answer: %.200s", big.Raw)
	}

	w.Clock.Add(30*24*time.Hour + time.Millisecond)
	if got := state("k", "e"); got != "new" {
		t.Errorf("after 30 days: %q", got)
	}
	for _, body := range []string{`{`, `{"digest":"d"}`, `{"key":"k"}`, `{"key":"` + strings.Repeat("k", 256) + `","digest":"d"}`} {
		if status, _ := w.Call("idem.begin", body); status != 400 {
			t.Errorf("%.40s: %d", body, status)
		}
	}
}

// A call that runs on while its object begins again in another program, as on the edge after
// some minutes of rest, is under way: a client that is told to use a new key would create
// twice. Rows of earlier versions have a seat there.
func TestCallRunsOnWhileItsObjectMoves(t *testing.T) {
	w := newWorld(t)
	w.Create()
	begin := func() string {
		t.Helper()
		return w.Want(200, "idem.begin", `{"key":"k","digest":"d","for":60000}`).Get("state").Str
	}
	w.obj.Began = w.Clock.Now().UnixMilli()
	begin() // as earlier versions have stored it
	w.obj.Began, w.obj.seat = 0, "another program"
	if got := begin(); got != "running" {
		t.Errorf("with a seat: %q", got)
	}
	w.Clock.Add(31 * 24 * time.Hour)
	if got := begin() + " " + begin(); got != "new running" {
		t.Fatal(got)
	}
	w.obj.seat = "a third program"
	if got := begin(); got != "running" {
		t.Errorf("after the object has moved: %q", got)
	}
	w.Clock.Add(61 * time.Second)
	if got := begin(); got != "lost" {
		t.Errorf("after its time: %q", got)
	}
}

// A call whose program has ended, or that runs for longer than it can, is lost:
// its key is taken until its time is over, unless its outcome comes after all.
func TestLostCallKeepsItsIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.obj.Began = w.Clock.Now().UnixMilli()
	state := func() string {
		t.Helper()
		return w.Want(200, "idem.begin", `{"key":"k","digest":"d","for":60000}`).Get("state").Str
	}
	if got := state() + " " + state(); got != "new running" {
		t.Fatal(got)
	}
	w.obj.seat = "another program"
	if got := state(); got != "lost" {
		t.Errorf("after a restart: %q", got)
	}
	if got := w.Want(200, "idem.begin", `{"key":"k","digest":"e"}`).Get("state").Str; got != "other" {
		t.Errorf("another request after a restart: %q", got)
	}
	w.Clock.Add(25 * time.Hour)
	w.Want(200, "tick", `{}`)
	if got := state(); got != "lost" {
		t.Errorf("after 25 hours: %q", got)
	}
	w.Clock.Add(28 * 24 * time.Hour)
	if got := state(); got != "lost" {
		t.Errorf("after 29 days: %q", got)
	}
	w.Clock.Add(24 * time.Hour)
	if got := state(); got != "new" {
		t.Errorf("after 30 days: %q", got)
	}
	w.Clock.Add(61 * time.Second)
	if got := state(); got != "lost" {
		t.Errorf("after the longest run: %q", got)
	}
	w.Want(200, "idem.end", `{"key":"k","digest":"d","status":200,"large":true}`)
	if got := w.Want(200, "idem.begin", `{"key":"k","digest":"d"}`); got.Get("state").Str != "done" || got.Get("whole").Bool() {
		t.Errorf("the outcome came late: %s", got.Raw)
	}
}

func TestIdempotencyKeysArePruned(t *testing.T) {
	w := newWorld(t)
	w.Create()
	w.Want(200, "idem.begin", `{"key":"k","digest":"d"}`)
	count := func() (n int) {
		for key := range w.Loc.Storage(mid).Dump() {
			if strings.HasPrefix(key, idemPrefix) {
				n++
			}
		}
		return n
	}
	if count() != 1 {
		t.Fatalf("%d rows", count())
	}
	w.Clock.Add(30*24*time.Hour + time.Hour)
	w.Want(200, "tick", `{}`)
	w.obj.Alarm(w.Ctx, w.Loc.Storage(mid), mid)
	w.Loc.Storage(mid).Flush()
	if count() != 0 {
		t.Errorf("%d rows are left after 30 days", count())
	}
}

// Keys are bounded. One that ended makes room, the oldest first; one that runs,
// or of which no one knows whether it created something, never does.
func TestIdempotencyKeysAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Create()
	st := w.Loc.Storage(mid)
	begin := func(key string) (int, string) {
		t.Helper()
		status, got := w.Call("idem.begin", `{"key":"`+key+`","digest":"d"}`)
		st.Flush()
		return status, got.Get("state").Str
	}
	end := func(key, more string) {
		t.Helper()
		w.Want(200, "idem.end", `{"key":"`+key+`","digest":"d","status":200`+more+`}`)
		st.Flush()
	}
	must := func(key, want string) {
		t.Helper()
		if status, state := begin(key); status != 200 || state != want {
			t.Fatalf("%s: %d %q, want %q", key, status, state, want)
		}
	}
	must("unknown", "new")
	end("unknown", `,"unknown":true`)
	w.Clock.Add(time.Second)
	must("first", "new")
	w.Clock.Add(time.Second)
	must("second", "new")
	end("second", "") // before the first one, which is older
	end("first", "")
	var rows []storage.Row
	for i := range maxIdem - 3 {
		rows = append(rows, storage.Row{Key: fmt.Sprintf("%srunning%05d", idemPrefix, i), Value: []byte(fmt.Sprintf(`{"digest":"d","at":%d}`, w.Clock.Now().UnixMilli()))})
	}
	st.Write(rows, storage.KeepAlarm)
	st.Flush()
	w.Clock.Add(61 * time.Minute)
	w.Loc.Alarms(w.Ctx) // counts them
	count := func() int { return len(st.Listed(idemPrefix)) }
	if n := count(); n != maxIdem {
		t.Fatalf("%d keys", n)
	}

	must("a", "new") // in the place of the first
	must("second", "done")
	must("b", "new") // in the place of the second
	if status, _ := begin("c"); status != 503 {
		t.Errorf("with nothing to forget: %d", status)
	}
	must("unknown", "done")
	must("a", "running")
	if n := count(); n != maxIdem {
		t.Errorf("%d keys", n)
	}
	w.Want(200, "idem.end", `{"key":"a","digest":"d","status":0}`) // nothing was created
	must("c", "new")
	if status, _ := begin("first"); status != 503 {
		t.Errorf("full again: %d", status)
	}

	w.Clock.Add(30*24*time.Hour + time.Hour)
	for range 4 {
		w.Loc.Alarms(w.Ctx)
		w.Clock.Add(11 * time.Second)
	}
	if n := count() + len(st.Listed(endedPrefix)); n != 0 {
		t.Errorf("%d rows are left after 30 days", n)
	}
	must("first", "new")
}

// More keys than a machine may have, as a client creates them: each of the latest has its
// own answer, the oldest have made way.
func TestTenThousandIdempotencyKeys(t *testing.T) {
	w := newWorld(t)
	w.Create()
	st := w.Loc.Storage(mid)
	const more = 50
	for i := range maxIdem + more {
		key := fmt.Sprintf(`{"key":"k%d","digest":"d%d"`, i, i)
		if got := w.Want(200, "idem.begin", key+`}`); got.Get("state").Str != "new" {
			t.Fatalf("key %d: %s", i, got.Raw)
		}
		w.Want(200, "idem.end", key+fmt.Sprintf(`,"status":200,"body":"%s"}`, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "answer %d", i))))
		w.Clock.Add(time.Millisecond)
	}
	st.Flush()
	if n, ended := len(st.Listed(idemPrefix)), len(st.Listed(endedPrefix)); n != maxIdem || ended != maxIdem {
		t.Errorf("%d keys, %d of them have ended", n, ended)
	}
	for i := more; i < maxIdem+more; i += 199 {
		got := w.Want(200, "idem.begin", fmt.Sprintf(`{"key":"k%d","digest":"d%d"}`, i, i))
		body, _ := base64.StdEncoding.DecodeString(got.Get("body").Str)
		if want := fmt.Sprintf("answer %d", i); got.Get("state").Str != "done" || string(body) != want {
			t.Fatalf("key %d: %s, %q", i, got.Get("state"), body)
		}
	}
	if got := w.Want(200, "idem.begin", fmt.Sprintf(`{"key":"k%d","digest":"other"}`, more)); got.Get("state").Str != "other" {
		t.Errorf("another request with a key: %s", got.Raw)
	}
	if got := w.Want(200, "idem.begin", `{"key":"k0","digest":"d0"}`); got.Get("state").Str != "new" {
		t.Errorf("a key that has made way: %s", got.Raw)
	}
}

// Where several programs that know of each other serve the machines, a creation is lost with the
// one that runs it. One that has just started may not be known yet.
func TestCreationIsLostWithItsProgram(t *testing.T) {
	w := newWorld(t)
	w.Create()
	alive := map[string]bool{}
	w.obj.Seat, w.obj.SeatAlive = "first", func(name string) bool { return alive[name] }
	state := func() string {
		t.Helper()
		return w.Want(200, "idem.begin", `{"key":"k","digest":"d","for":600000}`).Get("state").Str
	}
	if got := state(); got != "new" {
		t.Fatal(got)
	}
	w.obj.seat = "second"
	if got := state(); got != "running" {
		t.Errorf("of a program that is not known yet: %q", got)
	}
	w.Clock.Add(16 * time.Second)
	alive["first"] = true
	if got := state(); got != "running" {
		t.Errorf("of a living program: %q", got)
	}
	alive["first"] = false
	if got := state(); got != "lost" {
		t.Errorf("of a dead program: %q", got)
	}
}
