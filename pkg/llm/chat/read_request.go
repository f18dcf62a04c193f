package chat

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// Fields are the names of a request's fields.
var Fields = ir.FieldNames{
	ir.FieldStop:          "stop",
	ir.FieldEffort:        "reasoning_effort",
	ir.FieldUser:          "user",
	ir.FieldFormat:        "response_format",
	ir.FieldParallel:      "parallel_tool_calls",
	ir.FieldCache:         "prompt_cache_breakpoint",
	ir.FieldThinking:      "reasoning_content",
	ir.FieldMaxTokens:     "max_completion_tokens",
	ir.FieldLogprobs:      "logprobs",
	ir.FieldSearch:        "web_search_options",
	ir.FieldSearchAllowed: "web_search_options.allowed_domains",
	ir.FieldSearchBlocked: "web_search_options.blocked_domains",
	ir.FieldDetail:        "image_url.detail",
	ir.FieldLevel:         "reasoning_effort",
	ir.FieldSchema:        "response_format.json_schema.",
}

// ReadRequest reads a chat completions request
// (docs/reference/api-shapes.md, 3.1).
func ReadRequest(root gjson.Result, q *ir.Request, _ *ir.Options) (err error) {
	q.Tools = nil
	var messages gjson.Result
	var legacyChoice gjson.Result
	ir.Each(root, func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch k.Str {
		case "model":
		case "messages":
			messages = v
		case "stream":
			q.Stream = v.Type == gjson.True
		case "stream_options":
		case "max_completion_tokens":
			q.MaxTokens, err = ir.WholeNumber(k.Str, v)
		case "max_tokens":
			if q.MaxTokens == 0 {
				q.MaxTokens, err = ir.WholeNumber(k.Str, v)
			}
		case "temperature":
			q.Temperature, err = ir.Number(k.Str, v)
		case "top_p":
			q.TopP, err = ir.Number(k.Str, v)
		case "top_k":
			q.TopK, err = ir.Number(k.Str, v)
		case "presence_penalty":
			q.PresencePenalty, err = ir.Number(k.Str, v)
		case "frequency_penalty":
			q.FrequencyPenalty, err = ir.Number(k.Str, v)
		case "seed":
			q.Seed, err = ir.Number(k.Str, v)
		case "n":
			if v.Raw != "1" {
				err = apierr.Invalid("n", "This model returns one choice. n must be 1.")
			}
		case "stop":
			q.Stop, err = ir.Strings(k.Str, v)
		case "logit_bias":
			q.LogitBias = v.Raw
		case "logprobs":
			q.Logprobs = v.Type == gjson.True
		case "top_logprobs":
			q.TopLogprobs, err = ir.Number(k.Str, v)
		case "tools":
			err = readTools(v, q)
		case "functions":
			ir.Each(v, func(_, f gjson.Result) bool {
				q.Legacy = true
				q.Tools = append(ir.Reserve(q.Tools, v), ir.ReadFunction(f))
				return true
			})
		case "tool_choice":
			q.ToolChoice, err = readToolChoice(v)
		case "function_call":
			legacyChoice = v
		case "parallel_tool_calls":
			q.Parallel = ir.Boolean(v)
		case "response_format":
			q.Format, err = readFormat(v)
		case "reasoning_effort":
			err = q.SetEffort(k.Str, v)
		case "reasoning":
			// OpenRouter's form, which many clients send.
			if e := v.Get("effort"); e.Type == gjson.String {
				err = q.SetEffort("reasoning.effort", e)
			} else if n := ir.Count(v.Get("max_tokens")); n > 0 {
				q.Think, q.ThinkBudget = ir.ThinkBudget, n
			} else if v.Get("enabled").Type == gjson.True {
				q.Think = ir.ThinkOn
			}
		case "verbosity":
			q.Verbosity = ir.Str(v)
		case "modalities":
			ir.Each(v, func(_, m gjson.Result) bool {
				if m.Str != "text" {
					err = apierr.Invalid("modalities", "This model returns text only. modalities must be [\"text\"].")
				}
				return err == nil
			})
		case "web_search_options":
			q.SearchWeb = true
			q.WebSearch = ir.WebSearch{Size: ir.Raw(v.Get("search_context_size")),
				Location: ir.ReadUserLocation(v.Get("user_location"))}
		case "service_tier":
			q.ServiceTier = ir.Str(v)
		case "store":
			q.Store = ir.Boolean(v)
		case "metadata":
			q.Metadata = v.Raw
		case "prompt_cache_key":
			q.CacheKey = ir.Str(v)
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
	if legacyChoice.Exists() && q.ToolChoice.Mode == ir.ChoiceUnset {
		if legacyChoice.IsObject() {
			q.ToolChoice = ir.ToolChoice{Mode: ir.ChoiceTool, Name: ir.Str(legacyChoice.Get("name"))}
		} else if q.ToolChoice, err = readToolChoice(legacyChoice); err != nil {
			return err
		}
	}
	if q.Legacy && q.Parallel == "" {
		q.Parallel = "false" // a message has one function_call
	}
	if !messages.IsArray() {
		return apierr.Invalid("messages", "messages must be an array.")
	}
	i := 0
	ir.Each(messages, func(_, m gjson.Result) bool {
		q.Work(ir.PieceWork + len(m.Raw))
		q.Messages = ir.Reserve(q.Messages, messages)
		err = readMessage(i, ir.RecordOf(m), q)
		i++
		return err == nil
	})
	if err == nil && len(q.Messages) == 0 {
		err = apierr.Invalid("messages", "messages must not be empty.")
	}
	return err
}

func readMessage(i int, m ir.Record, q *ir.Request) error {
	at := "messages[" + strconv.Itoa(i) + "]"
	content := m.Get("content")
	r := ir.Str(m.Get("role"))
	if m.Get("name").Type == gjson.String && r != "tool" && r != "function" {
		q.Drop("name")
	}
	switch r {
	case "system", "developer":
		blocks, err := readContent(&q.Pacer, at, content)
		if err != nil {
			return err
		}
		q.Messages = append(q.Messages, ir.Message{Role: ir.RoleSystem, Blocks: blocks})
	case "user":
		blocks, err := readContent(&q.Pacer, at, content)
		if err != nil {
			return err
		}
		q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: blocks})
	case "assistant":
		return readAssistant(at, m, q)
	case "tool", "function":
		b := ir.Block{Kind: ir.ToolResultBlock, ID: ir.Str(m.Get("tool_call_id")), Name: ir.Str(m.Get("name"))}
		if r == "function" {
			b.ID = legacyID(q, b.Name)
		}
		if b.ID == "" {
			return apierr.Invalid(at+".tool_call_id", "A tool message needs tool_call_id.")
		}
		var err error
		if b.Parts, err = readContent(&q.Pacer, at, content); err != nil {
			return err
		}
		// Consecutive results belong to one turn.
		if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == ir.RoleUser && len(q.Messages[n-1].Blocks) > 0 &&
			q.Messages[n-1].Blocks[0].Kind == ir.ToolResultBlock {
			q.Add(ir.RoleUser, b)
		} else {
			q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: []ir.Block{b}})
		}
	default:
		return apierr.Invalid(at+".role", "role must be system, developer, user, assistant, tool or function.")
	}
	return nil
}

func readAssistant(at string, m ir.Record, q *ir.Request) error {
	blocks := readThinking(&q.Pacer, m, "")
	content, err := readContent(&q.Pacer, at, m.Get("content"))
	if err != nil {
		return err
	}
	blocks = append(blocks, content...)
	if s := ir.Str(m.Get("refusal")); s != "" {
		blocks = append(blocks, ir.Block{Kind: ir.RefusalBlock, Text: s})
	}
	q.DropIfSet("audio", m.Get("audio.id").Raw)
	calls := m.Get("tool_calls")
	ir.Each(calls, func(_, c gjson.Result) bool {
		q.Work(ir.PieceWork + len(c.Raw))
		blocks = append(ir.Reserve(blocks, calls), ir.ReadChatCall(c))
		return true
	})
	if f := m.Get("function_call"); f.IsObject() {
		name := ir.Str(f.Get("name"))
		if q.LegacyCalls == nil {
			q.LegacyCalls = map[string]int{}
		}
		q.LegacyCalls[name]++
		blocks = append(blocks, ir.Block{Kind: ir.ToolCallBlock, ID: legacyID(q, name), Name: name,
			Arguments: ir.Str(f.Get("arguments"))})
	}
	q.Messages = append(q.Messages, ir.Message{Role: ir.RoleAssistant, Blocks: blocks})
	return nil
}

// legacyID returns an id for the last function_call of a function, which has
// none.
func legacyID(q *ir.Request, name string) string {
	if n := q.LegacyCalls[name]; n > 1 {
		return "call_" + name + "_" + strconv.Itoa(n)
	}
	return "call_" + name
}

// readContent reads a content: a string, or an array of parts.
func readContent(pace *ir.Pacer, at string, v gjson.Result) ([]ir.Block, error) {
	return ir.ReadContent(pace, at, v, func(p ir.Record) (b ir.Block, err error) {
		switch t := ir.Str(p.Get("type")); t {
		case "text":
			b.Text = ir.Str(p.Get("text"))
		case "refusal":
			b = ir.Block{Kind: ir.RefusalBlock, Text: ir.Str(p.Get("refusal"))}
		case "image_url":
			u := p.Get("image_url")
			b = ir.Block{Kind: ir.ImageBlock, Detail: ir.Str(u.Get("detail"))}
			if u.Type == gjson.String {
				u = gjson.Result{}
				err = b.SetSource(at, ir.Str(p.Get("image_url")))
			} else {
				err = b.SetSource(at, ir.Str(u.Get("url")))
			}
		case "input_audio":
			b = ir.ReadAudio(p.Get("input_audio"))
		case "file":
			f := p.Get("file")
			b = ir.Block{Kind: ir.DocumentBlock, Title: ir.Str(f.Get("filename")), FileID: ir.Str(f.Get("file_id"))}
			if data := ir.Str(f.Get("file_data")); data != "" {
				err = b.SetSource(at, data)
			}
		case "thinking":
			// Mistral's form, which its clients send back.
			b = ir.Block{Kind: ir.ThinkingBlock, Text: ir.JoinTextFields(p.Get("thinking"), "")}
		default:
			err = apierr.Invalid(at+".content", "Unknown content part %q.", ir.Truncate(t))
		}
		b.Cache = ir.CacheBreakpoint(p.Get("prompt_cache_breakpoint"))
		if c := p.Get("cache_control"); c.IsObject() { // as OpenRouter's clients mark it
			b.Cache = ir.CacheControl(c)
		}
		return b, err
	})
}
