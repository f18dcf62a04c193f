// CREDENTIALS_KEY is replaced while the gateway serves: two keys live, the
// objects reseal what the old one sealed, and then it can be removed. See
// docs/reference/reliability.md, T50, F60, F61.
import assert from "node:assert/strict";
import { createDecipheriv, generateKeyPairSync, pbkdf2Sync, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, replicas, start, unusable } from "../gateway.mjs";
import { elapse, rows } from "../storage.mjs";
import { until } from "../wait.mjs";

const A = "old-credentials-key-0123456789abcdef0123456",
  B = "new-credentials-key-0123456789abcdef0123456";
const passphrase = "a passphrase of the test",
  total = 50,
  hour = 3600_000;

let gw, up, dir, serviceKey;
const secret = () => `canary-${randomBytes(12).toString("hex")}`;
const open = async (CREDENTIALS_KEY) => {
  gw = await start({ persist: dir, env: { CREDENTIALS_KEY } });
};
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "weir-rotation-"));
  up = await startUpstream();
  serviceKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" });
  await open(A);
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(dir, { recursive: true, force: true });
});

// kinds are connections with every kind of secret.
const kinds = [
  (i) => compatible(up, { prefix: `p${i}`, suffix: `0000${(i + 0x1000).toString(16)}`, apiKey: secret() }),
  () => ({
    provider: "vertex",
    accessToken: secret(),
    refreshToken: secret(),
    clientSecret: secret(),
    providerSpecificData: { project: "p", location: "l", clientId: "client" },
  }),
  () => ({
    provider: "bedrock",
    authType: "aws",
    apiKey: secret(),
    secretAccessKey: secret(),
    sessionToken: secret(),
    providerSpecificData: { region: "us-east-1" },
  }),
  () => ({
    provider: "vertex",
    serviceAccount: JSON.stringify({
      type: "service_account",
      client_email: "a@b.example",
      private_key_id: secret(),
      private_key: serviceKey,
    }),
    providerSpecificData: { project: "p", location: "l" },
  }),
  () => ({
    provider: "vertex",
    refreshToken: secret(),
    proxyAuth: `user:${secret()}`,
    providerSpecificData: { project: "p", location: "l", proxyUrl: "http://127.0.0.1:9" },
  }),
];
const secretFields = [
  "apiKey",
  "accessToken",
  "refreshToken",
  "clientSecret",
  "secretAccessKey",
  "sessionToken",
  "serviceAccount",
  "proxyAuth",
];

// exported returns the secrets of a machine's connections, by connection. A machine
// allows six exports a minute: it waits for the next minute after that.
async function exported(machineId) {
  const call = () =>
    admin(gw)
      .call("POST", `/${machineId}/api/export`, { passphrase })
      .catch((e) => {
        if (e.status !== 429) throw e;
      });
  const doc = await until("an export", call, 130_000, 1000);
  const b64 = (s) => Buffer.from(s, "base64url"),
    sealed = b64(doc.ciphertext);
  const open = createDecipheriv(
    "aes-256-gcm",
    pbkdf2Sync(passphrase, b64(doc.salt), doc.iterations, 32, "sha256"),
    b64(doc.nonce),
  );
  open.setAAD(Buffer.from(`${doc.format}.${doc.version}.${doc.iterations}`)).setAuthTag(sealed.subarray(-16));
  const text = Buffer.concat([open.update(sealed.subarray(0, -16)), open.final()]).toString();
  return Object.fromEntries(
    JSON.parse(text).connections.map((c) => [
      c.id,
      Object.fromEntries(secretFields.filter((f) => f in c).map((f) => [f, c[f]])),
    ]),
  );
}

// sealedBy counts what is sealed, by the id of the key, at rest.
async function sealedBy() {
  const texts = [...(await rows(dir)).map((r) => r.value), ...(await replicas(gw)).map((r) => r.text)];
  const counts = {};
  for (const t of texts) for (const [, id] of t.matchAll(/"v1\.([0-9a-f]{8})\./g)) counts[id] = (counts[id] ?? 0) + 1;
  return counts;
}

const embed = (m, i, more = {}) =>
  gw.fetch("/v1/embeddings", {
    method: "POST",
    headers: { authorization: `Bearer ${m.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: `p${i}/test-embed`, input: "a", ...more }),
  });
// works calls every connection that the test upstream stands behind, and
// compares every secret.
async function works(m) {
  for (const [i, key] of m.called) {
    up.clear();
    const res = await embed(m, i);
    assert.equal(res.status, 200, await res.text());
    assert.equal(up.seen[0].headers.authorization, `Bearer ${key}`);
  }
  assert.deepEqual(await exported(m.machineId), m.secrets);
}

// named sends a mutation under an id, whose answer is stored sealed.
const named = async (m) => {
  const res = await gw.fetch(`/${m.machineId}/api/keys`, {
    method: "POST",
    headers: {
      authorization: `Bearer test-admin-token-0123456789abcdef0123456789`,
      "content-type": "application/json",
      "idempotency-key": "rotation",
    },
    body: '{"name":"named"}',
  });
  return { status: res.status, body: await res.json() };
};

const visited = {},
  forgotten = {};
let old;

test(`${total} connections with every kind of secret are sealed by the old key`, async () => {
  for (const m of [visited, forgotten]) {
    Object.assign(m, await admin(gw).machine(), { secrets: {}, called: [] });
    const n = m === visited ? total - 5 : 5;
    for (let i = 0; i < n; i++) {
      const c = kinds[i % kinds.length](i),
        { id } = await admin(gw).connect(m.machineId, c);
      m.secrets[id] = Object.fromEntries(secretFields.filter((f) => f in c).map((f) => [f, c[f]]));
      if (i % kinds.length === 0) m.called.push([i, c.apiKey]);
    }
    await works(m);
  }
  visited.named = await named(visited);
  assert.equal(visited.named.status, 201);
  const given = [visited, forgotten]
    .flatMap((m) => Object.values(m.secrets))
    .reduce((n, s) => n + Object.keys(s).length, 0);
  const copies = gw.kv ? 2 : 1; // of each secret: in the object, and in the replica
  await until("all of them at rest", async () => Object.values(await sealedBy())[0] === copies * given + 1);
  const counts = await sealedBy();
  assert.equal(Object.keys(counts).length, 1, JSON.stringify(counts));
  [old] = Object.keys(counts);
});

test("with both keys everything works and the hourly work reseals; the cron reaches an idle machine", async () => {
  await gw.close();
  elapse(dir, 2 * hour);
  await open(`${B},${A}`);
  const before = (await sealedBy())[old];
  // Both keys open; what is new is sealed by the new one.
  const added = await admin(gw).connect(
    visited.machineId,
    compatible(up, { prefix: "p999", suffix: "00009999", apiKey: "canary-sealed-by-the-new-key" }),
  );
  visited.secrets[added.id] = { apiKey: "canary-sealed-by-the-new-key" };
  visited.called.push([999, "canary-sealed-by-the-new-key"]);
  await works(visited);
  assert.ok((await sealedBy())[old] > 0 && before > total, "nothing was left to reseal");
  await gw.cron(); // the other machine has had no request
  // Calls go on while it is done, and none fails.
  let calls = 0,
    done = false;
  const callers = Promise.all(
    [0, 1, 2, 3].map(async () => {
      while (!done) {
        const res = await embed(visited, visited.called[calls++ % visited.called.length][0]);
        assert.equal(res.status, 200, await res.text());
      }
    }),
  );
  try {
    await until("0 rows of the old key", async () => !((await sealedBy())[old] > 0));
  } finally {
    done = true;
    await callers;
  }
  assert.ok(calls > 0);
  assert.deepEqual(
    Object.keys(await sealedBy()).filter((id) => id === old),
    [],
  );
  await works(visited);
  await works(forgotten);
});

test("then the old key can be removed", async () => {
  await gw.close();
  await open(B);
  await works(visited);
  await works(forgotten);
  assert.deepEqual(await named(visited), visited.named, "a mutation that named itself is answered as before");
});

test("with the old key alone the error is clear and nothing is lost", async () => {
  await gw.close();
  elapse(dir, 2 * hour);
  await open(A);
  up.clear();
  const res = await embed(visited, 0),
    body = await res.json();
  assert.equal(res.status, 503);
  assert.equal(body.error.code, "key_unavailable");
  assert.equal(up.seen.length, 0, "a call went out without its credential");
  await assert.rejects(exported(visited.machineId), { status: 503 });
  const repeated = await named(visited);
  assert.deepEqual([repeated.status, repeated.body.error?.code], [503, "key_unavailable"]);
  // Calls without a secret are served; another account is not affected.
  assert.equal((await admin(gw).call("GET", `/${visited.machineId}/api/providers`)).data.length, total - 5 + 1);
  const other = await admin(gw).machine();
  await admin(gw).connect(other.machineId, compatible(up, { prefix: "p0", apiKey: "canary-of-another-machine" }));
  assert.equal((await embed(other, 0)).status, 200);
  const before = (await rows(dir)).filter((r) => r.key.startsWith("conn:") && r.value.includes("v1.")).length;
  await gw.cron(); // the hour's work meets what it cannot open, and leaves it
  await until("the hour's work", () => gw.logs.some((l) => /does not open/.test(l)));
  assert.equal((await rows(dir)).filter((r) => r.key.startsWith("conn:") && r.value.includes("v1.")).length, before);
  assert.ok(!gw.logs.join("\n").includes("canary"), "a secret in the log");
  await gw.close();
  await open(B);
  await works(visited);
  await works(forgotten);
});

test("with invalid keys nothing is served, and nothing is changed", async () => {
  await gw.close();
  const had = (await rows(dir)).length;
  for (const key of [`${B},short`, `${B},${A},${A}`, `,${B}`, "short"]) {
    assert.match(await unusable({ persist: dir, env: { CREDENTIALS_KEY: key } }), /CREDENTIALS_KEY/);
  }
  assert.equal((await rows(dir)).length, had);
  await open(B);
  await works(visited);
});
