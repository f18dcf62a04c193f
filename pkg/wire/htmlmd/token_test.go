package htmlmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// samples are pieces of pages with everything that is odd about them.
var samples = []string{
	"", "<", "</", "</>", "<>", "<a", "<a ", "<a/", "< a>", "<1>", "</ a>", "</1>b", "<a>b</a>", "<A HREF=X>b</A >", "<a/b/c>", "<a b='c\">' d=\"e'>\" f=g/h>i",
	"<a b = c d= e f =g>", "<a =b>", "<a b==c>", "<a b='c", "<a b=\"", "<a b=c", "<p/>", "<p a=b/>",
	"<!-->a-->b", "<!--->a", "<!---->a", "<!--a--!>b", "<!--a--b-->c", "<!--a", "<!--a-", "<!--a--", "<!--a--!", "<!a>b", "<!", "<!doctype html><p>", "<?a?>b", "<?", "<![CDATA[a]]>b",
	"<script>a<b</script>c", "<script>a</scriptx>b</script >c", "<script>a", "<script><!--<script>a</script>b--></script>c", "<script><!--a</script>b", "<script><!-- <script></script><b></script>c", "<script><!--></script>a",
	"<SCRIPT>a</ScRiPt>b", "<style>a{}</style>b", "<title>a&amp;<b></title>c", "<textarea>&lt;</textarea>a", "<xmp>&lt;</xmp>a", "<plaintext>a</plaintext>b", "<iframe><p></iframe>a", "<noscript><p></noscript>a", "<title/>a</title>b",
	"a&amp;b&ampc&amp", "&lt;&gt;&quot;&apos;&nbsp;&copy&copy;&notit;&notin;", "<a b='&amp=c&ampd&amp;e&amp'>", "&#65;&#x42;&#X43;&#65&#x42g&#;&#x;&#0;&#128;&#x110000;&#xd800;&#99999999999;", "&&amp;&", "a\r\nb\rc", "&eacute;&Eacute&eacutex;", "&zzz;",
	"<p a=1 a=2>", "<a\nb\t=\fc>", "a<b<c>d", "<b></b ><i></i/>", "<a></a b=c>d",
}

// seen is a token as both tokenizers tell it.
type seen struct{ kind, name, text string }

func ours(doc string) (out []seen) {
	z := tokens{doc: doc}
	for {
		switch z.next() {
		case noToken:
			return join(out)
		case textToken:
			out = append(out, seen{"text", "", z.plain()})
		case startToken:
			s := seen{"start", z.name, ""}
			for _, a := range z.attributes {
				s.text += strings.ToLower(a.name) + "=" + unescape(a.value, true) + ";"
			}
			out = append(out, s)
		case endToken:
			out = append(out, seen{"end", z.name, ""})
		}
	}
}

func theirs(doc string) (out []seen) {
	z := html.NewTokenizer(strings.NewReader(doc))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return join(out)
		case html.TextToken:
			out = append(out, seen{"text", "", string(z.Text())})
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			s := seen{"start", string(name), ""}
			for more {
				var k, v []byte
				k, v, more = z.TagAttr()
				s.text += string(k) + "=" + string(v) + ";"
			}
			out = append(out, s)
		case html.EndTagToken:
			name, _ := z.TagName()
			out = append(out, seen{"end", string(name), ""})
		}
	}
}

// join makes neighbouring texts one, with line ends as they are normalised.
func join(list []seen) (out []seen) {
	for _, s := range list {
		s.text = strings.ReplaceAll(strings.ReplaceAll(s.text, "\r\n", "\n"), "\r", "\n")
		if n := len(out); n > 0 && s.kind == "text" && out[n-1].kind == "text" {
			out[n-1].text += s.text
		} else if s.kind != "text" || s.text != "" {
			out = append(out, s)
		}
	}
	return out
}

func same(t *testing.T, doc string) {
	t.Helper()
	got, want := ours(doc), theirs(doc)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%q:\ngot\n%q\nwant\n%q", doc, got, want)
			return
		}
	}
}

// The tokens are those of the Go project's tokenizer.
func TestTokensAreThoseOfAnother(t *testing.T) {
	for _, doc := range samples {
		if doc != "&zzz;" {
			same(t, doc)
		}
	}
	for _, a := range samples {
		for _, b := range []string{"<p>x", "</script>", "-->", "\">", "'>y", ">", "&amp;z"} {
			if !strings.HasPrefix(a, "&#") || b != "&amp;z" {
				same(t, a+b)
			}
		}
	}
	article, err := os.ReadFile("testdata/article.html")
	if err != nil {
		t.Fatal(err)
	}
	same(t, string(article))
}

func TestNamedCharacters(t *testing.T) {
	n, last := 0, ""
	for rest := named; rest != ""; n++ {
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= utf8.RuneSelf || !isWord(byte(r)) })
		_, size := utf8.DecodeRuneInString(rest[end:])
		name, want := rest[:end], rest[end:end+size]
		if name <= last {
			t.Errorf("%s does not sort after %s", name, last)
		}
		last, rest = name, rest[end+size:]
		if got := entity(name); got != want {
			t.Errorf("entity(%q) = %q, want %q", name, got, want)
		}
		if got := html.UnescapeString("&" + name + ";"); got != want {
			t.Errorf("%s: %q, want %q", name, want, got)
		}
		// Whether the semicolon may be missing.
		if got, want := unescape("&"+name+" ", false), html.UnescapeString("&"+name+" "); got != want {
			t.Errorf("%s without a semicolon: %q, want %q", name, got, want)
		}
	}
	if n < 400 {
		t.Errorf("%d names, want more than 400", n)
	}
	for _, name := range []string{"", "a", "Zzz", "zzz", "0", "amper", "am"} {
		if got := entity(name); got != "" {
			t.Errorf("entity(%q) = %q, want it to be unknown", name, got)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		// Names of the two tables that differ, and what only bytes tell apart.
		if strings.ContainsAny(doc, "&\x00") || !utf8.ValidString(doc) || len(doc) > 2000 {
			return
		}
		for _, r := range doc {
			if r >= utf8.RuneSelf {
				return // names in other letters are of no element
			}
		}
		same(t, doc)
	})
}

// FuzzRead finds pages that make invalid or too much text. One that takes for ever
// is found by the time limit of the whole run.
func FuzzRead(f *testing.F) {
	for _, s := range samples {
		f.Add(s, uint8(0))
	}
	files, _ := filepath.Glob("testdata/*.html")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(string(b), uint8(7))
		}
	}
	f.Fuzz(func(t *testing.T, doc string, max uint8) {
		if len(doc) > 1<<16 {
			return
		}
		for _, format := range []Format{Markdown, Text} {
			p := Read(strings.ToValidUTF8(doc, "\uFFFD"), "https://a.example.com/d/e", format, int(max))
			if !utf8.ValidString(p.Text) || max > 0 && utf8.RuneCountInString(p.Text) > int(max) || len(p.Text) > maxOutput {
				t.Errorf("%d bytes of text for a limit of %d", len(p.Text), max)
			}
			if strings.ContainsAny(p.Title+p.Author+p.Language, "\n\x00") {
				t.Errorf("a title over lines: %q", p.Title)
			}
		}
		Plain(doc)
	})
}
