package storage

import (
	"slices"
	"strings"
	"time"

	"weir/pkg/store"
)

// KeepRefusal is how long a refusal of a connection's server is remembered, in
// milliseconds.
const KeepRefusal = int64(24 * time.Hour / time.Millisecond)

// MaxRefusals is the number of refusals of one connection.
const MaxRefusals = 32

// AddRefusal stores a refusal, or removes it if its Until is 0.
func (t *Tx) AddRefusal(r store.Refusal) {
	if r.Field == "" || len(r.Field) > 64 || !IsPrintable(r.Field) {
		return
	}
	key := refusalPrefix + r.ConnectionID
	var had, now []store.Refusal
	t.Load(key, &had)
	r.Until = min(r.Until, t.Now+KeepRefusal)
	changed := r.Until > t.Now
	for _, h := range had {
		switch {
		case h.Field != r.Field && h.Until > t.Now:
			now = append(now, h)
		case h.Field == r.Field && h.Until >= r.Until && r.Until > t.Now:
			return // known for at least as long
		default:
			changed = true
		}
	}
	if r.Until > t.Now && len(now) < MaxRefusals {
		now = append(now, r)
	}
	if !changed {
		return
	}
	t.Observe()
	if len(now) == 0 {
		t.Del(key)
		return
	}
	t.Put(key, now)
}

// refusals returns the current refusals of all connections.
func (t *Tx) refusals() (out []store.Refusal) {
	for _, list := range RowsOf[[]store.Refusal](t, refusalPrefix) {
		for _, r := range list {
			if r.Until > t.Now {
				out = append(out, r)
			}
		}
	}
	return out
}

// ForgetRefusals removes the refusals of a connection, whose address may have
// another server now.
func (t *Tx) ForgetRefusals(conn string) {
	if _, ok := t.Get(refusalPrefix + conn); ok {
		t.Del(refusalPrefix + conn)
	}
}

// PruneRefusals removes refusals that have expired.
func (t *Tx) PruneRefusals() {
	RemoveIf(t, refusalPrefix, func(key string, list []store.Refusal) bool {
		_, ok := t.Get(ConnectionPrefix + strings.TrimPrefix(key, refusalPrefix))
		return !ok || !slices.ContainsFunc(list, func(r store.Refusal) bool { return r.Until > t.Now })
	})
}
