package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// chatCall reads an entry of tool_calls.
func chatCall(c gjson.Result) block {
	b := block{kind: toolUseBlock, id: str(c.Get("id"))}
	if custom := c.Get("custom"); custom.IsObject() {
		b.custom, b.name, b.args = true, str(custom.Get("name")), str(custom.Get("input"))
		return b
	}
	f := c.Get("function")
	b.name = str(f.Get("name"))
	if args := f.Get("arguments"); args.Type == gjson.String {
		b.args = args.Str
	} else if args.IsObject() {
		b.args = args.Raw // some servers send the object itself
	}
	if s := str(c.Get("extra_content.google.thought_signature")); s != "" {
		b.sig, b.issuer = s, "gemini"
	}
	return b
}

// writeChatCall writes an entry of tool_calls.
func writeChatCall(d *doc, b *block, id string, signed bool) {
	d.open("", '{')
	d.str("id", id)
	if b.custom {
		d.str("type", "custom")
		d.open("custom", '{')
		d.str("name", b.name)
		d.str("input", b.args)
	} else {
		d.str("type", "function")
		d.open("function", '{')
		d.str("name", b.name)
		d.str("arguments", b.arguments())
	}
	d.close('}')
	if signed && b.sig != "" {
		d.open("extra_content", '{')
		d.open("google", '{')
		d.str("thought_signature", b.sig)
		d.close('}')
		d.close('}')
	}
	d.close('}')
}

func writeChatParts(q *request, d *doc, blocks []block) {
	if len(blocks) == 0 || len(blocks) == 1 && blocks[0].kind == textBlock {
		d.str("content", joinTexts(blocks, ""))
		return
	}
	d.open("content", '[')
	for i := range blocks {
		b := &blocks[i]
		switch b.kind {
		case textBlock:
			chatTextPart(d, b.text)
		case imageBlock:
			d.open("", '{')
			d.str("type", "image_url")
			d.open("image_url", '{')
			d.str("url", b.uri())
			d.opt("detail", b.detail)
			d.close('}')
			d.close('}')
		case documentBlock:
			if b.text != "" {
				chatTextPart(d, b.text)
				break
			}
			d.open("", '{')
			d.str("type", "file")
			d.open("file", '{')
			if b.file != "" {
				d.str("file_id", b.file)
			} else {
				title := b.title
				if title == "" {
					title = "document.pdf"
				}
				d.str("filename", title)
				d.str("file_data", b.uri())
			}
			d.close('}')
			d.close('}')
		case audioBlock:
			d.open("", '{')
			d.str("type", "input_audio")
			d.open("input_audio", '{')
			d.str("data", b.data)
			d.str("format", strings.Replace(strings.TrimPrefix(b.mime, "audio/"), "mpeg", "mp3", 1))
			d.close('}')
			d.close('}')
		}
	}
	d.close(']')
}

func chatTextPart(d *doc, text string) {
	d.open("", '{')
	d.str("type", "text")
	d.str("text", text)
	d.close('}')
}

// chatCite reads the url_citation of an annotation; in Responses that is the
// annotation itself.
func chatCite(u gjson.Result) citation {
	return citation{
		url: str(u.Get("url")), title: str(u.Get("title")),
		start: int(count(u.Get("start_index"))), end: int(count(u.Get("end_index"))),
	}
}
