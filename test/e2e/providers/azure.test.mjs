// Azure OpenAI: both styles of address, keys and Entra tokens, driven by the
// official clients.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { toFile } from "openai";
import { azure } from "../../upstream/azure.mjs";
import { start as startCloud } from "../../upstream/cloud.mjs";
import { start as startIdp } from "../../upstream/idp.mjs";
import { vector } from "../../upstream/openai.mjs";
import { clients } from "../clients.mjs";
import { admin, start } from "../gateway.mjs";

const keys = { acme: "azure-key-of-acme-0123456789abcdef", other: "azure-key-of-other-0123456789abcd" };
const deployments = ["gpt-prod", "embed-prod", "picture-prod", "voice-prod", "ears-prod"];
let gw, cloud, idp, operator;
before(async () => {
  idp = await startIdp();
  cloud = await startCloud(azure({ resources: keys, deployments, token: (field) => idp.accepts(field) }));
  gw = await start({
    vendors: cloud,
    env: {
      OAUTH_PROVIDERS: JSON.stringify([
        {
          id: "azure",
          name: "Entra",
          tokenUrl: idp.url + "/token",
          clientId: idp.clientId,
          clientSecret: idp.clientSecret,
          scopes: ["https://cognitiveservices.azure.com/.default"],
          refreshEveryMs: 250,
        },
      ]),
    },
  });
  operator = admin(gw);
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await cloud?.close();
  await idp?.close();
  for (const s of [...Object.values(keys), ...idp.secrets]) assert.ok(!logs.includes(s), "a secret is in the logs");
});
beforeEach(() => cloud.clear());

const account = (resource, data = {}, more = {}) => ({
  provider: "azure",
  name: resource,
  apiKey: keys[resource],
  providerSpecificData: { resource, ...data },
  ...more,
});
const modelOf = {
  chat: "azure/gpt-prod",
  embed: "azure/embed-prod",
  image: "azure/picture-prod",
  tts: "azure/voice-prod",
  stt: "azure/ears-prod",
};
const hello = [{ role: "user", content: "Hello ☃" }];

const machine = (...connections) => clients(gw, operator, connections);

const paths = () => cloud.seen.map((s) => s.path);
const v1 = (name) => `/openai/v1/${name}`;

for (const [name, data, at] of [
  [
    "the v1 addresses",
    {},
    (operation, deployment) =>
      operation.startsWith("audio/")
        ? `/openai/deployments/${deployment}/${operation}?api-version=2025-04-01-preview`
        : v1(operation),
  ],
  ["v1 with a version", { api_version: "preview" }, (operation) => `${v1(operation)}?api-version=preview`],
  [
    "the addresses of deployments",
    { api_version: "2025-04-01-preview" },
    (operation, deployment) =>
      operation === "responses"
        ? "/openai/responses?api-version=2025-04-01-preview"
        : `/openai/deployments/${deployment}/${operation}?api-version=2025-04-01-preview`,
  ],
  [
    "a base address of the resource",
    { baseUrl: "https://acme.openai.azure.com/", resource: "ignored", api_version: "2024-10-21" },
    (operation, deployment) =>
      operation === "responses"
        ? "/openai/responses?api-version=2024-10-21"
        : `/openai/deployments/${deployment}/${operation}?api-version=2024-10-21`,
  ],
]) {
  test(`${name}: chat, messages, responses, embeddings, images, speech and transcription are served`, async () => {
    const { openai, anthropic } = await machine(account("acme", data));
    assert.equal(
      (await openai.chat.completions.create({ model: modelOf.chat, messages: hello })).choices[0].message.content,
      "You said: Hello ☃",
    );
    let text = "";
    for await (const chunk of await openai.chat.completions.create({
      model: modelOf.chat,
      messages: hello,
      stream: true,
    }))
      text += chunk.choices[0]?.delta?.content ?? "";
    assert.equal(text, "You said: Hello ☃");
    const message = await anthropic.messages
      .stream({ model: modelOf.chat, max_tokens: 100, messages: hello })
      .finalMessage();
    assert.deepEqual(
      message.content.map((b) => b.text),
      ["You said: Hello ☃"],
    );
    assert.equal(
      (await openai.responses.create({ model: modelOf.chat, input: "Hello" })).output_text,
      "You said: Hello",
    );
    const [one, two] = (await openai.embeddings.create({ model: modelOf.embed, input: ["a", "b"] })).data;
    assert.deepEqual([[...one.embedding], [...two.embedding]], [[...vector("a")], [...vector("b")]]);
    const image = await openai.images.generate({ model: modelOf.image, prompt: "a cat" });
    assert.equal(Buffer.from(image.data[0].b64_json, "base64").toString(), "a picture of a cat");
    const speech = await openai.audio.speech.create({ model: modelOf.tts, input: "hello", voice: "alloy" });
    assert.equal(await speech.text(), "alloy says hello");
    const heard = await openai.audio.transcriptions.create({
      model: modelOf.stt,
      file: await toFile(Buffer.from("the sound of rain"), "rain.wav"),
    });
    assert.equal(heard.text, "heard rain");
    assert.deepEqual(paths(), [
      at("chat/completions", "gpt-prod"),
      at("chat/completions", "gpt-prod"),
      at("chat/completions", "gpt-prod"),
      at("responses", ""),
      at("embeddings", "embed-prod"),
      at("images/generations", "picture-prod"),
      at("audio/speech", "voice-prod"),
      at("audio/transcriptions", "ears-prod"),
    ]);
    for (const s of cloud.seen)
      assert.deepEqual(
        [s.host, s.headers["api-key"], s.headers.authorization],
        ["acme.openai.azure.com", keys.acme, undefined],
      );
    assert.equal(cloud.seen[2].json.max_completion_tokens, 100, "the name that all of its models know");
  });
}

test("a tool loop runs over a deployment", async () => {
  const { openai } = await machine(account("acme")),
    asked = [];
  const runner = openai.chat.completions.runTools({
    model: modelOf.chat,
    messages: hello,
    stream: true,
    tools: [
      {
        type: "function",
        function: {
          name: "weather",
          parameters: { type: "object", properties: { city: { type: "string" } } },
          parse: JSON.parse,
          function: (a) => {
            asked.push(a);
            return "sunny";
          },
        },
      },
    ],
  });
  assert.equal(await runner.finalContent(), "It is sunny");
  assert.deepEqual(asked, [{ city: "Paris" }]);
});

test("a resource without a Responses API is called through chat completions", async () => {
  const v0 = azure({ resources: keys, deployments, v1: false }),
    answer = cloud.answer;
  cloud.answer = (got) =>
    got.path.startsWith("/openai/responses")
      ? {
          status: 404,
          headers: { "content-type": "application/json" },
          body: '{"error":{"code":"404","message":"Resource not found"}}',
        }
      : v0(got);
  const { openai } = await machine(account("acme", { api_version: "2024-06-01" }));
  const got = await openai.responses.create({ model: modelOf.chat, input: "Hello" });
  cloud.answer = answer;
  assert.equal(got.output_text, "You said: Hello");
  assert.deepEqual(paths(), [
    "/openai/responses?api-version=2024-06-01",
    "/openai/deployments/gpt-prod/chat/completions?api-version=2024-06-01",
  ]);
});

test("after a wrong key the next account answers, with its own resource and address style", async () => {
  const m = await machine(
    account("acme", {}, { apiKey: "a-wrong-key-0123456789abcdef", priority: 1 }),
    account("other", { api_version: "2024-10-21" }, { priority: 2 }),
  );
  const { data, response } = await m.openai.embeddings.create({ model: modelOf.embed, input: "a" }).withResponse();
  assert.deepEqual([...data.data[0].embedding], [...vector("a")]);
  assert.equal(response.headers.get("x-weir-connection-id"), m.ids[1]);
  assert.deepEqual(
    cloud.seen.map((s) => [s.host, s.path]),
    [
      ["acme.openai.azure.com", v1("embeddings")],
      ["other.openai.azure.com", "/openai/deployments/embed-prod/embeddings?api-version=2024-10-21"],
    ],
  );
});

test("an Entra token is sent as a bearer token and refreshed once after a 401", async () => {
  const { access_token: accessToken, refresh_token: refreshToken } = idp.issue();
  const m = await machine({
    provider: "azure",
    authType: "oauth",
    accessToken,
    refreshToken,
    providerSpecificData: { resource: "acme" },
  });
  const create = () => m.openai.chat.completions.create({ model: modelOf.chat, messages: hello });
  assert.equal((await create()).choices[0].finish_reason, "stop");
  assert.deepEqual(
    [cloud.seen[0].headers.authorization, cloud.seen[0].headers["api-key"]],
    [`Bearer ${accessToken}`, undefined],
  );
  idp.expire();
  const calls = idp.calls.length;
  assert.equal((await create()).choices[0].finish_reason, "stop");
  assert.equal(idp.calls.length, calls + 1);
  assert.equal(idp.calls.at(-1).grant_type ?? new URLSearchParams(idp.calls.at(-1)).get("grant_type"), "refresh_token");
  assert.equal(cloud.seen.length, 3);
  assert.notEqual(cloud.seen[2].headers.authorization, `Bearer ${accessToken}`);
});

test("deployments are the models: listed, tested and explained; any other is 404", async () => {
  const m = await machine(account("acme", { enabledModels: ["gpt-prod", "embed-prod"], prefix: "az" }));
  const ids = (
    await (await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${m.apiKey}` } })).json()
  ).data.map((x) => x.id);
  assert.ok(ids.includes("az/gpt-prod"), String(ids));
  assert.equal(
    (await m.openai.chat.completions.create({ model: "az/gpt-prod", messages: hello })).choices[0].finish_reason,
    "stop",
  );
  const tested = await operator.call("POST", `/${m.machineId}/api/providers/${m.ids[0]}/test`, {});
  assert.deepEqual([tested.ok, tested.status], [true, 200], JSON.stringify(tested));
  const plan = await operator.call("POST", `/${m.machineId}/api/explain`, {
    path: "/v1/chat/completions",
    body: { model: "az/gpt-prod", messages: hello },
  });
  assert.deepEqual(
    plan.plan.map((s) => [s.try, s.upstream]),
    [[1, "POST https://acme.openai.azure.com/openai/v1/chat/completions"]],
  );
  await assert.rejects(
    m.openai.chat.completions.create({ model: "az/no-such", messages: hello }),
    (e) => e.status === 404 && e.code === "DeploymentNotFound",
  );
  assert.equal(
    (await m.openai.chat.completions.create({ model: "az/gpt-prod", messages: hello })).choices[0].finish_reason,
    "stop",
    "that cools nothing down",
  );
});

test("a filtered prompt is returned to the caller; Azure's own rate-limit header sets the cooldown", async () => {
  const m = await machine(account("acme"));
  cloud.fault = () => ({
    status: 400,
    body: '{"error":{"code":"content_filter","message":"The response was filtered","innererror":{"content_filter_result":{"hate":{"filtered":true}}}}}',
  });
  await assert.rejects(
    m.openai.chat.completions.create({ model: modelOf.chat, messages: hello }),
    (e) => e.status === 400 && e.code === "content_filter",
  );
  cloud.fault = () => ({
    status: 429,
    headers: { "content-type": "application/json", "x-ms-retry-after-ms": "7000", "retry-after": "90" },
    body: '{"error":{"code":"429","message":"Rate limit"}}',
  });
  await assert.rejects(
    m.openai.chat.completions.create({ model: modelOf.chat, messages: hello }),
    (e) => e.status === 429 && e.headers.get("retry-after") === "7",
  );
});

test("a connection without resource or base address, or with an invalid version, is an error that says so", async () => {
  for (const [data, says] of [
    [{}, /resource is missing/],
    [{ resource: "acme", api_version: "1&x" }, /api_version/],
  ]) {
    const m = await machine({ provider: "azure", apiKey: keys.acme, providerSpecificData: data });
    await assert.rejects(
      m.openai.chat.completions.create({ model: modelOf.chat, messages: hello }),
      (e) => e.status === 400 && says.test(e.message),
    );
  }
  for (const resource of ["https://acme.openai.azure.com", "acme.openai.azure.com", "acme/x", "acme#"]) {
    await assert.rejects(
      machine({ provider: "azure", apiKey: keys.acme, providerSpecificData: { resource } }),
      (e) => e.status === 400 && /resource is not a valid name/.test(e.message),
    );
  }
  assert.equal(cloud.seen.length, 0);
});
