// Streams with bytes after their end, or with a second end. Where the client's
// dialect is the upstream's, the host forwards the bytes unread: the official
// clients stop at the first end. A translated stream has one end and nothing
// after it. See docs/reference/reliability.md, F25.
// workerd: soak
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import * as anthropicShape from "../../upstream/anthropic.mjs";
import * as openaiShape from "../../upstream/openai.mjs";
import { start as startUpstream } from "../../upstream/server.mjs";
import { admin, compatible, start } from "../gateway.mjs";

let gw, up, me;
before(async () => {
  up = await startUpstream();
  gw = await start();
  const operator = admin(gw);
  me = await operator.machine();
  await operator.connect(me.machineId, compatible(up));
  await operator.connect(me.machineId, {
    ...compatible(up, { prefix: "an" }),
    provider: "anthropic-compatible-0123abcd",
  });
});
after(async () => {
  await gw?.close();
  await up?.close();
});

const hello = [{ role: "user", content: "Hello" }];

// damages change the events of a stream, the last of which is its terminator.
const damages = {
  "the end comes twice": (list) => [...list, list.at(-1)],
  "more comes after the end": (list) => [...list, ...list.slice(1, -1)],
  "a comment and an unfinished line come after the end": (list) => [...list, ": bye\n\n", 'data: {"choi'],
  "all of it comes again": (list) => [...list, ...list],
};

function damaged(damage) {
  up.script = (req) => {
    if (req.method !== "POST") return null;
    const { events, terminator } = (req.path.endsWith("/messages") ? anthropicShape.messages : openaiShape.chat)(
      req.json,
      req.json.model,
      {},
    );
    return { headers: { "content-type": "text/event-stream" }, body: damage([...events, terminator]).join("") };
  };
}

const openai = () => new OpenAI({ apiKey: me.apiKey, baseURL: gw.url + "/v1", maxRetries: 0 });
const anthropic = () => new Anthropic({ apiKey: me.apiKey, baseURL: gw.url, maxRetries: 0 });
const streamed = async (path, body) =>
  (
    await gw.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${me.apiKey}` },
      body: JSON.stringify({ ...body, stream: true, messages: hello, max_tokens: 50 }),
    })
  ).text();

for (const [name, damage] of Object.entries(damages)) {
  describe(name, () => {
    for (const family of ["up", "an"]) {
      test(`openai's client over ${family}`, async () => {
        damaged(damage);
        let text = "",
          ends = 0;
        for await (const chunk of await openai().chat.completions.create({
          model: `${family}/m`,
          messages: hello,
          stream: true,
        })) {
          text += chunk.choices[0]?.delta.content ?? "";
          if (chunk.choices[0]?.finish_reason) ends++;
        }
        assert.deepEqual([text, ends], ["You said: Hello", 1]);
      });
      test(`anthropic's client over ${family}`, async () => {
        damaged(damage);
        const made = anthropic()
          .messages.stream({ model: `${family}/m`, max_tokens: 50, messages: hello })
          .finalMessage();
        // This client reads on, and refuses a second beginning itself.
        if (family === "an" && name === "all of it comes again") return assert.rejects(made, /message_start/);
        const got = await made;
        assert.deepEqual(
          got.content.map((b) => b.text),
          ["You said: Hello"],
        );
        assert.equal(got.stop_reason, "end_turn");
      });
    }
    test("a translated stream ends once", async () => {
      damaged(damage);
      const chat = await streamed("/v1/chat/completions", { model: "an/m" }),
        messages = await streamed("/v1/messages", { model: "up/m" });
      assert.match(chat, /"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/);
      assert.equal(chat.match(/\[DONE\]|"finish_reason":"stop"/g).length, 2);
      assert.match(messages, /event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/);
      assert.equal(messages.match(/event: message_stop|event: message_start/g).length, 2);
    });
    test("a stream in the upstream's own dialect is forwarded byte for byte", async () => {
      damaged(damage);
      const direct = async (path) =>
        (
          await fetch(up.url + path, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ model: "m", stream: true, messages: hello, max_tokens: 50 }),
          })
        ).text();
      assert.equal(await streamed("/v1/chat/completions", { model: "up/m" }), await direct("/v1/chat/completions"));
      assert.equal(await streamed("/v1/messages", { model: "an/m" }), await direct("/v1/messages"));
    });
  });
}
