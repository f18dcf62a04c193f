package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"weir/pkg/endpoint"
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

// A handler is an exported method with the form of endpoint.Handler.
func TestEveryHandlerHasRow(t *testing.T) {
	named := map[string]bool{}
	handlers := map[string]string{}
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if n.Names[0].Name == "routes" {
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
				p, ok := n.Type.Results.List[0].Type.(*ast.StarExpr)
				if ok && n.Name.IsExported() && n.Type.Params.NumFields() == 2 {
					if sel, ok := p.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Response" && n.Name.Name != "Forward" {
						handlers[n.Name.Name] = star.X.(*ast.Ident).Name
					}
				}
			}
			return true
		})
	}
	for name, kind := range handlers {
		if !named[name] {
			t.Errorf("%s.%s serves no route: add its row to routes in routes.go", kind, name)
		}
	}
	if len(handlers) < 20 {
		t.Fatalf("only %d handlers found", len(handlers))
	}
}

func TestRoutesAreCompleteAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range routes {
		switch {
		case seen[r.pattern]:
			t.Errorf("%s stands twice", r.pattern)
		case r.access == endpoint.Nobody || len(r.methods) == 0:
			t.Errorf("%s has no access or no methods", r.pattern)
		}
		seen[r.pattern] = true
		for _, m := range r.methods {
			name := m.name + " " + r.pattern
			if seen[name] {
				t.Errorf("%s stands twice", name)
			}
			seen[name] = true
		}
	}
}
