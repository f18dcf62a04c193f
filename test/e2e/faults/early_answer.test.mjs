// An upstream that answers before it has read the request: the gateway releases
// its copy of the body once the head of the answer has arrived, and the upstream
// must still get all of it. See docs/reference/reliability.md, F40.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, start } from "../gateway.mjs";
import { sleep } from "../wait.mjs";

const sha = (b) => createHash("sha256").update(b).digest("hex");
let gw, up;
before(async () => {
  up = createServer(async (req, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.flushHeaders();
    await sleep(500);
    const parts = [];
    for await (const p of req) parts.push(p);
    const content = sha(Buffer.concat(parts));
    res.end(
      JSON.stringify({
        id: "x",
        object: "chat.completion",
        created: 1,
        model: "m",
        choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      }),
    );
  });
  up.keepAliveTimeout = 60_000;
  up.listen(0, "127.0.0.1");
  await once(up, "listening");
  gw = await start();
});
after(async () => {
  await gw?.close();
  up?.closeAllConnections();
  up?.close();
});

test("bodies of megabytes arrive whole at an upstream that answers first [F40]", { timeout: 120_000 }, async () => {
  const operator = admin(gw),
    { machineId, apiKey } = await operator.machine();
  await operator.connect(machineId, {
    provider: "openai-compatible-0a0a0001",
    apiKey: "key-0123456789",
    providerSpecificData: { baseUrl: `http://127.0.0.1:${up.address().port}/v1`, prefix: "up" },
  });
  await Promise.all(
    [3, 6, 7, 5].map(async (size, i) => {
      const line = Buffer.from(Array.from({ length: 1 << 16 }, (_, at) => 65 + ((at * (i + 3)) % 26))).toString();
      const body = JSON.stringify({ model: "up/m", messages: [{ role: "user", content: line.repeat(16 * size) }] });
      await sleep(i * 100);
      const res = await gw.fetch("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body,
      });
      const { choices } = await res.json();
      assert.equal(choices?.[0].message.content, sha(body.replace("up/m", "m")));
    }),
  );
});
