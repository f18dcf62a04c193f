package htmlmd

import "strings"

// token is what a document consists of.
type token uint8

// The tokens.
const (
	noToken   token = iota // the document has ended
	textToken              // text between tags
	startToken
	endToken
)

// maxAttributes is how many of an element's attributes are kept.
const maxAttributes = 64

// attribute is a name and a value as the document writes them.
type attribute struct{ name, value string }

// tokens passes over a document as WHATWG HTML 13.2.5 has it, without the
// parts that only a tree needs. Everything points into the document. Comments,
// declarations and a tag that is cut off give no token.
type tokens struct {
	doc  string
	at   int
	raw  string // the element whose content is text: script, title, …; or ""
	kind token

	name       string // of a tag, in lower case
	attributes []attribute
	text       string // of a text, as it is written
	literal    bool   // it has no character references
}

// plain returns the text of a text token.
func (z *tokens) plain() string {
	if z.literal {
		return z.text
	}
	return unescape(z.text, false)
}

// next moves on to the next token.
func (z *tokens) next() token {
	z.kind = z.read()
	return z.kind
}

func (z *tokens) read() token {
	if z.raw != "" {
		end := z.rawEnd()
		z.text, z.literal = z.doc[z.at:end], z.raw != "title" && z.raw != "textarea"
		z.raw, z.at = "", end
		if z.text != "" {
			return textToken
		}
	}
	for z.at < len(z.doc) {
		if n := z.words(); n > 0 {
			z.text, z.literal = z.doc[z.at:z.at+n], false
			z.at += n
			return textToken
		}
		switch c := z.doc[z.at+1]; {
		case c == '!':
			z.declaration()
		case c == '?':
			z.skip(z.at, ">")
		case c != '/':
			z.at++
			if z.tag() {
				z.enter()
				return startToken
			}
		case isLetter(z.doc[z.at+2]):
			z.at += 2
			if z.tag() {
				return endToken
			}
		default: // an end tag of nothing
			z.skip(z.at+2, ">")
		}
	}
	return noToken
}

// words returns the length of the text up to the next markup.
func (z *tokens) words() int {
	s := z.doc[z.at:]
	for i := 0; ; i++ {
		next := strings.IndexByte(s[i:], '<')
		if next < 0 || i+next+1 >= len(s) {
			return len(s)
		}
		i += next
		if c := s[i+1]; isLetter(c) || c == '!' || c == '?' || c == '/' && i+2 < len(s) {
			return i
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// skip moves behind the next end, or to the document's end.
func (z *tokens) skip(from int, end string) {
	if i := strings.Index(z.doc[min(from, len(z.doc)):], end); i >= 0 {
		z.at = from + i + len(end)
	} else {
		z.at = len(z.doc)
	}
}

// declaration passes over a comment, a doctype or the like.
func (z *tokens) declaration() {
	s := z.doc[z.at:]
	if !strings.HasPrefix(s, "<!--") {
		z.skip(z.at, ">")
		return
	}
	if strings.HasPrefix(s, "<!-->") || strings.HasPrefix(s, "<!--->") {
		z.skip(z.at, ">")
		return
	}
	for i := 4; ; i++ {
		next := strings.Index(s[i:], "--")
		if next < 0 {
			z.at = len(z.doc)
			return
		}
		i += next
		if end := s[i+2:]; strings.HasPrefix(end, ">") {
			z.at += i + 3
			return
		} else if strings.HasPrefix(end, "!>") {
			z.at += i + 4
			return
		}
	}
}

// tag reads a tag from its name on; false when the document ends within it.
func (z *tokens) tag() bool {
	doc, i := z.doc, z.at
	for i < len(doc) && !isBlank(doc[i]) && doc[i] != '/' && doc[i] != '>' {
		i++
	}
	z.name, z.attributes = strings.ToLower(doc[z.at:min(i, z.at+maxName)]), z.attributes[:0]
	for {
		for i < len(doc) && (isBlank(doc[i]) || doc[i] == '/') {
			i++
		}
		if i >= len(doc) {
			z.at = len(doc)
			return false
		}
		if doc[i] == '>' {
			z.at = i + 1
			return true
		}
		start := i
		for i++; i < len(doc) && !isBlank(doc[i]) && doc[i] != '/' && doc[i] != '>' && doc[i] != '='; {
			i++
		}
		a := attribute{name: doc[start:i]}
		for i < len(doc) && isBlank(doc[i]) {
			i++
		}
		if i < len(doc) && doc[i] == '=' {
			a.value, i = value(doc, i+1)
		}
		z.add(a)
	}
}

// add keeps an attribute, the first one of its name.
func (z *tokens) add(a attribute) {
	if len(z.attributes) == maxAttributes {
		return
	}
	for i := range z.attributes {
		if strings.EqualFold(z.attributes[i].name, a.name) {
			return
		}
	}
	z.attributes = append(z.attributes, a)
}

// value reads the value of an attribute after its equals sign, and returns the position
// after it.
func value(doc string, i int) (string, int) {
	for i < len(doc) && isBlank(doc[i]) {
		i++
	}
	if i >= len(doc) {
		return "", i
	}
	if q := doc[i]; q == '"' || q == '\'' {
		i++
		n := strings.IndexByte(doc[i:], q)
		if n < 0 {
			return "", len(doc)
		}
		return doc[i : i+n], i + n + 1
	}
	start := i
	for i < len(doc) && !isBlank(doc[i]) && doc[i] != '>' {
		i++
	}
	return doc[start:i], i
}

// enter notes an element whose content is text.
func (z *tokens) enter() {
	switch z.name {
	case "script", "style", "title", "textarea", "iframe", "noembed", "noframes", "noscript", "xmp", "plaintext":
		z.raw = z.name
	}
}

// rawEnd finds where the content of a raw element ends. A script may have a
// script in a comment.
func (z *tokens) rawEnd() int {
	if z.raw == "plaintext" {
		return len(z.doc)
	}
	comment, inner := false, false
	for i := z.at; i < len(z.doc); i++ {
		s := z.doc[i:]
		switch {
		case s[0] == '<' && z.named(s[1:], "/"+z.raw):
			if !inner {
				return i
			}
			inner = false
		case z.raw != "script":
			if next := strings.IndexByte(s[1:], '<'); next >= 0 {
				i += next
			} else {
				return len(z.doc)
			}
		case strings.HasPrefix(s, "<!--"):
			comment = !strings.HasPrefix(s, "<!-->") && !strings.HasPrefix(s, "<!--->")
		case comment && strings.HasPrefix(s, "-->"):
			comment, inner = false, false
		case comment && s[0] == '<' && z.named(s[1:], z.raw):
			inner = true
		}
	}
	return len(z.doc)
}

// named reports whether s begins with a name, in any case, and the name ends
// there.
func (z *tokens) named(s, name string) bool {
	return len(s) > len(name) && strings.EqualFold(s[:len(name)], name) && (isBlank(s[len(name)]) || s[len(name)] == '/' || s[len(name)] == '>')
}
