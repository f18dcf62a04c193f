// Tools as clients offer them and upstreams know them with the official clients:
// custom tools, namespaces and the local shell of Codex, long names, functions of
// old, and null where a list is expected.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, families, start } from "../gateway.mjs";

let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  const operator = admin(gw);
  me = await families(operator, up);
  await operator.connect(me.machineId, { provider: "mistral", apiKey: "mistral-test-key-0123456789" });
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
const sent = () => up.seen.at(-1).json;
const parts = (text, size) => text.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];

// calling is an upstream that calls tools: [name, arguments] in its own dialect,
// whole or as a stream whose pieces cut the arguments anywhere.
const calling = (calls) => (req) => {
  const list = calls(req).map(([name, args], i) => ({ id: `call_${i}`, name, args: JSON.stringify(args) }));
  if (req.path.endsWith("/messages")) {
    const usage = { input_tokens: 7, output_tokens: 5 };
    if (!req.json.stream)
      return json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: list.map((c) => ({ type: "tool_use", id: c.id, name: c.name, input: JSON.parse(c.args) })),
        stop_reason: "tool_use",
        stop_sequence: null,
        usage,
      });
    return sse([
      {
        type: "message_start",
        message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, usage },
      },
      ...list.flatMap((c, index) => [
        { type: "content_block_start", index, content_block: { type: "tool_use", id: c.id, name: c.name, input: {} } },
        ...parts(c.args, 5).map((partial_json) => ({
          type: "content_block_delta",
          index,
          delta: { type: "input_json_delta", partial_json },
        })),
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 5 } },
      { type: "message_stop" },
    ]);
  }
  const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
  if (!req.json.stream)
    return json({
      id: "c1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: null,
            tool_calls: list.map((c) => ({
              id: c.id,
              type: "function",
              function: { name: c.name, arguments: c.args },
            })),
          },
          finish_reason: "tool_calls",
        },
      ],
      usage,
    });
  const chunk = (delta, finish_reason = null) => ({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
  });
  const pieces = list.map((c) => parts(c.args, 3));
  const deltas = [];
  for (let n = 0; n < Math.max(...pieces.map((p) => p.length)); n++)
    pieces.forEach((p, index) => {
      if (p[n]) deltas.push(chunk({ tool_calls: [{ index, function: { arguments: p[n] } }] }));
    });
  return sse(
    [
      chunk({ role: "assistant", content: null, tool_calls: null }),
      ...list.map((c, index) =>
        chunk({ tool_calls: [{ index, id: c.id, type: "function", function: { name: c.name, arguments: "" } }] }),
      ),
      ...deltas,
      chunk({}, "tool_calls"),
      { id: "c1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage },
    ],
    "data: [DONE]\n\n",
  );
};
const fine = (req) =>
  req.path.endsWith("/messages")
    ? json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: [{ type: "text", text: "Fine." }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      })
    : json({
        id: "c1",
        object: "chat.completion",
        created: 1,
        model: "m",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "Fine.", tool_calls: null, refusal: null },
            finish_reason: "stop",
          },
        ],
      });
// chatOnly has no Responses endpoint, as most compatible servers.
const chatOnly = (script) => (req) =>
  req.path.endsWith("/responses") ? json({ detail: "Not Found" }, 404) : script(req);
const namesOf = (body) => (body.tools ?? []).map((t) => t.name ?? t.function.name);

const object = { type: "object", properties: { q: { type: "string" } } };
const patch = '*** Begin Patch\n*** Update File: a.go\n+\ts := "é 😀 \\n"\n*** End Patch\n';
const codexTools = [
  { type: "function", name: "shell", description: "Runs", strict: false, parameters: object },
  {
    type: "custom",
    name: "apply_patch",
    description: "Edits files. This is a FREEFORM tool, so do not wrap the patch in JSON.",
    format: { type: "grammar", syntax: "lark", definition: "start: begin_patch hunk+ end_patch" },
  },
  {
    type: "namespace",
    name: "mcp__docs",
    description: "Documents",
    tools: [
      { type: "function", name: "search", strict: false, parameters: object },
      { type: "custom", name: "ask" },
    ],
  },
  {
    type: "namespace",
    name: "mcp__web",
    description: "The web",
    tools: [{ type: "function", name: "search", strict: false, parameters: object }],
  },
  { type: "local_shell" },
  {
    type: "tool_search",
    execution: "client",
    description: "Finds tools",
    parameters: { type: "object", properties: { query: { type: "string" } } },
  },
];

describe("Codex", () => {
  const script = () =>
    calling((req) => {
      const names = namesOf(req.json);
      assert.equal(new Set(names).size, 7, String(names));
      const web = names.find((n) => n.includes("web"));
      const docs = names.filter((n) => n.includes("docs"));
      return [
        ["apply_patch", { input: patch }],
        [web, { q: "a" }],
        [docs[1], { input: "what?" }],
        ["local_shell", { command: ["ls", "-l"], timeout_ms: 1000 }],
        ["tool_search", { query: "mail" }],
      ];
    });
  const check = (output) => {
    assert.deepEqual(
      output.map((x) => [x.type, x.namespace, x.name, x.input ?? x.arguments ?? x.action, x.status]),
      [
        ["custom_tool_call", undefined, "apply_patch", patch, "completed"],
        ["function_call", "mcp__web", "search", '{"q":"a"}', "completed"],
        ["custom_tool_call", "mcp__docs", "ask", "what?", "completed"],
        [
          "local_shell_call",
          undefined,
          undefined,
          { type: "exec", command: ["ls", "-l"], env: {}, timeout_ms: 1000 },
          "completed",
        ],
        ["tool_search_call", undefined, undefined, { query: "mail" }, "completed"],
      ],
    );
    assert.deepEqual(
      output.map((x) => x.id.split("_")[0]),
      ["ctc", "fc", "ctc", "lsh", "tsc"],
    );
  };
  for (const [family, what] of [
    ["an", "Messages"],
    ["up", "chat"],
  ]) {
    const ask = () => ({
      model: `${family}/m`,
      store: false,
      include: ["reasoning.encrypted_content"],
      tool_choice: "auto",
      parallel_tool_calls: true,
      tools: codexTools,
      input: [{ role: "user", content: "Fix it" }],
    });
    test(`over ${what}`, async () => {
      up.script = chatOnly(script());
      const got = await openai().responses.create(ask());
      check(got.output);
      assert.ok(JSON.stringify(sent().tools[1]).includes("start: begin_patch hunk+ end_patch"));
      assert.ok(!JSON.stringify(sent()).includes('"custom"'));
      // The next turn has the calls and their results.
      up.script = chatOnly(fine);
      const outputs = got.output.map(
        (x) =>
          ({
            custom_tool_call: { type: "custom_tool_call_output", call_id: x.call_id, output: "patched" },
            function_call: { type: "function_call_output", call_id: x.call_id, output: "found" },
            local_shell_call: { type: "local_shell_call_output", id: x.call_id, output: "{}" },
            tool_search_call: {
              type: "tool_search_output",
              call_id: x.call_id,
              execution: "client",
              status: "completed",
              tools: [
                {
                  type: "namespace",
                  name: "mcp__mail",
                  description: "Mail",
                  tools: [{ type: "function", name: "send", strict: false, parameters: object }],
                },
              ],
            },
          })[x.type],
      );
      const next = await openai().responses.create({
        ...ask(),
        input: [{ role: "user", content: "Fix it" }, ...got.output, ...outputs],
      });
      assert.equal(next.output_text, "Fine.");
      const m = sent().messages;
      const offered = namesOf(sent());
      assert.ok(offered.includes("mcp__mail__send"), String(offered));
      if (family === "an") {
        assert.deepEqual(m[1].content[0], {
          type: "tool_use",
          id: "call_0",
          name: "apply_patch",
          input: { input: patch },
        });
        assert.deepEqual(m[1].content[3].input, { command: ["ls", "-l"], env: {}, timeout_ms: 1000 });
        assert.ok(m[1].content.every((b) => b.type === "tool_use" && offered.includes(b.name)));
        assert.deepEqual(
          m[2].content.slice(0, 4).map((b) => [b.type, b.tool_use_id, b.content[0].text]),
          [
            ["tool_result", "call_0", "patched"],
            ["tool_result", "call_1", "found"],
            ["tool_result", "call_2", "patched"],
            ["tool_result", "call_3", "{}"],
          ],
        );
        return;
      }
      const calls = m[1].tool_calls;
      assert.deepEqual(calls[0], {
        id: "call_0",
        type: "function",
        function: { name: "apply_patch", arguments: JSON.stringify({ input: patch }) },
      });
      assert.ok(calls.every((c) => c.type === "function" && offered.includes(c.function.name)));
      assert.deepEqual(
        m.slice(2, 6).map((x) => [x.role, x.tool_call_id, x.content]),
        [
          ["tool", "call_0", "patched"],
          ["tool", "call_1", "found"],
          ["tool", "call_2", "patched"],
          ["tool", "call_3", "{}"],
        ],
      );
    });
    test(`over ${what}, streamed`, async () => {
      up.script = chatOnly(script());
      let input = "",
        pieces = 0,
        done;
      const items = [];
      for await (const e of await openai().responses.create({ ...ask(), stream: true })) {
        if (e.type === "response.custom_tool_call_input.delta" && e.output_index === 0) {
          input += e.delta;
          pieces++;
        }
        if (e.type === "response.custom_tool_call_input.done" && e.output_index === 0) assert.equal(e.input, patch);
        if (e.type === "response.output_item.done") items.push(e.item);
        if (e.type === "response.completed") done = e.response;
      }
      assert.equal(input, patch);
      assert.ok(pieces > 5, `${pieces} pieces`);
      check(items);
      check(done.output);
    });
  }
});

describe("shell and apply_patch", () => {
  const operation = { type: "update_file", path: "a.go", diff: '@@\n-a := "é"\n+b\n' };
  const tools = [{ type: "shell", environment: { type: "local" } }, { type: "apply_patch" }];
  for (const [family, what] of [
    ["an", "Messages"],
    ["up", "chat"],
  ]) {
    test(`over ${what}`, async () => {
      const ask = { model: `${family}/m`, store: false, tools, input: [{ role: "user", content: "Fix it" }] };
      up.script = chatOnly(
        calling(() => [
          ["shell", { commands: ["ls", "pwd"], timeout_ms: 1000 }],
          ["apply_patch", operation],
        ]),
      );
      const check = (output) => {
        assert.deepEqual(
          output.map((x) => [x.type, x.status, x.action ?? x.operation, x.id.split("_")[0]]),
          [
            ["shell_call", "completed", { commands: ["ls", "pwd"], timeout_ms: 1000, max_output_length: null }, "sh"],
            ["apply_patch_call", "completed", operation, "apc"],
          ],
        );
      };
      const got = await openai().responses.create(ask);
      check(got.output);
      assert.deepEqual(namesOf(sent()), ["shell", "apply_patch"]);
      check((await openai().responses.stream(ask).finalResponse()).output);
      up.script = chatOnly(fine);
      const outputs = [
        {
          type: "shell_call_output",
          call_id: got.output[0].call_id,
          max_output_length: null,
          output: [{ stdout: "a.go\n", stderr: "", outcome: { type: "exit", exit_code: 0 } }],
        },
        { type: "apply_patch_call_output", call_id: got.output[1].call_id, status: "failed", output: "no such file" },
      ];
      assert.equal(
        (
          await openai().responses.create({
            ...ask,
            input: [...ask.input, ...got.output, ...outputs],
            tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "shell" }] },
          })
        ).output_text,
        "Fine.",
      );
      assert.deepEqual(namesOf(sent()), ["shell"]);
      assert.deepEqual(sent().tool_choice, family === "an" ? { type: "any" } : "required");
      const m = sent().messages,
        all = JSON.stringify(m);
      assert.deepEqual(
        family === "an" ? m[1].content[1].input : JSON.parse(m[1].tool_calls[1].function.arguments),
        operation,
      );
      assert.ok(all.includes("no such file") && all.includes("exit_code"), all);
    });
  }
});

describe("a chat client's custom tools", () => {
  const tools = [
    {
      type: "custom",
      custom: {
        name: "apply_patch",
        format: { type: "grammar", grammar: { syntax: "lark", definition: "start: /a/" } },
      },
    },
  ];
  const messages = [
    { role: "user", content: "Fix it" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_a01B2", type: "custom", custom: { name: "apply_patch", input: "x\n" } }],
    },
    { role: "tool", tool_call_id: "call_a01B2", content: "no" },
  ];
  for (const [model, what] of [
    ["an/m", "Messages"],
    ["mistral/mistral-large-latest", "a vendor that knows functions only"],
  ]) {
    test(`over ${what}`, async () => {
      up.script = calling(() => [["apply_patch", { input: patch }]]);
      const got = (
        await openai().chat.completions.create({
          model,
          tools,
          messages,
          tool_choice: { type: "custom", custom: { name: "apply_patch" } },
        })
      ).choices[0];
      assert.deepEqual(got.message.tool_calls[0], {
        id: "call_0",
        type: "custom",
        custom: { name: "apply_patch", input: patch },
      });
      assert.equal(got.finish_reason, "tool_calls");
      assert.ok(!JSON.stringify(sent()).includes('"custom"'));
      let input = "",
        name = "";
      for await (const c of await openai().chat.completions.create({ model, tools, messages, stream: true })) {
        for (const t of c.choices[0]?.delta.tool_calls ?? []) {
          name += t.custom?.name ?? "";
          input += t.custom?.input ?? "";
        }
      }
      assert.deepEqual([name, input], ["apply_patch", patch]);
    });
  }
  test("go to a compatible server as they are", async () => {
    up.script = fine;
    await openai().chat.completions.create({ model: "up/m", tools, messages });
    assert.deepEqual([sent().tools, sent().messages], [tools, messages]);
  });
});

describe("names and ids over the limit", () => {
  const long = (end) => `mcp__plugin_with_a_name_of_many_words__server_with_one_as_well__${end}`.padEnd(100, "_");
  const tools = ["read", "write"].map((n) => ({ name: long(n), input_schema: object }));
  const metadata = {
    user_id: JSON.stringify({ device_id: "0".repeat(64), account_uuid: "1".repeat(36), session_id: "2".repeat(36) }),
  };
  test("of a Messages client come back", async () => {
    const ask = {
      model: "up/m",
      max_tokens: 100,
      tools,
      metadata,
      tool_choice: { type: "tool", name: long("write") },
      messages: [{ role: "user", content: "?" }],
    };
    up.script = calling((req) => [[req.json.tool_choice.function.name, { q: "a" }]]);
    const got = await anthropic().messages.create(ask);
    assert.deepEqual(
      got.content.map((b) => [b.type, b.name]),
      [["tool_use", long("write")]],
    );
    const first = sent();
    assert.ok(
      namesOf(first).every((n) => /^[\w-]{1,64}$/.test(n)) && new Set(namesOf(first)).size === 2,
      String(namesOf(first)),
    );
    assert.ok(first.user.length <= 64 && first.user !== metadata.user_id);
    const streamed = await anthropic()
      .messages.stream({
        ...ask,
        messages: [
          ...ask.messages,
          { role: "assistant", content: got.content },
          { role: "user", content: [{ type: "tool_result", tool_use_id: got.content[0].id, content: "ok" }] },
        ],
      })
      .finalMessage();
    assert.deepEqual(
      streamed.content.map((b) => [b.type, b.name, b.input]),
      [["tool_use", long("write"), { q: "a" }]],
    );
    assert.deepEqual(
      [namesOf(sent()), sent().user, sent().messages[1].tool_calls[0].function.name],
      [namesOf(first), first.user, first.tool_choice.function.name],
    );
  });
  test("of a chat client's user are hashed for vendors alone", async () => {
    up.script = fine;
    const user = "u".repeat(200);
    for (const [model, hashed] of [
      ["openai/gpt-5", true],
      ["up/m", false],
    ]) {
      await openai().chat.completions.create({ model, user, messages: [{ role: "user", content: "?" }] });
      assert.equal(sent().user !== user, hashed);
      if (hashed) assert.ok(sent().user.length <= 64 && sent().user !== "");
    }
    up.script = () =>
      json({
        object: "list",
        data: [{ object: "embedding", index: 0, embedding: [1] }],
        model: "m",
        usage: { prompt_tokens: 1, total_tokens: 1 },
      });
    for (const [model, hashed] of [
      ["openai/text-embedding-3-small", true],
      ["up/m", false],
    ]) {
      await openai().embeddings.create({ model, user, input: "a", encoding_format: "float" });
      assert.equal(sent().user !== user, hashed);
    }
  });
});

test("deprecated functions are answered with function_call", async () => {
  const ask = {
    model: "an/m",
    functions: [{ name: "weather", parameters: object }],
    messages: [
      { role: "user", content: "?" },
      { role: "assistant", content: null, function_call: { name: "weather", arguments: "{}" } },
      { role: "function", name: "weather", content: "sun" },
    ],
  };
  up.script = calling(() => [["weather", { q: "a" }]]);
  const got = (await openai().chat.completions.create(ask)).choices[0];
  assert.deepEqual(
    [got.message.function_call, got.message.tool_calls, got.finish_reason],
    [{ name: "weather", arguments: '{"q":"a"}' }, undefined, "function_call"],
  );
  const streamed = (await openai().chat.completions.stream(ask).finalChatCompletion()).choices[0];
  assert.deepEqual(
    [streamed.message.function_call.name, streamed.message.function_call.arguments, streamed.finish_reason],
    ["weather", '{"q":"a"}', "function_call"],
  );
});

describe("null where a list is expected", () => {
  const nulls = () =>
    json({
      id: "c1",
      object: "chat.completion",
      created: 1,
      model: "m",
      search_results: null,
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hello",
            tool_calls: null,
            function_call: null,
            annotations: null,
            reasoning_details: null,
            refusal: null,
          },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: null,
    });
  test("in an answer", async () => {
    up.script = chatOnly(nulls);
    const m = await anthropic().messages.create({
      model: "up/m",
      max_tokens: 9,
      messages: [{ role: "user", content: "?" }],
    });
    assert.deepEqual([m.content, m.stop_reason], [[{ type: "text", text: "Hello" }], "end_turn"]);
    const r = await openai().responses.create({ model: "up/m", input: "?" });
    assert.deepEqual([r.output.map((x) => x.type), r.output[0].content[0].annotations], [["message"], []]);
    // JSON in answer to a request for a stream.
    const c = (
      await openai()
        .chat.completions.stream({ model: "up/m", messages: [{ role: "user", content: "?" }] })
        .finalChatCompletion()
    ).choices[0];
    assert.deepEqual([c.message.content, c.message.tool_calls, c.finish_reason], ["Hello", undefined, "stop"]);
  });
  test("in a conversation", async () => {
    up.script = fine;
    await openai().chat.completions.create({
      model: "an/m",
      stop: null,
      tools: null,
      messages: [
        { role: "user", content: "?", name: null },
        { role: "assistant", content: "Plain", tool_calls: null, function_call: null, audio: null, refusal: null },
        { role: "user", content: "!" },
      ],
    });
    assert.deepEqual(sent().messages, [
      { role: "user", content: [{ type: "text", text: "?" }] },
      { role: "assistant", content: [{ type: "text", text: "Plain" }] },
      { role: "user", content: [{ type: "text", text: "!" }] },
    ]);
    assert.equal(sent().tools, undefined);
  });
});
