package snapshot

import "time"

// blockFor is how long an address that refuses this location is skipped.
const blockFor = time.Minute

const maxBlocks = 64

// place is a provider's address as a machine calls it.
type place struct{ provider, origin string }

// Block is the refusal of a provider that does not serve this location.
type Block struct {
	Status  int
	Message string
	until   int64
}

// Block notes that a provider's origin refuses this machine's calls because of
// their location. It lasts 60 s, in this isolate only: another one may run
// elsewhere.
func (m *Machine) Block(provider, origin string, b Block, now int64) {
	l := m.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocked == nil || len(l.blocked) >= maxBlocks {
		l.blocked = map[place]Block{}
	}
	b.until = now + blockFor.Milliseconds()
	l.blocked[place{provider, origin}] = b
}

// Blocked returns what Block noted about a provider's origin in the last 60 s.
func (m *Machine) Blocked(provider, origin string, now int64) (Block, bool) {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	if len(m.Local.blocked) == 0 {
		return Block{}, false
	}
	key := place{provider, origin}
	b, ok := m.Local.blocked[key]
	if ok && (b.until <= now || b.until-now > blockFor.Milliseconds()) {
		delete(m.Local.blocked, key)
		ok = false
	}
	return b, ok
}

// AnyBlocked reports whether Blocked can return something.
func (m *Machine) AnyBlocked() bool {
	m.Local.mu.Lock()
	defer m.Local.mu.Unlock()
	return len(m.Local.blocked) > 0
}
