package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/catalog"
	"weir/pkg/catalog/refresh"
	"weir/pkg/machine/rpc"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/quota"
	"weir/pkg/wire/secret"
)

const (
	workers = 8
	rounds  = 200
)

// atOnce runs f in several goroutines.
func atOnce(f func(worker int)) {
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// distinct reports whether the turns are 0, 1, 2 …
func distinct(turns []uint32) bool {
	slices.Sort(turns)
	for i, n := range turns {
		if n != uint32(i) {
			return false
		}
	}
	return true
}

func TestConcurrentCallsOfAMachine(t *testing.T) {
	key := store.Key{ID: "k", Digest: fmt.Sprintf("%064x", 1)}
	conn := store.Connection{ID: "c", Provider: "openai"}
	m := New(&store.Machine{ID: mid, Keys: []store.Key{key}, Connections: []store.Connection{conn}})
	digest := [32]byte{31: 1}
	now := int64(1_800_000_000_000)
	clock := func() time.Time { return time.UnixMilli(now) }
	own := m.Connection("c")
	row := provider.Lookup("openai")
	var mu sync.Mutex
	var turns []uint32
	var due, wallets atomic.Int32
	atOnce(func(worker int) {
		var mine []uint32
		for i := range rounds {
			view := m
			if i%2 == 0 {
				view = m.ReadOnly() // has the same state
			} else {
				mine = append(mine, m.Turn("openai"))
			}
			view.NextTurn("openai")
			view.Begin("c", "m", now)
			view.Took("c", "m", true, time.Second, now)
			view.Speed("c", "m", true, now)
			view.Busy("c", "", now)
			view.Failed("c", "m", now+int64(i))
			view.Outlier("c", "m", now)
			view.Worked("c", "m", now+int64(i))
			view.Cool(store.Cooldown{ConnectionID: "c", Model: fmt.Sprint(worker), Since: now, Until: now + 60_000})
			view.State("c", fmt.Sprint(worker))
			view.Trial("c", "m", now)
			view.TrialOver("c", "m")
			view.Reported(int64(i), now)
			view.Clear("c", fmt.Sprint(worker), now)
			view.Calm()
			view.Block("openai", fmt.Sprint(worker), Block{Status: 403}, now)
			if view.AnyBlocked() {
				view.Blocked("openai", fmt.Sprint(worker), now)
			}
			view.Refuse(store.Refusal{ConnectionID: "c", Field: fmt.Sprint(i % 8), Until: now + 1000}, now)
			if view.AnyRefused() {
				view.Refused("c", now)
			}
			if view.QuotaDue("c", now) || view.AnyQuota() {
				view.NoteQuota("c", []quota.Window{{Name: "requests", Left: float64(i%10) / 10, At: now + int64(i), Span: 3600, ResetsAt: now + 3_600_000}}, now)
			}
			view.Headroom("c", "m", now)
			view.UnreportedQuotas(view.ChangedQuotas(now))
			view.Observe(view.Observed(), int64(i), &rpc.State{
				Cooldowns: []store.Cooldown{{ConnectionID: "c", Model: "m", Since: now, Until: now + 1000}}, Refusals: []store.Refusal{{ConnectionID: "c", Field: "f", Until: now + 1000}},
			}, now)
			view.KeyChecked(digest)
			if view.CheckedKey(digest, clock) == nil {
				t.Error("the key is not known")
			}
			sealed := secret.Sealed(fmt.Sprint(i % 2))
			opened := view.Opened(own, sealed)
			if opened == nil {
				opened = view.Open(own, sealed, provider.Credential{APIKey: secret.New("key")})
			}
			var h httpmsg.Header
			if err := opened.Authorize(&h, row, nil, own); err != nil || h.Get("authorization") != "Bearer key" {
				t.Errorf("%v %v", h, err)
			}
			name := Derived{Kind: catalog.LLM, Model: fmt.Sprint(i)}
			view.Derived(name)
			view.KeepDerived(name, i)
			w := view.Local.Wallet(func() string { wallets.Add(1); return fmt.Sprint(worker) })
			if w != view.Local.CurrentWallet() {
				t.Error("there are two wallets")
			}
			if view.CountsDue(clock()) {
				due.Add(1)
			}
			view.End("c", "m", now)
		}
		mu.Lock()
		turns = append(turns, mine...)
		mu.Unlock()
	})
	if len(turns) != workers*rounds/2 || !distinct(turns) {
		t.Error("turns were given twice")
	}
	if n := m.Busy("c", "", now); n != 0 {
		t.Errorf("%d calls are under way", n)
	}
	if due.Load() != 1 {
		t.Errorf("counts are due %d times in a second", due.Load())
	}
	if s := m.Local.steady[account{"c", "m"}]; s != nil && s.row > workers*rounds {
		t.Errorf("%d failures in a row", s.row)
	}
}

// Of those who ask at once one has the trial of an account.
func TestOneConcurrentCallHasTheTrial(t *testing.T) {
	now := int64(1_800_000_000_000)
	m := New(&store.Machine{ID: mid, Cooldowns: []store.Cooldown{{ConnectionID: "c", Since: now - 120_000, Until: now - 1}}})
	var given atomic.Int32
	atOnce(func(int) {
		for range rounds {
			if m.Trial("c", "", now) {
				given.Add(1)
			}
		}
	})
	if given.Load() != 1 {
		t.Errorf("the trial was given %d times", given.Load())
	}
}

// Snapshots of a machine that are loaded at the same time share what this isolate has
// seen of its accounts.
func TestConcurrentLoadsShareObservations(t *testing.T) {
	var generation, at atomic.Int64
	generation.Store(1)
	at.Store(1_800_000_000_000)
	obj := &objects.Script{Answer: func(op string, _ []byte) (int, []byte, error) {
		if op != "snapshot" {
			return 404, nil, nil
		}
		n := generation.Add(1)
		if n%7 == 0 {
			return 500, nil, nil
		}
		b, _ := json.Marshal(&store.Machine{Version: 1, ID: mid, Generation: n / 3, Observed: n})
		if n%2 == 0 {
			b, _ = json.Marshal(rpc.Same{Generation: n / 3, Observed: n, State: &rpc.State{Cooldowns: []store.Cooldown{{ConnectionID: "c", Since: n, Until: n + 1}}}})
		}
		return 200, b, nil
	}}
	raw, _ := json.Marshal(catalog.Update{Source: pricesURL, FetchedAt: 1, Text: "openai/m\t1/2\n"})
	c := &Cache{
		KV: fake.NewKV(), Object: obj, Max: 2, Now: func() time.Time { return time.UnixMilli(at.Load()) }, Changed: func(string) {}, PriceSource: &refresh.Source{URL: pricesURL},
	}
	ctx := context.Background()
	c.KV.Put(ctx, "prices", raw)
	var mu sync.Mutex
	var turns []uint32
	atOnce(func(worker int) {
		var mine []uint32
		for i := range rounds {
			at.Add(int64(i % 3 * 1000))
			switch (i + worker) % 6 {
			case 0:
				c.Invalidate(mid)
			case 1:
				c.ChangedElsewhere(mid)
			case 2:
				c.Confirm(ctx, mid)
			case 3:
				c.Known(ctx, mid)
			case 4:
				c.Revalidate(ctx, mid)
			}
			c.InMemory(mid)
			m, err := c.Get(ctx, mid)
			if err != nil {
				continue
			}
			m.Catalog().Price("openai", "m")
			m.State("c", "")
			mine = append(mine, m.Turn("p"))
		}
		mu.Lock()
		turns = append(turns, mine...)
		mu.Unlock()
	})
	if len(turns) == 0 || !distinct(turns) {
		t.Errorf("turns were given twice, of %d", len(turns))
	}
	// Others make room for each other meanwhile.
	c.Max = 3
	atOnce(func(worker int) {
		for i := range rounds {
			c.Get(ctx, fmt.Sprintf("machine%09d", (worker+i)%8))
		}
	})
	if len(c.entries) > 3 {
		t.Errorf("%d machines are kept", len(c.entries))
	}
}
