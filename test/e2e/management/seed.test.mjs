// Machines that are put into KV by hand. See docs/architecture.md.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { rows } from "../storage.mjs";
import { until } from "../wait.mjs";

const { after, before, beforeEach, test } = only("workerd", "kv");

let gw, up, kv, storage;
before(async () => {
  storage = await mkdtemp(join(tmpdir(), "weir-seed-"));
  up = await startUpstream();
  gw = await start({ persist: storage });
  ({ kv } = gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(storage, { recursive: true, force: true });
});
beforeEach(() => up.clear());

const seed = (more = {}) => ({
  connections: [
    {
      provider: "openai-compatible-0123abcd",
      apiKey: "sk-canary-upstream-secret",
      isActive: true,
      providerSpecificData: { baseUrl: up.url + "/v1", prefix: "seeded" },
    },
  ],
  apiKeys: ["sk-canaryoldkey"],
  combos: [],
  customModels: [],
  modelAliases: {},
  disabledModels: [],
  ...more,
});
const embed = (machine, key, model = "seeded/test-embed") =>
  gw.fetch(`/${machine}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, input: "a" }),
  });

test("a plain document is adopted on first use, sealed and published back", async () => {
  const id = "seededmachine001";
  await kv.put(`machine:${id}`, JSON.stringify(seed()));
  const res = await embed(id, "sk-canaryoldkey");
  assert.equal(res.status, 200, await res.text());
  assert.equal(up.seen[0].headers.authorization, "Bearer sk-canary-upstream-secret");
  await until("the sealed replica in KV", async () => {
    const text = await kv.get(`machine:${id}`);
    return !text.includes("canary") && JSON.parse(text).machineId === id;
  });
  assert.equal((await embed(id, "sk-canaryoldkey")).status, 200);
  assert.equal((await embed(id, "sk-anotherkey")).status, 401);
});

// A regression: write access to KV was enough to add a key to any machine.
test("a document put over a machine that exists is refused and overwritten, unless ALLOW_RESEED says otherwise", async () => {
  const operator = admin(gw),
    made = await operator.machine();
  await operator.connect(made.machineId, compatible(up));
  await kv.put("machine:seededmachine004", JSON.stringify(seed({ apiKeys: ["sk-firstoldkey"] })));
  assert.equal((await embed("seededmachine004", "sk-firstoldkey")).status, 200);
  for (const id of [made.machineId, "seededmachine004"]) {
    const replica = async () => {
      try {
        return JSON.parse(await kv.get(`machine:${id}`));
      } catch {
        return {};
      }
    };
    await until("the first replica", async () => (await replica()).machineId === id);
    await kv.put(`machine:${id}`, JSON.stringify(seed({ apiKeys: ["sk-planted00000000001"] })));
    await until("the replica in place of the document", async () => {
      await embed(id, "sk-planted00000000001");
      return (await replica()).machineId === id;
    });
    assert.equal((await embed(id, "sk-planted00000000001")).status, 401);
  }
  assert.equal((await embed(made.machineId, made.apiKey, "up/test-embed")).status, 200);
  assert.ok(
    gw.logs.some((l) => l.includes("ALLOW_RESEED")),
    gw.logs.join("\n"),
  );
});

test("a refused document does not stay in KV with its secrets", async () => {
  await kv.put("machine:seededmachine005", JSON.stringify(seed({ combos: [{}] })));
  assert.equal((await embed("seededmachine005", "sk-canaryoldkey")).status, 401);
  await until("the end of the document", async () => (await kv.get("machine:seededmachine005")) === null);
});

test("with ALLOW_RESEED a new document replaces an earlier one", async () => {
  await gw.close();
  gw = await start({ persist: storage, env: { ALLOW_RESEED: "true" } });
  ({ kv } = gw);
  assert.equal((await embed("seededmachine001", "sk-canaryoldkey")).status, 200);
  // KV's files keep the operator's own seeds for a while; the gateway wrote the rows.
  const sealed = (await rows(storage)).filter((r) => r.key.startsWith("conn:"));
  assert.ok(sealed.length > 0 && !sealed.some((r) => r.value.includes("sk-canary")));
  const id = "seededmachine003";
  await kv.put(`machine:${id}`, JSON.stringify(seed({ apiKeys: ["sk-firstoldkey"] })));
  assert.equal((await embed(id, "sk-firstoldkey")).status, 200);
  await until("the first replica", async () => JSON.parse(await kv.get(`machine:${id}`)).machineId === id);
  await kv.put(`machine:${id}`, JSON.stringify(seed({ apiKeys: ["sk-secondoldkey"] })));
  await until("the second key", async () => (await embed(id, "sk-secondoldkey")).status === 200);
  await until("the end of the first key", async () => (await embed(id, "sk-firstoldkey")).status === 401);
});

// This happens after a deployment that was rolled back. See
// docs/reference/reliability.md, F48, F61, F62.
test("a replica of a newer format, of another machine or of no format is ignored, and the object is called [F48, F61, F62]", async () => {
  const operator = admin(gw),
    machines = [];
  for (let i = 0; i < 4; i++) {
    const m = await operator.machine();
    await operator.connect(m.machineId, compatible(up, { apiKey: `sk-canary-of-${i}` }));
    await until(
      "the replica",
      async () => (JSON.parse((await kv.get(`machine:${m.machineId}`)) ?? "{}").connections ?? []).length === 1,
    );
    machines.push(m);
  }
  const replica = async (m) => JSON.parse(await kv.get(`machine:${m.machineId}`));
  const first = await replica(machines[0]),
    ahead = { generation: 999, publishedAt: Date.now() + 3600_000 };
  const stored = [
    JSON.stringify({ ...first, ...ahead, v: 2, connections: { future: [] } }),
    JSON.stringify({ ...first, ...ahead }), // the second is that of the first machine
    '{"v":1,',
    JSON.stringify({
      ...(await replica(machines[3])),
      zFuture: { a: 1 },
      connections: (await replica(machines[3])).connections.map((c) => ({ ...c, zFuture: [1] })),
    }),
  ];
  await gw.close();
  gw = await start({ persist: storage });
  ({ kv } = gw);
  for (const [i, m] of machines.entries()) await kv.put(`machine:${m.machineId}`, stored[i]);
  for (const [i, m] of machines.entries()) {
    up.clear();
    const res = await embed(m.machineId, m.apiKey, "up/test-embed");
    assert.equal(res.status, 200, `${i}: ${await res.text()}`);
    assert.equal(up.seen[0].headers.authorization, `Bearer sk-canary-of-${i}`, "a credential of another machine");
  }
  assert.ok(
    gw.logs.some((l) => l.includes("replica of format 2")) && gw.logs.some((l) => l.includes("another machine")),
    gw.logs.join("\n"),
  );
  // The next change publishes what this build reads.
  for (const m of machines)
    await admin(gw).call("POST", `/${m.machineId}/api/combos`, { name: "changed", models: ["up/test-embed"] });
  for (const m of machines)
    await until("a replica of this build", async () => {
      try {
        const r = await replica(m);
        return r.v === 1 && r.machineId === m.machineId && r.combos.length === 1;
      } catch {
        return false;
      }
    });
});
