package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/quota"
)

func gauge(conn string, moved bool, windows ...quota.Window) rpc.Quota {
	return rpc.Quota{Quota: store.Quota{ConnectionID: conn, Windows: windows}, Moved: moved}
}

func window(name string, span, seen int64) quota.Window {
	return quota.Window{Name: name, Left: 0.5, ResetsAt: noon + 2*day, Span: span, At: seen}
}

func TestGaugesAreStoredInTheActivityRow(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.SetQuota(gauge("a", true, window("5h", 18000, noon), window("requests", 60, noon)))
	tx.SetQuota(gauge("b", false, window("requests", 60, noon)))
	if tx.Meta.Observed != noon {
		t.Error("a gauge that has moved does not reach other isolates")
	}
	if got := commit(t, st, tx); !slices.Equal(got, []string{storage.ActivityRow}) && !slices.Equal(got, []string{storage.ActivityRow, "meta"}) {
		t.Errorf("stored %v", got)
	}
	tx = at(st, noon+1)
	observed := tx.Meta.Observed
	if got := tx.State().Quotas; len(got) != 1 || got[0].ConnectionID != "a" || len(got[0].Windows) != 1 || got[0].Windows[0].Name != "5h" {
		t.Errorf("the state has %+v, want the windows of an hour and more", got)
	}
	if len(tx.Quota("a")) != 2 || len(tx.Quota("b")) != 1 || len(tx.Quota("c")) != 0 {
		t.Errorf("got %v, %v, %v", tx.Quota("a"), tx.Quota("b"), tx.Quota("c"))
	}
	tx.SetQuota(gauge("a", false, window("5h", 18000, noon+1)))
	tx.SetQuota(gauge("b", false, window("5h", 18000, noon+1)))
	if tx.Meta.Observed != observed {
		t.Error("one that has not moved reaches them")
	}
	if got := tx.State().Quotas; len(got) != 2 {
		t.Errorf("within the turn: %+v", got)
	}
	tx.ForgetQuota("a")
	tx.ForgetQuota("c")
	if tx.Meta.Observed == observed || len(tx.Quota("a")) > 0 || len(tx.State().Quotas) != 1 {
		t.Errorf("forgotten: %+v", tx.State().Quotas)
	}
	commit(t, st, tx)
	tx = at(st, noon+3*day)
	tx.SetQuota(gauge("b", false)) // all are over
	commit(t, st, tx)
	if row := string(st.Rows[storage.ActivityRow]); strings.Contains(row, "quota:") {
		t.Errorf("left is %s", row)
	}
}

// Gauges are hints: if the row becomes too large, they are dropped.
func TestTooManyGaugesAreDropped(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	for i := range 200 {
		var list []quota.Window
		for range store.MaxWindows {
			list = append(list, quota.Window{Name: "requests-day", Model: fmt.Sprint(len(list), strings.Repeat("m", 200)), ResetsAt: noon + day, Span: 86400, At: noon})
		}
		tx.SetQuota(gauge(fmt.Sprint(i), false, list...))
	}
	tx.Put("error:a", "text")
	if got := commit(t, st, tx); slices.ContainsFunc(got, func(k string) bool { return strings.HasPrefix(k, "quota:") }) {
		t.Errorf("gauges have rows of their own: %v", got)
	}
	row := st.Rows[storage.ActivityRow]
	if n := strings.Count(string(row), "quota:"); len(row) > 256<<10 || n == 0 || n == 200 || !strings.Contains(string(row), "error:a") {
		t.Errorf("%d bytes with %d gauges", len(row), n)
	}
}
