package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// readThinking reads the reasoning of a message: reasoning_details, which may
// be signed, or the plain fields. issuer is the issuer of all signatures in an
// upstream's answer; if it is empty, the format of a detail names its issuer.
func readThinking(pace *ir.Pacer, m ir.Record, own string) (blocks []ir.Block) {
	plain := ir.Str(m.Get("reasoning_content"))
	if plain == "" {
		plain = ir.Str(m.Get("reasoning"))
	}
	signed := false
	var run ir.Joiner // the text of the last block, if it arrived in several details
	last := int64(-1)
	details := m.Get("reasoning_details")
	ir.Each(details, func(_, v gjson.Result) bool {
		pace.Work(ir.PieceWork + len(v.Raw))
		format := ir.Str(v.Get("format"))
		index := int64(-1)
		if n := v.Get("index"); n.Type == gjson.Number {
			index = n.Int()
		}
		b := ir.Block{Kind: ir.ThinkingBlock, Issuer: issuerNamed(format)}
		switch ir.Str(v.Get("type")) {
		case "reasoning.text":
			b.Text, b.Signature = ir.Str(v.Get("text")), ir.Str(v.Get("signature"))
		case "reasoning.summary":
			b.Text = ir.Str(v.Get("summary"))
		case "reasoning.encrypted":
			b.Redacted, b.Signature = true, ir.Str(v.Get("data"))
			if id := ir.Str(v.Get("id")); id != "" && b.Issuer == "openai" {
				b.Signature = id + ":" + b.Signature
			}
		default:
			return true
		}
		if own != "" && b.Signature != "" {
			b.Issuer, b.Signature = own, format+":"+b.Signature
		}
		signed = signed || b.Signature != ""
		// Clients that store a stream's pieces send them back separately.
		if n := len(blocks); n > 0 && index >= 0 && index == last && !b.Redacted && !blocks[n-1].Redacted &&
			blocks[n-1].Signature == "" {
			run.Add("", b.Text)
			blocks[n-1].Signature, blocks[n-1].Issuer = b.Signature, b.Issuer
			return true
		}
		setThought(blocks, &run)
		run.Add("", b.Text)
		last = index
		blocks = append(ir.Reserve(blocks, details), b)
		return true
	})
	setThought(blocks, &run)
	if plain == "" {
		return blocks
	}
	if !signed {
		// Details without a signature have no more content than the plain
		// field.
		return []ir.Block{{Kind: ir.ThinkingBlock, Text: plain}}
	}
	for i := range blocks {
		if blocks[i].Text != "" {
			return blocks
		}
	}
	// A stream has the text in its deltas and the signature at the end.
	for i := range blocks {
		if !blocks[i].Redacted {
			blocks[i].Text = plain
			return blocks
		}
	}
	return append([]ir.Block{{Kind: ir.ThinkingBlock, Text: plain}}, blocks...)
}

// setThought sets the text of the last block to its joined pieces.
func setThought(blocks []ir.Block, run *ir.Joiner) {
	if text := run.Text(); text != "" {
		blocks[len(blocks)-1].Text = text
	}
	*run = ir.Joiner{}
}

// reasoningFormats are the names of issuers in reasoning_details.
var reasoningFormats = [...][2]string{
	{"anthropic", "anthropic-claude-v1"},
	{"gemini", "google-gemini-v1"},
	{"openai", "openai-responses-v1"},
	{"xai", "xai-responses-v1"},
}

func formatNamed(issuer string) string {
	for i := range reasoningFormats {
		if reasoningFormats[i][0] == issuer {
			return reasoningFormats[i][1]
		}
	}
	return issuer
}

func issuerNamed(format string) string {
	for i := range reasoningFormats {
		if reasoningFormats[i][1] == format {
			return reasoningFormats[i][0]
		}
	}
	return format
}

// writeReasoningDetails writes signatures, which the client sends back, in
// OpenRouter's field reasoning_details.
func writeReasoningDetails(blocks []ir.Block, d *ir.Writer) {
	n := 0
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ir.ThinkingBlock || b.Signature == "" {
			continue
		}
		if n == 0 {
			d.Open("reasoning_details", '[')
		}
		writeReasoningDetail(d, b.Redacted, ir.Escape(b.Text), b.Signature, b.Issuer, n)
		n++
	}
	if n > 0 {
		d.Close(']')
	}
}

// writeReasoningDetail writes one signed thinking block; text is escaped. The
// index distinguishes the blocks of a turn for clients that join deltas.
func writeReasoningDetail(d *ir.Writer, redacted bool, text, sig, issuer string, index int) {
	d.Open("", '{')
	if redacted {
		d.Str("type", "reasoning.encrypted")
		d.Str("data", sig)
	} else {
		d.Str("type", "reasoning.text")
		d.Escaped("text", text)
		d.Str("signature", sig)
	}
	d.Str("format", formatNamed(issuer))
	d.Int("index", int64(index))
	d.Close('}')
}

// writeThoughts writes the reasoning of an assistant message for upstreams that
// accept it.
func writeThoughts(q *ir.Request, d *ir.Writer, thoughts []ir.Block, opt *ir.Options, v *ir.Deviations) {
	if len(thoughts) == 0 {
		return
	}
	if v.Details {
		own := opt.IssuerOr(ir.IssuerChat)
		open := false
		for i := range thoughts {
			b := &thoughts[i]
			format, sig, ok := strings.Cut(b.Signature, ":")
			if b.Issuer != own || !ok {
				continue
			}
			if !open {
				d.Open("reasoning_details", '[')
				open = true
			}
			d.Open("", '{')
			if b.Redacted {
				d.Str("type", "reasoning.encrypted")
				d.Str("data", sig)
			} else {
				d.Str("type", "reasoning.text")
				d.Str("text", b.Text)
				d.Str("signature", sig)
			}
			d.Str("format", format)
			d.Close('}')
		}
		if open {
			d.Close(']')
			if !v.Passes {
				return
			}
		}
	}
	var run ir.Joiner
	for i := range thoughts {
		run.Add("", thoughts[i].Text)
	}
	text := run.Text()
	// OpenAI's models refuse the field, wherever they run.
	if v.Reasoning == "" || text == "" || v.Passes && v.IsOpenAIModel(opt.Model) {
		q.DropField(ir.FieldThinking)
		return
	}
	d.Str(v.Reasoning, text)
}
