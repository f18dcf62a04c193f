package llm

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// responsesFields are the names of a request's parts.
var responsesFields = fieldNames{
	fieldStop:          "stop",
	fieldEffort:        "reasoning",
	fieldUser:          "user",
	fieldFormat:        "text.format",
	fieldParallel:      "parallel_tool_calls",
	fieldCache:         "prompt_cache_breakpoint",
	fieldThinking:      "input.reasoning",
	fieldMaxTokens:     "max_output_tokens",
	fieldLogprobs:      "top_logprobs",
	fieldSearch:        "tools.web_search",
	fieldSearchAllowed: "tools.web_search.filters",
	fieldSearchBlocked: "tools.web_search.filters",
	fieldDetail:        "input_image.detail",
	fieldLevel:         "reasoning",
	fieldSchema:        "text.format.",
}

// readResponsesRequest reads a Responses request (docs/reference/api-shapes.md,
// 4.1). What needs state on the server is refused: no other dialect has any.
func readResponsesRequest(root gjson.Result, q *request, opt *Options) (err error) {
	var a asked
	var input gjson.Result
	instructions := ""
	forEach(root, func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		a.take(k.Str, v.Raw)
		switch k.Str {
		case "model", "stream_options":
		case "include":
			forEach(v, func(_, x gjson.Result) bool {
				switch x.Str {
				case "message.output_text.logprobs":
					q.logprobs = true
				case "reasoning.encrypted_content": // given anyway
				default:
					q.drop(k.Str)
				}
				return true
			})
		case "input":
			input = v
		case "instructions":
			instructions = str(v)
		case "max_output_tokens":
			q.maxTokens, err = whole(k.Str, v)
		case "temperature":
			q.temperature, err = number(k.Str, v)
		case "top_p":
			q.topP, err = number(k.Str, v)
		case "stream":
			q.stream = v.Type == gjson.True
		case "tools":
			err = readResponsesTools(v, q)
		case "tool_choice":
			err = readResponsesChoice(v, q)
		case "parallel_tool_calls":
			q.parallel = boolean(v)
		case "reasoning":
			if e := v.Get("effort"); e.Type == gjson.String {
				err = q.setEffort("reasoning.effort", e)
			}
			q.summary = str(v.Get("summary"))
			q.dropOthers("reasoning.", v, "effort", "summary")
		case "text":
			q.verbosity = str(v.Get("verbosity"))
			switch f := v.Get("format"); str(f.Get("type")) {
			case "text":
				q.format.kind = formatText
			case "json_object":
				q.format.kind = formatObject
			case "json_schema":
				q.format = schemaFormat(f)
			}
		case "previous_response_id", "conversation", "prompt":
			err = apierr.Invalid(k.Str, "This model's provider keeps no state: send the whole conversation in input.")
		case "background":
			if v.Type == gjson.True {
				err = apierr.Invalid(k.Str, "This model's provider has no background mode.")
			}
		case "store":
			// Nothing is kept, which only a wish to the contrary notices.
			if q.store = boolean(v); q.store == "true" {
				q.drop(k.Str)
			}
		case "truncation":
			if v.Str != "disabled" {
				q.drop(k.Str)
			}
		case "metadata":
			q.metadata = v.Raw
		case "top_logprobs":
			q.topLogprobs, err = number(k.Str, v)
			q.logprobs = true
		case "prompt_cache_key":
			q.cacheKey = str(v)
		case "service_tier":
			q.tier = str(v)
		case "safety_identifier":
			q.user = str(v)
		case "user":
			q.endUser = str(v)
		default:
			q.drop(k.Str)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if q.user == "" || q.user == q.endUser {
		q.user, q.endUser = q.endUser, ""
	}
	if instructions != "" {
		q.messages = append(q.messages, message{system, []block{{text: instructions}}})
	}
	lead := len(q.messages)
	switch {
	case input.Type == gjson.String:
		q.messages = append(q.messages, message{user, []block{{text: input.Str}}})
	case input.IsArray():
		i := 0
		forEach(input, func(_, item gjson.Result) bool {
			q.did(pieceWork + len(item.Raw))
			q.messages = room(q.messages, input)
			err = readResponsesItem("input["+strconv.Itoa(i)+"]", item, q)
			i++
			return err == nil
		})
	default:
		err = apierr.Invalid("input", "input must be a string or an array of items.")
	}
	if err == nil && len(q.messages) == lead {
		err = apierr.Invalid("input", "input must not be empty.")
	}
	if err == nil && opt.Settings != nil {
		a.store(opt.Settings)
	}
	return err
}

func readResponsesItem(at string, v gjson.Result, q *request) error {
	kind := str(v.Get("type"))
	if kind == "" && v.Get("role").Type == gjson.String {
		kind = "message"
	}
	switch kind {
	case "message":
		blocks, err := responsesContent(&q.pacer, at, v.Get("content"))
		if err != nil {
			return err
		}
		switch str(v.Get("role")) {
		case "assistant":
			for _, b := range blocks {
				q.add(assistant, b)
			}
		case "system", "developer":
			q.messages = append(q.messages, message{system, blocks})
		case "user":
			q.messages = append(q.messages, message{user, blocks})
		default:
			return apierr.Invalid(at+".role", "Unknown role.")
		}
	case "function_call":
		q.add(assistant, block{kind: toolUseBlock, id: str(v.Get("call_id")), name: str(v.Get("name")), space: str(v.Get("namespace")), args: str(v.Get("arguments"))})
	case "custom_tool_call":
		q.add(assistant, block{kind: toolUseBlock, custom: true, id: str(v.Get("call_id")), name: str(v.Get("name")), space: str(v.Get("namespace")), args: str(v.Get("input"))})
	case "local_shell_call":
		id, item := str(v.Get("call_id")), str(v.Get("id"))
		if id == "" {
			id = item
		} else if item != "" {
			if q.shells == nil {
				q.shells = map[string]string{}
			}
			q.shells[item] = id
		}
		q.add(assistant, block{kind: toolUseBlock, built: builtinShell, id: id, name: builtinNames[builtinShell], args: shellCall(v.Get("action"))})
	case "shell_call":
		q.add(assistant, block{kind: toolUseBlock, built: builtinCommands, id: str(v.Get("call_id")), name: builtinNames[builtinCommands], args: shellCall(v.Get("action"))})
	case "apply_patch_call":
		q.add(assistant, block{kind: toolUseBlock, built: builtinPatch, id: str(v.Get("call_id")), name: builtinNames[builtinPatch], args: rawOf(v.Get("operation"))})
	case "shell_call_output", "apply_patch_call_output":
		b := builtinOutput(v)
		if b.id == "" {
			return apierr.Invalid(at+".call_id", "An output needs call_id.")
		}
		q.add(user, b)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		b := block{kind: toolResultBlock, id: str(v.Get("call_id")), custom: kind[0] == 'c'}
		if b.id == "" && kind[0] == 'l' { // it may have the id of the call's item instead
			if b.id = str(v.Get("id")); q.shells[b.id] != "" {
				b.id = q.shells[b.id]
			}
		}
		if b.id == "" {
			return apierr.Invalid(at+".call_id", "An output needs call_id.")
		}
		var err error
		if b.parts, err = responsesContent(&q.pacer, at, v.Get("output")); err != nil {
			return err
		}
		q.add(user, b)
	case "reasoning":
		b := block{kind: thinkingBlock, text: textsOf(v.Get("summary"), "")}
		if b.text == "" {
			b.text = textsOf(v.Get("content"), "")
		}
		b.issuer, b.sig = unwrap(str(v.Get("encrypted_content")), "openai")
		if rest, ok := strings.CutPrefix(b.sig, "redacted."); ok && b.issuer != "openai" {
			b.redacted, b.sig = true, rest
		}
		q.add(assistant, b)
	case "tool_search_call":
		id := str(v.Get("call_id"))
		if id == "" { // the vendor's own search, which needs no result
			q.drop("input." + kind)
			return nil
		}
		q.add(assistant, block{kind: toolUseBlock, built: builtinSearch, id: id, name: builtinNames[builtinSearch], args: rawOf(v.Get("arguments"))})
	case "additional_tools", "tool_search_output": // tools that were added during the conversation
		at := len(q.tools)
		if list := v.Get("tools"); list.IsArray() {
			if err := readResponsesTools(list, q); err != nil {
				return err
			}
		}
		if id := str(v.Get("call_id")); id != "" && kind[0] == 't' {
			q.add(user, block{kind: toolResultBlock, id: id, parts: []block{{text: foundTools(q.tools[at:])}}})
		}
	case "item_reference":
		if strings.HasPrefix(str(v.Get("id")), "rs_") {
			q.dropField(fieldThinking) // the model thinks anew
			return nil
		}
		return apierr.Invalid(at, "This model's provider keeps no state: send the item itself, as clients do with store false.")
	default:
		q.drop("input." + kind)
	}
	return nil
}

// responsesContent reads a content or output: a text, or an array of parts.
func responsesContent(pace *pacer, at string, v gjson.Result) ([]block, error) {
	return contentOf(pace, at, v, func(p record) (b block, err error) {
		switch t := str(p.Get("type")); t {
		case "input_text", "output_text", "text", "summary_text":
			b.text = str(p.Get("text"))
		case "refusal":
			b = block{kind: refusalBlock, text: str(p.Get("refusal"))}
		case "input_image":
			b = block{kind: imageBlock, detail: str(p.Get("detail")), file: str(p.Get("file_id"))}
			if b.file == "" {
				err = b.source(at, str(p.Get("image_url")))
			}
		case "input_file":
			b = block{kind: documentBlock, title: str(p.Get("filename")), file: str(p.Get("file_id")), url: str(p.Get("file_url"))}
			if data := str(p.Get("file_data")); data != "" {
				b.url = ""
				err = b.source(at, data)
			}
		case "input_audio":
			b = inputAudio(p.Get("input_audio"))
		default:
			err = apierr.Invalid(at+".content", "Unknown content part %q.", limit(t))
		}
		return b, err
	})
}
