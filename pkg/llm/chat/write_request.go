package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
)

// WriteRequest writes a chat completions request for an upstream that may
// deviate from OpenAI.
func WriteRequest(q *ir.Request, d *ir.Writer, opt *ir.Options) error {
	v := opt.DeviationsOrDefault()
	if len(opt.Refuses) > 0 {
		v = opt.Refuses.Apply(v)
	}
	openai := v.IsOpenAIModel(opt.Model)
	reasons := opt.Reasoning || openai && ir.OpenAIReasons(opt.Model)
	d.Open("", '{')
	d.Str("model", opt.Model)
	writeMessages(q, d, opt, v)
	// set writes a field that the upstream may refuse.
	set := func(name, client, raw string) {
		if raw == "" {
			return
		}
		if v.Drops(name, reasons) {
			q.Drop(client)
			return
		}
		d.Raw(name, raw)
	}
	if q.MaxTokens > 0 {
		name := v.MaxTokens
		if name == "" || openai && reasons && !opt.Refuses.Has("max_completion_tokens") {
			name = "max_completion_tokens"
		}
		d.Int(name, q.MaxTokens)
	}
	// OpenAI's reasoning models refuse all sampling fields.
	sampling := !(reasons && openai)
	if sampling {
		if v.ZeroSample && isZero(q.Temperature) {
			d.Bool("do_sample", false)
		} else {
			set("temperature", "temperature", q.Temperature)
		}
		set("top_p", "top_p", q.TopP)
		if len(q.Stop) > 4 {
			q.DropField(ir.FieldStop)
			q.Stop = q.Stop[:4]
		}
		if len(q.Stop) > 0 {
			set("stop", q.FieldName(ir.FieldStop), ir.QuoteList(q.Stop))
		}
	} else {
		q.DropIfSet("temperature", q.Temperature)
		q.DropIfSet("top_p", q.TopP)
		if len(q.Stop) > 0 {
			q.DropField(ir.FieldStop)
		}
	}
	q.DropIfSet("top_k", q.TopK)
	if q.Logprobs {
		set("logprobs", q.FieldName(ir.FieldLogprobs), "true")
		set("top_logprobs", "top_logprobs", q.TopLogprobs)
	}
	writeTools(q, d, v, set)
	writeFormat(q, d)
	writeEffort(q, d, opt.Model, v, reasons)
	if q.Verbosity != "" {
		set("verbosity", "text.verbosity", ir.Quote(q.Verbosity))
	}
	if q.User != "" {
		name := "user"
		if v.IsOpenAI() {
			name = "safety_identifier"
		}
		set(name, q.FieldName(ir.FieldUser), ir.Quote(q.User))
	}
	if q.EndUser != "" && v.IsOpenAI() {
		set("user", "user", ir.Quote(q.EndUser))
	} else {
		q.DropIfSet("user", q.EndUser)
	}
	set("metadata", "metadata", q.Metadata)
	set("store", "store", storeOf(q))
	if q.ServiceTier != "" {
		if v.IsOpenAI() {
			set("service_tier", "service_tier", ir.Quote(q.ServiceTier))
		} else {
			q.Drop("service_tier")
		}
	}
	if q.CacheKey != "" {
		set("prompt_cache_key", "prompt_cache_key", ir.Quote(q.CacheKey))
	}
	if q.SearchWeb {
		// Only search models search in a chat; the others refuse the field.
		if v.IsOpenAI() && strings.Contains(opt.Model, "search") {
			d.Open("web_search_options", '{')
			d.OptRaw("search_context_size", q.WebSearch.Size)
			if q.WebSearch.Location != "" {
				d.Raw("user_location", nestUserLocation(q.WebSearch.Location))
			}
			d.Close('}')
			q.DropWeb(false, false, true, true, true)
		} else {
			q.DropField(ir.FieldSearch)
		}
	}
	for _, f := range v.Set {
		d.Raw(f[0], f[1])
	}
	if q.Stream {
		d.Bool("stream", true)
		if !v.NoStreamOptions {
			d.Raw("stream_options", `{"include_usage":true}`)
		}
	}
	d.Close('}')
	return nil
}

// storeOf returns store if the client has set it to true.
func storeOf(q *ir.Request) string {
	if q.Store == "true" {
		return q.Store
	}
	return ""
}

func isZero(number string) bool {
	return number != "" && strings.Trim(number, "0.-") == ""
}

func writeFormat(q *ir.Request, d *ir.Writer) {
	switch f := &q.Format; f.Kind {
	case ir.FormatText:
		d.Raw("response_format", `{"type":"text"}`)
	case ir.FormatObject:
		d.Raw("response_format", `{"type":"json_object"}`)
	case ir.FormatSchema:
		d.Open("response_format", '{')
		d.Str("type", "json_schema")
		d.Open("json_schema", '{')
		d.Str("name", f.NameOr("output"))
		d.OptStr("description", f.Description)
		d.Raw("schema", f.Schema)
		d.OptRaw("strict", f.Strict)
		d.Close('}')
		d.Close('}')
	}
}

// writeEffort writes the reasoning effort in the upstream's form.
func writeEffort(q *ir.Request, d *ir.Writer, model string, v *ir.Deviations, reasons bool) {
	name := q.EffortName()
	if name == "" && q.Think == ir.ThinkUnset {
		return
	}
	q.DropIfSet("reasoning.summary", q.Summary)
	onOff := "enabled"
	if name == "none" {
		onOff = "disabled"
	}
	effort := name
	if name != "" {
		effort = v.RoundEffort(name)
		if leveled := v.Think != ir.ReasoningSwitch && v.Think != ir.ReasoningEnable; name != "none" && q.Effort != "" &&
			(!leveled || effort != name && !v.Maps(name)) && !v.IsOpenAIModel(model) {
			q.DropEffort()
		}
	}
	switch v.Think {
	case ir.ReasoningEffort:
		// An OpenAI model without reasoning refuses the field.
		if openai := v.IsOpenAIModel(model); openai && !reasons {
			if name != "none" {
				q.DropField(ir.FieldEffort)
			}
		} else if openai {
			d.OptStr("reasoning_effort", q.OpenAIEffort(model, name))
		} else if effort != "" {
			d.Str("reasoning_effort", effort)
		} else {
			q.DropField(ir.FieldEffort)
		}
	case ir.ReasoningObject:
		d.Open("reasoning", '{')
		switch {
		case q.Think == ir.ThinkBudget:
			d.Int("max_tokens", q.ThinkBudget)
		case effort != "":
			d.Str("effort", effort)
		default:
			d.Bool("enabled", true)
		}
		d.Close('}')
	case ir.ReasoningType, ir.ReasoningSwitch:
		d.Open("thinking", '{')
		d.Str("type", onOff)
		d.Close('}')
		if v.Think == ir.ReasoningType && effort != "" && name != "none" {
			d.Str("reasoning_effort", effort)
		}
	case ir.ReasoningEnable:
		d.Bool("enable_thinking", name != "none")
		if q.Think == ir.ThinkBudget {
			d.Int("thinking_budget", q.ThinkBudget)
		}
	case ir.ReasoningNone:
		q.DropField(ir.FieldEffort)
	}
}

// nestUserLocation returns a user location in chat's form.
func nestUserLocation(place string) string {
	inside := ir.MapMembers(gjson.Parse(place), func(name string, v gjson.Result) (string, bool) {
		return v.Raw,
			name != "type"
	})
	return `{"type":"approximate","approximate":` + inside + `}`
}
