package machine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"weir/pkg/budget"
	"weir/pkg/credentials/oauth"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/secret"
)

// prune removes what has outlived its use: ended cooldowns, expired jobs, old
// counters and usage, answers of mutations, and the oldest audit records.
// Connections, keys and the machine itself are never touched.
func (o *Object) prune(r *storage.Call) {
	if !r.Exists() || r.Meta.PruneAt > r.Now {
		return
	}
	r.Meta.PruneAt = r.Now + storage.PruneEvery
	storage.RemoveIf(r.Tx, storage.CooldownPrefix, func(_ string, c store.Cooldown) bool { return r.Forgotten(&c) })
	r.PruneRefusals()
	pruneJobs(r.Tx)
	pruneIdempotency(r.Tx)
	storage.RemoveIf(r.Tx, storage.MutationPrefix, func(_ string, m storage.Mutation) bool {
		return m.At < r.Now-storage.Day || m.At > r.Now+storage.Day
	})
	r.ExpireLedgers(func(b *store.Budget, l *budget.Ledger) { o.alert(r.Tx, b, l) })
	storage.RemoveIf(r.Tx, storage.OldCountPrefix, func(string, json.RawMessage) bool { return true })
	storage.RemoveIf(r.Tx, storage.KeyUsePrefix, func(key string, _ storage.KeyUse) bool {
		_, ok := r.Get(storage.KeyPrefix + strings.TrimPrefix(key, storage.KeyUsePrefix))
		return !ok
	})
	storage.RemoveIf(r.Tx, storage.ErrorPrefix, func(key string, _ string) bool {
		id := strings.TrimPrefix(key, storage.ErrorPrefix)
		if _, ok := r.Get(storage.ConnectionPrefix + id); ok {
			return false
		}
		_, ok := r.Get(storage.DeletedPrefix + id)
		return !ok
	})
	for _, row := range r.List(storage.OAuthPrefix) {
		if oauth.Stale(row.Value, time.UnixMilli(r.Now)) {
			r.Del(row.Key)
		}
	}
	storage.RemoveIf(r.Tx, storage.LeasePrefix, func(_ string, l storage.Lease) bool { return l.ExpiresAt <= r.Now })
	storage.RemoveIf(r.Tx, storage.RemovedPrefix, func(_ string, at int64) bool { // no call is that old
		return at < r.Now-storage.Day
	})
	r.FoldUsage()
	r.PruneUsage()
	r.PruneNetworks()
	r.PruneHours()
	storage.RemoveIf(r.Tx, storage.OldRequestPrefix, func(string, json.RawMessage) bool { return true })
	r.PruneRequests()
	r.PruneAudit()
	r.PruneCaptures()
	if len(r.Order) >= storage.MaxRemoved { // there is more: soon again
		r.Meta.PruneAt = r.Now + storage.PruneAgain
	}
	o.reseal(r)
	if err := r.Commit(); err != nil {
		o.WriteLog(fmt.Sprintf("machine %s: pruning: %v", r.ID, err))
		r.Reload(o.Now())
	}
}

// reseal seals with the current key what an older one has sealed, so that the
// older key can be taken out of CREDENTIALS_KEY after a rotation
// (docs/reference/reliability.md, T50). A value that cannot be opened stays:
// the key may come back.
func (o *Object) reseal(r *storage.Call) {
	current := o.Keyring.Current()
	closed, first := 0, ""
	reseal := func(connectionID, field string, sealed secret.Sealed) secret.Sealed {
		if sealed == "" || store.KeyID(sealed) == current {
			return sealed
		}
		plain, err := o.Keyring.Open(r.ID, connectionID, field, sealed)
		if err != nil {
			closed++
			first = cmp.Or(first, field+" of "+connectionID)
			return sealed
		}
		if s, err := o.Keyring.Seal(r.ID, connectionID, field, plain); err == nil {
			return s
		}
		return sealed
	}
	for _, c := range r.Connections() {
		secrets, changed := map[string]secret.Sealed{}, false
		for f, sealed := range c.Secrets {
			secrets[f] = reseal(c.ID, f, sealed)
			changed = changed || secrets[f] != sealed
		}
		if changed {
			c.Secrets = secrets
			r.PutConnection(&c)
		}
	}
	for _, p := range storage.RowsOf[rpc.IdentityProvider](r.Tx, idpPrefix) {
		before := store.KeyID(p.ClientSecret)
		p.ClientSecret = reseal(p.SealedAs(), rpc.ClientSecretField, p.ClientSecret)
		if store.KeyID(p.ClientSecret) != before {
			r.Put(idpPrefix+p.ID, p)
		}
	}
	for _, d := range r.Destinations() {
		secrets, changed := map[string]secret.Sealed{}, false
		for f, sealed := range d.Secrets {
			secrets[f] = reseal(d.SealedAs(), f, sealed)
			changed = changed || secrets[f] != sealed
		}
		if changed {
			d.Secrets = secrets
			r.PutDestination(&d)
		}
	}
	for _, p := range storage.RowsOf[personRow](r.Tx, personPrefix) {
		if sealed := reseal(personPrefix+p.ID, profileField, p.Profile); sealed != p.Profile {
			p.Profile = sealed
			r.Put(personPrefix+p.ID, p)
		}
	}
	r.Pages(storage.MutationPrefix, storage.Page, func(row storage.Row) bool {
		var m storage.Mutation
		if json.Unmarshal(row.Value, &m) == nil {
			if s := reseal(storage.MutationPrefix, row.Key, m.Answer); s != m.Answer {
				m.Answer = s
				r.Put(row.Key, m)
			}
		}
		return true
	})
	for _, row := range r.List(storage.OAuthPrefix) { // sign-ins under way
		if v := oauth.Reseal(row.Value, func(field string, s secret.Sealed) secret.Sealed {
			return reseal(row.Key, field, s)
		}); !bytes.Equal(v, row.Value) {
			r.Set(row.Key, v)
		}
	}
	if o.closedNow(r.ID, closed) {
		o.WriteLog(fmt.Sprintf("machine %s: CREDENTIALS_KEY does not open %d secrets, such as %s", r.ID, closed, first))
	}
}

// closedNow notes how many secrets of a machine do not open, and reports whether the log is to say
// so: it does when the number has changed, not with every prune.
func (o *Object) closedNow(machineID string, n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	changed := o.closed[machineID] != n
	if o.closed == nil {
		o.closed = map[string]int{}
	}
	if o.closed[machineID] = n; n == 0 {
		delete(o.closed, machineID)
	}
	return changed && n > 0
}
