//go:build unix

package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/pkg/machine/storage"
	"weir/server/objects"
	"weir/server/postgres"
	"weir/server/store"
)

// contents returns the machines of a place as one text.
func contents(t *testing.T, e objects.Engine) string {
	t.Helper()
	var b strings.Builder
	if err := e.Each(t.Context(), func(id string, rows []storage.Row, alarm int64) error {
		fmt.Fprintf(&b, "%s %d %x\n", id, alarm, digestOf(rows))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func contentsOfDir(t *testing.T, dir string) string {
	t.Helper()
	st, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	return contents(t, st)
}

func openTest(t *testing.T, url string) *postgres.Engine {
	t.Helper()
	e, err := postgres.Open(url, "test", func(_ int, line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// Machines move from a folder to a database and back, and a backup of the database is such a
// folder. The command may be repeated; it overwrites nothing.
func TestMachinesMoveToADatabaseAndBack(t *testing.T) {
	url := databases.New(t)
	home := t.TempDir()
	from := filepath.Join(home, "from")
	st, err := store.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"aaaaaaaa00000001", "aaaaaaaa00000002", "registry"} {
		rows := []storage.Row{{Key: "meta", Value: []byte(`{"generation":1}`)}, {Key: "big", Value: make([]byte, 1<<20)}}
		for n := range 500 {
			rows = append(rows, storage.Row{Key: fmt.Sprintf("audit:%06d", n), Value: fmt.Append(nil, i, n, "\x00\xff")})
		}
		if err := st.Rows(id).Write(rows, int64(i)*1_900_000_000_000); err != nil {
			t.Fatal(err)
		}
	}
	want := contents(t, st)
	move := func(code int, text string, args ...string) {
		t.Helper()
		got, out, failed := output(t, home, nil, append([]string{"migrate"}, args...)...)
		if got != code || !strings.Contains(out+failed, text) || strings.Count(failed, "\n") > 1 {
			t.Errorf("%q: exit %d, %s%s, want %d, %s", args, got, out, failed, code, text)
		}
	}
	move(1, "in use by another process", "--from", from, "--to", url)
	st.Close()
	move(2, "name both places", "--from", from)
	move(1, "no database in", "--from", filepath.Join(home, "none"), "--to", url)
	move(0, "Machines copied and compared: 2, there already: 0", "--from", from, "--to", url)
	move(0, "Machines copied and compared: 0, there already: 2", "--from", from, "--to", url)
	e := openTest(t, url)
	if got := contents(t, e); got != want {
		t.Errorf("in the database:\n%s\nwant:\n%s", got, want)
	}
	move(1, "servers that use it: 1; stop them first", "--from", url, "--to", filepath.Join(home, "to"))
	backup := filepath.Join(home, "restored", store.FileName)
	os.Mkdir(filepath.Dir(backup), 0o700)
	if code, out, failed := output(t, home, []string{"DATABASE_URL=" + url}, "backup", backup); code != 0 {
		t.Fatalf("backup: %d %s %s", code, out, failed)
	}
	if got := contentsOfDir(t, filepath.Dir(backup)); got != want {
		t.Errorf("in the backup:\n%s\nwant:\n%s", got, want)
	}
	e.Rows("aaaaaaaa00000001").Write([]storage.Row{{Key: "meta", Value: []byte(`{"generation":2}`)}}, storage.KeepAlarm)
	e.Release("aaaaaaaa00000001")
	e.Close()
	move(1, "machine aaaaaaaa00000001: the target has it already, with other rows", "--from", from, "--to", url)
	move(0, "Machines copied and compared: 2", "--from", url, "--to", filepath.Join(home, "to"))
	if got := contentsOfDir(t, filepath.Join(home, "to")); got == want || strings.Count(got, "\n") != 3 {
		t.Errorf("moved back: %s", got)
	}
}
