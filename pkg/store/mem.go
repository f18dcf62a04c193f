package store

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// ErrDown is what a Mem that is down answers.
var ErrDown = errors.New("store: key-value store is down")

// Mem is a KV in memory, with the faults of the real one at will. It is for
// tests and for running without a platform.
type Mem struct {
	mu     sync.Mutex
	values map[string][]byte
	stale  map[string][]byte // what Get answers while not nil
	down   bool
	gone   map[string]bool
	reads  []string
	writes []string
}

// NewMem makes an empty store.
func NewMem() *Mem { return &Mem{values: map[string][]byte{}, gone: map[string]bool{}} }

// Down makes every operation fail with ErrDown, or ends that.
func (m *Mem) Down(down bool) { m.with(func() { m.down = down }) }

// Stale freezes what Get sees at this moment, while writes go on, or ends that.
func (m *Mem) Stale(stale bool) {
	m.with(func() {
		m.stale = nil
		if stale {
			m.stale = maps.Clone(m.values)
		}
	})
}

// Missing hides key from Get, as a place that has not heard of it does, or
// shows it again.
func (m *Mem) Missing(key string, missing bool) { m.with(func() { m.gone[key] = missing }) }

// Reads returns the keys asked for so far, in order, also while down.
func (m *Mem) Reads() (keys []string) {
	m.with(func() { keys = append(keys, m.reads...) })
	return keys
}

// Writes returns the keys put or deleted so far, in order, also while down.
func (m *Mem) Writes() (keys []string) {
	m.with(func() { keys = append(keys, m.writes...) })
	return keys
}

// Dump returns a copy of everything stored.
func (m *Mem) Dump() (all map[string][]byte) {
	m.with(func() { all = maps.Clone(m.values) })
	return all
}

// Get returns a copy of the value, or nil if the key is missing.
func (m *Mem) Get(_ context.Context, key string) (value []byte, err error) {
	m.with(func() {
		m.reads = append(m.reads, key)
		from := m.values
		if m.stale != nil {
			from = m.stale
		}
		switch v, ok := from[key]; {
		case m.down:
			err = ErrDown
		case ok && !m.gone[key]:
			value = append([]byte{}, v...)
		}
	})
	return value, err
}

// Put stores a copy of value.
func (m *Mem) Put(_ context.Context, key string, value []byte) (err error) {
	m.with(func() {
		m.writes = append(m.writes, key)
		if m.down {
			err = ErrDown
			return
		}
		m.values[key] = append([]byte{}, value...)
	})
	return err
}

// Delete removes the value.
func (m *Mem) Delete(_ context.Context, key string) (err error) {
	m.with(func() {
		m.writes = append(m.writes, key)
		if m.down {
			err = ErrDown
			return
		}
		delete(m.values, key)
	})
	return err
}

func (m *Mem) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}
