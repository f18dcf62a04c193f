// The management API reports accounts, tests, usage and machines truthfully.
// workerd: soak
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});

async function machine(name) {
  const me = await operator.machine({ name });
  const api = (method, path, body) => operator.call(method, `/${me.machineId}/api${path}`, body);
  const post = async (path, body) => {
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
      body: JSON.stringify(body),
    });
    return { status: res.status, body: await res.json() };
  };
  return { ...me, api, post };
}

// becomes waits for a value that is reported after an answer.
async function becomes(get, want) {
  let got;
  await until("the value", async () => isDeepStrictEqual((got = await get()), want)).catch(() =>
    assert.deepEqual(got, want),
  );
}

const hello = [{ role: "user", content: "hi" }];

test("a test distinguishes a refused key, a wrong address and an unreachable one, and health follows", async () => {
  const me = await machine("Health");
  const c = await me.api("POST", "/providers", compatible(up, { prefix: "up", apiKey: "k" }));
  assert.deepEqual([c.status, c.health], ["active", "untested"], "a key of one character is taken");
  const run = async () => {
    const r = await me.api("POST", `/providers/${c.id}/test`, {});
    const row = await me.api("GET", `/providers/${c.id}`);
    return [r.ok, r.status, r.error, row.health, typeof r.message];
  };
  assert.deepEqual(await run(), [true, 200, null, "ready", "undefined"]);
  for (const [status, error, health] of [
    [401, "unauthorized", "key_refused"],
    [404, "not_found", "failing"],
    [402, "quota", "out_of_credit"],
    [500, "failed", "failing"],
  ]) {
    up.script = () => ({ status, body: `{"error":{"message":"no"}}` });
    assert.deepEqual(await run(), [false, status, error, health, "string"]);
  }
  up.script = null;
  await me.api("PUT", `/providers/${c.id}`, {
    apiKey: "k",
    providerSpecificData: { baseUrl: "http://127.0.0.1:9/v1" },
  });
  assert.deepEqual(await run(), [false, 0, "connection_failed", "unreachable", "string"]);
  const none = await me.api("POST", "/providers", { provider: "anthropic" });
  assert.equal(none.status, "needs_credential");
  assert.deepEqual((await me.api("POST", `/providers/${none.id}/test`, {})).error, "no_credentials");
});

test("a test that succeeds ends the cooldown of a key that was refused", async () => {
  const me = await machine("Put right");
  const c = await me.api("POST", "/providers", compatible(up, { prefix: "up" }));
  const call = async () => (await me.post("/v1/chat/completions", { model: "up/test-chat", messages: hello })).status;
  for (const status of [401, 402]) {
    up.script = () => ({ status, body: `{"error":{"message":"no"}}` });
    assert.equal(await call(), status);
    await becomes(async () => (await me.api("GET", `/providers/${c.id}`)).cooldownUntil > Date.now(), true);
    up.script = null;
    assert.equal(await call(), status, "it is still out");
    assert.equal((await me.api("POST", `/providers/${c.id}/test`, {})).ok, true);
    const row = await me.api("GET", `/providers/${c.id}`);
    assert.deepEqual([row.health, row.cooldownUntil], ["ready", undefined]);
    assert.equal(await call(), 200, "calls reach it at once");
  }
});

test("an account shows since when it fails, its last error, its last hour and its spend", async () => {
  const me = await machine("State");
  const c = await me.api("POST", "/providers", { provider: "openai", apiKey: "openai-test-key-0123456789" });
  const row = () => me.api("GET", `/providers/${c.id}`);
  const { lastHour, spentTodayUsd, spentMonthUsd, healthSince } = await row();
  assert.deepEqual([lastHour, spentTodayUsd, spentMonthUsd], [{ attempts: 0, failedAttempts: 0 }, 0, 0]);
  assert.equal(healthSince, undefined);
  const embed = async (answer) => {
    up.script = () => answer;
    return (await me.post("/v1/embeddings", { model: "openai/text-embedding-3-small", input: "one" })).status;
  };
  const embedding = {
    object: "list",
    model: "m",
    data: [{ object: "embedding", index: 0, embedding: [0.1] }],
    usage: { prompt_tokens: 8_000, total_tokens: 8_000 },
  };
  const error = (message, code) => JSON.stringify({ error: { message, code } });
  assert.equal(await embed({ body: JSON.stringify(embedding) }), 200);
  await becomes(async () => (await row()).health, "ready");
  const since = (await row()).healthSince;
  assert.ok(since > 0);
  assert.equal(await embed({ status: 503, body: error("Overloaded, try later") }), 503);
  await becomes(async () => (await row()).health, "failing");
  const failing = await row();
  assert.ok(failing.healthSince >= since, `${failing.healthSince} ${since}`);
  assert.equal(failing.lastError, "Provider said: “Overloaded, try later”");
  assert.equal(failing.lastSuccessAt, since);
  assert.equal(await embed({ status: 503, body: error("Still overloaded") }), 503);
  await becomes(async () => (await row()).lastError, "Provider said: “Still overloaded”");
  assert.equal((await row()).healthSince, failing.healthSince);
  await becomes(async () => (await row()).lastHour, { attempts: 5, failedAttempts: 4 }); // each 503 is tried once more
  const { spentTodayUsd: today, spentMonthUsd: month } = await row();
  assert.deepEqual([today, month], [0.00016, 0.00016]);
  // A provider that refuses the place says nothing about the account.
  const place = {
    status: 403,
    headers: { "content-type": "application/json", "cf-ray": "8f2c1d0e4b5a6978-HKG" },
    body: error("Country, region, or territory not supported", "unsupported_country_region_territory"),
  };
  assert.equal(await embed(place), 403);
  await becomes(async () => (await row()).health, "blocked");
  const blocked = await row();
  assert.deepEqual(
    [blocked.blockedPlace, blocked.status, blocked.lastError],
    ["HKG", "active", "Provider said: “Country, region, or territory not supported”"],
  );
  up.script = null;
});

test("a deleted account serves no call, and serves again once its deletion is undone", async () => {
  const me = await machine("Undo");
  const c = await me.api("POST", "/providers", compatible(up, { prefix: "up", name: "Main" }));
  const call = async () => (await me.post("/v1/embeddings", { model: "up/test-embed", input: "one" })).status;
  assert.equal(await call(), 200);
  await me.api("DELETE", `/providers/${c.id}`);
  assert.equal(await call(), 400, "no account serves the model");
  await assert.rejects(me.api("GET", `/providers/${c.id}`), { status: 404 });
  const exported = JSON.stringify(await me.api("GET", "/export"));
  assert.ok(!exported.includes(c.id), "it is in no export");
  const back = await me.api("POST", `/providers/${c.id}/restore`);
  assert.deepEqual([back.id, back.name, back.hasKey], [c.id, "Main", true]);
  assert.equal(await call(), 200);
  await assert.rejects(me.api("POST", `/providers/${c.id}/restore`), { status: 404 });
  const { data } = await me.api("GET", "/audit");
  assert.ok(data.some((r) => r.action === "POST /api/providers/{id}/restore" && r.target === c.id));
});

test("a compatible server without keys is called without one", async () => {
  const me = await machine("Keyless");
  const { apiKey, ...open } = compatible(up, { prefix: "own" });
  assert.ok(apiKey);
  const c = await me.api("POST", "/providers", open);
  assert.deepEqual([c.status, c.hasKey], ["active", false]);
  const tested = await me.api("POST", `/providers/${c.id}/test`, {});
  assert.deepEqual([tested.ok, tested.error, typeof tested.model], [true, null, "string"]);
  up.clear();
  assert.equal((await me.post("/v1/chat/completions", { model: "own/test-chat", messages: hello })).status, 200);
  assert.equal(up.seen.at(-1).headers.authorization, undefined);
});

test("requests, failed requests and attempts are three numbers; embeddings are priced or counted as unpriced", async () => {
  const me = await machine("Usage");
  await me.api("POST", "/providers", compatible(up, { prefix: "up" }));
  await me.api("POST", "/providers", { provider: "openai", apiKey: "openai-test-key-0123456789" });
  await me.api("POST", "/combos", { name: "fall", models: ["up/first!status=500", "up/test-chat"] });
  assert.equal((await me.post("/v1/chat/completions", { model: "fall", messages: hello })).status, 200);
  assert.equal((await me.post("/v1/chat/completions", { model: "unknown/x", messages: hello })).status, 400);
  assert.equal((await me.post("/v1/embeddings", { model: "up/test-embed", input: "one" })).status, 200);
  up.script = (r) =>
    r.host === "api.openai.com"
      ? {
          body: JSON.stringify({
            object: "list",
            model: "m",
            data: [{ object: "embedding", index: 0, embedding: [0.1, 0.2] }],
            usage: { prompt_tokens: 1_000_000, total_tokens: 1_000_000 },
          }),
        }
      : null;
  assert.equal((await me.post("/v1/embeddings", { model: "openai/text-embedding-3-small", input: "one" })).status, 200);
  up.script = null;
  const total = async () => {
    const { total: t } = await me.api("GET", "/usage");
    return [t.requests, t.failedRequests, t.attempts, t.failedAttempts];
  };
  await becomes(total, [4, 1, 4, 1]);
  const rows = (await me.api("GET", "/usage?groupBy=model")).data;
  const of = (model) => rows.find((r) => r.model === model);
  assert.deepEqual([of("up/test-embed").unpricedAttempts, of("up/test-embed").costUsd], [1, undefined]);
  assert.deepEqual(
    [of("openai/text-embedding-3-small").unpricedAttempts, of("openai/text-embedding-3-small").costUsd],
    [undefined, 0.02],
  );
  // The list is filtered among all that is stored.
  const ids = async (query) => (await me.api("GET", `/requests?${query}`)).data.map((r) => r.asked);
  assert.deepEqual(await ids("status=error"), ["unknown/x"]);
  assert.deepEqual(await ids("q=TEXT-embedding&status=2xx"), ["openai/text-embedding-3-small"]);
  assert.deepEqual(await ids("failed=true"), ["unknown/x", "fall"]);
  await assert.rejects(ids("status=bad"), { status: 400 });
  assert.deepEqual(await ids("code=model_not_found"), ["unknown/x"]);
  // Those of an attempt that failed, those after another one, and one by its id.
  const [fall] = (await me.api("GET", "/requests?q=fall")).data;
  const [failed] = fall.failed;
  assert.ok((await ids(`connection=${failed.connectionId}`)).includes("fall"));
  assert.ok((await ids(`model=${encodeURIComponent(failed.model)}`)).includes("fall"));
  const all = (await me.api("GET", "/requests")).data;
  assert.deepEqual(
    (await me.api("GET", `/requests?after=${fall.seq}`)).data,
    all.filter((r) => r.seq > fall.seq),
  );
  assert.deepEqual(await me.api("GET", `/requests/${fall.id}`), fall);
  await assert.rejects(me.api("GET", "/requests/req_0"), { status: 404 });
  assert.ok(fall.requestBytes > 0 && fall.answerBytes > 0 && failed.ms >= 0, JSON.stringify(fall));
});

test("usage is counted by hour, with percentiles and the share of cached tokens", async () => {
  const me = await machine("Hours");
  await me.api("POST", "/providers", compatible(up, { prefix: "up" }));
  up.script = (r) =>
    r.path.endsWith("/embeddings")
      ? null
      : {
          headers: { "content-type": "text/event-stream" },
          body: [
            { choices: [{ index: 0, delta: { role: "assistant", content: "Hi" }, finish_reason: null }] },
            { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
            {
              choices: [],
              usage: { prompt_tokens: 80, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 20 } },
            },
          ]
            .map((event) => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...event })}\n\n`)
            .concat("data: [DONE]\n\n")
            .join(""),
        };
  const res = await gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
    body: JSON.stringify({ model: "up/test-chat", messages: hello, stream: true }),
  });
  assert.match(await res.text(), /\[DONE\]/);
  up.script = null;
  assert.equal((await me.post("/v1/embeddings", { model: "up/test-embed", input: "one" })).status, 200);
  const report = () => me.api("GET", "/usage?groupBy=hour,model");
  await becomes(async () => (await report()).total.requests, 2);
  const { data, groups, total, from } = await report();
  assert.match(from, /^\d{4}-\d\d-\d\dT\d\d$/);
  assert.ok(
    data.every((r) => r.hour > from && r.day === undefined),
    JSON.stringify(data),
  );
  const chat = groups.find((r) => r.model === "up/test-chat");
  assert.ok(chat.latencyP50Ms > 0 && chat.latencyP95Ms >= chat.latencyP50Ms, JSON.stringify(chat));
  assert.ok(chat.firstTokenP50Ms > 0 && chat.firstTokenP95Ms > 0, JSON.stringify(chat));
  assert.equal(chat.cacheShare, 0.25);
  const embed = groups.find((r) => r.model === "up/test-embed");
  assert.ok(embed.latencyP50Ms > 0 && embed.firstTokenP50Ms === undefined, JSON.stringify(embed));
  assert.equal(total.requests, 2);

  const recent = await me.api("GET", "/usage/recent");
  assert.deepEqual([recent.data.length, recent.stepMs, recent.total], [12, 300_000, total]);
  assert.ok(recent.data.every((r, i) => i === 0 || r.at === recent.data[i - 1].at + recent.stepMs));
  assert.ok(recent.data[11].at <= Date.now(), JSON.stringify(recent.data));
  assert.equal(recent.data[10].requests + recent.data[11].requests, 2);
});

test("machines are listed in pages and searched on the server", async () => {
  const made = [];
  for (let i = 0; i < 12; i++)
    made.push((await operator.machine({ name: `Page ${String.fromCharCode(65 + i)}` })).machineId);
  const found = [];
  let cursor = "",
    pages = 0;
  do {
    const page = await operator.call("GET", `/api/machines?q=page&limit=5${cursor && `&cursor=${cursor}`}`);
    assert.equal(page.total, 12);
    found.push(...page.data.map((m) => m.machineId));
    cursor = page.next ?? "";
    pages++;
    assert.equal(page.has_more, cursor !== "");
  } while (cursor);
  assert.deepEqual([found, pages], [made, 3]);
  assert.deepEqual(
    (await operator.call("GET", `/api/machines?q=${made[3]}`)).data.map((m) => m.machineId),
    [made[3]],
  );
  for (const bad of ["limit=0", "limit=1001", "cursor=x", "limit=many"])
    await assert.rejects(operator.call("GET", `/api/machines?${bad}`), { status: 400 });
});

test("each of 300 mixed calls is counted and listed as the client and the upstream saw it", async () => {
  const me = await machine("Mixed");
  await me.api("POST", "/providers", compatible(up, { prefix: "up" }));
  const limited = await me.api("POST", "/keys", { name: "limited", dailyMax: 5 });
  let stated = 0; // tokens
  const event = (fields) => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...fields })}\n\n`;
  up.script = (r) => {
    if (r.json?.model === "picky") return { status: 400, body: `{"error":{"message":"no"}}` };
    if (r.json?.model === "endless") {
      const body = new Readable({ read() {} });
      body.push(event({ choices: [{ index: 0, delta: { role: "assistant", content: "Hi" }, finish_reason: null }] }));
      return { headers: { "content-type": "text/event-stream" }, body };
    }
    const usage = { prompt_tokens: 7, completion_tokens: 1 + (stated % 5) };
    stated += usage.prompt_tokens + usage.completion_tokens;
    const choice = { index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" };
    return { body: JSON.stringify({ id: "c", object: "chat.completion", model: "m", choices: [choice], usage }) };
  };
  const want = { succeeded: 0, providerFailed: 0, left: 0, refused: 0, refusedKeyLimit: 0 };
  const failures = [];
  async function call(n) {
    const model = ["up/m", "up/m", "up/m", "up/picky", "invented", "up/endless"][n % 6];
    const key = n % 12 === 1 ? limited.apiKey : me.apiKey;
    const ctl = new AbortController();
    const res = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}`, "x-weir-tags": `n=${n % 6}` },
      body: JSON.stringify({ model, messages: hello, stream: model === "up/endless" }),
      signal: ctl.signal,
    });
    if (model === "up/endless") {
      const reader = res.body.getReader();
      assert.ok(!(await reader.read()).done);
      ctl.abort();
      want.left++;
      return 200;
    }
    await res.text();
    if (res.status === 200) want.succeeded++;
    else {
      want[model === "up/picky" ? "providerFailed" : "refused"]++;
      if (res.status === 429) want.refusedKeyLimit++;
      failures.push(res.headers.get("x-request-id"));
    }
    return res.status;
  }
  await until("the limit of the key", async () => (await call(1)) === 429);
  for (let n = 0; n < 300; n += 6) await Promise.all([0, 1, 2, 3, 4, 5].map((i) => call(n + i)));
  up.script = null;
  assert.ok(Math.min(...Object.values(want)) > 0, JSON.stringify(want));
  await becomes(async () => {
    const { total } = await me.api("GET", "/usage");
    return Object.fromEntries(Object.keys(want).map((name) => [name, total[name]]));
  }, want);
  const rows = [];
  for (let cursor = ""; ; ) {
    const page = await me.api("GET", `/requests?limit=200${cursor && `&cursor=${cursor}`}`);
    rows.push(...page.data);
    if (!page.has_more) break;
    ({ cursor } = page);
  }
  const of = (...outcomes) => rows.filter((r) => outcomes.includes(r.outcome));
  assert.deepEqual(
    of("refused", "provider_failed")
      .map((r) => r.id)
      .sort(),
    failures.sort(),
  );
  const { data: tagged } = await me.api("GET", "/requests?tag=n%3D3&limit=200");
  assert.equal(tagged.length, 50);
  assert.ok(tagged.every((r) => r.asked === "up/picky" && r.tags.join() === "n=3"));
  // The tokens of streams that were left are estimates.
  const { groups } = await me.api("GET", "/usage?groupBy=day,model");
  const served = groups.find((r) => r.model === "up/m");
  assert.equal(served.inputTokens + served.outputTokens, stated);
  assert.equal(served.estimatedAttempts ?? 0, 0);
});
