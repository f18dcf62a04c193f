// Custom tools, namespaces and the local shell of Codex over upstreams that know
// functions only, streamed to the official client. The rest is in pkg/llm.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
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
// as a stream whose pieces cut the arguments anywhere.
const calling = (calls) => (req) => {
  const list = calls(req).map(([name, args], i) => ({ id: `call_${i}`, name, args: JSON.stringify(args) }));
  if (req.path.endsWith("/messages")) {
    const usage = { input_tokens: 7, output_tokens: 5 };
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
      assert.ok(JSON.stringify(sent().tools[1]).includes("start: begin_patch hunk+ end_patch"));
      assert.ok(!JSON.stringify(sent()).includes('"custom"'));
    });
  }
});
