package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// tool reads an element of tools.
func (r *reader) tool(list, v gjson.Result) {
	q := r.q
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "functionDeclarations":
			elements(v, func(f gjson.Result) bool {
				q.Work(ir.PieceWork + len(f.Raw))
				q.Tools = append(ir.Reserve(q.Tools, v), r.function(f))
				return true
			})
		case "googleSearch", "googleSearchRetrieval":
			q.SearchWeb = true
			members(v, func(option string, v gjson.Result) bool {
				if option == "excludeDomains" {
					q.WebSearch.Blocked = v.Raw
				} else {
					q.Drop("tools." + name + "." + option)
				}
				return true
			})
		default:
			q.Drop("tools." + name)
		}
		return true
	})
}

// function reads a function's declaration.
func (r *reader) function(v gjson.Result) (t ir.Tool) {
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "name":
			t.Name = ir.Str(v)
		case "description":
			t.Description = ir.Str(v)
		case "parameters":
			if v.IsObject() && t.Schema == "" {
				t.Schema = jsonSchema(r.q, v)
			}
		case "parametersJsonSchema":
			if v.IsObject() {
				t.Schema = v.Raw
			}
		case "response", "responseJsonSchema": // describe what the client sends
		default:
			r.q.Drop("tools.functionDeclarations." + name)
		}
		return true
	})
	return t
}

func (r *reader) toolConfig(v gjson.Result) (err error) {
	q := r.q
	members(v, func(name string, v gjson.Result) bool {
		if name != "functionCallingConfig" {
			q.Drop("toolConfig." + name)
			return true
		}
		c := &q.ToolChoice
		members(v, func(name string, v gjson.Result) bool {
			switch name {
			case "mode":
				switch strings.ToUpper(ir.Str(v)) {
				case "AUTO":
					c.Mode = ir.ChoiceAuto
				case "VALIDATED":
					c.Mode, r.validated = ir.ChoiceAuto, true
				case "ANY":
					c.Mode = ir.ChoiceAny
				case "NONE":
					c.Mode = ir.ChoiceNone
				case "MODE_UNSPECIFIED":
				default:
					err = apierr.Invalid("toolConfig.functionCallingConfig.mode",
						"functionCallingConfig.mode must be AUTO, ANY, NONE or VALIDATED.")
				}
			case "allowedFunctionNames":
				c.Allowed, err = ir.Strings("toolConfig.functionCallingConfig.allowedFunctionNames", v)
			default:
				q.Drop("toolConfig.functionCallingConfig." + name)
			}
			return err == nil
		})
		switch {
		case c.Mode == ir.ChoiceNone:
			c.Allowed = nil
		case c.Mode == ir.ChoiceAny && len(c.Allowed) == 1:
			*c = ir.ToolChoice{Mode: ir.ChoiceTool, Name: c.Allowed[0]}
		case c.Mode == ir.ChoiceUnset && len(c.Allowed) > 0:
			c.Mode = ir.ChoiceAuto
		}
		return err == nil
	})
	return err
}

// config reads the generationConfig.
func (r *reader) config(v gjson.Result) (err error) {
	q := r.q
	const at = "generationConfig."
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "maxOutputTokens":
			q.MaxTokens, err = wholeNumber(at+name, v)
		case "temperature":
			q.Temperature, err = number(at+name, v)
		case "topP":
			q.TopP, err = number(at+name, v)
		case "topK":
			q.TopK, err = number(at+name, v)
		case "seed":
			q.Seed, err = number(at+name, v)
		case "presencePenalty":
			q.PresencePenalty, err = number(at+name, v)
		case "frequencyPenalty":
			q.FrequencyPenalty, err = number(at+name, v)
		case "stopSequences":
			q.Stop, err = ir.Strings(at+name, v)
		case "candidateCount":
			if v.Raw != "1" {
				err = apierr.Invalid(at+name, "This model returns one candidate: candidateCount must be 1.")
			}
		case "responseMimeType":
			switch ir.Str(v) {
			case "application/json":
				q.Format.Kind = ir.FormatObject
			case "", "text/plain":
			default:
				err = apierr.Invalid(at+name, "responseMimeType must be text/plain or application/json for this model.")
			}
		case "responseSchema":
			if v.IsObject() && r.format == "" {
				r.format = jsonSchema(q, v)
			}
		case "responseJsonSchema", "_responseJsonSchema":
			if v.IsObject() {
				r.format = v.Raw
			}
		case "responseModalities":
			err = r.modalities(v)
		case "thinkingConfig":
			err = r.thinking(v)
		case "responseLogprobs":
			q.Logprobs = v.Type == gjson.True
		case "logprobs":
			q.TopLogprobs, err = number(at+name, v)
		default:
			q.Drop(at + name)
		}
		return err == nil
	})
	return err
}

// modalities refuses an answer that is no text.
func (r *reader) modalities(v gjson.Result) error {
	const at = "generationConfig.responseModalities"
	list, err := ir.Strings(at, v)
	if err != nil || len(list) == 0 {
		return err
	}
	text := false
	for _, m := range list {
		switch strings.ToUpper(m) {
		case "TEXT", "MODALITY_UNSPECIFIED":
			text = true
		case "AUDIO":
			return apierr.Invalid(at, "This model answers with text only.")
		}
	}
	if !text {
		return apierr.Invalid(at, "This model answers with text only.")
	}
	if len(list) > 1 {
		r.q.Drop(at)
	}
	return nil
}

// thinking reads the thinkingConfig. A budget of -1 leaves the amount to the model.
func (r *reader) thinking(v gjson.Result) (err error) {
	q := r.q
	const at = "generationConfig.thinkingConfig."
	shown, level := false, ""
	budget := gjson.Result{}
	members(v, func(name string, v gjson.Result) bool {
		switch name {
		case "includeThoughts":
			shown = v.Type == gjson.True
		case "thinkingBudget":
			budget = v
		case "thinkingLevel":
			level = strings.ToLower(ir.Str(v))
		default:
			q.Drop(at + name)
		}
		return true
	})
	if budget.Exists() {
		raw, err := number(at+"thinkingBudget", budget)
		if err != nil {
			return err
		}
		switch n := gjson.Parse(raw).Int(); {
		case n < 0:
			q.Think = ir.ThinkOn
		case n == 0:
			q.Think = ir.ThinkOff
		default:
			q.Think, q.ThinkBudget = ir.ThinkBudget, n
		}
		return nil
	}
	switch level {
	case "minimal", "low", "medium", "high":
		q.Think, q.Effort = ir.ThinkOn, level
	case "", "thinking_level_unspecified":
		if shown {
			q.Think = ir.ThinkOn
		}
	default:
		return apierr.Invalid(at+"thinkingLevel", "thinkingLevel must be MINIMAL, LOW, MEDIUM or HIGH.")
	}
	return nil
}
