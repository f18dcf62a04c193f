package htmlmd

import (
	"errors"
	"strings"

	"golang.org/x/net/html"
)

// token is what a document consists of.
type token uint8

// The tokens.
const (
	noToken   token = iota // the document has ended
	textToken              // text between tags
	startToken
	endToken
)

// maxToken is the largest text, script or tag in bytes that is read; a page ends before a
// larger one. It bounds what the tokenizer copies.
const maxToken = 2 << 20

// maxAttributes is how many of an element's attributes are read.
const maxAttributes = 64

// attribute is a name in lower case and a value.
type attribute struct{ name, value string }

// tokens reads a document tag by tag. Comments, declarations and a tag that is cut off
// are left out.
type tokens struct {
	doc *html.Tokenizer

	name       string // of a tag, in lower case
	attributes []attribute
	cut        bool // the document had a token over maxToken
}

func newTokens(doc string) tokens {
	z := html.NewTokenizer(strings.NewReader(doc))
	z.SetMaxBuf(maxToken)
	return tokens{doc: z}
}

// text returns that of a text token. It may be called once for each token.
func (z *tokens) text() string { return string(z.doc.Text()) }

// next moves on to the next token.
func (z *tokens) next() token {
	for {
		switch z.doc.Next() {
		case html.ErrorToken:
			z.cut = errors.Is(z.doc.Err(), html.ErrBufferExceeded)
			return noToken
		case html.TextToken:
			return textToken
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.doc.TagName()
			z.name, z.attributes = string(name), z.attributes[:0]
			for more && len(z.attributes) < maxAttributes {
				var k, v []byte
				k, v, more = z.doc.TagAttr()
				z.add(attribute{string(k), string(v)})
			}
			return startToken
		case html.EndTagToken:
			name, _ := z.doc.TagName()
			z.name = string(name)
			return endToken
		}
	}
}

// add keeps an attribute, the first one of its name.
func (z *tokens) add(a attribute) {
	for i := range z.attributes {
		if z.attributes[i].name == a.name {
			return
		}
	}
	z.attributes = append(z.attributes, a)
}
