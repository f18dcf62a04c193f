package storage

import (
	"slices"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/store"
)

// Bounds of the networks of a key.
const (
	MaxNetworks  = 50
	KeepNetworks = 30 * Day
	// ManyNetworks is the number of new networks of a day by which a key may be in other hands.
	ManyNetworks = 3
)

// KeyNetworks has the networks that a key was used from.
//
//easyjson:json
type KeyNetworks struct {
	List []store.KeyNetwork `json:"list"`
	// New counts the networks of a UTC day that the key was not used from before.
	Day string `json:"day,omitempty"`
	New int    `json:"new,omitempty"`
}

// KeyNetworks returns the networks that a key was used from within KeepNetworks.
func (t *Tx) KeyNetworks(keyID string) (k KeyNetworks) {
	t.Load(networksPrefix+keyID, &k)
	k.expire(t.Now)
	return k
}

func (k *KeyNetworks) expire(now int64) {
	k.List = slices.DeleteFunc(k.List, func(n store.KeyNetwork) bool { return n.Last < now-KeepNetworks })
	if day := DayOf(now); k.Day != day {
		k.Day, k.New = day, 0
	}
}

// AddNetworks adds the networks of a report to those of the keys. It returns the keys that this
// report shows in their third new network of the day; the networks of a key's first day are not
// new.
func (t *Tx) AddNetworks(list []store.KeyNetwork) (many []string) {
	keys := map[string]*KeyNetworks{} // nil for one that is gone
	var order []string
	for i := range list {
		n := list[i]
		k, known := keys[n.KeyID]
		if !known && rpc.IsRowID(n.KeyID) {
			if _, ok := t.Get(KeyPrefix + n.KeyID); ok {
				stored := t.KeyNetworks(n.KeyID)
				k, order = &stored, append(order, n.KeyID)
			}
			keys[n.KeyID] = k
		}
		if k != nil && n.Valid() && k.add(n, t.Now) {
			many = append(many, n.KeyID)
		}
	}
	for _, id := range order {
		t.Put(networksPrefix+id, *keys[id])
	}
	return many
}

// add reports whether the network is the third new one of the day. The one that was not seen for
// longest makes way.
func (k *KeyNetworks) add(n store.KeyNetwork, now int64) (many bool) {
	n.KeyID = ""
	known := slices.ContainsFunc(k.List, func(had store.KeyNetwork) bool { return had.Network == n.Network })
	today := now - now%Day
	if !known && slices.ContainsFunc(k.List, func(had store.KeyNetwork) bool { return had.First < today }) {
		k.New++
		many = k.New == ManyNetworks
	}
	if !known && len(k.List) >= MaxNetworks {
		oldest := 0
		for i := range k.List {
			if k.List[i].Last < k.List[oldest].Last {
				oldest = i
			}
		}
		k.List = slices.Delete(k.List, oldest, oldest+1)
	}
	k.List = store.AddNetwork(k.List, &n, MaxNetworks)
	return many
}

// DropNetworks removes the networks of a key, or with "" those of all.
func (t *Tx) DropNetworks(keyID string) {
	if keyID != "" {
		t.Del(networksPrefix + keyID)
		return
	}
	for _, r := range t.List(networksPrefix) {
		t.Del(r.Key)
	}
}

// PruneNetworks removes the networks that are no longer stored: of keys that are gone, and those
// that were not seen for KeepNetworks.
func (t *Tx) PruneNetworks() {
	for _, r := range t.List(networksPrefix) {
		id := strings.TrimPrefix(r.Key, networksPrefix)
		var stored KeyNetworks
		t.Load(r.Key, &stored)
		had := len(stored.List)
		k := t.KeyNetworks(id)
		_, ok := t.Get(KeyPrefix + id)
		switch {
		case !ok || len(k.List) == 0:
			t.Del(r.Key)
		case len(k.List) < had:
			t.Put(r.Key, k)
		}
	}
}
