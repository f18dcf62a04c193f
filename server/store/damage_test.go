package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"weir/pkg/machine/storage"
)

func yield() { runtime.Gosched() }

// sample closes a data file with several machines, one of them with many rows
// and large ones, and returns its content before and after the last commit.
func sample(t *testing.T) (file []byte, before, after map[string]string) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s, 20)
	rows := []storage.Row{{Key: "huge", Value: bytes.Repeat([]byte("y"), 20_000)}}
	for i := range 300 {
		rows = append(rows, storage.Row{Key: fmt.Sprintf("row%03d", i), Value: bytes.Repeat([]byte("x"), i)})
	}
	s.Rows("large").Write(rows, storage.KeepAlarm)
	for i := range 10 {
		s.Rows("large").Write([]storage.Row{{Key: fmt.Sprintf("row%03d", 20*i)}}, storage.KeepAlarm)
	}
	before = dump(t, s)
	s.Rows("last").Write([]storage.Row{{Key: "k", Value: []byte("v")}}, 9)
	after = dump(t, s)
	s.Close()
	file, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := readMeta(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return file[:int(meta.pages)*pageSize], before, after
}

// refused opens a directory that has only this data file, and reports whether
// that was refused with one line that names the file, which then is unchanged.
func refused(t *testing.T, file []byte, want string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err == nil {
		s.Close()
		t.Fatalf("opened, want an error with %q", want)
	}
	if text := err.Error(); !strings.HasPrefix(text, path+": ") || strings.Contains(text, "\n") || !strings.Contains(text, want) || !strings.Contains(text, "; ") {
		t.Errorf("error %q, want one line with %q", text, want)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, file) {
		t.Errorf("the file has changed: %v", err)
	}
}

// A regression: a file whose newer meta page was damaged opened as it was before its
// last commit, without a word.
func TestDamagedMetaPageIsReported(t *testing.T) {
	file, _, _ := sample(t)
	for at, want := range map[int]bool{-1: false, 0: true, pageSize: true} {
		dir := t.TempDir()
		b := bytes.Clone(file)
		if at >= 0 {
			b[at+pageHeader+40] ^= 1
		}
		if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err != nil {
			t.Fatalf("damage at %d: %v", at, err)
		}
		if s.Damaged != want {
			t.Errorf("damage at %d: reported %v", at, s.Damaged)
		}
		s.Close()
	}
}

func TestUnusableFilesAreRefusedAndNotChanged(t *testing.T) {
	file, _, _ := sample(t)
	meta, err := readMeta(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	without := bytes.Clone(file)
	clear(without[int(meta.root)*pageSize:][:pageSize])
	leaked := bytes.Clone(file) // its list of free pages is one shorter
	leaked[int(meta.freelist)*pageSize+10]--
	foreign := func(fill func(tx *bolt.Tx) error) []byte {
		path := filepath.Join(t.TempDir(), "foreign.db")
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(fill); err != nil {
			t.Fatal(err)
		}
		db.Close()
		b, _ := os.ReadFile(path)
		return b
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "not a data file"},
		{"zeroed", make([]byte, len(file)), "not a data file"},
		{"text", []byte(strings.Repeat("hello\n", 5000)), "not a data file"},
		{"SQLite", append([]byte("SQLite format 3\x00"), make([]byte, 8192)...), "not a data file"},
		{"first page alone", file[:pageSize], "truncated"},
		{"part of the first page", file[:50], "not a data file"},
		{"half", file[:len(file)/2], "truncated"},
		{"all but a byte", file[:len(file)-1], "truncated"},
		{"a page of zeros", without, "damaged"},
		{"a page neither used nor free", leaked, "neither used nor free"},
		{"another program's database", foreign(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("other"))
			return err
		}), "not a data file of weir"},
		{"empty database", foreign(func(*bolt.Tx) error { return nil }), "not a data file of weir"},
		{"newer format", foreign(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte(infoBucket))
			if err != nil {
				return err
			}
			return b.Put([]byte(formatKey), []byte("\x00\x00\x00\x0022"))
		}), `format "22"`},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.file, c.want) })
	}
	t.Run("directory", func(t *testing.T) {
		dir := t.TempDir()
		os.Mkdir(filepath.Join(dir, FileName), 0o700)
		if s, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Errorf("%v, %v", s, err)
		}
	})
}

// A count of zero is valid for an empty bucket, so it must not hide the elements
// of one that is not.
func TestLostCountOfElementsIsFound(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(s, "inline", "k", "v")
	big := string(bytes.Repeat([]byte("x"), pageSize/2))
	put(s, "page", "k", big)
	s.Rows("page").Write(nil, 9)
	s.Rows("page").Write(nil, 0) // leaves an empty bucket of alarms, which is valid
	s.Close()
	open(t, dir).Close()
	file, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for at := 0; at+pageHeader+elementSize <= len(file); at++ {
		// The header of a leaf with one element whose key is "k".
		leaf := file[at:]
		if u16(leaf[8:]) != leafPage || u16(leaf[10:]) != 1 || u32(leaf[12:]) != 0 || u32(leaf[pageHeader:]) != 0 || u32(leaf[pageHeader+8:]) != 1 {
			continue
		}
		lost := bytes.Clone(file)
		lost[at+10] = 0
		path := filepath.Join(t.TempDir(), FileName)
		if err := os.WriteFile(path, lost, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(filepath.Dir(path)); err == nil {
			if got := dump(t, s); len(got) != 2 {
				t.Errorf("offset %d: rows are lost: %d of 2", at, len(got))
			}
			s.Close()
			continue
		}
		changed++
	}
	if changed < 2 {
		t.Errorf("%d files were refused, want that of the row in a page and that of the inline row", changed)
	}
}

// Random damage is found when the file is opened, or the file reads as it was
// written: after the last commit, or before it if its page of the last commit
// was hit.
func TestRandomDamageIsNeverRead(t *testing.T) {
	file, before, after := sample(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	path := filepath.Join(t.TempDir(), FileName)
	opened, rounds := 0, 150
	if os.Getenv("SOAK") != "" {
		rounds = 20_000
	}
	for round := range rounds {
		damaged := bytes.Clone(file)
		switch round % 5 {
		case 0: // bits
			for range 1 + rnd.IntN(8) {
				damaged[rnd.IntN(len(damaged))] ^= 1 << rnd.IntN(8)
			}
		case 1: // bytes side by side
			at := rnd.IntN(len(damaged) - 64)
			for i := range 64 {
				damaged[at+i] = byte(rnd.Uint32())
			}
		case 2: // a page in the place of another
			n := len(damaged) / pageSize
			from, to := rnd.IntN(n)*pageSize, rnd.IntN(n)*pageSize
			copy(damaged[to:to+pageSize], damaged[from:from+pageSize])
		case 3: // numbers of a page's header and of its first elements
			at := rnd.IntN(len(damaged)/pageSize)*pageSize + rnd.IntN(64)
			damaged[at] = byte(rnd.Uint32())
		case 4: // a field of a meta page, with the checksum that it then has
			meta := damaged[rnd.IntN(2)*pageSize+pageHeader:][:metaSize]
			field := meta[16+8*rnd.IntN(5):]
			binary.LittleEndian.PutUint64(field, rnd.Uint64N(uint64(len(file)/pageSize+2)))
			sum := fnv.New64a()
			sum.Write(meta[:metaSize-8])
			binary.LittleEndian.PutUint64(meta[metaSize-8:], sum.Sum64())
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(filepath.Dir(path))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("round %d: %q", round, err)
			}
			continue
		}
		opened++
		if got := dump(t, s); !reflect.DeepEqual(got, after) && !reflect.DeepEqual(got, before) {
			t.Errorf("round %d: damaged rows are read: %d, not %d", round, len(got), len(after))
		}
		if err := attempt(s, "new", "k", "v"); err != nil {
			t.Errorf("round %d: write: %v", round, err)
		}
		s.Close()
	}
	if opened == 0 || opened == rounds {
		t.Errorf("%d of %d files were opened", opened, rounds)
	}
}

func TestFileTruncatedWhileOpenFailsReadsAndWrites(t *testing.T) {
	for _, pages := range []int64{0, 1, 3, 20} {
		dir := t.TempDir()
		s := open(t, dir)
		fill(t, s, 100)
		if err := os.Truncate(filepath.Join(dir, FileName), pages*pageSize); err != nil {
			t.Skip(err) // Windows refuses
		}
		failed := 0
		read := func(id string) {
			if _, err := s.Rows(id).List("", "", 0); err != nil {
				failed++
				if !errors.Is(err, storage.ErrStorage) {
					t.Errorf("%d pages: read: %v", pages, err)
				}
			}
		}
		for m := range 100 {
			id := fmt.Sprintf("machine%08d", m)
			read(id)
			if err := attempt(s, id, "row0", "v"); err != nil && !errors.Is(err, storage.ErrStorage) {
				t.Errorf("%d pages: write: %v", pages, err)
			}
		}
		if failed == 0 {
			t.Errorf("%d pages: no read failed", pages)
		}
		s.Close()
	}
}

func TestOtherFilesInTheDirectoryAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(open(t, dir), "m", "k", "v")
	if b, err := os.ReadFile(notes); string(b) != "mine" || err != nil {
		t.Errorf("notes.txt: %q, %v", b, err)
	}
}

func TestDirectoryThatIsAFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{path, filepath.Join(path, "below")} {
		if s, err := Open(dir); err == nil || !strings.Contains(err.Error(), "choose another") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", dir, s, err)
		}
	}
}

// A regression: the process id was written to the file that a link led to.
func TestLockThatIsALinkIsRefused(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, LockName)); err != nil {
		t.Skip(err)
	}
	if s, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("%v, %v", s, err)
	}
	if got, err := os.ReadFile(other); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}
