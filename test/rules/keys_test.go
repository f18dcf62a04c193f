package rules

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// keyed are the functions that take a key, by the place of it.
var keyed = map[string]int{
	"hmac.New": 1, "aes.NewCipher": 0, "hkdf.Key": 1, "pbkdf2.Key": 1, "store.NewKeyring": 0, "NewKeyring": 0, "chacha20poly1305.New": 0, "ed25519.NewKeyFromSeed": 0,
}

// literals lists the names of a file whose value is made of a string that is
// written there.
func literals(f *ast.File) map[string]bool {
	names := map[string]bool{}
	note := func(lhs []ast.Expr, rhs []ast.Expr) {
		for i, e := range rhs {
			if i >= len(lhs) || !hasString(e, nil) {
				continue
			}
			switch x := lhs[i].(type) {
			case *ast.Ident:
				names[x.Name] = true
			case *ast.SelectorExpr:
				names[x.Sel.Name] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			lhs := make([]ast.Expr, len(n.Names))
			for i := range n.Names {
				lhs[i] = n.Names[i]
			}
			note(lhs, n.Values)
		case *ast.AssignStmt:
			note(n.Lhs, n.Rhs)
		}
		return true
	})
	return names
}

// hasString reports whether an expression consists of a string that is written
// in the program, itself or under one of the names. The arguments of a call do
// not count, except those of functions that only join, repeat or convert.
func hasString(e ast.Expr, names map[string]bool) bool {
	switch x := e.(type) {
	case *ast.BasicLit:
		return x.Kind == token.STRING && len(x.Value) > 2
	case *ast.Ident:
		return names[x.Name]
	case *ast.BinaryExpr:
		return hasString(x.X, names) || hasString(x.Y, names)
	case *ast.ParenExpr:
		return hasString(x.X, names)
	case *ast.SelectorExpr:
		return names[x.Sel.Name] && x.Sel.Name != "KeySecret" // the field; who fills it is looked at below
	case *ast.CallExpr:
		switch f := x.Fun.(type) {
		case *ast.ArrayType:
		case *ast.Ident:
			if f.Name != "string" && f.Name != "append" {
				return false
			}
		case *ast.SelectorExpr:
			if pkg, ok := f.X.(*ast.Ident); !ok || pkg.Name != "strings" && pkg.Name != "cmp" && pkg.Name != "bytes" {
				return false
			}
		}
		for _, a := range x.Args {
			if hasString(a, names) {
				return true
			}
		}
	}
	return false
}

// constantKeys finds calls whose key is written in the program, and settings of
// a secret that are.
func constantKeys(f *ast.File) (at []token.Pos) {
	names := literals(f)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if i, ok := keyed[name(n.Fun)]; ok && i < len(n.Args) && hasString(n.Args[i], names) {
				at = append(at, n.Pos())
			}
		case *ast.KeyValueExpr:
			if secretField[name(n.Key)] && hasString(n.Value, names) {
				at = append(at, n.Pos())
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if s, ok := l.(*ast.SelectorExpr); ok && secretField[s.Sel.Name] && i < len(n.Rhs) && hasString(n.Rhs[i], names) {
					at = append(at, n.Pos())
				}
			}
		}
		return true
	})
	return at
}

var secretField = map[string]bool{"KeySecret": true, "AdminToken": true, "CredentialsKey": true}

// No key is written in the program: each comes from a worker secret, or from
// whoever owns what it protects. See docs/reference/reliability.md, T1.
func TestKeysAreNotConstants(t *testing.T) {
	set, files := source(t, "pkg", "worker/main.go", "worker/env.go", "worker/kv.go")
	keys := 0
	for _, f := range files {
		for _, pos := range constantKeys(f) {
			if f.Name.Name == "sigv4" {
				continue // "AWS4" stands before the account's own secret
			}
			t.Errorf("%s: a key that is written in the program", set.Position(pos))
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if _, ok := keyed[name(c.Fun)]; ok {
					keys++
				}
			}
			return true
		})
	}
	if keys < 8 {
		t.Errorf("only %d uses of keys were looked at", keys)
	}
}

// The settings of a deployment have no secret in them either.
func TestSecretsAreNotSettings(t *testing.T) {
	for _, name := range []string{"../../wrangler.toml", "../../package.json"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"ADMIN_TOKEN", "API_KEY_SECRET", "CREDENTIALS_KEY", "OAUTH_PROVIDERS"} {
			if regexp.MustCompile(`(?m)^[^#\n]*` + secret + `(_\d+)?"?\s*[=:]`).Match(raw) {
				t.Errorf("%s sets %s", name, secret)
			}
		}
	}
}

func TestConstantKeysAreFound(t *testing.T) {
	for i, tt := range []struct {
		text string
		want int
	}{
		{`func f() { hmac.New(sha256.New, []byte("default-secret")) }`, 1},
		{"const fallback = \"default-secret\"\nfunc f(s string) { if s == \"\" { s = fallback }; hmac.New(sha256.New, []byte(fallback)) }", 1},
		{`func f(s string) { if s == "" { s = "default-secret" }; hmac.New(sha256.New, []byte(s)) }`, 1},
		{`func f(s string) { hkdf.Key(sha256.New, []byte(cmp.Or(s, "default-secret")), nil, "label", 32) }`, 1},
		{`func f(s string) { NewKeyring(s + "pepper") }`, 1},
		{`func f(s string) { NewKeyring(strings.Repeat("k", 40)) }`, 1},
		{`var c = Config{KeySecret: "default-secret"}`, 1},
		{`func f(c *Config) { if c.AdminToken == "" { c.AdminToken = "admin" } }`, 1},
		{`func f(o *Object) { mac := hmac.New(sha256.New, o.KeySecret); mac.Write([]byte("label")) }`, 0},
		{`func f(s string) { hkdf.Key(sha256.New, []byte(s), nil, "label", 32) }`, 0},
		{`var c = Config{KeySecret: getenv("API_KEY_SECRET")}`, 0},
	} {
		if got := len(constantKeys(parse(t, tt.text))); (got > 0) != (tt.want > 0) {
			t.Errorf("%s: %s: found %d", strconv.Itoa(i), strings.TrimSpace(tt.text), got)
		}
	}
}

// A data directory of a server has its secrets; a command that runs in a clone may create one.
func TestNoDataDirectoryIsCommitted(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files").Output()
	if err != nil {
		t.Skip(err) // an archive of the sources
	}
	for file := range strings.Lines(string(out)) {
		switch name := path.Base(strings.TrimSpace(file)); name {
		case "secrets.json", "sign-in.json", "weir.db", "weir.lock", ".dev.vars":
			t.Errorf("%s is of a server that has run here; git rm it", strings.TrimSpace(file))
		}
	}
}
