package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// A port has one stand-in for all native tests, in internal/testgw: a test that
// needs another behaviour scripts that one. Packages of a platform are exempt,
// because their tests are of the ports themselves.
func TestOnlyTheTestWorldStandsInForPorts(t *testing.T) {
	allowed := map[string]string{
		"pkg/gateway/secrets_test.go": "its ports fail the test when they are asked",
		"pkg/gateway/clients_test.go": "a package under test cannot import the gateway of internal/testgw/front",
		"pkg/store/seal_test.go":      "tests of the keyring",
	}
	used := map[string]bool{}
	for _, file := range sources(t) {
		if !under(file.path, []string{"pkg/", "test/"}) || !strings.HasSuffix(file.path, "_test.go") {
			continue
		}
		for _, what := range standIns(t, file.path, file.text) {
			if used[file.path] = true; allowed[file.path] == "" {
				t.Errorf("%s: use internal/testgw", what)
			}
		}
	}
	for name := range allowed {
		if !used[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

// ports are the methods by which a type is a stand-in, without the names of
// packages.
var ports = map[string]*regexp.Regexp{
	"upstream.Doer":    regexp.MustCompile(`^Start\(Context, \*Request\) Pending$`),
	"upstream.Pending": regexp.MustCompile(`^Wait\(\) \(\*Response, error\)$`),
	"upstream.Pauser":  regexp.MustCompile(`^Pause\(Context, Duration\) error$`),
	"a clock":          regexp.MustCompile(`^Now\(\) Time$`),
	"store.KV":         regexp.MustCompile(`^Put\(Context, string, \[\]byte\) error$`),
	"storage.Storage":  regexp.MustCompile(`^(Write\(\[\]Row, int64\)|List\(string, string, int\) \[\]Row)$`),
	"rpc.Stub":         regexp.MustCompile(`^Call\(Context, string, string, \[\]byte\) \(int, \[\]byte, error\)$`),
}

// standIns returns the places of a file that define a stand-in for a port, fill
// the gateway's ports or make a keyring.
func standIns(t *testing.T, name, src string) (places []string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	at := func(pos token.Pos, what string) { places = append(places, set.Position(pos).String()+": "+what) }
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil {
				break
			}
			got := n.Name.Name + signature(n.Type)
			for port, pattern := range ports {
				if pattern.MatchString(got) {
					at(n.Pos(), "a stand-in for "+port)
				}
			}
		case *ast.CompositeLit:
			if n.Type != nil && unqualified(n.Type) == "Ports" {
				at(n.Pos(), "the gateway's ports")
			}
		case *ast.CallExpr:
			if unqualified(n.Fun) == "NewKeyring" {
				at(n.Pos(), "a keyring")
			}
		}
		return true
	})
	return places
}

var qualifier = regexp.MustCompile(`\b\w+\.`)

// unqualified returns an expression without the names of packages.
func unqualified(e ast.Expr) string { return qualifier.ReplaceAllString(types.ExprString(e), "") }

// signature returns the types of parameters and results, one for each.
func signature(f *ast.FuncType) string {
	list := func(fields *ast.FieldList) (all []string) {
		if fields == nil {
			return nil
		}
		for _, field := range fields.List {
			for range max(1, len(field.Names)) {
				all = append(all, unqualified(field.Type))
			}
		}
		return all
	}
	text := "(" + strings.Join(list(f.Params), ", ") + ")"
	switch results := list(f.Results); len(results) {
	case 0:
	case 1:
		text += " " + results[0]
	default:
		text += " (" + strings.Join(results, ", ") + ")"
	}
	return text
}

func TestStandInsAreFound(t *testing.T) {
	for _, tt := range []struct {
		src  string
		want int
	}{
		{`func (w *world) Start(_ context.Context, r *up.Request) up.Pending { return nil }`, 1},
		{`func (p pending) Wait() (*upstream.Response, error) { return nil, nil }`, 1},
		{`func (p pauser) Pause(context.Context, time.Duration) error { return nil }`, 1},
		{`func (c *clock) Now() (now time.Time) { return c.now }`, 1},
		{`func (kv) Put(_ context.Context, key string, value []byte) error { return nil }`, 1},
		{`func (s rows) Write(rows []machinestorage.Row, alarm int64) {}`, 1},
		{`func (s rows) List(prefix, start string, limit int) []storage.Row { return nil }`, 1},
		{`func (o stub) Call(_ context.Context, id, op string, b []byte) (status int, answer []byte, err error) { return }`, 1},
		{`func f() { g(gateway.Ports{}, &Ports{}); store.NewKeyring("k") }`, 3},
		{`func (s *side) Write(b []byte) (int, error) { return 0, nil }`, 0},
		{`func (w *world) Call(op string) { w.Object.Call(nil, "", op, nil) }`, 0},
		{`func Start(context.Context, *upstream.Request) upstream.Pending { return nil }`, 0},
	} {
		if got := standIns(t, "x_test.go", "package x\n"+tt.src); len(got) != tt.want {
			t.Errorf("%s: got %q, want %d", tt.src, got, tt.want)
		}
	}
}
