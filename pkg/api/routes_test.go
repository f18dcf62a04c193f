package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// sources returns the parsed files of this package, without tests.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	return files
}

// A handler of the object is a method of change that returns (any, error) and
// takes nothing. A handler of the gateway is an exported Endpoint.
func TestEveryHandlerHasRow(t *testing.T) {
	named := map[string]bool{}
	handlers := map[string]string{}
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if n.Names[0].Name == "rows" {
					ast.Inspect(n, func(n ast.Node) bool {
						if sel, ok := n.(*ast.SelectorExpr); ok {
							named[sel.Sel.Name] = true
						}
						return true
					})
				}
			case *ast.FuncDecl:
				if n.Recv == nil || n.Type.Results.NumFields() != 2 {
					return true
				}
				star, ok := n.Recv.List[0].Type.(*ast.StarExpr)
				if !ok {
					return true
				}
				kind, _ := star.X.(*ast.Ident)
				result := n.Type.Results.List[0].Type
				if id, ok := result.(*ast.Ident); ok && id.Name == "any" && kind.Name == "change" && n.Type.Params.NumFields() == 0 {
					handlers[n.Name.Name] = "change"
				}
				if p, ok := result.(*ast.StarExpr); ok && n.Name.IsExported() && n.Type.Params.NumFields() == 2 {
					if sel, ok := p.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Response" && n.Name.Name != "Forward" {
						handlers[n.Name.Name] = kind.Name
					}
				}
			}
			return true
		})
	}
	for name, kind := range handlers {
		if !named[name] {
			t.Errorf("%s.%s serves no route: add its row to rows in routes.go", kind, name)
		}
	}
	if len(handlers) < 40 {
		t.Fatalf("only %d handlers found", len(handlers))
	}
}

func TestRowsAreCompleteAndUnique(t *testing.T) {
	seen, ended := map[string]bool{}, map[string]bool{}
	before := ""
	for _, r := range rows {
		name := r.method + " " + r.pattern
		switch {
		case seen[name]:
			t.Errorf("%s stands twice", name)
		case r.object == nil && r.gateway == nil:
			t.Errorf("%s has no handler", name)
		case ended[r.pattern]:
			t.Errorf("%s: the rows of a pattern must be adjacent", name)
		}
		if seen[name] = true; before != r.pattern {
			ended[before], before = true, r.pattern
		}
	}
	if findRow("GET", "/api/keys") == nil || findRow("PUT", "/api/keys") != nil {
		t.Error("findRow does not compare the method")
	}
	for _, pattern := range []string{"/api/machines", "/api/machines/{id}", "/api/version", "/api/session", "/oauth/callback", "/setup/claim", "/setup/{file}", "/api/explain"} {
		if !ended[pattern] && before != pattern {
			t.Errorf("%s has rules of its own but no row", pattern)
		}
	}
}
