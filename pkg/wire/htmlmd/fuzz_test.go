package htmlmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
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
