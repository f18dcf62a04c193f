// Attacks of a caller or an upstream on HTTP itself. See
// docs/reference/reliability.md, T6, T8, T16, T20, T22, T24, T38–T40, F43.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { accounts, answer, calls } from "../endpoints.mjs";
import { admin, secrets, start } from "../gateway.mjs";
import { open, request } from "../raw.mjs";
import { sleep } from "../wait.mjs";

const json = ["content-type", "application/json"];

let gw, up, operator, me, slow;
const connections = (machineId, key) => accounts(up, key).map((c) => operator.connect(machineId, c));
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
  me = await operator.machine();
  await Promise.all(connections(me.machineId, "canary-upstream-of-me"));
  // A body that arrives a byte a second takes twenty seconds to end with a
  // timeout; the other tests run meanwhile.
  const c = open(gw.url);
  c.send(
    `POST /v1/embeddings HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${me.apiKey}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`,
  );
  const drip = setInterval(() => c.send(" "), 1000);
  slow = c.answer(600_000).then((a) => {
    clearInterval(drip);
    c.socket.destroy();
    return a;
  });
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = (req) => answer(req);
});

// fresh creates a machine, so that a failure cools no account of another test.
async function fresh(key = "canary-upstream-of-fresh") {
  const m = await operator.machine();
  await Promise.all(connections(m.machineId, key));
  return m;
}
const bearer = (key) => ["authorization", `Bearer ${key}`];
const post = (path, body, fields = [], key = me.apiKey) =>
  request(gw.url, "POST", path, [bearer(key), json, ...fields], JSON.stringify(body));
// plain removes the parts that differ in every answer.
const plain = (a) =>
  a && [
    a.status,
    a.text.replace(/req_[0-9a-z]+/g, "").replace(/"(id|created|created_at|request_id)":("[^"]*"|\d+)/g, ""),
    a.headers
      .map(([n]) => n)
      .filter((n) => n !== "date")
      .sort()
      .join(),
  ];

test("every endpoint answers the calls of these tests", async () => {
  for (const [path, body] of calls) {
    const a = await post(path, body);
    assert.equal(a?.status, 200, `${path}: ${a?.text}`);
  }
});

test("headers in which a client names itself change nothing [T6]", async () => {
  const claims = [
    ["host", "localhost"],
    ["x-forwarded-for", "127.0.0.1"],
    ["x-real-ip", "127.0.0.1"],
    ["forwarded", "for=127.0.0.1;host=localhost;proto=https"],
    ["x-forwarded-host", "localhost"],
    ["cf-connecting-ip", "127.0.0.1"],
    ["true-client-ip", "127.0.0.1"],
    ["x-weir-internal-models-fetch", "1"],
    ["x-original-url", "/api/machines"],
    ["x-rewrite-url", "/api/machines"],
    ["x-http-method-override", "DELETE"],
  ];
  // The address of the documentation is that of the request.
  const same = (a) => plain(a && { ...a, text: a.text.replace("http://localhost/docs/", `${gw.url}/docs/`) });
  for (const [path, body] of [calls[0], calls[1], calls[3]]) {
    const without = plain(await post(path, body));
    for (const claim of claims)
      assert.deepEqual(same(await post(path, body, [claim])), without, `${path} with ${claim[0]}`);
  }
  for (const path of ["/v1/models", "/api/machines", `/${me.machineId}/api/providers`, "/v1/embeddings"]) {
    const without = plain(await request(gw.url, "GET", path));
    for (const claim of claims)
      assert.deepEqual(same(await request(gw.url, "GET", path, [claim])), without, `${path} with ${claim[0]}`);
  }
  for (const r of up.seen)
    for (const [name] of claims) if (name !== "host") assert.equal(r.headers[name], undefined, `${name} went up`);
});

test("the authenticator and the handler read the same path, however it is spelled [T8]", async () => {
  const target = "/api/machines",
    spellings = new Set();
  const forms = (s) => [
    s,
    "/" + s,
    s.replaceAll("/", "//"),
    s + "/",
    s + "//",
    s + ";a=b",
    s + "%20",
    s + "%00",
    s + "%2f",
    s + "%0a",
    s + ".",
    s + "..;",
    s.toUpperCase(),
    s[0] + s[1].toUpperCase() + s.slice(2),
    s.replaceAll("/", "%2f"),
    s.replace("/api/", "/api%2f"),
    s.replaceAll("/", "\\"),
    s.replace("api", "%61pi"),
    s.replace("api", "%2561pi"),
    s.replace("/api", "/./api"),
    s.replace("/api", "/.//api"),
    s.replace("/api", "/%2e/api"),
    "/v1/.." + s,
    "/v1/%2e%2e" + s,
    "/v1/..%2f" + s.slice(1),
    "/v1" + s,
    "/v1/v1" + s,
    "/health/.." + s,
    "/health" + s,
    "/health;" + s,
    s + "/../machines",
    s + "/x/..",
    s + "?a",
    s + "#a",
    s + "%3fa",
    s + "%23a",
    s + "\t",
    "/\u0000" + s.slice(1),
    "http://x" + s,
    "https://localhost" + s,
    "x" + s,
    "*",
    s.replace("api", "ap%69"),
    s.replace("a", "\u0430"),
    s.replace("/", "/%ef%bc%8f"),
    s.replace("s", "%c5%bf"),
    s.replace("/api", "/api/../api"),
    s.replace("/api", "/\u002e\u002e/api"),
    "/.well-known/.." + s,
  ];
  for (const base of [target, `/${me.machineId}/api/providers`, "/v1/v1/api/machines"])
    for (const f of forms(base)) {
      spellings.add(f);
      spellings.add(f.replaceAll("/", "/%09/").slice(0, 400));
    }
  assert.ok(spellings.size > 200, `${spellings.size} spellings`);
  let open = 0;
  for (const path of spellings) {
    let canonical = null;
    try {
      canonical = new URL(path, "http://x").pathname;
    } catch {
      /* no path at all */
    }
    for (const [who, fields] of [
      ["unknown", []],
      ["a data key", [bearer(me.apiKey)]],
    ]) {
      const a = await request(gw.url, "GET", Buffer.from(path, "utf8").toString("latin1"), fields, "", { ms: 3000 });
      assert.ok(
        a === null || [400, 401, 403, 404, 405].includes(a.status),
        `${JSON.stringify(path)} by ${who}: ${a?.status} ${a?.text}`,
      );
    }
    const a = await request(
      gw.url,
      "GET",
      Buffer.from(path, "utf8").toString("latin1"),
      [bearer(secrets.ADMIN_TOKEN)],
      "",
      { ms: 3000 },
    );
    if (a?.status === 200) {
      open++;
      assert.ok(
        [target, `/${me.machineId}/api/providers`].includes(canonical),
        `${JSON.stringify(path)} is served as ${canonical}`,
      );
    }
  }
  assert.ok(open >= 4, `${open} spellings are served to the operator`);
});

test("of 200 client headers only the listed ones are forwarded, and never the gateway's key [T20]", async () => {
  const dropped = (
    "x-goog-api-key api-key cookie proxy-authorization proxy-connection forwarded x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip cf-connecting-ip cf-worker via te trailer " +
    "origin referer user-agent accept-language if-match x-amz-security-token x-custom x-api-version x-request-id x-hop"
  ).split(" ");
  const allowed = new Set(
    (
      "host authorization x-api-key content-type content-length accept accept-encoding connection transfer-encoding user-agent anthropic-version anthropic-beta openai-beta idempotency-key x-weir-hop x-vendor-host cf-worker " +
      "cf-connecting-ip cf-ew-via cdn-loop"
    ).split(" "),
  );
  const fields = dropped.map((n) => [n, n === "te" ? "trailers" : `canary-client-${n}`]);
  while (fields.length < 190) fields.push([`x-field-${fields.length}`, `canary-client-${fields.length}`]);
  fields.push(
    ["connection", "x-hop, x-field-30"],
    ["anthropic-beta", "b1"],
    ["anthropic-version", "2023-06-01"],
    ["accept", "application/json"],
  );
  for (const [path, body] of calls) {
    up.clear();
    up.script = (req) => answer(req);
    const a = await post(path, body, fields);
    assert.ok(a, `${path}: no answer`);
    assert.equal(a.status, 200, `${path}: ${a.text}`);
    assert.equal(up.seen.length, 1);
    const r = up.seen[0],
      names = Object.keys(r.headers).filter((n) => !allowed.has(n));
    assert.deepEqual(names, [], path);
    assert.ok(!JSON.stringify(r.rawHeaders).includes("canary-client"), `${path}: ${JSON.stringify(r.rawHeaders)}`);
    assert.ok(!JSON.stringify(r.rawHeaders).includes(me.apiKey), `${path}: the gateway's key went up`);
  }
});

test("commas in a header and repeated headers are forwarded unchanged [T22]", async () => {
  const up1 = {
    accept: 'application/json;q=0.9, text/event-stream;x="a, b" ,*/*;q=0.1',
    "anthropic-beta": "beta-one,beta-two , beta-three",
    "idempotency-key": "",
  };
  const form = ["content-type", 'multipart/form-data; charset="utf-8, or so"; boundary=b'],
    type = 'audio/mpeg;codecs="mp3, mp4a.40.5"';
  const down = {
    "x-request-id": "a, b,c",
    "openai-processing-ms": "1,5",
    "x-ratelimit-reset-requests": "Sat, 21 Nov 2099 07:28:00 GMT",
    "x-ratelimit-limit-tokens": '100, 100;w=60;name="a, b"',
    "anthropic-ratelimit-tokens-reset": "Saturday, 21-Nov-99 07:28:00 GMT",
  };
  const pairs = (r) =>
    Array.from({ length: r.rawHeaders.length / 2 }, (_, i) => [
      r.rawHeaders[2 * i].toLowerCase(),
      r.rawHeaders[2 * i + 1],
    ]);
  const went = (name) =>
    pairs(up.seen[0])
      .filter(([n]) => n === name)
      .map(([, v]) => v);
  for (const [path, body] of calls) {
    up.seen.length = 0;
    up1["idempotency-key"] = `key,with,commas,${path}`;
    up.script = (req) => answer(req, { ...down, ...(path.endsWith("/speech") ? { "content-type": type } : {}) });
    const a = await post(path, body, [
      ...Object.entries(up1),
      ["date", "Sat, 21 Nov 2026 07:28:00 GMT"],
      ["user-agent", "a, b"],
    ]);
    assert.equal(a?.status, 200, `${path}: ${a?.text}`);
    const own = [
      ...(/videos|images|chat|responses|messages$|embeddings|speech/.test(path) ? ["idempotency-key"] : []),
      ...(body.model?.startsWith("an/") ? ["anthropic-beta"] : []),
    ];
    for (const name of own) assert.deepEqual(went(name), [up1[name]], `${path}: ${name}`);
    assert.ok(
      went("accept").length <= 1 &&
        [undefined, up1.accept, "application/json", "text/event-stream", "*/*"].includes(went("accept")[0]),
      `${path}: ${went("accept")}`,
    );
    for (const [name, v] of Object.entries(down))
      if (name !== "x-request-id")
        assert.deepEqual(
          a.headers.filter(([n]) => n === name).map(([, x]) => x),
          [v],
          `${path}: ${name}`,
        );
    assert.equal(a.headers.filter(([n]) => n === "x-request-id").length, 1);
    if (path.endsWith("/speech")) assert.equal(a.get("content-type"), type);
  }
  // A repeated header of a client reaches the upstream with both values, in
  // order.
  up.seen.length = 0;
  up.script = (req) => answer(req);
  assert.equal(
    (
      await post("/v1/messages", { model: "an/m", max_tokens: 9, messages: [{ role: "user", content: "a" }] }, [
        ["anthropic-beta", "first, second"],
        ["anthropic-beta", "third"],
      ])
    ).status,
    200,
  );
  assert.equal(went("anthropic-beta").join(", "), "first, second, third");
  // A quoted comma in the content type of a form does not end it.
  up.seen.length = 0;
  up.script = () => ({ status: 200, headers: { "content-type": "application/json" }, body: '{"text":"a"}' });
  const body =
    '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nup/w\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="a, b.mp3"\r\ncontent-type: audio/mpeg\r\n\r\nx\r\n--b--\r\n';
  const heard = await request(gw.url, "POST", "/v1/audio/transcriptions", [bearer(me.apiKey), form], body);
  assert.equal(heard.status, 200, heard.text);
  assert.match(up.seen[0].body.toString(), /filename="a, b.mp3"/);
  // Two waits of an upstream are not split at the comma of their dates.
  const m = await fresh(),
    at = new Date(Date.now() + 3600_000).toUTCString();
  up.script = () => ({
    status: 429,
    headers: { "content-type": "application/json", "retry-after": at },
    body: '{"error":{"message":"no"}}',
  });
  const limited = await post("/v1/embeddings", { model: "up/m", input: "a" }, [], m.apiKey);
  assert.equal(limited.status, 429);
  assert.ok(Number(limited.get("retry-after")) > 1000, limited.get("retry-after"));
});

test("of an upstream's headers only the listed ones are returned [T24]", async () => {
  const bad = [
    "set-cookie",
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "clear-site-data",
    "strict-transport-security",
    "content-security-policy-report-only",
    "location",
    "link",
    "refresh",
    "alt-svc",
    "www-authenticate",
    "server",
    "via",
    "x-powered-by",
    "report-to",
    "nel",
    "x-frame-options",
    "content-disposition",
    "service-worker-allowed",
    "sourcemap",
    "x-weir-model",
    "x-weir-connection-id",
    "x-should-retry",
  ];
  const sent = Object.fromEntries(bad.map((n) => [n, `canary-of-the-upstream-${n}`]));
  Object.assign(sent, {
    "access-control-allow-origin": "https://evil.example",
    "cache-control": "public, max-age=99999",
    vary: "x-evil",
    "x-content-type-options": "sniff",
  });
  const m = await fresh();
  for (const [path, body] of calls) {
    for (const status of [200, 400]) {
      up.script = (req) =>
        status === 200
          ? answer(req, sent)
          : {
              status,
              headers: { "content-type": "application/json", ...sent },
              body: '{"error":{"message":"no","type":"invalid_request_error"}}',
            };
      const a = await post(path, body, [["origin", "https://app.example"]], m.apiKey);
      assert.equal(a.status, status, `${path}: ${a.text}`);
      const text = a.headers.map(([n, v]) => `${n}: ${v}`).join("\n");
      assert.doesNotMatch(text, /canary-of-the-upstream|evil|max-age=99999|: sniff/, path);
      assert.equal(a.get("access-control-allow-origin"), "*");
      assert.equal(a.get("x-content-type-options"), "nosniff");
    }
  }
});

test("no endpoint follows a redirect [T16, F20]", async () => {
  const other = await startUpstream();
  other.script = (req) => answer(req);
  try {
    for (const status of [301, 302, 303, 307, 308]) {
      const m = await fresh();
      for (const [path, body] of calls) {
        up.clear();
        up.script = () => ({ status, headers: { location: other.url + path }, body: "" });
        const a = await post(path, body, [], m.apiKey);
        assert.ok([502, 503].includes(a.status), `${status} on ${path}: ${a.status} ${a.text}`); // 503: the account rests by now
        assert.ok(!a.text.includes(String(other.port)), a.text);
        assert.equal(a.get("location"), undefined);
      }
    }
    // A list of models that redirects counts as empty, docs/reference/spec.md,
    // 4.2.6.
    const m = await fresh();
    up.script = () => ({ status: 302, headers: { location: other.url + "/v1/models" }, body: "" });
    const list = await request(gw.url, "GET", "/v1/models", [bearer(m.apiKey)]);
    assert.equal(list.status, 200);
    assert.equal(JSON.parse(list.text).data.filter((x) => x.id.startsWith("up/")).length, 0);
    assert.equal(other.seen.length, 0, "the other origin was called");
  } finally {
    await other.close();
  }
});

test("without a key no body is read [T39]", async () => {
  for (const [path] of calls) {
    for (const [who, fields] of [
      ["unknown", []],
      ["garbage", [bearer("sk-garbage")]],
      ["a wrong check", [bearer(me.apiKey.slice(0, -8) + "00000000")]],
    ]) {
      const a = await request(gw.url, "POST", path, [...fields, json], "", { length: 8 << 20, ms: 5000 });
      assert.ok([400, 401].includes(a?.status), `${path} by ${who}: ${a?.status}`);
    }
  }
  // More than an endpoint takes is refused by its head alone.
  const a = await request(gw.url, "POST", "/v1/embeddings", [bearer(me.apiKey), json], "", {
    length: 10 * 1024 ** 3,
    ms: 5000,
  });
  assert.equal(a?.status, 413);
  assert.equal(up.seen.length, 0);
});

test("a compressed body is refused if it cannot be decoded within the limits [T40]", async () => {
  const bomb = gzipSync(Buffer.alloc(20 << 20, " "));
  for (const [path] of calls) {
    if (path.startsWith("/v1/videos")) continue; // its bytes pass
    for (const encoding of ["gzip", "deflate", "br", "GZIP", "identity, gzip", "x-unknown"]) {
      const a = await request(gw.url, "POST", path, [bearer(me.apiKey), json, ["content-encoding", encoding]], bomb, {
        ms: 30_000,
      });
      // A bomb of 20 MiB of blanks is too long, or within the limit of a chat and no
      // JSON; forms are not decoded.
      const want = /^(gzip|br)$/i.test(encoding) ? [400, 413, 415] : [415];
      assert.ok(want.includes(a?.status), `${path} ${encoding}: ${a?.status} ${a?.text}`);
    }
  }
  assert.equal(up.seen.length, 0);
});

test("a body that breaks off is not forwarded [F43]", async () => {
  for (const [path, body] of calls) {
    const text = JSON.stringify(body);
    for (const framing of ["length", "chunks"]) {
      const c = open(gw.url),
        head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${me.apiKey}\r\ncontent-type: application/json\r\n`;
      if (framing === "length") c.send(`${head}content-length: ${text.length + 10}\r\n\r\n${text}`);
      else c.send(`${head}transfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n5\r\n`);
      await sleep(20);
      c.reset();
    }
  }
  // Where the client can still hear of it, it is its own mistake.
  const management = [
    [`/${me.machineId}/api/combos`, secrets.ADMIN_TOKEN],
    ["/v1/rerank", me.apiKey],
    ["/v1/messages/count_tokens", me.apiKey],
  ];
  for (const [path, key] of [...calls.map(([p]) => [p, me.apiKey]), ...management]) {
    for (const rest of ["zz\r\nxx\r\n", null]) {
      const c = open(gw.url);
      c.send(
        `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"mod\r\n${rest ?? ""}`,
      );
      if (rest === null) c.end();
      const a = await c.answer(3000);
      c.socket.destroy();
      assert.equal(a?.status ?? 400, 400, `${path}: ${a?.text}`);
    }
  }
  await sleep(300);
  const whole = up.seen.filter((r) => !r.aborted && !r.error);
  assert.deepEqual(
    whole.map((r) => r.path),
    [],
  );
  for (const [path, body] of calls) assert.equal((await post(path, body)).status, 200, path);
});

test("a request that two parsers split differently hides no second one [F47]", async () => {
  const own = JSON.stringify({ model: "up/m", input: "own" }),
    hidden = JSON.stringify({ model: "up/m", input: "hidden" });
  const fields = () => `host: x\r\nauthorization: Bearer ${me.apiKey}\r\ncontent-type: application/json\r\n`;
  const inner = `POST /v1/embeddings HTTP/1.1\r\n${fields()}content-length: ${hidden.length}\r\n\r\n${hidden}`,
    chunk = (t) => `${t.length.toString(16)}\r\n${t}\r\n0\r\n\r\n`;
  const head = "POST /v1/embeddings HTTP/1.1\r\n";
  const tries = {
    "both framings, the length shorter": `${head}${fields()}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    "both framings, the length longer": `${head}${fields()}transfer-encoding: chunked\r\ncontent-length: ${chunk(own).length + inner.length}\r\n\r\n${chunk(own)}${inner}`,
    "two lengths": `${head}${fields()}content-length: ${own.length}\r\ncontent-length: ${own.length + inner.length}\r\n\r\n${own}${inner}`,
    "two lengths in one": `${head}${fields()}content-length: ${own.length}, ${own.length + inner.length}\r\n\r\n${own}${inner}`,
    "a signed length": `${head}${fields()}content-length: +${own.length}\r\n\r\n${own}${inner}`,
    "a blank before the colon": `${head}${fields()}transfer-encoding : chunked\r\ncontent-length: ${own.length}\r\n\r\n${own}${inner}`,
    "another coding": `${head}${fields()}transfer-encoding: xchunked\r\n\r\n${chunk(own)}${inner}`,
    "chunked twice": `${head}${fields()}transfer-encoding: chunked, chunked\r\n\r\n${chunk(own)}${inner}`,
    "an obscured coding": `${head}${fields()}transfer-encoding: \x0bchunked\r\ncontent-length: 5\r\n\r\n${chunk(own)}${inner}`,
    "a folded field": `${head}${fields()}transfer-encoding:\r\n chunked\r\ncontent-length: ${own.length}\r\n\r\n${own}${inner}`,
    "line feeds alone": `${head}${fields()}content-length: ${own.length}\n\n${own}${inner}`,
    "a chunk's size with an end": `${head}${fields()}transfer-encoding: chunked\r\n\r\n${own.length.toString(16)};x=\n${inner}\r\n${own}\r\n0\r\n\r\n`,
    "a body of a GET": `GET /v1/models HTTP/1.1\r\n${fields()}content-length: ${inner.length}\r\n\r\n${inner}`,
    "a request line within a field": `${head}x-a: b\r\r\n${inner}`,
    "two hosts": `${head}host: evil.example\r\n${fields()}content-length: ${own.length}\r\n\r\n${own}`,
  };
  for (const [name, bytes] of Object.entries(tries)) {
    up.clear();
    up.script = (req) => answer(req);
    const c = open(gw.url);
    c.send(Buffer.from(bytes, "latin1"));
    const got = [];
    for (let a; got.length < 3 && (a = await c.answer(got.length ? 300 : 5000)); ) got.push(a.status);
    c.socket.destroy();
    // After a request that is cut in one way only, another may follow on the
    // connection: it is then as good as any that comes with this key.
    const whole = got[0] === 200 && up.seen[0]?.json?.input === "own";
    const asked = up.seen.filter((r) => r.method === "POST").map((r) => r.json?.input);
    assert.ok(
      !asked.includes("hidden") || (whole && got.length === 2),
      `${name}: ${got.join()} and ${JSON.stringify(asked)}`,
    );
    if (asked.includes("hidden"))
      assert.ok(
        ["both framings, the length longer", "two lengths", "two lengths in one"].every((n) => n !== name),
        `${name}: a second request was found in it`,
      );
    assert.ok(
      got.every((s) => s < 500 || s === 501), // 501 is for an unknown coding (RFC 9112, 6.1)
      `${name}: ${got.join()}`,
    );
  }
  for (const [path, body] of calls.slice(0, 3)) assert.equal((await post(path, body)).status, 200, path);
});

test("a body that arrives a byte a second ends with a timeout [T38]", { timeout: 600_000 }, async () => {
  const a = await slow;
  assert.equal(a.status, 408, a.text);
});
