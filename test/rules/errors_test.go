package rules

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/pkg/wire/apierr"
)

// An apiError is an error for clients as its source writes it.
type apiError struct {
	position      string
	param, format string // "" if not a literal
}

// apiErrors returns the errors that pkg and server write for clients, and the codes of errors
// with the place of each.
func apiErrors(t *testing.T) (errs []apiError, codes map[string]string) {
	t.Helper()
	codes = map[string]string{}
	constants := map[string]string{}
	set, files := source(t, "pkg", "server")
	literal := func(e ast.Expr) string {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			s, _ := strconv.Unquote(l.Value)
			return s
		}
		return ""
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
				for i := range v.Names {
					if s := literal(v.Values[i]); s != "" {
						constants[v.Names[i].Name] = s
					}
				}
			}
			return true
		})
	}
	for _, f := range files {
		code := func(e ast.Expr) {
			s := literal(e)
			switch e := e.(type) {
			case *ast.Ident:
				s = constants[e.Name]
			case *ast.SelectorExpr:
				s = constants[e.Sel.Name]
			}
			if regexp.MustCompile(`^[a-z_]+$`).MatchString(s) {
				codes[s] = set.Position(e.Pos()).String()
			}
		}
		add := func(param string, e ast.Expr) {
			if s := literal(e); s != "" && s != "%s" {
				errs = append(errs, apiError{set.Position(e.Pos()).String(), param, s})
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				switch name(n.Fun) {
				case "apierr.New":
					code(n.Args[1])
					add("", n.Args[2])
				case "apierr.Invalid":
					add(literal(n.Args[0]), n.Args[1])
				case "endpoint.Refused":
					add("", n.Args[0])
				case "strange": // of pkg/accounts
					code(n.Args[0])
					add("", n.Args[1])
				default: // a function of its file that takes status, code and message
					if len(n.Args) == 3 && isStatus(n.Args[0]) {
						code(n.Args[1])
						add("", n.Args[2])
					}
				}
			case *ast.CompositeLit:
				if name(n.Type) != "apierr.Error" {
					return true
				}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						switch name(kv.Key) {
						case "Message":
							add("", kv.Value)
						case "Code":
							code(kv.Value)
						}
					}
				}
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if s, ok := to.(*ast.SelectorExpr); ok && s.Sel.Name == "Code" && len(n.Lhs) == len(n.Rhs) {
						code(n.Rhs[i])
					}
				}
			}
			return true
		})
	}
	return errs, codes
}

// isStatus reports whether an expression is the number of an HTTP error.
func isStatus(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.INT && len(l.Value) == 3 && (l.Value[0] == '4' || l.Value[0] == '5')
}

// subject matches the name of a field or a value at the start of a message.
var subject = regexp.MustCompile(`^(%[sdq]|/|[a-zA-Z_]+(\[%d\])?[._:]|[a-z]+[A-Z_]|(body|combos|connections|content|cursor|dimensions|digest|from|input|limit|messages|model|modalities|n|path|period|role|status|store|stream|background|failed|alias|thread|tools|url) )`)

// sentence reports whether a format is a sentence: it starts with a capital letter or
// with the name of a field, and ends with a period, a question mark or another
// sentence.
func sentence(param, format string) bool {
	first, _, _ := strings.Cut(format, " ")
	start := format[0] >= 'A' && format[0] <= 'Z' || first == param || subject.MatchString(format)
	return start && (strings.HasSuffix(format, ".") || strings.HasSuffix(format, "?") || strings.HasSuffix(format, "%s"))
}

func TestErrorMessagesAreSentences(t *testing.T) {
	for _, tt := range []struct {
		param, format string
		want          bool
	}{
		{"", "The body is empty.", true},
		{"model", "model is required.", true},
		{"", "the body is empty.", false},
		{"", "The body is empty", false},
		{"", "%s must be a number.", true},
	} {
		if got := sentence(tt.param, tt.format); got != tt.want {
			t.Fatalf("%q: got %v, want %v", tt.format, got, tt.want)
		}
	}
	errs, _ := apiErrors(t)
	if len(errs) < 300 {
		t.Fatalf("only %d messages were found", len(errs))
	}
	for _, e := range errs {
		if !sentence(e.param, e.format) {
			t.Errorf("%s: %q is not a sentence: begin with a capital letter or the name of the field, end with a period", e.position, e.format)
		}
	}
}

// shared are the codes that vendors have too, in the same meaning, and that clients know.
var shared = [...]string{
	"content_filter", "context_length_exceeded", "insufficient_quota", "invalid_api_key", "model_not_found",
	"previous_response_not_found", "rate_limit_exceeded", "slow_down", "timeout", "websocket_connection_limit_reached",
}

func TestErrorCodesAreDocumented(t *testing.T) {
	_, codes := apiErrors(t)
	b, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(b), -1) {
		documented[m[1]] = true
	}
	for code, position := range codes {
		if !documented[code] {
			t.Errorf("%s: the code %q is missing from docs/reference/errors.md", position, code)
		}
	}
	for code := range documented {
		if apierr.IsOwn(code) == slices.Contains(shared[:], code) {
			t.Errorf("the code %q is not either in pkg/wire/apierr/codes.go or shared with vendors", code)
		}
		if codes[code] == "" {
			t.Errorf("docs/reference/errors.md has the code %q, which no error has", code)
		}
	}
}
