package weburl

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
)

// golden calls use with each row of testdata/urls.jsonl: bytes that may be given for a
// URL, and new URL(bytes).href of workerd, "" for an error. test/e2e/platform/urls.test.mjs
// asks workerd.
func golden(t testing.TB, use func(raw, href string)) {
	t.Helper()
	f, err := os.Open("testdata/urls.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var row [2]json.RawMessage
		var raw, href string
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(row[0], &raw) != nil {
			var b struct{ Hex string }
			if err := json.Unmarshal(row[0], &b); err != nil {
				t.Fatal(err)
			}
			text, err := hex.DecodeString(b.Hex)
			if err != nil {
				t.Fatal(err)
			}
			raw = string(text)
		}
		if err := json.Unmarshal(row[1], &href); err != nil {
			t.Fatal(err)
		}
		use(raw, href)
	}
}

func TestURLIsReadAsByWorkerdOrRefused(t *testing.T) {
	n, accepted := 0, 0
	golden(t, func(raw, href string) {
		n++
		got, ok := Canonical(raw)
		if !ok {
			return
		}
		if accepted++; got != href {
			t.Errorf("%q:\ngot  %q\nwant %q", raw, got, href)
		}
	})
	if n < 7000 || accepted < 2100 {
		t.Errorf("%d spellings, %d of them accepted", n, accepted)
	}
}

func TestWhatPeopleWriteIsAccepted(t *testing.T) {
	for raw, want := range map[string]string{
		"https://api.example.com":                   "https://api.example.com/",
		" HTTPS://API.Example.COM:443/v1\n":         "https://api.example.com/v1",
		"http://localhost:080/v1?":                  "http://localhost/v1?",
		"http://localhost:11434/v1/":                "http://localhost:11434/v1/",
		"https://api.example.com.:8443/":            "https://api.example.com.:8443/",
		"http://127.0.0.1:8080":                     "http://127.0.0.1:8080/",
		"http://[::1]:8080/v1":                      "http://[::1]:8080/v1",
		"https://[2001:DB8:0:0::1]/":                "https://[2001:db8::1]/",
		"http://[::ffff:127.0.0.1]/":                "http://[::ffff:7f00:1]/",
		"https://bücher.example/":                   "https://xn--bcher-kva.example/",
		"https://BÜCHER.example/ä?ö#ü":              "https://xn--bcher-kva.example/%C3%A4?%C3%B6#%C3%BC",
		"https://xn--bcher-kva.example/":            "https://xn--bcher-kva.example/",
		"https://日本語.jp/":                           "https://xn--wgv71a119e.jp/",
		"https://faß.example/":                      "https://xn--fa-hia.example/",
		"https://my_host.example/":                  "https://my_host.example/",
		"https://a.example/v1/../v2/./x/%2e%2E/y":   "https://a.example/v2/y",
		"https://a.example/a%2Fb/%41?q=%20&r=a b":   "https://a.example/a%2Fb/%41?q=%20&r=a%20b",
		"https://a.example/a b|c{d}^e[f]/100%":      "https://a.example/a%20b|c%7Bd%7D%5Ee[f]/100%",
		`https://a.example/?a='b'|{}\#"<c>`:         `https://a.example/?a=%27b%27|{}\#%22%3Cc%3E`,
		"https://a.example//b//?x=https://c/../d#e": "https://a.example//b//?x=https://c/../d#e",
		"http://user:pass@proxy.example:3128":       "http://user:pass@proxy.example:3128/",
		"http://user:p@ss:w^rd@proxy.example:3128/": "http://user:p%40ss%3Aw%5Erd@proxy.example:3128/",
		"http://user:@proxy.example":                "http://user@proxy.example/",
		"http://:@proxy.example":                    "http://proxy.example/",
		"https://a.example?x@b.example/":            "https://a.example/?x@b.example/",
		"https://a.example#@b.example/":             "https://a.example/#@b.example/",
	} {
		if got, ok := Canonical(raw); got != want || !ok {
			t.Errorf("%q: got %q %v, want %q", raw, got, ok, want)
		}
	}
}

// Each of these has a reading by the standard, and another one elsewhere.
func TestAmbiguousURLIsRefused(t *testing.T) {
	for _, raw := range []string{
		`https:\\a.example\`, `https://a.example\@b.example/`, `https://a.example\b`, `https://u\@a.example/`, "https:/a.example/", "https:a.example/", "https:///a.example/",
		"https://a.exa\tmple/", "https://a.example/\n/b", "https://a.example/\x00b", "ht\ntps://a.example/", "https://a.example/\x7f", "https://a.example/\xff",
		"https://ap%69.example/", "https://b%C3%BCcher.example/", "https://127.0.0.1%2e/", "https://a!b.example/", "https://a..example/", "https://.example/", "https://[::1%25eth0]/",
		"https://ａｐｉ.example/", "https://a。example/", "https://１２７.0.0.1/", "https://①②⑦.0.0.1/", "https://localhoſt/", "https://\u212a.example/", "https://a\u00adb.example/", "https://℡.example/",
		"http://127.1/", "http://2130706433/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://127.0.0.1./", "http://127.0.0.08/", "http://a.0x/", "http://ü.1/",
	} {
		if got, ok := Canonical(raw); ok {
			t.Errorf("%q is read as %q", raw, got)
		}
	}
	for _, raw := range []string{"", "a.example", "//a.example/", "ftp://a.example/", "file:///etc/passwd", "ws://a.example/", "httpſ://a.example/", "https://", "https://@/", "https://u@/",
		"https://a.example:65536/", "https://a.example:x/", "https://a.example:+1/", "https://[::1/", "https://[::1]x/", "https://[[::1]]/", "https://[127.0.0.1]/", "https://[]/"} {
		if got, ok := Canonical(raw); ok {
			t.Errorf("%q is invalid, and read as %q", raw, got)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	n := 0
	golden(f, func(raw, _ string) {
		if n++; n%7 == 0 {
			f.Add(raw)
		}
	})
	f.Fuzz(func(t *testing.T, raw string) {
		got, ok := Canonical(raw)
		if !ok {
			return
		}
		if again, ok := Canonical(got); !ok || again != got {
			t.Fatalf("%q: %q is not canonical: %q %v", raw, got, again, ok)
		}
		_, rest, _ := strings.Cut(got, "://")
		authority, _, _ := strings.Cut(rest, "/")
		host := authority[strings.LastIndexByte(authority, '@')+1:]
		// The path is left out: it may have escapes that net/url refuses.
		if u, err := url.Parse(got[:len(got)-len(rest)] + authority + "/"); err == nil && u.Host != host {
			t.Fatalf("%q: net/url reads %q in %q", raw, u.Host, got)
		} else if err != nil && !strings.Contains(err.Error(), "user") && strings.Count(authority, "%") == 0 {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
