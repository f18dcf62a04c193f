package videos

import (
	"strconv"
	"sync"
	"testing"

	"weir/pkg/machine/rpc"
)

func TestConcurrentCallsKeepLostJobs(t *testing.T) {
	var l lostJobs
	var all sync.WaitGroup
	const workers, each = 8, 32 // all of them fit
	for i := range workers {
		all.Go(func() {
			for n := range each {
				id, machine := strconv.Itoa(n), strconv.Itoa(i)
				l.add(machine, &rpc.Job{ID: id, Model: machine})
				if j := l.find(machine, id); j == nil || j.Model != machine {
					t.Errorf("job %s of %s: %v", id, machine, j)
				}
				if n%2 == 0 {
					l.drop(machine, id)
				}
			}
		})
	}
	all.Wait()
	if len(l.jobs) != workers*each/2 {
		t.Errorf("%d jobs, want %d", len(l.jobs), workers*each/2)
	}
}
