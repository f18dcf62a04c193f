package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ofDashboard are the calls that the dashboard makes beside the API, each with the reason.
var ofDashboard = map[string]string{
	"GET /api/features": "the optional routes of a build, which the dashboard of that build shows or hides",
}

// quoted is a text in the source of the dashboard.
const quoted = `("[^"]*"|` + "`[^`]*`)"

var (
	machineCall = regexp.MustCompile(`\b(?:machine|this)\.(get|list|post|put|del)(?:<[^()]*>)?\(\s*` + quoted)
	taggedCall  = regexp.MustCompile(`\.tagged(?:<[^()]*>)?\(\s*"([A-Z]+)",\s*` + quoted)
	directCall  = regexp.MustCompile(`\b(?:call|raw)(?:<[^()]*>)?\(\s*"([A-Z]+)",\s*` + quoted)
	download    = regexp.MustCompile(`\bmachine\.at\(\s*` + quoted)
	inserted    = regexp.MustCompile(`\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}`)
)

// dashboardCalls returns the calls in the source of the dashboard, METHOD path, with x for what
// is inserted. A path in a variable begins with x.
func dashboardCalls(t *testing.T) map[string]string {
	t.Helper()
	methods := map[string]string{"get": "GET", "list": "GET", "post": "POST", "put": "PUT", "del": "DELETE"}
	calls := map[string]string{} // by call, its file
	err := filepath.WalkDir("../../worker/dashboard/src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(filepath.Ext(path), ".ts") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		add := func(method, prefix, to string) {
			to, _, _ = strings.Cut(inserted.ReplaceAllStringFunc(to[1:len(to)-1], func(v string) string {
				if strings.Contains(v, `"?`) {
					return "?" // a query, or none
				}
				return "x"
			}), "?")
			if !strings.HasPrefix(to, "x/") {
				to = prefix + to
			}
			calls[method+" "+to] = path
		}
		for _, m := range machineCall.FindAllStringSubmatch(string(raw), -1) {
			add(methods[m[1]], "/api", m[2])
		}
		for _, m := range taggedCall.FindAllStringSubmatch(string(raw), -1) {
			add(m[1], "/api", m[2])
		}
		for _, m := range directCall.FindAllStringSubmatch(string(raw), -1) {
			add(m[1], "", m[2])
		}
		for _, m := range download.FindAllStringSubmatch(string(raw), -1) {
			add("GET", "/api", m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// Every call of the dashboard is an operation of the API. TestEveryCommandOnAServer finds that
// each operation has a command, or a reason in withoutCommand; so both can do the same.
func TestCallsOfTheDashboardAreOperations(t *testing.T) {
	paths := operations(t)
	braces := regexp.MustCompile(`\{[^}]*\}`)
	documented := func(call string) bool {
		method, path, _ := strings.Cut(call, " ")
		for pattern, methods := range paths {
			_, is := methods[strings.ToLower(method)]
			of := regexp.MustCompile("^" + braces.ReplaceAllString(pattern, "[^/]+") + "$")
			plain := braces.ReplaceAllString(pattern, "x")
			if is && (of.MatchString(path) || strings.HasPrefix(path, "x/") && strings.HasSuffix(plain, path[1:])) {
				return true
			}
		}
		return false
	}
	calls := dashboardCalls(t)
	for call, file := range calls {
		if !documented(call) && ofDashboard[call] == "" {
			t.Errorf("%s: %s is no operation of docs/reference/openapi.json", file, call)
		}
	}
	for call := range ofDashboard {
		if calls[call] == "" {
			t.Errorf("the dashboard does not call %s", call)
		}
	}
	if len(calls) < 60 {
		t.Errorf("only %d calls were found", len(calls))
	}
}
