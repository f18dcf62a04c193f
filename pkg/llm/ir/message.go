package ir

import (
	"encoding/base64"
	"unicode/utf8"
)

type Role uint8

const (
	RoleUser Role = iota // also carries the results of tools
	RoleAssistant
	RoleSystem // leading ones are the system prompt
)

type BlockKind uint8

const (
	TextBlock BlockKind = iota
	ImageBlock
	DocumentBlock
	AudioBlock
	ToolCallBlock
	ToolResultBlock
	ThinkingBlock
	RefusalBlock
)

// Block is a piece of a message.
type Block struct {
	Kind     BlockKind
	Custom   bool // a call of a custom tool
	Old      bool // a call in the old form, function_call
	Built    Builtin
	Failed   bool // the tool reported an error
	Redacted bool // a thinking block without text
	Compacts bool // a summary of everything before it

	Text   string // of text, thinking, refusal, and of a document that is text
	Mime   string // media type of data
	Data   string // base64
	Url    string
	File   string // id of a stored file
	Title  string // file name or title
	Detail string // of an image: auto, low, high
	Id     string // of a tool call, and of the result that belongs to it
	Name   string // of a tool
	Args   string // arguments of a call: JSON text, perhaps broken; of a custom tool any text
	Space  string // namespace of the tool
	Parts  []Block
	// sig is opaque to all but issuer. On a tool call it is Gemini's.
	Sig, Issuer string
	Cache       string // "", "5m", "1h": ends a cached prefix
	Cites       []Citation
}

// Citation is a source of a text.
type Citation struct {
	Url, Title string
	Quote      string // cited text of the source
	// start and end are code point offsets in the block's text; both are zero if
	// not known.
	Start, End int
}

type Message struct {
	Role   Role
	Blocks []Block
}

// URI gives the address of a picture or document, a data: URI for bytes.
func (b *Block) URI() string {
	if b.Url != "" {
		return b.Url
	}
	return "data:" + b.Mime + ";base64," + b.Data
}

// ArgumentsOrEmpty returns those of a function call, {} for none.
func (b *Block) ArgumentsOrEmpty() string {
	if b.Args == "" {
		return "{}"
	}
	return b.Args
}

// IssuerOrUnsigned names the issuer, chat for thoughts that nobody signed.
func (b *Block) IssuerOrUnsigned() string {
	if b.Issuer == "" {
		return IssuerChat
	}
	return b.Issuer
}

// DecodeText turns base64 text into text, when it is that.
func (b *Block) DecodeText() {
	if text, err := base64.StdEncoding.DecodeString(b.Data); err == nil {
		b.Text, b.Data = string(text), ""
	}
}

// CiteAll extends the citations of a block to its whole text.
func (b *Block) CiteAll() {
	if len(b.Cites) == 0 {
		return
	}
	n := utf8.RuneCountInString(b.Text)
	for i := range b.Cites {
		b.Cites[i].End = n
	}
}
