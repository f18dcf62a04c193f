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

// str consumes a string and reports whether it has escapes.
func (c *Cursor) str() (escaped bool) {
	b, i := c.b, c.i+1
	for len(b)-i >= 8 { // most names, and many values, end within a few words
		x := binary.LittleEndian.Uint64(b[i:])
		m := (special(x) | x) & highBits
		if m == 0 {
			if i += 8; i-c.i > 32 {
				i = plain(b, i)
				break
			}
			continue
		}
		if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
			c.i = i + 1
			return false
		}
		break
	}
	return c.rest(i)
}

// rest consumes a string from i on. The bytes of it before i are ASCII and not special.
func (c *Cursor) rest(i int) (escaped bool) {
	b, start := c.b, i
	high := uint64(0) // all bytes, combined by OR
	for {
		for len(b)-i >= 8 {
			x := binary.LittleEndian.Uint64(b[i:])
			if m := special(x) &^ x & highBits; m != 0 {
				high |= x & (m&-m - 1) // the bytes before the special one
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			high |= x
			i += 8
		}
		if i >= len(b) {
			c.i = len(b)
			c.fail("unterminated string")
			return escaped
		}
		switch x := b[i]; {
		case x == '"':
			if high&highBits != 0 {
				if at := invalidUTF8(b[start:i]); at >= 0 {
					c.i = start + at
					c.fail("not UTF-8")
					return escaped
				}
			}
			c.i = i + 1
			return escaped
		case x == '\\':
			escaped = true
			n := c.escape(i)
			if n == 0 {
				return escaped
			}
			if i += n; high&highBits == 0 {
				i = plain(b, i)
			}
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

// plain returns an offset up to which the bytes from i on are ASCII and not special,
// in steps of 32 bytes.
func plain(b []byte, i int) int {
	p := b[i:]
	for len(p) >= 32 {
		x := special(binary.LittleEndian.Uint64(p)) | special(binary.LittleEndian.Uint64(p[8:])) |
			special(binary.LittleEndian.Uint64(p[16:])) | special(binary.LittleEndian.Uint64(p[24:]))
		if x&highBits != 0 {
			break
		}
		p = p[32:]
	}
	return len(b) - len(p)
}

// special marks quotes, backslashes and control characters by the highest bit of
// their bytes, and some bytes that are not ASCII. Among ASCII, the lowest mark is
// exact, as is whether there are any. The other bits mean nothing.
func special(x uint64) uint64 {
	// x^0x02 maps the quote and the control characters to 0x00…0x20.
	return ((x ^ 0x02*ones) - 0x21*ones) | ((x ^ '\\'*ones) - ones)
}

// invalidUTF8 returns the offset of the first byte of b that is not part of valid
// UTF-8 (RFC 3629, 4), or -1. Unlike utf8.Valid it advances by 8 bytes wherever these
// are ASCII.
func invalidUTF8(b []byte) int {
	i := 0
	for i < len(b) {
		c := b[i]
		if c < utf8.RuneSelf {
			i++
			if len(b)-i >= 8 {
				i += bits.TrailingZeros64(binary.LittleEndian.Uint64(b[i:])&highBits) >> 3
			}
			continue
		}
		n, lo, hi := 2, byte(0x80), byte(0xbf) // length, and bounds of the second byte
		switch {
		case c < 0xc2 || c > 0xf4:
			return i
		case c < 0xe0:
		case c < 0xf0:
			n = 3
			if c == 0xe0 {
				lo = 0xa0
			} else if c == 0xed {
				hi = 0x9f
			}
		default:
			n = 4
			if c == 0xf0 {
				lo = 0x90
			} else if c == 0xf4 {
				hi = 0x8f
			}
		}
		if s := b[i:]; len(s) < n || s[1] < lo || s[1] > hi || n > 2 && s[2]&0xc0 != 0x80 || n > 3 && s[3]&0xc0 != 0x80 {
			return i
		}
		i += n
	}
	return -1
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
