// A thousand streams that are open at once, and slow: the upstream sends the
// next event of a stream only when its client has had the one before, so each
// test that ends has shown that nothing was held back.
// See docs/reference/performance.md, 7.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import * as anthropic from "../../upstream/anthropic.mjs";
import * as openai from "../../upstream/openai.mjs";
import { admin, compatible, start } from "../gateway.mjs";
import { shown } from "../isolate.mjs";
import { sleep, until } from "../wait.mjs";

const streams = 1000;
let gw, up, me;

// upstream answers with the events of a stream as they are asked for: open has,
// by the word in the request, next(), which sends one more event and reports
// whether there are others, and rest, the remaining events.
async function upstream() {
  const up = { open: new Map(), closed: 0 };
  const server = createServer(async (req, res) => {
    const parts = [];
    for await (const p of req) parts.push(p);
    const body = JSON.parse(Buffer.concat(parts));
    const { events, terminator } = (req.url.endsWith("/messages") ? anthropic.messages : openai.chat)(
      body,
      body.model,
      {},
    );
    const rest = [...events, terminator];
    res.on("close", () => {
      up.closed++;
    });
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(rest.shift());
    const stream = {
      rest,
      all: [...events, terminator].join(""),
      next() {
        res.write(rest.shift());
        if (!rest.length) res.end();
      },
    };
    up.open.set(/word-\d+/.exec(JSON.stringify(body.messages))[0], stream);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.close = () =>
    new Promise((r) => {
      server.close(r);
      server.closeAllConnections();
    });
  return up;
}

before(async () => {
  up = await upstream();
  gw = await start({ inspect: true, env: { LOG_LEVEL: "error" } });
  const operator = admin(gw);
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  await operator.connect(me.machineId, {
    ...compatible(up, { prefix: "an" }),
    provider: "anthropic-compatible-0123abcd",
  });
});
after(async () => {
  await gw?.close();
  await up?.close();
});
beforeEach(() => {
  up.open.clear();
  up.closed = 0;
});

// ways are the dialects of a client and its upstream. Streams of the first two
// are metered, those of the others translated.
const ways = [
  ["/v1/chat/completions", "up"],
  ["/v1/messages", "an"],
  ["/v1/chat/completions", "an"],
  ["/v1/messages", "up"],
];

const agent = new Agent({ keepAlive: false, maxSockets: Infinity });

// Client is one open stream: text is what it has had.
class Client {
  constructor(n, way = n % ways.length) {
    this.word = `word-${100_000 + n}`;
    [this.path, this.family] = ways[way];
    this.text = "";
    this.ended = false;
    this.wake = () => {};
  }

  async begin() {
    const body = JSON.stringify({
      model: `${this.family}/m`,
      max_tokens: 50,
      stream: true,
      messages: [{ role: "user", content: `${this.word} one two` }],
    });
    this.req = request(gw.url + this.path, {
      method: "POST",
      agent,
      headers: { authorization: `Bearer ${me.apiKey}`, "content-type": "application/json" },
    });
    this.req.end(body);
    const [res] = await once(this.req, "response");
    this.status = res.statusCode;
    res.setEncoding("utf8").on("data", (t) => {
      this.text += t;
      this.wake();
    });
    res.on("error", () => {});
    res.on("end", () => {
      this.ended = true;
      this.wake();
    });
    await this.has(() => this.text.endsWith("\n\n"));
    return this;
  }

  async has(what) {
    while (!what() && !this.ended)
      await new Promise((r) => {
        this.wake = r;
      });
  }

  // step has the upstream send one more event and waits for what comes of it.
  async step() {
    const from = this.text.length,
      { rest } = up.open.get(this.word),
      sent = rest[0];
    if (!sent) return;
    up.open.get(this.word).next();
    await this.has(() => (rest.length ? this.text.length > from && this.text.endsWith("\n\n") : this.ended));
  }
}

// alike is the text of a stream without what differs from one to the next.
const alike = (c) =>
  c.text
    .replaceAll(c.word, "word")
    .replace(/"created":\d+/g, '"created":0')
    .replace(/"id":"[^"]+"/g, '"id":""');

// quiet waits until nothing is in flight. The program must still run then.
async function quiet() {
  const s = await until("the end of all calls", async () => {
    const s = await gw.stats();
    return !s.calls && !s.streams && s;
  });
  assert.equal(s.dead, false);
}

test(`${streams} slow streams arrive whole, event by event, within the isolate's memory`, {
  timeout: 180_000,
}, async (t) => {
  // One of each way alone says what the others must be.
  const alone = [];
  for (let n = 0; n < ways.length; n++) {
    const c = await new Client(streams + n).begin();
    while (!c.ended) await c.step();
    alone.push(alike(c));
  }
  const before = gw.resident(),
    { limit } = gw.memory;
  const peak = gw.memory.watch();
  const clients = await Promise.all(Array.from({ length: streams }, (_, n) => new Client(n).begin()));
  assert.deepEqual(await gw.stats().then((s) => s.streams), streams);
  for (let round = 0; clients.some((c) => !c.ended); round++) {
    await Promise.all(clients.map((c) => c.step()));
    if (round !== 2) continue;
    await sleep(2200); // each has been sampled, and is idle
    const idle = await gw.memory.collect();
    t.diagnostic(`idle: ${shown(idle)}; the process ${((gw.resident() - before) / 2 ** 20).toFixed(0)} MiB more`);
    assert.ok(idle.total <= limit, shown(idle));
  }
  const most = await peak.stop();
  t.diagnostic(`at most: ${shown(most)}`);
  assert.ok(most.total <= limit, shown(most));
  for (const [n, c] of clients.entries()) {
    assert.equal(c.status, 200);
    assert.equal(alike(c), alone[n % ways.length]);
    assert.ok(c.text.includes(c.word), "it is its own");
    const { all } = up.open.get(c.word);
    if (n % ways.length < 2) assert.equal(c.text, all, "the bytes are the upstream's");
  }
  await quiet();
});

// While a metered stream is idle, a read of the tee's other branch waits: with a
// buffer of 64 KiB each, a thousand of them were over the limit.
test(`${streams} idle metered streams whose clients disconnect leave nothing behind`, {
  timeout: 120_000,
}, async (t) => {
  const clients = await Promise.all(Array.from({ length: streams }, (_, n) => new Client(n, 0).begin()));
  await sleep(1500); // each has been sampled
  const open = await gw.memory.collect();
  t.diagnostic(`open: ${shown(open)}`);
  assert.ok(open.buffers < 16 << 20 && open.total <= gw.memory.limit, shown(open));
  const closed = clients.map((c) => once(c.req, "close"));
  for (const c of clients) c.req.destroy();
  await Promise.all(closed);
  // An idle one learns of it with its next event, or with the one after it. The
  // last is held back, so that none ends by itself.
  const events = [...up.open.values()];
  await until("the end of all streams", async () => {
    for (const { rest, next } of events) if (rest.length > 1) next();
    return !(await gw.stats()).streams;
  });
  await quiet();
  await until("the end of the upstream's streams", () => up.closed >= streams);
  assert.equal(up.closed, streams);
  const left = await gw.memory.collect();
  t.diagnostic(`after them: ${shown(left)}`);
  assert.ok(left.buffers < 4 << 20, shown(left));
});
