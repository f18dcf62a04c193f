package rules

import (
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
	for _, file := range sources(t) {
		if !under(file.path, []string{"pkg/", "server/", "worker/", "internal/", "scripts/"}) || filepath.Ext(file.path) != ".go" ||
			strings.HasSuffix(file.path, "_test.go") || strings.HasSuffix(file.path, "_easyjson.go") {
			continue
		}
		files++
		for i, line := range strings.Split(file.text, "\n") {
			if strings.HasPrefix(line, "//\t") || utf8.RuneCountInString(line) <= maxWidth {
				continue
			}
			if n := utf8.RuneCountInString(quoted.ReplaceAllString(line, `""`)); n > maxWidth {
				t.Errorf("%s:%d: %d characters, at most %d", file.path, i+1, n, maxWidth)
			}
		}
	}
	if files < 600 {
		t.Errorf("only %d files were read", files)
	}
}
