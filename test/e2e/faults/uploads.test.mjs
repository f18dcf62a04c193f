// Large bodies on their way up: progress renews the limit of the first byte, and one that
// was cut goes to one more account only. See docs/fallback.md.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";
import { sleep } from "../wait.mjs";

const MiB = 1 << 20;
let gw, up;
before(async () => {
  up = await upstream();
  gw = await start();
});
after(async () => {
  await gw?.close();
  await up?.close();
});

// upstream is a server that reads as the model's name says, and counts by it what it was
// asked in asked, and the lengths of the bodies that it read whole in whole.
//
//	slow    a MiB, then a pause, and so on, and the last 8 MiB, which the buffers on the
//	        way may have, at once
//	silent  all, and does not answer
//	cut     4 MiB, then ends the connection
async function upstream() {
  const it = { asked: {}, whole: {} };
  const server = createServer(async (req, res) => {
    let kind = "";
    let head = ""; // until the model's name, which may be in a later part
    let size = 0;
    let pause = MiB;
    try {
      for await (const part of req) {
        if (!kind) {
          head += part.toString("latin1");
          kind = /(slow|silent|cut)(chat|form|held)/.exec(head)?.[0] ?? "";
          if (kind) it.asked[kind] = (it.asked[kind] ?? 0) + 1;
        }
        size += part.length;
        if (kind.startsWith("cut") && size > 4 * MiB) return void req.socket.destroy();
        if (kind.startsWith("slow") && size > pause && size < 12 * MiB) {
          pause += MiB;
          await sleep(500);
        }
      }
    } catch {
      return; // it was cut
    }
    if (kind.startsWith("silent")) return;
    assert.equal(size, +req.headers["content-length"]);
    it.whole[kind] = size;
    const answer = {
      text: "Hello",
      id: "x",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "a" }, finish_reason: "stop" }],
    };
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  server.keepAliveTimeout = 600_000; // else it closes a connection just as the gateway uses it again
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  it.url = `http://127.0.0.1:${server.address().port}`;
  it.close = () => {
    server.closeAllConnections();
    return new Promise((r) => server.close(r));
  };
  return it;
}

// tenant is a machine with four accounts.
async function tenant(settings) {
  const operator = admin(gw);
  const { machineId, apiKey } = await operator.machine();
  for (const n of [1, 2, 3, 4]) await operator.connect(machineId, compatible(up, { apiKey: `upstream-key-${n}` }));
  await operator.call("PATCH", `/${machineId}/api/settings`, settings);
  return async (path, body) => {
    const res = await gw.fetch(path, {
      method: "POST",
      body,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body instanceof FormData ? {} : { "content-type": "application/json" }),
      },
    });
    return { status: res.status, text: await res.text() };
  };
}

const chat = (model, mib) =>
  JSON.stringify({ model: `up/${model}`, messages: [{ role: "user", content: "A".repeat(mib * MiB) }] });
const form = (model, mib, first) => {
  const f = new FormData();
  if (first) f.set("model", `up/${model}`);
  f.set("language", model); // seen by the upstream before the file
  f.set("file", new Blob(["x".repeat(mib * MiB)], { type: "audio/wav" }), "a.wav");
  if (!first) f.set("model", `up/${model}`);
  return f;
};

test("an upload that makes progress is not cut by the limit of the first byte", { timeout: 120_000 }, async () => {
  const limit = { firstByteSeconds: 3 };
  const answers = await Promise.all([
    (await tenant(limit))("/v1/chat/completions", chat("slowchat", 20)),
    (await tenant(limit))("/v1/audio/transcriptions", form("slowform", 20, true)),
    (await tenant(limit))("/v1/audio/transcriptions", form("slowheld", 20, false)),
  ]);
  for (const { status, text } of answers) assert.equal(status, 200, text);
  assert.deepEqual(up.asked, { slowchat: 1, slowform: 1, slowheld: 1 });
  for (const size of Object.values(up.whole)) assert.ok(size > 20 * MiB);
});

test("an upload that was cut goes to one more account only", { timeout: 120_000 }, async () => {
  const ask = await tenant({ firstByteSeconds: 2 });
  const all = { silentchat: 504, silentheld: 504, cutchat: 502, cutheld: 502 };
  await Promise.all(
    Object.entries(all).map(async ([model, want]) => {
      const { status, text } = model.endsWith("chat")
        ? await ask("/v1/chat/completions", chat(model, 6))
        : await ask("/v1/audio/transcriptions", form(model, 6, false));
      assert.equal(status, want, text);
      assert.equal(up.asked[model], 2, `${model}: ${text}`);
    }),
  );
});
