package llm

import (
	"strings"

	"github.com/tidwall/gjson"
)

// writeChatRequest writes a chat completions request for an upstream that may
// deviate from OpenAI.
func writeChatRequest(q *request, d *doc, opt *Options) error {
	v := opt.deviations()
	if opt.Refuses != 0 {
		v = opt.Refuses.over(v)
	}
	openai := v.openAIModel(opt.Model)
	reasons := opt.Reasoning || openai && openaiReasons(opt.Model)
	d.open("", '{')
	d.str("model", opt.Model)
	writeChatMessages(q, d, opt, v)
	// set writes a field that the upstream may refuse.
	set := func(name, client, raw string) {
		if raw == "" {
			return
		}
		if v.drops(name, reasons) {
			q.drop(client)
			return
		}
		d.raw(name, raw)
	}
	if q.maxTokens > 0 {
		name := v.MaxTokens
		if name == "" || openai && reasons && opt.Refuses&RefusesMaxCompletionTokens == 0 {
			name = "max_completion_tokens"
		}
		d.int(name, q.maxTokens)
	}
	// OpenAI's reasoning models refuse everything that shapes the sampling.
	sampling := !(reasons && openai)
	if sampling {
		if v.ZeroSample && isZero(q.temperature) {
			d.bool("do_sample", false)
		} else {
			set("temperature", "temperature", q.temperature)
		}
		set("top_p", "top_p", q.topP)
		if len(q.stop) > 4 {
			q.dropField(fieldStop)
			q.stop = q.stop[:4]
		}
		if len(q.stop) > 0 {
			set("stop", q.fieldName(fieldStop), quoteList(q.stop))
		}
	} else {
		q.dropSet("temperature", q.temperature)
		q.dropSet("top_p", q.topP)
		if len(q.stop) > 0 {
			q.dropField(fieldStop)
		}
	}
	q.dropSet("top_k", q.topK)
	if q.logprobs {
		set("logprobs", q.fieldName(fieldLogprobs), "true")
		set("top_logprobs", "top_logprobs", q.topLogprobs)
	}
	writeChatTools(q, d, v, set)
	writeChatFormat(q, d)
	writeChatEffort(q, d, opt.Model, v, reasons)
	if q.verbosity != "" {
		set("verbosity", "text.verbosity", quoted(q.verbosity))
	}
	if q.user != "" {
		name := "user"
		if v.openAI() {
			name = "safety_identifier"
		}
		set(name, q.fieldName(fieldUser), quoted(q.user))
	}
	if q.endUser != "" && v.openAI() {
		set("user", "user", quoted(q.endUser))
	} else {
		q.dropSet("user", q.endUser)
	}
	set("metadata", "metadata", q.metadata)
	set("store", "store", storeOf(q))
	if q.tier != "" {
		if v.openAI() {
			set("service_tier", "service_tier", quoted(q.tier))
		} else {
			q.drop("service_tier")
		}
	}
	if q.cacheKey != "" {
		set("prompt_cache_key", "prompt_cache_key", quoted(q.cacheKey))
	}
	if q.search {
		// Only models made for it search in a chat; the others refuse the field.
		if v.openAI() && strings.Contains(opt.Model, "search") {
			d.open("web_search_options", '{')
			d.optRaw("search_context_size", q.web.size)
			if q.web.place != "" {
				d.raw("user_location", nested(q.web.place))
			}
			d.close('}')
			q.dropWeb(false, false, true, true, true)
		} else {
			q.dropField(fieldSearch)
		}
	}
	for _, f := range v.Set {
		d.raw(f[0], f[1])
	}
	if q.stream {
		d.bool("stream", true)
		if !v.NoStreamOptions {
			d.raw("stream_options", `{"include_usage":true}`)
		}
	}
	d.close('}')
	return nil
}

// storeOf passes an explicit wish to store only between OpenAI's dialects.
func storeOf(q *request) string {
	if q.store == "true" {
		return q.store
	}
	return ""
}

func isZero(number string) bool {
	return number != "" && strings.Trim(number, "0.-") == ""
}

func writeChatFormat(q *request, d *doc) {
	switch f := &q.format; f.kind {
	case formatText:
		d.raw("response_format", `{"type":"text"}`)
	case formatObject:
		d.raw("response_format", `{"type":"json_object"}`)
	case formatSchema:
		d.open("response_format", '{')
		d.str("type", "json_schema")
		d.open("json_schema", '{')
		d.str("name", f.nameOr("output"))
		d.opt("description", f.description)
		d.raw("schema", f.schema)
		d.optRaw("strict", f.strict)
		d.close('}')
		d.close('}')
	}
}

// writeChatEffort asks for reasoning the way the upstream wants to be asked.
func writeChatEffort(q *request, d *doc, model string, v *Deviations, reasons bool) {
	name := q.effortName()
	if name == "" && q.think == thinkUnset {
		return
	}
	q.dropSet("reasoning.summary", q.summary)
	onOff := "enabled"
	if name == "none" {
		onOff = "disabled"
	}
	effort := name
	if name != "" {
		effort = v.round(name)
		if leveled := v.Think != ThinkSwitch && v.Think != ThinkEnable; name != "none" && q.effort != "" && (!leveled || effort != name && !v.means(name)) && !v.openAIModel(model) {
			q.dropEffort()
		}
	}
	switch v.Think {
	case ThinkEffort:
		// An ordinary model of OpenAI refuses the field.
		if openai := v.openAIModel(model); openai && !reasons {
			if name != "none" {
				q.dropField(fieldEffort)
			}
		} else if openai {
			d.opt("reasoning_effort", q.openaiEffort(model, name))
		} else if effort != "" {
			d.str("reasoning_effort", effort)
		} else {
			q.dropField(fieldEffort)
		}
	case ThinkReasoning:
		d.open("reasoning", '{')
		switch {
		case q.think == thinkBudget:
			d.int("max_tokens", q.budget)
		case effort != "":
			d.str("effort", effort)
		default:
			d.bool("enabled", true)
		}
		d.close('}')
	case ThinkType, ThinkSwitch:
		d.open("thinking", '{')
		d.str("type", onOff)
		d.close('}')
		if v.Think == ThinkType && effort != "" && name != "none" {
			d.str("reasoning_effort", effort)
		}
	case ThinkEnable:
		d.bool("enable_thinking", name != "none")
		if q.think == thinkBudget {
			d.int("thinking_budget", q.budget)
		}
	case ThinkNone:
		q.dropField(fieldEffort)
	}
}

// nested is chat's form of a place.
func nested(place string) string {
	inside := members(gjson.Parse(place), func(name string, v gjson.Result) (string, bool) { return v.Raw, name != "type" })
	return `{"type":"approximate","approximate":` + inside + `}`
}
