// The initials of providers whose names begin alike, by id.
const initials: Record<string, string> = {
  openai: "OA",
  openrouter: "OR",
  "openai-compatible": "{}",
  "anthropic-compatible": "{A}",
  anthropic: "An",
  azure: "Az",
  bedrock: "Be",
  bfl: "BF",
  cloudflare: "CF",
  cohere: "Co",
  dashscope: "Qw",
  deepgram: "Dg",
  deepinfra: "DI",
  deepseek: "DS",
  elevenlabs: "11",
  firecrawl: "FC",
  gemini: "Ge",
  huggingface: "HF",
  "jina-reader": "JR",
  "ollama-cloud": "OC",
  litellm: "LL",
  lmstudio: "LM",
  llamacpp: "lc",
  minimax: "MM",
  searxng: "SX",
  serper: "Sp",
  vertex: "Vx",
  vllm: "vL",
};

// initialsOf returns the initials of a provider.
export const initialsOf = (id: string, name: string) => initials[id] ?? name.replace(/[^\p{L}\p{N}]/gu, "").slice(0, 2);
