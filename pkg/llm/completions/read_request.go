package completions

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// Fields are the names of a request's fields.
var Fields = ir.FieldNames{
	ir.FieldStop:      "stop",
	ir.FieldUser:      "user",
	ir.FieldMaxTokens: "max_tokens",
	ir.FieldLogprobs:  "logprobs",
}

// ReadRequest reads a request for a completion:
//
//	{"model","prompt": text or [text],"max_tokens","temperature","top_p","stop","stream",…}
func ReadRequest(root gjson.Result, q *ir.Request, _ *ir.Options) (err error) {
	prompt := ""
	ir.Each(root, func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		switch k.Str {
		case "model", "stream_options":
		case "prompt":
			prompt, err = readPrompt(v)
		case "stream":
			q.Stream = v.Type == gjson.True
		case "max_tokens":
			q.MaxTokens, err = ir.WholeNumber(k.Str, v)
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
		case "stop":
			q.Stop, err = ir.Strings(k.Str, v)
		case "logit_bias":
			q.LogitBias = v.Raw
		case "user":
			q.User = ir.Str(v)
		case "n", "best_of":
			if v.Raw != "1" {
				err = apierr.Invalid(k.Str, "This model returns one choice. %s must be 1.", k.Str)
			}
		case "echo":
			if v.Type == gjson.True {
				err = apierr.Invalid("echo", "Chat models cannot repeat the prompt. Leave echo out.")
			}
		default: // suffix and logprobs too
			q.Drop(k.Str)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if prompt == "" {
		return apierr.Invalid("prompt", "prompt must be a non-empty string.")
	}
	q.Messages = append(q.Messages, ir.Message{Role: ir.RoleUser, Blocks: []ir.Block{{Text: prompt}}})
	return nil
}

// readPrompt reads one prompt. Arrays of tokens have no meaning for another model,
// and several prompts are several requests.
func readPrompt(v gjson.Result) (string, error) {
	if v.IsArray() {
		if list := v.Array(); len(list) == 1 {
			v = list[0]
		}
	}
	if v.Type != gjson.String {
		return "", apierr.Invalid("prompt", "prompt must be one string: token arrays and several prompts cannot be translated for chat models.")
	}
	return v.Str, nil
}
