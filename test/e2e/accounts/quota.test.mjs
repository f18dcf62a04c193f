// Gauges of accounts: what providers say of limits, the order that follows, and
// GET /api/quota. See docs/reference/quotas.md.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start();
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const hour = 3600;
const soon = (seconds) => Math.floor(Date.now() / 1000) + seconds;

// claude is the header of a Claude subscription.
const claude = (used, ends, week = 0.1) => ({
  "anthropic-ratelimit-unified-5h-utilization": String(used),
  "anthropic-ratelimit-unified-5h-reset": String(ends),
  "anthropic-ratelimit-unified-7d-utilization": String(week),
  "anthropic-ratelimit-unified-7d-reset": String(soon(100 * hour)),
});

// accounts creates a machine with an account of equal priority for each answer:
// {status, headers, body} over a usual answer.
async function accounts(...answers) {
  const { machineId, apiKey } = await operator.machine();
  await operator.call("PATCH", `/${machineId}/api/settings`, { strategy: "priority" });
  const ids = [];
  for (const i of answers.keys())
    ids.push(
      (
        await operator.connect(
          machineId,
          compatible(up, { apiKey: `upstream-key-${i}`, name: `account ${i}`, priority: 0 }),
        )
      ).id,
    );
  const body =
    '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0]}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}';
  up.script = (req) => {
    const a = answers[Number(req.headers.authorization?.slice(-1))] ?? {};
    return {
      status: a.status ?? 200,
      headers: { "content-type": "application/json", ...a.headers },
      body: a.body ?? body,
    };
  };
  const send = async (headers = {}) => {
    const from = up.seen.length;
    const res = await gw.fetch("/v1/embeddings", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}`, ...headers },
      body: JSON.stringify({ model: "up/test-embed", input: "a" }),
    });
    const text = await res.text();
    return {
      status: res.status,
      headers: res.headers,
      text,
      tried: up.seen.slice(from).map((r) => Number(r.headers.authorization.slice(-1))),
    };
  };
  const gauges = async () => (await operator.call("GET", `/${machineId}/api/quota`)).data;
  const cooling = async () => (await operator.call("GET", `/${machineId}/api/models/availability`)).data;
  return { machineId, ids, answers, send, gauges, cooling };
}

test("a gauge shows what the provider states", async () => {
  const ends = soon(3 * hour);
  const me = await accounts(
    {
      headers: {
        ...claude(0.42, ends),
        "x-ratelimit-limit-requests-day": "1000",
        "x-ratelimit-remaining-requests-day": "250",
        "x-ratelimit-reset-requests-day": "9h",
      },
    },
    {},
  );
  assert.equal((await me.send()).status, 200);
  const [one, two] = await until("a report is stored", async () => {
    const data = await me.gauges();
    return data[0].windows.length > 0 && data;
  });
  assert.deepEqual(
    [one.connectionId, one.name, two.connectionId, two.windows],
    [me.ids[0], "account 0", me.ids[1], []],
  );
  const of = (name) => one.windows.find((w) => w.name === name);
  assert.deepEqual(
    { ...of("5h"), observedAt: 0 },
    { name: "5h", left: 0.58, resetsAt: ends * 1000, spanSeconds: 5 * hour, observedAt: 0 },
  );
  assert.equal(of("7d").left, 0.9);
  const day = of("requests-day");
  assert.deepEqual(
    [day.model, day.left, day.limit, day.remaining, day.spanSeconds],
    ["test-embed", 0.25, 1000, 250, 24 * hour],
  );
  assert.ok(Math.abs(day.resetsAt - Date.now() - 9 * hour * 1000) < 60_000);
});

test("of equal accounts, one with little left is tried last, and what ends first goes first", async () => {
  const me = await accounts(
    { headers: claude(0.97, soon(hour)) },
    { headers: claude(0.3, soon(4 * hour)) },
    { headers: claude(0.3, soon(2 * hour)) },
  );
  for (const id of me.ids) assert.equal((await me.send({ "x-connection-id": id })).status, 200);
  assert.deepEqual((await me.send()).tried, [2]);
  const plan = await operator.call("POST", `/${me.machineId}/api/explain`, {
    path: "/v1/embeddings",
    body: { model: "up/test-embed", input: "a" },
  });
  assert.deepEqual(
    plan.plan.map((s) => [s.connectionId, s.try, s.lowQuota]),
    [
      [me.ids[2], 1, false],
      [me.ids[1], 2, false],
      [me.ids[0], 3, true],
    ],
  );
  for (const a of me.answers) Object.assign(a, { status: 529, headers: {} });
  assert.deepEqual((await me.send()).tried, [2, 1, 0]);
});

test("a window that is used up decides over a shorter wait, for the whole account", async () => {
  const ends = soon(3 * hour);
  const me = await accounts(
    { status: 429, headers: { ...claude(1, ends), "retry-after": "30" }, body: '{"error":{"message":"no"}}' },
    {},
  );
  const got = await me.send();
  assert.deepEqual([got.status, got.tried], [200, [0, 1]], got.text);
  const [row] = await until("a report is stored", async () => {
    const list = await me.cooling();
    return list.length > 0 && list;
  });
  assert.deepEqual([row.connectionId, row.reason, row.model], [me.ids[0], "rate_limited", undefined]);
  assert.ok(Math.abs(row.until - ends * 1000) < 5000, `until ${row.until}, not ${ends * 1000}`);
  assert.deepEqual((await me.send()).tried, [1]);
});

test("Gemini's quota of a day lasts until midnight Pacific time", async () => {
  const body = JSON.stringify({
    error: {
      code: 429,
      status: "RESOURCE_EXHAUSTED",
      message: "quota",
      details: [
        { violations: [{ quotaId: "GenerateRequestsPerDayPerProjectPerModel-FreeTier", quotaValue: "20" }] },
        { retryDelay: "38s" },
      ],
    },
  });
  const me = await accounts({ status: 429, body }, {});
  assert.equal((await me.send()).status, 200);
  const [{ windows }] = await until("a report is stored", async () => {
    const data = await me.gauges();
    return data[0].windows.length > 0 && data;
  });
  const [{ name, left, limit, resetsAt }] = windows;
  assert.deepEqual([name, left, limit], ["requests-day", 0, 20]);
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone: "America/Los_Angeles", timeStyle: "medium" });
  assert.equal(clock.format(resetsAt), "00:00:00");
  assert.ok(resetsAt > Date.now() && resetsAt < Date.now() + 25 * hour * 1000);
  assert.ok(Math.abs((await me.cooling())[0].until - resetsAt) < 5000);
});
