package htmlmd

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/golden"
)

func TestArticle(t *testing.T) {
	raw, err := os.ReadFile("testdata/article.html")
	if err != nil {
		t.Fatal(err)
	}
	md := Read(string(raw), "https://tea.example.com/guides/tea/", Markdown, 0)
	golden.Bytes(t, "article.md", []byte(md.Text+"\n"))
	golden.Bytes(t, "article.txt", []byte(Read(string(raw), "https://tea.example.com/guides/tea/", Text, 0).Text+"\n"))
	md.Text = ""
	golden.JSON(t, "article", md)
}

func TestContentSelection(t *testing.T) {
	long := strings.Repeat("word ", 60)
	tests := []struct{ name, doc, want string }{
		{"an_article_with_most_of_the_text_is_all", "<div>before</div><article>" + long + "</article><div>after</div>", strings.TrimSpace(long)},
		{"several_articles_are_a_list_of_news", "<h1>News</h1><article>" + long + "</article><article>b " + long + "</article><article>c " + long + "</article>",
			"# News\n\n" + strings.TrimSpace(long) + "\nb " + strings.TrimSpace(long) + "\nc " + strings.TrimSpace(long)},
		{"a_short_main_of_a_long_page_is_not", "<main>x</main><p>" + long + long, "x\n\n" + strings.TrimSpace(long+long)},
		{"a_page_of_navigation_only_is_shown", "<nav><p>The only text that this whole page has to offer", "The only text that this whole page has to offer"},
		{"an_open_head_ends_with_the_first_block", "<html><head><title>t</title><p>hi", "hi"},
		{"a_page_header_goes_an_articles_stays", "<header>gone</header><article><header><h1>In</h1></header><p>text</p></article>", "# In\n\ntext"},
		{"hidden_parts_go", `<p>a<span hidden>b</span><span style="display:none">c</span>d`, "ad"},
		{"a_table_in_a_table_only_arranges", "<table><tr><td>x<table><tr><td>1<td>2</table></table>", "x\n\n| 1 | 2 |\n| --- | --- |"},
		{"a_table_of_one_column_only_arranges", "<table><tr><td><p>x<tr><td>y</table>", "x\n\ny"},
		{"stray_end_tags_are_passed_over", "</div></p>a</b></li></table>b", "ab"},
		{"overlapping_elements", "<b>a<i>b</b>c</i>d", "**a*b***cd"},
		{"empty_elements_leave_nothing", "a<b> </b><a href=/x></a><em><strong></strong></em> b<h2></h2>", "a b"},
		{"text_that_is_no_tag", "1 < 2 &amp;& 3 > 2 &lt;script&gt;", `1 < 2 && 3 > 2 \<script>`},
		{"text_that_looks_like_a_link_is_none", "<p>see [me](javascript:alert(1)) or ![me](x) and f[0](1)</p>", `see [me]\(javascript:alert(1)) or ![me]\(x) and f[0]\(1)`},
		{"nor_is_it_over_elements", "<p>see [me]<span>(javascript:alert(1))</span> &lt;<span>img</span> src=x&gt; a&lt;<i></i>b", `see [me]\(javascript:alert(1)) \<img src=x> a\<b`},
		{"a_definition_of_a_link_is_none", "<p>[me]: javascript:alert(1)</p><ul><li>[me]: x</ul>", "\\[me]: javascript:alert(1)\n\n- \\[me]: x"},
		{"an_address_in_angle_brackets_is_text", "&lt;javascript:alert(1)&gt; &lt;!-- &lt;/p&gt; &lt;3", `\<javascript:alert(1)> \<!-- \</p> <3`},
		{"a_sign_that_the_page_escapes_is_escaped_again", `\&lt;img> [me\](x) C:\Users\ \`, "\\\\\\<img> [me\\\\]\\(x) C:\\Users\\\\ \\\\"},
		{"ticks_in_text_end_no_code", "` \\<code>&lt;b&gt;</code> `", "\\` \\\\`<b>` \\`"},
		{"two_pieces_of_code_stay_two", "<code>a</code><code>``&lt;b&gt;</code>", "`a` ``` ``<b> ```"},
		{"code_in_a_cell_ends_there", `<table><tr><td>a<td><code>\|&lt;b&gt;</code></table>`, "| a | `\\ \\|<b>` |\n| --- | --- |"},
		{"code_within_bold_begins_its_line", "<b><pre>x\n\n&lt;b&gt;</pre></b>", "```\nx\n\n<b>\n```"},
		{"a_link_to_nowhere_leaves_its_text", `&lt;<a href="http:x">img src=x></a> ]<a href="http:x">(x)</a>`, `\<img src=x> ]\(x)`},
		{"what_an_image_shows_is_text", "<img src=/i alt='`&lt;b&gt; ](x) \\'>", "![\\`\\<b> \\]\\(x) \\\\](https://a.example.com/i)"},
		{"an_address_ends_no_code", "<a href='/?`|\\'>z</a>", "[z](https://a.example.com/?%60%7C%5C)"},
		{"a_script_never_closed_hides_the_rest", "<p>a</p><script>if (1<2) <p>b", "a"},
		{"a_comment_never_closed_hides_the_rest", "<p>a</p><!-- <p>b", "a"},
		{"bytes_that_are_not_text_go", "a\x00b\xff\u200bc\x01d", "a bc d"},
		{"strong_over_blocks_is_closed_in_each", "<b><p>a</p><p>b</p></b>", "**a**\n\n**b**"},
		{"a_base_moves_links", `<base href="https://cdn.example.org/x/"><a href=y>z</a>`, "[z](https://cdn.example.org/x/y)"},
		{"a_base_of_another_scheme_does_not", `<base href="javascript:0"><a href=y>z</a>`, "[z](https://a.example.com/d/y)"},
		{"parentheses_in_an_address", `<a href="/a_(b)">z</a>`, "[z](https://a.example.com/a_%28b%29)"},
		{"ticks_in_code", "<code>``</code><pre>```\nx</pre>", "``` `` ```\n\n````\n```\nx\n````"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Read(tt.doc, "https://a.example.com/d/e", Markdown, 0).Text; got != tt.want {
				t.Errorf("got\n%q\nwant\n%q", got, tt.want)
			}
		})
	}
}

// Each page is built to cost far more than its size.
func TestHostilePagesAreBounded(t *testing.T) {
	const size = 5 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	pages := map[string]string{
		"nested_divs":        fill("<div>x"),
		"nested_lists":       fill("<ul><li>x"),
		"nested_quotes":      fill("<blockquote>x"),
		"nested_tables":      fill("<table><tr><td>x"),
		"nested_inline":      fill("<b><i><a href=/>x"),
		"open_brackets":      fill("<"),
		"ends_only":          fill("</li></div></td>"),
		"deep_then_ends":     strings.Repeat("<div><ul><li><table><tr><td>", 200) + fill("</p></b></a>"),
		"many_attributes":    "<p " + fill("a=b ") + ">x",
		"one_attribute":      `<a href="` + fill("a") + `">x</a>`,
		"long_base":          `<base href="https://a.example.com/` + strings.Repeat("b", 2000) + `/">` + fill("<a href=c>x</a>"),
		"one_comment":        "<!--" + fill("-"),
		"entities":           fill("&"),
		"long_entities":      fill("&CounterClockwiseContourIntegral"),
		"lists_side_by_side": fill("<li>x"),
		"rows":               "<table>" + fill("<tr><td colspan=32>x<td>y"),
		"pre":                "<pre>" + fill("\n"),
		"ticks":              "<code>" + fill("`"),
		"classes":            `<p class="` + fill("a ") + `">x`,
		"list_wall":          strings.Repeat("<ul>", 500) + fill("<li><p>a</li>"),
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			// Linear work takes a second on a slow machine; quadratic work takes
			// an hour, and so runs into the time limit of go test.
			if p := Read(page, "https://a.example.com/", Markdown, 0); len(p.Text) > maxOutput || !utf8.ValidString(p.Text) {
				t.Errorf("%d bytes of output", len(p.Text))
			}
		})
	}
}

func TestPageWithTooManyTagsIsTruncated(t *testing.T) {
	p := Read(strings.Repeat("<b>x</b>", maxTags+10), "", Text, 0)
	if n := strings.Count(p.Text, "x"); n != maxTags-1 && n != maxTags || !p.Truncated {
		t.Errorf("%d words, cut %v", n, p.Truncated)
	}
}

func TestPageWithATooLargeTokenIsTruncated(t *testing.T) {
	for _, within := range []string{"<script>%s</script>", "<p>%s</p>", "<a b=%s>c</a>"} {
		large := strings.Repeat("x", maxToken)
		p := Read("<p>before</p>"+fmt.Sprintf(within, large)+"<p>after</p>", "", Text, 0)
		if !strings.HasPrefix(p.Text, "before") || strings.Contains(p.Text, "after") || !p.Truncated {
			t.Errorf("%s: %d bytes of text, cut %v", within, len(p.Text), p.Truncated)
		}
	}
}

func TestCutCountsCharacters(t *testing.T) {
	for _, tt := range []struct {
		in   string
		max  int
		want string
		cut  bool
	}{{"äöü", 2, "äö", true}, {"äöü", 3, "äöü", false}, {"abc", 0, "abc", false}, {"", 1, "", false}} {
		if got, cut := Cut(tt.in, tt.max); got != tt.want || cut != tt.cut {
			t.Errorf("%q to %d: got %q %v", tt.in, tt.max, got, cut)
		}
	}
	if p := Read("a <code>&lt;img src=x&gt; and more</code>", "", Markdown, 20); p.Text != "a " || !p.Truncated {
		t.Errorf("code that was cut: got %q %v", p.Text, p.Truncated)
	}
	if p := Read("a <code>``b</code> \\` <code>c</code> d e", "", Markdown, 24); p.Text != "a ``` ``b ``` \\\\\\` `c` d" || !p.Truncated {
		t.Errorf("whole code: got %q %v", p.Text, p.Truncated)
	}
	if p := Read("<p>"+strings.Repeat("€", 100), "", Markdown, 10); p.Text != strings.Repeat("€", 10) || !p.Truncated {
		t.Errorf("got %q %v", p.Text, p.Truncated)
	}
}

func TestDecode(t *testing.T) {
	tests := []struct{ name, raw, contentType, want, label string }{
		{"utf8_by_default", "ä", "", "ä", "utf-8"},
		{"not_utf8_is_windows_1252", "\xe4\x80", "text/html", "ä€", "windows-1252"},
		{"the_header_goes_before_the_page", "<meta charset=utf-8>\xe4", "text/html; charset=ISO-8859-1", "<meta charset=utf-8>ä", "iso-8859-1"},
		{"meta_charset", "<meta charset='windows-1252'>\xe4", "text/html", "<meta charset='windows-1252'>ä", "windows-1252"},
		{"meta_http_equiv", `<meta http-equiv=x content="text/html; charset=iso-8859-1">` + "\x80", "", `<meta http-equiv=x content="text/html; charset=iso-8859-1">€`, "iso-8859-1"},
		{"a_mark_goes_before_all", "\xef\xbb\xbfä", "text/html; charset=latin1", "ä", "utf-8"},
		{"declared_utf8_that_is_not", "a\xffb", "text/html; charset=utf-8", "a\uFFFDb", "utf-8"},
		{"an_unknown_name_with_ascii", "abc", "text/html; charset=shift_jis", "abc", "shift_jis"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, label, ok := Decode([]byte(tt.raw), tt.contentType); got != tt.want || label != tt.label || !ok {
				t.Errorf("got %q %q %v, want %q %q", got, label, ok, tt.want, tt.label)
			}
		})
	}
	for _, tt := range [][3]string{ // encodings that are the platform's to read
		{"\x83\x65", `text/html; charset="Shift_JIS"`, "shift_jis"}, {"\x1b$B", "text/html; charset=ISO-2022-JP", "iso-2022-jp"},
		{"\xff\xfea\x00", "text/html; charset=utf-8", "utf-16le"}, {"\xfe\xff\x00a", "", "utf-16be"}, {"a\x00", "text/html; charset=utf-16le", "utf-16le"},
		{"<meta charset=latin1>\xe4", "", "latin1"}, {"<meta charset=koi8-r>\xe4", "text/html", "koi8-r"},
	} {
		if _, label, ok := Decode([]byte(tt[0]), tt[1]); ok || label != tt[2] {
			t.Errorf("%q: %q %v, want %q to be left", tt[0], label, ok, tt[2])
		}
	}
}

func TestDate(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"2026-03-04T05:06:07+01:00": "2026-03-04T04:06:07Z", "2026-03-04T05:06:07": "2026-03-04T05:06:07Z", "2026-03-04T05:06:07.123Z": "2026-03-04T05:06:07Z",
		"2026-03-04": "2026-03-04", "Mar 4, 2026": "2026-03-04", "March 4, 2026": "2026-03-04", "Wed, 04 Mar 2026 05:06:07 GMT": "2026-03-04T05:06:07Z",
		"3 days ago": "2026-11-18", "2 hours ago": "2026-11-21T10:00:00Z", "1 week ago": "2026-11-14", "yesterday": "2026-11-20",
		"soon": "", "": "", "0001-01-01T00:00:00": "", "99999 days ago": "", "2026": "",
	} {
		if got := Date(in, now); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a <strong>b</strong> &amp;\n c": "a b & c", "1 < 2": "1 < 2", "plain\u00a0text": "plain text", "": "",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
