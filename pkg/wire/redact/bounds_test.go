package redact

import (
	"encoding/base64"
	"html"
	"net/url"
	"strings"
	"testing"
)

func TestTokensOfLeastLength(t *testing.T) {
	for _, tok := range tokens {
		rest := strings.Repeat("09AF", 16)[:tok.least]
		if got, want := Patterns("the key: "+tok.prefix+rest+"!"), "the key: ***!"; got != want {
			t.Errorf("%s with %d characters: got %q, want %q", tok.prefix, tok.least, got, want)
		}
		short := "the key: " + tok.prefix + rest[1:] + "!"
		if got := Patterns(short); got != short {
			t.Errorf("%s with %d characters: got %q", tok.prefix, tok.least-1, got)
		}
	}
}

func TestBoundsOfPatterns(t *testing.T) {
	blanks := strings.Repeat(" ", 15)
	label := strings.Repeat("A", 39)
	for _, tt := range [][2]string{
		{"password=12345678", "password=***"},
		{"password=1234567", ""},
		{`a\npassword=12345678`, `a\npassword=***`},
		{`a\\tpassword=12345678`, `a\\tpassword=***`},
		{`a\u00e9password=12345678`, `a\u00e9password=***`},
		{"a%0Apassword=12345678", "a%0Apassword=***"},
		{"npassword=12345678", ""},
		{`\apassword=12345678`, ""},
		{"%0gpassword=12345678", ""},
		{`\u00egpassword=12345678`, ""},
		{"the password=", ""},
		{"the password", ""},
		{"the api", ""},
		{"password=" + blanks + "12345678", "password=" + blanks + "***"},
		{"password=" + blanks + " 12345678", ""},
		{"authorization:" + blanks + " 12345678", ""},
		{"bearerabcdefgh12", ""},
		{"api-key 0123456789", "api-key ***"},
		{"password 0123456789", ""},
		{"Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"},
		{"AKIA0123456789ABCDEFa", "***a"},
		{"AKIA012345678/ABCDEF", ""},
		{"AKIA012345678:ABCDEF", ""},
		{"AKIA012345678@ABCDEF", ""},
		{"AKIA012345678[ABCDEF", ""},
		{"{sk-0123456789abcdef}", "{***}"},
		{"`sk-0123456789abcdef`", "`***`"},
		{"-----BEGIN PRIVATE KEY-----\nx\n-----END " + label + "-----rest", "***rest"},
		{"-----BEGIN PRIVATE KEY-----\nx\n-----END A" + label + "-----rest", "***A" + label + "-----rest"},
		{"-----BEGIN PRIVATE KEY-----\nx\n-----END -----rest", "***rest"},
		{"http://", ""},
		{"http://example.com:8080", ""},
		{"http://user@example.com", ""},
		{"http://:@example.com", ""},
		{"http://u:@example.com", "http://***@example.com"},
		{"http://:p@example.com", "http://***@example.com"},
	} {
		want := tt[1]
		if want == "" {
			want = tt[0]
		}
		if got := Patterns(tt[0]); got != want {
			t.Errorf("%q:\n got %q\nwant %q", tt[0], got, want)
		}
	}
}

func TestEscapesOfValue(t *testing.T) {
	const v = "abcdefgh12"
	for _, tt := range []struct{ value, text, want string }{
		{v, "x%" + strings.Repeat("25", maxRun) + "61bcdefgh12!", "x***!"},
		{v, "x%" + strings.Repeat("25", maxRun+1) + "61bcdefgh12!", ""},
		{v, "x" + strings.Repeat(`\`, maxRun) + "u0061bcdefgh12!", "x***!"},
		{v, "abcde" + strings.Repeat("\n", maxSkip) + "fgh12", "***"},
		{v, "abcde" + strings.Repeat("\n", maxSkip+1) + "fgh12", ""},
		{v, "x%0aabcdefgh12", "x%0a***"},
		{v, "abcde fgh12", ""},
		{v, "abcde\tfgh12", ""},
		{v, "abcde\n fgh12", "***"},
		{v, "abcde\n\tfgh12", "***"},
		{v, `abcde\r\nfgh12`, "***"},
		{v, `abcde\n\tfgh12`, "***"},
		{v, "abcde\n&#9;fgh12", "***"},
		{v, "abcd+fgh12", ""},
		{v, "abcd+efgh12", ""},
		{v, `\u0161bcdefgh12`, ""},
		{v, "&#97;bcdefgh12", "***"},
		{v, "&#x61;bcdefgh12", "***"},
		{v, "&;abcdefgh12", "&;***"},
		{v, "&#;abcdefgh12", "&#;***"},
		{v, "&#353;bcdefgh12", ""},
		{"dbcdefgh12", "&#9a;bcdefgh12", ""},
		{"qbcdefgh12", "%7zbcdefgh12", ""},
		{"qbcdefgh12", "%7", ""},
		{"user-secret-1", `\user-secret-1`, "***"},
		{"key with blanks", "key+with%20blanks", "***"},
		{"key with blanks", "key%2Bwith+blanks", "***"},
		{"secret-x%25", "secret-x%25!", "***!"},
		{`secret-x\\`, `secret-x\\!`, "***!"},
		{"secret-x&amp;", "secret-x&amp;!", "***!"},
		{"abcdefgh", "6162636465666768", "***"},
		{"jklmnopq", "6A6b6C6d6E6f7071", "***"},
		{"abcdefgh", "AAAAAAAAAAAAAAAA", ""},
		{"abcdefgh", "\x16\x11\x16\x12\x16\x13\x16\x14\x16\x15\x16\x16\x16\x17\x16\x18", ""},
		{":secret-part-1", "x secret-part-1", "x ***"},
		{"first:1\nsecond:harmless-text", "harmless-text", ""},
		{"12345678", "x12345678", "x***"},
		{"1234567", "x1234567", ""},
	} {
		want := tt.want
		if want == "" {
			want = tt.text
		}
		if got := New(tt.value).String(tt.text); got != want {
			t.Errorf("%q in %q:\n got %q\nwant %q", tt.value, tt.text, got, want)
		}
	}
}

func TestBase64OfEveryCharacterIsMasked(t *testing.T) {
	const v = "key???>>>~~~value???"
	for lead := range 3 {
		for name, enc := range map[string]*base64.Encoding{"standard": base64.StdEncoding, "URL": base64.RawURLEncoding} {
			text := enc.EncodeToString([]byte("ab"[:lead] + v))
			if got := New(v).String(text); !strings.Contains(got, Mask) || len(got) > 10 {
				t.Errorf("%s after %d bytes: %s → %s", name, lead, text, got)
			}
			other := strings.NewReplacer("/", "A", "_", "A").Replace(text)
			if got := New(v).String(other); other != text && got != other {
				t.Errorf("%s after %d bytes: another text %s → %s", name, lead, other, got)
			}
		}
	}
}

func TestRepeatedEscapesOfSpecialCharacters(t *testing.T) {
	for value, escape := range map[string]func(string) string{
		"100%-secret":  url.QueryEscape,
		"me&you-4ever": html.EscapeString,
		`back\slash-9`: func(s string) string { return strings.ReplaceAll(s, `\`, `\\`) },
	} {
		text := value
		for n := range 5 {
			for end := range len(text) {
				if got := New(value).String(text[:end]); got != text[:end] {
					t.Errorf("a part, %q: got %q", text[:end], got)
				}
			}
			if got := New(value).String(text + "!"); got != "***!" {
				t.Errorf("%s escaped %d times as %s: got %s", value, n, text, got)
			}
			text = escape(text)
		}
	}
}

func TestRepeatedValueCostsNothing(t *testing.T) {
	const v = "abcdefgh12"
	once, twice := New(v), New(v, v)
	once.steps, twice.steps = new(int), new(int)
	once.String("abcdefgh1")
	twice.String("abcdefgh1")
	if *once.steps <= 0 || *once.steps != *twice.steps {
		t.Errorf("%d steps for one value, %d for the same value twice", *once.steps, *twice.steps)
	}
}
