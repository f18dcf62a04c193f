package htmlmd

import (
	"net/url"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	for _, tt := range [][3]string{
		{"https://a.example/x/y?q=1", "z", "https://a.example/x/z"},
		{"https://a.example/x/y?q=a/b", "z", "https://a.example/x/z"},
		{"https://a.example/x/y", "/z", "https://a.example/z"},
		{"https://a.example/x/y?q", "?z", "https://a.example/x/y?z"},
		{"https://a.example/x/y", "//b.example/z", "https://b.example/z"},
		{"https://a.example/x/y", `\\b.example\z?\`, `https://b.example/z?\`},
		{"https://a.example/x/y", `/\b.example/z`, "https://b.example/z"},
		{"https://a.example/x/y", "http://b.example/z", "http://b.example/z"},
		{"https://a.example/x/y", "HTTP://b.example/z", "HTTP://b.example/z"},
		{"https://a.example/x/y", "data:text/html,x", "data:text/html,x"},
		{"https://a.example/x/y", "file:///etc/passwd", "file:///etc/passwd"},
		{"https://a.example/x/y", "java\nscript:alert(1)", "javascript:alert(1)"},
		{"https://a.example/x/y", "/z?u=http://b.example", "https://a.example/z?u=http://b.example"},
		{"https://a.example/x/y", "z:80/a", "z:80/a"},
		{"https://a.example/x/y", "./z:80", "https://a.example/x/z:80"},
		{"https://a.example/x/y", "#f", "https://a.example/x/y#f"},
		{"https://a.example/x/y?q#g", "#f", "https://a.example/x/y?q#f"},
		{"https://a.example/x/y?q", "", "https://a.example/x/y?q"},
		{"https://a.example/x/y/z", "../../../../w/./v/..", "https://a.example/w/"},
		{"https://a.example/x/y/z", "..", "https://a.example/x/"},
		{"https://a.example/x/y/z", ".a/..b", "https://a.example/x/y/.a/..b"},
		{"https://a.example/", "", "https://a.example/"},
		{"https://a.example", "z", "https://a.example/z"},
		{"https://a.example?q", " z\t", "https://a.example/z"},
		{"", "z", "z"},
	} {
		if got := Resolve(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s + %q: got %s, want %s", tt[0], tt[1], got, tt[2])
		}
	}
}

// Addresses on which RFC 3986 and Go's parser agree are resolved like that.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"a/../b", "../..//c", "?x", "//h/p", "./a/./b/", "/..", "a:b", "%2e%2e/x"} {
		f.Add(s)
	}
	base, _ := url.Parse("https://a.example/x/y/z?q")
	f.Fuzz(func(t *testing.T, ref string) {
		got := Resolve(base.String(), ref)
		for i := 0; i < len(ref); i++ {
			if c := ref[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '%' || c == ':' || c == '@' || c == '[' || c == '"' || c == '<' || c == '>' || c == '^' || c == '`' || c == '{' || c == '|' || c == '}' {
				return // written in another way by Go
			}
		}
		if strings.Contains(ref, "//") {
			return // another host, or empty segments, which Go joins
		}
		u, err := base.Parse(ref)
		if err != nil {
			return
		}
		want := base.Scheme + "://" + u.Host + u.EscapedPath()
		if u.ForceQuery || u.RawQuery != "" {
			want += "?" + u.RawQuery
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", ref, got, want)
		}
	})
}
