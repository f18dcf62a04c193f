// Google Vertex AI: tokens by assertions that the platform's WebCrypto signs and
// the token endpoint checks, and API keys.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startCloud } from "../../upstream/cloud.mjs";
import { vector } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { error, serviceAccount, vertex } from "../../upstream/vertex.mjs";
import { clients } from "../clients.mjs";
import { admin, compatible, start } from "../gateway.mjs";

const acme = serviceAccount("acme-prod"),
  other = serviceAccount("other-prod"),
  stranger = serviceAccount("acme-prod");
const apiKey = "AQ.Ab8RN6-express-key-canary-0123456789";
let gw, cloud, up, google, operator;
before(async () => {
  google = vertex({ accounts: [acme, other], apiKeys: [apiKey] });
  cloud = await startCloud(google.answer);
  up = await startUpstream();
  gw = await start({ vendors: cloud });
  operator = admin(gw);
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await cloud?.close();
  await up?.close();
  for (const s of [apiKey, acme.file.private_key.split("\n")[1], ...google.issued.map((t) => t.token)])
    assert.ok(!logs.includes(s), "a secret is in the logs");
});
beforeEach(() => {
  cloud.clear();
  up.clear();
  Object.assign(google, { issued: [], refused: [], life: 3599, fail: null });
});

const account = (of, more = {}, data = {}) => ({
  provider: "vertex",
  serviceAccount: of.file,
  providerSpecificData: { location: "europe-west4", ...data },
  ...more,
});
const hello = [{ role: "user", content: "Hello ☃" }];
const weather = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const calls = () => cloud.seen.filter((s) => s.host !== "oauth2.googleapis.com");
const at = (rest) => `/v1/projects/acme-prod/locations/europe-west4/${rest}`;

async function machine(...connections) {
  const m = await clients(gw, operator, connections);
  m.embed = (input = "a", model = "vertex/text-embedding-005") => m.openai.embeddings.create({ model, input });
  return m;
}

test("one assertion serves many calls: chat, messages, responses, Claude, embeddings", async () => {
  const { openai, anthropic } = await machine(account(acme));
  const model = "vertex/gemini-2.5-flash";
  assert.equal(
    (await openai.chat.completions.create({ model, messages: hello })).choices[0].message.content,
    "You said: Hello ☃",
  );
  let text = "";
  for await (const chunk of await openai.chat.completions.create({ model, messages: hello, stream: true }))
    text += chunk.choices[0]?.delta?.content ?? "";
  assert.equal(text, "You said: Hello ☃");
  const message = await anthropic.messages.create({ model, max_tokens: 100, messages: hello });
  assert.deepEqual(
    [
      message.content.map((b) => b.text),
      message.stop_reason,
      message.usage.cache_read_input_tokens,
      message.usage.output_tokens,
    ],
    [["You said: Hello ☃"], "end_turn", 3, 7],
  );
  assert.deepEqual(
    (await anthropic.messages.stream({ model, max_tokens: 100, messages: hello }).finalMessage()).content.map(
      (b) => b.text,
    ),
    ["You said: Hello ☃"],
  );
  assert.equal((await openai.responses.create({ model, input: "Hello" })).output_text, "You said: Hello");
  const claude = "vertex/claude-sonnet-4-5@20250929",
    ask = { model: claude, max_tokens: 4000, messages: hello };
  assert.deepEqual(
    (await anthropic.messages.create(ask)).content.map((b) => b.text),
    ["You said: Hello ☃"],
  );
  assert.deepEqual(
    (await anthropic.messages.stream(ask).finalMessage()).content.map((b) => b.text),
    ["You said: Hello ☃"],
  );
  assert.equal((await anthropic.messages.countTokens({ model: claude, messages: hello })).input_tokens, 42);
  assert.equal(
    (await openai.chat.completions.create({ model: claude, messages: hello })).choices[0].message.content,
    "You said: Hello ☃",
  );
  const input = ["one", "two", "three"];
  const got = await openai.embeddings.create({ model: "vertex/text-embedding-005", input, dimensions: 16 });
  assert.deepEqual(
    got.data.map((d) => [...d.embedding]),
    input.map((t) => [...vector(t, 16)]),
  );
  assert.ok(got.usage.prompt_tokens > 0);

  assert.deepEqual([google.issued.length, google.refused], [1, []]);
  assert.deepEqual(Object.keys(google.issued[0].claims).sort(), ["aud", "exp", "iat", "iss", "scope"]);
  assert.deepEqual(
    calls().map((s) => s.path),
    [
      at("endpoints/openapi/chat/completions"),
      at("endpoints/openapi/chat/completions"),
      at("publishers/google/models/gemini-2.5-flash:generateContent"),
      at("publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
      at("publishers/google/models/gemini-2.5-flash:generateContent"),
      at("publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict"),
      at("publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict"),
      at("publishers/anthropic/models/count-tokens:rawPredict"),
      at("publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict"),
      at("publishers/google/models/text-embedding-005:predict"),
    ],
  );
  for (const s of calls())
    assert.deepEqual(
      [s.host, s.headers.authorization],
      ["europe-west4-aiplatform.googleapis.com", `Bearer ${google.issued[0].token}`],
    );
});

test("Claude's beta features that Vertex AI has are sent in the header", async () => {
  const m = await machine(account(acme));
  const { response } = await m.anthropic.beta.messages
    .create({
      model: "vertex/claude-sonnet-4-5@20250929",
      max_tokens: 100,
      messages: hello,
      betas: ["context-1m-2025-08-07", "web-search-2025-03-05"],
    })
    .withResponse();
  assert.equal(calls()[0].headers["anthropic-beta"], "context-1m-2025-08-07,web-search-2025-03-05");
  assert.equal(response.headers.get("x-weir-dropped"), null);
});

test("Gemini's tool calls and thoughts survive the round trip", async () => {
  const { anthropic, openai } = await machine(account(acme));
  const ask = {
    model: "vertex/gemini-2.5-pro",
    max_tokens: 4000,
    tools: [{ name: "weather", input_schema: weather }],
    thinking: { type: "enabled", budget_tokens: 2000 },
  };
  const got = await anthropic.messages.stream({ ...ask, messages: hello }).finalMessage();
  const call = got.content.find((b) => b.type === "tool_use");
  assert.deepEqual([call.name, call.input, got.stop_reason], ["weather", { city: "Paris" }, "tool_use"]);
  assert.equal(got.content.find((b) => b.type === "thinking").thinking, "Let me see.");
  const next = await anthropic.messages.create({
    ...ask,
    messages: [
      ...hello,
      { role: "assistant", content: got.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }] },
    ],
  });
  assert.equal(next.content.at(-1).text, "It is sunny");
  const stream = openai.responses.stream({
    model: ask.model,
    input: "Hello",
    tools: [{ type: "function", name: "weather", parameters: weather, strict: false }],
  });
  const item = (await stream.finalResponse()).output.find((x) => x.type === "function_call");
  assert.deepEqual([item.name, item.arguments], ["weather", '{"city":"Paris"}']);
});

test("a missing location is global; the project is that of the key file", async () => {
  const m = await machine({ provider: "vertex", serviceAccount: JSON.stringify(acme.file) });
  await m.embed();
  assert.deepEqual(
    calls().map((s) => [s.host, s.path]),
    [
      [
        "aiplatform.googleapis.com",
        "/v1/projects/acme-prod/locations/global/publishers/google/models/text-embedding-005:predict",
      ],
    ],
  );
  const shown = JSON.stringify(await operator.call("GET", `/${m.machineId}/api/providers`));
  assert.ok(!shown.includes("PRIVATE KEY") && !shown.includes(acme.kid), shown);
  assert.match(shown, /"authType":"service_account"/);
  const plan = await operator.call("POST", `/${m.machineId}/api/explain`, {
    path: "/v1/embeddings",
    body: { model: "vertex/text-embedding-005", input: "a" },
  });
  assert.deepEqual(
    plan.plan.map((s) => [s.try, s.skipped]),
    [[1, ""]],
  );
  const tested = await operator.call("POST", `/${m.machineId}/api/providers/${m.ids[0]}/test`, {});
  assert.deepEqual([tested.ok, tested.status], [true, 200], JSON.stringify(tested));
});

test("express mode needs an API key and neither project nor token", async () => {
  const m = await machine({ provider: "vertex", apiKey, providerSpecificData: {} });
  const model = "vertex/gemini-2.5-flash";
  assert.equal(
    (await m.openai.chat.completions.create({ model, messages: hello })).choices[0].message.content,
    "You said: Hello ☃",
  );
  let text = "";
  for await (const chunk of await m.openai.chat.completions.create({ model, messages: hello, stream: true }))
    text += chunk.choices[0]?.delta?.content ?? "";
  assert.equal(text, "You said: Hello ☃");
  assert.deepEqual(
    (await m.anthropic.messages.create({ model, max_tokens: 100, messages: hello })).content.map((b) => b.text),
    ["You said: Hello ☃"],
  );
  await m.embed();
  const base = "/v1/publishers/google/models/";
  assert.deepEqual(
    cloud.seen.map((s) => s.path),
    [
      base + "gemini-2.5-flash:generateContent",
      base + "gemini-2.5-flash:streamGenerateContent?alt=sse",
      base + "gemini-2.5-flash:generateContent",
      base + "text-embedding-005:predict",
    ],
  );
  for (const s of cloud.seen)
    assert.deepEqual(
      [s.host, s.headers["x-goog-api-key"], s.headers.authorization],
      ["aiplatform.googleapis.com", apiKey, undefined],
    );
  await assert.rejects(
    m.anthropic.messages.create({ model: "vertex/claude-sonnet-4-5", max_tokens: 100, messages: hello }),
    (e) => e.status === 400 && /no endpoint for this request/.test(e.message),
  );
});

test("with an API key a project and location change nothing", async () => {
  const m = await machine({
    provider: "vertex",
    apiKey,
    providerSpecificData: { project: "acme-prod", location: "us-central1" },
  });
  const model = "vertex/gemini-2.5-flash";
  await m.openai.chat.completions.create({ model, messages: hello });
  await m.anthropic.messages.create({ model, max_tokens: 100, messages: hello });
  await m.openai.responses.create({ model, input: "Hello" });
  await m.embed();
  assert.deepEqual(
    [...new Set(cloud.seen.map((s) => `${s.host} ${s.headers["x-goog-api-key"]}`))],
    [`aiplatform.googleapis.com ${apiKey}`],
  );
  const listed = (await m.openai.models.list()).data.map((x) => x.id);
  assert.deepEqual(
    listed.filter((id) => /claude|maas/.test(id)),
    [],
  );
  assert.ok(listed.includes(model), listed.join(" "));
});

test("gemini-embedding-2 is called at its own address in its own shape", async () => {
  const m = await machine(account(acme));
  await operator.call("PATCH", `/${m.machineId}/api/settings`, { embeddingInputType: "document" });
  const got = await m.openai.embeddings.create({
    model: "vertex/gemini-embedding-2",
    input: ["one", "two ☃"],
    dimensions: 32,
  });
  assert.deepEqual(
    got.data.map((d) => [...d.embedding]),
    ["one", "two ☃"].map((t) => [...vector(t, 32)]),
  );
  assert.equal(got.usage.prompt_tokens, 3);
  assert.deepEqual(
    calls().map((s) => s.path),
    Array(2).fill(at("publishers/google/models/gemini-embedding-2:embedContent")),
  );
});

test("a base address in the connection replaces Google's host", async () => {
  const m = await machine({
    provider: "vertex",
    apiKey,
    providerSpecificData: { baseUrl: "https://aiplatform.googleapis.com" },
  });
  await m.openai.chat.completions.create({ model: "vertex/gemini-2.5-flash", messages: hello });
  assert.deepEqual(
    cloud.seen.map((s) => s.path),
    ["/v1/publishers/google/models/gemini-2.5-flash:generateContent"],
  );
});

test("fifty concurrent callers without a token cause one assertion", async () => {
  const m = await machine(account(acme));
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => m.embed(`text ${i}`)));
  all.forEach((got, i) => assert.deepEqual([...got.data[0].embedding], [...vector(`text ${i}`)]));
  assert.equal(google.issued.length, 1);
});

test("a refused token is replaced once, and the call is repeated", async () => {
  const m = await machine(account(acme, { accessToken: "ya29.stale-token-0123456789" }));
  await m.embed();
  assert.equal(google.issued.length, 1);
  assert.deepEqual(
    calls().map((s) => s.headers.authorization),
    ["Bearer ya29.stale-token-0123456789", `Bearer ${google.issued[0].token}`],
  );
  // For ever refused: one more attempt at most, then the account rests.
  google.expire();
  await assert.rejects(m.embed(), (e) => e.status === 401);
  assert.ok(google.issued.length <= 2);
  const before = cloud.seen.length;
  await assert.rejects(m.embed(), (e) => [401, 429].includes(e.status));
  assert.equal(cloud.seen.length, before, "it is not asked while it rests");
});

test("an expired token is renewed before the call", async () => {
  const m = await machine(account(acme, { accessToken: "ya29.ended-token-0123456789", expiresAt: Date.now() - 1000 }));
  await m.embed();
  assert.deepEqual(
    calls().map((s) => s.headers.authorization),
    [`Bearer ${google.issued[0].token}`],
  );
});

test("after a key that the endpoint does not know the next account answers, of another provider", async () => {
  const m = await machine(
    account(stranger, { name: "revoked", priority: 1 }),
    account(other, { name: "good", priority: 2 }),
    compatible(up),
  );
  const { response } = await m.openai.embeddings
    .create({ model: "vertex/text-embedding-005", input: "a" })
    .withResponse();
  assert.equal(response.headers.get("x-weir-connection-id"), m.ids[1]);
  assert.deepEqual(google.refused, ["header"], "the stranger's key id");
  await m.embed();
  assert.equal(google.refused.length, 1, "a key that is refused is not tried again");
  const list = (await operator.call("GET", `/${m.machineId}/api/providers`)).data;
  assert.equal(list.find((c) => c.id === m.ids[0]).status, "needs_reauth");
  const n = await machine(account(stranger), compatible(up));
  await operator.call("POST", `/${n.machineId}/api/combos`, {
    name: "both",
    models: ["vertex/gemini-2.5-flash", "up/test-chat"],
  });
  assert.equal(
    (await n.openai.chat.completions.create({ model: "both", messages: hello })).choices[0].message.content,
    "You said: Hello ☃",
  );
  assert.equal(up.seen.length, 1);
});

test("a failing token endpoint does not invalidate the key", async () => {
  google.fail = { status: 503, headers: { "content-type": "text/html" }, body: "<html>later</html>" };
  const m = await machine(account(acme));
  await assert.rejects(m.embed(), (e) => e.status >= 400 && !/html/.test(e.message));
  assert.equal((await operator.call("GET", `/${m.machineId}/api/providers`)).data[0].status, "active");
});

test("a key file with a broken key is refused without showing the key", async () => {
  const broken = {
    ...acme.file,
    private_key: "-----BEGIN PRIVATE KEY-----\nAAAAcanaryAAAAAA\n-----END PRIVATE KEY-----\n",
  };
  const m = await machine(account({ file: broken }));
  await assert.rejects(m.embed(), (e) => e.status >= 400 && !e.message.includes("canary"));
  assert.equal(cloud.seen.length, 0);
});

test("a stream that breaks ends with an error; an error as the first event is tried with the next account", async () => {
  const m = await machine(account(acme, { priority: 1 }), account(other, { priority: 2 }));
  const post = (body) =>
    gw.fetch("/v1/messages", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${m.apiKey}` },
      body: JSON.stringify(body),
    });
  const ask = { model: "vertex/gemini-2.5-flash", max_tokens: 100, messages: hello, stream: true };
  const overloaded = Buffer.from(`data: ${error(503, "The model is overloaded.").body}\r\n\r\n`);
  for (const fault of [{ cut: 1 }, { reset: 1 }, { instead: [1, overloaded] }]) {
    cloud.fault = (got) => (got.path.includes("stream") ? fault : null);
    const text = await (await post(ask)).text();
    assert.match(text, /^event: error$/m, text);
    assert.ok(!text.includes("message_stop"), text);
  }
  const n = await machine(account(acme, { priority: 1 }), account(other, { priority: 2 }));
  cloud.fault = (got) => (got.path.includes("acme-prod") ? { instead: [0, overloaded] } : null);
  assert.deepEqual(
    (await n.anthropic.messages.stream({ ...ask, stream: undefined }).finalMessage()).content.map((b) => b.text),
    ["You said: Hello ☃"],
  );
});
