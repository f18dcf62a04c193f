// How tools speak to a gateway, by dialect: what they send, how they read a stream, and
// what they send back in the next turn. Streams are read strictly: an event that is
// missing, out of order or of another form fails the test.
//
// A driver returns a session:
//
//	user(text, images)   adds what a person wrote; images are {type, data} in base64
//	send(options)        calls the model: {say, calls, thoughts, usage}, or {error} if
//	                     it is refused; options are {signal, on}, on(text) for each piece
//	results(texts)       adds the results of the latest calls
//	restart(text)        begins another conversation, with a text that stands for this one
import assert from "node:assert/strict";
import { connect } from "../e2e/sockets.mjs";

// events returns the events of a stream: {name, data}. Comments are left out.
async function* events(res) {
  assert.match(res.headers.get("content-type"), /^text\/event-stream/);
  let text = "";
  const utf8 = new TextDecoder();
  for await (const piece of res.body) {
    text += utf8.decode(piece, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = { name: "", data: "" };
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) event.name = line.slice(7);
        else if (line.startsWith("data: ")) event.data += line.slice(6);
        else assert.ok(line.startsWith(":"), `a line of a stream: ${line}`);
      }
      text = text.slice(end + 2);
      if (event.data) yield event;
    }
  }
  assert.equal(text, "", "the stream ends within an event");
}

async function post(url, headers, body, signal) {
  const res = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal,
  });
  if (res.ok) return { res };
  const text = await res.text();
  return { error: { status: res.status, headers: res.headers, text, body: JSON.parse(text) } };
}

const own = (tool, at) => (typeof tool.body === "function" ? tool.body(at) : (tool.body ?? {}));
const bearer = (at) => ({ authorization: `Bearer ${at.key}` });

// messages is the Anthropic API as Claude Code uses it.
function messages(tool, at) {
  let turns = [],
    calls = [];
  const session = {
    user(text, images = []) {
      const content = [
        ...images.map((i) => ({ type: "image", source: { type: "base64", media_type: i.type, data: i.data } })),
        { type: "text", text },
      ];
      turns.push({ role: "user", content });
    },
    results(texts) {
      const content = texts.map((text, i) => ({ type: "tool_result", tool_use_id: calls[i].id, content: text }));
      turns.push({ role: "user", content });
    },
    restart(text) {
      turns = [{ role: "user", content: text }];
    },
    async send({ signal, on } = {}) {
      const { res, error } = await post(
        `${at.url}/v1/messages${tool.query ?? ""}`,
        { "anthropic-version": "2023-06-01", ...tool.headers(at) },
        {
          model: at.model,
          max_tokens: 32000,
          messages: turns,
          tools: tool.tools.map((t) => ({ name: t.name, description: t.description, input_schema: t.schema })),
          stream: true,
          ...own(tool, at),
        },
        signal,
      );
      if (error) return { error };
      const content = [],
        pieces = [];
      let state = "begin",
        usage,
        stop;
      for await (const { name, data } of events(res)) {
        const e = JSON.parse(data);
        assert.equal(name, e.type);
        if (e.type === "ping") continue;
        assert.notEqual(state, "end", "an event behind message_stop");
        if (e.type === "message_start") {
          assert.equal(state, "begin");
          assert.match(e.message.id, /^\w/);
          assert.deepEqual([e.message.role, e.message.content], ["assistant", []]);
          ({ usage } = e.message);
          state = "between";
        } else if (e.type === "content_block_start") {
          assert.deepEqual([state, e.index], ["between", content.length]);
          content.push({ ...e.content_block });
          pieces.push("");
          state = "block";
        } else if (e.type === "content_block_delta") {
          assert.deepEqual([state, e.index], ["block", content.length - 1]);
          const block = content.at(-1);
          const d = e.delta;
          if (d.type === "text_delta") {
            block.text += d.text;
            on?.(d.text);
          } else if (d.type === "thinking_delta") block.thinking += d.thinking;
          else if (d.type === "signature_delta") block.signature = d.signature;
          else {
            assert.equal(d.type, "input_json_delta");
            pieces[e.index] += d.partial_json;
          }
        } else if (e.type === "content_block_stop") {
          assert.deepEqual([state, e.index], ["block", content.length - 1]);
          if (content.at(-1).type === "tool_use") content.at(-1).input = JSON.parse(pieces[e.index] || "{}");
          state = "between";
        } else if (e.type === "message_delta") {
          assert.equal(state, "between");
          stop = e.delta.stop_reason;
          usage = { ...usage, ...e.usage };
          state = "delta";
        } else {
          assert.deepEqual([e.type, state], ["message_stop", "delta"]);
          state = "end";
        }
      }
      assert.equal(state, "end", "no message_stop");
      turns.push({ role: "assistant", content });
      calls = content.filter((b) => b.type === "tool_use").map((b) => ({ id: b.id, name: b.name, args: b.input }));
      for (const c of calls) assert.match(c.id, /^[\w-]{1,64}$/);
      assert.equal(stop, calls.length ? "tool_use" : "end_turn");
      return {
        say: content.map((b) => b.text ?? "").join(""),
        calls,
        thoughts: content.filter((b) => b.type === "thinking").map((b) => b.thinking),
        usage: {
          input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
          output: usage.output_tokens,
        },
      };
    },
  };
  return session;
}

// readChat reads a stream of chat completions into the message and its usage.
async function readChat(res, on) {
  const message = { role: "assistant", content: "" };
  const details = new Map();
  let finish,
    usage,
    done = false;
  for await (const { name, data } of events(res)) {
    assert.equal(name, "");
    assert.ok(!done, "an event behind [DONE]");
    if (data === "[DONE]") {
      done = true;
      continue;
    }
    const chunk = JSON.parse(data);
    assert.equal(chunk.object, "chat.completion.chunk");
    assert.ok(chunk.id && typeof chunk.created === "number" && chunk.model);
    if (chunk.usage) ({ usage } = chunk);
    if (!chunk.choices.length) {
      assert.ok(finish && usage, "the chunk of usage is not the last one");
      continue;
    }
    const [{ delta, finish_reason, index }] = chunk.choices;
    assert.equal(index, 0);
    if (finish) assert.deepEqual([delta.content ?? "", delta.tool_calls], ["", undefined], "content behind the end");
    finish = finish_reason ?? finish;
    if (delta.content) {
      message.content += delta.content;
      on?.(delta.content);
    }
    if (delta.reasoning_content)
      message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
    for (const d of delta.reasoning_details ?? []) {
      const old = details.get(d.index ?? 0) ?? {};
      details.set(d.index ?? 0, { ...old, ...d, ...(old.text && d.text ? { text: old.text + d.text } : {}) });
    }
    for (const c of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      const known = message.tool_calls[c.index];
      if (known) known.function.arguments += c.function.arguments;
      else {
        assert.equal(c.index, message.tool_calls.length);
        assert.ok(c.id && c.function.name, "the first piece of a call has its id and name");
        const { index: _, ...call } = c;
        message.tool_calls.push({ ...call, function: { ...c.function } });
      }
    }
  }
  assert.ok(done, "no [DONE]");
  if (details.size) message.reasoning_details = [...details.values()];
  const calls = (message.tool_calls ?? []).map((c) => ({
    id: c.id,
    name: c.function.name,
    args: JSON.parse(c.function.arguments || "{}"),
  }));
  assert.equal(finish, calls.length ? "tool_calls" : "stop");
  return {
    message,
    answer: {
      say: message.content,
      calls,
      thoughts: message.reasoning_content ? [message.reasoning_content] : [],
      usage: usage && { input: usage.prompt_tokens, output: usage.completion_tokens },
    },
  };
}

const chatTools = (tool) =>
  tool.tools.map((t) => ({
    type: "function",
    function: { name: t.name, description: t.description, parameters: t.schema },
  }));

// chat is OpenAI's chat completions. tool.keeps are the fields of an answer that the
// tool sends back besides content and tool_calls.
function chat(tool, at) {
  let turns = [],
    calls = [];
  return {
    user(text, images = []) {
      const content = images.length
        ? [
            { type: "text", text },
            ...images.map((i) => ({ type: "image_url", image_url: { url: `data:${i.type};base64,${i.data}` } })),
          ]
        : text;
      turns.push({ role: "user", content });
    },
    results(texts) {
      for (const [i, content] of texts.entries()) turns.push({ role: "tool", tool_call_id: calls[i].id, content });
    },
    restart(text) {
      turns = [{ role: "user", content: text }];
    },
    async send({ signal, on } = {}) {
      const { res, error } = await post(
        `${at.url}/v1/chat/completions`,
        { ...bearer(at), ...tool.headers?.(at) },
        {
          model: at.model,
          messages: [{ role: "system", content: `You are ${tool.name}.` }, ...turns],
          ...(tool.tools.length ? { tools: chatTools(tool) } : {}),
          stream: true,
          stream_options: { include_usage: true },
          ...own(tool, { ...at, turns }),
        },
        signal,
      );
      if (error) return { error };
      const { message, answer } = await readChat(res, on);
      const back = { role: "assistant", content: message.content || (message.tool_calls ? null : "") };
      if (message.tool_calls) back.tool_calls = message.tool_calls;
      for (const name of tool.keeps ?? []) if (message[name]) back[name] = message[name];
      turns.push(back);
      ({ calls } = answer);
      for (const c of calls) assert.ok(c.id.length <= 64, `an id of ${c.id.length} characters`);
      return answer;
    },
  };
}

const responsesTools = (tool) => [
  ...tool.tools.map((t) => ({
    type: "function",
    name: t.name,
    description: t.description,
    strict: false,
    parameters: t.schema,
  })),
  ...(tool.otherTools ?? []),
];
const inputImages = (images) =>
  images.map((i) => ({ type: "input_image", image_url: `data:${i.type};base64,${i.data}` }));

// readResponse reads the events of a response into its items. Tools take them from
// response.output_item.done.
async function readResponse(stream, on) {
  const items = [];
  let next = 0,
    whole;
  for await (const e of stream) {
    assert.equal(e.sequence_number, next++, "sequence_number");
    assert.ok(!whole, "an event behind the end");
    if (e.type === "response.created") assert.match(e.response.id, /^resp_/);
    if (e.type === "response.output_text.delta") on?.(e.delta);
    if (e.type === "response.output_item.done") {
      assert.equal(e.output_index, items.length);
      items.push(e.item);
    }
    if (e.type === "response.failed")
      return { error: { status: 200, code: e.response.error.code, text: JSON.stringify(e) } };
    if (e.type === "response.completed") whole = e.response;
  }
  assert.ok(whole, "no response.completed");
  assert.ok(next > 2);
  assert.deepEqual(
    items.map((i) => [i.type, i.id]),
    whole.output.map((i) => [i.type, i.id]),
  );
  const { input_tokens, output_tokens, total_tokens } = whole.usage;
  assert.equal(total_tokens, input_tokens + output_tokens);
  return {
    items,
    id: whole.id,
    answer: {
      say: items
        .filter((i) => i.type === "message")
        .map((i) => i.content.map((c) => c.text).join(""))
        .join(""),
      calls: items
        .filter((i) => i.type === "function_call")
        .map((i) => ({ id: i.call_id, name: i.name, args: JSON.parse(i.arguments) })),
      thoughts: items.filter((i) => i.type === "reasoning").flatMap((i) => i.summary.map((s) => s.text)),
      usage: { input: input_tokens, output: output_tokens },
      items,
    },
  };
}

// conversation has the items that Codex sends.
function conversation() {
  const c = { input: [], calls: [] };
  return Object.assign(c, {
    user(text, images = []) {
      c.input.push({ type: "message", role: "user", content: [{ type: "input_text", text }, ...inputImages(images)] });
    },
    results(texts) {
      for (const [i, output] of texts.entries())
        c.input.push({ type: "function_call_output", call_id: c.calls[i].id, output });
    },
    restart(text) {
      c.input = [{ type: "message", role: "user", content: [{ type: "input_text", text }] }];
    },
  });
}

// responses is OpenAI's Responses API as Codex uses it.
function responses(tool, at) {
  const c = conversation();
  return Object.assign(c, {
    async send({ signal, on } = {}) {
      const { res, error } = await post(
        `${at.url}/v1/responses`,
        { ...bearer(at), ...tool.headers?.(at) },
        { model: at.model, input: c.input, tools: responsesTools(tool), stream: true, ...own(tool, at) },
        signal,
      );
      if (error) return { error };
      const typed = async function* () {
        for await (const { name, data } of events(res)) {
          const e = JSON.parse(data);
          assert.equal(name, e.type);
          yield e;
        }
      };
      const got = await readResponse(typed(), on);
      if (got.error) return got;
      // Codex stores nothing with the gateway: the items go back without their ids.
      c.input.push(...got.items.map(({ id: _, ...item }) => item));
      ({ calls: c.calls } = got.answer);
      return got.answer;
    },
  });
}

// socket is the same over one WebSocket, which sends only what is new.
function socket(tool, at) {
  const c = conversation();
  let open, previous;
  return Object.assign(c, {
    restart(text) {
      previous = undefined;
      c.input = [{ type: "message", role: "user", content: [{ type: "input_text", text }] }];
    },
    async send({ signal, on } = {}) {
      open ??= await connect(`${at.url}/v1/responses`, {
        headers: { ...bearer(at), ...tool.headers?.(at), "openai-beta": "responses_websockets=2026-02-06" },
      });
      signal?.addEventListener("abort", () => open.ws.terminate());
      open.send({
        type: "response.create",
        model: at.model,
        input: c.input,
        tools: responsesTools(tool),
        ...(previous ? { previous_response_id: previous } : {}),
        ...own(tool, at),
      });
      let refused;
      const typed = async function* () {
        for (;;) {
          const e = await open.json();
          if (e.type === "error" && e.sequence_number === undefined) {
            refused = { ...e.error, status: e.status ?? e.error.status, text: JSON.stringify(e) };
            return;
          }
          yield e;
          if (/^response\.(completed|failed|incomplete)$/.test(e.type)) return;
        }
      };
      const got = await readResponse(typed(), on).catch((e) => {
        if (refused) return { error: refused };
        throw e;
      });
      if (got.error) return got;
      previous = got.id;
      c.input = [];
      ({ calls: c.calls } = got.answer);
      return got.answer;
    },
    close: () => open?.ws.terminate(),
  });
}

// mixed is what Cursor sends: the fields of Responses at the path of chat completions,
// whose chunks it reads.
function mixed(tool, at) {
  const c = conversation();
  return Object.assign(c, {
    async send({ signal, on } = {}) {
      const { res, error } = await post(
        `${at.url}/v1/chat/completions`,
        { ...bearer(at), ...tool.headers?.(at) },
        { model: at.model, input: c.input, tools: responsesTools(tool), stream: true, ...own(tool, at) },
        signal,
      );
      if (error) return { error };
      const { answer } = await readChat(res, on);
      if (answer.say)
        c.input.push({ type: "message", role: "assistant", content: [{ type: "output_text", text: answer.say }] });
      for (const call of answer.calls)
        c.input.push({
          type: "function_call",
          call_id: call.id,
          name: call.name,
          arguments: JSON.stringify(call.args),
        });
      ({ calls: c.calls } = answer);
      return answer;
    },
  });
}

// gemini is the Gemini API as Gemini CLI uses it.
function gemini(tool, at) {
  let contents = [],
    calls = [];
  return {
    user(text, images = []) {
      contents.push({
        role: "user",
        parts: [{ text }, ...images.map((i) => ({ inlineData: { mimeType: i.type, data: i.data } }))],
      });
    },
    results(texts) {
      contents.push({
        role: "user",
        parts: texts.map((output, i) => ({
          functionResponse: { ...(calls[i].id ? { id: calls[i].id } : {}), name: calls[i].name, response: { output } },
        })),
      });
    },
    restart(text) {
      contents = [{ role: "user", parts: [{ text }] }];
    },
    async send({ signal, on } = {}) {
      const { res, error } = await post(
        `${at.url}/v1beta/models/${at.model}:streamGenerateContent?alt=sse`,
        { "x-goog-api-key": at.key, ...tool.headers?.(at) },
        {
          contents,
          tools: [
            {
              functionDeclarations: tool.tools.map((t) => ({
                name: t.name,
                description: t.description,
                parametersJsonSchema: t.schema,
              })),
            },
          ],
          ...own(tool, at),
        },
        signal,
      );
      if (error) return { error };
      const parts = [];
      let usage, finish;
      for await (const { name, data } of events(res)) {
        assert.equal(name, "");
        const chunk = JSON.parse(data);
        assert.ok(!chunk.error, data);
        const [candidate] = chunk.candidates ?? [];
        usage = chunk.usageMetadata ?? usage;
        if (!candidate) continue;
        assert.ok(!finish, "content behind finishReason");
        finish = candidate.finishReason;
        for (const p of candidate.content?.parts ?? []) {
          if (p.text) on?.(p.text);
          parts.push(p);
        }
      }
      assert.equal(finish, "STOP");
      contents.push({ role: "model", parts });
      calls = parts.filter((p) => p.functionCall).map((p) => p.functionCall);
      return {
        say: parts.map((p) => (p.thought ? "" : (p.text ?? ""))).join(""),
        calls: calls.map((c) => ({ id: c.id, name: c.name, args: c.args })),
        thoughts: parts.filter((p) => p.thought && p.text).map((p) => p.text),
        usage: {
          input: usage.promptTokenCount,
          output: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
        },
      };
    },
  };
}

export const drivers = { messages, chat, responses, socket, mixed, gemini };
