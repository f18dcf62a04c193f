package models

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/auth"
	"weir/pkg/store"
	"weir/pkg/wire/stream"
)

// Lists that are asked for at the same time are the same, and are asked again once.
func TestConcurrentLists(t *testing.T) {
	w := newWorld(store.Connection{Provider: "openai"}, store.Connection{Provider: "groq"}, store.Connection{Provider: "mistral"})
	var asked atomic.Int64
	w.up.on("/models", func(s *fake.Seen) fake.Answer {
		asked.Add(1)
		return fake.Answer{Body: `{"data":[{"id":"gpt-of-` + s.Account + `"}]}`}
	})
	calls := make([]*auth.Call, 8)
	for i := range calls {
		calls[i] = w.call("")
	}
	lists := func() (bodies []string) {
		var all sync.WaitGroup
		bodies = make([]string, len(calls))
		begin := make(chan struct{})
		for i, c := range calls {
			all.Go(func() {
				<-begin
				for range 20 {
					resp, err := w.List(context.Background(), c)
					if err != nil {
						t.Error(err)
						return
					}
					bodies[i] = string(resp.Body.(*stream.Bytes).All())
					for _, after := range resp.After {
						after(context.Background())
					}
					if _, err := w.Probe(context.Background(), c, c.Machine.Connection("c1")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		close(begin)
		all.Wait()
		return bodies
	}
	bodies := lists()
	for _, body := range bodies {
		if body != bodies[0] || body == "" {
			t.Fatalf("another list: %.200s", body)
		}
	}
	w.clock.Add(2 * liveTTL)
	before := asked.Load()
	now := w.clock.Now()
	stale := []*scope{newScope(w.rec, scopes(w.rec)[0].row, calls[0].Machine.Connection("c1"))}
	var claimed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { claimed.Add(int64(len(w.Live.claim(calls[0].Machine, stale, now.Add(time.Hour))))) })
	}
	all.Wait()
	if claimed.Load() != 1 || asked.Load() != before {
		t.Errorf("%d requests ask the upstream again", claimed.Load())
	}
}
