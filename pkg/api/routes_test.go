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

// A handler of the object is a method of change that returns (any, error) and
// takes nothing. A handler of the gateway is an exported endpoint.Handler.
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
			t.Errorf("%s.%s serves no route: add its row to routes in routes.go", kind, name)
		}
	}
	if len(handlers) < 40 {
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
			switch {
			case seen[name]:
				t.Errorf("%s stands twice", name)
			case m.object == nil && m.gateway == nil:
				t.Errorf("%s has no handler", name)
			}
			seen[name] = true
		}
	}
	if findMethod("GET", "/api/keys") == nil || findMethod("PUT", "/api/keys") != nil {
		t.Error("findMethod does not compare the method")
	}
}
