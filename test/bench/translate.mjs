// The translation of streams that weir is compared with, in plain JavaScript: a
// worker that takes OpenAI's chat and asks an Anthropic upstream, the other way
// round, and one that takes Responses and asks either. It has no keys, accounts,
// usage or time limits, and writes the bytes that weir writes: bench.mjs checks
// that.
const enc = new TextEncoder();
const sse = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const stops = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};
const reasons = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use", content_filter: "refusal" };
const id = () => crypto.randomUUID().replaceAll("-", "").slice(0, 17);

// ToChat turns the events of a Messages stream into chunks of a chat stream.
class ToChat {
  constructor(model) {
    this.base = {
      id: "chatcmpl-" + id(),
      object: "chat.completion.chunk",
      created: Math.floor(Date.now() / 1000),
      model,
    };
    this.calls = new Map();
    this.finish = null;
  }

  chunk(delta, finish = null) {
    return `data: ${JSON.stringify({ ...this.base, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  }

  event(text) {
    const e = JSON.parse(text);
    switch (e.type) {
      case "content_block_delta":
        if (e.delta.type === "text_delta") return this.chunk({ content: e.delta.text });
        if (e.delta.type === "thinking_delta") return this.chunk({ reasoning_content: e.delta.thinking });
        if (e.delta.type === "input_json_delta")
          return this.chunk({
            tool_calls: [{ index: this.calls.get(e.index), function: { arguments: e.delta.partial_json } }],
          });
        return "";
      case "message_start":
        this.base.model = e.message.model;
        return this.chunk({ role: "assistant", content: "" });
      case "content_block_start": {
        const b = e.content_block;
        if (b.type !== "tool_use") return b.text ? this.chunk({ content: b.text }) : "";
        this.calls.set(e.index, this.calls.size);
        return this.chunk({
          tool_calls: [
            { index: this.calls.get(e.index), id: b.id, type: "function", function: { name: b.name, arguments: "" } },
          ],
        });
      }
      case "message_delta":
        this.finish = stops[e.delta.stop_reason] ?? "stop";
        return "";
      case "message_stop":
        this.done = true;
        return this.chunk({}, this.finish) + "data: [DONE]\n\n";
      case "error":
        this.done = true;
        return `data: ${JSON.stringify({ error: e.error })}\n\ndata: [DONE]\n\n`;
    }
    return "";
  }

  cut() {
    return `data: ${JSON.stringify({ error: { message: "the stream was cut", type: "server_error" } })}\n\ndata: [DONE]\n\n`;
  }
}

// ToMessages turns the chunks of a chat stream into events of a Messages stream.
class ToMessages {
  constructor(model) {
    this.model = model;
    this.block = -1; // the open one
    this.next = 0;
    this.kind = null; // of the open one: "text", "thinking" or a call's index
    this.finish = "end_turn";
    this.usage = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
  }

  // open begins a block of another kind and ends the one before.
  open(kind, block) {
    if (this.kind === kind) return "";
    const out = this.close();
    this.kind = kind;
    this.block = this.next++;
    return out + sse("content_block_start", { type: "content_block_start", index: this.block, content_block: block });
  }

  close() {
    if (this.kind === null) return "";
    this.kind = null;
    return sse("content_block_stop", { type: "content_block_stop", index: this.block });
  }

  delta(delta) {
    return sse("content_block_delta", { type: "content_block_delta", index: this.block, delta });
  }

  event(text) {
    if (text === "[DONE]") {
      this.done = true;
      return (
        this.close() +
        sse("message_delta", {
          type: "message_delta",
          delta: { stop_reason: this.finish, stop_sequence: null, stop_details: null },
          usage: this.usage,
        }) +
        sse("message_stop", { type: "message_stop" })
      );
    }
    const c = JSON.parse(text);
    if (c.error) {
      this.done = true;
      return sse("error", { type: "error", error: { type: "api_error", message: c.error.message } });
    }
    let out = "";
    if (!this.began) {
      this.began = true;
      out += sse("message_start", {
        type: "message_start",
        message: {
          id: "msg_" + id(),
          type: "message",
          role: "assistant",
          model: c.model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          stop_details: null,
          usage: this.usage,
        },
      });
      out += sse("ping", { type: "ping" });
    }
    if (c.usage) {
      const cached = c.usage.prompt_tokens_details?.cached_tokens ?? 0;
      this.usage = {
        input_tokens: c.usage.prompt_tokens - cached,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: cached,
        output_tokens: c.usage.completion_tokens,
      };
    }
    const choice = c.choices[0];
    if (!choice) return out;
    const { delta } = choice;
    if (delta.reasoning_content)
      out +=
        this.open("thinking", { type: "thinking", thinking: "", signature: "" }) +
        this.delta({ type: "thinking_delta", thinking: delta.reasoning_content });
    if (delta.content)
      out += this.open("text", { type: "text", text: "" }) + this.delta({ type: "text_delta", text: delta.content });
    for (const call of delta.tool_calls ?? []) {
      if (call.id) out += this.open(call.index, { type: "tool_use", id: call.id, name: call.function.name, input: {} });
      if (call.function.arguments)
        out += this.delta({ type: "input_json_delta", partial_json: call.function.arguments });
    }
    if (choice.finish_reason) this.finish = reasons[choice.finish_reason] ?? "end_turn";
    return out;
  }

  cut() {
    return sse("error", { type: "error", error: { type: "api_error", message: "the stream was cut" } });
  }
}

// settings are what a response repeats of a request that has none of them.
const settings = {
  instructions: null,
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: true,
  temperature: null,
  top_p: null,
  metadata: {},
  max_output_tokens: null,
  max_tool_calls: null,
  reasoning: { effort: null, summary: null },
  text: { format: { type: "text" } },
  truncation: "disabled",
};

// ToResponses writes the events of a Responses stream. The classes below it read
// those of an upstream.
class ToResponses {
  constructor(model) {
    this.id = id();
    this.created = Math.floor(Date.now() / 1000);
    this.model = model;
    this.seq = 0;
    this.items = []; // finished ones
    this.item = null; // the open one: { kind, id, text, call }
    this.status = "completed";
    this.usage = null;
  }

  frame(type, fields) {
    return sse(type, { type, sequence_number: this.seq++, ...fields });
  }

  response(type, status, error = null) {
    return this.frame(type, {
      response: {
        id: "resp_" + this.id,
        object: "response",
        created_at: this.created,
        status,
        error,
        model: this.model,
        previous_response_id: null,
        ...settings,
        store: false,
        output: status === "in_progress" ? [] : this.items,
        incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
        usage: this.usage,
      },
    });
  }

  begin(model) {
    if (this.began) return "";
    this.began = true;
    this.model = model ?? this.model;
    return this.response("response.created", "in_progress") + this.response("response.in_progress", "in_progress");
  }

  part() {
    return { type: "output_text", text: this.item.text, annotations: [], logprobs: [] };
  }

  // whole is the open item in its current state.
  whole(status) {
    const { kind, id, text, call } = this.item,
      done = status === "completed";
    if (kind === "text") return { id, type: "message", status, role: "assistant", content: done ? [this.part()] : [] };
    if (kind === "thinking") return { id, type: "reasoning", summary: done ? [{ type: "summary_text", text }] : [] };
    return { id, type: "function_call", status, arguments: text, call_id: call.id, name: call.name };
  }

  // place locates a delta.
  place(more) {
    return { item_id: this.item.id, output_index: this.items.length, ...more };
  }

  // open begins an item of another kind and ends the one before.
  open(kind, call = null) {
    if (!call && this.item?.kind === kind) return "";
    let out = this.close();
    const prefix = { text: "msg_", thinking: "rs_", call: "fc_" }[kind];
    this.item = { kind, id: `${prefix}${this.id}_${this.items.length}`, text: "", call };
    out += this.frame("response.output_item.added", {
      output_index: this.items.length,
      item: this.whole("in_progress"),
    });
    if (kind === "text")
      out += this.frame("response.content_part.added", { ...this.place({ content_index: 0 }), part: this.part() });
    if (kind === "thinking")
      out += this.frame("response.reasoning_summary_part.added", {
        ...this.place({ summary_index: 0 }),
        part: { type: "summary_text", text: "" },
      });
    return out;
  }

  text(delta) {
    const out = this.open("text");
    this.item.text += delta;
    return out + this.frame("response.output_text.delta", { ...this.place({ content_index: 0 }), delta, logprobs: [] });
  }

  thinking(delta) {
    const out = this.open("thinking");
    this.item.text += delta;
    return out + this.frame("response.reasoning_summary_text.delta", { ...this.place({ summary_index: 0 }), delta });
  }

  arguments(delta) {
    this.item.text += delta;
    return this.frame("response.function_call_arguments.delta", { ...this.place(), delta });
  }

  close() {
    if (!this.item) return "";
    const { kind, text } = this.item;
    let out = "";
    if (kind === "text") {
      const at = this.place({ content_index: 0 });
      out += this.frame("response.output_text.done", { ...at, text, logprobs: [] });
      out += this.frame("response.content_part.done", { ...at, part: this.part() });
    } else if (kind === "thinking") {
      const at = this.place({ summary_index: 0 });
      out += this.frame("response.reasoning_summary_text.done", { ...at, text });
      out += this.frame("response.reasoning_summary_part.done", { ...at, part: { type: "summary_text", text } });
    } else out += this.frame("response.function_call_arguments.done", { ...this.place(), arguments: text });
    const item = this.whole("completed");
    out += this.frame("response.output_item.done", { output_index: this.items.length, item });
    this.items.push(item);
    this.item = null;
    return out;
  }

  used(input, cached, written, output, reasoning) {
    this.usage = {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + output,
    };
  }

  end() {
    this.done = true;
    return this.close() + this.response("response." + this.status, this.status);
  }

  fail(message) {
    this.done = true;
    const out = this.frame("error", { code: null, message, param: null });
    return this.began ? out + this.response("response.failed", "failed", { code: "server_error", message }) : out;
  }

  cut() {
    return this.fail("the stream was cut");
  }
}

class ChatToResponses extends ToResponses {
  event(text) {
    if (text === "[DONE]") return this.end();
    const c = JSON.parse(text);
    if (c.error) return this.fail(c.error.message);
    let out = this.begin(c.model);
    if (c.usage)
      this.used(
        c.usage.prompt_tokens,
        c.usage.prompt_tokens_details?.cached_tokens ?? 0,
        0,
        c.usage.completion_tokens,
        c.usage.completion_tokens_details?.reasoning_tokens ?? 0,
      );
    const choice = c.choices[0];
    if (!choice) return out;
    const { delta } = choice;
    if (delta.reasoning_content) out += this.thinking(delta.reasoning_content);
    if (delta.content) out += this.text(delta.content);
    for (const call of delta.tool_calls ?? []) {
      if (call.id) out += this.open("call", { id: call.id, name: call.function.name });
      if (call.function.arguments) out += this.arguments(call.function.arguments);
    }
    if (choice.finish_reason === "length" || choice.finish_reason === "content_filter") this.status = "incomplete";
    return out;
  }
}

class MessagesToResponses extends ToResponses {
  event(text) {
    const e = JSON.parse(text);
    switch (e.type) {
      case "content_block_delta":
        if (e.delta.type === "text_delta") return this.text(e.delta.text);
        if (e.delta.type === "thinking_delta") return this.thinking(e.delta.thinking);
        if (e.delta.type === "input_json_delta") return this.arguments(e.delta.partial_json);
        return "";
      case "message_start":
        this.tokens = e.message.usage;
        return this.begin(e.message.model);
      case "content_block_start": {
        const b = e.content_block;
        if (b.type === "tool_use") return this.open("call", { id: b.id, name: b.name });
        return b.text ? this.text(b.text) : "";
      }
      case "content_block_stop":
        return this.close();
      case "message_delta": {
        this.tokens = { ...this.tokens, ...e.usage };
        const {
          input_tokens,
          output_tokens,
          cache_read_input_tokens: read = 0,
          cache_creation_input_tokens: written = 0,
        } = this.tokens;
        this.used(input_tokens + read + written, read, written, output_tokens, 0);
        if (e.delta.stop_reason === "max_tokens" || e.delta.stop_reason === "refusal") this.status = "incomplete";
        return "";
      }
      case "message_stop":
        return this.end();
      case "error":
        return this.fail(e.error.message);
    }
    return "";
  }
}

// through reads events however the bytes are cut and writes what `to` makes of them.
function through(to) {
  const dec = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      rest += dec.decode(chunk, { stream: true });
      let out = "",
        from = 0;
      for (let end; !to.done && (end = rest.indexOf("\n\n", from)) >= 0; from = end + 2) {
        for (let at = from; at < end; ) {
          let line = rest.indexOf("\n", at);
          if (line < 0 || line > end) line = end;
          if (rest.startsWith("data: ", at)) out += to.event(rest.slice(at + 6, line));
          at = line + 1;
        }
      }
      rest = rest.slice(from);
      if (out) controller.enqueue(enc.encode(out));
    },
    flush(controller) {
      if (!to.done) controller.enqueue(enc.encode(to.cut()));
    },
  });
}

const text = (content) =>
  typeof content === "string"
    ? content
    : content
        .filter((p) => p.type === "text")
        .map((p) => p.text)
        .join("");

function toMessages({ messages, max_completion_tokens, max_tokens, temperature, top_p, stop, ...body }) {
  const system = messages
    .filter((m) => m.role === "system" || m.role === "developer")
    .map((m) => text(m.content))
    .join("\n\n");
  return {
    model: body.model,
    stream: body.stream,
    max_tokens: max_completion_tokens ?? max_tokens ?? 4096,
    temperature,
    top_p,
    ...(stop ? { stop_sequences: [].concat(stop) } : {}),
    ...(system ? { system } : {}),
    messages: messages
      .filter((m) => m.role === "user" || m.role === "assistant")
      .map((m) => ({ role: m.role, content: text(m.content) })),
  };
}

function toChat({ messages, system, max_tokens, temperature, top_p, stop_sequences, ...body }) {
  return {
    model: body.model,
    stream: body.stream,
    stream_options: { include_usage: true },
    max_completion_tokens: max_tokens,
    temperature,
    top_p,
    stop: stop_sequences,
    messages: [
      ...(system ? [{ role: "system", content: text(system) }] : []),
      ...messages.map((m) => ({ role: m.role, content: text(m.content) })),
    ],
  };
}

// asChat turns the request of a response into that of a chat.
const asChat = ({ model, stream, input, instructions, max_output_tokens, temperature, top_p }) => ({
  model,
  stream,
  max_completion_tokens: max_output_tokens,
  temperature,
  top_p,
  messages: [
    ...(instructions ? [{ role: "system", content: instructions }] : []),
    ...(typeof input === "string"
      ? [{ role: "user", content: input }]
      : input.map((m) => ({ role: m.role, content: text(m.content) }))),
  ],
});

// translations are the requests that are served: the upstream's path and request,
// and what reads its events.
const translations = {
  "/v1/chat/completions": ["/v1/messages", toMessages, ToChat],
  "/v1/messages": ["/v1/chat/completions", toChat, ToMessages],
  "/v1/responses": ["/v1/messages", (body) => toMessages(asChat(body)), MessagesToResponses],
  "/v1/responses?chat": [
    "/v1/chat/completions",
    (body) => ({ ...asChat(body), stream_options: { include_usage: true } }),
    ChatToResponses,
  ],
};

export default {
  async fetch(request, env) {
    const body = await request.json(),
      { pathname, search } = new URL(request.url),
      [path, convert, To] = translations[pathname + search];
    const upstream = await fetch(env.UPSTREAM + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": "bench-upstream-key",
        "anthropic-version": "2023-06-01",
      },
      body: JSON.stringify(convert(body)),
    });
    return new Response(upstream.body.pipeThrough(through(new To(body.model))), {
      headers: { "content-type": "text/event-stream; charset=utf-8" },
    });
  },
};
