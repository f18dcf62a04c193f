// Package vendortext is the one table of vendors' error texts that weir acts
// on. Everywhere else statuses and structured codes decide; see
// docs/vendor-texts.md, which is generated from this table.
package vendortext

import "strings"

// Kind is what a text says.
type Kind string

// The kinds.
const (
	// RefusesField says that the request field {field} is not accepted.
	RefusesField Kind = "refuses-field"
	// RefusesDeveloper says that the message role developer is not accepted.
	RefusesDeveloper Kind = "refuses-developer"
)

// Row is one text. The word {field} stands for the name of a request field.
type Row struct {
	Kind   Kind
	Vendor string
	Text   string
	Source string
}

// Table is the table.
var Table = [...]Row{
	{RefusesField, "OpenAI, Azure OpenAI", "Unrecognized request argument supplied: {field}", "https://github.com/openai/openai-python/issues/1724"},
	{RefusesField, "OpenAI, Azure OpenAI", "Unsupported parameter: '{field}' is not supported with this model", "https://github.com/OpenHands/OpenHands/issues/11662"},
	{RefusesField, "vLLM before 0.6.5", "'loc': ('body', '{field}'), 'msg': 'Extra inputs are not permitted'", "https://github.com/voideditor/void/issues/128"},
	{RefusesField, "NVIDIA NIM", "body -> {field}\n  Extra inputs are not permitted", "https://github.com/NVIDIA/garak/issues/748"},
	{RefusesField, "LiteLLM and servers behind it", "{field}: Extra inputs are not permitted", "https://github.com/arbs-io/github-copilot-llm-gateway/issues/68"},
	{RefusesDeveloper, "DeepSeek and servers written with serde", "unknown variant `developer`", "https://github.com/num-scope/pix/issues/34"},
	{RefusesDeveloper, "OpenAI", "does not support 'developer' with this model", "https://github.com/langchain-ai/langchain/issues/28895"},
	{RefusesDeveloper, "vLLM with Qwen's chat template", "Unexpected message role.", "https://github.com/ogx-ai/ogx/issues/6069"},
	{RefusesDeveloper, "Z.ai (GLM)", "Incorrect role information", "https://github.com/vastsa/PI-Desktop/issues/30"},
}

// Match reports whether the message has a text of the kind. field replaces
// {field} and must be non-empty for a kind whose texts name one.
func Match(kind Kind, field, message string) bool {
	for i := range Table {
		if r := &Table[i]; r.Kind == kind && strings.Contains(message, strings.ReplaceAll(r.Text, "{field}", field)) {
			return true
		}
	}
	return false
}
