package rules

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// CI runs the code of pull requests: no action changes under a tag, and the container has
// only the capabilities that the tests need.
func TestWorkflowsPinTheirActions(t *testing.T) {
	file := "../../.github/workflows/ci.yml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	uses := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "--privileged") {
			t.Errorf("%s: the container has every capability", file)
		}
		if _, action, ok := strings.Cut(line, "uses: "); ok {
			if uses++; !pinned.MatchString(strings.TrimSpace(action)) {
				t.Errorf("%s: %s is not a commit with its version behind it", file, strings.TrimSpace(action))
			}
		}
	}
	if uses == 0 {
		t.Error("no action was found")
	}
}
