// Command exports lists exported names of pkg/ that production code does not
// need: those that only tests use, and those that no other package uses.
//
//	exports [-dead] [FOLDER]    FOLDER is the module, by default the working directory
//
// Each line is "dead NAME" or "local NAME". With -dead only the former are
// listed, and the exit status is 1 if there are any. A method that implements
// an interface of the program or of its imports is never listed, nor is a
// constant.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// forTests are names that tests of several packages need.
var forTests = []string{
	"accounts.Pool.Pending",
	"catalog.Aliases",
	"gateway.App.Machine",
	"snapshot.Machine.SetCatalog",
	"wire/eventstream.Event",
	"wire/eventstream.Exception",
	"wire/httpmsg.Response.Get",
	"wire/memory.Budget.Used",
}

// uses counts the places of production code that name an object.
type uses struct{ own, others int }

// program holds the exported names of the module by their key, as declared for
// any platform.
type program struct {
	prefix string // of the import paths that are examined
	names  map[string]*uses
	needed map[string]bool               // methods that implement an interface
	ifaces map[string][]*types.Interface // by the name of a method
}

func main() {
	dead := flag.Bool("dead", false, "list only the names that no production code uses")
	flag.Parse()
	dir := flag.Arg(0)
	s := &program{names: map[string]*uses{}, needed: map[string]bool{}}
	wasm := []string{"GOOS=js", "GOARCH=wasm", "GOFLAGS=" + os.Getenv("GOFLAGS") + " -trimpath"} // as scripts/build.sh
	for _, env := range [][]string{{}, wasm} {
		if err := s.load(dir, env); err != nil {
			fmt.Fprintln(os.Stderr, "exports:", err)
			os.Exit(2)
		}
	}
	failed := false
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		switch u := s.names[name]; {
		case s.needed[name] || slices.Contains(forTests, strings.TrimPrefix(name, s.prefix)):
		case u.own+u.others == 0:
			fmt.Println("dead ", name)
			failed = true
		case u.others == 0 && !*dead:
			fmt.Println("local", name)
		}
	}
	if failed && *dead {
		os.Exit(1)
	}
}

// load adds what the module declares and uses on one platform.
func (s *program) load(dir string, env []string) error {
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedModule,
		Dir: dir,
		Env: append(os.Environ(), env...),
	}, "./...")
	if err != nil {
		return err
	}
	var own []*packages.Package
	s.ifaces = map[string][]*types.Interface{}
	packages.Visit(list, nil, func(p *packages.Package) {
		if p.Types != nil {
			s.interfaces(p.Types.Scope())
		}
		if p.Module != nil && p.Module.Main && len(p.Syntax) > 0 {
			own = append(own, p)
			s.prefix = p.Module.Path + "/pkg/"
		}
	})
	for _, p := range own {
		s.literals(p)
	}
	for _, p := range own {
		s.declare(p)
	}
	for _, p := range own {
		if strings.HasPrefix(p.PkgPath, s.prefix+"internal/") {
			continue
		}
		for id, obj := range p.TypesInfo.Uses {
			s.use(p, id, obj)
		}
		for _, sel := range p.TypesInfo.Selections { // promoted methods and fields of generic types
			s.note(p.PkgPath, sel.Obj())
		}
	}
	return nil
}

// interfaces remembers the interfaces that a scope declares.
func (s *program) interfaces(scope *types.Scope) {
	for _, name := range scope.Names() {
		if t, ok := scope.Lookup(name).(*types.TypeName); ok {
			if i, ok := t.Type().Underlying().(*types.Interface); ok {
				s.remember(i)
			}
		}
	}
}

// literals remembers the interfaces that stand without a name, such as those
// of type assertions.
func (s *program) literals(p *packages.Package) {
	for e, tv := range p.TypesInfo.Types {
		if _, ok := e.(*ast.InterfaceType); ok {
			if i, ok := tv.Type.(*types.Interface); ok {
				s.remember(i)
			}
		}
	}
}

func (s *program) remember(i *types.Interface) {
	for m := range i.Methods() {
		s.ifaces[m.Name()] = append(s.ifaces[m.Name()], i)
	}
}

// declare adds the exported names of a package.
func (s *program) declare(p *packages.Package) {
	if !strings.HasPrefix(p.PkgPath, s.prefix) || strings.HasPrefix(p.PkgPath, s.prefix+"internal/") {
		return
	}
	add := func(obj types.Object) {
		if _, ok := obj.(*types.Const); ok { // names a value of the wire or of a set
			return
		}
		if k := key(obj); obj.Exported() && s.names[k] == nil {
			s.names[k] = &uses{}
		}
	}
	for _, name := range p.Types.Scope().Names() {
		obj := p.Types.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		add(obj)
		t, ok := obj.(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		named, ok := t.Type().(*types.Named)
		if !ok {
			continue
		}
		for m := range named.Methods() {
			add(m)
		}
		for m := range types.NewMethodSet(types.NewPointer(named)).Methods() { // promoted ones too
			if s.implements(named, m.Obj().Name()) {
				s.needed[key(m.Obj())] = true
			}
		}
	}
}

// implements reports whether a type's method makes it satisfy an interface.
func (s *program) implements(t *types.Named, method string) bool {
	switch method {
	case "Error", "Unwrap", "Is", "As": // called by the package errors
		return true
	}
	for _, i := range s.ifaces[method] {
		if types.Implements(t, i) || types.Implements(types.NewPointer(t), i) {
			return true
		}
	}
	return false
}

// use counts an identifier. A receiver is no use of its type.
func (s *program) use(p *packages.Package, id *ast.Ident, obj types.Object) {
	for _, f := range p.Syntax {
		if f.FileStart > id.Pos() || id.Pos() >= f.FileEnd {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && within(fn.Recv, id.Pos()) {
				return
			}
		}
	}
	s.note(p.PkgPath, obj)
}

func within(n ast.Node, pos token.Pos) bool { return n.Pos() <= pos && pos < n.End() }

func (s *program) note(from string, obj types.Object) {
	if obj == nil || obj.Pkg() == nil || !strings.HasPrefix(obj.Pkg().Path(), s.prefix) {
		return
	}
	u := s.names[key(obj)]
	switch {
	case u == nil:
	case obj.Pkg().Path() == from:
		u.own++
	default:
		u.others++
	}
}

// key names an object the same way for every platform.
func key(obj types.Object) string {
	if f, ok := obj.(*types.Func); ok {
		obj = f.Origin()
		if recv := f.Signature().Recv(); recv != nil {
			t := recv.Type()
			if ptr, ok := t.(*types.Pointer); ok {
				t = ptr.Elem()
			}
			if named, ok := t.(*types.Named); ok {
				return obj.Pkg().Path() + "." + named.Obj().Name() + "." + obj.Name()
			}
		}
	} else if obj.Parent() != obj.Pkg().Scope() {
		return "" // a field, or local
	}
	return obj.Pkg().Path() + "." + obj.Name()
}
