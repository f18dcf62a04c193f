package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTableOfPlatformsIsThatOfTheTests compares the table of platforms.md with the
// end-to-end tests that run on one platform alone.
func TestTableOfPlatformsIsThatOfTheTests(t *testing.T) {
	const tests = "../e2e"
	code := map[string][]string{}
	use := regexp.MustCompile(`\bonly\("(\w+)", "(\w+)"\)`)
	err := filepath.WalkDir(tests, func(name string, _ os.DirEntry, err error) error {
		base, ok := strings.CutSuffix(name, ".test.mjs")
		if err != nil || !ok {
			return err
		}
		text, err := os.ReadFile(name)
		file, _ := filepath.Rel(tests, base)
		for _, m := range use.FindAllStringSubmatch(string(text), -1) {
			key := m[2] + " " + m[1]
			if !slices.Contains(code[key], file) {
				code[key] = append(code[key], filepath.ToSlash(file))
			}
		}
		return err
	})
	if err != nil || len(code) == 0 {
		t.Fatalf("no such tests: %v", err)
	}
	text, err := os.ReadFile("../../docs/reference/platforms.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|[^|]*\\| (.*) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		for _, f := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(m[3], -1) {
			table[m[1]+" "+m[2]] = append(table[m[1]+" "+m[2]], f[1])
		}
	}
	for key, files := range code {
		slices.Sort(files)
		if !slices.Equal(files, table[key]) {
			t.Errorf("%s: the tests are %q, the table has %q", key, files, table[key])
		}
	}
	for key := range table {
		if code[key] == nil {
			t.Errorf("%s: no test has this reason", key)
		}
	}
}
