package accounts

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir/pkg/usage"
)

// pauser lets time pass, and others act meanwhile.
type pauser struct {
	w         *world
	n         int
	meanwhile func()
}

func (p *pauser) Pause(_ context.Context, d time.Duration) error {
	p.n++
	if p.meanwhile != nil {
		p.meanwhile()
	}
	p.w.now = p.w.now.Add(d)
	return nil
}

func TestUsageIsGatheredIntoOneReport(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	p := &pauser{w: w}
	w.pool.Pause = p
	w.object = func(string, []byte) (int, []byte, error) { return 200, []byte(`{"generation":1}`), nil }
	used := func() {
		w.pool.Use(w.machine, usage.Row{KeyID: "k", Model: "m", Requests: 1, InputTokens: 10, CostUSD: 0.5})
	}
	flush := func() { w.pool.Flush(context.Background(), w.machine) }
	used()
	flush() // the first tells at once
	used()
	p.meanwhile = func() { used(); flush(); used(); flush() } // others do not wait
	flush()
	if p.n != 1 || len(w.calls) != 2 {
		t.Fatalf("%d pauses, calls %v", p.n, w.calls)
	}
	for i, want := range []string{
		`report {"usage":[{"keyId":"k","model":"m","requests":1,"inputTokens":10,"costUsd":0.5}]}`,
		`report {"usage":[{"keyId":"k","model":"m","requests":3,"inputTokens":30,"costUsd":1.5}]}`,
	} {
		if w.calls[i] != want {
			t.Errorf("got  %s\nwant %s", w.calls[i], want)
		}
	}
	if w.pool.Pending(mid) {
		t.Error("something is left")
	}
}

func TestUsageOfFailedReportIsKept(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.pool.Pause = &pauser{w: w}
	w.pool.Use(w.machine, usage.Row{Model: "m", Requests: 1})
	w.pool.Flush(context.Background(), w.machine) // the object cannot be reached
	w.pool.Use(w.machine, usage.Row{Model: "m", Requests: 1})
	w.object = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
	w.pool.Flush(context.Background(), w.machine)
	if got := w.calls[len(w.calls)-1]; !strings.Contains(got, `{"model":"m","requests":2}`) {
		t.Errorf("got %s", got)
	}
}
