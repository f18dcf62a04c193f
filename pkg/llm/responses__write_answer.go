package llm

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// writeResponsesAnswer writes a Response.
func writeResponsesAnswer(a *answer, d *doc, opt *Options) {
	id := opt.made("resp_", strings.TrimPrefix(a.id, "resp_"))
	status := statusName(a.finish)
	responseHead(d, id, opt.shown(a.model), status, nil, opt)
	if a.explain != "" {
		a.blocks = append(a.blocks, block{kind: refusalBlock, text: a.explain})
	}
	d.open("output", '[')
	n, probs := 0, contentProbs(a.logprobs)
	for i := 0; i < len(a.blocks); i++ {
		b := &a.blocks[i]
		switch b.kind {
		case textBlock, refusalBlock:
			// The texts of a run are parts of one message.
			d.open("", '{')
			d.str("id", itemID(opt, "msg_", n))
			d.str("type", "message")
			d.str("status", status)
			d.str("role", "assistant")
			d.open("content", '[')
			for ; i < len(a.blocks) && (a.blocks[i].kind == textBlock || a.blocks[i].kind == refusalBlock); i++ {
				writeResponsesPart(d, &a.blocks[i], probs)
				probs = ""
			}
			i--
			d.close(']')
			d.close('}')
		case imageBlock:
			d.key("")
			writeImageItem(d, itemID(opt, "ig_", n), b.uri(), "completed")
		case thinkingBlock:
			d.key("")
			writeReasoningItem(d, itemID(opt, "rs_", n), escape(b.text), b)
		case toolUseBlock:
			if b.sig != "" {
				d.key("")
				writeReasoningItem(d, itemID(opt, "rs_", n), "", b)
				n++
			}
			d.key("")
			call := event{id: b.id, name: b.name, space: b.space, custom: b.custom, built: b.built}
			writeCallItem(d, itemID(opt, callPrefix(&call), n), &call, escape(b.args), "completed")
		}
		n++
	}
	d.close(']')
	responseTail(d, a.finish, &a.usage, a.tier)
}

func statusName(f finish) string {
	switch f {
	case finishLength, finishWindow, finishFilter:
		return "incomplete"
	}
	return "completed"
}

// responseHead opens a Response object.
func responseHead(d *doc, id, model, status string, e *apierr.Error, opt *Options) {
	d.open("", '{')
	d.str("id", id)
	d.str("object", "response")
	d.int("created_at", opt.Now)
	d.str("status", status)
	if e != nil {
		code := e.Code
		if code == "" {
			code = "server_error"
		}
		d.open("error", '{')
		d.str("code", code)
		d.str("message", e.Message)
		d.close('}')
	} else {
		d.null("error")
	}
	d.str("model", model)
	d.null("previous_response_id")
	d.raw("", settingsOf(opt))
	d.bool("store", false)
}

// responseTail closes a Response object.
func responseTail(d *doc, f finish, u *Usage, tier string) {
	switch f {
	case finishLength, finishWindow:
		d.raw("incomplete_details", `{"reason":"max_output_tokens"}`)
	case finishFilter:
		d.raw("incomplete_details", `{"reason":"content_filter"}`)
	default:
		d.null("incomplete_details")
	}
	if u.Known {
		d.key("usage")
		writeResponsesUsage(d, u)
	} else {
		d.null("usage")
	}
	d.opt("service_tier", tier)
	d.close('}')
}

// itemID makes the id of the n-th item of an answer.
func itemID(o *Options, prefix string, n int) string {
	return prefix + o.ID + "_" + strconv.Itoa(n)
}

// contentProbs takes the list of a message's tokens, which both dialects write
// alike, out of chat's logprobs: without its brackets.
func contentProbs(logprobs string) string {
	v := gjson.Get(logprobs, "content")
	if !v.IsArray() {
		return ""
	}
	raw := strings.TrimSpace(oneLine(v.Raw))
	return strings.TrimSpace(raw[1 : len(raw)-1])
}

func writeResponsesPart(d *doc, b *block, probs string) {
	d.open("", '{')
	if b.kind == refusalBlock {
		d.str("type", "refusal")
		d.str("refusal", b.text)
		d.close('}')
		return
	}
	d.str("type", "output_text")
	d.str("text", b.text)
	d.open("annotations", '[')
	for _, c := range b.cites {
		writeResponsesCite(d, c)
	}
	d.close(']')
	writeProbs(d, []byte(probs))
	d.close('}')
}

func writeResponsesCite(d *doc, c citation) {
	d.open("", '{')
	d.str("type", "url_citation")
	d.str("url", c.url)
	d.str("title", c.title)
	d.int("start_index", int64(c.start))
	d.int("end_index", int64(c.end))
	d.close('}')
}

// writeReasoningItem writes a thought; text is escaped. encrypted_content contains
// the signature. A thought without one has a mark there: the AI SDK sends back
// only items with the field, and servers such as DeepSeek's require their
// reasoning.
func writeReasoningItem(d *doc, id, text string, b *block) {
	d.b = append(d.b, '{')
	d.str("id", id)
	d.str("type", "reasoning")
	d.open("summary", '[')
	if text != "" {
		d.open("", '{')
		d.str("type", "summary_text")
		d.esc("text", text)
		d.close('}')
	}
	d.close(']')
	switch {
	case b == nil: // the item is not complete yet
	case b.sig != "":
		sig := b.sig
		if b.redacted {
			sig = "redacted." + sig
		}
		d.str("encrypted_content", wrap(b.issuerOr(), sig))
	case text != "":
		d.str("encrypted_content", wrap(issuerChat, ""))
	}
	d.close('}')
}

// writeImageItem writes a picture, whose bytes stand in result.
func writeImageItem(d *doc, id, uri, status string) {
	d.b = append(d.b, '{')
	d.str("id", id)
	d.str("type", "image_generation_call")
	d.str("status", status)
	if _, data, ok := strings.Cut(uri, ";base64,"); ok && status == "completed" {
		d.str("result", data)
	} else {
		d.null("result")
	}
	d.close('}')
}

// callPrefix returns the prefix of the item ids of a kind of call. OpenAI refuses
// others.
func callPrefix(call *event) string {
	switch {
	case call.built == builtinShell:
		return "lsh_"
	case call.built == builtinSearch:
		return "tsc_"
	case call.built == builtinCommands:
		return "sh_"
	case call.built == builtinPatch:
		return "apc_"
	case call.custom:
		return "ctc_"
	}
	return "fc_"
}

// writeCallItem writes a tool call; args is escaped.
func writeCallItem(d *doc, id string, call *event, args, status string) {
	switch call.built {
	case builtinShell:
		writeShellCall(d, id, call.id, unescape(args), status)
		return
	case builtinSearch:
		writeSearchCall(d, id, call.id, unescape(args), status)
		return
	case builtinCommands:
		writeCommandsCall(d, id, call.id, unescape(args), status)
		return
	case builtinPatch:
		writePatchCall(d, id, call.id, unescape(args), status)
		return
	}
	d.b = append(d.b, '{')
	d.str("id", id)
	if call.custom {
		d.str("type", "custom_tool_call")
		d.str("status", status)
		d.str("call_id", call.id)
		d.str("name", call.name)
		d.opt("namespace", call.space)
		d.esc("input", args)
	} else {
		d.str("type", "function_call")
		d.str("status", status)
		if args == "" && status == "completed" {
			args = "{}"
		}
		d.esc("arguments", args)
		d.str("call_id", call.id)
		d.str("name", call.name)
		d.opt("namespace", call.space)
	}
	d.close('}')
}

func writeResponsesUsage(d *doc, u *Usage) {
	d.b = append(d.b, '{')
	d.int("input_tokens", u.Input)
	d.open("input_tokens_details", '{')
	d.int("cached_tokens", u.CacheRead)
	d.int("cache_write_tokens", u.CacheWrite)
	d.close('}')
	d.int("output_tokens", u.Output)
	d.open("output_tokens_details", '{')
	d.int("reasoning_tokens", u.Reasoning)
	d.close('}')
	d.int("total_tokens", u.Input+u.Output)
	d.close('}')
}
