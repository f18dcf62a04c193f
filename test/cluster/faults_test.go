//go:build unix

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/server/postgres/postgrestest"
)

// limit is the budget of the test, in calls.
const limit = 400

// pair is a database and the standby that has all of its commits.
type pair struct{ primary, standby *postgrestest.Server }

func newPair(t *testing.T) *pair {
	t.Helper()
	const mib = 400 // of each disk
	p := &pair{primary: postgrestest.StartSmall(t, mib, "max_wal_size=64MB", "min_wal_size=32MB", "wal_keep_size=64MB",
		"wal_retrieve_retry_interval=200ms")}
	t.Cleanup(func() { p.primary.Remove(); p.standby.Remove() })
	p.standby = p.primary
	return p
}

// fail loses the primary with its disk, and makes the standby the primary, with a standby of its own.
func (p *pair) fail(w *world) error {
	p.primary.Remove()
	p.primary = p.standby
	if err := p.primary.Promote(); err != nil {
		return err
	}
	for _, s := range w.servers {
		s.proxy.Lead(p.primary.Address())
	}
	u, _ := url.Parse(w.url)
	u.Host = p.primary.Address()
	w.url = u.String()
	return p.follow()
}

// follow starts a standby.
func (p *pair) follow() (err error) {
	p.standby, err = p.primary.Standby()
	return err
}

// upgrade stops the process, and starts another version in its place.
func (p *process) upgrade(version string) {
	p.stop()
	p.build = version
	p.start()
}

// older returns how many servers are not of a version.
func (w *world) older(version string) (n int) {
	for _, p := range w.servers {
		if p.build != version {
			n++
		}
	}
	return n
}

// faults disturbs the servers, their connections and the database, and replaces servers by a later
// version, until stop is closed, one thing at a time, and counts the faults.
func (w *world) faults(database *pair, version string, random *rand.Rand, longest time.Duration, stop <-chan struct{}, faults *atomic.Int64) map[string]int {
	count := map[string]int{}
	between := func(least, most time.Duration) time.Duration { return least + rand.N(most-least) }
	var next []string
	for {
		select {
		case <-stop:
			return count
		case <-time.After(between(100*time.Millisecond, 600*time.Millisecond)):
		}
		if len(next) == 0 {
			next = []string{"cut", "cut", "cut", "cut", "cut", "cut", "cut", "cut", "delay", "delay", "one-way", "one-way",
				"one-way", "one-way", "freeze", "kill", "kill", "restart", "promotion", "full disk", "clock", "clock",
				"upgrade", "upgrade"}
			random.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		}
		p, fault := w.servers[random.IntN(len(w.servers))], next[0]
		next = next[1:]
		var err error
		done := true
		switch fault {
		case "cut":
			p.proxy.Cut()
		case "delay":
			p.proxy.Delay(between(time.Millisecond, 40*time.Millisecond))
			time.Sleep(between(100*time.Millisecond, time.Second))
			p.proxy.Delay(0)
		case "one-way":
			p.proxy.Lose(int32(1 + random.IntN(2)))
			time.Sleep(between(100*time.Millisecond, longest/2))
			p.proxy.Lose(0)
		case "freeze":
			p.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(between(longest/4, longest))
			p.cmd.Process.Signal(syscall.SIGCONT)
		case "kill":
			if w.up.number(func() int { return w.up.budgeted }) < limit {
				count["kill while the budget lasts"]++
			}
			p.kill()
			time.Sleep(between(0, 500*time.Millisecond))
			// The last earlier one may have been frozen or dead for so long that the tables have changed.
			if w.older(version) == 1 {
				p.build = version
			}
			p.start()
		case "restart":
			database.primary.Stop() // as in a crash
			time.Sleep(between(0, time.Second))
			err = database.primary.Start()
		case "promotion":
			err = database.fail(w)
		case "full disk":
			if done = database.primary.Fill(); done {
				time.Sleep(between(longest/8, longest/2))
				err = database.primary.Free()
			}
		case "upgrade":
			if done = p.build != version; done {
				p.upgrade(version)
			}
		case "clock": // until its next step, or the promotion of another one
			done = database.primary.Step([]time.Duration{-5 * time.Minute, 0, 5 * time.Minute}[random.IntN(3)])
		}
		if done {
			count[fault]++
			faults.Add(1)
		}
		if err != nil {
			w.Errorf("%s: %v", fault, err)
		}
	}
}

// Whatever happens to servers, their clocks, connections and the database: a change that was acknowledged is
// stored once, no refresh token is used twice, no idempotency key creates twice, and a budget is
// not exceeded, but for a twentieth with each server that is killed.
func TestFaultsLoseAndDoubleNothing(t *testing.T) {
	length, longest, expiry := 35*time.Second, 2*time.Second, 7*time.Second
	wantOperations, wantFaults := int64(500), int64(20)
	if os.Getenv("SOAK") == "1" {
		length, longest, expiry = time.Hour, 20*time.Second, 4*time.Minute
		wantOperations, wantFaults = 50_000, 500
	}
	database := newPair(t)
	w := newWorldOn(t, database.primary.Database(t), 1, "")
	if err := database.follow(); err != nil {
		t.Fatal(err)
	}
	wrong, next := overlay(t, wrongClock(t)), overlay(t, wrongClock(t), nextVersion(t))
	w.add(wrong, "SKEW=300")
	w.add(wrong, "SKEW=-300")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))

	const machines = 4
	var ids, keys []string
	for range machines {
		id, key := w.servers[0].machine()
		access, refresh := w.up.grant()
		w.servers[0].connect(id, oauth, "acme", `"accessToken":"`+access+`","refreshToken":"`+refresh+`"`)
		ids, keys = append(ids, id), append(keys, key)
	}
	budgeted, budgetKey := w.servers[0].machine()
	w.servers[0].must("POST", "/"+budgeted+"/api/budgets", fmt.Sprintf(`{"name":"b","unit":"requests","limit":%d,"window":"total"}`, limit))
	time.Sleep(2 * time.Second)
	before := w.up.number(func() int { return w.up.chats })

	stop := make(chan struct{})
	var workers sync.WaitGroup
	var operations, acknowledged, disturbed atomic.Int64
	work := func(n int, do func(worker, i int, p *process)) {
		for worker := range n {
			workers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					operations.Add(1)
					do(worker, i, w.servers[rand.IntN(len(w.servers))])
				}
			})
		}
	}
	var mu sync.Mutex
	aliases, named := map[string]bool{}, map[string]bool{} // with the machine; true if acknowledged
	note := func(m map[string]bool, name string, a answer) {
		mu.Lock()
		defer mu.Unlock()
		if m[name] = a.status/100 == 2; m[name] {
			acknowledged.Add(1)
		}
	}
	work(4, func(worker, i int, p *process) {
		m, name := i%machines, fmt.Sprintf("a-%d-%d", worker, i)
		note(aliases, ids[m]+" "+name, p.manage("PUT", "/"+ids[m]+"/api/models/alias", `{"alias":"`+name+`","model":"up/m"}`))
	})
	work(2, func(worker, i int, p *process) {
		m, name := i%machines, fmt.Sprintf("k-%d-%d", worker, i)
		note(named, ids[m]+" "+name, p.manage("POST", "/"+ids[m]+"/api/keys", `{"name":"`+name+`"}`))
		time.Sleep(100 * time.Millisecond)
	})
	work(2, func(_, _ int, p *process) { p.chat(budgetKey, "up/budgeted"); time.Sleep(20 * time.Millisecond) })
	work(2, func(_, i int, p *process) {
		p.chat(keys[i%machines], "acme/m")
		time.Sleep(50 * time.Millisecond)
	})
	work(2, func(_, i int, p *process) { p.create(keys[i/4%machines], fmt.Sprint("image", i/4)) })
	workers.Go(func() { // tokens expire
		for {
			select {
			case <-stop:
				return
			case <-time.After(expiry):
				w.up.expire()
			}
		}
	})
	done := make(chan struct{})
	var counts map[string]int
	go func() {
		defer close(done)
		counts = w.faults(database, next, random, longest, stop, &disturbed)
	}()
	for end := time.Now().Add(length); time.Now().Before(end) &&
		(length < time.Hour || operations.Load() < wantOperations || disturbed.Load() < wantFaults); {
		time.Sleep(time.Second)
	}
	close(stop)
	<-done
	workers.Wait()
	for _, p := range w.servers {
		if p.build != next {
			p.upgrade(next)
		}
	}
	for _, p := range w.servers {
		w.until(20*time.Second, "ready after the faults", func() bool { return p.do("GET", "/health/ready", "").get("storage").Str == "ok" })
	}
	w.until(20*time.Second, "the format of the next version", func() bool { return w.format() == 2 })
	lost, doubled, unknown := 0, 0, 0
	for _, p := range w.servers {
		stored := map[string]int{}
		for _, id := range ids {
			for name := range p.must("GET", "/"+id+"/api/models/alias", "").get("aliases").Map() {
				stored[id+" "+name]++
			}
			for _, k := range p.must("GET", "/"+id+"/api/keys", "").get("data.#.name").Array() {
				stored[id+" "+k.Str]++
			}
		}
		for _, all := range []map[string]bool{aliases, named} {
			for name, ok := range all {
				switch n := stored[name]; {
				case ok && n == 0:
					lost++
					t.Errorf("%s was acknowledged and is not at %s", name, p.base)
				case n > 1:
					doubled++
					t.Errorf("%s is there %d times at %s", name, n, p.base)
				case !ok && n == 1:
					unknown++
				}
			}
		}
		if len(stored) < int(acknowledged.Load()) {
			t.Errorf("%d are stored at %s", len(stored), p.base)
		}
	}
	for prompt, n := range w.up.images {
		if n > 1 {
			t.Errorf("%s was created %d times", prompt, n)
		}
	}
	if n := w.up.reusedEarly; n > 0 {
		t.Errorf("%d refresh tokens were used again within a minute", n)
	}
	sent := w.up.budgeted
	// A server that is killed has not stated its last calls: docs/guides/budgets.md.
	if kills := counts["kill while the budget lasts"]; sent > limit+kills*limit/20 {
		t.Errorf("%d calls were sent of a budget of %d, with %d kills before its end", sent, limit, kills)
	}
	t.Logf("%d operations, %d acknowledged changes, %d faults %v: %d lost, %d doubled; %d stored without an answer; %d images; %d token calls; %d of %d of the budget; %d chats",
		operations.Load(), acknowledged.Load(), disturbed.Load(), counts, lost, doubled, unknown/len(w.servers), len(w.up.images), w.up.calls, sent, limit, w.up.chats-before)
	if disturbed.Load() < wantFaults || operations.Load() < wantOperations || acknowledged.Load() < 50 {
		t.Error("too little has happened")
	}
}
