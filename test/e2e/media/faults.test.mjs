// Audio and images over faulty upstreams and clients: each call has one outcome,
// and a cut body never looks whole. See docs/reference/reliability.md, N1, T12,
// T40, T42, F17, F26.
// workerd: soak
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, before, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import OpenAI, { toFile } from "openai";
import { admin, compatible, start } from "../gateway.mjs";
import { request } from "../raw.mjs";

const bearer = (key) => ["authorization", `Bearer ${key}`];
const sha = (b) => createHash("sha256").update(b).digest("hex");
let gw, up, me;

// upstream answers as up.answer(res, body, req) does.
async function upstream() {
  const up = { seen: [], answer: null };
  const server = createServer(async (req, res) => {
    const parts = [];
    try {
      for await (const p of req) parts.push(p);
    } catch {
      return;
    }
    const body = Buffer.concat(parts);
    up.seen.push({ path: req.url, type: req.headers["content-type"], headers: req.headers, body });
    await up.answer(res, body, req);
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.close = () => {
    server.closeAllConnections();
    return new Promise((r) => server.close(r));
  };
  return up;
}

before(async () => {
  up = await upstream();
  gw = await start({ vendors: up });
});
after(async () => {
  await gw?.close();
  await up?.close();
});
// A failure cools an account: each test has its own machine.
beforeEach(async () => {
  const operator = admin(gw);
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  await operator.connect(me.machineId, { provider: "xai", apiKey: "xai-key-0123456789abcdef" });
  up.seen.length = 0;
  up.answer = (res) => ok(res, { text: "hi" });
});

const ok = (res, value) => res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
const client = () => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
const speak = { model: "up/tts", input: "hello", voice: "alloy" };
const clip = Buffer.alloc(300_000, "sound of the sea ");
const list = async (stream) => {
  const all = [];
  for await (const e of stream) all.push(e);
  return all;
};

test("speech is streamed while it is generated, and its bytes are unchanged", async (t) => {
  let more;
  const asked = new Promise((r) => {
    more = r;
  });
  up.answer = async (res) => {
    res.writeHead(200, { "content-type": "audio/mpeg" });
    res.write(clip.subarray(0, 100_000));
    await asked; // the client has the beginning by then
    res.end(clip.subarray(100_000));
  };
  const res = await client().audio.speech.create(speak),
    dir = await mkdtemp(join(tmpdir(), "weir-speech-"));
  t.after(() => rm(dir, { recursive: true }));
  let heard = 0;
  const body = Readable.fromWeb(res.body).on("data", (b) => {
    heard += b.length;
    if (heard >= 100_000) more();
  });
  await pipeline(body, createWriteStream(join(dir, "a.mp3")));
  assert.equal(sha(await readFile(join(dir, "a.mp3"))), sha(clip));
});

test("speech that breaks off is not shown as whole", async () => {
  for (const length of [{}, { "content-length": clip.length }]) {
    up.answer = async (res) => {
      res.writeHead(200, { "content-type": "audio/mpeg", ...length });
      await new Promise((r) => res.write(clip.subarray(0, 100_000), r));
      setTimeout(() => res.socket?.resetAndDestroy(), 50);
    };
    await assert.rejects(
      (async () => (await client().audio.speech.create(speak)).arrayBuffer())(),
      JSON.stringify(length),
    );
  }
});

test("speech that stalls is cut off after the limit, and another call is served", {
  timeout: 180_000,
}, async () => {
  await admin(gw).call("PATCH", `/${me.machineId}/api/settings`, { idleSeconds: 1 });
  up.answer = (res) => res.writeHead(200, { "content-type": "audio/mpeg" }).write(clip.subarray(0, 100_000));
  await assert.rejects((async () => (await client().audio.speech.create(speak)).arrayBuffer())());
  up.answer = (res) => res.writeHead(200, { "content-type": "audio/mpeg" }).end(clip);
  const res = await client().audio.speech.create(speak);
  assert.equal(sha(Buffer.from(await res.arrayBuffer())), sha(clip));
});

const events = (...all) => all.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join("");

test("partial images are streamed as they arrive; a stream that breaks off ends with an error", async () => {
  const part = (i, type = "image_generation.partial_image") => ({
    type,
    b64_json: "AAAA".repeat(50_000),
    partial_image_index: i,
    created_at: 1,
    size: "1024x1024",
    quality: "low",
    background: "opaque",
    output_format: "png",
  });
  const done = { type: "image_generation.completed", b64_json: "BBBB", usage: { total_tokens: 3 } };
  up.answer = (res) => res.writeHead(200, { "content-type": "text/event-stream" }).end(events(part(0), part(1), done));
  const ask = { model: "up/gpt-image-1.5", prompt: "a", stream: true, partial_images: 2 };
  assert.deepEqual(await list(await client().images.generate(ask)), [part(0), part(1), done]);
  assert.deepEqual(JSON.parse(up.seen[0].body), { ...ask, model: "gpt-image-1.5" });
  const edit = async () => client().images.edit({ ...ask, image: await toFile(clip, "a.png", { type: "image/png" }) });
  up.answer = (res) =>
    res
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(events(part(0, "image_edit.partial_image"), { type: "image_edit.completed", b64_json: "BBBB" }));
  assert.deepEqual(
    (await list(await edit())).map((e) => e.type),
    ["image_edit.partial_image", "image_edit.completed"],
  );
  up.seen.length = 0;
  let reset;
  up.answer = (res) => {
    res.writeHead(200, { "content-type": "text/event-stream" }).write(events(part(0)));
    reset = () => res.socket?.resetAndDestroy();
  };
  const broken = async (stream) => {
    for await (const e of await stream) {
      assert.equal(e.partial_image_index, 0);
      reset();
    }
  };
  await assert.rejects(broken(client().images.generate(ask)), /broke off/);
  await assert.rejects(broken(edit()), /broke off/);
  assert.equal(up.seen.length, 2, "a creation is sent once");
});

test("an edit with several images and a mask is forwarded part by part, unchanged", async () => {
  up.answer = (res) => ok(res, { created: 1, data: [{ b64_json: "AAAA" }] });
  const images = [1, 2, 3].map((n) => Buffer.alloc(n * 90_000, `image ${n} `)),
    mask = Buffer.alloc(50_000, "mask ");
  await client().images.edit({
    image: await Promise.all(images.map((b, i) => toFile(b, `${i}.png`, { type: "image/png" }))),
    mask: await toFile(mask, "m.png"),
    prompt: "join",
    model: "up/gpt-image-1.5",
    n: 2,
    size: "auto",
  });
  const got = await new Response(up.seen[0].body, { headers: { "content-type": up.seen[0].type } }).formData();
  const digests = async (name) =>
    Promise.all(got.getAll(name).map(async (f) => sha(Buffer.from(await f.arrayBuffer()))));
  assert.deepEqual(await digests("image[]"), images.map(sha));
  assert.deepEqual(await digests("mask"), [sha(mask)]);
  assert.deepEqual(
    ["model", "prompt", "n", "size"].map((n) => got.getAll(n).join()),
    ["gpt-image-1.5", "join", "2", "auto"],
  );
});

test("after a broken answer a transcription is retried with another account, an image is not", async () => {
  const bad = {
    cut: (res) => {
      res.writeHead(200, { "content-type": "application/json", "content-length": 500 }).write('{"text":"hi","data":[');
      setTimeout(() => res.socket?.destroy(), 30);
    },
    reset: (res) => res.socket.resetAndDestroy(),
  };
  const asks = {
    transcription: async () =>
      client().audio.transcriptions.create({ file: await toFile(clip, "a.mp3"), model: "up/w" }),
    image: async () => client().images.generate({ model: "up/gpt-image-1.5", prompt: "a" }),
    edit: async () =>
      client().images.edit({ model: "up/gpt-image-1.5", prompt: "a", image: await toFile(clip, "a.png") }),
  };
  for (const [fault, broken] of Object.entries(bad)) {
    for (const [name, ask] of Object.entries(asks)) {
      const operator = admin(gw);
      me = await operator.machine();
      for (const n of [1, 2])
        await operator.connect(me.machineId, compatible(up, { apiKey: `upstream-key-${n}`, priority: n }));
      up.seen.length = 0;
      up.answer = (res, _, req) =>
        req.headers.authorization.endsWith("1")
          ? broken(res)
          : ok(res, { text: "hi", created: 1, data: [{ b64_json: "AAAA" }] });
      const e = await ask().catch((e) => e),
        what = `${name}, ${fault}: ${e?.message}`;
      if (name === "transcription") assert.deepEqual([e.text, up.seen.length], ["hi", 2], what);
      else {
        assert.deepEqual([e.status >= 500, e.headers?.get("x-should-retry"), up.seen.length], [true, "false", 1], what);
      }
    }
  }
});

// forms are written by hand: [what, content type, body].
const field = (b, name, value) => `--${b}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = (b) =>
  `--${b}\r\nContent-Disposition: form-data; name="file"; filename="a.mp3"\r\nContent-Type: audio/mpeg\r\n\r\nSOUND--\r\n-SOUND\r\n`;
const form = (b, ...parts) => parts.join("") + `--${b}--\r\n`;
// Of a large form only the beginning is sent: its answer comes before the rest,
// and a client that still writes then may lose it.
const transcribe = (type, body) =>
  request(
    gw.url,
    "POST",
    "/v1/audio/transcriptions",
    [bearer(me.apiKey), ["content-type", type]],
    body.subarray(0, 100_000),
    { ms: 60_000, length: body.length },
  );

test("invalid forms are refused, and none of them is forwarded whole [T42]", { timeout: 120_000 }, async () => {
  const b = "multipart/form-data; boundary=b",
    model = field("b", "model", "up/w");
  const parts = field("b", "a", "1").repeat(100_000);
  for (const [what, type, body] of [
    ["no end", b, model + file("b")],
    ["two models", b, form("b", model, file("b"), model)],
    ["100,000 parts, model first", b, form("b", model, parts, file("b"))],
    ["100,000 parts, model last", b, form("b", parts, file("b"), model)],
  ]) {
    up.seen.length = 0;
    const a = await transcribe(type, Buffer.from(body));
    assert.equal(a?.status, 400, `${what}: ${a?.text}`);
    assert.equal(JSON.parse(a.text).error.type, "invalid_request_error", what);
    assert.ok(!up.seen.some((s) => s.body.toString().endsWith("--b--\r\n")), `${what}: it went up`);
  }
  assert.equal(
    (await transcribe(b, Buffer.from(form("b", model, file("b"))))).status,
    200,
    "the account is not put aside",
  );
});

test("a compressed form is refused, JSON is decoded within the limit, and other bodies are forwarded [T40]", async () => {
  const zipped = gzipSync(Buffer.alloc(200 << 20)),
    gzip = [["content-encoding", "gzip"]];
  for (const [path, type, status] of [
    ["/v1/audio/transcriptions", "multipart/form-data; boundary=b", 415],
    ["/v1/audio/speech", "application/json", 413],
    ["/v1/images/generations", "application/json", 413],
    ["/v1/images/edits", "multipart/form-data; boundary=b", 415],
  ]) {
    const a = await request(
      gw.url,
      "POST",
      path,
      [bearer(me.apiKey), ["content-type", type], ...gzip],
      status === 415 ? zipped.subarray(0, 1000) : zipped,
      { length: zipped.length },
    );
    assert.equal(a?.status, status, path);
  }
  assert.equal(up.seen.length, 0);
  up.answer = (res) => ok(res, { request_id: "job-1" });
  const a = await request(
    gw.url,
    "POST",
    "/v1/videos/generations",
    [bearer(me.apiKey), ["content-type", "application/json"], ...gzip],
    zipped,
  );
  assert.equal(a.status, 200, a.text);
  assert.deepEqual([sha(up.seen[0].body), up.seen[0].headers["content-encoding"]], [sha(zipped), "gzip"]);
});

test("an invalid request_id is refused [T12]", async () => {
  for (const id of [
    "none",
    "a%2Fb",
    "a%2fcontent",
    "..",
    "%2e%2e",
    "a%5cb",
    "a%00b",
    "a%3Fx",
    "a%23x",
    "x".repeat(4096),
    "a/b",
    "caf%C3%A9",
    "%zz",
  ]) {
    for (const end of ["", "/content"]) {
      const a = await request(gw.url, "GET", `/v1/videos/${id}${end}`, [bearer(me.apiKey)]);
      assert.ok(
        id === "none" ? a.status === 404 : a.status === 400 || a.status === 404,
        `${id.slice(0, 20)}${end}: ${a.status}`,
      );
    }
  }
  assert.equal(up.seen.length, 0);
});

test("a body over its limit is refused, by its declared and by its real length", { timeout: 120_000 }, async () => {
  const early = (path, length) =>
    request(
      gw.url,
      "POST",
      path,
      [
        bearer(me.apiKey),
        ["content-type", path.includes("generations") ? "application/json" : "multipart/form-data; boundary=b"],
      ],
      Buffer.from("x"),
      { ms: 20_000, length },
    );
  for (const [path, limit] of [
    ["/v1/audio/transcriptions", 256 << 20],
    ["/v1/images/edits", 256 << 20],
    ["/v1/videos/edits", 256 << 20],
    ["/v1/images/generations", 25 << 20],
    ["/v1/audio/speech", 8 << 20],
  ]) {
    assert.equal((await early(path, limit + 1)).status, 413, path);
  }
  assert.equal(up.seen.length, 0);
  const big = JSON.stringify({ model: "xai/m", prompt: "a".repeat(26 << 20) });
  const res = await gw
    .fetch("/v1/videos/generations", {
      method: "POST",
      headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
      body: big,
    })
    .catch(() => null);
  assert.ok(res === null || res.status === 413, String(res?.status));
  assert.equal(up.seen.length, 0);
});
