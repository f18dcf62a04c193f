package llm

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
)

// chatFields are the names of a request's parts.
var chatFields = fieldNames{
	fieldStop:          "stop",
	fieldEffort:        "reasoning_effort",
	fieldUser:          "user",
	fieldFormat:        "response_format",
	fieldParallel:      "parallel_tool_calls",
	fieldCache:         "prompt_cache_breakpoint",
	fieldThinking:      "reasoning_content",
	fieldMaxTokens:     "max_completion_tokens",
	fieldLogprobs:      "logprobs",
	fieldSearch:        "web_search_options",
	fieldSearchAllowed: "web_search_options.allowed_domains",
	fieldSearchBlocked: "web_search_options.blocked_domains",
	fieldDetail:        "image_url.detail",
	fieldLevel:         "reasoning_effort",
	fieldSchema:        "response_format.json_schema.",
}

// readChatRequest reads a chat completions request
// (docs/reference/api-shapes.md, 3.1).
func readChatRequest(root gjson.Result, q *request, _ *Options) (err error) {
	q.tools = nil
	var messages gjson.Result
	var legacyChoice gjson.Result
	forEach(root, func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch k.Str {
		case "model":
		case "messages":
			messages = v
		case "stream":
			q.stream = v.Type == gjson.True
		case "stream_options":
		case "max_completion_tokens":
			q.maxTokens, err = whole(k.Str, v)
		case "max_tokens":
			if q.maxTokens == 0 {
				q.maxTokens, err = whole(k.Str, v)
			}
		case "temperature":
			q.temperature, err = number(k.Str, v)
		case "top_p":
			q.topP, err = number(k.Str, v)
		case "top_k":
			q.topK, err = number(k.Str, v)
		case "presence_penalty":
			q.presence, err = number(k.Str, v)
		case "frequency_penalty":
			q.frequency, err = number(k.Str, v)
		case "seed":
			q.seed, err = number(k.Str, v)
		case "n":
			if v.Raw != "1" {
				err = apierr.Invalid("n", "This model gives one choice only: n must be 1.")
			}
		case "stop":
			q.stop, err = texts(k.Str, v)
		case "logit_bias":
			q.logitBias = v.Raw
		case "logprobs":
			q.logprobs = v.Type == gjson.True
		case "top_logprobs":
			q.topLogprobs, err = number(k.Str, v)
		case "tools":
			err = readChatTools(v, q)
		case "functions":
			forEach(v, func(_, f gjson.Result) bool {
				q.old = true
				q.tools = append(room(q.tools, v), function(f))
				return true
			})
		case "tool_choice":
			q.choice, err = chatChoice(v)
		case "function_call":
			legacyChoice = v
		case "parallel_tool_calls":
			q.parallel = boolean(v)
		case "response_format":
			q.format, err = chatFormat(v)
		case "reasoning_effort":
			err = q.setEffort(k.Str, v)
		case "reasoning":
			// OpenRouter's form, which many clients send.
			if e := v.Get("effort"); e.Type == gjson.String {
				err = q.setEffort("reasoning.effort", e)
			} else if n := count(v.Get("max_tokens")); n > 0 {
				q.think, q.budget = thinkBudget, n
			} else if v.Get("enabled").Type == gjson.True {
				q.think = thinkOn
			}
		case "verbosity":
			q.verbosity = str(v)
		case "modalities":
			forEach(v, func(_, m gjson.Result) bool {
				if m.Str != "text" {
					err = apierr.Invalid("modalities", "This model answers in text only.")
				}
				return err == nil
			})
		case "web_search_options":
			q.search = true
			q.web = webSearch{size: rawOf(v.Get("search_context_size")), place: place(v.Get("user_location"))}
		case "service_tier":
			q.tier = str(v)
		case "store":
			q.store = boolean(v)
		case "metadata":
			q.metadata = v.Raw
		case "prompt_cache_key":
			q.cacheKey = str(v)
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
	if legacyChoice.Exists() && q.choice.mode == choiceUnset {
		if legacyChoice.IsObject() {
			q.choice = toolChoice{mode: choiceTool, name: str(legacyChoice.Get("name"))}
		} else if q.choice, err = chatChoice(legacyChoice); err != nil {
			return err
		}
	}
	if q.old && q.parallel == "" {
		q.parallel = "false" // a message has one function_call
	}
	if !messages.IsArray() {
		return apierr.Invalid("messages", "messages must be an array.")
	}
	i := 0
	forEach(messages, func(_, m gjson.Result) bool {
		q.did(pieceWork + len(m.Raw))
		q.messages = room(q.messages, messages)
		err = readChatMessage(i, recordOf(m), q)
		i++
		return err == nil
	})
	if err == nil && len(q.messages) == 0 {
		err = apierr.Invalid("messages", "messages must not be empty.")
	}
	return err
}

func readChatMessage(i int, m record, q *request) error {
	at := "messages[" + strconv.Itoa(i) + "]"
	content := m.Get("content")
	r := str(m.Get("role"))
	if m.Get("name").Type == gjson.String && r != "tool" && r != "function" {
		q.drop("name")
	}
	switch r {
	case "system", "developer":
		blocks, err := chatContent(&q.pacer, at, content)
		if err != nil {
			return err
		}
		q.messages = append(q.messages, message{system, blocks})
	case "user":
		blocks, err := chatContent(&q.pacer, at, content)
		if err != nil {
			return err
		}
		q.messages = append(q.messages, message{user, blocks})
	case "assistant":
		return readChatAssistant(at, m, q)
	case "tool", "function":
		b := block{kind: toolResultBlock, id: str(m.Get("tool_call_id")), name: str(m.Get("name"))}
		if r == "function" {
			b.id = legacyID(q, b.name)
		}
		if b.id == "" {
			return apierr.Invalid(at+".tool_call_id", "A tool message needs tool_call_id.")
		}
		var err error
		if b.parts, err = chatContent(&q.pacer, at, content); err != nil {
			return err
		}
		// Consecutive results belong to one turn.
		if n := len(q.messages); n > 0 && q.messages[n-1].role == user && len(q.messages[n-1].blocks) > 0 &&
			q.messages[n-1].blocks[0].kind == toolResultBlock {
			q.add(user, b)
		} else {
			q.messages = append(q.messages, message{user, []block{b}})
		}
	default:
		return apierr.Invalid(at+".role", "Unknown role.")
	}
	return nil
}

func readChatAssistant(at string, m record, q *request) error {
	blocks := chatThinking(&q.pacer, m, "")
	content, err := chatContent(&q.pacer, at, m.Get("content"))
	if err != nil {
		return err
	}
	blocks = append(blocks, content...)
	if s := str(m.Get("refusal")); s != "" {
		blocks = append(blocks, block{kind: refusalBlock, text: s})
	}
	q.dropSet("audio", m.Get("audio.id").Raw)
	calls := m.Get("tool_calls")
	forEach(calls, func(_, c gjson.Result) bool {
		q.did(pieceWork + len(c.Raw))
		blocks = append(room(blocks, calls), chatCall(c))
		return true
	})
	if f := m.Get("function_call"); f.IsObject() {
		name := str(f.Get("name"))
		if q.oldIDs == nil {
			q.oldIDs = map[string]int{}
		}
		q.oldIDs[name]++
		blocks = append(blocks, block{kind: toolUseBlock, id: legacyID(q, name), name: name, args: str(f.Get("arguments"))})
	}
	q.messages = append(q.messages, message{assistant, blocks})
	return nil
}

// oldID returns an id for the last call of a function in the old form, which has
// none.
func legacyID(q *request, name string) string {
	if n := q.oldIDs[name]; n > 1 {
		return "call_" + name + "_" + strconv.Itoa(n)
	}
	return "call_" + name
}

// chatContent reads a content: a text, or an array of parts.
func chatContent(pace *pacer, at string, v gjson.Result) ([]block, error) {
	return contentOf(pace, at, v, func(p record) (b block, err error) {
		switch t := str(p.Get("type")); t {
		case "text":
			b.text = str(p.Get("text"))
		case "refusal":
			b = block{kind: refusalBlock, text: str(p.Get("refusal"))}
		case "image_url":
			u := p.Get("image_url")
			b = block{kind: imageBlock, detail: str(u.Get("detail"))}
			if u.Type == gjson.String {
				u = gjson.Result{}
				err = b.source(at, str(p.Get("image_url")))
			} else {
				err = b.source(at, str(u.Get("url")))
			}
		case "input_audio":
			b = inputAudio(p.Get("input_audio"))
		case "file":
			f := p.Get("file")
			b = block{kind: documentBlock, title: str(f.Get("filename")), file: str(f.Get("file_id"))}
			if data := str(f.Get("file_data")); data != "" {
				err = b.source(at, data)
			}
		case "thinking":
			// Mistral's form, which its clients send back.
			b = block{kind: thinkingBlock, text: textsOf(p.Get("thinking"), "")}
		default:
			err = apierr.Invalid(at+".content", "Unknown content part %q.", limit(t))
		}
		if c := p.Get("prompt_cache_breakpoint"); c.IsObject() {
			b.cache = "5m"
			if t := str(c.Get("ttl")); t != "" && t != "5m" {
				b.cache = "1h"
			}
		}
		if c := p.Get("cache_control"); c.IsObject() { // as OpenRouter's clients mark it
			b.cache = cacheOf(c)
		}
		return b, err
	})
}
