package snapshot

import (
	"fmt"
	"testing"
	"time"

	"weir/pkg/store"
)

func TestOutlier(t *testing.T) {
	const second = int64(1000)
	for _, tt := range []struct {
		name  string
		calls string // F failed, W worked; "." lets a second pass
		want  bool
	}{
		{"four in a row", "FFFF", false},
		{"five in a row", "FFFFF", true},
		{"five in a row, slowly", "F..F..F..F..F", true},
		{"a success between", "FFFFWFFFF", false},
		{"half of ten", "FWFWFWFWFW" + "F", true},
		{"half of nine", "FWFWFWFW", false},
		{"a third", "FWWFWWFWWFWWFWWFWW", false},
		{"half of ten within twenty seconds", "FW..FW..FW..FW..FW..FW..FW", false},
		{"a busy account with one failure in ten", "FWWWWWWWWWFWWWWWWWWWFWWWWWWWWWFWWWWWWWWW", false},
	} {
		m := New(&store.Machine{ID: mid})
		now := int64(1_800_000_000_000)
		for _, c := range tt.calls {
			switch c {
			case 'F':
				m.Failed("c", "m", now)
			case 'W':
				m.Worked("c", "m", now)
			default:
				now += second
			}
		}
		if got := m.Outlier("c", "m", now); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
		if m.Outlier("c", "other", now) || m.Outlier("d", "m", now) {
			t.Errorf("%s: another model or connection is one", tt.name)
		}
	}
}

func TestOutlierSpansDouble(t *testing.T) {
	m := New(&store.Machine{ID: mid})
	now := int64(1_800_000_000_000)
	var spans []int64
	for range 6 {
		for range 5 {
			m.Failed("c", "", now)
		}
		from := now
		for m.Outlier("c", "m", now) {
			now += 100
		}
		spans = append(spans, (now-from)/1000)
	}
	if got := fmt.Sprint(spans); got != "[5 10 20 40 60 60]" {
		t.Errorf("spans %s", got)
	}
	now += 61_000
	for range 5 {
		m.Failed("c", "", now)
	}
	if m.Outlier("c", "m", now+5000) || !m.Outlier("c", "m", now+4999) {
		t.Error("after a minute without it the first span holds again")
	}
	if m.Outlier("c", "m", now-3_600_000) {
		t.Error("a clock that went back makes it longer")
	}
}

func TestErrorRatesExpire(t *testing.T) {
	m := New(&store.Machine{ID: mid})
	now := int64(1_800_000_000_000)
	m.Failed("c", "m", now)
	m.Worked("c", "m", now+1000)
	m.Worked("c", "m", now+11_000)
	if n := len(m.Local.steady); n != 0 {
		t.Errorf("%d kept after ten seconds without a failure", n)
	}
	for i := range 5 * maxSteady {
		m.Failed("c", fmt.Sprint(i), now)
	}
	if n := len(m.Local.steady); n > maxSteady {
		t.Errorf("%d kept, want %d at most", n, maxSteady)
	}
}

func TestBlock(t *testing.T) {
	a, b := New(&store.Machine{ID: mid}), New(&store.Machine{ID: "bbbbbbbbbbbbbbbb"})
	now := int64(1_800_000_000_000)
	a.Block("openai", "https://api.openai.com", Block{Status: 403}, now)
	for _, tt := range []struct {
		m      *Machine
		origin string
		at     time.Duration
		want   bool
	}{
		{a, "https://api.openai.com", 0, true}, {a, "https://api.openai.com", 59 * time.Second, true}, {a, "https://other.example", 0, false},
		{b, "https://api.openai.com", 0, false}, {a, "https://api.openai.com", -time.Hour, false}, {a, "https://api.openai.com", 0, false},
	} {
		if _, got := tt.m.Blocked("openai", tt.origin, now+tt.at.Milliseconds()); got != tt.want {
			t.Errorf("%s of %s after %v: got %v", tt.origin, tt.m.ID, tt.at, got)
		}
	}
	for i := range 1000 {
		a.Block("openai", fmt.Sprint(i), Block{}, now)
	}
	if n := len(a.Local.blocked); n > maxBlocks {
		t.Errorf("%d kept", n)
	}
}

func TestTooManyCooledModelsCoolTheConnection(t *testing.T) {
	m := New(&store.Machine{ID: mid})
	now := int64(1_800_000_000_000)
	cool := func(model string) store.Cooldown {
		return m.Cool(store.Cooldown{ConnectionID: "c", Model: model, Since: now, Until: now + 60_000, Reason: store.RateLimited})
	}
	for i := range store.MaxCooledModels {
		if got := cool(fmt.Sprint("m", i)); got.Model == "" {
			t.Fatalf("model %d cools the connection", i)
		}
	}
	if got := cool("m0"); got.Model != "m0" {
		t.Error("a model that cools already cools the connection")
	}
	m.Cool(store.Cooldown{ConnectionID: "d", Model: "m", Since: now, Until: now + 60_000})
	if got := cool("one more"); got.Model != "" || len(m.Local.marks) != 2 {
		t.Errorf("got %+v, %d marks", got, len(m.Local.marks))
	}
	if s := m.State("c", ""); s.Left(now) != 60_000 {
		t.Errorf("the connection cools %d ms", s.Left(now))
	}
}
