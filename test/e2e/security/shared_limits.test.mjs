// The cost of one client or one upstream for all others: memory for bodies, CPU
// of the redactor, of key derivation and of large machines.
import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start, tenant } from "../gateway.mjs";
import { open } from "../raw.mjs";
import { connect } from "../sockets.mjs";
import { until } from "../wait.mjs";

const mib = 1 << 20;
let gw, up, a, b, other;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  [a, b, other] = [await tenant(gw, up), await tenant(gw, up), await tenant(gw, up)];
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = null;
});

// drip sends the head of a request and the beginning of its body, and then a
// byte a second until it is answered.
function drip(path, key, type, length, begin) {
  const c = open(gw.url),
    answered = c.answer(60_000);
  c.send(
    `POST ${path} HTTP/1.1\r\nhost: weir\r\nauthorization: Bearer ${key}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`,
  );
  c.send(begin);
  const timer = setInterval(() => c.send("x"), 1000);
  return {
    answered: answered.finally(() => {
      clearInterval(timer);
      c.socket.destroy();
    }),
    sent: new Promise((r) => c.socket.write("", r)),
  };
}

const chat = (key, text) =>
  gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: text }] }),
  });

// A regression: declared lengths filled the memory budget that all tenants
// share.
test("declared bodies that do not arrive block no other call, and time out", { timeout: 120_000 }, async () => {
  const json = `{"model":"up/test-chat","messages":[{"role":"user","content":"${"x".repeat(70 << 10)}`;
  const slow = [
    drip("/v1/chat/completions", a.apiKey, "application/json", 24 * mib, json),
    drip("/v1/chat/completions", b.apiKey, "application/json", 8 * mib, json),
  ];
  const form = `--b\r\nContent-Disposition: form-data; name="file"; filename="a.mp3"\r\n\r\n${"x".repeat(70 << 10)}`;
  for (const size of [25, 25, 14])
    slow.push(drip("/v1/audio/transcriptions", a.apiKey, "multipart/form-data; boundary=b", size * mib - 1000, form));
  // Small bodies, which the host gathers before the program is entered.
  const small = drip("/v1/chat/completions", a.apiKey, "application/json", 1000, "{");
  const message = drip("/v1/messages", b.apiKey, "application/json", 1000, "{");
  slow.push(small, message);
  await Promise.all(slow.map((s) => s.sent));
  const res = await chat(other.apiKey, "x".repeat(200 << 10));
  assert.equal(res.status, 200, await res.text());
  const whole = new FormData();
  whole.set("file", new Blob([new Uint8Array(100 << 10)]), "a.mp3");
  whole.set("model", "up/whisper-1");
  const heard = await gw.fetch("/v1/audio/transcriptions", {
    method: "POST",
    headers: { authorization: `Bearer ${other.apiKey}` },
    body: whole,
  });
  assert.notEqual(heard.status, 503, await heard.text());
  for (const s of slow) {
    const got = await s.answered;
    assert.equal(got?.status, 408, got?.text);
    assert.match(got.text, /did not arrive in time/);
  }
  const inChat = JSON.parse((await small.answered).text);
  assert.equal(inChat.error.type, "invalid_request_error", "of chat");
  const inMessages = JSON.parse((await message.answered).text);
  assert.deepEqual([inMessages.type, inMessages.error.type], ["error", "timeout_error"], "of messages");
});

test("a chunked body counts with the bytes that have arrived: calls of one tenant do not wait for each other", {
  timeout: 180_000,
}, async () => {
  let all;
  const together = new Promise((resolve) => {
    all = resolve;
  });
  up.script = async () => {
    if (up.seen.length === 4) all();
    await together;
    return null;
  };
  const { hostname, port } = new URL(gw.url);
  const chunked = (size) =>
    new Promise((resolve, reject) => {
      const req = httpRequest(
        {
          hostname,
          port,
          method: "POST",
          path: "/v1/chat/completions",
          headers: {
            authorization: `Bearer ${a.apiKey}`,
            "content-type": "application/json",
            "transfer-encoding": "chunked",
          },
        },
        (res) => {
          res.resume();
          res.on("end", () => resolve(res.statusCode));
        },
      );
      req.on("error", reject);
      req.end(JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "x".repeat(size) }] }));
    });
  assert.deepEqual(await Promise.all([chunked(1), chunked(1), chunked(1), chunked(300 << 10)]), [200, 200, 200, 200]);
});

test("large bodies of known and unknown length come through whole", async () => {
  const text = Array.from({ length: 40_000 }, (_, i) => `line ${i}`)
    .join("\n")
    .repeat(8);
  for (const body of [text, null]) {
    up.clear();
    const raw = JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: text }] });
    const init = {
      method: "POST",
      headers: { authorization: `Bearer ${a.apiKey}`, "content-type": "application/json" },
      body: raw,
    };
    if (body === null) Object.assign(init, { body: new Blob([raw]).stream(), duplex: "half" });
    const res = await gw.fetch("/v1/chat/completions", init);
    assert.equal(res.status, 200, await res.text());
    assert.equal(up.seen[0].json.messages[0].content, text);
  }
});

// A regression: 32 KiB of backslashes took eleven seconds.
test("an answer full of backslashes is searched for secrets in linear time", { timeout: 180_000 }, async () => {
  for (const part of ["\\\\", "%25", "&amp;", "\\\\%25&amp;"]) {
    const text = part.repeat(mib / part.length);
    up.script = () => ({
      status: 400,
      headers: { "content-type": "application/json", "x-ratelimit-reset": "\\".repeat(7000) },
      body: `{"error":{"message":"${text}","type":"invalid_request_error"}}`,
    });
    const res = await chat(a.apiKey, "a");
    assert.equal(res.status, 400, await res.text());
  }
});

// A regression: other sites could read such an answer of /api.
// A regression: 1,024 silent connections of one key shut out every tenant.
test("silent WebSockets of one key keep out neither another tenant nor another key", {
  timeout: 180_000,
}, async () => {
  const socket = (key) => connect(`${gw.url}/v1/responses`, { headers: { authorization: `Bearer ${key}` } });
  const many = async (key, n) => {
    const list = [];
    for (let i = 0; i < n; i += 32)
      list.push(...(await Promise.allSettled(Array.from({ length: 32 }, () => socket(key)))));
    return { open: list.filter((s) => s.value).map((s) => s.value), refused: list.flatMap((s) => s.reason ?? []) };
  };
  const greedy = await many(a.apiKey, 1024);
  assert.ok(greedy.open.length >= 256 && greedy.refused.length, `${greedy.open.length} are open`);
  for (const r of greedy.refused) assert.deepEqual([r.status, r.headers["retry-after"]], [503, "1"]);
  const second = await admin(gw).call("POST", `/${a.machineId}/api/keys`, { name: "second" });
  const ends = [];
  for (const c of greedy.open) c.closed.then((end) => ends.push(end));
  const others = [];
  for (const key of [b.apiKey, second.apiKey]) for (let i = 0; i < 20; i++) others.push(await socket(key));
  await until("connections of the key have made way", () => ends.length > 0);
  for (const end of ends) assert.equal(end.code, 1013, end.reason);
  for (const c of [...greedy.open, ...others]) c.ws.terminate();
});

// Two regressions: on the edge two messages of 15 MB, or 700 calls of 60 kB, kept the bodies
// over 64 KiB of all others waiting; messages that waited closed the WebSockets of others.
test("large messages and many small calls of one machine keep no other waiting", { timeout: 300_000 }, async () => {
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  const silent = (req) => req.path.startsWith("/silent/");
  await admin(gw).connect(a.machineId, compatible(up, { prefix: "hang", path: "/silent/v1", suffix: "0123abce" }));
  const hanging = (n) => until(`${n} calls hang`, () => up.seen.filter(silent).length >= n);
  up.script = async (req) => {
    if (silent(req)) await released;
    return null;
  };
  const headers = { authorization: `Bearer ${a.apiKey}` };
  const turn = (model, n) => ({ type: "response.create", model, input: "x".repeat(n) });
  const served = async (when) => {
    for (const kib of [1, 70, 300, 2048]) {
      const res = await chat(other.apiKey, "x".repeat(kib << 10));
      assert.equal(res.status, 200, `${when}, ${kib} KiB: ${await res.text()}`);
    }
    for (const kib of [1, 100, 2048]) {
      const c = await connect(`${gw.url}/v1/responses`, { headers: { authorization: `Bearer ${other.apiKey}` } });
      c.send(turn("up/test-chat", kib << 10));
      assert.equal((await c.json()).type, "response.created", `${when}, ${kib} KiB over WebSocket`);
      c.ws.terminate();
    }
  };
  const open = [];
  const socket = async () => {
    const c = await connect(`${gw.url}/v1/responses`, { headers });
    open.push(c);
    return c;
  };
  const many = gw.kv ? 2 : 16; // natively there is more memory
  try {
    for (let i = 0; i < many; i++) (await socket()).send(turn("hang/m", 15 * mib));
    await hanging(1);
    await served("beside large messages under way");
    for (const c of open.splice(0)) c.ws.terminate();
    up.clear();
    for (let i = 0; i < many + 4; i++) {
      const c = await socket();
      c.send(turn("hang/m", 1));
      c.send(turn("hang/m", 15 * mib));
    }
    await hanging(many + 4);
    await served("beside large messages that wait");
    for (const c of open.splice(0)) c.ws.terminate();
    up.clear();
    const calls = Array.from({ length: 700 }, () =>
      gw.fetch("/v1/chat/completions", {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ model: "hang/m", messages: [{ role: "user", content: "x".repeat(60 << 10) }] }),
      }),
    );
    await hanging(250);
    await served("beside small calls under way");
    release();
    const statuses = new Set((await Promise.all(calls)).map((res) => res.status));
    assert.ok(statuses.has(200) && [...statuses].every((s) => s === 200 || s === 503), [...statuses].join());
  } finally {
    release();
    for (const c of open) c.ws.terminate();
  }
});

test("a failure outside of Go follows the route's cross-origin rule", async () => {
  const long = "\u00e9".repeat(50_000); // two bytes each where Go reads it
  for (const [path, field, allowed] of [
    ["/api/machines", "cookie", null],
    ["/api/machines?x=/v1/models", "cookie", null],
    [`/${a.machineId}/api/providers`, "cookie", null],
    ["/v1/models", "x-model", "*"],
    [`/${a.machineId}/v1/models?x=/api/`, "x-model", "*"],
    ["/v1/messages", "anthropic-beta", "*"],
    ["/v1/responses", "openai-beta", "*"],
  ]) {
    const c = open(gw.url);
    c.send(
      Buffer.from(
        `GET ${path} HTTP/1.1\r\nhost: weir\r\norigin: https://evil.example\r\n${field}: ${long}\r\n\r\n`,
        "latin1",
      ),
    );
    const res = await c.answer();
    c.socket.destroy();
    assert.deepEqual([res?.status, res?.get("access-control-allow-origin") ?? null], [431, allowed], path);
    const exposed = res.get("access-control-expose-headers")?.split(", ") ?? [];
    assert.equal(exposed.includes("retry-after"), allowed !== null, path);
    assert.match(res.text, /headers are too large/);
  }
});
