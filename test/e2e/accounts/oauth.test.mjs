// Accounts connected by sign-in at an identity provider: the authorization code
// flow with PKCE, the device flow, and attacks on both. See
// docs/reference/reliability.md, T58, T59, T61, T62, F59.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, secrets, start } from "../gateway.mjs";
import { rows } from "../storage.mjs";
import { sleep, until } from "../wait.mjs";

const acme = "openai-compatible-0a0a0001",
  strict = "openai-compatible-0a0a0002";
const issuer = "https://issuer.example.com/v1/tenant";
const seen = []; // everything that the gateway has answered
let gw, up, idp, idp2, operator;
before(async () => {
  up = await startUpstream();
  idp = await startIdp();
  idp2 = await startIdp({ clientId: "id:2", clientSecret: "s3cret/+canary", basic: true, issuer });
  const of = (p, more) => ({
    authorizeUrl: p.url + "/authorize",
    tokenUrl: p.url + "/token",
    deviceUrl: p.url + "/device",
    clientId: p.clientId,
    clientSecret: p.clientSecret,
    refreshEveryMs: 200,
    ...more,
  });
  gw = await start({
    env: {
      OAUTH_PROVIDERS: JSON.stringify([
        of(idp, {
          id: acme,
          name: "Acme <b>&",
          scopes: ["models", "offline_access"],
          baseUrl: up.url + "/v1",
          prefix: "acme",
        }),
        of(idp2, {
          id: strict,
          name: "Strict",
          basicAuth: true,
          issuer,
          baseUrl: up.url + "/v1",
          prefix: "strict",
        }),
      ]),
    },
  });
  operator = admin(gw);
});
after(async () => {
  const logs = gw?.logs.join("\n") ?? "",
    all = seen.join("\n"),
    stored = (await rows(gw.dir)).map((r) => r.key + r.value).join("\n");
  await gw?.close();
  await up?.close();
  await idp?.close();
  await idp2?.close();
  assert.ok(idp.secrets.size > 15 && stored.length > 1000);
  for (const s of [...idp.secrets, ...idp2.secrets]) {
    assert.ok(!logs.includes(s), `${s} is in the logs`);
    assert.ok(!all.includes(s), `${s} is in an answer`);
    assert.ok(!stored.includes(s), `${s} is stored in the clear`);
  }
});
beforeEach(() => {
  up.clear();
  for (const p of [idp, idp2]) Object.assign(p, { calls: [], deviceCalls: [], faults: [], revocations: 0, early: 0 });
  up.script = (req) =>
    idp.accepts(req.headers.authorization) || idp2.accepts(req.headers.authorization) ? null : "status=401";
});

// machine creates a machine with a manage key; post calls its management API.
async function machine() {
  const { machineId, apiKey } = await operator.machine();
  const { apiKey: manage } = await operator.call("POST", `/${machineId}/api/keys`, {
    name: "m",
    scopes: ["manage"],
  });
  const call = async (method, path, body, { token = secrets.ADMIN_TOKEN, cookie } = {}) => {
    const res = await gw.fetch(`/${machineId}/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body ? { "content-type": "application/json" } : {}),
        ...(cookie ? { cookie } : {}),
      },
      body: body && JSON.stringify(body),
    });
    const text = await res.text();
    seen.push(text);
    return { status: res.status, headers: res.headers, text, body: text ? JSON.parse(text) : null };
  };
  const post = (path, body = {}, options = {}) => call("POST", path, body, options);
  const list = async () => (await call("GET", "/providers")).body.data;
  const send = (model = "acme/test-embed") =>
    gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model, input: "a" }),
    });
  return { machineId, manage, call, post, list, send };
}

// begin begins an authorization; its cookie is the browser's.
async function begin(m, provider = acme, body = {}, options = {}) {
  const got = await m.post(`/oauth/${provider}/authorize`, body, options);
  assert.equal(got.status, 200, got.text);
  const set = got.headers.get("set-cookie");
  assert.match(
    set,
    /^__Host-weir-oauth=[\w-]{43}\.[0-9a-f]{32}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$/,
  );
  return { ...got.body, cookie: set.split(";")[0] };
}

async function back(query, cookie, path = "/oauth/callback") {
  const res = await gw.fetch(`${path}?${query}`, { headers: cookie ? { cookie } : {}, redirect: "manual" });
  const text = await res.text();
  seen.push(text);
  return { status: res.status, headers: res.headers, text };
}

function isPage(got, status, word) {
  assert.equal(got.status, status, got.text);
  assert.match(got.headers.get("content-type"), /^text\/html/);
  assert.equal(
    got.headers.get("content-security-policy"),
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  assert.equal(got.headers.get("referrer-policy"), "no-referrer");
  assert.equal(got.headers.get("cache-control"), "no-store");
  assert.ok(!got.text.includes("<script") && !got.text.includes("<b>"), got.text);
  assert.ok(got.text.includes(word), `${word} is not in ${got.text}`);
}

test("a sign-in becomes a connection that serves calls and is refreshed", async () => {
  const m = await machine(),
    flow = await begin(m);
  assert.equal(flow.redirectUri, gw.url + "/oauth/callback");
  assert.ok(flow.expiresAt > Date.now() + 9 * 60_000 && flow.expiresAt <= Date.now() + 10 * 60_000);
  const q = new URL(flow.url).searchParams;
  assert.equal(q.get("scope"), "models offline_access");
  assert.equal(q.get("redirect_uri"), flow.redirectUri);
  assert.equal(q.get("state"), flow.state);
  isPage(await back(idp.approve(flow.url), flow.cookie), 200, "The account at Acme &lt;b&gt;&amp; is connected.");
  const [c, ...others] = await m.list();
  assert.equal(others.length, 0);
  assert.deepEqual(
    [c.provider, c.authType, c.name, c.status, c.secrets],
    [acme, "oauth", "Acme <b>&", "active", ["accessToken", "refreshToken"]],
  );
  assert.ok(c.expiresAt > Date.now() + 58 * 60_000 && c.expiresAt <= Date.now() + 59 * 60_000);
  assert.equal(c.providerSpecificData.baseUrl, up.url + "/v1");
  assert.equal((await m.send()).status, 200);
  idp.expire();
  const again = await m.send();
  assert.equal(again.status, 200);
  assert.equal(again.headers.get("x-weir-connection-id"), c.id);
  assert.deepEqual(
    idp.calls.map((f) => f.grant_type),
    ["authorization_code", "refresh_token"],
  );
  assert.equal(idp.calls[0].client_secret, idp.clientSecret);
  assert.equal(createHash("sha256").update(idp.calls[0].code_verifier).digest("base64url"), q.get("code_challenge"));
  assert.equal(idp.revocations, 0);
  const audit = (await m.call("GET", "/audit?verify=true")).body;
  assert.equal(audit.chain.ok, true);
  assert.deepEqual(
    audit.data.slice(0, 2).map((r) => [r.actor, r.action, r.target]),
    [
      ["operator", "GET /oauth/callback", c.id],
      ["operator", "POST /api/oauth/{provider}/authorize", acme],
    ],
  );
});

test("a provider with basic authentication and an issuer, and the fields of the new connection", async () => {
  const m = await machine();
  const flow = await begin(
    m,
    strict,
    { name: "work", priority: 3, providerSpecificData: { prefix: "mine", enabledModels: ["test-embed"] } },
    { token: m.manage },
  );
  // A query may have slashes as they are.
  isPage(await back(idp2.approve(flow.url).replace(/iss=[^&]*/, `iss=${issuer}`), flow.cookie), 200, "is connected");
  const [c] = await m.list();
  assert.deepEqual(
    [c.name, c.priority, c.providerSpecificData.prefix, c.providerSpecificData.enabledModels],
    ["work", 3, "mine", ["test-embed"]],
  );
  assert.equal((await m.send("mine/test-embed")).status, 200);
  assert.equal(idp2.calls[0].client_secret, undefined);
  const [record] = (await m.call("GET", "/audit")).body.data;
  assert.match(record.actor, /^key:/);
});

test("a dashboard session begins a sign-in with its cookie and token, and the flow's own cookie ends it", async () => {
  const m = await machine(),
    origin = gw.url,
    json = { "content-type": "application/json", origin };
  const signedIn = await gw.fetch("/api/session", {
    method: "POST",
    headers: json,
    body: JSON.stringify({ token: m.manage }),
  });
  const { csrfToken } = await signedIn.json(),
    cookie = signedIn.headers.get("set-cookie").split(";")[0];
  const authorize = (headers) =>
    gw.fetch(`/api/oauth/${acme}/authorize`, { method: "POST", headers: { ...json, cookie, ...headers }, body: "{}" });
  assert.equal((await authorize({})).status, 403);
  assert.equal((await authorize({ "x-csrf-token": csrfToken, origin: "https://evil.example.com" })).status, 403);
  const got = await authorize({ "x-csrf-token": csrfToken });
  assert.equal(got.status, 200);
  const { url } = await got.json(),
    flow = got.headers.get("set-cookie").split(";")[0];
  // A second one in another tab keeps the first one's cookie.
  const other = await authorize({ "x-csrf-token": csrfToken, cookie: `${cookie}; ${flow}` });
  assert.equal(other.headers.get("set-cookie").split(";")[0], flow);
  isPage(await back(idp.approve(url), flow), 200, "is connected");
  isPage(await back(idp.approve((await other.json()).url), flow), 200, "is connected");
  assert.equal((await m.list()).length, 2);
});

test("a callback of another browser or flow, or an incomplete one, is 400 without a token call", async () => {
  const m = await machine(),
    other = await machine();
  const flow = await begin(m),
    theirs = await begin(other),
    good = idp.approve(flow.url);
  const edit = (fields) => {
    const q = new URLSearchParams(good);
    for (const [k, v] of Object.entries(fields)) v === null ? q.delete(k) : q.set(k, v);
    return q.toString();
  };
  const secret = flow.state.split(".")[1];
  for (const [what, query, cookie] of [
    ["no cookie", good, ""],
    ["another browser's cookie", good, theirs.cookie],
    ["a made-up cookie", good, `__Host-weir-oauth=${"a".repeat(43)}.${"0".repeat(32)}`],
    ["two cookies", good, `${flow.cookie}; ${theirs.cookie}`],
    ["a cookie of another name", good, flow.cookie.replace("__Host-weir-oauth", "weir-oauth")],
    ["no state", edit({ state: null }), flow.cookie],
    ["an empty state", edit({ state: "" }), flow.cookie],
    ["a state of no machine", edit({ state: `${m.machineId}.${"A".repeat(43)}` }), flow.cookie],
    ["a state of another machine", edit({ state: `${other.machineId}.${secret}` }), flow.cookie],
    ["another's state", edit({ state: theirs.state }), flow.cookie],
    ["a state of no machine", edit({ state: "x." + secret }), flow.cookie],
    ["a state that is markup", edit({ state: "<script>alert(1)</script>" }), flow.cookie],
    ["two states", good + "&state=" + flow.state, flow.cookie],
    ["bad percent-encoding", good + "&x=%zz", flow.cookie],
    ["a query without end", good + "&x=" + "a".repeat(17000), flow.cookie],
  ]) {
    const got = await back(query, cookie);
    assert.ok([400, 414].includes(got.status), `${what}: ${got.status}`);
    if (got.status === 400) isPage(got, 400, "Not connected");
  }
  for (const path of ["/oauth/callback/", `/${m.machineId}/oauth/callback`, "/oauth//callback"])
    assert.equal((await back(good, flow.cookie, path)).status, 404);
  assert.equal(
    (await gw.fetch("/oauth/callback?" + good, { method: "POST", headers: { cookie: flow.cookie } })).status,
    405,
  );
  assert.equal(idp.calls.length, 0);
  // All that has not ended the flow of the browser that began it.
  isPage(await back(good, flow.cookie), 200, "is connected");
  isPage(await back(good, flow.cookie), 400, "used or expired");
  assert.equal(idp.calls.length, 1);
  assert.equal(idp.revocations, 0);
  assert.equal((await other.list()).length, 0);
});

test("a code stolen from another flow is refused by PKCE", async () => {
  const m = await machine(),
    mine = await begin(m),
    theirs = await begin(m);
  const stolen = new URLSearchParams(idp.approve(theirs.url)).get("code"),
    q = new URLSearchParams(idp.approve(mine.url));
  q.set("code", stolen);
  isPage(await back(q.toString(), mine.cookie), 400, "no longer accepts the code");
  assert.equal((await m.list()).length, 0);
});

test("a token endpoint that cuts the line: the page explains it, and the code is not sent again", async () => {
  const m = await machine(),
    flow = await begin(m),
    query = idp.approve(flow.url);
  idp.faults.push("reset");
  isPage(await back(query, flow.cookie), 503, "no usable answer");
  isPage(await back(query, flow.cookie), 400, "used or expired");
  assert.equal(idp.calls.length, 1);
  assert.equal((await m.list()).length, 0);
});

test("many callbacks at once exchange the code once", async () => {
  const m = await machine(),
    flow = await begin(m),
    query = idp.approve(flow.url);
  idp.faults.push({ slow: 300 });
  const all = await Promise.all(Array.from({ length: 20 }, () => back(query, flow.cookie)));
  assert.deepEqual(all.map((a) => a.status).sort(), [200, ...Array(19).fill(400)]);
  assert.equal(idp.calls.length, 1);
  assert.equal((await m.list()).length, 1);
});

test("the device flow is shared by all callers, polled no faster than allowed, and connects once", async () => {
  const m = await machine(),
    begun = Date.now();
  const shown = await Promise.all([
    m.post(`/oauth/${acme}/device`),
    m.post(`/oauth/${acme}/device`, {}, { token: m.manage }),
  ]);
  const again = await m.post(`/oauth/${acme}/device`);
  const codes = new Set([...shown, again].map((s) => s.body.userCode));
  assert.equal(codes.size, 1);
  assert.equal(again.body.verificationUri, "https://id.example.com/device");
  assert.equal(again.body.intervalMs, 1000);
  assert.ok(again.body.expiresAt <= Date.now() + 60_000);
  assert.ok(!("deviceCode" in again.body));
  assert.equal((await m.post(`/oauth/${acme}/device`, { name: "another" })).status, 409);
  let connected = null;
  const poll = async () => {
    const got = await m.post(`/oauth/${acme}/poll`);
    assert.equal(got.status, 200, got.text);
    if (got.body.status === "connected") connected = got.body;
    else {
      assert.equal(got.body.status, "pending");
      assert.ok(got.body.waitMs > 0);
    }
  };
  // Two dashboards that poll as fast as they can.
  const from = Date.now();
  while (Date.now() < from + 2500) {
    await Promise.all([poll(), poll()]);
    await sleep(40);
  }
  const most = Math.floor((Date.now() - begun) / 1000);
  assert.ok(idp.calls.length >= 1 && idp.calls.length <= most, `${idp.calls.length} polls, want at most ${most}`);
  idp.decide(again.body.userCode, "allow");
  await until("the connection", async () => {
    await poll();
    return connected;
  });
  assert.equal(idp.early, 0);
  assert.equal(connected.connectionId, connected.connection.id);
  assert.deepEqual(
    (await m.list()).map((c) => [c.id, c.status]),
    [[connected.connectionId, "active"]],
  );
  assert.equal((await m.send()).status, 200);
  const over = await m.post(`/oauth/${acme}/poll`);
  assert.deepEqual([over.status, over.body.error.code], [400, "no_flow"]);
  const audit = (await m.call("GET", "/audit")).body.data.filter((r) => r.action.includes("/poll"));
  assert.equal(audit.length, 1);
});
