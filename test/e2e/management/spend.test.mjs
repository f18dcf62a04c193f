// Usage by tool and by tag, budgets of a tag, and the networks of a key: the header and the address of
// a client reach the program on both platforms.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

let gw, up, api, key, keyId;
before(async () => {
  up = await startUpstream();
  gw = await start({ proxy: true });
  const operator = admin(gw);
  const { machineId } = await operator.machine();
  api = (method, path, body) => operator.call(method, `/${machineId}/api${path}`, body);
  await operator.connect(machineId, compatible(up));
  const created = await api("POST", "/keys", { name: "fixed", tags: ["team=core"] });
  [key, keyId] = [created.apiKey, created.id];
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const paths = {
  "/v1/chat/completions": { model: "up/test-chat", messages: [{ role: "user", content: "hello" }] },
  "/v1/messages": { model: "up/test-chat", max_tokens: 20, messages: [{ role: "user", content: "hello" }] },
  "/v1/responses": { model: "up/test-chat", input: "hello" },
  "/v1/embeddings": { model: "up/test-embed", input: "hello" },
};

async function call(path, { tags, agent, from, body }) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", "user-agent": agent };
  if (tags) headers["x-weir-tags"] = tags;
  if (from) headers[gw.from(from)[0]] = gw.from(from)[1];
  const res = await gw.fetch(path, { method: "POST", headers, body: JSON.stringify({ ...paths[path], ...body }) });
  await res.text();
  return res.status;
}

const total = async (query) => (await api("GET", `/usage?${query}`)).total;

test("calls of every dialect count for their tool, their tags and those of their key", async () => {
  for (const path of Object.keys(paths)) {
    assert.equal(
      await call(path, { tags: "project=atlas,team=mine", agent: "claude-cli/2.1.236 (external, cli)" }),
      200,
    );
    assert.equal(await call(path, { agent: "AsyncOpenAI/Python 2.20.0" }), 200);
  }
  await until("eight calls are counted", async () => (await total("period=day")).requests === 8);
  const rows = async (by) =>
    Object.fromEntries(
      (await api("GET", `/usage?period=day&groupBy=${by}`)).data.map((r) => [r.tool ?? r.tag ?? "", r.requests]),
    );
  assert.deepEqual(await rows("tool"), { "claude-code": 4, "openai-python": 4 });
  assert.deepEqual(await rows("tag:project"), { "": 4, "project=atlas": 4 });
  assert.deepEqual(await rows("tag:team"), { "team=core": 8 });
  const [all, atlas] = [await total("period=day"), await total("period=day&tag=project%3Datlas")];
  assert.ok(atlas.inputTokens > 0 && atlas.inputTokens < all.inputTokens, `${atlas.inputTokens} of ${all.inputTokens}`);
  const { data } = await api("GET", "/requests?tool=claude-code");
  assert.deepEqual(
    data.map((r) => r.tags),
    Array(4).fill(["team=core", "project=atlas"]),
  );
  assert.ok(!JSON.stringify(data).includes("2.1.236"));
});

test("a field of the body is a tag only if the setting names it", async () => {
  const body = { user: "ann" };
  assert.equal(await call("/v1/chat/completions", { agent: "curl/8", body }), 200);
  await api("PATCH", "/settings", { tagsFrom: ["user", "metadata.user_id"] });
  // The change is seen within a minute, at once by calls that reach the same instance.
  await until("the field is a tag", async () => {
    assert.equal(await call("/v1/chat/completions", { agent: "curl/8", body }), 200);
    return (await api("GET", "/requests?tag=user%3Dann")).data.length > 0;
  });
  assert.ok((await api("GET", "/requests?tool=curl")).data.some((r) => !r.tags.includes("user=ann")));
  await api("PATCH", "/settings", { tagsFrom: null });
});

test("a budget of a tag refuses calls with the tag alone", async () => {
  await api("POST", "/budgets", { name: "zeta", tag: "project=zeta", unit: "requests", limit: 1, window: "day" });
  await until(
    "the budget is used up",
    async () => (await call("/v1/embeddings", { tags: "project=zeta", agent: "curl/8" })) === 429,
  );
  assert.equal(await call("/v1/embeddings", { tags: "project=eta", agent: "curl/8" }), 200);
  assert.equal((await api("GET", "/budgets")).data[0].spent, 1);
});

test("the networks of a key are those that the platform or a trusted proxy says", async () => {
  const agent = "claude-cli/2.1";
  for (const from of ["203.0.113.7", "203.0.113.8", "2001:db8:1:2::3"])
    assert.equal(await call("/v1/embeddings", { agent, from }), 200);
  const networks = async () => (await api("GET", `/keys/${keyId}/networks`)).data;
  const of = async (network) => (await networks()).find((n) => n.network === network);
  await until("the network is stored", async () => (await of("2001:db8:1::/48"))?.requests === 1);
  const v4 = await of("203.0.113.0/24");
  assert.deepEqual([v4.requests, v4.tools], [2, ["claude-code"]]);
  assert.ok(v4.firstAt > 0 && v4.lastAt >= v4.firstAt);
  assert.ok(!JSON.stringify(await networks()).includes("203.0.113.7"));
  await api("PATCH", "/settings", { keyNetworks: "off" });
  assert.deepEqual(await networks(), []);
});
