// A stream of the client's own dialect that flows as fast as it can: the buffer
// for its metering stays small, every byte arrives, and afterwards each event
// still arrives before the next is sent. See docs/reference/reliability.md,
// F46.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";
import { MiB } from "../isolate.mjs";

const chunk = (n, text) =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"${text}"},"finish_reason":null}],"n":${n}}\n\n`;
const last =
  'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}\n\ndata: [DONE]\n\n';
const block = chunk(1, "x".repeat(900)).repeat(64),
  blocks = 5000; // 300 MiB

// room waits until a response takes more, or has been closed.
async function room(res) {
  const ctl = new AbortController(),
    { signal } = ctl;
  await Promise.race([once(res, "drain", { signal }), once(res, "close", { signal })]).catch(() => {});
  ctl.abort();
}

let gw,
  up,
  me,
  turn = null;
before(async () => {
  const server = createServer((req, res) => {
    req.resume().on("end", async () => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (let i = 0; i < blocks && !res.destroyed; i++) if (!res.write(block)) await room(res);
      res.write('data: {"now":"slow"}\n\n');
      for (let i = 0; i < 20 && !res.destroyed; i++) {
        await new Promise((r) => {
          turn = r;
        });
        res.write(chunk(i, "slow"));
      }
      await new Promise((r) => {
        turn = r;
      });
      res.end(last);
    });
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  up = {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((r) => server.close(r));
    },
  };
  gw = await start();
  const operator = admin(gw);
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
});
after(async () => {
  await gw?.close();
  await up?.close();
});

test("a fast stream is buffered only in part, and slow events still arrive one by one [F46]", {
  timeout: 240_000,
}, async () => {
  const res = await gw.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
    body: JSON.stringify({
      model: "up/m",
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: "a" }],
    }),
  });
  assert.equal(res.status, 200);
  const began = gw.resident(),
    decoder = new TextDecoder();
  let bytes = 0,
    most = 0,
    tail = "",
    steps = 0;
  for await (const piece of res.body) {
    bytes += piece.byteLength;
    if (bytes % (8 * MiB) < piece.byteLength) most = Math.max(most, gw.resident() - began);
    tail = (tail + decoder.decode(piece, { stream: true })).slice(-4096);
    // The next event is sent once this one is here.
    if (/("now":"slow"|"content":"slow").*\n\n$/.test(tail) && turn) {
      const next = turn;
      turn = null;
      steps++;
      tail = "";
      next();
    }
  }
  most = Math.max(most, gw.resident() - began);
  assert.ok(bytes > block.length * blocks, `${bytes} bytes`);
  assert.equal(steps, 21);
  assert.match(tail, /\[DONE\]\n\n$/);
  // One stream holds at most 16 MiB; the rest is the process's own.
  assert.ok(most < 100 * MiB, `the process grew by ${(most / MiB).toFixed(0)} MiB`);
});
