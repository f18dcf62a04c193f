package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// encodings of a value in which an upstream may echo it.
func encodings(v string) map[string]string {
	j, _ := json.Marshal(v)
	jj, _ := json.Marshal(string(j))
	every := func(format string) string {
		var b strings.Builder
		for i := range len(v) {
			fmt.Fprintf(&b, format, v[i])
		}
		return b.String()
	}
	wrap := func(s, end string, n int) string {
		var b strings.Builder
		for len(s) > n {
			b.WriteString(s[:n] + end)
			s = s[n:]
		}
		return b.String() + s
	}
	std, u := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	lower := strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3D", "%3d", "%3A", "%3a", "%26", "%26").Replace(url.QueryEscape(v))
	return map[string]string{
		"raw":                  v,
		"url upper":            url.PathEscape(v),
		"url lower":            lower,
		"url every byte":       every("%%%02x"),
		"url twice":            url.QueryEscape(url.QueryEscape(v)),
		"form":                 url.QueryEscape(v),
		"json":                 string(j),
		"json slashes":         strings.ReplaceAll(string(j), "/", `\/`),
		"json every byte":      every(`\u%04x`),
		"json every byte, up":  every(`\u%04X`),
		"double json":          string(jj),
		"double json, escapes": every(`\\u%04x`),
		"html":                 html.EscapeString(v),
		"html hex":             every("&#x%x;"),
		"html decimal":         every("&#%d;"),
		"html dash":            strings.ReplaceAll(v, "-", "&#x2d;"),
		"base64 at 0":          std([]byte(v)),
		"base64 at 1":          std([]byte("a" + v + "bc")),
		"base64 at 2":          std([]byte("ab" + v + "c")),
		"base64url":            u([]byte("x" + v)),
		"base64 in json":       strings.ReplaceAll(std([]byte(v)), "/", `\/`),
		"base64 in a form":     url.QueryEscape(std([]byte(v))),
		"basic auth":           std([]byte("user:" + v)),
		"bearer, base64":       std([]byte("Bearer " + v)),
		"hex":                  hex.EncodeToString([]byte(v)),
		"hex upper":            strings.ToUpper(hex.EncodeToString([]byte(v))),
		"utf-16 le":            every("%c\x00"),
		"utf-16 be":            every("\x00%c"),
		"utf-16 in json":       every(`%c\u0000`),
		"wrapped":              wrap(v, "\r\n", 10),
		"wrapped, folded":      wrap(v, "\r\n ", 10),
		"wrapped in json":      wrap(v, `\n`, 10),
		"base64 wrapped":       wrap(std([]byte(strings.Repeat("a", 50)+v)), "\n", 76),
		"quoted printable":     wrap(v, "=\r\n", 10),
	}
}

// decoders undo encodings to look for what is left of a value.
func leaks(text, v string) bool {
	strip := strings.NewReplacer("\x00", "", "\r", "", "\n", "", `\n`, "", `\u0000`, "", "\\", "", " ", "", "=", "").Replace
	for _, probe := range []string{text, strip(text)} {
		for i := 0; i+8 <= len(v); i++ {
			part := v[i : i+8]
			h := hex.EncodeToString([]byte(part))
			if strings.Contains(probe, part) || strings.Contains(strings.ToLower(probe), h) {
				return true
			}
		}
		for lead := range 3 {
			e := base64.RawStdEncoding.EncodeToString(append(make([]byte, lead), v...))
			if e = e[4 : len(e)-4]; strings.Contains(probe, e) || strings.Contains(probe, strings.NewReplacer("+", "-", "/", "_").Replace(e)) {
				return true
			}
		}
	}
	return false
}

func values() []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/+=.&<:~"
	list := []string{"sk-live-0123456789abcdef", "aaaaaaaaaaaaaaaa", "key with spaces/and+plus", "12345678"}
	for range 200 {
		b := make([]byte, 8+rnd.IntN(60))
		for i := range b {
			b[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		list = append(list, string(b))
	}
	return list
}

func TestEveryEncodingOfAValueIsFound(t *testing.T) {
	for _, v := range values() {
		r := New("another-value-0000", v)
		for name, text := range encodings(v) {
			text = `{"error":"bad key ` + text + ` given"}`
			got := r.String(text)
			if !strings.Contains(got, Mask) || leaks(got, v) {
				t.Fatalf("%s of %q:\n%s\n→ %s", name, v, text, got)
			}
			if !strings.HasPrefix(got, `{"error":"bad key `) || !strings.HasSuffix(got, ` given"}`) {
				t.Errorf("%s of %q: took more than the value: %s", name, v, got)
			}
		}
	}
}

func TestHarmlessTextIsUntouched(t *testing.T) {
	r := New("sk-live-0123456789", "short", "")
	for _, s := range []string{"", "plain", `{"a":"b\n\u0041 100% &amp; \\ s"}`, "sk-live-012345678", strings.Repeat("s", 100), "%", "\\", "&", "%2", "&#", "\\u00"} {
		if got := r.String(s); got != s {
			t.Errorf("got %q, want %q", got, s)
		}
	}
	if New().String("x") != "x" || (*R)(nil).String("x") != "x" {
		t.Error("without values nothing changes")
	}
}

func TestLongestValueIsTaken(t *testing.T) {
	r := New("abcdefgh", "abcdefghijkl")
	if got := r.String("-abcdefghijkl-abcdefghi-"); got != "-***-***i-" {
		t.Errorf("got %s", got)
	}
}

func TestPartsOfAValueCount(t *testing.T) {
	r := New(`{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n"}`, "id:secret-part-1")
	for _, s := range []string{`"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n"`, "x secret-part-1 x"} {
		if got := r.String(s); strings.Contains(got, "MIIEv") || strings.Contains(got, "secret-part") {
			t.Errorf("got %s", got)
		}
	}
}

// Calls at the same time use one R.
func TestConcurrentTexts(t *testing.T) {
	r := New("abcdefgh12")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got := r.String("x abcdefgh1 abcdefgh12 &amp;"); got != "x abcdefgh1 *** &amp;" {
					t.Errorf("got %q", got)
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkNothingToFind(b *testing.B) {
	r := New("sk-live-0123456789abcdefghijklmnop", "rt-0123456789abcdefghijklmnop")
	text := strings.Repeat(`{"id":"chatcmpl-1","choices":[{"delta":{"content":"some text"}}]}`+"\n", 100)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.String(text)
	}
}
