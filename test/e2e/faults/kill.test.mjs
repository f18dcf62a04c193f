// The process is killed at random moments while clients write. Acknowledged
// changes are there afterwards. See docs/reference/reliability.md, N4, F55.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { prepare, root, serve } from "../../bench/workerd.mjs";
import { admin, compatible, secrets } from "../gateway.mjs";
import { sleep, until } from "../wait.mjs";

const rounds = 6,
  writers = 4;

// store is the KV namespace as workerd asks for it: it outlives the process.
const values = new Map();
const store = createServer(async (req, res) => {
  const key = decodeURIComponent(new URL(req.url, "http://kv").pathname.slice(1));
  if (req.method === "PUT") {
    const parts = [];
    try {
      for await (const c of req) parts.push(c);
    } catch {
      return;
    } // killed while it wrote
    values.set(key, Buffer.concat(parts));
    return res.end();
  }
  if (req.method === "DELETE") {
    values.delete(key);
    return res.end();
  }
  if (!values.has(key)) {
    res.statusCode = 404;
    return res.end();
  }
  res.end(values.get(key));
});

let server, dir, port;
const up = async () => {
  server = await serve(dir, "worker.mjs", { env: { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true" }, kvPort: port });
};
before(async () => {
  rmSync(join(root, "test/out/bench/storage"), { recursive: true, force: true });
  dir = prepare("kill", join(root, "build"));
  store.keepAliveTimeout = 60_000;
  await new Promise((r) => store.listen(0, "127.0.0.1", r));
  ({ port } = store.address());
  await up();
});
after(async () => {
  await server?.close();
  store.close();
});

test(`${rounds} kills under ${writers} writers lose no acknowledged write`, { timeout: 120_000 }, async () => {
  const gateway = { fetch: (path, init) => fetch(server.url + path, init) };
  const { machineId } = await admin(gateway).machine();
  const acknowledged = new Map(),
    keys = new Set();
  for (let round = 0; round < rounds; round++) {
    let alive = true,
      n = 0;
    const write = async (w) => {
      while (alive) {
        const alias = `r${round}-w${w}-${n++}`,
          model = `openai/m-${alias}`;
        try {
          await admin(gateway).call("PUT", `/${machineId}/api/models/alias`, { alias, model });
          acknowledged.set(alias, model);
          if (n % 7 === 0) keys.add((await admin(gateway).call("POST", `/${machineId}/api/keys`, { name: alias })).id);
        } catch (e) {
          if (alive) assert.fail(e);
        }
      }
    };
    const all = Promise.all(Array.from({ length: writers }, (_, w) => write(w)));
    // Each round has writes to lose; the moment of its end is random.
    const before = acknowledged.size;
    await until("ten writes", () => acknowledged.size >= before + 10, 60_000, 10);
    await sleep(Math.random() * 400);
    alive = false;
    await server.close(); // SIGKILL
    await all;
    await up();
    const { data, aliases } = await admin(gateway).call("GET", `/${machineId}/api/models/alias`),
      have = aliases ?? data;
    for (const [alias, model] of acknowledged)
      assert.equal(
        have[alias] ?? have.find?.((a) => a.alias === alias)?.model,
        model,
        `${alias} after kill ${round + 1}`,
      );
    const ids = new Set((await admin(gateway).call("GET", `/${machineId}/api/keys`)).data.map((k) => k.id));
    for (const id of keys) assert.ok(ids.has(id), `key ${id} after kill ${round + 1}`);
  }
  assert.ok(acknowledged.size >= 10 * rounds);
  const audit = await admin(gateway).call("GET", `/${machineId}/api/audit?verify=true&limit=1`);
  assert.ok(audit.chain && !audit.chain.broken, JSON.stringify(audit.chain));
});

test("a creation during which the process was killed stays unknown and is never repeated", {
  timeout: 180_000,
}, async () => {
  let made = 0,
    taken;
  const asked = new Promise((r) => {
    taken = r;
  });
  const provider = createServer((req) => {
    req.resume().on("end", () => {
      made++;
      taken();
    });
  }); // and no answer
  await new Promise((r) => provider.listen(0, "127.0.0.1", r));
  try {
    const operator = admin({ fetch: (path, init) => fetch(server.url + path, init) });
    const { machineId, apiKey } = await operator.machine();
    await operator.connect(machineId, compatible({ url: `http://127.0.0.1:${provider.address().port}` }));
    const create = (path) =>
      fetch(server.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", "idempotency-key": "k" },
        body: JSON.stringify({ model: "up/m", prompt: "a cat" }),
      });
    const refused = async (status, code) => {
      const res = await create("/v1/videos/generations"),
        { error } = await res.json();
      assert.deepEqual([res.status, error.code, res.headers.get("x-should-retry")], [status, code, "false"]);
    };
    const first = create("/v1/videos/generations").catch(() => null);
    await asked;
    await refused(409, "idempotency_in_progress");
    await server.close(); // SIGKILL
    await first;
    await up();
    for (let i = 0; i < 2; i++) await refused(502, "upstream_outcome_unknown");
    assert.equal(made, 1);
  } finally {
    provider.closeAllConnections();
    await new Promise((r) => provider.close(r));
  }
});
