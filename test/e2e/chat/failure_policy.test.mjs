// The failure policy of combos: which failures of a member continue with the next
// one. See docs/fallback.md, Combos.
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
beforeEach(() => up.clear());

const messages = [{ role: "user", content: "Hello" }];

// combo creates a machine with a combo of two models and returns functions that
// call and explain it. The first model answers as failure says.
async function combo(on, failure) {
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up));
  const { id } = await operator.call("POST", `/${machineId}/api/combos`, {
    name: "pair",
    models: ["up/first", "up/talk"],
    on,
  });
  const answer = talk();
  up.script = (req) => (req.json.model === "first" ? failure : answer(req));
  const ask = async (body = {}) => {
    up.seen.length = 0;
    const res = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "pair", messages, ...body }),
    });
    await res.text();
    return { status: res.status, asked: up.seen.map((r) => r.json.model) };
  };
  const explain = async (body = {}) =>
    (
      await operator.call("POST", `/${machineId}/api/explain`, {
        path: "/v1/chat/completions",
        body: { model: "pair", messages, ...body },
      })
    ).plan;
  return { machineId, id, ask, explain };
}
const failed = (status, code) => ({ status, body: JSON.stringify({ error: { message: "No.", code } }) });

const defaults = {
  limit: [failed(429), true],
  unavailable: [failed(503), true],
  context_length: [failed(400, "context_length_exceeded"), true],
  model_gone: [failed(410), true],
  content_filter: [failed(400, "content_filter"), false],
  any_4xx: [failed(422), false],
};

for (const [name, [failure, next]] of Object.entries(defaults))
  test(`${name}: the default, next and stop`, async () => {
    for (const [value, goesOn] of [
      [undefined, next],
      ["next", true],
      ["stop", false],
    ]) {
      const c = await combo(value && { [name]: value }, failure);
      const [first, second] = await c.explain();
      assert.equal(first.nextAfter.includes(name), goesOn, `${value}: ${first.nextAfter}`);
      assert.deepEqual(second.nextAfter, []);
      // With no other account left, a failure that may pass is tried once more.
      const asked = name === "unavailable" ? ["first", "first"] : ["first"];
      const want = goesOn ? { status: 200, asked: ["first", "talk"] } : { status: failure.status, asked };
      assert.deepEqual(await c.ask(), want, `${value}`);
    }
  });

test("a stream's first event counts as its status", async () => {
  const failure = {
    headers: { "content-type": "text/event-stream" },
    body: 'data: {"error":{"message":"The model is gone.","code":"model_not_found"}}\n\n',
  };
  assert.deepEqual((await (await combo(undefined, failure)).ask({ stream: true })).asked, ["first", "talk"]);
  assert.deepEqual((await (await combo({ model_gone: "stop" }, failure)).ask({ stream: true })).asked, ["first"]);
});

test("a member whose context is too small is not asked", async () => {
  const c = await combo(undefined, failed(400, "context_length_exceeded"));
  await operator.call("POST", `/${c.machineId}/api/models/custom`, {
    providerAlias: "up",
    id: "first",
    contextLength: 1000,
  });
  const long = (words) => ({ messages: [{ role: "user", content: "four ".repeat(words) }] });
  for (const words of [3000, 300_000]) {
    const [first, second] = await c.explain(long(words));
    assert.deepEqual([first.try, first.skipped, second.try], [0, "context_length", 1], `${words} words`);
  }
  assert.deepEqual(await c.ask(long(3000)), { status: 200, asked: ["talk"] });
  assert.equal((await c.explain(long(100)))[0].try, 1);
  await operator.call("PUT", `/${c.machineId}/api/combos/${c.id}`, { on: { context_length: "stop" } });
  assert.equal((await c.explain(long(3000)))[0].try, 1);
});

test("an answer that a filter has withheld is a failure if the combo states so", async () => {
  const failure = {
    body: JSON.stringify({
      id: "c",
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: null }, finish_reason: "content_filter" }],
    }),
  };
  const next = await combo({ content_filter: "next" }, failure);
  assert.deepEqual(await next.ask(), { status: 200, asked: ["first", "talk"] });
  assert.deepEqual(await (await combo(undefined, failure)).ask(), { status: 200, asked: ["first"] });
});

test("a policy is stored, replaced and removed", async () => {
  const c = await combo({ any_4xx: "next" }, failed(404));
  const read = () => operator.call("GET", `/${c.machineId}/api/combos/${c.id}`);
  assert.deepEqual((await read()).on, { any_4xx: "next" });
  await operator.call("PUT", `/${c.machineId}/api/combos/${c.id}`, { on: { limit: "stop" } });
  assert.deepEqual((await read()).on, { limit: "stop" });
  await operator.call("PUT", `/${c.machineId}/api/combos/${c.id}`, { on: null });
  assert.equal((await read()).on, undefined);
  await assert.rejects(operator.call("PUT", `/${c.machineId}/api/combos/${c.id}`, { on: { limit: "retry" } }), {
    status: 400,
  });
});
