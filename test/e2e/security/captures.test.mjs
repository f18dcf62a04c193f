// Bodies of calls are stored on request alone: masked, sealed, bounded, and read by
// whoever may export secrets. See docs/guides/captured-bodies.md.
// workerd: soak
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";
import { sleep, until } from "../wait.mjs";

const accountKey = "account-key-0123456789abcdef";
const prompted = "sk-ant-api03-prompted0123456789";
const chunk = (text) => `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content: text } }] })}\n\n`;
const end = 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

let gw, upstream, operator;
before(async () => {
  // The model's name says what is answered.
  upstream = createServer((req, res) => {
    const body = [];
    req
      .on("data", (b) => body.push(b))
      .on("end", async () => {
        const { model, stream } = JSON.parse(Buffer.concat(body));
        if (!stream) {
          const content = model === "long" ? "long answer ".repeat(200_000) : "a plain answer";
          res.writeHead(200, { "content-type": "application/json" });
          return res.end(
            JSON.stringify({
              id: "c",
              object: "chat.completion",
              choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
            }),
          );
        }
        res.writeHead(200, { "content-type": "text/event-stream" });
        if (model === "endless")
          while (!res.destroyed) {
            res.write(chunk("more "));
            await sleep(20);
          }
        else if (model === "cut") {
          res.write(chunk("a start "));
          await sleep(200);
          res.destroy();
        } else if (model === "echo") {
          for (const at of [0, 8, 16, 24]) res.write(chunk((accountKey + " ").slice(at, at + 8)));
          for (const at of [0, 9, 18, 27]) res.write(chunk(prompted.slice(at, at + 9)));
          res.end(chunk(" is the key") + end);
        } else if (model === "long") {
          for (let i = 0; i < 8000; i++) res.write(chunk(`piece ${i} of a long answer `));
          res.end(end);
        } else res.end(chunk("a streamed ") + chunk("answer") + end);
      });
  });
  await new Promise((r) => upstream.listen(0, "127.0.0.1", r));
  gw = await start();
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  upstream?.closeAllConnections();
  upstream?.close();
});

// tenant creates a machine that stores the bodies of a share of its calls.
async function tenant(capturePercent = 100) {
  const me = await operator.machine();
  await operator.connect(
    me.machineId,
    compatible({ url: `http://127.0.0.1:${upstream.address().port}` }, { apiKey: accountKey }),
  );
  await operator.call("PATCH", `/${me.machineId}/api/settings`, { capturePercent });
  return me;
}

const ask = (me, path, body, init = {}) =>
  gw.fetch(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
    ...init,
  });
const user = (content) => [{ role: "user", content }];
const listed = async (me) => (await operator.call("GET", `/${me.machineId}/api/captures`)).data;

// stored returns the stored bodies of a request once they are there.
async function stored(me, id) {
  await until("the bodies", async () => (await listed(me)).some((c) => c.id === id));
  return operator.call("GET", `/${me.machineId}/api/captures/${id}`);
}

for (const [name, path, more] of [
  ["an answer", "/v1/chat/completions", {}],
  ["a stream", "/v1/chat/completions", { stream: true, stream_options: { include_usage: true } }],
  ["a stream whose usage is asked for", "/v1/chat/completions", { stream: true }],
  ["a translated answer", "/v1/messages", { max_tokens: 100 }],
  ["a translated stream", "/v1/messages", { max_tokens: 100, stream: true }],
  ["a stream of responses", "/v1/responses", { stream: true, store: false, messages: undefined, input: "a question" }],
])
  test(`the bodies of ${name} are stored as they passed`, async () => {
    const me = await tenant(),
      sent = { model: "up/m", messages: user("a question"), ...more };
    const answer = await ask(me, path, sent),
      text = await answer.text();
    assert.equal(answer.status, 200, text);
    const got = await stored(me, answer.headers.get("x-request-id"));
    assert.equal(got.request.text, JSON.stringify(sent));
    assert.equal(got.answer.text, text);
    assert.equal(got.answer.bytes, text.length);
    assert.equal(got.answer.cut, false);
    assert.ok(answer.headers.get("content-type").startsWith(got.answer.contentType));
    await until("the mark of the request", async () => {
      const { data } = await operator.call("GET", `/${me.machineId}/api/requests`);
      return data[0]?.captured;
    });
  });

test("without the setting nothing is stored, and what is turned off ends", async () => {
  const me = await tenant(0);
  const calls = async () => {
    for (let i = 0; i < 5; i++)
      assert.equal((await ask(me, "/v1/chat/completions", { model: "up/m", messages: user("x") })).status, 200);
  };
  await calls();
  await until(
    "the requests",
    async () => (await operator.call("GET", `/${me.machineId}/api/requests`)).data.length === 5,
  );
  assert.deepEqual(await listed(me), []);
  await operator.call("PATCH", `/${me.machineId}/api/settings`, { capturePercent: 100 });
  await until("a capture", async () => {
    await calls();
    return (await listed(me)).length > 0;
  });
  await operator.call("PATCH", `/${me.machineId}/api/settings`, { capturePercent: null });
  await operator.call("DELETE", `/${me.machineId}/api/captures`);
  const last = await ask(me, "/v1/chat/completions", { model: "up/m", messages: user("x") });
  await until("the last request", async () => {
    const { data } = await operator.call("GET", `/${me.machineId}/api/requests`);
    return data[0].id === last.headers.get("x-request-id");
  });
  assert.deepEqual(await listed(me), []);
});

test("credentials are masked, also those that a stream has in pieces", async () => {
  const me = await tenant();
  const answer = await ask(me, "/v1/chat/completions", {
    model: "up/echo",
    stream: true,
    messages: user(`my key is ${prompted}, yours is ${me.apiKey}, the account's is ${accountKey}`),
  });
  const text = await answer.text();
  assert.ok(text.includes("is the key"), text);
  const got = await stored(me, answer.headers.get("x-request-id"));
  assert.match(got.request.text, /my key is \*\*\*, yours is \*\*\*, the account's is \*\*\*/);
  for (const part of [prompted, me.apiKey, accountKey, "prompted01", "0123456789", "account-", "sk-ant"])
    assert.ok(!got.answer.text.includes(part) && !got.request.text.includes(part), `${part}: ${got.answer.text}`);
  assert.match(got.answer.text, /\*\*\* \*\*\* is the key/);
});

test("large bodies are cut, and say so; the client gets everything", async () => {
  const me = await tenant();
  for (const stream of [false, true]) {
    const answer = await ask(me, "/v1/chat/completions", {
      model: "up/long",
      stream,
      messages: user("a long question ".repeat(400_000)),
    });
    const text = await answer.text();
    assert.ok(stream ? text.includes("piece 7999 ") && text.endsWith("[DONE]\n\n") : text.length > 2_000_000);
    const got = await stored(me, answer.headers.get("x-request-id"));
    for (const [body, bytes] of [
      [got.request, 6_400_000],
      [got.answer, text.length],
    ]) {
      assert.ok(
        body.cut && body.text.length <= 256 << 10 && body.text.length > 200 << 10,
        `${body.text.length} of ${body.bytes}`,
      );
      assert.ok(body.bytes >= bytes, `${body.bytes} of ${bytes}`);
    }
    assert.ok(got.bytes < 1 << 20);
  }
});

test("a stream that the client leaves, or the provider breaks off, is stored up to there", async () => {
  const me = await tenant();
  const broken = await ask(me, "/v1/chat/completions", { model: "up/cut", stream: true, messages: user("x") });
  const text = await broken.text();
  assert.match(text, /upstream_(cut|reset)/);
  assert.equal((await stored(me, broken.headers.get("x-request-id"))).answer.text, text);

  const abort = new AbortController();
  const left = await ask(
    me,
    "/v1/chat/completions",
    { model: "up/endless", stream: true, messages: user("x") },
    { signal: abort.signal },
  );
  const reader = left.body.getReader();
  for (let i = 0; i < 5; i++) await reader.read();
  abort.abort();
  const got = await stored(me, left.headers.get("x-request-id"));
  assert.ok(got.answer.text.startsWith(chunk("more ")), got.answer.text);
});

test("another machine, a data key and a manage key do not read them, and every look is recorded", async () => {
  const me = await tenant(),
    other = await tenant();
  const answer = await ask(me, "/v1/chat/completions", { model: "up/m", messages: user("x") }),
    id = answer.headers.get("x-request-id");
  await answer.text();
  await stored(me, id);
  const keys = {};
  for (const scopes of [["manage"], ["manage", "export"]])
    keys[scopes.join("+")] = (await operator.call("POST", `/${me.machineId}/api/keys`, { scopes })).apiKey;
  const look = (machineId, token) =>
    gw.fetch(`/${machineId}/api/captures/${id}`, { headers: token ? { authorization: `Bearer ${token}` } : {} });
  assert.equal((await look(me.machineId)).status, 401);
  assert.equal((await look(me.machineId, me.apiKey)).status, 403);
  assert.equal((await look(me.machineId, other.apiKey)).status, 401);
  assert.equal((await look(me.machineId, keys.manage)).status, 403);
  assert.equal((await look(me.machineId, keys["manage+export"])).status, 200);
  await assert.rejects(operator.call("GET", `/${other.machineId}/api/captures/${id}`), { status: 404 });
  const { data } = await operator.call("GET", `/${me.machineId}/api/audit`);
  const looks = data.filter((r) => r.action === "GET /api/captures/{id}");
  assert.deepEqual(
    looks.map((r) => [r.actor.slice(0, 4), r.target]),
    [
      ["key:", id],
      ["oper", id],
    ],
  );
  for (const doc of [
    await operator.call("GET", `/${me.machineId}/api/export`),
    await operator.call("GET", `/${me.machineId}/api/requests`),
    await operator.call("GET", `/${me.machineId}/api/audit`),
  ])
    assert.ok(!JSON.stringify(doc).includes("a plain answer"));
  assert.ok(!gw.logs.join("\n").includes("a plain answer"));
});

test("many large captures at once delay no call, and leave no memory taken", async () => {
  const me = await tenant();
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, i) =>
      ask(me, "/v1/chat/completions", {
        model: "up/long",
        stream: i % 2 === 0,
        messages: user("a question ".repeat(30_000)),
      }),
    ),
  );
  for (const a of answers) {
    assert.equal(a.status, 200);
    await a.text();
  }
  const last = await ask(me, "/v1/chat/completions", { model: "up/m", messages: user("x") });
  assert.equal((await stored(me, last.headers.get("x-request-id"))).answer.cut, false);
});
