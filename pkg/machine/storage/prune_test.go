package storage_test

import (
	"fmt"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
)

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
