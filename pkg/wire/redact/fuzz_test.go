package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// A credential is found in any text, as it is and in each encoding, and a text without
// it and without the shape of a credential stays.
func FuzzString(f *testing.F) {
	f.Add("sk-0123456789abcdef", "the key ", " was refused")
	f.Add("id:secret-of-16-chars", `{"error":"`, `"}`)
	f.Add("päss wörd\t%41&amp;", "%25", "\\u00")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		if value = strings.TrimSpace(value); len(value) < 16 || len(value) > 1<<10 || len(before)+len(after) > 1<<12 || strings.HasPrefix(value, "{") {
			return
		}
		r := New(value)
		quoted := strconv.QuoteToASCII(value)
		for _, shown := range []string{value, url.QueryEscape(value), hex.EncodeToString([]byte(value)), base64.StdEncoding.EncodeToString([]byte(value)), quoted[1 : len(quoted)-1]} {
			if got := r.String(before + shown + after); strings.Contains(got, value) {
				t.Errorf("%q is in %q, from %q", value, got, shown)
			}
		}
		Patterns(before + value + after)
	})
}

// Nothing around a key keeps it from being masked.
func FuzzPatterns(f *testing.F) {
	f.Add("Authorization: Bearer", "and more")
	f.Add("https://user:password-of-someone@host.example/?api_key=0123456789abcdef&x=1", "")
	f.Add("AKIAIOSFODNN7EXAMPLE", "\n-----BEGIN PRIVATE KEY-----")
	f.Add("cookie: a=", "eyJhbGciOi.eyJhbGciOi.abcdefghij")
	f.Fuzz(func(t *testing.T, before, after string) {
		if len(before)+len(after) > 1<<12 {
			return
		}
		for _, key := range []string{"sk-ant-api03-0123456789abcdef", "AKIAIOSFODNN7EXAMPLE", "gsk_0123456789abcdef"} {
			if strings.Contains(before, key) || strings.Contains(after, key) {
				continue
			}
			for _, text := range []string{before + " " + key + " " + after, before + `"` + key + `"` + after} {
				if got := Patterns(text); strings.Contains(got, key) {
					t.Errorf("%q becomes %q", text, got)
				}
			}
		}
	})
}
