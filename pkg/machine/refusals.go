package machine

import (
	"strings"
	"time"

	"weir/pkg/store"
)

// keepRefusal is how long a connection remembers what its server has refused.
const keepRefusal = int64(24 * time.Hour / time.Millisecond)

// maxRefusals bounds what is remembered of one connection; the data plane
// knows four names.
const maxRefusals = 8

// refuse takes in what a server has refused by name, or takes again.
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

// refusals returns what holds now, of all connections.
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

// forgetRefusals forgets what the server of a connection has refused: there
// may be another server at its address now.
func (t *tx) forgetRefusals(conn string) {
	if _, ok := t.get(refusalPrefix + conn); ok {
		t.del(refusalPrefix + conn)
	}
}

// pruneRefusals removes what no longer holds.
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
