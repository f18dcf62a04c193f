// A translation preserves what clients send and receive with the official clients:
// thoughts that an upstream insists on, message threads, the settings of a
// response, sources and their places.
// workerd: soak
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
