package rules

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// A sourceFile is a text file of the repository, by its path from the root.
type sourceFile struct{ path, text string }

// notOurs are folders that are built, installed or recorded.
var notOurs = map[string]bool{
	".git": true, "node_modules": true, "build": true, "out": true, "dist": true, "testdata": true, ".wrangler": true, ".weir": true,
}

var textual = map[string]bool{
	".go": true, ".mjs": true, ".js": true, ".ts": true, ".tsx": true, ".md": true, ".sh": true, ".toml": true, ".html": true, ".css": true, ".yml": true,
}

// sources reads the repository's texts.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	const root = "../.."
	var out []sourceFile
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if notOurs[d.Name()] && name != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !textual[filepath.Ext(name)] || !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(root, name)
		out = append(out, sourceFile{filepath.ToSlash(rel), string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 300 {
		t.Fatalf("only %d files found", len(out))
	}
	return out
}

// under reports whether the path is an entry, or lies under one.
func under(path string, list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return path == s || strings.HasSuffix(s, "/") && strings.HasPrefix(path, s) })
}

func line(text string, offset int) int { return strings.Count(text[:min(offset, len(text))], "\n") + 1 }

var (
	headingLine = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*\s*$`)
	sectionMark = regexp.MustCompile(`^([a-z]|[0-9]+|[a-z0-9]+(?:\.[0-9]+)+)\.?\s`)
	itemLine    = regexp.MustCompile(`^( *)([0-9]+)\.\s`)
	codeRow     = regexp.MustCompile(`^(?:\|\s*|- \*\*)([A-Z][0-9]+)\b`)
)

// A document is what can be cited of one: its sections, the numbered items in
// them ("4.1.4.7" is item 7 of item 4 of section 4.1), the codes of its rows
// (T37), and the anchors of its headings.
type document struct {
	sections, anchors map[string]bool
}

func parseDocument(md string) document {
	doc := document{map[string]bool{}, map[string]bool{}}
	slugs := map[string]int{}
	section, items, fenced := "", []string(nil), false
	for _, l := range strings.Split(md, "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		if m := headingLine.FindStringSubmatch(l); m != nil {
			s := slug(m[2])
			if n := slugs[s]; n > 0 {
				doc.anchors[fmt.Sprintf("%s-%d", s, n)] = true
			} else {
				doc.anchors[s] = true
			}
			slugs[s]++
			section, items = "", nil
			if m := sectionMark.FindStringSubmatch(m[2] + " "); m != nil {
				section = m[1]
				doc.sections[section] = true
			}
			continue
		}
		if m := codeRow.FindStringSubmatch(l); m != nil {
			doc.sections[m[1]] = true
		}
		if m := itemLine.FindStringSubmatch(l); m != nil && section != "" {
			depth := 0
			if len(m[1]) >= 2 && len(items) > 0 {
				depth = 1
			}
			items = append(items[:depth:depth], m[2])
			doc.sections[section+"."+strings.Join(items, ".")] = true
		}
	}
	return doc
}

var linkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)

// slug returns the anchor that GitHub derives from a heading.
func slug(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

// documents parses the Markdown files, by path.
func documents(files []sourceFile) map[string]document {
	out := map[string]document{}
	for _, f := range files {
		if strings.HasSuffix(f.path, ".md") {
			out[f.path] = parseDocument(f.text)
		}
		if f.path == "docs/reference/errors.md" { // on the pages its rows are places too
			for _, m := range errorCode.FindAllStringSubmatch(f.text, -1) {
				out[f.path].anchors[m[1]] = true
			}
		}
	}
	return out
}

var errorCode = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")

var (
	// docs/reference/spec.md, 2.9 and 4.3.1
	docPath  = regexp.MustCompile(`(^|[^\w/.-])(docs/[\w./-]*\w)`)
	docRef   = `(?:[TFN][0-9]+|[a-e]\.[0-9]+|[0-9]+(?:\.[0-9]+)*)`
	docRefs  = regexp.MustCompile(`^,` + gap + `(` + docRef + `(?:(?:,` + gap + `|` + gap + `and` + gap + `|–)` + docRef + `)*)`)
	oneRef   = regexp.MustCompile(docRef)
	bareDoc  = regexp.MustCompile(`(?i)\b(spec|reliability|api-shapes|dialects|style|layout)(\.md)?` + gap + `\(?(section )?` + docRef + `\b`)
	bareCode = regexp.MustCompile(`\b[TF][0-9]{1,2}\b`)
	issue    = regexp.MustCompile(`(?i)\bissue` + gap + `#?[0-9]+|\.\./shared`)
)

// citations lists what is wrong with the references of a comment.
func citations(text string, docs map[string]document, exists func(string) bool) []remark {
	var out []remark
	cited := false
	for _, m := range docPath.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[4]:m[5]]
		if !exists(name) {
			out = append(out, remark{m[4], name + " does not exist"})
			continue
		}
		refs := docRefs.FindStringSubmatch(text[m[5]:])
		if refs == nil {
			continue
		}
		cited = cited || bareCode.MatchString(refs[1])
		for _, ref := range oneRef.FindAllString(refs[1], -1) {
			if doc, ok := docs[name]; !ok || !doc.sections[ref] {
				out = append(out, remark{m[4], name + " has no " + ref})
			}
		}
	}
	for _, m := range bareDoc.FindAllStringIndex(text, -1) {
		out = append(out, remark{m[0], text[m[0]:m[1]] + ": cite docs/reference/…, and the number after a comma"})
	}
	if m := bareCode.FindStringIndex(text); m != nil && !cited {
		out = append(out, remark{m[0], text[m[0]:m[1]] + ": cite docs/reference/reliability.md, " + text[m[0]:m[1]]})
	}
	for _, m := range issue.FindAllStringIndex(text, -1) {
		out = append(out, remark{m[0], text[m[0]:m[1]] + " is not part of the repository"})
	}
	return out
}

// comments calls f with the comments of a file.
func comments(t *testing.T, file sourceFile, f func(offset int, text string)) {
	switch path.Ext(file.path) {
	case ".go":
		goTexts(t, file.path, file.text, func(offset int, text string, comment bool) {
			if comment {
				f(offset, text)
			}
		})
	case ".mjs", ".js", ".ts", ".tsx":
		for _, m := range scriptComment.FindAllStringIndex(file.text, -1) {
			f(m[0], file.text[m[0]:m[1]])
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join("../..", filepath.FromSlash(name)))
	return err == nil
}

func TestCitationsExist(t *testing.T) {
	files := sources(t)
	docs := documents(files)
	for _, file := range files {
		if file.path == "test/rules/docs_test.go" {
			continue
		}
		comments(t, file, func(offset int, text string) {
			for _, r := range citations(text, docs, exists) {
				t.Errorf("%s:%d: %s", file.path, line(file.text, offset+r.offset), r.text)
			}
		})
	}
}

func TestCitationsFindMistakes(t *testing.T) {
	docs := map[string]document{
		"docs/a.md":                     parseDocument("# A\n\n## 4. Calls\n\n### 4.1 List\n\n1. one\n2. two\n   1. sub\n\n| T37 | x |\n- **N1** y\n"),
		"docs/reference/reliability.md": parseDocument("| T5 | x |\n"),
	}
	exists := func(name string) bool { _, ok := docs[name]; return ok }
	tests := map[string]int{
		"// See docs/a.md.":                                 0,
		"// See docs/a.md, 4.1.2 and 4.1.2.1.":              0,
		"// See docs/a.md,\n// 4.1.2.":                      0,
		"// See docs/a.md, 4.2.":                            1,
		"// See docs/a.md, 4.1.3.":                          1,
		"// See docs/b.md.":                                 1,
		"// See https://example.com/docs/b.md.":             0,
		"// (docs/a.md, T37, N1)":                           0,
		"// (docs/a.md, T36)":                               1,
		"// docs/reference/reliability.md, T5":              0,
		"// as spec 2.9 says":                               1,
		"// as spec\n// 2.9 says":                           1,
		"// (reliability T5)":                               2,
		"// T5 holds":                                       1,
		"// issue 13":                                       1,
		"// the design of 3 parts; a session of 30 minutes": 0,
	}
	for text, want := range tests {
		if got := citations(text, docs, exists); len(got) != want {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
}

var (
	inlineLink = regexp.MustCompile(`!?\[[^\]]*\]\(([^()\s]*(?:\([^()]*\)[^()\s]*)?)(?:\s+"[^"]*")?\)`)
	refLink    = regexp.MustCompile(`(?m)^\[[^\]]+\]:\s*(\S+)`)
	autoLink   = regexp.MustCompile(`<(https?:[^>\s]*)>`)
	htmlLink   = regexp.MustCompile(`(?i)\b(?:src|href)="([^"]*)"`)
)

// links lists what is wrong with the links of a Markdown file.
func links(name, md string, docs map[string]document, exists func(string) bool) []remark {
	var out []remark
	text := prose(md)
	for _, re := range []*regexp.Regexp{inlineLink, refLink, autoLink, htmlLink} {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			target := md[m[2]:m[3]]
			if bad := link(name, target, docs, exists); bad != "" {
				out = append(out, remark{m[2], target + ": " + bad})
			}
		}
	}
	return out
}

func link(name, target string, docs map[string]document, exists func(string) bool) string {
	u, err := url.Parse(target)
	switch {
	case err != nil || target == "":
		return "malformed"
	case u.Scheme == "https":
		if u.Host == "" || u.User != nil || !strings.Contains(u.Host, ".") {
			return "malformed"
		}
		return ""
	case u.Scheme != "" || u.Host != "":
		return "only https links leave the repository"
	case strings.HasPrefix(u.Path, "/"):
		return "link relative to this file"
	}
	file := name
	if u.Path != "" {
		file = path.Join(path.Dir(name), u.Path)
		if strings.HasPrefix(file, "../") || !exists(file) {
			return "does not exist"
		}
	}
	if u.Fragment == "" {
		return ""
	}
	if doc, ok := docs[file]; !ok || !doc.anchors[u.Fragment] {
		return "no such heading"
	}
	return ""
}

func TestLinksResolve(t *testing.T) {
	files := sources(t)
	docs := documents(files)
	for _, file := range files {
		if !strings.HasSuffix(file.path, ".md") {
			continue
		}
		for _, r := range links(file.path, file.text, docs, exists) {
			t.Errorf("%s:%d: %s", file.path, line(file.text, r.offset), r.text)
		}
		if i := strings.Index(file.text, "/wo"+"rk/"); i >= 0 {
			t.Errorf("%s:%d: a path of one machine", file.path, line(file.text, i))
		}
	}
}

// A document that no other links to is not found by its readers.
func TestDocumentsAreLinked(t *testing.T) {
	files := sources(t)
	linked := map[string]bool{"README.md": true}
	for _, file := range files {
		if !strings.HasSuffix(file.path, ".md") {
			continue
		}
		for _, m := range inlineLink.FindAllStringSubmatch(prose(file.text), -1) {
			if target, _, _ := strings.Cut(m[1], "#"); target != "" && !strings.Contains(target, ":") {
				linked[path.Join(path.Dir(file.path), target)] = true
			}
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file.path, ".md") && !linked[file.path] {
			t.Errorf("%s: no document links to it", file.path)
		}
	}
}

func TestLinksFindMistakes(t *testing.T) {
	docs := map[string]document{
		"docs/a.md": parseDocument("# A title, *with* `code`\n\n## Same\n\n## Same\n"),
		"README.md": parseDocument("# R\n"),
	}
	exists := func(name string) bool { _, ok := docs[name]; return ok || name == "docs" }
	tests := map[string]int{
		"[a](docs/a.md)":                             0,
		"[a](docs/a.md#a-title-with-code)":           0,
		"[a](docs/a.md#same-1)":                      0,
		"[a](docs/a.md#other)":                       1,
		"[a](#r)":                                    0,
		"[a](docs/b.md)":                             1,
		"[a](../a.md)":                               1,
		"[a](/docs/a.md)":                            1,
		"[a](http://example.com)":                    1,
		"[a](https://example.com/x_(y))":             0,
		"[a](https://localhost)":                     1,
		"<https://user@example.com>":                 1,
		"`[a](docs/b.md)`":                           0,
		"![picture](docs/b.svg)":                     1,
		"<img src=\"docs/b.svg\">":                   1,
		"[![picture](docs/a.md)](https://a.example)": 0,
	}
	for text, want := range tests {
		if got := links("README.md", text, docs, exists); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}

var ends = regexp.MustCompile(`(?i)\b(?:until|till|through|ends on|valid to) (?:20\d\d|(?:January|February|March|April|May|June|July|August|September|October|November|December) (?:\d+, )?20\d\d)`)

// A sentence of a page is true on any later day: what ends on a day would be shown as present after it.
// Decisions and the change log are of their day.
func TestPagesHaveNothingThatEndsOnADay(t *testing.T) {
	for text, want := range map[string]bool{
		"an offer until 2026-11-21": true, "until November 2026": true, "The offer ends on 2027-01-01.": true,
		"cost double from 2027-01-01": false, "until it stops": false, "ended on 2026-09-09": false,
	} {
		if ends.MatchString(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
	for _, f := range sources(t) {
		if !strings.HasSuffix(f.path, ".md") || f.path == "CHANGELOG.md" || strings.HasPrefix(f.path, "docs/decisions/") {
			continue
		}
		if m := ends.FindStringIndex(f.text); m != nil {
			t.Errorf("%s:%d: %q: say since when, or of which day it is", f.path, line(f.text, m[0]), f.text[m[0]:m[1]])
		}
	}
}

// The threats and faults that two documents count are those of the tables.
func TestReliabilityHasTheRulesThatItCounts(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text, last := read("reliability.md"), map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([TF])(\d+) \|`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[2])
		last[m[1]] = max(last[m[1]], n)
	}
	want := fmt.Sprintf("threats T1 to T%d, faults F1 to F%d", last["T"], last["F"])
	for name, text := range map[string]string{"reliability.md": text, "README.md": read("README.md")} {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", name, want)
		}
	}
}
