package accounts

import (
	"context"
	"strings"
	"testing"

	"weir/pkg/usage"
)

func TestUsageIsGatheredIntoOneReport(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.pool.Pause = w.Clock
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, []byte(`{"generation":1}`), nil }
	used := func() {
		w.pool.add(w.machine, &usage.Row{KeyID: "k", Model: "m", Requests: 1, InputTokens: 10, CostUSD: 0.5})
	}
	flush := func() { w.pool.Flush(context.Background(), w.machine) }
	used()
	flush() // the first tells at once
	used()
	w.Meanwhile = func() { used(); flush(); used(); flush() } // others do not wait
	flush()
	if w.Pauses() != 1 || len(w.object.Calls) != 2 {
		t.Fatalf("%d pauses, calls %v", w.Pauses(), w.object.Calls)
	}
	for i, want := range []string{
		`report {"usage":[{"keyId":"k","model":"m","requests":1,"inputTokens":10,"costUsd":0.5}]}`,
		`report {"usage":[{"keyId":"k","model":"m","requests":3,"inputTokens":30,"costUsd":1.5}]}`,
	} {
		if w.object.Calls[i] != want {
			t.Errorf("got  %s\nwant %s", w.object.Calls[i], want)
		}
	}
	if w.pool.Pending(mid) {
		t.Error("something is left")
	}
}

func TestUsageOfFailedReportIsKept(t *testing.T) {
	w := newWorld(t).add(accounts("a")...)
	w.pool.Pause = w.Clock
	w.pool.add(w.machine, &usage.Row{Model: "m", Requests: 1})
	w.pool.Flush(context.Background(), w.machine) // the object cannot be reached
	w.pool.add(w.machine, &usage.Row{Model: "m", Requests: 1})
	w.object.Answer = func(string, []byte) (int, []byte, error) { return 200, nil, nil }
	w.pool.Flush(context.Background(), w.machine)
	if got := w.object.Calls[len(w.object.Calls)-1]; !strings.Contains(got, `{"model":"m","requests":2}`) {
		t.Errorf("got %s", got)
	}
}
