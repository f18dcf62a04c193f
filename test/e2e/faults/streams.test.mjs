// The faults of an upstream's connection on streams, byte by byte as they come
// from a socket: each stream has one outcome, and no end that the upstream did not
// send. See docs/reference/reliability.md, N1, N10, F4–F26.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import * as anthropic from "../../upstream/anthropic.mjs";
import { raw } from "../../upstream/faults.mjs";
import * as openai from "../../upstream/openai.mjs";
import { placed, start } from "../gateway.mjs";

const said = "You said: naïve ☃ 👋";
const stream = { "content-type": "text/event-stream" };
const head = (fields, status = "200 OK") =>
  `HTTP/1.1 ${status}\r\n${Object.entries({ ...stream, ...fields })
    .map(([k, v]) => `${k}: ${v}\r\n`)
    .join("")}\r\n`;
const chunked = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const open = head({ "transfer-encoding": "chunked" });

// A case has how the upstream answers, and the outcome where bytes pass and
// where they are translated: "well", or "error" within the stream. calls is how
// many accounts were asked.
//
//	send(write, events)  write takes text or bytes; the last event is the
//	                     terminator. Its result says what happens to the socket:
//	                     "end" (absent), "reset", or "keep".
const half = (events) => events.slice(0, events.length >> 1).join("");
const cases = {
  "whole, without a length": {
    send: (w, e) => {
      w(head({}) + e.join(""));
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "whole, in chunks": {
    send: (w, e) => {
      w(open + e.map(chunked).join("") + "0\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "reset before any byte [F4]": { send: () => "reset", native: "well", other: "well", calls: 2 },
  "reset within the head [F5]": {
    send: (w) => {
      w("HTTP/1.1 200 OK\r\ncontent-ty");
      return "reset";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "closed without a byte [F6]": { send: () => {}, native: "well", other: "well", calls: 2 },
  "an invalid HTTP head [F7]": {
    send: (w) => {
      w(raw.garbage);
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "silence before the head [F8]": {
    send: () => "keep",
    native: "well",
    other: "well",
    calls: 2,
    settings: { firstByteSeconds: 3 },
  },
  "silence before the first event [F8]": {
    send: (w) => {
      w(open);
      return "keep";
    },
    status: 504,
    calls: 1,
    settings: { firstByteSeconds: 3 },
  },
  "silence in the middle [F10]": {
    send: (w, e) => {
      w(open + chunked(half(e)));
      return "keep";
    },
    native: "error",
    other: "error",
    calls: 1,
    settings: { idleSeconds: 1 },
  },
  "a byte at a time [F12]": {
    send: async (w, e) => {
      w(open);
      for (const b of Buffer.from(e.join(""))) {
        w(Buffer.concat([Buffer.from("1\r\n"), Buffer.of(b), Buffer.from("\r\n")]));
        await new Promise(setImmediate);
      }
      w("0\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "a length too large [F13]": {
    send: (w, e) => {
      w(head({ "content-length": 50_000 }) + half(e));
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "a length too large, the stream whole [F13]": {
    send: (w, e) => {
      w(head({ "content-length": 50_000 }) + e.join(""));
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "a length too small [F14]": {
    send: (w, e) => {
      w(head({ "content-length": Buffer.byteLength(half(e)) }) + e.join(""));
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "more than the length [F14]": {
    send: (w, e) => {
      // Another call that takes the connection before the rest is read fails there, and is sent again.
      w(head({ "content-length": Buffer.byteLength(e.join("")) }) + e.join("") + "data: more\n\n");
    },
    native: "well",
    other: "well",
  },
  "two lengths [F15]": {
    send: (w, e) => {
      w(
        `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n${e.join("")}`,
      );
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "a length with chunks [F15]": {
    send: (w, e) => {
      w(head({ "content-length": 7, "transfer-encoding": "chunked" }) + e.map(chunked).join("") + "0\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "early hints, then the answer [F16]": {
    send: (w, e) => {
      w("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + open + e.map(chunked).join("") + "0\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
  },
  "a chunk cut short [F17]": {
    send: (w, e) => {
      w(open + chunked(half(e)) + "40\r\ndata: {");
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "no last chunk [F17]": {
    send: (w, e) => {
      w(open + chunked(half(e)));
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "no last chunk, the stream whole [F17]": {
    send: (w, e) => {
      w(open + e.map(chunked).join(""));
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "a bad chunk size [F17]": {
    send: (w, e) => {
      w(open + chunked(half(e)) + "zz\r\n");
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "reset in the middle [F17]": {
    send: async (w, e) => {
      w(open + chunked(half(e)));
      await new Promise((r) => setTimeout(r, 30));
      return "reset";
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "cut, without a length [F18]": {
    send: (w, e) => {
      w(head({}) + half(e));
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "cut within an event [F18]": {
    send: (w, e) => {
      w(head({}) + e.join("").replace(/("(finish|stop)_reason":"[a-z]).*$/s, "$1"));
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "nothing but the terminator is missing [F18]": {
    send: (w, e) => {
      w(head({}) + e.slice(0, -1).join(""));
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "nothing but the terminator is missing, in chunks [F18]": {
    send: (w, e) => {
      w(open + e.slice(0, -1).map(chunked).join("") + "0\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "204 [F19]": {
    send: (w) => {
      w("HTTP/1.1 204 No Content\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "205 [F19]": {
    send: (w) => {
      w("HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "304 [F19]": {
    send: (w) => {
      w("HTTP/1.1 304 Not Modified\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "a redirect [F20]": {
    send: (w) => {
      w("HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "999 [F21]": {
    send: (w) => {
      w(raw["status-999"]);
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "600 [F21]": {
    send: (w) => {
      w("HTTP/1.1 600 Odd\r\ncontent-length: 2\r\n\r\n{}");
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "CRLF [F22]": {
    send: (w, e) => {
      w(head({}) + e.join("").replaceAll("\n", "\r\n"));
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "CR [F22]": {
    send: (w, e) => {
      w(head({}) + e.join("").replaceAll("\n", "\r"));
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  "a byte order mark, comments and other fields [F22]": {
    send: (w, e) => {
      w(head({}) + "\uFEFF: hello\n\n" + e.join(": alive\n\nid: 7\nretry: 10\n"));
    },
    native: "well",
    other: "well",
    calls: 1,
  },
  ...Object.fromEntries(
    [64 << 10, 1 << 20, (4 << 20) - 1024].map((n) => [
      `a comment of ${n + 1} bytes [F22]`,
      {
        send: (w, e) => {
          w(head({}) + e[0] + `: ${"x".repeat(n - 1)}\n\n` + e.slice(1).join(""));
        },
        native: "well",
        other: "well",
        calls: 1,
      },
    ]),
  ),
  "text of over a mebibyte [F22]": {
    send: (w, e) => {
      w(head({}) + e.join("").replace("naïve ", "naïve ".repeat(200_000)));
    },
    native: "well",
    other: "well",
    calls: 1,
    text: said.replace("naïve ", "naïve ".repeat(200_000)),
  },
  "invalid JSON in an event [F23]": {
    send: (w, e) => {
      w(head({}) + [...e.slice(0, 4), "data: {oops\n\n", ...e.slice(4)].join(""));
    },
    native: "well",
    other: "error",
    calls: 1,
  },
  "an error in the stream [F24]": {
    send: (w, e, messages) => {
      w(
        head({}) +
          half(e) +
          (messages
            ? 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
            : 'data: {"error":{"message":"busy","type":"server_error","code":null}}\n\n'),
      );
    },
    native: "error",
    other: "error",
    calls: 1,
  },
  "an error at once [F24]": {
    send: (w, _, messages) => {
      w(
        head({}) +
          (messages
            ? 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
            : 'data: {"error":{"message":"busy","type":"server_error","code":null}}\n\n'),
      );
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "the end, and silence [F25]": {
    send: (w, e) => {
      w(open + e.map(chunked).join(""));
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 1,
    settings: { idleSeconds: 1 },
  },
  "HTML [F26]": {
    send: (w) => {
      w("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>sign in</html>");
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "HTML as a stream [F26]": {
    send: (w) => {
      w(head({}) + "<html>sign in</html>");
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "an empty body [F26]": {
    send: (w) => {
      w(head({ "content-length": 0 }));
      return "keep";
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "null [F26]": {
    send: (w) => {
      w(head({}) + "null");
    },
    native: "well",
    other: "well",
    calls: 2,
  },
  "an array [F26]": {
    send: (w) => {
      w(head({}) + "[]");
    },
    native: "well",
    other: "well",
    calls: 2,
  },
};

let gw, up;

// upstream speaks HTTP by hand. The first account of a machine has the case, the
// second a whole stream; asked has both, by the machine's tag in their keys.
async function upstream() {
  const up = { asked: {}, now: cases["whole, in chunks"], sockets: new Set() };
  const server = createServer((socket) => {
    let text = "";
    up.sockets.add(
      socket
        .setNoDelay()
        .on("close", () => up.sockets.delete(socket))
        .on("error", () => {}),
    );
    socket.on("data", async (b) => {
      text += b.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0 || text.length < end + 4 + +(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)) return;
      const request = text,
        body = JSON.parse(Buffer.from(text.slice(end + 4), "latin1"));
      text = "";
      if (/^POST \S+\/responses /.test(request)) {
        // it has chat alone
        socket.write(
          'HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 22\r\n\r\n{"detail":"Not Found"}',
        );
        return;
      }
      const messages = /^POST \S+\/messages /.test(request),
        first = request.includes("upstream-key-1");
      const { asked } = up;
      (asked[/upstream-key-\d-(\w+)/.exec(request)[1]] ??= []).push(first ? 1 : 2);
      const { events, terminator } = messages
        ? anthropic.messages(body, body.model, {})
        : openai.chat(body, body.model, {});
      const how = first ? up.now : cases["whole, in chunks"];
      const then = await how.send((d) => socket.write(d), [...events, terminator], messages);
      if (then === "reset") socket.resetAndDestroy();
      else if (then !== "keep") socket.end();
    });
  });
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  up.url = `http://127.0.0.1:${server.address().port}`;
  up.close = () => {
    for (const s of up.sockets) s.destroy();
    return new Promise((r) => server.close(r));
  };
  return up;
}

before(async () => {
  up = await upstream();
  gw = await start();
});
after(async () => {
  await gw?.close();
  await up?.close();
});

let made = 0;

// tenant creates a machine, so that a failure cools no account of another test.
async function tenant(settings) {
  const tag = String(++made).padStart(10, "0");
  const account = (family, prefix, priority) => ({
    id: `${prefix}-${priority}`,
    provider: `${family}-compatible-0123abcd`,
    apiKey: `upstream-key-${priority}-${tag}`,
    priority,
    providerSpecificData: { baseUrl: up.url + "/v1", prefix },
  });
  const connections = [1, 2].flatMap((n) => [account("openai", "up", n), account("anthropic", "an", n)]);
  const { machineId, apiKey } = await placed(gw, connections, settings);
  return [
    tag,
    (path, body) =>
      gw.fetch(`/${machineId}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
  ];
}

const hello = [{ role: "user", content: "naïve ☃ 👋" }];
const clients = [
  ["/v1/chat/completions", { messages: hello }, "up"],
  ["/v1/messages", { messages: hello, max_tokens: 50 }, "an"],
  ["/v1/responses", { input: "naïve ☃ 👋" }, null],
];

// data returns the data of the events of a stream.
const data = (text) =>
  text
    .replace(/^\uFEFF/, "")
    .split(/\r\n\r\n|\n\n|\r\r/)
    .flatMap((e) =>
      e
        .split(/\r\n|\n|\r/)
        .filter((l) => l.startsWith("data:"))
        .map((l) => l.slice(5).trim()),
    );

// outcome returns how a client's stream ended and its text. It must end once.
function outcome(path, text) {
  const list = data(text),
    parsed = list.map((d) => {
      try {
        return JSON.parse(d);
      } catch {
        return {};
      }
    });
  let well, bad, said;
  if (path.endsWith("completions")) {
    bad = parsed.filter((e) => e?.error).length;
    well = list.filter((d) => d === "[DONE]").length - bad;
    assert.equal(list.at(-1), "[DONE]", text.slice(-300));
    said = parsed.map((e) => e?.choices?.[0]?.delta?.content ?? "").join("");
  } else if (path.endsWith("messages")) {
    bad = parsed.filter((e) => e?.type === "error").length;
    well = parsed.filter((e) => e?.type === "message_stop").length;
    said = parsed.map((e) => e?.delta?.text ?? "").join("");
  } else {
    bad = parsed.filter((e) => e?.type === "response.failed").length;
    well = parsed.filter((e) => e?.type === "response.completed").length;
    said = parsed.map((e) => (e?.type === "response.output_text.delta" ? e.delta : "")).join("");
  }
  assert.equal(well + bad, 1, `${well} good ends and ${bad} bad ones: ${text.slice(-600)}`);
  return [well ? "well" : "error", said];
}

describe("a stream has one outcome", { concurrency: false }, () => {
  for (const [name, c] of Object.entries(cases)) {
    test(name, { timeout: 120_000 }, async () => {
      up.now = c;
      await Promise.all(
        clients.flatMap(([path, body, own]) =>
          ["up", "an"].map(async (family) => {
            const want = own === family ? c.native : c.other,
              what = `${path} over ${family}`;
            const [tag, ask] = await tenant(c.settings);
            const res = await ask(path, { ...body, model: `${family}/m`, stream: true }),
              text = await res.text(),
              asked = up.asked[tag];
            assert.equal(res.status, c.status ?? 200, `${what}: ${text}`);
            assert.doesNotMatch(text, /sign in|upstream-key/);
            if (c.calls) assert.equal(asked.length, c.calls, `${what}: asked ${asked}`);
            if (c.status) return;
            const [how, words] = outcome(path, text);
            assert.equal(how, want, `${what}: ${text.slice(-600)}`);
            if (how === "well") assert.equal(words, c.text ?? said, what);
            else assert.ok(said.startsWith(words), `${what}: ${words}`);
          }),
        ),
      );
    });
  }
});
