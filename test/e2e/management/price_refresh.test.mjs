// The operator's cron refreshes prices and models from a source. See docs/prices.md.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, start } from "../gateway.mjs";
import { edit } from "../storage.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, storage, me;
const keys = generateKeyPairSync("ed25519");
const source = { document: "", signature: "", status: 200, asked: 0 };

before(async () => {
  storage = await mkdtemp(join(tmpdir(), "weir-prices-"));
  up = await startUpstream();
  up.script = ({ path }) => {
    if (path === "/prices.json") source.asked++;
    if (path.startsWith("/prices.json"))
      return { status: source.status, body: path.endsWith(".sig") ? source.signature : source.document };
    return {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        id: "c",
        object: "chat.completion",
        created: 1,
        model: "m",
        choices: [{ index: 0, message: { role: "assistant", content: "" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 100_000, completion_tokens: 0, total_tokens: 100_000 },
      }),
    };
  };
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(storage, { recursive: true, force: true });
});

// again starts the gateway again: a new instance reads the stored prices with its first
// call. aged makes them older than an hour.
async function again({ env = {}, aged = false } = {}) {
  const older = (text) => text.replace(/"(fetchedAt|failedAt)":\d{13}/g, `"$1":${Date.now() - 3_700_000}`);
  const { kv } = gw ?? {};
  if (aged && kv) await kv.put("prices", older(await kv.get("prices")));
  await gw?.close();
  if (aged && !kv) edit(storage, (key, text) => (key === "prices" ? older(text) : text));
  const key = keys.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
  gw = await start({
    persist: storage,
    vendors: up,
    env: { PRICES_URL: `${up.url}/prices.json`, PRICES_KEY: key, ...env },
  });
  operator = admin(gw);
}

function publish(gpt5, more = {}, signed = true, models = undefined) {
  const openai = { "gpt-5": gpt5, ...more };
  for (let i = 0; i < 30; i++) openai[`test-${i}`] = "1/2";
  source.document = JSON.stringify({
    format: "weir-prices",
    version: 1,
    issuedAt: Math.floor(Date.now() / 1000),
    prices: { openai },
    models: models && { openai: models },
  });
  source.signature = signed ? sign(null, Buffer.from(source.document), keys.privateKey).toString("base64") : "AAAA";
}

const state = async () => (await operator.call("GET", "/api/version")).prices;

// costs makes a call of 100,000 tokens and returns what a million costs.
let calls = 0,
  spent = 0;
async function costs() {
  const res = await gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
    body: JSON.stringify({ model: "openai/gpt-5", messages: [{ role: "user", content: "hi" }] }),
  });
  assert.equal(res.status, 200, await res.text());
  calls++;
  const total = await until("the usage", async () => {
    const { total } = await operator.call("GET", `/${me.machineId}/api/usage`);
    return total.requests === calls && total;
  });
  const cost = Math.round((total.costUsd - spent) * 1e7) / 1e6;
  spent = total.costUsd;
  return cost;
}

test("prices of a signed source are taken, checked, and stay", async () => {
  publish("1/8/0.1");
  source.status = 500;
  await again();
  await gw.cron();
  const failed = await state();
  assert.deepEqual(
    [failed.source, failed.signed, failed.rows, failed.limits, failed.fetchedAt, failed.error],
    [`${up.url}/prices.json`, true, 0, 0, undefined, "status 500"],
  );
  assert.ok(failed.failedAt > Date.now() - 60_000);
  source.status = 200;
  source.asked = 0;
  await again({ aged: true });
  await gw.cron();
  const first = await state();
  assert.equal(first.rows, 31, JSON.stringify(first));
  assert.ok(first.fetchedAt > Date.now() - 60_000);
  me = await operator.machine();
  await operator.call("POST", `/${me.machineId}/api/providers`, {
    provider: "openai",
    apiKey: "openai-test-key-012345",
  });
  assert.equal(await costs(), 1);
  const listed = await operator.call("GET", `/${me.machineId}/api/models/list/llm`);
  assert.equal(listed.data.find((m) => m.id === "openai/gpt-5").pricing.input, 1);
  await gw.cron();
  assert.equal(source.asked, 1, "the source was asked twice within an hour");

  // A wrong signature: the prices stay.
  publish("2/8/0.1", {}, false);
  await again({ aged: true });
  await gw.cron();
  assert.equal((await state()).issuedAt, first.issuedAt);
  assert.ok(
    gw.logs.some((l) => l.includes("the signature is not one of PRICES_KEY")),
    gw.logs.join("\n"),
  );
  assert.equal(await costs(), 1);

  // An absurd row is held back, and the others are taken; what is past keeps its price.
  publish("3/8/0.1", { "gpt-5-mini": "500/500" });
  await again({ aged: true }); // after a failure it is not asked again for ten minutes
  await gw.cron();
  const second = await state();
  assert.deepEqual([second.rows, second.held], [31, 1]);
  await again();
  assert.equal(await costs(), 3);
  assert.equal(Math.round(spent * 1e6) / 1e6, 0.5);

  // The source is gone.
  source.status = 404;
  await again({ aged: true });
  await gw.cron();
  assert.equal((await state()).rows, 31);
  assert.equal(await costs(), 3);

  // Without a source, or without what was stored, the catalogue of the build counts.
  if (gw.kv) await gw.kv.delete("prices");
  await again(gw.kv ? {} : { env: { PRICES_URL: "off", PRICES_KEY: undefined } });
  assert.equal(await costs(), 1.25);
  assert.equal((await state())?.rows ?? 0, 0);
});

test("models of the source are added", async () => {
  source.status = 200;
  publish("1/8/0.1", { "gpt-next": "2/4" }, true, {
    "gpt-next": { kind: "llm", name: "GPT Next", context_length: 4000, max_completion_tokens: 2500 },
    "embed-next": { kind: "embedding" },
    "gpt-5": { kind: "embedding", context_length: 4000 },
    "gpt-absurd": { kind: "llm", context_length: 1 },
  });
  await again({ aged: !gw.kv });
  await gw.cron();
  const taken = await state();
  assert.deepEqual([taken.rows, taken.addedModels, taken.refusedModels], [32, 2, 2]); // with the limit of gpt-5
  assert.equal(taken.modelText, undefined);

  const other = await operator.machine();
  await operator.call("POST", `/${other.machineId}/api/providers`, {
    provider: "openai",
    apiKey: "openai-test-key-012345",
  });
  const list = (kind) => operator.call("GET", `/${other.machineId}/api/models/list/${kind}`);
  const { data: chats } = await list("llm");
  const added = chats.find((m) => m.id === "openai/gpt-next");
  assert.deepEqual(
    [added?.kind, added?.context_length, added?.pricing?.input],
    ["llm", 4000, 2],
    JSON.stringify(added),
  );
  assert.ok(chats.some((m) => m.id === "openai/gpt-5"));
  assert.ok(!chats.some((m) => m.id === "openai/gpt-absurd"));
  assert.ok((await list("embedding")).data.some((m) => m.id === "openai/embed-next"));

  // A request that does not fit goes to the next member of a combo.
  await operator.call("POST", `/${other.machineId}/api/combos`, {
    name: "mix",
    models: ["openai/gpt-next", "openai/gpt-5"],
  });
  const asks = async (model, words) => {
    up.seen.length = 0;
    const res = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${other.apiKey}` },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "four ".repeat(words) }] }),
    });
    assert.equal(res.status, 200, await res.text());
    return up.seen.filter((r) => r.path.endsWith("/chat/completions")).map((r) => r.json.model);
  };
  assert.deepEqual(await asks("mix", 10), ["gpt-next"]);
  assert.deepEqual(await asks("mix", 12_000), ["gpt-5"]);
  assert.deepEqual(await asks("gpt-next", 10), ["gpt-next"]); // without the alias
});

test("a list of 50 MB in the form of models.dev is read by provider, and a broken one changes nothing", async () => {
  source.status = 200;
  const models = { "gpt-5": { cost: { input: 2, output: 8, cache_read: 0.2 }, limit: { context: 300_000 } } };
  for (let i = 0; i < 30; i++) models[`test-${i}`] = { cost: { input: 1, output: 2 } };
  const other = JSON.stringify({ models: { m: { description: 'a \\" ] } é '.repeat(40_000), cost: { input: 1 } } } });
  const parts = Array.from({ length: Math.ceil(50e6 / other.length) }, (_, i) => `"other-${i}":${other}`);
  source.document = `{${parts.join()},"openai":${JSON.stringify({ models })}}`;
  const env = { PRICES_KEY: undefined };
  await again({ env, aged: true });
  await gw.cron();
  const taken = await state();
  assert.deepEqual([taken.error, taken.signed, taken.rows, taken.limits], [undefined, false, 31, 1]);
  me = await operator.machine();
  await operator.call("POST", `/${me.machineId}/api/providers`, {
    provider: "openai",
    apiKey: "openai-test-key-012345",
  });
  [calls, spent] = [0, 0];
  assert.equal(await costs(), 2);

  source.document = `${source.document.slice(0, -1)}]`;
  await again({ env, aged: true });
  await gw.cron();
  const failed = await state();
  assert.deepEqual([failed.error, failed.rows], ["it is not JSON", 31]);
  assert.equal(gw.logs.filter((l) => l.includes("it is not JSON")).length, 1);
  assert.equal(await costs(), 2);
});
