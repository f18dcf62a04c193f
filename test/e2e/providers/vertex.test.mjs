// Google Vertex AI: tokens by assertions that the platform's WebCrypto signs and
// the token endpoint checks, and API keys.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startCloud } from "../../upstream/cloud.mjs";
import { vector } from "../../upstream/openai.mjs";
import { serviceAccount, vertex } from "../../upstream/vertex.mjs";
import { clients } from "../clients.mjs";
import { admin, start } from "../gateway.mjs";

const acme = serviceAccount("acme-prod");
const apiKey = "AQ.Ab8RN6-express-key-canary-0123456789";
let gw, cloud, google, operator;
before(async () => {
  google = vertex({ accounts: [acme], apiKeys: [apiKey] });
  cloud = await startCloud(google.answer);
  gw = await start({ vendors: cloud });
  operator = admin(gw);
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await cloud?.close();
  for (const s of [apiKey, acme.file.private_key.split("\n")[1], ...google.issued.map((t) => t.token)])
    assert.ok(!logs.includes(s), "a secret is in the logs");
});
beforeEach(() => {
  cloud.clear();
  Object.assign(google, { issued: [], refused: [] });
});

const hello = [{ role: "user", content: "Hello ☃" }];
const calls = () => cloud.seen.filter((s) => s.host !== "oauth2.googleapis.com");
const at = (rest) => `/v1/projects/acme-prod/locations/europe-west4/${rest}`;

const machine = (...connections) => clients(gw, operator, connections);

test("one assertion serves many calls: chat, messages, responses, Claude, embeddings", async () => {
  const { openai, anthropic } = await machine({
    provider: "vertex",
    serviceAccount: acme.file,
    providerSpecificData: { location: "europe-west4" },
  });
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

test("express mode needs an API key and neither project nor token", async () => {
  const m = await machine({ provider: "vertex", apiKey, providerSpecificData: {} });
  const model = "vertex/gemini-2.5-flash";
  assert.equal(
    (await m.openai.chat.completions.create({ model, messages: hello })).choices[0].message.content,
    "You said: Hello ☃",
  );
  assert.deepEqual(
    cloud.seen.map((s) => [s.host, s.path, s.headers["x-goog-api-key"], s.headers.authorization]),
    [["aiplatform.googleapis.com", "/v1/publishers/google/models/gemini-2.5-flash:generateContent", apiKey, undefined]],
  );
});
