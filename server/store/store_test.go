package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"weir/pkg/machine/storage"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(s *Store, id string, pairs ...string) error {
	var list []storage.Row
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, storage.Row{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return s.Rows(id).Write(list, storage.KeepAlarm)
}

// listed returns rows of a machine.
func listed(t testing.TB, s *Store, id, prefix, start string, limit int) []storage.Row {
	t.Helper()
	rows, err := s.Rows(id).List(prefix, start, limit)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// dump returns every row of every machine, and the alarms.
func dump(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	ids, err := s.Machines()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		for _, r := range listed(t, s, id, "", "", 0) {
			all[id+"/"+r.Key] = string(r.Value)
		}
	}
	alarms, err := s.Alarms()
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range alarms {
		all["alarm of "+id] = fmt.Sprint(at)
	}
	return all
}

func TestRowsAndAlarmsAreThereAfterReopening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "weir")
	s := open(t, dir)
	put(s, "m1", "a", "1", "b", "", "c", "3")
	put(s, "m2", "a", "other")
	s.Rows("m1").Write([]storage.Row{{Key: "c"}}, 1700)
	s.Rows("m2").Write(nil, 1800)
	want := map[string]string{"m1/a": "1", "m1/b": "", "m2/a": "other", "alarm of m1": "1700", "alarm of m2": "1800"}
	if got := dump(t, s); !reflect.DeepEqual(got, want) {
		t.Fatalf("before: %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if got := dump(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("after reopening: %v", got)
	}
	for name, mode := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, FileName): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: mode %v, want %v (%v)", name, info.Mode(), mode, err)
		}
	}
}

func TestListReturnsRowsInOrderOfTheirKeys(t *testing.T) {
	s := open(t, t.TempDir())
	put(s, "m", "a:2", "", "a:1", "", "a:3", "", "b:1", "", "a", "", "a;", "")
	put(s, "m2", "a:9", "")
	for _, c := range []struct {
		prefix, start string
		limit         int
		want          string
	}{
		{"a:", "", 0, "[a:1 a:2 a:3]"},
		{"a:", "a:1", 0, "[a:2 a:3]"},
		{"a:", "a:1", 1, "[a:2]"},
		{"a:", "a:15", 0, "[a:2 a:3]"},
		{"a:", "a:3", 0, "[]"},
		{"a:", "b", 0, "[]"},
		{"", "", 2, "[a a:1]"},
		{"c", "", 0, "[]"},
	} {
		keys := []string{}
		for _, r := range listed(t, s, "m", c.prefix, c.start, c.limit) {
			keys = append(keys, r.Key)
		}
		if got := fmt.Sprint(keys); got != c.want {
			t.Errorf("List(%q, %q, %d) = %s, want %s", c.prefix, c.start, c.limit, got, c.want)
		}
	}
	if rows := listed(t, s, "unknown", "", "", 0); rows != nil {
		t.Errorf("rows of an unknown machine: %v", rows)
	}
}

func TestConcurrentWritesAreAllStored(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const machines, each = 16, 8
	var wg sync.WaitGroup
	for m := range machines {
		wg.Go(func() {
			r := s.Rows(fmt.Sprint("m", m))
			for i := range each {
				key := fmt.Sprint("k", i)
				r.Write([]storage.Row{{Key: key, Value: bytes.Repeat([]byte{byte(i)}, 500)}}, int64(i+1))
				if v, err := r.Get(key); v == nil || err != nil {
					t.Errorf("m%d: %s is missing after its write", m, key)
				}
			}
		})
	}
	wg.Wait()
	want := dump(t, s)
	if len(want) != machines*each+machines {
		t.Errorf("%d rows and alarms", len(want))
	}
	s.Close()
	if got := dump(t, open(t, dir)); !reflect.DeepEqual(got, want) {
		t.Error("other rows after reopening")
	}
}

func TestMachineWithoutRowsIsForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	put(s, "m", "a", "1")
	s.Rows("m").Write([]storage.Row{{Key: "a"}, {Key: "unknown"}}, 0)
	if ids, err := s.Machines(); err != nil || len(ids) != 0 {
		t.Errorf("machines %v, %v", ids, err)
	}
	if v, err := s.Rows("m").Get("a"); v != nil || err != nil {
		t.Error("a removed row is still there")
	}
}

func TestTenThousandMachinesAndOneWithManyRows(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s, 10_000)
	var many []storage.Row
	for i := range 1000 {
		many = append(many, storage.Row{Key: fmt.Sprintf("usage:%04d", i), Value: bytes.Repeat([]byte("u"), 700)})
	}
	s.Rows("many").Write(many, storage.KeepAlarm)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, FileName))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	for i := range 300 {
		s.Rows("many").Write(many[i:i+1], int64(i+1))
	}
	if grown := size() - before; grown > 8*allocSize {
		t.Errorf("300 writes of one row made the file %d bytes larger", grown)
	}
	s.Close()

	s = open(t, dir)
	if ids, err := s.Machines(); err != nil || len(ids) != 10_001 {
		t.Errorf("%d machines, %v", len(ids), err)
	}
	if alarms, err := s.Alarms(); err != nil || len(alarms) != 10_001 {
		t.Errorf("%d alarms, %v", len(alarms), err)
	}
	seen, start := 0, ""
	for {
		page := listed(t, s, "many", "usage:", start, 100)
		for _, r := range page {
			if r.Key != many[seen].Key || !bytes.Equal(r.Value, many[seen].Value) {
				t.Fatalf("row %d is %s", seen, r.Key)
			}
			seen++
		}
		if len(page) < 100 {
			break
		}
		start = page[99].Key
	}
	if seen != len(many) {
		t.Errorf("%d rows, want %d", seen, len(many))
	}
}
