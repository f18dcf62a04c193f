package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/storage"
)

// written records the keys that a storage writes from now on, "alarm" for the
// alarm.
func written(st *objects.Storage) *[]string {
	var keys []string
	st.Fault = func(key string) bool { keys = append(keys, key); return false }
	return &keys
}

func keysOf(rows []storage.Row) (keys []string) {
	for _, r := range rows {
		keys = append(keys, r.Key)
	}
	return keys
}

func TestMachineExistsFromItsCreationToItsDeletion(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	if tx.Exists() {
		t.Error("exists before its creation")
	}
	tx.Create("demo")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if !tx.Exists() {
		t.Error("does not exist")
	}
	tx.Create("again")
	if tx.Meta.Name != "demo" {
		t.Errorf("created again as %q", tx.Meta.Name)
	}
	// An alarm may not know whose it is.
	if got := storage.Open(st, "", time.UnixMilli(noon), nil).ID; got != sealed.MachineID {
		t.Errorf("read as %q", got)
	}
	if got := storage.Open(st, "named", time.UnixMilli(noon), nil).ID; got != "named" {
		t.Errorf("renamed to %q", got)
	}
	if tx.Meta.Deleted = true; tx.Exists() {
		t.Error("exists after its deletion")
	}
}

func TestListIsAsTheTurnHasLeftIt(t *testing.T) {
	st := objects.NewStorage()
	for _, k := range []string{"job:b", "job:d", "job:f", "other"} {
		st.Rows[k] = []byte(`1`)
	}
	tx := at(st, noon)
	if got := keysOf(tx.List("job:")); !slices.Equal(got, []string{"job:b", "job:d", "job:f"}) {
		t.Errorf("unchanged: %v", got)
	}
	tx.Del("job:b")
	for _, k := range []string{"job:g", "job:c", "job:a", "job:d", "job:e", "others"} {
		tx.Put(k, 2)
	}
	rows := tx.List("job:")
	if got := keysOf(rows); !slices.Equal(got, []string{"job:a", "job:c", "job:d", "job:e", "job:f", "job:g"}) {
		t.Errorf("changed: %v", got)
	}
	if string(rows[2].Value) != "2" || string(rows[4].Value) != "1" {
		t.Errorf("values: %s, %s", rows[2].Value, rows[4].Value)
	}
}

func TestPagesReadEachUnchangedRowOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5} {
		st := objects.NewStorage()
		var want []string
		for i := range n {
			key := fmt.Sprintf("job:%d", i)
			st.Rows[key] = []byte(`1`)
			if i != 1 {
				want = append(want, key)
			}
		}
		tx := at(st, noon)
		tx.Put("job:1", 2)
		var got []string
		tx.Pages("job:", 2, func(r storage.Row) bool {
			got = append(got, r.Key)
			return true
		})
		if !slices.Equal(got, want) {
			t.Errorf("%d rows: %v", n, got)
		}
		got = nil
		tx.Pages("job:", 2, func(r storage.Row) bool {
			got = append(got, r.Key)
			return len(got) < 2
		})
		if !slices.Equal(got, want[:min(2, len(want))]) {
			t.Errorf("two of %d rows: %v", n, got)
		}
	}
}

func TestGenerationMovesOncePerTurn(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	tx.Create("demo")
	tx.Touch()
	if tx.Touch("keys"); tx.Meta.Generation != 1 || !tx.Meta.Dirty {
		t.Errorf("generation %d, dirty %v", tx.Meta.Generation, tx.Meta.Dirty)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := tx.Touch("keys"); got != 2 || tx.Meta.Changed["keys"] != 2 || tx.Meta.Changed["providers"] != 1 {
		t.Errorf("generation %d, changed %v", got, tx.Meta.Changed)
	}
}

func TestCommitWritesOnlyChanges(t *testing.T) {
	st := objects.NewStorage()
	keys := written(st)
	commit := func(tx *storage.Tx, want ...string) {
		t.Helper()
		*keys = nil
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		st.Flush()
		if slices.Sort(*keys); !slices.Equal(*keys, want) {
			t.Errorf("written %v, want %v", *keys, want)
		}
	}
	tx := at(st, noon)
	commit(tx)
	tx.Put("job:a", 1)
	commit(tx, "job:a") // there is no machine
	tx.Create("demo")
	commit(tx, "alarm", "meta", "settings")
	commit(tx)
	tx.Meta.Name = "renamed"
	commit(tx, "meta") // the alarm is set
	commit(at(st, noon))
	tx.Meta.Generation, tx.Meta.Name = 0, "before its creation"
	commit(tx, "meta") // the row is there
}

func TestRowIsBounded(t *testing.T) {
	for _, size := range []int{1 << 20, 1<<20 + 1} {
		st := objects.NewStorage()
		tx := at(st, noon)
		tx.Set("job:small", []byte("1"))
		tx.Set("job:large", []byte(strings.Repeat("1", size)))
		err := tx.Commit()
		st.Flush()
		if refused := size > 1<<20; (err != nil) != refused || (len(st.Rows) == 0) != refused {
			t.Errorf("%d bytes: %v, %d rows", size, err, len(st.Rows))
		}
	}
}

func TestEncodedValues(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{map[string]string{"a": "<&>"}, `{"a":"<&>"}`},
		{storage.EncodeJSON([]int{1}), `[1]`},
		{func() {}, `{}`},
	} {
		if got := string(storage.Encode(tt.value)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	if got := storage.Milliseconds(1500); got != 1500*time.Millisecond {
		t.Errorf("1500 ms are %s", got)
	}
}
