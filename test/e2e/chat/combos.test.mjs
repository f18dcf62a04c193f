// Combos of chat models: members of several providers and dialects, in turns,
// within each other, and their failures. See docs/reference/spec.md, 4.9.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
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

const messages = [{ role: "user", content: "Hello" }];

// team creates a machine with an account of each family and some combos.
async function team(combos = {}) {
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up));
  await operator.connect(machineId, { ...compatible(up, { prefix: "an" }), provider: "anthropic-compatible-0123abcd" });
  await operator.connect(machineId, { provider: "gemini", apiKey: "AIza-test-0123456789" });
  for (const [name, c] of Object.entries(combos))
    await operator.call("POST", `/${machineId}/api/combos`, { name, ...(Array.isArray(c) ? { models: c } : c) });
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  return {
    machineId,
    headers,
    openai: new OpenAI({ apiKey, baseURL: gw.url + "/v1", maxRetries: 0 }),
    anthropic: new Anthropic({ apiKey, baseURL: gw.url, maxRetries: 0 }),
    post: (path, body) => gw.fetch(path, { method: "POST", headers, body: JSON.stringify(body) }),
  };
}
const asked = () => up.seen.map((r) => (r.json?.model ?? /models\/([^:]+)/.exec(r.path)[1]).replace("models/", ""));

// Each client is served by the member that works, in whatever dialect.
const clients = {
  "openai's chat": async (t, model) =>
    (await t.openai.chat.completions.create({ model, messages })).choices[0].message.content,
  "openai's chat, streamed": async (t, model) => {
    let s = "";
    for await (const c of await t.openai.chat.completions.create({ model, messages, stream: true }))
      s += c.choices[0]?.delta.content ?? "";
    return s;
  },
  "openai's responses": async (t, model) => (await t.openai.responses.create({ model, input: "Hello" })).output_text,
  "openai's responses, streamed": async (t, model) =>
    (await t.openai.responses.stream({ model, input: "Hello" }).finalResponse()).output_text,
  "anthropic's client": async (t, model) =>
    (await t.anthropic.messages.create({ model, max_tokens: 50, messages })).content[0].text,
  "anthropic's client, streamed": async (t, model) =>
    (await t.anthropic.messages.stream({ model, max_tokens: 50, messages }).finalMessage()).content[0].text,
};

describe("the first member that works answers", () => {
  for (const [name, ask] of Object.entries(clients)) {
    test(name, async () => {
      for (const [bad, last] of [
        ["up/a!status=503", "an/talk"],
        ["an/b!status=429", "up/talk"],
        ["up/c!reset", "gemini/gemini-2.5-flash"],
        ["an/d!status=502!body=html", "up/talk"],
        ["gemini/gemini-2.5-pro", "an/talk"],
      ]) {
        const t = await team({ mix: [bad, last] });
        up.clear();
        const answer = talk();
        up.script = (req) =>
          bad.startsWith("gemini") && /gemini-2.5-pro/.test(req.path + req.json?.model) ? { status: 500 } : answer(req);
        assert.equal(await ask(t, "mix"), "You said: Hello", `${bad}, ${last}`);
        assert.ok(asked().length >= 2 && asked().at(-1) === last.split("/")[1], `${bad}: asked ${asked()}`);
      }
    });
  }
});

test("after an error as a stream's first event the next member answers", async () => {
  const t = await team({ mix: ["an/busy", "up/talk"] });
  const answer = talk();
  up.script = (req) =>
    req.json.model === "busy"
      ? {
          headers: { "content-type": "text/event-stream" },
          body: 'event: ping\ndata: {"type":"ping"}\n\nevent: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
        }
      : answer(req);
  for (const name of ["openai's chat, streamed", "anthropic's client, streamed", "openai's responses, streamed"]) {
    up.seen.length = 0;
    assert.equal(await clients[name](t, "mix"), "You said: Hello");
    assert.deepEqual(asked(), ["busy", "talk"], name);
  }
});

test("members take turns, also in nested combos", async () => {
  const t = await team({
    inner: { strategy: "round-robin", models: ["up/b", "an/c"] },
    outer: { strategy: "round-robin", models: ["up/a", "inner"] },
  });
  const names = [];
  for (let i = 0; i < 8; i++)
    names.push(
      (await t.openai.chat.completions.create({ model: "outer", messages }).withResponse()).response.headers.get(
        "x-weir-model",
      ),
    );
  const count = (m) => names.filter((n) => n === m).length;
  assert.deepEqual([count("up/a"), count("up/b"), count("an/c")], [4, 2, 2], names.join(" "));
});

test("a nested combo answers, also under an alias", async () => {
  const t = await team({ inner: ["up/a!status=503", "an/b!status=503"], outer: ["inner", "up/talk"] });
  await operator.call("PUT", `/${t.machineId}/api/models/alias`, { alias: "best", model: "up/talk" });
  assert.equal(await clients["openai's chat"](t, "outer"), "You said: Hello");
  assert.deepEqual(asked(), ["a!status=503", "b!status=503", "talk"]);
  assert.equal(await clients["anthropic's client"](t, "best"), "You said: Hello");
});

test("a combo that leads back to itself is refused, and a call makes at most five attempts", async () => {
  const t = await team({ one: ["up/a"], two: ["one", "up/b"] });
  const { data } = await operator.call("GET", `/${t.machineId}/api/combos`);
  const id = data.find((c) => c.name === "one").id;
  await assert.rejects(operator.call("PUT", `/${t.machineId}/api/combos/${id}`, { name: "one", models: ["two"] }), {
    status: 400,
  });
  await operator.call("POST", `/${t.machineId}/api/combos`, {
    name: "many",
    models: Array.from({ length: 9 }, (_, i) => `up/m${i}!status=529`),
  });
  up.clear();
  const res = await t.post("/v1/chat/completions", { model: "many", messages });
  assert.deepEqual([res.status, up.seen.length], [529, 5]);
  // A server without a Responses endpoint has two addresses, and no more attempts.
  up.clear();
  up.script = (req) => (req.path.endsWith("/responses") ? { status: 404, body: '{"detail":"Not Found"}' } : null);
  const both = await t.post("/v1/responses", { model: "many", input: "Hello" });
  assert.deepEqual([both.status, up.seen.length], [529, 5]);
});

test("a request that one member cannot express is sent to another", async () => {
  const t = await team({ mix: ["an/talk", "up/talk"], none: ["an/talk", "an/more"] });
  up.script = (req) =>
    req.json.n === 2
      ? {
          body: JSON.stringify({
            id: "c",
            object: "chat.completion",
            created: 1,
            model: "talk",
            choices: [0, 1].map((index) => ({
              index,
              message: { role: "assistant", content: "Hi" },
              finish_reason: "stop",
            })),
          }),
        }
      : null;
  const got = await t.openai.chat.completions.create({ model: "mix", messages, n: 2 });
  assert.equal(got.choices.length, 2);
  await assert.rejects(t.openai.chat.completions.create({ model: "none", messages, n: 2 }), {
    status: 400,
    param: "n",
  });
  assert.equal(up.seen.length, 1);
});

test("a client's bad request is not repeated with the other members", async () => {
  const t = await team({ mix: ["up/a!status=400", "an/talk"] });
  for (const stream of [false, true]) {
    const res = await t.post("/v1/messages", { model: "mix", max_tokens: 5, messages, stream });
    assert.deepEqual([res.status, (await res.json()).error.type], [400, "invalid_request_error"]);
  }
  assert.equal(up.seen.length, 2);
});
