package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/testgw/fake"
	"weir/pkg/llm"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// Calls at the same time are reported once each, also if a report fails or is late.
func TestConcurrentCallsAreReportedOnce(t *testing.T) {
	const workers, each = 8, 100
	w := newWorld(t)
	w.add(append(accounts("bcd"), w.oauth("a", 0))...)
	w.pool.Pause = w.Clock
	w.object.MachineID = ""
	renewed := w.seal("a", store.AccessToken, "tok-a-generation2")
	var asked, reports, calls, requests, refusals atomic.Int64
	w.object.Answer = func(op string, body []byte) (int, []byte, error) {
		if op == "refresh" {
			if asked.Add(1)%3 == 0 {
				return 503, []byte(`{}`), nil
			}
			return 200, fmt.Appendf(nil, `{"connection":{"id":"a","secrets":{"accessToken":%q},"tokenGeneration":2}}`, renewed), nil
		}
		if reports.Add(1)%5 == 0 {
			return 500, nil, nil
		}
		var r rpc.Report
		if err := json.Unmarshal(body, &r); err != nil {
			t.Error(err)
		}
		for _, u := range r.Usage {
			calls.Add(u.Calls)
		}
		requests.Add(int64(len(r.Requests)) + r.Unlisted)
		refusals.Add(int64(len(r.Refusals)))
		return 200, []byte(`{"observed":1}`), nil
	}
	var sent atomic.Int64
	w.Answer = func(s *fake.Seen) fake.Answer {
		switch n := sent.Add(1); {
		case credential(s) == "tok-a-generation1":
			return fake.Answer{Status: 401}
		case n%7 == 0:
			return fake.Answer{Status: 500}
		case n%11 == 0:
			return fake.Answer{Status: 429}
		}
		return fake.Answer{Body: `{}`}
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			ctx := context.Background()
			for range each {
				c := w.call()
				c.Trace = &Trace{}
				c.Request = &httpmsg.Request{Method: "POST", Route: "/v1/embeddings", Start: w.Now()}
				res, err := w.pool.Send(ctx, c)
				status := 200
				var e *apierr.Error
				if err != nil {
					e = err.(*apierr.Error)
					status = e.Status
				} else {
					res.Refuses([]string{"field"}, true)
				}
				w.pool.Record(w.Now(), w.machine, c.Request, c.Trace, status, e)
				w.pool.Flush(ctx, w.machine)
				w.pool.FlushLate(ctx, "")
				w.Clock.Add(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	for range 8 {
		w.Clock.Add(2 * time.Second)
		w.pool.Flush(context.Background(), w.machine)
	}
	if w.pool.Unreported() > 0 || calls.Load() != workers*each || requests.Load() != workers*each {
		t.Errorf("%d pending, %d calls and %d requests were reported, want %d", w.pool.Unreported(), calls.Load(), requests.Load(), workers*each)
	}
	if refusals.Load() == 0 || asked.Load() == 0 {
		t.Errorf("%d refusals, %d refreshes", refusals.Load(), asked.Load())
	}
}

// A regression: the list of usage that the log has named was read and written without the
// lock.
func TestConcurrentAbsurdUsageIsLoggedOnce(t *testing.T) {
	w := newWorld(t)
	w.add(accounts("ab")...)
	var lines atomic.Int64
	w.pool.Log = func(string) { lines.Add(1) }
	to := w.target("gpt")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 100 {
				a := &Attempt{Target: &to, Connection: to.Connections[i%2]}
				a.Used.Tokens = llm.Usage{Known: true, Input: 1 << 60, Output: 1}
				w.pool.settleTokens(w.machine, a)
			}
		})
	}
	all.Wait()
	if lines.Load() != 2 {
		t.Errorf("%d lines, want one for each account", lines.Load())
	}
}
