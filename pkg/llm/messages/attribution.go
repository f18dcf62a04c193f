package messages

import (
	"strings"

	"weir/pkg/llm/ir"
)

// attributionField is the name in x-weir-dropped of the text that ir.AttributionMark
// begins. At another provider than Anthropic it is noise in front of the prompt that
// differs between requests, so that nothing behind it is read from the provider's cache
// (docs/reference/clients.md, 1.5).
const attributionField = "system.x-anthropic-billing-header"

// cutAttribution removes the line from a system prompt that is a string.
func cutAttribution(text string) (rest string, had bool) {
	if !strings.HasPrefix(text, ir.AttributionMark) {
		return text, false
	}
	_, rest, _ = strings.Cut(text, "\n")
	return rest, true
}

// dropAttribution removes the text from a body for another provider than Anthropic.
func dropAttribution(p *ir.Patch) {
	system := p.Get("system")
	text := system
	if system.IsArray() {
		text = system.Get("0.text")
	}
	rest, had := cutAttribution(ir.Str(text))
	if !had {
		return
	}
	p.Note(attributionField)
	switch {
	case rest == "" && (!system.IsArray() || system.Get("#").Int() == 1):
		p.Del("system")
	case rest == "":
		p.Del("system.0")
	case system.IsArray():
		p.Set("system.0.text", ir.Quote(rest))
	default:
		p.Set("system", ir.Quote(rest))
	}
}

// withoutAttribution is dropAttribution for a request that is translated.
func withoutAttribution(prompt []ir.Block, q *ir.Request) []ir.Block {
	if len(prompt) == 0 || prompt[0].Kind != ir.TextBlock {
		return prompt
	}
	rest, had := cutAttribution(prompt[0].Text)
	if !had {
		return prompt
	}
	q.Drop(attributionField)
	if rest == "" {
		return prompt[1:]
	}
	prompt[0].Text = rest
	return prompt
}
