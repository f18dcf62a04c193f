package ir

import (
	"encoding/base64"
	"unicode/utf8"
)

// Role is the author of a message.
type Role uint8

// The roles.
const (
	RoleUser Role = iota // also carries the results of tools
	RoleAssistant
	RoleSystem // leading messages are the system prompt
)

// BlockKind is the kind of a Block.
type BlockKind uint8

// The kinds of blocks.
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

// Block is a part of a message.
type Block struct {
	Kind       BlockKind
	Custom     bool // a call of a custom tool
	Legacy     bool // a call in the form of function_call
	Builtin    Builtin
	IsError    bool // the tool reported an error
	Redacted   bool // a thinking block without text
	Compaction bool // a summary of everything before it

	Text      string // of text, thinking, refusal, and of a document that is text
	MediaType string // media type of data
	Data      string // base64
	URL       string
	FileID    string // id of a stored file
	Title     string // file name or title
	Detail    string // of an image: auto, low, high
	ID        string // of a tool call, and of the result that belongs to it
	Name      string // of a tool
	Arguments string // arguments of a call: JSON text, possibly invalid; of a custom tool any text
	Namespace string // namespace of the tool
	Parts     []Block
	// Signature is opaque to all but Issuer. On a tool call it is Gemini's.
	Signature, Issuer string
	Cache             string // "", "5m", "1h": ends a cached prefix
	Citations         []Citation
}

// Citation is a source of a text.
type Citation struct {
	URL, Title string
	Quote      string // cited text of the source
	// Start and End are code point offsets in the block's text; both are zero
	// if not known.
	Start, End int
}

// Message is a message of a conversation.
type Message struct {
	Role   Role
	Blocks []Block
}

// URI returns the URL of an image or document, a data: URI for data.
func (b *Block) URI() string {
	if b.URL != "" {
		return b.URL
	}
	return "data:" + b.MediaType + ";base64," + b.Data
}

// ArgumentsOrEmpty returns the arguments of a function call, {} if it has
// no arguments.
func (b *Block) ArgumentsOrEmpty() string {
	if b.Arguments == "" {
		return "{}"
	}
	return b.Arguments
}

// IssuerOrUnsigned returns the issuer, IssuerChat for thinking without a
// signature.
func (b *Block) IssuerOrUnsigned() string {
	if b.Issuer == "" {
		return IssuerChat
	}
	return b.Issuer
}

// DecodeText decodes base64 data into text if it is valid.
func (b *Block) DecodeText() {
	if text, err := base64.StdEncoding.DecodeString(b.Data); err == nil {
		b.Text, b.Data = string(text), ""
	}
}

// CiteAll extends the citations of a block to its whole text.
func (b *Block) CiteAll() {
	if len(b.Citations) == 0 {
		return
	}
	n := utf8.RuneCountInString(b.Text)
	for i := range b.Citations {
		b.Citations[i].End = n
	}
}
