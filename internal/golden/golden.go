// Package golden compares results with files under testdata.
// GOLDEN=update go test writes them.
package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// JSON compares got, as indented JSON, with testdata/<name>.golden.json.
func JSON(t *testing.T, name string, got any) {
	t.Helper()
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	Bytes(t, name+".golden.json", append(b, '\n'))
}

// Bytes compares got with testdata/<name>.
func Bytes(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name))
	if os.Getenv("GOLDEN") == "update" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has other contents: if the change is intended, run the test with GOLDEN=update and read the diff\n%s",
			file, difference(want, got))
	}
}

// maxShown is the number of lines of each side that difference shows.
const maxShown = 40

// difference returns the lines of want and got between the first and the last
// one in which they differ, with the number of the first.
func difference(want, got []byte) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	first := 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	a, b = a[first:], b[first:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out strings.Builder
	fmt.Fprintf(&out, "line %d:\n", first+1)
	for _, side := range []struct {
		sign  string
		lines []string
	}{{"-", a}, {"+", b}} {
		for i, line := range side.lines {
			if i == maxShown {
				fmt.Fprintf(&out, "%s … %d more lines\n", side.sign, len(side.lines)-i)
				break
			}
			fmt.Fprintf(&out, "%s %s\n", side.sign, line)
		}
	}
	return out.String()
}
