package manage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"weir/pkg/api"
	"weir/pkg/auth/session"
)

// The gateway forwards to the object what the object serves, and nothing else. Routes of
// which both serve a part are forwarded by their handlers.
func TestObjectServesWhatTheGatewayForwards(t *testing.T) {
	objects := &api.Handler{}
	both := map[string]bool{}
	forward := reflect.ValueOf(objects.Forward).Pointer()
	for _, r := range api.Routes(&api.Handlers{Objects: objects, Sessions: &session.Sessions{}}) {
		for _, m := range r.Methods {
			name := m.Name + " " + r.Pattern
			both[name] = true
			if reflect.ValueOf(m.Handler).Pointer() == forward && handlers[name] == nil {
				t.Errorf("%s is forwarded, and the object does not serve it: add it to handlers", name)
			}
		}
	}
	for name := range handlers {
		if !both[name] {
			t.Errorf("%s is no route: add it to the routes of package api", name)
		}
	}
	if len(handlers) < 40 {
		t.Errorf("only %d handlers", len(handlers))
	}
}

// A handler is a method of change that takes nothing and returns (any, error).
func TestEveryHandlerHasRow(t *testing.T) {
	named := map[string]bool{}
	for _, h := range slices.Collect(maps.Values(handlers)) {
		name := runtime.FuncForPC(reflect.ValueOf(h).Pointer()).Name()
		named[name[strings.LastIndexByte(name, '.')+1:]] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			n, ok := d.(*ast.FuncDecl)
			if !ok || n.Recv == nil || n.Type.Params.NumFields() != 0 || n.Type.Results.NumFields() != 2 {
				continue
			}
			star, ok := n.Recv.List[0].Type.(*ast.StarExpr)
			if !ok || star.X.(*ast.Ident).Name != "change" {
				continue
			}
			if id, ok := n.Type.Results.List[0].Type.(*ast.Ident); ok && id.Name == "any" {
				if found++; !named[n.Name.Name] {
					t.Errorf("change.%s serves no route: add its row to handlers in routes.go", n.Name.Name)
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d handlers found", found)
	}
}
