package webpage

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanned is how much of a document is searched for its encoding, in bytes
// (WHATWG HTML, "prescan a byte stream").
const scanned = 1024

// windows1252 has the characters of the bytes 0x80 to 0x9f; Latin-1 means the
// same on the web.
var windows1252 = [32]rune{
	0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d, 0x017d, 0x8f,
	0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178,
}

// latin9 are the characters in which ISO 8859-15 differs from Latin-1.
var latin9 = [...]struct {
	b byte
	r rune
}{{0xa4, 0x20ac}, {0xa6, 0x160}, {0xa8, 0x161}, {0xb4, 0x17d}, {0xb8, 0x17e}, {0xbc, 0x152}, {0xbd, 0x153}, {0xbe, 0x178}}

// Decode gives a document in UTF-8. Its encoding is told by a byte order mark,
// the content type, a meta element in its first 1,024 bytes, or its bytes: what
// is no UTF-8 is windows-1252.
//
// ok is false for an encoding that is not known here and bytes that are not
// UTF-8; label is its name, in lower case.
func Decode(raw []byte, contentType string) (text, label string, ok bool) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")):
		return strings.ToValidUTF8(string(raw[3:]), "\uFFFD"), "utf-8", true
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		return from16(raw[2:], 0), "utf-16be", true
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		return from16(raw[2:], 1), "utf-16le", true
	}
	label = charsetOf(contentType)
	if label == "" {
		label = metaCharset(raw[:min(len(raw), scanned)])
		if strings.HasPrefix(label, "utf-16") {
			label = "utf-8" // it could not have been read
		}
	}
	switch label {
	case "", "utf-8", "utf8", "unicode-1-1-utf-8":
		if utf8.Valid(raw) {
			return string(raw), "utf-8", true
		}
		if label == "" {
			return fromBytes(raw, false), "windows-1252", true
		}
		return strings.ToValidUTF8(string(raw), "\uFFFD"), "utf-8", true
	case "iso-8859-1", "latin1", "latin-1", "iso8859-1", "iso_8859-1", "l1", "us-ascii", "ascii", "windows-1252", "cp1252", "x-cp1252", "cp819":
		return fromBytes(raw, false), "windows-1252", true
	case "iso-8859-15", "latin9", "latin-9", "iso8859-15", "l9":
		return fromBytes(raw, true), "iso-8859-15", true
	case "utf-16", "utf-16le":
		return from16(raw, 1), "utf-16le", true
	case "utf-16be":
		return from16(raw, 0), "utf-16be", true
	}
	if utf8.Valid(raw) {
		return string(raw), label, true
	}
	return "", label, false
}

func fromBytes(raw []byte, nine bool) string {
	var b strings.Builder
	b.Grow(len(raw) + len(raw)/8)
	for _, c := range raw {
		r := rune(c)
		switch {
		case nine && c >= 0xa4:
			for _, x := range &latin9 {
				if x.b == c {
					r = x.r
				}
			}
		case !nine && c >= 0x80 && c < 0xa0:
			r = windows1252[c-0x80]
		}
		b.WriteRune(r)
	}
	return b.String()
}

// from16 reads UTF-16; low is the place of the low byte's partner: 1 for
// little-endian.
func from16(raw []byte, high int) string {
	u := make([]uint16, len(raw)/2)
	for i := range u {
		u[i] = uint16(raw[2*i+high])<<8 | uint16(raw[2*i+1-high])
	}
	return string(utf16.Decode(u))
}

// charsetOf gives the charset of a content type, in lower case.
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
