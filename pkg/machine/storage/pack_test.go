package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
)

// today is the UTC day of noon.
var today = storage.DayOf(noon)

// commit writes a turn and returns the keys of the stored rows besides "meta".
func commit(t *testing.T, st *objects.Storage, tx *storage.Tx) []string {
	t.Helper()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	st.Flush()
	return keysOf(st.Listed(""))
}

func TestRowsThatCallsChangeAreOneRow(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	packed := []string{"cool:a:", "error:a", "health:a", "refusal:a", "requests", "usage:" + today + ":x", "usages:" + today}
	for _, k := range packed {
		tx.Put(k, k)
	}
	tx.Put("job:a", "a")
	if got := commit(t, st, tx); !slices.Equal(got, []string{storage.ActivityRow, "job:a"}) {
		t.Errorf("stored %v", got)
	}
	tx = at(st, noon)
	for _, k := range packed {
		var got string
		if tx.Load(k, &got); got != k {
			t.Errorf("%s: got %q", k, got)
		}
	}
	for prefix, want := range map[string][]string{"error:": {"error:a"}, "err": {"error:a"}, "error:a": {"error:a"}, "error:b": nil, "job:": {"job:a"}, "usage": packed[5:]} {
		if got := keysOf(tx.List(prefix)); !slices.Equal(got, want) {
			t.Errorf("under %s: %v", prefix, got)
		}
	}
	for _, k := range packed {
		tx.Del(k)
	}
	commit(t, st, tx)
	if got := keysOf(at(st, noon).List("e")); len(got) != 0 || len(st.Rows[storage.ActivityRow]) != 0 {
		t.Errorf("removed, left are %v", got)
	}
}

// A packed row counts, not one of its own from an earlier build or taken out of
// the common row.
func TestPackedRowOverridesARowOfItsOwn(t *testing.T) {
	st := objects.NewStorage()
	for _, k := range []string{"error:a", "error:b", "error:d"} {
		st.Rows[k] = []byte(`"old"`)
	}
	tx := at(st, noon)
	for _, k := range []string{"error:b", "error:c", "error:e"} {
		tx.Put(k, "new")
	}
	commit(t, st, tx)
	for _, size := range []int{1, 2, 3, 10} {
		var got []string
		at(st, noon).Pages("error:", size, func(r storage.Row) bool {
			got = append(got, r.Key+"="+string(r.Value))
			return true
		})
		if want := []string{`error:a="old"`, `error:b="new"`, `error:c="new"`, `error:d="old"`, `error:e="new"`}; !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %v", size, got)
		}
	}
	tx = at(st, noon)
	tx.Del("error:b")
	commit(t, st, tx)
	if _, ok := at(st, noon).Get("error:b"); ok {
		t.Error("the old row is back")
	}
}

func TestRowsThatChangeNoMoreLeaveTheCommonRow(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Put("usage:"+storage.DayOf(noon-day)+":x", 1)
	tx.Put("usage:"+today+":x", 1)
	tx.AddRequests(answered(perPage+1), 0, 0)
	want := []string{storage.ActivityRow, pageRow(0), "usage:" + storage.DayOf(noon-day) + ":x"}
	if got := commit(t, st, tx); !slices.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
	tx = at(st, noon)
	tx.AddRequests(answered(perPage-1), 0, 0) // the second page is full too
	want = append(want[:2:2], pageRow(1), want[2])
	if got := commit(t, st, tx); !slices.Equal(got, want) {
		t.Errorf("after a full page: %v, want %v", got, want)
	}
}

// The common row has at most 256 KiB, and 128 KiB once the largest are out.
func TestLargestRowsLeaveAFullCommonRow(t *testing.T) {
	const each = 1 << 10 // bytes of a line: its key, a tab, the value, a line break
	fill := func(lines, more int) []string {
		st := objects.NewStorage()
		tx := at(st, noon)
		for i := range lines {
			key := fmt.Sprintf("error:%03d", i)
			n := each - len(key) - len("\t\n") - len(`""`)
			if i == 0 {
				n += more
			}
			tx.Put(key, strings.Repeat("e", n))
		}
		got := commit(t, st, tx)
		if n := len(keysOf(at(st, noon).List("error:"))); n != lines {
			t.Errorf("%d lines: %d are left", lines, n)
		}
		if size := len(st.Rows[storage.ActivityRow]); size > 256<<10 {
			t.Errorf("%d lines: the row has %d bytes", lines, size)
		}
		return got[1:]
	}
	if got := fill(256, 0); len(got) != 0 {
		t.Errorf("256 KiB: %d rows of their own", len(got))
	}
	if got := fill(256, 1); len(got) != 128 || got[0] != "error:000" {
		t.Errorf("a byte more: %d rows of their own", len(got))
	}
	if got := fill(256, 129<<10); len(got) != 128 || got[0] != "error:000" {
		t.Errorf("a large row more: %d rows of their own", len(got))
	}
	if got := fill(200, 130<<10); len(got) != 72 || got[0] != "error:000" {
		t.Errorf("a large row among others: %d rows of their own", len(got))
	}
}
