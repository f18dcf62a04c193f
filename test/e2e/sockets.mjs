// A WebSocket client for the tests.
import WebSocket from "ws";

// connect opens a WebSocket to a URL of http(s). options are those of package ws, with
// protocols. The result has
//
//	ws         of package ws
//	answer     the head of the 101
//	send(m)    sends a text, a Buffer, or the JSON of another value
//	read()     waits for the next message: {data, binary}
//	json()     waits for the next message and parses it
//	closed     a promise of {code, reason}
//
// It rejects with {status, headers, body} if the server refuses.
export function connect(url, { protocols = [], ...options } = {}) {
  const ws = new WebSocket(url.replace(/^http/, "ws"), protocols, {
    maxPayload: 64 << 20,
    perMessageDeflate: false,
    ...options,
  });
  const arrived = [];
  const waiting = [];
  let over = null;
  const closed = new Promise((resolve) => {
    ws.on("close", (code, reason) => {
      over = { code, reason: reason.toString() };
      for (const w of waiting.splice(0)) w.reject(Object.assign(new Error(`closed with ${code} ${over.reason}`), over));
      resolve(over);
    });
  });
  ws.on("message", (data, binary) => {
    const m = { data: binary ? data : data.toString(), binary };
    if (waiting.length) waiting.shift().resolve(m);
    else arrived.push(m);
  });
  const read = () =>
    new Promise((resolve, reject) => {
      if (arrived.length) resolve(arrived.shift());
      else if (over) reject(Object.assign(new Error(`closed with ${over.code} ${over.reason}`), over));
      else waiting.push({ resolve, reject });
    });
  const encoded = (m) => (typeof m === "string" || Buffer.isBuffer(m) ? m : JSON.stringify(m));
  return new Promise((resolve, reject) => {
    let answer;
    ws.on("upgrade", (res) => {
      answer = res;
    });
    ws.on("open", () => {
      resolve({
        ws,
        answer,
        read,
        closed,
        send: (m) => ws.send(encoded(m)),
        json: async () => JSON.parse((await read()).data),
      });
    });
    ws.on("unexpected-response", async (req, res) => {
      let body = "";
      for await (const part of res) body += part;
      req.destroy();
      reject(
        Object.assign(new Error(`refused with ${res.statusCode}: ${body}`), {
          status: res.statusCode,
          headers: res.headers,
          body,
        }),
      );
    });
    ws.on("error", reject);
  });
}

// refusal returns how a server refuses a WebSocket.
export async function refusal(url, options) {
  const c = await connect(url, options).catch((e) => e);
  if (c.status) return c;
  c.ws?.terminate();
  throw c instanceof Error ? c : new Error("the server accepted the WebSocket");
}
