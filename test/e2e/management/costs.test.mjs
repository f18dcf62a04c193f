// The costs that vendors bill beside the tokens are the same in all places on both platforms: in the
// answer, in the list of requests and in the usage.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const tokens = { input_tokens: 10_000, output_tokens: 1_000 }; // $0.02
let gw, up, api, key;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  const operator = admin(gw);
  const { machineId, apiKey } = await operator.machine();
  key = apiKey;
  api = (method, path, body) => operator.call(method, `/${machineId}/api${path}`, body);
  for (const provider of ["openai", "anthropic", "gemini"])
    await api("POST", "/providers", { provider, apiKey: "upstream-test-key-0123456789" });
  const models = ["openai/gpt-5.5", "anthropic/claude-opus-4-8", "gemini/gemini-3.8-flash"];
  await api("PATCH", "/settings", {
    streamCost: "on",
    modelPrices: Object.fromEntries(models.map((id) => [id, "1/10"])),
  });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

async function call(path, body, answer) {
  up.script = () =>
    typeof answer === "string"
      ? { headers: { "content-type": "text/event-stream" }, body: answer }
      : { body: JSON.stringify(answer) };
  const res = await gw.fetch(path, {
    method: body ? "POST" : "GET",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await res.text();
  assert.equal(res.status, 200, text);
  return { text, cost: res.headers.get("x-weir-cost") };
}

// counted waits until a number of attempts is counted, and returns what they cost and what
// is shown of the last request.
async function counted(attempts) {
  let total, last;
  await until("the usage", async () => (total = (await api("GET", "/usage")).total).attempts === attempts);
  await until("the request", async () => (last = (await api("GET", "/requests")).data)?.length === attempts);
  return [Math.round((total.costUsd ?? 0) * 1e9) / 1e9, last[0]];
}

test("searches, compaction, grounding and a response in the background", async () => {
  const response = (more) => ({ id: "resp_1", object: "response", status: "completed", output: [], ...more });
  const search = { type: "web_search_call", id: "ws", status: "completed", action: { type: "search", query: "a" } };

  const searched = response({ output: [search, search, search], usage: tokens });
  assert.equal((await call("/v1/responses", { model: "openai/gpt-5.5", input: "a" }, searched)).cost, "0.05");
  let [spent, last] = await counted(1);
  assert.deepEqual([spent, last.costUsd, last.priced], [0.05, 0.05, true]);

  const iterations = [
    { type: "compaction", input_tokens: 180_000, output_tokens: 3_500 },
    { type: "message", ...tokens },
  ];
  const events = [
    {
      type: "message_start",
      message: { id: "m", type: "message", role: "assistant", content: [], usage: { ...tokens, output_tokens: 1 } },
    },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { ...tokens, iterations } },
    { type: "message_stop" },
  ];
  const ask = { model: "anthropic/claude-opus-4-8", max_tokens: 5_000, messages: [{ role: "user", content: "a" }] };
  const stream = events.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join("");
  const { text } = await call("/v1/messages", { ...ask, stream: true }, stream);
  assert.match(text, /\n: x-weir-cost 0\.235\n/);
  [spent, last] = await counted(2);
  assert.deepEqual([spent, last.costUsd, last.priced], [0.285, 0.235, true]);

  const grounded = {
    candidates: [
      {
        content: { role: "model", parts: [{ text: "a" }] },
        finishReason: "STOP",
        groundingMetadata: { webSearchQueries: ["a", "b"] },
      },
    ],
    usageMetadata: { promptTokenCount: 10_000, candidatesTokenCount: 1_000, totalTokenCount: 11_000 },
  };
  const contents = [{ role: "user", parts: [{ text: "a" }] }];
  const gemini = await call("/v1beta/models/gemini/gemini-3.8-flash:generateContent", { contents }, grounded);
  assert.equal(gemini.cost, "0.048");
  [spent, last] = await counted(3);
  assert.deepEqual([spent, last.costUsd, last.priced], [0.333, 0.048, true]);

  const id = "resp_background";
  const queued = response({ id, status: "queued", background: true, usage: null });
  const made = await call("/v1/responses", { model: "openai/gpt-5.5", input: "a", background: true }, queued);
  assert.equal(made.cost, "unknown");
  const done = response({ id, background: true, output: [search], usage: tokens });
  for (let poll = 0; poll < 2; poll++) await call(`/v1/responses/${id}`, null, done);
  [spent, last] = await counted(4);
  assert.deepEqual([spent, last.priced, last.unpricedParts], [0.363, undefined, ["background"]]);

  // A later call is reported after anything that the second poll would have counted.
  await call("/v1/responses", { model: "openai/gpt-5.5", input: "a" }, searched);
  [spent] = await counted(5);
  assert.equal(spent, 0.413);
});
