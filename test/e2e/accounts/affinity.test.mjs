// Which of several accounts of equal priority serves a call. See docs/routing.md.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { talk } from "../../upstream/talk.mjs";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start();
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

// accounts creates a machine with accounts of equal priority.
async function accounts(n, more = () => ({})) {
  const { machineId, apiKey } = await operator.machine();
  const ids = [];
  for (let i = 0; i < n; i++)
    ids.push(
      (await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${i}`, priority: 0, ...more(i) }))).id,
    );
  const send = async (text, headers = {}, body = {}) => {
    const res = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}`, ...headers },
      body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: text }], ...body }),
    });
    assert.equal(res.status, 200, await res.text());
    return [ids.indexOf(res.headers.get("x-weir-connection-id")), res.headers.get("x-weir-affinity")];
  };
  const api = (method, path, body) => operator.call(method, `/${machineId}/api${path}`, body);
  return { ids, send, api };
}

test("a session stays with its account, and moves while that is out", async () => {
  const { ids, send, api } = await accounts(4);
  assert.equal((await api("GET", "/settings")).strategy, "affinity", "the default of a new machine");
  const homes = new Set();
  for (let s = 0; s < 12; s++) {
    const [home, said] = await send("hi", { "x-session-id": `session-${s}` });
    homes.add(home);
    assert.equal(said, "kept");
    assert.deepEqual(await send("and now?", { "x-session-id": `session-${s}` }), [home, "kept"]);
  }
  assert.ok(homes.size > 1, "the sessions are spread");

  const [home] = await send("hi", { "x-session-id": "s" });
  const answers = talk();
  up.script = (req, ...more) =>
    req.headers.authorization === `Bearer upstream-key-${home}` ? "status=401" : answers(req, ...more);
  const [other, said] = await send("hi", { "x-session-id": "s" });
  assert.ok(other !== home && said === "moved", `${home} ${other} ${said}`);
  assert.deepEqual(await send("hi", { "x-session-id": "s" }), [other, "moved"], "while it cools down");

  const plan = await api("POST", "/explain", {
    path: "/v1/chat/completions",
    body: { model: "up/test-chat", session_id: "s", messages: [{ role: "user", content: "hi" }] },
  });
  assert.equal(plan.session, "session_id");
  assert.deepEqual(
    plan.plan.filter((p) => p.home || p.try === 1).map((p) => [ids.indexOf(p.connectionId), p.home, p.skipped]),
    [
      [other, false, ""],
      [home, true, "key_refused"],
    ],
  );
});

test("a session is recognized by a field of the body, else by its first messages", async () => {
  const { send } = await accounts(8);
  const [byKey] = await send("one", {}, { prompt_cache_key: "k" });
  assert.deepEqual(await send("two", {}, { prompt_cache_key: "k" }), [byKey, "kept"]);
  const [byText] = await send("a question");
  const later = [
    { role: "user", content: [{ type: "text", text: "a question" }] },
    { role: "assistant", content: "an answer" },
    { role: "user", content: "another" },
  ];
  assert.deepEqual(await send("", {}, { messages: later }), [byText, "kept"]);
  const seen = new Set();
  for (let i = 0; i < 12; i++) seen.add((await send(`question ${i}`))[0]);
  assert.ok(seen.size > 1, "other questions are other sessions");
});

test("weights share the sessions, of accounts and of a combo's members", async () => {
  const { send, api } = await accounts(2, (i) => ({ weight: i ? 1 : 1000 }));
  await api("PATCH", "/settings", { strategy: "weighted" });
  const seen = [];
  for (let i = 0; i < 10; i++) seen.push((await send("hi", { "x-session-id": `session-${i}` }))[0]);
  assert.ok(seen.filter((a) => a === 0).length >= 9, seen.join());

  await api("POST", "/combos", {
    name: "main",
    models: ["up/test-chat", "up/vendor/nested-model"],
    strategy: "weighted",
    weights: { "up/vendor/nested-model": 1000 },
    splitBy: "key",
  });
  up.clear();
  for (let i = 0; i < 5; i++) await send("hi", { "x-session-id": `session-${i}` }, { model: "main" });
  const models = new Set(up.seen.map((r) => JSON.parse(r.body).model));
  assert.equal(models.size, 1, "all calls of a key stay with one member");
  await assert.rejects(
    api("POST", "/combos", { name: "bad", models: ["up/test-chat"], strategy: "weighted", weights: { "up/other": 2 } }),
    /not a model of the combo/,
  );
  await assert.rejects(api("PATCH", "/settings", { strategy: "cheapest" }), /Use it for a combo/);
});

test("the other strategies serve calls", async () => {
  const { send, api } = await accounts(3);
  for (const strategy of ["priority", "fallback", "fastest", "least-busy", "round-robin"]) {
    const { strategy: stored } = await api("PATCH", "/settings", { strategy });
    assert.equal(stored, strategy === "fallback" ? "priority" : strategy);
    assert.equal((await send("hi", { "x-session-id": "s" }))[1], null);
  }
  assert.equal((await api("PATCH", "/settings", { strategy: null })).strategy, "affinity");
  for (const strategy of ["fallback", "priority", "affinity", "cheapest", "fastest", "least-busy"]) {
    await api("POST", "/combos", { name: strategy, models: ["up/test-chat", "up/vendor/nested-model"], strategy });
    await send("hi", {}, { model: strategy });
  }
});
