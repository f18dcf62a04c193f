package snapshot

import "time"

// blockFor is how long a place that refuses this egress is passed over.
const blockFor = time.Minute

const maxBlocks = 64

// place is where a provider's calls of a machine lead.
type place struct{ provider, origin string }

// Block is what a provider said that serves nobody from here.
type Block struct {
	Status  int
	Message string
	until   int64
}

// Block notes that the calls of this machine to a provider's origin are refused
// because of where they come from. It holds for 60 s, in this isolate only:
// another one may run somewhere else.
func (m *Machine) Block(provider, origin string, b Block, now int64) {
	l := m.Local
	if l.blocked == nil || len(l.blocked) >= maxBlocks {
		l.blocked = map[place]Block{}
	}
	b.until = now + blockFor.Milliseconds()
	l.blocked[place{provider, origin}] = b
}

// Blocked returns what Block noted of a provider's origin within the last 60 s.
func (m *Machine) Blocked(provider, origin string, now int64) (Block, bool) {
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
func (m *Machine) AnyBlocked() bool { return len(m.Local.blocked) > 0 }
