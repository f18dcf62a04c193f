// Package rules checks what the runtime asks of the code in pkg/: a request's
// goroutine runs only inside events of its own request, no lock is held while it
// waits for the platform, and the program is small and quick to boot.
//
// golangci-lint would be 221 more modules, and would replace 100 of these lines by 200 of
// settings: depguard the layers, forbidigo the calls, lll the width.
package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// calls that wait, or run later, outside the events of the request.
var calls = map[string]string{
	"time.Sleep": "a pause is an operation of the host", "time.After": "timers do not fire", "time.AfterFunc": "timers do not fire",
	"time.NewTicker": "timers do not fire", "time.NewTimer": "timers do not fire", "time.Tick": "timers do not fire",
	"context.WithTimeout": "a time limit is a field of the call", "context.WithDeadline": "a time limit is a field of the call",
	"context.WithTimeoutCause": "a time limit is a field of the call", "context.WithDeadlineCause": "a time limit is a field of the call",
	"context.AfterFunc": "it starts a goroutine",
	"os.Getenv":         "settings are fields, set in worker/", "os.LookupEnv": "settings are fields, set in worker/", "os.Environ": "settings are fields, set in worker/",
}

// imports that pkg/ does without.
var imports = map[string]string{
	"net/http": "pkg/wire/httpmsg has lighter types", "net": "the platform makes connections", "crypto/tls": "the platform makes connections",
	"syscall/js": "only worker/ knows the platform", "os/exec": "there are no processes",
	"log": "the gateway writes the log", "log/slog": "the gateway writes the log",
}

// source parses the Go files of folders that are no tests.
func source(t *testing.T, folders ...string) (*token.FileSet, []*ast.File) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, folder := range folders {
		err := filepath.WalkDir("../../"+folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			files = append(files, f)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found", len(files))
	}
	return set, files
}

// parse parses the declarations of a file.
func parse(t *testing.T, declarations string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+declarations, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// name returns a name as it is written: "apierr.New", or "" for another expression.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return name(e.X) + "." + e.Sel.Name
	}
	return ""
}

// breaches lists what a file does against the rules.
func breaches(f *ast.File) (out []string, at []token.Pos) {
	found := func(pos token.Pos, format string, args ...any) {
		out, at = append(out, fmt.Sprintf(format, args...)), append(at, pos)
	}
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if why := imports[path]; why != "" {
			found(i.Pos(), "imports %s: %s", path, why)
		}
		if strings.HasPrefix(path, "github.com/syumai/") {
			found(i.Pos(), "imports %s: only worker/ knows the platform", path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found(n.Pos(), "go statement: it would outlive the request's events")
		case *ast.SelectStmt:
			found(n.Pos(), "select: nothing waits for another request")
		case *ast.ChanType:
			found(n.Pos(), "channel: nothing waits for another request")
		case *ast.SelectorExpr:
			if name(n.X) == "sync" && n.Sel.Name != "Mutex" && n.Sel.Name != "RWMutex" {
				found(n.Pos(), "%s: state has a lock beside it; nothing waits for another request", name(n))
			}
			if why := calls[name(n)]; why != "" {
				found(n.Pos(), "%s: %s", name(n), why)
			}
		}
		return true
	})
	// The boot has neither clock nor randomness, and its time is in every cold start.
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false // runs later
				case *ast.CallExpr:
					f := name(n.Fun)
					if strings.HasPrefix(f, "regexp.") || strings.HasPrefix(f, "rand.") || f == "time.Now" {
						found(n.Pos(), "%s at boot", f)
					}
				}
				return true
			})
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				found(d.Pos(), "init function: tables are static, or made on first use")
			}
		}
	}
	return out, at
}

func TestPkgKeepsToItsEvents(t *testing.T) {
	set, files := source(t, "pkg")
	for _, f := range files {
		out, at := breaches(f)
		for i, what := range out {
			t.Errorf("%s: %s", set.Position(at[i]), what)
		}
	}
}

// A rule that finds nothing proves nothing: each must find its own breach.
func TestRulesFindBreaches(t *testing.T) {
	tests := map[string]string{
		"go statement":         "func f() { go f() }",
		"sleep":                "func f() { time.Sleep(1) }",
		"time limit":           "func f() { context.WithTimeout(nil, 1) }",
		"select":               "func f() { select {} }",
		"channel":              "var c chan int",
		"environment":          "func f() { os.Getenv(\"A\") }",
		"net/http":             "import \"net/http\"",
		"platform":             "import \"github.com/syumai/workers\"",
		"wait group":           "var wg sync.WaitGroup",
		"regexp at boot":       "var re = regexp.MustCompile(\"a\")",
		"clock at boot":        "var start = time.Now()",
		"init":                 "func init() {}",
		"regexp inside a list": "var list = []any{regexp.MustCompile(\"a\")}",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if out, _ := breaches(parse(t, text)); len(out) != 1 {
				t.Errorf("got %q, want one breach", out)
			}
		})
	}
	stands := "var f = func() { regexp.MustCompile(\"a\") }\nvar t time.Time\ntype s struct{ mu sync.Mutex }"
	if out, _ := breaches(parse(t, stands)); len(out) != 0 {
		t.Errorf("got %q for code that may stand", out)
	}
}

// Packages that pull in a client, a server or TLS make the program too large
// and its boot too slow. (github.com/syumai/workers imports net/http for types,
// in worker/ alone; the code that easyjson generates imports net for one type.)
func TestGatewayHasNoHeavyImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./pkg/gateway")
	cmd.Dir = "../.."
	cmd.Env = append(cmd.Environ(), "GOOS=js", "GOARCH=wasm")
	b, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(b))
	if !slices.Contains(deps, "weir/pkg/auth") {
		t.Fatal("the list of packages is not that of the gateway")
	}
	for _, heavy := range []string{"net/http", "crypto/tls", "crypto/x509", "html/template", "text/template", "database/sql", "go/parser"} {
		if slices.Contains(deps, heavy) {
			t.Errorf("the gateway imports %s", heavy)
		}
	}
}
