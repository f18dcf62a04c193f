package proxy

import (
	"strconv"
	"sync"
	"testing"
)

func TestConcurrentCallsRememberChatOnly(t *testing.T) {
	var c ChatOnly
	var all sync.WaitGroup
	const workers, each = 8, 50
	for i := range workers {
		all.Go(func() {
			for n := range each {
				key := connectionKey{strconv.Itoa(i), strconv.Itoa(n)}
				if c.add(key); !c.has(key) {
					t.Errorf("%v is not known", key)
				}
			}
		})
	}
	all.Wait()
	if len(c.set) != workers*each {
		t.Errorf("%d are known, want %d", len(c.set), workers*each)
	}
}
