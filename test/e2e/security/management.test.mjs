// Attacks of a tenant on the management of a gateway that it shares with
// others. docs/reference/design.md, 4; docs/reference/reliability.md, T5, T7,
// T9, T10, T12, T55, F53, N5.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";
import { request } from "../raw.mjs";
import { until } from "../wait.mjs";

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
    (await operator.call("GET", `/${m.machineId}/api/audit`)).data.length,
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

test("a key is limited to its scopes and to its lifetime", async () => {
  const m = await tenant("scopes");
  const data = await m.add("keys", { name: "data", scopes: ["data"] }),
    ends = Date.now() + 4000,
    brief = await m.add("keys", { name: "brief", scopes: ["manage"], expiresAt: ends });
  assert.equal(
    (await call("POST", "/v1/embeddings", m.manage, { model: "up/test-embed", input: "a" })).status,
    401,
    "a key that manages calls no model",
  );
  for (const path of ["providers", "keys", "export", "settings"])
    assert.equal((await call("GET", `/api/${path}`, data.apiKey)).status, 401, path);
  assert.equal((await call("POST", "/api/keys", data.apiKey, { scopes: ["manage"] })).status, 401);
  for (const path of ["/api/machines", `/api/machines/${m.machineId}`])
    assert.equal((await call(path === "/api/machines" ? "GET" : "DELETE", path, m.manage)).status, 401, path);
  await until("the end of the key", () => Date.now() > ends);
  assert.equal((await call("POST", "/api/keys", brief.apiKey, { name: "late" })).status, 401);
  // A deleted key manages nothing any more, also where it is still cached.
  const gone = await m.add("keys", { name: "gone", scopes: ["manage"] });
  assert.equal((await call("GET", "/api/keys", gone.apiKey)).status, 200);
  assert.equal((await call("DELETE", `/api/keys/${gone.id}`, gone.apiKey)).status, 204);
  const all = await Promise.all(
    Array.from({ length: 10 }, () => call("POST", "/api/keys", gone.apiKey, { name: "after" })),
  );
  assert.deepEqual([...new Set(all.map((a) => a.status))], [401]);
  assert.ok(!(await call("GET", "/api/keys", m.manage)).text.includes('"after"'));
});

test("malformed requests are refused with a reason and change nothing", async () => {
  const m = await tenant("odd");
  const deep = (n) => "[".repeat(n) + "]".repeat(n),
    at = [
      ["authorization", `Bearer ${m.manage}`],
      ["content-type", "application/json"],
    ];
  const bodies = [
    "",
    "null",
    "[]",
    "0",
    '"a"',
    "{",
    '{"a":1}{}',
    '\ufeff{"name":"a"}',
    '{"name":"a","name":"b"}',
    '{"n\\u0061me":"a","name":"b"}',
    '{"__proto__":{"scopes":["manage"]}}',
    '{"constructor":{}}',
    `{"name":${deep(200)}}`,
    `{"name":${deep(20000)}}`,
    '{"name":1e999}',
    `{"priority":${"9".repeat(4000)}}`,
    '{"name":"\\ud800"}',
    '{"name":"a\\u0000b"}',
    '{"NAME":"a"}',
    `{"name":"${"a".repeat(100_000)}"}`,
    Buffer.from([0x7b, 0x22, 0x61, 0xff, 0x22, 0x3a, 0x31, 0x7d]).toString("latin1"),
  ];
  const routes = [
    ["POST", "/api/providers"],
    ["PUT", `/api/providers/${m.connection.id}`],
    ["POST", "/api/combos"],
    ["PUT", `/api/combos/${m.combo.id}`],
    ["POST", "/api/keys"],
    ["PUT", "/api/models/alias"],
    ["POST", "/api/models/custom"],
    ["POST", "/api/models/disabled"],
    ["PATCH", "/api/settings"],
    ["POST", "/api/import"],
    ["POST", "/api/export"],
    ["POST", "/api/explain"],
    ["POST", `/api/providers/${m.connection.id}/test`],
    ["POST", `/api/oauth/${signIn}/authorize`],
    ["POST", `/api/oauth/${signIn}/device`],
    ["POST", "/api/machines"],
  ];
  const had = await state(m);
  for (const [method, path] of routes) {
    for (const body of bodies) {
      const none = body === "" && /keys|oauth|test$|machines/.test(path),
        fields = path === "/api/machines" ? [["authorization", `Bearer ${secrets.ADMIN_TOKEN}`], at[1]] : at;
      if (none || (path.endsWith("/test") && body === '{"name":"a","name":"b"}')) continue; // no body is one there
      const a = await request(
        gw.url,
        method,
        path,
        fields,
        Buffer.from(body, body.includes("\ufeff") ? "utf8" : "latin1"),
        { length: Buffer.byteLength(body, body.includes("\ufeff") ? "utf8" : "latin1") },
      );
      assert.ok(
        a && a.status >= 400 && a.status < 500,
        `${method} ${path} ${body.slice(0, 60)}: ${a?.status} ${a?.text.slice(0, 200)}`,
      );
      const { error } = JSON.parse(a.text);
      assert.ok(error.message && error.message.length < 600, a.text.slice(0, 300));
    }
  }
  for (const query of [
    "alias=a&alias=b",
    "alias=%zz",
    "alias=__proto__",
    "alias[]=a",
    `alias=${"a".repeat(10_000)}`,
    "%61lias=a&alias=b",
    "alias=%00",
  ]) {
    const a = await request(gw.url, "DELETE", `/api/models/alias?${query}`, at, "");
    assert.ok(a === null || (a.status >= 400 && a.status < 500), `${query.slice(0, 40)}: ${a?.status}`);
  }
  for (const match of ['"0"', '"-1"', '"9223372036854775808"', "W/", '""', '"100", "200"', "x".repeat(5000), '"é"']) {
    const a = await request(
      gw.url,
      "PUT",
      `/api/providers/${m.connection.id}`,
      [...at, ["if-match", match]],
      '{"name":"never"}',
    );
    assert.ok(a.status === 412 || a.status === 431, `${match.slice(0, 20)}: ${a.status} ${a.text}`);
  }
  for (const id of [
    "%2e%2e",
    "..%2f..",
    "__proto__",
    "%00",
    "a%2fb",
    "☃",
    `${m.connection.id}%20`,
    m.connection.id.toUpperCase(),
    "a".repeat(3000),
  ]) {
    const a = await request(gw.url, "DELETE", `/api/providers/${encodeURI(id).replace(/%25/g, "%")}`, at, "");
    assert.ok(a === null || (a.status >= 400 && a.status < 500), `${id.slice(0, 20)}: ${a?.status}`);
  }
  assert.equal(await state(m), had);
  assert.equal((await embed(m)).status, 200);
});

test("accounts are ordered by priority, also with unusual values", async () => {
  const { machineId, apiKey } = await operator.machine(),
    ids = {};
  for (const priority of [5, -1_000_000, 1_000_000, 0, -1])
    ids[priority] = (
      await operator.connect(machineId, compatible(up, { apiKey: `key-of-${priority}-0`, priority }))
    ).id;
  const order = async () =>
    (
      await operator.call("POST", `/${machineId}/api/explain`, {
        path: "/v1/embeddings",
        body: { model: "up/test-embed", input: "a" },
      })
    ).plan.map((s) => s.connectionId);
  const want = [-1_000_000, -1, 0, 5, 1_000_000].map((p) => ids[p]);
  assert.deepEqual(await order(), want);
  for (const bad of [1_000_001, -1_000_001, 1.5, "1", "-Infinity", 1e300, true, [1], { a: 1 }])
    await assert.rejects(
      operator.call("PUT", `/${machineId}/api/providers/${ids[5]}`, { priority: bad }),
      { status: 400 },
      JSON.stringify(bad),
    );
  assert.deepEqual(await order(), want);
  await operator.call("PUT", `/${machineId}/api/providers/${ids[5]}`, { priority: null }); // the default
  const two = [ids[5], ids[0]].sort();
  assert.deepEqual((await order()).slice(2, 4).sort(), two, "equal priorities are beside each other");
  assert.equal(
    (await call("POST", "/v1/embeddings", apiKey, { model: "up/test-embed", input: "a" })).headers.get(
      "x-weir-connection-id",
    ),
    ids[-1_000_000],
  );
});
