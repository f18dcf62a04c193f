package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"weir/pkg/machine/storage"
)

// BenchmarkWrite measures one durable write of a machine, alone and with many
// machines that write at once. See docs/decisions/0062-native-storage.md.
func BenchmarkWrite(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprint("machines=", writers), func(b *testing.B) {
			s := open(b, b.TempDir())
			value := bytes.Repeat([]byte("v"), 600)
			var n atomic.Int64
			before := s.newest()
			b.SetParallelism(writers) // times GOMAXPROCS
			b.RunParallel(func(p *testing.PB) {
				r := s.Rows(fmt.Sprint("machine", n.Add(1)))
				for p.Next() {
					r.Write([]storage.Row{{Key: "meta", Value: value}, {Key: "connection:1", Value: value}}, 1)
				}
			})
			b.ReportMetric(float64(b.N)/float64(s.newest()-before), "writes/commit")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	s := open(b, b.TempDir())
	put(s, "m", "meta", string(bytes.Repeat([]byte("v"), 600)))
	r := s.Rows("m")
	b.ReportAllocs()
	for b.Loop() {
		r.Get("meta")
	}
}

func BenchmarkListHundredRows(b *testing.B) {
	s := open(b, b.TempDir())
	for i := range 100 {
		put(s, "m", fmt.Sprintf("usage:%03d", i), string(bytes.Repeat([]byte("v"), 200)))
	}
	r := s.Rows("m")
	b.ReportAllocs()
	for b.Loop() {
		r.List("usage:", "", 0)
	}
}

// BenchmarkOpen measures the check of a whole file of 10,000 machines.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	fill(b, s, 10_000)
	s.Close()
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		s, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// fill writes four rows and an alarm of each of some machines.
func fill(t testing.TB, s *Store, machines int) {
	t.Helper()
	value := bytes.Repeat([]byte("v"), 600)
	var batch []*write
	for m := range machines {
		w := &write{id: fmt.Sprintf("machine%08d", m), alarm: int64(m + 1)}
		for r := range 4 {
			w.rows = append(w.rows, storage.Row{Key: fmt.Sprint("row", r), Value: value})
		}
		if batch = append(batch, w); len(batch) == 1000 || m == machines-1 {
			if err := s.commitOne(batch); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
}
