// An upstream for audio, images and videos: it reads forms as they come, keeps
// digests of what it got, and answers OpenAI's and xAI's shapes.
//
// The result of start has `url`, `seen` (method, host, path, headers, bytes,
// digest, length, form), `jobs`, `answer` (may answer a request itself by
// {status, headers, body}, now or later) and `close()`.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

const sha = (b) => createHash("sha256").update(b).digest("hex");

// sound returns n bytes that are the same each time.
export function sound(n) {
  const b = Buffer.alloc(n);
  for (let i = 0, x = 1; i < n; i++) {
    x = (x * 1103515245 + 12345) & 0x7fffffff;
    b[i] = x >> 16;
  }
  return b;
}

// form reads a multipart body: the fields, and name, type and digest of files.
function form(body, type) {
  const boundary = /boundary="?([^";]+)/.exec(type)[1];
  const out = {};
  const delim = Buffer.from(`--${boundary}`);
  for (let at = body.indexOf(delim); ; ) {
    const from = at + delim.length;
    if (body.subarray(from, from + 2).toString() === "--") return out;
    const next = body.indexOf(Buffer.from(`\r\n--${boundary}`), from);
    if (next < 0) throw new Error("the form is cut");
    const blank = body.indexOf("\r\n\r\n", from);
    const head = body.subarray(from, blank).toString(),
      content = body.subarray(blank + 4, next);
    const name = /name="([^"]*)"/.exec(head)[1];
    (out[name] ??= []).push(
      /filename=/.test(head) ? { bytes: content.length, digest: sha(content) } : content.toString(),
    );
    at = next + 2;
  }
}

export async function start() {
  const up = { seen: [], jobs: new Map(), answer: null, videoBytes: 1 << 20 };
  const server = createServer(async (req, res) => {
    const got = {
      method: req.method,
      host: req.headers["x-vendor-host"] ?? req.headers.host,
      path: req.url,
      headers: req.headers,
      length: req.headers["content-length"],
    };
    up.seen.push(got);
    try {
      const parts = [];
      for await (const p of req) parts.push(p);
      const body = Buffer.concat(parts);
      got.bytes = body.length;
      got.digest = sha(body);
      const type = req.headers["content-type"] ?? "";
      if (type.startsWith("multipart/") && !req.url.includes("/videos")) got.form = form(body, type);
      if (type.includes("json"))
        try {
          got.json = JSON.parse(body);
        } catch {
          /* kept as bytes */
        }
      if (body.length < 1 << 20) got.body = body;
      await serve(req, res, got);
    } catch (e) {
      got.error = e;
      res.destroy();
    }
  });

  const json = (res, value, status = 200, headers = {}) =>
    res.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
  async function serve(req, res, got) {
    const own = await up.answer?.(got);
    if (own?.destroy) return res.destroy();
    if (own)
      return void res.writeHead(own.status ?? 200, own.headers ?? { "content-type": "application/json" }).end(own.body);
    const path = req.url.split("?")[0];
    if (path.endsWith("/audio/speech")) {
      res.writeHead(200, { "content-type": "audio/mpeg" });
      const all = sound(300_000);
      for (let at = 0; at < all.length; at += 30_000) {
        res.write(all.subarray(at, at + 30_000));
        await new Promise((r) => setTimeout(r, 2));
      }
      return res.end();
    }
    if (/\/audio\/(transcriptions|translations)$/.test(path)) {
      const format = got.form.response_format?.[0] ?? "json",
        said = got.form.file[0].digest;
      if (got.form.stream?.[0] === "true") {
        res.writeHead(200, { "content-type": "text/event-stream" });
        for (const e of [
          { type: "transcript.text.delta", delta: said },
          { type: "transcript.text.done", text: said },
        ])
          res.write(`data: ${JSON.stringify(e)}\n\n`);
        return res.end("data: [DONE]\n\n");
      }
      if (format === "srt" || format === "text" || format === "vtt")
        return res
          .writeHead(200, { "content-type": "text/plain; charset=utf-8" })
          .end(`1\n00:00:00,000 --> 00:00:01,000\n${said}\n`);
      return json(
        res,
        format === "verbose_json"
          ? { task: "transcribe", language: "english", duration: 1.5, text: said, segments: [] }
          : { text: said },
      );
    }
    if (path.endsWith("/images/generations"))
      return json(res, { created: 1, data: [{ b64_json: sound(300).toString("base64") }] });
    if (path.endsWith("/images/edits"))
      return json(res, { created: 1, data: [{ b64_json: got.form.image[0].digest }] });
    if (path === "/file.mp4") {
      res.writeHead(200, { "content-type": "video/mp4" });
      const piece = sound(1 << 20);
      for (let left = up.videoBytes; left > 0; left -= piece.length)
        if (!res.write(piece.subarray(0, Math.min(left, piece.length)))) await once(res, "drain");
      return res.end();
    }
    const job = /\/videos\/(?!generations|edits|extensions)([^/]+)$/.exec(path)?.[1];
    if (job)
      return json(res, { status: "done", video: { url: `${up.url}/file.mp4` }, by: sha(req.headers.authorization) });
    if (/\/videos\/(generations|edits|extensions)$/.test(path)) {
      const id = `job-${up.jobs.size + 1}`;
      up.jobs.set(id, req.headers.authorization);
      return json(res, { request_id: id });
    }
    json(res, { error: { message: `no ${req.url}`, type: "invalid_request_error" } }, 404);
  }

  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.clear = () => {
    up.seen = [];
    up.answer = null;
  };
  up.close = () => {
    server.closeAllConnections();
    return new Promise((r) => server.close(r));
  };
  return up;
}
