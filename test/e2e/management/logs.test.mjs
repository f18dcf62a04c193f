// The export of the log of requests to S3-compatible storage. See docs/guides/log-export.md.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createStore } from "../../upstream/s3.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { edit } from "../storage.mjs";
import { until } from "../wait.mjs";

const keys = { AKIATESTTESTTESTTEST: { secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" } };
const settings = {
  region: "auto",
  bucket: "logs",
  prefix: "team/weir",
  accessKeyId: "AKIATESTTESTTESTTEST",
  secretAccessKey: keys.AKIATESTTESTTESTTEST.secret,
};

let gw, up, operator, storage, me, store;

before(async () => {
  storage = await mkdtemp(join(tmpdir(), "weir-logs-"));
  up = await startUpstream();
  store = createStore({ buckets: ["logs"], keys, region: "auto" });
  up.script = store.script;
  await again();
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
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

const api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);

// call makes a call and returns its id.
async function call(tag) {
  const res = await gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json", "x-weir-tags": tag },
    body: JSON.stringify({ model: "up/test-chat", messages: [{ role: "user", content: "the secret of the body" }] }),
  });
  assert.equal(res.status, 200, await res.text());
  return res.headers.get("x-request-id");
}

// later ends the gateway once its storage has the calls, and starts it five minutes later.
async function later(ids, end = "close") {
  await until("the calls", async () => {
    const listed = (await api("GET", "/requests?limit=200")).data.map((r) => r.id);
    return ids.every((id) => listed.includes(id));
  });
  await api("PATCH", "/settings", { firstByteSeconds: 60 + (ids.length % 10) }); // writes what is buffered
  await gw[end]();
  edit(storage, (_, text) => text.replace(/"since":(\d{13})/g, (_, at) => `"since":${at - 310_000}`));
  await again();
}

const exported = (ids) => () => {
  const lines = store.lines().map((l) => l.id);
  return ids.every((id) => lines.includes(id));
};

test("a test says what the store has answered", async () => {
  const make = (more) =>
    api("POST", "/destinations", { name: "Logs", kind: "s3", settings: { ...settings, endpoint: up.url, ...more } });
  const said = {};
  for (const [name, more, fault] of [
    ["good", {}, null],
    ["bucket", { bucket: "other" }, null],
    ["secret", { secretAccessKey: "wrong-wrong-wrong-wrong-wrong-wrong-wrong" }, null],
    ["key", { accessKeyId: "AKIAOTHER" }, null],
    ["denied", {}, "denied"],
    ["redirect", {}, "redirect"],
    ["garbage", {}, "garbage"],
    ["lost", {}, "reset"],
  ]) {
    const { id } = await make(more);
    store.fault = fault;
    const { delivered, error } = await api("POST", `/destinations/${id}/test`, {});
    assert.equal(delivered, name === "good", `${name}: ${error}`);
    said[name] = error;
    store.fault = null;
    await api("DELETE", `/destinations/${id}`);
  }
  assert.match(said.bucket, /^status 404 NoSuchBucket: there is no bucket of this name/);
  assert.match(said.secret, /^status 403 SignatureDoesNotMatch: the secret access key is wrong/);
  assert.match(said.key, /^status 403 InvalidAccessKeyId: /);
  assert.match(said.denied, /^status 403 AccessDenied: the key may not write to this bucket/);
  assert.match(said.redirect, /^status 301 PermanentRedirect: the bucket is in another region/);
  assert.match(said.garbage, /this is not the endpoint of an S3-compatible store/);
  assert.match(said.lost, /not reachable/);
  const [[name, object]] = [...store.objects];
  assert.match(name, /^logs\/team\/weir\/weir-test-\d{8}T\d{6}Z\.json$/);
  assert.deepEqual(JSON.parse(object.body), { test: true, machine: me.machineId });
});

test("every call becomes a line once, whatever ends in between", async () => {
  const { id } = await api("POST", "/destinations", {
    name: "Logs",
    kind: "s3",
    settings: { ...settings, endpoint: up.url },
  });
  const state = async () => api("GET", `/destinations/${id}`);
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push(await call(`n=${i}`));

  // The answer to the first put is lost after the object was stored.
  store.fault = "lost";
  await later(ids);
  ids.push(await call("n=3"));
  await until("a put", () => store.puts.some((path) => path.endsWith(".jsonl.gz")));
  await until("the failure", async () => (await state()).status === "failing");
  const first = store.puts.filter((path) => path.endsWith(".jsonl.gz"))[0];
  store.fault = null;
  await until("the repeat", () => store.puts.filter((path) => path === first).length > 1);
  await until("the success", async () => (await state()).waiting === 0);

  // The gateway is killed while a put is under way.
  ids.push(await call("n=4"));
  store.fault = "stall";
  const before = store.puts.length;
  await later(ids);
  ids.push(await call("n=5"));
  await until("a put that stalls", () => store.puts.length > before);
  const stalled = store.puts.at(-1);
  await gw.kill();
  store.fault = null;
  await again();
  await call("n=6"); // wakes the machine
  await until("the put after the kill", () => store.puts.slice(before + 1).includes(stalled));
  await until("the lines", exported(ids.slice(0, 5)));

  const lines = store.lines();
  assert.equal(new Set(lines.map((l) => l.id)).size, lines.length, "a line is in one object");
  assert.deepEqual(
    lines.map((l) => l.seq),
    [...lines.map((l) => l.seq)].sort((a, b) => a - b),
  );
  const listed = (await api("GET", "/requests?limit=200")).data;
  for (const line of lines) {
    const { time, machine, keyName, ...item } = line;
    assert.deepEqual(
      item,
      listed.find((r) => r.id === line.id),
      "the line is the item of the list",
    );
    assert.equal(Date.parse(time), line.at);
    assert.equal(machine, me.machineId);
  }
  for (const [name, { body, headers }] of store.objects) {
    if (!name.endsWith(".jsonl.gz")) continue;
    const parts =
      /^logs\/team\/weir\/machine=([^/]+)\/date=(\d{4}-\d\d-\d\d)\/hour=(\d\d)\/(\d+)-(\d+)-[0-9a-f]{12}\.jsonl\.gz$/.exec(
        name,
      );
    assert.ok(parts, name);
    assert.equal(parts[1], me.machineId);
    assert.equal(headers["content-type"], "application/gzip");
    assert.ok(!body.includes("the secret of the body"));
  }
  for (const line of gw.logs) assert.ok(!line.includes(settings.secretAccessKey));
  const shown = JSON.stringify([await state(), await api("GET", "/destinations"), await api("GET", "/export")]);
  assert.ok(!shown.includes(settings.secretAccessKey));
  assert.equal((await state()).dropped, 0);
});
