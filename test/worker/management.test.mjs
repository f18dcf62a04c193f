// The management API in real workerd: who may, what is answered, and that an
// acknowledged change is there after the process was killed. Design 4.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { start as startIdp } from "../upstream/idp.mjs";
import { start as startUpstream } from "../upstream/server.mjs";
import { admin, compatible, secrets, start } from "./gateway.mjs";

const signIn = "openai-compatible-0a0a0001";
let gw, up, idp, operator, mine, other;
before(async () => {
  up = await startUpstream();
  idp = await startIdp();
  gw = await start({ env: { OAUTH_PROVIDERS: JSON.stringify([{
    id: signIn, authorizeUrl: idp.url + "/authorize", tokenUrl: idp.url + "/token", deviceUrl: idp.url + "/device", clientId: idp.clientId, clientSecret: idp.clientSecret, baseUrl: up.url + "/v1",
  }]) } });
  operator = admin(gw);
  mine = await tenant();
  other = await tenant();
});
after(async () => { await gw?.close(); await up?.close(); await idp?.close(); });

// tenant makes a machine with a connection and a key of each scope.
async function tenant() {
  const { machineId, apiKey } = await operator.machine();
  const connection = await operator.connect(machineId, compatible(up, { apiKey: "sk-canary-upstream-key" }));
  const manage = await operator.call("POST", `/${machineId}/api/keys`, { name: "manager", scopes: ["manage"] });
  return { machineId, data: apiKey, manage: manage.key ?? manage.apiKey, connection };
}

async function call(method, path, token, body, headers = {}) {
  const res = await gw.fetch(path, {
    method,
    headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await res.text();
  return { status: res.status, headers: res.headers, text, body: text ? JSON.parse(text) : null };
}

// The routes with a call that is right for each: [method, path, body, status].
const routes = () => [
  ["GET", "/api/providers", undefined, 200],
  ["POST", "/api/providers", { provider: "groq", apiKey: "gsk-canary-key-1" }, 201],
  ["GET", `/api/providers/${mine.connection.id}`, undefined, 200],
  ["PUT", `/api/providers/${mine.connection.id}`, { name: "renamed" }, 200],
  ["GET", `/api/providers/${mine.connection.id}/models`, undefined, 200],
  ["GET", "/api/combos", undefined, 200],
  ["POST", "/api/combos", { models: ["up/test-chat"] }, 201],
  ["GET", "/api/keys", undefined, 200],
  ["POST", "/api/keys", { name: "more" }, 201],
  ["GET", "/api/models/alias", undefined, 200],
  ["PUT", "/api/models/alias", { alias: "fast", model: "up/test-chat" }, 200],
  ["GET", "/api/models/custom", undefined, 200],
  ["POST", "/api/models/custom", { id: "my-model", providerAlias: "up" }, 201],
  ["GET", "/api/models/disabled", undefined, 200],
  ["POST", "/api/models/disabled", { providerAlias: "up", ids: ["hidden"] }, 200],
  ["GET", "/api/models/availability", undefined, 200],
  ["GET", "/api/settings", undefined, 200],
  ["PATCH", "/api/settings", { strategy: "round-robin" }, 200],
  ["GET", "/api/audit", undefined, 200],
  ["GET", "/api/usage", undefined, 200],
  ["GET", "/api/requests", undefined, 200],
  ["GET", "/api/export", undefined, 200],
  ["GET", "/api/catalog/providers", undefined, 200],
  ["POST", `/api/oauth/${signIn}/authorize`, {}, 200],
  ["POST", `/api/oauth/${signIn}/device`, {}, 200],
  ["POST", `/api/oauth/${signIn}/poll`, {}, 200],
  ["POST", `/api/oauth/${signIn}/cancel`, {}, 204],
  ["POST", "/api/explain", { path: "/v1/embeddings", body: { model: "up/test-embed", input: "a" } }, 200],
];

test("every route, by everybody", async () => {
  let n = 0;
  for (const [method, path, body, status] of routes()) {
    const send = (p, token) => call(method, p, token, path === "/api/combos" && body ? { name: `combo-${n++}`, ...body } : body);
    const at = `/${mine.machineId}${path}`;
    const refused = [["nothing", at, ""], ["garbage", at, "sk-garbage"], ["a data key", at, mine.data], ["another machine's manage key", at, other.manage],
      ["nothing, bare", path, ""], ["a data key, bare", path, mine.data]];
    for (const [who, p, token] of refused) {
      const got = await send(p, token);
      assert.equal(got.status, 401, `${method} ${path} by ${who}: ${got.text}`);
      assert.equal(got.headers.get("access-control-allow-origin"), null);
    }
    for (const [who, p, token] of [["the operator", at, secrets.ADMIN_TOKEN], ["the manage key", at, mine.manage], ["the manage key, bare", path, mine.manage]]) {
      const got = await send(p, token);
      // What was made once is there already the next time.
      assert.ok(got.status === status || (status === 201 && [200, 201, 409].includes(got.status)), `${method} ${path} by ${who}: ${got.status} ${got.text}`);
      assert.ok(!got.text.includes("canary"), `${method} ${path} shows a secret`);
    }
    const preflight = await gw.fetch(path, { method: "OPTIONS", headers: { origin: "https://evil.example" } });
    assert.ok(preflight.status >= 400 && !preflight.headers.get("access-control-allow-origin"), `${path} answers a preflight`);
  }
  for (const [method, path] of [["GET", "/api/machines"], ["POST", "/api/machines"], ["DELETE", `/api/machines/${mine.machineId}`]]) {
    for (const token of ["", "sk-garbage", mine.data, mine.manage]) assert.equal((await call(method, path, token)).status, 401, `${method} ${path}`);
  }
  assert.equal((await call("GET", "/api/machines", secrets.ADMIN_TOKEN)).status, 200);
});

test("a stale write is refused, and says so", async () => {
  const path = `/${mine.machineId}/api/providers/${mine.connection.id}`;
  const first = await call("GET", path, secrets.ADMIN_TOKEN), etag = first.headers.get("etag");
  assert.ok(etag);
  const changed = await call("PUT", path, secrets.ADMIN_TOKEN, { name: "second" }, { "if-match": etag });
  assert.equal(changed.status, 200);
  assert.equal((await call("PUT", path, secrets.ADMIN_TOKEN, { name: "third" }, { "if-match": etag })).status, 412);
  assert.equal((await call("GET", path, secrets.ADMIN_TOKEN)).body.name, "second");
});

test("a mutation that is sent twice is applied once", async () => {
  const path = `/${mine.machineId}/api/keys`, headers = { "idempotency-key": "mutation-1" };
  const a = await call("POST", path, secrets.ADMIN_TOKEN, { name: "once" }, headers);
  const b = await call("POST", path, secrets.ADMIN_TOKEN, { name: "once" }, headers);
  assert.equal(a.status, 201);
  assert.equal(b.body.id, a.body.id);
  const keys = (await call("GET", path, secrets.ADMIN_TOKEN)).body.data.filter((k) => k.name === "once");
  assert.equal(keys.length, 1);
});

test("concurrent writers lose nothing, and every change has its audit record", async () => {
  const { machineId } = await operator.machine(), writers = 8, each = 25;
  const send = async (w) => {
    for (let i = 0; i < each; i++) {
      const got = await call("PUT", `/${machineId}/api/models/alias`, secrets.ADMIN_TOKEN, { alias: `a-${w}-${i}`, model: `up/m-${w}-${i}` });
      assert.equal(got.status, 200, got.text);
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, w) => send(w)));
  const { body } = await call("GET", `/${machineId}/api/models/alias`, secrets.ADMIN_TOKEN);
  const aliases = body.data ?? body.aliases ?? body;
  assert.equal(Object.keys(aliases).length, writers * each);
  let seen = 0, query = "";
  for (let page = 0; page < 20; page++) {
    const { body: audit } = await call("GET", `/${machineId}/api/audit${query}`, secrets.ADMIN_TOKEN);
    seen += audit.data.filter((r) => r.action === "PUT /api/models/alias").length;
    if (!audit.has_more) break;
    query = `?before=${audit.data.at(-1).seq}`;
  }
  assert.equal(seen, writers * each);
});

test("combos that would loop are refused when saved", async () => {
  const path = `/${mine.machineId}/api/combos`;
  assert.equal((await call("POST", path, secrets.ADMIN_TOKEN, { name: "self", models: ["self"] })).status, 400);
  const a = await call("POST", path, secrets.ADMIN_TOKEN, { name: "loop-a", models: ["up/test-chat"] });
  assert.equal(a.status, 201);
  assert.equal((await call("POST", path, secrets.ADMIN_TOKEN, { name: "loop-b", models: ["loop-a"] })).status, 201);
  assert.equal((await call("PUT", `${path}/${a.body.id}`, secrets.ADMIN_TOKEN, { models: ["loop-b"] })).status, 400);
  assert.equal((await call("POST", path, secrets.ADMIN_TOKEN, { name: "wide", models: Array.from({ length: 17 }, (_, i) => `up/m${i}`) })).status, 400);
});

test("fields that only the server sets are refused", async () => {
  for (const field of ["id", "generation", "createdAt", "updatedAt", "lastError", "cooldownUntil", "tokenGeneration", "secrets"]) {
    const got = await call("PUT", `/${mine.machineId}/api/providers/${mine.connection.id}`, secrets.ADMIN_TOKEN, { [field]: field === "secrets" ? {} : 1 });
    assert.equal(got.status, 400, `${field}: ${got.text}`);
    assert.ok(got.body.error.param.includes(field), got.text);
  }
});

test("explain gives the plan of a call and makes none", async () => {
  up.clear();
  const got = await call("POST", `/${mine.machineId}/api/explain`, mine.manage, { path: "/v1/embeddings", body: { model: "up/test-embed", input: "a" } });
  assert.equal(got.status, 200);
  assert.deepEqual(got.body.plan.map((s) => [s.try, s.model, s.connectionId]), [[1, "up/test-embed", mine.connection.id]]);
  assert.equal(up.seen.length, 0);
});

test("export without secrets goes in again elsewhere", async () => {
  const { body } = await call("GET", `/${mine.machineId}/api/export`, secrets.ADMIN_TOKEN);
  const { machineId } = await operator.machine();
  const done = await call("POST", `/${machineId}/api/import`, secrets.ADMIN_TOKEN, { document: body });
  assert.equal(done.status, 200, done.text);
  const combos = (await call("GET", `/${machineId}/api/combos`, secrets.ADMIN_TOKEN)).body.data.map((c) => c.name).sort();
  assert.deepEqual(combos, (await call("GET", `/${mine.machineId}/api/combos`, secrets.ADMIN_TOKEN)).body.data.map((c) => c.name).sort());
});
