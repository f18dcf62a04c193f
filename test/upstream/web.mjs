// An upstream for search, fetch, rerank and moderation, and the web itself:
// every host name that a test calls leads here (gateway.mjs, vendors).
//
// The result of start has `url`, `seen` (method, host, path, headers, body,
// json, closed), `answer` (returns the answer of a request: see page, or the
// name of one of `hostile`), `clear()` and `close()`.
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";

const html = { "content-type": "text/html; charset=utf-8" };
const chunk = (text) => Buffer.from(text.repeat(Math.ceil(65536 / text.length)));

// forever writes a block again and again, as fast as it is taken, until the
// caller hangs up or limit bytes have gone out; got.sent counts them.
async function forever(res, got, block, limit = Infinity) {
  let go = null;
  res.on("drain", () => go?.()).on("close", () => go?.());
  for (got.sent = 0; !res.destroyed && got.sent < limit; ) {
    got.sent += block.length;
    const room = res.write(block);
    await new Promise((r) => {
      go = r;
      if (room) setImmediate(r);
    });
  }
  res.end();
}

const large = 200 << 20;
const zipped = new Map();
function bomb(bytes) {
  // a page of that size, compressed to a thousandth
  if (!zipped.has(bytes)) zipped.set(bytes, gzipSync(Buffer.alloc(bytes, "<p>a</p>")));
  return zipped.get(bytes);
}

// hostile are pages that cost more than they should.
export const hostile = {
  huge(res, got) {
    // 100 MB, and it says so
    res.writeHead(200, { ...html, "content-length": 100e6 });
    forever(res, got, chunk("<p>huge</p>"), 100e6);
  },
  endless(res, got) {
    res.writeHead(200, html);
    forever(res, got, chunk("<p>endless</p>"));
  },
  slow(res) {
    // a byte now and then
    res.writeHead(200, html);
    const timer = setInterval(() => res.write("a"), 25);
    res.on("close", () => clearInterval(timer));
  },
  silent() {}, // no head
  stalled(res) {
    res.writeHead(200, html);
    res.write("<p>the rest never comes");
  },
  reset(res) {
    res.socket.resetAndDestroy();
  },
  broken(res) {
    res.writeHead(200, { ...html, "content-length": 1000 });
    res.write("<p>cut");
    setTimeout(() => res.socket?.destroy(), 20);
  },
  bomb(res) {
    res.writeHead(200, { ...html, "content-encoding": "gzip" });
    res.end(bomb(large));
  },
  badgzip(res) {
    res.writeHead(200, { ...html, "content-encoding": "gzip" });
    res.end(bomb(1 << 20).fill(0xff, 40));
  },
};

export async function start() {
  bomb(large); // compressing it takes longer than a call may
  const up = { seen: [], answer: null };
  const server = createServer(async (req, res) => {
    const got = {
      method: req.method,
      host: req.headers["x-vendor-host"] ?? req.headers.host,
      path: req.url,
      headers: { ...req.headers },
      closed: new Promise((r) => res.on("close", r)),
    };
    delete got.headers["x-vendor-host"];
    up.seen.push(got);
    const parts = [];
    for await (const p of req) parts.push(p);
    got.body = Buffer.concat(parts).toString();
    if (got.body)
      try {
        got.json = JSON.parse(got.body);
      } catch {
        /* stays text */
      }
    const a = (await up.answer?.(got)) ?? {
      status: 404,
      headers: { "content-type": "application/json" },
      body: '{"error":"nothing is scripted"}',
    };
    if (typeof a === "string") return hostile[a](res, got);
    res.writeHead(a.status ?? 200, a.headers ?? { "content-type": "application/json" });
    res.end(typeof a.body === "string" || Buffer.isBuffer(a.body) ? a.body : JSON.stringify(a.body ?? {}));
  });
  server.on("clientError", (_, socket) => socket.destroy());
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.clear = () => {
    up.seen.length = 0;
    up.answer = null;
  };
  up.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return up;
}

// page is an answer with a page.
export const page = (body, headers = {}) => ({ headers: { ...html, ...headers }, body });

// moved is a redirect.
export const moved = (location, status = 302) => ({ status, headers: { location }, body: "moved" });
