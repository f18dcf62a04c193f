// Attacks of an upstream. See docs/reference/reliability.md, T18, T19, F3, F12, F37,
// F40, F46. Credentials that it returns: test/api/input_test.go.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHTTPS } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { issue } from "../../upstream/certificate.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { request } from "../raw.mjs";
import { until } from "../wait.mjs";

const authority = issue({ subject: "trusted authority" }),
  foreign = issue({ subject: "foreign authority" });
const dir = mkdtempSync(join(tmpdir(), "weir-attacks-"));
writeFileSync(join(dir, "ca.pem"), authority.cert);
process.env.NODE_EXTRA_CA_CERTS = join(dir, "ca.pem"); // read when miniflare is loaded
const { admin, compatible, start } = await import("../gateway.mjs");
const { answer, calls } = await import("../endpoints.mjs");

const json = ["content-type", "application/json"],
  bearer = (key) => ["authorization", `Bearer ${key}`];
const send = (path, body, key, fields = []) =>
  request(gw.url, "POST", path, [bearer(key), json, ...fields], JSON.stringify(body), { ms: 60_000 });
let gw, up, operator;
const env = { LOG_LEVEL: "info" };
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up, env });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
  rmSync(dir, { recursive: true, force: true });
});

// wire is an upstream that writes given bytes to a socket: serve(socket, head)
// is called when a head has come.
async function wire(serve) {
  const sockets = new Set(),
    w = { heads: 0 };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let head = "";
    socket.on("data", function read(c) {
      head += c.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", read);
      socket.on("data", (more) => {
        w.bytes = (w.bytes ?? 0) + more.length;
      });
      w.heads++;
      serve(socket, head);
    });
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  w.url = `http://127.0.0.1:${server.address().port}`;
  w.close = () => {
    for (const s of sockets) s.destroy();
    server.close();
  };
  return w;
}
const said = (body, type = "application/json") =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`;
const embedding = JSON.stringify({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: "AACAPwAAAEA=" }],
  model: "m",
  usage: { prompt_tokens: 1, total_tokens: 1 },
});

test("a deeply nested error body does not end another tenant's call", async () => {
  const deep = `{"error":{"message":"x","a":${'{"a":'.repeat(9000)}1${"}".repeat(9000)}}}`; // 54 KB
  let release;
  const w = await wire((socket, head) => {
    if (head.includes("Bearer slow")) return void (release = () => socket.end(said(embedding)));
    socket.end(
      `HTTP/1.1 ${head.includes("/videos") ? "200 OK" : "400 Bad Request"}\r\ncontent-type: application/json\r\ncontent-length: ${deep.length}\r\nconnection: close\r\n\r\n${deep}`,
    );
  });
  try {
    const me = await operator.machine(),
      other = await operator.machine(),
      plain = { url: w.url };
    const { id } = await operator.connect(me.machineId, compatible(plain));
    await operator.connect(other.machineId, compatible(plain, { apiKey: "slow" }));
    const waiting = send("/v1/embeddings", { model: "up/m", input: "a" }, other.apiKey);
    await until("the call", () => release);
    for (const [path, body, status] of [
      ["/v1/chat/completions", { model: "up/m", messages: [{ role: "user", content: "a" }] }, 400],
      ["/v1/messages", { model: "up/m", max_tokens: 9, messages: [{ role: "user", content: "a" }] }, 400],
      ["/v1/embeddings", { model: "up/m", input: "a" }, 400],
      ["/v1/images/generations", { model: "up/m", prompt: "a" }, 400],
      ["/v1/audio/speech", { model: "up/m", input: "a", voice: "alloy" }, 400],
      ["/v1/videos/generations", { model: "up/m", prompt: "a" }, 502],
    ]) {
      const res = await send(path, body, me.apiKey);
      assert.equal(res.status, status, `${path}: ${res.text.slice(0, 200)}`);
      assert.doesNotMatch(res.text, /"a":\{"a"/);
    }
    assert.equal((await operator.call("POST", `/${me.machineId}/api/providers/${id}/test`, { model: "m" })).ok, false);
    release();
    assert.equal((await waiting).status, 200);
  } finally {
    w.close();
  }
});

test("with a certificate that is invalid for the host nothing is sent, and the next account answers [F3]", async () => {
  const certificates = {
    good: issue({ subject: "up", names: ["localhost"], by: authority }),
    unknown: issue({ subject: "up", names: ["localhost"], by: foreign }),
    own: issue({ subject: "up", names: ["localhost"] }),
    other: issue({ subject: "up", names: ["api.example.com"], by: authority }),
    expired: issue({ subject: "up", names: ["localhost"], by: authority, days: -1 }),
  };
  const plain = await start({ env }),
    op = admin(plain); // its calls are not led elsewhere
  const servers = [];
  try {
    for (const [name, certificate] of Object.entries(certificates)) {
      let calls = 0;
      const server = createHTTPS({ key: certificate.key, cert: certificate.cert }, (req, res) => {
        calls++;
        req.resume();
        res.setHeader("content-type", "application/json");
        res.end(embedding);
      });
      servers.push(server);
      await new Promise((r) => server.listen(0, "localhost", r));
      const m = await op.machine(),
        url = `https://localhost:${server.address().port}`;
      await op.connect(m.machineId, compatible({ url }, { priority: 1 }));
      const ask = () =>
        plain.fetch("/v1/embeddings", {
          method: "POST",
          headers: { authorization: `Bearer ${m.apiKey}`, "content-type": "application/json" },
          body: '{"model":"up/m","input":"a"}',
        });
      const res = await ask(),
        text = await res.text();
      assert.equal(res.status, name === "good" ? 200 : 502, `${name}: ${text}`);
      assert.equal(calls, name === "good" ? 1 : 0, name);
      assert.ok(!/localhost|X509|TLS peer|authority|expired/i.test(text), text);
      if (name !== "good") {
        up.script = (req) => answer(req);
        await op.connect(m.machineId, compatible(up, { priority: 2 }));
        assert.equal((await ask()).status, 200, `${name}: the next account`);
      }
    }
  } finally {
    for (const s of servers) {
      s.closeAllConnections();
      s.close();
    }
    await plain.close();
    up.clear();
  }
});

test("unusual framing, long heads and early answers have one outcome each [F12, F37, F40]", async (t) => {
  const big = (n) => Array.from({ length: n }, (_, i) => `x-field-${i}: ${"v".repeat(50)}\r\n`).join("");
  const cases = {
    "a byte at a time": [
      (s) => {
        const b = Buffer.from(said(embedding));
        let i = 0;
        const next = () => {
          if (i < b.length && !s.destroyed) {
            s.write(b.subarray(i, ++i));
            setImmediate(next);
          }
        };
        s.setNoDelay();
        next();
      },
      [200],
    ],
    "64 KiB of fields": [(s) => s.end(`HTTP/1.1 200 OK\r\n${big(1000)}${said(embedding).slice(17)}`), [200, 502]],
    "a megabyte of fields": [(s) => s.end(`HTTP/1.1 200 OK\r\n${big(16_000)}${said(embedding).slice(17)}`), [200, 502]],
    "folded field": [(s) => s.end(`HTTP/1.1 200 OK\r\nx-a: 1\r\n  2\r\n${said(embedding).slice(17)}`), [200, 502]],
    "raw bytes in a field": [
      (s) =>
        s.end(
          Buffer.from(
            `HTTP/1.1 200 OK\r\nretry-after: \x80\xff\x01\r\nx-request-id: \xe9\x01\r\n${said(embedding).slice(17)}`,
            "latin1",
          ),
        ),
      [200, 502],
    ],
    "a zero in a field": [
      (s) => s.end(`HTTP/1.1 200 OK\r\nx-request-id: a\u0000b\r\n${said(embedding).slice(17)}`),
      [200, 502],
    ],
    "HTTP/0.9": [(s) => s.end(embedding), [502]],
    "two answers": [(s) => s.end(said(embedding) + said('{"stolen":true}')), [200]],
    "a length too short": [
      (s) => s.end(said(embedding).replace(/content-length: \d+/, "content-length: 5") + "rest"),
      [502],
    ],
    "100 before": [(s) => s.end("HTTP/1.1 100 Continue\r\n\r\n" + said(embedding)), [200, 502]],
    "103 before": [(s) => s.end("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + said(embedding)), [200, 502]],
    101: [
      (s) => s.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nx"),
      [502],
    ],
    "status 600": [(s) => s.end(said(embedding).replace("200 OK", "600 Odd")), [502]],
    "status 199": [(s) => s.end(said(embedding).replace("200 OK", "199 Odd")), [502, 504]],
    "status 0": [(s) => s.end(said(embedding).replace("200 OK", "000 Odd")), [502]],
    "204 with a body": [(s) => s.end(said(embedding).replace("200 OK", "204 No")), [502]],
    304: [(s) => s.end(said(embedding).replace("200 OK", "304 Not")), [502]],
    "413 at once": [
      (s) =>
        s.end(
          'HTTP/1.1 413 Too Large\r\ncontent-type: application/json\r\ncontent-length: 57\r\n\r\n{"error":{"message":"too large","type":"x","code":"large"}}'.slice(
            0,
            83 + 57,
          ),
        ),
      [413, 502],
    ],
  };
  const plain = await start({ env }),
    op = admin(plain);
  t.after(() => plain.close());
  for (const [name, [serve, statuses]] of Object.entries(cases)) {
    const w = await wire(serve),
      m = await op.machine();
    t.after(() => w.close());
    await op.connect(m.machineId, compatible(w));
    const a = await request(
      plain.url,
      "POST",
      "/v1/embeddings",
      [bearer(m.apiKey), json],
      JSON.stringify({ model: "up/m", input: name === "413 at once" ? Array(2000).fill("a".repeat(2000)) : "a" }),
      { ms: 40_000 },
    );
    assert.ok(statuses.includes(a?.status), `${name}: ${a?.status} ${a?.text}`);
    assert.ok(!a.text.includes("stolen"), name);
    if (a.status !== 200) assert.equal(typeof JSON.parse(a.text).error.message, "string", name);
    else assert.equal(JSON.parse(a.text).data[0].embedding.length, 2, `${name}: ${a.text}`);
    assert.ok(
      a.headers.every(([, v]) => !/[^\x20-\x7e]/.test(v)),
      `${name}: ${JSON.stringify(a.headers)}`,
    );
    // Without an answer the only account is asked once more.
    assert.ok(w.heads <= (a.status === 502 ? 2 : 1), `${name}: ${w.heads} calls`);
    w.close();
  }
});

test("a connection test shows a status and a fixed text, never the answer, and is limited in rate [T18]", async (t) => {
  const refused = await wire((s) => s.end());
  refused.close();
  const w = await wire((s) => s.resetAndDestroy()),
    unreachable = "connection_failed",
    cases = {
      refused: [unreachable, 0, refused.url],
      reset: [unreachable, 0, w.url],
      page: ["invalid_answer", 0, up.url, "!body=html"],
      status: ["unauthorized", 403, up.url, "!status=403"],
      "server error": ["failed", 500, up.url, "!status=500"],
      "no HTTP": [unreachable, 0, up.url, "!raw=garbage"],
      redirect: [unreachable, 0, up.url, "!status=302!header=location:x"],
      "no such path": ["not_found", 404, `${up.url}/nothing`, "!status=404"],
    };
  t.after(() => w.close());
  up.clear();
  const texts = new Map();
  for (const [name, [error, status, url, fault = ""]] of Object.entries(cases)) {
    const { machineId } = await operator.machine(),
      { id } = await operator.connect(machineId, {
        ...compatible({ url }),
        providerSpecificData: { baseUrl: `${url}/v1`, prefix: "up", enabledModels: [`m${fault}`] },
      });
    const { latencyMs, message, ...rest } = await operator.call("POST", `/${machineId}/api/providers/${id}/test`, {});
    assert.deepEqual([rest.ok, rest.error, rest.status], [false, error, status], `${name}: ${JSON.stringify(rest)}`);
    const text = message.split(/[:,.]/)[0]; // without the cause of a lost connection
    assert.equal(text, texts.get(`${error} ${status}`) ?? text, `${name}: two texts for one outcome`);
    texts.set(`${error} ${status}`, text);
    if (status === 0) assert.ok([1000, 5000, 15000].includes(latencyMs), `${name}: ${latencyMs} ms`);
    let limited = 0;
    for (let i = 0; i < 40 && !limited; i++)
      await operator.call("POST", `/${machineId}/api/providers/${id}/test`, {}).catch((e) => {
        assert.equal(e.status, 429);
        limited++;
      });
    assert.ok(limited >= 1, `${name}: tests are not limited`);
  }
  assert.equal(texts.size, 5);
});

test("one place makes calls, one each opens sockets and WebSockets, and nothing is put into the platform's cache [T19]", () => {
  const root = fileURLToPath(new URL("../../../worker/js/", import.meta.url)),
    uses = { fetch: new Set(), connect: new Set(), caches: new Set() };
  for (const name of readdirSync(root).filter((n) => n.endsWith(".mjs"))) {
    const text = readFileSync(join(root, name), "utf8").replace(/\/\/.*$/gm, "");
    for (const _ of text.matchAll(/(?<![.\w])fetch\((?![^)]*\) \{)/g)) uses.fetch.add(name);
    for (const _ of text.matchAll(/(?<![.\w])connect\(/g)) uses.connect.add(name);
    for (const _ of text.matchAll(/\bcaches\b/g)) uses.caches.add(name);
  }
  assert.deepEqual(uses, {
    fetch: new Set(["platform.mjs", "websockets.mjs"]),
    connect: new Set(["sockets.mjs"]),
    caches: new Set(),
  });
  const toml = readFileSync(join(root, "../../wrangler.toml"), "utf8");
  assert.match(toml, /compatibility_flags = \[[^\]]*"global_fetch_strictly_public"/); // docs/reference/reliability.md, T17
});

test("a client that stops reading does not delay other calls [F46]", { timeout: 180_000 }, async () => {
  const m = await operator.machine();
  await operator.connect(m.machineId, compatible(up));
  up.clear();
  const readers = [];
  for (let i = 0; i < 8; i++) {
    const res = await gw.fetch("/v1/audio/speech", {
      method: "POST",
      headers: { authorization: `Bearer ${m.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: `up/m!size=${64 << 20}`, input: "a", voice: "v" }),
    });
    assert.equal(res.status, 200);
    readers.push(res); // nothing is read of it
  }
  await until("8 calls of the upstream", () => up.seen.length >= 8);
  up.script = (req) => answer(req);
  for (const [path, body] of calls.filter(([, b]) => b.model.startsWith("up/")))
    assert.equal((await send(path, body, m.apiKey)).status, 200, path);
  for (const r of readers) await r.body.cancel();
  await until("the end of the upstream's calls", () => up.seen.slice(0, 8).every((r) => r.aborted || r.ended));
});
