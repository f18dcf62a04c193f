package provider

import (
	"errors"
	"strings"
)

// maxModelBytes is the longest model id taken.
const maxModelBytes = 256

var errModel = errors.New("the model id is not usable")

// CheckModel judges an upstream model id that may end up in an address: 1 to
// 256 bytes, no control characters, none of \ ? #, and no empty, "." or ".."
// segment, read as it stands and percent-decoded once.
func CheckModel(model string) error {
	if len(model) == 0 || len(model) > maxModelBytes {
		return errModel
	}
	if !cleanPath(model) {
		return errModel
	}
	if strings.IndexByte(model, '%') >= 0 && !cleanPath(unescape(model)) {
		return errModel
	}
	return nil
}

// CheckAlias judges the part of a model string before the first slash.
func CheckAlias(alias string) bool {
	if len(alias) == 0 || len(alias) > 64 || alias[0] == '.' || alias[0] == '_' || alias[0] == '-' {
		return false
	}
	for i := 0; i < len(alias); i++ {
		c := alias[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// cleanPath reports whether s has none of the bytes and segments that are forbidden in a
// path.
func cleanPath(s string) bool {
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) {
			switch c := s[i]; {
			case c < 0x20 || c == 0x7f || c == '\\' || c == '?' || c == '#':
				return false
			case c != '/':
				continue
			}
		}
		if seg := s[start:i]; seg == "" || seg == "." || seg == ".." {
			return false
		}
		start = i + 1
	}
	return true
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// unescape decodes %XX once; what is not an escape stays.
func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := hexValue(s[i+1]), hexValue(s[i+2]); hi >= 0 && lo >= 0 {
				out = append(out, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// escape appends s percent-encoded as path segments: everything but RFC 3986's
// unreserved characters and "@" is encoded, slashes too unless they are kept.
func escape(dst []byte, s string, keepSlash bool) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '@', c == '/' && keepSlash:
			dst = append(dst, c)
		default:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}
