package budget

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	dashboardFile = "../../worker/dashboard/src/pages/budgets/windows.ts"
	guideFile     = "../../docs/guides/budgets.md"
)

// The dashboard has the windows of the table. GOLDEN=update go test ./pkg/budget writes its
// list. The guide names them all.
func TestDashboardAndGuideHaveTheWindows(t *testing.T) {
	var b strings.Builder
	b.WriteString("// Written by GOLDEN=update go test ./pkg/budget; DO NOT EDIT.\n\n" +
		"// windowNames are the windows of budgets as the form and the list show them.\n" +
		"export const windowNames = {\n")
	identifier := regexp.MustCompile(`^[a-z]+$`)
	list := func(text func(window) string) {
		for _, w := range windows {
			name := w.name
			if !identifier.MatchString(name) {
				name = fmt.Sprintf("%q", name)
			}
			fmt.Fprintf(&b, "  %s: %q,\n", name, text(w))
		}
	}
	list(func(w window) string { return w.label })
	b.WriteString("};\n\n// perWindow are what follows the limit of a budget.\nexport const perWindow = {\n")
	list(func(w window) string { return w.text })
	b.WriteString("};\n\nexport type BudgetWindow = keyof typeof windowNames;\n")
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile(dashboardFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(dashboardFile); err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the table says (%v): run GOLDEN=update go test ./pkg/budget", dashboardFile, err)
	}
	guide, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(guide)) {
		if !strings.HasPrefix(row, "| `window` |") {
			continue
		}
		for _, w := range windows {
			if !strings.Contains(row, "`"+w.name+"`") {
				t.Errorf("%s does not name the window %s", guideFile, w.name)
			}
		}
		return
	}
	t.Errorf("%s has no row of windows", guideFile)
}
