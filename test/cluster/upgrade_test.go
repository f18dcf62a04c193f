//go:build unix

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// nextVersion has the files of a later version, whose tables have one format more.
func nextVersion(t *testing.T) map[string]string {
	t.Helper()
	const none, one = `var changes = [...]string{}`, `var changes = [...]string{"ALTER TABLE weir_rows ADD COLUMN later int"}`
	source, err := filepath.Abs("../../server/postgres/schema.go")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{source: edited(t, source, none, one)}
}

// count returns the number that a query has.
func (w *world) count(sql string) (n int) {
	w.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, w.url)
	if err == nil {
		err = c.QueryRow(ctx, sql).Scan(&n)
		c.Close(ctx)
	}
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// format returns the version of the tables.
func (w *world) format() int { return w.count(`SELECT format FROM weir_meta`) }

// Servers are replaced one after the other by a version with another form of the tables, while
// clients call them. A client that is refused finds another server at once, nothing is lost, the
// tables change when the last earlier server is gone, and no earlier one starts after that.
func TestRollingUpgradeLosesNothing(t *testing.T) {
	build := overlay(t, nextVersion(t))
	w := newWorld(t, 3)
	id, key := w.servers[0].machine()
	var mu sync.Mutex // of serving
	serving := append([]*process{}, w.servers...)
	// once asks servers until one answers, as a load balancer does.
	once := func(ask func(p *process) answer) (a answer) {
		for range 10 {
			mu.Lock()
			p := serving[rand.IntN(len(serving))]
			mu.Unlock()
			if a = ask(p); a.status != 0 && a.status != 503 {
				return a
			}
		}
		return a
	}
	stop := make(chan struct{})
	var workers sync.WaitGroup
	var calls, failed atomic.Int64
	names := map[string]bool{}
	for worker := range 6 {
		workers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				name := fmt.Sprintf("a-%d-%d", worker, i)
				a := once(func(p *process) answer {
					if worker%2 == 0 {
						return p.chat(key, "up/m")
					}
					return p.manage("PUT", "/"+id+"/api/models/alias", `{"alias":"`+name+`","model":"up/m"}`)
				})
				if calls.Add(1); a.status/100 != 2 {
					if failed.Add(1) == 1 {
						t.Errorf("a call: %d %s", a.status, a.body)
					}
				} else if worker%2 == 1 {
					mu.Lock()
					names[name] = true
					mu.Unlock()
				}
			}
		})
	}
	for i, old := range append([]*process{}, w.servers...) {
		next := w.add(build)
		mu.Lock()
		serving[i] = next
		mu.Unlock()
		if got := w.format(); got != 1 {
			t.Errorf("format %d while a server lives that does not know it", got)
		}
		old.stop()
		time.Sleep(500 * time.Millisecond)
	}
	w.until(20*time.Second, "the new format", func() bool { return w.format() == 2 })
	time.Sleep(time.Second)
	close(stop)
	workers.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d calls have failed", failed.Load(), calls.Load())
	}
	for _, p := range serving {
		stored := p.must("GET", "/"+id+"/api/models/alias", "").get("aliases").Map()
		for name := range names {
			if _, ok := stored[name]; !ok {
				t.Errorf("%s is not at %s", name, p.base)
			}
		}
	}
	t.Logf("%d calls, %d changes", calls.Load(), len(names))
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = w.environment(w.url)
	out, err := cmd.CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "its tables have format 2 of a newer weir, and this one knows 1; run the newer version") {
		t.Errorf("an earlier version starts: %v: %s", err, text)
	}
}
