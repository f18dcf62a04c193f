// Example is a path that can be explained, with the body of an example call.
export interface Example {
  path: string;
  /** of its models: GET /api/models/list/{segment} */
  segment: string;
  body: (model: string) => object;
}

const messages = [{ role: "user", content: "Hello" }];

export const examples: Example[] = [
  { path: "/v1/chat/completions", segment: "llm", body: (model) => ({ model, messages }) },
  { path: "/v1/messages", segment: "llm", body: (model) => ({ model, max_tokens: 256, messages }) },
  { path: "/v1/messages/count_tokens", segment: "llm", body: (model) => ({ model, messages }) },
  { path: "/v1/responses", segment: "llm", body: (model) => ({ model, input: "Hello" }) },
  { path: "/v1/responses/compact", segment: "llm", body: (model) => ({ model, input: "Hello" }) },
  { path: "/v1/responses/input_tokens", segment: "llm", body: (model) => ({ model, input: "Hello" }) },
  { path: "/v1/completions", segment: "llm", body: (model) => ({ model, prompt: "Hello" }) },
  { path: "/v1/embeddings", segment: "embedding", body: (model) => ({ model, input: "Hello" }) },
  {
    path: "/v1/rerank",
    segment: "rerank",
    body: (model) => ({ model, query: "Hello", documents: ["Hello", "Goodbye"] }),
  },
  { path: "/v1/audio/speech", segment: "tts", body: (model) => ({ model, input: "Hello", voice: "alloy" }) },
  { path: "/v1/images/generations", segment: "image", body: (model) => ({ model, prompt: "A river" }) },
  { path: "/v1/videos/generations", segment: "video", body: (model) => ({ model, prompt: "A river" }) },
  { path: "/v1/search", segment: "web", body: (model) => ({ model, query: "Hello" }) },
  { path: "/v1/web/fetch", segment: "web", body: (model) => ({ model, url: "https://example.com/" }) },
  { path: "/v1/moderations", segment: "llm", body: (model) => ({ model, input: "Hello" }) },
];

// geminiRoute is the route of Gemini's calls, whose model is in the path.
export const geminiRoute = "/v1beta/models/{model...}";

// isExample reports whether a text is that of exampleOf.
export function isExample(path: string, text: string): boolean {
  const model = /"model": "(.+)"/.exec(text)?.[1] ?? /models\/(.+):/.exec(text)?.[1] ?? "";
  return [false, true].some((stream) => exampleOf(path, model, stream) === text);
}

// exampleOf returns the body of a call, or for a Gemini call a command with its path.
export function exampleOf(path: string, model: string, stream: boolean): string {
  if (path === geminiRoute) {
    const method = stream ? "streamGenerateContent" : "generateContent";
    const body = JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hello" }] }] });
    return `curl '${location.origin}/v1beta/models/${encodeURI(model)}:${method}' -d '${body}'`;
  }
  const example = examples.find((e) => e.path === path) ?? examples[0];
  return JSON.stringify({ ...example.body(model), ...(stream && { stream: true }) }, null, 2);
}
