package llm

import (
	"encoding/base64"
	"unicode/utf8"
)

type role uint8

const (
	user role = iota // also carries the results of tools
	assistant
	system // leading ones are the system prompt
)

type blockKind uint8

const (
	textBlock blockKind = iota
	imageBlock
	documentBlock
	audioBlock
	toolUseBlock
	toolResultBlock
	thinkingBlock
	refusalBlock
)

// block is a piece of a message.
type block struct {
	kind     blockKind
	custom   bool // a call of a custom tool
	old      bool // a call in the old form, function_call
	built    builtin
	failed   bool // the tool reported an error
	redacted bool // a thinking block without text
	compacts bool // a summary of everything before it

	text   string // of text, thinking, refusal, and of a document that is text
	mime   string // media type of data
	data   string // base64
	url    string
	file   string // id of a stored file
	title  string // file name or title
	detail string // of an image: auto, low, high
	id     string // of a tool call, and of the result that belongs to it
	name   string // of a tool
	args   string // arguments of a call: JSON text, perhaps broken; of a custom tool any text
	space  string // namespace of the tool
	parts  []block
	// sig is opaque to all but issuer. On a tool call it is Gemini's.
	sig, issuer string
	cache       string // "", "5m", "1h": ends a cached prefix
	cites       []citation
}

// citation is a source of a text.
type citation struct {
	url, title string
	quote      string // cited text of the source
	// start and end are code point offsets in the block's text; both are zero if
	// not known.
	start, end int
}

type message struct {
	role   role
	blocks []block
}

// uri gives the address of a picture or document, a data: URI for bytes.
func (b *block) uri() string {
	if b.url != "" {
		return b.url
	}
	return "data:" + b.mime + ";base64," + b.data
}

// arguments returns those of a function call, {} for none.
func (b *block) arguments() string {
	if b.args == "" {
		return "{}"
	}
	return b.args
}

// issuerOr names the issuer, chat for thoughts that nobody signed.
func (b *block) issuerOr() string {
	if b.issuer == "" {
		return issuerChat
	}
	return b.issuer
}

// plain turns base64 text into text, when it is that.
func (b *block) plain() {
	if text, err := base64.StdEncoding.DecodeString(b.data); err == nil {
		b.text, b.data = string(text), ""
	}
}

// citeWhole extends the citations of a block to its whole text.
func (b *block) citeWhole() {
	if len(b.cites) == 0 {
		return
	}
	n := utf8.RuneCountInString(b.text)
	for i := range b.cites {
		b.cites[i].end = n
	}
}
