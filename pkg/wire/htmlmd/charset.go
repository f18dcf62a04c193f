package htmlmd

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// scanned is how much of a document is searched for its encoding, in bytes
// (WHATWG HTML, "prescan a byte stream").
const scanned = 1024

// windows1252 has the characters of the bytes 0x80 to 0x9f; Latin-1 means the
// same on the web.
var windows1252 = [32]rune{
	0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d, 0x017d,
	0x8f,
	0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e,
	0x0178,
}

// Decode returns a document in UTF-8. Its encoding is stated by a byte order mark,
// the content type, a meta element in its first 1,024 bytes, or its bytes: invalid UTF-8
// is windows-1252.
//
// ok is false for every encoding but UTF-8 and windows-1252: the platform has
// the others. label is the encoding's name, in lower case.
func Decode(raw []byte, contentType string) (text, label string, ok bool) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		return strings.ToValidUTF8(string(raw[3:]), "\uFFFD"), "utf-8", true
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		return "", "utf-16be", false
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		return "", "utf-16le", false
	}
	label = charsetOf(contentType)
	if label == "" {
		label = metaCharset(raw[:min(len(raw), scanned)])
		if strings.HasPrefix(label, "utf-16") {
			label = "utf-8" // it could not have been read
		}
	}
	if strings.HasPrefix(label, "utf-16") || strings.Contains(label, "2022") { // the latter is all ASCII
		return "", label, false
	}
	valid := utf8.Valid(raw)
	if label == "" {
		if label = "windows-1252"; valid {
			label = "utf-8"
		}
	}
	switch {
	case valid:
		return string(raw), label, true
	case label == "utf-8", label == "utf8":
		return strings.ToValidUTF8(string(raw), "\uFFFD"), label, true
	case label == "windows-1252", label == "iso-8859-1":
		return fromBytes(raw), label, true
	}
	return "", label, false
}

// fromBytes reads windows-1252.
func fromBytes(raw []byte) string {
	b := make([]byte, 0, len(raw)+len(raw)/8)
	for _, c := range raw {
		r := rune(c)
		if c >= 0x80 && c < 0xa0 {
			r = windows1252[c-0x80]
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// charsetOf returns the charset of a content type, in lower case.
func charsetOf(contentType string) string {
	_, params, _ := strings.Cut(strings.ToLower(contentType), ";")
	for params != "" {
		var p string
		p, params, _ = strings.Cut(params, ";")
		if k, v, ok := strings.Cut(p, "="); ok && strings.TrimSpace(k) == "charset" {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}

// metaCharset finds <meta charset="…"> and <meta http-equiv … content="…;
// charset=…">.
func metaCharset(head []byte) string {
	low := strings.ToLower(string(head))
	for {
		i := strings.Index(low, "<meta")
		if i < 0 {
			return ""
		}
		low = low[i+5:]
		end := strings.IndexByte(low, '>')
		if end < 0 {
			return ""
		}
		elem := low[:end]
		low = low[end:]
		j := strings.Index(elem, "charset")
		if j < 0 {
			continue
		}
		v := strings.TrimLeft(elem[j+len("charset"):], " \t\r\n")
		if !strings.HasPrefix(v, "=") {
			continue
		}
		v = strings.TrimLeft(v[1:], " \t\r\n\"'")
		if k := strings.IndexAny(v, " \t\r\n\"';/"); k >= 0 {
			v = v[:k]
		}
		if v != "" {
			return v
		}
	}
}
