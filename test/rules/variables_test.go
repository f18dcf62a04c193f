package rules

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goPackage is a package as `go list` describes it.
type goPackage struct {
	path, dir, export string
	files, imports    []string
}

// list returns the packages of patterns, those of this module first imported
// last, with their compiled export data.
func list(t *testing.T, patterns ...string) []goPackage {
	t.Helper()
	const format = `{{.ImportPath}}|{{.Dir}}|{{.Export}}|{{join .GoFiles ","}}|{{join .Imports ","}}`
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", format}, patterns...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok {
			t.Fatalf("%v: %s", err, e.Stderr)
		}
		t.Fatal(err)
	}
	var all []goPackage
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		all = append(all, goPackage{path: f[0], dir: f[1], export: f[2], files: strings.Split(f[3], ","), imports: strings.Split(f[4], ",")})
	}
	return all
}

// finding is a place that changes a package variable, or may do so.
type finding struct {
	at   token.Pos
	what string
	row  string // the type of a row that is changed by its pointer, "" for another change
}

// mutations returns the places where checked code changes a package variable,
// or declares one that exists to be changed. Rows of tables are used by their
// pointers: rows has the types of variables and elements whose address is
// taken, and a change by a pointer that may be one of a row is a finding with
// the type that it points to.
func mutations(files []*ast.File, info *types.Info) (found []finding, rows map[string]bool) {
	rows = map[string]bool{}
	ranged := map[ast.Expr]bool{} // range &table does not copy the table
	report := func(pos token.Pos, format string, args ...any) {
		found = append(found, finding{at: pos, what: fmt.Sprintf(format, args...)})
	}
	// variable returns the package variable that an expression is a part of.
	variable := func(e ast.Expr) *types.Var {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.SliceExpr:
				e = x.X
			case *ast.SelectorExpr:
				if v, ok := info.Uses[x.Sel].(*types.Var); ok && packageLevel(v) {
					return v
				}
				e = x.X
			case *ast.Ident:
				if v, ok := info.Uses[x].(*types.Var); ok && packageLevel(v) {
					return v
				}
				return nil
			default:
				return nil
			}
		}
	}
	// whole reports whether an expression is a package variable itself.
	whole := func(e ast.Expr) *types.Var {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident, *ast.SelectorExpr:
			if v := variable(x); v != nil {
				if s, ok := x.(*ast.SelectorExpr); !ok || info.Uses[s.Sel] == v {
					return v
				}
			}
		}
		return nil
	}
	// fresh reports whether a local pointer only ever points to what the function
	// has created or to parts of other local variables.
	pointers := assignments(files, info)
	fresh := func(o types.Object) bool {
		all, local := pointers[o]
		for _, e := range all {
			switch e := e.(type) {
			case *ast.UnaryExpr:
				local = local && e.Op == token.AND && variable(e.X) == nil
			case *ast.CallExpr:
				f, name := e.Fun.(*ast.Ident)
				local = local && name && info.Uses[f] == types.Universe.Lookup("new")
			default:
				local = false
			}
		}
		return local
	}
	changed := func(pos token.Pos, e ast.Expr, how string) {
		if v := variable(e); v != nil {
			report(pos, "%s %s", how, v.Name())
			return
		}
		for ; e != nil; e = inner(e) {
			if x := inner(e); x != nil {
				p, ok := types.Unalias(info.TypeOf(x)).(*types.Pointer)
				if name, local := x.(*ast.Ident); ok && !(local && fresh(info.Uses[name])) {
					found = append(found, finding{pos, fmt.Sprintf("%s a part of a %s, which is in a table", how, p.Elem()), p.Elem().String()})
				}
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if _, name := e.(*ast.Ident); !name || variable(e) != nil {
						changed(n.Pos(), e, "assigns to")
					}
				}
			case *ast.IncDecStmt:
				changed(n.Pos(), n.X, "assigns to")
			case *ast.RangeStmt:
				ranged[n.X] = true
				if n.Tok == token.ASSIGN {
					changed(n.Pos(), n.Key, "assigns to")
					if n.Value != nil {
						changed(n.Pos(), n.Value, "assigns to")
					}
				}
			case *ast.UnaryExpr:
				if n.Op != token.AND || ranged[n] {
					break
				}
				if variable(n.X) == nil {
					break
				}
				t := info.TypeOf(n.X)
				if _, basic := t.Underlying().(*types.Basic); basic {
					report(n.Pos(), "takes the address of a %s", t)
				}
				rows[t.String()] = true
			case *ast.CallExpr:
				switch fun := ast.Unparen(n.Fun).(type) {
				case *ast.Ident:
					if _, builtin := info.Uses[fun].(*types.Builtin); builtin && (fun.Name == "delete" || fun.Name == "clear" || fun.Name == "copy") {
						changed(n.Pos(), n.Args[0], fun.Name+" changes")
					}
				case *ast.SelectorExpr:
					if s := info.Selections[fun]; s != nil && s.Kind() == types.MethodVal {
						_, pointer := s.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer)
						if v := whole(fun.X); v != nil && pointer {
							rows[v.Type().String()] = true
						}
					}
					if fn, ok := info.Uses[fun.Sel].(*types.Func); ok && fn.Pkg() != nil && len(n.Args) > 0 && inPlace[fn.Pkg().Path()+"."+fn.Name()] {
						changed(n.Pos(), n.Args[0], fun.Sel.Name+" changes")
					}
				}
			}
			return true
		})
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					if v, ok := info.Defs[name].(*types.Var); ok && changing(v.Type(), map[types.Type]bool{}) {
						report(name.Pos(), "%s has a type that exists to be changed: %s", name.Name, v.Type())
					}
				}
			}
		}
	}
	return found, rows
}

// inner returns the operand of a selector, index or star expression.
func inner(e ast.Expr) ast.Expr {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return x.X
	case *ast.StarExpr:
		return x.X
	case *ast.IndexExpr:
		return x.X
	case *ast.SliceExpr:
		return x.X
	case *ast.SelectorExpr:
		return x.X
	}
	return nil
}

// assignments returns what is assigned to each local variable; nil stands for
// one of several results of a call.
func assignments(files []*ast.File, info *types.Info) map[types.Object][]ast.Expr {
	all := map[types.Object][]ast.Expr{}
	add := func(names []ast.Expr, values []ast.Expr) {
		for i, n := range names {
			name, ok := n.(*ast.Ident)
			if !ok {
				continue
			}
			o := info.Defs[name]
			if o == nil {
				o = info.Uses[name]
			}
			switch {
			case len(values) == len(names):
				all[o] = append(all[o], values[i])
			case len(values) > 0:
				all[o] = append(all[o], nil)
			case all[o] == nil:
				all[o] = []ast.Expr{} // nil until it is assigned to
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				add(n.Lhs, n.Rhs)
			case *ast.ValueSpec:
				var names []ast.Expr
				for _, name := range n.Names {
					names = append(names, name)
				}
				add(names, n.Values)
			case *ast.RangeStmt:
				add([]ast.Expr{n.Key, n.Value}, []ast.Expr{nil, nil})
			case *ast.FuncType: // parameters hold what callers pass
				for _, l := range []*ast.FieldList{n.Params, n.Results} {
					if l == nil {
						continue
					}
					for _, field := range l.List {
						for _, name := range field.Names {
							add([]ast.Expr{name}, []ast.Expr{nil})
						}
					}
				}
			}
			return true
		})
	}
	return all
}

func packageLevel(v *types.Var) bool {
	return v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

// changing reports whether a type exists for values that change: locks,
// atomics, pools, channels and builders.
func changing(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil {
		switch n.Obj().Pkg().Path() {
		case "sync", "sync/atomic":
			return true
		}
		if full := n.Obj().Pkg().Path() + "." + n.Obj().Name(); full == "strings.Builder" || full == "bytes.Buffer" {
			return true
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return true
	case *types.Struct:
		for f := range u.Fields() {
			if changing(f.Type(), seen) {
				return true
			}
		}
	case *types.Array:
		return changing(u.Elem(), seen)
	}
	return false
}

// inPlace are functions of the standard library that change their argument.
var inPlace = map[string]bool{
	"sort.Slice": true, "sort.SliceStable": true, "sort.Sort": true, "sort.Stable": true, "sort.Strings": true, "sort.Ints": true,
	"slices.Sort": true, "slices.SortFunc": true, "slices.SortStableFunc": true, "slices.Reverse": true, "slices.Delete": true,
	"slices.Compact": true, "slices.Insert": true, "maps.Copy": true, "maps.DeleteFunc": true, "crypto/rand.Read": true,
}

// Natively several Apps run side by side in one process, and on the edge one
// instance serves every tenant: state that outlives a request is a field of
// the App.
func TestPackageVariablesAreConstant(t *testing.T) {
	all := list(t, "./pkg/...", "./server/...")
	exports := map[string]string{}
	for _, p := range all {
		exports[p.path] = p.export
	}
	set := token.NewFileSet()
	imp := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var found []finding
	rows := map[string]bool{}
	checked := 0
	for _, p := range all {
		if !strings.HasPrefix(p.path, "weir/pkg/") && !strings.HasPrefix(p.path, "weir/server/") {
			continue
		}
		var files []*ast.File
		for _, name := range p.files {
			f, err := parser.ParseFile(set, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := check(t, set, p.path, files, imp)
		f, r := mutations(files, info)
		found = append(found, f...)
		maps.Copy(rows, r)
		checked++
	}
	for _, f := range found {
		if f.row == "" || rows[f.row] {
			t.Errorf("%s: %s", set.Position(f.at), f.what)
		}
	}
	if checked < 20 {
		t.Fatalf("only %d packages checked", checked)
	}
}

func check(t *testing.T, set *token.FileSet, path string, files []*ast.File, imp types.Importer) *types.Info {
	t.Helper()
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}}
	if _, err := (&types.Config{Importer: imp}).Check(path, set, files, info); err != nil {
		t.Fatal(err)
	}
	return info
}

// Each way of changing a package variable must be reported, and no way of
// reading one.
func TestVariableRuleFindsMutations(t *testing.T) {
	exports := map[string]string{}
	for _, p := range list(t, "slices", "sync", "sync/atomic", "strings") {
		exports[p.path] = p.export
	}
	standard := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	changes := map[string]string{
		"assignment":               "var v int; func f() { v = 1 }",
		"increment":                "var v int; func f() { v++ }",
		"operation":                "var v string; func f() { v += \"a\" }",
		"append":                   "var v []int; func f() { v = append(v, 1) }",
		"map entry":                "var v = map[string]int{}; func f() { v[\"a\"] = 1 }",
		"slice element":            "var v = []int{1}; func f() { v[0] = 2 }",
		"field":                    "var v struct{ a int }; func f() { v.a = 1 }",
		"field by a pointer":       "var v = &struct{ a int }{}; func f() { v.a = 1 }",
		"pointer":                  "var v = new(int); func f() { *v = 1 }",
		"delete":                   "var v = map[string]int{}; func f() { delete(v, \"a\") }",
		"clear":                    "var v = map[string]int{}; func f() { clear(v) }",
		"copy":                     "var v = []int{1}; func f() { copy(v[:1], []int{2}) }",
		"sort":                     "import \"slices\"; var v = []int{1}; func f() { slices.Sort(v) }",
		"address":                  "var v int; func g(*int) {}; func f() { g(&v) }",
		"row by its pointer":       "type T struct{ n int }; var v T; func g() *T { return &v }; func f() { g().n = 1 }",
		"element by its pointer":   "type T struct{ n []int }; var v = []T{{}}; func g() *T { return &v[0] }; func f() { t := g(); t.n[0] = 1 }",
		"pointer method":           "type T struct{ n int }; func (t *T) inc() { t.n++ }; var v T; func f() { v.inc() }",
		"in a function of a table": "var v int; var table = map[string]func(){\"a\": func() { v = 1 }}",
		"atomic":                   "import \"sync/atomic\"; var v atomic.Int64",
		"lock in a struct":         "import \"sync\"; var v struct{ a int; mu sync.Mutex }",
		"channel":                  "var v chan int",
		"range":                    "var v int; func f() { for v = range 3 {} }",
	}
	for name, text := range changes {
		t.Run(name, func(t *testing.T) {
			if out := mutationsOf(t, standard, text); len(out) != 1 {
				t.Errorf("got %q, want one mutation", out)
			}
		})
	}
	for name, text := range map[string]string{
		"local of the same name": "var v int; func f() { v := 0; v = 1; _ = v }",
		"element's address":      "type T struct{ n int }; var v = []T{{1}}; func f() *T { return &v[0] }",
		"read":                   "var v = map[string]int{}; func f() int { return v[\"a\"] + len(v) }",
		"parameter's field":      "type T struct{ n int }; var v = T{1}; func f(t *T) { t.n = v.n }",
		"new value by a pointer": "type T struct{ n int }; var v T; func g() *T { return &v }; func f() *T { t := &T{}; t.n = 1; return t }",
		"replacer":               "import \"strings\"; var v = strings.NewReplacer(\"a\", \"b\"); func f() string { return v.Replace(\"a\") }",
		"copy of a slice":        "import \"slices\"; var v = []int{1}; func f() { slices.Sort(slices.Clone(v)) }",
	} {
		t.Run(name, func(t *testing.T) {
			if out := mutationsOf(t, standard, text); len(out) != 0 {
				t.Errorf("got %q, want no mutation", out)
			}
		})
	}
}

func mutationsOf(t *testing.T, standard types.Importer, text string) (out []string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "a.go", "package a; "+text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	files := []*ast.File{f}
	found, rows := mutations(files, check(t, set, "a", files, standard))
	for _, f := range found {
		if f.row == "" || rows[f.row] {
			out = append(out, f.what)
		}
	}
	return out
}
