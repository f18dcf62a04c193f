package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// portNames are the fields and functions by which pkg/ calls its platform, or what may
// call it. Now, Rand, Elsewhere and Collect return at once.
var portNames = map[string]bool{
	"KV": true, "Object": true, "Objects": true, "Do": true, "Doer": true, "Dialer": true, "Pause": true, "Log": true, "WriteLog": true,
	"Changed": true, "Confirm": true, "SignRS256": true, "Verify": true, "SpendCode": true, "Serve": true, "Credentials": true,
	"rpc.Start": true, "rpc.Prices": true, "upstream.Do": true, "pending.Wait": true,
}

// portOf returns the name of the port that a call is of, or "".
func portOf(call *ast.CallExpr) string {
	for e := call.Fun; ; {
		s, ok := e.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		if portNames[s.Sel.Name] {
			return s.Sel.Name
		}
		if x, ok := s.X.(*ast.Ident); ok && portNames[x.Name+"."+s.Sel.Name] {
			return x.Name + "." + s.Sel.Name
		}
		e = s.X
	}
}

// callee returns the name of the function or method that is called.
func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// waiting returns the functions of a package that call a port, themselves or by
// another one of the package. Functions of one name are not told apart.
func waiting(files []*ast.File) map[string]string {
	waits, calls := map[string]string{}, map[string][]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if p := portOf(call); p != "" {
						waits[fn.Name.Name] = p
					}
					calls[fn.Name.Name] = append(calls[fn.Name.Name], callee(call))
				}
				return true
			})
		}
	}
	for changed := true; changed; {
		changed = false
		for name, list := range calls {
			for _, other := range list {
				if waits[name] == "" && waits[other] != "" {
					waits[name], changed = waits[other], true
				}
			}
		}
	}
	return waits
}

// heldOver lists where a package holds a lock over a port. A lock is held from Lock to
// Unlock in the same block, or to the end of the function.
func heldOver(files []*ast.File) (out []string, at []token.Pos) {
	waits := waiting(files)
	var block func(list []ast.Stmt, held bool)
	// visit looks at the calls of a statement, and at its blocks on their own.
	visit := func(n ast.Node, held bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				block(n.List, held)
				return false
			case *ast.CaseClause:
				block(n.Body, held)
				return false
			case *ast.FuncLit:
				block(n.Body.List, false)
				return false
			case *ast.CallExpr:
				p := portOf(n)
				if p == "" {
					p = waits[callee(n)]
				}
				if held && p != "" {
					out, at = append(out, fmt.Sprintf("%s is called with a lock held, which may wait for %s", callee(n), p)), append(at, n.Pos())
				}
			}
			return true
		})
	}
	block = func(list []ast.Stmt, held bool) {
		for _, s := range list {
			if e, ok := s.(*ast.ExprStmt); ok {
				if call, ok := e.X.(*ast.CallExpr); ok {
					switch callee(call) {
					case "Lock", "RLock", "lock":
						held = true
						continue
					case "Unlock", "RUnlock", "unlock":
						held = false
						continue
					}
				}
			}
			visit(s, held)
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				block(fn.Body.List, false)
			}
		}
	}
	return out, at
}

// On the edge one thread serves all requests of an isolate: a request that waits for a
// lock while its holder waits for the platform would stop them all.
func TestNoLockIsHeldOverAPort(t *testing.T) {
	set, files := source(t, "pkg")
	packages := map[string][]*ast.File{}
	for _, f := range files {
		dir := filepath.Dir(set.Position(f.Pos()).Filename)
		packages[dir] = append(packages[dir], f)
	}
	for _, p := range packages {
		out, at := heldOver(p)
		for i, what := range out {
			t.Errorf("%s: %s", set.Position(at[i]), what)
		}
	}
}

func TestLockRuleFindsBreaches(t *testing.T) {
	breaches := map[string]string{
		"port":           "func f() { mu.Lock(); c.KV.Get(); mu.Unlock() }",
		"until the end":  "func f() { mu.Lock(); defer mu.Unlock(); p.Pause.Pause() }",
		"in a block":     "func f() { mu.RLock(); if x { c.Object.Call() }; mu.RUnlock() }",
		"left early":     "func f() { mu.Lock(); if x { mu.Unlock(); return }; rpc.Start() }",
		"in a condition": "func f() { mu.Lock(); if c.Changed(); x { }; mu.Unlock() }",
		"by another":     "func g() { h() }; func h() { w.Log() }; func f() { mu.Lock(); g() }",
		"in a case":      "func f() { mu.Lock(); switch { case x: p.Do.Start() } }",
	}
	for name, text := range breaches {
		if out := heldOverIn(t, text); len(out) != 1 {
			t.Errorf("%s: got %q, want one breach", name, out)
		}
	}
	for _, text := range []string{
		"func f() { mu.Lock(); x = 1; mu.Unlock(); c.KV.Get() }",
		"func f() { c.KV.Get(); mu.Lock(); defer mu.Unlock(); x = c.Now() }",
		"func f() { if x { mu.Lock(); y = 1; mu.Unlock() }; c.KV.Get() }",
		"func f() { mu.Lock(); if x { mu.Unlock(); c.KV.Get(); return }; mu.Unlock() }",
	} {
		if out := heldOverIn(t, text); len(out) != 0 {
			t.Errorf("%s: got %q, want no breach", text, out)
		}
	}
}

func heldOverIn(t *testing.T, text string) []string {
	t.Helper()
	out, _ := heldOver([]*ast.File{parse(t, strings.ReplaceAll(text, "mu.", "s.mu."))})
	return out
}
