package jsonscan

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// Cursor walks through a document once, from front to back, and validates it on the
// way, for readers that need more than the top-level fields. An invalid document ends
// every walk: Key and Elem return false, and End returns the error.
//
//	c.Reset(body)
//	for c.Object(); c.Key(); {
//		if c.KeyIs("data") {
//			for c.Array(); c.Elem(); { c.Skip() }
//		} else {
//			c.Skip()
//		}
//	}
//	err := c.End()
//
// After Key and Elem the caller must consume the value, by Skip, Value, Numbers, or by
// walking it.
type Cursor struct {
	// MaxTokens is the largest number of values and names; 0 means the constant
	// MaxTokens.
	MaxTokens int

	b      []byte
	i      int
	depth  int
	tokens int
	first  bool    // no member of the container just entered has been read
	lone   bool    // a string had half a surrogate pair
	key    Value   // Start, End and Escaped of the last name
	marked *Marked // notes the strings, or nil
	err    *Error
}

// Reset starts a walk.
func (c *Cursor) Reset(body []byte) {
	max := c.MaxTokens
	*c = Cursor{b: body, MaxTokens: max}
	if max == 0 {
		c.MaxTokens = MaxTokens
	}
	c.space()
}

func (c *Cursor) fail(reason string) {
	if c.err == nil {
		c.err = c.problem(reason)
		c.i = len(c.b)
	}
}

// problem returns the error of the current byte.
func (c *Cursor) problem(reason string) *Error {
	before := c.b[:min(c.i, len(c.b))]
	switch blank := bytes.TrimRight(before, " \t\r\n"); {
	case len(blank) == 0 && c.i >= len(c.b):
		reason = reasonEmpty
	case c.i < len(c.b) && (c.b[c.i] == '}' || c.b[c.i] == ']') && bytes.HasSuffix(blank, []byte{','}):
		reason += "; is the comma before it a trailing comma?"
	}
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Error{
		Offset: c.i, Line: 1 + bytes.Count(before, []byte{'\n'}), Column: 1 + utf8.RuneCount(before[start:]), Reason: reason,
	}
}

func (c *Cursor) space() { c.i = blanks(c.b, c.i) }

// blanks returns the end of the blanks at i. Few documents have any, so that the
// test for one is inlined.
func blanks(b []byte, i int) int {
	if i < len(b) && b[i] <= ' ' {
		return indentation(b, i)
	}
	return i
}

func indentation(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
		for len(b)-i >= 8 && binary.LittleEndian.Uint64(b[i:]) == ' '*ones {
			i += 8
		}
	}
	return i
}

// count counts a value or name.
func (c *Cursor) count() bool {
	c.tokens++
	return c.tokens <= c.MaxTokens || c.tooMany()
}

func (c *Cursor) tooMany() bool {
	c.fail("too many values")
	return false
}

// Kind returns the kind of the next value; Absent if no value follows.
func (c *Cursor) Kind() Kind {
	if c.i >= len(c.b) {
		return Absent
	}
	return kindOf[c.b[c.i]]
}

var kindOf = [256]Kind{
	'"': String, '{': Object, '[': Array, 't': Bool, 'f': Bool, 'n': Null, '-': Number,
	'0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
}

// Object enters an object.
func (c *Cursor) Object() { c.open('{') }

// Array enters an array.
func (c *Cursor) Array() { c.open('[') }

func (c *Cursor) open(bracket byte) {
	if c.i >= len(c.b) || c.b[c.i] != bracket {
		c.fail("another type of value was expected")
		return
	}
	if c.depth++; c.depth > MaxDepth {
		c.fail("nested too deeply")
		return
	}
	if !c.count() {
		return
	}
	c.i++
	c.space()
	c.first = true
}

// next advances to the following member of the innermost container, and leaves the
// container at its end.
func (c *Cursor) next(end byte) bool {
	if c.i < len(c.b) && c.b[c.i] == ',' && !c.first { // not after an error: see fail
		c.i = blanks(c.b, c.i+1)
		return true
	}
	return c.border(end)
}

// border is next for the first member and the end of a container.
func (c *Cursor) border(end byte) bool {
	if c.err != nil || c.i >= len(c.b) {
		c.fail("unexpected end")
		return false
	}
	first := c.first
	c.first = false
	switch {
	case c.b[c.i] == end:
		c.depth--
		c.i = blanks(c.b, c.i+1)
		return false
	case first:
		return true
	}
	c.fail("a comma or the end of the container was expected")
	return false
}

// Key advances to the value of the next member of an object. It returns false at the
// end of the object and after an error.
func (c *Cursor) Key() bool {
	if !c.next('}') {
		return false
	}
	if c.i >= len(c.b) || c.b[c.i] != '"' {
		c.fail("a name was expected")
		return false
	}
	if !c.count() {
		return false
	}
	lone := c.lone
	c.key.Start = c.i
	c.key.Escaped = c.str()
	c.key.End, c.lone = c.i, lone
	if c.err != nil {
		return false
	}
	if c.marked != nil {
		c.marked.string(c.b, c.key.Start)
	}
	i := blanks(c.b, c.i)
	if i >= len(c.b) || c.b[i] != ':' {
		c.i = i
		c.fail("a colon was expected")
		return false
	}
	c.i = blanks(c.b, i+1)
	return true
}

// KeyIs reports whether the last name is name.
func (c *Cursor) KeyIs(name string) bool {
	raw := c.b[c.key.Start+1 : c.key.End-1]
	if !c.key.Escaped {
		return string(raw) == name
	}
	if len(raw) > 6*len(name) {
		return false
	}
	return string(unescape(make([]byte, 0, 64), raw)) == name
}

// Folded returns "model" or "stream" if the last name differs from it only in
// case, else "".
func (c *Cursor) Folded() string {
	raw := c.b[c.key.Start+1 : c.key.End-1]
	if c.key.Escaped {
		if len(raw) > 6*len("stream") {
			return ""
		}
		raw = unescape(make([]byte, 0, 64), raw)
	}
	// The long s of "\u017ftream" has two bytes.
	if len(raw) < len("model") || len(raw) > len("stream")+1 {
		return ""
	}
	for _, name := range [...]string{"model", "stream"} {
		if bytes.EqualFold(raw, []byte(name)) && string(raw) != name {
			return name
		}
	}
	return ""
}

// KeySpan returns the span of the last name, with its quotes.
func (c *Cursor) KeySpan() Span { return c.key.Span }

// Elem advances to the next element of an array. It returns false at the end of the
// array and after an error.
func (c *Cursor) Elem() bool { return c.next(']') }

// Offset returns the position of the cursor in bytes.
func (c *Cursor) Offset() int { return c.i }

// Lone reports whether a string value since the last call of Lone has half a
// surrogate pair. Names do not count.
func (c *Cursor) Lone() bool {
	lone := c.lone
	c.lone = false
	return lone
}

// Err returns the first error so far, or nil.
func (c *Cursor) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// End checks that nothing follows the value, and returns the first error of the
// document.
func (c *Cursor) End() error {
	if c.err == nil && c.i < len(c.b) {
		c.fail("something follows the document")
	}
	if c.err == nil && c.depth != 0 {
		c.fail("unexpected end")
	}
	return c.Err()
}

// Value consumes a value of any kind and returns its kind and span.
func (c *Cursor) Value() Value {
	v := Value{Kind: c.Kind()}
	if v.Kind != Array && v.Kind != Object {
		return c.scalar()
	}
	v.Start = c.i
	c.Skip()
	v.End = c.i
	for v.End > v.Start && isSpace(c.b[v.End-1]) {
		v.End--
	}
	return v
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// scalar consumes a value that is not a container, and the blanks after it.
func (c *Cursor) scalar() Value {
	if c.err != nil || !c.count() {
		return Value{}
	}
	v := Value{Kind: c.Kind()}
	v.Start = c.i
	switch v.Kind {
	case String:
		if v.Escaped = c.str(); c.marked != nil && c.err == nil {
			c.marked.string(c.b, v.Start)
		}
	case Number:
		c.number()
	case Bool:
		if c.b[c.i] == 't' {
			c.word("true")
		} else {
			c.word("false")
		}
	case Null:
		c.word("null")
	default:
		if c.i >= len(c.b) {
			c.fail("unexpected end")
		} else {
			c.fail("a value was expected")
		}
	}
	v.End = c.i
	c.space()
	return v
}

func (c *Cursor) word(w string) {
	if len(c.b)-c.i < len(w) || string(c.b[c.i:c.i+len(w)]) != w {
		c.fail("unknown word")
		return
	}
	c.i += len(w)
}

// Skip consumes a value of any kind.
func (c *Cursor) Skip() {
	if k := c.Kind(); k == Array || k == Object {
		c.skipContainer()
		return
	}
	c.scalar()
}

func (c *Cursor) skipContainer() {
	var arrays [MaxDepth/64 + 1]uint64 // a bit per depth: set for an array
	base := c.depth
	for {
		switch k := c.Kind(); k {
		case Array, Object:
			if c.open(c.b[c.i]); c.err != nil {
				return
			}
			if bit := uint64(1) << (c.depth & 63); k == Array {
				arrays[c.depth>>6] |= bit
			} else {
				arrays[c.depth>>6] &^= bit
			}
		default:
			if k == Number && arrays[c.depth>>6]>>(c.depth&63)&1 != 0 {
				c.run()
			} else {
				c.scalar()
			}
		}
		// Advance to the next value, out of all containers that end here.
		for {
			if c.depth == base || c.err != nil {
				return
			}
			if arrays[c.depth>>6]>>(c.depth&63)&1 != 0 {
				if c.Elem() {
					break
				}
			} else if c.Key() {
				break
			}
		}
	}
}

// Numbers consumes an array of numbers. It returns their number and whether all are
// written as integers. ok is false, without an error, if the array has an element of
// another kind; the cursor is then inside the array, at that element.
func (c *Cursor) Numbers() (n int, integers, ok bool) {
	c.Array()
	integers = true
	for c.Elem() {
		if c.Kind() != Number {
			return n, false, false
		}
		k, ints := c.run()
		n += k
		integers = integers && ints
	}
	return n, integers, c.err == nil
}
