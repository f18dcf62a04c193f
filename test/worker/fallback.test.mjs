// What another account is tried for, and what is remembered, in real workerd.
// Design 5; the counts are what the upstream saw.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../upstream/server.mjs";
import { admin, compatible, start } from "./gateway.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({});
  operator = admin(gw);
});
after(async () => { await gw?.close(); await up?.close(); });
beforeEach(() => { up.clear(); up.script = null; });

// accounts makes a machine with n accounts of one provider; answers says what
// the upstream answers each key with: a fault spec, or nothing for success.
async function accounts(...answers) {
  const { machineId, apiKey } = await operator.machine();
  const ids = [];
  for (const [i] of answers.entries()) ids.push((await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${i}`, priority: i + 1 }))).id);
  const faults = new Map(answers.map((a, i) => [`Bearer upstream-key-${i}`, a]));
  up.script = (req) => faults.get(req.headers.authorization) ?? null;
  const send = async (more = {}, headers = {}) => {
    const from = up.seen.length;
    const res = await gw.fetch("/v1/embeddings", {
      method: "POST", headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}`, ...headers },
      body: JSON.stringify({ model: "up/test-embed", input: "a", ...more }),
    });
    const text = await res.text();
    return { status: res.status, headers: res.headers, text, body: JSON.parse(text), tried: up.seen.slice(from).map((r) => Number(r.headers.authorization.slice(-1))) };
  };
  const cooling = async () => (await operator.call("GET", `/${machineId}/api/models/availability`)).data;
  return { machineId, apiKey, ids, faults, send, cooling };
}

for (const [fault, then] of [
  ["status=401", "next"], ["status=403", "next"], ["status=402", "next"], ["status=429", "next"], ["status=529", "next"],
  ["status=500", "next"], ["status=502", "next"], ["status=503", "next"], ["status=504", "next"], ["status=408", "next"], ["reset", "next"], ["raw=garbage", "next"],
  ["status=400", "return"], ["status=404", "return"], ["status=405", "return"], ["status=409", "return"], ["status=413", "return"], ["status=415", "return"], ["status=422", "return"],
]) {
  test(`${fault}: ${then === "next" ? "the next account answers" : "the answer goes to the caller"}`, async () => {
    const { send, ids } = await accounts(fault, "");
    const got = await send();
    if (then === "next") {
      assert.equal(got.status, 200, got.text);
      assert.deepEqual(got.tried, [0, 1]);
      assert.equal(got.headers.get("x-weir-connection-id"), ids[1]);
      assert.equal(got.headers.get("x-weir-attempts"), "2");
      assert.equal(got.headers.get("x-weir-model"), "up/test-embed");
    } else {
      assert.equal(got.status, Number(fault.slice(7)));
      assert.deepEqual(got.tried, [0]);
    }
  });
}

test("a limited account is left alone for as long as it said, also by other isolates", async () => {
  const { send, cooling, ids } = await accounts("status=429!header=retry-after:7", "");
  assert.deepEqual((await send()).tried, [0, 1]);
  assert.deepEqual((await send()).tried, [1]);
  let row;
  for (let i = 0; i < 50 && !row; i++) { row = (await cooling()).find((r) => r.connectionId === ids[0]); if (!row) await new Promise((r) => setTimeout(r, 50)); }
  assert.ok(row, "the object knows of the cooldown");
  const until = typeof row.until === "number" ? row.until : Date.parse(row.until);
  assert.ok(until - Date.now() > 4000 && until - Date.now() <= 7000, `until in ${until - Date.now()} ms`);
});

test("with every account limited: 429 with the smallest wait", async () => {
  const { send } = await accounts("status=429!header=retry-after:90", "status=429!header=retry-after-ms:61500");
  const first = await send();
  assert.equal(first.status, 429);
  const again = await send();
  assert.equal(again.status, 429);
  assert.deepEqual(again.tried, []);
  assert.ok(Math.abs(Number(again.headers.get("retry-after")) - 61) <= 1, again.headers.get("retry-after"));
  assert.ok(Number(again.headers.get("retry-after-ms")) > 55000);
  assert.equal(again.headers.get("x-should-retry"), "false");
  assert.equal(again.body.error.type, "rate_limit_error");
});

test("at most five attempts", async () => {
  const { send } = await accounts(...Array(8).fill("status=503"));
  const got = await send();
  assert.equal(got.status, 503);
  assert.deepEqual(got.tried, [0, 1, 2, 3, 4]);
});

test("1,000 malformed requests of a client cool nothing", async () => {
  const { send, cooling } = await accounts("status=400", "");
  for (let i = 0; i < 20; i++) {
    const all = await Promise.all(Array.from({ length: 50 }, () => send({ user: "rate limit exceeded, capacity, quota" })));
    for (const got of all) assert.equal(got.status, 400);
  }
  assert.deepEqual(await cooling(), []);
  assert.equal(up.seen.filter((r) => r.headers.authorization.endsWith("0")).length, 1000);
  assert.equal(up.seen.length, 1000);
});

test("an account named by x-connection-id is the only one tried", async () => {
  const { send, ids } = await accounts("status=500", "");
  assert.deepEqual((await send({}, { "x-connection-id": ids[1] })).tried, [1]);
  const pinned = await send({}, { "x-connection-id": ids[0] });
  assert.deepEqual([pinned.status, pinned.tried], [500, [0]]);
  assert.equal((await send({}, { "x-connection-id": "no-such-connection" })).status, 400);
});

test("round-robin takes turns", async () => {
  const { send, machineId } = await accounts("", "", "");
  await operator.call("PATCH", `/${machineId}/api/settings`, { strategy: "round-robin" });
  const tried = new Set();
  for (let i = 0; i < 9; i++) tried.add((await send()).tried.join());
  assert.deepEqual([...tried].sort(), ["0", "1", "2"]);
});

test("the client's own time limit ends the plan", async () => {
  const { send } = await accounts("stall", "stall");
  const from = Date.now(), got = await send({}, { "x-stainless-timeout": "1" });
  assert.equal(got.status, 504);
  assert.ok(Date.now() - from < 2500, `${Date.now() - from} ms`);
});

test("a combo goes on to the next model when the accounts of the first fail", async () => {
  const { machineId, send } = await accounts("status=401");
  const other = await startUpstream();
  try {
    await operator.connect(machineId, compatible(other, { prefix: "other", suffix: "bbbbbbbb", apiKey: "other-key" }));
    await operator.call("POST", `/${machineId}/api/combos`, { name: "both", kind: "embedding", models: ["up/test-embed", "other/test-embed-large"] });
    const got = await send({ model: "both" });
    assert.equal(got.status, 200, got.text);
    assert.equal(got.headers.get("x-weir-model"), "other/test-embed-large");
    assert.equal(got.body.model, "both");
  } finally { await other.close(); }
});

test("a key's limits: requests a minute, models, expiry", async () => {
  const { machineId, apiKey } = await accounts("");
  const make = async (fields) => (await operator.call("POST", `/${machineId}/api/keys`, fields)).apiKey;
  const send = async (key, model = "up/test-embed") => (await gw.fetch("/v1/embeddings", { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }, body: JSON.stringify({ model, input: "a" }) }));
  const narrow = await make({ name: "narrow", models: ["up/test-embed"] });
  assert.equal((await send(narrow)).status, 200);
  assert.equal((await send(narrow, "up/test-embed-large")).status, 403);
  const slow = await make({ name: "slow", rpm: 3 });
  const statuses = [];
  for (let i = 0; i < 30 && statuses.at(-1) !== 429; i++) { statuses.push((await send(slow)).status); await new Promise((r) => setTimeout(r, 150)); }
  assert.equal(statuses.at(-1), 429, statuses.join());
  assert.ok(statuses.length >= 4 && statuses.length <= 25, `${statuses.length} requests passed`);
  const limited = await send(slow);
  assert.ok(Number(limited.headers.get("retry-after")) >= 1 && Number(limited.headers.get("retry-after")) <= 60);
  assert.equal((await send(apiKey)).status, 200);
});
