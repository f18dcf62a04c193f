package chat

import "weir/pkg/llm/ir"

// Client is what is known of the clients of OpenAI's chat completions.
var Client = ir.Client{
	Routing: []string{
		"model", "stream", "messages", "stream_options", "user", "safety_identifier", "tools",
		"session_id", "prompt_cache_key", "metadata",
	},
	Messages: []string{"messages"}, MessagesArray: true, UsageOnDemand: true,
	OutputLimits: []string{"max_completion_tokens", "max_tokens"}, Choices: []string{"n"},
	Answer: "choices", Usage: "usage",
	AppendError: ir.AppendOpenAIError, ErrorSchema: "Error", TooLong: ir.OpenAIText, Compacts: ir.OpenAICompacts,
}
