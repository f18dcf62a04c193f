package llm

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// messagesFields are the names of a request's parts.
var messagesFields = fieldNames{
	fieldStop:          "stop_sequences",
	fieldEffort:        "thinking",
	fieldUser:          "metadata.user_id",
	fieldFormat:        "output_config.format",
	fieldParallel:      "tool_choice.disable_parallel_tool_use",
	fieldCache:         "cache_control",
	fieldThinking:      "messages.thinking",
	fieldMaxTokens:     "max_tokens",
	fieldLogprobs:      "logprobs",
	fieldSearch:        "tools.web_search",
	fieldSearchAllowed: "tools.web_search.allowed_domains",
	fieldSearchBlocked: "tools.web_search.blocked_domains",
	fieldLevel:         "output_config.effort",
}

// readMessagesRequest reads a Messages request of either version
// (docs/reference/api-shapes.md, 8.1).
func readMessagesRequest(root gjson.Result, q *request, _ *Options) (err error) {
	var messages gjson.Result
	var prompt []block
	forEach(root, func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch k.Str {
		case "model":
		case "messages":
			messages = v
		case "system":
			prompt, err = messagesContent("system", v, q)
		case "max_tokens":
			q.maxTokens, err = whole(k.Str, v)
		case "stop_sequences":
			q.stop, err = texts(k.Str, v)
		case "stream":
			q.stream = v.Type == gjson.True
		case "temperature":
			q.temperature, err = number(k.Str, v)
		case "top_p":
			q.topP, err = number(k.Str, v)
		case "top_k":
			q.topK, err = number(k.Str, v)
		case "tools":
			err = readMessagesTools(v, q)
		case "tool_choice":
			switch str(v.Get("type")) {
			case "auto":
				q.choice.mode = choiceAuto
			case "any":
				q.choice.mode = choiceAny
			case "none":
				q.choice.mode = choiceNone
			case "tool":
				q.choice = toolChoice{mode: choiceTool, name: str(v.Get("name"))}
			default:
				err = apierr.Invalid("tool_choice", "Unknown tool_choice.")
			}
			if v.Get("disable_parallel_tool_use").Type == gjson.True {
				q.parallel = "false"
			}
		case "thinking":
			switch str(v.Get("type")) {
			case "enabled":
				q.think, q.budget = thinkBudget, count(v.Get("budget_tokens"))
			case "adaptive":
				q.think = thinkOn
			case "disabled", "between_tools":
				q.think = thinkOff
			}
			if str(v.Get("display")) == "omitted" {
				q.drop("thinking.display")
			}
		case "output_config":
			if e := str(v.Get("effort")); e != "" {
				q.effort = e
			}
			if f := v.Get("format"); f.IsObject() {
				q.format = messagesFormat(q, f)
			}
			q.dropOthers("output_config.", v, "effort", "format")
		case "output_format":
			q.format = messagesFormat(q, v)
		case "metadata":
			q.user = str(v.Get("user_id"))
		case "service_tier":
			if q.tier = str(v); q.tier == "standard_only" {
				q.tier = "default"
			}
		case "thread":
			err = noThreads()
		case "cache_control":
			q.cache = cacheOf(v)
			q.drop(k.Str)
		default:
			q.drop(k.Str)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	// Effort alone does not switch thinking on where it is off by default.
	if q.effort != "" && effortIndex(q.effort) < 0 {
		return apierr.Invalid("output_config.effort", "Unknown effort.")
	}
	if len(prompt) > 0 {
		q.messages = append(q.messages, message{system, prompt})
	}
	if !messages.IsArray() {
		return apierr.Invalid("messages", "messages must be an array.")
	}
	i, lead := 0, len(q.messages)
	forEach(messages, func(_, m gjson.Result) bool {
		q.did(pieceWork + len(m.Raw))
		q.messages = room(q.messages, messages)
		at := "messages." + strconv.Itoa(i)
		i++
		var blocks []block
		if blocks, err = messagesContent(at, m.Get("content"), q); err != nil {
			return false
		}
		switch str(m.Get("role")) {
		case "user":
			q.messages = append(q.messages, message{user, blocks})
		case "assistant":
			if blocks, done := compact(q, lead, blocks); !done || len(blocks) > 0 {
				q.messages = append(q.messages, message{assistant, blocks})
			}
		case "system":
			q.messages = append(q.messages, message{system, blocks})
		default:
			err = apierr.Invalid(at+".role", "Unknown role.")
		}
		return err == nil
	})
	if err == nil && len(q.messages) == lead {
		err = apierr.Invalid("messages", "messages: at least one message is required.")
	}
	return err
}

// compact replaces the messages before a compaction with its summary, and returns
// the blocks that follow it. done reports whether there was one.
func compact(q *request, lead int, blocks []block) (rest []block, done bool) {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].compacts {
			q.messages = append(q.messages[:lead], message{user, []block{{text: "Summary of the conversation so far:\n\n" + blocks[i].text}}})
			return blocks[i+1:], true
		}
	}
	return blocks, false
}

// textOrParts reads a content that is a text or a list of text blocks.
func textOrParts(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	if !v.IsArray() {
		return ""
	}
	return textsOf(v, "\n")
}

// noThreads returns the refusal of a message thread, which only Anthropic's own
// service stores: without it the next request has only a part of the
// conversation. The vendor's client handles the code and then sends the whole
// conversation.
func noThreads() error {
	e := apierr.Invalid("thread", "thread: this model's provider does not keep message threads. Send the whole conversation in messages.")
	e.Details = `{"error_code":"thread_unsupported_request","unsupported":["thread"]}`
	return e
}

func messagesFormat(q *request, v gjson.Result) format {
	f := format{kind: formatSchema, schema: "{}"}
	if s := v.Get("schema"); s.IsObject() {
		if f.schema = s.Raw; q.strictable(s) {
			f.strict = "true"
		}
	}
	return f
}

func readMessagesTools(v gjson.Result, q *request) error {
	if !v.IsArray() {
		return apierr.Invalid("tools", "tools must be an array.")
	}
	forEach(v, func(_, t gjson.Result) bool {
		q.did(pieceWork + len(t.Raw))
		switch kind := str(t.Get("type")); {
		case kind == "" || kind == "custom":
			f := tool{name: str(t.Get("name")), description: str(t.Get("description")), strict: boolean(t.Get("strict")), cache: cacheOf(t.Get("cache_control"))}
			if s := t.Get("input_schema"); s.IsObject() {
				f.schema = s.Raw
			}
			q.tools = append(room(q.tools, v), f)
			q.dropOthers("tools.", t, "name", "description", "input_schema", "type", "strict", "cache_control")
		case strings.HasPrefix(kind, "web_search"):
			q.search = true
			q.web.readTool(t)
		default:
			q.drop("tools." + kind)
		}
		return true
	})
	return nil
}

// maxContentDepth is the nesting depth of contents: a message has a result, which
// has a document, which has text.
const maxContentDepth = 8

// messagesContent reads a content: a text, or an array of blocks.
func messagesContent(at string, v gjson.Result, q *request) (blocks []block, err error) {
	switch {
	case v.Type == gjson.String:
		return []block{{text: v.Str}}, nil
	case !v.Exists() || v.Type == gjson.Null:
		return nil, nil
	case !v.IsArray():
		return nil, apierr.Invalid(at, "content must be a string or an array of blocks.")
	}
	if q.depth++; q.depth > maxContentDepth {
		return nil, apierr.Invalid(at, "content is nested too deeply.")
	}
	defer func() { q.depth-- }()
	forEach(v, func(_, element gjson.Result) bool {
		var b block
		ok := true
		q.did(pieceWork + len(element.Raw))
		p := recordOf(element)
		switch t := str(p.Get("type")); t {
		case "text":
			b.text = str(p.Get("text"))
		case "image":
			b = block{kind: imageBlock}
			err = readMessagesSource(&b, at, p.Get("source"), q)
		case "document":
			b = block{kind: documentBlock, title: str(p.Get("title"))}
			err = readMessagesSource(&b, at, p.Get("source"), q)
			if p.Get("citations.enabled").Type == gjson.True {
				q.drop("messages.citations")
			}
			if c := str(p.Get("context")); c != "" {
				blocks = append(blocks, block{text: c})
			}
		case "search_result":
			b.text = str(p.Get("title")) + "\n" + str(p.Get("source")) + "\n" + textsOf(p.Get("content"), "\n")
		case "tool_use":
			b = block{kind: toolUseBlock, id: str(p.Get("id")), name: str(p.Get("name")), args: "{}"}
			if in := p.Get("input"); in.IsObject() {
				b.args = in.Raw
			}
		case "tool_result":
			b = block{kind: toolResultBlock, id: str(p.Get("tool_use_id")), failed: p.Get("is_error").Type == gjson.True}
			b.parts, err = messagesContent(at, p.Get("content"), q)
		case "tool_reference":
			// The tool search of Claude Code: the tools themselves are in tools.
			b.text = "Tool found: " + str(p.Get("tool_name"))
		case "compaction":
			// A summary that replaces everything before it, which the vendor no
			// longer reads.
			if b.text = textOrParts(p.Get("content")); b.text == "" {
				ok = false
				if p.Get("encrypted_content").Exists() {
					q.drop("messages.compaction")
				}
			}
			b.compacts = true
		case "thinking":
			b = block{kind: thinkingBlock, text: str(p.Get("thinking"))}
			b.issuer, b.sig = unwrap(str(p.Get("signature")), "anthropic")
		case "redacted_thinking":
			b = block{kind: thinkingBlock, redacted: true}
			b.issuer, b.sig = unwrap(str(p.Get("data")), "anthropic")
		default:
			q.drop("messages." + t)
			ok = false
		}
		b.cache = cacheOf(p.Get("cache_control"))
		if ok {
			blocks = append(room(blocks, v), b)
		}
		return err == nil
	})
	return blocks, err
}

// messagesSource reads the source of an image or document.
func readMessagesSource(b *block, at string, s gjson.Result, q *request) (err error) {
	switch t := str(s.Get("type")); t {
	case "base64":
		b.mime, b.data = str(s.Get("media_type")), str(s.Get("data"))
		if strings.HasPrefix(b.mime, "text/") {
			b.plain()
		}
	case "url":
		b.url = str(s.Get("url"))
	case "text":
		b.text = str(s.Get("data"))
	case "content":
		parts, err := messagesContent(at, s.Get("content"), q)
		if err != nil {
			return err
		}
		b.text = joinTexts(parts, "\n")
		for i := range parts {
			if parts[i].kind != textBlock {
				q.drop("messages.document.content")
			}
		}
	case "file":
		return apierr.Invalid(at, "Files stored at another provider cannot be used with this model.")
	default:
		return apierr.Invalid(at, "Unknown source %q.", limit(t))
	}
	return nil
}
