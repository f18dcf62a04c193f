package storage_test

import (
	"fmt"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const aKey = "key00000000000000001"

// seen returns the networks of calls of a key.
func seen(ms int64, networks ...string) (list []store.KeyNetwork) {
	for _, n := range networks {
		list = append(list, store.KeyNetwork{KeyID: aKey, Network: n, Tools: []string{"curl"}, First: ms, Last: ms, Requests: 1})
	}
	return list
}

// keyed returns the storage of a machine with a key, and a turn of it.
func keyed() (*objects.Storage, *storage.Tx) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Put(storage.KeyPrefix+aKey, storage.Key{Key: store.Key{ID: aKey}})
	return st, tx
}

func TestThirdNewNetworkOfADayIsTold(t *testing.T) {
	_, tx := keyed()
	for i, tt := range []struct {
		days     int64
		networks []string
		many     bool
		stored   int
	}{
		{0, []string{"198.51.100.0/24", "203.0.113.0/24", "192.0.2.0/24", "10.0.0.0/24"}, false, 4}, // the first day
		{1, []string{"203.0.113.0/24", "10.1.0.0/24"}, false, 5},
		{1, []string{"10.1.0.0/24", "10.2.0.0/24"}, false, 6},
		{1, []string{"2001:db8:1::/48"}, true, 7},
		{1, []string{"10.3.0.0/24", "10.4.0.0/24"}, false, 9}, // once a day
		{2, []string{"10.3.0.0/24"}, false, 9},
		{2, []string{"10.5.0.0/24", "10.6.0.0/24", "10.7.0.0/24"}, true, 12},
		{31, []string{"10.5.0.0/24"}, false, 9}, // of the first two days nothing is left
		{70, []string{"10.8.0.0/24"}, false, 1},
	} {
		tx.Now = noon + tt.days*day
		many := tx.AddNetworks(seen(tx.Now, tt.networks...))
		if got := len(tx.KeyNetworks(aKey).List); (len(many) == 1) != tt.many || len(many) > 1 || got != tt.stored {
			t.Errorf("report %d: told %v, %d networks, want %v and %d", i+1, many, got, tt.many, tt.stored)
		}
	}
}

// 100,000 addresses are at most 50 networks of a key, those that were seen last. An address and an
// invalid network are refused.
func TestNetworksOfAKeyAreBounded(t *testing.T) {
	st, tx := keyed()
	tx.AddNetworks(seen(noon-day, "198.51.100.0/24"))
	for n := range 1000 {
		var list []store.KeyNetwork
		for i := range 100 {
			list = append(list, seen(noon+int64(n), fmt.Sprintf("10.%d.%d.0/24", n/4, n%4*64+i%64))...)
			list = append(list, seen(noon, fmt.Sprintf("2001:db8:%x::/48", n*100+i))...)
		}
		tx.AddNetworks(list)
	}
	k := tx.KeyNetworks(aKey)
	if len(k.List) != storage.MaxNetworks || len(storage.Encode(k)) > 10<<10 {
		t.Errorf("%d networks in %d bytes", len(k.List), len(storage.Encode(k)))
	}
	for _, bad := range []store.KeyNetwork{{Network: "10.0.0.1"}, {Network: "10.0.0.1/24"}, {Network: "x", Requests: 1}, {}} {
		bad.KeyID, bad.First, bad.Last = aKey, 1, 1
		tx.AddNetworks([]store.KeyNetwork{bad})
	}
	gone := seen(noon, "10.0.0.0/24")
	gone[0].KeyID = "key00000000000000002"
	tx.AddNetworks(gone)
	commit(t, st, tx)
	tx = at(st, noon)
	if n := len(tx.KeyNetworks(gone[0].KeyID).List); n != 0 || len(tx.KeyNetworks(aKey).List) != storage.MaxNetworks {
		t.Errorf("a key that is gone has %d networks", n)
	}
	tx.Now = noon + storage.KeepNetworks + day
	tx.PruneNetworks()
	if rows := len(tx.List("networks:")); rows != 0 {
		t.Errorf("after %d days %d rows are left", storage.KeepNetworks/day+1, rows)
	}
}
