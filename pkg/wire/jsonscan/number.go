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
			c.fail(reasonNumber)
			return n, false
		}
		if i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
			integers = false
			ok := true
			if b[i] == '.' {
				fraction := i + 1
				i = digits(b, fraction)
				ok = i > fraction
			}
			if ok && i < len(b) && b[i]|0x20 == 'e' {
				i, ok = exponent(b, i)
			}
			if !ok {
				c.i = start
				c.fail(reasonNumber)
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

// exponent returns the end of the exponent at i, and whether it is well formed.
func exponent(b []byte, i int) (end int, ok bool) {
	if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	end = digits(b, i)
	return end, end > i
}

const reasonNumber = "a number is not well formed"

// number consumes one number.
func (c *Cursor) number() {
	b, i := c.b, c.i
	if b[i] == '-' {
		i++
	}
	whole := i
	i = digits(b, i)
	ok := i > whole && (b[whole] != '0' || i == whole+1)
	if ok && i < len(b) && b[i] == '.' {
		fraction := i + 1
		i = digits(b, fraction)
		ok = i > fraction
	}
	if ok && i < len(b) && b[i]|0x20 == 'e' {
		i, ok = exponent(b, i)
	}
	if !ok {
		c.fail(reasonNumber)
		return
	}
	c.i = i
}
