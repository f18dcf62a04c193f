// A model for coding tools in the six dialects of upstreams: a script for the test
// upstream. The prompt says what it does, "@@VERB TEXT@@":
//
//	say TEXT           says "You said: TEXT"
//	run COMMAND        calls the tool for shell commands, then says "It is RESULT"
//	both ONE ;; TWO    calls it twice in one turn, then says "They are …"
//	think COMMAND      like run, but thinks first
//	look               says the types and lengths of the pictures in the conversation
//	count              says the number of its own turns in the conversation
//	full               refuses the conversation as too long until it has been summarized
//	limit              refuses the first call with 429, then says "Served"
//	refuse             refuses with 400
//	slow               says "tick " until the caller disconnects
//
// Asked for a summary, without a verb or without tools, it says "SUMMARY". A request that
// the vendor would refuse, for calls without results or thoughts with changed
// signatures, is answered with 400 and listed in faults.
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { event as frame } from "../upstream/eventstream.mjs";

const usage = { input: 31, output: 7, cached: 3 };
const thought = "Let me see.";
const summary = "SUMMARY";
const marker = /@@(\w+)(?: ([^@]*))?@@/g;
const halves = (s) => [s.slice(0, s.length >> 1), s.slice(s.length >> 1)].filter(Boolean);
const sse = (name, data) =>
  (name ? `event: ${name}\n` : "") + `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const decoded = (base64) => Buffer.from(base64, "base64").length;
const list = (v) => (Array.isArray(v) ? v : v === undefined || v === null ? [] : [v]);

// A conversation is read as {tools, turns, think}. A turn is {role, text, images,
// calls, results, thoughts}; roles are user, assistant and other. Calls and results
// have ids, where the dialect has some.
const turn = (role) => ({ role, text: "", images: [], calls: [], results: [], thoughts: [] });

// faultsOf returns what a vendor refuses in a conversation.
function faultsOf({ turns }, known) {
  const faults = [];
  let open = [];
  for (const t of turns) {
    if (t.results.length) {
      for (const r of t.results) {
        const at = open.findIndex((c) => (c.id ?? c.name) === (r.id ?? r.name));
        if (at < 0) faults.push(`result without a call: ${r.id ?? r.name}`);
        else open.splice(at, 1);
      }
    }
    if (t.role === "assistant") {
      if (open.length) faults.push(`call without a result: ${open[0].id ?? open[0].name}`);
      open = [...t.calls];
      for (const c of t.calls) {
        if (!/^[\w-]{1,64}$/.test(c.name)) faults.push(`name of a call: ${c.name}`);
        if (c.id !== undefined && !/^[\w-]{1,64}$/.test(c.id)) faults.push(`id of a call: ${c.id}`);
      }
      for (const s of t.thoughts) if (!known.has(s)) faults.push(`changed signature: ${s}`);
    } else if (open.length && !t.results.length && t.role === "user")
      faults.push(`call without a result: ${open[0].id ?? open[0].name}`);
  }
  if (open.length) faults.push(`call without a result: ${open[0].id ?? open[0].name}`);
  return faults;
}

// argumentsFor fills in a tool's schema: the command where one belongs.
function argumentsFor(schema, command) {
  const args = {};
  for (const [name, p] of Object.entries(schema?.properties ?? {})) {
    const type = String(list(p.type)[0] ?? "string").toLowerCase();
    const wanted = schema.required?.includes(name);
    if (/^(cmd|command)$/.test(name)) args[name] = type === "array" ? ["sh", "-c", command] : command;
    else if (!wanted) continue;
    else if (type === "boolean") args[name] = false;
    else if (/^(number|integer)$/.test(type)) args[name] = 30_000;
    else if (p.enum) args[name] = p.enum[0];
    else args[name] = type === "array" ? [] : "Runs a command";
  }
  return args;
}
const shells =
  /^(exec_command|shell|shell_command|run_shell_command|bash|execute_command|run_command|run_terminal_cmd|builtin_run_terminal_command|developer__shell|terminal|execute)$/i;

// decide returns what the model does: {think, say, calls}, {refuse} or {slow}.
function decide({ tools, turns }, limited) {
  let at = -1,
    verb,
    text = "";
  turns.forEach((t, i) => {
    if (t.role === "assistant") return;
    for (const m of t.text.matchAll(marker)) {
      [, verb, text = ""] = m;
      at = i;
    }
  });
  const last = turns.at(-1)?.text ?? "";
  const summarized = turns.some((t) => t.text.includes(summary));
  const asked = /summar|compact|handoff/i.test(last) && !turns.at(-1).results.length;
  if (!summarized && asked && (!tools.length || !last.match(marker)))
    return { say: `${summary} of ${turns.length} turns` };
  if (at < 0) return { say: summarized ? "Going on" : `You said: ${last.slice(-80)}` };
  const results = turns.slice(at).flatMap((t) => t.results.map((r) => r.text.trim()));
  const tool = tools.find((t) => shells.test(t.name)) ?? tools[0];
  const call = (command) => ({ name: tool.name, args: argumentsFor(tool.schema, command) });
  if (/^(run|both|think)$/.test(verb) && !tool) return { say: "There is no tool" };
  switch (verb) {
    case "say":
      return { say: `You said: ${text}` };
    case "run":
    case "think": {
      const think = verb === "think";
      return results.length ? { think, say: `It is ${results[0]}` } : { think, calls: [call(text)] };
    }
    case "both":
      return results.length
        ? { say: `They are ${results.join(" and ")}` }
        : { calls: text.split(" ;; ").map((c) => call(c)) };
    case "look":
      return { say: `I see ${turns.flatMap((t) => t.images).join(", ") || "nothing"}` };
    case "count":
      return { say: `Turn ${turns.filter((t) => t.role === "assistant").length + 1}` };
    case "full":
      return summarized ? { say: "Going on" } : { refuse: "full" };
    case "limit":
      return limited ? { say: "Served" } : { refuse: "limit" };
    case "refuse":
      return { refuse: "refuse" };
    case "slow":
      return { slow: true };
  }
  return { say: `No verb ${verb}` };
}

const parsed = (text) => {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return { invalid: text };
  }
};
const dataURL = (url) => {
  const m = /^data:([^;]+);base64,(.*)$/s.exec(url ?? "");
  return m ? `${m[1]} of ${decoded(m[2])} bytes` : `url ${url}`;
};

// A dialect has match, read, write, stream, tick and refuse:
//
//	read(body, path)        the conversation
//	write(model, a, id)     a whole answer
//	stream(model, a, id)    the texts or frames of a stream
//	tick(model, id)         a stream without end: its beginning, and what is repeated, or
//	                        returned by a function
//	refuse                  answers {status, body} by the kind of refusal
const chat = {
  match: (path) => path.endsWith("/chat/completions"),
  streamed: (b) => b.stream === true,
  read(b) {
    const turns = b.messages.map((m) => {
      const t = turn(m.role === "assistant" ? "assistant" : m.role === "user" || m.role === "tool" ? "user" : "other");
      for (const p of list(m.content)) {
        if (typeof p === "string") t.text += p;
        else if (p.type === "text") t.text += p.text;
        else if (p.type === "image_url") t.images.push(dataURL(p.image_url.url));
        else t.text += `[${p.type}]`;
      }
      if (m.role === "tool") {
        t.results.push({ id: m.tool_call_id, text: t.text });
        t.text = "";
      }
      for (const c of list(m.tool_calls))
        t.calls.push({ id: c.id, name: c.function?.name, args: parsed(c.function?.arguments) });
      if (m.reasoning_content) t.thoughts.push(m.reasoning_content);
      return t;
    });
    return {
      turns,
      tools: list(b.tools)
        .filter((t) => t.function)
        .map((t) => ({ name: t.function.name, schema: t.function.parameters })),
    };
  },
  signatures: () => [thought],
  used: {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached },
  },
  calls: (a, id) =>
    list(a.calls).map((c, i) => ({
      id: `call_${id}_${i}`,
      type: "function",
      function: { name: c.name, arguments: JSON.stringify(c.args) },
    })),
  write(model, a, id) {
    const calls = chat.calls(a, id);
    return {
      id: `chatcmpl-${id}`,
      object: "chat.completion",
      created: 1700000000,
      model,
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: a.say ?? null,
            ...(a.think ? { reasoning_content: thought } : {}),
            ...(calls.length ? { tool_calls: calls } : {}),
          },
          finish_reason: calls.length ? "tool_calls" : "stop",
        },
      ],
      usage: chat.used,
    };
  },
  chunk: (model, id, delta, finish_reason = null) =>
    sse("", {
      id: `chatcmpl-${id}`,
      object: "chat.completion.chunk",
      created: 1700000000,
      model,
      choices: [{ index: 0, delta, finish_reason }],
    }),
  stream(model, a, id, b) {
    const chunk = (delta, finish) => chat.chunk(model, id, delta, finish);
    const calls = chat.calls(a, id);
    return [
      chunk({ role: "assistant", content: "" }),
      ...(a.think ? halves(thought).map((reasoning_content) => chunk({ reasoning_content })) : []),
      ...halves(a.say ?? "").map((content) => chunk({ content })),
      ...calls.flatMap((c, index) => [
        chunk({ tool_calls: [{ index, ...c, function: { name: c.function.name, arguments: "" } }] }),
        ...halves(c.function.arguments).map((text) =>
          chunk({ tool_calls: [{ index, function: { arguments: text } }] }),
        ),
      ]),
      chunk({}, calls.length ? "tool_calls" : "stop"),
      ...(b.stream_options?.include_usage
        ? [
            sse("", {
              id: `chatcmpl-${id}`,
              object: "chat.completion.chunk",
              created: 1700000000,
              model,
              choices: [],
              usage: chat.used,
            }),
          ]
        : []),
      sse("", "[DONE]"),
    ];
  },
  tick: (model, id) => [chat.chunk(model, id, { role: "assistant", content: "tick " })],
  error: (status, message, code) => ({
    status,
    body: {
      error: { message, type: status === 429 ? "rate_limit_error" : "invalid_request_error", param: null, code },
    },
  }),
  refuse: {
    full: () =>
      chat.error(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "context_length_exceeded",
      ),
    limit: () => chat.error(429, "Rate limit reached for requests", "rate_limit_exceeded"),
    refuse: () => chat.error(400, "Invalid value: the test refuses this.", "invalid_value"),
  },
};

const messages = {
  match: (path) => path.endsWith("/messages"),
  streamed: (b) => b.stream === true,
  read(b) {
    const blocks = (t, content) => {
      for (const p of typeof content === "string" ? [{ type: "text", text: content }] : list(content)) {
        if (p.type === "text") t.text += p.text;
        else if (p.type === "image")
          t.images.push(
            p.source.type === "base64" ? `${p.source.media_type} of ${decoded(p.source.data)} bytes` : p.source.url,
          );
        else if (p.type === "tool_use") t.calls.push({ id: p.id, name: p.name, args: p.input });
        else if (p.type === "thinking") t.thoughts.push(p.signature);
        else if (p.type === "tool_result") {
          const inner = turn("user");
          blocks(inner, p.content);
          t.results.push({ id: p.tool_use_id, text: inner.text });
          t.images.push(...inner.images);
        } else t.text += `[${p.type}]`;
      }
    };
    const turns = b.messages.map((m) => {
      const t = turn(m.role);
      blocks(t, m.content);
      return t;
    });
    return {
      turns,
      tools: list(b.tools)
        .filter((t) => t.input_schema)
        .map((t) => ({ name: t.name, schema: t.input_schema })),
      wrong: b.max_tokens > 0 ? "" : "max_tokens: Field required",
    };
  },
  signatures: (id) => [Buffer.from(`messages ${id}`).toString("base64")],
  used: {
    input_tokens: usage.input - usage.cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.output,
  },
  content: (a, id) => [
    ...(a.think ? [{ type: "thinking", thinking: thought, signature: messages.signatures(id)[0] }] : []),
    ...(a.say !== undefined ? [{ type: "text", text: a.say }] : []),
    ...list(a.calls).map((c, i) => ({ type: "tool_use", id: `toolu_${id}_${i}`, name: c.name, input: c.args })),
  ],
  write: (model, a, id) => ({
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model,
    content: messages.content(a, id),
    stop_reason: a.calls ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: messages.used,
  }),
  event: (data) => sse(data.type, data),
  start: (model, id) =>
    messages.event({
      type: "message_start",
      message: { ...messages.write(model, {}, id), content: [], stop_reason: null },
    }),
  stream(model, a, id) {
    const out = [messages.start(model, id), messages.event({ type: "ping" })];
    messages.content(a, id).forEach((block, index) => {
      const delta = (d) => out.push(messages.event({ type: "content_block_delta", index, delta: d }));
      const begin = (content_block) => out.push(messages.event({ type: "content_block_start", index, content_block }));
      if (block.type === "thinking") {
        begin({ type: "thinking", thinking: "", signature: "" });
        for (const thinking of halves(block.thinking)) delta({ type: "thinking_delta", thinking });
        delta({ type: "signature_delta", signature: block.signature });
      } else if (block.type === "text") {
        begin({ type: "text", text: "" });
        for (const text of halves(block.text)) delta({ type: "text_delta", text });
      } else {
        begin({ ...block, input: {} });
        for (const partial_json of halves(JSON.stringify(block.input)))
          delta({ type: "input_json_delta", partial_json });
      }
      out.push(messages.event({ type: "content_block_stop", index }));
    });
    return [
      ...out,
      messages.event({
        type: "message_delta",
        delta: { stop_reason: a.calls ? "tool_use" : "end_turn", stop_sequence: null },
        usage: { output_tokens: usage.output },
      }),
      messages.event({ type: "message_stop" }),
    ];
  },
  tick: (model, id) => [
    messages.start(model, id) +
      messages.event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    messages.event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "tick " } }),
  ],
  error: (status, message) => ({
    status,
    body: {
      type: "error",
      error: { type: status === 429 ? "rate_limit_error" : "invalid_request_error", message },
      request_id: "req_test",
    },
  }),
  refuse: {
    full: () => messages.error(400, "prompt is too long: 9000 tokens > 8192 maximum"),
    limit: () => messages.error(429, "This request would exceed your account's rate limit."),
    refuse: () => messages.error(400, "messages: the test refuses this."),
  },
};

const responses = {
  match: (path) => path.endsWith("/responses"),
  streamed: (b) => b.stream === true,
  read(b) {
    const turns = [];
    const parts = (t, content) => {
      for (const p of typeof content === "string" ? [{ type: "input_text", text: content }] : list(content)) {
        if (/text$/.test(p.type)) t.text += p.text;
        else if (p.type === "input_image") t.images.push(dataURL(p.image_url));
        else t.text += `[${p.type}]`;
      }
    };
    // Items of the model that follow each other are one turn.
    const own = () => {
      if (turns.at(-1)?.role !== "assistant") turns.push(turn("assistant"));
      return turns.at(-1);
    };
    for (const item of typeof b.input === "string" ? [{ role: "user", content: b.input }] : list(b.input)) {
      const type = item.type ?? "message";
      if (type === "message") {
        const t = item.role === "assistant" ? own() : turn(item.role === "user" ? "user" : "other");
        parts(t, item.content);
        if (t.role !== "assistant") turns.push(t);
      } else if (type === "function_call")
        own().calls.push({ id: item.call_id, name: item.name, args: parsed(item.arguments) });
      else if (type === "custom_tool_call")
        own().calls.push({ id: item.call_id, name: item.name, args: { input: item.input } });
      else if (type === "reasoning") {
        if (item.encrypted_content) own().thoughts.push(item.encrypted_content);
      } else if (/_output$/.test(type)) {
        const t = turn("user");
        parts(t, item.output);
        turns.push({ ...t, text: "", results: [{ id: item.call_id, text: t.text }] });
      } else if (type === "compaction") turns.push({ ...turn("user"), text: summary });
      else if (type === "compaction_trigger") turns.push({ ...turn("user"), text: "compact" });
      else turns.push({ ...turn("other"), text: `[${type}]` });
    }
    return {
      turns,
      compacted: list(b.input).at?.(-1)?.type === "compaction_trigger",
      tools: list(b.tools)
        .filter((t) => t.type === "function")
        .map((t) => ({ name: t.name, schema: t.parameters })),
    };
  },
  signatures: (id) => [`gAAA${Buffer.from(`responses ${id}`).toString("base64url")}`],
  used: {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  },
  output: (a, id) => [
    ...(a.compacted ? [{ id: `cmp_${id}`, type: "compaction", encrypted_content: responses.signatures(id)[0] }] : []),
    ...(a.think
      ? [
          {
            id: `rs_${id}`,
            type: "reasoning",
            summary: [{ type: "summary_text", text: thought }],
            encrypted_content: responses.signatures(id)[0],
          },
        ]
      : []),
    ...(a.say !== undefined && !a.compacted
      ? [
          {
            id: `msg_${id}`,
            type: "message",
            status: "completed",
            role: "assistant",
            content: [{ type: "output_text", text: a.say, annotations: [] }],
          },
        ]
      : []),
    ...list(a.calls).map((c, i) => ({
      id: `fc_${id}_${i}`,
      type: "function_call",
      status: "completed",
      call_id: `call_${id}_${i}`,
      name: c.name,
      arguments: JSON.stringify(c.args),
    })),
  ],
  write: (model, a, id) => ({
    id: `resp_${id}`,
    object: "response",
    created_at: 1700000000,
    status: "completed",
    error: null,
    incomplete_details: null,
    model,
    output: responses.output(a, id),
    usage: responses.used,
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
  }),
  stream(model, a, id) {
    let n = 0;
    const out = [];
    const event = (type, data) => out.push(sse(type, { type, sequence_number: n++, ...data }));
    const whole = responses.write(model, a, id);
    const begun = { ...whole, status: "in_progress", output: [], usage: null };
    event("response.created", { response: begun });
    event("response.in_progress", { response: begun });
    whole.output.forEach((item, output_index) => {
      const at = { item_id: item.id, output_index };
      if (item.type === "message") {
        const [part] = item.content;
        event("response.output_item.added", { output_index, item: { ...item, status: "in_progress", content: [] } });
        event("response.content_part.added", { ...at, content_index: 0, part: { ...part, text: "" } });
        for (const delta of halves(part.text)) event("response.output_text.delta", { ...at, content_index: 0, delta });
        event("response.output_text.done", { ...at, content_index: 0, text: part.text });
        event("response.content_part.done", { ...at, content_index: 0, part });
      } else if (item.type === "function_call") {
        event("response.output_item.added", { output_index, item: { ...item, status: "in_progress", arguments: "" } });
        for (const delta of halves(item.arguments)) event("response.function_call_arguments.delta", { ...at, delta });
        event("response.function_call_arguments.done", { ...at, name: item.name, arguments: item.arguments });
      } else if (item.type === "reasoning") {
        const [part] = item.summary;
        event("response.output_item.added", { output_index, item: { ...item, summary: [] } });
        event("response.reasoning_summary_part.added", { ...at, summary_index: 0, part: { ...part, text: "" } });
        for (const delta of halves(part.text))
          event("response.reasoning_summary_text.delta", { ...at, summary_index: 0, delta });
        event("response.reasoning_summary_text.done", { ...at, summary_index: 0, text: part.text });
        event("response.reasoning_summary_part.done", { ...at, summary_index: 0, part });
      } else event("response.output_item.added", { output_index, item });
      event("response.output_item.done", { output_index, item });
    });
    event("response.completed", { response: whole });
    return out;
  },
  tick(model, id) {
    const whole = { ...responses.write(model, {}, id), status: "in_progress", usage: null };
    const item = { id: `msg_${id}`, type: "message", status: "in_progress", role: "assistant", content: [] };
    const at = { item_id: item.id, output_index: 0, content_index: 0 };
    let n = 0;
    const event = (type, data) => sse(type, { type, sequence_number: n++, ...data });
    return [
      event("response.created", { response: whole }) +
        event("response.output_item.added", { output_index: 0, item }) +
        event("response.content_part.added", { ...at, part: { type: "output_text", text: "", annotations: [] } }),
      () => event("response.output_text.delta", { ...at, delta: "tick " }),
    ];
  },
  refuse: {
    full: () =>
      chat.error(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
      ),
    limit: chat.refuse.limit,
    refuse: chat.refuse.refuse,
  },
};

const gemini = {
  match: (path) => /:(streamG|g)enerateContent$/.test(path),
  streamed: (_, path) => path.includes(":stream"),
  read(b) {
    const turns = b.contents.map((c) => {
      const t = turn(c.role === "model" ? "assistant" : "user");
      for (const p of c.parts) {
        if (p.thoughtSignature && p.thoughtSignature !== "skip_thought_signature_validator")
          t.thoughts.push(p.thoughtSignature);
        if (p.functionCall) t.calls.push({ name: p.functionCall.name, args: p.functionCall.args });
        else if (p.functionResponse) {
          const { id } = p.functionResponse;
          if (id && t.results.some((r) => r.call === id)) continue; // Google takes repeated ones
          const r = p.functionResponse.response;
          const value = r.output ?? r.result ?? r.error ?? r;
          t.results.push({
            call: id,
            name: p.functionResponse.name,
            text: typeof value === "string" ? value : JSON.stringify(value),
          });
        } else if (p.inlineData) t.images.push(`${p.inlineData.mimeType} of ${decoded(p.inlineData.data)} bytes`);
        else if (!p.thought) t.text += p.text ?? "";
      }
      return t;
    });
    return {
      turns,
      tools: list(b.tools)
        .flatMap((t) => list(t.functionDeclarations))
        .map((f) => ({ name: f.name, schema: f.parametersJsonSchema ?? f.parameters })),
    };
  },
  signatures: (id) => [Buffer.from(`gemini ${id}`).toString("base64")],
  parts: (a, id) => [
    ...(a.think ? [{ text: thought, thought: true }] : []),
    ...halves(a.say ?? "").map((text) => ({ text })),
    ...list(a.calls).map((c, i) => ({
      functionCall: { name: c.name, args: c.args },
      ...(i === 0 ? { thoughtSignature: gemini.signatures(id)[0] } : {}),
    })),
  ],
  answer: (model, parts, id, done) => ({
    candidates: [{ content: { parts, role: "model" }, ...(done ? { finishReason: "STOP" } : {}), index: 0 }],
    usageMetadata: {
      promptTokenCount: usage.input,
      cachedContentTokenCount: usage.cached,
      candidatesTokenCount: usage.output,
      totalTokenCount: usage.input + usage.output,
    },
    modelVersion: model,
    responseId: id,
  }),
  write: (model, a, id) => gemini.answer(model, gemini.parts(a, id), id, true),
  stream: (model, a, id) =>
    gemini.parts(a, id).map((p, i, all) => sse("", gemini.answer(model, [p], id, i === all.length - 1))),
  tick: (model, id) => [sse("", gemini.answer(model, [{ text: "tick " }], id))],
  error: (code, message, status, details = []) => ({
    status: code,
    body: { error: { code, message, status, details } },
  }),
  refuse: {
    full: () =>
      gemini.error(
        400,
        "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
        "INVALID_ARGUMENT",
      ),
    limit: () =>
      gemini.error(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED", [
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "0.2s" },
      ]),
    refuse: () => gemini.error(400, "Request contains an invalid argument.", "INVALID_ARGUMENT"),
  },
};

const converse = {
  match: (path) => /\/converse(-stream)?$/.test(path),
  streamed: (_, path) => path.endsWith("-stream"),
  read(b) {
    const turns = b.messages.map((m) => {
      const t = turn(m.role);
      for (const p of m.content) {
        if (p.text !== undefined) t.text += p.text;
        else if (p.image) t.images.push(`image/${p.image.format} of ${decoded(p.image.source.bytes)} bytes`);
        else if (p.toolUse) t.calls.push({ id: p.toolUse.toolUseId, name: p.toolUse.name, args: p.toolUse.input });
        else if (p.toolResult)
          t.results.push({
            id: p.toolResult.toolUseId,
            text: p.toolResult.content.map((c) => c.text ?? JSON.stringify(c.json)).join(""),
          });
        else if (p.reasoningContent?.reasoningText) t.thoughts.push(p.reasoningContent.reasoningText.signature);
      }
      return t;
    });
    const roles = b.messages.map((m) => m.role);
    return {
      turns,
      tools: list(b.toolConfig?.tools)
        .filter((t) => t.toolSpec)
        .map(({ toolSpec: t }) => ({ name: t.name, schema: t.inputSchema.json })),
      wrong: roles.some((r, i) => r !== (i % 2 ? "assistant" : "user")) ? "roles must alternate" : "",
    };
  },
  signatures: (id) => [Buffer.from(`converse ${id}`).toString("base64")],
  used: {
    inputTokens: usage.input - usage.cached,
    outputTokens: usage.output,
    totalTokens: usage.input + usage.output,
    cacheReadInputTokens: usage.cached,
    cacheWriteInputTokens: 0,
  },
  content: (a, id) => [
    ...(a.think
      ? [{ reasoningContent: { reasoningText: { text: thought, signature: converse.signatures(id)[0] } } }]
      : []),
    ...(a.say !== undefined ? [{ text: a.say }] : []),
    ...list(a.calls).map((c, i) => ({ toolUse: { toolUseId: `tooluse_${id}_${i}`, name: c.name, input: c.args } })),
  ],
  write: (_, a, id) => ({
    output: { message: { role: "assistant", content: converse.content(a, id) } },
    stopReason: a.calls ? "tool_use" : "end_turn",
    usage: converse.used,
    metrics: { latencyMs: 12 },
  }),
  stream(_, a, id) {
    const out = [frame("messageStart", { role: "assistant" })];
    converse.content(a, id).forEach((block, contentBlockIndex) => {
      const delta = (d) => out.push(frame("contentBlockDelta", { contentBlockIndex, delta: d }));
      if (block.toolUse) {
        const { toolUseId, name, input } = block.toolUse;
        out.push(frame("contentBlockStart", { contentBlockIndex, start: { toolUse: { toolUseId, name } } }));
        for (const text of halves(JSON.stringify(input))) delta({ toolUse: { input: text } });
      } else if (block.text !== undefined) for (const text of halves(block.text)) delta({ text });
      else {
        const { text, signature } = block.reasoningContent.reasoningText;
        delta({ reasoningContent: { text } });
        delta({ reasoningContent: { signature } });
      }
      out.push(frame("contentBlockStop", { contentBlockIndex }));
    });
    out.push(frame("messageStop", { stopReason: a.calls ? "tool_use" : "end_turn" }));
    out.push(frame("metadata", { usage: converse.used, metrics: { latencyMs: 12 } }));
    return out;
  },
  type: "application/vnd.amazon.eventstream",
  tick: () => [
    frame("messageStart", { role: "assistant" }),
    frame("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "tick " } }),
  ],
  error: (status, type, message) => ({ status, headers: { "x-amzn-errortype": type }, body: { message } }),
  refuse: {
    full: () =>
      converse.error(
        400,
        "ValidationException",
        "The model returned the following errors: Input is too long for requested model.",
      ),
    limit: () => converse.error(429, "ThrottlingException", "Too many requests, please wait before trying again."),
    refuse: () => converse.error(400, "ValidationException", "The test refuses this."),
  },
};

const cohere = {
  match: (path) => path.endsWith("/v2/chat"),
  streamed: (b) => b.stream === true,
  read: (b) => chat.read(b),
  signatures: () => [],
  used: {
    billed_units: { input_tokens: usage.input, output_tokens: usage.output },
    tokens: { input_tokens: usage.input, output_tokens: usage.output },
    cached_tokens: usage.cached,
  },
  write(_, a, id) {
    const calls = chat.calls(a, id);
    return {
      id,
      finish_reason: calls.length ? "TOOL_CALL" : "COMPLETE",
      message: {
        role: "assistant",
        ...(a.say !== undefined || (a.think && !calls.length)
          ? {
              content: [
                ...(a.think ? [{ type: "thinking", thinking: thought }] : []),
                ...(a.say !== undefined ? [{ type: "text", text: a.say }] : []),
              ],
            }
          : {}),
        ...(calls.length ? { tool_calls: calls, ...(a.think ? { tool_plan: thought } : {}) } : {}),
      },
      usage: cohere.used,
    };
  },
  stream(_, a, id) {
    const event = (type, more) => sse(type, { type, ...more });
    const out = [
      event("message-start", {
        id,
        delta: { message: { role: "assistant", content: [], tool_plan: "", tool_calls: [], citations: [] } },
      }),
    ];
    if (a.calls) {
      if (a.think) out.push(event("tool-plan-delta", { delta: { message: { tool_plan: thought } } }));
      chat.calls(a, id).forEach((c, index) => {
        const begin = { ...c, function: { name: c.function.name, arguments: "" } };
        out.push(event("tool-call-start", { index, delta: { message: { tool_calls: begin } } }));
        for (const text of halves(c.function.arguments))
          out.push(
            event("tool-call-delta", { index, delta: { message: { tool_calls: { function: { arguments: text } } } } }),
          );
        out.push(event("tool-call-end", { index }));
      });
    } else {
      out.push(
        event("content-start", { index: 0, delta: { message: { content: { type: "text", text: "" } } } }),
        ...halves(a.say).map((text) => event("content-delta", { index: 0, delta: { message: { content: { text } } } })),
        event("content-end", { index: 0 }),
      );
    }
    out.push(
      event("message-end", { delta: { finish_reason: a.calls ? "TOOL_CALL" : "COMPLETE", usage: cohere.used } }),
    );
    return out;
  },
  tick: (_, id) => [
    sse("message-start", { type: "message-start", id, delta: { message: { role: "assistant", content: [] } } }) +
      sse("content-start", {
        type: "content-start",
        index: 0,
        delta: { message: { content: { type: "text", text: "" } } },
      }),
    sse("content-delta", { type: "content-delta", index: 0, delta: { message: { content: { text: "tick " } } } }),
  ],
  error: (status, message) => ({ status, body: { id: "e", message } }),
  refuse: {
    full: () => cohere.error(400, "too many tokens: total number of tokens in the prompt exceeds the limit of 8192"),
    limit: () => cohere.error(429, "You are past the per minute request limit, please wait and try again later."),
    refuse: () => cohere.error(400, "invalid request: the test refuses this."),
  },
};

const dialects = { chat, messages, responses, gemini, converse, cohere };

const accountOf = (headers) =>
  headers["x-goog-api-key"] ?? headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");

// model returns the script. Its seen are the conversations {dialect, account, turns,
// tools, path, request}, its faults what a vendor would have refused; account is the
// credential. clear() empties both. ids are the models that every vendor lists.
export function model(ids = []) {
  const issued = new Set(),
    refused = new Set();
  let n = 0;
  const script = (request) => {
    const path = request.path.split("?")[0];
    if (request.method === "GET" && /\/models$/.test(path)) return lists(ids, request.host);
    if (request.method !== "POST") return null;
    const [dialect, d] = Object.entries(dialects).find(([, x]) => x.match(path)) ?? [];
    if (!d) return null;
    const b = request.json;
    const compatible = path.startsWith("/v1/");
    if (dialect === "responses" && compatible && request.host.startsWith("127.0.0.1"))
      return { status: 404, body: '{"detail":"Not Found"}' };
    const reply = ({ status, headers, body }) => ({
      status,
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    const q = d.read(b, path);
    const account = accountOf(request.headers);
    script.seen.push({ dialect, account, ...q, path, request });
    const faults = q.wrong ? [q.wrong] : faultsOf(q, issued);
    if (faults.length) {
      script.faults.push(...faults.map((f) => `${dialect}: ${f}`));
      return reply({ ...d.refuse.refuse(), body: chat.error(400, `The vendor refuses: ${faults}`).body });
    }
    const a = decide(q, refused.has(account));
    if (a.refuse) {
      const answer = d.refuse[a.refuse]();
      if (a.refuse === "limit") {
        refused.add(account);
        answer.headers = { ...answer.headers, "retry-after": "1" };
      }
      return reply(answer);
    }
    refused.delete(account);
    const id = `t${++n}`;
    const name = b.model ?? "m";
    if (a.think) for (const s of d.signatures(id)) issued.add(s);
    if (a.calls) for (const s of d.signatures(id)) issued.add(s);
    if (q.compacted) a.compacted = true;
    if (a.compacted) for (const s of d.signatures(id)) issued.add(s);
    const headers = { "content-type": d.type ?? "text/event-stream" };
    if (a.slow) return { headers, body: Readable.from(endless(d.tick(name, id))) };
    if (!d.streamed(b, path)) return reply({ status: 200, body: d.write(name, a, id) });
    const pieces = d.stream(name, a, id, b);
    return { headers, body: d.type ? Buffer.concat(pieces) : pieces.join("") };
  };
  script.seen = [];
  script.faults = [];
  script.clear = () => {
    script.seen.length = script.faults.length = 0;
    refused.clear();
  };
  return script;
}

// lists is a list of models that can be read as each vendor's.
const lists = (ids, host) => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    object: "list",
    data: ids.map((id) => ({ id, type: "model", object: "model", created: 1, created_at: "2026-01-01T00:00:00Z" })),
    has_more: false,
    models: ids.map((id) => ({
      name: host === "api.cohere.com" ? id : `models/${id}`,
      supportedGenerationMethods: ["generateContent"],
    })),
  }),
});

async function* endless([first, next = first]) {
  yield first;
  for (;;) {
    yield typeof next === "function" ? next() : next;
    await sleep(20);
  }
}
