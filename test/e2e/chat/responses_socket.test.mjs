// Responses over WebSocket with OpenAI's client and with raw events, as Codex sends
// them: conversations that only the socket knows, errors, clients that leave, and
// upgrades that are refused.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, families, start } from "../gateway.mjs";
import { connect, refusal } from "../sockets.mjs";
import { until } from "../wait.mjs";

let gw, up, me, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up, inspect: true });
  operator = admin(gw);
  me = await families(operator, up);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = null;
});

const opened = [];
afterEach(() => {
  for (const c of opened.splice(0)) c.ws.terminate();
});
async function open(path = "/v1/responses", key = me.apiKey) {
  const headers = { authorization: `Bearer ${key}`, "openai-beta": "responses_websockets=2026-02-06" };
  const c = await connect(gw.url + path, { headers });
  opened.push(c);
  return c;
}
const create = (model, input, more = {}) => ({ type: "response.create", model, input, store: false, ...more });
const quiet = () =>
  until("everything has ended", async () => {
    const s = await gw.stats();
    return s.calls === 0 && s.streams === 0;
  });
const sse = (list) => ({
  headers: { "content-type": "text/event-stream" },
  body: list.map((e) => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join(""),
});

// answer returns the next events, up to one that ends a response.
async function answer(c) {
  const events = [];
  for (;;) {
    const e = await c.json();
    events.push(e);
    if (["response.completed", "response.failed", "response.incomplete"].includes(e.type) || e.status) return events;
  }
}
function turn(c, event) {
  c.send(event);
  return answer(c);
}
const text = (events) =>
  events
    .filter((e) => e.type === "response.output_text.delta")
    .map((e) => e.delta)
    .join("");

// responses is an upstream that speaks Responses, and stores what it is asked to.
const responses = (req) => {
  if (!req.path.endsWith("/responses")) return null;
  const item = {
    type: "message",
    id: `msg_${up.seen.length}`,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "Hi.", annotations: [] }],
  };
  const response = { id: `resp_${up.seen.length}`, object: "response", store: req.json.store !== false, output: [] };
  return sse([
    { type: "response.created", response },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    { type: "response.output_text.delta", output_index: 0, item_id: item.id, content_index: 0, delta: "Hi." },
    { type: "response.output_item.done", output_index: 0, item },
    {
      type: "response.completed",
      response: { ...response, output: [item], usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 } },
    },
  ]);
};

for (const model of ["up/test-chat", "an/test-claude", "openai/gpt-4.1"])
  test(`OpenAI's client holds a conversation with ${model}`, async () => {
    if (model.startsWith("openai/")) up.script = responses;
    const client = new OpenAI({ apiKey: me.apiKey, baseURL: `${gw.url}/v1`, maxRetries: 0 });
    const ws = new ResponsesWS(client);
    const events = ws.stream();
    let previous_response_id;
    for (const input of ["first question", "second question", "third question"]) {
      ws.send({ ...create(model, input), previous_response_id });
      let said = "";
      for (;;) {
        const { value, done } = await events.next();
        assert.ok(!done);
        if (value.type === "error") throw value.error;
        if (value.type !== "message") continue;
        const e = value.message;
        if (e.type === "response.output_text.delta") said += e.delta;
        if (e.type === "response.completed") {
          previous_response_id = e.response.id;
          assert.ok(e.response.usage.total_tokens > 0);
          break;
        }
      }
      assert.equal(said, up.script ? "Hi." : `You said: ${input}`);
    }
    ws.close();
    const { json } = up.seen.at(-1);
    const roles = (json.input ?? json.messages).map((m) => m.role);
    assert.deepEqual(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert.equal(json.stream, true);
    assert.equal(json.type, undefined);
    await quiet();
  });

test("a stored response is continued by its id", async () => {
  up.script = responses;
  const c = await open(`/${me.machineId}/v1/responses`);
  const [{ response }] = (await turn(c, create("openai/gpt-4.1", "first", { store: true }))).slice(-1);
  await turn(c, create("openai/gpt-4.1", "second", { previous_response_id: response.id }));
  const { json } = up.seen.at(-1);
  assert.equal(json.previous_response_id, response.id);
  assert.equal(json.input, "second");
  c.ws.close();
  await quiet();
});

test("Codex's warm-up and lanes", async () => {
  const c = await open();
  const warm = await turn(c, create("up/test-chat", "the whole prompt", { generate: false }));
  assert.equal(up.seen.length, 0);
  const { id } = warm.at(-1).response;
  const first = await turn(c, create("up/test-chat", [], { previous_response_id: id, client_metadata: { a: "b" } }));
  assert.equal(text(first), "You said: the whole prompt");
  c.send({ type: "response.processed", response_id: first.at(-1).response.id });
  for (const lane of ["a", "b"]) c.send(create("up/test-chat", `for ${lane}`, { stream_id: lane }));
  for (const lane of ["a", "b"]) {
    const events = await answer(c);
    assert.ok(events.every((e) => e.stream_id === lane));
    assert.equal(text(events), `You said: for ${lane}`);
  }
  c.ws.close();
  await quiet();
});

test("errors have a status and leave the socket open", async () => {
  const c = await open();
  for (const [event, status, code] of [
    ["not JSON", 400, "invalid_json"],
    [{ type: "session.update" }, 400, null],
    [create("up/test-chat", "x", { stream_id: "" }), 400, "invalid_stream_id"],
    [create("up/test-chat", "x", { previous_response_id: "resp_none" }), 400, "previous_response_not_found"],
    [create("nothing/at-all", "x"), 400, "model_not_found"],
    [create("up/test-chat!status=400", "x"), 400, undefined],
    [create("up/test-chat!status=500", "x"), 500, undefined],
  ]) {
    const [e] = await turn(c, event);
    assert.equal(e.type, "error", JSON.stringify(e));
    assert.equal(e.status, status, JSON.stringify(e));
    if (code !== undefined) assert.equal(e.error.code, code, JSON.stringify(e));
    assert.ok(e.error.message);
  }
  // A stream that breaks off ends with an event that clients wait for.
  const cut = await turn(c, create("up/test-chat!chunks=20!reset-after=5", "x"));
  assert.equal(cut.at(-1).type, "response.failed");
  assert.equal(text(await turn(c, create("up/test-chat", "still here"))), "You said: still here");
  c.ws.close();
  await quiet();
});

test("an upstream that falls silent ends the turn after idleSeconds", async () => {
  const other = await families(operator, up);
  await operator.call("PATCH", `/${other.machineId}/api/settings`, { idleSeconds: 1 });
  for (const model of ["up/test-chat!chunks=20!stall-after=3", "openai/gpt-4.1!stall-after=5"]) {
    const c = await open("/v1/responses", other.apiKey);
    const events = await turn(c, create(model, "x"));
    assert.equal(events.at(-1).type, "response.failed", JSON.stringify(events.at(-1)));
    c.ws.close();
  }
  await quiet();
});

test("a client that leaves ends the upstream's call, and blames no account", async () => {
  const c = await open();
  c.send(create("up/test-chat!chunks=2000!slow=20", "x"));
  await c.json();
  c.ws.terminate();
  await until("the upstream's call has ended", () => up.seen.at(-1).aborted);
  await quiet();
  const { data } = await operator.call("GET", `/${me.machineId}/api/models/availability`);
  assert.deepEqual(data, []);
});

test("a client that floods is closed with 1008, and its call ends", async () => {
  const c = await open();
  c.send(create("up/test-chat!chunks=2000!slow=20", "x"));
  await c.json();
  for (let i = 0; i < 80; i++) c.send({ type: "response.processed" });
  assert.equal((await c.closed).code, 1008);
  await until("the upstream's call has ended", () => up.seen.at(-1).aborted);
  await quiet();
});

test("a binary message closes with 1003", async () => {
  const c = await open();
  c.send(Buffer.from([1]));
  assert.equal((await c.closed).code, 1003);
  await quiet();
});

test("upgrades are refused where they are turned off, or lead nowhere", async () => {
  for (const path of ["/v1/chat/completions", "/v1/responses/resp_1", "/v1/nothing", "/v1/messages"])
    assert.equal(
      (await refusal(gw.url + path, { headers: { authorization: `Bearer ${me.apiKey}` } })).status,
      426,
      path,
    );
  assert.equal((await refusal(`${gw.url}/v1/responses`)).status, 401);
  const plain = await gw.fetch("/v1/responses", { headers: { authorization: `Bearer ${me.apiKey}` } });
  assert.equal(plain.status, 405);

  const other = await families(operator, up);
  await operator.call("PATCH", `/${other.machineId}/api/settings`, { responsesWebSocket: "off" });
  const refused = await until("the setting is known", async () => {
    const c = await open("/v1/responses", other.apiKey).catch((e) => e);
    if (c.status) return c;
    c.ws.terminate();
    return null;
  });
  assert.equal(refused.status, 426);
  assert.equal(JSON.parse(refused.body).error.code, "upgrade_not_supported");
  await quiet();
});
