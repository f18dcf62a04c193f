package storage

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/quota"
)

// The gauges of accounts are in the activity row only, so that to look for one reads
// no further row. If the row becomes too large, the largest are dropped.

// SetQuota stores what an isolate has seen of an account's limits. The others learn
// of it if it has moved.
func (t *Tx) SetQuota(q rpc.Quota) {
	had := t.Quota(q.ConnectionID)
	now := store.MergeWindows(slices.Clone(had), q.Windows, t.Now)
	if slices.Equal(had, now) {
		return
	}
	if q.Moved {
		t.Observe()
	}
	if len(now) == 0 {
		t.Del(quotaPrefix + q.ConnectionID)
		return
	}
	t.Put(quotaPrefix+q.ConnectionID, store.Quota{ConnectionID: q.ConnectionID, Windows: now})
}

// Quota returns the windows that are known of a connection's account.
func (t *Tx) Quota(conn string) []quota.Window { return t.quotaIn(quotaPrefix + conn).Windows }

func (t *Tx) quotaIn(key string) (row store.Quota) {
	raw, ok := t.writes[key]
	if !ok {
		raw = t.packed()[key]
	}
	json.Unmarshal(raw, &row)
	return row
}

// longQuotas returns the windows of all accounts that last an hour or more.
func (t *Tx) longQuotas() (out []store.Quota) {
	keys := map[string]bool{}
	for key := range t.packed() {
		if strings.HasPrefix(key, quotaPrefix) {
			keys[key] = true
		}
	}
	for key := range t.writes {
		if strings.HasPrefix(key, quotaPrefix) {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		q := t.quotaIn(key)
		q.Windows = slices.DeleteFunc(q.Windows, func(w quota.Window) bool { return !w.Long() || store.QuotaOver(&w, t.Now) })
		if len(q.Windows) > 0 {
			out = append(out, q)
		}
	}
	return out
}

// ForgetQuota removes what is known of the limits of a connection, which is gone or
// may have another account now.
func (t *Tx) ForgetQuota(conn string) {
	if len(t.Quota(conn)) > 0 {
		t.Observe()
		t.Del(quotaPrefix + conn)
	}
}
