// A line and an event of a stream that do not end: where the gateway reads the
// stream it reads a limited number of bytes, however many the upstream sends. See
// docs/reference/reliability.md, T41.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import * as anthropic from "../../upstream/anthropic.mjs";
import * as openai from "../../upstream/openai.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { MiB, shown } from "../isolate.mjs";
import { until } from "../wait.mjs";

const all = 512 * MiB,
  piece = Buffer.alloc(1 * MiB, "a");
let gw, up;

// upstream begins a stream, writes the pieces of up.how for as long as they are
// read, up to 512 MiB, and counts the bytes.
async function upstream() {
  const up = { how: null, sent: 0, open: 0 };
  const server = createServer(async (req, res) => {
    const parts = [];
    for await (const p of req) parts.push(p);
    const body = JSON.parse(Buffer.concat(parts)),
      messages = req.url.endsWith("/messages");
    if (req.url.endsWith("/responses"))
      return void res.writeHead(404, { "content-type": "application/json" }).end('{"detail":"Not Found"}');
    const { events } = messages ? anthropic.messages(body, body.model, {}) : openai.chat(body, body.model, {});
    up.open++;
    res.on("close", () => {
      up.open--;
    });
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(events.slice(0, events.length >> 1).join(""));
    const { begin, next } = up.how;
    res.write(begin);
    while (up.sent < all && !res.destroyed) {
      up.sent += next.length;
      if (!res.write(next))
        await new Promise((r) => {
          const go = () => {
            res.off("drain", go).off("close", go);
            r();
          };
          res.on("drain", go).on("close", go);
        });
    }
    res.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.close = () => {
    server.closeAllConnections();
    return new Promise((r) => server.close(r));
  };
  return up;
}

before(async () => {
  up = await upstream();
  gw = await start({ inspect: true });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const list = [{ role: "user", content: "Hello" }];
const clients = [
  ["/v1/chat/completions", { messages: list }, "an"],
  ["/v1/messages", { messages: list, max_tokens: 50 }, "up"],
  ["/v1/responses", { input: "Hello" }, "up"],
  ["/v1/responses", { input: "Hello" }, "an"],
];
const ways = {
  "a line": { begin: 'data: {"a":"', next: piece },
  "a comment": { begin: ": ", next: piece },
  "an event of many lines": { begin: "", next: Buffer.from(("data: " + "a".repeat(1000) + "\n").repeat(1000)) },
};

for (const [name, how] of Object.entries(ways)) {
  test(`${name} of 512 MiB is cut off at the limit`, { timeout: 180_000 }, async (t) => {
    for (const [path, body, prefix] of clients) {
      const operator = admin(gw),
        me = await operator.machine(),
        what = `${path} over ${prefix}`;
      await operator.connect(me.machineId, compatible(up));
      await operator.connect(me.machineId, {
        ...compatible(up, { prefix: "an" }),
        provider: "anthropic-compatible-0123abcd",
      });
      Object.assign(up, { how, sent: 0 });
      const calm = await gw.memory.collect(),
        watched = gw.memory.watch(20);
      let res, text, peak;
      try {
        res = await gw.fetch(path, {
          method: "POST",
          headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
          body: JSON.stringify({ ...body, model: `${prefix}/m`, stream: true }),
        });
        text = await res.text();
      } finally {
        peak = await watched.stop();
      }
      t.diagnostic(`${what}: ${(up.sent / MiB) | 0} MiB sent; before: ${shown(calm)}; at most: ${shown(peak)}`);
      assert.equal(res.status, 200, `${what}: ${text.slice(0, 300)}`);
      // It ends once, and badly: no end that the upstream did not send.
      assert.match(
        text,
        path.endsWith("messages")
          ? /event: error\ndata: .*\n\n$/
          : path.endsWith("responses")
            ? /event: response\.failed\n/
            : /"error":\{.*\n\ndata: \[DONE\]\n\n$/s,
        what,
      );
      assert.doesNotMatch(text, /message_stop|response\.completed|"finish_reason":"stop"/, what);
      assert.ok(text.length < 64 << 10, `${what}: ${text.length} bytes came back`);
      await until(`${what}: the end of the upstream's connection`, () => up.open === 0);
      assert.ok(up.sent < all / 4, `${what}: ${up.sent} bytes were taken`);
      assert.ok(peak.total - calm.total < 32 * MiB, `${what}: from ${shown(calm)} to ${shown(peak)}`);
    }
  });
}
