// Thoughts with their signatures over turns and providers, and items that only a
// server could know, with the official clients. Every pair of dialects is in pkg/llm.
// See docs/reference/api-shapes.md, 14, 15.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
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
const sse = (list) => ({
  headers: { "content-type": "text/event-stream" },
  body: list.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join(""),
});
const json = (v) => ({ headers: { "content-type": "application/json" }, body: JSON.stringify(v) });
const sent = () => up.seen.at(-1).json;

// These are messages and responses as an upstream returns them.
const used = {
  input_tokens: 7,
  cache_creation_input_tokens: 3,
  cache_read_input_tokens: 20,
  output_tokens: 12,
  output_tokens_details: { thinking_tokens: 5 },
};
const message = (content, stop_reason = "end_turn") =>
  json({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content,
    stop_reason,
    stop_sequence: null,
    usage: used,
  });
const thinking = () =>
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
        usage: { ...used, output_tokens: 1 },
      },
    },
    ...[
      [
        { type: "thinking", thinking: "", signature: "" },
        { type: "thinking_delta", thinking: "Let me " },
        { type: "thinking_delta", thinking: "see." },
        { type: "signature_delta", signature: "c2ln" },
      ],
      [{ type: "redacted_thinking", data: "cmVk" }],
      [
        { type: "tool_use", id: "toolu_1", name: "weather", input: {} },
        { type: "input_json_delta", partial_json: '{"city":"Oslo"}' },
      ],
    ].flatMap(([content_block, ...deltas], index) => [
      { type: "content_block_start", index, content_block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    {
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { output_tokens: 12, output_tokens_details: { thinking_tokens: 5 } },
    },
    { type: "message_stop" },
  ]);

const response = (output) =>
  json({
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    error: null,
    incomplete_details: null,
    model: "m",
    output,
    usage: {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 20 },
      output_tokens: 12,
      output_tokens_details: { reasoning_tokens: 5 },
      total_tokens: 42,
    },
  });
const said = (text) => ({
  id: "msg_1",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});
// plain says "Fine." in the dialect that it is asked in.
const plain = (req) =>
  req.path.endsWith("/messages") ? message([{ type: "text", text: "Fine." }]) : response([said("Fine.")]);

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const flat = [{ type: "function", name: "weather", parameters: schema, strict: false }];

const turn = [
  { type: "thinking", thinking: "Let me see.", signature: "c2ln" },
  { type: "redacted_thinking", data: "cmVk" },
  { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Oslo" } },
];
const model = "anthropic/claude-sonnet-4-5";

test("Claude's come back by openai's responses, streamed", async () => {
  up.script = thinking;
  const ask = {
    model,
    tools: flat,
    reasoning: { effort: "high", summary: "auto" },
    include: ["reasoning.encrypted_content"],
    store: false,
  };
  const own = openai();
  const got = await own.responses.stream({ ...ask, input: "?" }).finalResponse();
  assert.deepEqual(
    got.output.map((x) => x.type),
    ["reasoning", "reasoning", "function_call"],
  );
  assert.equal(got.output[0].summary[0].text, "Let me see.");
  assert.deepEqual(
    [
      got.usage.input_tokens,
      got.usage.input_tokens_details.cached_tokens,
      got.usage.output_tokens_details.reasoning_tokens,
      got.usage.total_tokens,
    ],
    [30, 20, 5, 42],
  );
  up.script = plain;
  const next = [
    { role: "user", content: "?" },
    ...got.output,
    { type: "function_call_output", call_id: got.output[2].call_id, output: "sun" },
  ];
  await own.responses.create({ ...ask, input: next });
  assert.deepEqual(sent().messages[1].content, turn);
  const { response } = await own.responses.create({ ...ask, model: "openai/gpt-5", input: next }).withResponse();
  assert.doesNotMatch(JSON.stringify(sent()), /c2ln|cmVk/);
  assert.match(response.headers.get("x-weir-dropped") ?? "", /reasoning/);
});

// The AI SDK refers to items by id unless store is false.
test("items that only a server could know are refused or dropped", async () => {
  const ask = { model: createOpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1" })("an/m"), maxRetries: 0 };
  const options = (openai) => ({ providerOptions: { openai } });
  const weather = tool({ inputSchema: jsonSchema(schema), execute: () => "sun" });
  up.script = (req) =>
    req.json.messages.length > 1
      ? plain(req)
      : message(
          [
            { type: "thinking", thinking: "Hm.", signature: "c2ln" },
            { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Oslo" } },
          ],
          "tool_use",
        );
  const got = await generateText({
    ...ask,
    ...options({ reasoningEffort: "high", reasoningSummary: "auto", forceReasoning: true }),
    prompt: "?",
    tools: { weather },
    stopWhen: stepCountIs(3),
  });
  assert.equal(got.text, "Fine.");
  assert.deepEqual(
    sent().messages[1].content.map((b) => b.type),
    ["tool_use"],
    "a thought that is not there is left out",
  );
  up.script = plain;
  for (const store of [true, false]) {
    const { response } = await generateText({ ...ask, ...options({ store }), prompt: "?" });
    const next = generateText({
      ...ask,
      ...options({ store }),
      messages: [{ role: "user", content: "?" }, ...response.messages, { role: "user", content: "And?" }],
    });
    if (store)
      await assert.rejects(
        next.then(() => {
          throw new Error("half a conversation was sent");
        }),
        (e) => e.statusCode === 400 && /store: false/.test(e.message),
      );
    else assert.equal((await next).text, "Fine.");
  }
  assert.deepEqual(
    sent().messages.map((m) => m.role),
    ["user", "assistant", "user"],
  );
});
