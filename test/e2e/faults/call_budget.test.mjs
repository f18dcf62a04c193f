// The platform limits the calls of one request. When they are used up the
// request ends with an error, and no account is blamed for it. See
// docs/reference/reliability.md, F57.
import assert from "node:assert/strict";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";
import { accounts, answer } from "../endpoints.mjs";

const { after, before, beforeEach, test } = only("workerd", "calls");

// The platform's fetch with the number of calls left that /budget set; workerd
// itself does not count.
const entry = `
import worker, { Machine } from "./worker.mjs";

export { Machine };
let left = Infinity;
const real = globalThis.fetch;
globalThis.fetch = (...args) => {
  if (left-- > 0) return real(...args);
  return Promise.reject(new Error("Too many subrequests by single Worker invocation. To configure this limit, refer to the documentation."));
};
export default {
  ...worker,
  fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname !== "/budget") return worker.fetch(request, env, ctx);
    left = Number(url.searchParams.get("left"));
    return new Response("ok");
  },
};`;

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ entry, vendors: up });
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
const budget = (left) => gw.fetch(`/budget?left=${left}`);

async function post(apiKey, path, body) {
  const res = await gw.fetch(path, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await res.text();
  return { status: res.status, headers: res.headers, text, error: res.status === 200 ? null : JSON.parse(text).error };
}

const messages = [{ role: "user", content: "a" }];
for (const [path, body] of [
  ["/v1/embeddings", { model: "up/test-embed", input: "a" }],
  ["/v1/chat/completions", { model: "up/test-chat", messages }],
  ["/v1/chat/completions", { model: "up/test-chat", messages, stream: true }],
  ["/v1/messages", { model: "up/test-chat", messages, max_tokens: 9, stream: true }],
]) {
  test(`${path}${body.stream ? ", a stream" : ""}: running out of calls within the fallback is no fault of an account`, async () => {
    const { machineId, apiKey } = await operator.machine(),
      ids = [];
    for (let i = 0; i < 4; i++)
      ids.push((await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${i}`, priority: i }))).id);
    up.script = (req) => (/[01]$/.test(req.headers.authorization) ? "status=503" : null);
    await budget(2);
    const got = await post(apiKey, path, body);
    await budget(Infinity);
    assert.equal(got.status, 503, got.text);
    assert.match(got.error.message, /more calls/);
    if (path !== "/v1/messages") assert.equal(got.error.code, "budget");
    assert.equal(got.headers.get("x-should-retry"), "false");
    assert.deepEqual(
      up.seen.map((r) => r.headers.authorization.at(-1)),
      ["0", "1"],
    );
    assert.doesNotMatch(got.text.replaceAll(gw.url, ""), /subrequest|upstream-key|127\.0\.0\.1/);
    // No account is blamed: the one that was not called cools no longer than
    // the others.
    up.seen.length = 0;
    const next = await post(apiKey, path, body);
    assert.equal(next.status, 200, next.text);
    assert.equal(next.headers.get("x-weir-connection-id"), ids[2]);
    const cooling = (await operator.call("GET", `/${machineId}/api/models/availability`)).data.map(
      (r) => r.connectionId,
    );
    assert.ok(!cooling.includes(ids[2]) && !cooling.includes(ids[3]), JSON.stringify(cooling));
  });
}

test("a request of several calls is whole or refused", async () => {
  const { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, { provider: "cohere", apiKey: "cohere-key-0123456789" });
  const body = { model: "cohere/embed-v4.0", input: Array.from({ length: 200 }, (_, i) => `text ${i}`) };
  await budget(2);
  const got = await post(apiKey, "/v1/embeddings", body);
  await budget(Infinity);
  assert.deepEqual([got.status, got.error?.code], [503, "budget"], got.text.slice(0, 300));
  assert.equal(up.seen.length, 2);
  const whole = await post(apiKey, "/v1/embeddings", body);
  assert.equal(whole.status, 200, whole.text.slice(0, 300));
  assert.equal(JSON.parse(whole.text).data.length, 200);
});

test("a creation without calls left is not sent, and a retry creates it", async () => {
  const { machineId, apiKey } = await operator.machine();
  for (const c of accounts(up, "upstream-key-0123456789")) await operator.connect(machineId, c);
  up.script = (req) => answer(req);
  const body = { model: "xai/m", prompt: "a" };
  await budget(0);
  const got = await post(apiKey, "/v1/videos/generations", body);
  await budget(Infinity);
  assert.deepEqual([got.status, got.error?.code, up.seen.length], [503, "budget", 0], got.text);
  assert.equal((await post(apiKey, "/v1/videos/generations", body)).status, 200);
  assert.equal(up.seen.length, 1);
});
