package responses

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// Fields are the names of a request's fields.
var Fields = ir.FieldNames{
	ir.FieldStop:          "stop",
	ir.FieldEffort:        "reasoning",
	ir.FieldUser:          "user",
	ir.FieldFormat:        "text.format",
	ir.FieldParallel:      "parallel_tool_calls",
	ir.FieldCache:         "prompt_cache_breakpoint",
	ir.FieldThinking:      "input.reasoning",
	ir.FieldMaxTokens:     "max_output_tokens",
	ir.FieldLogprobs:      "top_logprobs",
	ir.FieldSearch:        "tools.web_search",
	ir.FieldSearchAllowed: "tools.web_search.filters",
	ir.FieldSearchBlocked: "tools.web_search.filters",
	ir.FieldDetail:        "input_image.detail",
	ir.FieldLevel:         "reasoning",
	ir.FieldSchema:        "text.format.",
}

// ReadRequest reads a Responses request (docs/reference/api-shapes.md, 4.1).
// Fields that need state on the server are refused, because no other dialect
// has any.
func ReadRequest(root gjson.Result, q *ir.Request, opt *ir.Options) (err error) {
	var a settings
	var input gjson.Result
	instructions := ""
	ir.Each(root, func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		a.take(k.Str, v.Raw)
		switch k.Str {
		case "model", "stream_options":
		case "include":
			ir.Each(v, func(_, x gjson.Result) bool {
				switch x.Str {
				case "message.output_text.logprobs":
					named := *q.Fields
					named[ir.FieldLogprobs] = k.Str
					q.Logprobs, q.Fields = true, &named
				case "reasoning.encrypted_content": // always included
				default:
					q.Drop(k.Str)
				}
				return true
			})
		case "input":
			input = v
		case "instructions":
			instructions = ir.Str(v)
		case "max_output_tokens":
			q.MaxTokens, err = ir.WholeNumber(k.Str, v)
		case "temperature":
			q.Temperature, err = ir.Number(k.Str, v)
		case "top_p":
			q.TopP, err = ir.Number(k.Str, v)
		case "stream":
			q.Stream = v.Type == gjson.True
		case "tools":
			err = readTools(v, q)
		case "tool_choice":
			err = readToolChoice(v, q)
		case "parallel_tool_calls":
			q.Parallel = ir.Boolean(v)
		case "reasoning":
			if e := v.Get("effort"); e.Type == gjson.String {
				err = q.SetEffort("reasoning.effort", e)
			}
			q.Summary = ir.Str(v.Get("summary"))
			q.DropOthers("reasoning.", v, "effort", "summary")
		case "text":
			q.Verbosity = ir.Str(v.Get("verbosity"))
			switch f := v.Get("format"); ir.Str(f.Get("type")) {
			case "text":
				q.Format.Kind = ir.FormatText
			case "json_object":
				q.Format.Kind = ir.FormatObject
			case "json_schema":
				q.Format = ir.ReadSchemaFormat(f)
			}
		case "previous_response_id", "conversation", "prompt":
			err = apierr.Invalid(k.Str, "This model's provider stores no conversations. Send the whole conversation in input.")
		case "background":
			if v.Type == gjson.True {
				err = apierr.Invalid(k.Str, "This model's provider has no background mode.")
			}
		case "store":
			// Nothing is stored, so only true is dropped.
			if q.Store = ir.Boolean(v); q.Store == "true" {
				q.Drop(k.Str)
			}
		case "truncation":
			if v.Str != "disabled" {
				q.Drop(k.Str)
			}
		case "metadata":
			q.Metadata = v.Raw
		case "top_logprobs":
			q.TopLogprobs, err = ir.Number(k.Str, v)
			q.Logprobs = true
		case "prompt_cache_key":
			q.CacheKey = ir.Str(v)
		case "service_tier":
			q.ServiceTier = ir.Str(v)
		case "safety_identifier":
			q.User = ir.Str(v)
		case "user":
			q.EndUser = ir.Str(v)
		default:
			q.Drop(k.Str)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if q.User == "" || q.User == q.EndUser {
		q.User, q.EndUser = q.EndUser, ""
	}
	if instructions != "" {
		q.Messages = append(q.Messages, ir.Message{Role: ir.RoleSystem, Blocks: []ir.Block{{Text: instructions}}})
	}
	lead := len(q.Messages)
	switch {
	case input.Type == gjson.String:
		q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: []ir.Block{{Text: input.Str}}})
	case input.IsArray():
		i := 0
		ir.Each(input, func(_, item gjson.Result) bool {
			q.Work(ir.PieceWork + len(item.Raw))
			q.Messages = ir.Reserve(q.Messages, input)
			if q.Compact {
				err = apierr.Invalid("input", "compaction_trigger must be the last item of input.")
				return false
			}
			err = readItem("input["+strconv.Itoa(i)+"]", item, q)
			i++
			return err == nil
		})
	default:
		err = apierr.Invalid("input", "input must be a string or an array of items.")
	}
	if err == nil && len(q.Messages) == lead {
		err = apierr.Invalid("input", "input must not be empty.")
	}
	if err == nil && opt.Settings != nil {
		a.store(opt.Settings)
	}
	if err == nil && (q.Compact || opt.Compacts()) {
		compact(q, opt)
	}
	return err
}

func readItem(at string, v gjson.Result, q *ir.Request) error {
	kind := ir.Str(v.Get("type"))
	if kind == "" && v.Get("role").Type == gjson.String {
		kind = "message"
	}
	switch kind {
	case "message":
		blocks, err := readContent(&q.Pacer, at, v.Get("content"))
		if err != nil {
			return err
		}
		switch ir.Str(v.Get("role")) {
		case "assistant":
			for _, b := range blocks {
				q.Add(ir.RoleAssistant, b)
			}
		case "system", "developer":
			q.Messages = append(q.Messages, ir.Message{Role: ir.RoleSystem, Blocks: blocks})
		case "user":
			q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: blocks})
		default:
			return apierr.Invalid(at+".role", "role must be user, assistant, system or developer.")
		}
	case "function_call":
		q.Add(ir.RoleAssistant, ir.Block{Kind: ir.ToolCallBlock, ID: ir.Str(v.Get("call_id")), Name: ir.Str(v.Get("name")),
			Namespace: ir.Str(v.Get("namespace")), Arguments: ir.Str(v.Get("arguments"))})
	case "custom_tool_call":
		q.Add(ir.RoleAssistant, ir.Block{Kind: ir.ToolCallBlock, Custom: true, ID: ir.Str(v.Get("call_id")),
			Name: ir.Str(v.Get("name")), Namespace: ir.Str(v.Get("namespace")), Arguments: ir.Str(v.Get("input"))})
	case "local_shell_call":
		id, item := ir.Str(v.Get("call_id")), ir.Str(v.Get("id"))
		if id == "" {
			id = item
		} else if item != "" {
			if q.ShellCalls == nil {
				q.ShellCalls = map[string]string{}
			}
			q.ShellCalls[item] = id
		}
		q.Add(ir.RoleAssistant, ir.Block{Kind: ir.ToolCallBlock, Builtin: ir.BuiltinShell, ID: id,
			Name: ir.BuiltinNames[ir.BuiltinShell], Arguments: shellCall(v.Get("action"))})
	case "shell_call":
		q.Add(ir.RoleAssistant, ir.Block{Kind: ir.ToolCallBlock, Builtin: ir.BuiltinCommands, ID: ir.Str(v.Get("call_id")),
			Name: ir.BuiltinNames[ir.BuiltinCommands], Arguments: shellCall(v.Get("action"))})
	case "apply_patch_call":
		q.Add(ir.RoleAssistant, ir.Block{Kind: ir.ToolCallBlock, Builtin: ir.BuiltinPatch, ID: ir.Str(v.Get("call_id")),
			Name: ir.BuiltinNames[ir.BuiltinPatch], Arguments: ir.Raw(v.Get("operation"))})
	case "shell_call_output", "apply_patch_call_output":
		b := builtinOutput(v)
		if b.ID == "" {
			return apierr.Invalid(at+".call_id", "An output needs call_id.")
		}
		q.Add(ir.RoleUser, b)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		b := ir.Block{Kind: ir.ToolResultBlock, ID: ir.Str(v.Get("call_id")), Custom: kind[0] == 'c'}
		if b.ID == "" && kind[0] == 'l' { // it may have the id of the call's item instead
			if b.ID = ir.Str(v.Get("id")); q.ShellCalls[b.ID] != "" {
				b.ID = q.ShellCalls[b.ID]
			}
		}
		if b.ID == "" {
			return apierr.Invalid(at+".call_id", "An output needs call_id.")
		}
		var err error
		if b.Parts, err = readContent(&q.Pacer, at, v.Get("output")); err != nil {
			return err
		}
		q.Add(ir.RoleUser, b)
	case "reasoning":
		b := ir.Block{Kind: ir.ThinkingBlock, Text: ir.JoinTextFields(v.Get("summary"), "")}
		if b.Text == "" {
			b.Text = ir.JoinTextFields(v.Get("content"), "")
		}
		b.Issuer, b.Signature = ir.UnwrapSignature(ir.Str(v.Get("encrypted_content")), "openai")
		if rest, ok := strings.CutPrefix(b.Signature, "redacted."); ok && b.Issuer != "openai" {
			b.Redacted, b.Signature = true, rest
		}
		q.Add(ir.RoleAssistant, b)
	case "tool_search_call":
		id := ir.Str(v.Get("call_id"))
		if id == "" { // the vendor's own search, which needs no result
			q.Drop("input." + kind)
			return nil
		}
		q.Add(ir.RoleAssistant, ir.Block{Kind: ir.ToolCallBlock, Builtin: ir.BuiltinSearch, ID: id,
			Name: ir.BuiltinNames[ir.BuiltinSearch], Arguments: ir.Raw(v.Get("arguments"))})
	case "additional_tools", "tool_search_output": // tools that were added during the conversation
		at := len(q.Tools)
		if list := v.Get("tools"); list.IsArray() {
			if err := readTools(list, q); err != nil {
				return err
			}
		}
		if id := ir.Str(v.Get("call_id")); id != "" && kind[0] == 't' {
			q.Add(ir.RoleUser, ir.Block{Kind: ir.ToolResultBlock, ID: id, Parts: []ir.Block{{Text: loadedTools(q.Tools[at:])}}})
		}
	case "compaction", "compaction_summary":
		text, ok := summaryOf(v)
		if !ok { // only its vendor can read it
			q.Drop("input." + kind)
			return nil
		}
		q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: []ir.Block{{Text: text}}})
	case triggerType:
		q.Compact = true
	case "item_reference":
		if strings.HasPrefix(ir.Str(v.Get("id")), "rs_") {
			q.DropField(ir.FieldThinking) // the model reasons again
			return nil
		}
		return apierr.Invalid(at, "This model's provider stores no items. Send the item itself, as clients do with store: false.")
	default:
		q.Drop("input." + kind)
	}
	return nil
}

// readContent reads a content or output: a string, or an array of parts.
func readContent(pace *ir.Pacer, at string, v gjson.Result) ([]ir.Block, error) {
	return ir.ReadContent(pace, at, v, func(p ir.Record) (b ir.Block, err error) {
		switch t := ir.Str(p.Get("type")); t {
		case "input_text", "output_text", "text", "summary_text":
			b.Text = ir.Str(p.Get("text"))
		case "refusal":
			b = ir.Block{Kind: ir.RefusalBlock, Text: ir.Str(p.Get("refusal"))}
		case "input_image":
			b = ir.Block{Kind: ir.ImageBlock, Detail: ir.Str(p.Get("detail")), FileID: ir.Str(p.Get("file_id"))}
			if b.FileID == "" {
				err = b.SetSource(at, ir.Str(p.Get("image_url")))
			}
		case "input_file":
			b = ir.Block{Kind: ir.DocumentBlock, Title: ir.Str(p.Get("filename")), FileID: ir.Str(p.Get("file_id")),
				URL: ir.Str(p.Get("file_url"))}
			if data := ir.Str(p.Get("file_data")); data != "" {
				b.URL = ""
				err = b.SetSource(at, data)
			}
		case "input_audio":
			b = ir.ReadAudio(p.Get("input_audio"))
		default:
			err = apierr.Invalid(at+".content", "Unknown content part %q.", ir.Truncate(t))
		}
		b.Cache = ir.CacheBreakpoint(p.Get("prompt_cache_breakpoint"))
		return b, err
	})
}
