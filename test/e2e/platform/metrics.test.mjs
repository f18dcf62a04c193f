// GET /metrics on a whole gateway: its formats, that counters do not fall when the gateway is
// stopped, killed or replaced, and that a slow or racing scrape counts nothing twice.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const token = secrets.ADMIN_TOKEN;
let up, gw, dir, me;
before(async () => {
  up = await startUpstream();
  dir = await mkdtemp(join(tmpdir(), "weir-metrics-"));
  gw = await start({ vendors: up, persist: dir });
  me = await admin(gw).machine({ name: 'with "quotes" and 🦦' });
  await admin(gw).connect(me.machineId, compatible(up));
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(dir, { recursive: true, force: true });
});

const scrape = async (path = "/metrics", headers = {}) => {
  const res = await gw.fetch(path, { headers: { authorization: `Bearer ${token}`, ...headers } });
  return { status: res.status, type: res.headers.get("content-type"), text: await res.text() };
};

// sum adds up the samples of a metric.
const sum = (text, name) =>
  text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`))
    .reduce((n, line) => n + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);

async function call(model = "up/test-chat") {
  const res = await gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] }),
  });
  await res.text();
  return res.status;
}

// counted waits until the metrics have as many requests.
const counted = (n) =>
  until(`${n} requests`, async () => {
    const { text } = await scrape();
    return sum(text, "weir_requests_total") === n && text;
  });

test("metrics are text or OpenMetrics, as Accept asks", async () => {
  assert.equal(await call(), 200);
  assert.equal(await call("unknown/model"), 400);
  const text = await counted(2);
  assert.equal(sum(text, "weir_attempts_total"), 1);
  assert.ok(sum(text, "weir_tokens_total") > 0);
  assert.match(text, /^weir_machine_info\{machine="[^"]+",name="with \\"quotes\\" and 🦦"\} 1$/m);
  assert.match(
    text,
    /^weir_connection_state\{machine="[^"]+",connection="[^"]+",name="[^"]*",provider="[^"]+",state="ready"\} 1$/m,
  );
  assert.equal(text.includes("unknown"), false);
  const plain = await scrape();
  assert.equal(plain.type, "text/plain; version=0.0.4; charset=utf-8");
  const open = await scrape("/metrics", {
    accept:
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
  });
  assert.equal(open.type, "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores");
  assert.ok(open.text.endsWith("# EOF\n"));
  const head = await gw.fetch("/metrics", { method: "HEAD", headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
  assert.equal((await gw.fetch("/metrics")).status, 401);
  const { apiKey } = await admin(gw).call("POST", `/${me.machineId}/api/keys`, { scopes: ["metrics"] });
  for (const path of ["/metrics", `/${me.machineId}/metrics`]) {
    const own = await scrape(path, { authorization: `Bearer ${apiKey}`, accept: "application/openmetrics-text" });
    assert.deepEqual([own.status, own.text.includes("weir_build_info")], [200, false]);
    assert.ok(own.text.endsWith("# EOF\n"));
  }
});

test("counters do not fall over a stop and a kill, and racing scrapes agree", async () => {
  const before = sum((await scrape()).text, "weir_requests_total");
  assert.equal(await call(), 200);
  await counted(before + 1);
  await gw.close();
  gw = await start({ vendors: up, persist: dir });
  assert.equal(sum((await scrape()).text, "weir_requests_total"), before + 1);
  const all = await Promise.all(Array.from({ length: 20 }, () => scrape()));
  for (const one of all) assert.equal(sum(one.text, "weir_requests_total"), before + 1);
  // Usage that was written before a kill is counted once after it.
  for (let i = 0; i < 5; i++) assert.equal(await call(), 200);
  await counted(before + 6);
  await Promise.all([...Array.from({ length: 10 }, () => scrape().catch(() => null)), gw.kill?.()]);
  await gw.close().catch(() => {});
  gw = await start({ vendors: up, persist: dir });
  const now = sum((await scrape()).text, "weir_requests_total");
  assert.ok(now >= before + 1 && now <= before + 6, `${now} requests, ${before} at first`);
});
