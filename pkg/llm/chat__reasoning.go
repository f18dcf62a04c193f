package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// chatThinking reads the reasoning of a message: reasoning_details, where it
// is signed, or the plain fields. own is whose signatures an upstream's
// answer carries; empty is the format's issuer.
func chatThinking(pace *pacer, m record, own string) (blocks []block) {
	plain := str(m.Get("reasoning_content"))
	if plain == "" {
		plain = str(m.Get("reasoning"))
	}
	signed := false
	var run joined // the text of the last block, if it came in pieces
	last := int64(-1)
	details := m.Get("reasoning_details")
	forEach(details, func(_, v gjson.Result) bool {
		pace.did(pieceWork + len(v.Raw))
		format := str(v.Get("format"))
		index := int64(-1)
		if n := v.Get("index"); n.Type == gjson.Number {
			index = n.Int()
		}
		b := block{kind: thinkingBlock, issuer: issuerOf(format)}
		switch str(v.Get("type")) {
		case "reasoning.text":
			b.text, b.sig = str(v.Get("text")), str(v.Get("signature"))
		case "reasoning.summary":
			b.text = str(v.Get("summary"))
		case "reasoning.encrypted":
			b.redacted, b.sig = true, str(v.Get("data"))
			if id := str(v.Get("id")); id != "" && b.issuer == "openai" {
				b.sig = id + ":" + b.sig
			}
		default:
			return true
		}
		if own != "" && b.sig != "" {
			b.issuer, b.sig = own, format+":"+b.sig
		}
		signed = signed || b.sig != ""
		// Clients that store a stream's pieces send them back separately.
		if n := len(blocks); n > 0 && index >= 0 && index == last && !b.redacted && !blocks[n-1].redacted && blocks[n-1].sig == "" {
			run.add("", b.text)
			blocks[n-1].sig, blocks[n-1].issuer = b.sig, b.issuer
			return true
		}
		settleThought(blocks, &run)
		run.add("", b.text)
		last = index
		blocks = append(room(blocks, details), b)
		return true
	})
	settleThought(blocks, &run)
	if plain == "" {
		return blocks
	}
	if !signed {
		// Details without a signature say no more than the plain field.
		return []block{{kind: thinkingBlock, text: plain}}
	}
	for i := range blocks {
		if blocks[i].text != "" {
			return blocks
		}
	}
	// A stream tells the text in pieces and the signature at the end.
	for i := range blocks {
		if !blocks[i].redacted {
			blocks[i].text = plain
			return blocks
		}
	}
	return append([]block{{kind: thinkingBlock, text: plain}}, blocks...)
}

// settleThought sets the text of the last block to its joined pieces.
func settleThought(blocks []block, run *joined) {
	if text := run.text(); text != "" {
		blocks[len(blocks)-1].text = text
	}
	*run = joined{}
}

// formats are the names that reasoning_details uses for the issuers.
var formats = [...][2]string{
	{"anthropic", "anthropic-claude-v1"},
	{"gemini", "google-gemini-v1"},
	{"openai", "openai-responses-v1"},
	{"xai", "xai-responses-v1"},
}

func formatOf(issuer string) string {
	for i := range formats {
		if formats[i][0] == issuer {
			return formats[i][1]
		}
	}
	return issuer
}

func issuerOf(format string) string {
	for i := range formats {
		if formats[i][1] == format {
			return formats[i][0]
		}
	}
	return format
}

// writeReasoningDetails keeps signatures for the round trip, in the field that
// OpenRouter made common.
func writeReasoningDetails(blocks []block, d *doc) {
	n := 0
	for i := range blocks {
		b := &blocks[i]
		if b.kind != thinkingBlock || b.sig == "" {
			continue
		}
		if n == 0 {
			d.open("reasoning_details", '[')
		}
		writeReasoningDetail(d, b.redacted, escape(b.text), b.sig, b.issuer, n)
		n++
	}
	if n > 0 {
		d.close(']')
	}
}

// writeReasoningDetail writes one signed thought; text is escaped. The index
// distinguishes the thoughts of a turn for clients that join pieces.
func writeReasoningDetail(d *doc, redacted bool, text, sig, issuer string, index int) {
	d.open("", '{')
	if redacted {
		d.str("type", "reasoning.encrypted")
		d.str("data", sig)
	} else {
		d.str("type", "reasoning.text")
		d.esc("text", text)
		d.str("signature", sig)
	}
	d.str("format", formatOf(issuer))
	d.int("index", int64(index))
	d.close('}')
}

// writeChatThoughts gives reasoning back to the upstreams that want it.
func writeChatThoughts(q *request, d *doc, thoughts []block, opt *Options, v *Deviations) {
	if len(thoughts) == 0 {
		return
	}
	if v.Details {
		own := opt.issuer(issuerChat)
		open := false
		for i := range thoughts {
			b := &thoughts[i]
			format, sig, ok := strings.Cut(b.sig, ":")
			if b.issuer != own || !ok {
				continue
			}
			if !open {
				d.open("reasoning_details", '[')
				open = true
			}
			d.open("", '{')
			if b.redacted {
				d.str("type", "reasoning.encrypted")
				d.str("data", sig)
			} else {
				d.str("type", "reasoning.text")
				d.str("text", b.text)
				d.str("signature", sig)
			}
			d.str("format", format)
			d.close('}')
		}
		if open {
			d.close(']')
			if !v.Passes {
				return
			}
		}
	}
	var run joined
	for i := range thoughts {
		run.add("", thoughts[i].text)
	}
	text := run.text()
	// OpenAI's models refuse the field, wherever they run.
	if v.Reasoning == "" || text == "" || v.Passes && v.openAIModel(opt.Model) {
		q.dropField(fieldThinking)
		return
	}
	d.str(v.Reasoning, text)
}
