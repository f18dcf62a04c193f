// OpenAI's wire format, with answers that are functions of the request.
import { createHash } from "node:crypto";

// vector is the embedding of a text or a list of tokens: float32 values made
// from a hash of it, so that a test can identify an answer.
export function vector(input, dimensions = 8) {
  const text = typeof input === "string" ? input : JSON.stringify(input);
  let s = createHash("sha256").update(text).digest().readUInt32LE(0) || 1;
  const v = new Float32Array(dimensions);
  for (let i = 0; i < dimensions; i++) {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    v[i] = (s >> 0) / 2 ** 31;
  }
  return v;
}

export const base64 = (v) => Buffer.from(v.buffer, v.byteOffset, v.byteLength).toString("base64");

// inputs returns the items of an embeddings input: one token array is one item.
export function inputs(input) {
  if (!Array.isArray(input) || typeof input[0] === "number") return [input];
  return input;
}

export const countTokens = (x) => (typeof x === "string" ? Math.ceil(x.length / 4) : Array.isArray(x) ? x.length : 0);

export function embeddings(body, model, fault) {
  const items = inputs(body.input),
    wide = body.dimensions ?? 8;
  const asBase64 = body.encoding_format === "base64" && !fault.floats;
  let data = items.map((x, index) => {
    const v = vector(x, wide);
    const item = { object: "embedding", index, embedding: asBase64 ? base64(v) : [...v] };
    if (fault["no-index"]) delete item.index;
    return item;
  });
  if (fault.reverse) data = data.reverse();
  const tokens = items.reduce((n, x) => n + countTokens(x), 0);
  const answer = { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
  if (fault["no-usage"]) delete answer.usage;
  return answer;
}

// lastText is the text of the last user message.
export function lastText(messages = []) {
  const m = messages.findLast((x) => x.role === "user");
  if (typeof m?.content === "string") return m.content;
  return (m?.content ?? []).map((p) => p.text ?? "").join("");
}

// pieces are the deltas of a streamed answer: the words of the answer, or as
// many numbered ones as were asked for.
export function pieces(text, fault) {
  if (fault.chunks !== undefined) return Array.from({ length: fault.chunks }, (_, i) => `w${i} `);
  return ("You said: " + text).match(/\S+\s*/g);
}

const created = 1700000000;
const idOf = (body) =>
  "chatcmpl-" +
  createHash("sha256")
    .update(JSON.stringify(body.messages ?? body.input ?? ""))
    .digest("hex")
    .slice(0, 16);

export function chat(body, model, fault) {
  const text = lastText(body.messages),
    answer = pieces(text, fault);
  const usage = {
    prompt_tokens: countTokens(text),
    completion_tokens: answer.length,
    total_tokens: countTokens(text) + answer.length,
  };
  const base = { id: idOf(body), created, model };
  if (!body.stream) {
    return {
      json: {
        ...base,
        object: "chat.completion",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: answer.join(""), refusal: null },
            finish_reason: "stop",
            logprobs: null,
          },
        ],
        usage,
      },
    };
  }
  const withUsage = body.stream_options?.include_usage;
  const chunk = (delta, finish = null, more = {}) =>
    `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }], ...(withUsage ? { usage: null } : {}), ...more })}\n\n`;
  const events = [
    chunk({ role: "assistant", content: "" }),
    ...answer.map((content) => chunk({ content })),
    chunk({}, "stop"),
  ];
  if (withUsage)
    events.push(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
  return { events, terminator: "data: [DONE]\n\n" };
}

export const modelIds = [
  "test-embed",
  "test-embed-large",
  "test-chat",
  "test-image",
  "test-tts",
  "vendor/nested-model",
];

export function models() {
  return { object: "list", data: modelIds.map((id) => ({ id, object: "model", created, owned_by: "test" })) };
}

export function error(status, message = `the upstream answers ${status}`, code = null) {
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  return { error: { message, type, param: null, code } };
}
