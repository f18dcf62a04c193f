// Mixed calls of many machines at once, of which three in ten are left by their
// clients at a random moment: no answer is wrong, crossed or missing, and nothing is
// left behind. With RACE=1 the native server runs under the race detector meanwhile,
// and a race fails the test where the gateway is closed.
//
// SEED repeats the calls, moments and orders of a run; the test prints it.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { vector } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";
import { request } from "../raw.mjs";
import { until } from "../wait.mjs";

const requests = process.env.SOAK ? 20_000 : process.env.RACE ? 1_000 : 3_000,
  concurrency = 50,
  machines = 10,
  seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
let gw, up, calm;
const tenants = [];

// A token names a request. The upstream repeats it in every answer.
const tokens = /t\d+-[0-9a-f]{16}/g;
const tokenOf = (n) => `t${n}-${createHash("sha256").update(`${seed} ${n}`).digest("hex").slice(0, 16)}`;

// random returns a generator of numbers in [0, 1) for one request (mulberry32).
function random(n) {
  let a = (seed + n * 0x9e3779b9) | 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let x = Math.imul(a ^ (a >>> 15), 1 | a);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

// script answers uploads, and refuses calls of the model "refuse", with their tokens.
function script(got) {
  const answer = (body, status = 200) => ({
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const token = got.body?.toString("latin1").match(tokens)?.[0];
  if (got.path.endsWith("/transcriptions")) return answer({ text: token });
  if (got.json?.model === "refuse")
    return answer({ error: { message: `refused: ${token}`, type: "invalid_request_error" } }, 400);
  return undefined;
}

before(async () => {
  up = await startUpstream({ keep: false, script });
  gw = await start({ inspect: true, env: { LOG_LEVEL: "error" } });
  // It has served a call, whose connection has ended.
  await request(gw.url, "GET", "/v1/models"); // /health does not reach the program
  await until("the end of its connection", async () => !(await gw.stacks?.())?.includes("(*conn).serve"));
  calm = await gw.stats();
  const operator = admin(gw);
  for (let i = 0; i < machines; i++) {
    const m = await operator.machine();
    const add = (more, provider) =>
      operator.connect(m.machineId, { ...compatible(up, { apiKey: `key-of-${i}`, ...more }), ...provider });
    await add({});
    await add({ prefix: "an" }, { provider: "anthropic-compatible-0123abcd" });
    // It fails, and cools down.
    await add({ prefix: "bad", suffix: "0000bad0", path: "/!reset/v1" });
    await add({ prefix: "cut", suffix: "00000c07" });
    tenants.push(m);
  }
});
after(async () => {
  await gw?.close();
  await up?.close();
});

// Left is the end of a call whose client has left it.
class Left extends Error {}

// leave sends a request and leaves it at a moment:
//
//	head    within its head
//	body    within its body
//	wait    after it, mostly before the upstream answers
//	answer  within the answer
//
// All that arrives until then belongs to the request.
function leave(moment, rand, token, method, path, headers, body) {
  const { hostname, port, host } = new URL(gw.url),
    bytes = Buffer.from(body);
  const fields = { host, ...headers, "content-length": bytes.length };
  const head = Buffer.from(
    `${method} ${path} HTTP/1.1\r\n${Object.entries(fields)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("")}\r\n`,
  );
  const pieces = 1 + Math.floor(rand() * 6), // of the answer
    pause = rand() * 60,
    part = rand(),
    abrupt = rand() < 0.5;
  return new Promise((_, reject) => {
    let got = "",
      count = 0,
      closed = false;
    const socket = connect(Number(port), hostname);
    const end = () => {
      if (closed) return;
      closed = true;
      if (abrupt) socket.resetAndDestroy();
      else socket.destroy();
      const others = (got.match(tokens) ?? []).filter((t) => t !== token);
      reject(others.length ? new Error(`an answer to ${others[0]} arrived: ${got}`) : new Left());
    };
    socket.on("error", end);
    socket.on("close", end);
    socket.on("data", (data) => {
      got += data.toString("latin1");
      if (moment === "answer" && ++count === pieces) end();
    });
    // Where the answer has fewer pieces, the client leaves after the last one.
    socket.setTimeout(2_000, end);
    if (moment === "head") socket.write(head.subarray(0, 1 + Math.floor(part * (head.length - 2))));
    else if (moment === "body") socket.write(Buffer.concat([head, bytes.subarray(0, Math.floor(part * bytes.length))]));
    else socket.write(Buffer.concat([head, bytes]));
    if (moment !== "answer") setTimeout(end, pause);
  });
}

// send makes a request of a plan, and returns the status and text of its answer.
async function send(plan, method, path, headers, body) {
  if (plan.moment) return leave(plan.moment, plan.rand, plan.token, method, path, headers, body);
  const res = await gw.fetch(path, { method, headers, body });
  return [res.status, await res.text()];
}

const post = (plan, path, body, type = "application/json") =>
  send(
    plan,
    "POST",
    path,
    { authorization: `Bearer ${plan.tenant.apiKey}`, "content-type": type },
    typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  );

const user = (content) => [{ role: "user", content }];
const chat = (model) => async (plan) => {
  const [status, text] = await post(plan, "/v1/chat/completions", { model, messages: user(plan.token) });
  assert.equal(status, 200, text);
  assert.equal(JSON.parse(text).choices[0].message.content, `You said: ${plan.token}`);
};
const dialects = {
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
// streamed returns the status, the text said and the whole of a streamed answer.
async function streamed(plan, path, model) {
  const [body, piece] = dialects[path](model, plan.token);
  const [status, text] = await post(plan, path, { ...body, stream: true });
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json));
  return [status, events.map((e) => piece(e) ?? "").join(""), text];
}
const stream = (path, family) => async (plan) => {
  const [status, said, text] = await streamed(plan, path, `${family}/m!slow=3`);
  assert.equal(status, 200, text);
  assert.match(text, dialects[path]("", "")[2]);
  assert.equal(said, `You said: ${plan.token}`);
};

// upload sends a form whose file has the token. One with its model first goes
// through; else it is held until the model is known.
const boundary = "----weir-test-boundary";
const upload = (first) => async (plan) => {
  const model = `--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nup/m\r\n`;
  const file = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.mp3"\r\n\r\n${plan.token}${".".repeat(150_000)}\r\n`;
  const form = Buffer.from((first ? model + file : file + model) + `--${boundary}--\r\n`);
  const [status, text] = await post(
    plan,
    "/v1/audio/transcriptions",
    form,
    `multipart/form-data; boundary=${boundary}`,
  );
  assert.equal(status, 200, text);
  assert.equal(JSON.parse(text).text, plan.token);
};

// A shape makes one call with a token of its own and judges the answer.
const shapes = {
  async embeddings(plan) {
    const [status, text] = await post(plan, "/v1/embeddings", { model: "up/m", input: plan.token });
    assert.equal(status, 200, text);
    assert.deepEqual(JSON.parse(text).data[0].embedding, [...vector(plan.token)]);
  },
  chat: chat("up/m"),
  slow: chat("up/m!delay=100"),
  translated: chat("an/m"),
  stream: stream("/v1/chat/completions", "up"),
  messages: stream("/v1/messages", "an"),
  other: stream("/v1/messages", "up"),
  responses: stream("/v1/responses", "an"),
  upload: upload(true),
  held: upload(false),
  async long(plan) {
    const content = plan.token + "x".repeat(200_000);
    const [status, text] = await post(plan, "/v1/chat/completions", { model: "up/m", messages: user(content) });
    assert.equal(status, 200, text.slice(0, 300));
    const sha = (s) => createHash("sha256").update(s).digest("hex");
    assert.equal(sha(JSON.parse(text).choices[0].message.content), sha(`You said: ${content}`));
  },
  async reset(plan) {
    const [status, text] = await post(plan, "/v1/embeddings", { model: "bad/m", input: plan.token });
    assert.ok(status >= 500, `${status} ${text}`);
  },
  async cut(plan) {
    const [status, said, text] = await streamed(plan, "/v1/chat/completions", "cut/m!slow=2!reset-after=2");
    assert.ok(status === 200 ? `You said: ${plan.token}`.startsWith(said) : status >= 500, `${status} ${text}`);
    assert.match(text, /"error"/);
  },
  async refused(plan) {
    const [status, text] = await post(plan, "/v1/chat/completions", { model: "up/refuse", messages: user(plan.token) });
    assert.equal(status, 400, text);
    assert.match(text, new RegExp(`refused: ${plan.token}`));
  },
  async invalid(plan) {
    const [status, text] = await post(plan, "/v1/embeddings", `{"model":"${plan.token}`);
    assert.equal(status, 400, text);
  },
  // A change of a machine, which is a call of its object.
  async stored(plan) {
    const alias = `a${plan.n % 70}`; // a few, which the machine's limit allows
    const [status, text] = await send(
      plan,
      "PUT",
      `/${plan.tenant.machineId}/api/models/alias`,
      { authorization: `Bearer ${secrets.ADMIN_TOKEN}`, "content-type": "application/json" },
      JSON.stringify({ alias, model: `up/${plan.token}` }),
    );
    assert.equal(status, 200, text);
    assert.ok(text.includes(plan.token), text);
  },
};
const names = Object.keys(shapes);
const moments = ["head", "body", "wait", "answer"];

test(`of ${requests} mixed calls at concurrency ${concurrency} none is wrong, crossed or missing, and nothing is left`, {
  timeout: 900_000,
}, async (t) => {
  t.diagnostic(`SEED=${seed}`);
  const wrong = [];
  let next = 0,
    answered = 0,
    left = 0;
  async function client() {
    for (let n = next++; n < requests; n = next++) {
      const rand = random(n),
        name = names[Math.floor(rand() * names.length)],
        tenant = tenants[Math.floor(rand() * machines)],
        moment = rand() < 0.3 ? moments[Math.floor(rand() * moments.length)] : null,
        plan = { n, token: tokenOf(n), tenant, moment, rand };
      try {
        await shapes[name](plan);
        answered++;
      } catch (e) {
        if (e instanceof Left) left++;
        else wrong.push(`${name} ${n} ${moment ?? ""}: ${e.cause ?? e}`);
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, client));
  assert.deepEqual(
    wrong.slice(0, 5),
    [],
    `SEED=${seed}: ${wrong.length} wrong answers: ${wrong[0]}\n${gw.logs.slice(-50).join("\n")}`,
  );
  assert.equal(answered + left, requests);
  assert.ok(left > requests / 4, `only ${left} clients have left`);
  t.diagnostic(`${answered} answered, ${left} left by their clients`);

  // Calls that clients have left end at a later event, such as another call.
  const all = async () => {
    await request(gw.url, "GET", "/v1/models"); // /health does not reach the program
    return gw.stats();
  };
  const failed = async (e) => {
    throw new Error(
      `SEED=${seed}: ${e.message}; ${JSON.stringify([calm, await gw.stats()])}\n${(await gw.stacks?.()) ?? ""}`,
    );
  };
  await until("the end of all calls", async () => {
    const s = await all();
    return !s.calls && !s.streams && !s.sockets && !s.ops;
  }).catch(failed);
  await up.close(); // and with it the connections to it
  const s = await until("the end of all goroutines", async () => {
    const s = await gw.stats();
    return !s.calls && !s.streams && !(s.goroutines > calm.goroutines) && s;
  }).catch(failed);
  assert.equal(s.dead, false);
});
