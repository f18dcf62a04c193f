// Azure OpenAI at the addresses of its deployments, driven by the official clients.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { toFile } from "openai";
import { azure } from "../../upstream/azure.mjs";
import { start as startCloud } from "../../upstream/cloud.mjs";
import { vector } from "../../upstream/openai.mjs";
import { clients } from "../clients.mjs";
import { admin, start } from "../gateway.mjs";

const keys = { acme: "azure-key-of-acme-0123456789abcdef" },
  version = "2025-04-01-preview";
const deployments = ["gpt-prod", "embed-prod", "picture-prod", "voice-prod", "ears-prod"];
let gw, cloud, operator;
before(async () => {
  cloud = await startCloud(azure({ resources: keys, deployments }));
  gw = await start({ vendors: cloud });
  operator = admin(gw);
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "";
  await gw?.close();
  await cloud?.close();
  assert.ok(!logs.includes(keys.acme), "a secret is in the logs");
});
beforeEach(() => cloud.clear());

const account = (resource, data) => ({
  provider: "azure",
  name: resource,
  apiKey: keys[resource],
  providerSpecificData: { resource, ...data },
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

test("chat, messages, responses, embeddings, images, speech and transcription are served at a deployment", async () => {
  const { openai, anthropic } = await machine(account("acme", { api_version: version }));
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
  assert.equal((await openai.responses.create({ model: modelOf.chat, input: "Hello" })).output_text, "You said: Hello");
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
  const at = (operation, deployment) => `/openai/deployments/${deployment}/${operation}?api-version=${version}`;
  assert.deepEqual(
    cloud.seen.map((s) => s.path),
    [
      at("chat/completions", "gpt-prod"),
      at("chat/completions", "gpt-prod"),
      at("chat/completions", "gpt-prod"),
      `/openai/responses?api-version=${version}`,
      at("embeddings", "embed-prod"),
      at("images/generations", "picture-prod"),
      at("audio/speech", "voice-prod"),
      at("audio/transcriptions", "ears-prod"),
    ],
  );
  for (const s of cloud.seen)
    assert.deepEqual(
      [s.host, s.headers["api-key"], s.headers.authorization],
      ["acme.openai.azure.com", keys.acme, undefined],
    );
  assert.equal(cloud.seen[2].json.max_completion_tokens, 100, "the name that all of its models know");
});
