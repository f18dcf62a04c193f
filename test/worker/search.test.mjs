// Web search in real workerd: every vendor's request and answer are those of the
// golden files of pkg/search. Spec-gaps, Search and fetch; design 5.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../upstream/web.mjs";
import { admin, start } from "./gateway.mjs";

const secret = "secret-key-0123456789abcdef"; // as in the golden files
const read = (name) => readFileSync(new URL(`../../pkg/search/testdata/vendors/${name}`, import.meta.url), "utf8");
const recorded = (name) => { try { return read(`${name}.json`); } catch { return read(`${name.replace(/_(all|news)$/, "")}.json`); } };
const hit = (n) => ({ title: `t${n}`, url: `https://tea.example.com/${n}`, content: `s${n}` });
const tavily = (...results) => ({ body: { results } });

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  operator = admin(gw);
});
after(async () => { await gw?.close(); await up?.close(); });
beforeEach(() => up.clear());

// machine makes one with a connection for each provider, or for what is given
// besides a provider. ask sends a search.
async function machine(...providers) {
  const me = await operator.machine();
  const ids = [];
  for (const p of providers) ids.push((await operator.connect(me.machineId, { apiKey: secret, ...(typeof p === "string" ? { provider: p } : p) })).id);
  const ask = async (body, headers = {}, path = "/v1/search") => {
    const res = await gw.fetch(path, { method: "POST", headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}`, ...headers }, body: typeof body === "string" ? body : JSON.stringify(body) });
    const text = await res.text();
    return { status: res.status, headers: res.headers, text, body: JSON.parse(text) };
  };
  const call = (method, path, body) => operator.call(method, `/${me.machineId}${path}`, body);
  return { ...me, ids, ask, call };
}

const all = { max_results: 3, offset: 0, search_type: "web", country: "de", language: "en-GB", time_range: "week", domain_filter: ["tea.example.com", "-spam.example.net"], content_options: { full_page: true, format: "markdown", max_characters: 8 } };
const variants = { "": {}, _all: all, _news: { search_type: "news", time_range: "day" } };
const vendors = "tavily exa brave serper searxng linkup you perplexity firecrawl jina-reader zai ollama-cloud openai xai anthropic gemini openrouter perplexity_sonar openai_gpt-5-search-api".split(" ");
const names = { perplexity_sonar: "perplexity/sonar", "openai_gpt-5-search-api": "openai/gpt-5-search-api" };

// timeless takes out of an exchange what the clock makes, and what the limits of
// a time range make of recorded dates.
const day = (s) => s.replaceAll(/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, "<date>").replaceAll(/%3A|:/g, ":");
function timeless(answer) {
  const a = structuredClone(answer);
  a.metrics.response_time_ms = a.metrics.upstream_latency_ms = 0;
  for (const r of a.results) { r.citation.retrieved_at = ""; if (r.published_at) r.published_at = day(r.published_at); }
  return a;
}

for (const id of vendors) {
  test(`${id}: the call and the answer are those of the golden files`, async () => {
    const me = await machine(id.split("_")[0]);
    for (const [variant, fields] of Object.entries(variants)) {
      up.clear();
      up.answer = () => ({ body: recorded(id + variant) });
      const want = JSON.parse(read(`${id}${variant}.golden.json`));
      const got = await me.ask({ model: names[id] ?? id, query: "green tea", ...fields });
      assert.equal(got.status, 200, got.text);
      assert.equal(up.seen.length, 1);
      const [sent] = up.seen;
      const url = new URL(want.URL);
      assert.equal(sent.method, want.Method);
      assert.equal(sent.host, url.host);
      assert.equal(day(sent.path), day(url.pathname + url.search));
      for (const { Name, Value } of want.Header) assert.equal(sent.headers[Name], Value, Name);
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
