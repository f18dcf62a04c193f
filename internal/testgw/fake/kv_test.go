package fake

import (
	"context"
	"errors"
	"testing"
)

func TestKVFaults(t *testing.T) {
	ctx := context.Background()
	m := NewKV()
	want := func(name, value string) {
		t.Helper()
		got, err := m.Get(ctx, "k")
		if err != nil || string(got) != value {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, value)
		}
	}
	if v, err := m.Get(ctx, "k"); v != nil || err != nil {
		t.Errorf("no value: got %v, %v, want nil, nil", v, err)
	}
	v := []byte("1")
	m.Put(ctx, "k", v)
	v[0] = 'x'
	want("a copy is stored", "1")
	m.Stale(true)
	m.Put(ctx, "k", []byte("2"))
	want("stale", "1")
	m.Stale(false)
	want("no longer stale", "2")
	m.Missing("k", true)
	want("missing", "")
	m.Missing("k", false)
	m.Down(true)
	if _, err := m.Get(ctx, "k"); !errors.Is(err, ErrDown) {
		t.Errorf("down: got %v, want ErrDown", err)
	}
	if err := m.Put(ctx, "k", nil); !errors.Is(err, ErrDown) {
		t.Errorf("down: got %v, want ErrDown", err)
	}
	if err := m.Delete(ctx, "k"); !errors.Is(err, ErrDown) {
		t.Errorf("down: got %v, want ErrDown", err)
	}
	m.Down(false)
	want("up again", "2")
	m.Delete(ctx, "k")
	want("deleted", "")
	if len(m.Writes()) != 5 {
		t.Errorf("got %d writes, want 5", len(m.Writes()))
	}
}
