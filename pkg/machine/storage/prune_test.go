package storage_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/storage"
)

const (
	second = int64(1000)
	minute = storage.Minute
	day    = storage.Day
	// noon is in the middle of a minute and of a UTC day.
	noon = 20_000*day + day/2 + minute/2
)

// at starts a turn at a time, Unix milliseconds.
func at(st storage.Storage, now int64) *storage.Tx {
	return storage.Open(st, sealed.MachineID, time.UnixMilli(now), nil)
}

// changed reports whether a turn has changed what replicas have.
func changed(t *storage.Tx) bool { return t.Meta.Observed != 0 }

func TestRowsAreRemovedIfTheyCanBeReadAndAreOver(t *testing.T) {
	st := objects.NewStorage()
	for key, row := range map[string]string{"job:over": `1`, "job:current": `2`, "job:unreadable": `"text"`, "other": `1`} {
		st.Rows[key] = []byte(row)
	}
	tx := at(st, noon)
	storage.RemoveIf(tx, "job:", func(_ string, v int) bool { return v < 2 })
	if len(tx.Order) != 1 || tx.Order[0] != "job:over" {
		t.Errorf("removed %v", tx.Order)
	}
}

func TestOneTurnRemovesABoundedNumberOfRows(t *testing.T) {
	st := objects.NewStorage()
	for i := range storage.MaxRemoved + 20 {
		st.Rows[fmt.Sprintf("job:%06d", i)] = []byte(`1`)
	}
	tx := at(st, noon)
	storage.RemoveIf(tx, "job:", func(string, int) bool { return true })
	if len(tx.Order) != storage.MaxRemoved {
		t.Errorf("%d removed", len(tx.Order))
	}
}
