// The server of the clouds that sign or want tokens: bedrock.mjs, azure.mjs,
// vertex.mjs say what it answers.
//
// The result of start has `url`, `seen` (method, host, path, headers, body,
// json), `answer` (returns the answer of a request: {status, headers, body}, or
// `frames` that are written one by one), `fault` (may return a fault for a
// request: the number of a frame at which the stream is cut or reset),
// `clear()` and `close()`.
import { createServer } from "node:http";

export async function start(answer) {
  const up = { seen: [], answer, fault: null };
  const server = createServer(async (req, res) => {
    const got = {
      method: req.method,
      host: req.headers["x-vendor-host"] ?? req.headers.host,
      path: req.url,
      headers: { ...req.headers },
    };
    delete got.headers["x-vendor-host"];
    up.seen.push(got);
    try {
      const parts = [];
      for await (const part of req) parts.push(part);
      got.body = Buffer.concat(parts);
      try {
        got.json = JSON.parse(got.body);
      } catch {
        /* no JSON */
      }
      const reply = await up.answer(got);
      const fault = up.fault?.(got, reply) ?? {};
      res.writeHead(reply.status ?? 200, reply.headers);
      if (!reply.frames) return void res.end(reply.body);
      let n = 0;
      for (const frame of reply.frames) {
        if (fault.cut === n) return void res.end();
        if (fault.reset === n) return void setTimeout(() => res.socket?.resetAndDestroy(), 5);
        // In two pieces: a frame's border is not a packet's.
        res.write(frame.subarray(0, frame.length >> 1));
        await new Promise(setImmediate);
        res.write(frame.subarray(frame.length >> 1));
        n++;
      }
      res.end();
    } catch (e) {
      got.error = e; // a mistake of the fake
      res.destroy();
    }
  });
  server.on("clientError", (_, socket) => socket.destroy());
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.clear = () => {
    up.seen.length = 0;
    up.fault = null;
  };
  up.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return up;
}
