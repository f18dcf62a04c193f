// Calls are priced by what their answers are billed by, with the price of their time.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

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

async function machine(name) {
  const me = await operator.machine({ name });
  const api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);
  const post = async (path, body) => {
    const form = body instanceof FormData;
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${me.apiKey}`, ...(!form && { "content-type": "application/json" }) },
      body: form ? body : JSON.stringify(body),
    });
    const text = await res.text();
    assert.equal(res.status, 200, text);
    return text;
  };
  // spent waits until a number of requests is counted.
  const spent = async (requests) => {
    let total;
    await until("the usage", async () => (total = (await api("GET", "/usage")).total).requests === requests);
    return [Math.round((total.costUsd ?? 0) * 1e9) / 1e9, total.unpricedAttempts ?? 0];
  };
  await api("POST", "/providers", { provider: "openai", apiKey: "openai-test-key-0123456789" });
  await api("POST", "/providers", { provider: "xai", apiKey: "xai-test-key-0123456789" });
  await api("POST", "/providers", { provider: "cohere", apiKey: "cohere-test-key-0123456789" });
  return { ...me, api, post, spent };
}

const answer = (usage, more) =>
  JSON.stringify({
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    usage,
    ...more,
  });
const hello = [{ role: "user", content: "hi" }];

test("an own price goes before the catalogue's, and what is past keeps its price", async () => {
  const me = await machine("Own");
  const call = async (usage, more, model = "openai/gpt-5") => {
    up.script = () => ({ body: answer(usage, more) });
    await me.post("/v1/chat/completions", { model, messages: hello });
    up.script = null;
  };
  const long = { prompt_tokens: 200_000, completion_tokens: 20_000 };
  const short = { prompt_tokens: 100_000, completion_tokens: 10_000 };
  await call(long); // 1.25/10
  assert.deepEqual(await me.spent(1), [0.45, 0]);
  await me.api("PATCH", "/settings", { modelPrices: { "openai/gpt-5": "1/8 >100000=2/16 @flex=0.5/4" } });
  await call(long); // 2/16: a long prompt
  assert.deepEqual(await me.spent(2), [1.17, 0]);
  await call(short); // 1/8
  assert.deepEqual(await me.spent(3), [1.35, 0]);
  await call(short, { service_tier: "flex" });
  assert.deepEqual(await me.spent(4), [1.44, 0]);
  await call(short, { service_tier: "priority" });
  assert.deepEqual(await me.spent(5), [1.44, 1], "a tier without a price is unpriced");
  await me.api("PATCH", "/settings", { modelPrices: { "openai/gpt-5": null } });
  await call(short, { service_tier: "priority" }); // 2.5/20
  assert.deepEqual(await me.spent(6), [1.89, 1]);
  // The cost that a vendor states goes before the catalogue.
  await call({ ...short, cost_in_usd_ticks: 5e9 }, {}, "xai/grok-4.3");
  assert.deepEqual(await me.spent(7), [2.39, 1]);
  await call({ prompt_tokens: 1_000, completion_tokens: 100, cost_in_usd_ticks: 5e9 }); // not of OpenAI: 1.25/10
  assert.deepEqual(await me.spent(8), [2.39225, 1]);
});

test("prices that cannot be read are refused, with what to write", async () => {
  const me = await machine("Refused");
  for (const [value, field] of [
    [{ "openai/gpt-5": "cheap" }, "modelPrices.openai/gpt-5"],
    [{ "openai/gpt-5": 4 }, "modelPrices.openai/gpt-5"],
    [{ "gpt-5": "1/2" }, "modelPrices"],
    ["1/2", "modelPrices"],
  ])
    await assert.rejects(
      me.api("PATCH", "/settings", { modelPrices: value }),
      (e) => e.status === 400 && e.body.error.param === field,
      JSON.stringify(value),
    );
  assert.equal((await me.api("GET", "/settings")).modelPrices, undefined);
});

test("a budget in dollars refuses images and speech that cost more than is left", async () => {
  const me = await machine("Ordered");
  await me.api("PATCH", "/settings", { modelPrices: { "xai/grok-imagine-image": "image=0.07" } });
  await me.api("POST", "/budgets", { name: "small", unit: "usd", limit: 0.1, window: "total" });
  const sent = [];
  up.script = ({ path }) => {
    sent.push(path);
    return { body: JSON.stringify({ created: 1, data: [{ b64_json: "aGk=" }] }) };
  };
  const refused = async (path, body, text) => {
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const { error } = await res.json();
    assert.deepEqual([res.status, error.code], [429, "budget_exceeded"]);
    assert.ok(error.message.includes(text), error.message);
  };
  const image = { model: "xai/grok-imagine-image", prompt: "a cat" };
  await refused("/v1/images/generations", { ...image, n: 2 }, "this call could cost $0.14.");
  await me.post("/v1/images/generations", { ...image, n: 1 });
  assert.deepEqual(await me.spent(2), [0.07, 0]); // the refused call is a request too
  await refused("/v1/images/generations", { ...image, n: 1 }, "this call could cost $0.07");
  const speech = { model: "openai/tts-1", input: "é".repeat(3000), voice: "alloy" };
  await refused("/v1/audio/speech", speech, "this call could cost $0.045");
  assert.deepEqual(sent, ["/v1/images/generations"]);
  up.script = null;
});

test("images, speech, transcriptions and rerank are priced by what they are billed by", async () => {
  const me = await machine("Media");
  await me.api("PATCH", "/settings", { modelPrices: { "xai/grok-imagine-image": "image=0.07" } });
  const image = { b64_json: "aGk=" };
  up.script = () => ({
    body: JSON.stringify({
      created: 1,
      data: [image],
      usage: { input_tokens: 300, output_tokens: 1000, input_tokens_details: { text_tokens: 100, image_tokens: 200 } },
    }),
  });
  await me.post("/v1/images/generations", { model: "openai/gpt-image-1-mini", prompt: "a cat" });
  // 100 · 2 + 200 · 2.5 + 1,000 · 8 for a million
  assert.deepEqual(await me.spent(1), [0.0087, 0]);
  up.script = () => ({ body: JSON.stringify({ created: 1, data: [image, image] }) });
  await me.post("/v1/images/generations", { model: "xai/grok-imagine-image", prompt: "a cat", n: 2 });
  assert.deepEqual(await me.spent(2), [0.1487, 0]);
  up.script = () => ({ headers: { "content-type": "audio/mpeg" }, body: "ID3 sound" });
  await me.post("/v1/audio/speech", { model: "openai/tts-1", input: "é".repeat(1000), voice: "alloy" });
  assert.deepEqual(await me.spent(3), [0.1637, 0]);
  const form = new FormData();
  form.set("model", "openai/whisper-1");
  form.set("file", new Blob(["sound"], { type: "audio/wav" }), "a.wav");
  up.script = () => ({ body: JSON.stringify({ text: "hi", usage: { type: "duration", seconds: 90 } }) });
  await me.post("/v1/audio/transcriptions", form);
  assert.deepEqual(await me.spent(4), [0.1727, 0]);
  up.script = () => ({
    body: JSON.stringify({
      id: "r",
      results: [{ index: 0, relevance_score: 1 }],
      meta: { billed_units: { search_units: 2 } },
    }),
  });
  await me.post("/v1/rerank", { model: "cohere/rerank-v3.5", query: "q", documents: ["a"] });
  assert.deepEqual(await me.spent(5), [0.1767, 0]);
  up.script = null;
});
