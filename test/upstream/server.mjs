// The test upstream: a provider that runs on this machine, answers from the
// request alone, misbehaves when asked to (faults.mjs) and records its
// requests.
//
//	node test/upstream/server.mjs [PORT]
//
// The vendor is chosen by the header x-vendor-host, else by the segment of the
// path: /anthropic, /gemini, /cohere, /voyage, /jina; all other paths speak OpenAI.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as anthropic from "./anthropic.mjs";
import { bodies, faultOf, raw } from "./faults.mjs";
import * as openai from "./openai.mjs";
import * as sockets from "./sockets.mjs";
import * as vendors from "./vendors.mjs";

const hosts = {
  "api.anthropic.com": "anthropic",
  "generativelanguage.googleapis.com": "gemini",
  "api.cohere.com": "cohere",
  "api.voyageai.com": "voyage",
  "api.jina.ai": "jina",
};
const keptBytes = 4 << 20; // of a request's body; of a longer one only its digest stays
// A delay keeps no process alive whose server is closed.
const wait = (ms) => new Promise((r) => setTimeout(r, ms).unref());

// answerOf returns {status, json} or {events, terminator} for a request.
function answerOf(vendor, method, path, query, body, model, fault) {
  const ends = (s) => path.endsWith(s);
  if (ends("/events"))
    return { events: openai.pieces(query, fault).map((t) => `data: ${t}\n\n`), terminator: "data: [DONE]\n\n" };
  if (vendor === "anthropic" || ends("/messages") || ends("/messages/count_tokens")) {
    if (ends("/messages/count_tokens")) return { json: anthropic.tokens(body) };
    if (ends("/messages")) return anthropic.messages(body, model, fault);
    if (ends("/models")) return { json: anthropic.models() };
  }
  if (vendor === "gemini") return vendors.gemini(path, body, fault);
  if (vendor === "cohere" && ends("/embed")) return vendors.cohere(body);
  if (vendor === "voyage" && ends("/embeddings")) return vendors.voyage(body, model);
  if (vendor === "jina" && ends("/embeddings")) return vendors.jina(body, model);
  if (ends("/embeddings") && method === "POST") return { json: openai.embeddings(body, model, fault) };
  if (ends("/chat/completions") && method === "POST") return openai.chat(body, model, fault);
  if (ends("/models") && method === "GET") return { json: openai.models() };
  if (ends("/realtime/client_secrets") && method === "POST") return { json: sockets.clientSecret(body) };
  return null;
}

// room waits until a response takes more, or has been closed.
async function room(res) {
  const ctl = new AbortController(),
    { signal } = ctl;
  await Promise.race([once(res, "drain", { signal }), once(res, "close", { signal })]).catch(() => {});
  ctl.abort();
}

const errors = { anthropic: anthropic.error, gemini: vendors.geminiError };

// start listens on a port (0 for any free one).
//
// The result has `url`, `seen` (every request: method, host, path, headers,
// rawHeaders, body, bytes, digest, json, aborted), `clear()`, `script` (a
// function that may answer a request itself by returning {status, headers,
// body}, body a text, bytes or a Readable, or return a fault spec as a string)
// and `close()`. WebSockets are in
// sockets.mjs.
export async function start({ port = 0, script = null, keep = true } = {}) {
  const up = { seen: [], script, open: 0, total: 0 };
  const counts = new Map();

  const server = createServer(async (req, res) => {
    up.open++;
    up.total++;
    res.on("close", () => {
      up.open--;
    });
    res.on("error", () => {});
    const got = {
      method: req.method,
      host: req.headers["x-vendor-host"] ?? req.headers.host,
      path: req.url,
      headers: req.headers,
      rawHeaders: req.rawHeaders,
      at: performance.now(),
      aborted: false,
    };
    if (keep) up.seen.push(got);
    res.on("close", () => {
      got.aborted = !res.writableFinished;
      got.ended = performance.now();
    });
    try {
      await readBody(req, got);
      await serve(req, res, got);
    } catch (e) {
      got.error = e;
      res.destroy();
    }
  });
  server.keepAliveTimeout = 60_000;
  server.on("clientError", (_, socket) => socket.destroy());
  sockets.serve(server, up);

  async function readBody(req, got) {
    const hash = createHash("sha256"),
      parts = [];
    got.bytes = 0;
    for await (const part of req) {
      hash.update(part);
      got.bytes += part.length;
      if (got.bytes <= keptBytes) parts.push(part);
    }
    got.digest = hash.digest("hex");
    got.body = got.bytes <= keptBytes ? Buffer.concat(parts) : null;
    if (got.body?.length && (req.headers["content-type"] ?? "").includes("json")) {
      try {
        got.json = JSON.parse(got.body);
      } catch {
        got.json = undefined;
      }
    }
  }

  async function serve(req, res, got) {
    const scripted = await up.script?.(got);
    if (scripted && typeof scripted === "object") {
      res.writeHead(scripted.status ?? 200, scripted.headers ?? { "content-type": "application/json" });
      if (scripted.body?.pipe) {
        res.on("close", () => scripted.body.destroy());
        return void scripted.body.pipe(res);
      }
      return void res.end(scripted.body ?? "{}");
    }
    const found = faultOf(
      new URL(req.url, "http://upstream").pathname,
      { ...req.headers, ...(scripted ? { "x-fault": scripted } : {}) },
      got.json,
    );
    let { fault } = found;
    if (fault.times !== undefined) {
      const key = fault.spec + "\n" + (req.headers.authorization ?? req.headers["x-api-key"] ?? "");
      counts.set(key, (counts.get(key) ?? 0) + 1);
      if (counts.get(key) > fault.times) fault = { spec: "", header: [] };
    }
    const vendor = hosts[got.host] ?? (/^\/(anthropic|gemini|cohere|voyage|jina)\//.exec(found.path)?.[1] || "openai");
    await answer(req, res, got, vendor, found.path, found.model, fault);
  }

  async function answer(req, res, got, vendor, path, model, fault) {
    if (fault.delay) await wait(fault.delay);
    if (fault.stall) return; // until the caller disconnects
    if (fault.reset) return void res.socket?.resetAndDestroy();
    if (fault.raw) {
      res.socket.write(raw[fault.raw] ?? "");
      return void setTimeout(() => res.socket?.destroy(), 20);
    }
    for (const [name, value] of fault.header) res.appendHeader(name, value);
    if (fault.redirect) return void res.writeHead(302, { location: fault.redirect }).end();
    if (path.endsWith("/echo")) {
      return void res
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ method: req.method, headers: req.headers, bytes: got.bytes, digest: got.digest }));
    }
    if (fault.size !== undefined) return sized(res, fault);
    if (fault.status >= 300) return failure(req, res, vendor, fault);
    const reply = answerOf(
      vendor,
      req.method,
      path,
      decodeURIComponent(req.url.split("?")[1] ?? ""),
      got.json ?? {},
      model,
      fault,
    );
    if (!reply) return void send(res, 404, openai.error(404, `no such path: ${path}`), fault);
    if (reply.events) return stream(res, reply, fault);
    send(res, fault.status ?? reply.status ?? 200, reply.json, fault);
  }

  function failure(req, res, vendor, fault) {
    const message =
      fault.body === "secret"
        ? `bad credential ${req.headers.authorization ?? req.headers["x-api-key"] ?? req.headers["x-goog-api-key"]}`
        : undefined;
    send(res, fault.status, (errors[vendor] ?? openai.error)(fault.status, message), fault);
  }

  function send(res, status, json, fault) {
    let [type, body] = bodies[fault.body] ?? ["application/json", JSON.stringify(json)];
    body = Buffer.from(body);
    const headers = { "content-type": type, "x-request-id": "req-upstream" };
    if (fault.gzip) {
      body = gzipSync(typeof fault.gzip === "number" ? Buffer.alloc(fault.gzip, " ") : body);
      if (fault.gzip === "bad") body.fill(0xff, 12);
      headers["content-encoding"] = "gzip";
    }
    if (status === 204 || status === 304) return void res.writeHead(status).end();
    res.writeHead(status, { ...headers, "content-length": body.length });
    if (fault["reset-after"] !== undefined) {
      res.write(body.subarray(0, body.length >> 1));
      return void setTimeout(() => res.socket?.resetAndDestroy(), 5);
    }
    res.end(body);
  }

  async function stream(res, { events, terminator }, fault) {
    res.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-request-id": "req-upstream",
    });
    res.flushHeaders();
    for (let i = 0; i < events.length; i++) {
      if (fault["stall-after"] === i) return;
      if (fault.cut === "finish" && /"(finish|stop)_reason":"/.test(events[i])) return void res.end();
      if (fault["reset-after"] === i) return void setTimeout(() => res.socket?.resetAndDestroy(), 5);
      if (fault.slow) await wait(fault.slow);
      if (res.destroyed) return;
      if (!res.write(events[i])) await room(res);
    }
    res.end(fault.cut ? "" : terminator);
  }

  // sized sends a body of a fixed pattern, as fast as it is taken.
  async function sized(res, fault) {
    res.writeHead(200, { "content-type": "application/octet-stream", "content-length": fault.size });
    const block = Buffer.alloc(64 << 10, "0123456789abcdef");
    for (let left = fault.size; left > 0 && !res.destroyed; left -= block.length) {
      if (fault.slow) await wait(fault.slow);
      if (!res.write(left < block.length ? block.subarray(0, left) : block)) await room(res);
    }
    res.end();
  }

  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  up.port = server.address().port;
  up.url = `http://127.0.0.1:${up.port}`;
  up.clear = () => {
    up.seen.length = 0;
    counts.clear();
    up.script = null;
  };
  up.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return up;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const up = await start({ port: Number(process.argv[2] ?? 0), keep: false });
  console.log(`test upstream on ${up.url}`);
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => up.close().then(() => process.exit(0)));
}
