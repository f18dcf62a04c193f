// The translation of streams that weir is compared with, in plain JavaScript:
// a worker that takes OpenAI's chat and asks an Anthropic upstream, and the
// other way round. It has no keys, accounts, usage or time limits, and writes
// the bytes that weir writes: bench.mjs checks that.
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

export default {
  async fetch(request, env) {
    const body = await request.json(),
      chat = new URL(request.url).pathname === "/v1/chat/completions";
    const upstream = await fetch(env.UPSTREAM + (chat ? "/v1/messages" : "/v1/chat/completions"), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": "bench-upstream-key",
        "anthropic-version": "2023-06-01",
      },
      body: JSON.stringify(chat ? toMessages(body) : toChat(body)),
    });
    return new Response(
      upstream.body.pipeThrough(through(chat ? new ToChat(body.model) : new ToMessages(body.model))),
      { headers: { "content-type": "text/event-stream; charset=utf-8" } },
    );
  },
};
