//go:build unix

package cluster

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A change that one server has made is seen by the others within 2 s, and at once where the caller
// shows that it must be there.
func TestConfigurationIsSeenByAllServers(t *testing.T) {
	w := newWorld(t, 3)
	a, b, c := w.servers[0], w.servers[1], w.servers[2]
	id, key := a.machine()
	for _, p := range w.servers {
		if res := p.chat(key, "up/m"); res.status != 200 {
			t.Errorf("a call: %d %s", res.status, res.body)
		}
	}
	created := b.must("POST", "/"+id+"/api/keys", `{"name":"second"}`)
	second := created.get("apiKey").Str
	for _, p := range w.servers {
		if res := p.chat(second, "up/m"); res.status != 200 {
			t.Errorf("a new key: %d %s", res.status, res.body)
		}
	}
	c.must("PUT", "/"+id+"/api/models/alias", `{"alias":"quick","model":"up/m"}`)
	for _, p := range w.servers {
		w.until(2*time.Second, "a new alias", func() bool { return p.chat(key, "quick").status == 200 })
	}
	a.must("DELETE", "/"+id+"/api/keys/"+created.get("id").Str, "")
	for _, p := range w.servers {
		w.until(2*time.Second, "the end of a key", func() bool { return p.chat(second, "up/m").status == 401 })
	}
	w.until(25*time.Second, "the requests of all servers", func() bool {
		return b.must("GET", "/"+id+"/api/requests", "").get("data.#").Int() >= 9
	})
	if audit := a.must("GET", "/"+id+"/api/audit", ""); audit.get("data.#").Int() < 4 {
		t.Errorf("audit: %s", audit.body)
	}
	a.must("DELETE", "/api/machines/"+id, "")
	for _, p := range w.servers {
		w.until(2*time.Second, "the end of the machine", func() bool { return p.chat(key, "up/m").status == 401 })
	}
}

// A sign-in link that one process has printed works at any server, once, and the session that it
// begins is valid at all.
func TestSessionIsValidAtAllServers(t *testing.T) {
	w := newWorld(t, 2)
	a, b := w.servers[0], w.servers[1]
	if out := w.command("init", "--public-url", a.base); !strings.Contains(out, "Machine ") {
		t.Fatalf("init: %s", out)
	}
	out := w.command("init", "--public-url", a.base)
	_, code, _ := strings.Cut(out, "/#/sign-in/")
	code, _, _ = strings.Cut(code, "\n")
	signIn := func(p *process) answer {
		return p.do("POST", "/api/session", `{"token":"`+code+`"}`, "Origin", p.base, "Sec-Fetch-Site", "same-origin")
	}
	in := signIn(a)
	if in.status != 200 {
		t.Fatalf("sign-in: %d %s\n%s", in.status, in.body, out)
	}
	if again := signIn(b); again.status != 401 {
		t.Errorf("the second time: %d %s", again.status, again.body)
	}
	cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	for _, p := range w.servers {
		if res := p.do("GET", "/api/machines", "", "Cookie", cookie); res.status != 200 || res.get("data.#").Int() != 1 {
			t.Errorf("the session: %d %s", res.status, res.body)
		}
	}
}

// Of many callers at all servers with an expired token one refreshes it, each time.
func TestTokenIsRefreshedByOneServer(t *testing.T) {
	w := newWorld(t, 3)
	id, key := w.servers[0].machine()
	access, refresh := w.up.grant()
	w.servers[0].connect(id, oauth, "acme", `"accessToken":"`+access+`","refreshToken":"`+refresh+`"`)
	const rotations = 6
	for round := range rotations {
		time.Sleep(time.Second) // a refresh is allowed again
		w.up.expire()
		var done sync.WaitGroup
		var failed atomic.Int32
		for i := range 30 {
			done.Go(func() {
				for range 20 { // a caller is told when to ask again
					if w.servers[i%3].chat(key, "acme/m").status == 200 {
						return
					}
					time.Sleep(200 * time.Millisecond)
				}
				failed.Add(1)
			})
		}
		done.Wait()
		if failed.Load() > 0 {
			t.Errorf("round %d: %d callers have failed", round, failed.Load())
		}
	}
	calls, reused := w.up.number(func() int { return w.up.calls }), w.up.number(func() int { return w.up.reused })
	if calls != rotations || reused != 0 {
		t.Errorf("%d token calls for %d rotations, %d with a used token", calls, rotations, reused)
	}
}

// A budget holds over all servers.
func TestBudgetHoldsOverAllServers(t *testing.T) {
	w := newWorld(t, 3)
	id, key := w.servers[0].machine()
	w.servers[1].must("POST", "/"+id+"/api/budgets", `{"name":"b","unit":"requests","limit":60,"window":"total"}`)
	time.Sleep(2 * time.Second) // the budget is known everywhere
	var done sync.WaitGroup
	var served, refused atomic.Int32
	for i := range 300 {
		done.Go(func() {
			switch a := w.servers[i%3].chat(key, "up/m"); a.status {
			case 200:
				served.Add(1)
			case 429:
				refused.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	done.Wait()
	sent := w.up.number(func() int { return w.up.chats })
	t.Logf("%d served, %d refused", served.Load(), refused.Load())
	if sent > 60 || int(served.Load()) != sent || sent < 40 {
		t.Errorf("%d calls were sent of 60, %d served", sent, served.Load())
	}
}

// A server that is killed leaves the places of its calls to others within some minutes, and what these
// had reserved of a budget is spent.
func TestCallsOfAKilledServerEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	a, b := w.servers[0], w.servers[1]
	id, _ := a.machine()
	a.must("POST", "/"+id+"/api/budgets", `{"name":"b","unit":"requests","limit":100,"window":"total"}`)
	key := a.must("POST", "/"+id+"/api/keys", `{"name":"two","maxParallel":2}`).get("apiKey").Str
	w.up.mu.Lock()
	w.up.slow = 10 * time.Minute
	w.up.mu.Unlock()
	for i := range 2 {
		go b.create(key, fmt.Sprint("slow", i))
	}
	w.until(5*time.Second, "sent", func() bool { return w.up.number(func() int { return len(w.up.images) }) == 2 })
	if res := a.chat(key, "up/m"); res.status != 429 {
		t.Errorf("a third call: %d %s", res.status, res.body)
	}
	b.kill()
	at := time.Now()
	w.until(2*time.Minute, "a call in place of those of the killed server", func() bool {
		time.Sleep(500 * time.Millisecond)
		return a.chat(key, "up/m").status == 200
	})
	t.Logf("after %v", time.Since(at))
	w.until(10*time.Second, "three calls are spent", func() bool {
		return a.must("GET", "/"+id+"/api/budgets", "").get("data.0.spent").Int() >= 3
	})
}

// An idempotency key creates once, whichever servers it is sent to; a creation under way at another
// living server is not lost, that of a killed one is.
func TestIdempotencyKeyCreatesOnce(t *testing.T) {
	w := newWorld(t, 3)
	a, b, c := w.servers[0], w.servers[1], w.servers[2]
	_, key := a.machine()
	for _, p := range w.servers {
		if res := p.create(key, "one"); res.status != 200 {
			t.Errorf("created: %d %s", res.status, res.body)
		}
	}
	w.up.mu.Lock()
	w.up.slow = 30 * time.Second
	w.up.mu.Unlock()
	go c.create(key, "two")
	w.until(5*time.Second, "sent", func() bool { return w.up.number(func() int { return w.up.images["two"] }) == 1 })
	if res := b.create(key, "two"); res.status != 409 || res.get("error.code").Str != "idempotency_in_progress" {
		t.Errorf("under way at a living server: %d %s", res.status, res.body)
	}
	c.kill()
	w.until(25*time.Second, "the creation of a dead server is lost", func() bool {
		return b.create(key, "two").get("error.code").Str == "upstream_outcome_unknown"
	})
	for _, prompt := range []string{"one", "two"} {
		if n := w.up.number(func() int { return w.up.images[prompt] }); n != 1 {
			t.Errorf("%s was created %d times", prompt, n)
		}
	}
}

// Calls go on without the database for as long as AWAY says, and no longer than that.
func TestCallsGoOnForAsLongAsSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	short, long := w.add("", "AWAY=60"), w.add("", "AWAY=120")
	_, key := short.machine()
	for _, p := range w.servers {
		p.must("GET", "/api/machines", "")
		if res := p.chat(key, "up/m"); res.status != 200 {
			t.Fatalf("%d %s", res.status, res.body)
		}
		p.proxy.Refuse(true)
		p.proxy.Cut()
	}
	cut := time.Now()
	w.until(80*time.Second, "the end of the calls of one", func() bool { return short.chat(key, "up/m").status == 503 })
	if d := time.Since(cut); d < 58*time.Second {
		t.Errorf("calls went on for %v", d)
	}
	if res := long.chat(key, "up/m"); res.status != 200 {
		t.Errorf("the other one: %d %s", res.status, res.body)
	}
	// Its own time without the database begins with the first failure, the snapshot's before.
	w.until(20*time.Second, "the end of its readiness", func() bool { return short.do("GET", "/health/ready", "").status == 503 })
	if res := long.do("GET", "/health/ready", ""); res.status != 200 {
		t.Errorf("the other one is not ready: %d %s", res.status, res.body)
	}
	for _, p := range w.servers {
		p.proxy.Refuse(false)
		w.until(5*time.Second, "a call with the database", func() bool { return p.chat(key, "up/m").status == 200 })
	}
}

// Without the database calls go on with what a server knows, changes answer 503, and everything
// works again when it is back. A server that starts meanwhile waits for it.
func TestCallsGoOnWithoutTheDatabase(t *testing.T) {
	w := newWorld(t, 2)
	a, b := w.servers[0], w.servers[1]
	id, key := a.machine()
	if res := a.chat(key, "up/m"); res.status != 200 {
		t.Fatalf("%d %s", res.status, res.body)
	}
	ready := func(p *process, status int, storage string) func() bool {
		return func() bool {
			res := p.do("GET", "/health/ready", "")
			return res.status == status && res.get("storage").Str == storage
		}
	}
	w.until(2*time.Second, "ready", ready(a, 200, "ok"))
	a.proxy.Refuse(true)
	a.proxy.Cut()
	w.until(10*time.Second, "ready on snapshots", ready(a, 200, "away"))
	for range 10 {
		if res := a.chat(key, "up/m"); res.status != 200 {
			t.Errorf("a call without the database: %d %s", res.status, res.body)
		}
	}
	if res := a.manage("POST", "/"+id+"/api/keys", `{"name":"x"}`); res.status != 503 {
		t.Errorf("a change without the database: %d %s", res.status, res.body)
	}
	if res := a.do("GET", "/health", ""); res.status != 200 {
		t.Errorf("health: %d", res.status)
	}
	b.must("PUT", "/"+id+"/api/models/alias", `{"alias":"quick","model":"up/m"}`)
	a.proxy.Refuse(false)
	w.until(5*time.Second, "ready again", ready(a, 200, "ok"))
	w.until(3*time.Second, "the change of the other server", func() bool { return a.chat(key, "quick").status == 200 })
	b.kill()
	b.proxy.Refuse(true)
	b.start()
	w.until(time.Second, "not ready without a database", ready(b, 503, "away"))
	if res := b.do("GET", "/health", ""); res.status != 200 {
		t.Errorf("health: %d", res.status)
	}
	b.proxy.Refuse(false)
	w.until(5*time.Second, "ready with one", ready(b, 200, "ok"))
	w.until(5*time.Second, "a call", func() bool { return b.chat(key, "quick").status == 200 })
}
