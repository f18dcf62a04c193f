// The families of upstreams, with a model of each. signs: their thoughts have signatures
// that must come back; OpenAI's are for clients of the Responses API only. brief: every
// run of the tests plays most tools over it.
export const families = [
  { id: "up", name: "OpenAI-compatible", model: "up/test-model", brief: true },
  { id: "openai", name: "OpenAI", model: "openai/gpt-5.2", signs: true },
  { id: "an", name: "Anthropic-compatible", model: "an/test-model", signs: true },
  { id: "anthropic", name: "Anthropic", model: "anthropic/claude-sonnet-4-6", signs: true, brief: true },
  { id: "gemini", name: "Gemini", model: "gemini/gemini-3-pro-preview", signs: true },
  { id: "bedrock", name: "Bedrock", model: "bedrock/amazon.nova-2-lite-v1:0", signs: true },
  { id: "cohere", name: "Cohere", model: "cohere/command-a-03-2025" },
];
