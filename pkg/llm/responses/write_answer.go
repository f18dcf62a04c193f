package responses

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// WriteAnswer writes a Response.
func WriteAnswer(a *ir.Answer, d *ir.Writer, opt *ir.Options) {
	id := opt.AnswerID("resp_", strings.TrimPrefix(a.ID, "resp_"))
	status := statusName(a.Finish)
	openResponse(d, id, opt.ModelOr(a.Model), status, nil, opt)
	if opt.Compacts() {
		d.Open("output", '[')
		writeCompaction(d, itemID(opt, "cmp_", 0), answerText(a))
		d.Close(']')
		closeResponse(d, a.Finish, &a.Usage, a.ServiceTier)
		return
	}
	if a.Explanation != "" {
		a.Blocks = append(a.Blocks, ir.Block{Kind: ir.RefusalBlock, Text: a.Explanation})
	}
	d.Open("output", '[')
	n, probs := 0, contentLogprobs(a.Logprobs)
	for i := 0; i < len(a.Blocks); i++ {
		b := &a.Blocks[i]
		switch b.Kind {
		case ir.TextBlock, ir.RefusalBlock:
			// The texts of a run are parts of one message.
			d.Open("", '{')
			d.Str("id", itemID(opt, "msg_", n))
			d.Str("type", "message")
			d.Str("status", status)
			d.Str("role", "assistant")
			d.Open("content", '[')
			for ; i < len(a.Blocks) && (a.Blocks[i].Kind == ir.TextBlock || a.Blocks[i].Kind == ir.RefusalBlock); i++ {
				writePart(d, &a.Blocks[i], probs)
				probs = ""
			}
			i--
			d.Close(']')
			d.Close('}')
		case ir.ImageBlock:
			d.Key("")
			writeImageItem(d, itemID(opt, "ig_", n), b.URI(), "completed")
		case ir.ThinkingBlock:
			d.Key("")
			writeReasoningItem(d, itemID(opt, "rs_", n), ir.Escape(b.Text), b)
		case ir.ToolCallBlock:
			if b.Signature != "" {
				d.Key("")
				writeReasoningItem(d, itemID(opt, "rs_", n), "", b)
				n++
			}
			d.Key("")
			call := ir.Event{ID: b.ID, Name: b.Name, Namespace: b.Namespace, Custom: b.Custom, Builtin: b.Builtin}
			writeCallItem(d, itemID(opt, callPrefix(&call), n), &call, ir.Escape(b.Arguments), "completed")
		}
		n++
	}
	d.Close(']')
	closeResponse(d, a.Finish, &a.Usage, a.ServiceTier)
}

func statusName(f ir.Finish) string {
	switch f {
	case ir.FinishLength, ir.FinishWindow, ir.FinishFilter:
		return "incomplete"
	}
	return "completed"
}

// openResponse opens a Response object.
func openResponse(d *ir.Writer, id, model, status string, e *apierr.Error, opt *ir.Options) {
	d.Open("", '{')
	d.Str("id", id)
	d.Str("object", "response")
	d.Int("created_at", opt.Now)
	d.Str("status", status)
	if e != nil {
		code := cmp.Or(e.Code, "server_error")
		d.Open("error", '{')
		d.Str("code", code)
		d.Str("message", ir.OpenAIText(e))
		d.Close('}')
	} else {
		d.Null("error")
	}
	d.Str("model", model)
	d.Null("previous_response_id")
	d.Raw("", settingsOf(opt))
	d.Bool("store", false)
}

// closeResponse closes a Response object.
func closeResponse(d *ir.Writer, f ir.Finish, u *ir.Usage, tier string) {
	switch f {
	case ir.FinishLength, ir.FinishWindow:
		d.Raw("incomplete_details", `{"reason":"max_output_tokens"}`)
	case ir.FinishFilter:
		d.Raw("incomplete_details", `{"reason":"content_filter"}`)
	default:
		d.Null("incomplete_details")
	}
	if u.Known {
		d.Key("usage")
		writeUsage(d, u)
	} else {
		d.Null("usage")
	}
	d.OptStr("service_tier", tier)
	d.Close('}')
}

// itemID returns the id of the n-th item of an answer.
func itemID(o *ir.Options, prefix string, n int) string {
	return prefix + o.ID + "_" + strconv.Itoa(n)
}

// contentLogprobs returns the list of a message's tokens in chat's logprobs,
// without its brackets. Both dialects write the entries alike.
func contentLogprobs(logprobs string) string {
	v := gjson.Get(logprobs, "content")
	if !v.IsArray() {
		return ""
	}
	raw := strings.TrimSpace(ir.OneLine(v.Raw))
	return strings.TrimSpace(raw[1 : len(raw)-1])
}

func writePart(d *ir.Writer, b *ir.Block, probs string) {
	d.Open("", '{')
	if b.Kind == ir.RefusalBlock {
		d.Str("type", "refusal")
		d.Str("refusal", b.Text)
		d.Close('}')
		return
	}
	d.Str("type", "output_text")
	d.Str("text", b.Text)
	d.Open("annotations", '[')
	for _, c := range b.Citations {
		writeCitation(d, c)
	}
	d.Close(']')
	writeLogprobs(d, []byte(probs))
	d.Close('}')
}

func writeCitation(d *ir.Writer, c ir.Citation) {
	d.Open("", '{')
	d.Str("type", "url_citation")
	d.Str("url", c.URL)
	d.Str("title", c.Title)
	d.Int("start_index", int64(c.Start))
	d.Int("end_index", int64(c.End))
	d.Close('}')
}

// writeReasoningItem writes a thinking block; text is escaped.
// encrypted_content contains the signature, or a mark if it is missing: the AI
// SDK sends back only items with the field, and servers such as DeepSeek's
// require their reasoning.
func writeReasoningItem(d *ir.Writer, id, text string, b *ir.Block) {
	d.Buf = append(d.Buf, '{')
	d.Str("id", id)
	d.Str("type", "reasoning")
	d.Open("summary", '[')
	if text != "" {
		d.Open("", '{')
		d.Str("type", "summary_text")
		d.Escaped("text", text)
		d.Close('}')
	}
	d.Close(']')
	switch {
	case b == nil: // the item is not complete yet
	case b.Signature != "":
		sig := b.Signature
		if b.Redacted {
			sig = "redacted." + sig
		}
		d.Str("encrypted_content", ir.WrapSignature(b.IssuerOrUnsigned(), sig))
	case text != "":
		d.Str("encrypted_content", ir.WrapSignature(ir.IssuerChat, ""))
	}
	d.Close('}')
}

// writeImageItem writes an image, with its data in result.
func writeImageItem(d *ir.Writer, id, uri, status string) {
	d.Buf = append(d.Buf, '{')
	d.Str("id", id)
	d.Str("type", "image_generation_call")
	d.Str("status", status)
	if _, data, ok := strings.Cut(uri, ";base64,"); ok && status == "completed" {
		d.Str("result", data)
	} else {
		d.Null("result")
	}
	d.Close('}')
}

// callPrefix returns the prefix of the item ids of a kind of call. OpenAI
// refuses others.
func callPrefix(call *ir.Event) string {
	switch {
	case call.Builtin == ir.BuiltinShell:
		return "lsh_"
	case call.Builtin == ir.BuiltinSearch:
		return "tsc_"
	case call.Builtin == ir.BuiltinCommands:
		return "sh_"
	case call.Builtin == ir.BuiltinPatch:
		return "apc_"
	case call.Custom:
		return "ctc_"
	}
	return "fc_"
}

// writeCallItem writes a tool call; args is escaped.
func writeCallItem(d *ir.Writer, id string, call *ir.Event, args, status string) {
	switch call.Builtin {
	case ir.BuiltinShell:
		writeShellCall(d, id, call.ID, ir.Unescape(args), status)
		return
	case ir.BuiltinSearch:
		writeSearchCall(d, id, call.ID, ir.Unescape(args), status)
		return
	case ir.BuiltinCommands:
		writeCommandsCall(d, id, call.ID, ir.Unescape(args), status)
		return
	case ir.BuiltinPatch:
		writePatchCall(d, id, call.ID, ir.Unescape(args), status)
		return
	}
	d.Buf = append(d.Buf, '{')
	d.Str("id", id)
	if call.Custom {
		d.Str("type", "custom_tool_call")
		d.Str("status", status)
		d.Str("call_id", call.ID)
		d.Str("name", call.Name)
		d.OptStr("namespace", call.Namespace)
		d.Escaped("input", args)
	} else {
		d.Str("type", "function_call")
		d.Str("status", status)
		if args == "" && status == "completed" {
			args = "{}"
		}
		d.Escaped("arguments", args)
		d.Str("call_id", call.ID)
		d.Str("name", call.Name)
		d.OptStr("namespace", call.Namespace)
	}
	d.Close('}')
}

func writeUsage(d *ir.Writer, u *ir.Usage) {
	d.Buf = append(d.Buf, '{')
	d.Int("input_tokens", u.Input)
	d.Open("input_tokens_details", '{')
	d.Int("cached_tokens", u.CacheRead)
	d.Int("cache_write_tokens", u.CacheWrite)
	d.Close('}')
	d.Int("output_tokens", u.Output)
	d.Open("output_tokens_details", '{')
	d.Int("reasoning_tokens", u.Reasoning)
	d.Close('}')
	d.Int("total_tokens", u.Input+u.Output)
	d.Close('}')
}
