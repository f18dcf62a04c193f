// Keys, identity and the operator's routes. See docs/reference/spec.md, 5.1 and 4.12.
// workerd: soak
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start, tenant } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { until } from "../wait.mjs";

let gw, up, one;
before(async () => {
  up = await startUpstream();
  gw = await start();
  one = await tenant(gw, up, { apiKey: "upstream-key-of-one" });
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => up.clear());

const body = JSON.stringify({ model: "up/test-embed", input: "a" });
const call = (path, headers, g = gw) =>
  g.fetch(path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
const bearer = (key) => ({ authorization: `Bearer ${key}` });

// mint makes a key with a right check, as only the gateway should.
function mint(machineId, keyId) {
  return `sk-${machineId}-${keyId}-${createHmac("sha256", secrets.API_KEY_SECRET)
    .update(machineId + keyId)
    .digest("hex")
    .slice(0, 8)}`;
}

test("a key has its documented form", () => {
  assert.match(one.machineId, /^[a-z0-9]{16}$/);
  const [, keyId] =
    new RegExp(`^sk-${one.machineId}-([a-z0-9]{26,})-[0-9a-f]{8}$`).exec(one.apiKey) ?? assert.fail(one.apiKey);
  assert.equal(one.apiKey, mint(one.machineId, keyId));
});

test("a key is taken from Authorization, in any case, and from x-api-key", async () => {
  for (const headers of [
    bearer(one.apiKey),
    { authorization: `bearer ${one.apiKey}` },
    { authorization: `BEARER ${one.apiKey}` },
    { "x-api-key": one.apiKey },
  ]) {
    assert.equal((await call("/v1/embeddings", headers)).status, 200);
  }
});

test("a key is edited, paused, resumed and rotated, and shows what it has used", async () => {
  const me = await tenant(gw, up, {});
  const api = (method, path, body) => admin(gw).call(method, `/${me.machineId}/api${path}`, body);
  const made = await api("POST", "/keys", { name: "Laptop" });
  const at = `/keys/${made.id}`;
  const status = async (key) => {
    const res = await call("/v1/embeddings", bearer(key));
    const { error } = await res.json();
    return [res.status, error?.code].filter(Boolean).join(" ");
  };
  const own = async (key) => {
    const res = await gw.fetch("/v1/usage", { headers: bearer(key) });
    return { status: res.status, ...(await res.json()) };
  };
  const becomes = (key, want) => until(`${want}`, async () => (await status(key)) === want);
  assert.equal(await status(made.apiKey), "200");
  await until("its use is counted", async () => (await own(made.apiKey)).requests === 1);
  const seen = await api("GET", at);
  assert.ok(Math.abs(seen.lastUsedAt - Date.now()) < 600_000, `${seen.lastUsedAt}`);
  assert.deepEqual([seen.requests, seen.requestsLastDay], [1, 1]);
  assert.equal((await api("GET", `${at}/usage?groupBy=hour,model`)).total.requests, 1);

  await api("PUT", at, { name: "Desktop", models: ["up/other"], allowUnknown: true });
  await becomes(made.apiKey, "403 model_not_allowed");
  await api("PUT", at, { models: null, paused: true });
  await becomes(made.apiKey, "403 key_paused");
  assert.deepEqual(await own(made.apiKey).then((u) => [u.status, u.error.code]), [403, "key_paused"]);
  await api("PUT", at, { paused: false });
  await becomes(made.apiKey, "200");

  const rotated = await api("POST", `${at}/rotate`, { overlapSeconds: 3600 });
  assert.notEqual(rotated.apiKey, made.apiKey);
  assert.deepEqual([rotated.id, rotated.name, rotated.earlier.last4], [made.id, "Desktop", made.last4]);
  await becomes(rotated.apiKey, "200");
  assert.equal(await status(made.apiKey), "200");
  const again = await api("POST", `${at}/rotate`, { overlapSeconds: 0 });
  await becomes(made.apiKey, "401 invalid_api_key");
  await becomes(rotated.apiKey, "401 invalid_api_key");
  await becomes(again.apiKey, "200");
  assert.ok((await own(again.apiKey)).requests >= 1, "its use goes on");
  assert.equal((await gw.fetch("/v1/usage")).status, 401);
});

test("a key that has reached its limit sees the limit", async () => {
  const me = await tenant(gw, up, {});
  const { apiKey } = await admin(gw).call("POST", `/${me.machineId}/api/keys`, { dailyMax: 2 });
  const limit = async () => {
    const res = await gw.fetch("/v1/usage", { headers: bearer(apiKey) });
    assert.equal(res.status, 200);
    const { limits } = await res.json();
    assert.ok(limits[0].resetAt > 0);
    return limits.map((l) => `${l.unit} ${l.window} ${l.limit} ${l.remaining}`).join();
  };
  assert.equal(await limit(), "requests day 2 2");
  for (let i = 0; i < 2; i++) await (await call("/v1/embeddings", bearer(apiKey))).text();
  await until("the limit is reached", async () => (await limit()) === "requests day 2 0");
  await until("calls are refused", async () => {
    const res = await call("/v1/embeddings", bearer(apiKey));
    await res.text();
    return res.status === 429;
  });
  assert.match(await limit(), /^requests day 2 0$/);
});

test("a two-part key on a bare path is 400 and points to the other form", async () => {
  const res = await call("/v1/embeddings", bearer("sk-oldrandomkey0123456789"));
  assert.equal(res.status, 400);
  assert.match((await res.json()).error.message, /\{machineId\}\/v1\/embeddings/);
  assert.equal((await call(`/${one.machineId}/v1/embeddings`, bearer("sk-oldrandomkey0123456789"))).status, 401);
});

test("with REQUIRE_API_KEY=false the path form needs no key, the bare form still does", async () => {
  const open = await start({ env: { REQUIRE_API_KEY: "false" } });
  try {
    const m = await tenant(open, up, { apiKey: "upstream-key-open" });
    assert.equal((await call(`/${m.machineId}/v1/embeddings`, {}, open)).status, 200);
    assert.equal(up.seen.at(-1).headers.authorization, "Bearer upstream-key-open");
    assert.equal((await call("/v1/embeddings", {}, open)).status, 401);
    assert.equal((await call("/zzzzzzzzzzzzzzzz/v1/embeddings", {}, open)).status, 401);
    assert.equal((await call(`/${m.machineId}/v1/embeddings`, bearer("sk-wrong-key-here"), open)).status, 401);
  } finally {
    await open.close();
  }
});

only("workerd", "settings").test(
  "with a missing or short worker secret every route but /health is 503 misconfigured",
  async () => {
    for (const env of [{ ADMIN_TOKEN: undefined }, { API_KEY_SECRET: "" }, { CREDENTIALS_KEY: "x".repeat(31) }]) {
      const g = await start({ env });
      try {
        assert.equal((await g.fetch("/health")).status, 200);
        for (const path of ["/v1/embeddings", "/api/machines", `/${one.machineId}/v1/embeddings`]) {
          const res = await call(path, bearer(one.apiKey), g);
          assert.equal(res.status, 503, path);
          assert.equal((await res.json()).error.code, "misconfigured");
        }
      } finally {
        await g.close();
      }
    }
  },
);

test("connections: created, listed without secrets, changed, deleted", async () => {
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  const path = `/${machineId}/api/providers`;
  const made = await operator.call("POST", path, compatible(up, { apiKey: "canary-connection-key-9876" }));
  assert.ok(made.id);
  const listed = await operator.call("GET", path);
  assert.ok(!JSON.stringify([made, listed]).includes("canary-connection-key"));
  const list = Array.isArray(listed) ? listed : (listed.data ?? listed.connections ?? listed.providers);
  assert.equal(list.length, 1);
  assert.equal(list[0].id, made.id);
  assert.equal(list[0].hasKey, true);
  await operator.call("PUT", `${path}/${made.id}`, { isActive: false });
  assert.equal((await operator.call("GET", path + "/" + made.id)).isActive, false);
  await operator.call("DELETE", `${path}/${made.id}`);
  await assert.rejects(operator.call("GET", `${path}/${made.id}`), { status: 404 });
  assert.equal((await call("/v1/embeddings", bearer(apiKey))).status, 400);
});

test("without ALLOW_PRIVATE_UPSTREAMS a private address is refused", async () => {
  const g = await start({ env: { ALLOW_PRIVATE_UPSTREAMS: undefined } });
  try {
    const operator = admin(g),
      { machineId } = await operator.machine();
    for (const baseUrl of [
      "http://127.0.0.1:1/v1",
      "https://127.0.0.1/v1",
      "https://localhost/v1",
      "https://10.0.0.1/",
      "https://0x7f.1/",
      "https://[::1]/",
      "https://169.254.169.254/",
      "http://example.com/v1",
      "https://a.internal/v1",
    ]) {
      await assert.rejects(
        operator.connect(machineId, { ...compatible(up), providerSpecificData: { baseUrl, prefix: "up" } }),
        { status: 400 },
        baseUrl,
      );
    }
  } finally {
    await g.close();
  }
});

test("a deleted machine is gone until it is restored", async () => {
  const operator = admin(gw),
    m = await tenant(gw, up);
  const list = JSON.stringify(await operator.call("GET", "/api/machines"));
  assert.ok(list.includes(m.machineId));
  await operator.call("DELETE", `/api/machines/${m.machineId}`);
  assert.ok(!JSON.stringify(await operator.call("GET", "/api/machines")).includes(m.machineId));
  await until(
    "the end of its key",
    async () => (await call("/v1/embeddings", bearer(m.apiKey))).status === 401,
    65_000,
    1000,
  );
  const deleted = async () =>
    (await operator.call("GET", `/api/machines?deleted=true&q=${m.machineId}`)).data.map(
      (d) => d.restoreUntil - d.deletedAt,
    );
  assert.deepEqual(await deleted(), [7 * 86_400_000]);
  for (const path of ["export", "usage"])
    await assert.rejects(operator.call("GET", `/${m.machineId}/api/${path}`), { status: 404 });
  await assert.rejects(operator.call("DELETE", `/api/machines/${m.machineId}`), { status: 404 });
  const { machineId } = await operator.call("POST", `/api/machines/${m.machineId}/restore`);
  assert.equal(machineId, m.machineId);
  await until(
    "its key again",
    async () => (await call("/v1/embeddings", bearer(m.apiKey))).status !== 401,
    65_000,
    1000,
  );
  await operator.call("DELETE", `/api/machines/${m.machineId}`);
  await operator.call("DELETE", `/api/machines/${m.machineId}?now=true`);
  await assert.rejects(operator.call("POST", `/api/machines/${m.machineId}/restore`), { status: 404 });
  // The registry forgets the machine after the answer.
  await until("the end of its row", async () => (await deleted()).length === 0, 30_000);
});

test("the warm-up of a new isolate succeeds", () => {
  assert.deepEqual(
    gw.logs.filter((l) => l.includes('"warm-up failed"')),
    [],
  );
});
