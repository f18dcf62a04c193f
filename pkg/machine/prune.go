package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// prune removes what has outlived its use: ended cooldowns, expired jobs, old
// counters and usage, answers of mutations, and the oldest audit records.
// Connections, keys and the machine itself are never touched.
func (o *Object) prune(r *request) {
	if !r.exists() || r.meta.PruneAt > r.now {
		return
	}
	r.meta.PruneAt = r.now + pruneEvery
	each(r.tx, coolPrefix, func(_ string, c store.Cooldown) bool { return r.forgotten(&c) })
	r.pruneRefusals()
	each(r.tx, jobPrefix, func(_ string, j rpc.Job) bool { return j.ExpiresAt <= r.now })
	r.pruneIdem()
	each(r.tx, mutationPrefix, func(_ string, m mutationRow) bool { return m.At < r.now-dayMs || m.At > r.now+dayMs })
	each(r.tx, countPrefix, func(key string, c countRow) bool {
		_, ok := r.get(keyPrefix + strings.TrimPrefix(key, countPrefix))
		return !ok || c.Day < r.now/dayMs-1
	})
	each(r.tx, errorPrefix, func(key string, _ string) bool {
		_, ok := r.get(connPrefix + strings.TrimPrefix(key, errorPrefix))
		return !ok
	})
	for _, row := range r.list(oauthPrefix) {
		if oauth.Stale(row.Value, time.UnixMilli(r.now)) {
			r.del(row.Key)
		}
	}
	first := dayOf(r.now - usageDays*dayMs)
	each(r.tx, usagePrefix, func(_ string, u usageRow) bool { return u.Day < first })
	for _, row := range r.list("usages:") {
		if strings.TrimPrefix(row.Key, "usages:") < first {
			r.del(row.Key)
		}
	}
	r.pruneAudit()
	if len(r.order) >= pruneMost { // there is more: soon again
		r.meta.PruneAt = r.now + pruneAgain
	}
	o.reseal(r)
	if err := r.commit(); err != nil {
		o.log(fmt.Sprintf("machine %s: pruning: %v", r.id, err))
		r.reload(o.Now())
	}
}

// pruneMost is the number of rows that one turn removes about; after it the
// next follows sooner.
const (
	pruneMost  = 5000
	pruneAgain = int64(10 * time.Second / time.Millisecond)
)

// each removes the rows under a prefix that over says so of.
func each[T any](t *tx, prefix string, over func(key string, v T) bool) {
	t.pages(prefix, pageRows, func(r Row) bool {
		var v T
		if json.Unmarshal(r.Value, &v) == nil && over(r.Key, v) {
			t.del(r.Key)
		}
		return len(t.order) < pruneMost
	})
}

// reseal seals with the current key what an older one has sealed, so that the
// older key can be taken out of CREDENTIALS_KEY after a rotation
// (docs/reference/reliability.md, T50). What does not open stays as it is: the
// key may come back.
func (o *Object) reseal(r *request) {
	ring, ok := o.Keyring.(interface{ Current() string })
	if !ok {
		return
	}
	current := ring.Current()
	anew := func(connectionID, field string, sealed secret.Sealed) secret.Sealed {
		if store.KeyID(sealed) == current {
			return sealed
		}
		plain, err := o.Keyring.Open(r.id, connectionID, field, sealed)
		if err != nil {
			o.log(fmt.Sprintf("machine %s: %s of %s does not open", r.id, field, connectionID))
			return sealed
		}
		if s, err := o.Keyring.Seal(r.id, connectionID, field, plain); err == nil {
			return s
		}
		return sealed
	}
	for _, c := range r.conns() {
		secrets, changed := map[string]secret.Sealed{}, false
		for f, sealed := range c.Secrets {
			secrets[f] = anew(c.ID, f, sealed)
			changed = changed || secrets[f] != sealed
		}
		if changed {
			c.Secrets = secrets
			r.putConn(&c)
		}
	}
	r.pages(mutationPrefix, pageRows, func(row Row) bool {
		var m mutationRow
		if json.Unmarshal(row.Value, &m) == nil {
			if s := anew(mutationPrefix, row.Key, m.Answer); s != m.Answer {
				m.Answer = s
				r.put(row.Key, m)
			}
		}
		return true
	})
	for _, row := range r.list(oauthPrefix) { // sign-ins under way
		if v := oauth.Reseal(row.Value, func(field string, s secret.Sealed) secret.Sealed { return anew(row.Key, field, s) }); !bytes.Equal(v, row.Value) {
			r.set(row.Key, v)
		}
	}
}
