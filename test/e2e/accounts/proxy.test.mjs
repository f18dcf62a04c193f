// Tokens are refreshed through a CONNECT proxy over the platform's sockets:
// with user and password, TLS inside the tunnel with its certificate checked,
// and never directly when the proxy does not work. See docs/reference/spec.md,
// 5.5.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { createServer as createPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { issue } from "../../upstream/certificate.mjs";
import { start as startCloud } from "../../upstream/cloud.mjs";
import { start as startProxy } from "../../upstream/proxy.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { serviceAccount, vertex } from "../../upstream/vertex.mjs";
import { until } from "../wait.mjs";

const host = "oauth2.googleapis.com",
  user = "proxy-user:pass@word"; // the token endpoint of the provider used below
const trusted = issue({ subject: "trusted authority" }),
  foreign = issue({ subject: "foreign authority" });
const dir = mkdtempSync(join(tmpdir(), "weir-ca-"));
writeFileSync(join(dir, "ca.pem"), trusted.cert);
process.env.NODE_EXTRA_CA_CERTS = join(dir, "ca.pem"); // read when miniflare is loaded
const { admin, secrets, start, unusable } = await import("../gateway.mjs");

// endpoint is a token endpoint under a certificate. Each refresh token is good
// for one call; a second use is counted.
async function endpoint(certificate) {
  const idp = { calls: [], reused: 0, spent: new Set(), answer: null };
  const server = createServer(
    { key: certificate.key, cert: certificate.cert + (certificate.chain ?? "") },
    (req, res) => {
      const parts = [];
      req.on("data", (c) => parts.push(c));
      req.on("end", () => {
        const form = new URLSearchParams(Buffer.concat(parts).toString()),
          token = form.get("refresh_token");
        idp.calls.push({
          host: req.headers.host,
          path: req.url,
          token,
          authorization: req.headers["proxy-authorization"],
        });
        if (idp.answer) return idp.answer(req, res, Buffer.concat(parts).toString());
        if (idp.spent.has(token)) idp.reused++;
        idp.spent.add(token);
        const n = idp.calls.length;
        res.writeHead(200, { "content-type": "application/json" });
        res.end(
          JSON.stringify({
            access_token: `access-token-${n}-${token}`,
            refresh_token: `refresh-token-${n}`,
            expires_in: 3600,
            token_type: "Bearer",
          }),
        );
      });
    },
  );
  server.on("tlsClientError", () => {});
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  idp.port = server.address().port;
  idp.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return idp;
}

const certificates = {
  good: issue({ subject: "idp", names: [host, "id.example.com"], by: trusted }),
  unknown_authority: issue({ subject: "idp", names: [host], by: foreign }),
  self_signed: issue({ subject: "idp", names: [host] }),
  other_name: issue({ subject: "idp", names: ["evil.example.com", "*.example.com"], by: trusted }),
  name_of_the_proxy: issue({ subject: "idp", names: ["127.0.0.1", "localhost"], by: trusted }),
  expired: issue({ subject: "idp", names: [host], by: trusted, days: -1 }),
};

let gw, operator, proxy, silent, waiting;
const idps = {};
before(async () => {
  for (const name of Object.keys(certificates)) idps[name] = await endpoint(certificates[name]);
  proxy = await startProxy({ auth: user, to: idps.good.port });
  gw = await start();
  operator = admin(gw);
  // It takes ten seconds: the other tests run meanwhile.
  silent = await startProxy({ to: idps.good.port });
  silent.fault = { silent: true };
  waiting = await account(proxyURL("", silent.port));
});
after(async () => {
  await gw?.close();
  await proxy?.close();
  await silent?.close();
  for (const idp of Object.values(idps)) idp.close();
  rmSync(dir, { recursive: true, force: true });
});

const proxyURL = (credentials = "proxy-user:pass%40word", port = proxy.port) =>
  `http://${credentials ? credentials + "@" : ""}127.0.0.1:${port}`;

// account creates a machine with one connection whose token has expired: its
// object refreshes it at once.
async function account(proxyUrl, more = {}) {
  const { machineId, apiKey } = await operator.machine();
  const connection = await operator.connect(machineId, {
    provider: "vertex",
    authType: "oauth",
    refreshToken: `refresh-${machineId}`,
    accessToken: "access-token-0",
    expiresAt: Date.now() - 1000,
    ...more,
    providerSpecificData: { project: "p", location: "us-central1", ...(proxyUrl ? { proxyUrl } : {}) },
  });
  const path = `/${machineId}/api/providers/${connection.id}`;
  return { machineId, apiKey, connection, path, now: () => operator.call("GET", path), token: `refresh-${machineId}` };
}

// when waits until a connection satisfies a condition, and returns it.
const when = (a, done) =>
  until(done.name, async () => {
    const c = await a.now();
    return done(c) && c;
  });
const refreshed = (c) => c.tokenGeneration > 1;
const failed = (c) => c.lastError;

test("a refresh goes through the proxy of its connection, inside TLS for the endpoint's name", async () => {
  const seen = proxy.seen.length,
    a = await account(proxyURL());
  const c = await when(a, refreshed);
  assert.equal(proxy.seen.length, seen + 1);
  const got = proxy.seen.at(-1);
  assert.equal(got.target, `${host}:443`);
  assert.equal(got.authorization, "Basic " + Buffer.from(user).toString("base64"));
  assert.doesNotMatch(got.head, /refresh|grant|access/);
  const call = idps.good.calls.at(-1);
  assert.deepEqual([call.host, call.path, call.token, call.authorization], [host, "/token", a.token, undefined]);
  assert.ok(c.expiresAt > Date.now() + 3000_000, "a new end");
  assert.equal(c.lastError, undefined);
  assert.equal(c.status, "active");
});

test("the proxy is shown without its user and password, which are stored sealed", async () => {
  const a = await account(proxyURL());
  const text = JSON.stringify([
    a.connection,
    await a.now(),
    await operator.call("GET", `/${a.machineId}/api/export`),
    await operator.call("GET", `/${a.machineId}/api/audit`),
  ]);
  assert.equal(a.connection.providerSpecificData.proxyUrl, `http://127.0.0.1:${proxy.port}`);
  assert.ok(a.connection.secrets.includes("proxyAuth"));
  for (const secret of [user, "pass%40word", "pass@word", Buffer.from(user).toString("base64")])
    assert.ok(!text.includes(secret), `${secret} is shown`);
  // Another address forgets them; the same one keeps them; null removes the proxy.
  let c = await operator.call("PUT", a.path, { providerSpecificData: { proxyUrl: proxyURL("") } });
  assert.ok(c.secrets.includes("proxyAuth"), "the same address");
  c = await operator.call("PUT", a.path, { providerSpecificData: { proxyUrl: proxyURL("", 9) } });
  assert.ok(!c.secrets.includes("proxyAuth"), "another address");
  c = await operator.call("PUT", a.path, { proxyAuth: "other-user:password" });
  assert.ok(c.secrets.includes("proxyAuth"));
  c = await operator.call("PUT", a.path, { providerSpecificData: { proxyUrl: null } });
  assert.deepEqual([c.secrets.includes("proxyAuth"), c.providerSpecificData.proxyUrl], [false, undefined]);
});

test("an invalid proxy is refused when it is saved", async () => {
  const { machineId } = await operator.machine();
  const refused = async (connection, field) => {
    const res = await gw.fetch(`/${machineId}/api/providers`, {
      method: "POST",
      headers: { authorization: `Bearer ${secrets.ADMIN_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ provider: "vertex", refreshToken: "refresh-token-0", ...connection }),
    });
    const text = await res.text();
    assert.equal(res.status, 400, text);
    assert.equal(JSON.parse(text).error.param, field, text);
    assert.ok(!text.includes("pass-word"), text);
  };
  for (const proxyUrl of [
    "https://proxy.example.com:443",
    "socks5://proxy.example.com:1080",
    "proxy.example.com:3128",
    "http://user:pass-word@proxy.example.com/path",
    "http://proxy.example.com?x=1",
    "http://u:p@proxy.example.com",
    "http://user:pass-word%0a@proxy.example.com",
    "http://",
    "http://metadata.google.internal",
    7,
    "http://proxy.example.com:70000",
  ])
    await refused({ providerSpecificData: { proxyUrl } }, "providerSpecificData.proxyUrl");
  await refused({ proxyAuth: "user:pass-word" }, "proxyAuth");
  await refused(
    { proxyAuth: "no-colon-in-it", providerSpecificData: { proxyUrl: "http://proxy.example.com:3128" } },
    "proxyAuth",
  );
  await refused(
    { proxyAuth: "user:pass-word", providerSpecificData: { proxyUrl: "http://user:pass-word@proxy.example.com:3128" } },
    "providerSpecificData.proxyUrl",
  );
  await refused({ proxy: "http://user:pass-word@proxy.example.com:3128", providerSpecificData: {} }, "proxy");
});

test("a broken proxy is an error that says so, without a direct call and without losing the token", async () => {
  const closed = createPlain();
  await new Promise((r) => closed.listen(0, "127.0.0.1", r));
  const { port } = closed.address(),
    plain = await startUpstream();
  closed.close();
  const cases = [
    ["refused", null, proxyURL(undefined, port), /cannot be reached/],
    ["no user", null, proxyURL(""), /asks for user and password \(status 407\)/],
    ["wrong password", null, proxyURL("proxy-user:wrong-word"), /refuses user and password \(status 407\)/],
    ["forbidden", { status: 403 }, proxyURL(), /status 403/],
    ["bad gateway", { status: 502 }, proxyURL(), /status 502/],
    ["redirect", { status: 302 }, proxyURL(), /status 302/],
    ["no HTTP", { garbage: true }, proxyURL(), /not HTTP/],
    ["closes", { drop: true }, proxyURL(), /closed the connection/],
    ["speaks first", { early: "x" }, proxyURL(), /before the tunnel/],
    ["tunnel closes", { cut: 0 }, proxyURL(), /no TLS through the proxy/],
    ["tunnel to something without TLS", { swap: plain.port }, proxyURL(), /no TLS through the proxy/],
  ];
  const calls = idps.good.calls.length;
  for (const [name, fault, url, text] of cases) {
    proxy.fault = fault;
    const a = await account(url),
      c = await when(a, failed);
    assert.match(c.lastError, text, name);
    assert.doesNotMatch(c.lastError, /pass@|pass%|wrong-|127\.0\.0\.1|refresh-|access-/, name);
    assert.deepEqual([c.tokenGeneration, c.status, c.secrets.includes("refreshToken")], [1, "active", true], name);
  }
  proxy.fault = null;
  assert.equal(idps.good.calls.length, calls, "calls of the token endpoint");
  await plain.close();
  await until("the end of all tunnels", () => proxy.open === 0);
});

test("a certificate that is invalid for the endpoint's name ends the call before anything is sent", async () => {
  for (const [name, idp] of Object.entries(idps)) {
    if (name === "good") continue;
    proxy.fault = { swap: idp.port };
    const a = await account(proxyURL()),
      c = await when(a, (c) => failed(c) || refreshed(c));
    assert.match(c.lastError ?? "", /no TLS through the proxy/, name);
    assert.equal(idp.calls.length, 0, `${name}: the endpoint was called`);
    assert.deepEqual([c.tokenGeneration, c.status], [1, "active"], name);
  }
  proxy.fault = null;
});

test("an answer in pieces is read", async () => {
  proxy.fault = { chatty: true };
  await when(await account(proxyURL()), refreshed);
  proxy.fault = null;
});

test("after a lost answer the outcome is unknown and the token is not requested twice", async () => {
  idps.good.answer = (_, res) => res.socket.destroy();
  const a = await account(proxyURL()),
    c = await when(a, failed);
  idps.good.answer = null;
  assert.match(c.lastError, /no usable answer/);
  assert.deepEqual([c.tokenGeneration, c.status], [1, "active"]);
  assert.equal(idps.good.calls.filter((x) => x.token === a.token).length, 1);
});

test("a refusal by the endpoint is reported as on a direct call", async () => {
  idps.good.answer = (_, res) => {
    res.writeHead(400, { "content-type": "application/json" });
    res.end('{"error":"invalid_grant"}');
  };
  const c = await when(await account(proxyURL()), failed);
  idps.good.answer = null;
  assert.equal(c.status, "needs_reauth");
  assert.match(c.lastError, /invalid_grant/);
});

test("a service account's assertion goes through the proxy, calls with its token go directly", async () => {
  const acme = serviceAccount("acme-prod"),
    google = vertex({ accounts: [acme] }),
    up = await startCloud((got) => google.answer({ ...got, host: "europe-west4-aiplatform.googleapis.com" }));
  idps.good.answer = (req, res, body) => {
    const {
      status,
      headers,
      body: text,
    } = google.answer({ method: "POST", host, path: req.url, url: req.url, headers: req.headers, body });
    res.writeHead(status, headers).end(text);
  };
  const seen = proxy.seen.length;
  try {
    const { machineId, apiKey } = await operator.machine();
    await operator.connect(machineId, {
      provider: "vertex",
      serviceAccount: acme.file,
      providerSpecificData: { location: "europe-west4", baseUrl: up.url, proxyUrl: proxyURL() },
    });
    for (let i = 0; i < 3; i++) {
      const res = await gw.fetch("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: '{"model":"vertex/gemini-2.5-flash","messages":[{"role":"user","content":"Hi"}]}',
      });
      assert.equal(res.status, 200, await res.text());
    }
    // Machines of earlier tests may try their refreshes again meanwhile.
    assert.deepEqual([...new Set(proxy.seen.slice(seen).map((s) => s.target))], [`${host}:443`]);
    assert.equal(google.issued.length, 1);
    assert.deepEqual(
      up.seen.map((s) => s.headers.authorization),
      Array(3).fill(`Bearer ${google.issued[0].token}`),
    );
  } finally {
    idps.good.answer = null;
    await up.close();
  }
});

test("the operator's proxy serves connections that have no proxy", async () => {
  const other = await startProxy({ auth: "operator:pass-word", to: idps.good.port });
  const own = await start({ env: { PROXY_URL: `http://operator:pass-word@127.0.0.1:${other.port}` } });
  // A proxy that nothing else uses: machines of earlier tests may try again.
  const connections = await startProxy({ auth: user, to: idps.good.port });
  const mine = operator;
  operator = admin(own);
  try {
    await when(await account(null), refreshed);
    assert.equal(other.seen.length, 1);
    await when(await account(proxyURL(undefined, connections.port)), refreshed); // its own comes first
    assert.deepEqual([other.seen.length, connections.seen.length], [1, 1]);
    other.fault = { status: 503 };
    const unserved = await account(null),
      c = await when(unserved, failed);
    assert.match(c.lastError, /status 503/);
    assert.ok(!idps.good.calls.some((got) => got.token === unserved.token));
    assert.ok(!own.logs.join("\n").includes("pass-word"), "the log");
  } finally {
    operator = mine;
    await own.close();
    await other.close();
    await connections.close();
  }
});

test("after a 401 a caller is served with a token fetched through the operator's proxy", async () => {
  const own = await startProxy({ auth: "client:pass-word", to: idps.good.port }),
    up = await startUpstream(),
    id = "openai-compatible-0a0a0001";
  const client = {
    id,
    tokenUrl: "https://id.example.com/token",
    deviceUrl: "https://id.example.com/device",
    clientId: "the-client",
    proxy: `127.0.0.1:${own.port}`,
    proxyAuth: "client:pass-word",
    baseUrl: `${up.url}/v1`,
    prefix: "acme",
  };
  const served = await start({ env: { OAUTH_PROVIDERS: JSON.stringify([client]) } }),
    op = admin(served);
  try {
    const { machineId, apiKey } = await op.machine();
    await op.connect(machineId, {
      provider: id,
      authType: "oauth",
      accessToken: "expired-access-token",
      refreshToken: `refresh-${machineId}`,
      providerSpecificData: { baseUrl: `${up.url}/v1`, prefix: "acme" },
    });
    up.script = (req) => (/^Bearer access-token-/.test(req.headers.authorization) ? null : "status=401");
    const ask = () =>
      served.fetch("/v1/embeddings", {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: '{"model":"acme/test-embed","input":"a"}',
      });
    const all = await Promise.all(Array.from({ length: 20 }, ask));
    for (const res of all) assert.equal(res.status, 200, await res.text());
    assert.deepEqual(
      own.seen.map((s) => [s.target, s.status]),
      [["id.example.com:443", 200]],
    );
    assert.equal(idps.good.calls.filter((c) => c.token === `refresh-${machineId}`).length, 1);
    // Without the proxy there is no token: the caller gets an error, and the
    // endpoint is never called directly.
    const other = await op.machine();
    await op.connect(other.machineId, {
      provider: id,
      authType: "oauth",
      accessToken: "expired-access-token",
      refreshToken: `refresh-${other.machineId}`,
      providerSpecificData: { baseUrl: `${up.url}/v1`, prefix: "acme" },
    });
    own.fault = { status: 502 };
    const res = await served.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${other.apiKey}`, "content-type": "application/json" },
      body: '{"model":"acme/test-embed","input":"a"}',
    });
    const text = await res.text();
    assert.ok([401, 429, 503].includes(res.status), `${res.status} ${text}`);
    assert.doesNotMatch(text.replaceAll(served.url, ""), /pass-word|127\.0\.0\.1|id\.example/);
    assert.ok(!idps.good.calls.some((c) => c.token === `refresh-${other.machineId}`));
    const c = (await op.call("GET", `/${other.machineId}/api/providers`)).data[0];
    assert.match(c.lastError, /status 502|401/);
    assert.ok(!served.logs.join("\n").includes("pass-word"));
  } finally {
    await served.close();
    await own.close();
    await up.close();
  }
});

test("an unusable operator's proxy stops the gateway: no call bypasses it", async () => {
  for (const [PROXY_URL, ALLOW_PRIVATE_UPSTREAMS] of [
    ["https://proxy.example.com", "true"],
    ["proxy.example.com:3128", "true"],
    ["http://127.0.0.1:3128", "false"],
    ["http://proxy:3128", "false"],
  ]) {
    assert.match(await unusable({ env: { PROXY_URL, ALLOW_PRIVATE_UPSTREAMS } }), /PROXY_URL/);
  }
});

test("without ALLOW_PRIVATE_UPSTREAMS a proxy is a public name", async () => {
  const strict = await start({ env: { ALLOW_PRIVATE_UPSTREAMS: "false" } });
  const op = admin(strict);
  try {
    const { machineId } = await op.machine();
    const connect = (proxyUrl) =>
      op.connect(machineId, {
        provider: "vertex",
        refreshToken: "refresh-token-0",
        providerSpecificData: { project: "p", location: "us-central1", proxyUrl },
      });
    for (const url of [
      "http://127.0.0.1:3128",
      "http://[::1]:3128",
      "http://2130706433:3128",
      "http://0x7f.1:3128",
      "http://10.0.0.1:3128",
      "http://localhost:3128",
      "http://proxy.internal:3128",
      "http://169.254.169.254:80",
    ]) {
      await assert.rejects(connect(url), { status: 400 }, url);
    }
    assert.equal(
      (await connect("http://proxy.example.com:3128")).providerSpecificData.proxyUrl,
      "http://proxy.example.com:3128",
    );
  } finally {
    await strict.close();
  }
});

test("a proxy that never answers ends with a timeout", { timeout: 180_000 }, async () => {
  const c = await when(waiting, failed);
  assert.match(c.lastError, /did not answer CONNECT, within the time/);
  assert.deepEqual([c.tokenGeneration, c.status], [1, "active"]);
  assert.ok(silent.seen.length >= 1); // the alarm may have tried again by now
});
