// The process is killed at random moments while clients write. Acknowledged
// changes are there afterwards. See docs/reference/reliability.md, N4, F55.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";
import { platform } from "../platforms.mjs";
import { sleep, until } from "../wait.mjs";

const rounds = 6,
  writers = 4;

const persist = mkdtempSync(join(tmpdir(), "weir-kills-"));
let gw;
const up = async () => {
  gw = await start({ persist });
};
before(up);
after(async () => {
  await gw?.close();
  rmSync(persist, { recursive: true, force: true });
});

test(`${rounds} kills under ${writers} writers lose no acknowledged write`, { timeout: 120_000 }, async () => {
  const { machineId } = await admin(gw).machine();
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
          await admin(gw).call("PUT", `/${machineId}/api/models/alias`, { alias, model });
          acknowledged.set(alias, model);
          if (n % 7 === 0) keys.add((await admin(gw).call("POST", `/${machineId}/api/keys`, { name: alias })).id);
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
    await gw.kill();
    await all;
    await up();
    const { data, aliases } = await admin(gw).call("GET", `/${machineId}/api/models/alias`),
      have = aliases ?? data;
    for (const [alias, model] of acknowledged)
      assert.equal(
        have[alias] ?? have.find?.((a) => a.alias === alias)?.model,
        model,
        `${alias} after kill ${round + 1}`,
      );
    const ids = new Set((await admin(gw).call("GET", `/${machineId}/api/keys`)).data.map((k) => k.id));
    for (const id of keys) assert.ok(ids.has(id), `key ${id} after kill ${round + 1}`);
  }
  assert.ok(acknowledged.size >= 10 * rounds);
  const audit = await admin(gw).call("GET", `/${machineId}/api/audit?verify=true&limit=1`);
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
    const operator = admin(gw);
    const { machineId, apiKey } = await operator.machine();
    await operator.connect(machineId, compatible({ url: `http://127.0.0.1:${provider.address().port}` }));
    const create = (path) =>
      gw.fetch(path, {
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
    await gw.kill();
    await first;
    await up();
    // On the edge the object cannot know that the program of the call has ended.
    const [status, code] = platform === "native" ? [502, "upstream_outcome_unknown"] : [409, "idempotency_in_progress"];
    // Servers that share a database notice within half a minute that one has ended.
    if (process.env.POSTGRES)
      await until(
        "the end of the killed server",
        async () => (await create("/v1/videos/generations")).status === status,
      );
    for (let i = 0; i < 2; i++) await refused(status, code);
    assert.equal(made, 1);
  } finally {
    provider.closeAllConnections();
    await new Promise((r) => provider.close(r));
  }
});
