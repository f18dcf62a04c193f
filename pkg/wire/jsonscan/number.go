package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// run consumes a number, the numbers that follow it after commas, and the blanks after
// the last one. It is the loop that reads embedding vectors.
func (c *Cursor) run() (n int, integers bool) {
	b, i := c.b, c.i
	integers = true
	for {
		start := i
		if b[i] == '-' {
			i++
		}
		whole := i
		i = digits(b, i)
		if i == whole || b[whole] == '0' && i > whole+1 {
			c.i = i
			c.fail("a number is not well formed")
			return n, false
		}
		if i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
			integers = false
			if i = fraction(b, i); i < 0 {
				c.i = start
				c.fail("a number is not well formed")
				return n, false
			}
		}
		n++
		i = blanks(b, i)
		if i >= len(b) || b[i] != ',' {
			break
		}
		next := blanks(b, i+1)
		if next == len(b) || kindOf[b[next]] != Number {
			break
		}
		i = next
	}
	c.i = i
	if c.tokens += n; c.tokens > c.MaxTokens {
		c.fail("too many values")
	}
	return n, integers
}

// digits returns the end of the digits at i.
func digits(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := notDigits(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	return i
}

// notDigits returns 0 for eight digits; otherwise the lowest bit that is set is in
// the first byte that is not a digit.
func notDigits(x uint64) uint64 {
	return ((x ^ 0x30*ones) | ((x + 6*ones) ^ 0x30*ones)) & (0xf0 * ones)
}

// fraction returns the end of the fraction and exponent at i, or -1 if they are
// malformed.
func fraction(b []byte, i int) int {
	if b[i] == '.' {
		i++
		start := i
		if i = digits(b, i); i == start {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start := i
		if i = digits(b, i); i == start {
			return -1
		}
	}
	return i
}

// number consumes one number.
func (c *Cursor) number() {
	b, i := c.b, c.i
	if b[i] == '-' {
		i++
	}
	whole := i
	i = digits(b, i)
	bad := i == whole || b[whole] == '0' && i > whole+1
	if !bad && i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
		i = fraction(b, i)
		bad = i < 0
	}
	if bad {
		c.fail("a number is not well formed")
		return
	}
	c.i = i
}
