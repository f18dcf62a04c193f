// Mixed calls of many machines at once, of which a fifth is aborted: no answer is
// wrong, crossed or missing, and nothing is left behind. With RACE=1 the native
// server runs under the race detector meanwhile, and a race fails the test where the
// gateway is closed.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { vector } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { request } from "../raw.mjs";
import { until } from "../wait.mjs";

const requests = process.env.SOAK ? 10_000 : 1_000,
  concurrency = 100,
  machines = 10;
let gw, up, calm;
const tenants = [];
before(async () => {
  up = await startUpstream({ keep: false });
  gw = await start({ inspect: true, env: { LOG_LEVEL: "error" } });
  // It has served a call, whose connection has ended.
  await request(gw.url, "GET", "/health");
  await until("the end of its connection", async () => !(await gw.stacks?.())?.includes("(*conn).serve"));
  calm = await gw.stats();
  const operator = admin(gw);
  for (let i = 0; i < machines; i++) {
    const m = await operator.machine();
    await operator.connect(m.machineId, compatible(up, { apiKey: `key-of-${i}` }));
    await operator.connect(m.machineId, {
      ...compatible(up, { prefix: "an", apiKey: `key-of-${i}` }),
      provider: "anthropic-compatible-0123abcd",
    });
    // It fails, and cools down.
    await operator.connect(m.machineId, compatible(up, { prefix: "bad", suffix: "0000bad0", path: "/!reset/v1" }));
    tenants.push(m);
  }
});
after(async () => {
  await gw?.close();
  await up?.close();
});

async function post(m, path, body, signal) {
  const res = await gw.fetch(path, {
    method: "POST",
    headers: { authorization: `Bearer ${m.apiKey}`, "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    signal,
  });
  return [res.status, await res.text()];
}

const user = (content) => [{ role: "user", content }];
const chat = (model, slow) => async (m, token, signal) => {
  const [status, text] = await post(
    m,
    "/v1/chat/completions",
    { model: `${model}/m${slow}`, messages: user(token) },
    signal,
  );
  assert.equal(status, 200, text);
  assert.equal(JSON.parse(text).choices[0].message.content, `You said: ${token}`);
};
const streams = {
  "/v1/chat/completions": (model, token) => [
    { model, messages: user(token) },
    (e) => e.choices?.[0]?.delta?.content,
    /data: \[DONE\]\n\n$/,
  ],
  "/v1/messages": (model, token) => [
    { model, messages: user(token), max_tokens: 50 },
    (e) => e.delta?.text,
    /event: message_stop\n/,
  ],
  "/v1/responses": (model, token) => [
    { model, input: token },
    (e) => (e.type === "response.output_text.delta" ? e.delta : ""),
    /event: response\.completed\n/,
  ],
};
const stream = (path, family) => async (m, token, signal) => {
  const [body, piece, end] = streams[path](`${family}/m!slow=3`, token);
  const [status, text] = await post(m, path, { ...body, stream: true }, signal);
  assert.equal(status, 200, text);
  assert.match(text, end);
  const said = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => piece(JSON.parse(json)) ?? "").join("");
  assert.equal(said, `You said: ${token}`);
};

// A shape makes one call with a token of its own and judges the answer.
const shapes = {
  async embeddings(m, token, signal) {
    const [status, text] = await post(m, "/v1/embeddings", { model: "up/m", input: token }, signal);
    assert.equal(status, 200, text);
    assert.deepEqual(JSON.parse(text).data[0].embedding, [...vector(token)]);
  },
  chat: chat("up", ""),
  slow: chat("up", "!delay=100"),
  translated: chat("an", ""),
  stream: stream("/v1/chat/completions", "up"),
  messages: stream("/v1/messages", "an"),
  other: stream("/v1/messages", "up"),
  responses: stream("/v1/responses", "an"),
  async long(m, token, signal) {
    const content = token + "x".repeat(200_000);
    const [status, text] = await post(m, "/v1/chat/completions", { model: "up/m", messages: user(content) }, signal);
    assert.equal(status, 200, text.slice(0, 300));
    const sha = (s) => createHash("sha256").update(s).digest("hex");
    assert.equal(sha(JSON.parse(text).choices[0].message.content), sha(`You said: ${content}`));
  },
  async reset(m, token, signal) {
    const [status, text] = await post(m, "/v1/embeddings", { model: "bad/m", input: token }, signal);
    assert.ok(status >= 500, `${status} ${text}`);
  },
  async refused(m, token, signal) {
    const [status, text] = await post(m, "/v1/embeddings", `{"model":"${token}`, signal);
    assert.equal(status, 400, text);
  },
  async stored(m, token, signal) {
    const path = `/${m.machineId}/api/models/alias`,
      alias = `a${token.length % 7}-${token.slice(-1)}`; // a few, which the machine's limit allows
    await admin(gw).call("PUT", path, { alias, model: `up/${token}` });
    const { aliases } = await admin(gw).call("GET", path);
    assert.ok(aliases[alias].startsWith("up/t"));
    signal.throwIfAborted();
  },
};
const names = Object.keys(shapes);

test(`of ${requests} mixed calls at concurrency ${concurrency} none is wrong, crossed or missing, and nothing is left`, {
  timeout: 600_000,
}, async (t) => {
  const wrong = [],
    counts = {};
  let next = 0,
    answered = 0,
    left = 0;
  async function client() {
    for (let n = next++; n < requests; n = next++) {
      const name = names[n % names.length],
        token = `t${n}-${randomBytes(8).toString("hex")}`,
        ctl = new AbortController(),
        leaves = Math.floor(n / names.length) % 5 === 0;
      const timer = leaves ? setTimeout(() => ctl.abort(), (n * 7) % 60) : null;
      try {
        await shapes[name](tenants[n % machines], token, ctl.signal);
        answered++;
      } catch (e) {
        if (ctl.signal.aborted) left++;
        else wrong.push(`${name} ${n}: ${e.cause ?? e}`);
      }
      clearTimeout(timer);
      counts[name] = (counts[name] ?? 0) + 1;
    }
  }
  await Promise.all(Array.from({ length: concurrency }, client));
  assert.deepEqual(
    wrong.slice(0, 5),
    [],
    `${wrong.length} wrong answers: ${wrong[0]}\n${gw.logs.slice(-50).join("\n")}`,
  );
  assert.equal(answered + left, requests);
  t.diagnostic(`${answered} answered, ${left} aborted`);

  await up.close(); // and with it the connections to it
  const s = await until("the end of all calls and goroutines", async () => {
    const s = await gw.stats();
    return !s.calls && !s.streams && !(s.goroutines > calm.goroutines) && s;
  }).catch(async (e) => {
    throw new Error(`${e.message}; ${JSON.stringify([calm, await gw.stats()])}\n${(await gw.stacks?.()) ?? ""}`);
  });
  assert.equal(s.dead, false);
});
