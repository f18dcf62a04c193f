package host

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// decode returns a text of another encoding in UTF-8, as new
// TextDecoder(label).decode(raw) does: label is a label of the WHATWG Encoding
// Standard, malformed input becomes U+FFFD, and a byte order mark at the start is
// removed. It reports false for an unknown label, and for "replacement".
//
// In the encodings of Chinese, Japanese and Korean, malformed input may become more
// or fewer U+FFFD than in a TextDecoder, and so do characters of private use.
func decode(label string, raw []byte) (string, bool) {
	enc, err := htmlindex.Get(label)
	if err != nil {
		return "", false
	}
	name, err := htmlindex.Name(enc)
	if err != nil || name == "replacement" {
		return "", false
	}
	switch name {
	case "utf-8":
		return decodeUTF8(raw), true
	case "utf-16le":
		return decodeUTF16(raw, false), true
	case "utf-16be":
		return decodeUTF16(raw, true), true
	case "iso-8859-8-i":
		return decodeBytes(charmap.ISO8859_8, raw), true
	case "gbk":
		enc = simplifiedchinese.GB18030 // the standard decodes both alike
	}
	return decodeTable(enc, raw)
}

func decodeTable(enc encoding.Encoding, raw []byte) (string, bool) {
	if table, ok := enc.(*charmap.Charmap); ok {
		return decodeBytes(table, raw), true
	}
	out, err := enc.NewDecoder().Bytes(raw)
	return string(out), err == nil
}

// decodeBytes returns a text with one byte for each character. The tables of the
// standard have control characters where those of charmap have a gap.
func decodeBytes(table *charmap.Charmap, raw []byte) string {
	var b strings.Builder
	b.Grow(len(raw))
	for _, c := range raw {
		r := table.DecodeByte(c)
		if r == utf8.RuneError && c >= 0x80 && c <= 0x9f {
			r = rune(c)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// decodeUTF8 returns raw without its byte order mark, with one U+FFFD for each
// longest part of a character that is malformed.
func decodeUTF8(raw []byte) string {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		if r == utf8.RuneError && n == 1 {
			n = malformed(raw)
		}
		b.WriteRune(r)
		raw = raw[n:]
	}
	return b.String()
}

// malformed returns the size of the part of a character at the start of b: the
// bytes that could have begun one.
func malformed(b []byte) int {
	low, high, need := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		switch c {
		case 0xe0:
			low = 0xa0
		case 0xed:
			high = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		switch c {
		case 0xf0:
			low = 0x90
		case 0xf4:
			high = 0x8f
		}
	}
	n := 1
	for ; n <= need && n < len(b) && b[n] >= low && b[n] <= high; n++ {
		low, high = 0x80, 0xbf
	}
	return n
}

// decodeUTF16 returns a text of 16-bit units. A surrogate without its other half,
// and half a unit at the end, become U+FFFD.
func decodeUTF16(raw []byte, bigEndian bool) string {
	low, high := 0, 1
	if bigEndian {
		low, high = 1, 0
	}
	var b strings.Builder
	b.Grow(len(raw))
	lead := rune(0)
	for i := 0; i+1 < len(raw); i += 2 {
		u := rune(raw[i+low]) | rune(raw[i+high])<<8
		if i == 0 && u == 0xfeff {
			continue
		}
		if lead != 0 {
			if u >= 0xdc00 && u <= 0xdfff {
				b.WriteRune(0x10000 + (lead-0xd800)<<10 + (u - 0xdc00))
				lead = 0
				continue
			}
			b.WriteRune(utf8.RuneError)
			lead = 0
		}
		switch {
		case u >= 0xd800 && u <= 0xdbff:
			lead = u
		default:
			b.WriteRune(u) // a lone trail becomes U+FFFD
		}
	}
	if lead != 0 || len(raw)%2 == 1 {
		b.WriteRune(utf8.RuneError)
	}
	return b.String()
}
