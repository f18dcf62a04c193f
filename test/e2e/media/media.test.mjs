// Audio, images and videos, with the official client. docs/reference/spec.md,
// 2.11, 4.4; docs/reference/reliability.md, T12, T40–T43, T54, T55.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { request } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import OpenAI, { toFile } from "openai";
import { sound, start as startUpstream } from "../../upstream/media.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { sleep, until } from "../wait.mjs";

const sha = (b) => createHash("sha256").update(b).digest("hex");
const xaiKey = "xai-key-0123456789abcdef";
let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  const operator = admin(gw);
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  for (const name of ["a", "b", "c"])
    await operator.connect(me.machineId, { provider: "xai", name, apiKey: `${xaiKey}-${name}` });
  await operator.call("PATCH", `/${me.machineId}/api/settings`, { strategy: "round-robin" });
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => up.clear());

const client = (more = {}) => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0, ...more });
const call = (path, init = {}) =>
  gw.fetch(path, { ...init, headers: { authorization: `Bearer ${me.apiKey}`, ...init.headers } });

// field and file write the parts of a form by hand, in a known order.
const boundary = "----weir-test-boundary";
const field = (name, value) =>
  Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
const file = (content, name = "file") =>
  Buffer.concat([
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="a.mp3"\r\nContent-Type: audio/mpeg\r\n\r\n`,
    ),
    content,
    Buffer.from("\r\n"),
  ]);
const form = (...parts) => Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]);
const post = (path, body, headers = {}, more = {}) =>
  call(path, {
    method: "POST",
    body,
    ...more,
    headers: { "content-type": `multipart/form-data; boundary=${boundary}`, ...headers },
  });

// early returns the status of an answer that arrives before the body has been
// sent: with part, only that part of the declared body is sent.
function early(path, body, part = body.length) {
  return new Promise((resolve, reject) => {
    const req = request(gw.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${me.apiKey}`,
        "content-type": `multipart/form-data; boundary=${boundary}`,
        "content-length": body.length,
      },
    });
    let answered = false;
    req.on("response", (res) => {
      answered = true;
      res.resume();
      resolve(res.statusCode);
      if (part < body.length) req.destroy();
    });
    req.on("error", (e) => {
      if (!answered) setTimeout(reject, 500, e);
    });
    if (part < body.length) req.write(body.subarray(0, part));
    else req.end(body);
  });
}

test("speech is streamed, byte for byte", async () => {
  const res = await client().audio.speech.create({ model: "up/tts", input: "hello", voice: "alloy" });
  assert.equal(res.headers.get("content-type"), "audio/mpeg");
  assert.equal(sha(Buffer.from(await res.arrayBuffer())), sha(sound(300_000)));
  assert.equal(up.seen[0].json.model, "tts");
  const inJSON = await call("/v1/audio/speech?response_format=json", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "up/tts", input: "a", voice: "v" }),
  });
  const { audio, format } = await inJSON.json();
  assert.equal(format, "mp3");
  assert.equal(sha(Buffer.from(audio, "base64")), sha(sound(300_000)));
});

test("the official client gets transcriptions in every format", async () => {
  const clip = sound(700_000);
  const ask = async (more) =>
    client().audio.transcriptions.create({ file: await toFile(clip, "a.mp3"), model: "up/whisper-1", ...more });
  assert.equal((await ask({})).text, sha(clip));
  assert.equal((await ask({ response_format: "verbose_json" })).duration, 1.5);
  assert.match(await ask({ response_format: "srt" }), new RegExp(sha(clip)));
  const events = [];
  for await (const e of await ask({ stream: true })) events.push(e.type);
  assert.deepEqual(events, ["transcript.text.delta", "transcript.text.done"]);
  for (const s of up.seen) {
    assert.deepEqual(s.form.model, ["whisper-1"]);
    assert.equal(+s.length, s.bytes);
  }
});

test("a 24 MiB file is forwarded with the model before it, after it and in the query", async () => {
  const clip = sound(24 << 20),
    digest = sha(clip);
  for (const [name, body, query] of [
    ["model first", form(field("model", "up/w"), file(clip), field("language", "de")), ""],
    ["model last", form(file(clip), field("language", "de"), field("model", "up/w")), ""],
    ["query, none in the form", form(file(clip), field("language", "de")), "?model=up%2Fw"],
    [
      "query, another in the form",
      form(file(clip), field("language", "de"), field("model", "whisper-1")),
      "?model=up%2Fw",
    ],
  ]) {
    up.clear();
    const res = await post("/v1/audio/transcriptions" + query, body);
    assert.deepEqual(await res.json(), { text: digest }, name);
    const s = up.seen[0];
    assert.deepEqual([s.form.model, s.form.language, +s.length], [["w"], ["de"], s.bytes], name);
  }
});

test("invalid forms are refused", async () => {
  const clip = sound(1 << 20);
  for (const [name, body, status, part] of [
    ["two models", form(field("model", "up/w"), file(clip), field("model", "up/x")), 400],
    ["no end", form(field("model", "up/w"), file(clip)).subarray(0, -6), 400],
    ["many parts", form(field("model", "up/w"), ...Array(100).fill(field("a", "1")), file(clip)), 400, 16 << 10],
    ["no model", form(file(clip)), 400],
    ["model after 26 MiB", form(file(sound(26 << 20)), field("model", "up/w")), 413, 128 << 10],
  ]) {
    assert.equal(await early("/v1/audio/transcriptions", body, part), status, name);
  }
});

test("a client's broken forms do not cool the account", async () => {
  const clip = sound(1 << 20);
  for (let i = 0; i < 4; i++)
    assert.equal(
      (await post("/v1/audio/transcriptions", form(field("model", "up/w"), file(clip), field("model", "up/x")))).status,
      400,
    );
  const stop = new AbortController();
  for (let i = 0; i < 3; i++) {
    const cut = new ReadableStream({
      async pull(c) {
        c.enqueue(form(field("model", "up/w"), file(clip)).subarray(0, 300_000));
        await sleep(20);
        c.error(new Error("gone"));
      },
    });
    await post("/v1/audio/transcriptions", cut, {}, { duplex: "half", signal: stop.signal }).catch(() => {});
  }
  assert.equal((await post("/v1/audio/transcriptions", form(field("model", "up/w"), file(clip)))).status, 200);
});

test("eight uploads of 20 MiB at once arrive whole", async () => {
  const clip = sound(20 << 20),
    digest = sha(clip);
  const all = await Promise.all(
    Array.from({ length: 8 }, async () =>
      (await post("/v1/audio/transcriptions", form(field("model", "up/w"), file(clip)))).json(),
    ),
  );
  assert.deepEqual(all, Array(8).fill({ text: digest }));
});

test("images are generated and edited", async () => {
  const made = await client().images.generate({ model: "up/gpt-image-1.5", prompt: "a cat" });
  assert.equal(made.data[0].b64_json, sound(300).toString("base64"));
  const png = sound(2 << 20);
  const edited = await client().images.edit({
    image: await toFile(png, "a.png", { type: "image/png" }),
    prompt: "a dog",
    model: "up/gpt-image-1.5",
  });
  assert.equal(edited.data[0].b64_json, sha(png));
  assert.deepEqual(up.seen[1].form.model, ["gpt-image-1.5"]);
});

test("bodies of video creations are forwarded byte for byte", async () => {
  const json = '{ "model" : "xai/grok-imagine-video", "prompt":"a", "seed":9007199254740993, "x":1e400 }';
  for (const [type, body, want] of [
    ["application/json", Buffer.from(json), Buffer.from(json.replace("xai/", ""))],
    [`multipart/form-data; boundary="${boundary}"`, form(field("prompt", "a"), file(sound(5 << 20), "video")), null],
    ["multipart/form-data; boundary=x", Buffer.from("--x\r\nbroken"), null],
  ]) {
    up.clear();
    const res = await call("/v1/videos/generations", {
      method: "POST",
      headers: { "content-type": type, "idempotency-key": sha(body) },
      body,
    });
    assert.equal(res.status, 200, await res.clone().text());
    const { request_id: id } = await res.json();
    const s = up.seen[0];
    assert.deepEqual(
      [s.digest, s.headers["content-type"], s.headers["idempotency-key"], s.host],
      [sha(want ?? body), type, sha(body), "api.x.ai"],
    );
    assert.ok(res.headers.get("x-weir-connection-id"));
    const again = await call("/v1/videos/generations", {
      method: "POST",
      headers: { "content-type": type, "idempotency-key": sha(body) },
      body,
    });
    assert.deepEqual([again.status, (await again.json()).request_id, up.seen.length], [200, id, 1]);
    assert.equal(again.headers.get("x-weir-connection-id"), res.headers.get("x-weir-connection-id"));
  }
});

test("a held body is sent again after a refusal, and never after a failure", async () => {
  const body = form(field("prompt", "a"), file(sound(3 << 20), "video"));
  const create = () => post("/v1/videos/generations?provider=xai", body);
  up.answer = (s) => (s === up.seen[0] ? { status: 403, body: '{"error":"no"}' } : null);
  assert.equal((await create()).status, 200);
  assert.deepEqual(
    up.seen.map((s) => s.digest),
    [sha(body), sha(body)],
  );
  assert.notEqual(up.seen[0].headers.authorization, up.seen[1].headers.authorization);
  for (const answer of [
    { destroy: true },
    { status: 500, body: `{"error":{"message":"key ${xaiKey}-b and ${xaiKey}-c"}}` },
    { status: 200, body: "{" },
  ]) {
    up.clear();
    up.answer = () => answer;
    const res = await create(),
      text = await res.text();
    assert.ok(res.status >= 500, text);
    assert.equal(res.headers.get("x-should-retry"), "false");
    assert.equal(up.seen.length, 1);
    assert.ok(!text.includes(xaiKey), text);
  }
  assert.ok(!gw.logs.join("\n").includes(xaiKey));
});

test("jobs are polled only with their own account, and only by their machine", async () => {
  const ids = [];
  for (let i = 0; i < 12; i++) {
    const res = await call("/v1/videos/generations", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "xai/m", prompt: String(i) }),
    });
    ids.push((await res.json()).request_id);
  }
  for (const id of ids) assert.equal((await (await call(`/v1/videos/${id}`)).json()).by, sha(up.jobs.get(id)));
  const other = await admin(gw).machine();
  await admin(gw).connect(other.machineId, { provider: "xai", apiKey: "another-key-0123456789" });
  up.clear();
  for (const path of [`/v1/videos/${ids[0]}`, `/v1/videos/${ids[0]}/content`, "/v1/videos/none"]) {
    const res = await gw.fetch(path, { headers: { authorization: `Bearer ${other.apiKey}` } });
    assert.equal(res.status, 404, await res.text());
  }
  assert.equal(up.seen.length, 0);
});

test("a creation whose client disconnects is finished and recorded", async () => {
  const leave = new AbortController();
  const job = "left-alone";
  let finished;
  const done = new Promise((r) => {
    finished = r;
  });
  up.answer = async (s) => {
    if (s.method !== "POST") return null;
    leave.abort();
    await sleep(300);
    up.jobs.set(job, s.headers.authorization);
    finished();
    return { body: JSON.stringify({ request_id: job }) };
  };
  const init = {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": "left" },
    body: JSON.stringify({ model: "xai/m", prompt: "p" }),
  };
  await assert.rejects(call("/v1/videos/generations", { ...init, signal: leave.signal }));
  await done;
  // Recording it is not announced: the gateway is called until it knows.
  const recorded = (path, before, init) =>
    until(path, async () => {
      const res = await call(path, init),
        body = await res.json();
      return res.status !== before && body;
    });
  assert.equal((await recorded(`/v1/videos/${job}`, 404)).by, sha(up.jobs.get(job)));
  assert.deepEqual(await recorded("/v1/videos/generations", 409, init), { request_id: job });
  assert.equal(up.seen.filter((s) => s.method === "POST").length, 1);
});

test("300 MB of video content are streamed", async () => {
  const res = await call("/v1/videos/generations", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "xai/m", prompt: "long" }),
  });
  const { request_id: id } = await res.json();
  up.videoBytes = 300 << 20;
  const content = await call(`/v1/videos/${id}/content`);
  assert.equal(content.headers.get("content-type"), "video/mp4");
  let bytes = 0;
  for await (const piece of content.body) bytes += piece.length;
  assert.equal(bytes, up.videoBytes);
  assert.equal(up.seen.find((s) => s.path === "/file.mp4").headers.authorization, undefined);
});
