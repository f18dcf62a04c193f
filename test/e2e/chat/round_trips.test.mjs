// A translation preserves what clients send and receive with the official clients:
// thoughts that an upstream insists on, message threads, the settings of a
// response, sources and their places.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, families, start } from "../gateway.mjs";

let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  me = await families(admin(gw), up);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => up.clear());

const openai = () => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
const anthropic = () => new Anthropic({ apiKey: me.apiKey, baseURL: gw.url, maxRetries: 0 });
const json = (v, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(v),
});
const sse = (list, done = "") => ({
  headers: { "content-type": "text/event-stream" },
  body: list.map((e) => (e.type ? `event: ${e.type}\n` : "") + `data: ${JSON.stringify(e)}\n\n`).join("") + done,
});
const refuse = (message) => json({ error: { message, type: "invalid_request_error", param: null, code: null } }, 400);
const sent = () => up.seen.at(-1).json;
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

// deepseek answers like DeepSeek in its thinking mode: a call first, which it
// then wants to see again with the reasoning that led to it.
function deepseek(req) {
  if (req.path.endsWith("/responses")) return json({ detail: "Not Found" }, 404);
  const { messages, stream } = req.json;
  const lost = messages.some(
    (m) => m.role === "assistant" && m.tool_calls && m.reasoning_content !== "The weather is asked.",
  );
  if (lost) return refuse("The `reasoning_content` in the thinking mode must be passed back to the API.");
  const done = messages.at(-1).role === "tool";
  const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } };
  const message = done
    ? { role: "assistant", content: "Sun." }
    : { role: "assistant", content: "", reasoning_content: "The weather is asked.", tool_calls: [call] };
  const finish_reason = done ? "stop" : "tool_calls";
  if (!stream)
    return json({
      id: "c1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message, finish_reason }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
  const deltas = done
    ? [{ role: "assistant", content: "" }, { content: "Sun." }]
    : [
        { role: "assistant", content: "" },
        { reasoning_content: "The weather " },
        { reasoning_content: "is asked." },
        { tool_calls: [{ index: 0, ...call }] },
      ];
  return sse(
    [
      ...deltas.map((delta) => ({
        id: "c1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta, finish_reason: null }],
      })),
      {
        id: "c1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta: {}, finish_reason }],
      },
    ],
    "data: [DONE]\n\n",
  );
}

describe("a tool loop over a server that wants its reasoning back", () => {
  const model = "up/deepseek-v4-pro";
  beforeEach(() => {
    up.script = deepseek;
  });

  for (const streamed of [false, true]) {
    const how = streamed ? ", streamed" : "";
    test(`openai's chat${how}`, async () => {
      const ask = { model, tools: [{ type: "function", function: { name: "weather", parameters: schema } }] };
      const messages = [{ role: "user", content: "?" }];
      let msg;
      if (streamed) {
        msg = { role: "assistant", content: "", reasoning_content: "", tool_calls: [] };
        for await (const c of await openai().chat.completions.create({ ...ask, messages, stream: true })) {
          const d = c.choices[0]?.delta ?? {};
          msg.content += d.content ?? "";
          msg.reasoning_content += d.reasoning_content ?? "";
          for (const { index, ...t } of d.tool_calls ?? []) msg.tool_calls[index] = t;
        }
      } else msg = (await openai().chat.completions.create({ ...ask, messages })).choices[0].message;
      const next = [...messages, msg, { role: "tool", tool_call_id: msg.tool_calls[0].id, content: "sun" }];
      assert.equal(
        (await openai().chat.completions.create({ ...ask, messages: next })).choices[0].message.content,
        "Sun.",
      );
      assert.deepEqual(sent().messages, next);
    });

    test(`anthropic's client${how}`, async () => {
      const ask = {
        model,
        max_tokens: 3000,
        thinking: { type: "enabled", budget_tokens: 2000 },
        tools: [{ name: "weather", input_schema: schema }],
      };
      const messages = [{ role: "user", content: "?" }];
      const turn = (m) =>
        streamed
          ? anthropic()
              .messages.stream({ ...ask, messages: m })
              .finalMessage()
          : anthropic().messages.create({ ...ask, messages: m });
      const got = await turn(messages);
      assert.deepEqual(
        got.content.map((b) => b.type),
        ["thinking", "tool_use"],
      );
      const last = await turn([
        ...messages,
        { role: "assistant", content: got.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: got.content[1].id, content: "sun" }] },
      ]);
      assert.deepEqual(
        last.content.map((b) => b.text),
        ["Sun."],
      );
    });

    test(`openai's responses${how}`, async () => {
      const ask = {
        model,
        store: false,
        tools: [{ type: "function", name: "weather", parameters: schema, strict: false }],
      };
      const turn = (input) =>
        streamed
          ? openai()
              .responses.stream({ ...ask, input })
              .finalResponse()
          : openai().responses.create({ ...ask, input });
      const got = await turn([{ role: "user", content: "?" }]);
      assert.deepEqual(
        got.output.map((x) => x.type),
        ["reasoning", "function_call"],
      );
      const last = await turn([
        { role: "user", content: "?" },
        ...got.output,
        { type: "function_call_output", call_id: got.output[1].call_id, output: "sun" },
      ]);
      assert.equal(last.output_text, "Sun.");
    });

    // It sends back only the reasoning that has encrypted_content.
    test(`AI SDK's responses${how}`, async () => {
      const ask = {
        model: createOpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1" })(model),
        prompt: "?",
        maxRetries: 0,
        stopWhen: stepCountIs(3),
        providerOptions: { openai: { store: false } },
        tools: { weather: tool({ inputSchema: jsonSchema(schema), execute: async () => "sun" }) },
      };
      const got = streamed ? streamText({ ...ask, onError() {} }) : await generateText(ask);
      assert.equal(await got.text, "Sun.");
      assert.equal(sent().messages.find((m) => m.role === "assistant").reasoning_content, "The weather is asked.");
    });
  }
});

describe("Claude", () => {
  const event = (list) =>
    sse([
      {
        type: "message_start",
        message: {
          id: "msg_1",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      },
      ...list.flatMap(([content_block, ...deltas], index) => [
        { type: "content_block_start", index, content_block },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 12 } },
      { type: "message_stop" },
    ]);
  const message = (content, stop_reason = "end_turn") =>
    json({
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "m",
      content,
      stop_reason,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1, service_tier: "standard" },
    });
  const thought = (thinking, signature) => ({ type: "thinking", thinking, signature });

  test("gets the thoughts of a streamed turn back as it signed them", async () => {
    const signed = { first: "SIG1", second: "SIG2" };
    up.script = (req) => {
      const turn = req.json.messages[1]?.content;
      if (!turn) {
        return event([
          [
            thought("", ""),
            { type: "thinking_delta", thinking: "fir" },
            { type: "thinking_delta", thinking: "st" },
            { type: "signature_delta", signature: "SIG1" },
          ],
          [
            { type: "text", text: "" },
            { type: "text_delta", text: "So." },
          ],
          [
            thought("", ""),
            { type: "thinking_delta", thinking: "second" },
            { type: "signature_delta", signature: "SIG2" },
          ],
          [
            { type: "tool_use", id: "toolu_1", name: "weather", input: {} },
            { type: "input_json_delta", partial_json: '{"city":"Oslo"}' },
          ],
        ]);
      }
      const thoughts = turn.filter((b) => b.type === "thinking");
      if (thoughts.length !== 2 || thoughts.some((b) => signed[b.thinking] !== b.signature))
        return json(
          {
            type: "error",
            error: { type: "invalid_request_error", message: "Invalid `signature` in `thinking` block" },
          },
          400,
        );
      return message([{ type: "text", text: "Sun." }]);
    };
    const ask = {
      model: "anthropic/claude-sonnet-4-5",
      reasoning_effort: "high",
      tools: [{ type: "function", function: { name: "weather", parameters: schema } }],
    };
    const msg = { role: "assistant", content: "", reasoning_content: "", reasoning_details: [], tool_calls: [] };
    for await (const c of await openai().chat.completions.create({
      ...ask,
      messages: [{ role: "user", content: "?" }],
      stream: true,
    })) {
      const d = c.choices[0]?.delta ?? {};
      msg.content += d.content ?? "";
      msg.reasoning_content += d.reasoning_content ?? "";
      msg.reasoning_details.push(...(d.reasoning_details ?? []));
      for (const { index, ...t } of d.tool_calls ?? []) {
        if (t.id) msg.tool_calls[index] = t;
        else msg.tool_calls[index].function.arguments += t.function.arguments;
      }
    }
    assert.deepEqual(
      msg.reasoning_details.map((d) => [d.index, d.text]),
      [
        [0, "first"],
        [1, "second"],
      ],
    );
    const last = await openai().chat.completions.create({
      ...ask,
      messages: [{ role: "user", content: "?" }, msg, { role: "tool", tool_call_id: "toolu_1", content: "sun" }],
    });
    assert.equal(last.choices[0].message.content, "Sun.");
    assert.equal(last.service_tier, "default");
  });

  test("continues a tool loop that another provider began", async () => {
    up.script = deepseek;
    const ask = {
      max_tokens: 3000,
      thinking: { type: "enabled", budget_tokens: 2000 },
      tools: [{ name: "weather", input_schema: schema }],
    };
    const got = await anthropic().messages.create({
      ...ask,
      model: "up/deepseek-v4-pro",
      messages: [{ role: "user", content: "?" }],
    });
    up.script = (req) => {
      const turn = req.json.messages[1].content;
      if (req.json.thinking.type === "enabled" && turn[0].type !== "thinking")
        return json(
          {
            type: "error",
            error: {
              type: "invalid_request_error",
              message: "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
            },
          },
          400,
        );
      return message([{ type: "text", text: "Sun." }]);
    };
    const next = {
      ...ask,
      model: "anthropic/claude-sonnet-4-5",
      messages: [
        { role: "user", content: "?" },
        { role: "assistant", content: got.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: got.content.at(-1).id, content: "sun" }] },
      ],
    };
    const { data, response } = await anthropic().messages.create(next).withResponse();
    assert.equal(data.content[0].text, "Sun.");
    assert.deepEqual(
      sent().messages[1].content.map((b) => b.type),
      ["tool_use"],
    );
    assert.match(response.headers.get("x-weir-dropped"), /thinking/);
  });

  test("has its citations in the text of every dialect", async () => {
    const cite = {
      type: "web_search_result_location",
      url: "https://a.example",
      title: "A",
      cited_text: "Sun",
      encrypted_index: "E",
    };
    up.script = () =>
      message([
        { type: "text", text: "Hé: " },
        { type: "text", text: "sun", citations: [cite] },
      ]);
    const note = (
      await openai().chat.completions.create({
        model: "an/claude-opus-5-5",
        messages: [{ role: "user", content: "?" }],
      })
    ).choices[0].message.annotations[0].url_citation;
    assert.deepEqual([note.start_index, note.end_index], [4, 7]);
    const parts = (await openai().responses.create({ model: "an/claude-opus-5-5", input: "?" })).output[0].content;
    assert.deepEqual(
      parts.map((p) => p.annotations.map((a) => [a.start_index, a.end_index])),
      [[], [[0, 3]]],
    );
  });

  test("without max_tokens answers up to the model's own limit", async () => {
    up.script = () => message([{ type: "text", text: "Fine." }]);
    for (const [model, limit] of [
      ["claude-opus-4-6", 128000],
      ["claude-sonnet-4-5", 64000],
      ["glm-5", 4096],
    ]) {
      await openai().chat.completions.create({ model: `an/${model}`, messages: [{ role: "user", content: "?" }] });
      assert.equal(sent().max_tokens, limit, model);
    }
  });
});

describe("message threads", () => {
  test("are refused in a form that Anthropic's client understands", async () => {
    up.script = deepseek;
    const ask = { model: "up/m", max_tokens: 9, messages: [{ role: "user", content: "?" }] };
    const error = await anthropic()
      .beta.messages.create({ ...ask, thread: { type: "create" } })
      .then(
        () => assert.fail("taken"),
        (e) => e,
      );
    assert.equal(error.status, 400);
    assert.equal(error.error.error.type, "invalid_request_error");
    assert.deepEqual(error.error.error.details, { error_code: "thread_unsupported_request", unsupported: ["thread"] });
    assert.equal(up.seen.length, 0, "nothing was asked upstream");
  });

  test("are forwarded to a server of the same dialect", async () => {
    up.script = () =>
      json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: [{ type: "text", text: "Fine." }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      });
    await anthropic().beta.messages.create({
      model: "an/m",
      max_tokens: 9,
      messages: [{ role: "user", content: "?" }],
      thread: { type: "create" },
    });
    assert.deepEqual(sent().thread, { type: "create" });
  });

  test("are not needed by the client's tool runner", async () => {
    up.script = deepseek;
    const runner = anthropic().beta.messages.toolRunner({
      model: "up/deepseek-v4-pro",
      max_tokens: 3000,
      unsupportedRequestBehavior: "continue_unthreaded",
      messages: [{ role: "user", content: "?" }],
      tools: [
        { name: "weather", description: "The weather.", input_schema: schema, run: () => "sun", parse: (x) => x },
      ],
    });
    const last = await runner.runUntilDone();
    assert.equal(last.content.at(-1).text, "Sun.");
    assert.equal(sent().messages.length, 3, "the whole conversation was sent");
  });
});

test("a translated response repeats the settings of its request", async () => {
  up.script = (req) => (req.path.endsWith("/responses") ? json({ detail: "Not Found" }, 404) : deepseek(req));
  const ask = {
    model: "up/m",
    input: "?",
    instructions: "Be\nbrief.",
    max_output_tokens: 99,
    temperature: 0.5,
    top_p: 0.9,
    metadata: { a: "b" },
    truncation: "auto",
    parallel_tool_calls: false,
    tools: [{ type: "function", name: "weather", parameters: schema, strict: false, description: null }],
    tool_choice: "required",
    reasoning: { effort: "low" },
    text: { verbosity: "low" },
    store: false,
  };
  const want = {
    ...ask,
    reasoning: { effort: "low", summary: null },
    text: { format: { type: "text" }, verbosity: "low" },
  };
  delete want.model;
  delete want.input;
  const repeated = (r) => Object.fromEntries(Object.keys(want).map((k) => [k, r[k]]));
  assert.deepEqual(repeated(await openai().responses.create(ask)), want);
  const kinds = [];
  for await (const e of await openai().responses.create({ ...ask, stream: true })) {
    if (!e.response) continue;
    kinds.push(e.type);
    assert.deepEqual(repeated(e.response), want, e.type);
  }
  assert.deepEqual(kinds, ["response.created", "response.in_progress", "response.completed"]);
});

test("Gemini's OpenAI endpoint gets only the fields that it knows", async () => {
  const known = new Set([
    "model",
    "messages",
    "stream",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
  ]);
  up.script = (req) => {
    const unknown = Object.keys(req.json).filter((k) => !known.has(k));
    if (unknown.length || req.body.includes("$schema"))
      return json(
        [
          {
            error: {
              code: 400,
              message: `Invalid JSON payload received. Unknown name "${unknown[0] ?? "$schema"}": Cannot find field.`,
              status: "INVALID_ARGUMENT",
            },
          },
        ],
        400,
      );
    return json({
      id: "c1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Fine." }, finish_reason: "stop" }],
    });
  };
  const { data, response } = await openai()
    .chat.completions.create({
      model: "gemini/gemini-2.5-flash",
      messages: [{ role: "user", content: "?" }],
      temperature: 0.5,
      seed: 7,
      frequency_penalty: 0.1,
      store: false,
      user: "u",
      metadata: { a: "b" },
      tools: [
        {
          type: "function",
          function: { name: "weather", parameters: { $schema: "http://json-schema.org/draft-07/schema#", ...schema } },
        },
      ],
    })
    .withResponse();
  assert.equal(data.choices[0].message.content, "Fine.");
  assert.equal(response.headers.get("x-weir-dropped"), "seed,frequency_penalty,store,user,metadata");
});
