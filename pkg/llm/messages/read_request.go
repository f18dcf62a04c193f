package messages

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// Fields are the names of a request's fields.
var Fields = ir.FieldNames{
	ir.FieldStop:          "stop_sequences",
	ir.FieldEffort:        "thinking",
	ir.FieldUser:          "metadata.user_id",
	ir.FieldFormat:        "output_config.format",
	ir.FieldParallel:      "tool_choice.disable_parallel_tool_use",
	ir.FieldCache:         "cache_control",
	ir.FieldThinking:      "messages.thinking",
	ir.FieldMaxTokens:     "max_tokens",
	ir.FieldLogprobs:      "logprobs",
	ir.FieldSearch:        "tools.web_search",
	ir.FieldSearchAllowed: "tools.web_search.allowed_domains",
	ir.FieldSearchBlocked: "tools.web_search.blocked_domains",
	ir.FieldLevel:         "output_config.effort",
}

// ReadRequest reads a Messages request of either version
// (docs/reference/api-shapes.md, 8.1).
func ReadRequest(root gjson.Result, q *ir.Request, _ *ir.Options) (err error) {
	var messages gjson.Result
	var prompt []ir.Block
	ir.Each(root, func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch k.Str {
		case "model":
		case "messages":
			messages = v
		case "system":
			prompt, err = readContent("system", v, q)
			prompt = withoutAttribution(prompt, q)
		case "max_tokens":
			q.MaxTokens, err = ir.WholeNumber(k.Str, v)
		case "stop_sequences":
			q.Stop, err = ir.Strings(k.Str, v)
		case "stream":
			q.Stream = v.Type == gjson.True
		case "temperature":
			q.Temperature, err = ir.Number(k.Str, v)
		case "top_p":
			q.TopP, err = ir.Number(k.Str, v)
		case "top_k":
			q.TopK, err = ir.Number(k.Str, v)
		case "tools":
			err = readTools(v, q)
		case "tool_choice":
			switch ir.Str(v.Get("type")) {
			case "auto":
				q.ToolChoice.Mode = ir.ChoiceAuto
			case "any":
				q.ToolChoice.Mode = ir.ChoiceAny
			case "none":
				q.ToolChoice.Mode = ir.ChoiceNone
			case "tool":
				q.ToolChoice = ir.ToolChoice{Mode: ir.ChoiceTool, Name: ir.Str(v.Get("name"))}
			default:
				err = apierr.Invalid("tool_choice", "tool_choice.type must be auto, any, tool or none.")
			}
			if v.Get("disable_parallel_tool_use").Type == gjson.True {
				q.Parallel = "false"
			}
		case "thinking":
			switch ir.Str(v.Get("type")) {
			case "enabled":
				q.Think, q.ThinkBudget = ir.ThinkBudget, ir.Count(v.Get("budget_tokens"))
			case "adaptive":
				q.Think = ir.ThinkOn
			case "disabled", "between_tools":
				q.Think = ir.ThinkOff
			}
			if ir.Str(v.Get("display")) == "omitted" {
				q.Drop("thinking.display")
			}
		case "output_config":
			if e := ir.Str(v.Get("effort")); e != "" {
				q.Effort = e
			}
			if f := v.Get("format"); f.IsObject() {
				q.Format = readFormat(q, f)
			}
			q.DropOthers("output_config.", v, "effort", "format")
		case "output_format":
			q.Format = readFormat(q, v)
		case "metadata":
			q.User = ir.Str(v.Get("user_id"))
		case "service_tier":
			if q.ServiceTier = ir.Str(v); q.ServiceTier == "standard_only" {
				q.ServiceTier = "default"
			}
		case "thread":
			err = noThreads()
		case "cache_control":
			q.Cache = ir.CacheControl(v)
			q.Drop(k.Str)
		default:
			q.Drop(k.Str)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	// Effort alone does not enable thinking if it is off by default.
	if q.Effort != "" && ir.EffortIndex(q.Effort) < 0 {
		return apierr.Invalid("output_config.effort", "output_config.effort must be low, medium, high, xhigh or max.")
	}
	if len(prompt) > 0 {
		q.Messages = append(q.Messages, ir.Message{Role: ir.RoleSystem, Blocks: prompt})
	}
	if !messages.IsArray() {
		return apierr.Invalid("messages", "messages must be an array.")
	}
	i, lead := 0, len(q.Messages)
	ir.Each(messages, func(_, m gjson.Result) bool {
		q.Work(ir.PieceWork + len(m.Raw))
		q.Messages = ir.Reserve(q.Messages, messages)
		at := "messages." + strconv.Itoa(i)
		i++
		var blocks []ir.Block
		if blocks, err = readContent(at, m.Get("content"), q); err != nil {
			return false
		}
		switch ir.Str(m.Get("role")) {
		case "user":
			q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: blocks})
		case "assistant":
			if blocks, done := applyCompaction(q, lead, blocks); !done || len(blocks) > 0 {
				q.Messages = append(q.Messages, ir.Message{Role: ir.RoleAssistant, Blocks: blocks})
			}
		case "system":
			q.Messages = append(q.Messages, ir.Message{Role: ir.RoleSystem, Blocks: blocks})
		default:
			err = apierr.Invalid(at+".role", "role must be user, assistant or system.")
		}
		return err == nil
	})
	if err == nil && len(q.Messages) == lead {
		err = apierr.Invalid("messages", "messages: at least one message is required.")
	}
	return err
}

// applyCompaction replaces the messages before a compaction with its summary,
// and returns the blocks after it. done reports whether there was one.
func applyCompaction(q *ir.Request, lead int, blocks []ir.Block) (rest []ir.Block, done bool) {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].Compaction {
			q.Messages = append(q.Messages[:lead], ir.Message{Role: ir.RoleUser,
				Blocks: []ir.Block{{Text: "Summary of the conversation so far:\n\n" + blocks[i].Text}}})
			return blocks[i+1:], true
		}
	}
	return blocks, false
}

// textOrParts reads a content that is a string or a list of text blocks.
func textOrParts(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	if !v.IsArray() {
		return ""
	}
	return ir.JoinTextFields(v, "\n")
}

// noThreads returns the refusal of a message thread, which only Anthropic's own
// service stores: without it the next request has only a part of the
// conversation. The vendor's client handles the code and then sends the whole
// conversation.
func noThreads() error {
	e := apierr.Invalid("thread", "thread: this model's provider does not store message threads. Send the whole conversation in messages.")
	e.Details = `{"error_code":"thread_unsupported_request","unsupported":["thread"]}`
	return e
}

func readFormat(q *ir.Request, v gjson.Result) ir.Format {
	f := ir.Format{Kind: ir.FormatSchema, Schema: "{}"}
	if s := v.Get("schema"); s.IsObject() {
		if f.Schema = s.Raw; q.Strictable(s) {
			f.Strict = "true"
		}
	}
	return f
}

func readTools(v gjson.Result, q *ir.Request) error {
	if !v.IsArray() {
		return apierr.Invalid("tools", "tools must be an array.")
	}
	ir.Each(v, func(_, t gjson.Result) bool {
		q.Work(ir.PieceWork + len(t.Raw))
		switch kind := ir.Str(t.Get("type")); {
		case kind == "" || kind == "custom":
			f := ir.Tool{Name: ir.Str(t.Get("name")), Description: ir.Str(t.Get("description")),
				Strict: ir.Boolean(t.Get("strict")), Cache: ir.CacheControl(t.Get("cache_control"))}
			if s := t.Get("input_schema"); s.IsObject() {
				f.Schema = s.Raw
			}
			q.Tools = append(ir.Reserve(q.Tools, v), f)
			q.DropOthers("tools.", t, "name", "description", "input_schema", "type", "strict", "cache_control")
		case strings.HasPrefix(kind, "web_search"):
			q.SearchWeb = true
			q.WebSearch.ReadTool(t)
		default:
			q.Drop("tools." + kind)
		}
		return true
	})
	return nil
}

// maxContentDepth is the nesting depth of contents: a message has a result, which
// has a document, which has text.
const maxContentDepth = 8

// readContent reads a content: a string, or an array of blocks.
func readContent(at string, v gjson.Result, q *ir.Request) (blocks []ir.Block, err error) {
	switch {
	case v.Type == gjson.String:
		return []ir.Block{{Text: v.Str}}, nil
	case !v.Exists() || v.Type == gjson.Null:
		return nil, nil
	case !v.IsArray():
		return nil, apierr.Invalid(at, "content must be a string or an array of blocks.")
	}
	if q.Depth++; q.Depth > maxContentDepth {
		return nil, apierr.Invalid(at, "content is nested too deeply.")
	}
	defer func() { q.Depth-- }()
	ir.Each(v, func(_, element gjson.Result) bool {
		var b ir.Block
		ok := true
		q.Work(ir.PieceWork + len(element.Raw))
		p := ir.RecordOf(element)
		switch t := ir.Str(p.Get("type")); t {
		case "text":
			b.Text = ir.Str(p.Get("text"))
		case "image":
			b = ir.Block{Kind: ir.ImageBlock}
			err = readSource(&b, at, p.Get("source"), q)
		case "document":
			b = ir.Block{Kind: ir.DocumentBlock, Title: ir.Str(p.Get("title"))}
			err = readSource(&b, at, p.Get("source"), q)
			if p.Get("citations.enabled").Type == gjson.True {
				q.Drop("messages.citations")
			}
			if c := ir.Str(p.Get("context")); c != "" {
				blocks = append(blocks, ir.Block{Text: c})
			}
		case "search_result":
			b.Text = ir.Str(p.Get("title")) + "\n" + ir.Str(p.Get("source")) + "\n" + ir.JoinTextFields(p.Get("content"), "\n")
		case "tool_use":
			b = ir.Block{Kind: ir.ToolCallBlock, ID: ir.OriginalCallID(ir.Str(p.Get("id"))), Name: ir.Str(p.Get("name")),
				Arguments: "{}"}
			if in := p.Get("input"); in.IsObject() {
				b.Arguments = in.Raw
			}
		case "tool_result":
			b = ir.Block{Kind: ir.ToolResultBlock, ID: ir.OriginalCallID(ir.Str(p.Get("tool_use_id"))),
				IsError: p.Get("is_error").Type == gjson.True}
			b.Parts, err = readContent(at, p.Get("content"), q)
		case "tool_reference":
			// The tool search of Claude Code: the tools themselves are in tools.
			b.Text = "Tool found: " + ir.Str(p.Get("tool_name"))
		case "compaction":
			// A summary that replaces everything before it, which the vendor no
			// longer reads.
			if b.Text = textOrParts(p.Get("content")); b.Text == "" {
				ok = false
				if p.Get("encrypted_content").Exists() {
					q.Drop("messages.compaction")
				}
			}
			b.Compaction = true
		case "thinking":
			b = ir.Block{Kind: ir.ThinkingBlock, Text: ir.Str(p.Get("thinking"))}
			b.Issuer, b.Signature = ir.UnwrapSignature(ir.Str(p.Get("signature")), "anthropic")
		case "redacted_thinking":
			b = ir.Block{Kind: ir.ThinkingBlock, Redacted: true}
			b.Issuer, b.Signature = ir.UnwrapSignature(ir.Str(p.Get("data")), "anthropic")
		default:
			q.Drop("messages." + t)
			ok = false
		}
		b.Cache = ir.CacheControl(p.Get("cache_control"))
		if ok {
			blocks = append(ir.Reserve(blocks, v), b)
		}
		return err == nil
	})
	return blocks, err
}

// readSource reads the source of an image or document.
func readSource(b *ir.Block, at string, s gjson.Result, q *ir.Request) (err error) {
	switch t := ir.Str(s.Get("type")); t {
	case "base64":
		b.MediaType, b.Data = ir.Str(s.Get("media_type")), ir.Str(s.Get("data"))
		if strings.HasPrefix(b.MediaType, "text/") {
			b.DecodeText()
		}
	case "url":
		b.URL = ir.Str(s.Get("url"))
	case "text":
		b.Text = ir.Str(s.Get("data"))
	case "content":
		parts, err := readContent(at, s.Get("content"), q)
		if err != nil {
			return err
		}
		b.Text = ir.JoinTexts(parts, "\n")
		for i := range parts {
			if parts[i].Kind != ir.TextBlock {
				q.Drop("messages.document.content")
			}
		}
	case "file":
		return apierr.Invalid(at, "Files stored at another provider cannot be used with this model.")
	default:
		return apierr.Invalid(at, "Unknown source %q.", ir.Truncate(t))
	}
	return nil
}
