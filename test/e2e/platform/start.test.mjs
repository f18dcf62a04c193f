// Counts what the engine compiles before the first call and in it, which is the same
// on every computer, in place of times. docs/decisions/0004-warm-up-at-boot.md.
import assert from "node:assert/strict";
import { once } from "node:events";
import { statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { prepare, root, serve } from "../../bench/workerd.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, secrets } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { until } from "../wait.mjs";

const { after, before, test } = only("workerd", "bridge");

// compiled returns what V8 reports of a compiler: functions and kB of their code.
function compiled(text, compiler) {
  const sizes = [...text.matchAll(new RegExp(`using ${compiler}, .* bodysize (\\d+)`, "g"))].map((m) => Number(m[1]));
  return { functions: sizes.length, kB: Math.round(sizes.reduce((a, b) => a + b, 0) / 1000) };
}

let up, kv, options, dir, init;

// started starts the worker and waits until nothing runs in it any more.
async function started(flags = []) {
  const server = await serve(dir, "worker.mjs", { ...options, flags });
  await server.idle();
  return server;
}

before(async () => {
  up = await startUpstream();
  const values = new Map();
  kv = createServer(async (req, res) => {
    const { pathname } = new URL(req.url, "http://kv");
    if (req.method === "PUT") values.set(pathname, (await req.toArray()).join(""));
    const value = req.method === "GET" ? values.get(pathname) : "";
    res.writeHead(value === undefined ? 404 : 200).end(value);
  }).listen(0, "127.0.0.1");
  await once(kv, "listening");
  options = { env: { ...secrets, ALLOW_PRIVATE_UPSTREAMS: "true", PRICES_URL: "off" }, kvPort: kv.address().port };
  dir = prepare("start", join(root, "build"));
  const server = await started();
  const operator = admin({ fetch: (path, how) => fetch(server.url + path, how) });
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, {
    provider: "openai-compatible-0123abcd",
    apiKey: "start-key",
    providerSpecificData: { baseUrl: `${up.url}/v1`, prefix: "up" },
  });
  // Its alarm publishes the replica; at a later start it would run then.
  await until("the replica", () => values.size > 0);
  await server.idle();
  await server.close();
  const body = JSON.stringify({ model: "up/m", input: "a", encoding_format: "base64" });
  init = {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body,
  };
});
after(async () => {
  kv?.closeAllConnections();
  kv?.close();
  await up?.close();
});

test("the start compiles little, and the first call almost nothing", async (t) => {
  const server = await started(["--trace-wasm-compilation-times"]);
  const first = server.output();
  const res = await fetch(`${server.url}/v1/embeddings`, init);
  assert.equal(res.status, 200, await res.text());
  await server.idle();
  const call = compiled(server.output().slice(first.length), "Liftoff");
  await server.close();
  const quick = compiled(first, "Liftoff"),
    slow = compiled(first, "TurboFan");
  t.diagnostic(JSON.stringify({ quick, slow, call }));
  assert.ok(quick.functions < 1525 && quick.kB < 2000, `compiled at the start: ${JSON.stringify(quick)}`);
  // A kB of these costs as much as 30 of the others.
  assert.ok(slow.functions < 20 && slow.kB < 85, `compiled a second time at the start: ${JSON.stringify(slow)}`);
  // Most of these belong to the first report, which the object stores after the answer.
  assert.ok(call.functions < 270 && call.kB < 520, `the warm-up leaves to the first call: ${JSON.stringify(call)}`);
});

test("the instance that is warmed up serves", async () => {
  const server = await started();
  assert.equal((await fetch(`${server.url}/health`)).status, 200);
  assert.doesNotMatch(server.output() + server.complaints(), /warm-up failed|instance ended/);
  await server.close();
});

// The engine reads and checks the whole program before it starts.
test("the program is not larger than 23 MiB", () => {
  const MiB = statSync(join(root, "build/app.wasm")).size / (1 << 20);
  assert.ok(MiB < 23, `build/app.wasm: ${MiB.toFixed(1)} MiB`);
});
