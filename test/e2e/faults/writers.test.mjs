// Concurrent writers through the management API, over a storage that fails at
// intervals. See docs/reference/reliability.md, N4, F51, F53,
// T34.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { admin, secrets, start } from "../gateway.mjs";

const writers = 8,
  each = (process.env.SOAK ? 10_000 : 2_000) / writers;

let gw;
before(async () => {
  gw = await start({ faulty: true });
});
after(async () => {
  await gw?.close();
});

test(`of ${writers * each} mutations by ${writers} writers over a failing storage none is lost or applied twice [F51, F53, T34]`, {
  timeout: 240_000,
}, async (t) => {
  const operator = admin(gw),
    { machineId } = await operator.machine();
  await gw.faults(50);
  let refused = 0,
    wrong = [];
  // send repeats a mutation under its id until it is acknowledged.
  const send = async (method, path, body, id) => {
    for (let i = 0; i < 60; i++) {
      const res = await gw.fetch(`/${machineId}/api/${path}`, {
        method,
        headers: {
          authorization: `Bearer ${secrets.ADMIN_TOKEN}`,
          "idempotency-key": id,
          ...(body ? { "content-type": "application/json" } : {}),
        },
        body: body ? JSON.stringify(body) : undefined,
      });
      const text = await res.text();
      if (res.ok) return text ? JSON.parse(text) : null;
      refused++;
      if (res.status !== 503 && res.status !== 500) throw new Error(`${method} ${path}: ${res.status} ${text}`);
      if (text.includes("fire")) wrong.push(text);
    }
    throw new Error(`${method} ${path} is refused for ever`);
  };
  const aliases = new Map(),
    keys = new Map(),
    custom = new Set();
  await Promise.all(
    Array.from({ length: writers }, async (_, w) => {
      for (let i = 0; i < each; i++) {
        const id = `m-${w}-${i}`,
          alias = `w${w}-${i % 40}`;
        switch (i % 20 === 19 ? 0 : i % 10) {
          case 9:
            keys.set((await send("POST", "keys", { name: id }, id)).id, id);
            break;
          case 8:
            if (custom.size > 200) {
              await send("PATCH", "settings", { idleSeconds: 60 + (i % 30) }, id);
              break;
            }
            await send("POST", "models/custom", { id, providerAlias: "openai" }, id);
            custom.add(id);
            break;
          // biome-ignore lint/suspicious/noFallthroughSwitchClause: a missing alias is created
          case 7:
            if (aliases.has(alias)) {
              await send("DELETE", `models/alias?alias=${alias}`, null, id);
              aliases.delete(alias);
              break;
            }
          // falls through
          default:
            await send("PUT", "models/alias", { alias, model: `openai/${id}` }, id);
            aliases.set(alias, `openai/${id}`);
        }
      }
    }),
  );
  const { thrown } = await gw.faults(0);
  const have = await operator.call("GET", `/${machineId}/api/models/alias`),
    map = have.aliases ?? have.data;
  assert.deepEqual(Object.fromEntries(Object.entries(map).sort()), Object.fromEntries([...aliases].sort()));
  const stored = (await operator.call("GET", `/${machineId}/api/keys`)).data.filter((k) => /^m-/.test(k.name));
  assert.deepEqual(stored.map((k) => k.id).sort(), [...keys.keys()].sort(), "a key was lost, or made twice");
  const models = (await operator.call("GET", `/${machineId}/api/models/custom`)).data.map((m) => m.id).sort();
  assert.deepEqual(models, [...custom].sort());
  const audit = await operator.call("GET", `/${machineId}/api/audit?verify=true&limit=1`);
  assert.ok(audit.chain?.ok, JSON.stringify(audit.chain));
  assert.equal(audit.data[0].seq, writers * each + 1, "one record for each mutation, and for the machine's making");
  assert.deepEqual(wrong, [], "what the storage said reached a client");
  assert.ok(refused > (writers * each) / 100, `${refused} were refused`);
  t.diagnostic(`${thrown} faults, ${refused} refused`);
});
