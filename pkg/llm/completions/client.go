package completions

import "weir/pkg/llm/ir"

// Client is what is known of the clients of OpenAI's text completions.
var Client = ir.Client{
	Routing: []string{
		"model", "stream", "prompt", "stream_options", "session_id", "prompt_cache_key", "metadata",
	},
	UsageOnDemand: true,
	OutputLimits:  []string{"max_completion_tokens", "max_tokens"}, Choices: []string{"n"},
	Answer: "choices", Usage: "usage",
	AppendError: ir.AppendOpenAIError, ErrorSchema: "Error", TooLong: ir.OpenAIText, Compacts: ir.OpenAICompacts,
}
