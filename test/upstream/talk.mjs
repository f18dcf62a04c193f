// A model that follows rules, in the four chat dialects of clients: a script for the test
// upstream (start({ script: talk() })). It
//
//	calls the first tool it is given with {"city":"Paris"}, and with degrees if
//	the tool has them, once,
//	says what the tool answered,
//	returns {"city":"Paris","degrees":21} where JSON by a schema is asked for,
//	thinks first where it is asked to,
//	else repeats what it was told.
//
// Calls that are no chat are left to the test upstream.
const city = '{"city":"Paris"}',
  shaped = '{"city":"Paris","degrees":21}';
const text = (c) =>
  typeof c === "string" ? c : (c ?? []).map((p) => p.text ?? (p.content ? text(p.content) : "")).join("");
const halves = (s) => [s.slice(0, s.length >> 1), s.slice(s.length >> 1)];

// turn decides what the model does: {think, call, args} or {think, say}. tools
// are pairs of a name and a schema.
function turn({ tools, result, schema, think, last }) {
  if (result !== undefined) return { think, say: `It is ${result}` };
  if (tools?.length) return { think, call: tools[0][0], args: tools[0][1]?.properties?.degrees ? shaped : city };
  return { think, say: schema ? shaped : `You said: ${last}` };
}

const usage = { in: 11, out: 7, cached: 3, thought: 2 };
const sse = (name, data) =>
  (name ? `event: ${name}\n` : "") + `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const events = (list) => ({ headers: { "content-type": "text/event-stream" }, body: list.join("") });
const json = (v, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(v),
});

function chat(b) {
  const last = b.messages.at(-1);
  const t = turn({
    tools: b.tools?.map((x) => [x.function.name, x.function.parameters]),
    result: last.role === "tool" ? text(last.content) : undefined,
    schema: b.response_format?.type === "json_schema",
    think: b.reasoning_effort && b.reasoning_effort !== "none",
    last: text(last.content),
  });
  const base = { id: "chatcmpl-talk", created: 1700000000, model: b.model };
  const used = {
    prompt_tokens: usage.in,
    completion_tokens: usage.out,
    total_tokens: usage.in + usage.out,
    prompt_tokens_details: { cached_tokens: usage.cached },
    completion_tokens_details: { reasoning_tokens: usage.thought },
  };
  const call = (a) => ({ id: "call_talk1", type: "function", function: { name: t.call, arguments: a } });
  const finish = t.call ? "tool_calls" : "stop";
  if (!b.stream) {
    const message = {
      role: "assistant",
      content: t.say ?? null,
      refusal: null,
      ...(t.think ? { reasoning_content: "Let me see." } : {}),
      ...(t.call ? { tool_calls: [call(t.args)] } : {}),
    };
    return json({
      ...base,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: finish, logprobs: null }],
      usage: used,
    });
  }
  const chunk = (delta, done = null) =>
    sse("", {
      ...base,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: done }],
      usage: null,
    });
  const list = [chunk({ role: "assistant", content: "" })];
  if (t.think) list.push(chunk({ reasoning_content: "Let me see." }));
  if (t.call)
    list.push(
      chunk({ tool_calls: [{ index: 0, ...call("") }] }),
      ...halves(t.args).map((a) => chunk({ tool_calls: [{ index: 0, function: { arguments: a } }] })),
    );
  else list.push(...halves(t.say).map((content) => chunk({ content })));
  list.push(chunk({}, finish));
  if (b.stream_options?.include_usage)
    list.push(sse("", { ...base, object: "chat.completion.chunk", choices: [], usage: used }));
  return events([...list, sse("", "[DONE]")]);
}

function messages(b) {
  const last = b.messages.at(-1);
  const done = Array.isArray(last.content) ? last.content.find((x) => x.type === "tool_result") : undefined;
  const t = turn({
    tools: b.tools?.map((x) => [x.name, x.input_schema]),
    result: done && text(done.content),
    schema: !!b.output_config?.format,
    think: ["enabled", "adaptive"].includes(b.thinking?.type),
    last: text(last.content),
  });
  const used = {
    input_tokens: usage.in - usage.cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.out,
  };
  const base = { id: "msg_talk", type: "message", role: "assistant", model: b.model };
  const blocks = [];
  if (t.think) blocks.push({ type: "thinking", thinking: "Let me see.", signature: "c2lnbmF0dXJl" });
  blocks.push(
    t.call
      ? { type: "tool_use", id: "toolu_talk1", name: t.call, input: JSON.parse(t.args) }
      : { type: "text", text: t.say },
  );
  const stop = t.call ? "tool_use" : "end_turn";
  if (!b.stream) return json({ ...base, content: blocks, stop_reason: stop, stop_sequence: null, usage: used });
  const list = [],
    event = (data) => list.push(sse(data.type, data));
  event({
    type: "message_start",
    message: { ...base, content: [], stop_reason: null, stop_sequence: null, usage: { ...used, output_tokens: 1 } },
  });
  event({ type: "ping" });
  blocks.forEach((block, index) => {
    const delta = (d) => event({ type: "content_block_delta", index, delta: d });
    if (block.type === "thinking") {
      event({ type: "content_block_start", index, content_block: { type: "thinking", thinking: "", signature: "" } });
      halves(block.thinking).forEach((thinking) => delta({ type: "thinking_delta", thinking }));
      delta({ type: "signature_delta", signature: block.signature });
    } else if (block.type === "tool_use") {
      event({ type: "content_block_start", index, content_block: { ...block, input: {} } });
      halves(t.args).forEach((partial_json) => delta({ type: "input_json_delta", partial_json }));
    } else {
      event({ type: "content_block_start", index, content_block: { type: "text", text: "" } });
      halves(block.text).forEach((x) => delta({ type: "text_delta", text: x }));
    }
    event({ type: "content_block_stop", index });
  });
  event({
    type: "message_delta",
    delta: { stop_reason: stop, stop_sequence: null },
    usage: { output_tokens: usage.out },
  });
  event({ type: "message_stop" });
  return events(list);
}

function gemini(b, path) {
  const parts = b.contents.at(-1).parts;
  const done = parts.find((p) => p.functionResponse);
  const config = b.generationConfig ?? {};
  const t = turn({
    tools: b.tools
      ?.flatMap((x) => x.functionDeclarations ?? [])
      .map((f) => [f.name, f.parametersJsonSchema ?? f.parameters]),
    result: done?.functionResponse.response.output ?? done?.functionResponse.response.result,
    schema: !!(config.responseJsonSchema ?? config.responseSchema),
    think: config.thinkingConfig?.includeThoughts,
    last: text(parts),
  });
  const list = [];
  if (t.think) list.push({ text: "Let me see.", thought: true });
  if (t.call) list.push({ functionCall: { name: t.call, args: JSON.parse(t.args) }, thoughtSignature: "R0VNSU5J" });
  else list.push(...halves(t.say).map((text) => ({ text })));
  const answer = (parts, finishReason) => ({
    candidates: [{ content: { parts, role: "model" }, ...(finishReason ? { finishReason } : {}), index: 0 }],
    usageMetadata: {
      promptTokenCount: usage.in,
      cachedContentTokenCount: usage.cached,
      candidatesTokenCount: usage.out - usage.thought,
      thoughtsTokenCount: usage.thought,
      totalTokenCount: usage.in + usage.out,
    },
    modelVersion: "gemini-talk",
    responseId: "talk",
  });
  if (!path.includes(":stream")) return json(answer(list, "STOP"));
  return events(list.map((p, i) => sse("", answer([p], i === list.length - 1 && "STOP"))));
}

let made = 0;

function responses(b, kept) {
  const input = typeof b.input === "string" ? [{ role: "user", content: b.input }] : b.input;
  const last = input.at(-1);
  const t = turn({
    tools: b.tools?.map((x) => [x.name, x.parameters]),
    result: last.type === "function_call_output" ? text(last.output) : undefined,
    schema: b.text?.format?.type === "json_schema",
    think: !!b.reasoning?.effort,
    last: text(last.content),
  });
  const id = `resp_talk${++made}`;
  const output = [];
  if (t.think)
    output.push({ id: "rs_talk", type: "reasoning", summary: [{ type: "summary_text", text: "Let me see." }] });
  output.push(
    t.call
      ? {
          id: "fc_talk",
          type: "function_call",
          status: "completed",
          call_id: "call_talk1",
          name: t.call,
          arguments: t.args,
        }
      : {
          id: "msg_talk",
          type: "message",
          status: "completed",
          role: "assistant",
          content: [{ type: "output_text", text: t.say, annotations: [] }],
        },
  );
  const used = {
    input_tokens: usage.in,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.out,
    output_tokens_details: { reasoning_tokens: usage.thought },
    total_tokens: usage.in + usage.out,
  };
  const whole = {
    id,
    object: "response",
    created_at: 1700000000,
    status: "completed",
    error: null,
    incomplete_details: null,
    model: b.model,
    output,
    usage: used,
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    previous_response_id: b.previous_response_id ?? null,
  };
  if (b.store !== false) kept.set(id, whole);
  if (!b.stream) return json(whole);
  let n = 0;
  const list = [],
    event = (type, data) => list.push(sse(type, { type, sequence_number: n++, ...data }));
  const begun = { ...whole, status: "in_progress", output: [], usage: null };
  event("response.created", { response: begun });
  event("response.in_progress", { response: begun });
  output.forEach((item, output_index) => {
    const at = { item_id: item.id, output_index };
    if (item.type === "message") {
      const part = { type: "output_text", text: "", annotations: [] };
      event("response.output_item.added", { output_index, item: { ...item, status: "in_progress", content: [] } });
      event("response.content_part.added", { ...at, content_index: 0, part });
      for (const delta of halves(t.say))
        event("response.output_text.delta", { ...at, content_index: 0, delta, logprobs: [] });
      event("response.output_text.done", { ...at, content_index: 0, text: t.say, logprobs: [] });
      event("response.content_part.done", { ...at, content_index: 0, part: { ...part, text: t.say } });
    } else if (item.type === "function_call") {
      event("response.output_item.added", { output_index, item: { ...item, status: "in_progress", arguments: "" } });
      for (const delta of halves(t.args)) event("response.function_call_arguments.delta", { ...at, delta });
      event("response.function_call_arguments.done", { ...at, name: item.name, arguments: t.args });
    } else {
      event("response.output_item.added", { output_index, item: { ...item, summary: [] } });
    }
    event("response.output_item.done", { output_index, item });
  });
  event("response.completed", { response: whole });
  return events(list);
}

// talk returns the script. `kept` of the result are the stored responses, by
// key and id: another account's are not there.
export function talk({ responsesEndpoint = true } = {}) {
  const accounts = new Map();
  const script = (req) => {
    const path = req.path.split("?")[0],
      b = req.json;
    const key = req.headers.authorization ?? req.headers["x-api-key"];
    if (!accounts.has(key)) accounts.set(key, new Map());
    const kept = accounts.get(key);
    if (req.method === "POST" && typeof b?.model === "string" && b.model.includes("!")) return null; // a fault
    if (req.method === "POST" && path.endsWith("/chat/completions")) return chat(b);
    if (req.method === "POST" && path.endsWith("/messages")) return messages(b);
    if (req.method === "POST" && /:(streamG|g)enerateContent$/.test(path)) return gemini(b, path);
    const id = /\/responses\/(resp_[^/]+)(\/cancel|\/input_items)?$/.exec(path);
    if ((id || path.endsWith("/responses")) && !responsesEndpoint) return json({ detail: "Not Found" }, 404);
    if (req.method === "POST" && path.endsWith("/responses")) {
      if (b.previous_response_id && !kept.has(b.previous_response_id))
        return json(
          {
            error: {
              message: "no such response",
              type: "invalid_request_error",
              param: "previous_response_id",
              code: "previous_response_not_found",
            },
          },
          400,
        );
      return responses(b, kept);
    }
    if (!id) return null;
    if (!kept.has(id[1]))
      return json(
        {
          error: {
            message: `Response with id '${id[1]}' not found.`,
            type: "invalid_request_error",
            param: null,
            code: null,
          },
        },
        404,
      );
    if (req.method === "DELETE") {
      kept.delete(id[1]);
      return json({ id: id[1], object: "response", deleted: true });
    }
    if (id[2] === "/cancel") return json({ ...kept.get(id[1]), status: "cancelled" });
    if (id[2]) return json({ object: "list", data: [], first_id: null, last_id: null, has_more: false });
    return json(kept.get(id[1]));
  };
  script.kept = accounts;
  return script;
}
