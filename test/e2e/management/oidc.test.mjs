// Sign-in by an identity provider, with the signatures that each platform checks. The attacks that need
// another clock, two issuers or private addresses are tables in pkg/auth/oidc.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startIssuer } from "../../upstream/issuer.mjs";
import { admin, secrets, start } from "../gateway.mjs";

let gw, issuer, operator;
before(async () => {
  issuer = await startIssuer();
  gw = await start({ proxy: true, vendors: issuer });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await issuer?.close();
});
beforeEach(() => {
  Object.assign(issuer, { user: { sub: "ada", name: "Ada", groups: ["ai"] }, change: null, alg: "RS256", answers: {} });
});

const rules = [{ claim: ["groups"], value: "ai", role: "editor", machines: ["*"] }];
const body = (name, more = {}) => ({
  name,
  issuer: issuer.url,
  clientId: "weir",
  clientSecret: "client-secret-canary",
  rules,
  ...more,
});
const provider = (name, more) => operator.call("POST", "/api/identity-providers", body(name, more));

// cookie returns a cookie that an answer sets, as a browser sends it back.
const cookie = (res, name) =>
  (res.headers.getSetCookie() ?? []).find((c) => c.startsWith(`${name}=`))?.split(";")[0] ?? "";

// away is a header field with the next address: after ten refusals one must wait.
let addresses = 0;
const at = (address) => Object.fromEntries([gw.from(address)]);
const away = () => at(`198.51.100.${++addresses}`);

const begin = (id) => gw.fetch(`/api/sign-in/${id}`, { method: "POST", body: "{}" });

// signIn signs in at a provider, with the query of the callback changed. The result has the answer, its text
// and its session.
async function signIn(id, change = (q) => q) {
  const begun = await begin(id);
  const { url } = await begun.json();
  assert.equal(begun.status, 200);
  const flow = cookie(begun, "__Host-weir-oauth");
  return callback(change(issuer.authorize(url)), flow);
}

async function callback(query, flow) {
  const res = await gw.fetch(`/oidc/callback?${query}`, { redirect: "manual", headers: { cookie: flow, ...away() } });
  const text = await res.text();
  const code = new URLSearchParams(query).get("code");
  assert.ok(!text.includes(code) && !gw.logs.some((l) => l.includes(code)), "the code is shown");
  return { status: res.status, text, session: cookie(res, "__Host-weir"), query, flow, headers: res.headers };
}

const refused = async (made, reason) => {
  const got = await made;
  assert.ok(got.status >= 400, `${reason}: ${got.status}`);
  assert.equal(got.session, "", reason);
  assert.ok(got.text.includes(reason), `${reason}: ${got.text}`);
  return got;
};

test("a person signs in and sees what the role allows", async () => {
  const { machineId } = await operator.machine();
  const { id } = await provider("Acme");
  assert.deepEqual((await operator.call("GET", "/api/auth")).providers, [{ id, name: "Acme" }]);
  const done = await signIn(id);
  assert.equal(done.status, 303, done.text);
  assert.equal(done.headers.get("location"), "/");
  const headers = { cookie: done.session };
  const session = await (await gw.fetch("/api/session", { headers })).json();
  assert.equal(session.operator, false);
  assert.equal(session.personName, "Ada");
  assert.equal((await gw.fetch(`/${machineId}/api/providers`, { headers })).status, 200);
  for (const path of [`/${machineId}/api/export`, "/api/identity-providers"])
    assert.equal((await gw.fetch(path, { headers })).status, 403, path);
  const machines = await (await gw.fetch("/api/machines", { headers })).json();
  assert.equal(machines.data.find((m) => m.machineId === machineId)?.role, session.roles["*"]);
  // The session is ambient authority: another site's page and a form change nothing.
  const change = { method: "POST", body: "{}", headers: { ...headers, "content-type": "application/json" } };
  assert.equal((await gw.fetch(`/${machineId}/api/keys`, change)).status, 403);
  change.headers.origin = "https://evil.example";
  assert.equal((await gw.fetch(`/${machineId}/api/keys`, change)).status, 403);
});

test("attacks on the flow open no session", async () => {
  const { id } = await provider("Attacked");
  const other = await provider("Other");
  const replaced = (name, value) => (query) => {
    const q = new URLSearchParams(query);
    q.set(name, value);
    return q.toString();
  };
  const first = await signIn(id);
  await refused(callback(first.query, first.flow), "state_used");
  await refused(signIn(id, replaced("state", "forged")), "No identity provider");
  await refused(
    signIn(id, (q) => q.replace(/state=([^&]*?)(.)&/, (_, s, c) => `state=${s}${c === "A" ? "B" : "A"}&`)),
    "state_invalid",
  );
  await refused(
    signIn(id, (q) => q.replace(id, other.id)),
    "state_invalid",
  );
  await refused(signIn(id, replaced("iss", "https://evil.example")), "issuer_mixed_up");
  await refused(signIn(id, replaced("code", "stolen")), "issuer_status");
  await refused(
    signIn(id, (q) => `${q}&code=second`),
    "callback_invalid",
  );
  const victim = await begin(id);
  const { url } = await victim.json();
  const attacker = await begin(id);
  await refused(callback(issuer.authorize(url), cookie(attacker, "__Host-weir-oauth")), "state_invalid");
  await refused(callback(issuer.authorize(url), ""), "not started in this browser");
  await refused(callback(issuer.authorize(url), "__Host-weir-oauth=ofanotherhost.0123"), "not started in this browser");
  const foreign = { method: "POST", body: "{}", headers: { origin: "https://evil.example" } };
  assert.equal((await gw.fetch(`/api/sign-in/${id}`, foreign)).status, 403);
});

test("tokens that are not of this sign-in open no session", async () => {
  const { id } = await provider("Tokens");
  const now = Math.floor(Date.now() / 1000);
  for (const [reason, change] of [
    ["token_nonce", (c) => (c.nonce = "of another sign-in")],
    ["token_nonce", (c) => delete c.nonce],
    ["token_issuer", (c) => (c.iss = "https://evil.example")],
    ["token_audience", (c) => (c.aud = "another client")],
    ["token_audience", (c) => Object.assign(c, { aud: ["weir", "x"], azp: "x" })],
    ["token_expired", (c) => (c.exp = now - 120)],
    ["token_issued_at", (c) => (c.iat = now + 3600)],
    ["token_issued_at", (c) => (c.iat = now - 3600)],
    ["token_subject", (c) => (c.sub = "")],
  ]) {
    issuer.change = change;
    await refused(signIn(id), reason);
  }
  issuer.change = null;
  for (const alg of ["none", "HS256"]) {
    issuer.alg = alg;
    await refused(signIn(id), alg === "none" ? "token_malformed" : "token_algorithm");
  }
  issuer.alg = "RS256";
  const sign = issuer.token;
  try {
    issuer.token = (claims) => sign(claims).replace(/.{8}$/, "AAAAAAAA");
    await refused(signIn(id), "token_signature");
    issuer.token = (claims) => sign(claims, "RS256", { kid: "../../k1" });
    await refused(signIn(id), "token_key_unknown");
    issuer.token = (claims) => sign(claims, "RS256", { jku: "https://evil.example/keys" });
    await refused(signIn(id), "token_header");
  } finally {
    issuer.token = sign;
  }
  assert.equal((await signIn(id)).status, 303);
});

test("a person without a role is refused, with one audit record without the token", async () => {
  const { id } = await provider("Roles");
  const records = async () => (await operator.call("GET", "/api/sign-ins")).data.map(({ at, ...r }) => r);
  const [{ seq, generation }] = await records();
  issuer.user = { sub: "eve", groups: ["AI"] };
  const got = await refused(signIn(id), "access");
  assert.equal(got.status, 403);
  issuer.user = { sub: "eve", _claim_names: { groups: "src1" }, _claim_sources: { src1: {} } };
  await refused(signIn(id), "too many groups");
  const [second, first, last] = await records();
  assert.equal(last.seq, seq);
  assert.deepEqual(
    { ...first, actor: first.actor.slice(0, 9) },
    {
      seq: seq + 1,
      actor: "person:p_",
      action: "sign-in.refused",
      fields: ["no_access"],
      generation: first.generation,
    },
  );
  assert.deepEqual(second, {
    seq: seq + 2,
    actor: "anonymous",
    action: "sign-in.refused",
    target: id,
    fields: ["too_many_groups"],
    generation: second.generation,
  });
  assert.ok(first.generation > generation);
  assert.ok(!gw.logs.some((l) => l.includes("eyJ")), "a token is logged");
});

test("issuers that are down, slow, huge or redirect open no session", async () => {
  const bad = await startIssuer();
  const discovery = "/.well-known/openid-configuration";
  const add = () =>
    gw.fetch("/api/identity-providers", {
      method: "POST",
      headers: { authorization: `Bearer ${secrets.ADMIN_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(body("Bad", { issuer: bad.url })),
    });
  const says = async (reason) => {
    const res = await add(),
      text = await res.text();
    assert.equal(res.status, 400, text);
    assert.ok(text.includes(reason), `${reason}: ${text}`);
  };
  try {
    bad.answers[discovery] = (res) => res.socket.destroy();
    await says("issuer_unreachable");
    bad.answers[discovery] = () => {}; // until the time limit of ten seconds
    await says("issuer_unreachable");
    bad.answers[discovery] = (res) => res.writeHead(302, { location: `${issuer.url}${discovery}` }).end();
    await says("issuer_redirects");
    bad.answers[discovery] = (res) => res.writeHead(200).end(`{"issuer":"${"a".repeat(10 << 20)}"}`);
    await says("issuer_answer_too_large");
    bad.answers[discovery] = (res) => res.writeHead(200).end(JSON.stringify({ issuer: "https://evil.example" }));
    await says("issuer_of_another_name");
    bad.answers[discovery] = undefined;
    bad.answers["/keys"] = (res) => res.writeHead(200).end(`{"keys":"${"a".repeat(10 << 20)}"}`);
    await says("issuer_answer_too_large");
  } finally {
    await bad.close();
  }
  // The operator's token works while an issuer is down.
  assert.equal(typeof (await operator.call("GET", "/api/identity-providers")).data.length, "number");
});

test("an address that is refused too often must wait, and fills no records", async () => {
  const { id } = await provider("Guessed");
  const from = at("203.0.113.9");
  const send = async () => {
    const begun = await begin(id),
      { url } = await begun.json();
    const q = issuer.authorize(url).replace("code=", "code=x");
    const headers = { cookie: cookie(begun, "__Host-weir-oauth"), ...from };
    const res = await gw.fetch(`/oidc/callback?${q}`, { redirect: "manual", headers });
    await res.text();
    return res.status;
  };
  const got = [];
  for (let i = 0; i < 12; i++) got.push(await send());
  assert.deepEqual(got, [...Array(10).fill(403), 429, 429]);
});

test("the header of Cloudflare Access is verified with each call", async () => {
  const team = "https://acme.cloudflareaccess.com";
  const { machineId } = await operator.machine();
  const rule = [{ claim: ["email"], value: "ada@acme.com", role: "editor", machines: [machineId] }];
  const body = { name: "Access", kind: "cloudflare-access", issuer: team, clientId: "aud1", rules: rule };
  const call = async (path, claims, headers = {}, init = {}) => {
    const token = issuer.token({ iss: team, aud: ["aud1"], sub: "ada", email: "ada@acme.com", ...claims });
    const res = await gw.fetch(path, { ...init, headers: { "cf-access-jwt-assertion": token, ...away(), ...headers } });
    await res.text();
    return res.status;
  };
  const path = `/${machineId}/api/keys`;
  assert.equal(await call(path), 401, "before it is configured");
  const { id } = await operator.call("POST", "/api/identity-providers", body);
  assert.equal(await call(path), 200);
  assert.equal(await call(path, { aud: ["another"] }), 403);
  assert.equal(await call(path, { sub: "eve", email: "eve@acme.com" }), 403);
  const forged = issuer.token({ iss: team, aud: ["aud1"], sub: "ada", email: "ada@acme.com" }, "HS256");
  assert.equal(await call(path, {}, { "cf-access-jwt-assertion": forged }), 403);
  const change = { method: "POST", body: "{}" };
  const json = { "content-type": "application/json" };
  assert.equal(await call(path, {}, json, change), 403, "no page of the gateway");
  assert.equal(await call(path, {}, { ...json, origin: gw.url }, change), 201);
  await operator.call("DELETE", `/api/identity-providers/${id}`);
  assert.equal(await call(path), 401, "once it is removed");
});

test("a CI job gets the roles of its branch for an hour", async () => {
  const { machineId } = await operator.machine();
  const sub = "repo:acme/app:ref:refs/heads/main";
  const rule = [{ claim: ["sub"], value: sub, role: "editor", machines: [machineId] }];
  const audience = "https://weir.example";
  const made = { name: "CI", kind: "ci", issuer: issuer.url, clientId: audience, rules: rule };
  const { id } = await operator.call("POST", "/api/identity-providers", made);
  const exchange = async (claims, alg) => {
    const body = JSON.stringify({ token: issuer.token({ aud: audience, sub, ...claims }, alg) });
    const headers = { "content-type": "application/json", ...away() };
    const res = await gw.fetch("/api/token", { method: "POST", body, headers });
    return { status: res.status, ...(await res.json()) };
  };
  const job = await exchange();
  assert.equal(job.status, 200);
  const ci = admin(gw, job.token);
  assert.equal((await ci.call("POST", `/${machineId}/api/keys`, { name: "of CI" })).name, "of CI");
  await assert.rejects(ci.call("GET", "/api/identity-providers"), { status: 403 });
  for (const wrong of [{ sub: `${sub}2` }, { aud: "https://github.com/acme" }, { iss: "https://gitlab.com" }])
    assert.equal((await exchange(wrong)).status, 403);
  assert.equal((await exchange({}, "HS256")).status, 403);
  await operator.call("DELETE", `/api/identity-providers/${id}`);
});

test("a back-channel logout ends the sessions of the person", async () => {
  const { id } = await provider("Leaving");
  const { session } = await signIn(id);
  const signedIn = async () =>
    (await (await gw.fetch("/api/session", { headers: { cookie: session } })).json()).signedIn;
  const logout = async (claims) => {
    const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
    const token = issuer.token({ aud: "weir", sub: "ada", jti: "1", events, ...claims });
    const body = new URLSearchParams({ logout_token: token });
    return (await gw.fetch("/oidc/logout", { method: "POST", body, headers: away() })).status;
  };
  assert.equal(await logout({ nonce: "of an ID token" }), 403);
  assert.equal(await signedIn(), true);
  assert.equal(await logout({}), 200);
  assert.equal(await signedIn(), false);
});
