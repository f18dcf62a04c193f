// The cost of a call for others, and the limits of a key and of a disabled model:
// long conversations, silent providers, names.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { start as startUpstream } from "../../upstream/server.mjs";
import { accounts, answer, calls } from "../endpoints.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { MiB, shown } from "../isolate.mjs";

let gw, up, operator;
before(async () => {
  up = await startUpstream();
  gw = await start({ vendors: up, inspect: true });
  operator = admin(gw);
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.clear();
  up.script = (req) => answer(req);
});

const headers = (apiKey, more = {}) => ({
  authorization: `Bearer ${apiKey}`,
  "content-type": "application/json",
  ...more,
});
const post = async (apiKey, path, body, more) => {
  const res = await gw.fetch(path, {
    method: "POST",
    headers: headers(apiKey, more),
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await res.text();
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    /* an event stream */
  }
  return { status: res.status, text, json };
};
const tiny = (n, piece) => Array.from({ length: n }, (_, i) => piece.replaceAll("#", i)).join(",");

test("a conversation of 200,000 messages is refused before it is translated, and one of 20,000 does not delay other calls", {
  timeout: 120_000,
}, async (t) => {
  const me = await operator.machine(),
    other = await operator.machine();
  for (const c of accounts(up, "upstream-key-0123456789")) await operator.connect(me.machineId, c);
  await operator.connect(other.machineId, compatible(up));
  assert.equal((await post(me.apiKey, "/v1/chat/completions", calls[1][1])).status, 200); // all is loaded
  assert.equal((await post(other.apiKey, "/v1/embeddings", { model: "up/m", input: "a" })).status, 200);
  const message = '{"role":"user","content":"t#"}';
  const bodies = {
    "/v1/chat/completions": (n) => `{"model":"an/m","messages":[${tiny(n, message)}]}`,
    "/v1/messages": (n) => `{"model":"up/m","max_tokens":9,"messages":[${tiny(n, message)}]}`,
    "/v1/responses": (n) => `{"model":"an/m","input":[${tiny(n, message)}]}`,
  };
  for (const [path, body] of Object.entries(bodies)) {
    const long = body(200_000),
      before = await gw.stats(),
      from = up.seen.length;
    const refused = await post(me.apiKey, path, long);
    assert.equal(refused.status, 413, refused.text.slice(0, 300));
    if (path === "/v1/messages") assert.equal(refused.json.error.type, "request_too_large");
    else assert.equal(refused.json.error.code, "request_too_large");
    assert.equal(up.seen.length, from);
    const after = await gw.stats();
    t.diagnostic(`${path}: refused: ${shown({ body: long.length, before: before.memory, after: after.memory })}`);
    assert.ok(
      after.memory - before.memory <= 8 * long.length + 16 * MiB,
      shown({ before: before.memory, after: after.memory }),
    );
  }
  for (const [path, body] of Object.entries(bodies)) {
    const long = body(20_000),
      before = await gw.stats();
    let done = false,
      meanwhile = 0;
    const whole = post(me.apiKey, path, long).finally(() => {
      done = true;
    });
    while (!done) {
      const res = await post(other.apiKey, "/v1/embeddings", { model: "up/m", input: "a" });
      assert.equal(res.status, 200);
      if (!done) meanwhile++;
    }
    assert.equal((await whole).status, 200, (await whole).text.slice(0, 300));
    const after = await gw.stats();
    t.diagnostic(
      `${path}: ${meanwhile} other calls meanwhile; ${shown({ body: long.length, before: before.memory, after: after.memory })}`,
    );
    assert.ok(meanwhile > 0, `${path}: no other call was answered meanwhile`);
    assert.ok(
      after.memory - before.memory <= 8 * long.length + 16 * MiB,
      shown({ before: before.memory, after: after.memory }),
    );
  }
  // A count is an estimate of the whole, also for a provider of another
  // dialect.
  await operator.connect(me.machineId, { provider: "openai", apiKey: "openai-key-0123456789" });
  for (const model of ["openai/gpt-5", "up/m"]) {
    const counted = await post(
      me.apiKey,
      "/v1/messages/count_tokens",
      `{"model":"${model}","messages":[${tiny(20_000, message)}]}`,
    );
    assert.equal(counted.status, 200, counted.text.slice(0, 300));
    assert.ok(counted.json.input_tokens > 60_000, counted.text);
  }
  // In the upstream's own dialect there is no limit.
  const same = await post(
    me.apiKey,
    "/v1/chat/completions",
    bodies["/v1/chat/completions"](200_000).replace("an/m", "up/m"),
  );
  assert.equal(same.status, 200, same.text.slice(0, 300));
});

test("nine silent providers do not hide the eight after them", { timeout: 180_000 }, async () => {
  const me = await operator.machine();
  const connect = (i, path) =>
    operator.connect(me.machineId, {
      ...compatible(up, { prefix: `p${i}`, path }),
      provider: `openai-compatible-${String(i).padStart(8, "0")}`,
    });
  for (let i = 0; i < 9; i++) await connect(i, "/silent/v1");
  for (let i = 9; i < 17; i++) await connect(i, "/v1");
  const waiting = [];
  up.script = (req) => (req.path.startsWith("/silent") ? new Promise((resolve) => waiting.push(resolve)) : answer(req));
  try {
    const list = async () =>
      (await (await gw.fetch("/v1/models", { headers: headers(me.apiKey) })).json()).data.map((m) => m.id);
    const good = Array.from({ length: 8 }, (_, i) => `p${i + 9}/m`);
    for (let i = 0; i < 2; i++) assert.deepEqual(await list(), good);
  } finally {
    for (const resolve of waiting) resolve({ status: 200, body: "{}" });
  }
});

test("an estimated count names the model that it is for", async () => {
  const me = await operator.machine();
  for (const c of accounts(up, "upstream-key-0123456789")) await operator.connect(me.machineId, c);
  for (const model of ["up/m", "an/m"]) {
    const res = await gw.fetch("/v1/messages/count_tokens", {
      method: "POST",
      headers: headers(me.apiKey),
      body: JSON.stringify({ ...calls[3][1], model }),
    });
    assert.deepEqual(
      [res.status, res.headers.get("x-weir-token-count"), res.headers.get("x-weir-model")],
      [200, "estimate", model],
    );
  }
});

test("a custom model adds to the list of its provider", async () => {
  const me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  await operator.call("POST", `/${me.machineId}/api/models/custom`, { id: "mine", providerAlias: "up" });
  const list = await (await gw.fetch("/v1/models", { headers: headers(me.apiKey) })).json();
  assert.deepEqual(
    list.data.map((m) => m.id),
    ["up/m", "up/mine"],
  );
});

// names returns all names of the model "m" of a provider, after creating them.
async function names(machineId, provider, prefix, alias, model) {
  const api = (method, path, body) => operator.call(method, `/${machineId}/api/${path}`, body);
  await api("PUT", "models/alias", { alias: "an-alias", model: `${prefix}/${model}` });
  await api("POST", "combos", { name: "a-combo", models: [`${alias}/${model}`] });
  await api("POST", "combos", { name: "a-nest", models: ["a-combo", "an-alias"] });
  await api("POST", "models/custom", { id: model, providerAlias: prefix });
  return [`${prefix}/${model}`, `${alias}/${model}`, `${provider}/${model}`, "an-alias", "a-combo", "a-nest", model];
}

// fieldSets are the ways of naming a model beside the right one.
const more = [
  ...calls,
  ["/v1/rerank", { model: "up/m", query: "q", documents: ["a", "b"] }],
  ["/v1/search", { model: "up/m", query: "q" }],
  ["/v1/web/fetch", { model: "up/m", url: "https://example.com/" }],
  ["/v1/messages/count_tokens", calls[3][1]],
  ["/v1/images/edits", { model: "up/m", prompt: "a", images: [{ image_url: "data:image/png;base64,AAAA" }] }],
];

test("a disabled model cannot be called under any name, on any endpoint", async () => {
  for (const under of ["pre", "openai"]) {
    const me = await operator.machine();
    await operator.connect(me.machineId, {
      provider: "openai",
      apiKey: "openai-key-0123456789",
      providerSpecificData: { prefix: "pre" },
    });
    const all = await names(me.machineId, "openai", "pre", "openai", "gpt-4o");
    assert.equal(
      (await post(me.apiKey, "/v1/chat/completions", { ...calls[1][1], model: "openai/gpt-4o" })).status,
      200,
    );
    await operator.call("POST", `/${me.machineId}/api/models/disabled`, { providerAlias: under, ids: ["gpt-4o"] });
    // The isolate learns of the change when it next reads the machine.
    while ((await post(me.apiKey, "/v1/chat/completions", { ...calls[1][1], model: "pre/gpt-4o" })).status === 200);
    up.clear();
    for (const model of all) {
      for (const [path, body] of more) {
        const got = await post(me.apiKey, path, { ...body, model });
        const chat = /chat|messages|responses/.test(path);
        assert.ok(
          chat ? got.status === 404 : [400, 404].includes(got.status),
          `${under}: ${path} ${model}: ${got.status} ${got.text.slice(0, 200)}`,
        );
        if (chat && got.json.error.code !== undefined) assert.equal(got.json.error.code, "model_not_found");
      }
    }
    assert.deepEqual(
      up.seen.filter((r) => r.method === "POST").map((r) => r.path),
      [],
      under,
    );
    const listed = await (await gw.fetch("/v1/models", { headers: headers(me.apiKey) })).json();
    assert.ok(!listed.data.some((m) => /(^|\/)gpt-4o$/.test(m.id)), under);
  }
});

test("a key limited to some models reaches no others, by any name, field or endpoint", {
  timeout: 120_000,
}, async () => {
  const me = await operator.machine();
  for (const c of accounts(up, "good-key-0123456789")) await operator.connect(me.machineId, c);
  const provider = "openai-compatible-bad00000";
  const bad = await operator.connect(me.machineId, {
    ...compatible(up, { prefix: "bad", apiKey: "bad-key-0123456789" }),
    provider,
  });
  const all = await names(me.machineId, provider, "bad", "bad", "secret");
  const { apiKey: key } = await operator.call("POST", `/${me.machineId}/api/keys`, {
    name: "some",
    models: ["up/m", "an/m", "xai/m"],
  });
  const model = (body, name) => ({ ...body, model: name });
  let allowed = 0;
  for (const name of all) {
    for (const [path, body] of more) {
      const good = body.model,
        text = JSON.stringify(body);
      for (const [how, send, header, query] of [
        ["model", model(body, name)],
        ["Model", text.replace(/}$/, `,"Model":${JSON.stringify(name)}}`)],
        ["escaped", text.replace('"model"', '"m\\u006fdel"').replace(JSON.stringify(good), JSON.stringify(name))],
        ["twice", text.replace(/}$/, `,"model":${JSON.stringify(name)}}`)],
        ["pinned", body, { "x-connection-id": bad.id }],
        ["header", body, { "x-model": name, "x-provider": "bad" }],
        ["query", body, {}, `?model=${encodeURIComponent(name)}&provider=bad`],
        ["provider", { ...body, provider: name }],
      ]) {
        const got = await post(key, path + (query ?? ""), send, header);
        assert.ok(
          got.status < 500 || path === "/v1/web/fetch" || path === "/v1/search",
          `${path} ${how} ${name}: ${got.status} ${got.text.slice(0, 200)}`,
        );
        if (got.status === 200) allowed++;
        if (how === "model" || how === "escaped" || how === "Model" || how === "twice")
          assert.ok(
            [400, 403, 404].includes(got.status),
            `${path} ${how} ${name}: ${got.status} ${got.text.slice(0, 200)}`,
          );
        const leaked = up.seen.filter(
          (r) => JSON.stringify(r.rawHeaders).includes("bad-key") || String(r.json?.model).includes("secret"),
        );
        assert.deepEqual(
          leaked.map((r) => r.path),
          [],
          `${path} ${how} ${name}`,
        );
        up.clear();
      }
    }
  }
  assert.ok(allowed > 50, `${allowed} calls to what the key may use`);
  // A response of another key is not read, cancelled or deleted.
  const made = await post(me.apiKey, "/v1/responses", { model: "bad/secret", input: "a", store: true });
  assert.equal(made.status, 200, made.text);
  up.clear();
  for (const [method, path] of [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/cancel"],
    ["GET", "/input_items"],
  ]) {
    const res = await gw.fetch(`/v1/responses/${made.json.id}${path}`, { method, headers: headers(key) });
    assert.ok([403, 404].includes(res.status), `${method} ${path}: ${res.status}`);
  }
  assert.equal(up.seen.length, 0);
});
