package ir

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// ReadChatCall reads an entry of tool_calls.
func ReadChatCall(c gjson.Result) Block {
	b := Block{Kind: ToolCallBlock, ID: Str(c.Get("id"))}
	if custom := c.Get("custom"); custom.IsObject() {
		b.Custom, b.Name, b.Arguments = true, Str(custom.Get("name")), Str(custom.Get("input"))
		return b
	}
	f := c.Get("function")
	b.Name = Str(f.Get("name"))
	if args := f.Get("arguments"); args.Type == gjson.String {
		b.Arguments = args.Str
	} else if args.IsObject() {
		b.Arguments = args.Raw // some servers send the object itself
	}
	if s := Str(c.Get("extra_content.google.thought_signature")); s != "" {
		b.Signature, b.Issuer = s, "gemini"
	}
	return b
}

// WriteChatCall writes an entry of tool_calls.
func WriteChatCall(d *Writer, b *Block, id string, signed bool) {
	d.Open("", '{')
	d.Str("id", id)
	if b.Custom {
		d.Str("type", "custom")
		d.Open("custom", '{')
		d.Str("name", b.Name)
		d.Str("input", b.Arguments)
	} else {
		d.Str("type", "function")
		d.Open("function", '{')
		d.Str("name", b.Name)
		d.Str("arguments", b.ArgumentsOrEmpty())
	}
	d.Close('}')
	if signed && b.Signature != "" {
		d.Open("extra_content", '{')
		d.Open("google", '{')
		d.Str("thought_signature", b.Signature)
		d.Close('}')
		d.Close('}')
	}
	d.Close('}')
}

// WriteChatParts writes the content of a user message in chat's form, which
// Cohere shares.
func WriteChatParts(q *Request, d *Writer, blocks []Block) {
	if len(blocks) == 0 || len(blocks) == 1 && blocks[0].Kind == TextBlock {
		d.Str("content", JoinTexts(blocks, ""))
		return
	}
	d.Open("content", '[')
	for i := range blocks {
		b := &blocks[i]
		switch b.Kind {
		case TextBlock:
			WriteChatText(d, b.Text)
		case ImageBlock:
			d.Open("", '{')
			d.Str("type", "image_url")
			d.Open("image_url", '{')
			d.Str("url", b.URI())
			d.OptStr("detail", b.Detail)
			d.Close('}')
			d.Close('}')
		case DocumentBlock:
			if b.Text != "" {
				WriteChatText(d, b.Text)
				break
			}
			d.Open("", '{')
			d.Str("type", "file")
			d.Open("file", '{')
			if b.FileID != "" {
				d.Str("file_id", b.FileID)
			} else {
				title := cmp.Or(b.Title, "document.pdf")
				d.Str("filename", title)
				d.Str("file_data", b.URI())
			}
			d.Close('}')
			d.Close('}')
		case AudioBlock:
			d.Open("", '{')
			d.Str("type", "input_audio")
			d.Open("input_audio", '{')
			d.Str("data", b.Data)
			d.Str("format", strings.Replace(strings.TrimPrefix(b.MediaType, "audio/"), "mpeg", "mp3", 1))
			d.Close('}')
			d.Close('}')
		}
	}
	d.Close(']')
}

// WriteChatText writes a text part.
func WriteChatText(d *Writer, text string) {
	d.Open("", '{')
	d.Str("type", "text")
	d.Str("text", text)
	d.Close('}')
}

// ReadURLCitation reads the url_citation of an annotation; in Responses that is the
// annotation itself.
func ReadURLCitation(u gjson.Result) Citation {
	return Citation{
		URL: Str(u.Get("url")), Title: Str(u.Get("title")),
		Start: int(Count(u.Get("start_index"))), End: int(Count(u.Get("end_index"))),
	}
}
