// The memory that large bodies need in the isolate, whose limit is 128 MB:
// streamed uploads, uploads that the host must hold, downloads. See
// docs/reference/reliability.md, T40, F56.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import OpenAI, { toFile } from "openai";
import { sound, start as startUpstream } from "../../upstream/media.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { shown } from "../isolate.mjs";
import { sleep, until } from "../wait.mjs";

const sha = (b) => createHash("sha256").update(b).digest("hex");
const clip = sound(20 << 20),
  digest = sha(clip),
  uploads = 8;
let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up, inspect: true });
  const operator = admin(gw);
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  await operator.connect(me.machineId, { provider: "xai", apiKey: "xai-key-0123456789abcdef" });
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => up.clear());

const call = (path, init = {}) =>
  gw.fetch(path, { ...init, headers: { authorization: `Bearer ${me.apiKey}`, ...init.headers } });
const boundary = "----weir-test-boundary";
const field = (name, value) =>
  Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
const file = () =>
  Buffer.concat([
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.mp3"\r\nContent-Type: audio/mpeg\r\n\r\n`,
    ),
    clip,
    Buffer.from("\r\n"),
  ]);
const form = (...parts) => Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]);

// during runs a function. The isolate must stay under its limit meanwhile, grow by at
// most more bytes, and have released all buffers afterwards.
async function during(t, what, more = Infinity) {
  const { limit } = gw.memory,
    calm = await gw.memory.collect(),
    watched = gw.memory.watch();
  let peak, got;
  try {
    got = await what();
  } finally {
    peak = await watched.stop();
  }
  t.diagnostic(`before: ${shown(calm)}; at most: ${shown(peak)}`);
  assert.ok(peak.total <= Math.min(limit, calm.total + more), shown(peak));
  const left = await gw.memory.collect();
  assert.ok(left.buffers < 4 << 20, `left: ${shown(left)}`);
  const stats = await until("the end of all calls", async () => {
    const s = await gw.stats();
    return !s.calls && !s.streams && s; // usage is reported a second later
  });
  assert.equal(stats.dead, false);
  return got;
}

test(`${uploads} uploads of 20 MiB at once with the model first are streamed`, { timeout: 180_000 }, async (t) => {
  const body = form(field("model", "up/w"), file());
  const one = async () =>
    (
      await call("/v1/audio/transcriptions", {
        method: "POST",
        headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
        body,
      })
    ).json();
  const all = await during(t, () => Promise.all(Array.from({ length: uploads }, one)));
  assert.deepEqual(all, Array(uploads).fill({ text: digest }));
});

// The official client sends the file first. Eight such forms are more than an
// isolate may have: three are held, the others wait at their clients. Bytes that
// were only dropped, for the next collection of garbage, put it over the limit. One
// that waits too long gets 503 with Retry-After, and is sent again by the client.
test(`${uploads} uploads of 20 MiB at once by the official client, file first, are held in turns`, {
  timeout: 120_000,
}, async (t) => {
  const openai = new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
  const all = await during(t, () =>
    Promise.all(
      Array.from({ length: uploads }, async () =>
        openai.audio.transcriptions.create({ file: await toFile(clip, "a.mp3"), model: "up/whisper-1" }),
      ),
    ),
  );
  assert.deepEqual(all, Array(uploads).fill({ text: digest }));
  assert.deepEqual(
    up.seen.map((s) => s.form.model[0]),
    Array(uploads).fill("whisper-1"),
  );
});

test("forms over the limit and broken ones leave nothing behind", { timeout: 180_000 }, async (t) => {
  const large = Buffer.concat([file(), file().subarray(0, 7 << 20)]);
  const send = async (body, more) =>
    (
      await call("/v1/audio/transcriptions", {
        method: "POST",
        headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
        body,
        ...more,
      })
    ).status;
  const pieces = (b, fail) =>
    new ReadableStream({
      start() {
        this.at = 0;
      },
      pull(c) {
        if (this.at >= b.length) return fail ? c.error(new Error("gone")) : c.close();
        c.enqueue(b.subarray(this.at, (this.at += 1 << 20)));
      },
    });
  await during(t, async () => {
    assert.equal(await send(pieces(large), { duplex: "half" }).catch(() => 413), 413); // refused while it still comes
    await assert.rejects(send(pieces(file().subarray(0, 15 << 20), true), { duplex: "half" }));
    assert.equal(await send(form(file())), 400); // no model
    assert.equal(await send(pieces(form(file(), field("model", "up/w"))), { duplex: "half" }), 200); // of unknown length
  });
});

test("300 MB of video content are streamed", { timeout: 180_000 }, async (t) => {
  const made = await call("/v1/videos/generations", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "xai/m", prompt: "long" }),
  });
  const { request_id: id } = await made.json();
  up.videoBytes = 300_000_000;
  const piece = sound(1 << 20);
  await during(
    t,
    async () => {
      const { body } = await call(`/v1/videos/${id}/content`);
      let bytes = 0;
      for await (const b of body) {
        for (let at = 0; at < b.length; ) {
          const from = (bytes + at) % piece.length,
            n = Math.min(b.length - at, piece.length - from);
          assert.equal(Buffer.compare(b.subarray(at, at + n), piece.subarray(from, from + n)), 0);
          at += n;
        }
        bytes += b.length;
      }
      assert.equal(bytes, up.videoBytes);
    },
    8 << 20,
  );
});

// A body of JSON goes through Go's own memory, which does not shrink. Bytes
// that were sent are garbage of JavaScript, and count until they are collected.
for (const [path, model] of [
  ["/v1/images/generations", "up/gpt-image-1.5"],
  ["/v1/images/edits", "up/gpt-image-1.5"],
  ["/v1/videos/generations", "xai/m"],
]) {
  test(`16 bodies of 8 MiB at once to ${path} stay within the isolate's memory`, { timeout: 120_000 }, async (t) => {
    const body = JSON.stringify({ model, prompt: "a", image: { url: `data:image/png;base64,${"A".repeat(8 << 20)}` } });
    up.answer = async () => {
      await sleep(50);
      return { body: '{"created":1,"data":[{"b64_json":"AAAA"}],"request_id":"job"}' };
    };
    const one = async () =>
      (await call(path, { method: "POST", headers: { "content-type": "application/json" }, body })).status;
    const all = await during(t, () => Promise.all(Array.from({ length: 16 }, one)));
    assert.ok(
      all.every((s) => s === 200 || s === 503),
      all.join(),
    ); // a call that gets no memory within a minute is refused
    assert.ok(all.includes(200), all.join());
    const sent = body.replace(/"(up|xai)\//, '"');
    assert.ok(up.seen.every((s) => s.bytes === sent.length && s.digest === sha(sent)));
  });
}

// The text of a conversation is spliced in Go: three copies exist for a moment.
test("12 conversations of 8 MiB at once stay within the isolate's memory", { timeout: 120_000 }, async (t) => {
  const body = JSON.stringify({ model: "up/m", messages: [{ role: "user", content: "A".repeat(8 << 20) }] });
  up.answer = async () => {
    await sleep(50);
    return {
      body: '{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}',
    };
  };
  const one = async () =>
    (await call("/v1/chat/completions", { method: "POST", headers: { "content-type": "application/json" }, body }))
      .status;
  const all = await during(t, () => Promise.all(Array.from({ length: 12 }, one)));
  assert.ok(
    all.every((s) => s === 200 || s === 503),
    all.join(),
  );
  assert.ok(all.includes(200), all.join());
  const sent = body.replace('"up/', '"');
  assert.ok(up.seen.every((s) => s.bytes === sent.length && s.digest === sha(sent)));
});
