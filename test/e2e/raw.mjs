// HTTP/1.1 by hand, for tests: requests that no client would send, and what
// comes back before, or without, a whole body.
import { connect } from "node:net";

// open connects to a gateway. `send(bytes)` writes, `answer(ms)` returns the
// next answer as { status, headers, text } (headers: a list of pairs, names in
// lower case) or null when the connection ends or the time is up without one,
// `end()` and `reset()` close.
export function open(url) {
  const { hostname, port } = new URL(url),
    socket = connect(+port, hostname);
  let got = Buffer.alloc(0),
    ended = false,
    wake = () => {};
  socket.on("data", (c) => {
    got = Buffer.concat([got, c]);
    wake();
  });
  socket.on("close", () => {
    ended = true;
    wake();
  });
  socket.on("error", () => {});

  // parse takes a whole answer off the front of what came, if there is one.
  function parse() {
    const at = got.indexOf("\r\n\r\n");
    if (at < 0) return null;
    const [line, ...fields] = got.subarray(0, at).toString("latin1").split("\r\n");
    const headers = fields.map((f) => [f.slice(0, f.indexOf(":")).toLowerCase(), f.slice(f.indexOf(":") + 1).trim()]);
    const get = (name) => headers.find(([n]) => n === name)?.[1];
    const status = +line.split(" ")[1],
      rest = got.subarray(at + 4),
      length = get("content-length");
    let body, used;
    if (length !== undefined) {
      if (rest.length < +length && !ended) return null;
      [body, used] = [rest.subarray(0, +length), +length];
    } else if (/chunked/.test(get("transfer-encoding") ?? "")) {
      const end = rest.indexOf("0\r\n\r\n");
      if (end < 0 && !ended) return null;
      [body, used] = [rest.subarray(0, end < 0 ? rest.length : end), end < 0 ? rest.length : end + 5];
    } else if (status === 204 || status === 304 || status < 200) [body, used] = [Buffer.alloc(0), 0];
    else if (!ended) return null;
    else [body, used] = [rest, rest.length];
    got = rest.subarray(used);
    return { status, headers, get, text: body.toString("utf8") };
  }

  return {
    socket,
    send(bytes) {
      socket.write(bytes);
    },
    end() {
      socket.end();
    },
    reset() {
      socket.resetAndDestroy();
    },
    async answer(ms = 10_000) {
      const limit = Date.now() + ms;
      for (;;) {
        const a = parse();
        if (a) return a;
        const left = limit - Date.now();
        if (ended || left <= 0) return null;
        await new Promise((resolve) => {
          const t = setTimeout(resolve, left);
          wake = () => {
            clearTimeout(t);
            resolve();
          };
        });
      }
    },
  };
}

// request sends one request unchanged and returns its answer. fields is a list
// of pairs; a missing host is added.
export async function request(
  url,
  method,
  path,
  fields = [],
  body = "",
  { ms = 10_000, length = Buffer.byteLength(body) } = {},
) {
  const c = open(url);
  const own = fields.some(([n]) => n.toLowerCase() === "host") ? [] : [["host", new URL(url).host]];
  const all = [...own, ...fields, ...(method === "GET" || length === null ? [] : [["content-length", String(length)]])];
  c.send(Buffer.from(`${method} ${path} HTTP/1.1\r\n${all.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n`, "latin1"));
  if (body) c.send(body);
  try {
    return await c.answer(ms);
  } finally {
    c.socket.destroy();
  }
}
