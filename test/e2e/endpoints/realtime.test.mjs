// GET /v1/realtime: the Realtime API over a WebSocket, with OpenAI's own client and as
// browsers connect.
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import WebSocket from "ws";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { connect, refusal } from "../sockets.mjs";
import { until } from "../wait.mjs";

let gw, up, operator, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
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

test("audio is priced, and a budget that is exhausted ends the session", async () => {
  const own = await operator.machine();
  await operator.connect(own.machineId, compatible(up));
  const api = (method, path, body) => operator.call(method, `/${own.machineId}/api${path}`, body);
  await api("PATCH", "/settings", { modelPrices: { "up/gpt-realtime": "4/16/0.4 audioInput=32 audioOutput=64" } });
  // A response costs 55 · 4 + 30 · 16 + 64 · 0.4 + 13 · 32 + 91 · 64 for a million.
  const cost = 0.0069656;
  await api("POST", "/budgets", { name: "two", unit: "usd", limit: 1.5 * cost, window: "total" });
  const c = await connect(address(), bearer(own.apiKey));
  await c.json();
  await respond(c);
  await respond(c);
  const { code, reason } = await c.closed;
  assert.deepEqual([code, reason.split(":")[0]], [1008, "budget_exceeded"]);
  await until("the use", async () => {
    const [b] = (await api("GET", "/budgets")).data;
    return Math.abs(b.spent - 2 * cost) < 1e-9 && !b.unpricedCalls;
  });
  const { status, body } = await refusal(address(), bearer(own.apiKey));
  assert.equal(status, 429, body);
  const record = await until("the record", async () =>
    (await api("GET", "/requests")).data.find((r) => r.status === 101),
  );
  assert.equal(record.error, "budget_exceeded");
});

test("a session with cached audio has the price of the catalogue", async () => {
  const own = await operator.machine();
  const api = (method, path, body) => operator.call(method, `/${own.machineId}/api${path}`, body);
  await operator.connect(own.machineId, { provider: "openai", apiKey: "upstream-key" });
  const turns = [
    {
      input_tokens: 132,
      output_tokens: 121,
      input_token_details: { text_tokens: 100, audio_tokens: 20, image_tokens: 12, cached_tokens: 0 },
      output_token_details: { text_tokens: 30, audio_tokens: 91 },
    },
    {
      input_tokens: 400,
      output_tokens: 70,
      input_token_details: {
        text_tokens: 150,
        audio_tokens: 200,
        image_tokens: 50,
        cached_tokens: 320,
        cached_tokens_details: { text_tokens: 140, audio_tokens: 150, image_tokens: 30 },
      },
      output_token_details: { text_tokens: 10, audio_tokens: 60 },
    },
  ];
  up.talk = (ws) => {
    ws.send('{"type":"session.created"}');
    ws.on("message", () => {
      ws.send('{"type":"response.created","response":{"id":"resp_1"}}');
      if (turns.length) ws.send(JSON.stringify({ type: "response.done", response: { usage: turns.shift() } }));
    });
  };
  try {
    const c = await connect(address("openai/gpt-realtime-2.1"), bearer(own.apiKey));
    await c.json();
    await respond(c);
    await respond(c);
    c.send({ type: "response.create" });
    assert.equal((await c.json()).type, "response.created"); // and left before its end
    c.ws.close();
    await c.closed;
  } finally {
    up.talk = null;
  }
  // 100 · 4 + 20 · 32 + 12 · 5 + 30 · 24 + 91 · 64 for a million in the first turn, in the second
  // 10 · 4 + 50 · 32 + 20 · 5 + 140 · 0.4 + 150 · 0.4 + 30 · 0.5 + 10 · 24 + 60 · 64.
  const used = await until("the use", async () => {
    const { data } = await api("GET", "/usage?groupBy=model");
    return data[0]?.attempts === 3 && data[0];
  });
  assert.equal(used.unpricedAttempts, 1);
  assert.equal(used.costUsd, 0.013595);
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

// browser runs f where the global WebSocket is one that the gateway here, which has no
// TLS, can be reached with.
async function browser(f) {
  const native = globalThis.WebSocket;
  globalThis.WebSocket = class extends WebSocket {
    constructor(url, protocols) {
      super(url.replace(/^wss/, "ws"), protocols);
    }
  };
  try {
    return await f();
  } finally {
    globalThis.WebSocket = native;
  }
}

test("a browser connects with a client secret to the account that made it", async () => {
  const own = await operator.machine();
  for (const apiKey of ["first-key", "second-key"]) await operator.connect(own.machineId, compatible(up, { apiKey }));
  await operator.call("PATCH", `/${own.machineId}/api/settings`, { strategy: "round-robin" });
  const openai = new OpenAI({ apiKey: own.apiKey, baseURL: `${gw.url}/v1` });
  for (let i = 0; i < 3; i++) {
    const session = { type: "realtime", model: "up/gpt-realtime", instructions: `number ${i}` };
    const { data: made, response } = await openai.realtime.clientSecrets.create({ session }).withResponse();
    const asked = up.seen.at(-1);
    assert.equal(asked.path, "/v1/realtime/client_secrets");
    assert.equal(asked.json.session.model, "gpt-realtime");
    assert.match(made.value, /^ek_/);
    assert.equal(made.session.model, "up/gpt-realtime");
    assert.ok(made.expires_at > Date.now() / 1000);
    assert.ok(!JSON.stringify(made).includes("ek_upstream"));

    const page = new OpenAI({ apiKey: made.value, baseURL: `${gw.url}/v1` });
    const rt = await browser(() => new OpenAIRealtimeWebSocket({ model: "up/gpt-realtime" }, page));
    const done = new Promise((resolve, reject) => {
      rt.on("response.done", resolve);
      rt.on("error", reject);
    });
    rt.on("session.created", () => rt.send({ type: "response.create" }));
    assert.equal((await done).response.usage.total_tokens, 253);
    const socket = last();
    assert.match(socket.headers.authorization, /^Bearer ek_upstream[0-9a-f]{16}$/);
    assert.equal(socket.path, "/v1/realtime?model=gpt-realtime");
    assert.ok(!JSON.stringify(socket.headers).includes(made.value));
    const closed = new Promise((resolve) => rt.socket.addEventListener("close", resolve));
    rt.close();
    await closed;

    const c = await connect(`${gw.url}/v1/realtime`, bearer(made.value)); // it names the model
    assert.equal(c.answer.headers["x-weir-connection-id"], response.headers.get("x-weir-connection-id"));
    c.ws.close();
    await c.closed;
    assert.ok(!gw.logs.join("\n").includes(made.value));
  }
  const { data } = await until("the records", async () => {
    const list = await operator.call("GET", `/${own.machineId}/api/requests`);
    return list.data.some((r) => r.endpoint === "/v1/realtime/client_secrets") && list;
  });
  assert.ok(data.length > 0);
});

test("a client secret that is forged, of another model or of a revoked key is refused", async () => {
  const own = await operator.machine();
  await operator.connect(own.machineId, compatible(up));
  const create = async (body, key = own.apiKey) => {
    const res = await gw.fetch("/v1/realtime/client_secrets", {
      method: "POST",
      headers: { ...bearer(key).headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: res.status, ...(await res.json()) };
  };
  const session = { type: "realtime", model: "up/gpt-realtime" };
  const { value } = await create({ session });
  const sockets = up.seen.filter((r) => r.upgrade).length;
  const swapped = value.slice(-10).startsWith("A") ? "B" : "A";
  for (const [bad, url, status] of [
    ["ek_0123456789abcdef", address(), 401],
    [value.slice(0, -10) + swapped + value.slice(-9), address(), 401],
    [value.replace(own.machineId, me.machineId), address(), 401],
    [value, address("up/another"), 403],
  ]) {
    const got = await refusal(url, { protocols: ["realtime", `openai-insecure-api-key.${bad}`] });
    assert.equal(got.status, status, got.body);
  }
  assert.equal(up.seen.filter((r) => r.upgrade).length, sockets);
  // It is a credential of the socket alone.
  assert.equal((await gw.fetch("/v1/models", bearer(value))).status, 401);
  assert.equal((await create({ session }, value)).status, 401);
  for (const [body, param] of [
    [{}, "session"],
    [{ session: { type: "transcription" } }, "session.type"],
    [{ session: { type: "realtime" } }, "session.model"],
  ]) {
    const got = await create(body);
    assert.equal(got.status, 400);
    assert.equal(got.error.param, param);
  }
  const keys = await operator.call("GET", `/${own.machineId}/api/keys`);
  await operator.call("DELETE", `/${own.machineId}/api/keys/${keys.data[0].id}`);
  await until("the revocation", async () => {
    const c = await connect(address(), bearer(value)).catch((e) => e);
    c.ws?.terminate();
    return c.status === 401;
  });
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
