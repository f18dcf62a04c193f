package oauth

import "strings"

// form writes application/x-www-form-urlencoded.
type form []byte

func (f *form) add(name, value string) {
	if len(*f) > 0 {
		*f = append(*f, '&')
	}
	*f = formEscape(append(formEscape(*f, name), '='), value)
}

const upperHex = "0123456789ABCDEF"

// formEscape percent-encodes all but the unreserved characters, so what it
// writes reads the same in a query and in a form.
func formEscape(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			out = append(out, c)
		} else {
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return out
}

// params reads a query. A name that comes twice, a broken escape and more than
// 16 KiB give false: RFC 6749 3.1 forbids the first.
func params(query string) (map[string]string, bool) {
	if len(query) > 16<<10 {
		return nil, false
	}
	out := map[string]string{}
	for _, p := range strings.Split(query, "&") {
		if p == "" {
			continue
		}
		name, value, _ := strings.Cut(p, "=")
		n, ok := formUnescape(name)
		v, ok2 := formUnescape(value)
		if _, twice := out[n]; twice || !ok || !ok2 {
			return nil, false
		}
		out[n] = v
	}
	return out, true
}

func formUnescape(s string) (string, bool) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			out = append(out, ' ')
		case '%':
			if len(s)-i < 3 {
				return "", false
			}
			hi, lo := nibble(s[i+1]), nibble(s[i+2])
			if hi > 15 || lo > 15 {
				return "", false
			}
			out = append(out, hi<<4|lo)
			i += 2
		default:
			out = append(out, c)
		}
	}
	return string(out), true
}

func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
