package snapshot

import (
	"fmt"
	"math"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/quota"
	"weir/pkg/wire/secret"
)

const (
	at0 = int64(1_800_000_000_000)
	hr  = int64(time.Hour / time.Millisecond)
)

func five(left float64, ends, at int64) quota.Window {
	return quota.Window{Name: "5h", Left: left, ResetsAt: ends, Span: 5 * 3600, At: at}
}

func TestHeadroom(t *testing.T) {
	m := New(&store.Machine{})
	if low, ends := m.Headroom("a", "m", at0); low || ends != math.MaxInt64 {
		t.Errorf("of an unknown account: %v, %d", low, ends)
	}
	m.NoteQuota("a", []quota.Window{
		five(0.5, at0+2*hr, at0), {Name: "7d", Left: 0.04, ResetsAt: at0 + hr, Span: 7 * 86400, At: at0},
		{Name: "requests", Model: "m", Left: 0.01, ResetsAt: at0 + 1000, At: at0}, {Name: "tokens", Model: "n", Left: 0.01, At: at0},
		{Name: "requests-day", Model: "k", Left: 0.9, ResetsAt: at0 + hr + 60_000, Span: 86400, At: at0},
	}, at0)
	for _, tt := range []struct {
		model string
		at    int64
		low   bool
		ends  int64
	}{
		{"m", at0, true, at0 + hr}, {"m", at0 + hr, false, at0 + 2*hr}, {"m", at0 + 2*hr, false, math.MaxInt64}, {"k", at0 + hr, false, at0 + 2*hr},
		{"n", at0 + hr, false, at0 + 2*hr}, {"n", at0, true, at0 + hr},
	} {
		if low, ends := m.Headroom("a", tt.model, tt.at); low != tt.low || ends != tt.ends {
			t.Errorf("%s at %d: got %v, %d", tt.model, tt.at-at0, low, ends-at0)
		}
	}
	m.NoteQuota("b", []quota.Window{{Name: "tokens", Model: "n", Left: 0.01, At: at0}}, at0) // no reset: for a minute
	for after, want := range map[int64]bool{0: true, 59_999: true, 60_000: false} {
		if low, _ := m.Headroom("b", "n", at0+after); low != want {
			t.Errorf("%d ms later: %v", after, low)
		}
	}
}

// The state of the object brings what other isolates have seen; newer observations of
// this isolate stay.
func TestIsolatesLearnQuotas(t *testing.T) {
	m := New(&store.Machine{ID: "x", Quotas: []store.Quota{{ConnectionID: "a", Windows: []quota.Window{five(0.01, at0+hr, at0)}}}})
	if low, ends := m.Headroom("a", "m", at0); !low || ends != at0+hr {
		t.Errorf("of the replica: %v, %d", low, ends)
	}
	if list := m.ChangedQuotas(at0); len(list) > 0 {
		t.Errorf("what was heard is reported: %+v", list)
	}
	m.NoteQuota("a", []quota.Window{five(0.9, at0+6*hr, at0+2000)}, at0+2000)
	m.Observe(m.Observed(), 7, &rpc.State{Quotas: []store.Quota{{ConnectionID: "a", Windows: []quota.Window{five(0.02, at0+hr, at0+1000)}}}}, at0+3000)
	if low, _ := m.Headroom("a", "m", at0+3000); low {
		t.Error("an older state overrides")
	}
	m.Observe(m.Observed(), 8, &rpc.State{Quotas: []store.Quota{{ConnectionID: "a", Windows: []quota.Window{five(0.02, at0+6*hr, at0+4000)}}}}, at0+5000)
	if low, _ := m.Headroom("a", "m", at0+5000); !low {
		t.Error("a newer state does not override")
	}
	if list := m.ChangedQuotas(at0 + 5000); len(list) != 1 || list[0].Moved {
		t.Errorf("the own observation: %+v, want it reported as known", list)
	}
}

// Another key may be another account's.
func TestReplacedKeyForgetsTheGauge(t *testing.T) {
	machine := func(keys ...string) *Machine {
		rec := &store.Machine{ID: "x"}
		for i, k := range keys {
			rec.Connections = append(rec.Connections, store.Connection{ID: string(rune('a' + i)), Secrets: map[string]secret.Sealed{store.APIKey: secret.Sealed(k)}})
		}
		return New(rec)
	}
	c := &Cache{Now: func() time.Time { return time.UnixMilli(at0) }}
	old := machine("1", "2", "3")
	c.keep("x", old, time.UnixMilli(at0))
	for _, id := range []string{"a", "b", "c"} {
		old.NoteQuota(id, []quota.Window{five(0.01, at0+hr, at0)}, at0)
	}
	m := c.keep("x", machine("1", "9"), time.UnixMilli(at0+1))
	for id, want := range map[string]bool{"a": true, "b": false, "c": false} {
		if low, _ := m.Headroom(id, "m", at0); low != want {
			t.Errorf("%s: low %v, want %v", id, low, want)
		}
	}
}

// A new sign-in may be another account's too. The object knows of it.
func TestForgottenGaugeIsForgotten(t *testing.T) {
	known := []store.Quota{{ConnectionID: "a", Windows: []quota.Window{five(0.01, at0+hr, at0)}}}
	conns := []store.Connection{{ID: "a"}}
	low := func(m *Machine) bool {
		low, _ := m.Headroom("a", "m", at0+1)
		return low
	}
	m := New(&store.Machine{ID: "x", Connections: conns, Observed: 5, Quotas: known})
	m.Observe(m.Observed(), 6, &rpc.State{Quotas: known}, at0)
	if !low(m) {
		t.Fatal("the gauge is not known")
	}
	m.Observe(m.Observed(), 7, &rpc.State{}, at0+1)
	if low(m) {
		t.Error("after a state without it the gauge is still there")
	}

	// With a configuration of the object, and with one of KV, which has no state.
	for _, observed := range []int64{7, 0} {
		c := &Cache{Now: func() time.Time { return time.UnixMilli(at0) }}
		c.keep("x", New(&store.Machine{ID: "x", Connections: conns, Observed: 5, Quotas: known}), time.UnixMilli(at0))
		m := c.keep("x", New(&store.Machine{ID: "x", Connections: conns, Observed: observed}), time.UnixMilli(at0+1))
		if low(m) != (observed == 0) {
			t.Errorf("observed %d: low %v", observed, low(m))
		}
		m.Observe(m.Observed(), 8, &rpc.State{}, at0+1)
		if low(m) {
			t.Errorf("observed %d: after the state the gauge is still there", observed)
		}
	}

	// A window that has ended is not listed either.
	m = New(&store.Machine{ID: "x", Observed: 5, Quotas: known})
	m.NoteQuota("a", []quota.Window{five(0.01, at0+6*hr, at0+hr)}, at0+hr)
	m.Observe(m.Observed(), 9, &rpc.State{}, at0+hr)
	if low, _ := m.Headroom("a", "m", at0+hr+1); !low {
		t.Error("the gauge of the next window is dropped")
	}
}

func TestGaugesAreBounded(t *testing.T) {
	m := New(&store.Machine{})
	for i := range 2 * maxMarks {
		m.NoteQuota(fmt.Sprint(i), []quota.Window{five(0.5, at0+hr, at0)}, at0)
	}
	if n := len(m.Local.gauges); n > maxMarks {
		t.Errorf("%d gauges", n)
	}
	for i := range 100 {
		m.NoteQuota("a", []quota.Window{{Name: "requests", Model: fmt.Sprint(i), At: at0 + int64(i)}}, at0)
	}
	if g := m.Local.gauges["a"]; len(g.windows) != store.MaxWindows || g.windows[0].Model != fmt.Sprint(100-store.MaxWindows) {
		t.Errorf("%d windows, the first of model %s; want the last %d", len(g.windows), g.windows[0].Model, store.MaxWindows)
	}
}

func TestUnreportedGaugesAreReportedAgain(t *testing.T) {
	m := New(&store.Machine{})
	m.NoteQuota("a", []quota.Window{five(0.5, at0+hr, at0)}, at0)
	list := m.ChangedQuotas(at0)
	if len(list) != 1 || !list[0].Moved || len(m.ChangedQuotas(at0)) > 0 {
		t.Fatalf("got %+v, want it once", list)
	}
	m.UnreportedQuotas(append(list, rpc.Quota{Quota: store.Quota{ConnectionID: "gone"}}))
	if again := m.ChangedQuotas(at0); len(again) != 1 {
		t.Errorf("got %+v", again)
	}
}

func TestOnlyLongWindowsMove(t *testing.T) {
	m := New(&store.Machine{})
	m.NoteQuota("a", []quota.Window{{Name: "tokens", Left: 0.1, Span: 60, At: at0}}, at0)
	if list := m.ChangedQuotas(at0); len(list) != 1 || list[0].Moved {
		t.Errorf("a window of a minute: %+v", list)
	}
}

// A report has a part of many gauges, the next ones the rest.
func TestManyGaugesAreReportedInParts(t *testing.T) {
	m := New(&store.Machine{})
	const n = 100
	for i := range n {
		m.NoteQuota(fmt.Sprint(i), []quota.Window{five(0.5, at0+hr, at0)}, at0)
	}
	seen := map[string]bool{}
	for range (n + maxQuotas - 1) / maxQuotas {
		list := m.ChangedQuotas(at0)
		if len(list) > maxQuotas {
			t.Fatalf("%d gauges in a report", len(list))
		}
		for _, q := range list {
			seen[q.ConnectionID] = true
		}
	}
	if len(seen) != n || len(m.ChangedQuotas(at0)) > 0 {
		t.Errorf("%d gauges were reported, want %d once", len(seen), n)
	}
}
