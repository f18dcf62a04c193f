// Objects that are slow, silent or gone while the data plane serves.
// See docs/architecture.md, docs/reference/reliability.md, F51.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { until } from "../wait.mjs";

const { after, before, test } = only("workerd", "objects");

// An object whose named operations behave as set by /object: "silent" never
// answers, "throws" fails, "overloaded" is turned away by the platform, a
// number is a delay in ms.
const entry = `
import worker, { Machine as Whole } from "./worker.mjs";

let how = "", verbs = [], asked = {};
export class Machine extends Whole {
  async call(name, verb, body) {
    asked[verb] = (asked[verb] ?? 0) + 1;
    if (how && (!verbs.length || verbs.includes(verb))) {
      if (how === "silent") await new Promise(() => {});
      if (how === "throws") throw new Error("internal error; secret-of-the-platform");
      if (how === "overloaded") throw Object.assign(new Error("Durable Object is overloaded."), { overloaded: true });
      await scheduler.wait(Number(how));
    }
    return super.call(name, verb, body);
  }
}
export default {
  ...worker,
  fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname !== "/object") return worker.fetch(request, env, ctx);
    how = url.searchParams.get("how") ?? ""; verbs = (url.searchParams.get("verbs") ?? "").split(",").filter(Boolean);
    const answer = Response.json(asked);
    asked = {};
    return answer;
  },
};`;

let gw, up, dir, kv;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), "weir-slow-"));
  up = await startUpstream();
  await open();
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(dir, { recursive: true, force: true });
});
async function open() {
  gw = await start({ persist: dir, entry });
  ({ kv } = gw);
}
const object = async (how = "", verbs = "") => (await gw.fetch(`/object?how=${how}&verbs=${verbs}`)).json();

async function tenant() {
  const m = await admin(gw).machine();
  await admin(gw).connect(m.machineId, compatible(up));
  const send = async () => {
    const res = await gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${m.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/test-embed", input: "a" }),
    });
    return { status: res.status, headers: res.headers, text: await res.text() };
  };
  return { ...m, send };
}
// published waits until the replica in KV is of the machine's last change.
async function published(m) {
  await until("the replica", async () => {
    const r = JSON.parse((await kv.get(`machine:${m.machineId}`)) ?? "{}");
    return r.connections?.length === 1;
  });
}

for (const how of ["silent", "throws", "overloaded"]) {
  test(`an object that ${how === "silent" ? "does not answer" : how === "throws" ? "fails" : "is overloaded"}: an isolate that knows the machine goes on, management says 503`, {
    timeout: 120_000,
  }, async () => {
    const m = await tenant();
    assert.equal((await m.send()).status, 200);
    await object(how, "snapshot,report,manage");
    for (let i = 0; i < 20; i++) assert.equal((await m.send()).status, 200);
    if (how !== "silent") {
      const res = await gw.fetch(`/${m.machineId}/api/providers`, {
        headers: { authorization: `Bearer test-admin-token-0123456789abcdef0123456789` },
      });
      const text = await res.text();
      assert.equal(res.status, 503, text);
      assert.ok(res.headers.get("retry-after"));
      assert.doesNotMatch(text, /secret-of-the-platform|internal error/);
    }
    await object();
    assert.equal((await m.send()).status, 200);
  });
}

test("while objects are silent a new isolate serves from a fresh replica, and an unknown machine is 503", {
  timeout: 120_000,
}, async () => {
  const m = await tenant();
  await published(m);
  await gw.close();
  await open();
  await object("silent", "snapshot");
  const all = await Promise.all([m.send(), m.send(), m.send()]);
  for (const got of all) assert.equal(got.status, 200, got.text);
  // Without a replica the machine is unknown.
  await kv.delete(`machine:${m.machineId}`);
  await gw.close();
  await open();
  await object("silent", "snapshot");
  const got = await m.send();
  assert.equal(got.status, 503, got.text);
  assert.equal(got.headers.get("retry-after"), "1");
  assert.equal(JSON.parse(got.text).error.code, "unavailable");
  await object();
  assert.equal((await m.send()).status, 200);
});

test("callers wait for a slow object and call it once each", { timeout: 180_000 }, async () => {
  const m = await tenant();
  await published(m); // without a replica, the object is asked for the whole snapshot too
  await gw.close();
  await open();
  await object(400, "snapshot");
  const all = await Promise.all(Array.from({ length: 10 }, m.send));
  for (const got of all) assert.equal(got.status, 200, got.text);
  const { snapshot } = await object();
  assert.ok(snapshot <= 10, `${snapshot} questions`);
});

test("a report that the object refused is sent later", { timeout: 180_000 }, async () => {
  const m = await tenant();
  assert.equal((await m.send()).status, 200);
  await object("throws", "report");
  for (let i = 0; i < 3; i++) assert.equal((await m.send()).status, 200);
  await object();
  await until("4 requests in the list", async () => {
    await m.send();
    const { data } = await admin(gw).call("GET", `/${m.machineId}/api/requests`);
    return data.length >= 4;
  });
});
