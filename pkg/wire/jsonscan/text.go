package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones     = 0x0101010101010101
	highBits = 0x8080808080808080
)

// str consumes a string and reports whether it has escapes. It advances by eight bytes
// where none of them is special.
func (c *Cursor) str() (escaped bool) {
	b, i := c.b, c.i+1
	high := c.high
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			high |= x
			q, s := x^'"'*ones, x^'\\'*ones
			// The lowest bit set marks the first quote, backslash or control
			// character. Bytes over 0x7f are left to the check of UTF-8.
			m := ((q-ones)&^q | (s-ones)&^s | (x-' '*ones)&^x) & highBits
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
			break
		}
		if i >= len(b) {
			c.i = len(b)
			c.fail("unterminated string")
			return escaped
		}
		switch x := b[i]; {
		case x == '"':
			c.i, c.high = i+1, high
			return escaped
		case x == '\\':
			escaped = true
			n := c.escape(i)
			if n == 0 {
				return escaped
			}
			i += n
		case x < ' ':
			c.i = i
			c.fail("a control character in a string")
			return escaped
		default:
			high |= uint64(x)
			i++
		}
	}
}

// escape checks the escape at i and returns its length, 0 after an error. A surrogate
// pair is one escape.
func (c *Cursor) escape(i int) int {
	b := c.b
	if i+1 < len(b) {
		switch b[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			return 2
		case 'u':
			u, ok := hex4(b[i+2:])
			if !ok {
				break
			}
			switch {
			case u >= 0xdc00 && u < 0xe000:
				c.lone = true
			case u >= 0xd800 && u < 0xdc00:
				if i+8 <= len(b) && b[i+6] == '\\' && b[i+7] == 'u' {
					if l, ok := hex4(b[i+8:]); ok && l >= 0xdc00 && l < 0xe000 {
						return 12
					}
				}
				c.lone = true
			}
			return 6
		}
	}
	c.i = i
	c.fail("unknown escape")
	return 0
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, x := range b[:4] {
		switch {
		case x >= '0' && x <= '9':
			x -= '0'
		case x|0x20 >= 'a' && x|0x20 <= 'f':
			x = x | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(x)
	}
	return r, true
}

// unescape appends the content of a checked string.
func unescape(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		switch x := raw[i+1]; x {
		case 'u':
			r, _ := hex4(raw[i+2:])
			raw = raw[i+6:]
			if r >= 0xd800 && r < 0xe000 {
				low := rune(0)
				if r < 0xdc00 && len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					low, _ = hex4(raw[2:])
				}
				if low >= 0xdc00 && low < 0xe000 {
					r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
					raw = raw[6:]
				} else {
					r = utf8.RuneError
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default:
			dst = append(dst, x)
		}
		raw = raw[i+2:]
	}
}
