package jsonscan

import (
	"bytes"
)

// Marks are texts that ReadMarked and Mark look for while they validate a document,
// so that its bytes are not searched for them again.
type Marks struct {
	// Strings are prefixes of strings, names and values in any depth, at most 8. They
	// are compared as the document writes them, with escapes. A prefix that ends with
	// a quote is a whole string.
	Strings []string
	// Names are names of members of the top-level object. They are compared after
	// unescaping, regardless of case, and begin with a lower-case letter of ASCII.
	Names []string
}

const (
	maxMarks   = 8
	maxMembers = 24 // members of the top-level object whose names are noted
)

// Marked is what was found of Marks. A nil Marked knows nothing: any mark may be in
// the document.
type Marked struct {
	marks   *Marks
	firsts  [4]uint64 // a bit per byte: set if one of Strings begins with it
	last    [maxMarks]int32
	names   [maxMembers]int32 // offsets of the names of the top-level object
	members int
	escaped bool // one of these names has escapes
	named   bool // one of Names is there
}

func (m *Marked) reset(marks *Marks) {
	*m = Marked{marks: marks}
	for _, s := range marks.Strings {
		m.firsts[s[0]>>6] |= 1 << (s[0] & 63)
	}
}

// Has reports whether the document may have a string with the prefix Strings[i].
func (m *Marked) Has(i int) bool { return m == nil || m.last[i] > 0 }

// Last returns the offset of the last string with the prefix Strings[i], 0 without
// one.
func (m *Marked) Last(i int) int { return int(m.last[i]) }

// Named reports whether the top-level object may have a member of Names.
func (m *Marked) Named() bool { return m == nil || m.named }

// Lacks reports whether the top-level object of body, the document that was read,
// certainly has no member with a name. The name has no characters to escape.
func (m *Marked) Lacks(body []byte, name string) bool {
	if m == nil || m.escaped || m.members > maxMembers {
		return false
	}
	for _, at := range m.names[:m.members] {
		if rest := body[at+1:]; len(rest) > len(name) && rest[len(name)] == '"' && string(rest[:len(name)]) == name {
			return false
		}
	}
	return true
}

// string notes a string at an offset.
func (m *Marked) string(b []byte, at int) {
	first := b[at+1]
	if m.firsts[first>>6]>>(first&63)&1 == 0 {
		return
	}
	for i, s := range m.marks.Strings {
		if rest := b[at+1:]; len(rest) >= len(s) && string(rest[:len(s)]) == s {
			m.last[i] = int32(at)
		}
	}
}

// member notes the last name, which is one of the top-level object.
func (m *Marked) member(c *Cursor) {
	if m.members < maxMembers {
		m.names[m.members] = int32(c.key.Start)
	}
	m.members++
	m.escaped = m.escaped || c.key.Escaped
	m.named = m.named || c.KeyFolds(m.marks.Names)
}

// Mark validates a document and looks for marks.
func Mark(body []byte, marks *Marks, m *Marked) error {
	m.reset(marks)
	var c Cursor
	c.Reset(body)
	c.marked = m
	if c.Kind() != Object {
		c.Skip()
		return c.End()
	}
	for c.Object(); c.Key(); c.Skip() {
		m.member(&c)
	}
	return c.End()
}

// KeyFolds reports whether the last name is one of names, regardless of case. These
// begin with a lower-case letter of ASCII.
func (c *Cursor) KeyFolds(names []string) bool {
	raw := c.b[c.key.Start+1 : c.key.End-1]
	if len(names) == 0 {
		return false
	}
	if c.key.Escaped {
		raw = unescape(nil, raw)
	}
	for _, name := range names {
		// Two letters have a form of two or three bytes: ſ and the Kelvin sign.
		if len(raw) >= len(name) && len(raw) <= 3*len(name) && (raw[0]|0x20 == name[0] || raw[0] >= 0x80) &&
			bytes.EqualFold(raw, []byte(name)) {
			return true
		}
	}
	return false
}
