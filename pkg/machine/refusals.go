package machine

import (
	"strings"
	"time"

	"weir/pkg/store"
)

// keepRefusal is how long a refusal of a connection's server is remembered.
const keepRefusal = int64(24 * time.Hour / time.Millisecond)

// maxRefusals is the number of refusals of one connection; the data plane has
// four names.
const maxRefusals = 8

// refuse stores a refusal, or removes it if its Until is 0.
func (t *tx) refuse(r store.Refusal) {
	if r.Field == "" || len(r.Field) > 64 || !plain(r.Field) {
		return
	}
	key := refusalPrefix + r.ConnectionID
	var had, now []store.Refusal
	t.load(key, &had)
	r.Until = min(r.Until, t.now+keepRefusal)
	changed := r.Until > t.now
	for _, h := range had {
		switch {
		case h.Field != r.Field && h.Until > t.now:
			now = append(now, h)
		case h.Field == r.Field && h.Until >= r.Until && r.Until > t.now:
			return // known for at least as long
		default:
			changed = true
		}
	}
	if r.Until > t.now && len(now) < maxRefusals {
		now = append(now, r)
	}
	if !changed {
		return
	}
	t.touch()
	if len(now) == 0 {
		t.del(key)
		return
	}
	t.put(key, now)
}

// refusals returns the current refusals of all connections.
func (t *tx) refusals() (out []store.Refusal) {
	for _, list := range rowsOf[[]store.Refusal](t, refusalPrefix) {
		for _, r := range list {
			if r.Until > t.now {
				out = append(out, r)
			}
		}
	}
	return out
}

// forgetRefusals removes the refusals of a connection, whose address may have
// another server now.
func (t *tx) forgetRefusals(conn string) {
	if _, ok := t.get(refusalPrefix + conn); ok {
		t.del(refusalPrefix + conn)
	}
}

// pruneRefusals removes refusals that have expired.
func (t *tx) pruneRefusals() {
	each(t, refusalPrefix, func(key string, list []store.Refusal) bool {
		if _, ok := t.get(connPrefix + strings.TrimPrefix(key, refusalPrefix)); !ok {
			return true
		}
		for _, r := range list {
			if r.Until > t.now {
				return false
			}
		}
		return true
	})
}
