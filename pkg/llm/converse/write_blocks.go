package converse

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// block writes one block of a message.
func (c *requestWriter) block(b *ir.Block) error {
	d := c.d
	switch b.Kind {
	case ir.TextBlock, ir.RefusalBlock:
		if strings.TrimSpace(b.Text) == "" {
			return nil // Bedrock refuses blank texts
		}
		c.text(b.Text)
	case ir.ImageBlock:
		if err := c.image(b); err != nil {
			return err
		}
	case ir.DocumentBlock:
		if err := c.document(b); err != nil {
			return err
		}
	case ir.AudioBlock:
		return apierr.Invalid("messages", "This model does not accept audio.")
	case ir.ToolCallBlock:
		d.Open("", '{')
		d.Open("toolUse", '{')
		d.Str("toolUseId", c.callID(b.ID))
		d.Str("name", b.Name)
		d.Raw("input", ir.ObjectArguments(b.Arguments))
		d.Close('}')
		d.Close('}')
	case ir.ToolResultBlock:
		d.Open("", '{')
		d.Open("toolResult", '{')
		d.Str("toolUseId", c.callID(b.ID))
		d.Open("content", '[')
		start := len(d.Buf)
		for i := range b.Parts {
			if err := c.block(&b.Parts[i]); err != nil {
				return err
			}
		}
		if len(d.Buf) == start {
			c.text("(no output)")
		}
		d.Close(']')
		if b.IsError {
			d.Str("status", "error")
		}
		d.Close('}')
		d.Close('}')
	case ir.ThinkingBlock:
		if b.Issuer != c.opt.IssuerOr(ir.IssuerBedrock) || b.Signature == "" {
			c.DropField(ir.FieldThinking)
			return nil
		}
		d.Open("", '{')
		d.Open("reasoningContent", '{')
		if b.Redacted {
			d.Str("redactedContent", b.Signature)
		} else {
			d.Open("reasoningText", '{')
			d.Str("text", b.Text)
			d.Str("signature", b.Signature)
			d.Close('}')
		}
		d.Close('}')
		d.Close('}')
		return nil // a thinking block has no cachePoint
	}
	c.cachePoint(b.Cache)
	return nil
}

// callID returns an id of at most 64 accepted characters, the same for the same
// id.
func (c *requestWriter) callID(id string) string {
	id = ir.SafeCallID(id)
	if n := c.model.ids; n > 0 {
		short := make([]byte, 0, n)
		for i := len(id) - 1; i >= 0 && len(short) < n; i-- { // ids differ at their ends
			if id[i] != '_' && id[i] != '-' {
				short = append(short, id[i])
			}
		}
		for len(short) < n {
			short = append(short, '0')
		}
		return string(short)
	}
	if len(id) > 64 {
		id = id[len(id)-64:]
	}
	return id
}

func (c *requestWriter) image(b *ir.Block) error {
	kind, ok := strings.CutPrefix(b.MediaType, "image/")
	if kind == "jpg" {
		kind = "jpeg"
	}
	switch {
	case b.FileID != "":
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	case b.URL != "" || b.Data == "":
		return apierr.Invalid("messages", "This model accepts images as base64 data only, not by URL.")
	case !ok || kind != "png" && kind != "jpeg" && kind != "gif" && kind != "webp":
		return apierr.Invalid("messages", "This model accepts PNG, JPEG, GIF and WebP images.")
	}
	c.d.Raw("", `{"image":{`)
	c.d.Str("format", kind)
	c.source(b.Data)
	c.d.Buf = append(c.d.Buf, "}}"...)
	return nil
}

func (c *requestWriter) source(data string) {
	c.d.Open("source", '{')
	c.d.Str("bytes", data)
	c.d.Close('}')
}

// documentFormats are the document formats by media type.
var documentFormats = [...][2]string{
	{"application/pdf", "pdf"}, {"text/csv", "csv"}, {"text/html", "html"}, {"text/markdown", "md"}, {"text/plain", "txt"},
	{"application/msword", "doc"}, {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"},
	{"application/vnd.ms-excel", "xls"}, {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"},
}

func (c *requestWriter) document(b *ir.Block) error {
	data, kind := b.Data, ""
	for i := range documentFormats {
		if documentFormats[i][0] == b.MediaType {
			kind = documentFormats[i][1]
		}
	}
	if b.Text != "" {
		data = base64.StdEncoding.EncodeToString([]byte(b.Text))
		kind = cmp.Or(kind, "txt")
	}
	switch {
	case b.FileID != "":
		return apierr.Invalid("messages", "Files stored at another provider cannot be used with this model.")
	case b.URL != "" || data == "":
		return apierr.Invalid("messages", "This model accepts documents as base64 data only, not by URL.")
	case kind == "":
		return apierr.Invalid("messages", "This model does not accept documents of this type.")
	}
	c.d.Raw("", `{"document":{`)
	c.d.Str("format", kind)
	c.d.Str("name", c.documentName(b.Title))
	c.source(data)
	c.d.Buf = append(c.d.Buf, "}}"...)
	return nil
}

// documentName returns a document's name of accepted characters, without the
// file extension. The documents of a request have different names.
func (c *requestWriter) documentName(title string) string {
	if i := strings.LastIndexByte(title, '.'); i > 0 {
		title = title[:i]
	}
	var chars []byte
	for i := 0; i < len(title) && len(chars) < 180; i++ {
		ch := title[i]
		if !ir.IsLetter(ch) && (ch < '0' || ch > '9') && strings.IndexByte("-()[]", ch) < 0 {
			ch = ' '
		}
		if ch != ' ' || len(chars) > 0 && chars[len(chars)-1] != ' ' {
			chars = append(chars, ch)
		}
	}
	base := cmp.Or(strings.TrimRight(string(chars), " "), "document")
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
