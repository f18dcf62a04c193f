package responses

import (
	"weir/pkg/llm/ir"
	"weir/pkg/wire/clientheader"
)

// Client is what is known of the clients of OpenAI's Responses API.
var Client = ir.Client{
	Routing: []string{
		"model", "stream", "input", "previous_response_id", "conversation", "background", "store", "prompt",
		"user", "safety_identifier", "session_id", "prompt_cache_key", "metadata", "instructions",
	},
	System: []string{"instructions"}, Messages: []string{"input"},
	OutputLimits: []string{"max_output_tokens"}, Choices: []string{"n"},
	Answer: "output", Usage: "usage",
	Header:      clientheader.ToResponses,
	AppendError: ir.AppendOpenAIError, ErrorSchema: "Error", TooLong: ir.OpenAIText, Compacts: ir.OpenAICompacts,
	StreamsTooLong: true, // Codex compacts on nothing but a context overflow
}
