// GET /v1/realtime: the Realtime API over a WebSocket, with OpenAI's own client and as
// browsers connect.
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { connect, refusal } from "../sockets.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ cells: 1, vendors: up });
  operator = admin(gw);
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const address = (model = "up/gpt-realtime", path = "/v1/realtime") =>
  `${gw.url}${path}?model=${encodeURIComponent(model)}`;
const bearer = (key = me.apiKey, more = {}) => ({ headers: { authorization: `Bearer ${key}`, ...more } });
const last = () => up.seen.findLast((r) => r.upgrade);

// respond asks for a response and returns the types of the events up to its end.
async function respond(c) {
  c.send({ type: "response.create" });
  const types = [];
  while (types.at(-1) !== "response.done") types.push((await c.json()).type);
  return types;
}

test("a session passes both ways, as the provider sends it", async () => {
  const c = await connect(address(), bearer(me.apiKey, { "openai-safety-identifier": "u1", "x-secret": "no" }));
  assert.equal(c.answer.headers["x-weir-model"], "up/gpt-realtime");
  assert.ok(c.answer.headers["x-weir-connection-id"]);
  const created = await c.json();
  assert.equal(created.type, "session.created");
  assert.equal(created.session.model, "gpt-realtime");
  const got = last();
  assert.equal(got.path, "/v1/realtime?model=gpt-realtime");
  assert.equal(got.headers.authorization, "Bearer upstream-key");
  assert.equal(got.headers["openai-safety-identifier"], "u1");
  assert.equal(got.headers["x-secret"], undefined);
  assert.ok(!JSON.stringify(got.headers).includes(me.apiKey));
  const update = '{"type":"session.update",  "session":{"instructions":"☃"}}';
  c.send(update);
  assert.equal((await c.json()).session.instructions, "☃");
  assert.equal(got.messages[0].data, update);
  assert.deepEqual(await respond(c), [
    "response.created",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_audio.delta",
    "response.done",
  ]);
  c.ws.close(1000, "bye");
  await until("the provider's close", () => got.closed);
  assert.deepEqual(got.closed, { code: 1000, reason: "bye" });
});

test("each response is recorded with what it used, the session as one call", async () => {
  const own = await operator.machine();
  await operator.connect(own.machineId, compatible(up));
  const c = await connect(address(), bearer(own.apiKey));
  await c.json();
  await respond(c);
  await respond(c);
  c.ws.close();
  await c.closed;
  const record = await until("the record", async () => {
    const { data } = await operator.call("GET", `/${own.machineId}/api/requests`);
    return data[0];
  });
  assert.equal(record.endpoint, "/v1/realtime");
  assert.equal(record.status, 101);
  const { data } = await operator.call("GET", `/${own.machineId}/api/usage?groupBy=model`);
  assert.equal(data.length, 1);
  const { requests, attempts, inputTokens, outputTokens, unpricedAttempts } = data[0];
  const got = { requests, attempts, inputTokens, outputTokens, unpricedAttempts };
  // Each response has 132 and 121 tokens, some of them audio, whose price is unknown.
  assert.deepEqual(got, { requests: 1, attempts: 2, inputTokens: 264, outputTokens: 242, unpricedAttempts: 2 });
});

test("OpenAI's client talks to it", async () => {
  const openai = new OpenAI({ apiKey: me.apiKey, baseURL: `${gw.url}/v1` });
  const { port } = new URL(gw.url); // the client asks for TLS, which the gateway here has not
  const options = { createConnection: () => net.connect(Number(port), "127.0.0.1") };
  const rt = new OpenAIRealtimeWS({ model: "up/gpt-realtime", options }, openai);
  const done = new Promise((resolve, reject) => {
    rt.on("response.done", resolve);
    rt.on("error", reject);
  });
  rt.on("session.created", () => rt.send({ type: "response.create" }));
  assert.equal((await done).response.usage.total_tokens, 253);
  const closed = new Promise((resolve) => rt.socket.on("close", resolve));
  rt.close();
  await closed;
});

test("a browser's key comes as a sub-protocol, and goes no further", async () => {
  const c = await connect(address(), { protocols: ["realtime", `openai-insecure-api-key.${me.apiKey}`] });
  assert.equal(c.ws.protocol, "realtime");
  assert.equal((await c.json()).type, "session.created");
  assert.ok(!JSON.stringify(last().headers).includes(me.apiKey));
  c.ws.close();
  await c.closed;
  assert.equal((await refusal(address(), { protocols: ["realtime", "openai-insecure-api-key.sk-wrong"] })).status, 401);
  assert.ok(!gw.logs.join("\n").includes(me.apiKey));
});

test("a machine in the path, and a vendor's bare model name, work", async () => {
  const own = await operator.machine();
  await operator.connect(own.machineId, { provider: "openai", apiKey: "openai-test-key-0123456789" });
  const c = await connect(address("gpt-realtime", `/${own.machineId}/v1/realtime`), bearer(own.apiKey));
  assert.equal(c.answer.headers["x-weir-model"], "openai/gpt-realtime");
  assert.equal((await c.json()).session.model, "gpt-realtime");
  assert.equal(last().host, "api.openai.com");
  c.ws.close();
  await c.closed;
});

test("what cannot be served is refused before the upgrade", async () => {
  const own = await operator.machine();
  await operator.connect(own.machineId, { provider: "anthropic", apiKey: "anthropic-test-key-0123456789" });
  for (const [url, options, status, text] of [
    [address(), {}, 401, "key"],
    [address(), bearer("sk-wrong"), 401, "key"],
    [`${gw.url}/v1/realtime`, bearer(), 400, "names no model"],
    [address("nowhere/model"), bearer(), 400, "Unknown model"],
    [address("anthropic/claude-sonnet-4-5"), bearer(own.apiKey), 400, "no Realtime API"],
  ]) {
    const got = await refusal(url, options);
    assert.equal(got.status, status, got.body);
    assert.ok(JSON.parse(got.body).error.message.includes(text), got.body);
  }
  const plain = await fetch(address(), bearer());
  assert.equal(plain.status, 426);
  assert.equal((await plain.json()).error.code, "upgrade_required");
});

test("an account that refuses is followed by the next", async () => {
  const own = await operator.machine();
  for (const apiKey of ["bad-key", "good-key"]) await operator.connect(own.machineId, compatible(up, { apiKey }));
  up.script = (got) =>
    got.upgrade && got.headers.authorization === "Bearer bad-key"
      ? { status: 401, body: '{"error":{"message":"wrong key","code":"invalid_api_key"}}' }
      : null;
  for (let i = 0; i < 2; i++) {
    const c = await connect(address(), bearer(own.apiKey));
    assert.equal((await c.json()).type, "session.created");
    assert.equal(last().headers.authorization, "Bearer good-key");
    c.ws.close();
    await c.closed;
  }
  up.script = (got) =>
    got.upgrade ? { status: 400, body: '{"error":{"message":"no such voice","code":"invalid_value"}}' } : null;
  const got = await refusal(address(), bearer(own.apiKey));
  up.script = null;
  assert.equal(got.status, 400);
  assert.equal(JSON.parse(got.body).error.message, "no such voice");
});

test("a provider that closes, or breaks off, closes the client", async () => {
  for (const [end, code] of [
    [(ws) => ws.close(4100, "session ended"), 4100],
    [(ws) => ws.terminate(), 1011],
  ]) {
    up.talk = (ws) => ws.on("message", () => end(ws));
    const c = await connect(address(), bearer());
    c.send("x");
    assert.equal((await c.closed).code, code);
  }
  up.talk = null;
});

test("a message of the provider over 16 MiB closes with 1009", async () => {
  up.talk = (ws) => ws.on("message", () => ws.send("x".repeat((16 << 20) + 1)));
  const c = await connect(address(), bearer());
  c.send("x");
  assert.equal((await c.closed).code, 1009);
  up.talk = null;
});

test("nothing is left behind", async () => {
  const c = await connect(address(), bearer());
  await c.json();
  c.ws.terminate();
  await until("the provider's close", () => last().closed);
});
