package capture

import (
	"bytes"
	"sync"
	"testing"
)

func TestConcurrentCallsShareTheLimit(t *testing.T) {
	var c Collector
	body := bytes.Repeat([]byte("a"), 200<<10)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				calls := make([]*Bodies, 12) // more than there is room for
				for i := range calls {
					calls[i] = c.Begin("m")
					calls[i].Request("text/plain", body)
				}
				for _, b := range calls {
					b.Ready()
					b.Release()
				}
			}
		})
	}
	all.Wait()
	if c.collected != 0 {
		t.Errorf("%d bytes are left", c.collected)
	}
}
