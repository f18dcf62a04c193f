// A provider that closes kept-alive connections just as the gateway uses them again.
// See docs/fallback.md.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, start } from "../gateway.mjs";
import { only } from "../platforms.mjs";

let gw, up, post;
let reused = 0;
before(async () => {
  // Each connection answers one request; the next one on it finds it closed.
  up = createServer(async (req, res) => {
    const { socket } = req;
    if (socket.served) {
      reused++;
      return socket.destroy();
    }
    socket.served = true;
    for await (const _ of req);
    res.writeHead(200, { "content-type": "application/json" });
    res.end(
      JSON.stringify({
        object: "list",
        model: "m",
        data: [{ object: "embedding", index: 0, embedding: [1, 0] }],
        usage: { prompt_tokens: 1, total_tokens: 1 },
        choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
      }),
    );
  });
  up.keepAliveTimeout = 60_000;
  up.listen(0, "127.0.0.1");
  await once(up, "listening");
  gw = await start();
  const { machineId, apiKey } = await admin(gw).machine();
  await admin(gw).connect(machineId, {
    provider: "openai-compatible-0a0a0001",
    apiKey: "key-0123456789",
    providerSpecificData: { baseUrl: `http://127.0.0.1:${up.address().port}/v1`, prefix: "up" },
  });
  post = async (path, body) => {
    const res = await gw.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/m", ...body }),
    });
    await res.text();
    return res.status;
  };
});
after(async () => {
  await gw?.close();
  up?.closeAllConnections();
  up?.close();
});

test("closed connections fail no call, with one account", async () => {
  for (let i = 0; i < 10; i++) {
    assert.equal(await post("/v1/chat/completions", { messages: [{ role: "user", content: "hi" }] }), 200);
    assert.equal(await post("/v1/embeddings", { input: "a" }), 200);
  }
  assert.ok(reused >= 10, `${reused} requests on closed connections`);
});

// The platform of the edge has no way to ask for a connection of one's own.
only("native", "connections").test("many closed connections fail no call either", async () => {
  reused = 0;
  for (let round = 0; round < 5; round++)
    assert.deepEqual(
      await Promise.all(Array.from({ length: 8 }, () => post("/v1/embeddings", { input: "a" }))),
      Array(8).fill(200),
    );
  assert.ok(reused >= 10, `${reused} requests on closed connections`);
});
