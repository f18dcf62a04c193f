package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofOthers are labels that documents name and the dashboard puts together, or others show: consoles
// of identity providers, Grafana.
var ofOthers = []string{
	"Sign in with a passkey", "Managed by weir.yaml", "Major problems: Partial System Outage — Elevated errors",
	"APIs & Services", "App registrations", "App roles", "Applications", "Assert Roles on Authentication", "Client authentication",
	"Enterprise applications", "OIDC", "OpenID Connect ID Token", "Regular Web Application", "Sign On", "Standard flow", "User Realm Role",
	"Web Application", "Web application", "Dashboards", "Metrics Endpoint",
}

// Pages, fields and buttons that the documents name in italics are those of the dashboard.
func TestLabelsInDocumentsAreThoseOfTheDashboard(t *testing.T) {
	plain := strings.NewReplacer("’", "'", "&amp;", "&")
	var source strings.Builder
	documents := []string{"../../README.md"}
	for _, dir := range []string{"worker/dashboard/src", "pkg/setup", "pkg/catalog", "pkg/provider", "docs"} {
		err := filepath.WalkDir("../../"+dir, func(name string, e fs.DirEntry, err error) error {
			switch ext := filepath.Ext(name); {
			case err != nil:
				return err
			case e.IsDir() && (e.Name() == "reference" || e.Name() == "decisions"):
				return filepath.SkipDir
			case ext == ".md":
				documents = append(documents, name)
			case ext == ".ts", ext == ".tsx", ext == ".go":
				raw, err := os.ReadFile(name)
				source.WriteString(plain.Replace(string(raw)))
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	code := regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	italics := regexp.MustCompile(`(?:^|[^*\w])\*([A-Z][^*\n]{1,60}?)\*(?:[^*\w]|$)`)
	named, labels := map[string]bool{}, 0
	for _, name := range documents {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range italics.FindAllStringSubmatch(code.ReplaceAllString(string(raw), ""), -1) {
			for _, label := range strings.Split(m[1], " → ") {
				labels++
				named[label] = true
				if !slices.Contains(ofOthers, label) && !strings.Contains(source.String(), plain.Replace(label)) {
					t.Errorf("%s: the dashboard shows no %q", name, label)
				}
			}
		}
	}
	for _, label := range ofOthers {
		if !named[label] || strings.Contains(source.String(), plain.Replace(label)) {
			t.Errorf("%q need not be listed", label)
		}
	}
	if labels < 150 {
		t.Errorf("only %d labels", labels)
	}
}
