// A Messages server that refuses fields, beta features or thoughts by name is asked once
// more without them; fields and features are remembered.
// workerd: soak
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { admin, compatible, start } from "../gateway.mjs";

let gw, upstream, ask;
const asked = []; // the requests: { body, betas }
const beta = "fine-grained-2025-05-14";
before(async () => {
  upstream = createServer((req, res) => {
    const parts = [];
    req
      .on("data", (b) => parts.push(b))
      .on("end", () => {
        const body = JSON.parse(Buffer.concat(parts)),
          betas = req.headers["anthropic-beta"] ?? "";
        asked.push({ body, betas });
        const refuse = (message) =>
          res
            .writeHead(400, { "content-type": "application/json" })
            .end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }));
        if (betas.includes(beta)) return refuse(`Unexpected value(s) \`${beta}\` for the \`anthropic-beta\` header.`);
        if (body.context_management) return refuse("context_management: Extra inputs are not permitted");
        if (body.tools?.[0].defer_loading !== undefined)
          return refuse("tools.0.custom.defer_loading: Extra inputs are not permitted");
        if (JSON.stringify(body.messages).includes("signature"))
          return refuse("messages.1.content.0: Invalid `signature` in `thinking` block");
        res.writeHead(200, { "content-type": "application/json" }).end(
          JSON.stringify({
            id: "m",
            type: "message",
            role: "assistant",
            model: "m",
            content: [{ type: "text", text: "Hi" }],
            stop_reason: "end_turn",
            usage: { input_tokens: 1, output_tokens: 1 },
          }),
        );
      });
  });
  await new Promise((r) => upstream.listen(0, "127.0.0.1", r));
  gw = await start();
  const { machineId, apiKey } = await admin(gw).machine();
  await admin(gw).connect(machineId, {
    ...compatible({ url: `http://127.0.0.1:${upstream.address().port}` }, { prefix: "an" }),
    provider: "anthropic-compatible-0123abcd",
  });
  ask = (body) => {
    asked.length = 0;
    return gw.fetch("/v1/messages", {
      method: "POST",
      body: JSON.stringify({ model: "an/m", max_tokens: 9, messages: [{ role: "user", content: "a" }], ...body }),
      headers: {
        "x-api-key": apiKey,
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": `claude-code-20250219,${beta}`,
      },
    });
  };
});
after(async () => {
  await gw?.close();
  upstream?.closeAllConnections();
  upstream?.close();
});

test("fields and beta features that a server refuses are left out, and named", async () => {
  const body = {
    context_management: { edits: [] },
    tools: [{ name: "t", input_schema: { type: "object" }, defer_loading: true }],
  };
  for (const requests of [4, 1]) {
    const answer = await ask(body);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.headers.get("x-weir-dropped").split(",").sort(), [
      "context_management",
      beta,
      "tools.defer_loading",
    ]);
    assert.equal(asked.length, requests);
    const { body: last, betas } = asked.at(-1);
    assert.equal(betas, "claude-code-20250219");
    assert.deepEqual(last.tools, [{ name: "t", input_schema: { type: "object" } }]);
    assert.equal(last.context_management, undefined);
  }
});

test("thoughts whose signature is refused are left out of this conversation", async () => {
  const messages = [
    { role: "user", content: "a" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "EqRkElsewhere" },
        { type: "text", text: "b" },
      ],
    },
    { role: "user", content: "c" },
  ];
  for (let i = 0; i < 2; i++) {
    const answer = await ask({ messages });
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("x-weir-dropped"), /messages\.thinking/);
    assert.deepEqual(asked.at(-1).body.messages[1].content, [{ type: "text", text: "b" }]);
    assert.deepEqual(asked.at(-2).body.messages, messages);
  }
});
