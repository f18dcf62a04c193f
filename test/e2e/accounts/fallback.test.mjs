// Fallback to another account and cooldowns. See docs/fallback.md. The
// test upstream counts the calls.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

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
  up.script = null;
});

// calls are the kinds of a call, each with its path and body.
const messages = [{ role: "user", content: "a" }];
const calls = {
  embeddings: ["/v1/embeddings", { model: "up/test-embed", input: "a" }],
  chat: ["/v1/chat/completions", { model: "up/test-chat", messages }],
  stream: ["/v1/chat/completions", { model: "up/test-chat", messages, stream: true }],
  "translated stream": ["/v1/messages", { model: "up/test-chat", messages, max_tokens: 50, stream: true }],
};

// accounts creates a machine with an account of one provider for each answer: a
// fault spec, or "" for success.
async function accounts(...answers) {
  const { machineId, apiKey } = await operator.machine();
  const ids = [];
  for (const [i] of answers.entries())
    ids.push((await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${i}`, priority: i + 1 }))).id);
  const faults = new Map(answers.map((a, i) => [`Bearer upstream-key-${i}`, a]));
  up.script = (req) => faults.get(req.headers.authorization) ?? null;
  const send = async (more = {}, headers = {}, [path, base] = calls.embeddings) => {
    const from = up.seen.length;
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}`, ...headers },
      body: JSON.stringify({ ...base, ...more }),
    });
    const text = await res.text();
    return {
      status: res.status,
      headers: res.headers,
      text,
      body: res.headers.get("content-type").startsWith("application/json") ? JSON.parse(text) : null,
      tried: up.seen.slice(from).map((r) => Number(r.headers.authorization.slice(-1))),
    };
  };
  const cooling = async () => (await operator.call("GET", `/${machineId}/api/models/availability`)).data;
  return { machineId, apiKey, ids, faults, send, cooling };
}

// A row has the first account's answer, the next step, and how long that account cools
// down, in seconds. All others are rows of TestTable in pkg/accounts.
for (const [fault, then, rests] of [
  ["status=401", "next", 120],
  ["status=429!header=retry-after:7", "next", 7],
  ["reset", "next", 0],
  ["raw=garbage", "next", 0],
  ["status=400", "return"],
]) {
  for (const [kind, call] of Object.entries(calls)) {
    test(`${kind}: ${fault}: ${then === "next" ? "the next account answers" : "the answer goes to the caller"}`, async () => {
      const { send, ids, cooling } = await accounts(fault, "");
      const began = Date.now(),
        got = await send({}, {}, call);
      if (then === "return") {
        assert.equal(got.status, Number(fault.slice(7)));
        assert.deepEqual(got.tried, [0]);
        assert.deepEqual(await cooling(), []);
        return;
      }
      assert.equal(got.status, 200, got.text);
      assert.deepEqual(got.tried, [0, 1]);
      assert.equal(got.headers.get("x-weir-connection-id"), ids[1]);
      assert.equal(got.headers.get("x-weir-attempts"), "2");
      assert.equal(got.headers.get("x-weir-model"), call[1].model);
      if (call[1].stream) assert.match(got.text, /\[DONE\]|message_stop/);
      const next = await send({}, {}, call),
        over = rests && Date.now() - began >= rests * 1000;
      if (!over) assert.deepEqual(next.tried, rests ? [1] : [0, 1], "what is remembered");
      if (!rests) return;
      const row = await until("the cooldown", async () => {
        const row = (await cooling()).find((r) => r.connectionId === ids[0]);
        return row ?? (Date.now() - began > rests * 1000 && "over before it was read");
      });
      if (!row.until) return;
      assert.ok(
        row.until - row.since <= rests * 1000 && row.until - row.since > rests * 1000 - 1000,
        `rests ${row.until - row.since} ms`,
      );
      assert.ok(row.waitMs > 0 && row.waitMs <= row.until - row.since, `${row.waitMs} ms are left`);
    });
  }
}

test("a rate-limited account is skipped for as long as it said, also by other isolates", async () => {
  const { send, cooling, ids } = await accounts("status=429!header=retry-after:700", "");
  assert.deepEqual((await send()).tried, [0, 1]);
  assert.deepEqual((await send()).tried, [1]);
  const row = await until("the cooldown in the object", async () =>
    (await cooling()).find((r) => r.connectionId === ids[0]),
  );
  const ends = typeof row.until === "number" ? row.until : Date.parse(row.until);
  assert.equal(ends - row.since, 700_000);
  assert.ok(ends > Date.now() && ends - Date.now() <= 700_000, `it ends in ${ends - Date.now()} ms`);
});

test("with every account rate-limited the answer is 429 with the smallest wait", async () => {
  const { send } = await accounts("status=429!header=retry-after:1200", "status=429!header=retry-after-ms:615500"),
    began = Date.now();
  const first = await send();
  assert.equal(first.status, 429);
  const again = await send();
  assert.equal(again.status, 429);
  assert.deepEqual(again.tried, []);
  const left = Number(again.headers.get("retry-after-ms"));
  assert.ok(left <= 615_500 && left >= 615_500 - (Date.now() - began), `${left} ms`);
  assert.equal(again.headers.get("retry-after"), String(Math.ceil(left / 1000)));
  assert.equal(again.headers.get("x-should-retry"), "false");
  assert.equal(again.body.error.type, "rate_limit_error");
});

test("rate limits of invented models do not fill the list of cooldowns", async () => {
  const { send, cooling } = await accounts("status=429!header=retry-after:900");
  for (let i = 0; i < 80; i++) assert.equal((await send({ model: `up/made-up-${i}` })).status, 429);
  assert.equal(up.seen.length, 65, "then the connection cools as a whole");
  const rows = await until("the cooldown of the connection", async () => {
    const rows = await cooling();
    return rows.some((r) => !r.model) && rows;
  });
  assert.ok(rows.some((r) => !r.model && r.reason === "rate_limited") && rows.length <= 65, `${rows.length} rows`);
});

test("the client's own time limit ends the plan", async () => {
  const { send } = await accounts("stall", "stall");
  const got = await send({}, { "x-stainless-timeout": "1" });
  assert.equal(got.status, 504);
  assert.ok(got.tried.length <= 1, "the time is up with the first account, whose own limit is 30 s");
});

test("a key is limited by requests per minute, models and expiry", async () => {
  const { machineId, apiKey } = await accounts("");
  const make = async (fields) => (await operator.call("POST", `/${machineId}/api/keys`, fields)).apiKey;
  const send = async (key, model = "up/test-embed") =>
    await gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, input: "a" }),
    });
  const narrow = await make({ name: "narrow", models: ["up/test-embed"] });
  assert.equal((await send(narrow)).status, 200);
  assert.equal((await send(narrow, "up/test-embed-large")).status, 403);
  const slow = await make({ name: "slow", rpm: 3 });
  const statuses = [];
  for (let i = 0; i < 30 && statuses.at(-1) !== 429; i++) statuses.push((await send(slow)).status);
  assert.equal(statuses.at(-1), 429, statuses.join());
  assert.ok(statuses.length >= 4 && statuses.length <= 7, `${statuses.length - 1} requests passed`); // 6 in two minutes
  const limited = await send(slow);
  assert.ok(Number(limited.headers.get("retry-after")) >= 1 && Number(limited.headers.get("retry-after")) <= 60);
  assert.equal((await send(apiKey)).status, 200);
});
