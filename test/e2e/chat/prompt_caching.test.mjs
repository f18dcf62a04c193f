// The machine setting promptCaching: marks of cached prefixes for clients whose
// dialect has none, on models that cache nothing without them. See
// docs/connections.md.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { talk } from "../../upstream/talk.mjs";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = talk();
});

// machine creates a machine with a Messages server and returns functions that call
// and explain it.
async function machine(settings) {
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, { ...compatible(up, { prefix: "an" }), provider: "anthropic-compatible-0123abcd" });
  if (settings) await operator.call("PATCH", `/${machineId}/api/settings`, settings);
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const post = async (path, body) => {
    up.seen.length = 0;
    const res = await gw.fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    const text = await res.text();
    assert.equal(res.status, 200, text);
    return { told: res.headers.get("x-weir-cache-marks"), sent: up.seen.map((r) => r.json) };
  };
  return { machineId, post };
}

const model = "an/claude-sonnet-4-5";
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
const conversation = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "One" },
  { role: "assistant", content: "1" },
  { role: "user", content: "Two" },
];
const mark = { type: "ephemeral" };

test("off marks nothing, and a new machine marks conversations alone", async () => {
  const auto = (await machine()).post;
  const question = [{ role: "user", content: "One" }];
  assert.equal((await auto("/v1/chat/completions", { model, messages: question })).told, null);
  assert.equal((await auto("/v1/chat/completions", { model, messages: conversation })).told, "system,user,user");
  const { post } = await machine({ promptCaching: "off" });
  const { told, sent } = await post("/v1/chat/completions", { model, messages: conversation, tools });
  assert.equal(told, null);
  assert.doesNotMatch(JSON.stringify(sent), /cache_control/);
});

test("tools, system and the last two turns of the user are marked, and told", async () => {
  const { post, machineId } = await machine({ promptCaching: "on" });
  for (const stream of [false, true]) {
    const { told, sent } = await post("/v1/chat/completions", { model, messages: conversation, tools, stream });
    assert.equal(told, "tools,system,user,user");
    const [{ tools: declared, system, messages }] = sent;
    assert.deepEqual(
      [declared[0], system[0], messages[0].content[0], messages[2].content[0]].map((x) => x.cache_control),
      [mark, mark, mark, mark],
    );
    assert.equal(JSON.stringify(sent).match(/cache_control/g).length, 4);
  }
  const responses = await post("/v1/responses", { model, input: "One", instructions: "Be brief." });
  assert.equal(responses.told, "system");
  const { plan } = await operator.call("POST", `/${machineId}/api/explain`, {
    path: "/v1/chat/completions",
    body: { model, messages: conversation, tools },
  });
  assert.deepEqual(plan[0].cacheMarks, ["tools", "system", "user", "user"]);
});

test("a client's own marks win, and Messages clients set theirs", async () => {
  const { post } = await machine({ promptCaching: "on" });
  const own = [{ role: "user", content: [{ type: "text", text: "One", cache_control: { ...mark, ttl: "1h" } }] }];
  const chat = await post("/v1/chat/completions", { model, messages: own, tools });
  assert.equal(chat.told, null);
  assert.deepEqual(JSON.stringify(chat.sent).match(/cache_control/g).length, 1);
  const messages = await post("/v1/messages", { model, max_tokens: 10, messages: conversation.slice(1) });
  assert.equal(messages.told, null);
  assert.doesNotMatch(JSON.stringify(messages.sent), /cache_control/);
});

test("other models are not marked", async () => {
  const { post } = await machine({ promptCaching: "on" });
  const { told, sent } = await post("/v1/chat/completions", { model: "an/glm-5", messages: conversation });
  assert.equal(told, null);
  assert.doesNotMatch(JSON.stringify(sent), /cache_control/);
});

test("at OpenRouter the texts of a chat client are marked", async () => {
  const { post, machineId } = await machine({ promptCaching: "on" });
  await operator.connect(machineId, { provider: "openrouter", apiKey: "sk-or-test-0123456789abcdef" });
  const body = { model: "openrouter/anthropic/claude-sonnet-4.5", messages: conversation, tools };
  const { told, sent } = await post("/v1/chat/completions", body);
  assert.equal(told, "system,user,user");
  assert.deepEqual(
    sent[0].messages.map((m) => m.content?.[0]?.cache_control),
    [mark, mark, undefined, mark],
  );
});

test("a server that refuses a mark gets none", async () => {
  const { post } = await machine({ promptCaching: "on" });
  const answer = talk();
  up.script = (req) =>
    /cache_control/.test(req.body)
      ? {
          status: 400,
          body: JSON.stringify({
            type: "error",
            error: { type: "invalid_request_error", message: "system.0.cache_control: Extra inputs are not permitted" },
          }),
        }
      : answer(req);
  const first = await post("/v1/chat/completions", { model, messages: conversation });
  assert.deepEqual([first.told, first.sent.length], [null, 2]);
  const second = await post("/v1/chat/completions", { model, messages: conversation });
  assert.deepEqual([second.told, second.sent.length], [null, 1], "the connection remembers it");
});
