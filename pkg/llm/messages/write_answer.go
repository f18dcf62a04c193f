package messages

import (
	"strings"

	"weir/pkg/llm/ir"
)

// WriteAnswer writes a Message.
func WriteAnswer(a *ir.Answer, d *ir.Writer, opt *ir.Options) {
	d.Open("", '{')
	d.Str("id", opt.AnswerID("msg_", strings.TrimPrefix(a.ID, "msg_")))
	d.Str("type", "message")
	d.Str("role", "assistant")
	d.Str("model", opt.ModelOr(a.Model))
	d.Open("content", '[')
	for i := range a.Blocks {
		switch b := &a.Blocks[i]; b.Kind {
		case ir.TextBlock, ir.RefusalBlock:
			if b.Text == "" {
				continue
			}
			d.Open("", '{')
			d.Str("type", "text")
			d.Str("text", b.Text)
			if len(b.Citations) > 0 {
				d.Open("citations", '[')
				for _, c := range b.Citations {
					writeCitation(d, c)
				}
				d.Close(']')
			}
			d.Close('}')
		case ir.ThinkingBlock:
			d.Open("", '{')
			if b.Redacted {
				d.Str("type", "redacted_thinking")
				d.Str("data", wrapSignature(b.IssuerOrUnsigned(), b.Signature))
			} else {
				d.Str("type", "thinking")
				d.Str("thinking", b.Text)
				d.Str("signature", wrapSignature(b.IssuerOrUnsigned(), b.Signature))
			}
			d.Close('}')
		case ir.ImageBlock:
			if opt.Lost != nil {
				opt.Lost("content.image")
			}
		case ir.ToolCallBlock:
			if b.Signature != "" {
				// The block has no field for a signature: a thinking block
				// before it has.
				d.Open("", '{')
				d.Str("type", "thinking")
				d.Str("thinking", "")
				d.Str("signature", wrapSignature(b.Issuer, b.Signature))
				d.Close('}')
			}
			d.Open("", '{')
			d.Str("type", "tool_use")
			d.Str("id", ir.SafeCallID(b.ID))
			d.Str("name", b.Name)
			d.Raw("input", ir.ObjectArguments(b.Arguments))
			d.Close('}')
		}
	}
	d.Close(']')
	f := a.FinishReason()
	d.Str("stop_reason", stopReason(f))
	if f == ir.FinishSequence && a.StopSequence != "" {
		d.Str("stop_sequence", a.StopSequence)
	} else {
		d.Null("stop_sequence")
	}
	writeStopDetails(d, f, a.Explanation)
	d.Key("usage")
	writeUsage(d, &a.Usage)
	d.Close('}')
}

func stopReason(f ir.Finish) string {
	switch f {
	case ir.FinishLength:
		return "max_tokens"
	case ir.FinishSequence:
		return "stop_sequence"
	case ir.FinishTools:
		return "tool_use"
	case ir.FinishFilter:
		return "refusal"
	case ir.FinishPause:
		return "pause_turn"
	case ir.FinishWindow:
		return "model_context_window_exceeded"
	}
	return "end_turn"
}

// wrapSignature wraps a signature for a field of the Messages dialect, where a
// bare one is Anthropic's own.
func wrapSignature(issuer, sig string) string {
	if issuer == ir.IssuerAnthropic {
		return sig
	}
	return ir.WrapSignature(issuer, sig)
}

func writeStopDetails(d *ir.Writer, f ir.Finish, explain string) {
	if f == ir.FinishFilter && explain != "" {
		d.Open("stop_details", '{')
		d.Str("type", "refusal")
		d.Null("category")
		d.Str("explanation", explain)
		d.Close('}')
		return
	}
	d.Null("stop_details")
}

func writeCitation(d *ir.Writer, c ir.Citation) {
	d.Open("", '{')
	d.Str("type", "web_search_result_location")
	d.Str("url", c.URL)
	d.Str("title", c.Title)
	// The vendor's clients require both fields. The mark removes the citation on
	// its way to Claude, which accepts only citations of its own.
	d.Str("cited_text", c.Quote)
	d.Str("encrypted_index", ir.WrapSignature(ir.IssuerChat, ""))
	d.Close('}')
}

func writeUsage(d *ir.Writer, u *ir.Usage) {
	d.Buf = append(d.Buf, '{')
	d.Int("input_tokens", max(0, u.Input-u.CacheRead-u.CacheWrite))
	d.Int("cache_creation_input_tokens", u.CacheWrite)
	d.Int("cache_read_input_tokens", u.CacheRead)
	d.Int("output_tokens", u.Output)
	if u.Reasoning > 0 {
		d.Open("output_tokens_details", '{')
		d.Int("thinking_tokens", u.Reasoning)
		d.Close('}')
	}
	d.Close('}')
}
