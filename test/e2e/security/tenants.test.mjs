// Many tenants in one isolate: nothing crosses, and nothing at rest is plain.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { vector } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, replicas, secrets, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { until } from "../wait.mjs";

const machines = 100;
let gw, up;
const all = [];
before(async () => {
  up = await startUpstream();
  gw = await start();
  const operator = admin(gw);
  for (let i = 0; i < machines; i++) {
    const upstreamKey = `canary-upstream-key-${i}-${((i * 2654435761) >>> 0).toString(36)}`;
    const { machineId, apiKey } = await operator.machine({ name: `tenant ${i}` });
    await operator.connect(machineId, compatible(up, { apiKey: upstreamKey, path: `/tenant-${i}/v1` }));
    all.push({ i, machineId, apiKey, upstreamKey });
  }
});
after(async () => {
  await gw?.close();
  await up?.close();
});

async function embed(tenant, n) {
  const input = `canary of ${tenant.i}, call ${n}`;
  const bare = n % 2 === 0;
  const res = await gw.fetch(bare ? "/v1/embeddings" : `/${tenant.machineId}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${tenant.apiKey}` },
    // A delay that varies makes the answers overtake each other.
    body: JSON.stringify({ model: `up/model-of-${tenant.i}!delay=${(n * 37) % 60}`, input }),
  });
  const text = await res.text();
  assert.equal(res.status, 200, text);
  const got = JSON.parse(text);
  assert.deepEqual(got.data[0].embedding, [...vector(input)]);
  assert.ok(got.model.startsWith(`up/model-of-${tenant.i}!`), got.model);
}

test(`interleaved calls of ${machines} machines never cross`, { timeout: 300_000 }, async () => {
  let next = 0;
  const calls = machines * 20;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      for (let n = next++; n < calls; n = next++) await embed(all[(n * 61) % machines], n);
    }),
  );
  assert.equal(up.seen.length, calls);
  for (const r of up.seen) {
    const i = Number(/^\/tenant-(\d+)\/v1\/embeddings$/.exec(r.path)[1]);
    assert.equal(r.headers.authorization, `Bearer ${all[i].upstreamKey}`);
    assert.match(r.json.input, new RegExp(`^canary of ${i},`));
    assert.equal(r.json.model.split("!")[0], `model-of-${i}`);
    assert.ok(!r.rawHeaders.join("\n").includes(all[i].apiKey), "a gateway key went up");
  }
});

// files returns every file under a folder.
function files(dir) {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((f) => f.isFile())
    .map((f) => join(f.parentPath, f.name));
}

test("the storage holds no plain secret, in no encoding", async () => {
  // KV is read as a dump would; the files hold the objects' rows.
  const dump = (await replicas(gw, machines)).map(({ name, text }) => Buffer.from(name + text));
  const onDisk = files(gw.dir);
  for (const f of onDisk) dump.push(readFileSync(f));
  const bytes = Buffer.concat(dump).toString("latin1");
  assert.ok(
    all.every((t) => bytes.includes(t.machineId)),
    "the dump is not of these machines",
  );
  const found = [];
  for (const secret of [...Object.values(secrets), ...all.flatMap((t) => [t.apiKey, t.upstreamKey])]) {
    const b = Buffer.from(secret);
    const forms = [
      secret,
      b.toString("base64").replace(/=+$/, "").slice(0, -1),
      b.toString("base64url").slice(0, -1),
      b.toString("hex"),
      b.toString("hex").toUpperCase(),
      b.toString("utf16le"),
      encodeURIComponent(secret),
      [...secret].reverse().join(""),
    ];
    for (const form of forms) if (bytes.includes(Buffer.from(form, "latin1").toString("latin1"))) found.push(secret);
  }
  assert.deepEqual(found, []);
});

test("logs hold no secret, no body and no query", () => {
  const text = gw.logs.join("\n");
  for (const t of all) assert.ok(!text.includes(t.apiKey) && !text.includes(t.upstreamKey));
  assert.ok(!text.includes("canary of"));
});

const ofKV = only("workerd", "kv");
ofKV.test("a document seeded into KV is adopted, sealed and published back", async () => {
  const id = "seeded0123456789",
    { kv } = gw;
  await kv.put(
    `machine:${id}`,
    JSON.stringify({
      connections: [{ ...compatible(up, { apiKey: "canary-seeded-upstream-key", prefix: "seed" }), isActive: true }],
      apiKeys: ["sk-canaryseededgatewaykey"],
      modelAliases: { small: "seed/test-embed" },
    }),
  );
  const res = await gw.fetch(`/${id}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-canaryseededgatewaykey" },
    body: JSON.stringify({ model: "small", input: "a" }),
  });
  const text = await res.text();
  assert.equal(res.status, 200, text);
  assert.equal(up.seen.at(-1).headers.authorization, "Bearer canary-seeded-upstream-key");
  await until("the sealed replica", async () => !(await kv.get(`machine:${id}`)).includes("canary"));
});

ofKV.test("an invalid seed is refused as a whole, with a log line that names the field", async () => {
  const id = "badseed012345678",
    { kv } = gw;
  await kv.put(
    `machine:${id}`,
    JSON.stringify({ connections: [compatible(up)], apiKeys: ["sk-anotherseededkey"], combos: "no list" }),
  );
  const res = await gw.fetch(`/${id}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer sk-anotherseededkey" },
    body: JSON.stringify({ model: "up/test-embed", input: "a" }),
  });
  assert.ok(res.status === 401 || res.status === 503, String(res.status));
  assert.match(gw.logs.join("\n"), /combos/);
});
