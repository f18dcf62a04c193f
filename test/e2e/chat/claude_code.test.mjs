// The contract of Claude Code for gateways (docs/reference/clients.md, 1): its
// discovery of models, the names that it calls, and the errors that it recognizes.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { clients } from "../clients.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, me, api;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(async () => {
  up.clear();
  me = await clients(gw, operator, [
    compatible(up),
    { ...compatible(up, { prefix: "an" }), provider: "anthropic-compatible-0123abcd" },
  ]);
  api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);
  await api("POST", "/combos", { name: "best", models: ["up/test-chat"] });
  await api("PUT", "/models/alias", { alias: "fast", model: "up/test-chat" });
});

const discover = async (headers) => {
  const res = await gw.fetch("/v1/models?limit=1000", { headers, redirect: "manual" });
  assert.equal(res.status, 200);
  return (await res.json()).data;
};
const hello = { max_tokens: 9, messages: [{ role: "user", content: "Hello" }] };

test("discovery shows every model with either key header, and each name is called", async () => {
  for (const headers of [
    { authorization: `Bearer ${me.apiKey}` },
    { "x-api-key": me.apiKey },
    { "x-api-key": me.apiKey, "anthropic-version": "2023-06-01" },
  ]) {
    const shown = (await discover(headers)).filter((m) => /^(claude|anthropic)/.test(m.id));
    for (const id of ["claude-weir/best", "claude-weir/fast", "claude-weir/up/test-chat"])
      assert.ok(
        shown.some((m) => m.id === id && m.display_name),
        `${id} in ${shown.map((m) => m.id)}`,
      );
  }
  const plain = await (await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${me.apiKey}` } })).json();
  assert.ok(!plain.data.some((m) => m.id.startsWith("claude-weir/") || m.id === "fast"));

  for (const model of ["claude-weir/best", "claude-weir/fast", "claude-weir/up/test-chat"]) {
    up.clear();
    for (const [path, body] of [
      ["/v1/messages?beta=true", { model, ...hello }],
      ["/v1/chat/completions", { model, messages: hello.messages }],
      ["/v1/responses", { model, input: "Hello", store: false }],
    ]) {
      const res = await me.post(path, body);
      assert.equal(res.status, 200, `${path} ${model}: ${await res.text()}`);
      assert.equal(res.headers.get("x-weir-model"), "up/test-chat", path);
    }
    assert.ok(up.seen.every((r) => JSON.parse(r.body).model === "test-chat"));
    const count = await me.post("/v1/messages/count_tokens", { model, messages: hello.messages });
    assert.ok((await count.json()).input_tokens > 0);
    assert.equal((await me.anthropic.models.retrieve(model)).id, model);
  }
});

test("a key that is limited to models sees and calls no others by Claude Code's names", async () => {
  const { apiKey: key } = await api("POST", "/keys", { models: ["claude-weir/best"] });
  const ids = (await discover({ authorization: `Bearer ${key}` })).map((m) => m.id);
  assert.deepEqual(ids, ["claude-weir/best", "best"]);
  for (const [model, status] of [
    ["claude-weir/best", 200],
    ["claude-weir/claude-weir/up/test-chat", 403],
    ["claude-weir/up/test-chat", 403],
    ["claude-weir/fast", 403],
  ]) {
    const res = await gw.fetch("/v1/messages", {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: JSON.stringify({ model, ...hello }),
    });
    assert.equal(res.status, status, `${model}: ${await res.text()}`);
  }
});

test("discovery answers within Claude Code's 3 s with what is known by then", async () => {
  await operator.connect(me.machineId, compatible(up, { path: "/!stall/v1", prefix: "bad", suffix: "bbbbbbbb" }));
  const ids = (await discover({ authorization: `Bearer ${me.apiKey}` })).map((m) => m.id);
  assert.ok(ids.includes("claude-weir/up/test-chat"));
  // The limit itself is tested with a clock that the test moves: pkg/v1/models.
  const calls = () => up.seen.filter((r) => r.path.startsWith("/!stall/")).length;
  await until("the list is asked for again after the answer", () => calls() >= 2);
});

test("a machine chooses the models of Claude's families", async () => {
  const ask = (model, path = "/v1/messages") => me.post(path, { model, ...hello });
  const without = await ask("claude-haiku-4-5-20251001");
  assert.equal(without.status, 400);
  assert.match((await without.json()).error.message, /Settings/);
  assert.equal((await ask("claude-weir/nowhere/x")).status, 404);

  await api("PATCH", "/settings", { claudeHaikuModel: "best", claudeOpusModel: "claude-weir/an/m" });
  await until("the setting holds", async () => (await ask("claude-haiku-4-5-20251001")).status === 200);
  for (const [model, served] of [
    ["claude-haiku-4-5-20251001", "up/test-chat"],
    ["claude-3-5-haiku-latest", "up/test-chat"],
    ["claude-weir/claude-opus-4-8", "an/m"],
    ["opus", "an/m"],
  ]) {
    const res = await ask(model);
    assert.equal(res.status, 200, `${model}: ${await res.text()}`);
    assert.equal(res.headers.get("x-weir-model"), served);
    assert.equal((await ask(model, "/v1/messages/count_tokens")).status, 200);
  }
  assert.equal((await ask("claude-sonnet-4-5")).status, 400);
  await api("PATCH", "/settings", { claudeHaikuModel: null });
  await until("the setting is gone", async () => (await ask("claude-haiku-4-5-20251001")).status === 400);
});

test("an unknown model is Anthropic's 404", async () => {
  for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
    const res = await me.post(path, { model: "up2/none", ...hello });
    const body = await res.json();
    assert.deepEqual([res.status, body.type, body.error.type], [404, "error", "not_found_error"], JSON.stringify(body));
  }
});

test("the attribution of Claude Code reaches Anthropic alone", async () => {
  await operator.connect(me.machineId, { provider: "anthropic", apiKey: "anthropic-test-key-0123456789" });
  const line = "x-anthropic-billing-header: cc_version=2.1.177; cc_entrypoint=cli; cch=36ee5;";
  const body = {
    ...hello,
    system: [
      { type: "text", text: line },
      { type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } },
    ],
  };
  for (const [model, gets] of [
    ["anthropic/claude-haiku-4-5", true],
    ["an/m", false],
    ["up/m", false],
  ]) {
    up.clear();
    const res = await me.post("/v1/messages?beta=true", { model, ...body });
    assert.equal(res.status, 200, `${model}: ${await res.text()}`);
    const sent = up.seen[0].body.toString();
    assert.equal(sent.includes("cch="), gets, `${model}: ${sent}`);
    assert.ok(sent.includes("Be brief."));
    const dropped = (res.headers.get("x-weir-dropped") ?? "").split(",");
    assert.equal(dropped.includes("system.x-anthropic-billing-header"), !gets, `${model}: ${dropped}`);
    if (model === "an/m") assert.deepEqual(JSON.parse(sent).system, body.system.slice(1));
  }
});

test("a provider that forbids repeating a call is obeyed by the client", async () => {
  up.script = () => ({
    status: 429,
    headers: { "content-type": "application/json", "retry-after": "5", "x-should-retry": "false" },
    body: JSON.stringify({ type: "error", error: { type: "rate_limit_error", message: "Spend limit reached." } }),
  });
  const res = await me.post("/v1/messages", { model: "an/m", ...hello });
  const body = await res.json();
  assert.deepEqual([res.status, body.error.type], [429, "rate_limit_error"]);
  assert.deepEqual([res.headers.get("x-should-retry"), res.headers.get("retry-after")], ["false", "5"]);
});

test("a conversation that fits with a smaller max_tokens is not compacted", async () => {
  const message = (input, output) =>
    `This model's maximum context length is 32768 tokens. However, you requested ${input + output} tokens (${input} in the messages, ${output} in the completion).`;
  for (const [input, output, want] of [
    [8000, 32000, /^input length and `max_tokens` exceed context limit: 8000 \+ 32000 > 32768, /],
    [40000, 32000, /^prompt is too long: /],
  ]) {
    up.script = () => ({
      status: 400,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ error: { message: message(input, output), type: "BadRequestError", code: 400 } }),
    });
    const res = await me.post("/v1/messages", { model: "up/m", ...hello });
    const { error } = await res.json();
    assert.deepEqual([res.status, error.type], [400, "invalid_request_error"]);
    assert.match(error.message, want);
  }
});
