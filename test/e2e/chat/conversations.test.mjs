// Conversations as clients hold them with the official clients: several calls at
// once, thoughts and their signatures over turns and providers, pictures and
// documents, refusals, limits and usage, in each dialect over each family of
// upstreams. See docs/reference/api-shapes.md, 14, 15.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, families, start } from "../gateway.mjs";

let gw, up, me, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
  me = await families(operator, up);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => up.clear());

const openai = (more = {}) => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0, ...more });
const anthropic = (more = {}) => new Anthropic({ apiKey: me.apiKey, baseURL: gw.url, maxRetries: 0, ...more });
const sse = (list, done = "") => ({
  headers: { "content-type": "text/event-stream" },
  body:
    list.map((e) => (e.type && !e.object ? `event: ${e.type}\n` : "") + `data: ${JSON.stringify(e)}\n\n`).join("") +
    done,
});
const json = (v, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(v),
});
const sent = () => up.seen.at(-1).json;

// These are chat completions and messages as an upstream returns them.
const completion = (message, finish_reason, more = {}) =>
  json({
    id: "c1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: null, refusal: null, ...message },
        finish_reason,
        logprobs: null,
      },
    ],
    usage: {
      prompt_tokens: 30,
      completion_tokens: 12,
      total_tokens: 42,
      prompt_tokens_details: { cached_tokens: 20 },
      completion_tokens_details: { reasoning_tokens: 5 },
    },
    ...more,
  });
const chunks = (deltas, finish, usage) =>
  sse(
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
        choices: [{ index: 0, delta: {}, finish_reason: finish }],
      },
      ...(usage ? [{ id: "c1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage }] : []),
    ],
    "data: [DONE]\n\n",
  );
const used = {
  input_tokens: 7,
  cache_creation_input_tokens: 3,
  cache_read_input_tokens: 20,
  output_tokens: 12,
  output_tokens_details: { thinking_tokens: 5 },
};
const message = (content, stop_reason = "end_turn", more = {}) =>
  json({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content,
    stop_reason,
    stop_sequence: null,
    usage: used,
    ...more,
  });
const events = (blocks, stop_reason = "end_turn", more = {}) =>
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
    ...blocks.flatMap(([content_block, ...deltas], index) => [
      { type: "content_block_start", index, content_block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null, ...more },
      usage: { output_tokens: 12, output_tokens_details: { thinking_tokens: 5 } },
    },
    { type: "message_stop" },
  ]);

const response = (output, more = {}) =>
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
    ...more,
  });
const said = (text) => ({
  id: "msg_1",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});
// plain says "Fine." in whatever dialect it is asked.
const plain = (req) => {
  if (req.path.endsWith("/messages")) return message([{ type: "text", text: "Fine." }]);
  if (req.path.endsWith("/responses")) return response([said("Fine.")]);
  if (req.path.includes("enerateContent"))
    return json({
      candidates: [{ content: { role: "model", parts: [{ text: "Fine." }] }, finishReason: "STOP", index: 0 }],
      usageMetadata: {},
    });
  return completion({ content: "Fine." }, "stop");
};
const noResponses = (script) => (req) =>
  req.path.endsWith("/responses") ? json({ detail: "Not Found" }, 404) : script(req);

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const fn = [{ type: "function", function: { name: "weather", parameters: schema } }];
const flat = [{ type: "function", name: "weather", parameters: schema, strict: false }];
const claude = [{ name: "weather", input_schema: schema }];
const cities = ["Paris", "Oslo ☃", "Rio"];

describe("parallel tool calls", () => {
  // The arguments of three calls, their pieces between each other's.
  const interleaved = () =>
    chunks(
      [
        { role: "assistant", content: "" },
        { content: "Asking " },
        { content: "three." },
        ...cities.map((_, index) => ({
          tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name: "weather", arguments: "" } }],
        })),
        ...[0, 1, 2, 3].flatMap((part) =>
          cities.map((city, index) => ({
            tool_calls: [{ index, function: { arguments: ['{"ci', 'ty":', JSON.stringify(city), "}"][part] } }],
          })),
        ),
      ],
      "tool_calls",
      { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 },
    );
  const blocks = () =>
    events(
      [
        [
          { type: "text", text: "" },
          { type: "text_delta", text: "Asking " },
          { type: "text_delta", text: "three." },
        ],
        ...cities.map((city, i) => [
          { type: "tool_use", id: `toolu_${i}`, name: "weather", input: {} },
          { type: "input_json_delta", partial_json: "" },
          ...['{"city":', JSON.stringify(city), "}"].map((partial_json) => ({
            type: "input_json_delta",
            partial_json,
          })),
        ]),
      ],
      "tool_use",
    );
  const both = noResponses((req) => (req.path.endsWith("/messages") ? blocks() : interleaved()));

  for (const family of ["up", "an"]) {
    const model = `${family}/m`;
    test(`openai's chat over ${family}`, async () => {
      up.script = both;
      const got = (
        await openai()
          .chat.completions.stream({
            model,
            messages: [{ role: "user", content: "?" }],
            tools: fn,
            parallel_tool_calls: true,
          })
          .finalChatCompletion()
      ).choices[0];
      assert.equal(got.message.content, "Asking three.");
      assert.deepEqual(
        got.message.tool_calls.map((c) => JSON.parse(c.function.arguments).city),
        cities,
      );
      assert.equal(new Set(got.message.tool_calls.map((c) => c.id)).size, 3);
      assert.equal(got.finish_reason, "tool_calls");
    });
    test(`openai's responses over ${family}`, async () => {
      up.script = both;
      const got = await openai().responses.stream({ model, input: "?", tools: flat }).finalResponse();
      const calls = got.output.filter((x) => x.type === "function_call");
      assert.deepEqual(
        calls.map((c) => JSON.parse(c.arguments).city),
        cities,
      );
      assert.equal(got.output_text, "Asking three.");
      // Their results go back in one turn, each with its call.
      up.script = noResponses(plain);
      const next = await openai().responses.create({
        model,
        tools: flat,
        store: false,
        input: [
          { role: "user", content: "?" },
          ...got.output,
          ...calls.map((c) => ({ type: "function_call_output", call_id: c.call_id, output: `of ${c.arguments}` })),
        ],
      });
      assert.equal(next.output_text, "Fine.");
      const m = sent().messages;
      if (family === "an") {
        assert.deepEqual(
          m.map((x) => [x.role, x.content.map((b) => b.type)]),
          [
            ["user", ["text"]],
            ["assistant", ["text", "tool_use", "tool_use", "tool_use"]],
            ["user", ["tool_result", "tool_result", "tool_result"]],
          ],
        );
        assert.deepEqual(
          m[2].content.map((b) => b.tool_use_id),
          m[1].content.slice(1).map((b) => b.id),
        );
      } else {
        assert.deepEqual(
          m.map((x) => x.role),
          ["user", "assistant", "tool", "tool", "tool"],
        );
        assert.deepEqual(
          m.slice(2).map((x) => x.tool_call_id),
          m[1].tool_calls.map((c) => c.id),
        );
      }
    });
    test(`anthropic's client over ${family}`, async () => {
      up.script = both;
      const got = await anthropic()
        .messages.stream({ model, max_tokens: 100, messages: [{ role: "user", content: "?" }], tools: claude })
        .finalMessage();
      assert.deepEqual(
        got.content.map((b) => b.input?.city ?? b.text),
        ["Asking three.", ...cities],
      );
      assert.equal(got.stop_reason, "tool_use");
      up.script = noResponses(plain);
      const results = got.content.slice(1).map((b, i) => ({
        type: "tool_result",
        tool_use_id: b.id,
        is_error: i === 2,
        content:
          i === 1
            ? [
                { type: "text", text: "rain" },
                { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
              ]
            : "sun",
      }));
      await anthropic().messages.create({
        model,
        max_tokens: 100,
        tools: claude,
        messages: [
          { role: "user", content: "?" },
          { role: "assistant", content: got.content },
          { role: "user", content: [...results, { type: "text", text: "So?" }] },
        ],
      });
      if (family === "an") return void assert.deepEqual(sent().messages[2].content.slice(0, 3), results);
      const m = sent().messages;
      assert.deepEqual(
        m.slice(2, 5).map((x) => [x.role, x.tool_call_id, x.content]),
        got.content.slice(1).map((b, i) => ["tool", b.id, ["sun", "rain", "Error: sun"][i]]),
      );
      assert.deepEqual(m[5], {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } },
          { type: "text", text: "So?" },
        ],
      });
    });
  }
});

describe("thoughts and their signatures", () => {
  const thinking = () =>
    events(
      [
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
      ],
      "tool_use",
    );
  const whole = () =>
    message(
      [
        { type: "thinking", thinking: "Let me see.", signature: "c2ln" },
        { type: "redacted_thinking", data: "cmVk" },
        { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Oslo" } },
      ],
      "tool_use",
    );
  const turn = [
    { type: "thinking", thinking: "Let me see.", signature: "c2ln" },
    { type: "redacted_thinking", data: "cmVk" },
    { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Oslo" } },
  ];
  const model = "anthropic/claude-sonnet-4-5";

  for (const streamed of [true, false]) {
    test(`Claude's come back by openai's chat${streamed ? ", streamed" : ""}`, async () => {
      up.script = () => (streamed ? thinking() : whole());
      const ask = { model, messages: [{ role: "user", content: "?" }], tools: fn, reasoning_effort: "high" };
      const own = openai();
      let msg;
      if (streamed) {
        // Clients add the pieces of a message up.
        msg = { role: "assistant", content: "", reasoning_content: "", reasoning_details: [], tool_calls: [] };
        for await (const c of await own.chat.completions.create({ ...ask, stream: true })) {
          const d = c.choices[0]?.delta ?? {};
          msg.reasoning_content += d.reasoning_content ?? "";
          msg.reasoning_details.push(...(d.reasoning_details ?? []));
          for (const t of d.tool_calls ?? [])
            (msg.tool_calls[t.index] ??= {
              id: t.id,
              type: "function",
              function: { name: t.function.name, arguments: "" },
            }).function.arguments += t.function.arguments ?? "";
        }
      } else msg = (await own.chat.completions.create(ask)).choices[0].message;
      assert.equal(msg.reasoning_content, "Let me see.");
      assert.ok(sent().thinking.budget_tokens >= 1024);
      up.script = plain;
      await own.chat.completions.create({
        ...ask,
        messages: [...ask.messages, msg, { role: "tool", tool_call_id: msg.tool_calls[0].id, content: "sun" }],
      });
      assert.deepEqual(sent().messages[1].content, turn);
      assert.equal(sent().thinking.type, "enabled");
      // OpenAI refuses them; a compatible server gets the client's bytes.
      const next = [...ask.messages, msg, { role: "tool", tool_call_id: msg.tool_calls[0].id, content: "sun" }];
      await own.chat.completions.create({ ...ask, model: "up/m", messages: next });
      assert.deepEqual(sent().messages, next);
      const { response } = await own.chat.completions
        .create({ ...ask, model: "openai/gpt-5", messages: next })
        .withResponse();
      assert.doesNotMatch(JSON.stringify(sent()), /c2ln|cmVk|Let me see/);
      assert.match(response.headers.get("x-weir-dropped"), /reasoning/);
    });

    test(`Claude's come back by openai's responses${streamed ? ", streamed" : ""}`, async () => {
      up.script = () => (streamed ? thinking() : whole());
      const ask = {
        model,
        tools: flat,
        reasoning: { effort: "high", summary: "auto" },
        include: ["reasoning.encrypted_content"],
        store: false,
      };
      const own = openai();
      const got = streamed
        ? await own.responses.stream({ ...ask, input: "?" }).finalResponse()
        : await own.responses.create({ ...ask, input: "?" });
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
  }

  test("Gemini's come back by every client", async () => {
    const parts = [
      { text: "Hm.", thought: true },
      { functionCall: { name: "weather", args: { city: "Oslo" } }, thoughtSignature: "Z2Vt" },
    ];
    const answer = {
      candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
      usageMetadata: {
        promptTokenCount: 30,
        cachedContentTokenCount: 20,
        candidatesTokenCount: 7,
        thoughtsTokenCount: 5,
        totalTokenCount: 42,
      },
      modelVersion: "gemini-3",
    };
    const model = "gemini/gemini-3-pro-preview";
    for (const streamed of [false, true]) {
      const first = () => {
        up.script = (req) => (req.path.includes("stream") ? sse([answer]) : json(answer));
      };
      first();
      const ask = { model, max_tokens: 9000, tools: claude, thinking: { type: "enabled", budget_tokens: 8000 } };
      const got = streamed
        ? await anthropic()
            .messages.stream({ ...ask, messages: [{ role: "user", content: "?" }] })
            .finalMessage()
        : await anthropic().messages.create({ ...ask, messages: [{ role: "user", content: "?" }] });
      assert.deepEqual(
        [
          got.stop_reason,
          got.usage.input_tokens,
          got.usage.cache_read_input_tokens,
          got.usage.output_tokens,
          got.usage.output_tokens_details?.thinking_tokens,
        ],
        ["tool_use", 10, 20, 12, 5],
      );
      assert.equal(got.content.find((b) => b.type === "thinking").thinking, "Hm.");
      up.script = plain;
      const next = [
        { role: "user", content: "?" },
        { role: "assistant", content: got.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: got.content.at(-1).id, content: "sun" }] },
      ];
      await anthropic().messages.create({ ...ask, messages: next });
      assert.deepEqual(sent().contents[1].parts.at(-1), {
        functionCall: { name: "weather", args: { city: "Oslo" } },
        thoughtSignature: "Z2Vt",
      });
      assert.deepEqual(sent().contents[2].parts[0].functionResponse, { name: "weather", response: { output: "sun" } });
      await anthropic().messages.create({ ...ask, model: "anthropic/claude-sonnet-4-5", messages: next });
      assert.doesNotMatch(JSON.stringify(sent()), /Z2Vt|weir\./, "Claude is not shown Gemini's signature");

      first();
      const r = { model, tools: flat, store: false, reasoning: { effort: "low" } };
      const res = streamed
        ? await openai()
            .responses.stream({ ...r, input: "?" })
            .finalResponse()
        : await openai().responses.create({ ...r, input: "?" });
      up.script = plain;
      await openai().responses.create({
        ...r,
        input: [
          { role: "user", content: "?" },
          ...res.output,
          { type: "function_call_output", call_id: res.output.at(-1).call_id, output: "sun" },
        ],
      });
      assert.equal(
        sent().contents?.[1].parts.at(-1).thoughtSignature ??
          sent().messages[1].tool_calls[0].extra_content.google.thought_signature,
        "Z2Vt",
      );
    }
  });
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

describe("images, documents and audio", () => {
  const png = "iVBORw0KGgo=",
    pdf = "JVBERi0xLjQK",
    wav = "UklGRg==";
  const web = "https://pictures.example/cat.png";

  test("openai's chat", async () => {
    up.script = plain;
    const content = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${png}`, detail: "low" } },
      { type: "image_url", image_url: { url: web } },
      { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` } },
    ];
    const ask = (model, more = []) =>
      openai().chat.completions.create({ model, messages: [{ role: "user", content: [...content, ...more] }] });
    await ask("up/m");
    assert.deepEqual(sent().messages[0].content, content);
    await ask("an/m");
    assert.deepEqual(sent().messages[0].content, [
      { type: "text", text: "What is this?" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
      { type: "image", source: { type: "url", url: web } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: pdf }, title: "a.pdf" },
    ]);
    const sound = [{ type: "input_audio", input_audio: { data: wav, format: "wav" } }];
    await ask("up/m", sound);
    assert.deepEqual(sent().messages[0].content[4], sound[0]);
    await assert.rejects(ask("an/m", sound), { status: 400 }, "Claude does not hear");
  });

  test("openai's responses", async () => {
    up.script = noResponses(plain);
    const ask = (model) =>
      openai().responses.create({
        model,
        store: false,
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: "What is this?" },
              { type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "auto" },
              { type: "input_image", image_url: web, detail: "auto" },
              { type: "input_file", filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` },
            ],
          },
        ],
      });
    await ask("up/m");
    assert.deepEqual(
      sent().messages[0].content.map((p) => p.image_url?.url ?? p.file?.file_data ?? p.text),
      ["What is this?", `data:image/png;base64,${png}`, web, `data:application/pdf;base64,${pdf}`],
    );
    await ask("an/m");
    assert.deepEqual(
      sent().messages[0].content.map((p) => p.source?.data ?? p.source?.url ?? p.text),
      ["What is this?", png, web, pdf],
    );
    up.script = plain;
    await ask("gemini/gemini-2.5-flash");
    assert.match(JSON.stringify(sent()), /iVBORw0KGgo=.*JVBERi0xLjQK/);
  });

  test("anthropic's client", async () => {
    up.script = plain;
    const content = [
      { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
      { type: "image", source: { type: "url", url: web } },
      {
        type: "document",
        title: "A",
        source: { type: "base64", media_type: "application/pdf", data: pdf },
        cache_control: { type: "ephemeral" },
      },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "Words." } },
      { type: "text", text: "What is this?" },
    ];
    const ask = (model) =>
      anthropic()
        .messages.create({ model, max_tokens: 50, messages: [{ role: "user", content }] })
        .withResponse();
    await ask("an/m");
    assert.deepEqual(sent().messages[0].content, content);
    const { response } = await ask("up/m");
    assert.deepEqual(
      sent().messages[0].content.map((p) => p.image_url?.url ?? p.file?.file_data ?? p.text),
      [`data:image/png;base64,${png}`, web, `data:application/pdf;base64,${pdf}`, "Words.", "What is this?"],
    );
    assert.match(response.headers.get("x-weir-dropped"), /cache_control/);
    await ask("gemini/gemini-2.5-flash");
    assert.deepEqual(
      sent().contents[0].parts.map((p) => p.inlineData?.data ?? p.fileData?.fileUri ?? p.text),
      [png, web, pdf, "Words.", "What is this?"],
    );
  });
});

test("an image that Gemini generates is returned", async () => {
  const answer = {
    candidates: [
      {
        content: {
          role: "model",
          parts: [{ text: "Here." }, { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }],
        },
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 9, totalTokenCount: 12 },
  };
  up.script = (req) => (req.path.includes("stream") ? sse([answer]) : json(answer));
  const ask = { model: "gemini/gemini-2.5-flash-image", input: "A cat" };
  const streamed = [];
  for await (const e of await openai().responses.create({ ...ask, stream: true }))
    if (e.type === "response.output_item.done") streamed.push(e.item);
  for (const output of [(await openai().responses.create(ask)).output, streamed]) {
    assert.deepEqual(
      output.map((x) => [x.type, x.result ?? x.content[0].text]),
      [
        ["message", "Here."],
        ["image_generation_call", "iVBORw0KGgo="],
      ],
    );
  }
  // Anthropic's dialect has no place for it, and says so.
  const { data, response } = await anthropic()
    .messages.create({ model: ask.model, max_tokens: 9, messages: [{ role: "user", content: "A cat" }] })
    .withResponse();
  assert.deepEqual(data.content, [{ type: "text", text: "Here." }]);
  assert.match(response.headers.get("x-weir-dropped"), /content\.image/);
});

describe("the end of an answer", () => {
  const ends = [
    ["stop", "end_turn"],
    ["length", "max_tokens"],
    ["content_filter", "refusal"],
  ];
  for (const [chat, claude] of ends) {
    test(`${chat}, ${claude}`, async () => {
      up.script = noResponses((req) =>
        req.path.endsWith("/messages")
          ? req.json.stream
            ? events(
                [
                  [
                    { type: "text", text: "" },
                    { type: "text_delta", text: "So" },
                  ],
                ],
                claude,
              )
            : message([{ type: "text", text: "So" }], claude)
          : req.json.stream
            ? chunks([{ role: "assistant", content: "So" }], chat)
            : completion({ content: "So" }, chat),
      );
      for (const model of ["up/m", "an/m"]) {
        const messages = [{ role: "user", content: "?" }],
          ask = { model, max_tokens: 50, messages };
        assert.equal((await openai().chat.completions.create({ model, messages })).choices[0].finish_reason, chat);
        let finish;
        for await (const c of await openai().chat.completions.create({ model, messages, stream: true }))
          finish = c.choices[0]?.finish_reason ?? finish;
        assert.equal(finish, chat);
        assert.equal((await anthropic().messages.create(ask)).stop_reason, claude);
        assert.equal((await anthropic().messages.stream(ask).finalMessage()).stop_reason, claude);
        const reason = { length: "max_output_tokens", content_filter: "content_filter" }[chat];
        const made = [await openai().responses.create({ model, input: "?" })];
        for await (const e of await openai().responses.create({ model, input: "?", stream: true }))
          if (e.type === "response.completed" || e.type === "response.incomplete") made.push(e.response);
        for (const r of made)
          assert.deepEqual([r.status, r.incomplete_details?.reason], [reason ? "incomplete" : "completed", reason]);
        assert.equal(made.length, 2);
      }
    });
  }

  test("with a stop sequence", async () => {
    up.script = noResponses((req) =>
      req.path.endsWith("/messages")
        ? message([{ type: "text", text: "So" }], "stop_sequence", { stop_sequence: "END" })
        : completion({ content: "So" }, "stop"),
    );
    const got = await openai().chat.completions.create({
      model: "an/m",
      messages: [{ role: "user", content: "?" }],
      stop: ["END", " "],
    });
    assert.deepEqual([sent().stop_sequences, got.choices[0].finish_reason], [["END"], "stop"]);
    await anthropic().messages.create({
      model: "up/m",
      max_tokens: 5,
      messages: [{ role: "user", content: "?" }],
      stop_sequences: ["END", "FIN"],
    });
    assert.deepEqual(sent().stop, ["END", "FIN"]);
    assert.equal(
      (
        await anthropic().messages.create({
          model: "an/m",
          max_tokens: 5,
          messages: [{ role: "user", content: "?" }],
          stop_sequences: ["END"],
        })
      ).stop_sequence,
      "END",
    );
  });

  test("with a refusal", async () => {
    up.script = noResponses((req) =>
      req.json.stream
        ? chunks([{ role: "assistant", content: "" }, { refusal: "I " }, { refusal: "will not." }], "stop")
        : completion({ refusal: "I will not." }, "stop"),
    );
    const model = "up/m",
      messages = [{ role: "user", content: "?" }];
    for (const r of [
      await openai().responses.create({ model, input: "?" }),
      await openai().responses.stream({ model, input: "?" }).finalResponse(),
    ]) {
      assert.deepEqual(
        r.output.flatMap((x) => x.content).map((p) => [p.type, p.refusal]),
        [["refusal", "I will not."]],
      );
    }
    for (const m of [
      await anthropic().messages.create({ model, max_tokens: 5, messages }),
      await anthropic().messages.stream({ model, max_tokens: 5, messages }).finalMessage(),
    ]) {
      assert.deepEqual(
        m.content.map((b) => b.text),
        ["I will not."],
      );
    }
    up.script = noResponses((req) =>
      req.json.stream
        ? events([], "refusal", { stop_details: { type: "refusal", category: "cyber", explanation: "Not this." } })
        : message([], "refusal", { stop_details: { type: "refusal", category: "cyber", explanation: "Not this." } }),
    );
    const chat = (await openai().chat.completions.create({ model: "an/m", messages })).choices[0];
    assert.deepEqual(
      [chat.finish_reason, chat.message.content, chat.message.refusal],
      ["content_filter", null, "Not this."],
    );
    let refusal = "";
    for await (const c of await openai().chat.completions.create({ model: "an/m", messages, stream: true }))
      refusal += c.choices[0]?.delta.refusal ?? "";
    assert.equal(refusal, "Not this.");
    const r = await openai().responses.stream({ model: "an/m", input: "?" }).finalResponse();
    assert.deepEqual([r.status, r.output[0].content[0].refusal], ["incomplete", "Not this."]);
  });
});

describe("other fields of a request", () => {
  const messages = [{ role: "user", content: "?" }];

  test("usage is reported in each dialect", async () => {
    up.script = noResponses((req) =>
      req.path.endsWith("/messages")
        ? req.json.stream
          ? events([
              [
                { type: "text", text: "" },
                { type: "text_delta", text: "So" },
              ],
            ])
          : message([{ type: "text", text: "So" }])
        : req.json.stream
          ? chunks([{ role: "assistant", content: "So" }], "stop", {
              prompt_tokens: 30,
              completion_tokens: 12,
              total_tokens: 42,
              prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 3 },
              completion_tokens_details: { reasoning_tokens: 5 },
            })
          : completion({ content: "So" }, "stop", {
              usage: {
                prompt_tokens: 30,
                completion_tokens: 12,
                total_tokens: 42,
                prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 3 },
                completion_tokens_details: { reasoning_tokens: 5 },
              },
            }),
    );
    for (const model of ["up/m", "an/m"]) {
      const chat = [(await openai().chat.completions.create({ model, messages })).usage];
      for await (const c of await openai().chat.completions.create({
        model,
        messages,
        stream: true,
        stream_options: { include_usage: true },
      }))
        if (c.usage) chat.push(c.usage);
      for (const u of chat)
        assert.deepEqual(
          [
            u.prompt_tokens,
            u.completion_tokens,
            u.total_tokens,
            u.prompt_tokens_details.cached_tokens,
            u.prompt_tokens_details.cache_write_tokens,
            u.completion_tokens_details.reasoning_tokens,
          ],
          [30, 12, 42, 20, 3, 5],
          model,
        );
      assert.equal(chat.length, 2);
      for (const { usage: u } of [
        await openai().responses.create({ model, input: "?" }),
        await openai().responses.stream({ model, input: "?" }).finalResponse(),
      ]) {
        assert.deepEqual(
          [
            u.input_tokens,
            u.output_tokens,
            u.total_tokens,
            u.input_tokens_details.cached_tokens,
            u.output_tokens_details.reasoning_tokens,
          ],
          [30, 12, 42, 20, 5],
          model,
        );
      }
      const ask = { model, max_tokens: 5, messages };
      for (const { usage: u } of [
        await anthropic().messages.create(ask),
        await anthropic().messages.stream(ask).finalMessage(),
      ]) {
        assert.deepEqual(
          [
            u.input_tokens,
            u.cache_creation_input_tokens,
            u.cache_read_input_tokens,
            u.output_tokens,
            u.output_tokens_details?.thinking_tokens,
          ],
          [7, 3, 20, 12, 5],
          model,
        );
      }
    }
  });

  test("several choices and log probabilities are returned", async () => {
    const logprobs = {
      content: [
        {
          token: "So",
          logprob: -0.1,
          bytes: [83, 111],
          top_logprobs: [{ token: "So", logprob: -0.1, bytes: [83, 111] }],
        },
      ],
      refusal: null,
    };
    up.script = noResponses((req) =>
      req.json.stream
        ? sse(
            [
              {
                id: "c",
                object: "chat.completion.chunk",
                created: 1,
                model: "m",
                choices: [{ index: 0, delta: { role: "assistant", content: "So" }, logprobs, finish_reason: null }],
              },
              {
                id: "c",
                object: "chat.completion.chunk",
                created: 1,
                model: "m",
                choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
              },
            ],
            "data: [DONE]\n\n",
          )
        : completion({ content: "So" }, "stop", {
            choices: [0, 1].slice(0, req.json.n ?? 1).map((index) => ({
              index,
              message: { role: "assistant", content: "So", refusal: null },
              logprobs,
              finish_reason: "stop",
            })),
          }),
    );
    const got = await openai().chat.completions.create({
      model: "up/m",
      messages,
      n: 2,
      logprobs: true,
      top_logprobs: 1,
    });
    assert.deepEqual(
      got.choices.map((c) => [c.index, c.logprobs]),
      [
        [0, logprobs],
        [1, logprobs],
      ],
    );
    await assert.rejects(openai().chat.completions.create({ model: "an/m", messages, n: 2 }), {
      status: 400,
      param: "n",
    });
    const ask = { model: "up/m", input: "?", top_logprobs: 1, include: ["message.output_text.logprobs"] };
    const r = await openai().responses.create(ask);
    assert.deepEqual([sent().logprobs, sent().top_logprobs], [true, 1]);
    assert.deepEqual(r.output[0].content[0].logprobs, logprobs.content);
    const streamed = [];
    for await (const e of await openai().responses.create({ ...ask, stream: true })) {
      if (e.type === "response.output_text.delta") streamed.push(...e.logprobs);
      if (e.type === "response.completed") assert.deepEqual(e.response.output[0].content[0].logprobs, logprobs.content);
    }
    assert.deepEqual(streamed, logprobs.content);
    await openai().responses.create({ model: "up/m", input: "?", include: ["message.output_text.logprobs"] });
    assert.equal(sent().logprobs, true);
  });

  test("cache marks of prefixes are forwarded", async () => {
    up.script = plain;
    const cache_control = { type: "ephemeral", ttl: "1h" };
    const body = {
      model: "an/m",
      max_tokens: 5,
      system: [{ type: "text", text: "Long.", cache_control }],
      tools: [{ ...claude[0], cache_control }],
      messages: [{ role: "user", content: [{ type: "text", text: "?", cache_control }] }],
    };
    await anthropic().messages.create(body);
    assert.deepEqual(sent(), { ...body, model: "m" });
    await openai().chat.completions.create({
      model: "an/m",
      messages: [
        { role: "system", content: [{ type: "text", text: "Long.", cache_control }] },
        { role: "user", content: [{ type: "text", text: "?", prompt_cache_breakpoint: { mode: "explicit" } }] },
      ],
    });
    assert.deepEqual(
      [sent().system, sent().messages[0].content],
      [
        [{ type: "text", text: "Long.", cache_control }],
        [{ type: "text", text: "?", cache_control: { type: "ephemeral" } }],
      ],
    );
  });

  test("user, metadata and service tier are forwarded", async () => {
    up.script = noResponses(plain);
    await openai().chat.completions.create({
      model: "an/m",
      messages,
      safety_identifier: "u1",
      service_tier: "default",
    });
    assert.deepEqual([sent().metadata, sent().service_tier], [{ user_id: "u1" }, "standard_only"]);
    await anthropic().messages.create({ model: "up/m", max_tokens: 5, messages, metadata: { user_id: "u1" } });
    assert.equal(sent().user, "u1");
    const { response } = await openai()
      .responses.create({ model: "an/m", input: "?", metadata: { a: "b" }, truncation: "auto", max_tool_calls: 3 })
      .withResponse();
    assert.deepEqual(response.headers.get("x-weir-dropped").split(",").sort(), [
      "max_tool_calls",
      "metadata",
      "truncation",
    ]);
  });

  test("a schema with limits that Claude's structured output refuses is simplified", async () => {
    up.script = () => message([{ type: "text", text: '{"name":"Ada","age":36}' }]);
    const Person = z.object({ name: z.string().min(1), age: z.number().int().min(0).max(150) });
    const got = await openai().chat.completions.parse({
      model: "anthropic/claude-sonnet-4-5",
      messages,
      response_format: zodResponseFormat(Person, "person"),
    });
    assert.deepEqual(got.choices[0].message.parsed, { name: "Ada", age: 36 });
    const { schema } = sent().output_config.format;
    assert.doesNotMatch(JSON.stringify(schema), /"(minimum|maximum|minLength)"/);
    assert.match(schema.properties.age.description, /minimum: 0, maximum: 150/);
    assert.equal(schema.additionalProperties, false);
  });

  test("a missing token limit becomes the model's own", async () => {
    up.script = plain;
    for (const [model, least] of [
      ["anthropic/claude-sonnet-4-5", 32_000],
      ["an/m", 4096],
    ]) {
      await openai().chat.completions.create({ model, messages });
      assert.ok(sent().max_tokens >= least, `${model}: ${sent().max_tokens}`);
      await openai().chat.completions.create({ model, messages, max_completion_tokens: 99 });
      assert.equal(sent().max_tokens, 99);
    }
  });

  test("Anthropic's beta features are forwarded", async () => {
    up.script = plain;
    await anthropic().beta.messages.create({
      model: "an/m",
      max_tokens: 5,
      messages,
      betas: ["context-1m-2025-08-07", "effort-2025-11-24"],
    });
    assert.deepEqual(
      [sent().betas, up.seen.at(-1).headers["anthropic-beta"]],
      [undefined, "context-1m-2025-08-07,effort-2025-11-24"],
    );
    assert.match(up.seen.at(-1).headers["anthropic-version"], /^20\d\d-/);
    await anthropic().beta.messages.create({
      model: "up/m",
      max_tokens: 5,
      messages,
      betas: ["context-1m-2025-08-07"],
    });
    assert.equal(up.seen.at(-1).headers["anthropic-beta"], undefined);
  });

  test("requests that a server would have to store are refused", async () => {
    up.script = noResponses(plain);
    for (const more of [{ background: true }, { conversation: "conv_1" }, { prompt: { id: "pmpt_1" } }]) {
      await assert.rejects(openai().responses.create({ model: "an/m", input: "?", ...more }), {
        status: 400,
        param: Object.keys(more)[0],
      });
    }
    up.script = (req) =>
      response([], {
        id: `resp_bg${up.seen.length}`,
        status:
          req.method === "POST" && !req.path.endsWith("/cancel")
            ? "queued"
            : req.path.endsWith("/cancel")
              ? "cancelled"
              : "completed",
        background: true,
      });
    const made = await openai().responses.create({ model: "openai/gpt-5", input: "?", background: true, store: true });
    assert.equal(made.status, "queued");
    assert.equal((await openai().responses.retrieve(made.id)).status, "completed");
    assert.equal((await openai().responses.cancel(made.id)).status, "cancelled");
    await assert.rejects(openai().responses.retrieve("resp_other"), { status: 404 });
  });
});
