// The model lists, with the official clients. See docs/reference/spec.md, 4.1,
// 4.2.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { modelIds } from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, secrets, start } from "../gateway.mjs";

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

// machine creates a machine with connections and returns its key and a client.
async function machine(...connections) {
  const { machineId, apiKey } = await operator.machine();
  for (const c of connections) await operator.connect(machineId, c);
  const openai = new OpenAI({ apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
  const list = async (path = "/v1/models", headers = {}) => {
    const res = await gw.fetch(path, { headers: { authorization: `Bearer ${apiKey}`, ...headers } });
    return { status: res.status, headers: res.headers, body: await res.json() };
  };
  return { machineId, apiKey, openai, list };
}
const ids = (body) => body.data.map((m) => m.id);

test("a machine without connections lists the static catalogue, through the official client", async () => {
  const { openai, list } = await machine();
  const page = await openai.models.list();
  assert.ok(page.data.length > 500, `${page.data.length} models`);
  assert.equal(new Set(page.data.map((m) => m.id)).size, page.data.length);
  for (const m of page.data) {
    assert.equal(m.object, "model");
    assert.equal(m.id.slice(0, m.id.indexOf("/")), m.owned_by);
    assert.ok(Number.isInteger(m.created));
  }
  const one = await openai.models.retrieve(page.data[0].id);
  assert.equal(one.id, page.data[0].id);
  await assert.rejects(
    openai.models.retrieve("openai/no-such-model"),
    (e) => e.status === 404 && e.code === "model_not_found",
  );
  const embedding = await list("/v1/models/embedding");
  assert.ok(ids(embedding.body).includes("openai/text-embedding-3-small"));
  assert.ok(
    !ids(embedding.body).some((id) => page.data.find((m) => m.id === id)),
    "an embedding model is no chat model",
  );
});

test("a compatible provider's models come from its own list, asked once", async () => {
  const { list, openai } = await machine(compatible(up));
  const first = await list();
  assert.deepEqual(
    ids(first.body).sort(),
    modelIds
      .filter((id) => !/embed|image|tts/.test(id))
      .map((id) => "up/" + id)
      .sort(),
  );
  await openai.models.list();
  assert.deepEqual(ids((await list("/v1/models/image")).body), ["up/test-image"]);
  assert.equal(up.seen.filter((r) => r.path === "/v1/models").length, 1);
  const [call] = up.seen;
  assert.equal(call.method, "GET");
  assert.equal(call.headers.authorization, "Bearer upstream-key");
  assert.equal(call.headers["x-weir-internal-models-fetch"], "1");
});

test("the recursion header stops the upstream fetch, on every route with a list", async () => {
  const { list, machineId } = await machine(compatible(up));
  const internal = { "x-weir-internal-models-fetch": "1" };
  assert.deepEqual(ids((await list("/v1/models", internal)).body), []);
  assert.deepEqual((await list("/v1beta/models", internal)).body.models, []);
  await list("/v1beta/models/up/test-model", internal);
  const authorization = `Bearer ${secrets.ADMIN_TOKEN}`;
  const kind = await gw.fetch(`/${machineId}/api/models/list/llm`, { headers: { ...internal, authorization } });
  assert.equal(kind.status, 200);
  assert.equal(up.seen.length, 0);
});

test("two gateways that point at each other both answer, with bounded calls", async () => {
  const other = await start({});
  try {
    const there = admin(other),
      a = await operator.machine(),
      b = await there.machine();
    await operator.connect(a.machineId, {
      provider: "openai-compatible-aaaaaaaa",
      apiKey: b.apiKey,
      providerSpecificData: { baseUrl: other.url + "/v1", prefix: "there" },
    });
    await there.connect(b.machineId, {
      provider: "openai-compatible-bbbbbbbb",
      apiKey: a.apiKey,
      providerSpecificData: { baseUrl: gw.url + "/v1", prefix: "here" },
    });
    const res = await gw.fetch("/v1/models", { headers: { authorization: `Bearer ${a.apiKey}` } });
    assert.equal(res.status, 200);
    assert.deepEqual((await res.json()).data, []);
    const back = await other.fetch("/v1/models", { headers: { authorization: `Bearer ${b.apiKey}` } });
    assert.equal(back.status, 200);
    const listed = other.logs.filter((l) => l.includes('"/v1/models"')).length;
    assert.ok(listed <= 4, `${listed} calls reached the other gateway`);
  } finally {
    await other.close();
  }
});

test("an upstream that fails leaves the other lists complete", async () => {
  for (const fault of [
    "status=500",
    "reset",
    "body=html",
    "body=broken",
    "body=null",
    "raw=garbage",
    "gzip=40000000",
    "size=100000000",
  ]) {
    const { list } = await machine(
      compatible(up, { path: `/!${fault}/v1`, prefix: "bad", suffix: "bbbbbbbb" }),
      compatible(up, { prefix: "good", suffix: "aaaaaaaa" }),
    );
    const { status, body } = await list();
    assert.equal(status, 200, fault);
    assert.deepEqual(
      ids(body).filter((id) => id.startsWith("bad/")),
      [],
      fault,
    );
    assert.ok(ids(body).includes("good/test-chat"), fault);
  }
});

test("an upstream that stalls is skipped after five seconds", async () => {
  const { list } = await machine(
    compatible(up, { path: "/!stall/v1", prefix: "bad" }),
    compatible(up, { prefix: "good", suffix: "aaaaaaaa" }),
  );
  const before = Date.now(),
    { body } = await list();
  assert.ok(ids(body).includes("good/test-chat"));
  assert.ok(Date.now() - before >= 4500, "the limit is 5,000 ms");
});

test("Anthropic's client gets Anthropic's form, in pages", async () => {
  const { apiKey } = await machine(compatible(up));
  const client = new Anthropic({ apiKey, baseURL: gw.url, maxRetries: 0 });
  const all = [];
  for await (const m of client.models.list({ limit: 2 })) all.push(m);
  assert.deepEqual(
    all.map((m) => m.type),
    all.map(() => "model"),
  );
  assert.ok(all.length >= 2 && all.every((m) => /^(claude-weir\/)?up\//.test(m.id)));
});

test("CORS headers and the preflight are exactly those of the specification", async () => {
  const { list } = await machine();
  assert.equal((await list()).headers.get("access-control-allow-origin"), "*");
  const res = await gw.fetch("/v1/models", { method: "OPTIONS" });
  assert.equal(await res.text(), "");
  assert.equal(res.headers.get("access-control-allow-origin"), "*");
  assert.equal(res.headers.get("access-control-allow-methods"), "GET, OPTIONS");
  assert.equal(res.headers.get("access-control-allow-headers"), "*");
});

test("every form of the path is served, and without a key where none is required", async () => {
  const { machineId, list } = await machine(compatible(up));
  for (const path of ["/v1/models", `/${machineId}/v1/models`, "/v1/v1/models", `/${machineId}/v1/models/llm`])
    assert.ok(ids((await list(path)).body).includes("up/test-chat"), path);
  assert.equal((await gw.fetch("/v1/models")).status, 401);
  const open = await start({ env: { REQUIRE_API_KEY: "false" } });
  try {
    const res = await open.fetch("/v1/models");
    assert.equal(res.status, 200);
    assert.ok((await res.json()).data.length > 500);
  } finally {
    await open.close();
  }
});
