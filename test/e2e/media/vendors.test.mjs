// Vendors of speech, transcription and images with shapes of their own, by the
// official client: the bytes that go up and come down in each form. The shapes are
// golden files of the unit tests.
// workerd: soak
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import OpenAI, { toFile } from "openai";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up, operator, me;
const ids = ["deepgram", "elevenlabs", "assemblyai", "gemini", "fal", "openai", "dashscope", "deepinfra"];
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
  me = await operator.machine();
  for (const provider of ids)
    await operator.connect(me.machineId, { provider, apiKey: `key-of-${provider}-0123456789` });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const json = (v) => ({ headers: { "content-type": "application/json" }, body: JSON.stringify(v) });
const urls = () => up.seen.map((s) => `${s.method} https://${s.host}${s.path}`);
const sha = (b) => createHash("sha256").update(b).digest("hex");

test("images are streamed from a provider without streams: several images and a mask, by the official client", async () => {
  up.clear();
  up.script = () =>
    json({ candidates: [{ content: { parts: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] } }] });
  const client = new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 }),
    model = "gemini/gemini-2.5-flash-image";
  const list = async (stream) => {
    const all = [];
    for await (const e of stream) all.push([e.type, e.b64_json]);
    return all;
  };
  assert.deepEqual(await list(await client.images.generate({ model, prompt: "a", stream: true })), [
    ["image_generation.completed", "AAAA"],
  ]);
  const png = [2 << 20, 700_000].map((n) => Buffer.alloc(n, `picture of ${n} `)),
    files = await Promise.all(png.map((b, i) => toFile(b, `${i}.png`, { type: "image/png" })));
  assert.deepEqual(
    await list(
      await client.images.edit({
        model,
        image: files,
        mask: await toFile(png[1], "m.png", { type: "image/png" }),
        prompt: "a",
        stream: true,
      }),
    ),
    [["image_edit.completed", "AAAA"]],
  );
  assert.deepEqual(
    up.seen[1].json.contents[0].parts.slice(1).map((p) => sha(Buffer.from(p.inlineData.data, "base64"))),
    png.map(sha),
  );
  assert.equal((await client.images.edit({ model, image: files, prompt: "a" })).data[0].b64_json, "AAAA");
  await assert.rejects(
    client.images.edit({
      model,
      image: await toFile(Buffer.alloc(16 << 20), "a.png", { type: "image/png" }),
      prompt: "a",
    }),
    { status: 413 },
  );
  assert.equal(up.seen.length, 3);
});

describe("transcriptions", () => {
  const clip = Buffer.alloc(2 << 20, "sound of the sea ");
  const vendors = {
    deepgram: [
      "nova-3",
      [{ metadata: { duration: 2.5 }, results: { channels: [{ alternatives: [{ transcript: "Hello there." }] }] } }],
    ],
    elevenlabs: ["scribe_v1", [{ language_code: "eng", text: "Hello there.", words: [] }]],
    assemblyai: [
      "universal",
      [
        { upload_url: "https://cdn.assemblyai.com/upload/1" },
        { id: "t-1", status: "queued" },
        { id: "t-1", status: "processing" },
        { id: "t-1", status: "completed", text: "Hello there.", words: [] },
      ],
    ],
    gemini: ["gemini-2.5-flash", [{ candidates: [{ content: { parts: [{ text: "Hello there.\n" }] } }] }]],
  };
  const client = () => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
  for (const [provider, [model, answers]] of Object.entries(vendors)) {
    test(provider, { timeout: 180_000 }, async () => {
      up.clear();
      up.script = () => json(answers[Math.min(up.seen.length, answers.length) - 1]);
      const alias = (await operator.call("GET", `/${me.machineId}/api/catalog/providers`)).data.find(
        (p) => p.id === provider,
      ).alias;
      const got = await client().audio.transcriptions.create({
        file: await toFile(clip, "a.mp3", { type: "audio/mpeg" }),
        model: `${alias}/${model}`,
        response_format: "json",
      });
      assert.equal(got.text.trim(), "Hello there.");
      const sent = up.seen[0];
      if (sent.headers["content-length"]) assert.equal(Number(sent.headers["content-length"]), sent.bytes);
      if (provider === "elevenlabs") assert.ok(sent.body.includes(clip), "the file in the vendor's form");
      else if (provider === "gemini")
        assert.ok(sent.body.includes(clip.toString("base64").slice(0, 1 << 16)), "the file as base64");
      else assert.equal(sent.digest, sha(clip), "the file alone, byte for byte");
      if (provider === "assemblyai")
        assert.deepEqual(
          urls().map((u) => u.replace(/\?.*/, "")),
          [
            "POST https://api.assemblyai.com/v2/upload",
            "POST https://api.assemblyai.com/v2/transcript",
            "GET https://api.assemblyai.com/v2/transcript/t-1",
            "GET https://api.assemblyai.com/v2/transcript/t-1",
          ],
        );
    });
  }
});

test("the official client gets speech from providers that queue it or return its URL", {
  timeout: 180_000,
}, async () => {
  const sound = Buffer.alloc(200_000, "0123456789");
  const file = { headers: { "content-type": "audio/mpeg" }, body: sound };
  for (const [model, calls] of [
    ["fal/fal-ai/minimax/speech-02-hd", 4],
    ["qwen/qwen3-tts-flash", 2],
    ["deepinfra/hexgrad/Kokoro-82M", 1],
  ]) {
    up.clear();
    up.script = () => {
      const { method, host, path } = up.seen.at(-1);
      if (host === "api.deepinfra.com" || path.startsWith("/1.")) return file;
      if (host.includes("dashscope"))
        return json({ output: { audio: { url: "http://dashscope-result.oss-ap-southeast-1.aliyuncs.com/1.wav" } } });
      if (method === "POST") return json({ request_id: "f-1" });
      return json(
        path.endsWith("/status") ? { status: "COMPLETED" } : { audio: { url: "https://v3.fal.media/1.mp3" } },
      );
    };
    const got = await new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 }).audio.speech.create({
      model,
      input: "Hi",
      voice: "v-1",
    });
    assert.equal(sha(Buffer.from(await got.arrayBuffer())), sha(sound), model);
    assert.equal(got.headers.get("content-type"), "audio/mpeg");
    assert.equal(up.seen.length, calls, model);
    if (calls > 1) assert.equal(up.seen.at(-1).headers.authorization, undefined, "no credential goes to the store");
  }
});

test("the official client gets translations of speech and variations of an image", async () => {
  up.clear();
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, { provider: "openai", apiKey: "sk-0123456789abcdef" });
  await operator.connect(machineId, compatible(up)); // OpenAI has no model of variations any more
  const client = new OpenAI({ apiKey, baseURL: gw.url + "/v1", maxRetries: 0 }),
    clip = Buffer.alloc(300_000, "sound");
  up.script = (req) =>
    json(
      req.path.endsWith("/translations")
        ? { text: "Good day." }
        : { created: 1, data: [{ url: "https://images.example/1.png" }] },
    );
  const said = await client.audio.translations.create({ file: await toFile(clip, "a.mp3"), model: "openai/whisper-1" });
  assert.equal(said.text, "Good day.");
  const drawn = await client.images.createVariation({
    image: await toFile(clip, "a.png", { type: "image/png" }),
    model: "up/gpt-image-1.5",
    n: 1,
  });
  await assert.rejects(
    client.images.createVariation({
      image: await toFile(clip, "a.png", { type: "image/png" }),
      model: "openai/gpt-image-1.5",
    }),
    { status: 400 },
  );
  assert.equal(drawn.data[0].url, "https://images.example/1.png");
  assert.deepEqual(
    up.seen.map((s) => s.path),
    ["/v1/audio/translations", "/v1/images/variations"],
  );
  for (const sent of up.seen) {
    assert.equal(Number(sent.headers["content-length"]), sent.bytes);
    assert.ok(sent.body.includes(clip));
    assert.match(sent.body.toString("latin1"), /name="model"\r\n\r\n(whisper-1|gpt-image-1\.5)\r\n/);
  }
});
