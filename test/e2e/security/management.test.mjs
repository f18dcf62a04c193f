// Attacks of a tenant on the management of a gateway that it shares with
// others. docs/reference/spec.md, 4.12; docs/reference/reliability.md, T5, T7,
// T9, T10, T12, T55, F53, N5.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";
import { request } from "../raw.mjs";

const signIn = "openai-compatible-0a0a0001";
let gw, up, idp, operator, me, other;
before(async () => {
  up = await startUpstream();
  idp = await startIdp();
  gw = await start({
    env: {
      OAUTH_PROVIDERS: JSON.stringify([
        {
          id: signIn,
          authorizeUrl: idp.url + "/authorize",
          tokenUrl: idp.url + "/token",
          deviceUrl: idp.url + "/device",
          clientId: idp.clientId,
          clientSecret: idp.clientSecret,
          baseUrl: up.url + "/v1",
          prefix: "acme",
          refreshEveryMs: 200,
        },
      ]),
    },
  });
  operator = admin(gw);
  [me, other] = await Promise.all(["mine", "theirs"].map(tenant));
});
after(async () => {
  await gw?.close();
  await up?.close();
  await idp?.close();
});
beforeEach(() => up.clear());

async function tenant(name) {
  const { machineId, apiKey } = await operator.machine({ name });
  const connection = await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-of-${name}` }));
  const add = (path, body, method = "POST") => operator.call(method, `/${machineId}/api/${path}`, body);
  const manager = await add("keys", { name: "manager", scopes: ["manage"] });
  const combo = await add("combos", { name: `combo-of-${name}`, models: ["up/test-embed"] });
  const signedIn = await operator.connect(machineId, {
    provider: signIn,
    ...tokens(),
    providerSpecificData: { baseUrl: up.url + "/v1", prefix: "acme" },
  });
  return {
    name,
    machineId,
    apiKey,
    manage: manager.apiKey,
    managerId: manager.id,
    connection,
    combo,
    signedIn,
    add,
    upstream: `upstream-key-of-${name}`,
  };
}
function tokens() {
  const t = idp.issue();
  return { accessToken: t.access_token, refreshToken: t.refresh_token };
}

async function call(method, path, token, body, headers = {}) {
  const res = await gw.fetch(path, {
    method,
    headers: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await res.text();
  return {
    status: res.status,
    headers: res.headers,
    text,
    body: text && res.headers.get("content-type")?.includes("json") ? JSON.parse(text) : null,
  };
}
const embed = (m, more = {}, headers = {}) =>
  call("POST", "/v1/embeddings", m.apiKey, { model: "up/test-embed", input: "a", ...more }, headers);
const state = async (m) =>
  JSON.stringify([
    await operator.call("GET", `/${m.machineId}/api/export`),
    await operator.call("GET", `/${m.machineId}/api/keys`),
    (await operator.call("GET", `/${m.machineId}/api/audit`)).data.filter((r) => !/export/.test(r.action)).length,
  ]).replace(/"exportedAt":\d+/, "");
const shape = (a) => [a.status, a.text.replace(/req_\w+/g, "")];

test("an id of another machine is answered like an unknown id, and nothing changes there", async () => {
  const had = await state(other);
  for (const token of [me.manage, secrets.ADMIN_TOKEN]) {
    for (const [method, path, id, body] of [
      ["GET", "providers/{}", other.connection.id],
      ["PUT", "providers/{}", other.connection.id, { name: "taken" }],
      ["DELETE", "providers/{}", other.connection.id],
      ["GET", "providers/{}/models", other.connection.id],
      ["POST", "providers/{}/test", other.connection.id, { model: "test-chat" }],
      ["GET", "combos/{}", other.combo.id],
      ["PUT", "combos/{}", other.combo.id, { models: ["up/x"] }],
      ["DELETE", "combos/{}", other.combo.id],
      ["GET", "keys/{}", other.managerId],
      ["DELETE", "keys/{}", other.managerId],
    ]) {
      for (const at of token === me.manage ? ["/api/", `/${me.machineId}/api/`] : [`/${me.machineId}/api/`]) {
        const there = await call(method, at + path.replace("{}", id), token, body),
          unknown = await call(method, at + path.replace("{}", "a".repeat(id.length)), token, body);
        assert.equal(there.status, 404, `${method} ${path}: ${there.text}`);
        assert.deepEqual(shape(there), shape(unknown), `${method} ${path}`);
      }
    }
  }
  for (const [path, make] of [
    ["explain", (id) => ({ path: "/v1/embeddings", body: { model: "up/test-embed", input: "a" }, connectionId: id })],
    [`oauth/${signIn}/authorize`, (id) => ({ connectionId: id })],
    [`oauth/${signIn}/device`, (id) => ({ connectionId: id })],
  ]) {
    const there = await call("POST", `/api/${path}`, me.manage, make(other.signedIn.id)),
      unknown = await call("POST", `/api/${path}`, me.manage, make("a".repeat(20)));
    assert.ok([400, 404].includes(there.status), `${path}: ${there.text}`);
    assert.deepEqual(shape(there), shape(unknown), path);
  }
  // With the other machine's name in the path it is a 401.
  for (const path of ["providers", `providers/${other.connection.id}`, "export", "audit"])
    assert.equal((await call("GET", `/${other.machineId}/api/${path}`, me.manage)).status, 401, path);
  assert.equal(up.seen.length, 0, "a call went out");
  assert.equal(await state(other), had);
});

test("connections of the same id in two machines are independent", async () => {
  const twins = await tenant("twins");
  // An attacker may know the id, which the victim's answers name.
  const document = {
    connections: [
      {
        id: me.connection.id,
        provider: me.connection.provider,
        apiKey: "attackers-key",
        providerSpecificData: { baseUrl: up.url + "/v1", prefix: "up" },
      },
      {
        id: me.signedIn.id,
        provider: signIn,
        ...tokens(),
        providerSpecificData: { baseUrl: up.url + "/v1", prefix: "acme" },
      },
    ],
  };
  assert.equal((await call("POST", "/api/import", twins.manage, { document, replace: true })).status, 200);
  up.script = (req) => (req.headers.authorization === "Bearer attackers-key" ? "status=401" : null);
  for (let i = 0; i < 3; i++) assert.notEqual((await embed(twins)).status, 200);
  for (let i = 0; i < 3; i++) {
    const got = await embed(me);
    assert.equal(got.status, 200, got.text);
    assert.equal(got.headers.get("x-weir-connection-id"), me.connection.id);
    assert.equal(up.seen.at(-1).headers.authorization, `Bearer ${me.upstream}`);
  }
  assert.deepEqual((await call("GET", "/api/models/availability", me.manage)).body.data, []);
  // The tokens of the two are separate, also after a refresh.
  up.clear();
  up.script = (req) => (idp.accepts(req.headers.authorization) ? null : "status=401");
  idp.expire();
  const both = await Promise.all([
    embed(me, { model: "acme/test-embed" }),
    embed(twins, { model: "acme/test-embed" }),
    embed(me, { model: "acme/test-embed" }),
  ]);
  for (const got of both) assert.equal(got.status, 200, got.text);
  const good = new Set(up.seen.filter((r) => idp.accepts(r.headers.authorization)).map((r) => r.headers.authorization));
  assert.equal(good.size, 2, "each machine has a token of its own");
  assert.equal(idp.revocations, 0);
  // The attacker's is deleted, the victim's stays.
  up.script = null;
  for (const c of document.connections)
    assert.equal((await call("DELETE", `/api/providers/${c.id}`, twins.manage)).status, 204);
  assert.equal((await embed(me)).status, 200);
  assert.equal((await call("GET", `/api/providers/${me.connection.id}`, me.manage)).status, 200);
});

test("a mutation id belongs to the caller who sent it", async () => {
  const name = { "idempotency-key": "the-same" },
    path = "/api/keys",
    body = { name: "named" };
  const [mine, theirs, operators] = [
    await call("POST", path, me.manage, body, name),
    await call("POST", path, other.manage, body, name),
    await call("POST", `/${me.machineId}${path}`, secrets.ADMIN_TOKEN, body, name),
  ];
  for (const a of [mine, theirs, operators]) assert.equal(a.status, 201, a.text);
  assert.equal(new Set([mine.body.apiKey, theirs.body.apiKey, operators.body.apiKey]).size, 3);
  assert.equal((await call("POST", path, me.manage, { name: "other" }, name)).status, 422);
  assert.equal((await call("PUT", "/api/models/alias", me.manage, { alias: "a", model: "up/x" }, name)).status, 422);
  // Concurrently it is still one mutation.
  const many = await Promise.all(
    Array.from({ length: 20 }, () =>
      call("POST", path, me.manage, { name: "at once" }, { "idempotency-key": "at-once" }),
    ),
  );
  assert.equal(new Set(many.map((a) => a.text)).size, 1);
  const { body: list } = await call("GET", path, me.manage);
  assert.equal(list.data.filter((k) => k.name === "at once").length, 1);
  for (const bad of ["a".repeat(256), "a b", "é", '"quo\u00e9"']) {
    const a = await request(
      gw.url,
      "POST",
      path,
      [
        ["authorization", `Bearer ${me.manage}`],
        ["content-type", "application/json"],
        ["idempotency-key", bad],
      ],
      "{}",
    );
    assert.equal(a.status, 400, `${bad.slice(0, 20)}: ${a.text}`);
  }
  for (const odd of ["__proto__", "constructor", "mutation:x", "../meta", "{}"])
    assert.equal((await call("POST", path, me.manage, { name: "odd" }, { "idempotency-key": odd })).status, 201, odd);
});
