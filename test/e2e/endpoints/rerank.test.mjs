// Rerank and moderation. Spec-gaps, Rerank and moderation.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import OpenAI from "openai";
import { start as startUpstream } from "../../upstream/web.mjs";
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
beforeEach(() => up.clear());

async function machine(...connections) {
  const me = await operator.machine();
  const ids = [];
  for (const c of connections)
    ids.push(
      (
        await operator.connect(me.machineId, {
          apiKey: "vendor-key-0123456789abcdef",
          ...(typeof c === "string" ? { provider: c } : c),
        })
      ).id,
    );
  const post = async (path, body, headers = {}) => {
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}`, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await res.text();
    return { status: res.status, headers: res.headers, text, body: JSON.parse(text) };
  };
  return {
    ...me,
    ids,
    rank: (body, h) => post("/v1/rerank", body, h),
    judge: (body, h) => post("/v1/moderations", body, h),
    call: (method, path, body) => operator.call(method, `/${me.machineId}${path}`, body),
  };
}

const ask = { query: "green tea", documents: ["about cars", { text: "about tea", id: 7 }, "about coffee"] };
const scores = [
  { index: 1, relevance_score: 0.91 },
  { index: 2, relevance_score: 0.4 },
  { index: 0, relevance_score: 0.03 },
];

test("documents are returned in the order of their scores", async () => {
  const me = await machine("cohere"),
    model = "cohere/rerank-v3.5";
  up.answer = () => ({ body: { id: "r", results: scores, meta: { billed_units: { search_units: 1 } } } });
  const got = await me.rank({ model, ...ask, top_n: 2, return_documents: true });
  assert.equal(got.status, 200, got.text);
  assert.deepEqual(got.body, {
    model,
    usage: { total_tokens: null, search_units: 1 },
    results: [
      { index: 1, relevance_score: 0.91, document: { text: "about tea", id: 7 } },
      { index: 2, relevance_score: 0.4, document: { text: "about coffee" } },
    ],
  });
  assert.deepEqual(
    up.seen.map((s) => [s.method, s.host, s.path, s.headers.authorization]),
    [["POST", "api.cohere.com", "/v2/rerank", "Bearer vendor-key-0123456789abcdef"]],
  );
  assert.deepEqual(up.seen[0].json, {
    model: "rerank-v3.5",
    query: "green tea",
    documents: ["about cars", "about tea", "about coffee"],
    top_n: 2,
  });
});

test("after a broken answer the next account is tried", async () => {
  for (const answer of ["broken", "bomb", "reset"]) {
    const me = await machine(
      { provider: "cohere", name: "a" },
      { provider: "cohere", name: "b", priority: 2, apiKey: "second-key" },
    );
    up.answer = (got) => (got.headers.authorization === "Bearer second-key" ? { body: { results: scores } } : answer);
    const got = await me.rank({ model: "cohere/rerank-v3.5", ...ask });
    const known = answer === "bomb"; // too large an answer is not asked for again
    assert.equal(got.status, known ? 502 : 200, `${JSON.stringify(answer)}: ${got.text}`);
    if (!known) assert.equal(got.headers.get("x-weir-connection-id"), me.ids[1]);
  }
});

test("a combo of rerankers falls back, a compatible server reranks, and usage is counted", async () => {
  const me = await machine("cohere", "voyage", compatible(up));
  await me.call("POST", "/api/combos", {
    name: "rank",
    kind: "rerank",
    models: ["cohere/rerank-v3.5", "voyage/rerank-2"],
  });
  up.answer = (got) =>
    got.host === "api.cohere.com"
      ? { status: 500 }
      : got.host === "api.voyageai.com"
        ? { body: { data: scores, usage: { total_tokens: 26 } } }
        : { body: { results: scores } };
  const got = await me.rank({ model: "rank", ...ask });
  assert.equal(got.status, 200, got.text);
  assert.equal(got.headers.get("x-weir-model"), "voyage/rerank-2");
  assert.equal((await me.rank({ model: "up/bge-reranker", ...ask })).status, 200);
  assert.equal(up.seen.at(-1).path, "/v1/rerank");
  assert.equal((await me.rank({ model: "rank", ...ask }, { "x-stainless-timeout": "60" })).status, 200);
  up.answer = () => "silent";
  const before = up.seen.length;
  for (let limit = 0.3; up.seen.length === before; limit *= 2) {
    // long enough for the call to be made
    assert.equal(
      (await me.rank({ model: "voyage/rerank-2", ...ask }, { "x-stainless-timeout": String(limit) })).status,
      504,
    );
  }
  const rows = await until("3 attempts in the usage", async () => {
    const rows = (await me.call("GET", "/api/usage")).data ?? [];
    return rows.some((r) => r.model === "voyage/rerank-2" && r.attempts >= 3) && rows;
  });
  const row = rows.find((r) => r.model === "voyage/rerank-2");
  // 26 tokens of each answer, and the estimate of the attempt that ran into its time limit
  assert.deepEqual(
    [row?.attempts, row?.failedAttempts, row?.estimatedAttempts, row?.inputTokens, row?.endpoint],
    [3, 1, 1, 2 * 26 + 30, "/v1/rerank"],
    JSON.stringify(rows),
  );
});

test("moderations: OpenAI's client is served, with bare model names and the default", async () => {
  const me = await machine("openai", "mistral");
  const verdict = {
    id: "modr-1",
    model: "omni-moderation-latest",
    results: [
      {
        flagged: true,
        categories: { violence: true, hate: false },
        category_scores: { violence: 0.9, hate: 0.01 },
        category_applied_input_types: { violence: ["text"], hate: [] },
      },
    ],
  };
  up.answer = (got) =>
    got.host === "api.openai.com"
      ? { body: verdict }
      : {
          body: {
            id: "m",
            model: "x",
            results: [
              { categories: { pii: true }, category_scores: { pii: 0.8 } },
              { categories: { pii: false }, category_scores: { pii: 0.1 } },
            ],
          },
        };
  const client = new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
  const made = await client.moderations.create({ input: "some text", model: "omni-moderation-latest" });
  assert.deepEqual(made.results, verdict.results);
  assert.equal(made.model, "omni-moderation-latest");
  const parts = [
    { type: "text", text: "x" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
  ];
  await client.moderations.create({ input: parts });
  assert.deepEqual(
    up.seen.map((s) => [s.host, s.path, s.json]),
    [
      ["api.openai.com", "/v1/moderations", { input: "some text", model: "omni-moderation-latest" }],
      ["api.openai.com", "/v1/moderations", { input: parts, model: "omni-moderation-latest" }],
    ],
  );
  // Mistral sends no verdict: it is derived from the categories.
  const got = await me.judge({ model: "mistral-moderation-latest", input: ["a", "b"] });
  assert.equal(got.status, 200, got.text);
  assert.deepEqual(
    got.body.results.map((r) => r.flagged),
    [true, false],
  );
  assert.equal(got.body.model, "mistral-moderation-latest");
  assert.deepEqual(
    [up.seen[2].host, up.seen[2].path, up.seen[2].json.model],
    ["api.mistral.ai", "/v1/moderations", "mistral-moderation-latest"],
  );
  assert.equal((await me.judge({ model: "mistral/mistral-moderation-latest", input: "a" })).status, 200);
  const only = await machine("mistral");
  assert.equal((await only.judge({ input: "a" })).body.model, "mistral/mistral-moderation-latest");
});
