package chat

import (
	"unicode/utf8"

	"weir/pkg/llm/ir"
)

// WriteAnswer writes a chat completion.
func WriteAnswer(a *ir.Answer, d *ir.Writer, opt *ir.Options) {
	d.Open("", '{')
	d.Str("id", opt.AnswerID("chatcmpl-", a.ID))
	d.Str("object", "chat.completion")
	d.Int("created", opt.Now)
	d.Str("model", opt.ModelOr(a.Model))
	d.Open("choices", '[')
	d.Open("", '{')
	d.Int("index", 0)
	d.Open("message", '{')
	d.Str("role", "assistant")
	var texts, thoughts ir.Joiner
	refusals, calls := ir.Joiner{First: a.Explanation}, false
	var old *ir.Block // the one call for a client that supports only function_call
	cited := false
	for i := range a.Blocks {
		switch b := &a.Blocks[i]; b.Kind {
		case ir.TextBlock:
			texts.Add("", b.Text)
			cited = cited || len(b.Citations) > 0
		case ir.ThinkingBlock:
			thoughts.Add("", b.Text)
		case ir.RefusalBlock:
			refusals.Add("", b.Text)
		case ir.ToolCallBlock:
			if calls = true; b.Legacy && old == nil {
				old = b
			}
		}
	}
	text, thought, refused := texts.Text(), thoughts.Text(), refusals.Text()
	if text == "" && (calls || refused != "" || a.Finish == ir.FinishFilter) {
		d.Null("content")
	} else {
		d.Str("content", text)
	}
	d.StrOrNull("refusal", refused)
	d.OptStr("reasoning_content", thought)
	writeReasoningDetails(a.Blocks, d)
	if old != nil {
		d.Open("function_call", '{')
		d.Str("name", old.Name)
		d.Str("arguments", old.ArgumentsOrEmpty())
		d.Close('}')
	} else if calls {
		d.Open("tool_calls", '[')
		for i := range a.Blocks {
			if b := &a.Blocks[i]; b.Kind == ir.ToolCallBlock {
				ir.WriteChatCall(d, b, b.ID, true)
			}
		}
		d.Close(']')
	}
	writeImages(d, a.Blocks)
	if cited {
		writeCitations(a.Blocks, d)
	}
	d.Close('}')
	d.Str("finish_reason", finishName(a.FinishReason(), old != nil))
	if a.Logprobs != "" {
		d.Raw("logprobs", a.Logprobs)
	} else {
		d.Null("logprobs")
	}
	d.Close('}')
	d.Close(']')
	if a.Usage.Known {
		d.Key("usage")
		writeUsage(d, &a.Usage)
	}
	d.OptStr("service_tier", a.ServiceTier)
	d.Close('}')
}

func finishName(f ir.Finish, old bool) string {
	switch f {
	case ir.FinishLength, ir.FinishWindow:
		return "length"
	case ir.FinishTools:
		if old {
			return "function_call"
		}
		return "tool_calls"
	case ir.FinishFilter:
		return "content_filter"
	}
	return "stop"
}

// writeImages writes the images of an answer in OpenRouter's field images. The
// Messages dialect has no field for them.
func writeImages(d *ir.Writer, blocks []ir.Block) {
	open := false
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ir.ImageBlock {
			continue
		}
		if !open {
			d.Open("images", '[')
			open = true
		}
		writeImage(d, b.URI())
	}
	if open {
		d.Close(']')
	}
}

func writeImage(d *ir.Writer, uri string) {
	d.Open("", '{')
	d.Str("type", "image_url")
	d.Open("image_url", '{')
	d.Str("url", uri)
	d.Close('}')
	d.Close('}')
}

// writeCitations writes the citations of all text blocks, which become one text.
func writeCitations(blocks []ir.Block, d *ir.Writer) {
	d.Open("annotations", '[')
	before := 0 // code points of the preceding texts
	for i := range blocks {
		b := &blocks[i]
		if b.Kind != ir.TextBlock {
			continue
		}
		for _, c := range b.Citations {
			writeCitation(d, c.Shift(before))
		}
		before += utf8.RuneCountInString(b.Text)
	}
	d.Close(']')
}

func writeCitation(d *ir.Writer, c ir.Citation) {
	d.Open("", '{')
	d.Str("type", "url_citation")
	d.Open("url_citation", '{')
	d.Str("url", c.URL)
	d.Str("title", c.Title)
	d.Int("start_index", int64(c.Start))
	d.Int("end_index", int64(c.End))
	d.Close('}')
	d.Close('}')
}

func writeUsage(d *ir.Writer, u *ir.Usage) {
	d.Buf = append(d.Buf, '{')
	d.Int("prompt_tokens", u.Input)
	d.Int("completion_tokens", u.Output)
	d.Int("total_tokens", u.Input+u.Output)
	d.Open("prompt_tokens_details", '{')
	d.Int("cached_tokens", u.CacheRead)
	if u.CacheWrite > 0 {
		d.Int("cache_write_tokens", u.CacheWrite)
	}
	d.Close('}')
	d.Open("completion_tokens_details", '{')
	d.Int("reasoning_tokens", u.Reasoning)
	d.Close('}')
	d.Close('}')
}
