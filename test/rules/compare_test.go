package rules

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// compared are names of values that are compared in constant time, or not at
// all (docs/reference/reliability.md, T4).
var compared = [...]string{"secret", "token", "digest", "mac", "tag", "check", "password", "apikey", "signature"}

// harmless are comparisons of values that are not secret, by file and text.
var harmless = map[string]string{
	"machine/manage/import.go: Str with SecretCheck":       "a sign of the secret that who has the export sees",
	"machine/people.go: Token with Token":                  "digests of a random text that a row was found by",
	"machine/registry.go: known with Token":                "digests of the operator's own token, at the start",
	"machine/manage/budgets.go: Tag with tagOf":            "the name of a tag has the id of a person, which is no secret",
	"machine/idempotency.go: Digest with Digest":           "of a request's body, which the caller has",
	"machine/manage/change.go: Request with requestDigest": "of a request, which the caller has",
	"llm/gemini/read_request.go: Signature with Signature": "both are of the same request",
	"v1/models/live.go: digest with digest":                "of the credential in the same snapshot: no caller names one",
}

// nameOf returns the last name of an expression, "" for a constant.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if e.Name == "nil" {
			return ""
		}
		return e.Name
	case *ast.SelectorExpr:
		if name(e.X) == "store" { // the names of fields
			return ""
		}
		return e.Sel.Name
	case *ast.CallExpr:
		if name(e.Fun) == "string" && len(e.Args) == 1 {
			return nameOf(e.Args[0])
		}
		return nameOf(e.Fun)
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.SliceExpr:
		return nameOf(e.X)
	case *ast.ParenExpr:
		return nameOf(e.X)
	case *ast.StarExpr:
		return nameOf(e.X)
	}
	return ""
}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	for _, c := range compared {
		if name == c || strings.HasSuffix(name, c) {
			return true
		}
	}
	return false
}

// comparisons lists the comparisons in a file that are not in constant time.
func comparisons(f *ast.File) (out []string, at []token.Pos) {
	ast.Inspect(f, func(n ast.Node) bool {
		var x, y ast.Expr
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				x, y = n.X, n.Y
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 2 && (s.Sel.Name == "Equal" || s.Sel.Name == "Compare") {
				x, y = n.Args[0], n.Args[1]
				if name(s.X) == "subtle" {
					return true
				}
			}
		}
		if x == nil {
			return true
		}
		if a, b := nameOf(x), nameOf(y); a != "" && b != "" && (isSecretName(a) || isSecretName(b)) {
			out, at = append(out, a+" with "+b), append(at, n.Pos())
		}
		return true
	})
	return out, at
}

func TestSecretsAreComparedInConstantTime(t *testing.T) {
	set, files := source(t, "pkg")
	for _, f := range files {
		if f.Name.Name == "htmlmd" { // its tags are those of HTML
			continue
		}
		out, at := comparisons(f)
		for i, what := range out {
			pos := set.Position(at[i])
			if harmless[strings.TrimPrefix(pos.Filename, "../../pkg/")+": "+what] == "" {
				t.Errorf("%s: %s", pos, what)
			}
		}
	}
}

func TestRuleFindsComparisons(t *testing.T) {
	for text, want := range map[string]int{
		"if key.Digest == digest {}":           1,
		"if string(token) != other {}":         1,
		"bytes.Equal(mac, sum[:])":             1,
		"strings.Compare(apiKey, sent)":        1,
		"if token == \"\" {}":                  0,
		"if token == nil {}":                   0,
		"subtle.ConstantTimeCompare(mac, sum)": 0,
		"if len(token) == n {}":                0,
	} {
		if out, _ := comparisons(parse(t, "func f() {\n"+text+"\n}")); len(out) != want {
			t.Errorf("%s: got %q, want %d", text, out, want)
		}
	}
}
