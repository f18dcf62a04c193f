package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxWidth is the length of a line of the product's Go, in characters. A text in quotes
// stands on one line however long it is, and so do the tables of comments.
const maxWidth = 120

var quoted = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`")

func TestLinesAreShort(t *testing.T) {
	files := 0
	for _, root := range []string{"pkg", "server", "worker", "internal", "scripts"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, d os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
				strings.HasSuffix(path, "_easyjson.go") {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				if strings.HasPrefix(line, "//\t") || utf8.RuneCountInString(line) <= maxWidth {
					continue
				}
				if n := utf8.RuneCountInString(quoted.ReplaceAllString(line, `""`)); n > maxWidth {
					t.Errorf("%s:%d: %d characters, at most %d", path, i+1, n, maxWidth)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 600 {
		t.Errorf("only %d files were read", files)
	}
}
