// Budgets. See docs/guides/budgets.md and docs/decisions/0126-budgets-are-lent.md. The
// test upstream counts the calls that were sent.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { platform } from "../platforms.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, storage;
before(async () => {
  storage = await mkdtemp(join(tmpdir(), "weir-budgets-"));
  up = await startUpstream();
  gw = await start({ persist: storage });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(storage, { recursive: true, force: true });
});
beforeEach(() => up.clear());

// machine creates a machine with budgets.
async function machine(...budgets) {
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up));
  for (const b of budgets) await operator.call("POST", `/${machineId}/api/budgets`, b);
  const shown = async () => (await operator.call("GET", `/${machineId}/api/budgets`)).data;
  const send = async (path = "/v1/chat/completions", body = {}, key = apiKey) => {
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({
        model: "up/test-chat",
        messages: [{ role: "user", content: "a" }],
        max_tokens: 20,
        ...body,
      }),
    });
    return { status: res.status, headers: res.headers, text: await res.text() };
  };
  return { machineId, apiKey, shown, send };
}

test("of 1,000 calls at once a budget of 100 serves 100", async () => {
  const { send, shown } = await machine({ name: "hundred", unit: "requests", limit: 100, window: "total" });
  const answers = await Promise.all(Array.from({ length: 1000 }, () => send()));
  const served = answers.filter((a) => a.status === 200).length;
  assert.ok(up.seen.length <= 100, `${up.seen.length} calls were sent`);
  assert.equal(served, up.seen.length);
  // The slice of an instance whose calls came too early may have the others.
  assert.ok(served >= 95, `only ${served} calls were served`);
  for (const a of answers)
    if (a.status !== 200) {
      assert.equal(a.status, 429, a.text);
      assert.equal(JSON.parse(a.text).error.code, "budget_exceeded");
      assert.equal(a.headers.get("x-should-retry"), "false");
    }
  await until("the count of what was served", async () => (await shown())[0].spent === served);
});

// flood sends waves of 200 streams at once until $15 of a budget of $20 are spent. An
// answer has 1 to 128,000 tokens, or as many as its request allows. A tenth is left by its
// clients after a text of 100 tokens, and a tenth breaks off there.
async function flood(fields) {
  const { machineId, apiKey, shown } = await machine({ name: "twenty", unit: "usd", limit: 20, window: "total" });
  const api = (method, path, body) => operator.call(method, `/${machineId}/api${path}`, body);
  await api("PATCH", "/settings", { allowUnknown: true, modelPrices: { "up/test-chat": "1/25" } });
  const event = (more) => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...more })}\n\n`;
  const choice = (delta, finish_reason = null) => event({ choices: [{ index: 0, delta, finish_reason }] });
  const any = (most) => 1 + Math.floor(Math.random() * most);
  let open = [],
    limited = 0;
  up.script = ({ json }) => {
    const most = json.max_completion_tokens ?? json.max_tokens;
    if (most) limited++;
    const body = new PassThrough();
    body.write(choice({ content: "a".repeat(400) }));
    open.push({ body, output: Math.min(any(128_000), most ?? Number.POSITIVE_INFINITY) });
    return { headers: { "content-type": "text/event-stream" }, body };
  };
  const leaves = new WeakMap();
  const call = async () => {
    const leave = new AbortController();
    const answer = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      signal: leave.signal,
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({
        model: "up/test-chat",
        messages: [{ role: "user", content: "a" }],
        stream: true,
        ...fields(any),
      }),
    });
    leaves.set(answer, leave);
    return answer;
  };
  const waves = [];
  let billed = 0,
    budget;
  do {
    open = [];
    const answers = await Promise.all(Array.from({ length: 200 }, call));
    const served = answers.filter((a) => a.status === 200);
    for (const a of answers)
      if (a.status !== 200) assert.equal(JSON.parse(await a.text()).error.code, "budget_exceeded");
    waves.push(served.length);
    assert.equal(open.length, served.length);
    const tenth = Math.floor(served.length / 10);
    for (const a of served.splice(0, tenth)) leaves.get(a).abort();
    await until("streams that are left", () => open.filter((o) => o.body.destroyed).length === tenth);
    const lasting = open.filter((o) => !o.body.destroyed);
    for (const [i, { body, output }] of lasting.entries())
      body.end(
        i < tenth
          ? undefined
          : `${choice({}, "stop")}${event({ choices: [], usage: { prompt_tokens: 5, completion_tokens: output } })}data: [DONE]\n\n`,
      );
    for (const a of served) await a.text().catch(() => {});
    for (const o of open) billed += 5e-6 + 25e-6 * (lasting.indexOf(o) >= tenth ? o.output : 100);
    const all = waves.reduce((sum, n) => sum + n);
    const counted = async () => {
      [budget] = await shown();
      const { total } = await api("GET", "/usage");
      return total.attempts === all && (total.costUsd ?? 0) === budget.spent;
    };
    await until("one figure in budget and usage", counted, 120_000, 250);
  } while (budget.spent < 15 && waves.length < 8);
  return { waves, billed, limited, spent: budget.spent };
}

test("a budget in dollars holds for 200 streams at once without a token limit", async () => {
  const { waves, billed, limited, spent } = await flood(() => ({}));
  assert.equal(spent.toFixed(9), billed.toFixed(9), "what is counted is what the provider bills");
  assert.ok(spent <= 20 && spent >= 15, `$${spent} of $20`);
  assert.ok(waves[0] > 10 && limited > 0, `${waves} calls were served, ${limited} with a limit of the gateway`);
});

test("a budget in dollars holds for 200 streams at once with token limits", async () => {
  const { billed, spent } = await flood((any) => ({ max_tokens: any(128_000) }));
  assert.equal(spent.toFixed(9), billed.toFixed(9), "what is counted is what the provider bills");
  assert.ok(spent <= 20 && spent >= 15, `$${spent} of $20`);
});

test("a key's limits hold under many calls at once, over all instances", async () => {
  const { machineId, send } = await machine();
  const make = async (fields) => (await operator.call("POST", `/${machineId}/api/keys`, fields)).apiKey;
  const flood = async (key, n, body) => {
    const before = up.seen.length;
    const answers = await Promise.all(Array.from({ length: n }, () => send("/v1/chat/completions", body, key)));
    const codes = new Set(
      answers.filter((a) => a.status !== 200).map((a) => `${a.status} ${JSON.parse(a.text).error.code}`),
    );
    return { sent: up.seen.length - before, refused: [...codes] };
  };
  const daily = await flood(await make({ dailyMax: 50 }), 400);
  assert.ok(daily.sent <= 50 && daily.sent >= 45, `${daily.sent} of 50 a day were sent`);
  assert.deepEqual(daily.refused, ["429 rate_limit_exceeded"]);
  const tokens = await make({ tpm: 1000 });
  const few = await flood(tokens, 200, { max_tokens: 100 });
  assert.ok(few.sent >= 5, `${few.sent} calls were sent`);
  assert.deepEqual(few.refused, ["429 rate_limit_exceeded"]);
  const own = await gw.fetch("/v1/usage", { headers: { authorization: `Bearer ${tokens}` } });
  const [limit] = (await own.json()).limits;
  assert.ok(limit.used <= 1000, `${limit.used} of 1,000 tokens were used`);
  const parallel = await make({ maxParallel: 4 });
  const held = []; // the calls under way
  up.script = () => new Promise((done) => held.push(done));
  const answers = [];
  const calls = [];
  const call = () => calls.push(send("/v1/chat/completions", {}, parallel).then((answer) => answers.push(answer)));
  for (let i = 0; i < 40; i++) call();
  await until("the answers to all others", async () => answers.length + held.length === calls.length);
  assert.ok(held.length <= 4, `${held.length} calls are under way`);
  const codes = new Set(answers.map((a) => `${a.status} ${JSON.parse(a.text).error.code}`));
  assert.deepEqual([...codes], ["429 concurrency_limit_exceeded"]);
  // Calls that came before the first slice of the limit may have been refused too early.
  await until("four calls under way", async () => {
    if (held.length < 4 && answers.length + held.length === calls.length) call();
    return held.length === 4;
  });
  const fifth = await send("/v1/chat/completions", {}, parallel);
  assert.equal(fifth.status, 429, fifth.text);
  up.script = undefined;
  for (const done of held) done();
  await Promise.all(calls);
  await until(
    "a call after the others have ended",
    async () => (await send("/v1/chat/completions", {}, parallel)).status === 200,
  );
});

test("a machine has no more requests under way than its setting permits", async () => {
  const { machineId, send } = await machine({ name: "wide", unit: "requests", limit: 1000, window: "total" });
  const patch = (maxParallel) => operator.call("PATCH", `/${machineId}/api/settings`, { maxParallel });
  assert.equal((await patch(2)).maxParallel, 2);
  const keys = [];
  for (const name of ["a", "b"]) keys.push((await operator.call("POST", `/${machineId}/api/keys`, { name })).apiKey);
  const held = [];
  up.script = () => new Promise((done) => held.push(done));
  const calls = [];
  for (const key of keys) {
    const seen = up.seen.length;
    calls.push(send("/v1/chat/completions", {}, key));
    await until("a call under way", async () => up.seen.length > seen);
  }
  for (const key of keys) {
    const more = await send("/v1/chat/completions", {}, key);
    assert.equal(more.status, 429, more.text);
    assert.equal(JSON.parse(more.text).error.code, "concurrency_limit_exceeded");
    assert.match(more.text, /This machine has 2 calls under way/);
  }
  up.script = undefined;
  for (const done of held) done();
  assert.deepEqual(
    (await Promise.all(calls)).map((a) => a.status),
    [200, 200],
  );
  await until(
    "a call after the others have ended",
    async () => (await send("/v1/chat/completions", {}, keys[0])).status === 200,
  );
});

test("a budget survives the end of the program, and its slices come back", async () => {
  const { send, shown } = await machine({ name: "kept", unit: "requests", limit: 40, window: "total" });
  await Promise.all(Array.from({ length: 20 }, () => send()));
  const before = up.seen.length;
  assert.equal(before, 20);
  await until("the count of the first calls", async () => (await shown())[0].spent === 20);
  await gw.kill();
  gw = await start({ persist: storage });
  operator = admin(gw);
  await Promise.all(Array.from({ length: 60 }, () => send()));
  assert.ok(up.seen.length <= 40, `${up.seen.length} calls were sent`);
  // The instances that were ended had slices: at most half of what is left.
  assert.ok(up.seen.length >= 30, `only ${up.seen.length} calls were sent`);
});

test("what a call had reserved is not lost if the program is killed", async () => {
  const told = [];
  const hook = createServer((req, res) => {
    let body = "";
    req.on("data", (d) => (body += d));
    req.on("end", () => told.push(JSON.parse(body)) && res.end());
  });
  await new Promise((done) => hook.listen(0, "127.0.0.1", done));
  try {
    const webhookUrl = `http://127.0.0.1:${hook.address().port}/hook`;
    const { machineId, send, shown } = await machine({
      name: "one",
      unit: "usd",
      limit: 1,
      window: "total",
      webhookUrl,
    });
    const prices = { allowUnknown: true, modelPrices: { "up/test-chat": "1/25" } };
    await operator.call("PATCH", `/${machineId}/api/settings`, prices);
    const body = new PassThrough();
    body.write('data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n');
    up.script = () => ({ headers: { "content-type": "text/event-stream" }, body });
    const left = send(undefined, { stream: true, max_tokens: 24_000 }).catch(() => {}); // up to $0.60
    await until("the call", () => up.seen.length === 1);
    await gw.kill();
    await left;
    gw = await start({ persist: storage });
    operator = admin(gw);
    const [b] = await shown();
    assert.ok(b.spent + b.reserved >= 0.6, JSON.stringify(b));
    const refused = await send(undefined, { max_tokens: 20_000 });
    assert.equal(refused.status, 429, refused.text);
    assert.equal(up.seen.length, 1);
    // In workerd another instance may be alive: it is spent after 20 minutes.
    if (platform === "native") {
      assert.ok(Math.abs(b.spent - 0.6) < 0.001, JSON.stringify(b));
      assert.match(refused.text, /has \$0\.(39\d*|40?) left/);
      await until("the alert", () => told.length > 0);
      assert.equal(told[0].data.percent, 50);
    }
  } finally {
    up.script = null;
    hook.close();
  }
});

test("the error is that of the client's dialect, with the reset", async () => {
  const { send } = await machine({ name: "one a day", unit: "requests", limit: 1, window: "day" });
  assert.equal((await send()).status, 200);
  const messages = await send("/v1/messages");
  assert.equal(messages.status, 429);
  const { type, error } = JSON.parse(messages.text);
  assert.deepEqual([type, error.type], ["error", "rate_limit_error"]);
  assert.match(error.message, /"one a day" of 1 request per day is used up\. Resets \w+ \d+, 00:00 UTC\.$/);
  const seconds = Number(messages.headers.get("retry-after"));
  const left = 86_400 - ((Date.now() / 1000) % 86_400);
  assert.ok(Math.abs(seconds - left) < 30, `${seconds} s instead of ${left} s`);
  const chat = JSON.parse((await send()).text).error;
  assert.deepEqual([chat.type, chat.code], ["rate_limit_error", "budget_exceeded"]);
  assert.equal(up.seen.length, 1);
});

test("tokens of answers and streams count, of the budget's key and models alone", async () => {
  const { machineId, send, shown } = await machine({
    name: "small",
    unit: "tokens",
    limit: 100_000,
    window: "month",
    models: ["up/test-*"],
  });
  const key = await operator.call("POST", `/${machineId}/api/keys`, { name: "other" });
  await operator.call("POST", `/${machineId}/api/budgets`, {
    name: "other",
    keyId: key.id,
    unit: "tokens",
    limit: 5,
    window: "month",
  });
  const first = await send();
  const tokens = JSON.parse(first.text).usage.total_tokens;
  assert.equal((await send(undefined, { stream: true, stream_options: { include_usage: true } })).status, 200);
  assert.equal((await send("/v1/messages")).status, 200);
  const spent = await until("the count", async () => {
    const [small, other] = await shown();
    assert.equal(other.spent, 0);
    return small.spent >= 2 * tokens && small.spent;
  });
  assert.ok(spent > 0);
  const res = await gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key.apiKey}` },
    body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "a" }], max_tokens: 20 }),
  });
  assert.equal(res.status, 429);
  assert.match((await res.json()).error.message, /"other" of 5 tokens per month/);
});

test("a budget adds no limit above the context that a tested account's server lists", async () => {
  const { machineId, send } = await machine({ name: "b", unit: "tokens", limit: 500_000, window: "day" });
  const set = async () => (await send(undefined, { max_tokens: undefined })).headers.get("x-weir-set");
  assert.match(await set(), /^max_\w+=6\d{4}$/); // an eighth of the budget: nothing is known of the model
  const { data } = await operator.call("GET", `/${machineId}/api/providers`);
  const body = JSON.stringify({ data: [{ id: "test-chat", max_model_len: 8192 }] });
  up.script = ({ path }) => (path.endsWith("/models") ? { body } : null);
  assert.equal((await operator.call("POST", `/${machineId}/api/providers/${data[0].id}/test`)).ok, true);
  up.script = null;
  assert.equal(await set(), null);
});

test("a call that does not fit is refused, a smaller one is served", async () => {
  const { send } = await machine({ name: "small", unit: "tokens", limit: 1000, window: "total" });
  const large = await send(undefined, { max_tokens: 5000 });
  assert.deepEqual([large.status, large.headers.get("retry-after")], [429, null], "it never fits");
  assert.equal((await send()).status, 200);
  assert.equal(up.seen.length, 1);
});

test("a plan leaves out what a budget refuses, with the key's own budgets", async () => {
  const { machineId, send } = await machine({ name: "small", unit: "requests", limit: 1, window: "total" });
  const [key] = (await operator.call("GET", `/${machineId}/api/keys`)).data;
  const plan = async (more) =>
    (
      await operator.call("POST", `/${machineId}/api/explain`, {
        path: "/v1/chat/completions",
        body: { model: "up/test-chat", messages: [{ role: "user", content: "a" }], max_tokens: 20 },
        ...more,
      })
    ).plan[0];
  await operator.call("POST", `/${machineId}/api/budgets`, {
    name: "of the key",
    keyId: key.id,
    unit: "tokens",
    limit: 1000,
    window: "day",
  });
  const of = (step) => [step.try, step.skipped, ...step.budgets.map((b) => [b.name, b.left, b.refused])];
  assert.deepEqual(of(await plan()), [1, "", ["small", 1, ""]]);
  const own = await plan({ keyId: key.id });
  assert.deepEqual(of(own), [1, "", ["small", 1, ""], ["of the key", 1000, ""]]);
  assert.ok(own.budgets[1].reserves >= 20 && own.budgets[1].reserves < 100, JSON.stringify(own.budgets));
  assert.equal((await send()).status, 200);
  await until("the plan without a budget", async () => (await plan()).skipped === "budget_exceeded");
  assert.deepEqual(of(await plan()), [0, "budget_exceeded", ["small", 0, "budget_exceeded"]]);
});

test("a budget covers calls that come to its combo or alias through another combo", async () => {
  const { machineId, send } = await machine({
    name: "inner",
    unit: "requests",
    limit: 1,
    window: "total",
    models: ["inner"],
    allowUnknown: true,
  });
  const combo = (name, models) => operator.call("POST", `/${machineId}/api/combos`, { name, models });
  await combo("inner", ["up/test-chat"]);
  await combo("outer", ["inner"]);
  assert.equal((await send(undefined, { model: "outer" })).status, 200);
  assert.equal((await send(undefined, { model: "outer" })).status, 429);
  assert.equal((await send(undefined, { model: "up/test-chat" })).status, 200);
});

test("the budgets of a key end with it", async () => {
  const { machineId, shown } = await machine();
  const key = await operator.call("POST", `/${machineId}/api/keys`, { name: "left" });
  const budget = { name: "of a key", unit: "requests", limit: 1, window: "day" };
  await operator.call("POST", `/${machineId}/api/budgets`, { ...budget, keyId: key.id });
  await operator.call("POST", `/${machineId}/api/budgets`, { ...budget, name: "of all" });
  await operator.call("DELETE", `/${machineId}/api/keys/${key.id}`);
  assert.deepEqual(
    (await shown()).map((b) => b.name),
    ["of all"],
  );
});

test("days begin in the machine's time zone", async () => {
  const { machineId, send, shown } = await machine();
  await operator.call("PATCH", `/${machineId}/api/settings`, { timeZone: "Asia/Kathmandu" });
  await assert.rejects(operator.call("PATCH", `/${machineId}/api/settings`, { timeZone: "Asia/Nowhere" }), {
    status: 400,
  });
  await operator.call("POST", `/${machineId}/api/budgets`, { name: "day", unit: "requests", limit: 10, window: "day" });
  await until("a call that counts", async () => (await send()).status === 200 && (await shown())[0].resetsAt);
  const end = new Date((await shown())[0].resetsAt).toISOString();
  assert.match(end, /T18:15:00.000Z$/);
});

test("a webhook is told once of each share of a budget, with a signature", async () => {
  const told = [];
  const hook = createServer((req, res) => {
    let body = "";
    req.on("data", (d) => (body += d));
    req.on("end", () => {
      told.push({ headers: req.headers, body });
      res.statusCode = told.length === 1 ? 500 : 200; // the first try fails
      res.end();
    });
  });
  await new Promise((done) => hook.listen(0, "127.0.0.1", done));
  try {
    const { machineId, send } = await machine();
    const made = await operator.call("POST", `/${machineId}/api/budgets`, {
      name: "hooked",
      unit: "requests",
      limit: 2,
      window: "total",
      webhookUrl: `http://127.0.0.1:${hook.address().port}/hook`,
    });
    await until("a call that counts", async () => {
      await send();
      return (await operator.call("GET", `/${machineId}/api/budgets/${made.id}`)).spent > 0;
    });
    await until("the alert", () => told.length > 0);
    const { headers, body } = told[0];
    const key = Buffer.from(made.webhookSecret.replace("whsec_", ""), "base64");
    const text = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    assert.equal(headers["webhook-signature"], `v1,${createHmac("sha256", key).update(text).digest("base64")}`);
    const { type, data } = JSON.parse(body);
    assert.deepEqual([type, data.budgetId, data.name, data.limit], ["budget.reached", made.id, "hooked", 2]);
    assert.ok([50, 100].includes(data.percent), body);
  } finally {
    hook.close();
  }
});
