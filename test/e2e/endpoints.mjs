// The endpoints of the data plane, for tests that go through all of them.
import { compatible } from "./gateway.mjs";

const messages = [{ role: "user", content: "Hello" }];
// calls are the endpoints with a valid body each. "up" is the prefix of a
// server with OpenAI's shapes, "an" of one with Anthropic's; videos are xAI's.
export const calls = [
  ["/v1/embeddings", { model: "up/m", input: "a" }],
  ["/v1/chat/completions", { model: "up/m", messages }],
  ["/v1/chat/completions", { model: "up/m", messages, stream: true }],
  ["/v1/messages", { model: "up/m", max_tokens: 9, messages }],
  ["/v1/messages", { model: "an/m", max_tokens: 9, messages, stream: true }],
  ["/v1/responses", { model: "up/m", input: "Hello" }],
  ["/v1/audio/speech", { model: "up/m", input: "Hello", voice: "v" }],
  ["/v1/images/generations", { model: "up/m", prompt: "a" }],
  ["/v1/videos/generations", { model: "xai/m", prompt: "a" }],
  ["/v1/moderations", { model: "up/m", input: "a" }],
];

// answer is an upstream's answer to each of them, for the test upstream's
// script.
export function answer(req, headers = {}) {
  const p = req.path.split("?")[0],
    ends = (s) => p.endsWith(s),
    ok = (type, body) => ({
      status: 200,
      headers: { "content-type": type, ...headers },
      body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
  const j = (v) => ok("application/json", v);
  if (ends("/embeddings"))
    return j({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: "AACAPwAAAEA=" }],
      model: "m",
      usage: { prompt_tokens: 1, total_tokens: 1 },
    });
  if (ends("/chat/completions")) {
    const base = { id: "c", created: 1, model: "m" };
    if (!req.json?.stream)
      return j({
        ...base,
        object: "chat.completion",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "a", refusal: null },
            finish_reason: "stop",
            logprobs: null,
          },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      });
    const chunk = (delta, finish_reason = null) =>
      `data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    return ok("text/event-stream", chunk({ role: "assistant", content: "a" }) + chunk({}, "stop") + "data: [DONE]\n\n");
  }
  if (ends("/messages")) {
    const base = { id: "m", type: "message", role: "assistant", model: "m" };
    if (!req.json?.stream)
      return j({
        ...base,
        content: [{ type: "text", text: "a" }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      });
    const e = (v) => `event: ${v.type}\ndata: ${JSON.stringify(v)}\n\n`;
    return ok(
      "text/event-stream",
      e({
        type: "message_start",
        message: {
          ...base,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      }) +
        e({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }) +
        e({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "a" } }) +
        e({ type: "content_block_stop", index: 0 }) +
        e({
          type: "message_delta",
          delta: { stop_reason: "end_turn", stop_sequence: null },
          usage: { output_tokens: 1 },
        }) +
        e({ type: "message_stop" }),
    );
  }
  if (ends("/responses"))
    return j({
      id: "resp_1",
      object: "response",
      created_at: 1,
      status: "completed",
      model: "m",
      output: [
        {
          type: "message",
          id: "i",
          status: "completed",
          role: "assistant",
          content: [{ type: "output_text", text: "a", annotations: [] }],
        },
      ],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    });
  if (ends("/audio/speech")) return ok("audio/mpeg", "sound");
  if (ends("/images/generations")) return j({ created: 1, data: [{ b64_json: "AAAA" }] });
  if (ends("/videos/generations")) return j({ request_id: "job-1" });
  if (ends("/moderations"))
    return j({ id: "modr-1", model: "m", results: [{ flagged: false, categories: {}, category_scores: {} }] });
  if (ends("/models")) return j({ object: "list", data: [{ id: "m", object: "model", created: 1, owned_by: "o" }] });
  return { status: 404, body: "{}" };
}

// accounts are the connections that the calls need, all with one credential.
export const accounts = (up, key) => [
  compatible(up, { apiKey: key }),
  { ...compatible(up, { prefix: "an", apiKey: key }), provider: "anthropic-compatible-0123abcd" },
  { provider: "xai", apiKey: key },
];
