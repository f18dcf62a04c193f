// The health of providers: what attempts found, their status pages, and the public page of a machine.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});

async function machine(...connections) {
  const me = await operator.machine({ name: "Health" });
  const ids = [];
  for (const c of connections) ids.push((await operator.connect(me.machineId, c)).id);
  const api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);
  const post = async (model) => {
    const res = await gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
      body: JSON.stringify({ model, input: "a secret text" }),
    });
    await res.text();
    return res.status;
  };
  return { ...me, ids, api, post };
}

test("attempts are shown by hour and day, with the causes of their failures", async () => {
  const me = await machine(compatible(up, { prefix: "up", name: "First" }));
  assert.equal(await me.post("up/test-embed"), 200);
  assert.ok((await me.post("up/test-embed!status=500")) >= 500);
  const timeline = (query) => me.api("GET", `/health/timeline?${query}`);
  const line = await until("the attempts", async () => {
    const { data } = await timeline(`connection=${me.ids[0]}`);
    return data[0]?.total.failed > 0 && data[0];
  });
  assert.equal(line.total.failedBy.server_error, line.total.failed);
  assert.ok(line.total.attempts > line.total.failed && line.total.latencyP95Ms > 0, JSON.stringify(line));
  for (const span of ["24h", "30d"]) {
    const all = await timeline(`span=${span}&groupBy=connection`);
    const [{ connectionId, steps, total }] = all.data;
    assert.deepEqual([all.steps, connectionId], [span === "24h" ? 24 : 30, me.ids[0]]);
    // The test may pass the end of an hour.
    assert.equal(
      steps.reduce((sum, s) => sum + s.attempts, 0),
      total.attempts,
    );
    assert.ok(steps.at(-1).at <= all.to && steps.at(-1).at >= all.from, JSON.stringify(all));
  }
});

test("status pages are read without redirects and credentials, in 1 MiB, and once for two machines", async (t) => {
  const long = JSON.stringify({ status: { indicator: "none" }, more: "x".repeat(2 << 20) });
  const answers = {
    "status.claude.com": { body: '{"status":{"indicator":"minor","description":"Partially Degraded Service"}}' },
    "groqstatus.com": { status: 302, headers: { location: "https://elsewhere.example/api/v2/summary.json" }, body: "" },
    "status.cohere.com": { body: long },
    "status.cerebras.ai": { body: "<html>not JSON</html>" },
  };
  up.script = (got) => (got.path === "/api/v2/summary.json" ? (answers[got.host] ?? { status: 404 }) : null);
  t.after(() => {
    up.script = null;
  });
  const accounts = ["anthropic", "groq", "cohere", "cerebras"].map((provider) => ({
    provider,
    apiKey: `sk-${provider}-0123`,
  }));
  const [one, other] = [await machine(...accounts), await machine(...accounts)];
  const reported = async (me) => {
    const { enabled, data } = await me.api("GET", "/health/providers");
    assert.equal(enabled, true);
    return Object.fromEntries(data.map((p) => [p.provider, [p.indicator, p.description]]));
  };
  const want = {
    anthropic: ["minor", "Partially Degraded Service"],
    groq: ["unknown", undefined],
    cohere: ["unknown", undefined],
    cerebras: ["unknown", undefined],
  };
  assert.deepEqual(await reported(one), want);
  assert.deepEqual(await reported(other), want);
  const read = up.seen.filter((r) => r.path === "/api/v2/summary.json");
  assert.deepEqual(read.map((r) => r.host).sort(), Object.keys(answers).sort());
  for (const r of read) assert.deepEqual([r.headers.authorization, r.headers["x-api-key"]], [undefined, undefined]);
  await one.api("PATCH", "/settings", { statusFeeds: "off" });
  assert.deepEqual(await one.api("GET", "/health/providers"), { object: "list", enabled: false, data: [] });
});

test("a machine shows its public status once it is told to, and a forged id creates nothing", async () => {
  const me = await machine(compatible(up, { prefix: "private", name: "Secret account" }));
  const path = `/${me.machineId}/status`;
  const get = async (p) => {
    const res = await gw.fetch(p);
    return { status: res.status, headers: res.headers, text: await res.text() };
  };
  const forged = "forged0123456789ab";
  for (const p of [path, `${path}.json`, `/${forged}/status`, `/${forged}/status.json`]) {
    const { status, text } = await get(p);
    assert.deepEqual([status, JSON.parse(text).error.code], [404, "not_found"], p);
  }
  assert.equal((await operator.call("GET", `/api/machines?q=${forged}`)).total, 0);
  if (gw.kv) assert.equal(await gw.kv.get(`machine:${forged}`), null);

  assert.equal(await me.post("private/test-embed"), 200);
  await until("the attempt", async () => (await me.api("GET", "/health/timeline")).data.length === 1);
  await me.api("PATCH", "/settings", { publicStatus: "providers" });
  const json = await until("the page", async () => {
    const got = await get(`${path}.json`);
    return got.status === 200 && got;
  });
  const { state, data } = JSON.parse(json.text);
  assert.deepEqual(
    [state, data.map((d) => [d.name, d.state, d.success24h, d.hours.length, d.days.length])],
    ["operational", [["Compatible server", "operational", 1, 24, 30]]],
  );
  assert.equal(json.headers.get("cache-control"), "public, max-age=60");
  const page = await get(path);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-type"), /^text\/html/);
  assert.match(page.headers.get("content-security-policy"), /^default-src 'none'; style-src 'sha256-/);
  for (const secret of ["Secret", "private", "attempts", me.ids[0], me.apiKey, up.url])
    assert.ok(!(page.text + json.text).includes(secret), secret);
});
