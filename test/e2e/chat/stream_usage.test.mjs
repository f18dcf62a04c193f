// The usage of a stream is the provider's where the connection says that it may be
// asked for: the client, which has not asked, gets the stream without the extra chunk.
// workerd: soak
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";
import { until } from "../wait.mjs";

const text = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n';
const stop = 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const usage =
  'data: {"id":"c","choices":[],"usage":{"prompt_tokens":700,"completion_tokens":800,"total_tokens":1500}}\n\n';
const end = "data: [DONE]\n\n";

let gw, upstream, machine, ask;
const asked = []; // stream_options of each request
before(async () => {
  upstream = createServer((req, res) => {
    const body = [];
    req
      .on("data", (b) => body.push(b))
      .on("end", () => {
        const { model, stream_options: options } = JSON.parse(Buffer.concat(body));
        asked.push(options);
        if (model === "strict" && options)
          return res
            .writeHead(400, { "content-type": "application/json" })
            .end('{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs"}]}');
        res.writeHead(200, { "content-type": "text/event-stream" });
        res.end(text + stop + (options?.include_usage ? usage : "") + end);
      });
  });
  await new Promise((r) => upstream.listen(0, "127.0.0.1", r));
  gw = await start();
  machine = await admin(gw).machine();
  const connection = compatible({ url: `http://127.0.0.1:${upstream.address().port}` });
  connection.providerSpecificData.streamUsage = true;
  const { providerSpecificData: data } = await admin(gw).connect(machine.machineId, connection);
  if (data) assert.equal(data.streamUsage, true);
  ask = async (body) => {
    asked.length = 0;
    const answer = await gw.fetch("/v1/chat/completions", {
      method: "POST",
      body: JSON.stringify({ stream: true, messages: [{ role: "user", content: "a" }], ...body }),
      headers: { authorization: `Bearer ${machine.apiKey}`, "content-type": "application/json" },
    });
    assert.equal(answer.status, 200);
    return { text: await answer.text(), dropped: answer.headers.get("x-weir-dropped") };
  };
});
after(async () => {
  await gw?.close();
  upstream?.closeAllConnections();
  upstream?.close();
});

test("the client gets the stream without the chunk, and the tokens are the provider's", async () => {
  const got = await ask({ model: "up/m" });
  assert.equal(got.text, text + stop + end);
  assert.deepEqual(asked, [{ include_usage: true }]);
  await until("the usage", async () => {
    const rows = await admin(gw).call("GET", `/${machine.machineId}/api/usage`);
    return JSON.stringify(rows).includes("700");
  });
});

test("a client that has asked gets the chunk", async () => {
  const got = await ask({ model: "up/m", stream_options: { include_usage: true } });
  assert.equal(got.text, text + stop + usage + end);
});

test("a server that refuses the field is asked once more without it, and then at once", async () => {
  for (const requests of [2, 1]) {
    const got = await ask({ model: "up/strict" });
    assert.equal(got.text, text + stop + end);
    assert.equal(asked.length, requests);
    assert.equal(got.dropped, null);
  }
});
