package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// phrases are the words that comments and texts do without, with those to
// write instead. Only a text that contains the key is searched for the pattern.
var phrases = []struct{ forbidden, instead, key string }{
	{`gives`, "returns, sends, has", "gives"},
	{`tells whether`, "reports whether", "tells"},
	{`tells (that|of)`, "states, reports", "tells"},
	{`(is|are) none`, "is not, is invalid, is missing", "none"},
	{`anew`, "again", "anew"},
	{`nobody`, "no caller, no client, no one with …", "nobody"},
	{`somebody`, "a caller, a client", "somebody"},
	{`bears?`, "carries, has, tolerates", "bear"},
	{`to be had`, "available", "had"},
	{`(is|are|was) had`, "is fetched, is obtained", "had"},
	{`lets? go of`, "releases, closes", "let"},
	{`what is no`, "an invalid …, anything but …", "what"},
	{`so many`, "this number of, too many", "many"},
	{`of (its|their) own accord`, "by itself, unasked", "accord"},
	{`(is|are|was|were) made( (?P<not>of|up|from|public|by hand))?`, "is created, is sent, is built", "made"},
	{`brought in`, "imported", "brought"},
}

// vendors are files whose texts are not weir's: they are compared with, or
// repeat, what others write.
var vendors = []string{
	"docs/glossary.md",
	"docs/reference/upstream-errors.md",
	"pkg/wire/vendortext/",
	"test/rules/language_test.go",
}

// gap is whatever may stand between two words of a comment.
const gap = `[\s/*#]+`

var forbidden = func() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, p := range phrases {
		out = append(out, regexp.MustCompile(`(?i)\b`+strings.ReplaceAll(p.forbidden, " ", gap)+`\b`))
	}
	return out
}()

// clause matches a sentence whose subject is a clause. A question may begin so.
var clause = regexp.MustCompile(`(^|[.;:]\s+)(What|Whoever)\s[^.?!]*[.!]`)

var clauseStart = regexp.MustCompile(`What|Whoever`)

// A remark is one place in a text that breaks a rule.
type remark struct {
	offset int
	text   string
}

// remarks lists the forbidden phrases of a text.
func remarks(text string) []remark {
	var out []remark
	lower := strings.ToLower(text)
	for i, re := range forbidden {
		if !strings.Contains(lower, phrases[i].key) {
			continue
		}
		not := re.SubexpIndex("not")
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			if not > 0 && m[2*not] >= 0 {
				continue
			}
			out = append(out, remark{m[0], strconv.Quote(text[m[0]:m[1]]) + ": write " + phrases[i].instead})
		}
	}
	return out
}

// clauses lists the sentences of a comment whose subject is a clause.
func clauses(text string) []remark {
	var out []remark
	for _, m := range clause.FindAllStringIndex(text, -1) {
		out = append(out, remark{m[0], strconv.Quote(text[m[0]:min(m[1], m[0]+40)]) + ": begin with the subject"})
	}
	return out
}

// words splits a name in camel case: TestNobodyWaits → "Test Nobody Waits".
func words(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// reports are the functions of testing whose strings are read by people. Other
// strings of a test are data.
var reports = map[string]bool{
	"Error": true, "Errorf": true, "Fatal": true, "Fatalf": true, "Log": true, "Logf": true, "Run": true, "Skip": true, "Skipf": true,
}

// goTexts calls f with the comments and texts of a Go file: every comment,
// and the string literals of the program. Of a test it takes the names of the
// tests and the strings that they report.
func goTexts(t *testing.T, path, src string, f func(offset int, text string, comment bool)) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	for _, g := range file.Comments {
		f(at(g.Pos()), src[at(g.Pos()):at(g.End())], true)
	}
	test := strings.HasSuffix(path, "_test.go")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				return false
			}
		case *ast.FuncDecl:
			if test && strings.HasPrefix(n.Name.Name, "Test") {
				f(at(n.Name.Pos()), words(n.Name.Name), false)
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && test && reports[s.Sel.Name] {
				for _, a := range n.Args {
					if l, ok := a.(*ast.BasicLit); ok && l.Kind == token.STRING {
						f(at(l.Pos()), l.Value, false)
					}
				}
			}
		case *ast.BasicLit:
			if !test && n.Kind == token.STRING {
				f(at(n.Pos()), n.Value, false)
			}
		}
		return true
	})
}

var (
	scriptComment = regexp.MustCompile(`(?m)(^[ \t]*//.*\n?)+|/\*[\s\S]*?\*/`)
	codeFence     = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	codeSpan      = regexp.MustCompile("``[^\n]*?``|`[^`\n]*`")
)

// blank replaces what re matches by spaces, so that offsets stay.
func blank(re *regexp.Regexp, s string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, strings.Repeat("x", len(m)-strings.Count(m, "\n"))+strings.Repeat("\n", strings.Count(m, "\n")))
	})
}

// prose returns a Markdown text without its code.
func prose(md string) string { return blank(codeSpan, blank(codeFence, md)) }

// marks are those of comments.
var marks = regexp.MustCompile(`(?m)^[ \t]*(//|/\*+|\*/|\*)[ \t]?|\*/`)

// language lists what a file says in words that the project does not use.
func language(t *testing.T, path, src string) []remark {
	var out []remark
	add := func(offset int, found []remark) {
		for _, r := range found {
			out = append(out, remark{offset + r.offset, r.text})
		}
	}
	switch filepath.Ext(path) {
	case ".go":
		goTexts(t, path, src, func(offset int, text string, comment bool) {
			add(offset, remarks(text))
			if comment && clauseStart.MatchString(text) {
				add(offset, clauses(marks.ReplaceAllString(text, "")))
			}
		})
	case ".md":
		add(0, remarks(prose(src)))
	case ".mjs", ".js", ".ts", ".tsx":
		add(0, remarks(src))
		for _, m := range scriptComment.FindAllStringIndex(src, -1) {
			add(m[0], clauses(marks.ReplaceAllString(src[m[0]:m[1]], "")))
		}
	case ".sh", ".toml", ".html", ".css", ".yml", ".yaml":
		add(0, remarks(src))
	}
	return out
}

func TestPlainLanguage(t *testing.T) {
	for _, file := range sources(t) {
		if under(file.path, vendors) {
			continue
		}
		for _, r := range language(t, file.path, file.text) {
			t.Errorf("%s:%d: %s", file.path, line(file.text, r.offset), r.text)
		}
	}
}

func TestPlainLanguageFindsPhrases(t *testing.T) {
	tests := []struct {
		path, src string
		want      int
	}{
		{"a.go", "package a\n\n// F gives one.\nfunc F() {}\n", 1},
		{"a.go", "package a\n\n// F tells\n// whether it is.\nfunc F() {}\n", 1},
		{"a.go", "package a\n\n// What is old is dropped.\nfunc F() {}\n", 1},
		{"a.go", "package a\n\n// F reads. What does it read?\nfunc F() {}\n", 0},
		{"a.go", "package a\n\nvar gives = 1\n", 0},
		{"a.go", "package a\n\nvar s = \"it is made anew\"\n", 2},
		{"a.go", "package a\n\nvar s = \"it is made of iron\"\n", 0},
		{"a.go", "package a\n\ntype s struct {\n\tA int `json:\"gives\"`\n}\n", 0},
		{"a_test.go", "package a\n\nvar body = \"nobody\"\n", 0},
		{"a_test.go", "package a\n\nfunc TestNobodyWaits(t *testing.T) { t.Error(\"somebody waits\") }\n", 2},
		{"a.mjs", "/* x is\n * none */\n", 1},
		{"a.mjs", "// Whoever asks is served.\nf();\n", 1},
		{"a.tsx", "<p>The machine is made.</p>\n", 1},
		{"a.md", "It `gives` nothing.\n\n```\ngives\n```\n", 0},
		{"a.md", "Settings were brought\nin.\n", 1},
	}
	for _, test := range tests {
		if got := language(t, test.path, test.src); len(got) != test.want {
			t.Errorf("%s %q: %d remarks %v, want %d", test.path, test.src, len(got), got, test.want)
		}
	}
}
