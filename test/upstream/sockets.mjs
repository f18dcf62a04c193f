// The WebSockets of the test upstream: a small realtime provider.
import { createHash } from "node:crypto";
import { WebSocketServer } from "ws";

const sessionID = "sess_0001";

// serve lets an HTTP server accept WebSockets. up is the result of start: its
// `script` may refuse one with {status, body}, and its `talk(ws, got)`, if it is set,
// speaks with a client in place of the provider below. Each is one of up.seen, with
// `messages` of {data, binary} and `closed` of {code, reason}.
export function serve(server, up) {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: 64 << 20,
    handleProtocols: (offered) => (offered.has("realtime") ? "realtime" : false),
  });
  up.sockets = sockets.clients;
  server.on("upgrade", async (req, socket, head) => {
    socket.on("error", () => {});
    const got = {
      method: req.method,
      path: req.url,
      headers: req.headers,
      host: req.headers["x-vendor-host"] ?? req.headers.host,
    };
    up.seen.push(Object.assign(got, { upgrade: true, messages: [], closed: null }));
    const refused = await up.script?.(got);
    if (refused && typeof refused === "object") {
      const body = refused.body ?? "{}";
      const fields = Object.entries({ "content-type": "application/json", ...refused.headers });
      const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      return socket.end(
        `HTTP/1.1 ${refused.status} Refused\r\n${head}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    }
    sockets.handleUpgrade(req, socket, head, (ws) => {
      ws.on("error", () => {});
      ws.on("message", (data, binary) => got.messages.push({ data: binary ? data : data.toString(), binary }));
      ws.on("close", (code, reason) => {
        got.closed = { code, reason: reason.toString() };
      });
      (up.talk ?? realtime)(ws, got);
    });
  });
}

// clientSecret answers a request for a client secret.
export function clientSecret(body) {
  const value = `ek_upstream${createHash("sha256").update(JSON.stringify(body)).digest("hex").slice(0, 16)}`;
  const expires_at = Math.floor(Date.now() / 1000) + (body.expires_after?.seconds ?? 600);
  const session = { id: sessionID, object: "realtime.session", ...body.session };
  return { value, expires_at, session: { ...session, client_secret: { value, expires_at } } };
}

// realtime answers response.create with a text, audio and usage, and session.update
// with the session.
function realtime(ws, got) {
  const model = new URL(got.path, "http://upstream").searchParams.get("model");
  const send = (event) => ws.send(JSON.stringify({ event_id: `event_${++events}`, ...event }));
  let events = 0;
  send({ type: "session.created", session: { id: sessionID, type: "realtime", model } });
  ws.on("message", (data, binary) => {
    if (binary) return;
    let event;
    try {
      event = JSON.parse(data.toString());
    } catch {
      return send({
        type: "error",
        error: { type: "invalid_request_error", code: "invalid_json", message: "not JSON" },
      });
    }
    if (event.type === "session.update")
      send({ type: "session.updated", session: { ...event.session, id: sessionID } });
    if (event.type !== "response.create") return;
    const response = { id: `resp_${events}`, object: "realtime.response", status: "in_progress" };
    send({ type: "response.created", response });
    for (const delta of ["Hello", " there"])
      send({ type: "response.output_text.delta", response_id: response.id, delta });
    send({
      type: "response.output_audio.delta",
      response_id: response.id,
      delta: Buffer.alloc(4800).toString("base64"),
    });
    const usage = {
      total_tokens: 253,
      input_tokens: 132,
      output_tokens: 121,
      input_token_details: {
        text_tokens: 119,
        audio_tokens: 13,
        cached_tokens: 64,
        cached_tokens_details: { text_tokens: 64, audio_tokens: 0 },
      },
      output_token_details: { text_tokens: 30, audio_tokens: 91 },
    };
    send({ type: "response.done", response: { ...response, status: "completed", output: [], usage } });
  });
}
