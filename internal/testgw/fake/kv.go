package fake

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// ErrDown is the error of a KV that is down.
var ErrDown = errors.New("fake: the key-value store is down")

// KV is a store.KV in memory, with the faults of the real one on demand.
type KV struct {
	mu     sync.Mutex
	values map[string][]byte
	stale  map[string][]byte // what Get answers while not nil
	down   bool
	gone   map[string]bool
	reads  []string
	writes []string
}

// NewKV returns an empty store.
func NewKV() *KV { return &KV{values: map[string][]byte{}, gone: map[string]bool{}} }

// Down makes every operation fail with ErrDown, or ends that.
func (m *KV) Down(down bool) { m.with(func() { m.down = down }) }

// Stale freezes what Get sees at this moment, while writes go on, or ends that.
func (m *KV) Stale(stale bool) {
	m.with(func() {
		m.stale = nil
		if stale {
			m.stale = maps.Clone(m.values)
		}
	})
}

// Missing hides key from Get, as a place that has not heard of it does, or
// shows it again.
func (m *KV) Missing(key string, missing bool) { m.with(func() { m.gone[key] = missing }) }

// Reads returns the keys asked for so far, in order, also while down.
func (m *KV) Reads() (keys []string) {
	m.with(func() { keys = append(keys, m.reads...) })
	return keys
}

// Writes returns the keys put or deleted so far, in order, also while down.
func (m *KV) Writes() (keys []string) {
	m.with(func() { keys = append(keys, m.writes...) })
	return keys
}

// Dump returns a copy of everything stored.
func (m *KV) Dump() (all map[string][]byte) {
	m.with(func() { all = maps.Clone(m.values) })
	return all
}

// Get returns a copy of the value, or nil if the key is missing.
func (m *KV) Get(_ context.Context, key string) (value []byte, err error) {
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
func (m *KV) Put(_ context.Context, key string, value []byte) (err error) {
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
func (m *KV) Delete(_ context.Context, key string) (err error) {
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

func (m *KV) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}
