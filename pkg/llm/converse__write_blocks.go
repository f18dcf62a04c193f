package llm

import (
	"encoding/base64"
	"strconv"
	"strings"

	"weir/pkg/wire/apierr"
)

// block writes one block of a message.
func (c *converse) block(b *block) error {
	d := c.d
	switch b.kind {
	case textBlock, refusalBlock:
		if strings.TrimSpace(b.text) == "" {
			return nil // blank texts are refused
		}
		c.text(b.text)
	case imageBlock:
		if err := c.image(b); err != nil {
			return err
		}
	case documentBlock:
		if err := c.document(b); err != nil {
			return err
		}
	case audioBlock:
		return apierr.Invalid("messages", "This model does not take audio.")
	case toolUseBlock:
		args, ok := object(b.args)
		if !ok {
			args = `{"_raw":` + quoted(b.args) + `}`
		}
		d.open("", '{')
		d.open("toolUse", '{')
		d.str("toolUseId", c.callID(b.id))
		d.str("name", b.name)
		d.raw("input", args)
		d.close('}')
		d.close('}')
	case toolResultBlock:
		d.open("", '{')
		d.open("toolResult", '{')
		d.str("toolUseId", c.callID(b.id))
		d.open("content", '[')
		start := len(d.b)
		for i := range b.parts {
			if err := c.block(&b.parts[i]); err != nil {
				return err
			}
		}
		if len(d.b) == start {
			c.text("(no output)")
		}
		d.close(']')
		if b.failed {
			d.str("status", "error")
		}
		d.close('}')
		d.close('}')
	case thinkingBlock:
		if b.issuer != c.opt.issuer(issuerBedrock) || b.sig == "" {
			c.dropField(fieldThinking)
			return nil
		}
		d.open("", '{')
		d.open("reasoningContent", '{')
		if b.redacted {
			d.str("redactedContent", b.sig)
		} else {
			d.open("reasoningText", '{')
			d.str("text", b.text)
			d.str("signature", b.sig)
			d.close('}')
		}
		d.close('}')
		d.close('}')
		return nil // nothing is cached here
	}
	c.cachePoint(b.cache)
	return nil
}

// callID makes an id of at most 64 of the characters taken, the same for the
// same id.
func (c *converse) callID(id string) string {
	id = messagesID(id)
	if n := c.model.ids; n > 0 {
		kept := make([]byte, 0, n)
		for i := len(id) - 1; i >= 0 && len(kept) < n; i-- { // ids differ at their ends
			if id[i] != '_' && id[i] != '-' {
				kept = append(kept, id[i])
			}
		}
		for len(kept) < n {
			kept = append(kept, '0')
		}
		return string(kept)
	}
	if len(id) > 64 {
		id = id[len(id)-64:]
	}
	return id
}

func (c *converse) image(b *block) error {
	kind, ok := strings.CutPrefix(b.mime, "image/")
	if kind == "jpg" {
		kind = "jpeg"
	}
	switch {
	case b.file != "":
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	case b.url != "" || b.data == "":
		return apierr.Invalid("messages", "This model takes images as base64 data only, not by address.")
	case !ok || kind != "png" && kind != "jpeg" && kind != "gif" && kind != "webp":
		return apierr.Invalid("messages", "This model takes png, jpeg, gif and webp images.")
	}
	c.d.raw("", `{"image":{`)
	c.d.str("format", kind)
	c.source(b.data)
	c.d.b = append(c.d.b, "}}"...)
	return nil
}

func (c *converse) source(data string) {
	c.d.open("source", '{')
	c.d.str("bytes", data)
	c.d.close('}')
}

// converseDocuments are the formats by media type.
var converseDocuments = [...][2]string{
	{"application/pdf", "pdf"}, {"text/csv", "csv"}, {"text/html", "html"}, {"text/markdown", "md"}, {"text/plain", "txt"},
	{"application/msword", "doc"}, {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"},
	{"application/vnd.ms-excel", "xls"}, {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"},
}

func (c *converse) document(b *block) error {
	data, kind := b.data, ""
	for i := range converseDocuments {
		if converseDocuments[i][0] == b.mime {
			kind = converseDocuments[i][1]
		}
	}
	if b.text != "" {
		data = base64.StdEncoding.EncodeToString([]byte(b.text))
		if kind == "" {
			kind = "txt"
		}
	}
	switch {
	case b.file != "":
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	case b.url != "" || data == "":
		return apierr.Invalid("messages", "This model takes documents as base64 data only, not by address.")
	case kind == "":
		return apierr.Invalid("messages", "This model does not take documents of this type.")
	}
	c.d.raw("", `{"document":{`)
	c.d.str("format", kind)
	c.d.str("name", c.documentName(b.title))
	c.source(data)
	c.d.b = append(c.d.b, "}}"...)
	return nil
}

// documentName keeps the characters that a name may have, without the file
// type at its end; no two documents of a request have the same.
func (c *converse) documentName(title string) string {
	if i := strings.LastIndexByte(title, '.'); i > 0 {
		title = title[:i]
	}
	var kept []byte
	for i := 0; i < len(title) && len(kept) < 180; i++ {
		ch := title[i]
		if !letter(ch) && (ch < '0' || ch > '9') && strings.IndexByte("-()[]", ch) < 0 {
			ch = ' '
		}
		if ch != ' ' || len(kept) > 0 && kept[len(kept)-1] != ' ' {
			kept = append(kept, ch)
		}
	}
	base := strings.TrimRight(string(kept), " ")
	if base == "" {
		base = "document"
	}
	name := base
	for c.documents[name] > 0 {
		c.documents[base]++
		name = base + " " + strconv.Itoa(c.documents[base])
	}
	if c.documents == nil {
		c.documents = map[string]int{}
	}
	c.documents[name]++
	return name
}
