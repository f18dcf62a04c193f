// Anthropic's Messages format.
import { countTokens, lastText, pieces } from "./openai.mjs";

export function messages(body, model, fault) {
  const text = lastText(body.messages),
    answer = pieces(text, fault);
  const usage = { input_tokens: countTokens(text), output_tokens: answer.length };
  const message = {
    id: "msg_test",
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  if (!body.stream) {
    return { json: { ...message, content: [{ type: "text", text: answer.join("") }], stop_reason: "end_turn", usage } };
  }
  const event = (data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const events = [
    event({ type: "message_start", message: { ...message, usage: { ...usage, output_tokens: 1 } } }),
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    event({ type: "ping" }),
    ...answer.map((piece) =>
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: piece } }),
    ),
    event({ type: "content_block_stop", index: 0 }),
    event({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    }),
  ];
  return { events, terminator: event({ type: "message_stop" }) };
}

export function tokens(body) {
  return { input_tokens: countTokens(JSON.stringify(body.messages ?? [])) };
}

export function models() {
  const data = ["claude-test-1", "claude-test-2"].map((id) => ({
    type: "model",
    id,
    display_name: id,
    created_at: "2026-01-01T00:00:00Z",
  }));
  return { data, has_more: false, first_id: data[0].id, last_id: data[1].id };
}

export function error(status, message = `the upstream answers ${status}`) {
  const types = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
  };
  return { type: "error", error: { type: types[status] ?? "api_error", message }, request_id: "req_test" };
}
