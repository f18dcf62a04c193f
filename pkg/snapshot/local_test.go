package snapshot

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir/pkg/store"
)

func TestIndexes(t *testing.T) {
	m, err := Parse(mid, []byte(`{"v":1,"machineId":"`+mid+`","generation":1,"publishedAt":1,
		"connections":[{"id":"b","provider":"openai","priority":2},{"id":"x","provider":"xai","inactive":true},
			{"id":"a","provider":"openai","priority":1},{"id":"g","provider":"gemini"}],
		"keys":[{"id":"k","digest":"0100000000000000000000000000000000000000000000000000000000000000"},{"id":"bad","digest":"zz"}],
		"combos":[{"id":"1","name":"best","models":["a/b"]}],
		"modelAliases":{"fast":"openai/gpt"},
		"disabledModels":[{"providerAlias":"openai","ids":["gpt-3"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Active("openai"); len(got) != 2 || got[0].ID != "b" || got[1].ID != "a" {
		t.Errorf("active connections lost their stored order: %v", got)
	}
	if m.Active("xai") != nil || m.Connection("x") == nil {
		t.Error("an inactive connection is found by id alone")
	}
	if got := fmt.Sprint(m.Providers()); got != "[openai gemini]" {
		t.Errorf("providers %s", got)
	}
	if k := m.FindKey([32]byte{1}, nil); k == nil || k.ID != "k" || m.FindKey([32]byte{}, nil) != nil {
		t.Errorf("key %v", k)
	}
	if m.Combo("best") == nil || m.Combo("1") != nil || m.Alias("fast") != "openai/gpt" {
		t.Error("combo and alias are found by name")
	}
	if !m.Hidden("openai", "gpt-3") || !m.Hidden("openai", " GPT-3") || m.Hidden("openai", "gpt") || m.Hidden("xai", "gpt-3") {
		t.Error("hidden models")
	}
}

// cool is a cooldown of connection c for model m.
func (w *world) cool(d time.Duration) store.Cooldown {
	return store.Cooldown{ConnectionID: "c", Model: "m", Since: w.now.UnixMilli(), Until: w.now.Add(d).UnixMilli(), Failures: 1, Reason: "rate_limited"}
}

func (w *world) get() *Machine {
	w.Helper()
	m, err := w.cache.Get(context.Background(), mid)
	if err != nil {
		w.Fatal(err)
	}
	return m
}

func (w *world) cooling() bool { return w.get().State("c", "m").Until > w.now.UnixMilli() }

func TestFailureAppliesAtOnceAndSurvivesNewSnapshot(t *testing.T) {
	w := newWorld(t)
	w.publish(1)
	w.get().Cool(w.cool(5 * time.Minute))
	if !w.cooling() || w.get().State("c", "").Until != 0 {
		t.Fatal("the model cools, not the account")
	}
	w.now = w.now.Add(6 * time.Second)
	w.publish(2)
	w.revalidate("swap", 1)
	if !w.cooling() {
		t.Fatal("lost with a replica that does not carry it")
	}
	w.get().Reported(3, w.now.UnixMilli())
	if !w.cooling() {
		t.Fatal("lost before the replica that carries it came")
	}
	w.now = w.now.Add(6 * time.Second)
	w.publish(3) // another isolate's success cleared it at once
	w.revalidate("swap", 1)
	if w.cooling() {
		t.Error("the replica that carries it decides")
	}
}

func TestReplicaWithTheSameFailureTakesOver(t *testing.T) {
	w := newWorld(t)
	w.publish(1)
	c := w.cool(5 * time.Minute)
	w.get().Cool(c)
	w.now = w.now.Add(6 * time.Second)
	w.publish(2)
	w.obj.state.Cooldowns = []store.Cooldown{c}
	w.obj.state.Generation = 3
	w.revalidate("swap", 1)
	if m := w.get(); len(m.Local.marks) != 0 || !w.cooling() {
		t.Errorf("marks %d, cooling %v, want it in the replica alone", len(m.Local.marks), w.cooling())
	}
}

func TestSuccessClearsCooldownOfReplica(t *testing.T) {
	w := newWorld(t)
	w.publish(1)
	w.obj.state.Cooldowns = []store.Cooldown{w.cool(time.Second)}
	w.obj.state.Generation = 2
	m := w.get()
	if !w.cooling() {
		t.Fatal("not cooling")
	}
	if !m.Clear("c", "m", w.now.UnixMilli()) || w.cooling() {
		t.Fatal("not cleared")
	}
	if m.Clear("c", "m", w.now.UnixMilli()) || m.Clear("c", "", 0) || m.Clear("d", "m", 0) {
		t.Error("there is nothing more to report")
	}
}

func TestOneTrialAfterALongCooldown(t *testing.T) {
	w := newWorld(t)
	w.publish(1)
	w.obj.state.Cooldowns = []store.Cooldown{w.cool(time.Minute)}
	w.obj.state.Generation = 2
	m := w.get()
	now := w.now.Add(2 * time.Minute).UnixMilli()
	if !m.Trial("c", "m", now) || m.Trial("c", "m", now+1) {
		t.Error("one trial at a time")
	}
	if !m.Trial("c", "m", now+30_000) {
		t.Error("a trial that never ended blocks for 30 s only")
	}
	m.TrialOver("c", "m")
	if !m.Trial("c", "m", now+30_001) {
		t.Error("a trial that is over lets the next one begin")
	}
	m.Clear("c", "m", now)
	if m.State("c", "m").Until != 0 {
		t.Error("success ends it")
	}
}

func TestLocalIsBounded(t *testing.T) {
	w := newWorld(t)
	w.publish(1)
	m := w.get()
	for i := range 3 * maxMarks {
		c := w.cool(time.Minute)
		c.ConnectionID = fmt.Sprint(i)
		c.Since += int64(i)
		m.Cool(c)
		m.Failed(c.ConnectionID, "", c.Since)
	}
	if len(m.Local.marks) > maxMarks || len(m.Local.steady) > maxMarks {
		t.Errorf("%d marks, %d counts of failures", len(m.Local.marks), len(m.Local.steady))
	}
	if m.State(fmt.Sprint(3*maxMarks-1), "m").Until == 0 {
		t.Error("the newest is gone")
	}
}
