package gemini

import (
	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// Client is what is known of the clients of the Gemini API. Their URL names the model, and an
// answer to a prompt that is blocked has no candidates.
var Client = ir.Client{
	Routing: []string{
		"model", "contents", "generationConfig", "generation_config", "systemInstruction", "system_instruction",
	},
	System: []string{"systemInstruction", "system_instruction"}, Messages: []string{"contents"},
	Config:       []string{"generationConfig", "generation_config"},
	OutputLimits: []string{"maxOutputTokens", "max_output_tokens"},
	Choices:      []string{"candidateCount", "candidate_count"},
	Answer:       "candidates", Usage: "usageMetadata", NoAnswer: true,
	AppendError: appendError, ErrorSchema: "GeminiError", Unknown404: true,
	TooLong: ir.GeminiText, Compacts: compacts,
}

// compacts reports whether a client compacts the conversation after an error of Google's own.
func compacts([]byte) bool { return true }

// appendError appends {"error":{code,message,status,details}}.
func appendError(dst []byte, e *apierr.Error, _ string) []byte { return e.AppendGemini(dst) }
