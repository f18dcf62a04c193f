// Changes that were acknowledged, after a restart. See docs/architecture.md.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, storage;
before(async () => {
  storage = await mkdtemp(join(tmpdir(), "weir-restart-"));
  up = await startUpstream();
  gw = await start({ persist: storage });
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(storage, { recursive: true, force: true });
});

const embed = (machine, key) =>
  gw.fetch(`/${machine}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "up/test-embed", input: "a" }),
  });

test("acknowledged changes survive a restart, and no plain secret is on disk", async () => {
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up, { apiKey: "sk-canary-on-disk" }));
  await gw.close();
  gw = await start({ persist: storage });
  assert.equal((await embed(machineId, apiKey)).status, 200);
  const files = readdirSync(storage, { recursive: true, withFileTypes: true }).filter((f) => f.isFile());
  assert.ok(files.length > 0 || process.env.POSTGRES);
  for (const f of files) {
    const bytes = readFileSync(join(f.parentPath, f.name));
    for (const secret of ["sk-canary-on-disk", apiKey])
      assert.equal(bytes.indexOf(secret), -1, `${secret} in ${f.name}`);
  }
});

test("a revoked key stops working", async () => {
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up));
  const made = await operator.call("POST", `/${machineId}/api/keys`, { name: "short" });
  assert.equal((await embed(machineId, made.key ?? made.apiKey)).status, 200);
  await operator.call("DELETE", `/${machineId}/api/keys/${made.id}`);
  await until("the end of the key", async () => (await embed(machineId, made.key ?? made.apiKey)).status === 401);
  assert.equal((await embed(machineId, apiKey)).status, 200);
});
