// The Gemini API under /v1beta besides generation: paths, keys, errors, the model
// list and embeddings, with Google's clients and with LangChain's. See
// docs/reference/dialects.md, a.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { GoogleGenAI } from "@google/genai";
import { GoogleGenerativeAIEmbeddings } from "@langchain/google-genai";
import { vector } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { geminiError } from "../../upstream/vendors.mjs";
import { admin, families, start } from "../gateway.mjs";

let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up });
  me = await families(admin(gw), up);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = null;
});

const client = ({ base = "", apiKey = me.apiKey, ...httpOptions } = {}) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: gw.url + base, ...httpOptions } });
const post = (path, body, headers = { "x-goog-api-key": me.apiKey }) =>
  gw.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
const numbers = (text, n) => [...vector(text, n)];
const embed = (text) => ({ content: { parts: [{ text }] } });

// refused checks an answer that is an error of the Gemini API.
async function refused(res, code, status, { array = false, reason } = {}) {
  const text = await res.text();
  let body = JSON.parse(text);
  assert.equal(Array.isArray(body), array, text);
  if (array) [body] = body;
  assert.deepEqual([res.status, body.error.code, body.error.status], [code, code, status], text);
  assert.equal(typeof body.error.message, "string");
  if (reason) assert.equal(body.error.details[0].reason, reason, text);
  assert.equal(res.headers.get("access-control-allow-origin"), "*");
  assert.match(res.headers.get("x-request-id"), /^req_/);
  return body.error;
}

describe("Google's client is served on every form of the path:", () => {
  for (const base of ["", "/{machineId}"])
    for (const apiVersion of ["v1beta", "v1", "v1alpha"])
      test(`${base}/${apiVersion}`, async () => {
        const ai = client({ base: base.replace("{machineId}", me.machineId), apiVersion });
        const names = [];
        for await (const m of await ai.models.list({ config: { pageSize: 3 } })) names.push(m.name);
        assert.ok(names.includes("models/gemini/gemini-test"), names.join());
        assert.equal(new Set(names).size, names.length);
        const got = await ai.models.get({ model: "gemini/gemini-test" });
        assert.equal(got.name, "models/gemini/gemini-test");
        assert.ok(got.supportedActions.includes("generateContent"));
        await assert.rejects(ai.models.get({ model: "gemini/nothing" }), { status: 404 });
        const vectors = await ai.models.embedContent({
          model: "up/test-embed",
          contents: ["a", "b"],
          config: { outputDimensionality: 3 },
        });
        assert.deepEqual(
          vectors.embeddings.map((e) => e.values),
          [numbers("a", 3), numbers("b", 3)],
        );
      });
});

test("the list has what clients filter by, page by page", async () => {
  const headers = { "x-goog-api-key": me.apiKey };
  const all = await (await gw.fetch("/v1beta/models?pageSize=1000", { headers })).json();
  assert.equal(all.nextPageToken, undefined);
  assert.ok(all.models.length > 3);
  const page = await (await gw.fetch("/v1beta/models?pageSize=2", { headers })).json();
  assert.deepEqual(page.models, all.models.slice(0, 2));
  const next = await (
    await gw.fetch(`/v1beta/models?pageSize=2&pageToken=${encodeURIComponent(page.nextPageToken)}`, { headers })
  ).json();
  assert.deepEqual(next.models, all.models.slice(2, 4));
  const embedding =
    all.models.find((m) => m.name === "models/openai/text-embedding-3-small") ??
    all.models.find((m) => /embed/.test(m.name));
  assert.deepEqual(embedding.supportedGenerationMethods, ["embedContent", "batchEmbedContents"]);
  await refused(await gw.fetch("/v1beta/models?pageSize=x", { headers }), 400, "INVALID_ARGUMENT");
  await refused(await gw.fetch("/v1beta/models?pageToken=x", { headers }), 400, "INVALID_ARGUMENT");
  // OpenAI's list at the same path of another version is another caller's.
  const openai = await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${me.apiKey}` } });
  assert.equal((await openai.json()).object, "list");
});

describe("keys", () => {
  const path = "/v1beta/models/gemini/gemini-embedding-001:embedContent";
  test("are read from each place where clients put them", async () => {
    for (const [at, headers] of [
      ["", { "x-goog-api-key": me.apiKey }],
      ["", { authorization: `Bearer ${me.apiKey}` }],
      ["", { "x-api-key": me.apiKey }],
      [`?key=${me.apiKey}`, {}],
      [`?alt=json&key=${encodeURIComponent(me.apiKey)}&x=1`, { "x-goog-api-key": "" }],
    ]) {
      const res = await post(path + at, embed("a"), headers);
      assert.deepEqual([res.status, (await res.json()).embedding?.values], [200, numbers("a")], at);
    }
    assert.ok(up.seen.length > 0);
    for (const { path, rawHeaders } of up.seen) assert.ok(!`${path} ${rawHeaders}`.includes(me.apiKey));
    assert.ok(!gw.logs.join("\n").includes(me.apiKey), "the log has the key of a query");
  });

  test("that are wrong are refused in the shape of the API", async () => {
    const wrong = "AIzaSyCanary0123456789abcdefghijklmnopq";
    for (const [at, headers] of [
      ["", {}],
      ["", { "x-goog-api-key": "" }],
      ["", { "x-goog-api-key": wrong }],
      [`?key=${wrong}`, {}],
    ]) {
      const e = await refused(await post(path + at, embed("a"), headers), 401, "UNAUTHENTICATED", {
        reason: "API_KEY_INVALID",
      });
      assert.ok(!e.message.includes(wrong));
    }
    assert.ok(!gw.logs.join("\n").includes(wrong));
    await assert.rejects(client({ apiKey: wrong }).models.list(), { status: 401 });
  });
});

test("errors have the form of the call", async () => {
  await refused(await post("/v1beta/models/gemini/gemini-test:streamGenerateContent", {}, {}), 401, "UNAUTHENTICATED", {
    array: true,
  });
  await refused(
    await post("/v1beta/models/gemini/gemini-test:streamGenerateContent?alt=sse", {}, {}),
    401,
    "UNAUTHENTICATED",
  );
  await refused(await post("/v1beta/models/gemini/gemini-test:predictLongRunning", {}), 501, "UNIMPLEMENTED");
  await refused(await post("/v1beta/models/gemini/gemini-test", {}), 404, "NOT_FOUND");
  await refused(await post("/v1beta/cachedContents", {}), 501, "UNIMPLEMENTED");
  await refused(await post("/upload/v1beta/files", {}), 501, "UNIMPLEMENTED");
  await refused(await post("/v1beta/nothing", {}), 404, "NOT_FOUND");
  await refused(await gw.fetch("/v1beta/models", { method: "DELETE" }), 405, "INVALID_ARGUMENT");
  await refused(await post("/v1beta/models/up/test-embed:embedContent", "{"), 400, "INVALID_ARGUMENT");
  const bad = await refused(
    await post("/v1beta/models/up/test-embed:embedContent", { content: {} }),
    400,
    "INVALID_ARGUMENT",
  );
  assert.equal(bad.details[0].fieldViolations[0].field, "content");
  await refused(await post("/v1beta/models/nothing/at-all:embedContent", embed("a")), 404, "NOT_FOUND", {
    reason: "MODEL_NOT_FOUND",
  });
  const foreign = await refused(
    await post("/v1beta/models/up/test-embed!status=400:embedContent", embed("a")),
    400,
    "INVALID_ARGUMENT",
  );
  assert.match(foreign.message, /the upstream answers 400/);
  up.script = () => "status=400";
  const own = await post("/v1beta/models/gemini/gemini-embedding-001:embedContent", embed("a"));
  assert.deepEqual([own.status, await own.json()], [400, geminiError(400)], "Google's own error passes");
  up.script = () => "status=429!header=retry-after:30";
  const other = await families(admin(gw), up); // whose account cools down
  const limited = await refused(
    await post("/v1beta/models/gemini/gemini-embedding-001:embedContent", embed("a"), {
      "x-goog-api-key": other.apiKey,
    }),
    429,
    "RESOURCE_EXHAUSTED",
  );
  assert.equal(limited.details.find((d) => d["@type"].endsWith("RetryInfo"))?.retryDelay, "30s");
});

test("a browser may call", async () => {
  const res = await gw.fetch("/v1beta/models/a/b:generateContent", {
    method: "OPTIONS",
    headers: {
      origin: "https://app.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,x-goog-api-key,x-goog-api-client",
    },
  });
  assert.equal(res.status, 204);
  assert.equal(res.headers.get("access-control-allow-origin"), "*");
  assert.match(res.headers.get("access-control-allow-headers"), /\*/);
});

describe("embeddings", () => {
  test("go up byte for byte to Gemini, with the upstream's model", async () => {
    const body = `{ "requests" : [ {"model":"models/x","content":{"parts":[{"text":"a"}]},"taskType":"CLUSTERING", "later":1.0} ] }`;
    const res = await post("/v1beta/models/gemini%2Fgemini-embedding-001:batchEmbedContents", body);
    assert.deepEqual((await res.json()).embeddings, [{ values: numbers("a") }]);
    assert.equal(up.seen.at(-1).path, "/v1beta/models/gemini-embedding-001:batchEmbedContents");
    assert.equal(up.seen.at(-1).body.toString(), body.replace("models/x", "models/gemini-embedding-001"));
  });

  test("are those of other providers too", async () => {
    const res = await post("/v1beta/models/up/test-embed:embedContent", { ...embed("a"), taskType: "CLUSTERING" });
    const got = await res.json();
    assert.deepEqual(got.embedding.values, numbers("a"));
    assert.ok(got.usageMetadata.promptTokenCount > 0);
    assert.equal(res.headers.get("x-weir-dropped"), "taskType");
    assert.equal(res.headers.get("x-weir-model"), "up/test-embed");
    assert.deepEqual(up.seen.at(-1).json, { model: "test-embed", input: ["a"] });
  });

  test("serve LangChain's client, which leaves out models/", async () => {
    for (const model of ["up/test-embed", "gemini/gemini-embedding-001", "gemini-embedding-001"]) {
      const lang = new GoogleGenerativeAIEmbeddings({ apiKey: me.apiKey, baseUrl: gw.url, model });
      assert.deepEqual(await lang.embedQuery("a"), numbers("a"), model);
      assert.deepEqual(await lang.embedDocuments(["b", "c"]), [numbers("b"), numbers("c")], model);
    }
  });
});
