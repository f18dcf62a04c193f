// Vendors of speech, transcription, images and video with shapes of their own: the
// recorded answers that the unit tests know are played by the upstream, and what
// went up and came down is what their golden files say.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import OpenAI, { toFile } from "openai";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, me;
const ids = [
  "deepgram",
  "elevenlabs",
  "assemblyai",
  "gemini",
  "cartesia",
  "xai",
  "fal",
  "bfl",
  "replicate",
  "stability",
  "together",
  "minimax",
  "runway",
  "luma",
  "zai",
  "openrouter",
  "openai",
  "dashscope",
  "deepinfra",
  "fireworks",
];
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

const folder = (path) => new URL(`../../../pkg/v1/${path}/`, import.meta.url);
const read = (path, name) => JSON.parse(readFileSync(new URL(name, folder(path)), "utf8"));
const recorded = (path) =>
  readdirSync(folder(path))
    .filter((n) => n.endsWith(".json") && !n.endsWith(".golden.json"))
    .map((n) => n.slice(0, -5));
const json = (v, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: typeof v === "string" ? v : JSON.stringify(v),
});
const send = (path, body, headers = {}, key = me.apiKey) =>
  gw.fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
const urls = () => up.seen.map((s) => `${s.method} https://${s.host}${s.path}`);
const sha = (b) => createHash("sha256").update(b).digest("hex");

describe("images", () => {
  for (const name of recorded("images/testdata/vendors")) {
    const rec = read("images/testdata/vendors", `${name}.json`),
      golden = read("images/testdata/vendors", `${name}.golden.json`);
    if (rec.form || rec.Form || !ids.includes(rec.provider) || rec.edit) continue;
    test(name, { timeout: 180_000 }, async () => {
      up.clear();
      up.script = () => {
        const a = rec.answers[Math.min(up.seen.length, rec.answers.length) - 1];
        return {
          status: a.status ?? 200,
          headers: { "content-type": a.type ?? "application/json" },
          body: a.type ? a.body : JSON.stringify(a.body),
        };
      };
      const own = await operator.machine(); // with two accounts, as there
      for (const n of [1, 2])
        await operator.connect(own.machineId, { provider: rec.provider, apiKey: `key-of-account-${n}`, priority: n });
      const res = await send("/v1/images/generations", rec.request, {}, own.apiKey),
        text = await res.text();
      const [, status, type, body] = /^(\d+) ?(\S*) ?(.*)$/s.exec(golden.answer);
      assert.equal(res.status, Number(status), text);
      if (res.status === 200) {
        assert.equal(res.headers.get("content-type"), type);
        const timeless = (t) => t.replace(/"created(_at)?":\d+/g, '"created$1":0').trim();
        const plain = (t) => (type.includes("json") ? JSON.stringify(JSON.parse(t)) : t);
        assert.equal(timeless(plain(text)), timeless(plain(body)));
        assert.deepEqual(
          urls(),
          golden.sent.map((s) => s.split(" ").slice(1, 3).join(" ")),
        );
      }
      assert.equal(res.headers.get("x-weir-dropped"), golden.dropped?.join(",") ?? null);
    });
  }
});

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

describe("videos", () => {
  for (const name of recorded("videos/testdata/vendors")) {
    const rec = read("videos/testdata/vendors", `${name}.json`),
      golden = read("videos/testdata/vendors", `${name}.golden.json`);
    if (!ids.includes(rec.provider)) continue;
    test(name, async () => {
      up.clear();
      let polls = 0;
      up.script = () => json(up.seen.length === 1 ? rec.created : rec.polls[polls++]);
      const res = await send("/v1/videos/generations", rec.request),
        text = await res.text();
      const plain = (t) => t.replaceAll("https://weir.example", gw.url).replace(/\s+/g, "");
      if (res.status !== 200) return assert.equal(String(res.status), golden.created.trim(), text);
      assert.equal(plain(`${res.status} ${text}`), plain(golden.created));
      assert.ok(res.headers.get("x-weir-connection-id"));
      const id = JSON.parse(text).request_id;
      for (const want of golden.states) {
        const state = await send(`/v1/videos/${encodeURIComponent(id)}`);
        assert.equal(plain(`${state.status} ${await state.text()}`), plain(want));
      }
      assert.deepEqual(
        urls(),
        golden.sent.map((s) => s.call),
      );
      assert.deepEqual(up.seen[0].json, golden.sent[0].body);
    });
  }
});

describe("transcriptions", () => {
  const clip = Buffer.alloc(2 << 20, "sound of the sea ");
  const vendors = {
    deepgram: [
      "nova-3",
      [
        {
          metadata: { duration: 2.5 },
          results: {
            channels: [{ detected_language: "en", alternatives: [{ transcript: "Hello there.", words: [] }] }],
            utterances: [{ transcript: "Hello there.", start: 0.1, end: 1, speaker: 0 }],
          },
        },
      ],
    ],
    elevenlabs: [
      "scribe_v1",
      [
        {
          language_code: "eng",
          text: "Hello there.",
          words: [
            { text: "Hello", start: 0.1, end: 0.5, type: "word" },
            { text: " ", start: 0.5, end: 0.5, type: "spacing" },
            { text: "there.", start: 0.5, end: 1, type: "word" },
          ],
        },
      ],
    ],
    assemblyai: [
      "universal",
      [
        { upload_url: "https://cdn.assemblyai.com/upload/1" },
        { id: "t-1", status: "queued" },
        { id: "t-1", status: "processing" },
        {
          id: "t-1",
          status: "completed",
          text: "Hello there.",
          language_code: "en",
          audio_duration: 3,
          words: [
            { text: "Hello", start: 100, end: 500 },
            { text: "there.", start: 500, end: 1000 },
          ],
        },
      ],
    ],
    gemini: ["gemini-2.5-flash", [{ candidates: [{ content: { parts: [{ text: "Hello there.\n" }] } }] }]],
  };
  vendors.fal = [
    "fal-ai/whisper",
    [
      { request_id: "f-1" },
      { status: "IN_PROGRESS" },
      { status: "COMPLETED" },
      { text: " Hello there.", chunks: [{ timestamp: [0.1, 1], text: " Hello there.", speaker: "SPEAKER_00" }] },
    ],
  ];
  const client = () => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
  for (const [provider, [model, answers]] of Object.entries(vendors)) {
    for (const format of ["json", "text", "verbose_json", "diarized_json", "srt", "vtt", "stream"]) {
      test(`${provider}, ${format}`, { timeout: 180_000 }, async () => {
        up.clear();
        const timed = { language: "en", segments: [{ start: 0.1, end: 1, speaker: "Ann", text: "Hello there." }] };
        up.script = () =>
          json(
            provider === "gemini" && !["json", "text", "stream"].includes(format)
              ? { candidates: [{ content: { parts: [{ text: JSON.stringify(timed) }] } }] }
              : answers[Math.min(up.seen.length, answers.length) - 1],
          );
        const alias = (await operator.call("GET", `/${me.machineId}/api/catalog/providers`)).data.find(
          (p) => p.id === provider,
        ).alias;
        const ask = {
          file: await toFile(clip, "a.mp3", { type: "audio/mpeg" }),
          model: `${alias}/${model}`,
          ...(format === "stream" ? { stream: true } : { response_format: format }),
        };
        const got = await client().audio.transcriptions.create(ask);
        if (format === "stream") {
          const events = [];
          for await (const e of got) events.push(e.type);
          assert.equal(events.at(-1), "transcript.text.done");
        } else if (format === "srt") assert.match(got, /00:00:00,100 --> 00:00:01,000\nHello there\./);
        else if (format === "vtt") assert.match(got, /^WEBVTT\n\n00:00:00\.100 --> 00:00:01\.000\nHello there\./);
        else if (format === "text") assert.equal(got, "Hello there.\n");
        else assert.equal(got.text.trim(), "Hello there.");
        if (format === "verbose_json") assert.ok(got.duration > 0 || provider === "elevenlabs");
        if (format === "diarized_json")
          assert.deepEqual(got.segments, [
            { type: "transcript.text.segment", id: "seg_0", start: 0.1, end: 1, text: "Hello there.", speaker: "A" },
          ]);
        const sent = up.seen[0];
        if (sent.headers["content-length"]) assert.equal(Number(sent.headers["content-length"]), sent.bytes);
        if (provider === "deepgram" || provider === "assemblyai")
          assert.equal(sent.digest, sha(clip), "the file alone, byte for byte");
        if (provider === "elevenlabs") assert.ok(sent.body.includes(clip), "the file in the vendor's form");
        if (provider === "gemini")
          assert.ok(sent.body.includes(clip.toString("base64").slice(0, 1 << 16)), "the file as base64");
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

describe("speech", () => {
  for (const provider of ["elevenlabs", "deepgram", "cartesia", "gemini"]) {
    test(provider, async () => {
      const golden = read("audio/testdata/speech", `${provider}.golden.json`).plain;
      up.clear();
      const sound = Buffer.alloc(200_000, "0123456789"),
        pcm = Buffer.alloc(48_000, 7);
      up.script = () =>
        provider === "gemini"
          ? json({
              candidates: [
                {
                  content: {
                    parts: [
                      { inlineData: { mimeType: "audio/L16;codec=pcm;rate=24000", data: pcm.toString("base64") } },
                    ],
                  },
                },
              ],
            })
          : { headers: { "content-type": "audio/mpeg" }, body: sound };
      const alias = (await operator.call("GET", `/${me.machineId}/api/catalog/providers`)).data.find(
        (p) => p.id === provider,
      ).alias;
      const res = await send("/v1/audio/speech", { model: `${alias}/tts-1`, input: "Hi é", voice: "v-1" });
      const bytes = Buffer.from(await res.arrayBuffer());
      assert.equal(res.status, 200, bytes.toString().slice(0, 300));
      if (provider === "gemini") {
        assert.match(res.headers.get("content-type"), /^audio\/(wav|x-wav|pcm|L16)/);
        assert.ok(bytes.includes(pcm));
      } else assert.equal(sha(bytes), sha(sound));
      const [method, url, ...body] = golden.sent.split(" ");
      assert.deepEqual(urls(), [`${method} ${url}`]);
      assert.equal(up.seen[0].body.toString(), body.join(" "));
    });
  }
});

test("an idempotency key of a video returns the same answer, 422 for another body, 409 while one runs", async () => {
  up.clear();
  let release;
  const held = new Promise((r) => {
    release = r;
  });
  up.script = async () => {
    await held;
    return json({ request_id: `job-${up.seen.length}` });
  };
  const create = (prompt, key = "key-1") =>
    send("/v1/videos/generations", { model: "xai/grok-imagine-video", prompt }, { "idempotency-key": key });
  const first = create("a");
  await until("the call", () => up.seen.length);
  const running = await create("a");
  assert.deepEqual([running.status, running.headers.get("x-should-retry")], [409, "false"]);
  assert.ok((await running.json()).error.message);
  release();
  const answer = await (await first).text();
  const again = await create("a");
  assert.deepEqual([again.status, await again.text()], [200, answer]);
  const other = await create("b");
  assert.deepEqual([other.status, other.headers.get("x-should-retry")], [422, "false"]);
  await other.text();
  assert.equal(up.seen.length, 1, "one creation");
  assert.equal((await create("b", "key-2")).status, 200);
  assert.equal(up.seen.length, 2);
  for (const bad of ["x".repeat(256), "caf\u00e9"]) assert.equal((await create("c", bad)).status, 400);
  assert.equal(up.seen.length, 2);
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

test("a refusal of an image's creation is tried with the next account, a failure is not", async () => {
  for (const [status, sent, got] of [
    [401, 2, 200],
    [403, 2, 200],
    [429, 2, 200],
    [400, 1, 400],
    [500, 1, 500],
    [503, 1, 503],
  ]) {
    const { machineId, apiKey } = await operator.machine();
    for (const n of [1, 2])
      await operator.connect(machineId, { provider: "openai", apiKey: `sk-account-${n}-0123456789`, priority: n });
    up.clear();
    up.script = (req) =>
      req.headers.authorization.includes("account-1")
        ? json({ error: { message: "no" } }, status)
        : json({ created: 1, data: [{ b64_json: "AAAA" }] });
    const res = await send("/v1/images/generations", { model: "openai/gpt-image-1.5", prompt: "a" }, {}, apiKey);
    await res.text();
    assert.deepEqual([res.status, up.seen.length], [got, sent], `after ${status}`);
    if (status >= 500) assert.equal(res.headers.get("x-should-retry"), "false");
  }
});
