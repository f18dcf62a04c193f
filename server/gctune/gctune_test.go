package gctune

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestGarbageIsBoundedByTheMemoryInUse(t *testing.T) {
	for _, c := range []struct {
		live    uint64
		percent int
	}{
		{0, 50 + 600},
		{6 << 20, 50 + 400},
		{24 << 20, 50 + 100},
		{240 << 20, 50 + 10},
		{1 << 50, 50},
	} {
		if got := percent(c.live); got != c.percent {
			t.Errorf("percent(%d) = %d, want %d", c.live, got, c.percent)
		}
	}
}

func TestCollectionsChangeTheSetting(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	setting := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	Start()
	small := setting()
	if small <= 200 {
		t.Fatalf("GOGC is %d with little memory in use", small)
	}
	much := make([]byte, 256<<20)
	for setting() > 100 { // ends once a finalizer has run
		runtime.GC()
	}
	runtime.KeepAlive(much)
	much = nil
	for setting() <= 200 {
		runtime.GC()
	}
}

func TestOperatorsSettingIsLeftAlone(t *testing.T) {
	t.Setenv("GOGC", "70")
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)
	Start()
	if got := debug.SetGCPercent(70); got != 70 {
		t.Errorf("GOGC is %d, want 70", got)
	}
}
