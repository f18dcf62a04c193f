// Web search: two vendors' requests and answers, of a POST and of a GET, are those of
// the golden files of pkg/v1/search, which has all of them. docs/reference/spec.md, 4.8.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/web.mjs";
import { admin, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const secret = "secret-key-0123456789abcdef"; // as in the golden files
const read = (name) =>
  readFileSync(new URL(`../../../pkg/v1/search/testdata/vendors/${name}`, import.meta.url), "utf8");
const recorded = (name) => read(`${name}.json`);
const hit = (n) => ({ title: `t${n}`, url: `https://tea.example.com/${n}`, content: `s${n}` });
const tavily = (...results) => ({ body: { results } });

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

// machine creates a machine with a connection for each provider id or
// connection. ask sends a search.
async function machine(...providers) {
  const me = await operator.machine();
  const ids = [];
  for (const p of providers)
    ids.push(
      (await operator.connect(me.machineId, { apiKey: secret, ...(typeof p === "string" ? { provider: p } : p) })).id,
    );
  const ask = async (body, headers = {}, path = "/v1/search") => {
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}`, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await res.text();
    return { status: res.status, headers: res.headers, text, body: JSON.parse(text) };
  };
  const call = (method, path, body) => operator.call(method, `/${me.machineId}${path}`, body);
  return { ...me, ids, ask, call };
}

// timeless removes from an exchange the parts that depend on the clock, also
// dates that a time range derives from it.
const day = (s) => s.replaceAll(/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, "<date>").replaceAll(/%3A|:/g, ":");
function timeless(answer) {
  const a = structuredClone(answer);
  a.metrics.response_time_ms = a.metrics.upstream_latency_ms = 0;
  for (const r of a.results) {
    r.citation.retrieved_at = "";
    if (r.published_at) r.published_at = day(r.published_at);
  }
  return a;
}

for (const id of ["tavily", "brave"]) {
  test(`${id}: request and answer equal the golden files`, async () => {
    const me = await machine(id);
    up.answer = () => ({ body: recorded(id) });
    const want = JSON.parse(read(`${id}.golden.json`));
    const got = await me.ask(
      { model: id, query: "green tea" },
      {
        cookie: "a=b",
        "x-goog-api-key": "client",
        "accept-language": "de",
        referer: "https://app.example.org/",
        "x-forwarded-for": "10.0.0.1",
      },
    );
    assert.equal(got.status, 200, got.text);
    assert.equal(up.seen.length, 1);
    const [sent] = up.seen;
    const url = new URL(want.URL);
    assert.equal(sent.method, want.Method);
    assert.equal(sent.host, url.host);
    assert.equal(day(sent.path), day(url.pathname + url.search));
    for (const { Name, Value } of want.Header) assert.equal(sent.headers[Name], Value, Name);
    const known = new Set([
      ...want.Header.map((h) => h.Name),
      "host",
      "connection",
      "content-length",
      "transfer-encoding",
      "cf-worker",
    ]);
    assert.deepEqual(
      Object.keys(sent.headers).filter((h) => !known.has(h)),
      [],
    ); // nothing of the client's
    if (want.Body) assert.deepEqual(JSON.parse(day(sent.body)), JSON.parse(day(JSON.stringify(want.Body))));
    else assert.equal(sent.body, "");
    assert.deepEqual(timeless(got.body), timeless(want.Answer));
    assert.equal(got.headers.get("x-weir-dropped"), want.Dropped?.join(",") ?? null);
    assert.equal(got.headers.get("x-weir-connection-id"), me.ids[0]);
    assert.ok(!got.text.includes(secret));
  });
}

test("the query is normalised by the platform before it is sent", async () => {
  const me = await machine("tavily");
  up.answer = () => tavily(hit(1));
  const got = await me.ask({ query: "  ﬁnd ① ｔｅａ " });
  assert.equal(got.body.query, "find 1 tea");
  assert.equal(up.seen[0].json.query, "find 1 tea");
});

test("the path with a machine and the preflight are answered", async () => {
  const me = await machine("tavily");
  up.answer = () => tavily(hit(1));
  const got = await me.ask({ query: "q" }, { origin: "https://app.example.org" }, `/${me.machineId}/v1/search`);
  assert.equal(got.status, 200);
  assert.equal(got.headers.get("access-control-allow-origin"), "*");
  assert.ok(got.headers.get("x-request-id"));
  for (const path of ["/v1/search", "/v1/web/fetch", "/v1/rerank", "/v1/moderations"]) {
    const asked = await gw.fetch(path, {
      method: "OPTIONS",
      headers: { origin: "https://app.example.org", "access-control-request-method": "POST" },
    });
    assert.equal(asked.headers.get("access-control-allow-methods"), "POST, OPTIONS");
    assert.match(asked.headers.get("access-control-allow-headers"), /Authorization/);
    assert.equal((await gw.fetch(path, { method: "POST", body: "{}" })).status, 401);
    assert.equal((await gw.fetch(path)).status, 405);
  }
  assert.equal((await me.ask({ query: "x".repeat(300_000) })).status, 413);
  const { routes } = await (await gw.fetch("/api/features")).json();
  for (const r of ["POST /v1/search", "POST /v1/web/fetch", "POST /v1/rerank", "POST /v1/moderations"])
    assert.ok(routes.includes(r), r);
});

for (const [name, first] of [
  ["a broken connection", "reset"],
  ["a redirect", { status: 302, headers: { location: "https://elsewhere.example.com/" } }],
]) {
  test(`a combo after ${name}: the next account, then the next provider`, async () => {
    const me = await machine({ provider: "tavily", name: "a" }, { provider: "tavily", name: "b", priority: 2 }, "exa");
    await me.call("POST", "/api/combos", { name: "find", kind: "webSearch", models: ["tavily/search", "exa/search"] });
    up.answer = (got) => (got.host === "api.tavily.com" ? first : { body: { results: [hit(1)] } });
    const got = await me.ask({ model: "find", query: "q" });
    assert.equal(got.status, 200, got.text);
    assert.equal(got.body.provider, "exa");
    assert.deepEqual(
      up.seen.map((s) => s.host),
      ["api.tavily.com", "api.tavily.com", "api.exa.ai"],
    );
    assert.equal(got.headers.get("x-weir-attempts"), "3");
    assert.equal(got.headers.get("x-weir-model"), "exa/search");
  });
}

test("a provider that does not answer is 504, and within a combo the next one answers", async () => {
  const me = await machine("tavily", "exa");
  await me.call("POST", "/api/combos", { name: "find", kind: "webSearch", models: ["tavily", "exa"] });
  up.answer = (got) => (got.host === "api.tavily.com" ? "silent" : { body: { results: [hit(1)] } });
  for (let limit = 0.3; !up.seen.length; limit *= 2) {
    // long enough for the call to be made
    const got = await me.ask({ model: "tavily", query: "q" }, { "x-stainless-timeout": String(limit) });
    assert.equal(got.status, 504);
    assert.equal(got.body.error.code, "upstream_timeout");
  }
  await up.seen[0].closed; // the call to the provider has ended too
  up.answer = (got) => (got.host === "api.tavily.com" ? "reset" : "stalled");
  assert.equal((await me.ask({ model: "find", query: "q" }, { "x-stainless-timeout": "0.4" })).status, 504);
});

test("the usage of a search is counted", async () => {
  const me = await machine(
    "exa",
    "openai",
    { provider: "tavily", name: "a" },
    { provider: "tavily", name: "b", priority: 2 },
  );
  up.answer = (got) => {
    if (got.host === "api.exa.ai") return { body: { results: [hit(1)], costDollars: { total: 0.007 } } };
    if (got.host === "api.openai.com")
      return {
        body: { ...JSON.parse(recorded("openai")), usage: { input_tokens: 900, output_tokens: 50, total_tokens: 950 } },
      };
    return up.seen.filter((s) => s.host === got.host).length === 1 ? { status: 500 } : tavily(hit(1));
  };
  const exa = await me.ask({ model: "exa", query: "q" });
  assert.deepEqual(exa.body.usage, { queries_used: 1, search_cost_usd: 0.007 });
  await me.ask({ model: "exa", query: "q" });
  await me.ask({ model: "openai/gpt-5-mini", query: "q" });
  await me.ask({ model: "tavily", query: "q" });
  const rows = await until("5 attempts in the usage", async () => {
    const rows = (await me.call("GET", "/api/usage")).data ?? [];
    return rows.reduce((n, r) => n + r.attempts, 0) >= 5 && rows;
  });
  const of = (model) => rows.filter((r) => r.model === model);
  assert.equal(of("exa/search")[0]?.attempts, 2, JSON.stringify(rows));
  assert.ok(Math.abs(of("exa/search")[0].costUsd - 0.014) < 1e-9);
  assert.equal(of("exa/search")[0].endpoint, "/v1/search");
  assert.equal(of("openai/gpt-5-mini")[0].inputTokens, 900);
  assert.equal(of("openai/gpt-5-mini")[0].unpricedAttempts, 1); // the search itself has a price that is not told
  assert.deepEqual(
    of("tavily/search")
      .map((r) => [r.attempts, r.failedAttempts, r.unpricedAttempts ?? 0])
      .sort(),
    [
      [1, 0, 1],
      [1, 1, 0],
    ],
  );
});

test("hostile answers of a search service are bounded and never returned", async () => {
  for (const answer of ["huge", "endless", "bomb", "broken", "badgzip"]) {
    up.clear();
    up.answer = () => answer;
    const me = await machine("searxng");
    const got = await me.ask({ query: "q", max_results: 100 });
    assert.equal(got.status, 502, `${answer}: ${got.text.slice(0, 200)}`);
    assert.ok(got.text.length < 200_000);
    await Promise.all(up.seen.map((s) => s.closed));
    for (const s of up.seen) assert.ok(!(s.sent > 80e6), `${s.sent} bytes were taken`); // the system's own buffers hold up to forty million
  }
});
