// A machine whose requests have been counted, for the tests of usage and requests.
import assert from "node:assert/strict";
import { compatible } from "../e2e/gateway.mjs";
import { becomes, open, settled } from "./browser.mjs";

// used creates a machine and makes six requests: chat, a stream, embeddings, one
// that takes two attempts, one that the provider refuses and one that is not sent.
export async function used(b) {
  const { machineId, apiKey } = await b.operator.machine({ name: "Test" });
  const first = await b.operator.connect(machineId, compatible(b.upstream, { prefix: "up", name: "First" }));
  const second = await b.operator.connect(
    machineId,
    compatible(b.upstream, { prefix: "two", suffix: "beef0001", name: "Second" }),
  );
  await b.operator.call("POST", `/${machineId}/api/combos`, {
    name: "fall",
    models: ["up/limited!status=429", "two/test-chat"],
  });
  const call = async (path, body) => {
    const res = await b.gateway.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    await res.text();
    return res.status;
  };
  const messages = [{ role: "user", content: "a very secret prompt" }];
  assert.equal(await call("/v1/chat/completions", { model: "up/test-chat", messages }), 200);
  assert.equal(await call("/v1/chat/completions", { model: "up/test-chat", messages, stream: true }), 200);
  assert.equal(await call("/v1/embeddings", { model: "up/test-embed", input: "a very secret text" }), 200);
  assert.equal(await call("/v1/chat/completions", { model: "fall", messages }), 200);
  assert.equal(await call("/v1/chat/completions", { model: "up/wrong!status=400", messages }), 400);
  assert.equal(await call("/v1/chat/completions", { model: "nothing/like-it", messages }), 400);
  const api = (path) => b.operator.call("GET", `/${machineId}/api${path}`);
  await recorded(api, 6);
  // leave starts a stream and closes the connection after its first bytes.
  const leave = async () => {
    const ctl = new AbortController();
    const res = await b.gateway.fetch("/v1/chat/completions", {
      method: "POST",
      signal: ctl.signal,
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/long!slow=200!chunks=200", messages, stream: true }),
    });
    await res.body.getReader().read();
    ctl.abort();
  };
  return { machineId, apiKey, call, api, leave, first, second };
}

// ask makes a chat call as a tool with a key does, and returns the status.
export async function ask(b, apiKey, model) {
  const res = await b.gateway.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
  });
  await res.text();
  return res.status;
}

// recorded waits until n requests are listed, which happens after their answers.
export async function recorded(api, n) {
  await becomes(async () => (await api("/requests?limit=200")).data.length, n);
}

// openPage opens a page of a machine by its title.
export async function openPage(t, b, machineId, title, options = {}) {
  const p = await open(t, b, { at: `#/m/${machineId}/${title.toLowerCase()}`, ...options });
  await p.getByRole("heading", { level: 1, name: title }).waitFor();
  await settled(p);
  return p;
}
