// Creations, speech and transcripts: creations under an idempotency key, the
// account that is tried next, and the addresses that downloads may have.
// workerd: soak
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up, operator, me;

// upstream answers as up.answer(res, got) does; got has who asked.
async function upstream() {
  const up = { seen: [], answer: null };
  const server = createServer(async (req, res) => {
    const parts = [];
    try {
      for await (const p of req) parts.push(p);
    } catch {
      return;
    }
    const got = {
      method: req.method,
      path: req.url,
      headers: req.headers,
      body: Buffer.concat(parts),
      by: (req.headers.authorization ?? "").replace("Bearer ", ""),
    };
    up.seen.push(got);
    await up.answer(res, got);
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.close = () => {
    server.closeAllConnections();
    return new Promise((r) => server.close(r));
  };
  return up;
}

const json = (res, value, status = 200) =>
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
const picture = { created: 1, data: [{ b64_json: "AAAA" }] };

before(async () => {
  up = await upstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(async () => {
  me = await operator.machine();
  for (const name of ["account-a", "account-b"]) await operator.connect(me.machineId, compatible(up, { apiKey: name }));
  up.seen.length = 0;
  up.answer = (res) => json(res, picture);
});

const post = (path, body, headers = {}, key = me.apiKey) =>
  gw.fetch(path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
const get = (path, key = me.apiKey) => gw.fetch(path, { headers: { authorization: `Bearer ${key}` } });
const accounts = () => up.seen.map((s) => s.by.slice(-1)).join("");

async function refused(res, status, code) {
  const body = await res.json();
  assert.deepEqual([res.status, body.error.code], [status, code], JSON.stringify(body));
}

test("an image with an idempotency key is generated once, however often it is requested", async () => {
  const ask = { model: "up/gpt-image", prompt: "a cat" },
    key = { "idempotency-key": "k-1" };
  const first = await post("/v1/images/generations", ask, key),
    text = await first.text();
  assert.equal(first.status, 200);
  const again = await post("/v1/images/generations", ask, key);
  assert.deepEqual([again.status, await again.text(), again.headers.get("idempotent-replayed")], [200, text, "true"]);
  assert.deepEqual([up.seen.length, up.seen[0].headers["idempotency-key"]], [1, "k-1"]);
  await refused(await post("/v1/images/generations", { ...ask, prompt: "a dog" }, key), 422, "idempotency_mismatch");
  let go;
  const held = new Promise((r) => {
    go = r;
  });
  up.seen.length = 0;
  up.answer = async (res) => {
    await held;
    json(res, picture);
  };
  const many = Array.from({ length: 8 }, () => post("/v1/images/generations", ask, { "idempotency-key": "k-2" }));
  const statuses = [];
  for (const one of many)
    one.then((res) => {
      statuses.push(res);
      if (statuses.length === 7) go();
    });
  const all = await Promise.all(many);
  assert.deepEqual(all.map((r) => r.status).sort(), [200, 409, 409, 409, 409, 409, 409, 409]);
  for (const res of all) if (res.status === 409) assert.equal(res.headers.get("x-should-retry"), "false");
  assert.equal(up.seen.length, 1);
});

test("the idempotency key of chat, messages, responses, embeddings and speech goes upstream", async () => {
  up.answer = (res, got) => {
    if (got.path.includes("speech")) return res.writeHead(200, { "content-type": "audio/mpeg" }).end("SOUND");
    if (got.path.includes("embeddings"))
      return json(res, {
        object: "list",
        data: [{ index: 0, embedding: [1] }],
        usage: { prompt_tokens: 1, total_tokens: 1 },
      });
    if (got.path.includes("responses"))
      return json(res, { id: "resp_1", object: "response", status: "completed", output: [] });
    return json(res, {
      id: "c",
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    });
  };
  const messages = [{ role: "user", content: "hi" }];
  for (const [path, body] of [
    ["/v1/chat/completions", { model: "up/m", messages }],
    ["/v1/messages", { model: "up/m", max_tokens: 9, messages }],
    ["/v1/responses", { model: "up/m", input: "hi" }],
    ["/v1/embeddings", { model: "up/text-embedding", input: "hi" }],
    ["/v1/audio/speech", { model: "up/tts", input: "hi", voice: "alloy" }],
  ]) {
    up.seen.length = 0;
    const res = await post(path, body, { "idempotency-key": "my-key" });
    assert.equal(res.status, 200, `${path}: ${await res.text()}`);
    assert.deepEqual(
      up.seen.map((s) => s.headers["idempotency-key"]),
      ["my-key"],
      path,
    );
  }
});

test("speech that is HTML, an error or empty is requested from the next account", async () => {
  const faults = {
    page: (res) => res.writeHead(200, { "content-type": "text/html" }).end("<html>sign in</html>"),
    empty: (res) => res.writeHead(200, { "content-type": "audio/mpeg" }).end(),
    error: (res) => json(res, { error: { message: "no" } }),
    hidden_page: (res) => res.writeHead(200, { "content-type": "audio/mpeg" }).end("<!DOCTYPE html><p>"),
    reset: (res) => {
      res.writeHead(200, { "content-type": "audio/mpeg" });
      res.flushHeaders();
      setTimeout(() => res.destroy(), 20);
    },
  };
  for (const [name, fault] of Object.entries(faults)) {
    up.seen.length = 0;
    up.answer = (res, got) =>
      up.seen.length === 1 ? fault(res, got) : res.writeHead(200, { "content-type": "audio/mpeg" }).end("SOUND");
    const res = await post("/v1/audio/speech", { model: "up/tts", input: "hi", voice: "alloy" });
    assert.deepEqual(
      [res.status, await res.text(), res.headers.get("content-type"), up.seen.length],
      [200, "SOUND", "audio/mpeg", 2],
      name,
    );
  }
});

test("a recording with its model first goes to another account after a refusal, and when it was never sent", async () => {
  const sound = Buffer.alloc(3 << 20, "sound of the sea "),
    form = () => {
      const f = new FormData();
      f.set("model", "up/whisper-1");
      f.set("file", new Blob([sound], { type: "audio/mpeg" }), "a.mp3");
      return f;
    };
  for (const status of [401, 403, 429]) {
    me = await operator.machine();
    for (const name of ["account-a", "account-b"])
      await operator.connect(me.machineId, compatible(up, { apiKey: name }));
    up.seen.length = 0;
    up.answer = (res) =>
      up.seen.length === 1 ? json(res, { error: { message: "no" } }, status) : json(res, { text: "hi" });
    const res = await gw.fetch("/v1/audio/transcriptions", {
      method: "POST",
      headers: { authorization: `Bearer ${me.apiKey}` },
      body: form(),
    });
    assert.deepEqual([res.status, await res.json()], [200, { text: "hi" }], `after ${status}`);
    assert.equal(accounts(), "ab");
    assert.ok(up.seen[1].body.includes(sound), "the file is whole");
  }
  me = await operator.machine();
  const unreachable = { url: "http://127.0.0.1:1" };
  await operator.connect(me.machineId, compatible(unreachable, { apiKey: "account-a" }));
  await operator.connect(me.machineId, compatible(up, { apiKey: "account-b" }));
  up.seen.length = 0;
  up.answer = (res) => json(res, { text: "hi" });
  const res = await gw.fetch("/v1/audio/transcriptions", {
    method: "POST",
    headers: { authorization: `Bearer ${me.apiKey}` },
    body: form(),
  });
  assert.deepEqual([res.status, await res.json(), accounts()], [200, { text: "hi" }, "b"]);
});

test("a job's name of any characters is polled as it is", async () => {
  for (const name of ["a/b c?d#é", 12345, 12345678901234567000, "a:b;c(d)", "x".repeat(3000), "plain-1"]) {
    up.seen.length = 0;
    up.answer = (res, got) =>
      json(res, got.method === "POST" ? { request_id: name } : { status: "pending", progress: 7 });
    const made = await post("/v1/videos/generations", { model: "up/video", prompt: "a cat" });
    assert.equal(made.status, 200);
    const { request_id } = await made.json();
    assert.match(String(request_id), /^[\w.:;()-]+$/);
    for (const id of [request_id, encodeURIComponent(name)]) {
      const res = await get(`/v1/videos/${id}`);
      assert.deepEqual([res.status, (await res.json()).progress], [200, 7], String(name));
      assert.equal(decodeURIComponent(up.seen.at(-1).path), "/v1/videos/" + name);
    }
  }
});

test("a download never leads to the gateway itself, and carries the hop count", async () => {
  let where = gw.url + "/health";
  up.answer = (res, got) => {
    if (got.method === "POST") return json(res, { request_id: "j" });
    if (got.path === "/moved") return res.writeHead(302, { location: gw.url + "/health" }).end();
    if (got.path === "/file") return res.writeHead(200, { "content-type": "video/mp4" }).end("VIDEO");
    json(res, { status: "done", video: { url: where } });
  };
  await post("/v1/videos/generations", { model: "up/m", prompt: "p" });
  const content = () => get("/v1/videos/j/content");
  await refused(await content(), 502, "bad_upstream_body");
  where = up.url + "/moved";
  await refused(await content(), 502, "bad_upstream_body");
  where = up.url + "/file";
  const res = await content();
  assert.deepEqual([res.status, await res.text()], [200, "VIDEO"]);
  assert.deepEqual(
    up.seen.filter((s) => s.path === "/file" || s.path === "/moved").map((s) => s.headers["x-weir-hop"]),
    ["1", "1"],
  );
});
