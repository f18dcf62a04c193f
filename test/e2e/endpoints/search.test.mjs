// Web search: every vendor's request and answer are those of the golden files of
// pkg/v1/search. docs/reference/spec-gaps.md, 5; docs/reference/design.md, 5.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/web.mjs";
import { admin, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const secret = "secret-key-0123456789abcdef"; // as in the golden files
const read = (name) =>
  readFileSync(new URL(`../../../pkg/v1/search/testdata/vendors/${name}`, import.meta.url), "utf8");
const recorded = (name) => {
  try {
    return read(`${name}.json`);
  } catch {
    return read(`${name.replace(/_(all|news)$/, "")}.json`);
  }
};
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

const all = {
  max_results: 3,
  offset: 0,
  search_type: "web",
  country: "de",
  language: "en-GB",
  time_range: "week",
  domain_filter: ["tea.example.com", "-spam.example.net"],
  content_options: { full_page: true, format: "markdown", max_characters: 8 },
};
const variants = { "": {}, _all: all, _news: { search_type: "news", time_range: "day" } };
const vendors =
  "tavily exa brave serper searxng linkup you perplexity firecrawl jina-reader zai ollama-cloud openai xai anthropic gemini openrouter perplexity_sonar openai_gpt-5-search-api".split(
    " ",
  );
const names = { perplexity_sonar: "perplexity/sonar", "openai_gpt-5-search-api": "openai/gpt-5-search-api" };

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

for (const id of vendors) {
  test(`${id}: request and answer equal the golden files`, async () => {
    const me = await machine(id.split("_")[0]);
    for (const [variant, fields] of Object.entries(variants)) {
      up.clear();
      up.answer = () => ({ body: recorded(id + variant) });
      const want = JSON.parse(read(`${id}${variant}.golden.json`));
      const got = await me.ask(
        { model: names[id] ?? id, query: "green tea", ...fields },
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
      if (variant === "") assert.deepEqual(timeless(got.body), timeless(want.Answer));
      else assert.deepEqual(Object.keys(got.body), Object.keys(want.Answer));
      assert.equal(got.headers.get("x-weir-dropped"), want.Dropped?.join(",") ?? null);
      assert.equal(got.headers.get("x-weir-connection-id"), me.ids[0]);
      assert.ok(!got.text.includes(secret));
    }
  });
}

test("a bad request is refused with the field's name, and nothing is called", async () => {
  const me = await machine("exa", "voyage", "openai");
  for (const [body, param] of [
    ["{", null],
    ["[]", null],
    [{}, "query"],
    [{ query: 1 }, "query"],
    [{ query: " " }, "query"],
    [{ query: "a\u0000b" }, "query"],
    [{ query: "ä".repeat(2001) }, "query"],
    ['{"query":"a","query":"b"}', "query"],
    [{ query: "q", max_results: 0 }, "max_results"],
    [{ query: "q", max_results: 101 }, "max_results"],
    [{ query: "q", offset: -1 }, "offset"],
    [{ query: "q", search_type: "images" }, "search_type"],
    [{ query: "q", time_range: "hour" }, "time_range"],
    [{ query: "q", country: "DEU" }, "country"],
    [{ query: "q", language: "german, please" }, "language"],
    [{ query: "q", domain_filter: ["https://a.example.com"] }, "domain_filter"],
    [{ query: "q", content_options: { full_page: 1 } }, "content_options.full_page"],
    [{ query: "q", provider_options: { base_url: "http://127.0.0.1/" } }, "provider_options.base_url"],
    [{ query: "q", provider_options: { exa: { apiKey: "x" } } }, "provider_options.exa.apiKey"],
    [{ query: "q", model: "exa", provider: "tavily" }, "provider"],
    [{ query: "q", provider: "unknown" }, "model"],
    [{ query: "q", provider: "voyage" }, "model"],
    [{ query: "q", model: "openai/text-embedding-3-small" }, "model"],
    [{ query: "q", provider: "tavily" }, "model"], // without the service; without an account
  ]) {
    const got = await me.ask(body);
    assert.equal(got.status, 400, JSON.stringify(body));
    assert.equal(got.body.error.param, param, JSON.stringify(body));
    assert.equal(got.body.error.type, "invalid_request_error");
  }
  assert.equal((await me.ask({ query: "x".repeat(300_000) })).status, 413);
  assert.equal((await gw.fetch("/v1/search", { method: "POST", body: "{}" })).status, 401);
  assert.equal((await gw.fetch("/v1/search")).status, 405);
  assert.equal(up.seen.length, 0);
});

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
  }
  const { routes } = await (await gw.fetch("/api/features")).json();
  for (const r of ["POST /v1/search", "POST /v1/web/fetch", "POST /v1/rerank", "POST /v1/moderations"])
    assert.ok(routes.includes(r), r);
});

// These cases are retried with another account or another provider. See
// docs/reference/design.md, 5.
for (const [name, first, want] of [
  ["a limit", { status: 429, headers: { "retry-after": "7", "content-type": "application/json" } }, "exa"],
  ["a refused key", { status: 401 }, "exa"],
  ["a plan used up, in Tavily's own status", { status: 432, body: { detail: { error: "plan limit" } } }, "exa"],
  ["a pay-as-you-go limit, in Tavily's own status", { status: 433 }, "exa"],
  ["a server error", { status: 503 }, "exa"],
  ["an answer of another shape", { body: { nothing: true } }, "exa"],
  ["an answer that is no JSON", { headers: { "content-type": "text/html" }, body: "<html>down</html>" }, "exa"],
  ["a broken connection", "reset", "exa"],
  ["a redirect", { status: 302, headers: { location: "https://elsewhere.example.com/" } }, "exa"],
  ["a refused request", { status: 400, body: { detail: { error: "bad query" } } }, 400],
  ["a request that it cannot process", { status: 422, body: { detail: "no" } }, 422],
]) {
  test(`a combo after ${name}: ${want === "exa" ? "the next account, then the next provider" : "the answer goes to the caller"}`, async () => {
    const me = await machine({ provider: "tavily", name: "a" }, { provider: "tavily", name: "b", priority: 2 }, "exa");
    await me.call("POST", "/api/combos", { name: "find", kind: "webSearch", models: ["tavily/search", "exa/search"] });
    up.answer = (got) => (got.host === "api.tavily.com" ? first : { body: { results: [hit(1)] } });
    const got = await me.ask({ model: "find", query: "q" });
    const hosts = up.seen.map((s) => s.host);
    assert.ok(!hosts.includes("elsewhere.example.com"));
    if (want === "exa") {
      assert.equal(got.status, 200, got.text);
      assert.equal(got.body.provider, "exa");
      assert.deepEqual(hosts, ["api.tavily.com", "api.tavily.com", "api.exa.ai"]);
      assert.equal(got.headers.get("x-weir-attempts"), "3");
      assert.equal(got.headers.get("x-weir-model"), "exa/search");
    } else {
      assert.equal(got.status, want, got.text);
      assert.equal(hosts.length, 1);
    }
  });
}

test("an account whose plan is used up is skipped for an hour, and with all used up the answer is 402", async () => {
  const me = await machine("tavily");
  up.answer = () => ({ status: 432, body: { detail: { error: "This request exceeds your plan's set usage limit." } } });
  const got = await me.ask({ query: "q" });
  assert.equal(got.status, 402);
  assert.equal(got.body.error.code, "insufficient_quota");
  assert.equal(got.headers.get("x-should-retry"), "false");
  const { data } = await me.call("GET", "/api/models/availability");
  assert.ok(data[0].until - Date.now() > 55 * 60_000, JSON.stringify(data));
  const again = await me.ask({ query: "q" });
  assert.deepEqual(
    [again.status, again.body.error.code, again.headers.get("x-should-retry")],
    [402, "insufficient_quota", "false"],
  );
  assert.equal(up.seen.length, 1);
});

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

test("without a search service a chat model with a search tool is called", async () => {
  for (const [provider, host, path] of [
    ["openai", "api.openai.com", "/v1/responses"],
    ["anthropic", "api.anthropic.com", "/v1/messages"],
    ["xai", "api.x.ai", "/v1/responses"],
    ["gemini", "generativelanguage.googleapis.com", "/v1beta/models/gemini-2.5-flash:generateContent"],
    ["openrouter", "openrouter.ai", "/api/v1/chat/completions"],
  ]) {
    const me = await machine("voyage", provider);
    up.clear();
    up.answer = () => ({ body: recorded(provider) });
    const got = await me.ask({ query: "green tea" });
    assert.equal(got.status, 200, got.text);
    assert.equal(got.body.provider, provider);
    assert.ok(got.body.results.length > 0 && got.body.answer);
    assert.deepEqual(
      up.seen.map((s) => [s.host, s.path]),
      [[host, path]],
    );
  }
  const me = await machine("openai", "brave");
  up.clear();
  up.answer = () => ({ body: recorded("brave") });
  assert.equal((await me.ask({ query: "q" })).body.provider, "brave");
  const none = await machine("voyage");
  assert.equal((await none.ask({ query: "q" })).body.error.code, "no_credentials");
});

test("search services, combos and the gateway's own fetch are listed", async () => {
  const me = await machine({ provider: "tavily", providerSpecificData: { prefix: "tav" } }, "brave");
  await me.call("POST", "/api/combos", { name: "find", kind: "webSearch", models: ["tav/search", "brave/search"] });
  await me.call("POST", "/api/combos", { name: "reader", kind: "webFetch", models: ["tav/fetch", "web/fetch"] });
  const list = async (path) => (await gw.fetch(path, { headers: { authorization: `Bearer ${me.apiKey}` } })).json();
  const { data } = await list("/v1/models/web");
  assert.deepEqual(
    data.map((e) => `${e.id} ${e.kind} ${e.owned_by}`),
    [
      "find webSearch combo",
      "reader webFetch combo",
      "tav/search webSearch tav",
      "tav/fetch webFetch tav",
      "brave/search webSearch brave",
      "web/fetch webFetch web",
    ],
  );
  assert.equal((await list("/v1/models/info?id=web/fetch")).endpoint, "/v1/web/fetch");
  for (const [id, types, results] of [
    ["tav/search", ["web", "news"], 20],
    ["linkup/search", ["web"], 100],
  ]) {
    const info = await list(`/v1/models/info?id=${id}`);
    assert.deepEqual([info.search_types, info.max_results], [types, results], id);
  }
  assert.equal((await list("/v1/models/web/fetch")).id, "web/fetch");
  assert.equal(
    (await list("/v1/models")).data.some((e) => e.kind),
    false,
  );
  up.answer = () => tavily(hit(1));
  for (const model of ["tav", "tav/search", "find"])
    assert.equal((await me.ask({ model, query: "q" })).body.provider, "tavily");
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

test("a plan is explained without a call", async () => {
  const me = await machine("tavily", "exa");
  await me.call("POST", "/api/combos", { name: "find", kind: "webSearch", models: ["tavily", "exa"] });
  await me.call("POST", "/api/combos", { name: "reader", kind: "webFetch", models: ["exa/fetch", "web/fetch"] });
  const plan = async (path, body) =>
    (await me.call("POST", "/api/explain", { path, body })).plan.map((s) => [s.model, s.upstream]);
  assert.deepEqual(await plan("/v1/search", { model: "find", query: "q" }), [
    ["tavily/search", "POST https://api.tavily.com/search"],
    ["exa/search", "POST https://api.exa.ai/search"],
  ]);
  assert.deepEqual(await plan("/v1/web/fetch", { model: "reader", url: "https://page.example.com/a?b=c" }), [
    ["exa/fetch", "POST https://api.exa.ai/contents"],
    ["web/fetch", "GET https://page.example.com/a"],
  ]);
  assert.equal(up.seen.length, 0);
});

test("a connection to a search service is tested by one search for one result", async () => {
  const me = await machine("tavily", "brave");
  up.answer = (got) => (got.host === "api.tavily.com" ? tavily(hit(1)) : { status: 401 });
  const good = await me.call("POST", `/api/providers/${me.ids[0]}/test`);
  assert.deepEqual([good.ok, good.model], [true, "tavily/search"]);
  assert.deepEqual(
    up.seen.map((s) => [s.host, s.json.max_results]),
    [["api.tavily.com", 1]],
  );
  const bad = await me.call("POST", `/api/providers/${me.ids[1]}/test`);
  assert.deepEqual([bad.ok, bad.error], [false, "unauthorized"]);
});

test("a key that may not use a provider does not search with it", async () => {
  const me = await machine("tavily", "exa");
  const { key, apiKey } = await me.call("POST", "/api/keys", { name: "exa only", models: ["exa/*"] });
  up.answer = () => ({ body: { results: [hit(1)] } });
  const got = await me.ask({ query: "q" }, { authorization: `Bearer ${apiKey ?? key}` });
  assert.equal(got.body.provider, "exa");
  assert.equal(
    (await me.ask({ model: "tavily", query: "q" }, { authorization: `Bearer ${apiKey ?? key}` })).status,
    403,
  );
});

test("hostile answers of a search service are bounded and never returned", async () => {
  for (const [answer, status] of [
    ["huge", 502],
    ["endless", 502],
    ["bomb", 502],
    ["broken", 502],
    ["badgzip", 502],
    [{ body: "[".repeat(200_000) }, 502],
    [{ body: { results: Array.from({ length: 20000 }, (_, i) => hit(i)) } }, 200],
    [
      {
        body: {
          results: [
            {
              url: "https://a.example.com/",
              title: "<script>x</script><b>t".repeat(50_000),
              content: "&lt;".repeat(100_000),
            },
          ],
        },
      },
      200,
    ],
  ]) {
    up.clear();
    up.answer = () => answer;
    const me = await machine("searxng");
    const got = await me.ask({ query: "q", max_results: 100 });
    assert.equal(got.status, status, `${JSON.stringify(answer).slice(0, 40)}: ${got.text.slice(0, 200)}`);
    assert.ok(got.text.length < 200_000);
    await Promise.all(up.seen.map((s) => s.closed));
    for (const s of up.seen) assert.ok(!(s.sent > 80e6), `${s.sent} bytes were taken`); // the system's own buffers hold up to forty million
  }
});
