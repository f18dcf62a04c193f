// The management API: access, answers, and acknowledged changes that survive a
// killed process. See docs/reference/spec.md, 4.12.
// workerd: soak
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { start as startIdp } from "../../upstream/idp.mjs";
import { start as startIssuer } from "../../upstream/issuer.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const signIn = "openai-compatible-0a0a0001";
let gw, up, idp, operator, mine, other;
before(async () => {
  up = await startUpstream();
  idp = await startIdp();
  issuer = await startIssuer();
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
        },
      ]),
    },
  });
  operator = admin(gw);
  mine = await tenant();
  other = await tenant();
});
after(async () => {
  await gw?.close();
  await up?.close();
  await idp?.close();
  await issuer?.close();
});

// tenant creates a machine with a connection and a key of each scope.
async function tenant() {
  const { machineId, apiKey } = await operator.machine();
  const connection = await operator.connect(machineId, compatible(up, { apiKey: "sk-canary-upstream-key" }));
  const manage = await operator.call("POST", `/${machineId}/api/keys`, { name: "manager", scopes: ["manage"] });
  return { machineId, data: apiKey, manage: manage.key ?? manage.apiKey, connection };
}

async function call(method, path, token, body, headers = {}) {
  const res = await gw.fetch(path, {
    method,
    headers: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await res.text();
  const json = /json/.test(res.headers.get("content-type"));
  return { status: res.status, headers: res.headers, text, body: json ? JSON.parse(text) : null };
}

// The routes with a valid call for each: [route, call], where call returns the
// path after /api and the body, and first creates what the call needs.
let n = 0;
const add = (path, body) => operator.call("POST", `/${mine.machineId}/api/${path}`, body);
const connection = () =>
  add(
    "providers",
    compatible(up, { apiKey: "sk-canary-upstream-key", suffix: (0x10000000 + n++).toString(16), prefix: `p${n}` }),
  );
const combo = () => add("combos", { name: `combo-${n++}`, models: ["up/test-chat"] });
const budget = () => ({ name: `budget-${n++}`, unit: "requests", limit: 10_000, window: "day" });
const newTarget = () =>
  add("destinations", { kind: "webhook", settings: { url: `${up.url}/hook?sig=canary-target-1` } });
let shared; // a machine has few destinations
const target = async () => {
  shared ??= await newTarget();
  return shared.id;
};
let issuer; // of the identity providers
const provider = () => ({ name: "Acme", issuer: issuer.url, clientId: "weir", clientSecret: "canary", rules: [] });
// identityProvider returns the id of one; a gateway has few of them.
const identityProvider = async () =>
  (await operator.call("GET", "/api/identity-providers")).data[0]?.id ??
  (await operator.call("POST", "/api/identity-providers", provider())).id;
const invitation = () => add("invitations", { role: "viewer" });
// person returns the id of someone who has accepted an invitation.
const person = async () => {
  const { link } = await invitation();
  const res = await call(
    "POST",
    "/api/session",
    "",
    { invitation: link.split("#/invitation/")[1], name: "Ada" },
    { origin: gw.url },
  );
  assert.equal(res.status, 200, res.text);
  return res.body.personId;
};
let device; // an address may begin few sign-ins
const userCode = async () => {
  device ??= await call("POST", "/api/device", "", { name: "laptop" });
  return device.body.user_code;
};
// requested makes a call and returns its id once it is listed.
const requested = async () => {
  const sent = await call("POST", "/v1/embeddings", mine.data, { model: "up/test-embed", input: "a" });
  const id = sent.headers.get("x-request-id");
  const list = `/${mine.machineId}/api/requests?q=${id}`;
  await until("the request in the list", async () => (await operator.call("GET", list)).data.length === 1);
  return id;
};
// captured makes a call whose bodies are stored, and returns its id.
async function captured() {
  await operator.call("PATCH", `/${mine.machineId}/api/settings`, { capturePercent: 100 });
  const res = await call("POST", "/v1/embeddings", mine.data, own.body);
  const id = res.headers.get("x-request-id");
  await until("the capture", async () =>
    (await operator.call("GET", `/${mine.machineId}/api/captures`)).data.some((c) => c.id === id),
  );
}
const own = { path: "/v1/embeddings", body: { model: "up/test-embed", input: "a" } };
const routes = {
  "GET /api/providers": () => ["/providers"],
  "POST /api/providers": () => ["/providers", { provider: "groq", apiKey: "gsk-canary-key-1" }],
  "GET /api/providers/{id}": () => [`/providers/${mine.connection.id}`],
  "PUT /api/providers/{id}": () => [`/providers/${mine.connection.id}`, { name: "renamed" }],
  "DELETE /api/providers/{id}": async () => [`/providers/${(await connection()).id}`],
  "GET /api/providers/{id}/models": () => [`/providers/${mine.connection.id}/models`],
  "POST /api/providers/{id}/test": () => [`/providers/${mine.connection.id}/test`, { model: "test-chat" }],
  "POST /api/providers/{id}/restore": async () => {
    const { id } = await connection();
    await operator.call("DELETE", `/${mine.machineId}/api/providers/${id}`);
    return [`/providers/${id}/restore`, {}];
  },
  "GET /api/combos": () => ["/combos"],
  "POST /api/combos": () => ["/combos", { name: `combo-${n++}`, models: ["up/test-chat"] }],
  "GET /api/combos/{id}": async () => [`/combos/${(await combo()).id}`],
  "PUT /api/combos/{id}": async () => [`/combos/${(await combo()).id}`, { models: ["up/test-embed"] }],
  "DELETE /api/combos/{id}": async () => [`/combos/${(await combo()).id}`],
  "GET /api/keys": () => ["/keys"],
  "POST /api/keys": () => ["/keys", { name: "more" }],
  "GET /api/keys/{id}": async () => [`/keys/${(await add("keys", { name: "one" })).id}`],
  "PUT /api/keys/{id}": async () => [`/keys/${(await add("keys", { name: "one" })).id}`, { name: "two", paused: true }],
  "POST /api/keys/{id}/rotate": async () => [`/keys/${(await add("keys", { name: "one" })).id}/rotate`, {}],
  "GET /api/keys/{id}/usage": async () => [`/keys/${(await add("keys", { name: "one" })).id}/usage?groupBy=hour`],
  "GET /api/keys/{id}/networks": async () => [`/keys/${(await add("keys", { name: "one" })).id}/networks`],
  "DELETE /api/keys/{id}": async () => [`/keys/${(await add("keys", { name: "one" })).id}`],
  "GET /api/budgets": () => ["/budgets"],
  "POST /api/budgets": () => ["/budgets", budget()],
  "GET /api/budgets/{id}": async () => [`/budgets/${(await add("budgets", budget())).id}`],
  "PUT /api/budgets/{id}": async () => [`/budgets/${(await add("budgets", budget())).id}`, { limit: 20_000 }],
  "DELETE /api/budgets/{id}": async () => [`/budgets/${(await add("budgets", budget())).id}`],
  "GET /api/destinations": () => ["/destinations"],
  "POST /api/destinations": () => ["/destinations", { kind: "slack", settings: { url: "https://hooks.slack.com/x" } }],
  "GET /api/destinations/{id}": async () => [`/destinations/${await target()}`],
  "PUT /api/destinations/{id}": async () => [`/destinations/${await target()}`, { enabled: false }],
  "DELETE /api/destinations/{id}": async () => [`/destinations/${(await newTarget()).id}`],
  "GET /api/destinations/{id}/deliveries": async () => [`/destinations/${await target()}/deliveries`],
  "POST /api/destinations/{id}/test": async () => [`/destinations/${await target()}/test`, {}],
  "POST /api/compare": async () => [
    "/compare",
    { destinations: { [await target()]: { url: "https://other.example.com" } } },
  ],
  "GET /api/device/{code}": async () => [`/device/${await userCode()}`],
  // An answer ends the sign-in: this one says nothing, which is 400 for those who may answer.
  "POST /api/device/{code}": async () => [`/device/${await userCode()}`, {}],
  "GET /api/models/list/{kind}": () => ["/models/list/embedding"],
  "GET /api/models/info": () => ["/models/info?id=openai/text-embedding-3-small"],
  "GET /api/models/alias": () => ["/models/alias"],
  "PUT /api/models/alias": () => ["/models/alias", { alias: "fast", model: "up/test-chat" }],
  "DELETE /api/models/alias": async () => {
    await operator.call("PUT", `/${mine.machineId}/api/models/alias`, { alias: "gone", model: "up/x" });
    return ["/models/alias?alias=gone"];
  },
  "GET /api/models/custom": () => ["/models/custom"],
  "POST /api/models/custom": () => ["/models/custom", { id: `my-model-${n++}`, providerAlias: "up" }],
  "DELETE /api/models/custom": async () => {
    await add("models/custom", { id: "gone", providerAlias: "up" });
    return ["/models/custom?id=gone&providerAlias=up"];
  },
  "GET /api/models/disabled": () => ["/models/disabled"],
  "POST /api/models/disabled": () => ["/models/disabled", { providerAlias: "up", ids: ["hidden"] }],
  "DELETE /api/models/disabled": async () => {
    await add("models/disabled", { providerAlias: "up", ids: ["gone"] });
    return ["/models/disabled?providerAlias=up&id=gone"];
  },
  "GET /api/models/availability": () => ["/models/availability"],
  "GET /api/quota": () => ["/quota"],
  "GET /api/settings": () => ["/settings"],
  "PATCH /api/settings": () => ["/settings", { strategy: "round-robin" }],
  "GET /api/setup": () => ["/setup"],
  "POST /api/setup": () => ["/setup", { tool: "codex", model: "up/test-chat" }],
  "GET /api/audit": () => ["/audit"],
  "GET /api/health": () => ["/health"],
  "GET /api/health/providers": () => ["/health/providers"],
  "GET /api/health/timeline": () => ["/health/timeline?groupBy=connection"],
  "GET /api/usage": () => ["/usage?period=30d&group=model"],
  "GET /api/usage/recent": () => ["/usage/recent"],
  "GET /api/requests": () => ["/requests"],
  "GET /api/requests.csv": () => ["/requests.csv"],
  "GET /api/usage.csv": () => ["/usage.csv"],
  "GET /api/requests/{id}": async () => [`/requests/${await requested()}`],
  "GET /api/captures": () => ["/captures"],
  "DELETE /api/captures": () => ["/captures"],
  "GET /api/captures/{id}": async () => [`/captures/${await captured()}`],
  "DELETE /api/captures/{id}": async () => [`/captures/${await captured()}`],
  "GET /api/export": () => ["/export"],
  "POST /api/export": () => ["/export", { passphrase: "a long enough passphrase" }],
  "POST /api/import": async () => [
    "/import",
    { document: await operator.call("GET", `/${other.machineId}/api/export`) },
  ],
  "GET /api/catalog/providers": () => ["/catalog/providers"],
  "POST /api/oauth/{provider}/authorize": () => [`/oauth/${signIn}/authorize`, {}],
  "POST /api/oauth/{provider}/device": () => [`/oauth/${signIn}/device`, {}],
  "POST /api/oauth/{provider}/poll": () => [`/oauth/${signIn}/poll`, {}],
  "POST /api/oauth/{provider}/cancel": () => [`/oauth/${signIn}/cancel`, {}],
  "POST /api/explain": () => ["/explain", own],
  "GET /api/people": () => ["/people"],
  "PUT /api/people/{id}": async () => [`/people/${await person()}`, { role: "editor" }],
  "DELETE /api/people/{id}": async () => [`/people/${await person()}`],
  "POST /api/invitations": () => ["/invitations", { role: "member" }],
  "DELETE /api/invitations/{id}": async () => [`/invitations/${(await invitation()).id}`],
  "GET /api/identity-providers": () => ["/identity-providers"],
  "POST /api/identity-providers": () => ["/identity-providers", provider()],
  "PUT /api/identity-providers/{id}": async () => [`/identity-providers/${await identityProvider()}`, provider()],
  "DELETE /api/identity-providers/{id}": async () => [`/identity-providers/${await identityProvider()}`],
  "POST /api/identity-providers/{id}/test": async () => [`/identity-providers/${await identityProvider()}/test`, {}],
  "DELETE /api/people/{id}/sessions": async () => [`/people/${await person()}/sessions`],
  "DELETE /api/sessions": () => ["/sessions"],
  "GET /api/passkeys": () => ["/passkeys"],
  "POST /api/passkeys": () => ["/passkeys", {}],
  "POST /api/passkeys/challenge": () => ["/passkeys/challenge", {}],
  "PUT /api/passkeys/{id}": () => ["/passkeys/x", { name: "Phone" }],
  "DELETE /api/passkeys/{id}": () => ["/passkeys/x"],
  "GET /api/sign-ins": () => ["/sign-ins"],
  "GET /api/version": () => ["/version"],
  "GET /api/machines": () => ["/machines"],
  "POST /api/machines": () => ["/machines", {}],
  "PATCH /api/machines/{id}": () => [`/machines/${other.machineId}`, { name: "renamed" }],
  "DELETE /api/machines/{id}": async () => [`/machines/${(await operator.machine()).machineId}`],
  "POST /api/machines/{id}/restore": async () => {
    const { machineId } = await operator.machine();
    await operator.call("DELETE", `/api/machines/${machineId}`);
    return [`/machines/${machineId}/restore`];
  },
};

// signIns ask for no credential: see the dashboard's tests, device.test.mjs, oidc.test.mjs and passkeys.test.mjs.
const signIns = [
  ...["/api/session", "/api/device", "/api/device/token", "/api/auth", "/api/sign-in/{id}", "/api/token"],
  ...["/api/sign-in/passkey", "/api/session/passkey"],
];

// served lists the management routes of the program: "GET /api/keys", ….
function served() {
  const { paths } = JSON.parse(readFileSync(new URL("../../../docs/reference/openapi.json", import.meta.url), "utf8"));
  return Object.keys(paths)
    .filter((path) => path.startsWith("/api/") && !signIns.includes(path))
    .flatMap((path) => Object.keys(paths[path]).map((method) => `${method.toUpperCase()} ${path}`))
    .sort();
}

const golden = new URL("testdata/management.json", import.meta.url);

test("every management route has the golden status for every caller", async () => {
  assert.deepEqual(Object.keys(routes).sort(), served(), "the table has every route of the program");
  const at = (path) => `/${mine.machineId}/api${path}`,
    bare = (path) => `/api${path}`;
  const callers = [
    ["nothing", at, ""],
    ["garbage", at, "sk-garbage"],
    ["a data key", at, mine.data],
    ["another machine's manage key", at, other.manage],
    ["nothing, bare", bare, ""],
    ["garbage, bare", bare, "sk-garbage"],
    ["a data key, bare", bare, mine.data],
    ["the manage key", at, mine.manage],
    ["the manage key, bare", bare, mine.manage],
    ["the operator", at, secrets.ADMIN_TOKEN],
    ["the operator, bare", bare, secrets.ADMIN_TOKEN],
  ];
  const table = {};
  for (const [route, make] of Object.entries(routes)) {
    const method = route.split(" ")[0];
    for (const [who, place, token] of callers) {
      const [path, body] = await make();
      const got = await call(method, place(path), token, body);
      const allowed = got.status < 300;
      assert.ok(!got.text.includes("canary"), `${route} shows a secret`);
      assert.equal(got.headers.get("access-control-allow-origin"), null);
      if (!allowed && got.text) assert.deepEqual(Object.keys(got.body), ["error"], got.text);
      (table[route] ??= {})[got.status] = [...(table[route][got.status] ?? []), who];
    }
    const preflight = await gw.fetch(route.split(" ")[1].replace(/\{.*?\}/g, "x"), {
      method: "OPTIONS",
      headers: { origin: "https://evil.example" },
    });
    assert.ok(
      preflight.status >= 400 && !preflight.headers.get("access-control-allow-origin"),
      `${route} answers a preflight`,
    );
  }
  const lines = Object.entries(table).map(
    ([route, by]) =>
      `  ${JSON.stringify(route)}: {\n${Object.entries(by)
        .map(([status, who]) => `    "${status}": ${JSON.stringify(who)}`)
        .join(",\n")}\n  }`,
  );
  const text = `{\n${lines.join(",\n")}\n}\n`;
  if (process.env.GOLDEN === "update") writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, "utf8"));
});

test("a stale write is refused with a reason", async () => {
  const path = `/${mine.machineId}/api/providers/${mine.connection.id}`;
  const first = await call("GET", path, secrets.ADMIN_TOKEN),
    etag = first.headers.get("etag");
  assert.ok(etag);
  const changed = await call("PUT", path, secrets.ADMIN_TOKEN, { name: "second" }, { "if-match": etag });
  assert.equal(changed.status, 200);
  assert.equal((await call("PUT", path, secrets.ADMIN_TOKEN, { name: "third" }, { "if-match": etag })).status, 412);
  assert.equal((await call("GET", path, secrets.ADMIN_TOKEN)).body.name, "second");
});

test("a mutation that is sent twice is applied once", async () => {
  const path = `/${mine.machineId}/api/keys`,
    headers = { "idempotency-key": "mutation-1" };
  const a = await call("POST", path, secrets.ADMIN_TOKEN, { name: "once" }, headers);
  const b = await call("POST", path, secrets.ADMIN_TOKEN, { name: "once" }, headers);
  assert.equal(a.status, 201);
  assert.equal(b.body.id, a.body.id);
  const keys = (await call("GET", path, secrets.ADMIN_TOKEN)).body.data.filter((k) => k.name === "once");
  assert.equal(keys.length, 1);
});

test("concurrent writers lose nothing, and every change has its audit record", async () => {
  const { machineId } = await operator.machine(),
    writers = 8,
    each = 25;
  const send = async (w) => {
    for (let i = 0; i < each; i++) {
      const got = await call("PUT", `/${machineId}/api/models/alias`, secrets.ADMIN_TOKEN, {
        alias: `a-${w}-${i}`,
        model: `openai/m-${w}-${i}`,
      });
      assert.equal(got.status, 200, got.text);
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, w) => send(w)));
  const { body } = await call("GET", `/${machineId}/api/models/alias`, secrets.ADMIN_TOKEN);
  const aliases = body.data ?? body.aliases ?? body;
  assert.equal(Object.keys(aliases).length, writers * each);
  let seen = 0,
    query = "";
  for (let page = 0; page < 20; page++) {
    const { body: audit } = await call("GET", `/${machineId}/api/audit${query}`, secrets.ADMIN_TOKEN);
    seen += audit.data.filter((r) => r.action === "PUT /api/models/alias").length;
    if (!audit.has_more) break;
    query = `?before=${audit.data.at(-1).seq}`;
  }
  assert.equal(seen, writers * each);
});

test("an export with a passphrase can be imported elsewhere and serves there", async () => {
  const passphrase = "correct horse battery staple";
  const { machineId: from } = await operator.machine();
  await operator.connect(from, compatible(up, { apiKey: "sk-canary-of-the-export" }));
  const sealed = await call("POST", `/${from}/api/export`, secrets.ADMIN_TOKEN, { passphrase });
  assert.equal(sealed.status, 200, sealed.text);
  assert.ok(
    !sealed.text.includes("canary") && !sealed.text.includes(Buffer.from("sk-canary").toString("base64").slice(0, 10)),
  );
  const { machineId, apiKey } = await operator.machine();
  const wrong = await call("POST", `/${machineId}/api/import`, secrets.ADMIN_TOKEN, {
    document: sealed.body,
    passphrase: "wrong horse battery staple",
  });
  assert.equal(wrong.status, 400, wrong.text);
  assert.equal(
    (await call("POST", `/${machineId}/api/import`, secrets.ADMIN_TOKEN, { document: sealed.body, passphrase })).status,
    200,
  );
  up.clear();
  const send = () => call("POST", "/v1/embeddings", apiKey, { model: "up/test-embed", input: "a" });
  await until("the import in the isolate", async () => (await send()).status === 200);
  assert.equal(up.seen.at(-1).headers.authorization, "Bearer sk-canary-of-the-export");
});

test("a machine moves with its keys, which serve under the same id", async () => {
  const passphrase = "correct horse battery staple";
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up));
  const sealed = await call("POST", `/${machineId}/api/export`, secrets.ADMIN_TOKEN, { passphrase });
  assert.equal(sealed.status, 200, sealed.text);
  const send = () => call("POST", "/v1/embeddings", apiKey, { model: "up/test-embed", input: "a" });
  const take = (id) =>
    call("POST", `/${id}/api/import`, secrets.ADMIN_TOKEN, { document: sealed.body, passphrase, keys: true });
  const other = await take((await operator.machine()).machineId);
  assert.deepEqual([other.body.keys, other.body.keysUnusable], [0, 1], other.text);
  const again = { name: "moved", machineId };
  assert.equal((await call("POST", "/api/machines", secrets.ADMIN_TOKEN, again)).status, 409);
  assert.equal((await call("DELETE", `/api/machines/${machineId}?now=true`, secrets.ADMIN_TOKEN)).status, 204);
  await until("the machine is gone", async () => (await send()).status === 401);
  assert.equal((await call("POST", "/api/machines", secrets.ADMIN_TOKEN, again)).status, 201);
  const moved = await take(machineId);
  assert.deepEqual([moved.body.keys, moved.body.keysUnusable], [1, undefined], moved.text);
  await until("the key serves", async () => (await send()).status === 200);
});

test("the routes of /v1 and /v1beta take the keys that the description names", async () => {
  const document = JSON.parse(readFileSync(new URL("../../../docs/reference/openapi.json", import.meta.url), "utf8"));
  const headers = { key: "authorization", xApiKey: "x-api-key", googKey: "x-goog-api-key" };
  const wrong = [];
  for (const [pattern, methods] of Object.entries(document.paths)) {
    if (!/^\/v1/.test(pattern)) continue;
    for (const [method, { security }] of Object.entries(methods)) {
      const named = security.flatMap(Object.keys);
      for (const [name, header] of Object.entries(headers)) {
        const key = name === "key" ? `Bearer ${mine.data}` : mine.data;
        const init = { method: method.toUpperCase(), headers: { [header]: key, "content-type": "application/json" } };
        if (method === "post") init.body = "[]";
        const res = await gw.fetch(pattern.replace(/\{\w+\}/g, "x"), init);
        await res.text();
        if ((res.status === 401) === named.includes(name)) wrong.push(`${method} ${pattern} ${name}: ${res.status}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});
