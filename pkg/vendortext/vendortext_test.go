package vendortext

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const page = "../../docs/vendor-texts.md"

// The published page has exactly the rows of the table.
func TestPageListsTheTable(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, found := strings.Cut(string(raw), "\n| ")
	if !found {
		t.Fatal("the page has no table")
	}
	var b strings.Builder
	b.WriteString(intro + "\n| Kind | Vendor | Text | Source |\n|---|---|---|---|\n")
	for _, r := range Table {
		text := strings.ReplaceAll(strings.ReplaceAll(r.Text, "\n", "⏎"), "|", "\\|")
		fmt.Fprintf(&b, "| %s | %s | ``%s`` | %s |\n", r.Kind, r.Vendor, " "+text+" ", r.Source)
	}
	if b.String() == string(raw) {
		return
	}
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("docs/vendor-texts.md differs from the table: run GOLDEN=update go test ./pkg/vendortext")
}

func TestMatch(t *testing.T) {
	tests := []struct {
		kind           Kind
		field, message string
		want           bool
	}{
		{RefusesField, "max_completion_tokens", "Unrecognized request argument supplied: max_completion_tokens", true},
		{RefusesField, "max_completion_tokens", "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 8192}]", true},
		{RefusesField, "max_completion_tokens", "Unrecognized request argument supplied: functions", false},
		{RefusesField, "max_completion_tokens", "max_completion_tokens is too large: 99999999", false},
		{RefusesDeveloper, "", "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`", true},
		{RefusesDeveloper, "", "ask your developer", false},
	}
	for _, tt := range tests {
		if got := Match(tt.kind, tt.field, tt.message); got != tt.want {
			t.Errorf("Match(%s, %q, %q) = %v", tt.kind, tt.field, tt.message, got)
		}
	}
}
