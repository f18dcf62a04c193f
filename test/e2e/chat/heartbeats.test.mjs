// While an upstream is silent within a stream, the client gets heartbeats of its own
// dialect: between events only, and without another change of the bytes.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, ask;
before(async () => {
  up = await upstream();
  gw = await start();
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, compatible(up));
  await operator.connect(machineId, {
    ...compatible(up, { prefix: "an" }),
    provider: "anthropic-compatible-0123abcd",
  });
  await operator.call("PATCH", `/${machineId}/api/settings`, { idleSeconds: 10 }); // a heartbeat a second
  ask = (path, body) =>
    gw.fetch(path, {
      method: "POST",
      body: JSON.stringify({ stream: true, ...body }),
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const chunk = (text) =>
  `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${text}"},"finish_reason":null}]}\n\n`;
const finish = 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const event = (type, more = "") => `event: ${type}\ndata: {"type":"${type}"${more}}\n\n`;
const delta = (text) => event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"${text}"}`);
const begun =
  event(
    "message_start",
    ',"message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}',
  ) + event("content_block_start", ',"index":0,"content_block":{"type":"text","text":""}');
const stopped =
  event("content_block_stop", ',"index":0') +
  event("message_delta", ',"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}') +
  event("message_stop");

// upstream is a server that sends the parts of the scene which the request's model
// names, and after each but the last waits until next(model) is called.
async function upstream() {
  const scenes = new Map();
  const server = createServer((req, res) => {
    const body = [];
    req
      .on("data", (b) => body.push(b))
      .on("end", async () => {
        if (req.url.endsWith("/responses")) return res.writeHead(404).end("{}");
        const scene = scenes.get(JSON.parse(Buffer.concat(body)).model);
        res.on("close", () => {
          scene.closed = true;
        });
        res.writeHead(200, { "content-type": "text/event-stream" });
        for (const [i, part] of scene.parts.entries()) {
          if (i > 0)
            await new Promise((r) => {
              scene.next = r;
            });
          res.write(part);
        }
        res.end();
      });
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    scene(model, ...parts) {
      const scene = { parts, next: null, closed: false };
      scenes.set(model, scene);
      return scene;
    },
    close() {
      server.closeAllConnections();
      return new Promise((r) => server.close(r));
    },
  };
}

// follow reads an answer; text is what has come so far.
function follow(answer) {
  const it = { text: "", done: null };
  it.done = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of answer.body) it.text += decoder.decode(bytes, { stream: true });
  })();
  return it;
}

const count = (text, part) => text.split(part).length - 1;
const comment = ": keep-alive\n\n";
const ping = event("ping");
const empty = 'data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}]}\n\n';
const messages = [{ role: "user", content: "a" }];

for (const [name, path, body, parts, beat, passes] of [
  ["chat", "/v1/chat/completions", { model: "up/chat", messages }, [chunk("a"), chunk("b"), finish], comment, true],
  [
    "Messages",
    "/v1/messages",
    { model: "an/messages", max_tokens: 9, messages },
    [begun + delta("a"), delta("b"), stopped],
    ping,
    true,
  ],
  [
    "chat to Messages",
    "/v1/messages",
    { model: "up/to-messages", max_tokens: 9, messages },
    [chunk("a"), chunk("b"), finish],
    ping,
    false,
  ],
  [
    "chat to Responses",
    "/v1/responses",
    { model: "up/to-responses", input: "a" },
    [chunk("a"), chunk("b"), finish],
    comment,
    false,
  ],
  [
    "chat to Gemini",
    "/v1beta/models/up/to-gemini:streamGenerateContent?alt=sse",
    { model: "up/to-gemini", contents: [{ parts: [{ text: "a" }] }] },
    [chunk("a"), chunk("b"), finish],
    empty,
    false,
  ],
])
  test(`a silent stream of ${name} has heartbeats, and goes on`, { timeout: 120_000 }, async () => {
    const model = body.model.split("/")[1],
      scene = up.scene(model, ...parts);
    const answer = await ask(path, body);
    assert.equal(answer.status, 200);
    const got = follow(answer);
    for (let beats = 2; beats <= 4; beats += 2) {
      await until(`${beats} heartbeats`, () => count(got.text, beat) >= beats);
      scene.next();
    }
    await got.done;
    if (passes) assert.equal(got.text.replaceAll(beat, ""), parts.join(""));
    else assert.match(got.text, /"b"/);
    assert.doesNotMatch(got.text, /"error":\{/);
  });

test("no heartbeat comes within an event, nor after the end", { timeout: 120_000 }, async () => {
  const whole = up.scene("whole", chunk("a"), finish),
    half = up.scene("half", chunk("a") + chunk("b").slice(0, -1), "\n" + finish);
  const first = follow(await ask("/v1/chat/completions", { model: "up/whole", messages }));
  const second = follow(await ask("/v1/chat/completions", { model: "up/half", messages }));
  await until("three heartbeats", () => count(first.text, comment) >= 3);
  assert.equal(second.text, half.parts[0]);
  whole.next();
  half.next();
  await Promise.all([first.done, second.done]);
  assert.equal(second.text, half.parts.join(""));
  assert.ok(first.text.endsWith(finish));
});

test("a client that leaves between heartbeats ends the upstream's call", { timeout: 120_000 }, async () => {
  const scene = up.scene("left", chunk("a"), finish);
  const answer = await ask("/v1/chat/completions", { model: "up/left", messages });
  const reader = answer.body.getReader();
  let text = "";
  while (!text.includes(comment)) text += new TextDecoder().decode((await reader.read()).value);
  await reader.cancel();
  await until("the end of the call", () => scene.closed);
});
