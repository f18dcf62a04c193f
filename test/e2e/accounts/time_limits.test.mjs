// Time limits of an upstream: one setting replaces the default on every endpoint,
// silence within a body that is read whole counts like silence before it, and
// after the response header no other account is tried.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import * as anthropic from "../../upstream/anthropic.mjs";
import * as openai from "../../upstream/openai.mjs";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up;
before(async () => {
  up = await upstream();
  gw = await start();
});
after(async () => {
  await gw?.close();
  await up?.close();
});

// upstream is a server whose first account sends the answer as up.how says, and
// whose second answers at once. asked has both, in order.
async function upstream() {
  const it = { asked: [], how: null, text: "" };
  const server = createServer((req, res) => {
    const parts = [];
    req
      .on("data", (b) => parts.push(b))
      .on("end", () => {
        const first = (req.headers.authorization ?? req.headers["x-api-key"] ?? "").includes("key-1"),
          type = req.headers["content-type"] ?? "";
        const q = type.includes("json") && parts.length ? JSON.parse(Buffer.concat(parts)) : {};
        it.asked.push(first ? 1 : 2);
        let answer = {
          text: "Hello",
          object: "list",
          id: "id",
          data: [{ url: "https://x.example/a.png" }],
          results: [{ index: 0, relevance_score: 1, flagged: false, categories: {}, category_scores: {} }],
          model: "m",
          created: 1,
        };
        if (req.url.endsWith("/embeddings")) answer = openai.embeddings(q, "m", {});
        if (req.url.endsWith("/chat/completions")) answer = openai.chat({ ...q, stream: false }, "m", {}).json;
        if (req.url.endsWith("/messages")) answer = anthropic.messages({ ...q, stream: false }, "m", {}).json;
        if (req.url.endsWith("/responses"))
          return void res.writeHead(404, { "content-type": "application/json" }).end("{}");
        const text = JSON.stringify(answer);
        const whole = () => res.writeHead(200, { "content-type": "application/json" }).end(text);
        if (first && it.how) it.how(res, text);
        else whole();
      });
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  it.url = `http://127.0.0.1:${server.address().port}`;
  it.close = () => {
    server.closeAllConnections();
    return new Promise((r) => server.close(r));
  };
  return it;
}

// tenant is a machine with two accounts of each family.
async function tenant(settings) {
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  for (const n of [1, 2]) {
    await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${n}`, priority: n }));
    await operator.connect(machineId, {
      ...compatible(up, { prefix: "an", apiKey: `upstream-key-${n}`, priority: n }),
      provider: "anthropic-compatible-0123abcd",
    });
  }
  await operator.call("PATCH", `/${machineId}/api/settings`, settings);
  return (path, body) =>
    gw.fetch(path, {
      method: "POST",
      body: body instanceof FormData ? body : JSON.stringify(body),
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body instanceof FormData ? {} : { "content-type": "application/json" }),
      },
    });
}

const form = () => {
  const f = new FormData();
  f.set("model", "up/m");
  f.set("file", new Blob(["x".repeat(2000)], { type: "audio/wav" }), "a.wav");
  return f;
};
const hello = [{ role: "user", content: "Hello" }];
// Calls that may be made by another account.
const calls = [
  ["/v1/chat/completions", () => ({ model: "up/m", messages: hello })],
  ["/v1/messages", () => ({ model: "an/m", max_tokens: 9, messages: hello })],
  ["/v1/messages", () => ({ model: "up/m", max_tokens: 9, messages: hello })],
  ["/v1/embeddings", () => ({ model: "up/m", input: "a" })],
  ["/v1/audio/transcriptions", form],
  ["/v1/rerank", () => ({ model: "up/m", query: "a", documents: ["b"] })],
];

// each makes every call at once and passes on the answers.
async function each(settings, look) {
  const ask = await tenant(settings);
  for (const [path, body] of calls) {
    up.asked = [];
    const res = await ask(path, body());
    await look(path, res, await res.text());
  }
}

test("silence within a JSON answer is bounded, and the next account is tried", { timeout: 120_000 }, async () => {
  for (const head of [{}, { length: true }]) {
    up.how = (res, text) => {
      res.writeHead(200, {
        "content-type": "application/json",
        ...(head.length ? { "content-length": Buffer.byteLength(text) } : {}),
      });
      res.write(text.slice(0, text.length >> 1));
    };
    await each({ idleSeconds: 1 }, (path, res, text) => {
      if (res.status === 400 && /unsupported_endpoint|does not offer/.test(text)) return; // not of this provider
      assert.deepEqual([res.status, up.asked], [200, [1, 2]], `${path}: ${text}`);
    });
  }
});

test("an answer in slow pieces is not silence", { timeout: 120_000 }, async () => {
  // Blanks before the answer keep the connection alive for several times the limit.
  up.how = (res, text) => {
    res.writeHead(200, { "content-type": "application/json" });
    let n = 0;
    const timer = setInterval(() => {
      if (n++ < 28) return void res.write(" ");
      clearInterval(timer);
      res.end(text);
    }, 250);
  };
  const ask = await tenant({ idleSeconds: 5 });
  up.asked = [];
  const answers = await Promise.all(
    calls.slice(0, 4).map(async ([path, body]) => {
      const res = await ask(path, body());
      return [path, res.status, await res.text()];
    }),
  );
  for (const [path, status, text] of answers) assert.equal(status, 200, `${path}: ${text}`);
  assert.deepEqual(up.asked, [1, 1, 1, 1]);
});

test("without a response header in time every endpoint tries the next account, by one setting", {
  timeout: 120_000,
}, async () => {
  up.how = () => {}; // never answers
  await each({ firstByteSeconds: 1 }, (path, res, text) => {
    if (res.status === 400 && /unsupported_endpoint|does not offer/.test(text)) return;
    assert.deepEqual([res.status, up.asked], [200, [1, 2]], `${path}: ${text}`);
  });
  // A slow answer cools nothing: the first account is asked first again.
  const ask = await tenant({ firstByteSeconds: 1 });
  for (let i = 0; i < 3; i++) {
    up.asked = [];
    const res = await ask(...[calls[0][0], calls[0][1]()]);
    assert.deepEqual([res.status, up.asked], [200, [1, 2]], await res.text());
  }
});

test("after the header of a stream no other account is tried for slowness", { timeout: 120_000 }, async () => {
  up.how = (res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.flushHeaders();
  };
  const ask = await tenant({ firstByteSeconds: 1 });
  for (const [path, body] of calls.slice(0, 3)) {
    up.asked = [];
    const res = await ask(path, { ...body(), stream: true });
    assert.deepEqual([res.status, up.asked], [504, [1]], await res.text());
  }
});

test("a late first event within the limit is not a failure", { timeout: 120_000 }, async () => {
  up.how = (res) => {
    const { events, terminator } = openai.chat({ messages: hello, stream: true }, "m", {});
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.flushHeaders();
    setTimeout(() => res.end([...events, terminator].join("")), 1500);
  };
  const ask = await tenant({});
  up.asked = [];
  const res = await ask("/v1/chat/completions", { model: "up/m", messages: hello, stream: true });
  assert.match(await res.text(), /\[DONE\]/);
  assert.deepEqual(up.asked, [1]);
});

test("a client's X-Stainless-Timeout is the deadline of the whole plan", { timeout: 120_000 }, async () => {
  up.how = () => {};
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  for (const n of [1, 1])
    await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-1${n}`, priority: n }));
  for (const [path, body] of [calls[0], calls[3]]) {
    up.asked = [];
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", "x-stainless-timeout": "2" },
      body: JSON.stringify(body()),
    });
    assert.deepEqual([res.status, up.asked], [504, [1]], await res.text());
  }
});
