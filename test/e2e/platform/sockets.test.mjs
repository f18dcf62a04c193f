// WebSockets of the bridge in real workerd, driven through worker/bridgetest: limits,
// ends, relays, and programs that end or are replaced.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import { start as startUpstream } from "../../upstream/server.mjs";
import { start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { connect, refusal } from "../sockets.mjs";
import { until } from "../wait.mjs";

const { after, before, test } = only("workerd", "bridge");

const dir = fileURLToPath(new URL("../../out/bridge", import.meta.url));
let gw, up;
before(async () => {
  up = await startUpstream();
  gw = await start({ dir });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const text = async (path) => (await gw.fetch(path)).text();
const quiet = () =>
  until("everything has ended", async () => {
    const s = JSON.parse(await text("/stats"));
    return s.calls <= 1 && s.ops === 0;
  });
const echo = (what) => `up:${what}`;

// open returns a connection to path whose upstream echoes.
const open = (path) => connect(`${gw.url}${path}`);

test("messages arrive in order, with their kind", async () => {
  const c = await open("/socket");
  assert.equal(c.answer.headers["x-own"], "1");
  c.send("one ☃");
  c.send(Buffer.from([1, 2, 3]));
  c.send("");
  assert.deepEqual(await c.read(), { data: "false 7 one ☃", binary: false });
  const second = await c.read();
  assert.ok(second.binary);
  assert.equal(second.data.toString("latin1"), "true 3 \x01\x02\x03");
  assert.deepEqual(await c.read(), { data: "false 0 ", binary: false });
  c.ws.close(4000, "enough");
  assert.deepEqual(await c.closed, { code: 4000, reason: "enough" });
  await quiet();
  assert.match(await text("/socketed"), /closed with 4000: enough context canceled/);
});

test("a message of 16 MiB passes, a longer one closes with 1009", async () => {
  const c = await open("/socket");
  c.send("x".repeat(16 << 20));
  assert.equal((await c.read()).data, `false ${16 << 20} ${"x".repeat(20)}`);
  c.send("x".repeat((16 << 20) + 1));
  assert.equal((await c.closed).code, 1009);
  await quiet();
});

test("the program ends a connection with a code, by returning, or by a panic", async () => {
  for (const [word, code, reason] of [
    ["close", 4001, "as asked"],
    ["return", 1000, ""],
    ["panic", 1011, "internal error"],
  ]) {
    const c = await open("/socket");
    c.send(word);
    assert.deepEqual(await c.closed, { code, reason }, word);
  }
  await quiet();
});

test("a client that leaves ends what its connection waits for", async () => {
  const c = await open("/socket?busy");
  c.ws.terminate();
  await quiet();
});

test("silence closes with 1008", async () => {
  const c = await open("/socket-short");
  for (let i = 0; i < 3; i++) {
    c.send(`${i}`);
    await c.read();
  }
  const end = await c.closed;
  assert.equal(end.code, 1008);
  assert.match(end.reason, /no message/);
  await quiet();
});

test("a flood that is not read closes with 1008, by bytes and by number", async () => {
  for (const [path, size] of [
    ["/socket-short?busy", 900],
    ["/socket?busy", 1],
  ]) {
    const c = await open(path);
    for (let i = 0; i < 80; i++) c.send("x".repeat(size));
    assert.deepEqual(await c.closed, { code: 1008, reason: "too many messages wait" }, path);
  }
  await quiet();
});

test("large messages of all connections that wait are bounded, one too many closes with 1013", async () => {
  const all = await Promise.all(["/socket", "/socket", "/socket"].map(open));
  for (const c of all) {
    c.send("hold");
    c.send("x".repeat(15 << 20));
  }
  assert.equal((await Promise.race(all.map((c) => c.closed))).code, 1013);
  for (const c of all) c.ws.terminate();
  await quiet();
  const again = await Promise.all([open("/socket"), open("/socket")]);
  for (const c of again) {
    c.send("x".repeat(16 << 20));
    assert.equal((await c.read()).data, `false ${16 << 20} ${"x".repeat(20)}`);
    c.send("hold");
    c.send("x".repeat(15 << 20));
  }
  for (const c of again) c.ws.terminate();
  await quiet();
});

test("a client that never reads is closed", async () => {
  const c = await open("/socket-short?flood");
  const end = await c.closed;
  assert.equal(end.code, 1008);
  assert.match(end.reason, /not read/);
  await quiet();
});

test("what is sent on all connections and not read is bounded", async () => {
  const first = await open("/socket-short?fill");
  for (let i = 0; i < 4; i++) await first.read();
  const second = await open("/socket-short?fill");
  const end = await second.closed;
  assert.equal(end.code, 1013);
  assert.match(end.reason, /not read/);
  first.send("a"); // it is read
  assert.equal((await first.read()).data, "false 1 a");
  const third = await open("/socket-short?fill");
  for (let i = 0; i < 4; i++) await third.read();
  first.ws.terminate();
  third.ws.terminate();
  await quiet();
});

test("a relay passes both ways, and shows what it is asked for", async () => {
  up.talk = (ws) => ws.on("message", (data, binary) => ws.send(binary ? data : echo(data), { binary }));
  const c = await open(`/relay?${up.url}/echo`);
  const sent = ["a", Buffer.from([0, 255]), "{}", '{"seen":1}', "x".repeat(5 << 20)];
  for (const m of sent) c.send(m);
  for (const m of sent) {
    const got = await c.read();
    if (Buffer.isBuffer(m)) assert.deepEqual(got, { data: m, binary: true });
    else assert.equal(got.data, echo(m));
  }
  const got = up.seen.findLast((r) => r.upgrade);
  assert.equal(got.headers.authorization, "Bearer sk-upstream");
  assert.equal(got.headers["sec-websocket-protocol"], "realtime");
  await until("a check", async () => (await text("/socketed")).includes("checks true"));
  assert.match(await text("/socketed"), /seen \["up:\{\\"seen\\":1\}"\]/);
  c.ws.close(4002, "client");
  await until("the upstream's close", () => got.closed);
  assert.deepEqual(got.closed, { code: 4002, reason: "client" });
  await quiet();
  assert.match(await text("/socketed"), /4002 client false/);
});

test("an upstream's end, and the program's, close both connections of a relay", async () => {
  up.talk = (ws) =>
    ws.on("message", (data) =>
      data.toString() === "bye"
        ? ws.close(4003, "up")
        : data.toString() === "cut"
          ? ws.terminate()
          : ws.send(echo(data)),
    );
  for (const [word, code, reason] of [
    ["bye", 4003, "up"],
    ["cut", 1011, ""],
    ['"seen" stop', 1008, "stopped"],
  ]) {
    const c = await open(`/relay?${up.url}/echo`);
    c.send(word);
    assert.deepEqual(await c.closed, { code, reason }, word);
    await until("the upstream's close", () => up.seen.findLast((r) => r.upgrade).closed);
  }
  await quiet();
  assert.match(await text("/socketed"), /4003 up true/);
});

test("a relay has the limits of its connections", async () => {
  up.talk = (ws) => ws.on("message", (data) => ws.send("x".repeat(Number(data))));
  let c = await open(`/relay-short?${up.url}/echo`);
  c.send("900");
  await c.read();
  c.send("1001");
  assert.equal((await c.closed).code, 1009);
  c = await open(`/relay-short?${up.url}/echo`);
  assert.equal((await c.closed).code, 1008);
  await quiet();
});

test("an upstream that refuses, or does not answer, is an answer", async () => {
  up.script = (got) => (got.upgrade ? { status: 401, body: '{"error":"no"}' } : null);
  const refused = await refusal(`${gw.url}/relay?${up.url}/echo`);
  assert.deepEqual([refused.status, refused.body], [401, 'refused: {"error":"no"}']);
  up.script = (got) => (got.upgrade ? new Promise(() => {}) : null);
  const late = await refusal(`${gw.url}/relay?${up.url}/!stall`);
  assert.equal(late.status, 502);
  up.script = null;
  const none = await refusal(`${gw.url}/relay?http://127.0.0.1:1/`);
  assert.equal(none.status, 502);
  await quiet();
});

test("a handshake without a key is refused by the platform, and ends by its silence", async () => {
  for (const missing of ["sec-websocket-key", "sec-websocket-version"]) {
    const headers = {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "MDEyMzQ1Njc4OWFiY2RlZg==",
    };
    delete headers[missing];
    const [res] = await once(request(`${gw.url}/socket-short`, { headers }).end(), "response");
    assert.ok(res.statusCode >= 400 && res.statusCode < 500, `${missing}: ${res.statusCode}`);
    res.resume();
  }
  await quiet();
});

test("a program that is replaced ends connections that wait, and relays that are silent, with 1012", async () => {
  up.talk = (ws) => ws.on("message", (data) => ws.send(echo(data)));
  const c = await open("/socket");
  const relayed = await open(`/relay?${up.url}/echo`);
  for (const each of [c, relayed]) {
    each.send("a");
    await each.read();
  }
  await text("/hold?60"); // MiB
  await text("/random"); // begins in the successor
  for (const each of [c, relayed]) assert.equal((await each.closed).code, 1012);
  await until("the upstream's close", () => up.seen.findLast((r) => r.upgrade).closed);
  await quiet();
});

test("a program that has ended closes its connections with 1012", async () => {
  const c = await open("/socket");
  c.send("a");
  await c.read();
  await gw.fetch("/trap").catch(() => {});
  assert.equal((await c.closed).code, 1012);
});
