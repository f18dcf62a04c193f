// Programs that serve models by OpenAI's API, with their usual addresses.
export interface Server {
  id: string;
  name: string;
  /** of its mark */
  initials: string;
  baseUrl: string;
  prefix: string;
  /** what users may also search for */
  also: string;
}

export const servers: Server[] = [
  { id: "vllm", name: "vLLM", initials: "vL", baseUrl: "http://localhost:8000/v1", prefix: "vllm", also: "" },
  {
    id: "lmstudio",
    name: "LM Studio",
    initials: "LM",
    baseUrl: "http://localhost:1234/v1",
    prefix: "lmstudio",
    also: "lmstudio",
  },
  {
    id: "llamacpp",
    name: "llama.cpp",
    initials: "lc",
    baseUrl: "http://localhost:8080/v1",
    prefix: "llama",
    also: "llamacpp llama-server gguf",
  },
  {
    id: "litellm",
    name: "LiteLLM",
    initials: "LL",
    baseUrl: "http://localhost:4000/v1",
    prefix: "litellm",
    also: "proxy",
  },
];

// serverFits reports whether a server is meant by a search, in lower case.
export const serverFits = (s: Server, query: string) =>
  `${s.name} ${s.also} local server openai-compatible`.toLowerCase().includes(query);
