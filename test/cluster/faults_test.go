//go:build unix

package cluster

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/server/postgres/postgrestest"
)

// faults disturbs the servers, their connections and the database until stop is closed, one thing
// at a time, and returns how many faults there were.
func (w *world) faults(database *postgrestest.Server, random *rand.Rand, longest time.Duration, stop <-chan struct{}) map[string]int {
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
			next = []string{"cut", "cut", "cut", "cut", "delay", "one-way", "one-way", "freeze", "kill", "database"}
			random.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		}
		p, fault := w.servers[random.IntN(len(w.servers))], next[0]
		next = next[1:]
		count[fault]++
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
			p.kill()
			time.Sleep(between(0, 500*time.Millisecond))
			p.start()
		case "database":
			database.Stop() // as in a crash
			time.Sleep(between(0, time.Second))
			if err := database.Start(); err != nil {
				w.Error(err)
			}
		}
	}
}

// Whatever happens to servers, connections and the database: a change that was acknowledged is
// stored once, no refresh token is used twice, no idempotency key creates twice, and a budget is
// not exceeded.
func TestFaultsLoseAndDoubleNothing(t *testing.T) {
	length, longest := 35*time.Second, 2*time.Second
	if os.Getenv("SOAK") == "1" {
		length, longest = 20*time.Minute, 20*time.Second
	}
	database := postgrestest.Start(t)
	defer database.Stop()
	w := newWorldOn(t, database.Database(t), 3, "")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))

	const machines, limit = 4, 400
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
	var operations, acknowledged atomic.Int64
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
			case <-time.After(length / 5):
				w.up.expire()
			}
		}
	})
	done := make(chan struct{})
	var counts map[string]int
	go func() { counts = w.faults(database, random, longest, stop); close(done) }()
	time.Sleep(length)
	close(stop)
	<-done
	workers.Wait()
	for _, p := range w.servers {
		w.until(20*time.Second, "ready after the faults", func() bool { return p.do("GET", "/health/ready", "").get("storage").Str == "ok" })
	}
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
	if sent > limit {
		t.Errorf("%d calls were sent of a budget of %d", sent, limit)
	}
	all := 0
	for _, n := range counts {
		all += n
	}
	t.Logf("%d operations, %d acknowledged changes, %d faults %v: %d lost, %d doubled; %d stored without an answer; %d images; %d token calls; %d of %d of the budget; %d chats",
		operations.Load(), acknowledged.Load(), all, counts, lost, doubled, unknown/len(w.servers), len(w.up.images), w.up.calls, sent, limit, w.up.chats-before)
	if all < 10 || acknowledged.Load() < 50 {
		t.Error("too little has happened")
	}
}
