// Fallback to another account and cooldowns. See docs/reference/design.md, 5. The
// test upstream counts the calls.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ cells: 1 });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = null;
});

// calls are the kinds of a call, each with its path and body.
const messages = [{ role: "user", content: "a" }];
const calls = {
  embeddings: ["/v1/embeddings", { model: "up/test-embed", input: "a" }],
  chat: ["/v1/chat/completions", { model: "up/test-chat", messages }],
  stream: ["/v1/chat/completions", { model: "up/test-chat", messages, stream: true }],
  "translated stream": ["/v1/messages", { model: "up/test-chat", messages, max_tokens: 50, stream: true }],
};

// accounts creates a machine with an account of one provider for each answer: a
// fault spec, or "" for success.
async function accounts(...answers) {
  const { machineId, apiKey } = await operator.machine();
  const ids = [];
  for (const [i] of answers.entries())
    ids.push((await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${i}`, priority: i + 1 }))).id);
  const faults = new Map(answers.map((a, i) => [`Bearer upstream-key-${i}`, a]));
  up.script = (req) => faults.get(req.headers.authorization) ?? null;
  const send = async (more = {}, headers = {}, [path, base] = calls.embeddings) => {
    const from = up.seen.length;
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}`, ...headers },
      body: JSON.stringify({ ...base, ...more }),
    });
    const text = await res.text();
    return {
      status: res.status,
      headers: res.headers,
      text,
      body: res.headers.get("content-type").startsWith("application/json") ? JSON.parse(text) : null,
      tried: up.seen.slice(from).map((r) => Number(r.headers.authorization.slice(-1))),
    };
  };
  const cooling = async () => (await operator.call("GET", `/${machineId}/api/models/availability`)).data;
  return { machineId, apiKey, ids, faults, send, cooling };
}

const quota = { status: 429, body: '{"error":{"message":"no","code":"insufficient_quota"}}' };
// A row has the first account's answer, the next step, and how long that
// account cools down, in seconds.
for (const [fault, then, rests] of [
  ["status=401", "next", 120],
  ["status=403", "next", 120],
  ["status=402", "next", 3600],
  [quota, "next", 3600],
  ["status=402!header=retry-after:600", "next", 600],
  ["status=429", "next", 2],
  ["status=429!header=retry-after:7", "next", 7],
  ["status=429!header=retry-after:18000", "next", 18000],
  ["status=429!header=retry-after:999999", "next", 86400],
  [
    { status: 429, body: '{"error":{"message":"no","type":"usage_limit_reached","resets_in_seconds":432000}}' },
    "next",
    432000,
  ],
  ["status=529", "next", 0],
  ["status=500", "next", 0],
  ["status=502", "next", 0],
  ["status=503", "next", 0],
  ["status=504", "next", 0],
  ["status=408", "next", 0],
  ["reset", "next", 0],
  ["raw=garbage", "next", 0],
  ["status=400", "return"],
  ["status=404", "return"],
  ["status=405", "return"],
  ["status=409", "return"],
  ["status=413", "return"],
  ["status=415", "return"],
  ["status=422", "return"],
]) {
  for (const [kind, call] of Object.entries(calls)) {
    test(`${kind}: ${fault.body ?? fault}: ${then === "next" ? "the next account answers" : "the answer goes to the caller"}`, async () => {
      const { send, ids, cooling } = await accounts(fault, "");
      const began = Date.now(),
        got = await send({}, {}, call);
      if (then === "return") {
        assert.equal(got.status, Number(fault.slice(7)));
        assert.deepEqual(got.tried, [0]);
        assert.deepEqual(await cooling(), []);
        return;
      }
      assert.equal(got.status, 200, got.text);
      assert.deepEqual(got.tried, [0, 1]);
      assert.equal(got.headers.get("x-weir-connection-id"), ids[1]);
      assert.equal(got.headers.get("x-weir-attempts"), "2");
      assert.equal(got.headers.get("x-weir-model"), call[1].model);
      if (call[1].stream) assert.match(got.text, /\[DONE\]|message_stop/);
      const next = await send({}, {}, call),
        over = rests && Date.now() - began >= rests * 1000;
      if (!over) assert.deepEqual(next.tried, rests ? [1] : [0, 1], "what is remembered");
      if (!rests) return;
      const row = await until("the cooldown", async () => {
        const row = (await cooling()).find((r) => r.connectionId === ids[0]);
        return row ?? (rests <= 2 && Date.now() - began > 5000 && "over before it was read");
      });
      if (!row.until) return;
      assert.ok(
        row.until - row.since <= rests * 1000 && row.until - row.since > rests * 1000 - 1000,
        `rests ${row.until - row.since} ms`,
      );
      assert.ok(row.waitMs > 0 && row.waitMs <= row.until - row.since, `${row.waitMs} ms are left`);
    });
  }
}

for (const [status, then] of [
  [400, "return"],
  [401, "next"],
  [429, "next"],
  [500, "next"],
  [529, "next"],
]) {
  test(`a stream whose first event is an error of ${status} is treated as that status`, async () => {
    const { send, faults } = await accounts("", ""),
      began = Date.now();
    const type = {
      400: "invalid_request_error",
      401: "authentication_error",
      429: "rate_limit_error",
      500: "server_error",
      529: "overloaded_error",
    }[status];
    faults.set("Bearer upstream-key-0", {
      headers: { "content-type": "text/event-stream" },
      body: `data: ${JSON.stringify({ error: { message: "no", type, code: status } })}\n\n`,
    });
    for (const kind of ["stream", "translated stream"]) {
      const got = await send({}, {}, calls[kind]);
      if (then === "return") {
        assert.deepEqual([got.status, got.tried], [400, [0]], got.text);
        assert.ok(got.body.error, "JSON, though a stream was asked for");
      } else if (kind === "stream" || !new Set([401, 429]).has(status))
        assert.deepEqual([got.status, got.tried], [200, [0, 1]], got.text);
      else if (status !== 429 || Date.now() - began < 2000)
        assert.deepEqual([got.status, got.tried], [200, [1]], "it rests");
    }
  });
}

for (const [name, header, seconds] of [
  ["retry-after in seconds", "retry-after:9", 9],
  ["retry-after as a date", () => `retry-after:${new Date(Date.now() + 40_000).toUTCString()}`, 40],
  ["retry-after-ms", "retry-after-ms:8500", 9],
  ["retry-after-ms before retry-after", "retry-after-ms:8500!header=retry-after:300", 9],
  ["x-ratelimit-reset-requests", "x-ratelimit-reset-requests:1m5s", 65],
  ["x-ratelimit-reset, an epoch", () => `x-ratelimit-reset:${Math.floor(Date.now() / 1000) + 50}`, 50],
  [
    "anthropic's reset, a time",
    () => `anthropic-ratelimit-requests-reset:${new Date(Date.now() + 30_000).toISOString()}`,
    30,
  ],
  ["five hours", "retry-after:18000", 18000],
  ["too long", "retry-after:1000000", 86400],
  ["none", "x-nothing:1", 2],
  ["garbage", "retry-after:soon", 2],
  ["zero", "retry-after:0", 1],
  ["negative", "retry-after:-5", 2],
]) {
  test(`the wait of a 429 is honoured: ${name}`, async () => {
    const began = Date.now(),
      value = (typeof header === "function" ? header() : header)
        .split("!header=")
        .map((h) => `!header=${encodeURIComponent(h)}`)
        .join("");
    const { send } = await accounts("status=429" + value);
    const got = await send();
    assert.equal(got.status, 429);
    const wait = Number(got.headers.get("retry-after"));
    // The wait until a point in time is shorter by the duration of the test.
    const late = typeof header === "function" ? Math.ceil((Date.now() - began) / 1000) : 0;
    assert.ok(wait <= seconds + 1 && wait >= Math.max(1, seconds - 2 - late), `${wait} s, want ${seconds}`);
    assert.ok(Math.abs(Number(got.headers.get("retry-after-ms")) - wait * 1000) <= 1000);
    assert.equal(got.headers.get("x-should-retry"), seconds > 60 ? "false" : null);
  });
}

test("explain returns the plan that a call follows", async () => {
  const { send, machineId, ids, faults } = await accounts("", "", "", "");
  const put = (id, body) => operator.call("PUT", `/${machineId}/api/providers/${id}`, body);
  const plan = async (model, path = "/v1/embeddings", body = { input: "a" }) =>
    (await operator.call("POST", `/${machineId}/api/explain`, { path, body: { model, ...body } })).plan;
  const places = async (model = "up/test-embed") =>
    (await plan(model))
      .filter((s) => s.try)
      .sort((a, b) => a.try - b.try)
      .map((s) => ids.indexOf(s.connectionId));
  const agree = async (want) => {
    const told = await places();
    const got = await send();
    assert.deepEqual(told.slice(0, got.tried.length), got.tried);
    if (want) assert.deepEqual(told, want);
  };
  await agree([0, 1, 2, 3]);
  faults.set("Bearer upstream-key-0", "status=503");
  await agree();
  await agree();
  for (let i = 0; i < 3; i++) await agree([0, 1, 2, 3]);
  await agree([1, 2, 3, 0]); // after five failures in a row it is tried last, and not skipped
  faults.set("Bearer upstream-key-1", "status=429!header=retry-after:100");
  await agree();
  await agree([2, 3, 0]);
  const now = await plan("up/test-embed"),
    skipped = now.filter((s) => !s.try);
  assert.deepEqual(
    skipped.map((s) => [ids.indexOf(s.connectionId), s.skipped, s.cooldownMs > 0]),
    [[1, "rate_limited", true]],
  );
  assert.deepEqual(
    now.filter((s) => s.outlier).map((s) => ids.indexOf(s.connectionId)),
    [0],
  );
  // A changed address removes the credential: the account is not tried.
  await put(ids[2], {
    providerSpecificData: { baseUrl: up.url.replace("127.0.0.1", "localhost") + "/v1", prefix: "up" },
  });
  await until("the changed address", async () => !(await places()).includes(2));
  const told = await plan("up/test-embed");
  assert.equal(told.find((s) => s.connectionId === ids[2]).skipped, "needs_credential");
  faults.set("Bearer upstream-key-0", "");
  assert.deepEqual(
    (await places()).filter((i) => i !== 0),
    [3],
  );
  await agree();
  // explain shows the turn of accounts and combos without taking it.
  await operator.call("POST", `/${machineId}/api/combos`, {
    name: "inner",
    kind: "embedding",
    strategy: "round-robin",
    models: ["up/test-embed", "up/test-embed-large", "up/vendor/nested-model"],
  });
  await operator.call("POST", `/${machineId}/api/combos`, {
    name: "outer",
    kind: "embedding",
    models: ["inner", "up/test-embed"],
  });
  const served = [];
  for (let i = 0; i < 6; i++) {
    const model = i < 3 ? "inner" : "outer";
    const first = [];
    for (let j = 0; j < 3; j++) first.push((await plan(model)).find((s) => s.try === 1).model);
    const got = await send({ model });
    served.push(got.headers.get("x-weir-model"));
    assert.deepEqual(first, Array(3).fill(served.at(-1)));
  }
  assert.equal(new Set(served.slice(0, 3)).size, 3, served.join());
  assert.equal(new Set(served.slice(3)).size, 3, "a nested combo takes turns too");
});

test("a rate-limited account is skipped for as long as it said, also by other isolates", async () => {
  const { send, cooling, ids } = await accounts("status=429!header=retry-after:700", "");
  assert.deepEqual((await send()).tried, [0, 1]);
  assert.deepEqual((await send()).tried, [1]);
  const row = await until("the cooldown in the object", async () =>
    (await cooling()).find((r) => r.connectionId === ids[0]),
  );
  const ends = typeof row.until === "number" ? row.until : Date.parse(row.until);
  assert.equal(ends - row.since, 700_000);
  assert.ok(ends > Date.now() && ends - Date.now() <= 700_000, `it ends in ${ends - Date.now()} ms`);
});

test("with every account rate-limited the answer is 429 with the smallest wait", async () => {
  const { send } = await accounts("status=429!header=retry-after:1200", "status=429!header=retry-after-ms:615500"),
    began = Date.now();
  const first = await send();
  assert.equal(first.status, 429);
  const again = await send();
  assert.equal(again.status, 429);
  assert.deepEqual(again.tried, []);
  const left = Number(again.headers.get("retry-after-ms"));
  assert.ok(left <= 615_500 && left >= 615_500 - (Date.now() - began), `${left} ms`);
  assert.equal(again.headers.get("retry-after"), String(Math.ceil(left / 1000)));
  assert.equal(again.headers.get("x-should-retry"), "false");
  assert.equal(again.body.error.type, "rate_limit_error");
});

// The client's error while accounts cool down, in the call in which they failed
// and in the next one, which tries none.
for (const [name, answers, status, code, type] of [
  ["a refused key", ["status=401"], 401, "account_key_refused", "authentication_error"],
  ["a forbidden key", ["status=403"], 401, "account_key_refused", "authentication_error"],
  ["no credit", ["status=402"], 402, "insufficient_quota", "insufficient_quota"],
  ["no credit, as 429", [quota], 402, "insufficient_quota", "insufficient_quota"],
  ["a refused key and no credit", ["status=401", "status=402"], 402, "insufficient_quota", "insufficient_quota"],
  [
    "a refused key and a limit",
    ["status=401", "status=429!header=retry-after:30"],
    429,
    "rate_limit_exceeded",
    "rate_limit_error",
  ],
  [
    "no credit and a limit",
    ["status=402", "status=429!header=retry-after:300"],
    429,
    "rate_limit_exceeded",
    "rate_limit_error",
  ],
]) {
  test(`with every account out (${name}) the answer is ${status}, also to the next call`, async () => {
    const { send, cooling, ids } = await accounts(...answers);
    for (const tried of [ids.map((_, i) => i), []]) {
      const got = await send();
      assert.deepEqual(
        [got.status, got.body.error.code, got.body.error.type, got.tried],
        [status, code, type, tried],
        got.text,
      );
      const wait = Number(got.headers.get("retry-after-ms"));
      if (status === 429) {
        assert.ok(wait > 1000 && Number(got.headers.get("retry-after")) === Math.ceil(wait / 1000), `${wait} ms`);
        assert.equal(got.headers.get("x-should-retry"), wait > 60_000 ? "false" : null);
      } else {
        assert.deepEqual([got.headers.get("x-should-retry"), got.headers.get("retry-after")], ["false", null]);
        assert.match(
          got.body.error.message,
          /account "up" \(openai-compatible-0123abcd, since 20\d\d-[\d-]+T[\d:]+Z\)/,
        );
      }
    }
    const rows = await until("the cooldowns", async () => {
      const rows = await cooling();
      return rows.length === ids.length && rows;
    });
    const reasons = answers.map((a) =>
      /=40[13]/.test(a) ? "key_refused" : /=402/.test(a) || a === quota ? "out_of_credit" : "rate_limited",
    );
    assert.deepEqual(rows.map((r) => r.reason).sort(), reasons.sort());
  });
}

test("under random failures few answers fail, and no account is left out", async () => {
  // The same numbers in each run, taken in the order in which the calls come.
  let state = 12345;
  const random = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) / 2 ** 32;
  const count = 300;
  for (const [share, n] of [
    [0.01, 1],
    [0.1, 1],
    [0.3, 1],
    [0.1, 2],
    [0.3, 2],
    [0.1, 5],
    [0.3, 5],
  ]) {
    const { send, cooling } = await accounts(...Array(n).fill(""));
    let asked = 0,
      bad = 0;
    up.script = () => {
      asked++;
      if (random() >= share) return null;
      bad++;
      return random() < 0.5 ? "reset" : "status=502";
    };
    let left = count,
      failed = 0;
    await Promise.all(
      Array.from({ length: 25 }, async () => {
        while (left-- > 0) {
          const { status } = await send();
          if (status !== 200) {
            assert.equal(status, 502);
            failed++;
          }
        }
      }),
    );
    const single = bad / asked,
      most = n === 1 ? single : n === 2 ? single ** 2 + 0.05 : 0.02;
    assert.ok(
      failed / count <= most + 1e-9,
      `${n} accounts, ${share} of failures: ${failed} of ${count} failed, a single call fails with ${single}`,
    );
    assert.deepEqual(await cooling(), []);
  }
});

test("unreadable answers and a quota error within a stream cool one model, not the others", async () => {
  const { send, cooling } = await accounts("");
  const [path, body] = calls.chat,
    json = { "content-type": "application/json" };
  up.script = (req) => (req.json.model === "broken" ? { headers: json, body: '{"choices":[]' } : null);
  for (let i = 0; i < 7; i++)
    assert.deepEqual(
      [(await send({}, {}, [path, { ...body, model: "up/broken" }])).status, (await send()).status],
      [502, 200],
    );
  assert.equal(up.seen.length, 14, "the model is still asked");
  up.script = (req) =>
    req.json.model === "spent"
      ? {
          headers: { "content-type": "text/event-stream" },
          body: 'data: {"error":{"message":"no","type":"insufficient_quota","code":"insufficient_quota"}}\n\n',
        }
      : null;
  const spent = await send({}, {}, [path, { ...body, model: "up/spent", stream: true }]);
  assert.equal(spent.status, 429, spent.text);
  assert.equal((await send()).status, 200, "the account has not lost its credit for it");
  for (const row of await cooling()) assert.deepEqual([row.model, row.reason], ["spent", "rate_limited"]);
});

test("rate limits of invented models do not fill the list of cooldowns", async () => {
  const { send, cooling } = await accounts("status=429!header=retry-after:900");
  for (let i = 0; i < 80; i++) assert.equal((await send({ model: `up/made-up-${i}` })).status, 429);
  assert.equal(up.seen.length, 65, "then the connection cools as a whole");
  const rows = await until("the cooldown of the connection", async () => {
    const rows = await cooling();
    return rows.some((r) => !r.model) && rows;
  });
  assert.ok(rows.some((r) => !r.model && r.reason === "rate_limited") && rows.length <= 65, `${rows.length} rows`);
});

test("a call makes at most five attempts", async () => {
  const { send } = await accounts(...Array(8).fill("status=503"));
  const got = await send();
  assert.equal(got.status, 503);
  assert.deepEqual(got.tried, [0, 1, 2, 3, 4]);
});

test("1,000 malformed requests of a client cool nothing", async () => {
  const { send, cooling } = await accounts("status=400", "");
  for (let i = 0; i < 20; i++) {
    const all = await Promise.all(
      Array.from({ length: 50 }, () => send({ user: "rate limit exceeded, capacity, quota" })),
    );
    for (const got of all) assert.equal(got.status, 400);
  }
  assert.deepEqual(await cooling(), []);
  assert.equal(up.seen.filter((r) => r.headers.authorization.endsWith("0")).length, 1000);
  assert.equal(up.seen.length, 1000);
});

test("an account named by x-connection-id is the only one tried", async () => {
  const { send, ids } = await accounts("status=500", "");
  assert.deepEqual((await send({}, { "x-connection-id": ids[1] })).tried, [1]);
  const pinned = await send({}, { "x-connection-id": ids[0] });
  assert.deepEqual([pinned.status, pinned.tried], [500, [0]]);
  assert.equal((await send({}, { "x-connection-id": "no-such-connection" })).status, 400);
});

test("round-robin takes turns", async () => {
  const { send, machineId } = await accounts("", "", "");
  await operator.call("PATCH", `/${machineId}/api/settings`, { strategy: "round-robin" });
  const tried = new Set();
  for (let i = 0; i < 9; i++) tried.add((await send()).tried.join());
  assert.deepEqual([...tried].sort(), ["0", "1", "2"]);
});

test("round-robin: only the account without a Responses endpoint is called through chat completions", async () => {
  const { send, machineId } = await accounts("", "");
  await operator.call("PATCH", `/${machineId}/api/settings`, { strategy: "round-robin" });
  const answer = {
    id: "resp_1",
    object: "response",
    status: "completed",
    model: "test-chat",
    output: [
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "hi", annotations: [] }],
      },
    ],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  };
  up.script = (req) => {
    if (!req.path.endsWith("/responses")) return null;
    return req.headers.authorization.endsWith("0")
      ? "status=404"
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(answer) };
  };
  const asked = [];
  for (let i = 0; i < 6; i++) {
    const from = up.seen.length,
      got = await send({}, {}, ["/v1/responses", { model: "up/test-chat", input: "a" }]);
    assert.equal(got.status, 200, got.text);
    asked.push(
      up.seen
        .slice(from)
        .map((r) => `${r.headers.authorization.slice(-1)}${r.path.replace(/^.*\/v1/, "")}`)
        .join(" "),
    );
  }
  const once = asked.filter((a) => a === "0/responses 0/chat/completions").length;
  assert.equal(once, 1, asked.join(", "));
  assert.deepEqual(
    asked.filter((a) => a !== "0/responses 0/chat/completions").sort(),
    ["0/chat/completions", "0/chat/completions", "1/responses", "1/responses", "1/responses"],
    asked.join(", "),
  );
});

test("the client's own time limit ends the plan", async () => {
  const { send } = await accounts("stall", "stall");
  const got = await send({}, { "x-stainless-timeout": "1" });
  assert.equal(got.status, 504);
  assert.ok(got.tried.length <= 1, "the time is up with the first account, whose own limit is 30 s");
});

test("a combo goes on to the next model when the accounts of the first fail", async () => {
  const { machineId, send } = await accounts("status=401");
  const other = await startUpstream();
  try {
    await operator.connect(machineId, compatible(other, { prefix: "other", suffix: "bbbbbbbb", apiKey: "other-key" }));
    await operator.call("POST", `/${machineId}/api/combos`, {
      name: "both",
      kind: "embedding",
      models: ["up/test-embed", "other/test-embed-large"],
    });
    const got = await send({ model: "both" });
    assert.equal(got.status, 200, got.text);
    assert.equal(got.headers.get("x-weir-model"), "other/test-embed-large");
    assert.equal(got.body.model, "both");
  } finally {
    await other.close();
  }
});

test("a key is limited by requests per minute, models and expiry", async () => {
  const { machineId, apiKey } = await accounts("");
  const make = async (fields) => (await operator.call("POST", `/${machineId}/api/keys`, fields)).apiKey;
  const send = async (key, model = "up/test-embed") =>
    await gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, input: "a" }),
    });
  const narrow = await make({ name: "narrow", models: ["up/test-embed"] });
  assert.equal((await send(narrow)).status, 200);
  assert.equal((await send(narrow, "up/test-embed-large")).status, 403);
  const slow = await make({ name: "slow", rpm: 3 });
  const statuses = [];
  for (let i = 0; i < 30 && statuses.at(-1) !== 429; i++) statuses.push((await send(slow)).status);
  assert.equal(statuses.at(-1), 429, statuses.join());
  assert.ok(statuses.length >= 4 && statuses.length <= 7, `${statuses.length - 1} requests passed`); // 6 in two minutes
  const limited = await send(slow);
  assert.ok(Number(limited.headers.get("retry-after")) >= 1 && Number(limited.headers.get("retry-after")) <= 60);
  assert.equal((await send(apiKey)).status, 200);
});

test("a key's daily budget ends with the day", async () => {
  const { machineId } = await accounts("");
  const { apiKey: key } = await operator.call("POST", `/${machineId}/api/keys`, { name: "daily", dailyMax: 5 });
  const send = () =>
    gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/test-embed", input: "a" }),
    });
  let last,
    passed = 0;
  for (let i = 0; i < 60; i++) {
    last = await send();
    if (last.status === 429) break;
    assert.equal(last.status, 200);
    passed++;
  }
  assert.equal(last.status, 429);
  assert.equal(passed, 5);
  const left = Math.ceil((Math.floor(Date.now() / 86_400_000) + 1) * 86_400 - Date.now() / 1000);
  assert.ok(
    Math.abs(Number(last.headers.get("retry-after")) - left) <= 30,
    `${last.headers.get("retry-after")} s, the day has ${left}`,
  );
  assert.equal(last.headers.get("x-should-retry"), left > 60 ? "false" : null);
  assert.ok(up.seen.length === passed);
  const looked = await gw.fetch("/v1/models/up/test-embed", {
    headers: {
      authorization: `Bearer ${(await operator.call("POST", `/${machineId}/api/keys`, { name: "narrow", models: ["up/other"] })).apiKey}`,
    },
  });
  assert.equal(looked.status, 404, "a model that a key may not use is not found when it is looked up");
});
