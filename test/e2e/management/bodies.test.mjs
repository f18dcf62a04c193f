// Captured bodies leave to destinations that choose them, from the platform's own alarm, and to no
// other. See docs/guides/captured-bodies.md.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { createStore } from "../../upstream/s3.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const accountKey = "account-key-0123456789abcdef";
const keys = { AKIATESTTESTTESTTEST: { secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" } };

let gw, up, storage, store, operator, down;
const logs = []; // what collectors got, with its path
before(async () => {
  storage = await mkdtemp(join(tmpdir(), "weir-bodies-"));
  up = await startUpstream();
  store = createStore({ buckets: ["logs"], keys, region: "auto" });
  up.script = (got) => {
    if (!got.path.startsWith("/otel")) return store.script(got);
    if (down) return { status: 503, headers: {}, body: "" };
    const body = got.headers["content-encoding"] === "gzip" ? gunzipSync(got.body) : got.body;
    logs.push({ path: got.path, text: body.toString() });
    return { status: 200, headers: { "content-type": "application/json" }, body: "{}" };
  };
  await again();
});
after(async () => {
  await gw?.close();
  await up?.close();
  await rm(storage, { recursive: true, force: true });
});

async function again() {
  gw = await start({ persist: storage });
  operator = admin(gw);
}

test("captured bodies reach a collector and a bucket that choose them, also after a kill", async () => {
  const me = await operator.machine();
  const api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);
  await operator.connect(me.machineId, compatible(up, { apiKey: accountKey }));
  const make = async (bodies) => [
    await api("POST", "/destinations", {
      kind: "otlp",
      settings: { endpoint: `${up.url}/otel/${bodies}`, protocol: "http/json", bodies },
    }),
    await api("POST", "/destinations", {
      kind: "s3",
      settings: {
        endpoint: up.url,
        region: "auto",
        bucket: "logs",
        prefix: String(bodies),
        accessKeyId: "AKIATESTTESTTESTTEST",
        secretAccessKey: keys.AKIATESTTESTTESTTEST.secret,
        bodies,
      },
    }),
  ];
  const chosen = await make(true);
  await make(false);
  const send = async (content) => {
    const res = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content }] }),
    });
    const text = await res.text();
    assert.equal(res.status, 200, text);
    return { id: res.headers.get("x-request-id"), text };
  };
  await send("canary before the capture");

  // Both destinations are down when the bodies are captured, and the gateway is killed then.
  down = true;
  store.fault = "reset";
  await api("PATCH", "/settings", { capturePercent: 100 });
  const sent = [];
  let asked;
  await until("a capture", async () => {
    sent.push(await send(`canary while captured, with ${accountKey}`));
    const { data } = await api("GET", "/captures");
    asked = sent.find((s) => data.some((c) => c.id === s.id));
    return asked;
  });
  await until("what waits", async () =>
    (await Promise.all(chosen.map((d) => api("GET", `/destinations/${d.id}`)))).every((d) => d.waiting > 0),
  );
  await gw.kill();
  down = false;
  store.fault = null;
  await again();
  await send("canary that wakes the machine");
  for (const d of chosen) await api("PUT", `/destinations/${d.id}`, { enabled: true }); // without the wait after failures

  const object = () => [...store.objects].find(([name]) => name.endsWith(`/${asked.id}.json.gz`));
  await until("the object", object, 90_000);
  const [name, { body }] = object();
  assert.match(
    name,
    /^logs\/true\/bodies\/machine=[^/]+\/date=\d{4}-\d\d-\d\d\/hour=\d\d\/req_[0-9a-f]{32}\.json\.gz$/,
  );
  const whole = JSON.parse(gunzipSync(body));
  assert.equal(whole.id, asked.id);
  assert.equal(whole.answer.text, asked.text.replace(accountKey, "***"));
  assert.deepEqual(JSON.parse(whole.request.text).messages, [
    { role: "user", content: "canary while captured, with ***" },
  ]);

  const event = () =>
    logs
      .flatMap((l) => JSON.parse(l.text).resourceLogs?.[0].scopeLogs[0].logRecords ?? [])
      .find((l) => l.eventName?.startsWith("gen_ai.") && JSON.stringify(l).includes(asked.id));
  await until("the event", event, 90_000);
  assert.equal(event().traceId, asked.id.slice("req_".length));
  assert.ok(JSON.stringify(event()).includes("canary while captured"));

  for (const l of logs) assert.ok(l.path.startsWith("/otel/true/") || !l.text.includes("canary"), l.path);
  for (const [name, { body }] of store.objects) {
    assert.ok(!name.startsWith("logs/false/bodies/"), name);
    if (name.includes(".jsonl.")) assert.ok(!gunzipSync(body).includes("canary"), name);
  }
  const all = [...logs.map((l) => l.text), ...[...store.objects.values()].map((o) => gunzipSync(o.body))].join();
  assert.ok(!all.includes(accountKey) && !all.includes("before the capture") && !all.includes(me.apiKey));
});
